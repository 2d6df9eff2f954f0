"""Prepare passages for the index: their words, their context, and the text that is embedded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.retrieval.chunker import BY, without_speaker
from nanoclaw_memory.sha256 import sha256
from nanoclaw_memory.statements import without_date
from nanoclaw_memory.store.lessons import ABOUT
from nanoclaw_memory.store.passages import NewPassage
from nanoclaw_memory.types import Passage
from nanoclaw_memory.workspace import log

MAX_EMBEDDED = 6_000
_BULLET = regex(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_NOT_WORDS = regex(r"[\W_]+")


def prepared(relative: str, chunks: Sequence[Passage]) -> list[NewPassage]:
    """Return a file's chunks with their keyword fields and the fingerprints of their embedded texts."""
    bodies = [body_of(chunk) for chunk in chunks]
    return [
        NewPassage(
            chunk, bodies[place], _near(chunks, bodies, place), around_of(relative, chunk), _print(chunk)
        )
        for place, chunk in enumerate(chunks)
    ]


def prepared_row(turns: Sequence[Passage], around: str) -> tuple[NewPassage, ...]:
    """Return the passages of one database row; the turns of an exchange are neighbours."""
    bodies = [body_of(turn) for turn in turns]
    return tuple(
        NewPassage(
            turn, bodies[place], _near(turns, bodies, place), f"{around_of('', turn)}\n{around}", _print(turn)
        )
        for place, turn in enumerate(turns)
    )


def _print(chunk: Passage) -> bytes:
    """Return a fingerprint that ignores case and blanks, which hardly change the meaning: such texts are embedded
    once.
    """
    plain = " ".join(embedded_text(chunk).lower().split())
    return sha256(plain.encode("utf-8", "surrogatepass")).digest()


def _near(chunks: Sequence[Passage], bodies: Sequence[str], place: int) -> str:
    """Return the turns before and after a turn: an answer rarely repeats the words of its question."""
    if chunks[place].kind != "turn":
        return ""
    beside = (other for other in (place - 1, place + 1) if 0 <= other < len(chunks))
    return "\n".join(bodies[other] for other in beside if chunks[other].kind == "turn")


def body_of(chunk: Passage) -> str:
    """Return the words themselves: no speaker's name, log label or list mark, and no quotation that a lesson of few
    words contains of the answer it corrects.
    """
    if chunk.kind == "turn":
        return chunk.text if chunk.number else without_speaker(chunk.text, chunk.speaker)
    if chunk.kind == "line":
        return without_label(chunk.text)
    if chunk.kind == "lesson":
        return chunk.text.partition(ABOUT)[0]
    return _BULLET.sub("", BY.sub("", without_date(chunk.text), 1)) if chunk.kind == "item" else chunk.text


@bounded(4 * 1024 * 1024)
def without_label(text: str) -> str:
    """Return a log line without its tag and importance."""
    first, newline, rest = text.partition("\n")
    entry = log.parse_line(first)
    return (entry.text if entry else first) + newline + rest


def around_of(relative: str, chunk: Passage) -> str:
    """Return the context of a chunk: file name, headings, speaker, tag and day in words."""
    name = _NOT_WORDS.sub(" ", relative.rpartition("/")[2].removesuffix(".md"))
    entry = log.parse_line(chunk.text.partition("\n")[0]) if chunk.kind == "line" else None
    tag = entry.tag if entry else ""
    return "\n".join(
        part for part in (name, chunk.heading, chunk.speaker, tag, _day_words(chunk.day)) if part
    )


def embedded_text(chunk: Passage) -> str:
    """Return the text that the embedder reads."""
    body = body_of(chunk)
    if chunk.speaker:
        text = f'{chunk.speaker} said, "{body}"'
    elif chunk.kind == "line":
        text = body
    else:
        text = f"{chunk.heading}\n{body}" if chunk.heading else body
    return text[:MAX_EMBEDDED]


def _day_words(day: str) -> str:
    try:
        return date.fromisoformat(day).strftime("%A %d %B %Y") if day else ""
    except ValueError:
        return ""
