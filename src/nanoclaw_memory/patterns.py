"""Regular expressions that are compiled on first use: a hook is a new process that needs few of them."""

from __future__ import annotations

import re
from typing import Any, cast

_MEMBERS = ("search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer", "pattern", "flags")


def regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """A pattern as `re.compile` returns it, but for the moment at which it is compiled."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))


class _LazyPattern:
    def __init__(self, pattern: str, flags: int) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._source)
        # From now on they are found here, at the cost of any other attribute.
        self.__dict__.update({member: getattr(compiled, member) for member in _MEMBERS})
        return getattr(compiled, name)
