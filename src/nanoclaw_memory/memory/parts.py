"""The classes of Memory and its parts, for interfaces that are derived from their methods."""

from __future__ import annotations

from nanoclaw_memory.graph.graph import KnowledgeGraph
from nanoclaw_memory.host.host import Host
from nanoclaw_memory.host.tasks import Tasks
from nanoclaw_memory.lessons.service import LessonService
from nanoclaw_memory.memory.admin import AdminPart
from nanoclaw_memory.memory.api import Memory
from nanoclaw_memory.memory.conversations import ConversationsPart
from nanoclaw_memory.memory.entries import EntriesPart
from nanoclaw_memory.memory.host import HostPart
from nanoclaw_memory.memory.upkeep import UpkeepPart
from nanoclaw_memory.memory.workspace import WorkspacePart
from nanoclaw_memory.retrieval.corpus import Corpora

__all__ = [
    "PARTS",
    "AdminPart",
    "ConversationsPart",
    "Corpora",
    "EntriesPart",
    "Host",
    "HostPart",
    "KnowledgeGraph",
    "LessonService",
    "Memory",
    "Tasks",
    "UpkeepPart",
    "WorkspacePart",
]

# Where each part is found on a Memory.
PARTS: dict[type, str] = {
    Memory: "",
    KnowledgeGraph: "graph",
    EntriesPart: "entries",
    ConversationsPart: "conversations",
    LessonService: "lessons",
    WorkspacePart: "workspace",
    UpkeepPart: "upkeep",
    HostPart: "host",
    Host: "host.state",
    Tasks: "host.tasks",
    AdminPart: "admin",
    Corpora: "admin.corpora",
}
