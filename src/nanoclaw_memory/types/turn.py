"""Nouns of the turn: exchange, block, lesson, outcome."""

from __future__ import annotations

from dataclasses import dataclass


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
