"""Doctor's checks of upkeep and of each learning loop: when it last ran, and what it changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nanoclaw_memory.clock import local_minute, moment_of
from nanoclaw_memory.errors import StoreError
from nanoclaw_memory.graph.refresh import Refresh
from nanoclaw_memory.store.facts import FactTable
from nanoclaw_memory.text import plural
from nanoclaw_memory.types import Finding
from nanoclaw_memory.upkeep import run_history
from nanoclaw_memory.upkeep.jobs import JOBS, Job
from nanoclaw_memory.upkeep.run_history import LastRun
from nanoclaw_memory.upkeep.scheduler import not_due

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

OVERDUE_HOURS = 48
_RUN = "nanoclaw-memory upkeep"


def check_learning(group: Group) -> Iterator[Finding]:
    """Report the state of upkeep and of each loop; skip a loop whose database `db check` reports as damaged."""
    for check in (_jobs, _facts, _proposals, _lessons, _exchanges):
        try:
            yield from check(group)
        except StoreError:
            continue


def _minute(group: Group, moment: str) -> str:
    """Return a stored moment in the person's time zone."""
    return local_minute(moment, group.clock.now().tzinfo).replace("T", " ")


def _day(group: Group, moment: str) -> str:
    return _minute(group, moment)[:10]


def _jobs(group: Group) -> Iterator[Finding]:
    """Report runs that failed or are overdue."""
    ran = run_history.read(group.data).jobs
    if not ran:
        yield Finding(
            "warning",
            "upkeep never ran: nothing cools, is promoted or archived",
            f"{_RUN}; nanoclaw-memory install-cron",
        )
        return
    for name, own in ran.items():
        if own.error:
            yield Finding("warning", f"{name} failed on {_day(group, own.at)}: {own.error}", f"{_RUN} {name}")
    if late := [job.name for job in JOBS if _overdue(group, job, ran.get(job.name))]:
        yield Finding("warning", f"overdue: {', '.join(late)}", f"{_RUN}; nanoclaw-memory install-cron")
    last = max(own.at for own in ran.values())
    changed = [
        f"{name} {own.last_change:,} on {_day(group, own.changed_at)}"
        for name, own in ran.items()
        if own.changed_at
    ]
    what = f"; last changes: {', '.join(changed)}" if changed else "; it has changed nothing yet"
    yield Finding("ok", f"upkeep last ran on {_minute(group, last)}{what}", f"{_RUN} status")


def _overdue(group: Group, job: Job, ran: LastRun | None) -> bool:
    """Return whether a due job has not succeeded for two days."""
    if not job.cron(group.settings).strip() or not_due(job, group):
        return False
    if ran is None or not ran.well_at:
        return True
    return (group.clock.now() - moment_of(ran.well_at)).total_seconds() > OVERDUE_HOURS * 3600


def _facts(group: Group) -> Iterator[Finding]:
    """Report on ingestion, activation and cooling."""
    if not group.has("facts"):
        yield Finding("note", "the graph holds nothing yet", "nanoclaw-memory graph seed")
        return
    if pending := Refresh(group.graph, group.home, group.pages).pending():
        yield Finding("note", pending.message.partition(":")[0], f"{_RUN} ingest")
    total, used, last = FactTable(group.graph.db).use()
    cooled = group.graph.activation.cooled_on()
    if not total:
        yield Finding("note", "no fact was read from any file yet", f"{_RUN} ingest")
    elif not used:
        yield Finding(
            "note",
            f"activation never fired: none of {plural(total, 'fact')} was asked for",
            "nanoclaw-memory turn MESSAGE",
        )
    else:
        yield Finding(
            "ok",
            f"activation last fired on {_day(group, last)}: {used:,} of {plural(total, 'fact')} were asked for",
            "nanoclaw-memory graph top",
        )
    if total:
        level, when = ("ok", f"on {cooled}") if cooled else ("note", "never")
        yield Finding(level, f"facts last cooled {when}", f"{_RUN} cool")


def _proposals(group: Group) -> Iterator[Finding]:
    """Report on proposals and the decisions on them."""
    found = {
        status: group.proposals.listed(status) if group.has("entries") else []
        for status in ("open", "accepted", "rejected")
    }
    every = [proposal for rows in found.values() for proposal in rows]
    if not every:
        yield Finding("note", "upkeep has proposed nothing yet", f"{_RUN} promote")
        return
    counts = ", ".join(f"{len(rows)} {status}" for status, rows in found.items())
    decided = max((proposal.decided_at or "" for proposal in every), default="")
    level = "warning" if found["open"] and not decided and len(found["open"]) >= 10 else "ok"
    when = f", last decided on {_day(group, decided)}" if decided else ", none was ever decided"
    last = max(proposal.created_at for proposal in every)
    yield Finding(
        level, f"proposals: {counts}; last made on {_day(group, last)}{when}", "nanoclaw-memory review"
    )


def _lessons(group: Group) -> Iterator[Finding]:
    """Report on lessons, and whether outcomes of their injections are recorded."""
    lessons = group.lessons.all() if group.has("facts") else []
    if not lessons:
        yield Finding(
            "note", "no lesson was learnt yet", "they come from corrections in talk with a connected client"
        )
        return
    last = group.lessons.last_outcome()
    injected = sum(lesson.injections for lesson in lessons)
    if injected and not last:
        message = f"lessons were injected {injected} times and no outcome ever came back"
        yield Finding("warning", message, "nanoclaw-memory exchange add")
        return
    when = f"last outcome on {_day(group, last)}" if last else "none was injected yet"
    yield Finding("ok", f"{plural(len(lessons), 'lesson')}, {when}", f"{_RUN} metabolize")


def _exchanges(group: Group) -> Iterator[Finding]:
    """Report on exchanges, and when the last one was archived."""
    last = group.exchanges.recent(limit=1) if group.has("continuity") else []
    if last:
        count = plural(group.exchanges.count(), "exchange")
        yield Finding(
            "ok", f"{count} archived, the last on {_day(group, last[0].timestamp)}", "nanoclaw-memory status"
        )
    else:
        yield Finding(
            "note",
            "no exchange was archived yet: continuity has nothing to recall",
            "connect a client: nanoclaw-memory install --list",
        )
