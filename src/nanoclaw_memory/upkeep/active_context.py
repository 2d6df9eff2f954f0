"""Refresh a project's active-context page after a session: its topics, recent decisions, open questions."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.clock import stamp
from nanoclaw_memory.errors import FileProblem
from nanoclaw_memory.graph import clauses
from nanoclaw_memory.intake.authorship import split_exchange
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.retrieval.ongoing import is_confidential, labels_work, reports_work
from nanoclaw_memory.statements import Features, contained, contradiction, features, restates
from nanoclaw_memory.text import one_line, sentences
from nanoclaw_memory.types import FOREIGN, OWN, Exchange, LogLine, Refreshed
from nanoclaw_memory.upkeep import pages, run_history
from nanoclaw_memory.upkeep.log_blocks import logs
from nanoclaw_memory.upkeep.session_task import SessionTask
from nanoclaw_memory.workspace import log
from nanoclaw_memory.workspace.boot import active_context
from nanoclaw_memory.workspace.files import read_text

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

FOCUS, DECIDED, OPEN = "Current Focus", "Recent Decisions", "Open Questions"
EMPTY = f"# Active Context\n\n## {FOCUS}\n\n## {DECIDED}\n\n## {OPEN}\n"
FOCUS_DAYS = 7
DECISION_DAYS = 7
QUESTION_DAYS = 14
MOST = {FOCUS: 3, DECIDED: 6, OPEN: 6}
MAX_LINE = 200
_DECISION = "decision"
_OPEN_TAGS = frozenset({"question", "open", "todo", "task"})
_BOX = re.compile(r"\s*[-*+]\s+\[ \]\s+\S")
_CALLED_OPEN = regex(
    r"(?i:(?:an?other |one )?open question|still open|open(?= ?:)|(?:noch )?offene? frage|(?:noch )?offen(?: ist)?)"
    r"\s*(?::|is|remains|bleibt|,)\s*(?P<what>.{8,})"
)
_NOTE = "active_context"
MOST_EXCHANGES = 100
MAX_TALK = 4_000  # characters of one side that are read


def refresh(group: Group) -> Refreshed:
    """Replace the lines of the last refresh; lines of anybody else stay."""
    changed, size = False, 0
    page, note = active_context(group.scope.project), "_".join(filter(None, (_NOTE, group.scope.project)))

    def change(before: str) -> str:
        nonlocal changed, size
        ours = run_history.read(group.data).notes.get(note, [])
        text, lines = _with_fresh_lines(group, before, [str(line) for line in ours])
        run_history.record_note(group.data, note, lines)
        changed, size = text != before, len(text.encode())
        return text

    kept = pages.rewrite(group, page, change)
    return Refreshed(page, changed, size, str(kept or ""))


def _with_fresh_lines(group: Group, before: str, ours: list[str]) -> tuple[str, list[str]]:
    """Return the new page, and which of its lines are ours; unchanged when there is nothing to add or to remove."""
    fresh = {FOCUS: _focus(group), DECIDED: list(_decisions(group)), OPEN: list(_questions(group))}
    if not ours and not any(fresh.values()):
        return before, ours
    text = before or EMPTY
    for line in ours:
        text = pages.remove_item(text, line)
    theirs = pages.item_features(text)
    lines: list[str] = []
    limit = group.settings.upkeep.active_context_bytes
    for section, found in fresh.items():
        kept = [line for line in found if not any(restates(other, _features(line)) for other in theirs)]
        for line in kept[: MOST[section]]:
            longer = pages.add_item(text, section, line)
            if len(longer.encode()) <= limit and line not in lines:
                text = longer
                lines.append(line)
    return text, lines


def _focus(group: Group) -> list[str]:
    """Return what the person is working on, latest first: as they said in the session, else in the last days."""
    if not group.has("continuity"):
        return []
    said = group.exchanges.of_session(group.scope.session_id, limit=20)
    found = _of_session(group, said)
    if not found:
        since = stamp(group.clock.now() - timedelta(days=FOCUS_DAYS))
        project = group.scope.project if group.settings.projects.enabled else None
        recent = group.exchanges.recent(since=since, limit=MOST_EXCHANGES, project=project)
        found = [*_work(group, recent).values()]
    return list(itertools.islice(_presentable(group, dict.fromkeys(found)), MOST[FOCUS]))


def _of_session(group: Group, said: Sequence[Exchange]) -> list[str]:
    """Return the task of a session and the person's sentences about work under way.

    Where most of a session is about one task, what has nothing to do with it is a remark, and no focus.
    """
    session = SessionTask(said)
    number, task = session.found()
    if not number:
        return list(_work(group, said).values())
    work = {known: text for known, text in _work(group, said).items() if session.belongs(known, text)}
    overtaken = group.retrieval.overtaken("exchanges", [number])
    return [*([task] if number not in overtaken and number not in work else []), *work.values()]


def _work(group: Group, said: Sequence[Exchange]) -> dict[int, str]:
    """Return by exchange the person's sentences about work under way that nothing newer overtakes, latest first."""
    told = {one.id: work for one in reversed(said) if one.origin in OWN and (work := _work_in(group, one))}
    overtaken = group.retrieval.overtaken("exchanges", list(told)) if told else {}
    return {number: work for number, work in told.items() if number not in overtaken}


def _work_in(group: Group, exchange: Exchange) -> str:
    """Return the person's own sentences in an exchange that report work under way."""
    told = split_exchange(exchange, teaches=False).text
    own = told if labels_work(told) else split_exchange(exchange).text
    judge = group.resources.judge
    found = (part for line in own[:MAX_TALK].split("\n") for part in clauses.sentences(line))
    return " ".join(part for part in found if reports_work(part, judge))


def _decisions(group: Group) -> Iterator[str]:
    """Yield the decisions of the last days that nothing later contradicts, latest first."""
    newer: list[Features] = []
    for day, _, entry in _recent_lines(group, DECISION_DAYS):
        own = features(entry.text)
        contradicted = any(contradiction(own, later) for later in newer)
        if entry.tag.lower() == _DECISION and not contradicted and not group.outdated(entry.text, day):
            yield from _presentable(group, [entry.text], entry.origin)
        newer.append(own)


def _questions(group: Group) -> Iterator[str]:
    """Yield questions and to-dos of the last weeks, logged or called open, that nothing later settles."""
    talk = list(_answers(group))
    settled: list[tuple[date, Features]] = []
    for asked in _called_open(group):
        if not _is_answered(features(asked.text), asked.day, talk):
            yield from _presentable(group, [asked.text])
    for day, raw, entry in _recent_lines(group, QUESTION_DAYS):
        own = features(entry.text)
        if entry.tag.lower() in _OPEN_TAGS or entry.text.endswith("?") or _BOX.match(raw):
            if not _is_settled(own, day, settled) and not _is_answered(own, day, talk):
                yield from _presentable(group, [entry.text], entry.origin)
        else:
            settled.append((day, own))


def _is_settled(question: Features, day: date, settled: Iterable[tuple[date, Features]]) -> bool:
    return any(said >= day and contained(question, answer) >= 0.5 for said, answer in settled)


def _is_answered(question: Features, day: date, talk: Iterable[tuple[date, Features]]) -> bool:
    """Return whether a statement in conversation contains most of a question; one common word is not enough."""
    near = ((answer, len(question.stems & answer.stems)) for said, answer in talk if said >= day)
    return any(count >= 2 and contained(question, answer) >= 0.5 for answer, count in near)


class _Sentence(msgspec.Struct, frozen=True):
    """A sentence of a conversation with its day."""

    day: date
    text: str
    by_person: bool


def _talk(group: Group) -> Iterator[_Sentence]:
    """Yield what the person and the agent said in the project during the last weeks, latest first."""
    if not group.has("continuity"):
        return
    since = stamp(group.clock.now() - timedelta(days=QUESTION_DAYS))
    project = group.scope.project if group.settings.projects.enabled else None
    for exchange in reversed(group.exchanges.recent(since=since, limit=MOST_EXCHANGES, project=project)):
        day = date.fromisoformat(exchange.timestamp[:10])
        yield from (_Sentence(day, text, False) for text in sentences(exchange.agent_response[:MAX_TALK]))
        yield from (
            _Sentence(day, text, True)
            for text in sentences(split_exchange(exchange, teaches=False).text[:MAX_TALK])
        )


def _answers(group: Group) -> Iterator[tuple[date, Features]]:
    """Yield statements from conversations, without an agent's denials that it knows an answer."""
    for sentence in _talk(group):
        own = features(sentence.text)
        if (
            not sentence.text.endswith("?")
            and not _CALLED_OPEN.match(sentence.text)
            and (sentence.by_person or not own.negated)
        ):
            yield sentence.day, own


def _called_open(group: Group) -> Iterator[_Sentence]:
    """Yield what the person called an open question."""
    for sentence in _talk(group):
        if sentence.by_person and (match := _CALLED_OPEN.match(sentence.text)):
            yield replace(sentence, text=match["what"])


def _recent_lines(group: Group, days: int) -> Iterator[tuple[date, str, LogLine]]:
    """Yield the project's log lines of the last days, latest first, with their day and their raw line."""
    apart = group.settings.projects.enabled
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
            mine = not apart or entry.project == group.scope.project
            if mine and entry.origin not in FOREIGN:
                yield day, raw[entry.line - 1], entry


def _features(line: str) -> Features:
    return features(log.without_marks(line)[0])


def _presentable(group: Group, texts: Iterable[str], origin: str = "owner") -> Iterator[str]:
    """Yield shortened, attributed lines; suspicious, forgotten and confidential ones are left out."""
    by = "" if origin == "owner" else f"[by {origin}] "
    for text in texts:
        admitted = group.intake.admit_or_none(one_line(text))
        if admitted is None or not admitted.text or admitted.suspicions or is_confidential(admitted.text):
            continue
        line = admitted.text
        yield by + (line if len(line) <= MAX_LINE else line[: MAX_LINE - 1].rstrip() + "…")
