"""The intent of a question: the keys and predicates it asks for, with synonyms."""

from __future__ import annotations

from functools import cache, cached_property
from pathlib import Path

import msgspec

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.store.names import key_words, slot_of
from nanoclaw_memory.text import STOP_WORDS, stem, stems_of

# Words of keys that do not identify the key.
GENERIC = frozenset(
    "of the a an in on at by to for with is are was has have and my your number date name value".split()
)
MAX_PHRASE = 4
_NAMING = frozenset({"name", "call", "heisst", "full name", "real name"})  # stemmed
_RELATIVE_LINES = frozenset(
    "partner wife husband mother father parent child son daughter brother sister dog cat friend manager "
    "grandparent uncle aunt cousin niece nephew grandchild godchild neighbour doctor".split()
) | {f"{one} in law" for one in ("mother", "father", "brother", "sister")}
_NO_RELATIVES = frozenset(
    "married marri runs run head manag leitet verheiratet famili".split()  # stemmed
)
_EMPTY = STOP_WORDS - {"where", "why", "own"}


@cache
def _lines() -> tuple[tuple[str, ...], ...]:
    text = Path(__file__).with_name("concepts.txt").read_text(encoding="utf-8").casefold()
    return tuple(tuple(line.split(", ")) for line in text.splitlines() if not line.startswith("#"))


@cache
def _stems() -> dict[str, str]:
    """Return the stems of all their words, computed at once: one by one they took a hook five milliseconds."""
    words = list({word for line in _lines() for phrase in line for word in phrase.split()})
    return dict(zip(words, stems_of(words), strict=True))


@cache
def concepts() -> dict[str, frozenset[int]]:
    """Return every stemmed phrase with the concepts it names."""
    stems = _stems()
    table: dict[str, set[int]] = {}
    for number, line in enumerate(_lines()):
        for phrase in line:
            table.setdefault(" ".join([stems[word] for word in phrase.split()]), set()).add(number)
    return {phrase: frozenset(numbers) for phrase, numbers in table.items()}


@cache
def relatives() -> frozenset[str]:
    """Return every stemmed phrase that names a relative, pet or other person by their relation to somebody."""
    lines = [line for line in _lines() if line[0] in _RELATIVE_LINES]
    return (
        frozenset(_stems()[phrase] for line in lines for phrase in line if " " not in phrase) - _NO_RELATIVES
    )


def phrases_like(numbers: frozenset[int]) -> frozenset[str]:
    """Return every stemmed phrase that names one of these concepts."""
    lines = _lines()
    return frozenset(stemmed(phrase) for number in numbers for phrase in lines[number])


@bounded(1024 * 1024)
def stemmed(phrase: str) -> str:
    """Return a phrase in stems."""
    return " ".join(stem(word) for word in key_words(phrase))


class Phrase(msgspec.Struct, frozen=True):
    """A word or phrase of the question that may name a key or predicate, with its place."""

    phrase: str  # in stems
    text: str
    start: int
    end: int
    beside: str = ""  # the stem of the noun that it only qualifies, which a key must contain too


class Intent(msgspec.Struct, frozen=True, dict=True):
    """The phrases of a question that name known concepts, and its other content words."""

    mentions: tuple[Phrase, ...]
    plain: tuple[Phrase, ...]
    by_name: bool = False  # a synonym of a part of a key is not enough

    def __bool__(self) -> bool:
        return bool(self.mentions or self.plain)

    @property
    def asks(self) -> tuple[Phrase, ...]:
        """Return everything that may name a key or predicate."""
        return self.mentions + self.plain

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(part for ask in self.asks for part in ask.phrase.split())

    @cached_property
    def wanted(self) -> frozenset[str]:
        """Return every stemmed phrase that names or means a wanted key."""
        return frozenset(map(stemmed, self._synonyms)) | {ask.phrase for ask in self.asks}

    @property
    def slots(self) -> frozenset[str]:
        """Return the wanted keys, unstemmed."""
        return frozenset(map(slot_of, self._synonyms)) | {ask.text for ask in self.asks}

    @property
    def _synonyms(self) -> set[str]:
        known, lines = concepts(), _lines()
        numbers = {number for mention in self.mentions for number in known[mention.phrase]}
        return {phrase for number in numbers for phrase in lines[number]}

    def only(self, *asks: Phrase) -> Intent:
        """Return the intent of some of its phrases."""
        return Intent(
            tuple(ask for ask in self.mentions if ask in asks),
            tuple(ask for ask in self.plain if ask in asks),
            self.by_name,
        )

    def until(self, place: int) -> Intent:
        """Return the intent of the words before a place."""
        return self.only(*(ask for ask in self.asks if ask.end <= place))

    @property
    def named_thing(self) -> Intent:
        """Return the thing whose name is asked for: the dog in "my dog's name"; empty if only a name is asked for."""
        return (
            self.only(*(ask for ask in self.asks if ask.phrase not in _NAMING))
            if self._naming
            else self.only()
        )

    @property
    def _naming(self) -> bool:
        return any(ask.phrase in _NAMING for ask in self.asks)

    def names(self, slot: str) -> bool:
        """Return whether a key is asked for by its own words rather than by synonyms: dentist, not doctor."""
        return stemmed(slot) in {ask.phrase for ask in self.asks}

    def fit(self, slot: str) -> float:
        """Return how well a key answers the question: 1 if it is named, 0.5 if named in part, else 0."""
        parts = [stem(part) for part in slot.split()]
        usable = [ask for ask in self.asks if not ask.beside or ask.beside in parts]
        if len(usable) < len(self.asks):
            return self.only(*usable).fit(slot)
        if stemmed(slot) in self.wanted:
            return 1.0
        telling = [part for part in parts if part not in GENERIC]
        if telling and all(part in self.stems for part in telling):
            return 1.0
        known = self.stems if self.by_name else self.wanted
        return 0.5 if any(part in known for part in telling) else 0.0

    def without_synonyms(self, words: frozenset[str]) -> Intent:
        """Return the intent in which phrases count by their own words only, unless all of them are among these."""
        kept = {ask for ask in self.mentions if words.issuperset(ask.text.split())}
        own = tuple(ask for ask in self.asks if ask not in kept)
        return Intent(tuple(ask for ask in self.mentions if ask in kept), own, self.by_name)


def read(tokens: list[str], taken: set[int]) -> Intent:
    """Parse the intent from a question's words, except those that name an entity (`taken`)."""
    stems = [stem(token) for token in tokens]
    table = concepts()
    mentions: list[Phrase] = []
    used = set(taken)
    for length in range(MAX_PHRASE, 0, -1):
        for start in range(len(stems) - length + 1):
            span = range(start, start + length)
            phrase = " ".join(stems[start : start + length])
            if phrase not in table or used.intersection(span) or (length == 1 and tokens[start] in _EMPTY):
                continue
            mentions.append(Phrase(phrase, " ".join(tokens[start : start + length]), start, start + length))
            used.update(span)
    last = len(tokens) - 1
    somebodys = last > 0 and (last - 1 in taken or stems[last - 1] in relatives())
    if somebodys and tokens[last] in ("number", "nummer") and last not in used:
        mentions.append(
            Phrase("phone", tokens[last], last, last + 1)
        )  # "Zuri's number", not "her locker number"
        used.add(last)
    plain = [
        Phrase(stems[place], token, place, place + 1)
        for place, token in enumerate(tokens)
        if place not in used and token not in _EMPTY and not token.isdigit()
    ]
    return Intent(tuple(sorted(mentions, key=lambda mention: mention.start)), tuple(plain))
