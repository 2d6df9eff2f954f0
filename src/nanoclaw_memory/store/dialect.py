"""The repositories' SQL in PostgreSQL's words."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from typing import Any

from nanoclaw_memory.store.database import Params

_TOKENS = re.compile(
    r"(?P<text>'(?:[^']|'')*')|(?P<cast>::)|\bLIMIT :(?P<limit>\w+)|:(?P<name>\w+)|(?P<percent>%)"
    r"|(?P<plus>(?<=[\s(])\+(?=[a-z]))"  # only SQLite needs to be kept from an index
    r"|(?P<like>\bLIKE\b)"  # SQLite's does not tell small letters from capitals
)
_LIST = re.compile(r"(NOT )?IN \(SELECT (?P<hex>unhex\()?value\)? FROM json_each\(:(?P<name>\w+)\)\)")

_NOTHING = re.compile(r"(NOT )?IN \(\)")


@functools.lru_cache(maxsize=4_096)
def translated(sql: str) -> tuple[str, tuple[tuple[str, bool], ...]]:
    """A statement with psycopg's parameters, and the names of those that are lists; True for lists of bytes."""
    lists = tuple((found["name"], bool(found["hex"])) for found in _LIST.finditer(sql))
    sql = _LIST.sub(lambda found: f"{'<> ALL' if found[1] else '= ANY'}(:{found['name']}__list)", sql)
    sql = _NOTHING.sub(lambda found: f"{'<> ALL' if found[1] else '= ANY'}('{{}}')", sql)
    return _TOKENS.sub(_token, sql), lists


def _token(found: re.Match[str]) -> str:
    if found["limit"]:
        return f"LIMIT nullif(%({found['limit']})s, -1)"  # in SQLite, -1 is no limit
    if found["name"]:
        return f"%({found['name']})s"
    instead = {"percent": "%%", "plus": "", "like": "ILIKE", "text": found[0].replace("%", "%%")}
    return instead.get(str(found.lastgroup), found[0])


def values(params: Params | None, lists: tuple[tuple[str, bool], ...]) -> Mapping[str, Any]:
    """The parameters, with lists as PostgreSQL writes arrays: their type is that of what they are compared with."""
    if not lists:
        return params or {}
    given = dict(params or {})
    for name, of_bytes in lists:
        given[f"{name}__list"] = _array(json.loads(given[name]), "\\x" if of_bytes else "")
    return given


def _array(elements: list[Any], prefix: str) -> str:
    quoted = (
        str(one).replace("\\", "\\\\").replace('"', '\\"') for one in (f"{prefix}{one}" for one in elements)
    )
    return "{" + ",".join(f'"{one}"' for one in quoted) + "}"
