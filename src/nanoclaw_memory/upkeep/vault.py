"""Read a vault of linked notes as Obsidian stores them: its texts as a corpus, its links and properties as graph."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nanoclaw_memory.clock import stamp
from nanoclaw_memory.entries.importers import pages
from nanoclaw_memory.entries.markdown import Imports
from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.graph.extract import FileRules, extract
from nanoclaw_memory.graph.triples import Triple
from nanoclaw_memory.progress import counted
from nanoclaw_memory.text import slug
from nanoclaw_memory.types import BroughtIn
from nanoclaw_memory.upkeep.importing import NOTHING

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

MAX_LINKS = 100  # of one note
_LINK = re.compile(
    r"(?<!!)\[\[(?P<target>[^\]|#^\n]{1,200})(?:[#^][^\]|\n]*)?(?:\|(?P<shown>[^\]\n]{1,200}))?\]\]"
)
_TAG = re.compile(r"(?<![\w&/#\[(])#(?P<tag>[A-Za-zÀ-ÿ][\w/-]{0,60})")
_FIELD = re.compile(
    r"^\s*(?:[-*+]\s+)?(?:\[|\()?(?P<key>[A-Za-zÀ-ÿ][\w -]{0,40})::\s*(?P<value>[^\])\n]{1,200})[\])]?\s*$"
)
_FRONT = re.compile(r"---\n(?P<front>.*?)\n---\n", re.DOTALL)
_CODE = re.compile(r"^(```|~~~).*?(?:^\1|\Z)|`[^`\n]*`|%%.*?%%", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#\s+(?P<title>\S.*?)\s*$", re.MULTILINE)


def import_vault(group: Group, folder: Path, dry_run: bool) -> BroughtIn:
    """Register the notes as domain documents, which stay where they are, and read them into the graph.

    Reading again updates what changed and retires what was deleted.
    """
    if not folder.is_dir():
        raise InvalidValue(f"{folder} is no folder", "give the folder of the vault")
    found = Imports()
    name = slug(folder.resolve().name, 40) or "vault"
    notes = dict(pages(folder, found))
    triples = {path: triples_of(path, text) for path, text in notes.items()}
    count = sum(map(len, triples.values()))
    if not dry_run:
        group.retrieval.corpora.add(name, [folder])
        for path in counted("notes", list(notes)):
            written = stamp(datetime.fromtimestamp((folder / path).stat().st_mtime, UTC))
            group.graph.ingest_note(_known_as(name, path), notes[path], triples[path], written)
        for gone in group.graph.statements_in(f"vault {name}"):
            if gone.removeprefix(_known_as(name, "")) not in notes:
                group.graph.ingest_note(gone, "", [], group.moment())
    return replace(
        NOTHING, relations=count, unplaced=tuple(found.unplaced), dry_run=dry_run, pages=len(notes)
    )


def _known_as(name: str, path: str) -> str:
    return f"vault {name}/{path}"


def triples_of(path: str, text: str) -> list[Triple]:
    """Return what a note states: aliases, properties, fields, links and tags, and what the graph reads from any
    page.
    """
    plain = text.replace("\r\n", "\n").removeprefix("\ufeff")
    stem = path.rpartition("/")[2].removesuffix(".md")
    front = _FRONT.match(plain)
    body = plain[front.end() :] if front else plain
    heading = _HEADING.search(_CODE.sub("", body))
    title = heading["title"] if heading and len(heading["title"].split()) <= 6 else stem
    found = [*extract(plain, FileRules(page=title))]
    if title.casefold() != stem.casefold():
        found.append(Triple("alias", stem, "", title))
    found += _of_body(title, body, plain.count("\n", 0, front.end()) if front else 0)
    if front:
        found += [_tag(title, tag, 1) for tag in _front_tags(front["front"])]
    unique = {triple.mark: replace(triple, origin="import") for triple in found}
    return list(unique.values())


def _of_body(title: str, body: str, above: int) -> Iterator[Triple]:
    links = 0
    for number, line in enumerate(_CODE.sub(_blank, body).split("\n"), above + 1):
        if (field := _FIELD.match(line)) and not _LINK.search(line):
            yield Triple(
                "fact", title, field["key"].strip(), field["value"].strip(), several=True, line=number
            )
        for link in _LINK.finditer(line):
            target = link["target"].rpartition("/")[2].strip()
            links += 1
            if links > MAX_LINKS or not target or target.casefold() == title.casefold():
                continue
            key = field["key"].strip() if (field := _FIELD.match(line)) else "links to"
            yield Triple("relation", title, key, target, line=number)
        if not line.lstrip().startswith("#") or _TAG.match(line.lstrip()):
            yield from (_tag(title, match["tag"], number) for match in _TAG.finditer(line))


def _tag(title: str, tag: str, line: int) -> Triple:
    return Triple("fact", title, "tag", tag.strip("/"), several=True, line=line)


def _front_tags(front: str) -> Iterator[str]:
    """Yield the tags of front matter: a list in brackets, one per line, or words."""
    match = re.search(
        r"^tags?:[ \t]*(?P<same>.*)\n?(?P<below>(?:[ \t]*-[ \t]+.*(?:\n|$))*)", front, re.MULTILINE | re.I
    )
    if match:
        for word in re.split(r"[\s,\[\]\"'#-]*[\s,\[\]\"'#]+[-\s]*", f" {match['same']} {match['below']}"):
            if re.fullmatch(r"[\w/-]+", word):
                yield word


def _blank(code: re.Match[str]) -> str:
    return "\n" * code[0].count("\n")
