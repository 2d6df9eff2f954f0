"""Cut a file's text into chunks: turns of a conversation, lines of a log, items and prose of other pages."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.conversations.archive import ARCHIVE_FIELD, ORIGIN_FIELD, PROJECT_FIELD, TURN_MARK
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.statements import source_date
from nanoclaw_memory.tokens import bound, estimate
from nanoclaw_memory.types import FOREIGN, LogLine, Passage
from nanoclaw_memory.workspace import log
from nanoclaw_memory.workspace.paths import ARCHIVE, SHARED_LOGS, WORKING_MEMORY, day_in_path, project_in_path

VERSION = 11
QUOTED = "web"  # the origin of quoted or pasted text, whatever its source
BY = regex(r"\A\s*(?:[-*+]\s+)?\[by (agent|shared|import|tool|web)\] ")  # a line of others on a page says so
_PROGRAMS = ("memory/notes/", WORKING_MEMORY)  # pages written by agents and programs
_LISTED = regex(r"[-*+•]\s+\S")
_HEADING = regex(r"^(#{1,6})\s+(.*?)\s*#*\s*$")
_FENCE = regex(r"^\s*(```|~~~)")
_ITEM = regex(r"^ ?(?:[-*+•]|\d{1,3}[.)])\s+\S")
_ROW = regex(r"^ ?\|.*\|\s*$")
_RULE = regex(r"^[\s|:=-]+$")  # the row between the head of a table and its body
_DAY = regex(r"(?<!\d)(\d{4}-\d{2}-\d{2})(?!\d)")
_STAMP = r"(?:[\[(][^\])]{1,40}[\])]\s*|\d{1,2}:\d{2}(?::\d{2})?\s*(?:[ap]m)?\s*[-–—]?\s*)?"
_NAME = r"[^\W\d_][\w .'’-]{0,39}?"
_BOLD_TURN = regex(
    rf"^\s*(?:[-*>]\s+)?{_STAMP}(?:\*\*|__)(?P<speaker>{_NAME})"
    rf"(?:\s*[\[(][^\])]*[\])])?(?:(?:\*\*|__)\s*(?:[\[(][^\])]*[\])]\s*)?:|:\s*(?:\*\*|__))\s*(?P<said>.*)$",
    re.IGNORECASE,
)
_PLAIN_TURN = regex(
    rf"^\s*(?:[-*>]\s+)?{_STAMP}(?P<speaker>{_NAME})(?:\s*[\[(][^\])]*[\])])?:\s+(?P<said>.*)$", re.IGNORECASE
)
_HEADED_TURN = regex(rf"^#{{2,6}}\s+{_STAMP}(?P<speaker>{_NAME})\s*(?:[\[(@,–—-].*)?:?\s*$", re.IGNORECASE)


class Chunking(msgspec.Struct, frozen=True):
    """How files are cut; part of the index's identity."""

    size: int = 400
    overlap: int = 80

    @property
    def key(self) -> str:
        return f"{VERSION}:{self.size}:{self.overlap}"


class _Line(msgspec.Struct, frozen=True):
    number: int
    text: str
    heading: str
    opens: bool  # whether the line is a heading


def chunks_of(relative: str, text: str, chunking: Chunking) -> list[Passage]:
    """Return the chunks of a file, in order; every line that somebody wrote is in one."""
    from nanoclaw_memory.workspace.starter import is_starter, without_starter

    lines = list(_headed(without_starter(text)))
    day = day_in_path(relative)
    if day is not None:
        return [_by(chunk, relative) for chunk in _log_lines(lines, day.isoformat(), chunking)]
    if relative.startswith(f"{ARCHIVE}/"):
        return [_archived(chunk) for chunk in _log_lines(lines, "", chunking)]
    named = _DAY.search(relative.rpartition("/")[2])
    dated = named.group(1) if named else ""
    if relative.startswith("conversations/") and (turns := _turns(lines)):
        head = text.partition("\n**")[0]  # the part before the first turn
        turns = turns[_is_header(turns[0]) :]
        project, origin = (
            found[1] if (found := field.search(head)) else "" for field in (PROJECT_FIELD, ORIGIN_FIELD)
        )
        chunks = (chunk for turn in turns for chunk in _turn_chunks(turn, dated, chunking, origin))
        return [replace(chunk, project=project) for chunk in chunks]
    project = project_in_path(relative)
    origin = "agent" if relative.startswith(_PROGRAMS) else "owner"
    return [
        replace(chunk, project=project, origin=found[1] if (found := BY.match(chunk.text)) else origin)
        for section in _sections(lines)
        for chunk in _statements(section, dated, chunking)
        if not is_starter(chunk.text)  # a heading of a starter file with nothing under it
    ]


def section_chunks(relative: str, text: str, chunking: Chunking) -> list[Passage]:
    """Return the chunks of a document that is neither log nor conversation, whatever its name."""
    lines = list(_headed(text))
    return [
        replace(_chunk(part, "section", ""), origin="import")
        for section in _sections(lines)
        for part in _cut(section, chunking)
    ]


def without_speaker(text: str, speaker: str = "") -> str:
    """Return a turn's words without the name before them (of `speaker`, if named)."""
    first, newline, rest = text.partition("\n")
    match = _BOLD_TURN.match(first) or _PLAIN_TURN.match(first)
    if match:
        own = not speaker or match["speaker"].strip() == speaker
        return match["said"] + newline + rest if own else text
    headed = _HEADED_TURN.match(first)
    return rest if headed and (not speaker or headed["speaker"].strip() == speaker) else text


def pieces_of(text: str, chunking: Chunking) -> list[str]:
    """Cut a turn's words to size, at line ends."""
    lines = [_Line(number, line, "", False) for number, line in enumerate(text.split("\n"), 1)]
    return ["\n".join(line.text for line in piece).strip() for piece in _cut(lines, chunking)]


def _headed(text: str) -> Iterator[_Line]:
    """Yield every line with the path of headings above it; headings in code blocks do not count."""
    path: list[tuple[int, str]] = []
    fenced = False
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.rstrip("\r")
        if _FENCE.match(line):
            fenced = not fenced
        match = None if fenced else _HEADING.match(line)
        if match:
            level = len(match[1])
            path = [entry for entry in path if entry[0] < level] + [(level, match[2])]
        yield _Line(number, line, " > ".join(title for _, title in path), match is not None)


def _chunk(lines: Sequence[_Line], kind: str, day: str, speaker: str = "") -> Passage:
    last = next((line for line in reversed(lines) if line.text.strip()), lines[-1])
    body = [line for line in lines if line.number <= last.number]
    found = _DAY.findall(body[-1].heading) if kind != "line" else []
    return Passage(
        body[0].number,
        body[-1].number,
        "\n".join(line.text for line in body),
        kind,
        body[-1].heading,
        found[-1] if found else day,
        speaker,
    )


# ---- logs ----


def _log_lines(lines: Sequence[_Line], day: str, chunking: Chunking) -> list[Passage]:
    """Return one chunk per entry of a daily log, with the indented lines under it."""
    groups: list[list[_Line]] = []
    fenced = False
    for line in lines:
        if _FENCE.match(line.text):
            fenced = not fenced
        starts = not fenced and not line.opens and _starts_entry(line.text)
        if starts or line.opens or not groups:
            groups.append([line])
        else:
            groups[-1].append(line)
    found = []
    for group in groups:
        if not any(line.text.strip() and not line.opens for line in group):
            continue  # a bare heading is part of the heading path below it
        entry = log.parse_line(group[0].text)
        entry = entry or LogLine(0, "")
        found += [
            replace(
                _chunk(part, "line", day),
                importance=entry.importance,
                project=entry.project,
                origin=entry.origin,
            )
            for part in _cut(group, chunking)
        ]
    return found


def _by(chunk: Passage, relative: str) -> Passage:
    """Attribute a line in a shared chat's log to the chat, whatever the line claims."""
    shared = relative.startswith(f"{SHARED_LOGS}/") and chunk.origin not in FOREIGN
    return replace(chunk, origin="shared") if shared else chunk


def _archived(chunk: Passage) -> Passage:
    """Date a line of an archive by the heading above it."""
    found = _DAY.findall(chunk.heading)
    return replace(chunk, day=found[-1] if found else "")


def _starts_entry(text: str) -> bool:
    return bool(_LISTED.match(text)) or (bool(text.strip()) and not text[:1].isspace())


# ---- conversations ----


def _turns(lines: Sequence[_Line]) -> list[tuple[str, list[_Line]]]:
    """Return speaker and lines of each turn; empty if it is no conversation. Leading lines have no speaker."""
    speakers = _speakers(lines)
    if not speakers:
        return []
    turns: list[tuple[str, list[_Line]]] = []
    for line, speaker in zip(lines, speakers, strict=True):
        new_day = line.opens and _DAY.search(line.text)
        if speaker or new_day or not turns:
            turns.append((speaker, [line]))
        else:
            turns[-1][1].append(line)
    return [
        (who, said)
        for who, said in turns
        if any(line.text.strip() and (who or not line.opens) for line in said)
    ]


def _is_header(turn: tuple[str, list[_Line]]) -> bool:
    """Return whether the lines before the first turn are only the header of an archive."""
    speaker, lines = turn
    return not speaker and all(
        line.opens or not line.text.strip() or ARCHIVE_FIELD.match(line.text) for line in lines
    )


def _speakers(lines: Sequence[_Line]) -> list[str]:
    """Return for each line the speaker whose turn it opens, or nothing, by the first turn format that fits."""
    # In a file with the marks of our own archives nothing else opens a turn.
    archived = [TURN_MARK.match(line.text) for line in lines]
    if any(
        match and match["speaker"] == "User" for match in archived
    ):  # a bold label in an answer is no speaker
        return [match["speaker"] if match else "" for match in archived]
    for pattern in (_BOLD_TURN, _HEADED_TURN, _PLAIN_TURN):
        matches = [pattern.match(line.text) for line in lines]
        names = Counter(match["speaker"].strip() for match in matches if match)
        if pattern is not _BOLD_TURN:  # `Note: …` and `## Plan` are no speakers: a speaker speaks again
            names = Counter({name: count for name, count in names.items() if count > 1})
        if 0 < len(names) <= 20:
            return [
                name if match and (name := match["speaker"].strip()) in names else "" for match in matches
            ]
    return []


def _turn_chunks(
    turn: tuple[str, list[_Line]], day: str, chunking: Chunking, origin: str
) -> Iterator[Passage]:
    speaker, lines = turn
    own = origin or ("user" if speaker == "User" else "agent")
    for quoted, run in itertools.groupby(_told_apart(speaker, lines), key=lambda pair: pair[0]):
        for part in _cut([line for _, line in run], chunking):
            chunk = _chunk(part, "turn" if speaker else "section", day, speaker)
            yield replace(chunk, origin=QUOTED if quoted else own)


def _told_apart(speaker: str, lines: Sequence[_Line]) -> Iterator[tuple[bool, _Line]]:
    """Yield the lines of a turn, each with whether the user only quotes it; empty lines follow the line before them."""
    if speaker != "User" or len(lines) == 1:
        yield from ((False, line) for line in lines)
        return
    from nanoclaw_memory.intake.authorship import read

    said = [without_speaker(lines[0].text, speaker), *(line.text for line in lines[1:])]
    foreign, quoted = read("\n".join(said)).foreign, False
    for number, line in enumerate(lines):
        if said[number].strip():
            quoted = number in foreign
        yield quoted, line


# ---- sections ----


def _sections(lines: Sequence[_Line]) -> Iterator[list[_Line]]:
    """Yield runs of lines under one heading; headings without text are joined to what follows."""
    section: list[_Line] = []
    for line in lines:
        if line.opens and any(other.text.strip() and not other.opens for other in section):
            yield section
            section = []
        section.append(line)
    if any(line.text.strip() for line in section):
        yield section


def _statements(section: Sequence[_Line], day: str, chunking: Chunking) -> Iterator[Passage]:
    """Yield the items, rows and prose of a section; lists and tables have their introduction as context."""
    under = ""
    for kind, block in _blocks(section):
        for part in _cut(block, chunking):
            yield _statement(part, kind, day, under)
        if kind == "section":
            last = next(line.text.strip() for line in reversed(block) if line.text.strip())
            under = last.strip(" :*_") if last.rstrip("*_").endswith(":") else ""
        elif len(block) > 1 and _RULE.match(block[1].text) and _ROW.match(block[0].text):
            under = block[0].text.strip(" |")


def _statement(lines: Sequence[_Line], kind: str, day: str, under: str) -> Passage:
    chunk = _chunk(lines, kind, day)
    if kind == "section":
        return chunk
    said = source_date(chunk.text) or source_date(lines[0].text)
    heading = " > ".join(part for part in (chunk.heading, under) if part)
    return replace(chunk, heading=heading, day=said.isoformat() if said else chunk.day)


def _blocks(section: Sequence[_Line]) -> Iterator[tuple[str, list[_Line]]]:
    """Yield the lines of a section as prose (`section`) and as items of lists and tables (`item`)."""
    block: list[_Line] = []
    kind, fenced = "section", False
    for before, line in zip([None, *section], section, strict=False):
        starts = not fenced and _starts_item(line.text, before.text if before else "")
        ends = kind == "item" and not fenced and not _goes_on(line.text, before.text if before else "")
        if _FENCE.match(line.text):
            fenced = not fenced
        if starts or ends:
            if any(other.text.strip() and not other.opens for other in block):
                yield kind, block
            block = []  # a heading alone is part of the path below it
            kind = "item" if starts else "section"
        block.append(line)
    if any(line.text.strip() for line in block):
        yield kind, block


def _starts_item(text: str, before: str) -> bool:
    """Return whether a line begins a list item or table row; the first row stays with the table's head."""
    if not _ROW.match(text):
        return bool(_ITEM.match(text))
    return not _RULE.match(text) and not (_ROW.match(before) and _RULE.match(before))


def _goes_on(text: str, before: str) -> bool:
    """Return whether a line continues the item before it: it is empty, indented, or follows without a gap."""
    return not text.strip() or text[:1].isspace() or bool(before.strip())


def _cut(lines: Sequence[_Line], chunking: Chunking) -> Iterator[list[_Line]]:
    """Yield overlapping pieces of at most the chunk size; a single line is never split."""
    piece: list[_Line] = []
    cost = 0
    if sum(bound(line.text) + 1 for line in lines) <= chunking.size:  # most fit, and need no estimate
        piece, lines = list(itertools.dropwhile(lambda line: not line.text.strip(), lines)), ()
    for line in lines:
        if not piece and not line.text.strip():
            continue
        own = estimate(line.text) + 1
        if piece and cost + own > chunking.size:
            yield piece
            piece = _tail(piece, min(chunking.overlap, chunking.size - own))
            cost = sum(estimate(other.text) + 1 for other in piece)
        piece.append(line)
        cost += own
    if any(line.text.strip() for line in piece):
        yield piece


def _tail(piece: Sequence[_Line], room: int) -> list[_Line]:
    """Return the last lines that fit into the overlap."""
    tail: list[_Line] = []
    for line in reversed(piece):
        room -= estimate(line.text) + 1
        if room < 0:
            break
        tail.insert(0, line)
    return tail
