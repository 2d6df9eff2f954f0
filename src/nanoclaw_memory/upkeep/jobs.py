"""The table of upkeep jobs: name, purpose, schedule and function, with the small jobs themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.clock import stamp, written_at
from nanoclaw_memory.entries import lifecycle
from nanoclaw_memory.errors import FileProblem, InvalidValue
from nanoclaw_memory.graph.refresh import VERSION, Refresh
from nanoclaw_memory.intake.suspicion import suspicions
from nanoclaw_memory.lessons.learning import Learner
from nanoclaw_memory.lessons.service import days, ripe
from nanoclaw_memory.rendering import item_line
from nanoclaw_memory.settings import Settings
from nanoclaw_memory.statements import features, restates
from nanoclaw_memory.store.mentions import MentionTable
from nanoclaw_memory.text import fingerprint, one_line, plural
from nanoclaw_memory.types import JobResult, Lesson
from nanoclaw_memory.upkeep import pages
from nanoclaw_memory.upkeep.consolidate import consolidate
from nanoclaw_memory.upkeep.log_blocks import archives, logs
from nanoclaw_memory.upkeep.pair_decisions import decide_pairs, merge
from nanoclaw_memory.upkeep.promote import promote
from nanoclaw_memory.upkeep.retain import retain
from nanoclaw_memory.upkeep.review import lesson_key, propose_held
from nanoclaw_memory.workspace.boot import SIZE_TARGETS
from nanoclaw_memory.workspace.files import read_text
from nanoclaw_memory.workspace.paths import ARCHIVE, day_in_path

if TYPE_CHECKING:
    from nanoclaw_memory.entries.entries import Entries
    from nanoclaw_memory.memory.group import Group
    from nanoclaw_memory.types import Entry, Indexed

PRINCIPLES_PAGE = "SOUL.md"
PRINCIPLES_SECTION = "Core Principles"
UNUSED_DAYS = 90
FORSAKEN = 0.02  # share of its warmth left: after 77 days at 95 % a day
FEWEST_PRUNED, MOST_PRUNED = 5, 25  # facts of one proposal
MAX_LEARNT = 500  # exchanges judged in one run, at 10 ms each


class Job(msgspec.Struct, frozen=True):
    """A job; running it twice has the effect of once."""

    name: str
    about: str
    schedule: str  # the setting below `cron` with its cron expression
    run: Callable[[Group, bool], JobResult]  # the group, and whether it is a dry run
    local: bool = False  # works on what only this machine has

    def cron(self, settings: Settings) -> str:
        """Return its cron expression; empty if it is never scheduled."""
        return str(getattr(settings.cron, self.schedule))


# ---- conversations and the index ----


def _drain(group: Group, dry_run: bool) -> JobResult:
    return JobResult() if dry_run else JobResult(sum(iter(lambda: group.drain_spool(200), 0)))


def _index(group: Group, dry_run: bool) -> JobResult:
    return JobResult(group.retrieval.stale()) if dry_run else _indexed(group.index())


def _reindex_corpora(group: Group, dry_run: bool) -> JobResult:
    return JobResult() if dry_run else _indexed(group.retrieval.corpora.reindex())


def _with_shared_chats(run: Callable[[Group, bool], JobResult]) -> Callable[[Group, bool], JobResult]:
    """Return a job that also runs for the group's shared chats."""

    def both(group: Group, dry_run: bool) -> JobResult:
        own = run(group, dry_run)
        if (chats := group.shared_chats) is None:
            return own
        said = run(chats, dry_run)
        return JobResult(own.changed + said.changed, tuple(dict.fromkeys((*own.notes, *said.notes))))

    return both


def _indexed(done: Indexed) -> JobResult:
    return JobResult(done.added + done.removed + done.embedded, done.degraded)


# ---- facts from files ----


def _ingest(group: Group, dry_run: bool) -> JobResult:
    """Read files that changed since the last run; retire what only deleted files stated."""
    graph = group.graph
    mentions = MentionTable(graph.db)
    refresh = Refresh(graph, group.home, group.pages)
    files_now = refresh.watched()  # before reading: what changes meanwhile is read again
    known = mentions.read_files()
    seen: set[str] = set()
    notes: list[str] = []
    changed = 0
    for path, file, text in _log_texts(group, seen, notes):
        mark = fingerprint(f"{VERSION}\n{text}")
        if known.get(path) == mark:
            continue
        if dry_run:
            notes.append(f"would read {path}")
            changed += 1
            continue
        with graph.db.transaction():
            done = graph.ingest(path, text, _modified_at(file))
            mentions.mark_read(path, mark)
        changed += done.added + done.retired
    gone = sorted(path for path in {*known, *mentions.paths()} if path not in seen and _is_log(path))
    if dry_run:
        return JobResult(changed + len(gone), (*notes, *(f"{path} is gone" for path in gone)))
    for path in gone:
        with graph.db.transaction():
            changed += graph.ingest(path, "").retired
            mentions.mark_read(path, "")
    pages = graph.seed(group.home)
    changed += sum(done.added + done.retired for done in pages)
    notes += [f"{done.path} was not read: {done.problem}" for done in pages if done.problem]
    with graph.db.transaction():
        refresh.note(files_now)
    said, unread = group.statements.read(whole=True)
    return JobResult(changed + said, (*notes, *filter(None, [unread])))


def _log_texts(group: Group, seen: set[str], notes: list[str]) -> Iterator[tuple[str, Path, str]]:
    """Yield path, file and text of every archive and log; add the existing ones to `seen`.

    Archives come first: a moved line must be known there before its log no longer has it.
    """
    files = [*archives(group.workspace), *((path, file) for _, path, file in logs(group.workspace))]
    for path, file in files:
        try:
            text = read_text(file)
        except FileNotFoundError:  # deleted since it was listed
            continue
        except FileProblem as problem:
            notes.append(f"{path} was not read: {problem.message}")
        else:
            yield path, file, text
        seen.add(path)


def _modified_at(file: Path) -> str:
    try:
        return written_at(file.stat())
    except FileNotFoundError:  # deleted since it was read
        return ""


def _is_log(path: str) -> bool:
    return day_in_path(path) is not None or path.startswith(f"{ARCHIVE}/")


# ---- entries ----


def _entries_job(
    find: Callable[[Entries], list[Entry]], act: Callable[[Entries], int]
) -> Callable[[Group, bool], JobResult]:
    """Return a job that acts on entries, which a dry run only counts."""

    def run(group: Group, dry_run: bool) -> JobResult:
        if not group.has("entries"):
            return JobResult()
        return JobResult(len(find(group.entries)) if dry_run else act(group.entries))

    return run


_expire = _entries_job(lifecycle.expired, lifecycle.expire)
_purge = _entries_job(lifecycle.purgeable, lifecycle.purge)
_archive = _entries_job(lifecycle.stale, lifecycle.propose_stale)


# ---- facts and lessons ----


def _cool(group: Group, dry_run: bool) -> JobResult:
    """Lower the activation of every fact once for each day since the last time."""
    if not group.has("facts"):
        return JobResult()
    if dry_run:
        last = group.graph.activation.cooled_on()
        due = not last or last < group.today.isoformat()
        return JobResult(int(due), (f"last cooled on {last or 'no day yet'}",))
    changed, missed = group.graph.cool()
    return JobResult(changed, (f"made up for {plural(missed, 'day')}",) if missed > 1 else ())


def _prune(group: Group, dry_run: bool) -> JobResult:
    """Propose to retire facts from logs and conversations that cooled and answered nothing for months."""
    if not group.has("facts"):
        return JobResult()
    old = stamp(group.clock.now() - timedelta(days=UNUSED_DAYS))
    found = [row.item for row in group.graph.facts.forsaken(FORSAKEN, old, MOST_PRUNED)]
    if dry_run or len(found) < FEWEST_PRUNED:
        return JobResult(len(found) if dry_run and len(found) >= FEWEST_PRUNED else 0)
    made = group.proposals.propose(
        "prune",
        {"facts": [fact.id for fact in found]},
        why=f"{plural(len(found), 'fact')} from logs and talk, Cool, unused for {UNUSED_DAYS} days",
        key=" ".join(str(fact.id) for fact in found),
        moment=group.moment(),
        source="facts.db",
        diff="\n".join(f"- {item_line(fact.text, 200)}" for fact in found),
        effect="are no longer answers of the graph; their history and the lines that state them stay",
    )
    return JobResult(int(made is not None))


def _learn(group: Group, dry_run: bool) -> JobResult:
    """Judge exchanges that a cold process archived, and propose the lessons that need approval."""
    if not group.has("facts"):
        return JobResult()
    judge = group.resources.judge
    waiting = len(group.lessons.unjudged(MAX_LEARNT))
    if dry_run:
        return JobResult(waiting)
    notes = () if judge or not waiting else ("exchanges wait for the judge: see nanoclaw-memory doctor",)
    learner = Learner(group.lessons, group.exchanges, judge)
    changed = learner.learn_later(MAX_LEARNT) if waiting and group.has("continuity") else 0
    return JobResult(changed + propose_held(group), notes)


def _metabolize(group: Group, dry_run: bool) -> JobResult:
    """Propose every proven lesson once as a principle; report those that are suspicious or known already."""
    if not group.has("facts"):
        return JobResult()
    page = group.page(PRINCIPLES_PAGE)
    known = pages.item_features(page)
    proposed, notes = 0, []
    for lesson in ripe(group.lessons.all(("active",)), group.clock.now()):
        principle = _principle(lesson, page)
        if reasons := suspicions(principle):
            notes.append(f"lesson {lesson.id} is not proposed: {', '.join(reasons)}")
        elif any(restates(other, features(principle)) for other in known):
            notes.append(f"lesson {lesson.id} is not proposed: {PRINCIPLES_PAGE} says it already")
        elif dry_run:
            proposed += group.proposals.find("lesson", lesson_key(lesson)) is None
        else:
            proposed += _propose_principle(group, lesson, principle, len(page.encode()))
    return JobResult(proposed, tuple(notes))


def _principle(lesson: Lesson, page: str) -> str:
    """Return the line for SOUL.md: under its principle's name, unless SOUL.md has a principle of that name."""
    title, text = one_line(lesson.principle), one_line(lesson.lesson)
    there = any(
        pages.item_text(item).lstrip("*_").casefold().startswith(title.casefold())
        for item in pages.items(page)
    )
    return text if there or not title else f"{title}: {text}"


def _propose_principle(group: Group, lesson: Lesson, principle: str, page_bytes: int) -> bool:
    why = (
        f"learnt {days(lesson, group.clock.now())} days ago, injected {lesson.injections} times, "
        f"effective in {lesson.effectiveness:.0%}"
    )
    if lesson.project:
        why += f"; it was learnt in project {lesson.project}, and SOUL.md is read in every project"
    if lesson.private:
        why += "; it was learnt in private, and SOUL.md is read in shared chats too"
    target = SIZE_TARGETS[PRINCIPLES_PAGE]
    if (after := page_bytes + len(principle.encode()) + 3) > target:
        why += f"; {PRINCIPLES_PAGE} would have {after:,} bytes, over its target of {target:,}"
    proposal = group.proposals.propose(
        "lesson",
        {
            "file": PRINCIPLES_PAGE,
            "section": PRINCIPLES_SECTION,
            "text": principle,
            "lesson": lesson.id,
        },
        why=why,
        key=lesson_key(lesson),
        moment=group.moment(),
        source=f"lesson {lesson.id}",
        diff=f"## {PRINCIPLES_SECTION}\n+ {principle}",
        origin=lesson.origin,
        effect=f"stands in {PRINCIPLES_PAGE}, which every session reads",
    )
    return proposal is not None


# ---- the table, in the order of a run: read what is new, judge it, move what has expired ----

JOBS = (
    Job("drain", "archive what hooks have spooled", "intake", _drain, local=True),
    Job("ingest", "read facts from logs and memory files", "intake", _ingest),
    Job("cool", "cool the activation of facts", "decay", _with_shared_chats(_cool)),
    Job("prune", "propose facts that nobody uses for pruning", "nightly", _prune),
    Job("expire", "mark entries past their date", "nightly", _with_shared_chats(_expire)),
    Job("purge", "delete entries that were replaced long ago", "nightly", _with_shared_chats(_purge)),
    Job("archive", "propose entries that nobody uses for archiving", "nightly", _with_shared_chats(_archive)),
    Job("promote", "propose lines for MEMORY.md, and what to demote", "nightly", promote),
    Job("consolidate", "let a language model read what was said", "nightly", consolidate),
    Job(
        "learn",
        "judge corrections that were archived without the judge",
        "intake",
        _with_shared_chats(_learn),
    ),
    Job("metabolize", "propose proven lessons for SOUL.md", "nightly", _metabolize),
    Job("retain", "move expired log lines to memory/archive/", "nightly", retain),
    Job("index", "bring the search index up to date", "intake", _with_shared_chats(_index)),
    Job("settle", "let a language model decide which of two statements holds", "nightly", decide_pairs),
    Job("merge", "let a language model find entries that say the same", "nightly", merge),
    Job("corpus-reindex", "index domain documents again", "rag_reindex", _reindex_corpora),
)


def job_named(name: str) -> Job:
    """Return the job of this name."""
    for job in JOBS:
        if job.name == name:
            return job
    raise InvalidValue(f"there is no job {name[:40]!r}", f"one of: {', '.join(job.name for job in JOBS)}")
