"""Runbooks: the how-tos in `memory/tools-NAME.md`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from nanoclaw_memory.errors import NotFound
from nanoclaw_memory.types import Runbook, Scope
from nanoclaw_memory.workspace.pages import pages
from nanoclaw_memory.workspace.paths import Home

_RUNBOOK = re.compile(r"memory/tools-([^/]{1,200})\.md\Z")


def runbooks(home: Home, scope: Scope, shared_files: Iterable[str]) -> list[Runbook]:
    """Every runbook this scope may see, by name."""
    found = [
        Runbook(match[1], page.path, page.title or match[1], page.chars)
        for page in pages(home, scope, shared_files, _RUNBOOK)
        if (match := _RUNBOOK.match(page.path))
    ]
    return sorted(found, key=lambda runbook: runbook.name)


def runbook(home: Home, scope: Scope, shared_files: Iterable[str], name: str) -> Runbook:
    """One runbook by its name, or by its file's (`deploy`, `tools-deploy`, `memory/tools-deploy.md`)."""
    wanted = name.removeprefix("memory/").removeprefix("tools-").removesuffix(".md")
    known = runbooks(home, scope, shared_files)
    for found in known:
        if found.name == wanted:
            return found
    names = ", ".join(found.name for found in known)
    raise NotFound(
        f"there is no runbook {name[:80]!r}",
        f"there are: {names}" if names else "write one as memory/tools-NAME.md",
    )
