"""Value types as frozen Structs; names follow the glossary in CONTRIBUTING.md."""

from __future__ import annotations

from nanoclaw_memory.types.entries import *
from nanoclaw_memory.types.graph import *
from nanoclaw_memory.types.host import *
from nanoclaw_memory.types.search import *
from nanoclaw_memory.types.turn import *
from nanoclaw_memory.types.upkeep import *
from nanoclaw_memory.types.workspace import *
