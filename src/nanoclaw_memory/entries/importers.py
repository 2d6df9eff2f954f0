"""Parse exports of ChatGPT, Claude, Claude Code, Codex, mem0, Basic Memory, Letta and WhatsApp: entries,
relations, conversations.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nanoclaw_memory.clock import stamp
from nanoclaw_memory.entries.markdown import (
    ImportedRelation,
    Imports,
    parts,
    read_page,
    statements,
    type_of,
)
from nanoclaw_memory.entries.rules import MAX_CONTENT
from nanoclaw_memory.entries.whatsapp import read_chat
from nanoclaw_memory.errors import FileProblem, InvalidValue
from nanoclaw_memory.text import fingerprint, one_line, plural, slug
from nanoclaw_memory.types import Transcript, Utterance
from nanoclaw_memory.workspace.files import read_text

MAX_BYTES = 500_000_000
MAX_FILES = 20_000
MAX_TURN = 100_000  # characters of one turn; an archive must stay a readable file


def read_export(kind: str, path: Path) -> Imports:
    """Read a whole export; an error names the file and what was expected."""
    if kind not in KINDS:
        raise InvalidValue(f"{kind[:40]!r} is no format we read", "one of: " + ", ".join(KINDS))
    path = path.expanduser()
    if not path.exists():
        raise InvalidValue(f"there is no {path}", "give the export's file or folder")
    if path.suffix == ".jsonl" and kind in TRANSCRIPTS:
        raise FileProblem(
            f"{path.name} is a transcript of a conversation; {kind} memories are Markdown",
            f"nothing was imported; archive it: ncm sessions archive {path}",
        )
    found = Imports()
    try:
        KINDS[kind](found, path)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError, zipfile.BadZipFile) as error:
        raise FileProblem(
            f"{path.name} is not a {kind} export: {one_line(str(error))[:200]}",
            "nothing was imported; see: ncm import --help",
        ) from error
    except OSError as error:
        raise FileProblem(
            f"{path.name} cannot be read: {error.strerror or error}", "nothing was imported"
        ) from error
    return found


# ---- conversations ----


def _claude(found: Imports, path: Path) -> None:
    """Read conversations, projects and memories; the fields of a row identify its kind."""
    names = r"(?:.*/)?(?:conversations(?:[-_]?\d+)?|projects|memories|projects/.*)\.json"
    for tree in _json_files(path, names):
        single = isinstance(tree, dict) and "docs" in tree
        for row in [tree] if single else _checked_list(tree):
            if "conversations_memory" in row or "project_memories" in row:
                _claude_memories(found, row)
            elif "docs" in row or "prompt_template" in row:
                _claude_project(found, row)
            else:
                _claude_chat(found, row)


def _claude_chat(found: Imports, chat: Mapping[str, Any]) -> None:
    turns = [
        _utterance("User" if turn["sender"] == "human" else "Agent", text, _moment(turn.get("created_at")))
        for turn in chat["chat_messages"] or []
        if (text := _claude_text(turn))
    ]
    if turns:
        name = f"import-claude-{chat['uuid']}"
        found.conversations.append(Transcript(name, "import", tuple(turns), chat.get("name") or ""))


def _claude_project(found: Imports, project: Mapping[str, Any]) -> None:
    """Read a project's description and instructions; its documents are only named."""
    name = one_line(project.get("name") or "untitled")
    source = f"projects.json:{project.get('uuid') or name}"
    if project.get("is_starter_project"):
        found.skip(source, f"{name} is Claude's own example")
        return
    if one_line(project.get("description") or ""):
        found.add("project", f"{name}: {project['description']}", source, ("claude",))
    for _, text in statements(project.get("prompt_template") or ""):
        found.add("instruction", f"In the project {name}: {text}", source, ("claude",))
    for doc in project.get("docs") or []:
        size = len(doc.get("content") or "")
        document = f"the document {one_line(doc.get('filename') or '')[:100]} of {name} ({size:,} characters)"
        found.skip(source, f"{document} was left out; save it as a file, then: ncm corpus add")


def _claude_memories(found: Imports, row: Mapping[str, Any]) -> None:
    """Read Claude's memories by paragraph; one without a recognised type is context."""
    pages = {"memories.json": row.get("conversations_memory")}
    pages |= {f"memories.json:{name}": text for name, text in (row.get("project_memories") or {}).items()}
    for name, page in pages.items():
        for line, text in statements(page or ""):
            if len(text.split()) > 2:  # "**Work context**" is a heading
                found.add(type_of(text, []) or "context", text, f"{name}:{line}", ("claude",))


def _claude_text(turn: Mapping[str, Any]) -> str:
    texts = [
        part["text"] for part in turn.get("content") or [] if part.get("type") == "text" and part.get("text")
    ]
    files = [part.get("extracted_content") or "" for part in turn.get("attachments") or []]
    return "\n\n".join(filter(None, [*(texts or [turn.get("text") or ""]), *files])).strip()


def _chatgpt(found: Imports, path: Path) -> None:
    for tree in _json_files(path, r"(?:.*/)?conversations(?:[-_]?\d+)?\.json"):
        for chat in _checked_list(tree):
            began = chat.get("create_time")
            branch = _branch(chat["mapping"], chat.get("current_node"))
            turns = [turn for node in branch if (turn := _chatgpt_turn(node.get("message") or {}, began))]
            if turns:
                known = chat.get("conversation_id") or chat.get("id")
                name = f"import-chatgpt-{known or fingerprint(repr((began, turns[0])))[:16]}"
                found.conversations.append(Transcript(name, "import", tuple(turns), chat.get("title") or ""))


def _branch(mapping: Mapping[str, Any], current: Any) -> list[Mapping[str, Any]]:
    """Return the branch of a conversation tree that was shown last, from its root."""
    if current in mapping:
        return list(_walk(mapping, current, lambda node: node.get("parent")))[::-1]
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
    texts = [part for part in content.get("parts") or [content.get("text")] if isinstance(part, str)]
    text = "\n".join(texts).strip()
    speaker = "User" if role == "user" else "Agent"
    return _utterance(speaker, text, _seconds(message.get("create_time") or began)) if text else None


def _whatsapp(found: Imports, path: Path) -> None:
    """Read a chat of WhatsApp, its text or the zip around it; every line is said by its sender, not by the person."""
    for text in _texts(path, r"(?:.*/)?[^/]+\.txt"):
        turns = tuple(_utterance(turn.speaker, turn.text, turn.at) for turn in read_chat(text))
        title = path.stem.replace("_", " ")
        found.conversations.append(Transcript(f"import-whatsapp-{slug(path.stem)}", "import", turns, title))


def _utterance(speaker: str, text: str, at: str) -> Utterance:
    cut = f"{text[:MAX_TURN].rstrip()}\n[cut: {MAX_TURN:,} of {len(text):,} characters]"
    return Utterance(speaker, cut if len(text) > MAX_TURN else text, at)


def _checked_list(tree: Any) -> list[Any]:
    if not isinstance(tree, list):
        raise ValueError("a list of conversations was expected")
    return tree


# ---- memories ----

_CLAUDE_CODE = {"user": "person", "feedback": "correction", "project": "project", "reference": "fact"}
_INDEXED = re.compile(r"\[[^\]]*\]\((?P<file>[^)\s]+\.md)\)")


def _claude_code(found: Imports, path: Path) -> None:
    """Read the auto-memory folder: a file per memory, its type in the front matter; MEMORY.md lists them."""

    def points_to_file(text: str) -> bool:
        link = _INDEXED.search(text)
        return link is not None and path.is_dir() and (path / link["file"]).is_file()

    for name, text in pages(path, found):
        front = _front_matter(text)
        kind = _CLAUDE_CODE.get(front.get("type", "").strip())
        if kind is None:
            read_page(found, name, text, ignored=points_to_file)
            continue
        lines = list(statements(text))
        whole = one_line(" ".join(line for _, line in lines)) or front.get("description", "")
        if len(whole) <= MAX_CONTENT:
            lines = [(lines[0][0] if lines else 1, whole)]
        for number, line in lines:
            found.add(kind, line, f"{name}:{number}", ("claude-code",))

    _name_transcripts(found, path)


def _codex(found: Imports, path: Path) -> None:
    for name, text in pages(path, found):
        read_page(found, name, text)
    _name_transcripts(found, path)


def _name_transcripts(found: Imports, path: Path) -> None:
    """Report the transcripts beside the notes, which are archived and not imported."""
    left = sorted(path.glob("*.jsonl")) if path.is_dir() else []
    if left:
        count = plural(len(left), "transcript")
        found.skip(
            f"{count} ({left[0].name}{', …' if len(left) > 1 else ''})", "each: ncm sessions archive FILE"
        )


def _mem0(found: Imports, path: Path) -> None:
    for tree in _json_files(path, r".*\.json"):
        rows = tree
        if isinstance(tree, dict):
            rows = tree["results"] if "results" in tree else tree["memories"]
        for number, row in enumerate(rows, 1):
            texts = [row[name] for name in ("memory", "text", "data") if name in row]
            if not texts:
                raise ValueError(f"row {number} holds no memory")
            text = str(texts[0] or "")
            categories = [str(one) for one in row.get("categories") or []]
            kind = type_of(one_line(text), categories) or "fact"
            found.add(kind, text, f"{path.name}:{row.get('id') or number}", categories)


_OBSERVATION = re.compile(r"\[(?P<category>[^\[\]]+)\]\s+(?P<text>.*?)(?:\s*\((?P<context>[^()]*)\))?\Z")
_LINK = re.compile(r"(?P<predicate>[\w' -]*?)\s*\[\[(?P<target>[^\]|]+)(?:\|[^\]]*)?\]\]")


def _basic_memory(found: Imports, path: Path) -> None:
    """Read notes with a title, observations (`- [category] text #tag`) and relations (`- predicate [[note]]`)."""
    for name, page in pages(path, found):
        title = _front_matter(page).get("title") or Path(name).stem
        for part in parts(page):
            source = f"{name}:{part.line}"
            statement = part.text if part.kind == "statement" else ""
            if part.kind == "heading":
                continue
            if link := _LINK.match(statement):
                predicate = link["predicate"].replace("_", " ").strip() or "links to"
                found.relations.append(ImportedRelation(title, predicate, link["target"].strip(), source))
            elif observation := _OBSERVATION.match(statement):
                text, category = re.sub(r"\s*#[\w-]+", "", observation["text"]), observation["category"]
                tags = re.findall(r"#([\w-]+)", observation["text"])
                found.add(type_of(text, [category]) or "fact", f"{title}: {text}", source, [category, *tags])
            else:
                found.skip(source, "neither an observation nor a relation")


def _letta(found: Imports, path: Path) -> None:
    """Read an agent file: memory blocks and archival passages become entries, messages a conversation."""
    for tree in _json_files(path, r".*\.(?:af|json)"):
        agents = tree.get("agents") or [tree]
        rows = tree.get("blocks") or [row for agent in agents for row in agent.get("core_memory") or []]
        for row in rows:
            label, source = str(row["label"]), f"{path.name}:{row['label']}"
            if label == "persona":
                found.skip(source, "who the agent is belongs in SOUL.md")
                continue
            for text in filter(None, map(str.strip, str(row["value"]).splitlines())):
                kind = type_of(text, [label]) or ("person" if label == "human" else "context")
                found.add(kind, text, source, ("letta",))
        for agent in agents:
            passages = agent.get("passages") or agent.get("archival_memory") or []
            for number, row in enumerate(passages, 1):
                text = str(row["text"] if isinstance(row, dict) else row)
                found.add(type_of(text, []) or "fact", text, f"{path.name}:passage {number}", ("letta",))
            _letta_talk(found, agent)


def _letta_talk(found: Imports, agent: Mapping[str, Any]) -> None:
    speakers = {"user": "User", "assistant": "Agent"}
    said = []
    for row in agent.get("messages") or []:
        parts_ = row.get("content") or row.get("text") or ""
        text = (
            parts_ if isinstance(parts_, str) else "\n".join(str(part.get("text") or "") for part in parts_)
        )
        if text.strip() and row.get("role") in speakers:
            said.append(_utterance(speakers[row["role"]], text, _moment(row.get("created_at"))))
    if said:
        name = str(agent.get("name") or "Letta agent")
        session = fingerprint(f"letta {agent.get('id') or name}")[:16]
        found.conversations.append(Transcript(session, "letta", tuple(said), name))


TRANSCRIPTS = ("claude-code", "codex")  # clients that keep one JSONL file a session
KINDS: Mapping[str, Callable[[Imports, Path], None]] = {
    "claude": _claude,
    "chatgpt": _chatgpt,
    "claude-code": _claude_code,
    "codex": _codex,
    "mem0": _mem0,
    "basic-memory": _basic_memory,
    "letta": _letta,
    "whatsapp": _whatsapp,
}


# ---- files ----


def _json_files(path: Path, wanted: str) -> Iterator[Any]:
    """Yield the JSON of a file, or of the matching members of a folder or zip."""
    yield from map(json.loads, _texts(path, wanted))


def _texts(path: Path, wanted: str) -> Iterator[str]:
    """Yield the text of a file, or of the matching members of a folder or zip."""
    if path.is_dir():
        files = sorted(one for one in path.iterdir() if one.is_file() and re.fullmatch(wanted, one.name))
        if not files:
            raise ValueError("the folder holds no such file")
        for file in files:
            yield from _texts(file, wanted)
        return
    _check_size(path.name, path.stat().st_size)
    if not zipfile.is_zipfile(path):
        yield path.read_text(encoding="utf-8-sig")
        return
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if re.fullmatch(wanted, name))
        if not names:
            raise ValueError("the zip holds no such file")
        for name in names:
            _check_size(name, archive.getinfo(name).file_size)
            yield archive.read(name).decode("utf-8-sig")


def _check_size(name: str, size: int) -> None:
    if size > MAX_BYTES:
        raise ValueError(f"{name} has {size:,} bytes, over the limit of {MAX_BYTES:,}")


def pages(path: Path, found: Imports) -> Iterator[tuple[str, str]]:
    """Yield name and text of each Markdown page; an unreadable one is reported."""
    if path.is_file():
        if path.suffix.lower() not in (".md", ".markdown", ".txt"):
            raise ValueError("Markdown was expected")
        yield path.name, read_text(path)
        return
    names = [one.relative_to(path) for one in path.rglob("*.md") if one.is_file() and not one.is_symlink()]
    seen = sorted(one for one in names if not any(part.startswith(".") for part in one.parts))
    if not seen:
        talk = (
            "; its transcripts (*.jsonl) go in with: ncm sessions archive FILE"
            if any(path.glob("*.jsonl"))
            else ""
        )
        raise ValueError(f"the folder holds no Markdown{talk}")
    if len(seen) > MAX_FILES:
        raise ValueError(f"the folder holds {len(seen):,} pages, over the limit of {MAX_FILES:,}")
    for name in seen:
        try:
            yield name.as_posix(), read_text(path / name)
        except FileProblem as problem:
            found.skip(str(name), problem.message)


def _front_matter(text: str) -> dict[str, str]:
    """Return the simple `key: value` lines at the top, of any depth; the outermost wins."""
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
