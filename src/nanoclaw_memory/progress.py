"""Report the progress of long work to whoever watches it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
# what is being done, how much is done, out of how much (0: unknown)
Watcher = Callable[[str, int, int], None]
_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


def report(stage: str, done: int, total: int = 0) -> None:
    """Report to the watcher, if there is one."""
    if (watcher := _WATCHER.get()) is not None:
        watcher(stage, done, total)


def counted(stage: str, things: Sequence[T]) -> Iterator[T]:
    """Yield the things one by one, and report each when it begins."""
    for done, one in enumerate(things):
        report(stage, done, len(things))
        yield one
    if things:
        report(stage, len(things), len(things))


@contextmanager
def watching(watcher: Watcher | None) -> Iterator[None]:
    """Set the watcher for work of this thread; None leaves the present one."""
    before = _WATCHER.set(watcher or _WATCHER.get())
    try:
        yield
    finally:
        _WATCHER.reset(before)
