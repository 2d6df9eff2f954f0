"""Estimate relevance: one number for passages of every kind, and a gate below which nothing is returned."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence, Set

import msgspec

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.providers.calibration import Calibration
from nanoclaw_memory.store.keywords import spaced, terms_of
from nanoclaw_memory.text import GERMAN_STOP_WORDS, STOP_WORDS, stem, stems_in_any_language, words

GATE = 0.5  # minimal relevance of what is returned
APART = 0.25  # minimal similarity to a lone unknown word, beyond what all texts have in common
YOUNG = 50  # added to the size of a memory: in a young one, never having seen a word says little
MOST_SENTENCES = 20
# Minimal share of a message's words, by rarity, in the best text; chosen by bench/continuity.py and bench/locomo.py.
_UNKNOWN_NAMES = 0.75  # for people and things nobody ever mentioned
_SEARCHED, _SEARCHED_BY_NAME = 0.15, 0.05  # for an explicit search, without and with a known name
_PAST = 0.2  # for a question about the past
_WITH_VECTORS = 0.5
_NAMES, _NO_NAMES = 0.35, 0.4
_SAME = 0.75  # similarity at which meaning counts in full, on the way to an identical text
_LONG = 6
_ASKS_ABOUT_THE_PAST = regex(
    r"\b(?:remember|recall|remind me|last (?:time|week|month|night|\w+day)|yesterday|the other day|earlier|previously|"
    r"(?:did|had|have) (?:we|i|you)\b|we (?:said|discussed|talked|decided|agreed|spoke)|i (?:said|told|mentioned)|"
    r"you (?:said|told|mentioned|suggested)|where were we|what was (?:that|the)|"
    r"erinner\w*|letztes mal|letzte woche|gestern|neulich|vorhin|hatten wir|haben wir|wir (?:sagten|besprachen)|"
    r"ich (?:sagte|erwähnte)|du (?:sagtest|meintest))\b",
    re.IGNORECASE,
)
SHORT_QUESTION = 12  # words
# "My", "our" in the languages that people ask in: a closed class.
_OWN = frozenset(
    "my our mein meine meinem meinen meiner meines unser unsere unserem unseren unserer unseres mi mis nuestra nuestras"
    " nuestro nuestros mon ma mes notre nos mio mia miei mie nostra nostre nostri nostro meu meus minha minhas nosso"
    " nossa mijn ons onze".split()
)
# Words that point into the conversation, in addition to the stop words.
_POINTING = frozenset(
    "hm hmm ah oh well one ones others another first second third last next go make try show tell done way too else"
    " also and yes no ok okay sure thanks continue was wer wann welche welcher welches den denn mal macht mach mache"
    " machen zeig zeige nochmal nochmals weiter anders andere anderen anderer zweite erste dritte letzte nächste ja gut"
    " los".split()
)
_SAYING_NOTHING = STOP_WORDS | GERMAN_STOP_WORDS | _POINTING
_ASKS_OF_SELF = frozenset("i me my we us our am you ich mich mir wir uns du she he sie er".split())
_WHO = frozenset("who whose wer wem wen wessen".split())
_SUM = regex(r"\d\s*[*/+×÷^%=-]\s*\d")
_FEW = 6  # words
_SENTENCE = regex(r"(?<=[.!?])\s+|\n+")
_NAME = regex(r"(?<![.!?]\s)(?<!^)\b[A-ZÄÖÜ][\w'’-]+", re.UNICODE)


class Evidence(msgspec.Struct, frozen=True):
    """The evidence for the best result."""

    searched: bool  # an explicit search, not a message of a conversation
    past: bool  # the message asks about the past
    covered: float  # share of the message, by the rarity of its words, that the best text contains
    meaning: float = (
        0.0  # similarity of the nearest text: 0 like unrelated texts, 1 the same; 0 without vectors
    )
    names: int = 0
    known_names: float = 1.0  # share of the names in the message that memory contains
    calibration: Calibration = Calibration()
    vectors: bool = False

    @property
    def relevance(self) -> float:
        """Return 0 to 1; from `GATE` on it is likely that the best text helps with the message."""
        unknown = bool(self.names) and not self.known_names
        if unknown:
            least, near = _UNKNOWN_NAMES, self.calibration.same_subject
        else:
            least, near = self._least_covered, self.calibration.near
        by_words, by_meaning = _scaled(self.covered, least, 1.0), _scaled(self.meaning, near, _SAME)
        if not self.searched:
            return max(by_words, by_meaning)
        return by_words + by_meaning - by_words * by_meaning  # an explicit search accepts some of both

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
        """Return whether there is anything worth returning."""
        return self.relevance >= GATE


def _scaled(value: float, least: float, full: float) -> float:
    """Scale a value linearly: the gate at `least`, 1 at `full`."""
    if value < least:
        return GATE * max(value, 0.0) / least
    return min(GATE + (1 - GATE) * (value - least) / (full - least), 1.0)


def asks_about_the_past(message: str) -> bool:
    """Return whether a message asks what was said or done before."""
    return bool(_ASKS_ABOUT_THE_PAST.search(message))


def is_short_question(message: str) -> bool:
    """Return whether a message is one short question and nothing else."""
    asked = message.strip()
    return asked.endswith("?") and "\n" not in asked and len(asked.split()) <= SHORT_QUESTION


def names_nothing(message: str) -> bool:
    """Return whether a message names nothing that memory could know: "do it", "which one?", "und jetzt?", "17 * 23".

    Who speaks of themselves, or of the past, asks memory all the same: "who am I?", "what did we do?"
    """
    found = words(message)
    if (
        len(found) > _FEW
        or asks_about_the_past(message)
        or (is_short_question(message) and _ASKS_OF_SELF & {*found})
    ):
        return False
    # "Who is Will?" names somebody; capitals alone only stress a word, and who asks "who" means no sum.
    if any(not name.isupper() and name[:2] not in ("I'", "I’") for name in _NAME.findall(message)):
        return False
    if _SUM.search(message) and _WHO.isdisjoint(found):
        found = [word for word in found if not word.isdigit()]
    return _SAYING_NOTHING.issuperset(found)


def asks_for_own(message: str) -> bool:
    """Return whether a message is a short question about something of the person's own, such as "my rate?"."""
    return is_short_question(message) and not _OWN.isdisjoint(words(message))


def names_in(message: str) -> set[str]:
    """Return the names in a message: capitalised words that begin no sentence."""
    found = {name.casefold().removesuffix("'s").removesuffix("’s") for name in _NAME.findall(message)}
    return {name for name in found if len(name) > 2}


def known_share(names: set[str], known: Callable[[str], bool]) -> float:
    """Return the share of names that memory contains; 1 without names."""
    return sum(map(known, names)) / len(names) if names else 1.0


def rarity(count: int, total: int) -> float:
    """Return the weight of a word: high if few passages contain it, highest if none does."""
    return math.log(1 + (total + YOUNG) / (count + 0.5))


class Coverage:
    """Compute the share of a message, or of one of its sentences, that a text contains, by the weight of words.

    A message with two questions has probably not been answered by one text. A sentence counts by itself only if what
    a text contains of it weighs more than chance would produce among so many texts. `forms` are compounds and parts
    that substitute for a word, `others` other names of the entities in the message.
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
        """Return how much of the message one text contains."""
        bag = _bag(text)
        absent = {term for term, form in self._forms.items() if not bag.contains(form)}
        named = bool(absent) and any(all(map(bag.contains, name)) for name in self._others)
        best = _contained_weight(self._whole, absent, named) / self._weight
        for part in self._parts:
            if (held := _contained_weight(part, absent, named)) > self._chance:
                best = max(best, held / (sum(part.values()) or 1.0))
        return best


def _contained_weight(weights: Mapping[str, float], absent: Set[str], named: bool) -> float:
    """Return the weight of the words that a text contains; a name substitutes for the weightiest missing word."""
    if not absent:
        return sum(weights.values())
    missing = {term: weight for term, weight in weights.items() if term in absent}
    if missing and named:
        missing.pop(max(missing, key=lambda term: missing[term]))
    return sum(weights.values()) - sum(missing.values())


class _Form(msgspec.Struct, frozen=True):
    """A word of a message with the substrings and stems by which a text is searched for all its forms."""

    parts: tuple[str, ...]
    stems: frozenset[str]


@bounded(2 * 1024 * 1024)
def _form(*terms: str) -> _Form:
    long = (part for term in terms if len(term) >= _LONG for part in (term, f" {stem(term)}"))
    return _Form((*long, *(f" {term}" for term in terms if len(term) < _LONG)), stems_in_any_language(terms))


class _Bag(msgspec.Struct, frozen=True):
    """The words of a text, to check whether it contains a word in any form."""

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
    """Return the words of a text; cached because messages of a conversation find the same texts."""
    found = words(spaced(text))
    return _Bag(f" {' '.join(found)} ", stems_in_any_language(found))
