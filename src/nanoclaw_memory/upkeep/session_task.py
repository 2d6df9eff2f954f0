"""Find what a session worked on: the sentence that most of its exchanges are about, and the remarks beside it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nanoclaw_memory.intake.authorship import split_exchange
from nanoclaw_memory.retrieval.ongoing import asks_for_action
from nanoclaw_memory.retrieval.reactions import is_substantial
from nanoclaw_memory.retrieval.relevance import names_in
from nanoclaw_memory.retrieval.statement_pairs import subject_words
from nanoclaw_memory.text import one_line, sentences, stem
from nanoclaw_memory.types import OWN, Exchange

LEAST = 2  # exchanges beside the one that sets a task
SHARE = 0.5  # of the other exchanges that must be about it
BEGINNING = 5  # first letters that the forms of one name have in common: PayoutJob, payout_test
MOST_READ = 4_000  # characters of one side that are read


class SubjectWords(msgspec.Struct, frozen=True):
    """The words that may name what a text is about, and which of them are names."""

    names: frozenset[str]
    words: frozenset[str]

    def shared_with(self, other: SubjectWords) -> bool:
        """Return whether two texts have a name of either in common, or two words."""
        return (
            not self.names.isdisjoint(other.words)
            or not other.names.isdisjoint(self.words)
            or len(self.words & other.words) > 1
        )


class SessionTask:
    """The exchanges of one session, compared with one another."""

    def __init__(self, said: Sequence[Exchange]) -> None:
        own = [one for one in said if one.origin in OWN]
        self._told = {one.id: one_line(split_exchange(one, teaches=False).text[:MOST_READ]) for one in own}
        self._subjects = {
            one.id: _subject(f"{self._told[one.id]} {one.agent_response[:MOST_READ]}") for one in own
        }

    def found(self) -> tuple[int, str]:
        """Return the exchange and the sentence that most is about, the earliest of equals; 0 if there is none."""
        best, request, most = 0, "", 0
        for number, told in sorted(self._told.items()):
            for sentence in filter(_may_be_task, sentences(told)):
                count = self._about(number, sentence)
                if count > most:
                    best, request, most = number, sentence, count
        enough = most >= max(LEAST, SHARE * (len(self._told) - 1))
        return (best, request) if enough else (0, "")

    def belongs(self, number: int, sentence: str) -> bool:
        """Return whether anything else in the session is about what a sentence is about."""
        return self._about(number, sentence) > 0

    def _about(self, number: int, sentence: str) -> int:
        subject = _subject(sentence)
        return sum(subject.shared_with(other) for known, other in self._subjects.items() if known != number)


def _may_be_task(sentence: str) -> bool:
    """Return whether a sentence sets something to do: no reaction, and no question that asks for an answer only."""
    if not is_substantial(sentence):
        return False
    return asks_for_action(sentence) or not sentence.rstrip().endswith("?")


def _subject(text: str) -> SubjectWords:
    found = subject_words(text)
    named = {word for name in names_in(text) for word in subject_words(name)}
    names = (word for word, is_name in found.items() if is_name or word in named)
    return SubjectWords(frozenset(map(_form, names)), frozenset(map(_form, found)))


def _form(word: str) -> str:
    return word[:BEGINNING] if len(word) >= BEGINNING else stem(word)
