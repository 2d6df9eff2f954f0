"""Restore a checkpoint all or nothing; if killed half-way, the next command finishes it.

Everything that needs space is done first, in an unfinished folder: the wanted files are copied, the wanted databases
migrated to the present schema. Renaming that folder to `.restore` is the point of no return. Later steps only take
from it: each database is loaded and its copy marked, each file is renamed into place. What is left in `.restore` is
left to do, and a second run continues where the first one stopped. The last step is the caller's (`restored`); it
runs while `.restore` still exists, so a kill does not lose it either.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import msgspec
from msgspec.structs import replace

from nanoclaw_memory import private
from nanoclaw_memory.errors import (
    CorruptDatabase,
    FileProblem,
    NanoClawError,
    NewerSchema,
    PathRefused,
    StoreError,
)
from nanoclaw_memory.types import Restored
from nanoclaw_memory.workspace.checkpoints import Checkpoints, Manifest, copy_file, file_problems, tree
from nanoclaw_memory.workspace.files import read_text, replace_text
from nanoclaw_memory.workspace.paths import PENDING_RESTORE, within

_PENDING = Path(PENDING_RESTORE).name
_PLAN = "plan.json"
_APPLIED = "applied"
_BEFORE = "before-restore-"
# Errors that the next command would meet again.
_LASTING = (FileProblem, PathRefused, CorruptDatabase, NewerSchema, ValueError, msgspec.ValidationError)
# Errors that a person can resolve while the restore waits: a full disk, permissions, a read-only or bad disk.
_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO)


class Plan(msgspec.Struct, frozen=True):
    """What is left to do once a restore is decided; `before` is the checkpoint of the state it replaces."""

    name: str
    before: str
    files: dict[str, int]  # path -> mode
    links: dict[str, str]
    folders: tuple[str, ...]
    remove: tuple[str, ...]
    databases: tuple[str, ...]


def restore(checkpoints: Checkpoints, name: str) -> Restored:
    """Restore a checkpoint, after checking it and saving the present state as another."""
    with file_problems("nothing was restored"), checkpoints.alone():
        _finish_or_give_up(checkpoints)
        manifest = checkpoints.verify(name)
        damaged = [saved.path for saved in manifest.databases if saved.damaged]
        if damaged:
            raise CorruptDatabase(
                f"checkpoint {name!r} holds a damaged copy of {damaged[0]}.db, kept for rescue only",
                "nothing was restored; choose another: nanoclaw-memory checkpoint list",
            )
        checkpoints.step("verified")
        with checkpoints.still():
            before = checkpoints.save(_free_name(checkpoints), f"before restoring {name}").name
            plan = _stage(checkpoints, manifest, before)
            with file_problems("the restore is half-way, and the next command goes on with it"):
                _apply(checkpoints, plan)
        _conclude(checkpoints)
    return Restored(name, before, len(plan.files), len(plan.remove), plan.databases)


def finish(checkpoints: Checkpoints) -> str | None:
    """Finish a restore that was killed half-way, or wait for one that is running; return its name."""
    with checkpoints.alone():
        return _finish_or_give_up(checkpoints)


def _finish_or_give_up(checkpoints: Checkpoints) -> str | None:
    """Finish a restore; one that no later command could finish is abandoned with an error, once."""
    pending = checkpoints.folder / _PENDING
    try:
        return _finish(checkpoints)
    except (*_LASTING, OSError) as error:
        if not pending.exists():  # everything was reverted
            raise
        before = _saved_before(checkpoints)
        back = f"nanoclaw-memory checkpoint restore {before}" if before else "nanoclaw-memory checkpoint list"
        why = error.message if isinstance(error, NanoClawError) else str(error)
        if isinstance(error, OSError) and error.errno in _PASSING:
            raise FileProblem(
                f"a restore is half-way, and the next command goes on with it: {why}",
                f"check free disk space and permissions; or give it up: rm -r {pending} && {back}",
            ) from error
        _put_away(checkpoints)
        raise FileProblem(
            f"a restore was half-way, could not be finished and is given up: {why}",
            f"some files are the checkpoint's, others are not; for the state before it: {back}",
        ) from error


def _saved_before(checkpoints: Checkpoints) -> str:
    """Return the checkpoint of the state before the last restore."""
    saved = [checkpoint.name for checkpoint in checkpoints.all() if checkpoint.name.startswith(_BEFORE)]
    return saved[-1] if saved else ""


def _finish(checkpoints: Checkpoints) -> str | None:
    if not (checkpoints.workspace / PENDING_RESTORE).exists():
        return None
    plan = msgspec.convert(json.loads(read_text(checkpoints.folder / _PENDING / _PLAN)), Plan)
    if not (checkpoints.folder / _PENDING / _APPLIED).exists():
        with checkpoints.still():
            _apply(checkpoints, plan)
    _conclude(checkpoints)
    return plan.name


def _stage(checkpoints: Checkpoints, manifest: Manifest, before: str) -> Plan:
    saved, present = checkpoints.folder / manifest.name, tree(checkpoints.workspace)
    wanted = {one.path: one.mode for one in manifest.files}
    kept = {path for path in present.links if manifest.links.get(path) is not None} | (
        wanted.keys() & {*present.files}
    )
    databases = tuple(sorted({*(one.path for one in manifest.databases), *checkpoints.databases.existing()}))
    plan = Plan(
        name=manifest.name,
        before=before,
        files=wanted,
        links=manifest.links,
        folders=manifest.folders,
        remove=tuple(sorted({*present.files, *present.links} - kept)),
        databases=databases,
    )
    with checkpoints.draft() as draft:
        try:
            _rehearse(manifest, saved / "workspace", draft / "files")
        except ValueError as error:  # a name that no file can have
            raise FileProblem(
                f"checkpoint {manifest.name!r} is damaged: {error}", "nothing was restored"
            ) from None
        plan = replace(plan, folders=tree(draft / "files").folders)
        _refuse_obstacles(checkpoints.workspace, plan)
        for name in databases:
            source = saved / "data" / f"{name}.db"
            checkpoints.databases.prepare(name, source if source.exists() else None, draft / f"{name}.db")
        checkpoints.step("staged")
        # A database of an older release may have been split in two.
        plan = replace(plan, databases=tuple(sorted(path.stem for path in draft.glob("*.db"))))
        replace_text(draft / _PLAN, json.dumps(msgspec.to_builtins(plan)))
        draft.rename(checkpoints.folder / _PENDING)
        private.sync_folder(checkpoints.folder)
    checkpoints.step("decided")
    return plan


def _rehearse(manifest: Manifest, saved: Path, staged: Path) -> None:
    """Build the whole workspace aside: an invalid manifest fails here, while nothing has changed."""
    for folder in manifest.folders:
        private.make_folder(staged / folder)
    for one in manifest.files:
        copy_file(saved / one.path, staged / one.path)
    for path, target in manifest.links.items():
        within((staged / path).parent, staged)
        private.make_folder((staged / path).parent)
        _link(staged, path, target)


def _refuse_obstacles(workspace: Path, plan: Plan) -> None:
    """Refuse a restore over hidden files, pipes and sockets, which are never replaced."""
    gone = {workspace / path for path in plan.remove}
    for path in (*plan.files, *plan.links):
        target = workspace / path
        if target.is_dir() and not target.is_symlink():
            left = [
                one for one in target.rglob("*") if one not in gone and (one.is_symlink() or not one.is_dir())
            ]
            if left:
                raise FileProblem(
                    f"{left[0].relative_to(workspace)} is in a folder where the file {path} belongs",
                    "nothing was restored; move it away, then restore again",
                )
    for folder in plan.folders:
        target = workspace / folder
        if target not in gone and target.exists() and not target.is_dir():
            raise FileProblem(
                f"{folder} is where a folder belongs",
                "nothing was restored; move it away, then restore again",
            )


def _apply(checkpoints: Checkpoints, plan: Plan) -> None:
    staged = checkpoints.folder / _PENDING
    _load_databases(checkpoints, plan, staged)
    _clear(checkpoints, plan)
    for path, mode in plan.files.items():
        if (staged / "files" / path).exists():
            _place(staged / "files" / path, checkpoints.workspace, path, mode)
            checkpoints.step(f"placed {path}")
    for path, target in plan.links.items():
        _link(checkpoints.workspace, path, target)
    # From here on nothing is replaced again: later writes of others stay.
    replace_text(staged / _APPLIED, "")
    checkpoints.step("applied")


def _conclude(checkpoints: Checkpoints) -> None:
    checkpoints.restored()
    checkpoints.step("concluded")
    _put_away(checkpoints)
    checkpoints.step("finished")


def _load_databases(checkpoints: Checkpoints, plan: Plan, staged: Path) -> None:
    """Load the databases first: if one cannot be loaded, those before it are reverted and no file was changed yet."""
    loaded: list[str] = []
    for name in plan.databases:
        prepared = staged / f"{name}.db"
        if not prepared.exists():
            continue
        try:
            checkpoints.databases.load(name, prepared)
        except StoreError:
            _take_back(checkpoints, plan, loaded)
            raise
        loaded.append(name)
        checkpoints.step(f"loaded {name}")
        # Renamed, not removed: should a later database fail, this one must be reverted.
        prepared.rename(staged / f"{name}.loaded")


def _take_back(checkpoints: Checkpoints, plan: Plan, loaded: list[str]) -> None:
    earlier = [path.stem for path in (checkpoints.folder / _PENDING).glob("*.loaded")]
    with checkpoints.draft() as draft:
        for name in {*loaded, *earlier}:
            source = checkpoints.folder / plan.before / "data" / f"{name}.db"
            checkpoints.databases.prepare(name, source if source.exists() else None, draft / f"{name}.db")
            checkpoints.databases.load(name, draft / f"{name}.db")
    _put_away(checkpoints)


def _clear(checkpoints: Checkpoints, plan: Plan) -> None:
    for path in plan.remove:
        target = checkpoints.workspace / path
        within(target.parent, checkpoints.workspace)
        target.unlink(missing_ok=True)
        checkpoints.step(f"removed {path}")
    for folder in reversed(tree(checkpoints.workspace).folders):
        target = checkpoints.workspace / folder
        if folder not in plan.folders and not any(target.iterdir()):
            target.rmdir()
    for folder in plan.folders:
        private.make_folder(checkpoints.workspace / folder)


def _place(staged: Path, workspace: Path, path: str, mode: int) -> None:
    target = workspace / path
    within(target.parent, workspace)
    staged.chmod(mode)
    staged.replace(target)
    private.sync_folder(target.parent)


def _link(workspace: Path, path: str, target: str) -> None:
    link = workspace / path
    within(link.parent, workspace)
    if link.is_symlink() and os.readlink(link) == target:  # noqa: PTH115
        return
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def _put_away(checkpoints: Checkpoints) -> None:
    """Rename first, so that no half-removed plan is ever followed; the sweep of `alone` removes the rest."""
    with checkpoints.draft() as away:
        (checkpoints.folder / _PENDING).rename(away / "done")
        private.sync_folder(checkpoints.folder)


def _free_name(checkpoints: Checkpoints) -> str:
    base = f"{_BEFORE}{checkpoints.clock.now():%Y%m%dT%H%M%S}"
    names = [base, *(f"{base}-{number}" for number in range(2, 1000))]
    return next(name for name in names if not (checkpoints.folder / name).exists())
