"""Phrase recalled exchanges as sentences, with relative dates."""

from __future__ import annotations

import re
from datetime import date

from nanoclaw_memory.text import one_line

_PROGRESSIVE = {
    "want": "wanting",
    "need": "needing",
    "plan": "planning",
    "prefer": "preferring",
    "like": "liking",
    "love": "loving",
    "hate": "hating",
    "hope": "hoping",
    "think": "thinking",
}
_FIRST = re.compile(rf"^(?:I|We) ({'|'.join(_PROGRESSIVE)}) (?P<what>[^.!?]+)[.!]?\Z", re.IGNORECASE)
_NUMBERS = ("", "", *"two three four five six seven eight nine ten eleven twelve".split())


def when(day: date, today: date) -> str:
    """A day relative to today: yesterday, last Tuesday, three weeks ago, in March 2025."""
    days = (today - day).days
    if days <= 0:
        return "earlier today"
    if days == 1:
        return "yesterday"
    if days < 7:
        return f"last {day:%A}" if days > 2 else f"on {day:%A}"
    if days < 14:
        return "last week"
    if days < 56:
        return f"{_NUMBERS[days // 7]} weeks ago"
    months = (today.year - day.year) * 12 + today.month - day.month
    if months < 12:
        return f"{_NUMBERS[months]} months ago ({day:%-d %B})"
    return f"in {day:%B %Y}"


def discussing(topic: str, text: str, day: date, today: date) -> str:
    """'You were discussing the payment API migration yesterday.'"""
    moment = when(day, today)
    if not topic:
        return (
            f"You were talking {moment}."
            if moment.startswith(("earlier", "yest", "last", "on"))
            else f"You talked {moment}."
        )
    article = "the " if _contains(f"the {topic}", text) else ""
    return f"You were discussing {article}{topic} {moment}."


def _contains(phrase: str, text: str) -> bool:
    """Whether a text contains a phrase as whole words; cheaper than a pattern for every topic."""
    wanted, folded = phrase.casefold(), text.casefold()
    start = folded.find(wanted)
    while start >= 0:
        around = folded[start - 1 : start] + folded[start + len(wanted) : start + len(wanted) + 1]
        if not any(character.isalnum() or character == "_" for character in around):
            return True
        start = folded.find(wanted, start + 1)
    return False


def you_said(text: str) -> str:
    """A quotation of the agent."""
    return f'You said: "{_quoted(text)}"'


def user_mentioned(text: str) -> str:
    """A report of the user's words: "mentioned wanting …" where they said "I want …", else a quotation."""
    plain = one_line(text)
    match = _FIRST.match(plain)
    if match and '"' not in plain:
        what = re.sub(r"\bmy\b", "their", match["what"])
        return f"User mentioned {_PROGRESSIVE[match[1].casefold()]} {what}."
    return f'User mentioned: "{_quoted(plain)}"'


def _quoted(text: str) -> str:
    return one_line(text).replace('"', "'")
