"""One look at what has changed serves every question that came in before it began."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Freshness:
    """What was seen when one last looked; a question that came in before that need not look again.

    Only a server knows when a question came in. Everybody else, and whoever writes, looks every time.
    """

    def __init__(self) -> None:
        self._asked_at = math.inf
        self._seen: dict[Hashable, tuple[float, Any]] = {}
        self._settled: dict[Hashable, Any] = {}

    def asked(self, at: float | None) -> None:
        """The next looks are for a question that came in at this moment of `time.monotonic()`."""
        self._asked_at = math.inf if at is None else at
        if at is None:
            self.forget()

    @property
    def asking(self) -> bool:
        """Whether a question is answered, which changes nothing that it looks at."""
        return self._asked_at < math.inf

    def forget(self) -> None:
        """Something was written: look again."""
        self._seen.clear()

    def look(self, key: Hashable, look: Callable[[], T]) -> T:
        """What `look` returns, or returned since the question came in."""
        began, found = self._seen.get(key, (-math.inf, None))
        if began <= self._asked_at:
            began, found = time.monotonic(), look()
            if self._asked_at < math.inf:
                self._seen[key] = began, found
        return cast("T", found)

    def is_settled(self, key: Hashable, state: object) -> bool:
        """Whether there was nothing to do when things were in this state."""
        return bool(self._settled.get(key) == state)

    def settle(self, key: Hashable, state: object) -> None:
        """Note that there was nothing to do in this state."""
        self._settled[key] = state
