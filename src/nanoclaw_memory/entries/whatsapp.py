"""Parse a chat that WhatsApp exported as text: who wrote what when, in the date formats of its languages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from nanoclaw_memory.patterns import regex
from nanoclaw_memory.types import Utterance

# 12.10.24, 18:03 - Petra: …, [12/10/2024, 18:03:22] Petra: …, 10/12/24, 6:03 PM - Petra: …
_OPENING = regex(
    r"\[?(?P<day>\d{1,4}[./-]\d{1,2}[./-]\d{1,4}),? (?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.]\d{2})?"
    r"(?: ?(?P<half>[ap])\.? ?m\.?)?(?:\]| -) (?P<rest>.*)\Z",
    re.IGNORECASE,
)
_SENDER = regex(r"(?P<sender>[^:\n]{1,60}): (?P<text>.*)\Z", re.DOTALL)
_MARKS = regex(r"[\u200e\u200f\u202a-\u202e\ufeff]")
_BLANKS = regex(r"[\u00a0\u202f]")
_LEFT_OUT = regex(
    r"<[^<>\n]{1,60}>|(?:image|video|audio|sticker|GIF|document) omitted|\S+ weggelassen", re.IGNORECASE
)
_CENTURY, _MONTHS, _LAST_DAY = 2000, 12, 31


class _ChatMessage(NamedTuple):
    """A message with its date as written."""

    day: tuple[int, int, int]
    is_american: bool  # the date may begin with the month: 10/12/24, 6:03 PM
    hour: int
    minute: int
    text: str


def read_chat(text: str) -> list[Utterance]:
    """Return the messages of a chat, each with its sender before its words; notices and left-out media are skipped."""
    found = list(_messages(_BLANKS.sub(" ", _MARKS.sub("", text)).splitlines()))
    if not found:
        raise ValueError("no line of a chat was found, such as: 12.10.24, 18:03 - Petra: …")
    month_first = _is_month_first(found)
    said = [(_moment(message, month_first), _SENDER.match(message.text)) for message in found]
    return [
        Utterance("User", f"{told['sender'].strip()}: {told['text'].strip()}", at)
        for at, told in said
        if told and told["text"].strip() and not _LEFT_OUT.fullmatch(told["text"].strip())
    ]


def _messages(lines: Sequence[str]) -> Iterator[_ChatMessage]:
    """Yield each message with the lines that follow its first."""
    last: _ChatMessage | None = None
    for line in lines:
        opening = _OPENING.match(line)
        if opening is None:
            last = last and last._replace(text=f"{last.text}\n{line}")
            continue
        if last:
            yield last
        one, two, three = (int(part) for part in re.split(r"[./-]", opening["day"]))
        half = (opening["half"] or "").lower()
        hour = int(opening["hour"]) % 12 + 12 * (half == "p") if half else int(opening["hour"])
        last = _ChatMessage((one, two, three), bool(half), hour, int(opening["minute"]), opening["rest"])
    if last:
        yield last


def _is_month_first(found: Sequence[_ChatMessage]) -> bool:
    """Return whether the dates of a chat begin with the month: by a day over 12, else by the twelve-hour clock."""
    if any(message.day[1] > _MONTHS for message in found):
        return True
    return found[0].is_american and all(message.day[0] <= _MONTHS for message in found)


def _moment(message: _ChatMessage, month_first: bool) -> str:
    one, two, three = message.day
    if one > _LAST_DAY:
        year, month, day = one, two, three
    else:
        day, month = (two, one) if month_first else (one, two)
        year = three
    year += _CENTURY if year < 100 else 0
    return datetime(year, month, day, message.hour, message.minute).isoformat(timespec="minutes")
