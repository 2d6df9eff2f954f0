"""Find texts again by their words: in clear, or by fingerprints that reveal nothing."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

import msgspec

from nanoclaw_memory.patterns import regex
from nanoclaw_memory.sha256 import sha256
from nanoclaw_memory.store.keywords import spaced
from nanoclaw_memory.text import fingerprint, words

Words = tuple[str, ...]
# Maps a text and its key to the changed text, and the number of changes.
TextChange = Callable[[str, str], tuple[str, int]]
LONGEST = 12  # words of a text that is looked for inside of others; a longer one must be the whole text
SHORTEST = 3  # the same for texts that nobody named: "yes please" is in every conversation
SPOKEN = 5  # the same for text from conversations
# A truncated copy is recognised by this many words: from the text's own start, or from anywhere within it.
CUT_OPENING = 6
CUT_INSIDE = 12
MOST_TELLING = 200  # words to look for in a first check
CUT_LETTERS = 24  # or by this many letters: in some scripts a character is a word
FORGOTTEN = "[forgotten]"  # replaces what was removed
# Invisible characters: they must not hide a word. Some are removed again before a text is stored.
_HIDDEN = regex(
    "[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
_RUN = regex(r"\S+")
_LINE = regex(r"[^\n]*\S[^\n]*")
_ENDS = regex(r"\n|…")  # where a copy may have been truncated


def words_of(text: str) -> Words:
    """Return the words that identify a text: no case, punctuation, mark-up, or hidden characters."""
    plain = unicodedata.normalize("NFKC", _HIDDEN.sub("", text)).replace("'", " ").replace("’", " ")
    return tuple(words(spaced(plain)))


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a value, however deep; a text that is JSON is parsed too."""
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


class Phrases(msgspec.Struct, frozen=True, dict=True):
    """Wanted texts: `inside` are found within other texts, `whole` only as the whole text.

    `known` are fingerprints of either, as tombstones store them; they match no truncated text.
    """

    inside: frozenset[Words] = frozenset()
    whole: frozenset[Words] = frozenset()
    known: frozenset[str] = frozenset()

    @classmethod
    def of_request(cls, *texts: str) -> Phrases:
        """Return texts that a person named, found anywhere."""
        return cls(frozenset(found for text in texts if (found := words_of(text))))

    @classmethod
    def of_rows(cls, texts: Iterable[str], longest: int = LONGEST) -> Phrases:
        """Return texts of rows: found inside of others unless they are too short or too long for it."""
        known = {found for text in texts if (found := words_of(text))}
        inside = {found for found in known if SHORTEST <= len(found) <= longest}
        return cls(frozenset(inside), frozenset(known - inside))

    @classmethod
    def whole_only(cls, texts: Iterable[str]) -> Phrases:
        """Return texts that match only as a whole."""
        return cls(whole=frozenset(found for text in texts if (found := words_of(text))))

    @classmethod
    def of_talk(cls, texts: Iterable[str]) -> Phrases:
        """Return texts from a conversation without small talk, or nobody could say "thank you" again."""
        known = {
            found
            for text in texts
            if len(found := words_of(text)) >= SPOKEN or any(map(str.isdigit, "".join(found)))
        }
        inside = {found for found in known if SPOKEN <= len(found) <= LONGEST}
        return cls(frozenset(inside), frozenset(known - inside))

    def __or__(self, other: Phrases) -> Phrases:
        return Phrases(self.inside | other.inside, self.whole | other.whole, self.known | other.known)

    def __bool__(self) -> bool:
        return bool(self.inside or self.whole or self.known)

    @cached_property
    def _by_first(self) -> dict[str, list[Words]]:
        found: dict[str, list[Words]] = {}
        for phrase in self.inside:
            found.setdefault(phrase[0], []).append(phrase)
        return found

    @cached_property
    def _signal_words(self) -> frozenset[tuple[str, ...]]:
        """Return adjacent words that occur in any text with a phrase, or with a part that identifies it."""
        # The sixth word of a beginning may be truncated; in a run within the text all are whole.
        runs = [phrase[: CUT_OPENING - 1] for phrase in self.inside] + [*self.whole, *self._insides]
        return frozenset(tuple(sorted(set(run), key=lambda word: (len(word), word))[-2:]) for run in runs)

    def possible(self, text: str) -> bool:
        """Return False if a quick check shows that a text contains nothing wanted, as most do not."""
        # Only plain text shows its words as they are.
        if self.known or not text.isascii() or len(self._signal_words) > MOST_TELLING:
            return True
        plain = text.lower()
        return any(all(word in plain for word in words) for words in self._signal_words)

    def spans(self, said: Words) -> Iterator[tuple[int, int]]:
        """Yield first word, and the word after the last, of every place where a wanted text is."""
        for place, word in enumerate(said) if self.inside else ():
            for phrase in self._by_first.get(word, ()):
                if said[place : place + len(phrase)] == phrase:
                    yield place, place + len(phrase)
        if self._by_length:
            yield from self._known_spans(said)

    def _known_spans(self, said: Words) -> Iterator[tuple[int, int]]:
        # One text for all: joining the words of every place again would take most of the time.
        raw = " ".join(said).encode("utf-8", "surrogatepass")
        starts = list(
            accumulate((len(word.encode("utf-8", "surrogatepass")) + 1 for word in said), initial=0)
        )
        for length, marks in sorted(self._by_length.items()):
            for place in range(len(said) - length + 1):
                if sha256(raw[starts[place] : starts[place + length] - 1]).hexdigest() in marks:
                    yield place, place + length

    @cached_property
    def _by_length(self) -> dict[int, set[str]]:
        found: dict[int, set[str]] = {}
        for mark in self.known:
            length, colon, own = mark.partition(":")
            if colon and length != "0":
                found.setdefault(int(length), set()).add(own)
        return found

    def is_whole(self, said: Words) -> bool:
        """Return whether these words are exactly a wanted text."""
        return said in self.whole or (bool(self.known) and f"0:{_mark(said)}" in self.known)

    @cached_property
    def may_be_cut(self) -> bool:
        """Return whether any wanted text is long enough to be recognised when truncated."""
        return any(len(phrase) > CUT_OPENING for phrase in self.inside)

    @cached_property
    def _insides(self) -> dict[Words, list[tuple[Words, int]]]:
        """Return where each run of words is in the long texts."""
        found: dict[Words, list[tuple[Words, int]]] = {}
        for phrase in self.inside:
            for place in range(len(phrase) - CUT_INSIDE + 1):
                found.setdefault(phrase[place : place + CUT_INSIDE], []).append((phrase, place))
        return found

    def cuts(self, said: Words, ends: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield the same as `spans` for truncated copies; `ends` are where a line or the text ends."""
        closing = frozenset(ends)
        for place, word in enumerate(said):
            for phrase in self._by_first.get(word, ()):
                end = _cut_at(said, place, phrase, 0, closing)
                if CUT_OPENING <= end - place < len(phrase) and _is_distinctive(said[place:end]):
                    yield place, end
        if self._insides:
            for place in (0, *ends):
                for phrase, first in self._insides.get(said[place : place + CUT_INSIDE], ()):
                    end = _cut_at(said, place, phrase, first, closing)
                    if end and _is_distinctive(said[place:end]):
                        yield place, end

    def marks(self) -> list[str]:
        """Return the texts in clear as fingerprints, for storing."""
        return sorted(
            [f"{len(phrase)}:{_mark(phrase)}" for phrase in self.inside]
            + [f"0:{_mark(phrase)}" for phrase in self.whole]
        )


def holds(wanted: Phrases, text: str) -> bool:
    """Return whether a text contains or is a wanted one, or a truncated copy of it."""
    if not wanted.possible(text):
        return False
    said, ends = _with_ends(_ENDS.split(text))
    return _holds_whole(wanted, said) or any(True for _ in wanted.cuts(said, ends))


def is_cut(wanted: Phrases, text: str) -> bool:
    """Return whether a text is only a part of a wanted one."""
    if not wanted.may_be_cut or not wanted.possible(text):
        return False
    said, ends = _with_ends(_ENDS.split(text))
    return not _holds_whole(wanted, said) and any(True for _ in wanted.cuts(said, ends))


def _holds_whole(wanted: Phrases, said: Words) -> bool:
    return bool(said) and (wanted.is_whole(said) or any(True for _ in wanted.spans(said)))


def _with_ends(parts: Iterable[str]) -> tuple[Words, list[int]]:
    said: list[str] = []
    ends: list[int] = []
    for part in parts:
        said += words_of(part)
        ends.append(len(said))
    return tuple(said), ends


def _cut_at(said: Words, place: int, phrase: Words, first: int, closing: frozenset[int]) -> int:
    """Return where a copy of `phrase` from its word `first` on was truncated; 0 if other text follows."""
    end = place
    while end < len(said) and first + end - place < len(phrase) and said[end] == phrase[first + end - place]:
        end += 1
    if end in closing or first + end - place == len(phrase):
        return end
    halved = end < len(said) and phrase[first + end - place].startswith(said[end])
    return end + 1 if halved and end + 1 in closing else 0


def _is_distinctive(run: Words) -> bool:
    return sum(map(len, run)) >= CUT_LETTERS


def masked(wanted: Phrases, text: str) -> tuple[str, int]:
    """Replace wanted texts by `[forgotten]`; return the text and the number of places."""
    runs = [(run.start(), run.end(), words_of(run[0])) for run in _RUN.finditer(text)]
    said = tuple(word for _, _, words in runs for word in words)
    if said and wanted.is_whole(said):
        return FORGOTTEN, 1
    run_of = [number for number, (_, _, words) in enumerate(runs) for _ in words]
    gone = {run for start, end in wanted.spans(said) for run in range(run_of[start], run_of[end - 1] + 1)}
    for line in _LINE.finditer(text) if "\n" in text else ():
        if wanted.is_whole(words_of(line[0])):
            gone |= {number for number, run in enumerate(runs) if line.start() <= run[0] < line.end()}
    pieces, count, kept = [], 0, 0
    for number in sorted(gone):
        if number - 1 not in gone:
            pieces += [text[kept : runs[number][0]], FORGOTTEN]
            count += 1
        kept = runs[number][1]
    return "".join([*pieces, text[kept:]]), count


def masked_value(wanted: Phrases, value: Any) -> tuple[Any, int]:
    """Do the same for every text in a JSON value."""
    return mapped_texts(value, lambda key, text: masked(wanted, text))


def mapped_texts(value: Any, change: TextChange, key: str = "") -> tuple[Any, int]:
    """Change every text in a JSON value, however deep; return the value and the number of places.

    A text that is JSON is parsed too; keys are texts without a key of their own.
    """
    if isinstance(value, str):
        if value[:1] in ("{", "["):
            try:
                inner, count = mapped_texts(json.loads(value), change)
            except (ValueError, RecursionError):
                return change(key, value)
            return (json.dumps(inner, ensure_ascii=False) if count else value), count
        return change(key, value)
    if isinstance(value, dict):
        pairs = [
            (change("", str(name)), mapped_texts(inner, change, str(name))) for name, inner in value.items()
        ]
        count = sum(first[1] + second[1] for first, second in pairs)
        return ({first[0]: second[0] for first, second in pairs} if count else value), count
    if isinstance(value, list | tuple):
        found = [mapped_texts(inner, change) for inner in value]
        return [inner for inner, _ in found], sum(count for _, count in found)
    return value, 0


def lines_holding(lines: Sequence[str], wanted: Phrases) -> set[int]:
    """Return the lines over which a wanted text extends, counted from 0."""
    if not wanted.possible("\n".join(lines)):
        return set()
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
    if wanted.may_be_cut:
        said, ends = _with_ends(part for line in lines for part in _ENDS.split(line))
        for start, end in wanted.cuts(said, ends):
            found.update(range(line_of[start], line_of[end - 1] + 1))
    return found


def _mark(phrase: Words) -> str:
    return fingerprint(" ".join(phrase))
