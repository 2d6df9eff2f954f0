"""Texts that are found again by their words: in clear, or by fingerprints that tell nothing."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from nanoclaw_memory.store.keywords import spaced
from nanoclaw_memory.text import fingerprint, words

Words = tuple[str, ...]
LONGEST = 12  # words of a text that is looked for inside of others; a longer one must be the whole
SHORTEST = 3  # the same for texts that nobody asked for by name: "yes please" stands in every conversation


def words_of(text: str) -> Words:
    """The words by which a text is known: no case, no punctuation, no mark-up."""
    plain = unicodedata.normalize("NFKC", text).replace("'", " ").replace("’", " ")
    return tuple(words(spaced(plain)))


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a value, however deep; a text that is JSON is opened too."""
    if isinstance(value, str):
        if value[:1] in ("{", "["):
            try:
                value = json.loads(value)
            except ValueError:
                yield value
                return
            yield from texts_in(value) if not isinstance(value, str) else (value,)
        else:
            yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from texts_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts_in(inner)


class Matcher(Protocol):
    """Says where among words a wanted text stands."""

    def spans(self, said: Words) -> Iterator[tuple[int, int]]:
        """First word, and the word after the last, of every place."""
        ...

    def is_whole(self, said: Words) -> bool:
        """Whether these words are a wanted text and nothing else."""
        ...


@dataclass(frozen=True)
class Phrases:
    """Texts in clear: `inside` are found within other texts, `whole` only when nothing else is said."""

    inside: frozenset[Words] = frozenset()
    whole: frozenset[Words] = frozenset()

    @classmethod
    def asked(cls, *texts: str) -> Phrases:
        """Texts that a person named: found wherever they stand."""
        return cls(frozenset(found for text in texts if (found := words_of(text))))

    @classmethod
    def met(cls, texts: Iterable[str], longest: int = LONGEST) -> Phrases:
        """Texts that something held: found inside of others unless they are too short or too long for it."""
        known = {found for text in texts if (found := words_of(text))}
        inside = {found for found in known if SHORTEST <= len(found) <= longest}
        return cls(frozenset(inside), frozenset(known - inside))

    def __or__(self, other: Phrases) -> Phrases:
        return Phrases(self.inside | other.inside, self.whole | other.whole)

    def __bool__(self) -> bool:
        return bool(self.inside or self.whole)

    @cached_property
    def _by_first(self) -> dict[str, list[Words]]:
        found: dict[str, list[Words]] = {}
        for phrase in self.inside:
            found.setdefault(phrase[0], []).append(phrase)
        return found

    def spans(self, said: Words) -> Iterator[tuple[int, int]]:
        for place, word in enumerate(said):
            for phrase in self._by_first.get(word, ()):
                if said[place : place + len(phrase)] == phrase:
                    yield place, place + len(phrase)

    def is_whole(self, said: Words) -> bool:
        return said in self.whole

    def marks(self) -> list[str]:
        """The same as fingerprints, to be kept."""
        return sorted(
            [f"{len(phrase)}:{_mark(phrase)}" for phrase in self.inside]
            + [f"0:{_mark(phrase)}" for phrase in self.whole]
        )


@dataclass(frozen=True)
class Marks:
    """The same by fingerprints alone."""

    kept: frozenset[str]

    @cached_property
    def _lengths(self) -> tuple[int, ...]:
        heads = {mark.partition(":")[0] for mark in self.kept if ":" in mark}
        return tuple(sorted(int(head) for head in heads if head != "0"))

    def spans(self, said: Words) -> Iterator[tuple[int, int]]:
        for length in self._lengths:
            for place in range(len(said) - length + 1):
                if f"{length}:{_mark(said[place : place + length])}" in self.kept:
                    yield place, place + length

    def is_whole(self, said: Words) -> bool:
        return bool(self.kept) and f"0:{_mark(said)}" in self.kept


@dataclass(frozen=True)
class Either:
    """What one or the other finds."""

    first: Matcher
    second: Matcher

    def spans(self, said: Words) -> Iterator[tuple[int, int]]:
        yield from self.first.spans(said)
        yield from self.second.spans(said)

    def is_whole(self, said: Words) -> bool:
        return self.first.is_whole(said) or self.second.is_whole(said)


def holds(wanted: Matcher, text: str) -> bool:
    """Whether a text holds, or is, what is wanted."""
    said = words_of(text)
    return bool(said) and (wanted.is_whole(said) or any(True for _ in wanted.spans(said)))


def lines_holding(lines: Sequence[str], wanted: Matcher) -> set[int]:
    """The lines over which a wanted text runs, counted from 0."""
    every: list[str] = []
    line_of: list[int] = []
    found: set[int] = set()
    for number, line in enumerate(lines):
        said = words_of(line)
        if said and wanted.is_whole(said):
            found.add(number)
        every += said
        line_of += [number] * len(said)
    for start, end in wanted.spans(tuple(every)):
        found.update(range(line_of[start], line_of[end - 1] + 1))
    return found


def _mark(phrase: Words) -> str:
    return fingerprint(" ".join(phrase))
