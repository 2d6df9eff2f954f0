"""Every job of upkeep in one table: its name, when it is due, and what it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.settings import Settings
from nanoclaw_memory.types import Done
from nanoclaw_memory.upkeep.cool import cool
from nanoclaw_memory.upkeep.ingest import ingest
from nanoclaw_memory.upkeep.metabolize import metabolize
from nanoclaw_memory.upkeep.promote import promote
from nanoclaw_memory.upkeep.retain import retain

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group


class Job(msgspec.Struct, frozen=True):
    """One job; run twice it does as much as once."""

    name: str
    about: str
    schedule: str  # the setting below `cron` that says when
    run: Callable[[Group, bool], Done]

    def cron(self, settings: Settings) -> str:
        """Its cron expression; empty when it never runs by itself."""
        return str(getattr(settings.cron, self.schedule))


def _drain(group: Group, dry_run: bool) -> Done:
    return Done() if dry_run else Done(sum(iter(lambda: group.drain_spool(200), 0)))


def _index(group: Group, dry_run: bool) -> Done:
    if dry_run:
        return Done(group.retrieval.stale())
    done = group.index()
    return Done(done.added + done.removed + done.embedded, done.degraded)


def _reindex(group: Group, dry_run: bool) -> Done:
    if dry_run:
        return Done()
    done = group.retrieval.corpora.reindex()
    return Done(done.added + done.removed + done.embedded, done.degraded)


def _expire(group: Group, dry_run: bool) -> Done:
    from nanoclaw_memory.entries import lifecycle as care

    if not group.has("entries"):
        return Done()
    if dry_run:
        return Done(len(group.entries.ledger.table.expired_by(group.moment())))
    return Done(care.expire(group.entries))


def _purge(group: Group, dry_run: bool) -> Done:
    from nanoclaw_memory.entries import lifecycle as care

    if not group.has("entries"):
        return Done()
    return Done(len(care.purgeable(group.entries)) if dry_run else care.purge(group.entries))


def _archive(group: Group, dry_run: bool) -> Done:
    from nanoclaw_memory.entries import lifecycle as care

    if not group.has("entries"):
        return Done()
    return Done(len(care.stale(group.entries)) if dry_run else care.propose_stale(group.entries))


# In the order of a run: what was said comes in, then it is weighed, then what is over moves away.
JOBS = (
    Job("drain", "archive what hooks have spooled", "intake", _drain),
    Job("ingest", "read facts from logs and memory files", "intake", ingest),
    Job("cool", "cool the activation of facts", "decay", cool),
    Job("expire", "mark entries past their date", "nightly", _expire),
    Job("purge", "delete entries that were replaced long ago", "nightly", _purge),
    Job("archive", "propose entries that nobody uses for archiving", "nightly", _archive),
    Job("promote", "propose lines for MEMORY.md, and what to demote", "nightly", promote),
    Job("metabolize", "propose proven lessons for SOUL.md", "nightly", metabolize),
    Job("retain", "move expired log lines to memory/archive/", "nightly", retain),
    Job("index", "bring the search index up to date", "intake", _index),
    Job("corpus-reindex", "index domain documents again", "rag_reindex", _reindex),
)


def job_named(name: str) -> Job:
    """The job of this name."""
    for job in JOBS:
        if job.name == name:
            return job
    raise InvalidValue(f"there is no job {name[:40]!r}", f"one of: {', '.join(job.name for job in JOBS)}")
