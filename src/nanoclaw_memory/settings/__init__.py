"""nanoclaw.json: flag > environment > project file > home file > default.

A project file (a `nanoclaw.json` in the working directory or above it) may set only keys that cannot redirect
data: no endpoints, keys, paths or privacy.
"""

from nanoclaw_memory.settings.load import (
    FILE_NAME,
    SECRET_KEYS,
    Configuration,
    Leaf,
    allowed,
    leaves,
    load,
    read_file,
    readable,
    type_name,
    with_value,
    without_value,
)
from nanoclaw_memory.settings.sections import Settings

__all__ = [
    "FILE_NAME",
    "SECRET_KEYS",
    "Configuration",
    "Leaf",
    "Settings",
    "allowed",
    "leaves",
    "load",
    "read_file",
    "readable",
    "type_name",
    "with_value",
    "without_value",
]
