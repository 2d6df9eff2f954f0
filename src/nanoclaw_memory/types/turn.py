"""Types of the turn: scope, exchange, block, lesson, outcome."""

from __future__ import annotations

import msgspec

MAIN_GROUP = "main"
SHARED = "shared-"  # prefix of the databases of shared chats
# Origins, the most trusted first: the person at the command line, the page or a file; the person in a private
# conversation; a model; a group chat; another memory; and what was quoted, pasted or fetched.
ORIGINS = ("owner", "user", "agent", "shared", "import", "tool", "web")
OWN = ("owner", "user")  # the person's own words, never treated as an attack
FOREIGN = ("shared", "import", "tool", "web")  # their text steers nothing before a person has approved it


def rank(origin: str) -> int:
    """Return the place of an origin among ORIGINS; an unknown one, from a damaged row, is trusted least."""
    return ORIGINS.index(origin) if origin in ORIGINS else len(ORIGINS)


def trust(origin: str) -> int:
    """Return the rank of an origin in the graph, higher for less trusted; those the owner trusts share the lowest."""
    return max(rank(origin), rank("agent"))


def stated_by(origin: str) -> str:
    """Return the label of an untrusted or agent origin, for readers."""
    # Statements of shared chats are marked separately.
    untrusted = f"untrusted: from {origin}" if origin in FOREIGN and origin != "shared" else ""
    return "by agent" if origin == "agent" else untrusted


class Scope(msgspec.Struct, frozen=True):
    """Who asks: the group whose directory is used, the session, whether private memory is visible, and where."""

    group: str = MAIN_GROUP
    session_id: str = ""
    private: bool = True
    origin: str = "owner"  # the writer, one of ORIGINS; set by the interface, never by arguments
    project: str = ""  # the slug of the working directory's project; empty for none
    client: str = ""  # the token or program of the agent, whatever session it names

    @property
    def author(self) -> str:
        """Return the origin of what this scope writes: in a shared scope anybody may have said it."""
        return self.origin if self.private or self.origin in FOREIGN else "shared"


class ToolCall(msgspec.Struct, frozen=True):
    """One call of a tool as the host reported it: its target and its result."""

    tool: str
    target: str = ""
    output: str = ""


class Exchange(msgspec.Struct, frozen=True):
    """One message and its answer; `private` is that of the scope in which it was recorded, `origin` the speaker."""

    id: int
    session_id: str
    user_message: str
    agent_response: str
    timestamp: str
    topic: str = ""
    private: bool = True
    project: str = ""
    origin: str = "user"
    foreign_lines: tuple[int, ...] = ()  # lines of others that the form of the message does not reveal


class Recorded(msgspec.Struct, frozen=True):
    """The result of reporting an exchange."""

    id: int
    new: bool
    redacted: int = 0
    entropy: float = 0.0
    lessons: tuple[int, ...] = ()
    notes: tuple[PluginNote, ...] = ()


class Session(msgspec.Struct, frozen=True):
    """A session with counts of its exchanges."""

    session_id: str
    exchanges: int
    first: str
    last: str
    topics: tuple[str, ...] = ()
    project: str = ""
    shared: bool = False  # of a shared chat, shown in private
    title: str = ""  # the first sentence that names its subject, shortened


class SessionHit(msgspec.Struct, frozen=True):
    """A hit in conversations: an exchange, or lines of an archived one."""

    session_id: str
    timestamp: str
    text: str
    score: float
    exchange_id: int = 0
    path: str = ""
    line: int = 0
    shared: bool = False  # said in a shared chat, shown in private


class Block(msgspec.Struct, frozen=True):
    """Text to be put before a model call: label line, fence, lines, closing mark."""

    label: str
    text: str
    tokens: int


class PluginNote(msgspec.Struct, frozen=True):
    """What a plugin left out or could not do, as text."""

    plugin: str
    reason: str


class InjectedLine(msgspec.Struct, frozen=True):
    """A line that was put before a model call, and why."""

    text: str
    reason: str = ""


class Injection(msgspec.Struct, frozen=True):
    """One plugin's part in a session's start or a turn: what it injected, or the `reason` for nothing."""

    plugin: str
    hits: int
    tokens: int
    ms: float
    reason: str = ""
    lines: tuple[InjectedLine, ...] = ()
    event: str = "turn"  # turn or start
    session_id: str = ""
    at: str = ""


class TokenSum(msgspec.Struct, frozen=True):
    """Tokens injected by one plugin or into one session, and in how many calls."""

    name: str
    calls: int
    tokens: int


class Injections(msgspec.Struct, frozen=True):
    """The last injections, and what all of them cost; `calls` includes those without injection."""

    injections: tuple[Injection, ...]
    plugins: tuple[TokenSum, ...]
    sessions: tuple[TokenSum, ...]
    calls: int
    tokens: int


class Explanation(msgspec.Struct, frozen=True):
    """What one plugin would do in a turn, and what it nearly injected."""

    plugin: str
    tokens: int
    ms: float
    silent: str = ""  # why nothing was injected
    lines: tuple[InjectedLine, ...] = ()
    nearly: tuple[str, ...] = ()  # each with its reason


class Turn(msgspec.Struct, frozen=True):
    """The blocks for one message, the plugins without a block and why, and other notes."""

    blocks: tuple[Block, ...]
    skipped: tuple[PluginNote, ...] = ()
    notes: tuple[PluginNote, ...] = ()
    took_ms: float = 0.0
    explained: tuple[Explanation, ...] = ()  # only if asked for
    boot: str = ""  # the boot context, if a session's start asked for it

    @property
    def text(self) -> str:
        """Return the boot context and all blocks as one text for the model."""
        blocks = "\n\n".join(block.text for block in self.blocks)
        return f"{self.boot}\n{blocks}".strip() if self.boot else blocks


HELD = (
    "waits for review: "  # prefix of the reason of a lesson that steers nothing before a person approves it
)


NOTED = "only noted: "  # the same of a lesson that would steer nothing in any case: nobody need decide on it


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
    origin: str = "user"
    created_at: str = ""
    retired_because: str = ""
    reach: str = "topic"  # general, topic, once
    why: str = ""  # how the correction was found, and with which certainty
    helped: int = 0  # injections after which the answer followed it
    project: str = ""  # the project in which it was learnt; empty if it is of none
    only_there: bool = False  # whether its words say that it holds in that project

    @property
    def awaits_review(self) -> bool:
        """Return whether it steers nothing before a person approves it; each such lesson is in the review."""
        return self.state == "candidate" and self.why.startswith(HELD)

    @property
    def is_only_noted(self) -> bool:
        """Return whether it steers nothing and awaits no decision: a fact, an exception, something unsure."""
        return self.state == "candidate" and not self.awaits_review

    @property
    def reason(self) -> str:
        """Return how the correction was found, without a review that is over."""
        return self.why if self.awaits_review else self.why.removeprefix(HELD)


class Outcome(msgspec.Struct, frozen=True):
    """What happened after one injection of a lesson."""

    id: int
    lesson_id: int
    session_id: str
    query: str
    pre_entropy: float
    post_entropy: float | None
    feedback: str  # good, bad, neutral; empty until the next message
    helped: bool | None
    injected_at: str


class LessonDetail(msgspec.Struct, frozen=True):
    """A lesson with the outcomes of its injections."""

    lesson: Lesson
    outcomes: tuple[Outcome, ...]
