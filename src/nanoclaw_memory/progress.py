"""How far long work has come: reported where it is done, watched by whoever started it, if anybody does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Watcher = Callable[[str, int, int], None]  # what is done, how many of them, of how many (0: nobody knows)
_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


def report(stage: str, done: int, total: int = 0) -> None:
    """Tell the watcher, if there is one."""
    if (watcher := _WATCHER.get()) is not None:
        watcher(stage, done, total)


def counted(stage: str, things: Sequence[T]) -> Iterator[T]:
    """The things one by one; each is reported when it begins."""
    for done, one in enumerate(things):
        report(stage, done, len(things))
        yield one
    if things:
        report(stage, len(things), len(things))


@contextmanager
def watching(watcher: Watcher | None) -> Iterator[None]:
    """Have work of this thread watched; None leaves the present watcher."""
    before = _WATCHER.set(watcher or _WATCHER.get())
    try:
        yield
    finally:
        _WATCHER.reset(before)
