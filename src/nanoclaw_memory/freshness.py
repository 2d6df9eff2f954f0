"""Check for changes once for all questions that arrived before the check began."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Freshness:
    """The results of the last checks; a question that arrived before a check need not repeat it.

    Only a server knows when a question arrived. All other processes, and all writers, check every time.
    """

    def __init__(self) -> None:
        self._asked_at = math.inf
        self._seen: dict[Hashable, tuple[float, Any]] = {}
        self._settled: dict[Hashable, Any] = {}

    def asked(self, at: float | None) -> None:
        """Make the next checks serve a question that arrived at this moment of `time.monotonic()`."""
        self._asked_at = math.inf if at is None else at
        if at is None:
            self.forget()

    @property
    def asking(self) -> bool:
        """Return whether a read-only question is being answered."""
        return self._asked_at < math.inf

    def forget(self) -> None:
        """Discard all results after a write."""
        self._seen.clear()

    def look(self, key: Hashable, look: Callable[[], T]) -> T:
        """Return the result of `look`, or its cached result if that is newer than the question."""
        began, found = self._seen.get(key, (-math.inf, None))
        if began <= self._asked_at:
            began, found = time.monotonic(), look()
            if self._asked_at < math.inf:
                self._seen[key] = began, found
        return cast("T", found)

    def is_settled(self, key: Hashable, state: object) -> bool:
        """Return whether nothing was left to do in this state."""
        return bool(self._settled.get(key) == state)

    def settle(self, key: Hashable, state: object) -> None:
        """Record that nothing is left to do in this state."""
        self._settled[key] = state
