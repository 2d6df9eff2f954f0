"""What other memories export, as entries, relations and conversations; each format in a small pure reader."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nanoclaw_memory.clock import stamp
from nanoclaw_memory.entries.migrate import read, statements, type_of
from nanoclaw_memory.entries.rules import MAX_CONTENT
from nanoclaw_memory.errors import FileProblem, InvalidValue
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import Said, Transcript

MAX_BYTES = 500_000_000


@dataclass(frozen=True)
class ImportedEntry:
    """One entry to be, with the file and line it comes from."""

    type: str
    content: str
    source: str
    tags: tuple[str, ...] = ()


@dataclass
class Imports:
    """Everything that a file or folder holds."""

    entries: list[ImportedEntry] = field(default_factory=list)
    relations: list[tuple[str, str, str, str]] = field(
        default_factory=list
    )  # subject, predicate, object, source
    conversations: list[Transcript] = field(default_factory=list)
    unplaced: list[str] = field(default_factory=list)


def bring(kind: str, path: Path) -> Imports:
    """Read an export; an error names the file and what was expected."""
    if kind not in KINDS:
        raise InvalidValue(f"{kind!r} is no format we read", "one of: " + ", ".join(KINDS))
    if not path.exists():
        raise InvalidValue(f"there is no {path}", "give the export's file or folder")
    try:
        return KINDS[kind](path)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise FileProblem(
            f"{path.name} is not a {kind} export: {error}", "nothing was imported; see: ncm import --help"
        ) from error


# ---- conversations ----


def _claude(path: Path) -> Imports:
    found = Imports()
    for chat in _json(path, "conversations.json"):
        said = [
            Said("User" if turn["sender"] == "human" else "Agent", text, _moment(turn.get("created_at")))
            for turn in chat.get("chat_messages", [])
            if (text := _claude_text(turn))
        ]
        if said:
            found.conversations.append(
                Transcript(str(chat["uuid"]), "messages", tuple(said), chat.get("name") or "")
            )
    return found


def _claude_text(turn: Mapping[str, Any]) -> str:
    parts = [
        part["text"] for part in turn.get("content") or [] if part.get("type") == "text" and part.get("text")
    ]
    files = [part.get("extracted_content") or "" for part in turn.get("attachments") or []]
    return "\n\n".join(filter(None, [*(parts or [turn.get("text") or ""]), *files])).strip()


def _chatgpt(path: Path) -> Imports:
    found = Imports()
    for chat in _json(path, "conversations.json"):
        said = [turn for node in _walk(chat["mapping"]) if (turn := _chatgpt_turn(node.get("message") or {}))]
        if said:
            name = str(
                chat.get("conversation_id") or chat.get("id") or chat.get("create_time") or chat["title"]
            )
            found.conversations.append(Transcript(name, "messages", tuple(said), chat.get("title") or ""))
    return found


def _walk(mapping: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The newest branch of a conversation tree, from its root."""
    node = next((one for one in mapping.values() if one.get("parent") is None), None)
    seen: set[str] = set()
    while node is not None and node["id"] not in seen:
        seen.add(node["id"])
        yield node
        children = node.get("children") or []
        node = mapping.get(children[-1]) if children else None


def _chatgpt_turn(message: Mapping[str, Any]) -> Said | None:
    role = (message.get("author") or {}).get("role")
    if role not in ("user", "assistant") or (message.get("metadata") or {}).get(
        "is_visually_hidden_from_conversation"
    ):
        return None
    content = message.get("content") or {}
    parts = [part for part in content.get("parts") or [content.get("text")] if isinstance(part, str)]
    text = "\n".join(parts).strip()
    at = message.get("create_time")
    moment = stamp(datetime.fromtimestamp(at, UTC)) if isinstance(at, int | float) else ""
    return Said("User" if role == "user" else "Agent", text, moment) if text else None


# ---- memories ----


def _claude_code(path: Path) -> Imports:
    """The auto-memory folder: a file per memory, its type in the front matter."""
    kinds = {"user": "person", "feedback": "correction", "project": "project", "reference": "fact"}
    found = Imports()
    for file in _markdown(path):
        if file.name == "MEMORY.md" and path.is_dir():
            continue  # an index of the other files
        front, body, offset = _front_matter(file.read_text(encoding="utf-8"))
        kind = kinds.get(front.get("type", "").strip())
        if kind is None:
            _pages(found, file, body, offset)
            continue
        for number, text in statements(body):
            if not text.startswith("#"):
                _add(found, kind, text, f"{file.name}:{number + offset}", ("claude-code",))
    return found


def _codex(path: Path) -> Imports:
    found = Imports()
    for file in _markdown(path):
        _pages(found, file, file.read_text(encoding="utf-8"), 0)
    return found


def _mem0(path: Path) -> Imports:
    tree = _json(path)
    rows = tree.get("results") or tree.get("memories") if isinstance(tree, dict) else tree
    found = Imports()
    for number, row in enumerate(rows, 1):
        text = one_line(str(row.get("memory") or row.get("text") or row.get("data") or ""))
        categories = row.get("categories") or []
        tags = tuple(str(tag)[:50] for tag in categories)[:10]
        _add(
            found,
            type_of(text, list(categories)) or "fact",
            text,
            f"{path.name}:{row.get('id', number)}",
            tags,
        )
    return found


_OBSERVATION = re.compile(r"^\[(?P<category>[^\]]+)\]\s*(?P<text>.*?)(?:\s*\((?P<context>[^)]*)\))?$")
_LINK = re.compile(r"^(?P<predicate>[\w -]+?)\s*\[\[(?P<target>[^\]|]+)(?:\|[^\]]*)?\]\]")


def _basic_memory(path: Path) -> Imports:
    found = Imports()
    for file in _markdown(path):
        front, body, offset = _front_matter(file.read_text(encoding="utf-8"))
        title = front.get("title") or file.stem
        for number, text in statements(body):
            source = f"{file.name}:{number + offset}"
            link, observation = _LINK.match(text), _OBSERVATION.match(text)
            if link:
                found.relations.append((title, link["predicate"].strip(), link["target"].strip(), source))
            elif observation:
                tags = tuple(re.findall(r"#([\w-]{1,50})", observation["text"]))[:10]
                plain = re.sub(r"\s*#[\w-]+", "", observation["text"])
                kind = type_of(plain, [observation["category"]]) or "fact"
                _add(found, kind, f"{title}: {plain}", source, tags)
            elif not text.startswith("#"):
                found.unplaced.append(f"{source}: {text[:80]}")
    return found


KINDS: Mapping[str, Callable[[Path], Imports]] = {
    "claude": _claude,
    "chatgpt": _chatgpt,
    "claude-code": _claude_code,
    "codex": _codex,
    "mem0": _mem0,
    "basic-memory": _basic_memory,
}


def _pages(found: Imports, file: Path, text: str, offset: int) -> None:
    placed, left = read(file.name, text)
    for one in placed:
        _add(found, one.type, one.content, f"{file.name}:{one.line + offset}", one.tags)
    found.unplaced += [f"{file.name}:{one.line + offset}: {one.why}" for one in left]


def _add(found: Imports, kind: str, text: str, source: str, tags: tuple[str, ...] = ()) -> None:
    plain = one_line(text)
    if not plain or len(plain) > MAX_CONTENT:
        found.unplaced.append(f"{source}: {'empty' if not plain else f'over {MAX_CONTENT:,} characters'}")
        return
    found.entries.append(ImportedEntry(kind, plain, source, tags))


def _json(path: Path, member: str = "") -> Any:
    """The JSON of a file, of a member in a zip, or of that file in a folder."""
    if path.is_dir():
        path = path / member
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"it has over {MAX_BYTES:,} bytes")
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            name = next(name for name in archive.namelist() if name.endswith(member))
            if archive.getinfo(name).file_size > MAX_BYTES:
                raise ValueError(f"{name} has over {MAX_BYTES:,} bytes")
            return json.loads(archive.read(name))
    return json.loads(path.read_text(encoding="utf-8"))


def _markdown(path: Path) -> list[Path]:
    return sorted(path.rglob("*.md")) if path.is_dir() else [path]


def _front_matter(text: str) -> tuple[dict[str, str], str, int]:
    """The simple `key: value` lines at the top, the rest, and how many lines were taken."""
    match = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    if not match:
        return {}, text, 0
    pairs = (line.partition(":") for line in match.group(1).splitlines() if not line.startswith((" ", "-")))
    front = {key.strip(): value.strip().strip("\"'") for key, _, value in pairs}
    return front, text[match.end() :], text[: match.end()].count("\n")


def _moment(text: Any) -> str:
    try:
        return stamp(datetime.fromisoformat(str(text)))
    except ValueError:
        return ""
