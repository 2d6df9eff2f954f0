"""Install into a client and uninstall: shown first, recorded in the home, undone byte for byte."""

from __future__ import annotations

import base64
import difflib
import json
import os
import sys
import tempfile
from pathlib import Path

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.errors import FileProblem, InvalidValue
from nanoclaw_memory.interfaces.install.clients import CLIENTS, Commands, FileEdit, edits
from nanoclaw_memory.text import fingerprint


class FileChange(msgspec.Struct, frozen=True):
    """One file before and after; None where there is no file."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def diff(self) -> str:
        """The change as a person reads it."""
        old, new = (
            raw.decode("utf-8", "replace").splitlines() if raw else [] for raw in (self.before, self.after)
        )
        return "\n".join(difflib.unified_diff(old, new, str(self.path), str(self.path), lineterm=""))


def program() -> tuple[str, ...]:
    """The command by which a client starts this installation from anywhere: the shim."""
    from nanoclaw_memory.interfaces import shim

    return (sys.executable, "-I", "-S", str(Path(shim.__file__).resolve()))


def plan(client: str, commands: Commands, project: Path | None = None) -> list[FileChange]:
    """What installing would change; nothing when it is installed already."""
    changes = []
    for edit in _edits(client, commands, project):
        before = _read(edit.path)
        after = _edited(edit, before, adding=True)
        if after != before:
            changes.append(FileChange(edit.path, before, after))
    return changes


def install(changes: list[FileChange], record: Path) -> None:
    """Write the changes; the bytes before them are recorded in the home until uninstall."""
    known = _recorded(record)
    for change in changes:
        kept = known.get(str(change.path))
        before = kept["before"] if kept else _encoded(change.before)
        assert change.after is not None
        known[str(change.path)] = {"before": before, "after": fingerprint(change.after.decode("utf-8"))}
    private.make_folder(record.parent)
    _replace(record, json.dumps(known, indent=2).encode())
    for change in changes:
        assert change.after is not None
        _replace(change.path, change.after)


def plan_removal(
    client: str, commands: Commands, record: Path, project: Path | None = None
) -> list[FileChange]:
    """What uninstalling would change: the old bytes where nothing else changed since, else our part taken out."""
    known = _recorded(record)
    changes = []
    for edit in _edits(client, commands, project):
        before = _read(edit.path)
        if before is None:
            continue
        kept = known.get(str(edit.path))
        if kept and fingerprint(before.decode("utf-8", "surrogateescape")) == kept["after"]:
            after = _decoded(kept["before"])
        else:
            after = _edited(edit, before, adding=False)
            if kept and kept["before"] is None and after == edit.empty.encode():
                after = None
        if after != before:
            changes.append(FileChange(edit.path, before, after))
    return changes


def uninstall(changes: list[FileChange], record: Path) -> None:
    """Write the removal and delete the record."""
    for change in changes:
        if change.after is None:
            change.path.unlink(missing_ok=True)
        else:
            _replace(change.path, change.after)
    record.unlink(missing_ok=True)


def _edits(client: str, commands: Commands, project: Path | None) -> list[FileEdit]:
    if client not in CLIENTS:
        raise InvalidValue(f"{client!r} is no client we know", "one of: " + ", ".join(CLIENTS))
    return edits(client, commands, Path.home(), project)


def _edited(edit: FileEdit, raw: bytes | None, adding: bool) -> bytes:
    try:
        text = raw.decode("utf-8") if raw and raw.strip() else edit.empty
        return (edit.add if adding else edit.remove)(text).encode("utf-8")
    except (ValueError, IndexError):
        raise FileProblem(
            f"{edit.path} is not plain JSON that can be edited safely; nothing was changed",
            f"correct the file, or add the server by hand: {' '.join(program())} mcp",
        ) from None


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileProblem(f"{path} cannot be read: {error.strerror}", "check its permissions") from None


def _replace(path: Path, raw: bytes) -> None:
    """Replace a file all or nothing, through a link if it is one, keeping its mode."""
    target = path.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o7777 if target.exists() else 0o600
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "wb") as stream:
            stream.write(raw)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(mode)
        Path(name).replace(target)
    except OSError as error:
        raise FileProblem(f"{path} cannot be written: {error.strerror}", "check its permissions") from None


def _recorded(record: Path) -> dict[str, dict[str, str | None]]:
    raw = _read(record)
    found: dict[str, dict[str, str | None]] = json.loads(raw) if raw else {}
    return found


def _encoded(raw: bytes | None) -> str | None:
    return None if raw is None else base64.b64encode(raw).decode()


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
