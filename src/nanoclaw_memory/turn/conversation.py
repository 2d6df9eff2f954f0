"""Conversation: one memory's turns, from the message to what is learnt from its answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.clock import stamp
from nanoclaw_memory.conversations import retention as archive
from nanoclaw_memory.conversations import topics
from nanoclaw_memory.errors import InvalidValue, NotFound, StoreError
from nanoclaw_memory.store.exchanges import Sight
from nanoclaw_memory.store.keywords import terms_of
from nanoclaw_memory.store.turns import Injection
from nanoclaw_memory.telemetry import Telemetry
from nanoclaw_memory.turn import blocks, loading
from nanoclaw_memory.turn.context import PluginContext
from nanoclaw_memory.turn.pipeline import Pipeline
from nanoclaw_memory.turn.wording import excerpt
from nanoclaw_memory.types import (
    Exchange,
    PluginNote,
    Recorded,
    Session,
    SessionHit,
    ToolCall,
    Turn,
)
from nanoclaw_memory.workspace.paths import FORGOTTEN_MARK

if TYPE_CHECKING:
    from nanoclaw_memory.store.tombstones import TombstoneTable
    from nanoclaw_memory.types import Transcript

MAX_SIDE = 40_000  # characters of one side of an exchange that are kept
MAX_SESSION = 200
MAX_TOOL_CALLS = 200
MAX_SAID = 2_000  # turns of a transcript that plugins get


class Conversation:
    """What happens around every model call of one scope."""

    def __init__(self, context: PluginContext, telemetry: Telemetry) -> None:
        self.context = context
        self.telemetry = telemetry
        if len(context.scope.session_id) > MAX_SESSION:
            raise InvalidValue(
                f"the session id has {len(context.scope.session_id):,} characters",
                f"use at most {MAX_SESSION}",
            )

    @cached_property
    def pipeline(self) -> Pipeline:
        plugins, refused = loading.load(self.context)
        own = self.context.settings.plugins
        return Pipeline(plugins, own.budget, own.timeout_ms, self._record, refused)

    def before_turn(self, message: str) -> Turn:
        """The blocks for a message; never fails because a plugin did."""
        message = self._unforgotten(message)
        return self.pipeline.before_turn(message, self.context.scope, self.context.clock.now())

    def session_start(self) -> Turn:
        """The blocks for a session's beginning, or for its going on after a compaction."""
        return self.pipeline.session_start(self.context.scope, self.context.clock.now())

    def after_turn(
        self, user: str, agent: str, tool_calls: Sequence[ToolCall] = (), at: datetime | None = None
    ) -> Recorded:
        """Archive an exchange and learn from it; the same one reported twice is kept once."""
        now = at or self.context.clock.now()
        user, hidden = self._kept(user)
        agent, more = self._kept(agent)
        if not user and not agent:
            raise InvalidValue("the exchange is empty", "give what was asked and what was answered")
        if self._tombstones.forgets(user, agent):
            said = PluginNote("continuity", "holds what a person asked to forget, so it was not archived")
            return Recorded(0, False, hidden + more, notes=(said,))
        scope = self.context.scope
        topic = topics.phrase(f"{user}\n{agent}")
        calls = [ToolCall(call.tool, call.target, call.output) for call in tool_calls[-MAX_TOOL_CALLS:]]
        number, new = self.context.exchanges.add(
            scope.session_id, user, agent, stamp(now), topic, scope.private
        )
        if not new:
            return Recorded(number, False, hidden + more)
        if calls:
            self.report_tools(calls)
        exchange = Exchange(number, scope.session_id, user, agent, stamp(now), topic, scope.private)
        notes = self.pipeline.after_turn(exchange, calls, scope, now)
        measured = self.context.turns.measures(scope.session_id, 1)
        entropy = measured[-1].entropy if measured and measured[-1].exchange_id == number else 0.0
        taught = self.context.lessons.learnt_from(number) if entropy else ()
        self.telemetry.record("exchange", chars=len(user) + len(agent), redacted=hidden + more)
        return Recorded(number, True, hidden + more, entropy, taught, notes)

    def report_tools(self, calls: Sequence[ToolCall]) -> None:
        """Note tool calls as they happen, so that loops are seen before the answer is there."""
        at = stamp(self.context.clock.now())
        known = [
            ToolCall(self._unforgotten(call.tool), self._unforgotten(call.target), call.output)
            for call in calls
        ]
        self.context.turns.add_tool_calls(self.context.scope.session_id, at, known)

    def before_compaction(self, given: Transcript | None = None) -> tuple[PluginNote, ...]:
        """Let plugins keep what would be lost; from now on this session's past may be recalled.

        They get what the host gave of the conversation, else what was archived of it since the last compaction.
        """
        scope, now = self.context.scope, self.context.clock.now()
        losing = self._cleaned(given) if given is not None and given.said else self._archived()
        notes = self.pipeline.before_compaction(losing, scope, now)
        last = self.context.exchanges.last_id(scope.session_id)
        self.context.turns.mark_compaction(scope.session_id, last, stamp(now))
        return notes

    def _cleaned(self, given: Transcript) -> Transcript:
        """A host's transcript as plugins may see it: without our blocks, credentials and what is forgotten."""
        texts = (self._unforgotten(self._kept(one.text)[0]) for one in given.said[-MAX_SAID:])
        said = [replace(one, text=text) for one, text in zip(given.said[-MAX_SAID:], texts, strict=True)]
        return replace(given, said=tuple(one for one in said if one.text))

    def _archived(self) -> Transcript:
        """What this session said since its last compaction, as far as it was archived."""
        from nanoclaw_memory.types import Said, Transcript

        scope = self.context.scope
        after = self.context.turns.compacted_up_to(scope.session_id)
        said = [
            Said(speaker, text, one.timestamp)
            for one in self.context.exchanges.of_session(scope.session_id, scope.private, MAX_SAID // 2)
            for speaker, text in (("User", one.user_message), ("Agent", one.agent_response))
            if one.id > after and text
        ]
        return Transcript(scope.session_id, "exchanges", tuple(said))

    def session_end(self) -> tuple[PluginNote, ...]:
        """Tell the plugins that the session is over."""
        return self.pipeline.session_end(self.context.scope, self.context.clock.now())

    # ---- what was said ----

    def sessions(self, limit: int) -> list[Session]:
        """The sessions, newest first."""
        return self.context.exchanges.sessions(self.context.scope.private, limit)

    def exchanges(self, session_id: str) -> list[Exchange]:
        """What was said in a session, oldest first."""
        found = self.context.exchanges.of_session(session_id, self.context.scope.private)
        if not found:
            raise NotFound(f"there is no session {session_id[:80]!r}", "see: ncm sessions list")
        return found

    def search(self, query: str, limit: int) -> list[SessionHit]:
        """Exchanges that hold the words of a query, best first."""
        room = self.context.exchanges
        found = room.by_words(terms_of(query), Sight(self.context.scope.private), limit)
        said = room.get([number for number, _ in found])
        most = max((score for _, score in found), default=0.0) or 1.0
        wanted = set(terms_of(query))
        return [
            SessionHit(
                said[number].session_id,
                said[number].timestamp,
                _shown(said[number], wanted),
                round(max(score, 0.0) / most, 3),
                exchange_id=number,
            )
            for number, score in found
        ]

    def embed_pending(self, limit: int) -> int:
        """Give vectors to exchanges that have none; gives how many."""
        return archive.embed_pending(self.context.exchanges, self.context.open_embedder(), limit)

    def close(self) -> None:
        """Stop the plugins, if any were started."""
        if "pipeline" in self.__dict__:
            self.pipeline.close()

    @property
    def _tombstones(self) -> TombstoneTable:
        from nanoclaw_memory.store.tombstones import TombstoneTable

        return TombstoneTable(self.context.database("facts"))

    def _unforgotten(self, text: str) -> str:
        """A text with `[forgotten]` for what a person asked to forget: plugins keep what they are told."""
        context = self.context
        if not text or not (context.home.data(context.scope.group) / FORGOTTEN_MARK).exists():
            return text
        try:
            clean, count = self._tombstones.masked(text)
        except StoreError:  # a graph that cannot be read is doctor's to report; after_turn keeps nothing then
            return text
        if count:
            self.telemetry.record("forgotten", where="turn", places=count)
        return clean

    def _kept(self, text: str) -> tuple[str, int]:
        """One side as it is archived: without our blocks and credentials, of bounded length."""
        from nanoclaw_memory.intake import secrets

        plain = blocks.strip(text).strip().replace("\x00", "")
        if len(plain) > MAX_SIDE:
            plain = f"{plain[:MAX_SIDE]} […{len(plain) - MAX_SIDE:,} more characters]"
        masked, found = secrets.mask(plain) if self.context.settings.privacy.redact_secrets else (plain, 0)
        return masked.encode("utf-8", "replace").decode("utf-8"), found

    def _record(self, session_id: str, injections: Sequence[Injection]) -> None:
        self.telemetry.record_all("turn", map(msgspec.structs.asdict, injections))
        self.context.turns.add_injections(session_id, stamp(self.context.clock.now()), injections)


def _shown(exchange: Exchange, wanted: set[str]) -> str:
    """An exchange in short, around the words that were looked for."""
    user = excerpt(exchange.user_message, wanted, 300)
    agent = excerpt(exchange.agent_response, wanted, 300)
    return f"User: {user}" + (f"\nAgent: {agent}" if agent else "")
