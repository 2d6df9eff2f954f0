"""The daily log: parse and format `- [decision|i=0.9|@project|by agent] text`, tolerant of what people type."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import one_line, plural
from nanoclaw_memory.types import FOREIGN, ORIGINS, LogLine

MAX_TEXT = 4_000
_TAG = regex(r"[\w-]{1,40}\Z")
_BOXES = ("x", "X")  # `- [x] done` is a task, not a tag
_NO_ENTRY = regex(r"#{1,6}(\s|$)|<!--|([-*_])\s*(\2\s*){2,}$")
_BRACKETS = regex(r"\[(?P<parts>[^\]\n]*)\]\s+(?P<rest>.*)")
_BULLET = regex(r"^(?P<indent>\s*)[-*+•]\s+(?P<rest>.*)$")
_SLUG = r"@[a-z0-9][a-z0-9._-]{0,63}"
_ORIGIN = rf"by (?:{'|'.join(ORIGINS)})"
_MARK = regex(rf"{_SLUG}|{_ORIGIN}")
_LABEL = regex(
    rf"^\[\s*(?P<tag>[\w-]{{1,40}})?\s*(?:(?:\||(?=(?:{_SLUG}|{_ORIGIN})\s*[|\]]))\s*(?P<extra>[^\]\n]*))?\]"
    r"\s*(?P<text>.*)$"
)
_IMPORTANCE = regex(r"^\s*i(?:mportance)?\s*[=:]\s*(?P<value>-?\d*[.,]?\d+)\s*$", re.IGNORECASE)


def header(day: date) -> str:
    """The first lines of a new daily log."""
    return f"# {day.isoformat()}\n\n"


def archived_day(heading: str) -> date | None:
    """The day of an archive's heading `## YYYY-MM-DD`, given without its marks; None for every other one."""
    try:
        return date.fromisoformat(heading.strip()) if len(heading.strip()) == 10 else None
    except ValueError:
        return None


def archived_lines(text: str, day: date) -> tuple[int, int]:
    """The first and last line that an archive has of a day, its heading left out; (0, 0) for none."""
    first = last = 0
    current: date | None = None
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("## "):
            current = archived_day(line[3:])
        elif current == day and line.strip():
            first, last = first or number, number
    return first, last


def format_line(
    text: str, tag: str = "", importance: float | None = None, project: str = "", origin: str = "owner"
) -> str:
    """One log line; the text is brought onto one line. Only the owner's own says not by whom it is."""
    plain = one_line(text)
    if not plain:
        raise InvalidValue("the text is empty", 'say what happened: nanoclaw-memory write "Chose SQLite"')
    if len(plain) > MAX_TEXT:
        raise InvalidValue(
            f"the text has {len(plain):,} characters, over the limit of {MAX_TEXT:,}", "write a summary of it"
        )
    if tag and (not _TAG.match(tag) or tag in _BOXES):
        raise InvalidValue(
            f"tag {tag[:60]!r} is refused", "use letters, digits and hyphens: decision, lesson"
        )
    if importance is not None and not 0 <= importance <= 1:
        raise InvalidValue(f"importance {importance} is outside 0 to 1", "for example --importance 0.9")
    marks = [f"@{project}" if project else "", f"by {origin}" if origin != "owner" else ""]
    if not tag and importance is None and not any(marks):
        # Text that would read as a label, a task box or a rule must not become one.
        read_back = parse_line(f"- {plain}")
        return f"- {plain}" if read_back == LogLine(1, plain) else f"- [note] {plain}"
    if importance is not None:
        tag = f"{tag or 'note'}|i={importance:g}"
    return f"- [{'|'.join(filter(None, (tag, *marks)))}] {plain}"


def parse(text: str) -> list[LogLine]:
    """The entries of a log: bullets with or without a label, and plain lines; headings and rules are none."""
    found = []
    fenced = False
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.rstrip("\r")
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
            continue
        if not fenced and (entry := parse_line(line, number)):
            found.append(entry)
    return found


def of_project(text: str, project: str) -> str:
    """A log without the entries that name another project; says how many those are."""
    return _without(text, lambda entry: entry.project not in ("", project), "of other projects")


def of_insiders(text: str) -> str:
    """A log without what group chats, other memories, tools and the web brought; says how much that is."""
    return _without(text, lambda entry: entry.origin in FOREIGN, "that others wrote")


def _without(text: str, unwanted: Callable[[LogLine], bool], what: str) -> str:
    """A log without some entries and what is indented below them."""
    kept, dropped, dropping = [], 0, False
    for line in text.split("\n"):
        if not line[:1].isspace():  # an entry of its own, a heading, an empty line
            entry = parse_line(line)
            dropping = entry is not None and unwanted(entry)
            dropped += dropping
        if not dropping:
            kept.append(line)
    note = f"\n[{plural(dropped, 'line')} {what}: memory_search finds them]\n" if dropped else ""
    return "\n".join(kept) + note


def parse_line(line: str, number: int = 1) -> LogLine | None:
    """One line as an entry; None for blank lines, headings, rules and comments."""
    stripped = line.strip()
    if not stripped or _NO_ENTRY.match(stripped):
        return None
    bullet = _BULLET.match(line)
    indent = len(bullet["indent"].expandtabs(4)) if bullet else 0
    rest = bullet["rest"].strip() if bullet else stripped
    label = _LABEL.match(rest)
    if not label or rest[label.start("text") - 1 :].startswith("]("):  # a Markdown link is no label
        return LogLine(number, rest, indent=indent)
    importance = _importance(label["extra"])
    if label["extra"] is None and label["tag"] in (None, *_BOXES):  # a task box
        return LogLine(number, label["text"] or rest, indent=indent)
    if not label["text"]:
        return None
    return LogLine(
        line=number,
        text=label["text"].strip(),
        tag=label["tag"] or "",
        importance=importance,
        indent=indent,
        project=next((mark[1:] for mark in _marks(label["extra"]) if mark.startswith("@")), ""),
        origin=_least_trusted(_marks(label["extra"])),
    )


def typed_label(text: str) -> tuple[str, str, float | None]:
    """A text without the `[decision|i=0.9]` that it begins with, its tag and importance; other labels stay text."""
    bullet = _BULLET.match(text)
    rest = bullet["rest"] if bullet else text
    label = _LABEL.match(rest)
    if not label or not label["tag"] or not rest[label.start("text") - 1].isspace():
        return text, "", None
    extra = label["extra"] or ""
    importance = (
        _importance(extra) if "|" not in extra else None
    )  # a mark says who wrote it, or for what project
    return (text, "", None) if importance is None else (label["text"], label["tag"], importance)


def without_marks(text: str) -> tuple[str, str, str]:
    """A line's text without its marks of project and origin, its origin and its project."""
    label = _BRACKETS.match(text)
    marks = _marks(label["parts"]) if label else []
    if label is None or not marks:
        return text, "owner", ""
    project = next((mark[1:] for mark in marks if mark.startswith("@")), "")
    kept = "|".join(part for part in label["parts"].split("|") if part.strip() not in marks)
    return f"[{kept}] {label['rest']}" if kept else label["rest"], _least_trusted(marks), project


def _marks(extra: str | None) -> list[str]:
    return [part for part in map(str.strip, (extra or "").split("|")) if _MARK.fullmatch(part)]


def _least_trusted(marks: list[str]) -> str:
    named = [mark.removeprefix("by ") for mark in marks if mark.startswith("by ")]
    return max(named, key=ORIGINS.index, default="owner")


def _importance(extra: str | None) -> float | None:
    for part in (extra or "").split("|"):
        match = _IMPORTANCE.match(part)
        if match:
            return min(max(float(match["value"].replace(",", ".")), 0.0), 1.0)
    return None
