"""active-context.md after a session: what it was about, what was decided lately, what is still open."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from typing import TYPE_CHECKING

from nanoclaw_memory.errors import FileProblem
from nanoclaw_memory.statements import Features, contained, contradiction, features, restates
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import LogLine, Refreshed
from nanoclaw_memory.upkeep import journal, page, versions
from nanoclaw_memory.upkeep.logbook import logs
from nanoclaw_memory.workspace import log
from nanoclaw_memory.workspace.boot import ACTIVE_CONTEXT
from nanoclaw_memory.workspace.files import locked, read_text, replace_text
from nanoclaw_memory.workspace.paths import within

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

FOCUS, DECIDED, OPEN = "Current Focus", "Recent Decisions", "Open Questions"
EMPTY = f"# Active Context\n\n## {FOCUS}\n\n## {DECIDED}\n\n## {OPEN}\n"
DECISION_DAYS = 7
QUESTION_DAYS = 14
MOST = {FOCUS: 3, DECIDED: 6, OPEN: 6}
MAX_LINE = 200
_DECISION = "decision"
_ASKS = frozenset({"question", "open", "todo", "task"})
_BOX = re.compile(r"\s*[-*+]\s+\[ \]\s+\S")
_NOTE = "active_context"


def refresh(group: Group) -> Refreshed:
    """Write the page anew: lines that somebody else wrote stay, ours of the last time give way to new ones."""
    path = within(group.workspace / ACTIVE_CONTEXT, group.workspace)
    with locked(path.parent):
        try:
            before = read_text(path)
        except FileNotFoundError:
            before = ""
        ours = journal.read(group.data).notes.get(_NOTE, [])
        text, lines = _written(group, before, [str(line) for line in ours])
        journal.note(group.data, _NOTE, lines)
        if text == before:
            return Refreshed(ACTIVE_CONTEXT, False, len(before.encode()))
        kept = versions.keep(group.data, ACTIVE_CONTEXT, before, group.moment()) if before else None
        replace_text(path, text)
    return Refreshed(ACTIVE_CONTEXT, True, len(text.encode()), str(kept or ""))


def _written(group: Group, before: str, ours: list[str]) -> tuple[str, list[str]]:
    """The new page, and which of its lines are ours; nothing new to say leaves it as it is."""
    fresh = {FOCUS: _focus(group), DECIDED: list(_decisions(group)), OPEN: list(_questions(group))}
    if not any(fresh.values()):
        return before, ours
    text = before or EMPTY
    for line in ours:
        text = page.removed(text, line)
    theirs = [features(page.says(item)) for item in page.items(text)]
    lines: list[str] = []
    limit = group.settings.upkeep.active_context_bytes
    for section, said in fresh.items():
        kept = [line for line in said if not any(restates(other, features(line)) for other in theirs)]
        for line in kept[: MOST[section]]:
            longer = page.added(text, section, line)
            if len(longer.encode()) <= limit and line not in lines:
                text = longer
                lines.append(line)
    return text, lines


def _focus(group: Group) -> list[str]:
    """What the session was about, the latest first; its last question when it had no topic."""
    if not group.has("continuity"):
        return []
    said = group.exchanges.of_session(group.scope.session_id, limit=20)
    topics = [one.topic for one in reversed(said) if len(one.topic.split()) > 1]
    asked = [one.user_message.split("\n")[0] for one in reversed(said[-1:])]
    return list(_clean(group, dict.fromkeys(topics or asked)))


def _decisions(group: Group) -> Iterator[str]:
    """What was decided in the last days and still stands, the latest first."""
    newer: list[Features] = []
    for day, _, entry in _lately(group, DECISION_DAYS):
        own = features(entry.text)
        given_up = any(contradiction(own, later) for later in newer)
        if entry.tag.lower() == _DECISION and not given_up and not group.outdated(entry.text, day):
            yield from _clean(group, [entry.text])
        newer.append(own)


def _questions(group: Group) -> Iterator[str]:
    """Questions and to-dos of the last weeks that no later decision takes up."""
    settled: list[Features] = []
    for _, raw, entry in _lately(group, QUESTION_DAYS):
        if entry.tag.lower() in _ASKS or entry.text.endswith("?") or _BOX.match(raw):
            own = features(entry.text)
            if not any(contained(own, other) >= 0.5 for other in settled):
                yield from _clean(group, [entry.text])
        else:
            settled.append(features(entry.text))


def _lately(group: Group, days: int) -> Iterator[tuple[date, str, LogLine]]:
    """The log lines of the last days, the latest first."""
    since = group.today - timedelta(days=days)
    for day, _, path in reversed(logs(group.workspace)):
        if not since <= day <= group.today:
            continue
        try:
            text = read_text(path)
        except (FileProblem, FileNotFoundError):
            continue
        raw = text.split("\n")
        for entry in reversed(log.parse(text)):
            yield day, raw[entry.line - 1], entry


def _clean(group: Group, texts: Iterable[str]) -> Iterator[str]:
    """Lines fit for a page that every session reads: short, no credentials, no instructions in disguise.

    A line that a person keeps in a log though it was forgotten is not copied.
    """
    for text in texts:
        admitted = group.intake.admit_or_none(one_line(text))
        if admitted is None or not admitted.text or admitted.suspicions:
            continue
        line = admitted.text
        yield line if len(line) <= MAX_LINE else line[: MAX_LINE - 1].rstrip() + "…"
