"""Run the plugins around a model call: blocks before it, archiving and learning after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.clock import stamp
from nanoclaw_memory.conversations.service import Conversations
from nanoclaw_memory.errors import InvalidValue, StoreError
from nanoclaw_memory.intake.memory_requests import asks_not_to_store, asks_to_forget, without_off_record
from nanoclaw_memory.store.turns import AGAIN, KEPT_START_DAYS, Sign
from nanoclaw_memory.telemetry import Telemetry
from nanoclaw_memory.text import encodable
from nanoclaw_memory.turn import blocks, loading
from nanoclaw_memory.turn.context import PluginContext
from nanoclaw_memory.turn.pipeline import Pipeline
from nanoclaw_memory.turn.received_lines import ReceivedLines
from nanoclaw_memory.types import Boot, InjectedLine, Injection, PluginNote, Recorded, ToolCall, Turn

if TYPE_CHECKING:
    from nanoclaw_memory.intake.intake import Admitted
    from nanoclaw_memory.types import Scope, Transcript

MAX_SIDE = 40_000  # maximal characters of one side of an exchange
MAX_SESSION = 200
MAX_TOOL_CALLS = 200
MAX_TURNS = 2_000  # turns of a transcript that plugins receive
BLOCKS = "blocks"  # the part of a session's start that plugins contribute
# What the agent learns about a request concerning memory, and can pass on to the person.
NOT_KEPT = (
    "The person asked not to keep this: memory does not archive this exchange, and you do not store it either. "
    'What was said before it stays until the person removes it: ncm forget "its words"'
)
NOT_FORGOTTEN = (
    "The person wishes that something be forgotten. Nothing is by saying so, and no tool of yours can: tell them that "
    'ncm forget "its words" shows what would go, asks, and removes it for good'
)
NOTE_TOKENS = 120
_TELEMETRY = ("plugin", "hits", "tokens", "ms", "reason")  # these contain no texts of memory
Part = TypeVar("Part", Boot, Turn)


class TurnLifecycle:
    """Run the plugins around every model call of one scope."""

    def __init__(self, context: PluginContext, conversations: Conversations, telemetry: Telemetry) -> None:
        self.context = context
        self.conversations = conversations
        self.telemetry = telemetry
        self._unkept = False  # whether the message that is being answered must not be stored
        if len(context.scope.session_id) > MAX_SESSION:
            raise InvalidValue(
                f"the session id has {len(context.scope.session_id):,} characters",
                f"use at most {MAX_SESSION}",
            )

    @cached_property
    def pipeline(self) -> Pipeline:
        plugins, refused = loading.load(self.context)
        own = self.context.settings.plugins
        given, thread = self._received, self.context.plugin_thread
        return Pipeline(plugins, own.budget, own.timeout_ms, self._record, refused, given, thread)

    def before_turn(self, message: str, explain: bool = False, repeat: bool = False) -> Turn:
        """Return the blocks for a message; a failing plugin never fails the turn. `explain` records nothing."""
        admitted = self._unforgotten(message)
        if admitted.withheld:  # plugins may store the message they receive
            return Turn((), (PluginNote("intake", admitted.text),))
        self.context.new_turn()
        scope, now = self.context.scope, self.context.clock.now()
        said = blocks.strip(message)
        unkept = self._unkept = asks_not_to_store(
            said
        )  # the turn is a dry run then: it leaves no trace of the message
        forget = asks_to_forget(said)
        told = NOT_KEPT if unkept else NOT_FORGOTTEN if forget else ""
        note, _ = blocks.render(blocks.KEEPING, "", [told], NOTE_TOKENS)
        if note and forget and not unkept:  # any memory might recite the thing
            return Turn((note,), (PluginNote("pipeline", "the message wishes to forget something"),))
        turn = self.pipeline.before_turn(admitted.text, scope, now, explain or unkept, repeat)
        turn = turn if explain else replace(turn, explained=())
        return replace(turn, blocks=(note, *turn.blocks)) if note else turn

    # ---- the start of a session ----

    def session_start(self, cleared: bool = False, beside: Callable[[], str] = str) -> Turn:
        """Return the blocks for a session's start, or for its continuation after a compaction, beside the boot
        context.
        """
        if cleared:
            self._attempt(
                lambda: self.context.turns.drop_received(self.context.scope.session_id, start=False)
            )
        scope, now = self.context.scope, self.context.clock.now()
        turn, again = self._frozen(BLOCKS, lambda: self.pipeline.session_start(scope, now, beside()), Turn)
        if again:
            paid = [
                Injection(
                    explanation.plugin,
                    len(explanation.lines),
                    explanation.tokens,
                    0.0,
                    explanation.silent,
                    explanation.lines,
                    "start",
                )
                for explanation in turn.explained
            ]
            self._attempt(lambda: self._record(scope, paid, {}))
        return turn

    def boot(self, part: str, render: Callable[[], Boot]) -> Boot:
        """Return the boot context of a session, the same whenever it is asked for; record its tokens."""
        boot, _ = self._frozen(part, render, Boot)
        read = tuple(
            InjectedLine(boot_file.path, "read at every start") for boot_file in boot.files if boot_file.chars
        )
        injection = Injection("boot", len(read), boot.tokens, 0.0, lines=read, event="start")
        self._attempt(lambda: self._record(self.context.scope, [injection], {}))
        return boot

    def _frozen(self, name: str, render: Callable[[], Part], kind: type[Part]) -> tuple[Part, bool]:
        """Render a part of the session's start once and store it; return it and whether it was injected before."""
        scope, now = self.context.scope, self.context.clock.now()
        if not scope.session_id:
            return render(), False
        try:
            kept = self.context.turns.start(scope.session_id, scope.private, name)
        except StoreError as error:  # a session starts with the parts that work
            self.telemetry.record("session start not kept", error=error.message)
            return render(), False
        if kept is not None:
            return msgspec.json.decode(kept, type=kind), True
        made = render()
        content = msgspec.json.encode(made).decode()
        oldest = stamp(now - timedelta(days=KEPT_START_DAYS))
        self._attempt(
            lambda: self.context.turns.keep_start(
                scope.session_id, scope.private, name, content, stamp(now), oldest
            )
        )
        return made, False

    def _received(self, scope: Scope) -> ReceivedLines:
        """Return what the session has in its window."""
        if not scope.session_id:
            return ReceivedLines()
        turns = self.context.turns
        starts = turns.starts(scope.session_id, scope.private)
        texts = [
            msgspec.json.decode(content, type=Turn).text
            if part == BLOCKS
            else msgspec.json.decode(content, type=Boot).text
            for part, content in starts.items()
        ]
        return ReceivedLines(texts, turns.received_lines(scope.session_id, scope.private))

    def _attempt(self, write: Callable[[], None], otherwise: str = "session start not kept") -> None:
        """Try an optional write: a read-only or damaged database must not fail a session's start or an exchange."""
        try:
            write()
        except StoreError as error:
            self.telemetry.record(otherwise, error=error.message)

    # ---- after the answer ----

    def after_turn(
        self, user: str, agent: str, tool_calls: Sequence[ToolCall] = (), at: datetime | None = None
    ) -> Recorded:
        """Archive an exchange and learn from it; an exchange reported twice is stored once."""
        now = at or self.context.clock.now()
        said = _plain(user), _plain(agent)
        if not any(said):
            raise InvalidValue("the exchange is empty", "give what was asked and what was answered")
        self._unkept = False
        if asks_not_to_store(said[0]):
            note = PluginNote("continuity", "the person asked not to keep it, so it was not archived")
            return Recorded(0, False, notes=(note,))
        (user, hidden), (agent, more) = map(self._masked, said)
        # Checked before and after masking: a credential may be part of a forgotten text or stand within it.
        if self.context.intake.forgets(*said) or self.context.intake.forgets(user, agent):
            note = PluginNote("continuity", "holds what a person asked to forget, so it was not archived")
            return Recorded(0, False, hidden + more, notes=(note,))
        scope = self.context.scope
        calls = [ToolCall(call.tool, call.target, call.output) for call in tool_calls[-MAX_TOOL_CALLS:]]
        exchange, new = self.conversations.add(user, agent, now, self.context.judge)
        number = exchange.id
        again = not new and self._came_again(number, stamp(now))
        if calls and (new or again):
            self.report_tools(calls)
        if not new:
            return Recorded(number, False, hidden + more)
        self._attempt(lambda: self.context.confirm_said(exchange), "suggestions not compared")
        notes = self.pipeline.after_turn(exchange, calls, scope, now)
        measured = self.context.turns.measures(scope.session_id, 1)
        entropy = measured[-1].entropy if measured and measured[-1].exchange_id == number else 0.0
        taught = self.context.lessons.learnt_from(number)
        self.telemetry.record("exchange", chars=len(user) + len(agent), redacted=hidden + more)
        return Recorded(
            id=number,
            new=True,
            redacted=hidden + more,
            entropy=entropy,
            lessons=taught,
            notes=notes,
        )

    def _came_again(self, number: int, at: str) -> bool:
        """Record that the last exchange was repeated at another time: that is how loops are detected."""
        known = self.context.exchanges.get([number]).get(number)
        if known is None or known.timestamp == at:
            return False
        sign = Sign(number, AGAIN, at)
        self._attempt(lambda: self.context.turns.put_signs(known.session_id, [sign]), "repetition not noted")
        return True

    def report_tools(self, calls: Sequence[ToolCall]) -> None:
        """Record tool calls as they happen, so that loops are detected before the answer.

        Those for a message that must not be stored may name what it said, and are not.
        """
        if self._unkept or self.conversations.is_off_record():
            return
        at = stamp(self.context.clock.now())
        talk = (
            self.context.intake.talk
        )  # a shell's target is a whole command line, including what was typed into it
        named = [(talk(call.tool, "turn"), talk(call.target, "turn")) for call in calls]
        known = [
            ToolCall(encodable(tool.text), encodable(target.text), call.output)
            for (tool, target), call in zip(named, calls, strict=True)
            if not tool.withheld and not target.withheld
        ]
        if known:
            self.context.turns.add_tool_calls(self.context.scope.session_id, at, known)

    def before_compaction(self, given: Transcript | None = None) -> tuple[PluginNote, ...]:
        """Let plugins store what the compaction will drop; from now on this session's past may be recalled.

        They receive the host's transcript, or the exchanges archived since the last compaction.
        """
        scope, now = self.context.scope, self.context.clock.now()
        if given is not None and given.said:
            transcript = self._cleaned(given)
        else:
            after = self.context.turns.compacted_up_to(scope.session_id)
            transcript = self.conversations.transcript_since(after, MAX_TURNS // 2)
        notes = self.pipeline.before_compaction(transcript, scope, now)
        last = self.context.exchanges.last_id(scope.session_id)
        self.context.turns.mark_compaction(scope.session_id, last, stamp(now))
        self.context.turns.drop_received(scope.session_id, start=True)
        return notes

    def _cleaned(self, given: Transcript) -> Transcript:
        """Return a host's transcript without our blocks, credentials and forgotten texts."""
        last = list(without_off_record(given.said))[-MAX_TURNS:]
        found = [self._unforgotten(_plain(turn.text)) for turn in last]
        turns = (
            replace(turn, text=self._unforgotten(self._masked(kept.text)[0]).text)
            for turn, kept in zip(last, found, strict=True)
            if not kept.withheld
        )
        return replace(given, said=tuple(turn for turn in turns if turn.text))

    def session_end(self) -> tuple[PluginNote, ...]:
        """Notify the plugins that the session is over."""
        return self.pipeline.session_end(self.context.scope, self.context.clock.now())

    def close(self) -> None:
        """Stop the plugins, if any were started, and discard what they recalled."""
        self.context.new_turn()
        if pipeline := self.__dict__.pop("pipeline", None):
            pipeline.close()

    def _unforgotten(self, text: str) -> Admitted:
        return self.context.intake.unforgotten(text, "turn")

    def _masked(self, text: str) -> tuple[str, int]:
        """Mask the credentials in a text; return it and their number."""
        masked = self.context.intake.masked(text)
        return encodable(masked.text), masked.redacted

    def _record(self, scope: Scope, injections: Sequence[Injection], lines: Mapping[str, str]) -> None:
        """Record what the plugins did, and the fingerprints of the lines that the session received."""
        rows = ({name: getattr(injection, name) for name in _TELEMETRY} for injection in injections)
        self.telemetry.record_all("turn", rows)
        turns = self.context.turns
        with turns.database.transaction():
            turns.add_injections(scope.session_id, stamp(self.context.clock.now()), injections)
            if lines and scope.session_id:
                turns.add_received(scope.session_id, scope.private, lines)


def _plain(text: str) -> str:
    """Return one side of an exchange without our blocks, with uniform line ends and bounded length."""
    plain = "\n".join(blocks.strip(text).strip().replace("\x00", "").splitlines())
    if len(plain) > MAX_SIDE:
        plain = f"{plain[:MAX_SIDE]} […{len(plain) - MAX_SIDE:,} more characters]"
    return plain
