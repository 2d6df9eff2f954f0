"""Nouns of the turn: who asks (scope), exchange, block, lesson, outcome."""

from __future__ import annotations

import msgspec

MAIN_GROUP = "main"


class Scope(msgspec.Struct, frozen=True):
    """Who asks: the group whose directory is used, the session, and whether private memory may be seen."""

    group: str = MAIN_GROUP
    session_id: str = ""
    private: bool = True
    origin: str = (
        "owner"  # who writes: owner, agent, tool, web, import; set by the interface, never by arguments
    )


class ToolCall(msgspec.Struct, frozen=True):
    """One call of a tool as the host reported it: what it touched and what came out."""

    tool: str
    target: str = ""
    output: str = ""


class Exchange(msgspec.Struct, frozen=True):
    """One user message and its answer; `private` is that of the scope in which it was recorded."""

    id: int
    session_id: str
    user_message: str
    agent_response: str
    timestamp: str
    topic: str = ""
    private: bool = True


class Recorded(msgspec.Struct, frozen=True):
    """What became of a reported exchange."""

    id: int
    new: bool
    redacted: int = 0
    entropy: float = 0.0
    lessons: tuple[int, ...] = ()
    notes: tuple[PluginNote, ...] = ()


class Session(msgspec.Struct, frozen=True):
    """The exchanges of one session, counted."""

    session_id: str
    exchanges: int
    first: str
    last: str
    topics: tuple[str, ...] = ()


class SessionHit(msgspec.Struct, frozen=True):
    """A hit in conversations: an exchange, or lines of an archived one."""

    session_id: str
    timestamp: str
    text: str
    score: float
    exchange_id: int = 0
    path: str = ""
    line: int = 0


class Block(msgspec.Struct, frozen=True):
    """Text to be put before a model call, whole: label line, fence, lines, closing mark."""

    label: str
    text: str
    tokens: int


class PluginNote(msgspec.Struct, frozen=True):
    """What a plugin left out, or could not do, in words."""

    plugin: str
    reason: str


class Turn(msgspec.Struct, frozen=True):
    """The blocks for one message, who gave none and why, and what else there is to say."""

    blocks: tuple[Block, ...]
    skipped: tuple[PluginNote, ...] = ()
    notes: tuple[PluginNote, ...] = ()
    took_ms: float = 0.0

    @property
    def text(self) -> str:
        """All blocks as one text for the model."""
        return "\n\n".join(block.text for block in self.blocks)


class Lesson(msgspec.Struct, frozen=True):
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


class Outcome(msgspec.Struct, frozen=True):
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


class LessonDetail(msgspec.Struct, frozen=True):
    """A lesson with the outcomes of its injections."""

    lesson: Lesson
    outcomes: tuple[Outcome, ...]
