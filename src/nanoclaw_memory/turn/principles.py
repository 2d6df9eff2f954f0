"""Principles: read from SOUL.md, and where the last answers slipped from them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nanoclaw_memory.text import one_line, words

MOST = 8
_HEADING = re.compile(r"^#{1,6}\s+(?P<title>.+?)\s*#*$")
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+(?P<text>.+)$")
_FILLER = re.compile(
    r"^\W*(?:great question|good question|certainly|absolutely|of course|sure thing|i'?d be (?:happy|glad) to|"
    r"i would be (?:happy|glad) to|i hope this (?:helps|finds)|as an ai|tolle frage|gute frage|sehr gerne|"
    r"selbstverständlich)\b",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"\b(?:perhaps|maybe|it (?:seems|might|could)|possibly|i think|sort of|kind of|vielleicht|eventuell)\b",
    re.I,
)


def read(soul: str) -> list[str]:
    """The names under "Core Principles" (or "Principles"), in order."""
    found: list[str] = []
    inside = False
    for line in soul.splitlines():
        heading = _HEADING.match(line)
        if heading:
            title = heading["title"].casefold()
            inside = "principle" in title or "prinzip" in title or "grundsätze" in title
            continue
        bullet = _BULLET.match(line) if inside else None
        if bullet:
            found.append(_name(bullet["text"]))
    return [name for name in dict.fromkeys(found) if name][:MOST]


def slips(agent: str, user: str, names: Sequence[str]) -> dict[str, str]:
    """Principles that an answer slipped from, and how."""
    found = {}
    for name in names:
        about = set(words(name))
        if about & {"directness", "direct", "concise", "brevity", "honest", "plain", "direktheit", "kürze"}:
            if _FILLER.match(agent):
                found[name] = "opened with filler"
            elif len(_HEDGE.findall(agent)) >= 5:
                found[name] = "hedged throughout"
        if about & {"brevity", "concise", "brief", "kürze"} and len(user) <= 80 and len(agent) >= 1_500:
            found[name] = "answered a brief question at length"
    return found


def _name(text: str) -> str:
    """The name of a principle: what stands before a colon or dash, or the first words."""
    plain = re.sub(r"[*_`]", "", text)
    head = re.split(r"\s*[:–—]\s*|\s-\s", plain, maxsplit=1)[0]
    return one_line(" ".join(head.split()[:4]))[:40].rstrip(".").casefold() if head else ""
