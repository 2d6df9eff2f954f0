"""Scores to an order: normalise, fuse, age, spread, and cut a snippet; pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from nanoclaw_memory.store.keywords import spaced, terms_of
from nanoclaw_memory.text import words

SNIPPET = 700
OLDEST_SHARE = 0.25


def min_max(scores: Mapping[int, float]) -> dict[int, float]:
    """Scores between 0 and 1: the worst of the pool is 0, the best 1."""
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    return {key: (score - low) / (high - low) if high > low else 1.0 for key, score in scores.items()}


def of_maximum(scores: Mapping[int, float]) -> dict[int, float]:
    """Scores as shares of the best."""
    high = max(scores.values(), default=0.0)
    return {key: score / high if high > 0 else 0.0 for key, score in scores.items()}


def recency(day: str, today: date, half_life: int) -> float:
    """2^(-age / half-life), never under a quarter: an old note fades but stays findable; 1 without a day."""
    try:
        age = (today - date.fromisoformat(day)).days if day else 0
    except ValueError:
        return 1.0
    return max(float(2.0 ** (-max(age, 0) / half_life)), OLDEST_SHARE)


def mmr(
    ranked: Sequence[int],
    scores: Mapping[int, float],
    texts: Mapping[int, str],
    limit: int,
    share: float = 0.7,
) -> list[int]:
    """The best that also say something new: relevance `share`, against likeness to what is chosen already."""
    relevance = min_max({key: scores[key] for key in ranked})
    bags = {key: frozenset(words(texts[key])) for key in ranked}
    chosen: list[int] = []
    left = list(ranked)
    while left and len(chosen) < limit:
        best = max(
            left,
            key=lambda key: (
                share * relevance[key]
                - (1 - share) * max((_overlap(bags[key], bags[other]) for other in chosen), default=0.0)
            ),
        )
        left.remove(best)
        chosen.append(best)
    return chosen


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0


def snippet(text: str, start_line: int, question: str, limit: int = SNIPPET) -> tuple[int, int, str]:
    """The lines that say most about the question, whole lines up to `limit` characters; only a line longer
    than that is cut."""
    lines = text.split("\n")
    if len(text) <= limit:
        return start_line, start_line + len(lines) - 1, text
    asked = set(terms_of(question))
    worth = [len(asked & set(words(spaced(line)))) for line in lines]
    first, last = _best_run([len(line) for line in lines], worth, limit)
    shown = "\n".join(lines[first : last + 1])
    if len(shown) > limit:
        shown = shown[: limit - 1].rstrip() + "…"
    return start_line + first, start_line + last, shown


def _best_run(lengths: Sequence[int], worth: Sequence[int], limit: int) -> tuple[int, int]:
    """First and last line of the run that fits and is worth most; the earlier one of equals."""
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
