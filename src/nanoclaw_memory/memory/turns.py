"""What is said: turns, sessions, the host's groups and tasks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nanoclaw_memory.clock import moment_of
from nanoclaw_memory.memory.find import Finding

if TYPE_CHECKING:
    from collections.abc import Callable

    from nanoclaw_memory.conversations.service import Conversations
    from nanoclaw_memory.host.host import Host
    from nanoclaw_memory.host.tasks import Tasks
    from nanoclaw_memory.intake.intake import Intake
    from nanoclaw_memory.turn.learning import Learning
    from nanoclaw_memory.turn.lifecycle import TurnLifecycle
    from nanoclaw_memory.types import (
        Archived,
        Exchange,
        Indexed,
        Recorded,
        Session,
        SessionHit,
        TaskRun,
        ToolCall,
        TranscriptFile,
        Turn,
    )


class Turns(Finding):
    """What is said: turns, sessions, the host's groups and tasks."""

    # ---- turns ----

    @cached_property
    def _conversations(self) -> Conversations:
        from nanoclaw_memory.conversations.service import Conversations
        from nanoclaw_memory.store.exchanges import Exchanges

        return Conversations(
            home=self.home,
            scope=self.scope,
            clock=self.clock,
            exchanges=Exchanges(self.database("continuity")),
            shared_files=self.settings.privacy.shared_files,
            intake=self.intake,
        )

    @cached_property
    def _lifecycle(self) -> TurnLifecycle:
        from nanoclaw_memory.turn.context import PluginContext
        from nanoclaw_memory.turn.lifecycle import TurnLifecycle

        self.require_group()
        context = PluginContext(
            self.home,
            self.scope,
            self.clock,
            self.settings,
            self.intake,
            self.database,
            open_graph=lambda: self.graph,
            open_embedder=lambda: self.embedder,
            is_resident=lambda: self.resident,
        )
        return TurnLifecycle(context, self._conversations, self.telemetry)

    def before_turn(self, message: str) -> Turn:
        """The blocks to put before a model call, who gave none, and why."""
        stale = self._refresh_graph() if self.settings.plugins.entries.graph_memory.enabled else ""
        turn = self._lifecycle.before_turn(message)
        if not stale:
            return turn
        from nanoclaw_memory.types import PluginNote

        return replace(turn, notes=(*turn.notes, PluginNote("graph-memory", stale)))

    def after_turn(
        self,
        user_message: str,
        agent_response: str,
        tool_calls: Sequence[ToolCall] = (),
        at: datetime | None = None,
    ) -> Recorded:
        """Archive an exchange, measure it, and learn from it."""
        return self._lifecycle.after_turn(user_message, agent_response, tool_calls, at)

    def report_tools(self, calls: Sequence[ToolCall]) -> None:
        """Note tool calls between two messages, so that a loop is seen."""
        self._lifecycle.report_tools(calls)

    def session_start(self) -> Turn:
        """Blocks for the start of a session, or for its going on after a compaction."""
        return self._lifecycle.session_start()

    def sessions(self, limit: int = 50) -> list[Session]:
        """The sessions that this scope may see, newest first."""
        self.require_group()
        return self._conversations.sessions(limit)

    def session(self, session_id: str) -> list[Exchange]:
        """What was said in a session, oldest first."""
        self.require_group()
        return self._conversations.session(session_id)

    def session_search(self, query: str, limit: int = 10) -> list[SessionHit]:
        """Where something was said: exchanges, and lines of archived conversations."""
        from nanoclaw_memory.types import SessionHit

        self.require_group()
        found = self._conversations.search(query, limit)
        if self.scope.private:
            files = self.search(query, min(limit * 3, 100), fast=True).hits
            found += [
                SessionHit("", hit.day, hit.text, hit.score, path=hit.path, line=hit.start_line)
                for hit in files
                if hit.path.startswith("conversations/")
            ]
        return found[: limit * 2]

    @cached_property
    def lessons(self) -> Learning:
        """What corrections taught: lessons, detail, outcomes, add, retire, feedback."""
        from nanoclaw_memory.turn.learning import Learning

        return Learning(self._lifecycle.context)

    def index(
        self, rebuild: bool = False, progress: Callable[[str, int, int], None] | None = None
    ) -> Indexed:
        """Bring the search index up to date with the files, and give vectors to exchanges that have none."""
        done = super().index(rebuild, progress)
        spoken = (self.home.data(self.scope.group) / "continuity.db").exists()
        return self._embed_also(done, "sessions", self.embed_exchanges) if spoken else done

    def embed_exchanges(self, limit: int = 256) -> int:
        """Give vectors to exchanges that have none (loads the embedder); gives how many were done."""
        from nanoclaw_memory.conversations.retention import embed_pending

        self.require_group()
        return embed_pending(self._conversations.exchanges, self.embedder, limit)

    def before_compaction(self, transcript: str = "") -> Archived | None:
        """Archive a transcript before the host shortens the window; its exchanges may be recalled from now on."""
        from nanoclaw_memory.upkeep.flush import compacted

        self.require_group()
        own = self._conversations
        given = own.read(transcript) if transcript else None
        written = own.archive(given) if given else None
        if written:
            self._search.index.refresh(
                embed=False
            )  # findable by words at once; vectors come with the next index
        self._lifecycle.before_compaction(given)
        compacted(self.home.data(self.scope.group), self.scope.session_id)
        return written

    def note(self, kind: str, text: str) -> None:
        """Spool what was asked (`prompt`) or answered (`answer`) in a millisecond; `drain` archives it."""
        self.require_group()
        self._conversations.note(kind, text)

    def note_answer_from(self, transcript: str) -> bool:
        """Spool the answer to this session's open question from a transcript's end; whether it was there.

        Clients write transcripts late: the answer must follow that question, or be younger than it.
        """
        return self._conversations.note_answer_from(transcript)

    def drain(self, limit: int = 50) -> int:
        """Archive what hooks have spooled; gives how many exchanges."""
        from nanoclaw_memory.conversations.spool import SpooledExchange
        from nanoclaw_memory.errors import Refused

        def archive(spoken: SpooledExchange) -> None:
            scope = replace(self.scope, session_id=spoken.session, private=spoken.private)
            with type(self)(
                self.home.root, scope, self._given_clock, self._overrides, self._directory
            ) as own:
                try:
                    own.after_turn(spoken.question, spoken.answer, at=spoken.at)
                except Refused as error:  # it will never be accepted, and others wait behind it
                    self.telemetry.record("exchange refused", error=error.message)

        return self._conversations.drain(archive, limit)

    # ---- the host ----

    @cached_property
    def _opened_host(self) -> Host:
        from nanoclaw_memory.host.host import Host

        host = Host.open(
            self.home.root,
            clock=self.clock,
            on_exchange=self._remember_exchange,
            intake=self._intake_of,
        )
        self._databases["the host's messages"] = host.database
        return host

    def _intake_of(self, group: str) -> Intake:
        from nanoclaw_memory.intake.intake import Intake

        return Intake(data=self.home.data(group), record=self.telemetry.record)

    def _remember_exchange(self, group: str, session_id: str, user: str, agent: str, at: str) -> None:
        """What was said in a group's chat goes to that group's memory, as private as the chat is."""
        host = self._opened_host
        scope = host.scope(host.group(group), session_id)
        with type(self).open(
            self.home.root, scope, clock=self._given_clock, overrides=self._overrides
        ) as own:
            own.after_turn(user, agent, at=moment_of(at))

    def host(self) -> Host:
        """The operational state of all groups; only the main group, in private, administers it."""
        self.require_main("see the host's state")
        return self._opened_host

    @property
    def tasks(self) -> Tasks:
        """The scheduled tasks of this group; of all groups for the main one."""
        self._require_private("tasks")
        self.require_group()
        return self._opened_host.tasks(self.scope.group)

    def run_tasks(self, command: str, timeout: float = 600) -> list[TaskRun]:
        """Run what is due, each task as a command without a shell; gives the runs."""
        return self._opened_host.run_commands(self.tasks, command, timeout)

    def transcripts(self) -> list[TranscriptFile]:
        """The raw transcripts of this group's agent, newest first."""
        self._require_private("transcripts")
        return self._conversations.transcripts()

    def archives(self) -> list[Archived]:
        """The conversations archived in the workspace that this scope may see, oldest first."""
        return self._conversations.archives()

    def archive(self, transcript: str) -> Archived | None:
        """Write what is new in a transcript (a file or a session id) to conversations/; None for nothing."""
        self.require_group()
        return self._conversations.archive(self._conversations.read(transcript))
