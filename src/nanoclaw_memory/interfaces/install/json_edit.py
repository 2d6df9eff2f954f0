"""Edit JSON, JSONC and JSON5 as text: one member or item changes, every other byte and comment stays."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec

Path = Sequence[str | int]

_BLANK = re.compile(r"(?:\s|\ufeff|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\n]*(?<!\r)|/\*[^\n]*?\*/[ \t]*(?=\r?\n))?")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.DOTALL)
_WORD = re.compile(r"[^\s,:\[\]{}\"'/]+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": "", "\r\n": ""}
_WORDS = {"true": True, "false": False, "null": None}


class JsonPart(msgspec.Struct, frozen=True):
    """A member of an object or an item of an array: its key, its start, its value, its comma."""

    key: str | int
    start: int
    value: JsonValue
    comma: int | None  # the comma after it


class JsonValue(msgspec.Struct, frozen=True):
    """A value in the text: its range, its meaning, and its members or items."""

    start: int
    end: int
    meaning: Any
    parts: tuple[JsonPart, ...] = ()


def load(text: str) -> Any:
    """Return the parsed text, not to be changed; raise ValueError when it is no object. Of two equal keys the last
    counts.
    """
    return _root(text).meaning


def put(text: str, path: Path, value: Any) -> str:
    """Set the member at `path`, creating the objects on the way; an equal value changes nothing."""
    at = _root(text)
    for depth, key in enumerate(path):
        found = _part(at, key)
        if found is None:
            for name in reversed(path[depth + 1 :]):
                value = {name: value}
            return _insert(text, at, f"{json.dumps(key)}: ", value)
        at = found.value
    if at.meaning == value:
        return text
    indent = _indent_of_line(text, at.start)
    return text[: at.start] + _dumped(value, indent, _unit(text), _newline(text)) + text[at.end :]


def append(text: str, path: Path, item: Any) -> str:
    """Add an item to the array at `path`, creating it."""
    at = _find(text, path)
    if at is None:
        return put(text, path, [item])
    if not isinstance(at.meaning, list):
        raise ValueError("an array was expected")
    return _insert(text, at, "", item)


def remove(text: str, path: Path) -> str:
    """Remove the member or item at `path`, and objects that become empty."""
    at = _find(text, path[:-1])
    found = None if at is None else _part(at, path[-1])
    if at is None or found is None:
        return text
    text = _cut(text, at, at.parts.index(found))
    return remove(text, path[:-1]) if len(at.parts) == 1 and len(path) > 1 else text


# ---- reading ----


@functools.lru_cache(maxsize=2)  # clients write megabytes, and an edit parses the same text several times
def _root(text: str) -> JsonValue:
    try:
        found = _value(text, _skip(text, 0))
        if _skip(text, found.end) != len(text) or not isinstance(found.meaning, dict):
            raise ValueError("not one object")
    except (IndexError, RecursionError):
        raise ValueError("it ends too early, or is nested too deeply") from None
    return found


def _find(text: str, path: Path) -> JsonValue | None:
    at: JsonValue | None = _root(text)
    for key in path:
        found = _part(at, key) if at else None
        at = found.value if found else None
    return at


def _part(at: JsonValue, key: str | int) -> JsonPart | None:
    if not isinstance(at.meaning, dict if isinstance(key, str) else list):
        raise ValueError("another kind of value was expected")
    return next((part for part in reversed(at.parts) if part.key == key), None)


def _value(text: str, at: int) -> JsonValue:
    if text[at] in "{[":
        return _container(text, at)
    if found := _STRING.match(text, at):
        return JsonValue(at, found.end(), _unquoted(found[0]))
    found = _WORD.match(text, at)
    if found is None:
        raise ValueError(f"no value at {at}")
    return JsonValue(at, found.end(), _WORDS[found[0]] if found[0] in _WORDS else _number(found[0]))


def _container(text: str, opening: int) -> JsonValue:
    is_object = text[opening] == "{"
    parts: list[JsonPart] = []
    at = _skip(text, opening + 1)
    while text[at] not in "}]":
        if parts and parts[-1].comma is None:
            raise ValueError(f"a comma is missing at {at}")
        start = at
        key: str | int = len(parts)
        if is_object:
            key, at = _key(text, at)
        value = _value(text, at)
        at = _skip(text, value.end)
        comma = at if text[at] == "," else None
        parts.append(JsonPart(key, start, value, comma))
        at = at if comma is None else _skip(text, at + 1)
    if text[at] != ("}" if is_object else "]"):
        raise ValueError(f"the wrong bracket at {at}")
    meanings = [part.value.meaning for part in parts]
    meaning = dict(zip((part.key for part in parts), meanings, strict=True)) if is_object else meanings
    return JsonValue(opening, at + 1, meaning, tuple(parts))


def _key(text: str, at: int) -> tuple[str, int]:
    """Return a key, quoted or not, and where its value starts."""
    found = _STRING.match(text, at) or _WORD.match(text, at)
    colon = _skip(text, found.end()) if found else at
    if found is None or text[colon] != ":":
        raise ValueError(f"no key at {at}")
    key = _unquoted(found[0]) if found[0][0] in "\"'" else found[0]
    return key, _skip(text, colon + 1)


def _unquoted(quoted: str) -> str:
    def character(found: re.Match[str]) -> str:
        if code := found[1] or found[2]:
            return chr(int(code, 16))
        return _ESCAPED.get(found[3], found[3])

    text = _ESCAPE.sub(character, quoted[1:-1])
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _number(word: str) -> float:
    digits = word.lstrip("+-")
    if not digits[:1].isdigit() and digits[:1] != "." and digits not in ("Infinity", "NaN"):
        raise ValueError(f"{word!r} is no value")
    sign = -1 if word[0] == "-" else 1
    whole = digits.isdigit() or digits[:2] in ("0x", "0X")
    number = int(digits, 16 if digits[1:2] in ("x", "X") else 10) if whole else float(digits)
    return sign * number if number == number else 0  # NaN equals nothing, not even itself


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


# ---- writing ----


def _insert(text: str, at: JsonValue, lead: str, value: Any) -> str:
    unit, newline = _unit(text), _newline(text)
    if not at.parts:
        inside = text[at.start + 1 : at.end - 1]
        outer = _indent_of_line(text, at.start)
        made = f"{newline}{outer}{unit}{lead}{_dumped(value, outer + unit, unit, newline)}{newline}{outer}"
        return text[: at.start + 1] + inside.rstrip() + made + text[at.end - 1 :]
    last = at.parts[-1]
    after = last.value.end if last.comma is None else last.comma + 1
    before = text[last.value.end : after] if last.comma is not None else ","
    spread = "\n" in text[at.start : at.parts[0].start]
    if not spread:
        made = f" {lead}{json.dumps(value, ensure_ascii=False)}{',' if last.comma is not None else ''}"
        return text[: last.value.end] + before + made + text[after:]
    rest = _REST_OF_LINE.match(text, after)  # a comment about the last part stays beside it
    end = rest.end() if rest and rest[0].strip() else after
    inner = _indent_of_line(text, last.start)
    made = (
        f"{newline}{inner}{lead}{_dumped(value, inner, unit, newline)}{',' if last.comma is not None else ''}"
    )
    return text[: last.value.end] + before + text[after:end] + made + text[end:]


def _cut(text: str, at: JsonValue, index: int) -> str:
    part, last = at.parts[index], index == len(at.parts) - 1
    start = part.start - len(text[: part.start]) + len(text[: part.start].rstrip(" \t"))
    end = part.value.end if part.comma is None else part.comma + 1
    if text[:start].endswith("\n"):
        start -= 2 if text[:start].endswith("\r\n") else 1
    elif not last:  # on one line: what follows moves to its place
        start, end = part.start, end + len(text[end:]) - len(text[end:].lstrip(" \t"))
    text = text[:start] + text[end:]
    if last and part.comma is None and index:  # strict JSON allows no comma before the end
        comma = at.parts[index - 1].comma
        assert comma is not None
        text = text[:comma] + text[comma + 1 :]
    inside = text[at.start + 1 : _value(text, at.start).end - 1]
    return text if inside.strip() else text[: at.start + 1] + text[at.start + 1 + len(inside) :]


def _dumped(value: Any, indent: str, unit: str, newline: str) -> str:
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return newline.join([lines[0], *(indent + line for line in lines[1:])])


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str) -> str:
    """Return one step of indentation, as in the file; two spaces by default."""
    for line in text.splitlines()[1:]:
        blank = line[: len(line) - len(line.lstrip(" \t"))]
        if blank and line.strip():
            return blank
    return "  "


def _indent_of_line(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    line = text[start:at]
    return line[: len(line) - len(line.lstrip(" \t"))]
