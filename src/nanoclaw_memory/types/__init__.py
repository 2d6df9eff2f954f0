"""Every noun of the system, as frozen dataclasses; names follow the glossary in CONTRIBUTING.md.

A module per room, loaded when one of its nouns is first used: making ninety dataclasses costs a hook 60 ms.
A new noun goes into its room's module and into the two lists here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nanoclaw_memory.types.entries import Audit as Audit
    from nanoclaw_memory.types.entries import AuditAnalysis as AuditAnalysis
    from nanoclaw_memory.types.entries import AuditShare as AuditShare
    from nanoclaw_memory.types.entries import AuditVerdict as AuditVerdict
    from nanoclaw_memory.types.entries import Brief as Brief
    from nanoclaw_memory.types.entries import BriefEntry as BriefEntry
    from nanoclaw_memory.types.entries import BroughtIn as BroughtIn
    from nanoclaw_memory.types.entries import Deleted as Deleted
    from nanoclaw_memory.types.entries import Duplicate as Duplicate
    from nanoclaw_memory.types.entries import EntriesFound as EntriesFound
    from nanoclaw_memory.types.entries import Entry as Entry
    from nanoclaw_memory.types.entries import EntryHit as EntryHit
    from nanoclaw_memory.types.entries import EntryLife as EntryLife
    from nanoclaw_memory.types.entries import Forgotten as Forgotten
    from nanoclaw_memory.types.entries import ForgottenPage as ForgottenPage
    from nanoclaw_memory.types.entries import IndexStatus as IndexStatus
    from nanoclaw_memory.types.entries import Proposal as Proposal
    from nanoclaw_memory.types.entries import Provenance as Provenance
    from nanoclaw_memory.types.entries import Recall as Recall
    from nanoclaw_memory.types.entries import RecalledEntry as RecalledEntry
    from nanoclaw_memory.types.entries import Recommendation as Recommendation
    from nanoclaw_memory.types.entries import Stored as Stored
    from nanoclaw_memory.types.graph import Alias as Alias
    from nanoclaw_memory.types.graph import Fact as Fact
    from nanoclaw_memory.types.graph import GraphAnswer as GraphAnswer
    from nanoclaw_memory.types.graph import GraphHit as GraphHit
    from nanoclaw_memory.types.graph import Ingested as Ingested
    from nanoclaw_memory.types.graph import Relation as Relation
    from nanoclaw_memory.types.graph import Upserted as Upserted
    from nanoclaw_memory.types.graph import tier as tier
    from nanoclaw_memory.types.health import Finding as Finding
    from nanoclaw_memory.types.health import Status as Status
    from nanoclaw_memory.types.host import AgentPlace as AgentPlace
    from nanoclaw_memory.types.host import Archived as Archived
    from nanoclaw_memory.types.host import Batch as Batch
    from nanoclaw_memory.types.host import Chat as Chat
    from nanoclaw_memory.types.host import Group as Group
    from nanoclaw_memory.types.host import Message as Message
    from nanoclaw_memory.types.host import Reply as Reply
    from nanoclaw_memory.types.host import Said as Said
    from nanoclaw_memory.types.host import Task as Task
    from nanoclaw_memory.types.host import TaskRun as TaskRun
    from nanoclaw_memory.types.host import Transcript as Transcript
    from nanoclaw_memory.types.host import TranscriptFile as TranscriptFile
    from nanoclaw_memory.types.scope import MAIN_GROUP as MAIN_GROUP
    from nanoclaw_memory.types.scope import Scope as Scope
    from nanoclaw_memory.types.sdk import StoredItem as StoredItem
    from nanoclaw_memory.types.search import Chunk as Chunk
    from nanoclaw_memory.types.search import Compared as Compared
    from nanoclaw_memory.types.search import Corpus as Corpus
    from nanoclaw_memory.types.search import Found as Found
    from nanoclaw_memory.types.search import Hit as Hit
    from nanoclaw_memory.types.search import Indexed as Indexed
    from nanoclaw_memory.types.search import Skipped as Skipped
    from nanoclaw_memory.types.turn import Block as Block
    from nanoclaw_memory.types.turn import Exchange as Exchange
    from nanoclaw_memory.types.turn import Lesson as Lesson
    from nanoclaw_memory.types.turn import LessonDetail as LessonDetail
    from nanoclaw_memory.types.turn import Outcome as Outcome
    from nanoclaw_memory.types.turn import PluginNote as PluginNote
    from nanoclaw_memory.types.turn import Recorded as Recorded
    from nanoclaw_memory.types.turn import Session as Session
    from nanoclaw_memory.types.turn import SessionHit as SessionHit
    from nanoclaw_memory.types.turn import ToolCall as ToolCall
    from nanoclaw_memory.types.turn import Turn as Turn
    from nanoclaw_memory.types.upkeep import Flush as Flush
    from nanoclaw_memory.types.upkeep import HeartbeatItem as HeartbeatItem
    from nanoclaw_memory.types.upkeep import Installed as Installed
    from nanoclaw_memory.types.upkeep import JobRun as JobRun
    from nanoclaw_memory.types.upkeep import JobState as JobState
    from nanoclaw_memory.types.upkeep import Refreshed as Refreshed
    from nanoclaw_memory.types.workspace import Boot as Boot
    from nanoclaw_memory.types.workspace import BootFile as BootFile
    from nanoclaw_memory.types.workspace import Change as Change
    from nanoclaw_memory.types.workspace import Checkpoint as Checkpoint
    from nanoclaw_memory.types.workspace import Created as Created
    from nanoclaw_memory.types.workspace import DatabaseCheck as DatabaseCheck
    from nanoclaw_memory.types.workspace import Lines as Lines
    from nanoclaw_memory.types.workspace import LogLine as LogLine
    from nanoclaw_memory.types.workspace import Policy as Policy
    from nanoclaw_memory.types.workspace import PolicyHit as PolicyHit
    from nanoclaw_memory.types.workspace import Project as Project
    from nanoclaw_memory.types.workspace import Restored as Restored
    from nanoclaw_memory.types.workspace import Runbook as Runbook
    from nanoclaw_memory.types.workspace import Written as Written

_ROOMS = {
    "entries": (
        "Audit AuditAnalysis AuditShare AuditVerdict Brief BriefEntry BroughtIn Deleted Duplicate "
        "EntriesFound Entry EntryHit EntryLife Forgotten ForgottenPage IndexStatus Proposal Provenance Recall "
        "RecalledEntry Recommendation Stored"
    ),
    "graph": "Alias Fact GraphAnswer GraphHit Ingested Relation Upserted tier",
    "health": "Finding Status",
    "host": (
        "AgentPlace Archived Batch Chat Group Message Reply Said Task TaskRun Transcript TranscriptFile"
    ),
    "scope": "MAIN_GROUP Scope",
    "sdk": "StoredItem",
    "search": "Chunk Compared Corpus Found Hit Indexed Skipped",
    "turn": (
        "Block Exchange Lesson LessonDetail Outcome PluginNote Recorded Session SessionHit ToolCall Turn"
    ),
    "upkeep": "Flush HeartbeatItem Installed JobRun JobState Refreshed",
    "workspace": (
        "Boot BootFile Change Checkpoint Created DatabaseCheck Lines LogLine Policy PolicyHit "
        "Project Restored Runbook Written"
    ),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Load a noun's room when the noun is first asked for."""
    import importlib

    if name not in _HOME:
        raise AttributeError(f"there is no noun {name!r}")
    value = getattr(importlib.import_module(f"nanoclaw_memory.types.{_HOME[name]}"), name)
    globals()[name] = value
    return value
