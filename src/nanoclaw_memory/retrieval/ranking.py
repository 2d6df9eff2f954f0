"""Turn scores into an order: normalise, fuse, age, diversify, and cut a snippet; pure functions."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.statements import overlap
from nanoclaw_memory.store.keywords import spaced, terms_of
from nanoclaw_memory.store.passage_search import Place
from nanoclaw_memory.text import words

SNIPPET = 700
OLDEST_SHARE = 0.5
ARCHIVED = 0.8  # factor for an archived log line compared with one still in its log
SAME_FILE = 3  # sections of one file that count in full
CROWDED = 0.8  # factor for each further one: other files within this margin precede it
SPEAKER = 0.5  # bonus for turns of the one person whom the question names
OF_THE_DAY = 1.0  # bonus for chunks written on the days that the question asks about
ONLY_THE_DAY = 0.3  # score of a passage of those days that shares no word with the question
OTHER_PROJECT = 0.7  # factor for a passage of another project; one of no project counts in full
ASKS = 0.1  # minimal share of a turn in questions for it to be one that asks
ASKING = 0.85  # factor for a turn that asks compared with one that only tells
HELD = 0.6  # share of the question in the best keyword match from which words count in full
_PARTS = regex(r"[._-]+")
# With the other ends, so that each part is read once: a long list without any would be searched from every character.
_SENTENCES = regex(r"[^.!?…。？؟\n]*(?P<end>[.!?…。？؟\n]|\Z)")
_ASKING_ENDS = ("?", "？", "؟")
_NEIGHBOURS = {-2: 0.1, -1: 0.2, 1: 0.2, 2: 0.1}
# Which speaker each pronoun refers to, and the names that archives use for them.
_PERSON = frozenset("user human".split())
_AGENT = frozenset("agent assistant".split())
_I = frozenset("i me my mine myself ich mich mir mein meine meinem meinen meiner meines".split())
_YOU = frozenset("you your yours yourself du dich dir dein deine deinem deinen deiner deines".split())


def min_max(scores: Mapping[int, float]) -> dict[int, float]:
    """Scale scores to between 0 and 1, the worst to 0 and the best to 1."""
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    return {key: (score - low) / (high - low) if high > low else 1.0 for key, score in scores.items()}


def of_maximum(scores: Mapping[int, float]) -> dict[int, float]:
    """Return scores as shares of the best."""
    high = max(scores.values(), default=0.0)
    return {key: score / high if high > 0 else 0.0 for key, score in scores.items()}


def fused(
    keyword: Mapping[int, float],
    vector: Mapping[int, float],
    weights: tuple[float, float],
    held: float = 1.0,
    unknown: Collection[int] = (),
) -> dict[int, float]:
    """Fuse keyword scores (as shares of the best) and cosines (within their band) by weight.

    Cosines are scaled within the pool because embedders use only a narrow band. Words count less if even the best
    keyword match covers little of the question (`held`): it shares only common words. Passages without a vector
    (`unknown`) are scored by words alone.
    """
    vector_weight, keyword_weight = weights
    if vector:
        keyword_weight *= min(held / HELD, 1.0)
        # With few vectors the nearest may be far away: their order says less.
        vector_weight *= (1 - len(unknown) / len(keyword)) ** 0.5 if keyword else 1.0
    total = vector_weight + keyword_weight or 1.0
    words_, meaning = of_maximum(keyword), min_max(vector)
    meaning |= {key: words_.get(key, 0.0) for key in unknown}
    return {
        key: (vector_weight * meaning.get(key, 0.0) + keyword_weight * words_.get(key, 0.0)) / total
        for key in keyword.keys() | vector.keys()
    }


def neighbour_boost(scores: Mapping[int, float], places: Mapping[int, Place]) -> dict[int, float]:
    """Return the score that a turn inherits from adjacent turns: question and answer are found together."""
    at = {(place.document_id, place.position): place.id for place in places.values() if place.kind == "turn"}
    boosts = dict.fromkeys(at.values(), 0.0)
    for (document, position), key in at.items():
        if score := scores.get(key):  # most have none
            for step, share in _NEIGHBOURS.items():
                beside = at.get((document, position - step))
                if beside is not None:
                    boosts[beside] += share * score
    return boosts


@bounded(512 * 1024)  # called for every turn that is considered
def asks(text: str) -> bool:
    """Return whether much of a turn is questions: it waits for an answer more than it has one."""
    questions = (len(part[0]) for part in _SENTENCES.finditer(text) if part["end"] in _ASKING_ENDS)
    return sum(questions) >= ASKS * max(len(text), 1)


def by_day(scores: Mapping[int, float], told: Sequence[int], only_days: bool) -> dict[int, float]:
    """Raise the scores of passages of the days asked about; keep their order if nothing else is asked."""
    if not only_days:
        return {key: max(scores.get(key, 0.0), ONLY_THE_DAY) for key in told}
    best = 1.0 + max(scores.values(), default=0.0)
    return {key: best * (1 - place / (4 * len(told))) for place, key in enumerate(told)}


def asked_about(question: str, speakers: Iterable[str]) -> str:
    """Return the one speaker whom the question names, or means by "I" or "you"; empty if none or several."""
    asked = {name for word in words(question) for name in (word, _owner(word))}
    named = {speaker for speaker in speakers if speaker and asked & set(words(speaker))}
    if not named:
        spoken = {word.replace("’", "'").partition("'")[0] for word in asked}
        meant = (_PERSON if spoken & _I else frozenset()) | (_AGENT if spoken & _YOU else frozenset())
        named = {speaker for speaker in speakers if speaker.casefold() in meant}
    return named.pop() if len(named) == 1 else ""


def without_names(question: str, speakers: Iterable[str]) -> str:
    """Return the question without the names of speakers; unchanged if it names none or nothing else."""
    names = {name for speaker in speakers for name in words(speaker)}
    asked = question.split()
    kept = [word for word in asked if not {_owner(part) for part in words(word)} & names]
    named = len(kept) < len(asked) and set(terms_of(question)) - names
    return " ".join(kept) if named else question


def _owner(word: str) -> str:
    """Return the owner in a possessive: "caroline's" is Caroline's, "james'" James's."""
    return word.removesuffix("s").rstrip("'’") if "'" in word or "’" in word else word


def covered(question: str, text: str) -> float:
    """Return the share of the question's terms that the text contains, in any inflection."""
    terms = terms_of(question)
    held = {word[: max(4, len(word) - 3)] for word in words(text)}
    characters = set(spaced(text).split())
    found = sum(term[: max(4, len(term) - 3)] in held or set(term.split()) <= characters for term in terms)
    return found / len(terms) if terms else 0.0


@functools.lru_cache(maxsize=1024)  # called for every passage
def recency(day: str, today: date, half_life: int) -> float:
    """Return 2^(-age / half-life), at least a half, so that old notes stay findable; 1 without a day."""
    try:
        age = (today - date.fromisoformat(day)).days if day else 0
    except ValueError:
        return 1.0
    return max(float(2.0 ** (-max(age, 0) / half_life)), OLDEST_SHARE)


@functools.lru_cache(maxsize=64)  # called for every passage
def project_share(project: str, own: str, question: str) -> float:
    """Return the factor for a passage's project; one named in the question counts as the person's own."""
    if not own or project in ("", own):
        return 1.0
    asked = {part for word in words(question) for part in _PARTS.split(word)}
    return 1.0 if set(_PARTS.split(project)) <= asked else OTHER_PROJECT


def crowding(files: Sequence[int]) -> list[float]:
    """Return the factor of each section, given the files of the sections before it."""
    seen: Counter[int] = Counter()
    shares = []
    for file in files:
        seen[file] += 1
        shares.append(1.0 if seen[file] <= SAME_FILE else CROWDED)
    return shares


def mmr(
    ranked: Sequence[int],
    scores: Mapping[int, float],
    texts: Mapping[int, str],
    limit: int,
    share: float = 0.7,
) -> list[int]:
    """Return the best passages that are also diverse: `share` for relevance, the rest against similarity to those
    chosen.
    """
    relevance = min_max({key: scores[key] for key in ranked})
    bags = {key: frozenset(words(texts[key])) for key in ranked}
    chosen: list[int] = []
    left = list(ranked)
    while left and len(chosen) < limit:
        best = max(
            left,
            key=lambda key: (
                share * relevance[key]
                - (1 - share) * max((overlap(bags[key], bags[other]) for other in chosen), default=0.0)
            ),
        )
        left.remove(best)
        chosen.append(best)
    return chosen


def snippet(text: str, start_line: int, question: str, limit: int = SNIPPET) -> tuple[int, int, str]:
    """Return whole lines of up to `limit` characters that say most about the question; only a longer line is cut.

    Headings without text, as at the start of a page that is still empty, are left out.
    """
    lines = text.split("\n")
    empty = _empty_headings(lines)
    start_line, lines = start_line + empty, lines[empty:]
    text = "\n".join(lines)
    if len(text) <= limit:
        return start_line, start_line + len(lines) - 1, text
    asked = [term.replace(" ", "")[: max(4, len(term) - 3)] for term in terms_of(question)]
    worth = [sum(term in line for term in asked) for line in (line.casefold() for line in lines)]
    first, last = _best_run([len(line) for line in lines], worth, limit)
    shown = "\n".join(lines[first : last + 1])
    if len(shown) > limit:
        shown = shown[: limit - 1].rstrip() + "…"
    return start_line + first, start_line + last, shown


def _empty_headings(lines: Sequence[str]) -> int:
    """Return how many lines at the start belong to sections without a text."""
    above: list[tuple[int, int]] = []  # level and line of the headings before the first text
    for at, line in enumerate(lines):
        if line.startswith("#"):
            above.append((len(line) - len(line.lstrip("#")), at))
        elif line.strip():
            break
    empty = [
        place
        for place, (level, _) in enumerate(above)
        if any(next_ <= level for next_, _ in above[place + 1 :])
    ]
    return above[empty[-1] + 1][1] if empty else 0


def _best_run(lengths: Sequence[int], worth: Sequence[int], limit: int) -> tuple[int, int]:
    """Return first and last line of the most valuable run that fits; the earlier one of equals."""
    best = (-1, 0, 0)
    for first in range(len(lengths)):
        size, value, last = -1, 0, first
        for number in range(first, len(lengths)):
            size += lengths[number] + 1
            if size > limit and number > first:
                break
            value += worth[number]
            last = number
        if value > best[0]:
            best = (value, first, last)
    return best[1], best[2]
