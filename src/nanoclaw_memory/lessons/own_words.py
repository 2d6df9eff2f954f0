"""Separate what a person wrote from what they quoted, pasted, fenced or forwarded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from nanoclaw_memory.patterns import regex

if TYPE_CHECKING:
    from nanoclaw_memory.providers.judge import Judge

MAX_CHARS = 8_000
OWN_FROM = 0.5  # probability from which a line is the person's own
OWN_AFTER_MAIL = 0.9  # the same for the last paragraph under a forwarded mail
LONG_QUOTE = 8  # words of a quotation that is more than a name for something
# Clients put their own context into a message in such elements; people paste HTML.
_ELEMENT = regex(r"<([A-Za-z][\w-]*)\b[^<>\n]*>.*?</\1\s*>", re.DOTALL)
_FENCE = regex(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_QUOTE = regex(r"\"([^\"\n]*)\"|“([^”\n]*)”|„([^“”\"\n]*)[“”\"]|«([^»\n]*)»|»([^«\n]*)«")
_QUOTED_LINE = regex(r"\s*>|(?: {4}|\t)|\$ ")
_MAIL_HEADER = regex(
    r"(?:from|to|cc|subject|date|sent|von|an|betreff|datum|gesendet)\s*: ?\S|-{2,} ?\w.*\w ?-{2,}\s*$|"
    r"(?:on|am)\b.{6,80}\b(?:wrote|schrieb)\b.{0,60}:\s*$",
    re.IGNORECASE,
)
_SALUTATION = regex(
    r"(?:dear|hi|hello|hey|sehr geehrte\w*|liebe[rs]?|hallo|guten tag)\b[^.!?]{0,50}[,!]?\s*$", re.I
)
_STAMPED = regex(r"\W{0,2}(?:\d{4}-\d\d-\d\d|\d{1,2}:\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4})\b")
_SPEAKER = regex(r"[\w.@ -]{1,30}:\s+\S")
_MACHINE = regex(
    r"Traceback \(|\s*File \"|\s+at [\w$.<>]+\(|\w*(?:Error|Exception|Warning): |"
    r"\W{0,2}(?:ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL)\b|[\w./\\-]+\.\w{1,5}:\d+|@@ |diff --git |[+-]{3} [ab]/"
)


def own_words(message: str, judge: Judge | None = None) -> str:
    """The person's own lines of a message; long quotations inside them are left out."""
    text = _ELEMENT.sub("\n", message[:MAX_CHARS])
    lines = _FENCE.sub("\n", text).split("\n")
    foreign = _foreign(lines)
    written = [number for number, line in enumerate(lines) if line.strip()]
    if judge is not None and len(written) > 1:
        _ask(judge, lines, foreign)
    elif len(written) > 1:
        _introduced(lines, foreign)
    kept = (line for number, line in enumerate(lines) if number not in foreign)
    return _QUOTE.sub(_short_quote, "\n".join(kept)).strip()


def _short_quote(found: re.Match[str]) -> str:
    return "…" if len(found[0].split()) >= LONG_QUOTE else found[0]


def _foreign(lines: Sequence[str]) -> set[int]:
    """The numbers of the lines whose form shows that somebody else wrote them."""
    found = {number for number, line in enumerate(lines) if _QUOTED_LINE.match(line) or _MACHINE.match(line)}
    for pattern in (
        _STAMPED,
        _SPEAKER,
    ):  # one such line may be the person's; two in a row are a log or a chat
        marked = [number for number, line in enumerate(lines) if pattern.match(line)]
        found.update(number for pair in pairwise(marked) if pair[1] == pair[0] + 1 for number in pair)
    if any(lines[number].startswith("-") for number in range(len(lines))) and any(
        line.startswith("+") for line in lines
    ):
        found.update(number for number, line in enumerate(lines) if line[:1] in "+-" and line)
    start = _mail(lines)
    return found | set(range(start, len(lines)))


def _mail(lines: Sequence[str]) -> int:
    """Where a forwarded mail or a letter begins; behind the last line when there is none."""
    for number, line in enumerate(lines):
        after_blank = number > 0 and not lines[number - 1].strip()
        if _MAIL_HEADER.match(line) or (after_blank and _SALUTATION.match(line)):
            return number
    return len(lines)


def _ask(judge: Judge, lines: Sequence[str], foreign: set[int]) -> None:
    """Let the judge decide on lines whose form says nothing, and on the last paragraph under a mail."""
    probabilities = judge.own_lines(lines)
    mail, last = _mail(lines), _last_paragraph(lines)
    for number, probability in enumerate(probabilities):
        if number >= mail:
            if number >= last > mail + 1 and probability >= OWN_AFTER_MAIL:
                foreign.discard(number)
        elif probability < OWN_FROM:
            foreign.add(number)


def _last_paragraph(lines: Sequence[str]) -> int:
    blank = [number for number, line in enumerate(lines) if not line.strip()]
    return blank[-1] + 1 if blank else 0


def _introduced(lines: Sequence[str], foreign: set[int]) -> None:
    """Without the judge: what a question or a colon introduces, and what a closing question is about, is foreign."""
    blank = [number for number, line in enumerate(lines) if not line.strip()]
    if not blank:
        return
    first, last = blank[0], blank[-1]
    if first and lines[first - 1].rstrip().endswith((":", "?")):
        foreign.update(range(first, len(lines)))
    elif any(line.rstrip().endswith("?") for line in lines[last:]) and last > 1:
        foreign.update(range(last))
