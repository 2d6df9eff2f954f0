"""The agent's own notes in `memory/notes/`, by the six commands of Anthropic's memory tool; `/memories` is the root."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.errors import NanoClawError, Refused
from nanoclaw_memory.workspace.files import create_text, locked, read_text, replace_text

MAX_FILE = 1_000_000
MAX_VIEW = 100_000
MAX_LINES = 999_999
_KINDS: dict[str, type] = {"insert_line": int, "view_range": list}


class NotesError(Refused):
    """The message to the model when a command cannot be carried out."""


class Notes(msgspec.Struct, frozen=True):
    """A folder that only its commands change; messages are worded as in the tool's documentation."""

    folder: Path
    admit: Callable[[str], str]  # returns a text as it may be stored; refuses a forgotten one
    around: Callable[[], AbstractContextManager[None]] = nullcontext  # wraps every command

    def run(self, command: Mapping[str, Any]) -> str:
        """Carry out one command of the model."""
        works = {
            "view": (self.view, ("path",), ("view_range",)),
            "create": (self.create, ("path", "file_text"), ()),
            "str_replace": (self.str_replace, ("path", "old_str", "new_str"), ()),
            "insert": (self.insert, ("path", "insert_line", "insert_text"), ()),
            "delete": (self.delete, ("path",), ()),
            "rename": (self.rename, ("old_path", "new_path"), ()),
        }
        name = command.get("command")
        if name not in works:
            raise NotesError(f"Unknown command: {name}")
        work, needed, optional = works[name]
        missing = [field for field in needed if command.get(field) is None]
        if missing:
            raise NotesError(f"Missing parameter: {', '.join(missing)}")
        given = {field: command[field] for field in (*needed, *optional) if command.get(field) is not None}
        wrong = [field for field, value in given.items() if not isinstance(value, _KINDS.get(field, str))]
        if wrong:
            raise NotesError(f"Wrong type of parameter: {', '.join(wrong)}")
        with self.around():
            return work(**given)  # type: ignore[operator, no-any-return]

    def view(self, path: str, view_range: list[int] | None = None) -> str:
        target = self._locate(path)
        if target.is_dir() or target == self.folder:
            return self._listing(path, target)
        text = self._text(path, target)
        lines = text.split("\n")
        if len(lines) > MAX_LINES:
            raise NotesError(f"File {path} exceeds maximum line limit of 999,999 lines.")
        first, last = _range(view_range, len(lines))
        shown = "\n".join(f"{number:>6}\t{lines[number - 1]}" for number in range(first, last + 1))
        if len(shown) > MAX_VIEW:
            shown = shown[:MAX_VIEW].rsplit("\n", 1)[0] + "\n[cut: ask for the rest with view_range]"
        return f"Here's the content of {path} with line numbers:\n{shown}"

    def create(self, path: str, file_text: str) -> str:
        target = self._locate(path)
        self.admit(path)  # a name may reveal what was to be forgotten, and is refused like a text
        if target == self.folder or not create_text(target, self._checked(file_text)):
            raise NotesError(f"Error: File {path} already exists")
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old_str: str, new_str: str) -> str:
        target = self._file(path)
        with locked(target.parent):
            text = self._text(path, target)
            found = [match.start() for match in re.finditer(re.escape(old_str), text)] if old_str else []
            if not found:
                raise NotesError(
                    f"No replacement was performed, old_str `{old_str}` did not appear verbatim in {path}."
                )
            if len(found) > 1:
                numbers = ", ".join(str(text.count("\n", 0, at) + 1) for at in found)
                raise NotesError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines: "
                    f"{numbers}. Please ensure it is unique"
                )
            changed = self._checked(text[: found[0]] + new_str + text[found[0] + len(old_str) :])
            replace_text(target, changed)
        return "The memory file has been edited.\n" + _snippet(changed, text.count("\n", 0, found[0]) + 1)

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        target = self._file(path, "Error: The path {path} does not exist")
        with locked(target.parent):
            lines = self._text(path, target).split("\n")
            count = len(lines) - 1 if lines[-1] == "" else len(lines)
            if not 0 <= insert_line <= count:
                raise NotesError(
                    f"Error: Invalid `insert_line` parameter: {insert_line}. It should be within the range of "
                    f"lines of the file: [0, {count}]"
                )
            lines[insert_line:insert_line] = insert_text.rstrip("\n").split("\n")
            text = "\n".join(lines)
            replace_text(target, self._checked(text if text.endswith("\n") else text + "\n"))
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        target = self._locate(path)
        if target == self.folder:
            raise NotesError("Cannot delete the /memories directory itself")
        if target.is_dir():
            shutil.rmtree(target)
        elif target.exists():
            target.unlink()
        else:
            raise NotesError(f"Error: The path {path} does not exist")
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        old, new = self._locate(old_path), self._locate(new_path)
        self.admit(new_path)
        if old == self.folder:
            raise NotesError("Cannot rename the /memories directory itself")
        if not old.exists():
            raise NotesError(f"Error: The path {old_path} does not exist")
        if new.exists() or new == self.folder:
            raise NotesError(f"Error: The destination {new_path} already exists")
        private.make_folder(new.parent)
        old.rename(new)
        return f"Successfully renamed {old_path} to {new_path}"

    def _locate(self, path: str) -> Path:
        """Return the real path; only paths below /memories are accepted, in any spelling."""
        plain = unquote(str(path)).replace("\\", "/")
        parts = [part for part in plain.split("/") if part not in ("", ".")]
        if not plain.startswith("/") or parts[:1] != ["memories"]:
            raise NotesError(f"Path must start with /memories, got: {path}")
        if ".." in parts or "\x00" in plain or any(len(part.encode()) > 200 for part in parts):
            raise NotesError(f"Path {path} would escape /memories directory")
        target = self.folder.joinpath(*parts[1:])
        if not target.resolve().is_relative_to(self.folder.resolve()):
            raise NotesError("Path would escape /memories directory via symlink")
        return target

    def _file(
        self, path: str, wording: str = "Error: The path {path} does not exist. Please provide a valid path."
    ) -> Path:
        target = self._locate(path)
        if not target.is_file():
            raise NotesError(wording.format(path=path))
        return target

    def _text(self, path: str, target: Path) -> str:
        try:
            return read_text(target)
        except FileNotFoundError:
            raise NotesError(f"The path {path} does not exist. Please provide a valid path.") from None
        except NanoClawError as error:
            raise NotesError(error.message) from error

    def _checked(self, text: str) -> str:
        if len(text.encode("utf-8", "replace")) > MAX_FILE:
            raise NotesError(f"The file would have over {MAX_FILE:,} bytes. Split it into several files.")
        return self.admit(text)

    def _listing(self, path: str, target: Path) -> str:
        head = (
            f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and "
            "node_modules:"
        )
        private.make_folder(self.folder)
        rows = [f"{_size(target)}\t{path}"]
        for item in sorted(target.rglob("*")):
            relative = item.relative_to(target)
            hidden = any(part.startswith(".") or part == "node_modules" for part in relative.parts)
            if len(relative.parts) <= 2 and not hidden and not item.is_symlink():
                rows.append(
                    f"{_size(item)}\t{path.rstrip('/')}/{relative.as_posix()}{'/' if item.is_dir() else ''}"
                )
        return "\n".join([head, *rows])


def _range(wanted: list[int] | None, count: int) -> tuple[int, int]:
    if not wanted:
        return 1, count
    first, last = (wanted[0], wanted[1]) if len(wanted) == 2 else (wanted[0], -1)
    return max(first, 1), count if last == -1 else min(last, count)


def _snippet(text: str, line: int) -> str:
    lines = text.split("\n")
    first, last = max(line - 2, 1), min(line + 2, len(lines))
    return "\n".join(f"{number:>6}\t{lines[number - 1]}" for number in range(first, last + 1))


def _size(path: Path) -> str:
    size = float(path.stat().st_size)
    for unit in ("B", "K", "M"):
        if size < 1024 or unit == "M":
            return f"{size:.0f}{unit}" if unit == "B" or size == int(size) else f"{size:.1f}{unit}"
        size /= 1024
    return ""
