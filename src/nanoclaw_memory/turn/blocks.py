"""Render blocks as text, with a closing mark by which our own blocks are recognised and removed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from nanoclaw_memory import tokens
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.rendering import CLOSING, LABEL, LABELS, digest, enclosed, inert_line, opening_of
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import Block

KEEPING = "KEEPING"  # the label of the report on a request not to remember something
GRAPH_MEMORY, RECALLED, CONTINUITY, STABILITY, GROWTH, POLICIES = LABELS

MAX_LINES = 100
MAX_LINE = 1_000
MAX_CHARS = 12_000
MOST_CLOSINGS = 64
_LABEL = regex(rf"{LABEL}\Z")


def sound_label(label: str, plugin: str) -> str:
    """Return the label if it is valid, else one derived from the plugin's name."""
    if _LABEL.match(label):
        return label
    made = re.sub(r"[^A-Z0-9 _-]", " ", one_line(plugin).upper()).strip()[:40]
    return made if _LABEL.match(made) else "PLUGIN"


def render(label: str, fence: str, lines: Iterable[str], budget: int) -> tuple[Block | None, int]:
    """Render the first lines that fit the budget as a block; return it and how many lines (or parts) were left out.

    No line can end the block or begin another one.
    """
    given, left_out = _sound(label, lines)
    kept = given
    text = _text(label, fence, kept)
    cost = tokens.estimate(text)
    if cost > budget:
        kept = _fitting(given, budget - tokens.estimate(_text(label, fence, [])))
    while kept:
        if len(kept) < len(given):
            text = _text(label, fence, kept)
            cost = tokens.estimate(text)
        if cost <= budget:
            return Block(label, text, cost), left_out + len(given) - len(kept)
        kept = kept[:-1]  # a block may cost a little more than the sum of its lines
    return None, left_out + len(given)


def _sound(label: str, lines: Iterable[str]) -> tuple[list[str], int]:
    """Return the lines that fit the limits of every block, and how many lines (or parts) were left out."""
    kept: list[str] = []
    left_out = 0
    left = MAX_CHARS
    source = iter(lines)
    for line in itertools.islice(source, MAX_LINES):
        plain = inert_line(line[: MAX_LINE * 4], label=label)
        if len(plain) > MAX_LINE:
            plain, left_out = plain[:MAX_LINE] + "…", left_out + 1
        if len(plain) > left:
            left_out += 1
            break
        if plain:
            kept.append(plain)
            left -= len(plain)
    return kept, left_out + sum(1 for _ in source)


def _fitting(lines: list[str], budget: int) -> list[str]:
    """Return the first lines that fit."""
    spent = 0
    for place, line in enumerate(lines):
        spent += tokens.estimate(line + "\n")
        if spent > budget:
            return lines[:place]
    return lines


def strip(text: str) -> str:
    """Remove our own blocks from a text; text that only resembles one stays.

    A block is ours if its closing mark contains the digest of the text before it.
    """
    pieces: list[str] = []
    position = 0
    for closing in itertools.islice(CLOSING.finditer(text), MOST_CLOSINGS):
        opening = opening_of(closing[1])
        start = text.rfind(opening, max(position, closing.start() - 2 * MAX_CHARS), closing.start())
        if start >= 0 and digest(text[start : closing.start()]) == closing[2]:
            pieces.append(text[position:start].rstrip("\r\n"))
            position = closing.end()
    if not position:
        return text
    rest = [*pieces, text[position:]]
    return "\n".join(piece.strip("\r\n") for piece in rest if piece.strip())


def _text(label: str, fence: str, lines: list[str]) -> str:
    return enclosed(f"[{label}]", "\n".join([*([fence] if fence else []), *lines]), f"/{label}")
