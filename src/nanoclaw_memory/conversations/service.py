"""Conversations of one group for one scope: exchanges, sessions, transcripts, archives, the spool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nanoclaw_memory.clock import Clock, stamp
from nanoclaw_memory.conversations.spool import (
    MAX_TEXT,
    Spool,
    SpooledExchange,
    answer_in,
    turns_of_questions,
)
from nanoclaw_memory.errors import NotFound
from nanoclaw_memory.intake.intake import Intake
from nanoclaw_memory.intake.memory_requests import UNKEPT, asks_not_to_store
from nanoclaw_memory.store.exchanges import Exchanges
from nanoclaw_memory.text import one_line, sentences
from nanoclaw_memory.types import (
    FOREIGN,
    SHARED,
    Archived,
    Exchange,
    Scope,
    Session,
    Transcript,
    TranscriptFile,
    Utterance,
)
from nanoclaw_memory.workspace.paths import SHARED_TALKS, Home, visible

if TYPE_CHECKING:
    from nanoclaw_memory.providers.judge import Judge

EXCERPT = 300  # characters of one side in a hit


class Conversations:
    """Record, list, search and archive conversations."""

    def __init__(
        self,
        *,
        home: Home,
        scope: Scope,
        clock: Clock,
        exchanges: Exchanges,
        shared_files: Sequence[str],
        intake: Intake,
        is_private: Callable[[str], bool],
    ) -> None:
        self.home = home
        self.scope = scope
        self.clock = clock
        self.exchanges = exchanges
        self._shared_files = shared_files
        self._intake = intake
        self._is_private = is_private  # whether a session was held in private
        self.spool = Spool(home.data(scope.group) / ("spool" if scope.private else f"{SHARED}spool"))

    # ---- exchanges ----

    def add(self, user: str, agent: str, at: datetime, judge: Judge | None = None) -> tuple[Exchange, bool]:
        """Store an exchange of this session; the second value is False if it was stored before.

        The judge, if available, decides which lines of the message are somebody else's.
        """
        from nanoclaw_memory.conversations import topics
        from nanoclaw_memory.intake.authorship import read

        scope, own = self.scope, read(user, judge)
        exchange = Exchange(
            id=0,
            session_id=scope.session_id,
            user_message=user,
            agent_response=agent,
            timestamp=stamp(at),
            topic=topics.phrase(f"{own.text}\n{agent}"),
            private=scope.private,
            project=scope.project,
            origin=scope.author if scope.author in FOREIGN else "user",
            foreign_lines=tuple(sorted(own.foreign)) if own.rest else (),
        )
        number, new = self.exchanges.add(exchange)
        return replace(exchange, id=number), new

    def sessions(self, limit: int) -> list[Session]:
        """Return the sessions that this scope may see, newest first."""
        return self.exchanges.sessions(self.scope.private, limit)

    def session(self, session_id: str) -> list[Exchange]:
        """Return the exchanges of a session, oldest first."""
        found = self.exchanges.of_session(session_id, self.scope.private)
        if not found:
            raise NotFound(f"there is no session {session_id[:80]!r}", "see: ncm sessions list")
        return found

    def transcript_since(self, exchange_id: int, limit: int) -> Transcript:
        """Return at most `limit` exchanges of this session after a given one, as a transcript."""
        said = [
            Utterance(speaker, text, exchange.timestamp)
            for exchange in self.exchanges.of_session(self.scope.session_id, self.scope.private, limit)
            for speaker, text in (("User", exchange.user_message), ("Agent", exchange.agent_response))
            if exchange.id > exchange_id and text
        ]
        return Transcript(self.scope.session_id, "exchanges", tuple(said))

    # ---- transcripts and archives ----

    def transcripts(self) -> list[TranscriptFile]:
        """Return the raw transcripts of this group's agent, newest first."""
        from nanoclaw_memory.conversations.transcripts import transcript_files

        return transcript_files(self.home, self.scope.group)

    def read(self, transcript: str) -> Transcript:
        """Read a transcript, named by its path or by the id of a session of this group's agent."""
        from nanoclaw_memory.conversations.transcripts import find_transcript, no_transcript, read_transcript

        found = read_transcript(find_transcript(self.home, self.scope, transcript))
        if self.scope.private:
            return found
        self._require_own(found, transcript)
        # A caller of a hook may name any session and file: only questions asked in this chat belong to it.
        questions = [
            exchange.user_message for exchange in self.exchanges.of_session(found.session_id, private=False)
        ]
        said = turns_of_questions(found.said, questions, lambda text: self._spooled(text)[0])
        if not said:
            raise no_transcript(transcript)
        return replace(found, said=said, title="")

    def _require_own(self, found: Transcript, asked: str) -> None:
        """Refuse a shared chat any transcript but its own session's, without revealing which others exist."""
        from nanoclaw_memory.conversations.transcripts import no_transcript

        own = self.scope.session_id
        if not self.scope.private and (not own or found.session_id != own or self._is_private(own)):
            raise no_transcript(asked)

    def archives(self) -> list[Archived]:
        """Return the archived conversations that this scope may see, oldest first."""
        from nanoclaw_memory.conversations.archive import FOLDER, archives

        def seen(path: str) -> bool:
            return visible(self.scope, path, self._shared_files)

        folders = (SHARED_TALKS, FOLDER)
        return [
            archive for folder in folders for archive in archives(self.home, self.scope.group, folder, seen)
        ]

    def archive(self, transcript: Transcript) -> Archived | None:
        """Write the turns that no archive of the session contains yet; return None if there are none."""
        from nanoclaw_memory.conversations.archive import archive

        scope = self.scope
        return archive(
            self.home,
            scope.group,
            transcript,
            self.clock,
            self._intake,
            project=scope.project,
            folder=archive_folder(scope),
        )

    # ---- the spool ----

    def note(self, kind: str, text: str) -> None:
        """Append a `prompt` or an `answer` to the spool within a millisecond; `drain` archives it."""
        open_question = self.spool.open_question(self.scope.session_id)
        asked = text if kind == "prompt" else open_question[0] if open_question else ""
        spooled, checked = (UNKEPT, True) if asks_not_to_store(asked) else self._spooled(text)
        if kind == "prompt" and open_question and open_question[0] == spooled[:MAX_TEXT]:
            return  # recorded already, by the hook or by a server too slow for its hook
        self.spool.note(self.scope, kind, spooled, self.clock.now(), checked)

    def is_off_record(self) -> bool:
        """Return whether the session's message that waits for its answer must not be stored."""
        waiting = self.spool.open_question(self.scope.session_id)
        return waiting is not None and waiting[0] == UNKEPT

    def note_answer_from(self, transcript: str) -> bool:
        """Spool the answer to this session's open question from the end of a transcript; return whether it was
        found.

        Clients write transcripts late: the answer must follow that question, or be younger than it.
        """
        question = self.spool.open_question(self.scope.session_id) if transcript else None
        if question is None:
            return False
        from nanoclaw_memory.conversations.transcripts import find_transcript, read_end

        found = read_end(find_transcript(self.home, self.scope, transcript))
        self._require_own(found, transcript)
        text, at = question
        by_time = at if self.scope.private else None
        answer = answer_in(found.said, text, by_time, lambda text: self._spooled(text)[0])
        if answer:
            self.note("answer", answer)
        return bool(answer)

    def drain(self, record: Callable[[SpooledExchange], object], limit: int = 50, wait: float = 10.0) -> int:
        """Pass at most `limit` spooled exchanges to `record`; return how many."""
        return self.spool.drain(self.clock.now(), record, limit, self._checked, wait)

    def _spooled(self, text: str) -> tuple[str, bool]:
        """Return a text as it is spooled; False if it could not be checked and must be before it is archived."""
        admitted = self._intake.talk(text[:MAX_TEXT], "spool")
        kept = self._intake.masked(text[:MAX_TEXT]) if admitted.withheld else admitted
        return kept.text, not admitted.withheld

    def _checked(self, text: str) -> str:
        self._intake.forgets(text)  # fails while the list of forgotten texts cannot be read
        return self._intake.talk(text, "spool").text


def archive_folder(scope: Scope) -> str:
    """Return the folder of a scope's archived conversations."""
    return "conversations" if scope.private else SHARED_TALKS


def shortened(exchange: Exchange, wanted: set[str]) -> str:
    """Return a short form of an exchange, around the wanted words."""
    user = excerpt(exchange.user_message, wanted, EXCERPT)
    agent = excerpt(exchange.agent_response, wanted, EXCERPT)
    return f"User: {user}" + (f"\nAgent: {agent}" if agent else "")


def excerpt(text: str, wanted: set[str], limit: int) -> str:
    """Return at most `limit` characters: from the start, or around the sentence with most of the wanted words."""
    plain = one_line(text)
    if len(plain) <= limit:
        return plain
    parts = sentences(plain)
    best = max(range(len(parts)), key=lambda n: (_overlap(parts[n], wanted), -n))
    chosen = parts[best]
    if len(chosen) > limit:
        return _informative_part(chosen, wanted, limit - 1, inside=best > 0)
    before, after = best - 1, best + 1
    while True:
        if after < len(parts) and len(chosen) + len(parts[after]) < limit:
            chosen, after = f"{chosen} {parts[after]}", after + 1
        elif before >= 0 and len(chosen) + len(parts[before]) < limit:
            chosen, before = f"{parts[before]} {chosen}", before - 1
        else:
            break
    return ("… " if before >= 0 else "") + chosen


def _informative_part(sentence: str, wanted: set[str], limit: int, inside: bool) -> str:
    """Return the most informative words of a sentence that fit: wanted words, and numbers and names beside them."""
    found = sentence.split(" ")
    worth = [_worth(word, wanted, first=not place) for place, word in enumerate(found)]
    most, chosen, start, size = -1, (0, 1), 0, -1
    for end, word in enumerate(found, 1):
        size += len(word) + 1
        while size > limit and start < end - 1:
            size -= len(found[start]) + 1
            start += 1
        told = sum(worth[start:end])
        if told > most or (not told and not start):  # no word is informative: as much as fits
            most, chosen = told, (start, end)
    cut = " ".join(found[slice(*chosen)])[:limit]
    before, after = inside or chosen[0], chosen[1] < len(found) or not cut.endswith(found[-1])
    return f"{'… ' if before else ''}{cut}{'…' if after else ''}"


def _worth(word: str, wanted: set[str], first: bool) -> int:
    if _overlap(word, wanted):
        return 3
    return 2 if any(sign.isdigit() or (sign.isupper() and not first) for sign in word) else 0


def _overlap(sentence: str, wanted: set[str]) -> int:
    folded = sentence.casefold()
    return sum(word in folded for word in wanted)
