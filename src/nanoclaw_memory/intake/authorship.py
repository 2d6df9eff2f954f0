"""Separate a person's own words from what they quoted, pasted, fenced or forwarded, and from what a client added."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.intake.signs import (
    BEHIND_COLON,
    INTRODUCED,
    UNSPACED,
    is_label,
    is_own_rule,
    names_another,
)
from nanoclaw_memory.patterns import regex

if TYPE_CHECKING:
    from nanoclaw_memory.providers.judge import Judge
    from nanoclaw_memory.types import Exchange

MAX_CHARS = 8_000
OWN_FROM = 0.5  # minimal probability that a line is the person's own
OWN_AFTER_MAIL = 0.9  # the same for the last paragraph under a forwarded mail
LONG_QUOTE = 8  # words of a quotation that is more than a name for something
LONG = 600  # characters of a message that hardly anybody types; five of a thousand corrections are longer
# Clients put their own context into a message in elements with such names; a truncated one has no end.
_CONTEXT = regex(r"<([A-Za-z]\w*[_-][\w-]*)\b[^<>]*>.*?(?:</\1\s*>|\Z)", re.DOTALL)
_ELEMENT = regex(r"<([A-Za-z]\w*)\b[^<>\n]*>.*?</\1\s*>", re.DOTALL)
_LEFT_OVER = regex(r"\A.*</[A-Za-z][\w-]*\s*>", re.DOTALL)  # an element that was closed twice
_FENCE = regex(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_QUOTE = regex(
    r"\"([^\"\n]*)\"|“([^”\n]*)”|„([^“”\"\n]*)[“”\"]|«([^»\n]*)»|»([^«\n]*)«|‘([^’\n]*)’(?!\w)|"
    r"`([^`\n]*)`|「([^」\n]*)」|『([^』\n]*)』|‹([^›\n]*)›|›([^‹\n]*)‹|‚([^‘’\n]*)[‘’]|"
    r"(?<!\w)'((?:[^'\n]|(?<=\w)'(?=\w))*)'(?!\w)"
)
_QUOTED_LINE = regex(r"\s*>|(?: {4}|\t)|\$ ")
_MAIL_HEADER = regex(
    r"(?:from|to|cc|subject|date|sent|von|an|betreff|datum|gesendet)\s*: ?\S|-{2,} ?\w.*\w ?-{2,}\s*$|"
    r"(?:begin forwarded message|anfang der weitergeleiteten nachricht)\b|"
    r"(?:on|am)\b.{6,80}\b(?:wrote|schrieb)\b.{0,60}:\s*$",
    re.IGNORECASE,
)
_SALUTATION = regex(
    r"(?:dear|hi|hello|hey|sehr geehrte\w*|liebe[rs]?|hallo|guten tag)\b[^.!?]{0,50}[,!]?\s*$", re.I
)
_LEVEL = r"(?:ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL|NOTICE|CRITICAL)"
# One such line may be the person's, unless it goes on with a level, a host or a request.
_LOGGED = (
    rf"\W{{0,2}}\d{{4}}-\d\d-\d\d[T ]?[\d:.,]*(?:Z|[+-]\d\d:?\d\d)?\W{{1,3}}{_LEVEL}\b|"
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S|\d{1,3}(?:\.\d{1,3}){3} \S+ \S+ \[|[IWEF]\d{4} \d\d:\d\d:|"
    r"(?:[\w.]+=(?:\"[^\"]*\"|\S+)\s+){2,}[\w.]+=|\s*\{\".*\}\s*$|npm (?:ERR!|(?:WARN|error|warn)\b)|"
    r"goroutine \d+ \[|panic: |(?:---|===) (?:FAIL|PASS|RUN|SKIP)\b"
)
_STAMPED = regex(r"\W{0,2}(?:\d{4}-\d\d-\d\d|\d{1,2}:\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4})\b")
_SPEAKER = regex(r"[\w.@ -]{1,30}:\s+\S")
_NUMBER = regex(r"\d+")
REPEATED = 3  # lines that differ only in their numbers ask nothing, whoever wrote them
_TERMINAL = "\x1b"  # nobody types it: a line with it was copied
_MACHINE = regex(
    r"Traceback \(|\s*File \"|\s+at [\w$.<>]+\(|\w*(?:Error|Exception|Warning): |"
    rf"\W{{0,2}}{_LEVEL}\b|{_LOGGED}|"
    r"[\w./\\-]+\.\w{1,5}:\d+|@@ |diff --git |"
    r"[+-]{3} [ab]/|"
    rf"\s*[{{}}\[\]]+,?\s*$|\s*\"[\w .-]+\"\s*:|\s*\|.*\|\s*$|\s*<[!/\w]|.*{_TERMINAL}"
)
_LONG_UNSPACED = regex(rf"(?:{UNSPACED}){{2}}")
_LONG_LINE = regex(rf".{{{LONG},}}")
_MARKS = frozenset(
    f'\n\t<>`~:：∶"“„«»‘‚‹›「『$|{{}}[]{_TERMINAL}'
)  # without any of these, no part can be recognised as foreign


class OwnWords(msgspec.Struct, frozen=True):
    """A message with its parts by author."""

    text: str  # the person's own lines; a long quotation in them is "…"
    lines: str  # the same with their quotations
    rest: str  # what they quoted, pasted or forwarded, without what a client added
    foreign: frozenset[int]  # the numbers of the lines that contain nothing of their own
    alone: bool  # whether the message certainly contains only the person's own words


def own_words(message: str, judge: Judge | None = None) -> str:
    """Return the person's own lines of a message; long quotations inside them are left out."""
    return read(message, judge).text


def asking_words(message: str) -> str:
    """Return what a message asks: its lines without those whose form shows a log, code, a mail or a quotation.

    It is empty if only such lines are there. A paste of plain sentences cannot be told apart and stays.
    """
    if "\n" not in message.strip():
        return message.strip()
    text = message
    for pattern in (_CONTEXT, _ELEMENT, _LEFT_OVER, _FENCE):
        text = pattern.sub(_nothing, text)
    lines = text.split("\n")
    foreign = _foreign(lines) | _repeated(lines)
    return "\n".join(line for number, line in enumerate(lines) if number not in foreign).strip()


def own_and_introduced(message: str) -> str:
    """Return the same, with text behind a colon unless it is marked as another person's."""
    own = read(message, teaches=False).text
    return BEHIND_COLON.sub(lambda found: found[1] if names_another(found[1]) else found[0], own)


def split_exchange(exchange: Exchange, teaches: bool = True) -> OwnWords:
    """Separate an archived message, using what the judge decided when it was recorded."""
    return read(exchange.user_message, known=exchange.foreign_lines, teaches=teaches)


def read(
    message: str, judge: Judge | None = None, known: Collection[int] = (), teaches: bool = True
) -> OwnWords:
    """Separate the lines of a message by their form, and by the judge if it is available.

    If nothing is learnt from the message (`teaches` is False), a text behind a colon stays with its introduction; in a
    rule of the person's own it always does.
    `known` are lines that the judge called foreign before. A message of several lines is never certainly the person's
    own alone: four of a thousand corrections have more than one.
    """
    if len(message) <= LONG and _MARKS.isdisjoint(message) and " '" not in f" {message}":
        return OwnWords(message.strip(), message.strip(), "", frozenset(), alone=True)
    typed = _CONTEXT.sub(_nothing, message[:MAX_CHARS])
    cut: list[str] = []

    def leave_out(found: re.Match[str]) -> str:
        cut.append(found[0])
        return _nothing(found)

    text = typed
    for pattern in (_ELEMENT, _LEFT_OVER, _FENCE):
        text = pattern.sub(leave_out, text)
    lines = text.split("\n")
    foreign = _foreign(lines).union(known)
    ruled = not cut and is_own_rule(text.strip())
    for number in set(range(len(lines))) - foreign if judge is None and teaches else ():
        if not (ruled and lines[number].strip()):
            lines[number] = INTRODUCED.sub(lambda found: found[1] + leave_out(found), lines[number])
        lines[number] = _LONG_LINE.sub(leave_out, lines[number])
    written = {number for number, line in enumerate(lines) if line.strip()}
    if judge is not None and len(written) > 1:
        _ask(judge, lines, foreign)
    elif len(written) > 1:
        _introduced(lines, foreign)
    kept = "\n".join(line for number, line in enumerate(lines) if number not in foreign).strip()
    cut += ["\n".join(lines[number] for number in sorted(foreign & written)), message[MAX_CHARS:]]
    rest = "\n".join(filter(str.strip, cut))
    introduced = not ruled and any(teaches or not is_label(found[1]) for found in INTRODUCED.finditer(kept))
    alone = len(written) <= 1 and not rest and len(kept) <= LONG and not introduced
    blank = set(range(message.count("\n") + 1)) - written
    return OwnWords(_QUOTE.sub(_short_quote, kept).strip(), kept, rest, frozenset(foreign | blank), alone)


def _nothing(found: re.Match[str]) -> str:
    """Return as many empty lines as the match has."""
    return " " + "\n" * found[0].count("\n")


def _short_quote(found: re.Match[str]) -> str:
    return "…" if len(found[0].split()) >= LONG_QUOTE or _LONG_UNSPACED.search(found[0]) else found[0]


def _repeated(lines: Sequence[str]) -> set[int]:
    """Return the lines that differ from others only in their numbers: of a log, or of a person's own list."""
    shapes = [_NUMBER.sub("0", line.strip()) for line in lines]
    often = Counter(shape for shape, line in zip(shapes, lines, strict=True) if shape != line.strip())
    return {number for number, shape in enumerate(shapes) if often[shape] >= REPEATED}


def _foreign(lines: Sequence[str]) -> set[int]:
    """Return the numbers of the lines whose form shows that somebody else wrote them."""
    found = {number for number, line in enumerate(lines) if _QUOTED_LINE.match(line) or _MACHINE.match(line)}
    for pattern in (
        _STAMPED,
        _SPEAKER,
    ):  # one such line may be the person's; two in a row are a log or a chat
        marked = [number for number, line in enumerate(lines) if pattern.match(line)]
        found.update(number for pair in pairwise(marked) if pair[1] == pair[0] + 1 for number in pair)
    if any(line.startswith("-") for line in lines) and any(line.startswith("+") for line in lines):
        found.update(number for number, line in enumerate(lines) if line[:1] in "+-" and line)
    for number, line in enumerate(lines):  # output of a command
        if number and line.strip() and number - 1 in found and lines[number - 1].startswith("$ "):
            found.update(_up_to_blank(lines, number))
    start = _mail(lines)
    return found | set(range(start, len(lines)))


def _up_to_blank(lines: Sequence[str], start: int) -> range:
    return range(start, next((n for n in range(start, len(lines)) if not lines[n].strip()), len(lines)))


def _mail(lines: Sequence[str]) -> int:
    """Return where a forwarded mail or a letter begins; after the last line if there is none."""
    for number, line in enumerate(lines):
        if _MAIL_HEADER.match(line):
            return number
        opens = number > 0 and not lines[number - 1].strip() and any(map(str.strip, lines[number + 1 :]))
        if opens and _SALUTATION.match(line):
            return number
    return len(lines)


def _ask(judge: Judge, lines: Sequence[str], foreign: set[int]) -> None:
    """Let the judge decide on lines without a telling form, and on the last paragraph under a mail."""
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
    """Mark text that a question or colon introduces, or that a closing question is about, as foreign.

    Used if the judge is not available.
    """
    blank = [number for number, line in enumerate(lines) if not line.strip()]
    if not blank:
        return
    first, last = blank[0], blank[-1]
    if first and lines[first - 1].rstrip().endswith((":", "?")):
        foreign.update(range(first, len(lines)))
    elif any(line.rstrip().endswith("?") for line in lines[last:]) and last > 1:
        foreign.update(range(last))
