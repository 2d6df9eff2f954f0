"""Anchors: statements of the user in the last two hours that continuity keeps in view."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.clock import moment_of
from nanoclaw_memory.intake.authorship import read
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import one_line, sentences
from nanoclaw_memory.types import Exchange

MOST = 15
LIFETIME = timedelta(hours=2)
MAX_TEXT = 200
_KINDS: tuple[tuple[str, float, re.Pattern[str]], ...] = (
    (
        "identity",
        1.0,
        regex(
            r"\b(?:my name is|call me|i am (?:a|an|the)\b|i'm (?:a|an|the)\b|i work (?:as|at|for)\b|i live in\b|"
            r"i was born|who (?:are you|am i)|mein name ist|ich heiße|nenn mich|ich bin (?:ein|eine|der|die)\b|"
            r"ich arbeite (?:als|bei)\b|ich wohne in\b|wer bist du)",
            re.IGNORECASE,
        ),
    ),
    (
        "contradiction",
        1.0,
        regex(
            r"\b(?:but (?:earlier |before |yesterday )?you (?:just )?(?:said|told|wrote)|that contradicts|"
            r"you (?:said|told me) the opposite|i changed my mind|aber (?:vorhin |gestern )?hast du|das widerspricht|"
            r"ich habe es mir anders überlegt)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "tension",
        0.7,
        regex(
            r"\b(?:i'?m (?:worried|not sure|torn|stuck|frustrated|afraid)|i can'?t decide|on the one hand|i disagree|"
            r"we need to talk|ich (?:mache mir sorgen|bin (?:unsicher|frustriert|hin- und hergerissen))|einerseits)\b",
            re.IGNORECASE,
        ),
    ),
)


class Anchor(msgspec.Struct, frozen=True):
    """A statement worth keeping in view."""

    kind: str
    weight: float
    text: str
    at: str


def find(exchanges: Sequence[Exchange], now: datetime) -> list[Anchor]:
    """Return the anchors among exchanges, by weight, then newest first.

    They are read from the archive each time, so that they survive between processes and vanish when forgotten.
    """
    found = []
    for exchange in exchanges:
        if now - moment_of(exchange.timestamp) > LIFETIME:
            continue
        stated = _stated(exchange.user_message, exchange.foreign_lines)
        found += [Anchor(kind, weight, text, exchange.timestamp) for kind, weight, text in stated]
    unique = {anchor.text.casefold(): anchor for anchor in found}
    return sorted(unique.values(), key=lambda anchor: (anchor.weight, anchor.at), reverse=True)[:MOST]


@bounded(512 * 1024)  # a conversation is read again at every message
def _stated(message: str, foreign_lines: tuple[int, ...]) -> tuple[tuple[str, float, str], ...]:
    """Return kind, weight and text of the anchors in a person's own words."""
    own = read(message, known=foreign_lines).text[:4_000]
    kinds = ((_kind(sentence), sentence) for sentence in sentences(own))
    return tuple((*kind, one_line(sentence)[:MAX_TEXT]) for kind, sentence in kinds if kind)


def _kind(sentence: str) -> tuple[str, float] | None:
    return next(((name, weight) for name, weight, pattern in _KINDS if pattern.search(sentence)), None)
