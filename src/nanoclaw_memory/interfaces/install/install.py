"""Install into a client and uninstall: shown first, recorded in the home, reverted byte for byte."""

from __future__ import annotations

import base64
import difflib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.errors import FileProblem, Refused
from nanoclaw_memory.interfaces.install import launcher
from nanoclaw_memory.interfaces.install.calls import Call, Commands, Target
from nanoclaw_memory.interfaces.install.clients import CLIENTS, files_of
from nanoclaw_memory.interfaces.install.config_file import ConfigFile
from nanoclaw_memory.interfaces.install.service import SERVICE_RECORD
from nanoclaw_memory.text import fingerprint


class FileChange(msgspec.Struct, frozen=True):
    """One file before and after; None if it does not exist."""

    path: Path
    before: bytes | None
    after: bytes | None
    foreign: bytes | None = None  # the content without anything of ours

    @property
    def diff(self) -> str:
        """Return the change as a diff for people."""
        old, new = (
            raw.decode("utf-8", "replace").splitlines() if raw else [] for raw in (self.before, self.after)
        )
        return "\n".join(difflib.unified_diff(old, new, str(self.path), str(self.path), lineterm=""))


class FileRecord(msgspec.Struct, frozen=True):
    """What is recorded of a file until uninstall: its former bytes, a fingerprint of the new ones, the folders
    created.
    """

    before: str | None
    after: str
    folders: list[str] = msgspec.field(default_factory=list)


class InstallPlan(msgspec.Struct, frozen=True):
    """What installing or uninstalling would do."""

    changes: list[FileChange]
    others: tuple[Target, ...] = ()  # other memories that this client is installed for
    notes: tuple[str, ...] = ()


def plan(client: str, commands: Commands, project: Path | None = None) -> InstallPlan:
    """Return what installing would change; nothing when it is installed already."""
    changes: list[FileChange] = []
    others: set[Target] = set()
    notes: list[str] = []
    for file in files_of(client, project):
        before = _read(file.path)
        try:
            text = _text(file, before)
            if file.has_plugin(text):
                raise Refused(
                    f"{client} has our plugin already: with both, everything would come twice",
                    "keep the plugin, which does the same, or remove it first",
                )
            located, after = file.calls(text), file.add(text, commands).encode()
            ours = [call for _, call in located if call.is_ours]
            foreign = file.remove(text).encode() if ours else None if file.whole else before
        except ValueError as error:
            raise _unsafe(file, error, commands) from None
        others |= {call.target for call in ours if call.target != commands.target}
        by_hand = [".".join(map(str, path)) for path, call in located if not call.is_ours]
        notes += [f"{name} in {file.path} was added by hand: it stays as it is" for name in by_hand]
        if after != before:
            changes.append(FileChange(file.path, before, after, foreign))
    if changes and CLIENTS[client].note:
        notes.append(CLIENTS[client].note)
    return InstallPlan(changes, tuple(sorted(others, key=str)), tuple(notes))


def install(changes: list[FileChange], record: Path, taken_over: list[Path]) -> None:
    """Write the changes; the former bytes are recorded in the home until uninstall.

    `taken_over` are the records of other homes for which this client was installed until now.
    """
    known: dict[str, FileRecord] = {}
    for other in [*taken_over, record]:
        known |= _recorded(other)
    _require_unchanged(changes)
    for change in changes:
        kept = known.get(str(change.path))
        untouched = kept and change.before is not None and kept.after == _mark(change.before)
        before = kept.before if kept and untouched else _encoded(change.foreign)
        assert change.after is not None
        folders = kept.folders if kept else [str(path) for path in change.path.parents if not path.exists()]
        known[str(change.path)] = FileRecord(before, _mark(change.after), folders)
    private.make_folder(record.parent)
    _replace(record, msgspec.json.format(msgspec.json.encode(known)))
    launcher.write(record.parent.parent)
    for change in changes:
        assert change.after is not None
        _replace(change.path, change.after)
    for other in set(taken_over) - {record}:
        other.unlink(missing_ok=True)


def plan_removal(client: str, target: Target, record: Path, project: Path | None = None) -> InstallPlan:
    """Return what uninstalling would change: the former bytes if nothing else changed since, else our part is
    removed.
    """
    files = files_of(client, project)
    others = {call.target for file in files for call in _our_calls(file)}
    if others and target not in others:
        return InstallPlan([], tuple(sorted(others, key=str)))
    known = _recorded(record)
    changes: list[FileChange] = []
    for file in files:
        before = _read(file.path)
        kept = known.get(str(file.path))
        if before is None or (file.whole and not kept):
            continue
        if kept and (file.whole or _mark(before) == kept.after):
            after = _decoded(kept.before)
        else:
            after = _without_us(file, before, target)
            if kept and kept.before is None and after.decode().strip() == file.empty.strip():
                after = None
        if after != before:
            changes.append(FileChange(file.path, before, after))
    return InstallPlan(changes)


def _our_calls(file: ConfigFile) -> list[Call]:
    try:
        return [call for _, call in file.calls(read_text(file)) if call.is_ours]
    except ValueError:
        return []  # an unreadable file has no calls


def _without_us(file: ConfigFile, raw: bytes, target: Target) -> bytes:
    try:
        return file.remove(_text(file, raw), target).encode() if _our_calls(file) else raw
    except ValueError as error:
        raise _unsafe(file, error) from None


def uninstall(changes: list[FileChange], record: Path) -> None:
    """Write the removal and delete the record; the launcher is removed with the last one."""
    _require_unchanged(changes)
    known = _recorded(record)
    for change in changes:
        if change.after is None:
            change.path.unlink(missing_ok=True)
            _remove_empty(known[str(change.path)].folders)
        else:
            _replace(change.path, change.after)
    record.unlink(missing_ok=True)
    launcher.remove_unused(record.parent.parent)


def record_of(home: Path, client: str, project: Path | None) -> Path:
    """Return the file in a home that records the former contents of a client's files."""
    where = f"-{fingerprint(str(project))[:12]}" if project else ""
    return home / "installed" / f"{client}{where}.json"


def has_clients(home: Path) -> bool:
    """Return whether this home is installed in any client."""
    return any(path.name != SERVICE_RECORD for path in (home / "installed").glob("*.json"))


def read_text(file: ConfigFile) -> str:
    """Return the text of a client's file; for a missing one, its initial content."""
    return _text(file, _read(file.path))


def _text(file: ConfigFile, raw: bytes | None) -> str:
    return raw.decode("utf-8") if raw and raw.strip() else file.empty


def _unsafe(file: ConfigFile, error: ValueError, commands: Commands | None = None) -> FileProblem:
    by_hand = f", or add the server by hand: {' '.join([*commands.words, 'mcp'])}" if commands else ""
    return FileProblem(
        f"{file.path} is no {file.kind} that can be edited safely: {error}; nothing was changed",
        f"correct the file{by_hand}",
    )


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileProblem(f"{path} cannot be read: {error.strerror}", "check its permissions") from None


def _replace(path: Path, raw: bytes) -> None:
    try:
        path.resolve().parent.mkdir(parents=True, exist_ok=True)
        private.replace_file(path, raw, durable=True)
    except OSError as error:
        raise FileProblem(f"{path} cannot be written: {error.strerror}", "check its permissions") from None


def _require_unchanged(changes: list[FileChange]) -> None:
    """Refuse when a client wrote one of its files since it was read."""
    for change in changes:
        if _read(change.path) != change.before:
            raise FileProblem(f"{change.path} changed meanwhile; nothing was done", "run the command again")


def _remove_empty(folders: Iterable[str]) -> None:
    for folder in folders:
        try:
            Path(folder).rmdir()
        except OSError:
            return  # somebody put something there


def _recorded(record: Path) -> dict[str, FileRecord]:
    return private.read_json(record, dict[str, FileRecord]) or {}  # damaged: our part is then removed by key


def _mark(raw: bytes) -> str:
    return fingerprint(raw.decode("utf-8", "surrogateescape"))


def _encoded(raw: bytes | None) -> str | None:
    return None if raw is None else base64.b64encode(raw).decode()


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
