"""A transcript becomes Markdown in the group's `conversations/`: one paragraph per turn, credentials masked.

    # Which port does Keystone use?

    Date: 2026-02-23
    Session: 5c1f09d2
    Part: 1
    Turns: 2

    **User** (14:05): Which port does Keystone use?

    **Agent** (14:06): 3055.

A later day starts with a heading `## 2026-02-24`. A turn may have more lines; those that would read as a
heading or as another turn are escaped with a backslash, so that `said_in` gives back what was said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from nanoclaw_memory.clock import Clock, moment_of
from nanoclaw_memory.errors import FileProblem, PathRefused
from nanoclaw_memory.intake import secrets
from nanoclaw_memory.text import fingerprint, one_line, slug
from nanoclaw_memory.types import Archived, Said, Transcript
from nanoclaw_memory.workspace.files import create_text, read_text
from nanoclaw_memory.workspace.paths import Home

FOLDER = "conversations"
MAX_PART = 1_500_000  # characters of a file
_TURN = re.compile(r"\*\*(User|Agent)\*\*(?: \((\d{2}:\d{2})\))?:(?: (.*))?\Z")
_DAY = re.compile(r"## (\d{4}-\d{2}-\d{2})\Z")
_FIELD = re.compile(r"(Date|Session|Part|Turns): (.*)\Z")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)\Z")
_SPEAKER = r"\*\*(?:User|Agent)\*\*"
_TAKEN_IN_CODE = re.compile(rf"( {{0,3}})(\\*{_SPEAKER})")
_TAKEN = re.compile(rf"( {{0,3}})(\\*(?:#|=+[ \t]*\Z|-+[ \t]*\Z|{_SPEAKER}))")
_BLOCK = re.compile(r"\s*(?:[`~#>|=<\\]|[-*+] |\*\*|-+\s*\Z|\d+[.)] )")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def archive(
    home: Home,
    group: str,
    transcript: Transcript,
    clock: Clock,
    forgotten: Callable[[str], bool] = lambda text: False,
    known: Mapping[str, Sequence[Archived]] | None = None,
) -> Archived | None:
    """Write what no archive of the session holds yet; None, and no directory made, when that is nothing.

    `known` are the archives by session, for those who archive many at a time.
    """
    key = _key(transcript)
    masked, redacted = _masked([turn for turn in transcript.said if not forgotten(turn.text)])
    parts = _parts(home, group, key, known)
    fresh = _after(_held(home, group, parts), masked)
    if not fresh:
        return None
    given = "" if forgotten(transcript.title) else transcript.title
    title = one_line(secrets.mask(given)[0])[:120] or title_of(fresh)
    written = []
    for number, piece in enumerate(_pieces(fresh), len(parts) + 1):
        moments = [moment for turn in piece if (moment := _moment(turn.at, clock))]
        day = (moments[0] if moments else clock.now()).date().isoformat()
        header = f"# {title}\n\nDate: {day}\nSession: {key}\nPart: {number}\nTurns: {len(piece)}\n"
        path = _write_new(home, group, f"{day}-{slug(title)}", header + render(piece, day, clock))
        written.append(Archived(f"{FOLDER}/{path.name}", title, day, key, len(fresh), redacted))
    return written[0]


def unarchived(
    home: Home,
    group: str,
    transcript: Transcript,
    clock: Clock,
    forgotten: Callable[[str], bool] = lambda text: False,
    known: Mapping[str, Sequence[Archived]] | None = None,
) -> bool:
    """Whether `archive` would write anything."""
    masked, _ = _masked([turn for turn in transcript.said if not forgotten(turn.text)])
    return bool(_after(_held(home, group, _parts(home, group, _key(transcript), known)), masked))


def _key(transcript: Transcript) -> str:
    return one_line(transcript.session_id)[:128] or fingerprint(repr(transcript.said[:1]))[:16]


def _parts(
    home: Home, group: str, key: str, known: Mapping[str, Sequence[Archived]] | None
) -> Sequence[Archived]:
    if known is not None:
        return known.get(key, ())
    return [found for found in archives(home, group) if found.session_id == key]


def _held(home: Home, group: str, parts: Sequence[Archived]) -> list[Said]:
    """What the archives of a session hold."""
    return _joined(said_in(read_text(home.workspace(group) / part.path)) for part in parts)


def _pieces(said: Sequence[Said]) -> Iterator[list[Said]]:
    """The turns in pieces that every reader of memory files takes; an answer's pieces stay together."""
    piece: list[Said] = []
    size = 0
    for turn in said:
        full = size + len(turn.text) > (MAX_PART if turn.speaker == "User" else 2 * MAX_PART)
        if piece and full:
            yield piece
            piece, size = [], 0
        piece.append(turn)
        size += len(turn.text)
    yield piece


def archives(home: Home, group: str) -> list[Archived]:
    """The archived conversations of a group, oldest first, the parts of a session in order."""
    folder = home.workspace(group) / FOLDER
    if not folder.is_dir() or not _inside(folder, home.workspace(group)):
        return []
    found = [_described(path) for path in folder.glob("*.md") if not path.is_symlink()]
    return [archived for _, archived in sorted((part, one) for part, one in found)]


def render(said: Sequence[Said], day: str, clock: Clock) -> str:
    """The turns as Markdown, each after an empty line."""
    lines: list[str] = []
    for turn in said:
        moment = _moment(turn.at, clock)
        if moment and moment.date().isoformat() != day:
            day = moment.date().isoformat()
            lines += ["", f"## {day}"]
        time = f" ({moment:%H:%M})" if moment else ""
        lines += ["", *_turn_lines(f"**{turn.speaker}**{time}:", turn.text)]
    return "\n".join(lines) + "\n"


def said_in(markdown: str) -> list[Said]:
    """The turns of an archive; the inverse of `render`."""
    day, head, body = "", None, []
    found: list[Said] = []
    for line in [*markdown.split("\n"), "**User**:"]:
        field, heading, turn = _FIELD.match(line), _DAY.match(line), _TURN.match(line)
        if (heading or turn) and head is not None:
            found.append(_said(head, day, body))
            head = None
        if field and head is None and not found and field[1] == "Date":
            day = field[2]
        elif heading:
            day = heading[1]
        elif turn:
            head, body = turn, [turn[3]] if turn[3] else []
        elif head is not None:
            body.append(line)
    return found


def title_of(said: Sequence[Said]) -> str:
    """What a conversation is about: the first line of what the user said first."""
    first = next((turn.text for turn in said if turn.speaker == "User"), said[0].text if said else "")
    line = one_line(first.strip().split("\n", 1)[0]).lstrip("#>*-` ")
    return line if len(line) <= 80 else line[:80].rsplit(" ", 1)[0] + " …"


# ---- one turn ----


def normalised(text: str) -> str:
    """A turn's text as an archive can hold it: plain line ends, no controls, every code fence closed."""
    plain = _CONTROLS.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n")).strip()
    plain = plain.encode("utf-8", "replace").decode()
    closing = ""
    for _, fence in _in_code(plain.split("\n")):
        closing = fence
    return f"{plain}\n{closing}" if closing else plain


def _turn_lines(head: str, text: str) -> list[str]:
    lines = [
        (_TAKEN_IN_CODE if fence else _TAKEN).sub(r"\1\\\2", line, count=1)
        if (_TAKEN_IN_CODE if fence else _TAKEN).match(line)
        else line
        for line, fence in _in_code(text.split("\n"))
    ]
    if _BLOCK.match(text):  # a list, a heading or a fence starts on a line of its own
        return [head, "", *lines]
    return [f"{head} {lines[0]}", *lines[1:]]


def _said(head: re.Match[str], day: str, body: list[str]) -> Said:
    at = f"{day}T{head[2]}" if head[2] else ""
    lines = [
        (_TAKEN_IN_CODE if fence else _TAKEN).sub(_unescaped, line, count=1)
        if (_TAKEN_IN_CODE if fence else _TAKEN).match(line)
        else line
        for line, fence in _in_code(body)
    ]
    return Said(head[1], "\n".join(lines).strip(), at)


def _unescaped(match: re.Match[str]) -> str:
    return match[1] + match[2].removeprefix("\\")


def _in_code(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each line with the fence that is still open after it; empty outside of code."""
    fence = ""
    for line in lines:
        match = _FENCE.match(line)
        if match and not fence and not (match[1][0] == "`" and "`" in match[2]):
            fence = match[1]
        elif match and fence and match[1].startswith(fence) and not match[2].strip():
            fence = ""
        yield line, fence


# ---- what is new ----


def _masked(said: Sequence[Said]) -> tuple[list[Said], int]:
    turns, total = [], 0
    for turn in said:
        text, count = secrets.mask(turn.text)
        if plain := normalised(text):
            turns.append(Said(turn.speaker, plain, turn.at))
        total += count
    return turns, total


def _joined(parts: Iterable[Sequence[Said]]) -> list[Said]:
    """The turns of all parts; an answer that grew between two of them is one turn again."""
    joined: list[Said] = []
    for said in parts:
        if joined and said and joined[-1].speaker == said[0].speaker == "Agent":
            joined[-1] = Said("Agent", f"{joined[-1].text}\n\n{said[0].text}", joined[-1].at)
            said = said[1:]
        joined.extend(said)
    return joined


def _after(before: Sequence[Said], said: Sequence[Said]) -> list[Said]:
    """The turns that come after what is archived; the last archived one may have grown since."""
    held = [(turn.speaker, turn.text) for turn in before]
    spoken = [(turn.speaker, turn.text) for turn in said]
    for shared in range(min(len(held), len(spoken)), 0, -1):
        last, grown = held[-1], spoken[shared - 1]
        whole = held[-shared:-1] == spoken[: shared - 1]
        if whole and last[0] == grown[0] and grown[1].startswith(last[1]):
            rest = normalised(grown[1][len(last[1]) :])
            more = [Said(grown[0], rest, said[shared - 1].at)] if rest else []
            return [*more, *said[shared:]]
    return list(said)


# ---- files ----


def _write_new(home: Home, group: str, stem: str, text: str) -> Path:
    folder = home.workspace(group) / FOLDER
    if folder.is_symlink() and not _inside(folder, home.workspace(group)):
        raise PathRefused(f"{FOLDER} is a link that leaves the workspace", "replace it by a directory")
    for number in range(1, 10_000):
        path = folder / (f"{stem}.md" if number == 1 else f"{stem}-{number}.md")
        if create_text(path, text):
            return path
    raise FileProblem(f"there are too many archives called {stem}", "move old ones away")


def _inside(folder: Path, base: Path) -> bool:
    return folder.resolve().is_relative_to(base.resolve())


def _described(path: Path) -> tuple[tuple[str, int, str], Archived]:
    """An archive by its first lines; one that a person wrote has a name and nothing else."""
    with path.open("rb") as handle:
        lines = handle.read(4096).decode("utf-8", "replace").split("\n")
    fields = {match[1]: match[2] for line in lines[:12] if (match := _FIELD.match(line))}
    title = lines[0].removeprefix("# ").strip() or path.stem
    day, session = fields.get("Date", ""), fields.get("Session", "")
    archived = Archived(f"{FOLDER}/{path.name}", title, day, session, _number(fields.get("Turns", "")))
    return (day, _number(fields.get("Part", "")), path.name), archived


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _moment(at: str, clock: Clock) -> datetime | None:
    try:
        return moment_of(at).astimezone(clock.now().tzinfo) if at else None
    except (ValueError, OverflowError):
        return None
