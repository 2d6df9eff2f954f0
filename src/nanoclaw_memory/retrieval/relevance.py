"""How relevant what was found is: one number for every kind of passage, and one gate below which there is silence."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence, Set

import msgspec

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.providers.calibration import Calibration
from nanoclaw_memory.store.keywords import spaced, terms_of
from nanoclaw_memory.text import stem, stems_in_any_language, words

GATE = 0.5  # relevance from which something is worth returning
YOUNG = 50  # passages by which a young memory counts as larger: there, never having seen a word says little
MOST_SENTENCES = 20
# Shares of a message's words, by their rarity, that the best text has to contain; chosen by bench/continuity.py and
# bench/locomo.py.
_UNKNOWN_NAMES = 0.75  # people and things nobody ever spoke of
_SEARCHED, _SEARCHED_BY_NAME = 0.15, 0.05  # memory is asked on purpose, without and with a name it contains
_PAST = 0.2  # a question about the past
_WITH_VECTORS = 0.5
_NAMES, _NO_NAMES = 0.35, 0.4
_SAME = 0.75  # share of the way to the same text at which meaning counts in full
_LONG = 6
_ASKS_ABOUT_THE_PAST = regex(
    r"\b(?:remember|recall|remind me|last (?:time|week|month|night|\w+day)|yesterday|the other day|earlier|previously|"
    r"(?:did|had|have) (?:we|i|you)\b|we (?:said|discussed|talked|decided|agreed|spoke)|i (?:said|told|mentioned)|"
    r"you (?:said|told|mentioned|suggested)|where were we|what was (?:that|the)|"
    r"erinner\w*|letztes mal|letzte woche|gestern|neulich|vorhin|hatten wir|haben wir|wir (?:sagten|besprachen)|"
    r"ich (?:sagte|erwähnte)|du (?:sagtest|meintest))\b",
    re.IGNORECASE,
)
_SENTENCE = regex(r"(?<=[.!?])\s+|\n+")
_NAME = regex(r"(?<![.!?]\s)(?<!^)\b[A-ZÄÖÜ][\w'’-]+", re.UNICODE)


class Evidence(msgspec.Struct, frozen=True):
    """What speaks for the best of what was found."""

    searched: bool  # memory is asked on purpose; else a message of a conversation is
    past: bool  # the message asks about the past
    covered: float  # share of the message, by the rarity of its words, that the best text contains
    meaning: float = (
        0.0  # how near the nearest text is: 0 like unrelated texts, 1 the same; 0 without vectors
    )
    names: int = 0
    known_names: float = 1.0  # share of the names in the message that memory contains
    calibration: Calibration = Calibration()
    vectors: bool = False

    @property
    def relevance(self) -> float:
        """0 to 1; from `GATE` on it is likely that the best text helps with the message."""
        unknown = bool(self.names) and not self.known_names
        if unknown:
            least, near = _UNKNOWN_NAMES, self.calibration.same_subject
        else:
            least, near = self._least_covered, self.calibration.near
        by_words, by_meaning = _scaled(self.covered, least, 1.0), _scaled(self.meaning, near, _SAME)
        if not self.searched:
            return max(by_words, by_meaning)
        return by_words + by_meaning - by_words * by_meaning  # some of both is enough for who asks on purpose

    @property
    def _least_covered(self) -> float:
        if self.searched:
            return _SEARCHED_BY_NAME if self.names else _SEARCHED
        if self.past:
            return _PAST
        if self.vectors:
            return _WITH_VECTORS
        return _NAMES if self.names else _NO_NAMES

    @property
    def enough(self) -> bool:
        """Whether there is anything worth returning."""
        return self.relevance >= GATE


def _scaled(value: float, least: float, full: float) -> float:
    """A value on the common scale: the gate at `least`, 1 at `full`."""
    if value < least:
        return GATE * max(value, 0.0) / least
    return min(GATE + (1 - GATE) * (value - least) / (full - least), 1.0)


def asks_about_the_past(message: str) -> bool:
    """Whether a message asks what was said or done before."""
    return bool(_ASKS_ABOUT_THE_PAST.search(message))


def names_in(message: str) -> set[str]:
    """The names in a message: capital letters that no sentence begins with."""
    found = {name.casefold().removesuffix("'s").removesuffix("’s") for name in _NAME.findall(message)}
    return {name for name in found if len(name) > 2}


def known_share(names: set[str], known: Callable[[str], bool]) -> float:
    """The share of names that memory contains; 1 without names."""
    return sum(map(known, names)) / len(names) if names else 1.0


def rarity(count: int, total: int) -> float:
    """How much a word says: much when few passages contain it, most when none does."""
    return math.log(1 + (total + YOUNG) / (count + 0.5))


class Coverage:
    """The share of a message, or of one of its sentences, that a text contains, by the weight of words.

    Who asks two things at once has not spoken of both together. A sentence counts by itself only when what a text
    contains of it weighs more than what some text of so many contains by chance. `forms` are compounds and parts that
    stand for a word, `others` other names of whom the message names.
    """

    def __init__(
        self,
        message: str,
        weights: Mapping[str, float],
        total: int,
        forms: Mapping[str, Sequence[str]] | None = None,
        others: Sequence[str] = (),
    ) -> None:
        self._chance = math.log(total + YOUNG)
        sentences = _SENTENCE.split(message)[:MOST_SENTENCES]
        self._whole, self._weight = weights, sum(weights.values()) or 1.0
        self._parts = [
            {term: weights[term] for term in terms_of(part) if term in weights}
            for part in (sentences if len(sentences) > 1 else ())
        ]
        self._forms = {term: _form(term, *(forms or {}).get(term, ())) for term in weights}
        self._others = [[*map(_form, words(name))] for name in others]

    def of(self, text: str) -> float:
        """How much of the message one text contains."""
        bag = _bag(text)
        absent = {term for term, form in self._forms.items() if not bag.contains(form)}
        named = bool(absent) and any(all(map(bag.contains, name)) for name in self._others)
        best = _held(self._whole, absent, named) / self._weight
        for part in self._parts:
            if (held := _held(part, absent, named)) > self._chance:
                best = max(best, held / (sum(part.values()) or 1.0))
        return best


def _held(weights: Mapping[str, float], absent: Set[str], named: bool) -> float:
    """What a text contains of some words; a name stands for the weightiest that it does not."""
    if not absent:
        return sum(weights.values())
    missing = {term: weight for term, weight in weights.items() if term in absent}
    if missing and named:
        missing.pop(max(missing, key=lambda term: missing[term]))
    return sum(weights.values()) - sum(missing.values())


class _Form(msgspec.Struct, frozen=True):
    """A word of a message, in all its forms, as it is looked for: parts of a text that show it, and its stems."""

    parts: tuple[str, ...]
    stems: frozenset[str]


@bounded(2 * 1024 * 1024)
def _form(*terms: str) -> _Form:
    long = (part for term in terms if len(term) >= _LONG for part in (term, f" {stem(term)}"))
    return _Form((*long, *(f" {term}" for term in terms if len(term) < _LONG)), stems_in_any_language(terms))


class _Bag(msgspec.Struct, frozen=True):
    """The words of a text, for questions whether it contains a word in any form."""

    line: str
    stems: frozenset[str]

    def contains(self, form: _Form) -> bool:
        if not form.stems.isdisjoint(self.stems):
            return True
        for part in form.parts:  # noqa: SIM110 - asked of every passage that is found: twice as fast as `any`
            if part in self.line:
                return True
        return False


@bounded(8 * 1024 * 1024)
def _bag(text: str) -> _Bag:
    """The same texts are found for many messages of a conversation."""
    found = words(spaced(text))
    return _Bag(f" {' '.join(found)} ", stems_in_any_language(found))
