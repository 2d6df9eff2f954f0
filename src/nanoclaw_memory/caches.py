"""Caches of function results, each bounded in bytes; `status` shows their sizes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import msgspec

P = ParamSpec("P")
T = TypeVar("T")

_MISSING: Any = object()
_PLAIN = frozenset((str, int, bool, float, type(None)))
_kept: list[BoundedCache] = []


class BoundedCache:
    """A cache with two generations: recently used results, and older ones, which are dropped first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.lately: dict[Any, Any] = {}
        self.before: dict[Any, Any] = {}
        self.sizes = [0, 0]
        _kept.append(self)

    def get(self, key: Any, default: Any = None) -> Any:
        """Return a cached result and mark it as recently used."""
        found = self.lately.get(key, _MISSING)
        if found is _MISSING:
            found = self.before.get(key, _MISSING)
            if found is _MISSING:
                return default
            self.put(key, found)
        return found

    def several(self, keys: Sequence[Any]) -> list[Any]:
        """The same of each of these; None for what is not kept."""
        found = map(self.lately.get, keys)
        return [self.get(key) if one is None else one for key, one in zip(keys, found, strict=True)]

    def put(self, key: Any, value: Any) -> None:
        """Store a result, if it is not too large."""
        size = _size(key) + _size(value)
        if size > self.most // 2:
            return
        if self.sizes[0] + size > self.most // 2:
            self.age()
        self.lately[key] = value
        self.sizes[0] += size

    def age(self) -> None:
        """Drop what was not used since the last call."""
        self.before, self.lately, self.sizes = self.lately, {}, [0, self.sizes[0]]


def bounded(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Cache the results of a function of texts, up to a number of bytes."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        kept = BoundedCache(most)

        @wraps(function)
        def cached(*args: P.args, **kwargs: P.kwargs) -> T:
            key = (args, *kwargs.items()) if kwargs else args
            found = kept.lately.get(key, _MISSING)  # most results are found here, without a call
            if found is _MISSING:
                found = kept.get(key, _MISSING)
                if found is _MISSING:
                    found = function(*args, **kwargs)
                    kept.put(key, found)
            return found  # type: ignore[no-any-return]

        return cached

    return decorate


def taken() -> tuple[int, int]:
    """Return the size of all caches in bytes, and their maximum."""
    return sum(sum(kept.sizes) for kept in _kept), sum(kept.most for kept in _kept)


def _size(value: Any) -> int:
    own = sys.getsizeof(value)
    kind = type(value)
    if kind in _PLAIN:
        return own
    if isinstance(value, dict):
        return own + sum(_size(key) + _size(one) for key, one in value.items())
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.astuple(value)
    elif kind not in (tuple, list, set, frozenset):
        return own
    plain = _PLAIN.issuperset(map(type, value))  # most keys contain only these types and need no call of ours
    return own + sum(map(sys.getsizeof if plain else _size, value))
