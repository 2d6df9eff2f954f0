"""What the tests of upkeep share: a memory without an embedder on 1 May 2026, and logs to put into it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory

T0 = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(T0)


@pytest.fixture
def memory(open_memory: Callable[..., Memory]) -> Memory:
    memory = open_memory(embeddings__provider="none")
    memory.init()
    return memory


@pytest.fixture
def log(home: Path) -> Callable[..., Path]:
    def put(day: str, *lines: str) -> Path:
        path = home / "workspace" / "memory" / f"{day}.md"
        path.write_text(f"# {day}\n\n" + "".join(f"{line}\n" for line in lines))
        return path

    return put


@pytest.fixture
def page(home: Path) -> Callable[..., str]:
    """Write lines into a section of MEMORY.md; gives the text."""

    def put(section: str, *lines: str) -> str:
        path = home / "workspace" / "MEMORY.md"
        added = f"## {section}\n" + "".join(f"- {line}\n" for line in lines)
        path.write_text(path.read_text().replace(f"## {section}\n", added))
        return path.read_text()

    return put
