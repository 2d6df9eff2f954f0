"""Regular expressions that are compiled on first use and cached on disk: a hook is a new process and needs few.

Compiling them took a prompt's hook 25 ms. The compiled form is stored beside the bytecode of this module and read by
the next process of the same Python.
"""

from __future__ import annotations

import atexit
import marshal
import os
import re
import sys
from array import array
from binascii import crc32
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

_MEMBERS = ("search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer", "pattern", "flags")
_Parts = tuple[int, bytes, int, dict[str, int], tuple[str | None, ...]]
_new: dict[tuple[str, int], _Parts] = {}


def regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern of the program, equivalent to `re.compile`, but compiled on first use.

    Not for patterns made of what people wrote: they would be stored in a file.
    """
    return cast("re.Pattern[str]", _LazyPattern(pattern, int(flags)))


@contextmanager
def kept_imports() -> Iterator[None]:
    """Also cache the patterns that third-party modules compile during import."""
    from re import _compiler  # type: ignore[attr-defined]

    ordinary, _compiler.compile = _compiler.compile, _compiled
    try:
        yield
    finally:
        _compiler.compile = ordinary


class _LazyPattern:
    def __init__(self, pattern: str, flags: int) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> Any:
        compiled = _compiled(*self._source)
        # From now on they are found here, at the cost of any other attribute.
        self.__dict__.update({member: getattr(compiled, member) for member in _MEMBERS})
        return getattr(compiled, name)


def _compiled(pattern: str, flags: int) -> re.Pattern[str]:
    if sys.implementation.name != "cpython":
        return re.compile(pattern, flags)
    import _sre  # type: ignore[import-not-found]

    key = (pattern, flags)
    parts = _kept().get(key) or _new.get(key)
    if parts is None:
        if not _new:
            atexit.register(keep)
        parts = _new[key] = _translated(pattern, flags)
    all_flags, code, *groups = parts
    return _sre.compile(pattern, all_flags, array("I", code).tolist(), *groups)  # type: ignore[no-any-return]


def _translated(pattern: str, flags: int) -> _Parts:
    """Return what `re.compile` passes to its engine."""
    from re import _compiler, _parser  # type: ignore[attr-defined]

    parsed = _parser.parse(pattern, flags)
    code, names = _compiler._code(parsed, flags), parsed.state.groupdict
    places: list[str | None] = [None] * parsed.state.groups
    for name, number in names.items():
        places[number] = name
    every = flags | parsed.state.flags
    return every, array("I", code).tobytes(), parsed.state.groups - 1, names, tuple(places)


def _place() -> str:
    from importlib.util import cache_from_source

    return f"{cache_from_source(__file__).removesuffix('.pyc')}.patterns"


@cache
def _kept() -> dict[tuple[str, int], _Parts]:
    """Return the patterns that earlier processes compiled; empty if unreadable or of another Python."""
    try:
        with open(_place(), "rb") as handle:  # noqa: PTH123 - pathlib is not needed here
            head, content = handle.read(len(_head(b""))), handle.read()
    except OSError:
        return {}
    # A truncated file, or one of another Python, could crash the interpreter.
    return marshal.loads(content) if head == _head(content) else {}  # noqa: S302 - it lies beside our bytecode


def _head(content: bytes) -> bytes:
    version = crc32(sys.version.encode())
    return b"%08x%08x" % (version, crc32(content, version))


def keep() -> None:
    """Store the compiled patterns for later processes, where bytecode is stored too."""
    if not _new or sys.dont_write_bytecode:
        return
    place = _place()
    fresh = f"{place}.{os.getpid()}"
    content = marshal.dumps({**_kept(), **_new})
    try:
        with open(fresh, "wb") as handle:  # noqa: PTH123
            handle.write(_head(content) + content)
        os.replace(fresh, place)  # noqa: PTH105
    except OSError:
        return
    _new.clear()
