"""Run the jobs that are due: one runner per group at a time, every run recorded."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.clock import moment_of, next_by_cron, stamp
from nanoclaw_memory.errors import FileProblem, NanoClawError, StoreBusy
from nanoclaw_memory.progress import counted
from nanoclaw_memory.text import encodable
from nanoclaw_memory.types import JobResult, JobRun, JobState
from nanoclaw_memory.upkeep import run_history
from nanoclaw_memory.upkeep.jobs import JOBS, Job
from nanoclaw_memory.upkeep.review import write_page
from nanoclaw_memory.upkeep.run_history import LastRun

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

LOCK = "upkeep.lock"
BUSY = "another process is at it"
_CRON_HINT = 'give five fields, 0 is Sunday: nanoclaw-memory config set cron.nightly "0 3 * * *"'
_ELSEWHERE = "upkeep:"  # notes in the index
PATIENCE = 10.0  # seconds that a person's decision waits for a running job


def run(
    group: Group, jobs: Sequence[Job] = JOBS, dry_run: bool = False, due_only: bool = False
) -> list[JobRun]:
    """Run jobs in order; a job that fails reports why and does not stop the others."""
    read_only = dry_run and not os.access(group.data, os.W_OK)  # cannot even create the lock
    with (
        nullcontext(True) if read_only else runner_lock(group.data) as here,
        group.database("index").claimed("upkeep") as everywhere,
    ):
        if not here:
            return [JobRun(job.name, 0, 0.0, BUSY) for job in jobs]
        runs = []
        for job in counted(f"jobs of {group.scope.group}", jobs):
            why_not = not_due(job, group) if due_only else ""
            if not everywhere and not job.local:
                why_not = BUSY
            runs.append(JobRun(job.name, 0, 0.0, why_not) if why_not else _run(group, job, dry_run))
        if not dry_run and not any(one.error for one in runs):
            write_page(group)
        return runs


def _run(group: Group, job: Job, dry_run: bool) -> JobRun:
    began = time.perf_counter()
    result, error, hint = JobResult(), "", ""
    try:
        result = job.run(group, dry_run)
    except NanoClawError as problem:
        error, hint = problem.message, problem.hint
    except OSError as problem:
        error, hint = f"{problem.strerror}: {problem.filename}", "check free disk space and permissions"
    except Exception as problem:  # noqa: BLE001 - a bug in one job must not stop the others, for good
        error, hint = f"{type(problem).__name__}: {problem}", "this is a bug; please report it"
    took = round((time.perf_counter() - began) * 1000, 1)
    if not dry_run:
        last = LastRun(
            at=group.moment(),
            changed=result.changed,
            took_ms=took,
            error=encodable(error),  # it may contain a file name that is no valid text
            notes=tuple(encodable(note) for note in result.notes[:20]),
        )
        try:
            run_history.record_run(group.data, job.name, last)
            if not (job.local or group.database("index").is_file):
                noted = msgspec.json.encode(run_history.read(group.data).jobs[job.name]).decode()
                group.retrieval.index.passages.set_meta(f"{_ELSEWHERE}{job.name}", noted)
        except FileProblem as problem:  # the disk that stopped the job stops this too
            error, hint = error or problem.message, hint or problem.hint
    return JobRun(
        name=job.name,
        changed=result.changed,
        took_ms=took,
        error=error,
        hint=hint,
        notes=result.notes,
    )


def not_due(job: Job, group: Group) -> str:
    """Return why a job need not run now; empty when it is due."""
    expression = job.cron(group.settings)
    if not expression.strip():
        return "it never runs by itself"
    last_run = _past(group).get(job.name)
    now = group.clock.now()
    if last_run is None or not last_run.at:
        return ""
    last = moment_of(last_run.at)
    if last > now:  # the clock was turned back: running again does no harm, waiting might never end
        return ""
    following = next_by_cron(expression, last.astimezone(now.tzinfo), _CRON_HINT)
    # In UTC: two moments of one zone compare by the wall clock, which shows an hour twice in autumn.
    due = following.astimezone(UTC) <= now.astimezone(UTC)
    return "" if due else f"not due before {following:%Y-%m-%d %H:%M}"


def _past(group: Group) -> dict[str, LastRun]:
    """Return the last runs of jobs; on a server those of all machines, since one of them runs each job."""
    own = run_history.read(group.data).jobs
    if group.database("index").is_file or not group.has("index"):
        return own
    found = group.retrieval.index.passages.metas(_ELSEWHERE)
    return own | {name: msgspec.json.decode(text, type=LastRun) for name, text in found.items()}


def states(group: Group) -> list[JobState]:
    """Return every job with its last run and the next one."""
    past = _past(group)
    return [_state(group, job, past.get(job.name, LastRun())) for job in JOBS]


def _state(group: Group, job: Job, last: LastRun) -> JobState:
    expression = job.cron(group.settings)
    following = next_by_cron(expression, group.clock.now(), _CRON_HINT) if expression.strip() else None
    return JobState(
        name=job.name,
        about=job.about,
        cron=expression,
        last_run=last.at,
        changed=last.changed,
        error=last.error,
        last_changed=last.changed_at,
        last_change=last.last_change,
        next_run=stamp(following) if following else "",
        due=not not_due(job, group),
    )


@contextmanager
def runner_lock(data: Path, patience: float = 0.0) -> Iterator[bool]:
    """Take the lock of the group's only runner over all processes; yield whether it was free in time."""

    from nanoclaw_memory.workspace.files import make_folder

    make_folder(data)
    try:
        handle = open(data / LOCK, "a", opener=private.opener)  # noqa: SIM115 - closed below
    except OSError as problem:
        raise FileProblem(
            f"{LOCK} cannot be written: {problem.strerror}", "check free disk space and permissions"
        ) from None
    with handle:
        yield private.lock_within(handle, patience)


@contextmanager
def jobs_paused(data: Path) -> Iterator[None]:
    """Prevent jobs from running while a person's decision is carried out."""
    with runner_lock(data, PATIENCE) as acquired:
        if not acquired:
            raise StoreBusy("upkeep is running", "try again in a moment: nanoclaw-memory upkeep status")
        yield
