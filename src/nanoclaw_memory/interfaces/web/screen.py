"""A screen is a function of a memory and a request, which returns a page or a redirection."""

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
        """Return one value without the blanks around it."""
        return self.exact(name, default).strip()

    def exact(self, name: str, default: str = "") -> str:
        """Return one value as it was sent."""
        found = self.values.get(name)
        return found[-1] if found else default

    def every(self, name: str) -> list[str]:
        """Return all non-empty values of a name."""
        return [one for one in self.values.get(name, ()) if one]

    def number(self, name: str, default: int = 0, most: int = 1_000_000) -> int:
        """Return one value as a number from 0 to `most`."""
        text = self.text(name) or str(default)
        if not text.isascii() or not text.isdigit() or int(text[:9]) > most:
            raise InvalidValue(f"{name}: {text[:20]!r} is no number up to {most}", "give digits")
        return int(text)

    def act(self, acts: Mapping[str, Callable[..., object]]) -> Callable[..., object]:
        """Return the action that a form's button names."""
        act = self.text("act")
        if act not in acts:
            raise InvalidValue(f"there is no act {act[:20]!r}", f"one of: {', '.join(acts)}")
        return acts[act]

    def slice(self, rows: Sequence[Any]) -> dict[str, Any]:
        """Return the rows of the requested page of a list, and the numbers of the adjacent pages."""
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


class RenderedScreen(msgspec.Struct, frozen=True):
    """A template with its values."""

    template: str
    values: Mapping[str, Any] = {}
    status: int = 200


class Redirection(msgspec.Struct, frozen=True):
    """A redirection to the next screen, with a note to show there."""

    path: str
    note: str = ""
    undo: str = ""  # ids of decisions that can be undone, with commas


def lines_around(memory: Memory, path: str, line: int, around: int) -> dict[str, Any]:
    """Return a line of a file with those before and after it, numbered."""
    found = memory.get(path, max(line - around, 1), line + around)
    lines = list(enumerate(found.text.splitlines(), found.start_line or 1))
    return {"path": found.path, "line": line, "lines": lines}


class ScreenData(msgspec.Struct, frozen=True):
    """Plain data for the page's own scripts."""

    data: Any


Answer = RenderedScreen | Redirection | ScreenData


class Screen(msgspec.Struct, frozen=True):
    """One row of the table of screens; `lasting` work gets a separate memory, so that nobody waits for it."""

    method: str
    path: str
    answer: Callable[[Memory, WebRequest], Answer]
    lasting: bool = False
