"""What a screen is: a function of a memory and of what was asked, whose answer is a page or another place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from nanoclaw_memory.errors import InvalidValue

if TYPE_CHECKING:
    from nanoclaw_memory.memory import Memory

PER_PAGE = 25


class WebRequest(msgspec.Struct, frozen=True):
    """The names in a path, the query and the form of one request."""

    values: Mapping[str, Sequence[str]]
    language: str = "en"

    def text(self, name: str, default: str = "") -> str:
        """One value without the blanks around it."""
        return self.exact(name, default).strip()

    def exact(self, name: str, default: str = "") -> str:
        """One value as it was sent."""
        found = self.values.get(name)
        return found[-1] if found else default

    def every(self, name: str) -> list[str]:
        """All values of a name that are not empty."""
        return [one for one in self.values.get(name, ()) if one]

    def number(self, name: str, default: int = 0, most: int = 1_000_000) -> int:
        """One value as a number from 0 to `most`."""
        text = self.text(name) or str(default)
        if not text.isascii() or not text.isdigit() or int(text[:9]) > most:
            raise InvalidValue(f"{name}: {text[:20]!r} is no number up to {most}", "give digits")
        return int(text)

    def act(self, acts: Mapping[str, Callable[..., object]]) -> Callable[..., object]:
        """The act that a form's button names."""
        act = self.text("act")
        if act not in acts:
            raise InvalidValue(f"there is no act {act[:20]!r}", f"one of: {', '.join(acts)}")
        return acts[act]

    def slice(self, rows: Sequence[Any]) -> dict[str, Any]:
        """The rows of the page of a list that was asked for, and the numbers of the pages beside it."""
        page = self.number("page", 1, 100_000) or 1
        start = (page - 1) * PER_PAGE
        more = len(rows) > start + PER_PAGE
        return {
            "rows": rows[start : start + PER_PAGE],
            "page": page,
            "before": page - 1,
            "after": page + 1 if more else 0,
            "total": len(rows),
        }


class Shown(msgspec.Struct, frozen=True):
    """A template with its values."""

    template: str
    values: Mapping[str, Any] = {}
    status: int = 200


class Moved(msgspec.Struct, frozen=True):
    """Done: the screen to show next, with a note that it opens with."""

    path: str
    note: str = ""
    undo: str = ""  # ids of decisions that can be taken back, with commas


def lines_around(memory: Memory, path: str, line: int, around: int) -> dict[str, Any]:
    """A line of a file with those before and after it, numbered."""
    found = memory.get(path, max(line - around, 1), line + around)
    lines = list(enumerate(found.text.splitlines(), found.start_line or 1))
    return {"path": found.path, "line": line, "lines": lines}


class Sent(msgspec.Struct, frozen=True):
    """Plain data for the page's own scripts."""

    data: Any


Answer = Shown | Moved | Sent


class Screen(msgspec.Struct, frozen=True):
    """One row of the table of screens; `lasting` work gets a memory of its own, so that nobody waits for it."""

    method: str
    path: str
    answer: Callable[[Memory, WebRequest], Answer]
    lasting: bool = False
