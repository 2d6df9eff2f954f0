"""Check a home: every finding names the command that helps."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from nanoclaw_memory.clock import stamp, zone
from nanoclaw_memory.entries.domains import count_lines
from nanoclaw_memory.entries.rules import TYPES
from nanoclaw_memory.errors import FileProblem, NanoClawError, SettingsError, StoreError
from nanoclaw_memory.intake.intake import Intake
from nanoclaw_memory.store.database import Database
from nanoclaw_memory.store.integrity import DATED, date_anew, dated_ahead, engine, repair
from nanoclaw_memory.store.integrity import examine as examine_database
from nanoclaw_memory.text import encodable, plural, spoken_in
from nanoclaw_memory.types import MAIN_GROUP, Finding
from nanoclaw_memory.upkeep.learning_checks import check_learning
from nanoclaw_memory.upkeep.version_one import old_files
from nanoclaw_memory.workspace.boot import MEMORY_MAX_LINES, SIZE_TARGETS, memory_mode
from nanoclaw_memory.workspace.files import HALF, read_text
from nanoclaw_memory.workspace.paths import memory_files
from nanoclaw_memory.workspace.roster import agents

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

PENDING_FORGET = "forget.pending"  # exists while a forget is unfinished
LOW_DISK = 200_000_000
SAMPLED = 500  # passages whose language is examined
FOREIGN = 0.25  # minimal share of them for a warning about an English embedder
LEFT_FOR = 3_600  # seconds after which no living writer has a temporary file


def examine(group: Group, fix: bool = False) -> list[Finding]:
    """Return all findings, problems first; `fix` removes temporary files of killed writers."""
    try:
        zone(group.settings.user.timezone)
    except SettingsError as error:  # nothing else can be examined without settings
        return [Finding("problem", error.message, error.hint)]
    forgotten = list(check_forgotten(group.intake, fix and group.scope.private))
    removed = [*sweep(group, group.clock.now()), *repair_databases(group), *date_rows(group)] if fix else []
    if not group.workspace.is_dir():
        where = "" if group.scope.group == "main" else f" --group {group.scope.group}"
        missing = f"there is no memory at {group.workspace}"
        return [*removed, Finding("problem", missing, f"nanoclaw-memory init{where}")]
    checks = [check_home, check_settings, check_files, check_boot, check_databases, check_model, check_judge]
    if group.scope.private:
        checks += [check_sizes, check_learning, check_lost_entries, check_clock]
    order = {"problem": 0, "warning": 1, "note": 2, "ok": 3}
    found = [*forgotten, *(finding for check in checks for finding in check(group))]
    return [*removed, *sorted(found, key=lambda finding: order[finding.level])]


def check_home(group: Group) -> Iterator[Finding]:
    """Check permissions and space."""
    root = group.home.root
    if not os.access(root, os.W_OK):
        yield Finding("problem", f"{root} is read-only: nothing can be remembered", f"chmod u+w {root}")
    if root.stat().st_mode & 0o077:
        yield Finding("warning", f"{root} can be read by other users of this machine", f"chmod 700 {root}")
    free = shutil.disk_usage(root).free
    if free < LOW_DISK:
        yield Finding("problem", f"only {free // 1_000_000} MB of disk are free", f"df -h {root}")
    leftovers = list(_leftovers(group))
    if leftovers and group.scope.private:
        names = " ".join(path.name for path in leftovers[:3])
        left = f"{plural(len(leftovers), 'temporary file')} of a killed writer: {names}"
        yield Finding("note", left, "those over an hour old go with: nanoclaw-memory doctor --fix")
    if group.scope.private and (group.home.data(group.scope.group) / PENDING_FORGET).exists():
        unfinished = "a forget was killed, or kept from finishing by another process: traces may be left"
        yield Finding("problem", unfinished, "run the same nanoclaw-memory forget again")
    try:
        agents(group.home)
    except FileProblem as error:
        yield Finding("warning", error.message, error.hint)
    if group.scope.private and group.scope.group == MAIN_GROUP and (old := old_files(group.home, root)):
        names = ", ".join(old_file.source.relative_to(root).as_posix() for old_file in old[:3])
        left = f"{plural(len(old), 'file')} of a NanoClaw version 1 that nobody reads: {names}"
        yield Finding("warning", left, f"nanoclaw-memory import nanoclaw {root}")
    for problem in group.page_problems() if group.scope.private else ():
        yield Finding("warning", f"not shared with the team: {problem}", "see Pages in docs/team.md")
    yield Finding("ok", f"home {root}, group {group.scope.group}", "nanoclaw-memory status")


def check_forgotten(intake: Intake, fix: bool) -> Iterator[Finding]:
    """Check the tombstones: while they are missing or damaged, new texts are refused."""
    try:
        if not intake.is_damaged():
            return
        if fix:
            count = plural(intake.repair(), "tombstone")
            message = (
                f"forgotten.db was built anew from its copy: {count}; the damaged one is in data/damaged"
            )
            yield Finding("warning", message, "forget again what is missing: nanoclaw-memory forget")
        else:
            intake.tombstones()  # raises if they are lost; damaged ones are reported with the databases
    except StoreError as error:
        yield Finding("problem", error.message, error.hint)


def sweep(group: Group, now: datetime) -> list[Finding]:
    """Remove the temporary files of killed writers; a recent one may belong to a living process."""
    if not group.scope.private or not group.workspace.is_dir():
        return []
    old = [path for path in _leftovers(group) if now.timestamp() - path.stat().st_mtime > LEFT_FOR]
    for path in old:
        path.unlink(missing_ok=True)
    if not old:
        return []
    return [
        Finding("ok", f"{plural(len(old), 'temporary file')} of a killed writer removed", "nothing to do")
    ]


def repair_databases(group: Group) -> Iterator[Finding]:
    """Repair undecodable text, and accept lost writes; each is reported once more."""
    for database in _databases(group) if group.scope.private else ():
        try:
            mended, lost = repair(database)
        except StoreError:  # reported with the databases
            continue
        name = database.path.name
        if mended:
            text = f"{name}: {plural(mended, 'text')} that could not be read now has � in those places"
            yield Finding("warning", text, "nanoclaw-memory db check")
        if lost:
            yield Finding(
                "warning", f"{name}: the loss of {plural(lost, 'write')} is accepted", "nothing to do"
            )


def _leftovers(group: Group) -> Iterator[Path]:
    for folder in (group.workspace, group.home.data(group.scope.group)):
        for path in folder.rglob(".*.tmp"):
            if path.is_file() and not path.is_symlink():
                yield path


def check_settings(group: Group) -> Iterator[Finding]:
    """Report the problems met while the settings were read."""
    for problem in group.configuration.problems:
        yield Finding("warning", problem, "nanoclaw-memory config show")
    changed = sum(origin != "default" for origin in group.configuration.origins.values())
    yield Finding(
        "ok", f"settings are valid, {changed} changed from the default", "nanoclaw-memory config show"
    )


def check_files(group: Group) -> Iterator[Finding]:
    """Report files that cannot be read as memory, and links that lead outside."""
    count = 0
    shared = group.configuration.settings.privacy.shared_files
    for relative, path in memory_files(group.home, group.scope, shared):
        count += 1
        try:
            text = read_text(path)
        except NanoClawError as error:
            yield Finding("warning", f"{relative}: {error.message}", error.hint)
            continue
        except OSError as error:
            yield Finding("warning", f"{relative}: {error.strerror}", f"ls -l {path}")
            continue
        if text.endswith(HALF):
            torn = f"{relative} ends with half a character: a writer was killed"
            yield Finding("note", torn, 'the next line mends it: nanoclaw-memory write "…"')
        if "\x00" in text:
            yield Finding("warning", f"{relative} is a binary file", f"mv {path} somewhere else")
    for path in group.workspace.rglob("*.md") if group.scope.private else ():
        if encodable(path.name) != path.name:
            odd = f"{path.name!a} is not searched: its name is not valid text"
            yield Finding("warning", odd, f"rename it: ls -b {path.parent}")
    base = group.workspace.resolve()
    for path in group.workspace.rglob("*") if group.scope.private else ():
        if path.is_symlink() and not path.resolve().is_relative_to(base):
            yield Finding(
                "warning", f"{path.name} is a link that leaves the workspace; it is ignored", f"ls -l {path}"
            )
    yield Finding("ok", f"{count:,} memory files", "nanoclaw-memory get MEMORY.md")


def check_sizes(group: Group) -> Iterator[Finding]:
    """Report always-loaded files over their target: they cost tokens in every session."""
    for relative, target in SIZE_TARGETS.items():
        path = group.workspace / relative
        size = path.stat().st_size if path.is_file() else 0
        if size > target:
            message = f"{relative} has {size:,} bytes, the target is {target:,}"
            yield Finding("warning", message, "nanoclaw-memory boot --json")
    memory = group.workspace / "MEMORY.md"
    lines = memory.read_bytes().count(b"\n") if memory.is_file() and memory.stat().st_size < 10_000_000 else 0
    if lines > MEMORY_MAX_LINES:
        message = f"MEMORY.md has {lines:,} lines, the target is {MEMORY_MAX_LINES}"
        yield Finding("warning", message, "nanoclaw-memory get MEMORY.md")


def check_boot(group: Group) -> Iterator[Finding]:
    """Report how MEMORY.md reaches the agent, and why."""
    mode = memory_mode(group.settings)
    shape = {
        "full": "MEMORY.md is loaded whole",
        "brief": "the brief replaces MEMORY.md",
        "both": f"MEMORY.md up to {MEMORY_MAX_LINES} lines and 8 KB and the brief are loaded",
    }[mode]
    yield Finding("ok", f"boot mode {mode}: {shape}", "nanoclaw-memory boot")


def check_databases(group: Group) -> Iterator[Finding]:
    """Check the integrity of existing databases, and what the engine supports."""
    for database in _databases(group):
        problems, following = examine_database(database)
        if problems:
            more = f" (and {plural(len(problems) - 1, 'more problem')})" if len(problems) > 1 else ""
            yield Finding("problem", f"{problems[0]}{more}", following)
        else:
            size = database.size()
            yield Finding("ok", f"{database.path.name} is sound ({size:,} bytes)", "nanoclaw-memory db check")
        embeds = group.settings.embeddings.provider != "none"
        if embeds and database.name == "index" and not (database.is_file or database.has_nearest):
            found = "the database has no pgvector: every process reads all vectors and searches them itself"
            remedy = "as its superuser: CREATE EXTENSION vector; then: nanoclaw-memory index"
            yield Finding("warning", found, remedy)
    yield from _engine()


def check_model(group: Group) -> Iterator[Finding]:
    """Check the embedder and the languages it supports."""
    from nanoclaw_memory.providers import models

    embeddings = group.configuration.settings.embeddings
    if embeddings.provider == "none":
        yield Finding(
            "note",
            "no embedder: search uses keywords and the graph",
            "nanoclaw-memory config show embeddings",
        )
    if embeddings.provider != "local":
        return
    model, folder = models.embedder(group.home.models, embeddings.model, embeddings.model_path)
    if models.installed(model, folder):
        if model is models.ENGLISH:
            yield _english_only(group)
    else:
        missing = "the local embedder is not installed: search uses keywords and the graph"
        yield Finding("warning", missing, "nanoclaw-memory models install")


def _english_only(group: Group) -> Finding:
    """Report what the English model means for this memory: a multilingual one helps where much of it is not English."""
    english = "the local embedder knows English; other languages are found by keyword"
    other = "nanoclaw-memory models install multilingual-e5-small"
    try:
        texts = group.retrieval.index.passages.search.sample(SAMPLED)
    except StoreError:  # reported with the databases
        texts = []
    spoken = [found for text in texts if (found := spoken_in(text))]
    foreign = sum(found != "english" for found in spoken)
    if len(spoken) < 10 or foreign < FOREIGN * len(spoken):
        return Finding("note", english, other)
    problem = (
        f"{foreign / len(spoken):.0%} of memory is not English, and the local embedder knows no other language: there"
        " search goes by words; the multilingual model would find more"
    )
    return Finding("warning", problem, other)


def check_judge(group: Group) -> Iterator[Finding]:
    """Check the small model that classifies messages: without it rules decide."""
    from nanoclaw_memory.providers import scorer
    from nanoclaw_memory.providers.judge import shared_judge

    if not scorer.usable():
        without = "hooks without a server cannot tell what needs memory: scorer.bin is missing or damaged"
        yield Finding("warning", without, "reinstall nanoclaw-memory")
    if not group.settings.judge.enabled:
        off = "messages are judged by rules alone: judge.enabled is false"
        yield Finding("note", off, "nanoclaw-memory config set judge.enabled true")
        return
    _, missing = shared_judge()
    if missing:
        yield Finding(
            "warning", f"messages are judged by rules alone: {missing}", "reinstall nanoclaw-memory"
        )


def _engine() -> Iterator[Finding]:
    version, searches = engine()
    if searches:
        yield Finding("ok", f"SQLite {version} with full-text search", "nanoclaw-memory db check")
    else:
        yield Finding("problem", "this SQLite has no full-text search", "pip install --force-reinstall apsw")


def _databases(group: Group) -> tuple[Database, ...]:
    own = group.existing_databases()
    administers = group.scope.private and group.scope.group == MAIN_GROUP
    return (*own, *group.resources.store.of_all_groups()) if administers else own


def check_lost_entries(group: Group) -> Iterator[Finding]:
    """Report entries that only the domain files contain, because their database was lost or replaced."""
    try:
        if group.has("entries"):
            lost = sum(len(group.entries.ledger.domains.lost(kind)) for kind in TYPES)
        else:
            lost = count_lines(group.workspace)
        missing = _missing_ids(group)
    except StoreError:
        return  # reported by the check of the databases
    if missing:
        named = f"entries.db has lost what the audit log knows as {', '.join(missing)}"
        yield Finding("problem", named, "what the domain files have of it: nanoclaw-memory entries migrate")
    if lost:
        message = f"the domain files hold {plural(lost, 'line')} of entries that no database knows"
        yield Finding("problem", message, "nanoclaw-memory entries migrate")


def check_clock(group: Group) -> Iterator[Finding]:
    """Report dates in the future: the clock was wrong when they were stored, or is wrong now."""
    ahead = stamp(group.clock.now() + timedelta(days=1))
    count, last = 0, ""
    for name in _dated(group):
        try:
            rows, date = dated_ahead(group.database(name), name, ahead)
        except StoreError:  # reported with the databases
            continue
        count, last = count + rows, max(last, date)
    if count:
        told = (
            f"{plural(count, 'row')} of memory {'is' if count == 1 else 'are'} dated in the future, up to"
            f" {last[:10]}: the clock was wrong then, or is wrong now ({group.today})"
        )
        yield Finding("warning", told, "if the clock is right now: nanoclaw-memory doctor --fix")
    logs = sorted(path.name for path in (group.workspace / "memory").glob("????-??-??.md"))
    for name in [name for name in logs if name[:10] > ahead[:10]]:
        told = (
            f"memory/{name} is a log of the future: the clock was wrong then, or is wrong now ({group.today})"
        )
        yield Finding("warning", told, f"move its lines to the log of their day: ncm log {name[:10]}")


def date_rows(group: Group) -> Iterator[Finding]:
    """Replace dates in the future by dates that follow the order of storing."""
    now = group.clock.now()
    for name in _dated(group) if group.scope.private else ():
        try:
            if dated_ahead(group.database(name), name, stamp(now + timedelta(days=1)))[0]:
                done = date_anew(group.database(name), name, stamp(now))
                text = f"{name}.db: {plural(done, 'row')} that a clock in the future had dated are dated anew"
                yield Finding("warning", text, "nothing to do")
        except StoreError:  # reported with the databases
            continue


def _dated(group: Group) -> list[str]:
    return [name for name in DATED if group.has(name)]


def _missing_ids(group: Group) -> list[str]:
    """Return the entries among lost writes: stored according to the audit log, and neither present nor deleted."""
    lost = group.database("entries").lost_writes() if group.has("entries") else 0
    stored: dict[str, None] = {}
    for record in group.entries.ledger.audit_log.records() if lost else ():
        if record.get("group") != group.scope.group:
            continue
        if record.get("event") == "forget":  # removes entries without naming them
            stored.clear()
        elif record.get("event") == "store":
            stored[str(record.get("id"))] = None
        elif record.get("event") in ("delete", "purge"):
            stored.pop(str(record.get("id")), None)
    table = group.entries.ledger.table
    return [entry for entry in stored if table.get(entry) is None][-lost:]
