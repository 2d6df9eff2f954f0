"""Edit JSON as text: one member or item is added or removed, every other byte stays as it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

import msgspec

_BLANK = " \t\r\n"


class JsonPart(msgspec.Struct, frozen=True):
    """A member of an object or an item of an array: where it starts, where its value starts and ends."""

    key: str
    start: int
    value: int
    end: int


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Set the member at `path`, making the objects on the way; an equal value changes nothing."""
    at = _begin(text)
    for depth, key in enumerate(path):
        members = _parts(text, at, "{")
        found = next((member for member in members if member.key == key), None)
        if found is None:
            made = value
            for name in reversed(path[depth + 1 :]):
                made = {name: made}
            return _insert(text, at, members, f"{json.dumps(key)}: ", made)
        at = found.value
    if json.JSONDecoder().raw_decode(text, at)[0] == value:
        return text
    end = json.JSONDecoder().raw_decode(text, at)[1]
    return text[:at] + _dumped(value, _indent_of_line(text, at), _unit(text)) + text[end:]


def append(text: str, path: Sequence[str], item: Any) -> str:
    """Add an item to the array at `path`, making it; an equal item that is there already changes nothing."""
    at = _find(text, path)
    if at is None:
        return put(text, path, [item])
    items = _parts(text, at, "[")
    if any(json.loads(text[part.value : part.end]) == item for part in items):
        return text
    return _insert(text, at, items, "", item)


def remove(text: str, path: Sequence[str]) -> str:
    """Take out the member at `path`, and the objects on the way that this leaves empty."""
    at = _find(text, path[:-1])
    if at is None or text[at] != "{":
        return text
    parts = _parts(text, at, "{")
    index = next((place for place, part in enumerate(parts) if part.key == path[-1]), None)
    if index is None:
        return text
    text = _cut(text, at, parts, index)
    return remove(text, path[:-1]) if len(parts) == 1 and len(path) > 1 else text


def remove_items(text: str, path: Sequence[str], unwanted: Callable[[Any], bool]) -> str:
    """Take items out of the array at `path`; an array left empty goes too."""
    at = _find(text, path)
    if at is None or text[at] != "[":
        return text
    items = _parts(text, at, "[")
    for index in reversed(range(len(items))):
        if unwanted(json.loads(text[items[index].value : items[index].end])):
            text = _cut(text, at, items, index)
            items = _parts(text, at, "[")
    return text if items else remove(text, path)


def _begin(text: str) -> int:
    at = _skip(text, 1 if text.startswith("\ufeff") else 0)
    if at >= len(text) or text[at] != "{":
        raise ValueError("not a JSON object")
    json.loads(text.lstrip("\ufeff"))  # the rest must be sound before anything is changed
    return at


def _find(text: str, path: Sequence[str]) -> int | None:
    at = _begin(text)
    for key in path:
        if text[at] != "{":
            return None
        found = next((member for member in _parts(text, at, "{") if member.key == key), None)
        if found is None:
            return None
        at = found.value
    return at


def _parts(text: str, at: int, opening: str) -> list[JsonPart]:
    """The members of the object, or the items of the array, at a position; `opening` is its first character."""
    if text[at] != opening:
        raise ValueError("another kind of value was expected")
    found, position = [], _skip(text, at + 1)
    while text[position] not in "}]":
        start, key = position, ""
        if opening == "{":
            key, after = scanstring(text, start + 1, True)
            position = _skip(text, _skip(text, after) + 1)
        end = json.JSONDecoder().raw_decode(text, position)[1]
        found.append(JsonPart(key, start, position, end))
        position = _skip(text, end)
        position = _skip(text, position + 1) if text[position] == "," else position
    return found


def _insert(text: str, at: int, parts: list[JsonPart], lead: str, value: Any) -> str:
    unit = _unit(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    outer = _indent_of_line(text, at)
    if parts:
        spread = "\n" in text[at : parts[0].start]
        inner = _indent_of_line(text, parts[-1].start) if spread else ""
        gap = f",{newline}{inner}" if spread else ", "
        made = lead + (
            _dumped(value, inner, unit, newline) if spread else json.dumps(value, ensure_ascii=False)
        )
        return text[: parts[-1].end] + gap + made + text[parts[-1].end :]
    close = json.JSONDecoder().raw_decode(text, at)[1] - 1
    inner = outer + unit
    made = lead + _dumped(value, inner, unit, newline)
    return f"{text[: at + 1]}{newline}{inner}{made}{newline}{outer}{text[close:]}"


def _cut(text: str, at: int, parts: list[JsonPart], index: int) -> str:
    if len(parts) == 1:
        close = json.JSONDecoder().raw_decode(text, at)[1] - 1
        return text[: at + 1] + text[close:]
    if index == 0:
        return text[: parts[0].start] + text[parts[1].start :]
    return text[: parts[index - 1].end] + text[parts[index].end :]


def _dumped(value: Any, indent: str, unit: str, newline: str = "\n") -> str:
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return newline.join([lines[0], *(indent + line for line in lines[1:])])


def _unit(text: str) -> str:
    """One step of indentation, as the file has it; two spaces when it has none."""
    for line in text.splitlines()[1:]:
        blank = line[: len(line) - len(line.lstrip(" \t"))]
        if blank and line.strip():
            return blank
    return "  "


def _indent_of_line(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    line = text[start:at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANK:
        at += 1
    return at
