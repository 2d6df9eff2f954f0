"""Checkpoints: save a group's workspace and databases, list them, and compare one with the present."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path, PurePosixPath
from typing import Annotated, Protocol

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.clock import Clock, stamp
from nanoclaw_memory.errors import FileProblem, InvalidValue, NotFound
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import Checkpoint, CheckpointChange
from nanoclaw_memory.workspace.files import locked, read_text, replace_text

FOLDER = "memory/checkpoints"
MANIFEST = "manifest.json"
MAX_REASON = 500
DIFF_LIMIT = 200_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}\Z")
_UNFINISHED = ".unfinished-"


class Databases(Protocol):
    """The operations of the store that a checkpoint needs."""

    def existing(self) -> tuple[str, ...]: ...

    def held(self) -> AbstractContextManager[None]: ...

    def copy(self, name: str, target: Path) -> bool: ...

    def prepare(self, name: str, source: Path | None, target: Path) -> None: ...

    def load(self, name: str, prepared: Path) -> None: ...

    def differences(self, name: str, saved: Path) -> list[str]: ...


class Saved(msgspec.Struct, frozen=True):
    """One file in a checkpoint; `path` is relative to the workspace, or a database's name."""

    path: str
    sha256: str
    bytes: int
    mode: Annotated[int, msgspec.Meta(ge=0, le=0o7777)] = 0o600
    damaged: bool = False


class Manifest(msgspec.Struct, frozen=True):
    """The contents of a checkpoint; links are stored as links and never followed."""

    name: str
    created_at: str
    reason: str
    files: tuple[Saved, ...]
    links: dict[str, str]
    folders: tuple[str, ...]
    databases: tuple[Saved, ...]


class Tree(msgspec.Struct, frozen=True):
    """The entries of a workspace, without hidden ones and the checkpoints themselves."""

    files: tuple[str, ...]
    links: tuple[str, ...]
    folders: tuple[str, ...]


class Checkpoints(msgspec.Struct, frozen=True):
    """The checkpoints of one group. `step` is called with the name of every step, so that tests can stop at any."""

    workspace: Path
    databases: Databases
    clock: Clock
    step: Callable[[str], None] = lambda name: None
    restored: Callable[[], None] = lambda: None  # the last step of a restore; must be idempotent

    @property
    def folder(self) -> Path:
        return self.workspace / FOLDER

    def create(self, name: str, reason: str = "") -> Checkpoint:
        """Save the present state; writers of all processes wait meanwhile."""
        self._check_free(name)
        with file_problems("no checkpoint was made"), self.alone(), self.still():
            return self.save(name, reason)

    def all(self) -> list[Checkpoint]:
        """Return all checkpoints with a readable manifest, oldest first."""
        found = []
        self._sweep_if_free()
        for path in sorted(self.folder.iterdir()) if self.folder.is_dir() else ():
            if _NAME.match(path.name) and (path / MANIFEST).is_file():
                with contextlib.suppress(FileProblem):
                    found.append(self._summary(self.manifest(path.name)))
        return sorted(found, key=lambda checkpoint: (checkpoint.created_at, checkpoint.name))

    def show(self, name: str) -> tuple[Checkpoint, Manifest]:
        """Return one checkpoint with its manifest."""
        self._sweep_if_free()
        manifest = self.manifest(name)
        return self._summary(manifest), manifest

    def diff(self, name: str) -> list[CheckpointChange]:
        """Return what changed in the workspace and databases since a checkpoint."""
        self._sweep_if_free()
        manifest = self.manifest(name)
        with file_problems("nothing was compared"):
            return [*self._changed_files(manifest), *self._changed_databases(manifest)]

    # ---- used by restore too ----

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Lock checkpoint commands; remove what a killed one left behind."""
        with locked(self.folder):
            self.folder.chmod(0o700)
            self._sweep()
            yield

    @contextlib.contextmanager
    def still(self) -> Iterator[None]:
        """Block all writers of files and databases."""
        with ExitStack() as stack:
            for folder in tree(self.workspace).folders:
                stack.enter_context(locked(self.workspace / folder))
            stack.enter_context(self.databases.held())
            yield

    def save(self, name: str, reason: str) -> Checkpoint:
        """Copy everything into an unfinished folder, then rename it: a checkpoint is complete or absent."""
        self._check_free(name)
        with self.draft() as draft:
            manifest = self._copied(draft, name, one_line(reason)[:MAX_REASON])
            self.step("copied")
            text = json.dumps({"format": 1, **msgspec.to_builtins(manifest)}, indent=1)
            replace_text(draft / MANIFEST, text + "\n")
            self.step("described")
            draft.rename(self.folder / name)
            private.sync_folder(self.folder)
        self.step("saved")
        return self._summary(manifest)

    def manifest(self, name: str) -> Manifest:
        """Return a checkpoint's manifest; NotFound lists the existing checkpoints."""
        if not _NAME.match(name) or not (self.folder / name / MANIFEST).is_file():
            names = ", ".join(path.name for path in sorted(self.folder.glob("[!.]*")))
            raise NotFound(
                f"there is no checkpoint {name[:80]!r}",
                f"there are: {names}" if names else "make one: nanoclaw-memory checkpoint create NAME",
            )
        return _decoded(self.folder / name / MANIFEST)

    def verify(self, name: str) -> Manifest:
        """Return the manifest after checking the hash of every file in the checkpoint."""
        manifest = self.manifest(name)
        root = self.folder / name
        wanted = [(root / "workspace" / saved.path, saved) for saved in manifest.files]
        wanted += [(root / "data" / f"{saved.path}.db", saved) for saved in manifest.databases]
        for path, saved in wanted:
            beside = path.resolve() != root.resolve() / path.relative_to(root)  # through a link
            if beside or not path.is_file() or sha256_of(path) != saved.sha256:
                raise FileProblem(
                    f"checkpoint {name!r} is damaged: {path.relative_to(root)} is not what was saved",
                    "nothing was restored; choose another: nanoclaw-memory checkpoint list",
                )
        return manifest

    @contextlib.contextmanager
    def draft(self) -> Iterator[Path]:
        """Yield a new private folder, which is removed unless it was renamed; after a kill by the next command."""
        folder = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self.folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    # ---- inside ----

    def _sweep(self) -> None:
        for leftover in self.folder.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(leftover)

    def _sweep_if_free(self) -> None:
        """Remove what a killed command left behind, unless another one is running, which has done so."""
        with contextlib.suppress(OSError), private.tried_lock(self.folder) as free:
            if free:
                self._sweep()

    def _check_free(self, name: str) -> None:
        if not _NAME.match(name):
            raise InvalidValue(
                f"checkpoint name {name[:80]!r} is refused", "use letters, digits, dots and hyphens"
            )
        if (self.folder / name).exists():
            raise InvalidValue(f"there is a checkpoint {name!r} already", "choose another name")

    def _copied(self, draft: Path, name: str, reason: str) -> Manifest:
        present = tree(self.workspace)
        files = []
        for path in present.files:
            source = self.workspace / path
            digest, size = copy_file(source, draft / "workspace" / path)
            files.append(Saved(path, digest, size, stat.S_IMODE(source.stat().st_mode)))
        private.make_folder(draft / "data")
        databases = []
        for database in self.databases.existing():
            target = draft / "data" / f"{database}.db"
            sound = self.databases.copy(database, target)
            databases.append(Saved(database, sha256_of(target), target.stat().st_size, damaged=not sound))
        links = {path: str((self.workspace / path).readlink()) for path in present.links}
        moment = stamp(self.clock.now())
        return Manifest(
            name=name,
            created_at=moment,
            reason=reason,
            files=tuple(files),
            links=links,
            folders=present.folders,
            databases=tuple(databases),
        )

    def _summary(self, manifest: Manifest) -> Checkpoint:
        parts = (*manifest.files, *manifest.databases)
        return Checkpoint(
            name=manifest.name,
            created_at=manifest.created_at,
            reason=manifest.reason,
            files=len(manifest.files),
            databases=tuple(saved.path for saved in manifest.databases),
            bytes=sum(saved.bytes for saved in parts),
            path=str(self.folder / manifest.name),
            damaged=tuple(saved.path for saved in manifest.databases if saved.damaged),
        )

    def _changed_files(self, manifest: Manifest) -> Iterator[CheckpointChange]:
        present = tree(self.workspace)
        before = {saved.path: saved.sha256 for saved in manifest.files}
        for path in sorted({*before, *present.files, *manifest.links, *present.links}):
            old, new = self.folder / manifest.name / "workspace" / path, self.workspace / path
            was, is_ = before.get(path), sha256_of(new) if path in present.files else None
            if path in present.links or path in manifest.links:
                was = was or manifest.links.get(path)
                is_ = is_ or (str(new.readlink()) if path in present.links else None)
            if was != is_:
                kind = "added" if was is None else "removed" if is_ is None else "changed"
                yield CheckpointChange(path, kind, _text_diff(path, old, new))

    def _changed_databases(self, manifest: Manifest) -> Iterator[CheckpointChange]:
        saved = {one.path: one for one in manifest.databases}
        existing = self.databases.existing()
        for name in sorted({*saved, *existing}):
            if name not in saved:
                yield CheckpointChange(f"data/{name}.db", "added")
            elif name not in existing:
                yield CheckpointChange(f"data/{name}.db", "removed")
            elif saved[name].damaged:
                yield CheckpointChange(f"data/{name}.db", "changed", "the saved copy is damaged")
            elif lines := self.databases.differences(
                name, self.folder / manifest.name / "data" / f"{name}.db"
            ):
                yield CheckpointChange(f"data/{name}.db", "changed", "\n".join(lines))


def tree(workspace: Path) -> Tree:
    """List what belongs to a workspace, without hidden names (.git, …) and the checkpoints."""
    files: list[str] = []
    links: list[str] = []
    kept: list[str] = []
    for folder, folders, names in os.walk(workspace):
        here = PurePosixPath(Path(folder).relative_to(workspace))
        kept.append(str(here))
        seen = sorted(name for name in folders if not name.startswith(".") and str(here / name) != FOLDER)
        links += [str(here / name) for name in seen if Path(folder, name).is_symlink()]
        folders[:] = [name for name in seen if not Path(folder, name).is_symlink()]
        for name in sorted(name for name in names if not name.startswith(".")):
            mode = Path(folder, name).lstat().st_mode
            if stat.S_ISREG(mode):
                files.append(str(here / name))
            elif stat.S_ISLNK(mode):
                links.append(str(here / name))
    return Tree(tuple(sorted(files)), tuple(sorted(links)), tuple(sorted(kept)))


def copy_file(source: Path, target: Path) -> tuple[str, int]:
    """Copy one regular file durably; return the SHA-256 and size of the copy."""
    private.make_folder(target.parent)
    digest = hashlib.sha256()
    size = 0
    reader = os.fdopen(os.open(source, os.O_RDONLY | os.O_NOFOLLOW), "rb")
    writer = os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    with reader, writer:
        for block in iter(lambda: reader.read(1 << 20), b""):
            digest.update(block)
            size += len(block)
            writer.write(block)
        writer.flush()
        os.fsync(writer.fileno())
    return digest.hexdigest(), size


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextlib.contextmanager
def file_problems(outcome: str) -> Iterator[None]:
    """Turn an error of the file system into a FileProblem that names the outcome."""
    try:
        yield
    except OSError as error:
        name = Path(error.filename).name if isinstance(error.filename, str) else "the disk"
        raise FileProblem(
            f"{name}: {error.strerror}; {outcome}", "check free disk space and permissions, then try again"
        ) from error


def _decoded(path: Path) -> Manifest:
    try:
        manifest = msgspec.convert(json.loads(read_text(path)), Manifest)
    except (ValueError, msgspec.ValidationError) as error:
        raise FileProblem(
            f"checkpoint {path.parent.name!r} is damaged: {MANIFEST}: {error}",
            "nothing was restored; choose another: nanoclaw-memory checkpoint list",
        ) from None
    databases = [saved.path for saved in manifest.databases]
    named = (*(saved.path for saved in manifest.files), *manifest.links)
    for name in (*named, *manifest.folders, *databases):
        parts = PurePosixPath(name).parts
        inside = not any(part.startswith((".", "/")) for part in parts) and "\x00" not in name
        whole = bool(parts) or name not in named  # the workspace itself is no file
        if (
            not (inside and whole)
            or name.startswith(f"{FOLDER}/")
            or (name in databases and not name.replace("-", "").isalpha())
        ):
            raise FileProblem(
                f"checkpoint {path.parent.name!r} is damaged: it names {name!r}", "nothing was restored"
            )
    return manifest


def _text_diff(path: str, old: Path, new: Path) -> str:
    texts = []
    for side in (old, new):
        if side.is_symlink() or not side.is_file():
            texts.append("")
            continue
        try:
            texts.append(read_text(side, DIFF_LIMIT))
        except FileProblem as problem:
            return problem.message
    lines = difflib.unified_diff(
        texts[0].splitlines(), texts[1].splitlines(), f"saved/{path}", f"now/{path}", lineterm=""
    )
    return "\n".join(lines)
