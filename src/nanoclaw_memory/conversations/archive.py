"""Conversations as Markdown in the group's `conversations/`: written, listed and parsed here only.

    # Which port does Keystone use?

    Date: 2026-02-23
    Session: 5c1f09d2
    Part: 1
    Turns: 2
    Project: keystone

    **User** (14:05): Which port does Keystone use?

    **Agent** (14:06): 3055.

A later day starts with a heading `## 2026-02-24`. A turn may have more lines; those that would be parsed as a
heading or as another turn are escaped with a backslash, so that `utterances_in` returns what `render` was given.
An earlier edition wrote `exchanges-YYYY-MM.md`, each exchange under a heading `## 2026-02-24 14:05 SESSION`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from nanoclaw_memory.clock import Clock, read_moment
from nanoclaw_memory.errors import FileProblem, PathRefused
from nanoclaw_memory.intake.memory_requests import without_off_record
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import encodable, fingerprint, one_line, slug
from nanoclaw_memory.types import FOREIGN, Archived, Transcript, Utterance
from nanoclaw_memory.workspace.files import create_text, read_text
from nanoclaw_memory.workspace.paths import Home

if TYPE_CHECKING:
    from nanoclaw_memory.intake.intake import Intake

FOLDER = "conversations"
MAX_PART = 1_500_000  # characters of a file
# The first line of a turn: speaker, time and the first line of the text. Only these lines name a speaker.
TURN_MARK = regex(r"\*\*(?P<speaker>User|Agent)\*\*(?: \((?P<time>\d{2}:\d{2})\))?:(?: (?P<said>.*))?$")
DAY_MARK = regex(r"## (\d{4}-\d{2}-\d{2})(?: (\d{2}:\d{2})(?: (.*))?)?\Z")
PROJECT_FIELD = regex(r"^Project: ([a-z0-9][a-z0-9._-]{0,63})$", re.MULTILINE)
ORIGIN_FIELD = regex(r"^Origin: ([a-z]+)$", re.MULTILINE)
_FIELD = regex(r"(Date|Session|Part|Turns): (.*)\Z")
ARCHIVE_FIELD = regex(r"(?:Date|Session|Part|Turns|Project|Origin): \S.*\Z")
_FENCE = regex(r" {0,3}(`{3,}|~{3,})(.*)\Z")
_SPEAKER = r"\*\*(?:User|Agent)\*\*"
_TAKEN_IN_CODE = regex(rf"( {{0,3}})(\\*(?:{_SPEAKER}|## \d{{4}}-))")
_TAKEN = regex(rf"( {{0,3}})(\\*(?:#|=+[ \t]*\Z|-+[ \t]*\Z|{_SPEAKER}))")
_BLOCK = regex(r"\s*(?:[`~#>|=<\\]|[-*+] |\*\*|-+\s*\Z|\d+[.)] )")
_CONTROLS = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def archive(
    home: Home,
    group: str,
    transcript: Transcript,
    clock: Clock,
    intake: Intake,
    known: Mapping[str, Sequence[Archived]] | None = None,
    project: str = "",
    folder: str = FOLDER,
) -> Archived | None:
    """Write the turns that no archive of the session contains yet; return None, and create no folder, if there are
    none.

    `known` are the archives by session, for callers that archive many at a time; `project` is where the conversation
    took place.
    """
    key = _key(transcript)
    masked, redacted = _admitted(intake, transcript.said)
    parts = _parts(home, group, key, known, folder)
    fresh = _new_turns(_archived_turns(home, group, parts), masked)
    if not fresh:
        return None
    given = intake.admit_or_none(_title_told(transcript))
    title = one_line(given.text if given else "")[:120] or title_of(fresh)
    written = []
    for number, piece in enumerate(_pieces(fresh), len(parts) + 1):
        moments = [moment for turn in piece if (moment := _moment(turn.at, clock))]
        day = (moments[0] if moments else clock.now()).date().isoformat()
        header = f"# {title}\n\nDate: {day}\nSession: {key}\nPart: {number}\nTurns: {len(piece)}\n"
        header += f"Project: {project}\n" if project else ""
        header += f"Origin: {intake.origin}\n" if intake.origin in FOREIGN else ""
        text = header + render(piece, day, clock)
        path = _write_new(home.workspace(group), folder, f"{day}-{slug(title)}", text)
        written.append(
            Archived(
                path=f"{folder}/{path.name}",
                title=title,
                date=day,
                session_id=key,
                turns=len(fresh),
                redacted=redacted,
            )
        )
    return written[0]


def unarchived(
    home: Home,
    group: str,
    transcript: Transcript,
    clock: Clock,
    intake: Intake,
    known: Mapping[str, Sequence[Archived]] | None = None,
) -> bool:
    """Return whether `archive` would write anything."""
    masked, _ = _admitted(intake, transcript.said)
    return bool(
        _new_turns(_archived_turns(home, group, _parts(home, group, _key(transcript), known)), masked)
    )


def _title_told(transcript: Transcript) -> str:
    """Return the title that a client gave; none if it may sum up what must not be stored."""
    kept = sum(1 for _ in without_off_record(transcript.said))
    return transcript.title if kept == len(transcript.said) else ""


def _key(transcript: Transcript) -> str:
    return one_line(transcript.session_id)[:128] or fingerprint(repr(transcript.said[:1]))[:16]


def _parts(
    home: Home,
    group: str,
    key: str,
    known: Mapping[str, Sequence[Archived]] | None,
    folder: str = FOLDER,
) -> Sequence[Archived]:
    if known is not None:
        return known.get(key, ())
    return [found for found in archives(home, group, folder) if found.session_id == key]


def _archived_turns(home: Home, group: str, parts: Sequence[Archived]) -> list[Utterance]:
    return _joined(utterances_in(read_text(home.workspace(group) / part.path)) for part in parts)


def _pieces(said: Sequence[Utterance]) -> Iterator[list[Utterance]]:
    """Split the turns into parts small enough for a memory file; a question and its answer stay together."""
    piece: list[Utterance] = []
    size = 0
    for turn in said:
        full = size + len(turn.text) > (MAX_PART if turn.speaker == "User" else 2 * MAX_PART)
        if piece and full:
            yield piece
            piece, size = [], 0
        piece.append(turn)
        size += len(turn.text)
    yield piece


def archives(
    home: Home, group: str, folder: str = FOLDER, seen: Callable[[str], bool] = bool
) -> list[Archived]:
    """Return a group's archived conversations, oldest first, a session's parts in order; files that are not `seen`
    are skipped.
    """
    place = home.workspace(group) / folder
    if not place.is_dir() or not _inside(place, home.workspace(group)):
        return []
    paths = (path for path in place.glob("*.md") if not path.is_symlink() and seen(f"{folder}/{path.name}"))
    found = [_described(path, folder) for path in paths]
    return [archived for _, archived in sorted((part, archive) for part, archive in found)]


# ---- marks ----


def turn_mark(speaker: str, at: datetime | None) -> str:
    """Return the mark that opens a turn: `**User** (14:05):`."""
    return f"**{speaker}**" + (f" ({at:%H:%M})" if at else "") + ":"


def render(said: Sequence[Utterance], day: str, clock: Clock) -> str:
    """Render the turns as Markdown, each after an empty line."""
    lines: list[str] = []
    for turn in said:
        moment = _moment(turn.at, clock)
        if moment and moment.date().isoformat() != day:
            day = moment.date().isoformat()
            lines += ["", f"## {day}"]
        lines += ["", *_turn_lines(turn_mark(turn.speaker, moment), turn.text)]
    return "\n".join(lines) + "\n"


def utterances_in(markdown: str) -> list[Utterance]:
    """Parse the turns of an archive; the inverse of `render`."""
    day, head, body = "", None, []
    found: list[Utterance] = []
    for line in [*markdown.split("\n"), "**User**:"]:
        field, heading, turn = _FIELD.match(line), DAY_MARK.match(line), TURN_MARK.match(line)
        if (heading or turn) and head is not None:
            found.append(_utterance(head, day, body))
            head = None
        if field and head is None and not found and field[1] == "Date":
            day = field[2]
        elif heading:
            day = heading[1]
        elif turn:
            head, body = turn, [turn["said"]] if turn["said"] else []
        elif head is not None:
            body.append(line)
    return found


def title_of(said: Sequence[Utterance]) -> str:
    """Return a conversation's title: the first line of what the user said first."""
    first = next((turn.text for turn in said if turn.speaker == "User"), said[0].text if said else "")
    line = one_line(first.strip().split("\n", 1)[0]).lstrip("#>*-` ")
    return line if len(line) <= 80 else line[:80].rsplit(" ", 1)[0] + " …"


# ---- one turn ----


def normalised(text: str) -> str:
    """Normalise a turn's text for an archive: plain line ends, no controls, every code fence closed."""
    plain = encodable(_CONTROLS.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n")).strip())
    closing = ""
    for _, fence in _in_code(plain.split("\n")):
        closing = fence
    return f"{plain}\n{closing}" if closing else plain


def _turn_lines(head: str, text: str) -> list[str]:
    lines = _per_line(text.split("\n"), r"\1\\\2")
    if _BLOCK.match(text):  # a list, a heading or a fence starts on a line of its own
        return [head, "", *lines]
    return [f"{head} {lines[0]}" if lines[0] else head, *lines[1:]]


def _utterance(head: re.Match[str], day: str, body: list[str]) -> Utterance:
    at = f"{day}T{head['time']}" if head["time"] else ""
    return Utterance(head["speaker"], "\n".join(_per_line(body, _unescaped)).strip(), at)


def _per_line(lines: Sequence[str], change: str | Callable[[re.Match[str]], str]) -> list[str]:
    """Escape or unescape the lines that could be parsed as a mark or heading."""
    found = []
    for line, fence in _in_code(lines):
        taken = _TAKEN_IN_CODE if fence else _TAKEN
        found.append(taken.sub(change, line, count=1) if taken.match(line) else line)
    return found


def _unescaped(match: re.Match[str]) -> str:
    return match[1] + match[2].removeprefix("\\")


def _in_code(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each line with the fence that is still open after it; empty outside of code."""
    fence = ""
    for line in lines:
        match = _FENCE.match(line)
        if match and not fence and not (match[1][0] == "`" and "`" in match[2]):
            fence = match[1]
        elif match and fence and match[1].startswith(fence) and not match[2].strip():
            fence = ""
        yield line, fence


# ---- new turns ----


def _admitted(intake: Intake, said: Sequence[Utterance]) -> tuple[list[Utterance], int]:
    """Return the turns as they may be archived, and how many credentials were masked in them."""
    turns, total = [], 0
    for turn in without_off_record(said):
        admitted = intake.admit_or_none(turn.text)
        if admitted and (plain := normalised(admitted.text)):
            turns.append(Utterance(turn.speaker, plain, turn.at))
        total += admitted.redacted if admitted else 0
    return turns, total


def _joined(parts: Iterable[Sequence[Utterance]]) -> list[Utterance]:
    """Join the turns of all parts; an answer continued in the next part becomes one turn again."""
    joined: list[Utterance] = []
    for said in parts:
        if joined and said and joined[-1].speaker == said[0].speaker == "Agent":
            joined[-1] = Utterance("Agent", f"{joined[-1].text}\n\n{said[0].text}", joined[-1].at)
            said = said[1:]
        joined.extend(said)
    return joined


def _new_turns(before: Sequence[Utterance], said: Sequence[Utterance]) -> list[Utterance]:
    """Return the turns after the archived ones; the last archived turn may have grown since."""
    archived = [(turn.speaker, turn.text) for turn in before]
    spoken = [(turn.speaker, turn.text) for turn in said]
    for shared in range(min(len(archived), len(spoken)), 0, -1):
        last, grown = archived[-1], spoken[shared - 1]
        whole = archived[-shared:-1] == spoken[: shared - 1]
        if whole and last[0] == grown[0] and grown[1].startswith(last[1]):
            rest = normalised(grown[1][len(last[1]) :])
            more = [Utterance(grown[0], rest, said[shared - 1].at)] if rest else []
            return [*more, *said[shared:]]
    return list(said)


# ---- files ----


def _write_new(workspace: Path, folder: str, stem: str, text: str) -> Path:
    place = workspace / folder
    if not _inside(place, workspace):
        raise PathRefused(f"{folder} is a link that leaves the workspace", "replace it by a directory")
    for number in range(1, 10_000):
        path = place / (f"{stem}.md" if number == 1 else f"{stem}-{number}.md")
        if create_text(path, text):
            return path
    raise FileProblem(f"there are too many archives called {stem}", "move old ones away")


def _inside(folder: Path, base: Path) -> bool:
    return folder.resolve().is_relative_to(base.resolve())


def _described(path: Path, folder: str) -> tuple[tuple[str, int, str], Archived]:
    """Describe an archive by its first lines; a file that a person wrote may have only a title."""
    with path.open("rb") as handle:
        lines = handle.read(4096).decode("utf-8", "replace").split("\n")
    fields = {match[1]: match[2] for line in lines[:12] if (match := _FIELD.match(line))}
    title = lines[0].removeprefix("# ").strip() or path.stem
    day, session = fields.get("Date", ""), fields.get("Session", "")
    archived = Archived(f"{folder}/{path.name}", title, day, session, _number(fields.get("Turns", "")))
    return (day, _number(fields.get("Part", "")), path.name), archived


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _moment(at: str, clock: Clock) -> datetime | None:
    try:
        return read_moment(at).astimezone(clock.now().tzinfo) if at else None
    except (ValueError, OverflowError):
        return None
