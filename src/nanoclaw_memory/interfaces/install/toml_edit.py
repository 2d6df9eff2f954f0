"""Edit TOML as text: try several ways to write a change until one parses to exactly the wanted result."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Callable, Sequence
from typing import Any


def load(text: str) -> Any:
    """Return the parsed text; raise ValueError when it is no TOML."""
    return tomllib.loads(text.removeprefix("\ufeff"))


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Set the value at `path`, creating the tables on the way; an equal value changes nothing."""
    wanted = copy.deepcopy(load(text))
    table = wanted
    for key in path[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise ValueError("a table was expected")
    if table.get(path[-1]) == value:
        return text
    old, newline = copy.deepcopy(table), _newline(text)
    table[path[-1]] = value
    member = f"{_key(path[-1])} = {_written(value)}"
    gap = "" if not text.strip("\ufeff") else newline if text.endswith("\n") else newline * 2
    ways = (
        lambda: text + gap + _table(path, value, newline),
        lambda: text.replace(f"{_key(path[-1])} = {_written(old.get(path[-1]))}", member, 1),
        lambda: _with_section(text, path[:-1], _table(path[:-1], _plain(table), newline)),
        lambda: _with_inline(text, path[:-1], member),
    )
    return _first(wanted, ways)


def remove(text: str, path: Sequence[str]) -> str:
    """Remove the table at `path`, and those that become empty."""
    wanted = copy.deepcopy(load(text))
    tables = [wanted]
    for key in path[:-1]:
        tables.append(tables[-1].get(key, {}))
    if path[-1] not in tables[-1]:
        return text
    old, newline = tables[-1][path[-1]], _newline(text)
    block, member = _table(path, old, newline), f"{_key(path[-1])} = {_written(old)}"
    for table, key in zip(reversed(tables), reversed(path), strict=True):
        if key == path[-1] or not table[key]:
            del table[key]
    ways = (
        lambda: text.replace(newline + block, "", 1),
        lambda: text.replace(block, "", 1),
        lambda: _with_section(text, path, ""),
        lambda: re.sub(rf" ?{re.escape(member)},?", "", text, count=1),
    )
    return _first(wanted, ways)


def _first(wanted: Any, ways: Sequence[Callable[[], str]]) -> str:
    """Return the first candidate text that parses to the wanted result."""
    for way in ways:
        try:
            if load(made := way()) == wanted:
                return made
        except ValueError:
            continue
    raise ValueError("no way to write the change is safe")


def _with_section(text: str, path: Sequence[str], section: str) -> str:
    """Return the text with one section replaced, or removed with its subsections."""
    made: list[str] = []
    notes: list[str] = []  # blank lines and comments, which may be about the next section
    inside = False
    for line in text.splitlines(keepends=True):
        if header := _header(line):
            inside = header == list(path) or (not section and header[: len(path)] == list(path))
            made += [*notes, section if inside else ""]
            notes = []
        if not inside:
            made.append(line)
        elif not header:
            notes = [*notes, line] if line.lstrip()[:1] in ("", "#") else []
    return "".join([*made, *notes])


def _header(line: str) -> list[str]:
    """Return the keys of a line that opens a section; empty for any other."""
    if not line.lstrip("\ufeff \t").startswith("["):
        return []
    try:
        tree, keys = load(line), list[str]()
    except ValueError:
        return []
    while tree:
        tree = next(iter(tree.items()))
        keys.append(tree[0])
        tree = tree[1] if isinstance(tree[1], dict) else None
    return keys


def _with_inline(text: str, path: Sequence[str], member: str) -> str:
    """Return the text with a member in a table that is written in one line."""
    opening = re.compile(
        rf"^(\s*{'[ ]*[.][ ]*'.join(map(re.escape, map(_key, path)))}\s*=\s*\{{)(\s*\}}?)", re.MULTILINE
    )
    return opening.sub(
        lambda found: f"{found[1]} {member}{' }' if '}' in found[2] else ',' + found[2]}", text, count=1
    )


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _table(path: Sequence[str], values: Any, newline: str) -> str:
    members = values.items() if isinstance(values, dict) else ()
    lines = [
        f"[{'.'.join(map(_key, path))}]",
        *(f"{_key(key)} = {_written(value)}" for key, value in members),
    ]
    return "".join(line + newline for line in lines)


def _plain(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table without subtables, which have sections of their own."""
    return {key: value for key, value in table.items() if not isinstance(value, dict)}


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _written(key)


def _written(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_written(member)}" for key, member in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    if isinstance(value, str | bool | int | float):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)  # a date or a time
