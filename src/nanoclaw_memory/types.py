"""Every noun of the system, as frozen dataclasses; names follow the glossary in CONTRIBUTING.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAIN_GROUP = "main"


@dataclass(frozen=True)
class Scope:
    """Who asks: the group whose directory is used, the session, and whether private memory may be seen."""

    group: str = MAIN_GROUP
    session_id: str = ""
    private: bool = True
    origin: str = "owner"  # who writes: owner, agent, tool, web, import; set by the face, never by arguments


@dataclass(frozen=True)
class LogLine:
    """One line of a daily log: `- [tag|i=0.9] text`."""

    line: int
    text: str
    tag: str = ""
    importance: float | None = None
    indent: int = 0


@dataclass(frozen=True)
class Lines:
    """A range of lines read from a memory file; 1-based, inclusive; empty with a note when there are none."""

    path: str
    start_line: int
    end_line: int
    text: str
    exists: bool
    note: str = ""


@dataclass(frozen=True)
class Written:
    """Where a line was written."""

    path: str
    line: int
    redacted: int = 0


@dataclass(frozen=True)
class BootFile:
    """One file of the boot context, as the agent gets it."""

    path: str
    chars: int
    tokens: int
    truncated: bool = False
    missing: bool = False


@dataclass(frozen=True)
class Boot:
    """What an agent reads at session start."""

    files: tuple[BootFile, ...]
    text: str
    tokens: int
    mode: str


@dataclass(frozen=True)
class Created:
    """What `init` made and what it left as it was."""

    home: Path
    created: tuple[str, ...]
    kept: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """One line of a check-up: how bad, what, and the command that helps."""

    level: str  # ok, note, warning, problem
    message: str
    next: str = ""


@dataclass(frozen=True)
class Policy:
    """A gating policy: what triggers it and what must happen first."""

    id: str
    title: str
    trigger: str
    gate: str
    reason: str = ""
    source: str = ""
    line: int = 0


@dataclass(frozen=True)
class PolicyHit:
    """A policy that a planned action triggers, how surely (0 to 1), and the words that tell."""

    policy: Policy
    score: float
    matched: tuple[str, ...]


@dataclass(frozen=True)
class Runbook:
    """A how-to of the group: `memory/tools-NAME.md`."""

    name: str
    path: str
    title: str
    chars: int


@dataclass(frozen=True)
class Checkpoint:
    """A saved state of a group's workspace and databases; `damaged` databases were copied as they were."""

    name: str
    created_at: str
    reason: str
    files: int
    databases: tuple[str, ...]
    bytes: int
    path: str
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True)
class Restored:
    """What a restore did, and the checkpoint that holds the state before it."""

    name: str
    before: str
    replaced: int
    removed: int
    databases: tuple[str, ...]


@dataclass(frozen=True)
class DatabaseCheck:
    """What the integrity check of one database file found; nothing when it is sound."""

    group: str
    path: str
    problems: tuple[str, ...] = ()
    next: str = ""


@dataclass(frozen=True)
class Change:
    """One difference between a checkpoint and now."""

    path: str
    kind: str  # added, removed, changed
    diff: str = ""


@dataclass(frozen=True)
class Project:
    """A project's memory file, its own or shared by all groups."""

    slug: str
    path: str
    title: str
    chars: int


@dataclass(frozen=True)
class Status:
    """What a home holds, at a glance."""

    home: Path
    group: str
    exists: bool
    groups: tuple[str, ...]
    files: int
    databases: dict[str, int]  # name -> bytes
    embedder: str
    usage: tuple[dict[str, float | str], ...] = ()


@dataclass(frozen=True)
class Chat:
    """A conversation on some channel, as the host knows it; `is_group` is None while unknown."""

    jid: str
    name: str
    last_message_time: str
    channel: str = ""
    is_group: bool | None = None


@dataclass(frozen=True)
class Message:
    """One chat message; `arrival` is its place in the order of storing, which cursors count in."""

    id: str
    chat_jid: str
    sender: str
    sender_name: str
    content: str
    timestamp: str
    is_from_me: bool = False
    is_bot_message: bool = False
    arrival: int = 0


@dataclass(frozen=True)
class Group:
    """A chat that has an agent: its directory's name and what calls the agent."""

    jid: str
    name: str
    folder: str
    trigger_pattern: str
    added_at: str
    requires_trigger: bool = True


@dataclass(frozen=True)
class Batch:
    """What an agent has to answer: the messages that ask, and what was said before them since the last answer."""

    group: Group
    messages: tuple[Message, ...]
    context: tuple[Message, ...] = ()
    earlier: int = 0  # context messages left out because there are too many
    session_id: str = ""


@dataclass(frozen=True)
class Reply:
    """An answer on its way to the chat; the id stays the same however often it is sent."""

    id: str
    chat_jid: str
    group: str
    content: str
    session_id: str
    created_at: str


@dataclass(frozen=True)
class AgentPlace:
    """Where a group's agent runs: its working directory, its HOME, its IPC directory and its environment."""

    group: str
    directory: Path
    agent_home: Path
    ipc: Path
    environment: dict[str, str]


@dataclass(frozen=True)
class Task:
    """A scheduled task of a group."""

    id: str
    group: str
    chat_jid: str
    prompt: str
    schedule_type: str  # cron, interval, once
    schedule_value: str
    context_mode: str  # group, isolated
    next_run: str
    last_run: str
    last_result: str
    status: str  # active, paused, completed
    created_at: str


@dataclass(frozen=True)
class TaskRun:
    """One run of a task."""

    id: int
    task_id: str
    run_at: str
    duration_ms: int
    status: str  # running, success, error, interrupted
    result: str = ""
    error: str = ""


@dataclass(frozen=True)
class Said:
    """One turn of a transcript: who, what, and when if it is known."""

    speaker: str  # User, Agent
    text: str
    at: str = ""


@dataclass(frozen=True)
class Transcript:
    """A conversation read from a client's own file."""

    session_id: str
    source: str  # claude-code, codex, messages
    said: tuple[Said, ...]
    title: str = ""


@dataclass(frozen=True)
class TranscriptFile:
    """A raw transcript under a group's session directory."""

    path: str
    session_id: str
    source: str
    bytes: int
    modified_at: str


@dataclass(frozen=True)
class Archived:
    """A conversation in the workspace as Markdown."""

    path: str
    title: str
    date: str
    session_id: str
    turns: int
    redacted: int = 0


@dataclass(frozen=True)
class Chunk:
    """Lines of a file that are found together, and what they stand under."""

    start_line: int
    end_line: int
    text: str
    grain: str = "section"  # section, turn (of a conversation), line (of a log)
    heading: str = ""
    day: str = ""
    speaker: str = ""
    importance: float | None = None


@dataclass(frozen=True)
class Hit:
    """Something that search found: lines of a file, or an entry; `score` is 0 to 1."""

    kind: str  # chunk, entry
    path: str
    start_line: int
    end_line: int
    text: str
    score: float
    why: str = ""
    id: str = ""
    heading: str = ""
    day: str = ""
    speaker: str = ""
    corpus: str = ""
    type: str = ""
    tags: tuple[str, ...] = ()
    parts: Mapping[str, float] = field(default_factory=dict)  # every component of the score, with explain
    # Of entries only:
    behavioral: bool = False
    created_at: str = ""
    origin: str = ""
    untrusted: bool = False
    suspicions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Found:
    """What search gives: hits, best first, and aloud what could not take part."""

    hits: tuple[Hit, ...]
    degraded: tuple[str, ...] = ()
    took_ms: float = 0.0


@dataclass(frozen=True)
class Skipped:
    """A file that is not in the index, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Compared:
    """How well one way of searching finds a chunk by one of its own sentences."""

    name: str
    recall_1: float
    recall_5: float
    mrr: float
    query_ms: float
    note: str = ""


@dataclass(frozen=True)
class Corpus:
    """A named collection of domain documents."""

    name: str
    sources: tuple[str, ...]
    files: int
    chunks: int
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True)
class Indexed:
    """What an indexing run found and did."""

    files: int
    chunks: int
    added: int
    removed: int
    embedded: int
    pending: int = 0
    skipped: tuple[Skipped, ...] = ()
    degraded: tuple[str, ...] = ()
    took_ms: float = 0.0


@dataclass(frozen=True)
class Provenance:
    """Where an entry came from; written by us, never by whoever stores it."""

    session_id: str
    group: str
    timestamp: str
    origin: str  # owner, agent, tool, web, import
    source: str = ""


@dataclass(frozen=True)
class Entry:
    """One typed memory; `behavioral` and `provenance` are never given by the caller."""

    id: str
    type: str
    content: str
    priority: str
    tags: tuple[str, ...]
    behavioral: bool
    provenance: Provenance
    status: str  # active, held, superseded, archived, expired
    token_cost: int
    reason: str = ""
    related_to: tuple[str, ...] = ()
    supersedes: str | None = None
    superseded_by: str | None = None
    expires: str | None = None
    suspicions: tuple[str, ...] = ()
    reinforcements: int = 0
    used_at: str = ""
    updated_at: str = ""


@dataclass(frozen=True)
class Stored:
    """What `store` did."""

    id: str
    type: str
    category: str
    stored: bool
    deduplicated: bool
    token_cost: int
    redacted: int
    status: str
    superseded: str | None = None
    suspicions: tuple[str, ...] = ()
    similar: tuple[str, ...] = ()  # ids that a resident model calls alike; the caller decides what to do
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class EntryHit:
    """An entry that a search found; `relevance_score` is 0 to 1."""

    id: str
    type: str
    content: str
    behavioral: bool
    tags: tuple[str, ...]
    created_at: str
    relevance_score: float
    priority: str
    status: str
    age_days: int
    untrusted: bool
    provenance: Provenance
    importance: float
    reason: str = ""
    suspicions: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class EntriesFound:
    """Entries that a search found, and aloud what could not take part."""

    hits: tuple[EntryHit, ...]
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True)
class RecalledEntry:
    """An entry, or lines of a file (type `file`), that recall packed into its budget."""

    id: str
    type: str
    category: str
    content: str
    priority: str
    score: float
    stored_at: str
    tags: tuple[str, ...]
    origin: str
    age_days: int | None
    untrusted: bool = False
    suspicions: tuple[str, ...] = ()
    context: str = ""
    group: str = ""


@dataclass(frozen=True)
class Recall:
    """What recall gives: entries, the fenced text of them, and what it cost."""

    entries: tuple[RecalledEntry, ...]
    text: str
    token_count: int
    budget_remaining: int
    total_entries_matched: int
    fallback: str = ""  # "files" when no entry matched
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True)
class BriefEntry:
    """One line of the brief."""

    id: str
    type: str
    content: str
    behavioral: bool
    tags: tuple[str, ...]
    age_days: int
    provenance: Provenance | None = None


@dataclass(frozen=True)
class Brief:
    """What matters, for a session's start."""

    text: str
    entries: tuple[BriefEntry, ...]
    generated_at: str
    entry_count: int
    brief_count: int
    tokens: int
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True)
class Deleted:
    """What `delete` removed, and which entries came back because of it."""

    id: str
    deleted: bool
    restored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Proposal:
    """A change that only a person may make."""

    id: str
    kind: str  # promotion, demotion, lesson, held, archive, domain-edit
    payload: Mapping[str, Any]
    why: str
    source: str
    diff: str
    status: str  # open, accepted, rejected
    created_at: str
    decided_at: str | None = None


@dataclass(frozen=True)
class ToolCall:
    """One call of a tool as the host reported it: what it touched and what came out."""

    tool: str
    target: str = ""
    output: str = ""


@dataclass(frozen=True)
class Exchange:
    """One user message and its answer; `private` is that of the scope in which it was recorded."""

    id: int
    session_id: str
    user_message: str
    agent_response: str
    timestamp: str
    topic: str = ""
    private: bool = True


@dataclass(frozen=True)
class Recorded:
    """What became of a reported exchange."""

    id: int
    new: bool
    redacted: int = 0
    entropy: float = 0.0
    lessons: tuple[int, ...] = ()
    notes: tuple[PluginNote, ...] = ()


@dataclass(frozen=True)
class Session:
    """The exchanges of one session, counted."""

    session_id: str
    exchanges: int
    first: str
    last: str
    topics: tuple[str, ...] = ()


@dataclass(frozen=True)
class SessionHit:
    """A place in what was said: an exchange, or lines of an archived conversation."""

    session_id: str
    timestamp: str
    text: str
    score: float
    exchange_id: int = 0
    path: str = ""
    line: int = 0


@dataclass(frozen=True)
class Block:
    """Text to be put before a model call, whole: label line, fence, lines, closing mark."""

    label: str
    text: str
    tokens: int


@dataclass(frozen=True)
class PluginNote:
    """What a plugin left out, or could not do, in words."""

    plugin: str
    reason: str


@dataclass(frozen=True)
class Turn:
    """The blocks for one message, who gave none and why, and what else there is to say."""

    blocks: tuple[Block, ...]
    skipped: tuple[PluginNote, ...] = ()
    notes: tuple[PluginNote, ...] = ()
    took_ms: float = 0.0

    @property
    def text(self) -> str:
        """All blocks as one text for the model."""
        return "\n\n".join(block.text for block in self.blocks)


@dataclass(frozen=True)
class Lesson:
    """What a correction taught: when it applies, what to do, and whether it has helped."""

    id: int
    trigger: str
    lesson: str
    principle: str
    effectiveness: float
    injections: int
    state: str  # candidate, active, metabolized, retired
    seen: int = 1
    maturity_days: int = 0
    general: bool = False
    private: bool = True
    origin: str = "correction"
    created_at: str = ""
    retired_because: str = ""


@dataclass(frozen=True)
class Outcome:
    """What happened after one injection of a lesson."""

    id: int
    lesson_id: int
    session_id: str
    query: str
    pre_entropy: float
    post_entropy: float | None
    feedback: str  # good, bad, neutral; empty while the next message is awaited
    helped: bool | None
    injected_at: str


@dataclass(frozen=True)
class LessonDetail:
    """A lesson with the outcomes of its injections."""

    lesson: Lesson
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class Fact:
    """Entity, key and value, with how hot it is, since when it holds and who said so."""

    id: int
    entity: str
    key: str
    value: str
    category: str = "fact"
    source: str = ""
    importance: float = 0.5
    activation: float = 1.0
    access_count: int = 0
    last_accessed: str = ""
    permanent: bool = False
    created_at: str = ""
    valid_from: str = ""
    valid_to: str = ""
    superseded_by: int | None = None

    @property
    def text(self) -> str:
        return f"{self.entity}.{self.key} = {self.value}"


@dataclass(frozen=True)
class Relation:
    """Subject, predicate and object."""

    id: int
    subject: str
    predicate: str
    object: str
    source: str = ""
    activation: float = 1.0
    access_count: int = 0
    last_accessed: str = ""
    created_at: str = ""
    valid_from: str = ""
    valid_to: str = ""
    superseded_by: int | None = None

    @property
    def text(self) -> str:
        return f"{self.subject} → {self.predicate} → {self.object}"


@dataclass(frozen=True)
class Alias:
    """Another name of an entity."""

    alias: str
    entity: str


@dataclass(frozen=True)
class GraphHit:
    """A fact or relation that answers, with its score, how hot it is, and why it came."""

    item: Fact | Relation
    score: int
    phase: int
    why: str
    combined: float = 0.0
    linked: bool = False
    context: bool = False  # the rest of what is known about an entity whose answer stands above

    @property
    def kind(self) -> str:
        return "fact" if isinstance(self.item, Fact) else "relation"

    @property
    def tier(self) -> str:
        return tier(self.item.activation)

    @property
    def text(self) -> str:
        return self.item.text


def tier(activation: float) -> str:
    """Hot above 2, Warm from 1, Cool below."""
    return "Hot" if activation > 2.0 else "Warm" if activation >= 1.0 else "Cool"


@dataclass(frozen=True)
class GraphAnswer:
    """What the graph knows about a question, best first; linked facts come last."""

    hits: tuple[GraphHit, ...]
    entities: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()
    took_ms: float = 0.0


@dataclass(frozen=True)
class Upserted:
    """What a write to the graph did."""

    id: int
    retired: tuple[int, ...] = ()
    created: bool = True
    redacted: int = 0


@dataclass(frozen=True)
class AuditShare:
    """What one source costs."""

    source: str
    tokens: int
    percentage: float
    category: str  # system_prompt, memory_md, domains, brief, on_demand


@dataclass(frozen=True)
class Duplicate:
    """Two places that say the same."""

    content_a: str
    content_b: str
    similarity: float
    sources: tuple[str, str]


@dataclass(frozen=True)
class AuditAnalysis:
    """Where the tokens go."""

    total_tokens: int
    breakdown: tuple[AuditShare, ...]
    duplicates: tuple[Duplicate, ...]


@dataclass(frozen=True)
class Recommendation:
    """What would help, how much it saves, and what could go wrong."""

    action: str
    description: str
    estimated_savings_tokens: int
    risk: str  # low, medium, high
    targets: tuple[str, ...] = ()
    applied: bool = False


@dataclass(frozen=True)
class Audit:
    """What memory costs, and what to do about it."""

    analysis: AuditAnalysis
    recommendations: tuple[Recommendation, ...]
    checkpoint: str = ""


@dataclass(frozen=True)
class IndexStatus:
    """Health and statistics: the files, the entries, and what is always loaded."""

    legacy: Mapping[str, Any]
    progressive: Mapping[str, Any]
    index: Mapping[str, Any]


@dataclass(frozen=True)
class AuditVerdict:
    """Whether the audit log is whole; problems name the line."""

    ok: bool
    records: int
    problems: tuple[str, ...]


@dataclass(frozen=True)
class EntryLife:
    """Everything the audit log knows of an entry, and the entry as it is now."""

    records: tuple[Mapping[str, Any], ...]
    entry: Entry | None
    wordings: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Ingested:
    """What reading a file changed in the graph; `skipped` were rejected before or refused."""

    path: str
    added: int = 0
    kept: int = 0
    retired: int = 0
    skipped: int = 0


@dataclass(frozen=True)
class JobRun:
    """One run of an upkeep job; `skipped` says why it did not run, `error` why it stopped."""

    name: str
    changed: int
    took_ms: float
    skipped: str = ""
    error: str = ""
    hint: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobState:
    """An upkeep job: when it runs, when it last did, and when it last changed something."""

    name: str
    about: str
    cron: str
    last_run: str
    changed: int
    error: str
    last_changed: str
    last_change: int
    next_run: str
    due: bool


@dataclass(frozen=True)
class StoredItem:
    """What an agent of another SDK keeps under a namespace and key."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any]
    created_at: str
    updated_at: str


@dataclass(frozen=True)
class BroughtIn:
    """What a migration or import stored, knew already, held for review, and could not place."""

    stored: int
    known: int
    held: int
    relations: int
    conversations: int
    types: Mapping[str, int]
    unplaced: tuple[str, ...]
    dry_run: bool = False
