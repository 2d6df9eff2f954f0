"""Anchors: what the user said of themselves, or is torn about, in the last two hours; continuity keeps it in view."""

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
# Who asks states nothing, with or without a mark at the end.
_ASKS = regex(
    r"\?\s*$|^\W*(?:and |but |so |ok |und |aber )?(?:who|whom|whose|what|which|when|where|why|how|wer|wen|wem|was|"
    r"wann|wo|warum|wie|welche\w*|can|could|should|do|does|did|is|are|am|will|kann|soll|bin|ist|wird)\b",
    re.IGNORECASE,
)
_BEGIN = (
    r"(?:^|[,;:.!–—(-]\s*|\b(?:and|but|so|hi|hello|hey|btw|well|because|since|as|und|aber|hallo|weil|da|please|just|bitte)"
    r"\s+)"
)
# Nouns of what somebody is, by their endings and in a closed list: "a bit", "a fan" and "an hour" have none of these.
_PERSON = (
    r"(?:(?!(?:bigger|better|former|later|further|number|matter|moment|different|important|recent|consent|current|"
    r"other|either|over|under|after|never|error|order|letter|winner|loser|bisschen|hinter|unter|weiter|später|fertig)\b)"
    r"[^\W\d]{2,}(?:er|or|ist|ian|ant|ent|eer|yst|man|woman|in|eur|ling|mann|frau|kraft)|"
    r"[^\W\d]*(?:architect|nurse|chef|cook|vegan|diabetic|dad|mom|mum|widow|coach|pilot|judge|clerk|guide|celiac|dev|admin|native|"
    r"veteran|twin|monk|nun|muslim|jew|arzt|koch|azubi|hebamme|witwe|waise|jude))"
)
_ROLE = rf"(?:[^\W\d][\w-]* ){{0,3}}?{_PERSON}\b(?! (?:than|als)\b)"
_NO_NAME = (
    r"(?:back|later|when|if|once|maybe|again|now|tomorrow|tonight|today|asap|at|on|in|a|an|the|nicht|zurück|morgen|"
    r"später|crazy|stupid|old|names|wenn)\b"
)
_NO_PLACE = r"(?:it|this|that|them|home|night|once|me|now|least|most|an? (?:hour|while|day|week)|fear|hope|dread|\d)\b"
_KINDS: tuple[tuple[str, float, re.Pattern[str]], ...] = (
    (
        "identity",
        1.0,
        regex(
            rf"{_BEGIN}(?:my name is\b|(?:you can |people |everybody |everyone |they |friends )?calls? me "
            rf"(?!{_NO_NAME})[^\W\d][\w'’-]+(?=\s*(?:[.,;!)]|$|and\b|not\b|instead\b|please\b))|"
            rf"(?:i am|i['’]m) an? {_ROLE}|(?:i am|i['’]m) the {_ROLE} (?:of|at)\b|i work as\b|"
            rf"i work (?:at|for) (?!{_NO_PLACE})|i live in (?!{_NO_PLACE})|i was born\b|mein name ist\b|ich heiß?s?e\b|"
            rf"nenn(?:t)? mich (?:bitte |einfach |doch )?(?!{_NO_NAME})[^\W\d][\w'’-]+(?=\s*(?:[.,;!)]|$|und\b))|"
            rf"ich bin (?:eine? |die |der )?{_ROLE}|ich arbeite als\b|"
            r"ich arbeite (?:bei|für) (?:(?:der|die|dem|den|einer?|einem) |(?-i:[A-ZÄÖÜ]))|ich wohne in\b)",
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
            r"\b(?:i'?m (?:worried about|not sure about|torn|frustrated (?:with|by))|i can'?t decide|"
            r"on the one hand|i disagree|we need to talk|einerseits|"
            r"ich (?:mache mir sorgen|bin (?:unsicher|frustriert|hin- und hergerissen)))\b",
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
    if _ASKS.search(sentence):
        return None
    return next(((name, weight) for name, weight, pattern in _KINDS if pattern.search(sentence)), None)
