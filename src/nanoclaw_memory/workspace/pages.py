"""Markdown pages that a scope may see, chosen by their path, with title and size."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from nanoclaw_memory.errors import FileProblem
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import Scope
from nanoclaw_memory.workspace.files import read_text
from nanoclaw_memory.workspace.paths import Home, memory_files

_HEADING = re.compile(r"^#{1,6}[ \t]+(\S.*?)[ \t]*#*[ \t]*\r?$", re.M)


class Page(msgspec.Struct, frozen=True):
    """A Markdown file of the workspace or of `shared/`."""

    path: str
    title: str
    chars: int


def pages(home: Home, scope: Scope, shared_files: Iterable[str], pattern: re.Pattern[str]) -> Iterator[Page]:
    """The pages whose workspace path matches; one that cannot be read is listed with what is wrong."""
    for relative, path in memory_files(home, scope, shared_files):
        if not pattern.match(relative):
            continue
        try:
            text = read_text(path)
        except FileProblem as problem:
            yield Page(relative, f"[{problem.message}]", 0)
        else:
            yield Page(relative, first_heading(text), len(text))


def first_heading(text: str) -> str:
    """The first heading's text; empty when there is none."""
    match = _HEADING.search(text)
    return one_line(match[1]) if match else ""
