"""Topics: what a conversation is about, and whether it is active, fixated or fading."""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.store.phrases import FORGOTTEN
from nanoclaw_memory.text import STOP_WORDS, language

WINDOW = 6
MOST_SHOWN = 4
LONGEST = 4  # words of a topic
MOST_READ = 1_500  # characters of a message that determine its topic
_DETERMINERS = frozenset(
    "a an the this that these those my your his her its our their me you him us them it ein eine einen einem einer der"
    " die das den dem mein meine meinen unser unsere unseren dein deine mir mich dir dich ihn ihm uns euch".split()
)
_TOKEN = regex(r"[^\W_][\w'’-]*|[.!?;:,()\n\"“”`]", re.UNICODE)


class Topic(msgspec.Struct, frozen=True):
    """A topic and its state; `freshness` falls with every mention in a row."""

    label: str
    state: str  # active, fixated, fading
    freshness: float


def phrase(text: str) -> str:
    """Return the topic of a text: its heaviest run of content words; empty if it has none."""
    return _phrase(text[:MOST_READ])


@bounded(512 * 1024)  # a conversation returns to the same exchanges
def _phrase(text: str) -> str:
    runs = _runs(text)
    if not runs:
        return ""
    folded = [[word.casefold() for word in run] for run in runs]
    counts = Counter(word for run in folded for word in set(run))
    weights = [
        _weight(run[:LONGEST], words[:LONGEST], counts) for run, words in zip(runs, folded, strict=True)
    ]
    return " ".join(runs[weights.index(max(weights))][:LONGEST])  # the first of equals


def is_only(text: str, topic: str) -> bool:
    """Return whether a text names a topic and adds nothing to it."""
    found = {word.casefold() for run in _runs(text) for word in run}
    return bool(topic) and found <= {word.casefold() for word in topic.split()} and len(text) < 200


def track(exchanges: Sequence[tuple[str, str]]) -> list[Topic]:
    """Return the topics of the last exchanges (message and answer, oldest first), most active first.

    Only the person introduces topics: a word that only the agent uses ("Noted.") is not one.
    """
    last = exchanges[-WINDOW:]
    nouns = {word for said, _ in last for word in _nouns(said)}
    own = {label for said, _ in last for label in _labels(said) if _last_part(label) in nouns}
    window = [own.intersection(_labels(f"{said}\n{answered}")) for said, answered in last]
    counts = Counter(label for labels in window for label in labels)
    if not window:
        return []
    found = [_judged(label, count, window) for label, count in counts.items()]
    kept = _without_parts([topic for topic in found if topic is not None], counts)
    order = {"fixated": 0, "active": 1, "fading": 2}
    return sorted(kept, key=lambda topic: (order[topic.state], -counts[topic.label], topic.label))[
        :MOST_SHOWN
    ]


def _judged(label: str, count: int, window: Sequence[set[str]]) -> Topic | None:
    """Return the topic of a recurring label, or None."""
    freshness = round(1.0 / count, 2)
    if count < 2:
        return None
    if count >= 5:
        return Topic(label, "fixated", freshness)
    recent = any(label in labels for labels in window[-2:])
    return Topic(label, "active" if recent else "fading", freshness)


def _without_parts(found: Sequence[Topic], counts: Counter[str]) -> list[Topic]:
    """Drop single words that are part of a pair."""
    pairs = [set(topic.label.split("-")) for topic in found if "-" in topic.label]
    return [
        topic
        for topic in found
        if "-" in topic.label or not any(topic.label in pair for pair in pairs) or counts[topic.label] >= 5
    ]


def _labels(text: str) -> list[str]:
    """Return content words and adjacent pairs of them as labels: `payment`, `payment-api`."""
    found = []
    for run in _runs(text[:4_000]):
        folded = [word.casefold() for word in run]
        found += folded
        found += [f"{first}-{second}" for first, second in itertools.pairwise(folded)]
    return found


def _nouns(text: str) -> Iterator[str]:
    """Yield the last parts of the content words that may name something, without verbs and, in German, what has no
    capital.

    A word before an article or a pronoun is a verb ("the planner shows a berth"), unless it is a name.
    """
    german = language(text) == "german"
    for run, following in _runs_with_next(text[:4_000]):
        acts = following.casefold() in _DETERMINERS and run[-1].islower()
        for word in run[:-1] if acts else run:
            if not german or word[0].isupper() or not word.isalpha():
                yield _last_part(word.casefold())


def _last_part(word: str) -> str:
    return word.rpartition("-")[2]


def _weight(run: Sequence[str], folded: Sequence[str], counts: Counter[str]) -> float:
    weight = 0.0
    for word, plain in zip(run, folded, strict=True):
        weight += counts[plain] + (0.5 if len(word) > 6 or word[0].isupper() else 0.0)
    return weight


def _runs(text: str) -> list[list[str]]:
    """Return runs of adjacent content words."""
    return [run for run, _ in _runs_with_next(text)]


def _runs_with_next(text: str) -> list[tuple[list[str], str]]:
    """Return runs of adjacent content words, each with the word or sign behind it."""
    runs: list[tuple[list[str], str]] = []
    run: list[str] = []
    for token in _TOKEN.findall(text.replace(FORGOTTEN, ",")):
        if word := _content_word(token):
            run.append(word)
        elif run:
            runs.append((run, token))
            run = []
    return [*runs, (run, "")] if run else runs


@bounded(1024 * 1024)  # a conversation uses the same words again and again
def _content_word(token: str) -> str:
    """Return the content word of a token; empty if it has none: "hello", "8-12", "mon-fri"."""
    parts = token.casefold().replace("’", "'").split("-")
    if len(token) <= 2 or all(part.isdigit() or part in empty_words() for part in parts):
        return ""
    return token.removesuffix("'s").removesuffix("’s")


@functools.lru_cache(maxsize=1)
def empty_words() -> frozenset[str]:
    """Return words that are never a topic: of asking, of acting in general, of time."""
    text = Path(__file__).with_name("empty_words.txt").read_text(encoding="utf-8")
    return STOP_WORDS.union(text.split())
