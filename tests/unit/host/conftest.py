"""What the host's tests share: an open host on a fresh home."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nanoclaw_memory import Host
from nanoclaw_memory.clock import FixedClock


@pytest.fixture
def open_host(home: Path, clock: FixedClock) -> Iterator[Callable[..., Host]]:
    """Open the host as often as processes would; all are closed at the end."""
    opened: list[Host] = []

    def open_(**options: object) -> Host:
        opened.append(Host.open(home, clock=clock, **options))  # type: ignore[arg-type]
        return opened[-1]

    yield open_
    for host in opened:
        host.close()


@pytest.fixture
def host(open_host: Callable[..., Host]) -> Host:
    return open_host()
