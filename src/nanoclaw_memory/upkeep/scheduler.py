"""Which jobs are due, and running them: one runner at a time, every run written down."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from nanoclaw_memory import private
from nanoclaw_memory.clock import moment_of, stamp
from nanoclaw_memory.errors import FileProblem, InvalidValue, NanoClawError, StoreBusy
from nanoclaw_memory.types import Done, JobRun, JobState
from nanoclaw_memory.upkeep import journal
from nanoclaw_memory.upkeep.jobs import JOBS, Job
from nanoclaw_memory.upkeep.journal import Ran
from nanoclaw_memory.upkeep.review import write_page

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

LOCK = "upkeep.lock"
BUSY = "another process is at it"
PATIENCE = 10.0  # seconds that a person's decision waits for a running job


def run(
    group: Group, jobs: Iterable[Job] = JOBS, dry_run: bool = False, due_only: bool = False
) -> list[JobRun]:
    """Run jobs in order; one that fails says why and does not keep the others from running."""
    reads = dry_run and not os.access(group.data, os.W_OK)  # who cannot write needs to keep nobody away
    with nullcontext(True) if reads else alone(group.data) as mine:
        if not mine:
            return [JobRun(job.name, 0, 0.0, BUSY) for job in jobs]
        runs = []
        for job in jobs:
            why_not = not_due(job, group) if due_only else ""
            runs.append(JobRun(job.name, 0, 0.0, why_not) if why_not else _run(group, job, dry_run))
        if not dry_run and not any(one.error for one in runs):
            write_page(group)
        return runs


def _run(group: Group, job: Job, dry_run: bool) -> JobRun:
    began = time.perf_counter()
    done, error, hint = Done(), "", ""
    try:
        done = job.run(group, dry_run)
    except NanoClawError as problem:
        error, hint = problem.message, problem.hint
    except OSError as problem:
        error, hint = f"{problem.strerror}: {problem.filename}", "check free disk space and permissions"
    took = round((time.perf_counter() - began) * 1000, 1)
    if not dry_run:
        try:
            journal.note_run(
                group.data, job.name, Ran(group.moment(), done.changed, took, error, done.notes[:20])
            )
        except FileProblem as problem:  # the disk that stopped the job stops this too
            error, hint = error or problem.message, hint or problem.hint
    return JobRun(job.name, done.changed, took, "", error, hint, done.notes)


def not_due(job: Job, group: Group) -> str:
    """Why a job need not run now; empty when it is due."""
    expression = job.cron(group.settings)
    if not expression.strip():
        return "it never runs by itself"
    ran = journal.read(group.data).jobs.get(job.name)
    now = group.clock.now()
    if ran is None or not ran.at:
        return ""
    last = moment_of(ran.at)
    if last > now:  # the clock was turned back: running again does no harm, waiting might be for ever
        return ""
    following = next_time(expression, last.astimezone(now.tzinfo))
    # In UTC: two moments of one zone compare by the wall clock, which shows an hour twice in autumn.
    return (
        ""
        if following.astimezone(UTC) <= now.astimezone(UTC)
        else f"not due before {following:%Y-%m-%d %H:%M}"
    )


def next_time(expression: str, after: datetime) -> datetime:
    """The next moment of a cron expression, in the zone of `after`; 0 is Sunday."""
    from cronsim import CronSim, CronSimError

    try:
        found: datetime = next(CronSim(" ".join(expression.split()), after))
    except (CronSimError, StopIteration):
        raise InvalidValue(
            f"the cron expression {expression[:80]!r} never comes due",
            'give five fields, 0 is Sunday: nanoclaw-memory config set cron.nightly "0 3 * * *"',
        ) from None
    return found


def states(group: Group) -> list[JobState]:
    """Every job with its last run and the next one."""
    now = group.clock.now()
    past = journal.read(group.data).jobs
    found = []
    for job in JOBS:
        expression = job.cron(group.settings)
        ran = past.get(job.name, Ran())
        following = next_time(expression, now) if expression.strip() else None
        found.append(
            JobState(
                job.name,
                job.about,
                expression,
                ran.at,
                ran.changed,
                ran.error,
                ran.changed_at,
                ran.last_change,
                stamp(following) if following else "",
                not not_due(job, group),
            )
        )
    return found


@contextmanager
def alone(data: Path, patience: float = 0.0) -> Iterator[bool]:
    """Be the only runner in this group over all processes, or learn that there is another; the lock dies with us."""
    import fcntl

    from nanoclaw_memory.workspace.files import make_folder

    make_folder(data)
    until = time.monotonic() + patience
    try:
        handle = open(data / LOCK, "a", opener=private.opener)  # noqa: SIM115 - closed below
    except OSError as problem:
        raise FileProblem(
            f"{LOCK} cannot be written: {problem.strerror}", "check free disk space and permissions"
        ) from None
    with handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    yield False
                    return
                time.sleep(0.05)
        yield True


@contextmanager
def undisturbed(data: Path) -> Iterator[None]:
    """Hold off jobs while a person's decision is carried out."""
    with alone(data, PATIENCE) as mine:
        if not mine:
            raise StoreBusy("upkeep is running", "try again in a moment: nanoclaw-memory upkeep status")
        yield
