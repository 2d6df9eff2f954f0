"""The gate: two linear models estimate how probable it is that a passage helps with a message, and that anything
does.

`training/gate.py` trains the weights on people's notes and prompts; `gate.json` contains them, with vectors and
without, and the centres of one embedder. All texts are somewhat similar, and some (a short question, a long mail)
more than others. Subtracting the mean of its kind from a vector leaves what is specific, for a memory of any size.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import repeat
from operator import mul
from pathlib import Path

import msgspec

from nanoclaw_memory.conversations.topics import empty_words
from nanoclaw_memory.retrieval import relevance
from nanoclaw_memory.retrieval.candidates import Candidate, Centres, Pool
from nanoclaw_memory.retrieval.chunker import QUOTED
from nanoclaw_memory.retrieval.stated_parts import stated_in
from nanoclaw_memory.text import language
from nanoclaw_memory.types import Passage

OLD = 30  # age in days of a passage without a date
NEARLY_ALL = 0.75  # minimal share of a message with a name in one passage that suffices by itself
HALF = 0.5  # the same for a message that asks about the past
TELLING = 2  # minimal words of a message for that
SURE = 0.75
DOUBTFUL = 0.4  # below this probability nothing but the words of one passage speaks for a message
CONCEIVABLE = 0.1  # below this probability, by its words, a message needs no memory: "thank you"
CONSIDERED = 5  # number of best passages that decide whether anything helps
ANSWERED = "answered"  # the feature of an answer to an earlier identical message
CENTRED = "centred"  # the feature of the similarity that exceeds that of unrelated texts
NEAR, NEAREST = 0.3, 0.35  # thresholds of that feature, for a passage and for the best one
LONG = 40  # words of a passage beyond which length does not make an answer likelier
FEW_PASSAGES, RARE = 3, 0.05  # maximal number, or share, of passages that contain what is asked about
BEST = 3


class GateInput(msgspec.Struct, frozen=True):
    """A message, and what is known about it before the search."""

    text: str
    today: date
    need: float  # probability that it needs memory at all, by its words alone
    project: str = ""
    own: str | None = None  # the person's own words of a text with a paste: the length of a log says nothing


class Helpful(msgspec.Struct, frozen=True):
    """A passage with the probability that it helps, and its features."""

    candidate: Candidate
    probability: float
    parts: Mapping[str, float]


class Verdict(msgspec.Struct, frozen=True):
    """Passages, most helpful first, and the probability that the message needs any of them."""

    helpful: tuple[Helpful, ...]
    probability: float
    about: Mapping[str, float]  # the features of the message itself


class Weights(msgspec.Struct, frozen=True):
    """The weight of each feature; by name, so that a file with other features is detected."""

    passage: dict[str, float]
    message: dict[str, float]


class GateWeights(msgspec.Struct, frozen=True):
    """The weights with and without vectors, and the centres of the model with vectors."""

    words: Weights
    vectors: Weights
    centres: Centres


def judge(
    asked: GateInput, pool: Pool, found: Sequence[Candidate], known_names: float, names: int
) -> Verdict:
    """Return the passages in the order in which they help, and whether the message is helped at all."""
    weights = gate_weights().vectors if pool.vector else gate_weights().words
    about = message_features(asked, pool, names, known_names)
    best = max((one.score for one in found), default=0.0) or 1.0
    rarities = {term: relevance.rarity(count, pool.total) for term, count in pool.spread.items()}
    coverage = relevance.Coverage(asked.text, rarities, pool.total, pool.forms, pool.others)
    of_subject = {term: rare for term, rare in rarities.items() if term not in empty_words()}
    telling = (
        relevance.Coverage(asked.text, of_subject, pool.total, pool.forms, pool.others)
        if of_subject
        else None
    )
    helpful = []
    places = _places(pool.keyword), _places(pool.vector)
    for one in found:
        parts = passage_features(asked, pool, (coverage, telling), one, best, about)
        parts["place by words"] = places[0].get(one.stored.id, 0.0)
        parts["place by meaning"] = places[1].get(one.stored.id, 0.0)
        one.score = probability(weights.passage, parts)
        if is_pasted(one.stored.passage):
            one.score *= parts[
                "covered"
            ]  # a paste is long and covers much: only the message's own words ask for it
        helpful.append(Helpful(one, one.score, parts))
    helpful.sort(key=lambda one: -one.probability)
    whole = verdict_features(
        about, helpful, bool(helpful) and is_foreign(asked.text, helpful[0].candidate.stored.passage.text)
    )
    of_days = bool(helpful and pool.only_days and pool.told)  # who asks what was said then gets an answer
    conceivable = of_days or (helpful and is_conceivable(asked.need, asked.text))
    likely = probability(weights.message, whole) if conceivable else 0.0
    # No model knows Keystone, but one passage contains everything that is asked about it.
    least = HALF if about["past"] else NEARLY_ALL if about["known names"] else 1.0
    least_words = 1 if relevance.asks_for_own(asked.text) else TELLING
    asks = (
        len(rarities) >= least_words and not about["lines"]
    )  # some sentence of a pasted text is always known
    if conceivable and (of_days or (asks and whole["covered"] >= least)):
        if likely < DOUBTFUL and not of_days:  # only what contains the message speaks for it
            helpful = [one for one in helpful if one.parts["covered"] >= least]
        likely = max(likely, SURE)
    if likely < SURE and conceivable and asks and not pool.vector:
        named = _named_rarely(asked.text, pool, helpful)
        if any(one in named for one in helpful[:BEST]):
            return Verdict(tuple(named), SURE, about)
    return Verdict(tuple(helpful), likely, about)


def is_conceivable(need: float, text: str) -> bool:
    """Return whether a message may need memory, by its words.

    Models know few languages and no names: there the words of a short question say whether memory has them. The judge
    and the scorer must agree that one needs nothing.
    """
    if need >= CONCEIVABLE or not relevance.is_short_question(text):
        return need >= CONCEIVABLE
    if language(text) is None or relevance.names_in(text):
        return True
    from nanoclaw_memory.providers import scorer

    return scorer.probability("needs", text) >= CONCEIVABLE


def _named_rarely(text: str, pool: Pool, helpful: Sequence[Helpful]) -> list[Helpful]:
    """Return the passages with the rare names of a short question: it asks about those, whatever its other words."""
    names = relevance.names_in(text)
    if not (names and relevance.is_short_question(text)):
        return []
    most = max(FEW_PASSAGES, RARE * pool.total)
    if not all(0 < pool.spread.get(name, 0) <= most for name in names):
        return []
    texts = [(one, one.candidate.stored.passage.text.casefold()) for one in helpful]
    return [one for one, told in texts if all(name in told for name in names)]


def message_features(asked: GateInput, pool: Pool, names: int, known_names: float) -> dict[str, float]:
    """Return the features of the message itself."""
    rarities = [(relevance.rarity(count, pool.total), count) for count in pool.spread.values()]
    whole = sum(rare for rare, _ in rarities) or 1.0
    return {
        "need": _odds(asked.need) / 3,
        "past": float(relevance.asks_about_the_past(asked.text)),
        "days": float(bool(pool.told)),
        "only days": float(pool.only_days),
        "length": math.log(len((asked.text if asked.own is None else asked.own).split()) + 1),
        "lines": float("\n" in asked.text.strip()),
        "question": float("?" in asked.text),
        "states": float("?" not in asked.text and bool(stated_in(asked.text))),
        "everyday": sum(
            rare for (rare, _), term in zip(rarities, pool.spread, strict=True) if term in empty_words()
        )
        / whole,
        "known names": known_names if names else 0.0,
        "unknown names": 1 - known_names if names else 0.0,
        "unknown words": sum(rare for rare, count in rarities if not count) / whole,
        "unknown word": float(any(not count for _, count in rarities)),
    }


def passage_features(
    asked: GateInput,
    pool: Pool,
    coverages: tuple[relevance.Coverage, relevance.Coverage | None],
    one: Candidate,
    best: float,
    about: Mapping[str, float],
) -> dict[str, float]:
    """Return the features of a passage as an answer to a message, by all its words and by those of a subject."""
    coverage, telling = coverages
    passage = one.stored.passage
    context = "\n".join((passage.text, passage.heading, passage.speaker, one.stored.path))
    covered = 1.0 if one.parts.get(ANSWERED) else coverage.of(context)
    said = passage.kind == "turn"
    elsewhere = bool(asked.project and passage.project)
    return {
        "covered": covered,
        "covered well": covered**2,
        "subject": telling.of(context) if telling else 0.0,
        "share of best": one.score / best,
        "fused": one.parts["fused"],
        "beside": one.parts["neighbours"],
        "of the day": one.parts["day"],
        "of days only": float(pool.only_days and one.stored.id in pool.told),
        "length": math.log(min(len(passage.text.split()), LONG) + 1),
        "age": math.log(_age(passage.day, asked.today) + 1) / 5,
        "this project": float(elsewhere and passage.project == asked.project),
        "other project": float(elsewhere and passage.project != asked.project),
        "no project": float(said and bool(asked.project) and not passage.project),
        "asks": float(passage.text.rstrip().endswith("?")),
        "log line": float(passage.kind == "line"),
        "said by the agent": float(said and passage.speaker == "Agent"),
        "said by the user": float(said and passage.speaker != "Agent"),
        "need": about["need"],
        "need and covered": about["need"] * covered,
        "message length": about["length"],
        "message lines": about["lines"],
        "days": about["days"],
        "past": about["past"],
        "unknown names": about["unknown names"],
        **of_meaning(about["need"], one.parts.get(CENTRED, 0.0)),
    }


def of_meaning(need: float, centred: float) -> dict[str, float]:
    """Return the features of a passage's similarity."""
    return {CENTRED: centred, "need and centred": need * centred, "near": max(centred - NEAR, 0.0)}


def verdict_features(
    about: Mapping[str, float], helpful: Sequence[Helpful], foreign: bool = False
) -> dict[str, float]:
    """Return the features of a message with its best passages, which may be `foreign`: in another language."""
    top = helpful[:CONSIDERED]
    covered = max((one.parts["covered"] for one in top), default=0.0)
    centred = max((one.parts[CENTRED] for one in top), default=0.0)
    subject = max((one.parts["subject"] for one in top), default=0.0)
    return {
        **about,
        "best": _odds(top[0].probability) if top else -5.0,
        "above the fifth": _odds(top[0].probability) - _odds(top[-1].probability) if top else 0.0,
        "third": _odds(top[min(2, len(top) - 1)].probability) if top else -5.0,
        "covered": covered,
        "covered well": covered**4,
        "subject": subject,
        "states and subject": about["states"] * subject,
        "states and centred": about["states"] * centred,
        "need and unknown words": about["need"] * about["unknown words"],
        "known names and covered": about["known names"] * covered**2,
        "need and covered": about["need"] * covered,
        CENTRED: centred,
        "need and centred": about["need"] * centred,
        "nearest": max(centred - NEAREST, 0.0),
        "foreign": float(foreign),
        "foreign and unknown words": foreign * about["unknown words"],
    }


def is_pasted(passage: Passage) -> bool:
    """Return whether the passage was only quoted or pasted."""
    return passage.kind == "turn" and passage.origin == QUOTED


def is_foreign(message: str, passage: str) -> bool:
    """Return whether one is English and the other German: then their words cannot be compared."""
    return {language(message), language(passage)} == {"english", "german"}


def _places(scores: Mapping[int, float]) -> dict[int, float]:
    """Return for each key its rank by score: 1 for the first, a half for the second."""
    return {key: 1 / place for place, key in enumerate(sorted(scores, key=lambda key: -scores[key]), 1)}


def probability(weights: Mapping[str, float], features: Mapping[str, float]) -> float:
    """Return the probability that features and weights amount to."""
    counts = map(weights.get, features, repeat(0.0))
    score = weights.get("bias", 0.0) + sum(map(mul, counts, features.values()))
    return 1 / (1 + math.exp(-max(min(score, 30.0), -30.0)))


def _odds(probability: float) -> float:
    inside = min(max(probability, 1e-4), 1 - 1e-4)
    return math.log(inside / (1 - inside))


def _age(day: str, today: date) -> int:
    try:
        return max((today - date.fromisoformat(day)).days, 0) if day else OLD
    except ValueError:
        return OLD


@functools.cache
def gate_weights() -> GateWeights:
    """Return the content of `gate.json`."""
    return msgspec.json.decode(Path(__file__).with_name("gate.json").read_bytes(), type=GateWeights)
