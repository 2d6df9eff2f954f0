"""Estimate whether a later statement says something else of the same subject's same attribute, not only of its name.

"Lena has piano on Mondays" shares a name with "Lena can't eat nuts" and says nothing about it. A linear map of
multilingual-e5-small's vectors, in which names count little, tells how alike two attributes are; with the words that
the statements share this gives a probability. `training/attributes.py` learns both; `attributes.json` contains them. A
process without the model at hand, and other embedders, are left to the words alone.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.retrieval.prepare import body_of
from nanoclaw_memory.retrieval.statement_pairs import gives_up, subject_words
from nanoclaw_memory.retrieval.value_changes import says_change
from nanoclaw_memory.retrieval.value_kinds import HOST, RETURNS, WHEN, have_a_kind_in_common, value_kinds
from nanoclaw_memory.text import stems_in_any_language

if TYPE_CHECKING:
    from nanoclaw_memory.store.passage_search import Selection, StoredPassage
    from nanoclaw_memory.store.vector_block import Floats
    from nanoclaw_memory.store.vectors import Matrix, StoredVectors

FILE = Path(__file__).with_name("attributes.json")
PART = 4  # letters of the shortest word that a compound may contain
FORM = 5  # first letters that forms of one word have in common
# "since Monday", "ab Mai": when a change begins is not its value.
_SINCE = regex(
    r"\b(?:since|as of|starting|from|seit|ab)\s+"
    r"(?:(?:the|next|this|last|nächste[rnms]?|diese[rnms]?|letzte[rnms]?)\s+)?"
    r"(?:\d{1,2}(?:st|nd|rd|th)?\.?\s+(?:of\s+)?)?[^\W\d]+\b(?!\s+(?:to|till|until|bis)\b)",
    re.IGNORECASE,
)
BESIDE = 12  # nearest passages among which later statements are looked for


class _Learnt(msgspec.Struct, frozen=True):
    identity: str
    directions: int
    mean: tuple[float, ...]  # of all passages
    map: bytes
    weights: dict[str, float]


class Attributes:
    """Compare what passages of one index say of their subjects."""

    def __init__(self, vectors: Callable[[str], Matrix | StoredVectors | None]) -> None:
        self._vectors = vectors  # those of an embedder, if they cost nothing to read

    def probabilities(
        self, pairs: Collection[tuple[int, int]], stored: Mapping[int, StoredPassage]
    ) -> dict[tuple[int, int], float]:
        """Return for pairs of an older and a newer passage how probably both are about the same attribute.

        A pair of which one has no vector is left out, unless its words say that it only shares a name.
        """
        vectors = self._vectors(_learnt().identity) if pairs else None
        ids = sorted({number for pair in pairs for number in pair})
        turned = _turned(vectors.vectors(ids)) if vectors is not None else {}
        found: dict[tuple[int, int], float] = {}
        for older, newer in pairs:
            before, after = (body_of(stored[one].passage) for one in (older, newer))
            if older in turned and newer in turned:
                found[older, newer] = probability(
                    features(before, after, float(turned[older] @ turned[newer]))
                )
            elif only_shares_a_name(before, after):
                found[older, newer] = 0.0
        return found

    def nearest(self, passages: Sequence[int], visible: Selection | None) -> dict[int, list[int]]:
        """Return the passages nearest to each of these; nothing without vectors."""
        vectors = self._vectors(_learnt().identity) if passages else None
        if vectors is None:
            return {}
        return {
            number: [other for other, _ in vectors.nearest(own, BESIDE + 1, visible) if other != number]
            for number, own in vectors.vectors(list(passages)).items()
        }


def probability(found: Mapping[str, float]) -> float:
    """Return how probably a pair with these features is about one attribute."""
    weights = _learnt().weights
    score = weights["bias"] + sum(weights[name] * value for name, value in found.items())
    return 1 / (1 + math.exp(-max(min(score, 30.0), -30.0)))


@bounded(2 * 1024 * 1024)
def features(older: str, newer: str, likeness: float) -> Mapping[str, float]:
    """Return what speaks for one attribute of one subject: the likeness, shared words, and another value."""
    before, after = _forms(older), _forms(newer)
    shared = before.keys() & after.keys()
    alone, others = (
        {words[one] for one in words.keys() - shared} - {words[one] for one in shared}
        for words in (before, after)
    )
    parts = sum(any(_is_part(one, other) for other in others) for one in alone)
    kinds, later = value_kinds(older), value_kinds(newer)
    known, told = ({value for own in one.values() for value in own} for one in (kinds, later))
    another = have_a_kind_in_common(kinds.keys(), later.keys()) and bool(told - known)
    return {
        "attribute": likeness,
        "says a change": float(says_change(newer)),
        "another value": float(another),
        "parts": float(min(parts, 3)),
        "share of older": _share(shared, before),
        "share of newer": _share(shared, after),
    }


@bounded(2 * 1024 * 1024)
def only_shares_a_name(older: str, newer: str) -> bool:
    """Return whether a later statement has nothing in common with an older one but a name, and no value of a kind
    that the older one states: "my rate for Kestrel is 90", "Kestrel hires a controller".
    """
    before, after = _forms(older), _forms(newer)
    known = subject_words(older)
    named = all(known.get(before[one], False) for one in before.keys() & after.keys())
    return named and _lacks_its_value(older, newer)


def _lacks_its_value(older: str, newer: str) -> bool:
    """Return whether a statement has no value of the kinds of an older one, and does not say what became of these."""
    kinds, later = value_kinds(older), value_kinds(_SINCE.sub(" ", newer))
    counts, others = (bool(own.keys() - {WHEN, HOST}) for own in (kinds, later))
    if not kinds or have_a_kind_in_common(kinds.keys(), later.keys()) or (counts and others):
        return False
    return not (RETURNS.search(newer) or gives_up(older, newer))


def _share(shared: Collection[str], of: Mapping[str, str]) -> float:
    return len({of[one] for one in shared}) / max(len({*of.values()}), 1)


def _is_part(one: str, other: str) -> bool:
    """Return whether two words have a long beginning in common, or one is a compound of the other."""
    short, long = sorted((one, other), key=len)
    if len(short) >= FORM and short[:FORM] == long[:FORM]:
        return True
    return len(short) >= PART and (long.startswith(short) or long.endswith(short))


@bounded(4 * 1024 * 1024)
def _forms(text: str) -> Mapping[str, str]:
    """Return the words that may name a statement's subject, by their stems in English and German.

    Short ones are function words in other languages ("est le", "es el").
    """
    telling = [word for word in subject_words(text) if len(word) >= PART or any(map(str.isdigit, word))]
    return {one: word for word in telling for one in stems_in_any_language([word])}


def _turned(found: Mapping[int, Floats]) -> dict[int, Floats]:
    """Return vectors in the map, of length 1."""
    if not found:
        return {}
    import numpy as np

    mean, axes = _map()
    rows = np.stack([*found.values()]) - mean
    rows = rows @ axes
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) + 1e-9
    return dict(zip(found, rows, strict=True))


@functools.cache
def _map() -> tuple[Floats, Floats]:
    """Return the mean of passages, and the directions of the map."""
    import numpy as np

    codes = np.frombuffer(_learnt().map, np.int8).astype(np.float32).reshape(-1, _learnt().directions)
    return np.array(_learnt().mean, dtype=np.float32), codes


@functools.cache
def _learnt() -> _Learnt:
    return msgspec.json.decode(FILE.read_bytes(), type=_Learnt)
