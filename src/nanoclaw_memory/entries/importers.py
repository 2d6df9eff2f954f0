"""Parse exports of ChatGPT, Claude, Claude Code, Codex, mem0 and Basic Memory: entries, relations, conversations."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from nanoclaw_memory.clock import stamp
from nanoclaw_memory.entries.migrate import parts, read, type_of
from nanoclaw_memory.entries.rules import MAX_CONTENT, MAX_TAG, MAX_TAGS
from nanoclaw_memory.errors import FileProblem, InvalidValue
from nanoclaw_memory.text import fingerprint, one_line
from nanoclaw_memory.types import Transcript, Utterance
from nanoclaw_memory.workspace.files import read_text

MAX_BYTES = 500_000_000
MAX_FILES = 20_000
MAX_SAID = 100_000  # characters of one turn; an archive must stay a file that can be read


class ImportedEntry(msgspec.Struct, frozen=True):
    """One entry to be, with the file and line it comes from."""

    type: str
    content: str
    source: str
    tags: tuple[str, ...] = ()


class ImportedRelation(msgspec.Struct, frozen=True):
    """A relation to be, with the file and line it comes from."""

    subject: str
    predicate: str
    object: str
    source: str


class Imports(msgspec.Struct):
    """Everything that a file or folder holds."""

    entries: list[ImportedEntry] = msgspec.field(default_factory=list)
    relations: list[ImportedRelation] = msgspec.field(default_factory=list)
    conversations: list[Transcript] = msgspec.field(default_factory=list)
    unplaced: list[str] = msgspec.field(default_factory=list)


def bring(kind: str, path: Path) -> Imports:
    """Read an export whole; an error names the file and what was expected."""
    if kind not in KINDS:
        raise InvalidValue(f"{kind[:40]!r} is no format we read", "one of: " + ", ".join(KINDS))
    path = path.expanduser()
    if not path.exists():
        raise InvalidValue(f"there is no {path}", "give the export's file or folder")
    try:
        return KINDS[kind](path)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError, zipfile.BadZipFile) as error:
        raise FileProblem(
            f"{path.name} is not a {kind} export: {one_line(str(error))[:200]}",
            "nothing was imported; see: ncm import --help",
        ) from error
    except OSError as error:
        raise FileProblem(
            f"{path.name} cannot be read: {error.strerror or error}", "nothing was imported"
        ) from error


# ---- conversations ----


def _claude(path: Path) -> Imports:
    """Conversations, projects and what Claude itself remembers; each row is known by its fields."""
    found = Imports()
    for tree in _json_files(
        path, r"(?:.*/)?(?:conversations(?:[-_]?\d+)?|projects|memories|projects/.*)\.json"
    ):
        if not isinstance(tree, list) and not (isinstance(tree, dict) and ("docs" in tree)):
            raise ValueError("a list of conversations was expected")
        for row in tree if isinstance(tree, list) else [tree]:
            if "conversations_memory" in row or "project_memories" in row:
                _claude_memories(found, row)
            elif "docs" in row or "prompt_template" in row:
                _claude_project(found, row)
            else:
                _claude_chat(found, row)
    return found


def _claude_chat(found: Imports, chat: Mapping[str, Any]) -> None:
    said = [
        _said("User" if turn["sender"] == "human" else "Agent", text, _moment(turn.get("created_at")))
        for turn in chat["chat_messages"] or []
        if (text := _claude_text(turn))
    ]
    if said:
        name = f"import-claude-{chat['uuid']}"
        found.conversations.append(Transcript(name, "import", tuple(said), chat.get("name") or ""))


def _claude_project(found: Imports, project: Mapping[str, Any]) -> None:
    """What a project is and how its agent was told to work; its documents are named, not taken."""
    name = one_line(project.get("name") or "untitled")
    source = f"projects.json:{project.get('uuid') or name}"
    if project.get("is_starter_project"):
        found.unplaced.append(f"{source}: {name} is Claude's own example")
        return
    if one_line(project.get("description") or ""):
        _add(found, "project", f"{name}: {project['description']}", source, ("claude",))
    for part in parts(project.get("prompt_template") or ""):
        if part.kind == "statement":
            _add(found, "instruction", f"In the project {name}: {part.text}", source, ("claude",))
    for doc in project.get("docs") or []:
        size = len(doc.get("content") or "")
        found.unplaced.append(
            f"{source}: the document {one_line(doc.get('filename') or '')[:100]} of {name} ({size:,} characters)"
            " was left out; save it as a file, then: ncm corpus add"
        )


def _claude_memories(found: Imports, row: Mapping[str, Any]) -> None:
    """What Claude remembers, paragraph by paragraph; what says no type is context."""
    pages = {"memories.json": row.get("conversations_memory")}
    pages |= {f"memories.json:{name}": text for name, text in (row.get("project_memories") or {}).items()}
    for name, text in pages.items():
        for part in parts(text or ""):
            if part.kind == "statement" and len(part.text.split()) > 2:  # "**Work context**" is a heading
                kind = type_of(one_line(part.text), []) or "context"
                _add(found, kind, part.text, f"{name}:{part.line}", ("claude",))


def _claude_text(turn: Mapping[str, Any]) -> str:
    told = [
        part["text"] for part in turn.get("content") or [] if part.get("type") == "text" and part.get("text")
    ]
    files = [part.get("extracted_content") or "" for part in turn.get("attachments") or []]
    return "\n\n".join(filter(None, [*(told or [turn.get("text") or ""]), *files])).strip()


def _chatgpt(path: Path) -> Imports:
    found = Imports()
    for chat in _rows(path):
        began = chat.get("create_time")
        branch = _branch(chat["mapping"], chat.get("current_node"))
        said = [turn for node in branch if (turn := _chatgpt_turn(node.get("message") or {}, began))]
        if said:
            known = chat.get("conversation_id") or chat.get("id")
            name = f"import-chatgpt-{known or fingerprint(repr((began, said[0])))[:16]}"
            found.conversations.append(Transcript(name, "import", tuple(said), chat.get("title") or ""))
    return found


def _branch(mapping: Mapping[str, Any], current: Any) -> list[Mapping[str, Any]]:
    """The branch of a conversation tree that was last shown, from its root."""
    if current in mapping:
        way = list(_walk(mapping, current, lambda node: node.get("parent")))
        return way[::-1]
    root = next((name for name, node in mapping.items() if node.get("parent") is None), None)
    return list(_walk(mapping, root, lambda node: (node.get("children") or [None])[-1]))


def _walk(
    mapping: Mapping[str, Any], name: Any, following: Callable[[Mapping[str, Any]], Any]
) -> Iterator[Mapping[str, Any]]:
    seen: set[str] = set()
    while name in mapping and name not in seen:
        seen.add(name)
        yield mapping[name]
        name = following(mapping[name])


def _chatgpt_turn(message: Mapping[str, Any], began: Any) -> Utterance | None:
    role = (message.get("author") or {}).get("role")
    hidden = (message.get("metadata") or {}).get("is_visually_hidden_from_conversation")
    if role not in ("user", "assistant") or hidden:
        return None
    content = message.get("content") or {}
    told = [part for part in content.get("parts") or [content.get("text")] if isinstance(part, str)]
    text = "\n".join(told).strip()
    speaker = "User" if role == "user" else "Agent"
    return _said(speaker, text, _seconds(message.get("create_time") or began)) if text else None


def _said(speaker: str, text: str, at: str) -> Utterance:
    cut = f"{text[:MAX_SAID].rstrip()}\n[cut: {MAX_SAID:,} of {len(text):,} characters]"
    return Utterance(speaker, cut if len(text) > MAX_SAID else text, at)


def _rows(path: Path) -> list[Any]:
    """The conversations of an export: its file, the folder or zip with it, split or whole."""
    rows: list[Any] = []
    for tree in _json_files(path, r"(?:.*/)?conversations(?:[-_]?\d+)?\.json"):
        if not isinstance(tree, list):
            raise ValueError("a list of conversations was expected")
        rows += tree
    return rows


# ---- memories ----

_CLAUDE_CODE = {"user": "person", "feedback": "correction", "project": "project", "reference": "fact"}
_INDEXED = re.compile(r"\[[^\]]*\]\((?P<file>[^)\s]+\.md)\)")


def _claude_code(path: Path) -> Imports:
    """The auto-memory folder: a file per memory, its type in the front matter; MEMORY.md lists them."""
    found = Imports()
    for name, text in _pages(path, found):
        front = _front_matter(text)
        kind = _CLAUDE_CODE.get(front.get("type", "").strip())
        if kind is None:
            _page(found, name, text, path if path.is_dir() else None)
            continue
        told = [part for part in parts(text) if part.kind == "statement"]
        whole = one_line(" ".join(part.text for part in told)) or front.get("description", "")
        if len(whole) <= MAX_CONTENT:
            _add(found, kind, whole, f"{name}:{told[0].line if told else 1}", ("claude-code",))
            continue
        for part in told:
            _add(found, kind, part.text, f"{name}:{part.line}", ("claude-code",))
    return found


def _codex(path: Path) -> Imports:
    found = Imports()
    for name, text in _pages(path, found):
        _page(found, name, text)
    return found


def _page(found: Imports, name: str, text: str, index_of: Path | None = None) -> None:
    """A page without a format of its own; of an index, the lines that do not merely point to a file."""
    placed, left = read(name, text)
    for one in placed:
        link = _INDEXED.search(one.content)
        if not (link and index_of and (index_of / link["file"]).is_file()):
            _add(found, one.type, one.content, f"{name}:{one.line}", one.tags)
    found.unplaced += [
        f"{name}:{one.line}: {one.why}" for one in left if not (index_of and _INDEXED.search(one.text))
    ]


def _mem0(path: Path) -> Imports:
    found = Imports()
    for tree in _json_files(path, r".*\.json"):
        rows = tree
        if isinstance(tree, dict):
            rows = tree["results"] if "results" in tree else tree["memories"]
        for number, row in enumerate(rows, 1):
            told = [row[name] for name in ("memory", "text", "data") if name in row]
            if not told:
                raise ValueError(f"row {number} holds no memory")
            text = str(told[0] or "")
            about = [str(one) for one in row.get("categories") or []]
            kind = type_of(one_line(text), about) or "fact"
            _add(found, kind, text, f"{path.name}:{row.get('id') or number}", about)
    return found


_OBSERVATION = re.compile(r"\[(?P<category>[^\[\]]+)\]\s+(?P<text>.*?)(?:\s*\((?P<context>[^()]*)\))?\Z")
_LINK = re.compile(r"(?P<predicate>[\w' -]*?)\s*\[\[(?P<target>[^\]|]+)(?:\|[^\]]*)?\]\]")


def _basic_memory(path: Path) -> Imports:
    found = Imports()
    for name, text in _pages(path, found):
        title = _front_matter(text).get("title") or Path(name).stem
        for part in parts(text):
            source = f"{name}:{part.line}"
            link, observation = _LINK.match(part.text), _OBSERVATION.match(part.text)
            if part.kind == "heading":
                continue
            if part.kind == "statement" and link:
                predicate = link["predicate"].replace("_", " ").strip() or "links to"
                found.relations.append(ImportedRelation(title, predicate, link["target"].strip(), source))
            elif part.kind == "statement" and observation:
                plain = re.sub(r"\s*#[\w-]+", "", observation["text"])
                kind = type_of(plain, [observation["category"]]) or "fact"
                tags = re.findall(r"#([\w-]+)", observation["text"])
                _add(found, kind, f"{title}: {plain}", source, [observation["category"], *tags])
            else:
                found.unplaced.append(f"{source}: neither an observation nor a relation")
    return found


KINDS: Mapping[str, Callable[[Path], Imports]] = {
    "claude": _claude,
    "chatgpt": _chatgpt,
    "claude-code": _claude_code,
    "codex": _codex,
    "mem0": _mem0,
    "basic-memory": _basic_memory,
}


def _add(found: Imports, kind: str, text: str, source: str, tags: Iterable[str] = ()) -> None:
    plain = one_line(text)
    if not plain or len(plain) > MAX_CONTENT:
        found.unplaced.append(f"{source}: {'empty' if not plain else f'over {MAX_CONTENT:,} characters'}")
        return
    named = dict.fromkeys(one_line(tag)[:MAX_TAG].strip() for tag in tags)
    kept = tuple(tag for tag in named if tag)[:MAX_TAGS]
    found.entries.append(ImportedEntry(kind, plain, one_line(source)[:300], kept))


# ---- files ----


def _json_files(path: Path, wanted: str) -> Iterator[Any]:
    """The JSON of a file, or of the members of a folder or zip whose names match."""
    if path.is_dir():
        files = sorted(one for one in path.iterdir() if one.is_file() and re.fullmatch(wanted, one.name))
        if not files:
            raise ValueError("the folder holds no such file")
        for file in files:
            yield from _json_files(file, wanted)
        return
    _check_size(path.name, path.stat().st_size)
    if not zipfile.is_zipfile(path):
        yield json.loads(path.read_text(encoding="utf-8-sig"))
        return
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if re.fullmatch(wanted, name))
        if not names:
            raise ValueError("the zip holds no such file")
        for name in names:
            _check_size(name, archive.getinfo(name).file_size)
            yield json.loads(archive.read(name).decode("utf-8-sig"))


def _check_size(name: str, size: int) -> None:
    if size > MAX_BYTES:
        raise ValueError(f"{name} has {size:,} bytes, over the limit of {MAX_BYTES:,}")


def _pages(path: Path, found: Imports) -> Iterator[tuple[str, str]]:
    """Name and text of each Markdown page; one that cannot be read is said, and the others come in."""
    if path.is_file():
        if path.suffix.lower() not in (".md", ".markdown", ".txt"):
            raise ValueError("Markdown was expected")
        yield path.name, read_text(path)
        return
    names = [one.relative_to(path) for one in path.rglob("*.md") if one.is_file() and not one.is_symlink()]
    seen = sorted(one for one in names if not any(part.startswith(".") for part in one.parts))
    if not seen:
        raise ValueError("the folder holds no Markdown")
    if len(seen) > MAX_FILES:
        raise ValueError(f"the folder holds {len(seen):,} pages, over the limit of {MAX_FILES:,}")
    for name in seen:
        try:
            yield name.as_posix(), read_text(path / name)
        except FileProblem as problem:
            found.unplaced.append(f"{name}: {problem.message}")


def _front_matter(text: str) -> dict[str, str]:
    """The simple `key: value` lines at the top, of whatever depth; the outermost wins."""
    match = re.match(
        r"---\n(.*?)\n(?:---|\.\.\.)\n", text.replace("\r\n", "\n").removeprefix("\ufeff"), re.DOTALL
    )
    front: dict[str, str] = {}
    lines = match[1].splitlines() if match else []
    for line in sorted(lines, key=lambda line: line[:1].isspace()):
        key, colon, value = line.strip().partition(":")
        if colon:
            front.setdefault(key.strip(), value.strip().strip("\"'"))
    return front


def _moment(text: Any) -> str:
    try:
        return stamp(datetime.fromisoformat(str(text)))
    except (ValueError, OverflowError):
        return ""


def _seconds(moment: Any) -> str:
    try:
        return stamp(datetime.fromtimestamp(float(moment), UTC))
    except (TypeError, ValueError, OverflowError, OSError):
        return ""
