"""The part `memory.conversations`: sessions, transcripts, archives and the spool of the hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta
from msgspec.structs import replace

from nanoclaw_memory.clock import start_of
from nanoclaw_memory.memory.group import Part
from nanoclaw_memory.memory.team_pages import with_pages
from nanoclaw_memory.types import (
    Archived,
    Exchange,
    Flush,
    Injections,
    Session,
    SessionHit,
    TranscriptFile,
)

if TYPE_CHECKING:
    from nanoclaw_memory.types.arguments import Count, Message, Query, SpoolKind


@with_pages
class ConversationsPart(Part):
    """Read conversations, archive transcripts, and drain the spool."""

    def sessions(self, limit: int = 50) -> list[Session]:
        """Return the sessions that this scope may see, newest first; a private scope also sees those of shared
        chats, marked.
        """
        found = self._group.conversations.sessions(limit)
        if (chats := self._group.shared_chats) is not None:
            found += [replace(session, shared=True) for session in chats.conversations.sessions(limit)]
        return sorted(found, key=lambda session: session.last, reverse=True)[:limit]

    def session(self, session_id: str) -> list[Exchange]:
        """Return the exchanges of a session, oldest first; a private scope may also read those of shared chats."""
        chats = self._group.shared_chats
        if chats is not None and not self._group.exchanges.last_id(session_id):
            return chats.conversations.session(session_id)
        return self._group.conversations.session(session_id)

    def search(self, query: Query, limit: int = 10) -> list[SessionHit]:
        """Search exchanges and the lines of archived conversations."""
        self._group.require_group()
        self._group.settle_spool()
        found = self._group.exchange_search.said(query, limit)
        if (chats := self._group.shared_chats) is not None:
            found += [replace(hit, shared=True) for hit in chats.exchange_search.said(query, limit)]
        return found[: limit * 2]

    def embed(self, limit: Annotated[int, Meta(ge=1, le=10_000)] = 256) -> int:
        """Embed passages that have no vector (loads the embedder); return how many were embedded."""
        self._group.require_group()
        return self._group.retrieval.embed(limit)

    def flush_needed(self, context_tokens: Count, transcript_bytes: Count = 0) -> Flush:
        """Return whether to ask the agent now to write down what should last; true once per compaction cycle."""
        from nanoclaw_memory.upkeep.flush import flush_needed

        self._group.require_workspace()
        return flush_needed(self._group, context_tokens, transcript_bytes)

    def injections(
        self, session: str = "", since: str = "", limit: Annotated[int, Meta(ge=1, le=1000)] = 50
    ) -> Injections:
        """Return what was injected at session starts and in turns, newest first, and the tokens of all of it.

        `since` is a day (2026-02-23) or a month.
        """
        self._group.require_private("what was injected")
        self._group.require_group()
        if not self._group.has("continuity"):
            return Injections((), (), (), 0, 0)
        turns, after = self._group.turns, start_of(since, self._group.clock.now()) if since else ""
        plugins = turns.token_sums("plugin", session, after)
        return Injections(
            tuple(turns.injections(session, after, limit)),
            tuple(plugins),
            tuple(turns.token_sums("session_id", session, after)),
            turns.calls(session, after),
            sum(total.tokens for total in plugins),
        )

    # ---- the spool of the hooks ----

    def note(self, kind: SpoolKind, text: Message) -> None:
        """Append a message (`prompt`) or an answer (`answer`) to the spool within a millisecond; `drain` archives
        it.
        """
        self._group.conversations.note(kind, text)

    def note_answer_from(self, transcript: str) -> bool:
        """Spool the answer to this session's open question from the end of a transcript; return whether it was
        found.
        """
        return self._group.conversations.note_answer_from(transcript)

    def drain(self, limit: Annotated[int, Meta(ge=1, le=1000)] = 50) -> int:
        """Archive spooled exchanges; return how many."""
        return self._group.drain_spool(limit)

    def waiting(self) -> int:
        """Count the exchanges in the spool, of private and shared chats."""
        own = (self._group, self._group.shared_chats)
        return sum(group.conversations.spool.waiting() for group in own if group is not None)

    # ---- transcripts and archives ----

    def transcripts(self) -> list[TranscriptFile]:
        """Return the raw transcripts of this group's agent, newest first."""
        self._group.require_private("transcripts")
        return self._group.conversations.transcripts()

    def archives(self) -> list[Archived]:
        """Return the archived conversations that this scope may see, oldest first."""
        return self._group.conversations.archives()

    def archive(self, transcript: str) -> Archived | None:
        """Write the new part of a transcript (a file or a session id) to conversations/; return None if there is
        none.
        """
        self._group.require_private("transcripts")
        own = self._group.conversations
        return own.archive(own.read(transcript))
