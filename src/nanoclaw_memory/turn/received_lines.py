"""What a session has received already, at its start or in a turn: it is injected again only if it has changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import fingerprint, one_line
from nanoclaw_memory.turn.plugin import Draft

# Marks and ages change while the statement stays the same. Dates are kept: they may be the statement.
_MARK = regex(
    r"\[(?:linked|earlier|superseded)\b[^\[\]]*\]"
    r'|\s*[;·] (?:earlier|superseded)(?:, (?:see|by) .*? of \d{4}-\d\d-\d\d(?:: ".*?")?)?(?=[)\]·])'
    r'|".*?" \(\d{4}-\d\d-\d\d\); (?:earlier|superseded): '
)
_AGE = regex(
    r"\b(?:\d+d ago|earlier today|today|yesterday|undated|last (?:week|\w+day)|on \w+day"
    r"|(?:\d+|a|an|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve) (?:day|week|month|year)s? ago)\b"
)
_BULLET = regex(r"^(?:[-*+•>#]+\s+)+")
ALREADY = "this session was given it already"
ELSEWHERE = "another line of this turn says it"
NEWER = "this session was given what is newer"
LESS = "it helps far less than what this session was given already"
LEAST_SHARE = 0.6  # minimal share of the score of the best line that the session has already
_OPENING = ("", *" \"'“„«(*_[`")  # characters that may precede a statement
_CLOSING = ".,;:!?)]\"'”»*_`"


class ReceivedLines:
    """What a session received: its start, the last lines on each subject as fingerprints, and this turn's lines."""

    def __init__(self, starts: Iterable[str] = (), lines: Mapping[str, str] | None = None) -> None:
        self._start = " ".join(map(comparable, starts))
        self._lines = {subject: set(stated.split()) for subject, stated in (lines or {}).items()}
        self._subjects: set[str] = set()  # subjects of this turn
        self._current = ""  # current statements in this turn's blocks
        self._statements: set[str] = set()  # all statements in this turn's blocks, current or not
        self._newer: set[str] = set()  # statements that supersede one injected in this turn
        self._best = 0.0  # the best score among lines that would be injected if the session did not have them

    @property
    def new(self) -> dict[str, str]:
        """Return the lines of this turn by subject."""
        return {subject: " ".join(sorted(self._lines[subject])) for subject in self._subjects}

    def where(self, line: FreshLine) -> str:
        """Return where the session received this line; empty if it did not.

        A statement that supersedes one of this turn is injected with it, even if the session has it.
        """
        if line.statement in self._statements or _contains(self._current, line.statement):
            return ELSEWHERE
        return ALREADY if line.statement not in self._newer and self._was_received(line) else ""

    def _was_received(self, line: FreshLine) -> bool:
        """Return whether a turn or the start contained this line as the last one on its subject."""
        told = self._lines.get(line.subject)
        return line.stated in told if told else _contains(self._start, line.statement)

    def note_best(self, lines: Iterable[FreshLine]) -> None:
        """Remember the best line of this turn that the session has already."""
        known = (line.score for line in lines if (line.known or self.where(line)) in (ALREADY, NEWER))
        self._best = max([self._best, *known])

    def suffices_without(self, line: FreshLine) -> bool:
        """Return whether what the session has already helps far more than this line."""
        return 0 < line.score < LEAST_SHARE * self._best

    def overtake(self, lines: Sequence[FreshLine]) -> list[FreshLine]:
        """Mark lines whose newer statement the session already has: neither is injected again.

        If both statements are among the lines, both are injected, as is one that supersedes an injected line.
        """
        here = {line.statement for line in lines} | self._statements
        gone = [line for line in lines if line.newer not in here and _contains(self._start, line.newer)]
        needed = {line.newer for line in lines if line not in gone}
        gone = [line for line in gone if line.statement not in needed]
        lines = [replace(line, known=NEWER) if line in gone else line for line in lines]
        self._newer |= {line.newer for line in lines if line.newer and not (line.known or self.where(line))}
        return lines

    def add(self, shown: Sequence[FreshLine], repeated: Sequence[FreshLine]) -> None:
        """Record what the session receives now; of each subject only current lines stay, including `repeated` ones.

        A later block need not repeat what a block of this turn says.
        """
        holds = (line.compared for line in shown if not _MARK.search(line.text))
        self._current = " ".join((self._current, *holds))
        self._statements.update(line.statement for line in shown)
        for line in shown:
            if line.subject not in self._subjects:
                self._lines[line.subject] = set()
                self._subjects.add(line.subject)
            self._lines[line.subject].add(line.stated)
        for line in repeated:
            if line.subject in self._subjects and line.known != LESS:
                self._lines[line.subject].add(line.stated)


class FreshLine(msgspec.Struct, frozen=True):
    """A line that may be new to the session."""

    text: str
    reason: str
    compared: str  # the text without mark and age
    statement: str  # the text to look for in the session's start
    newer: str = ""  # the statement that supersedes it
    known: str = ""  # why it is not injected
    score: float = 0.0  # the probability that it helps; 0 if it is not compared

    @property
    def stated(self) -> str:
        """Return a fingerprint of the line's content."""
        return fingerprint(self.compared)[:32]

    @property
    def subject(self) -> str:
        """Return a fingerprint of X in a line "X = Y", so that a value that changed back is injected again."""
        return fingerprint(self.compared.partition(" = ")[0])[:32]


def fresh_lines(draft: Draft, given: ReceivedLines) -> tuple[list[FreshLine], list[FreshLine]]:
    """Split the lines of a draft into new ones and those that the session already has.

    An introductory line is kept with the first new line after it; a closing line is kept if it is new and the
    block contains anything new.
    """
    kept: list[FreshLine] = []
    repeated: list[FreshLine] = []
    waiting: list[FreshLine] = []
    answered = False  # whether a line followed the last introduction
    lines = given.overtake(_lines_of(draft))
    given.note_best(lines)
    for line in lines:
        if draft.reasons and not line.reason:
            waiting = [line] if answered else [*waiting, line]
            answered = False
            continue
        answered = True
        known = line.known or given.where(line) or (ELSEWHERE if _states_same(kept, line) else "")
        known = known or (LESS if given.suffices_without(line) else "")
        if known:
            repeated.append(replace(line, known=known))
            continue
        kept += [*waiting, line]
        waiting = []
    if kept and not answered:
        kept += [line for line in waiting if not given.where(line)]
    return kept, repeated


def _lines_of(draft: Draft) -> list[FreshLine]:
    def at(some: Sequence[str], place: int) -> str:
        return some[place] if place < len(some) else ""

    return [
        FreshLine(
            text=text,
            reason=at(draft.reasons, place),
            compared=comparable(text),
            statement=comparable(at(draft.statements, place) or text).rstrip(_CLOSING),
            newer=comparable(at(draft.newer, place)).rstrip(_CLOSING),
            score=draft.scores[place] if place < len(draft.scores) else 0.0,
        )
        for place, text in enumerate(draft.lines)
    ]


def _states_same(kept: Iterable[FreshLine], line: FreshLine) -> bool:
    """Return whether one of these lines makes the same statement, whatever its source."""
    return any(one.statement == line.statement or one.compared == line.compared for one in kept)


def comparable(text: str) -> str:
    """Normalise a text for comparison: no bullets, marks, ages, line breaks or case."""
    plain = " ".join(_BULLET.sub("", line.strip()) for line in text.splitlines())
    return one_line(_AGE.sub("~", _MARK.sub("", plain.casefold()))).strip("… ")


def _contains(text: str, statement: str) -> bool:
    """Return whether a text contains a statement as whole words: "port = 300" is not in "port = 3000" nor "port =
    300.5".

    A single word is too common to count.
    """
    start = text.find(statement) if " " in statement else -1
    while start >= 0:
        end = start + len(statement)
        before, after = text[max(start - 1, 0) : start], text[end : end + 3].lstrip(_CLOSING)[:1]
        if before in _OPENING and after in ("", " "):
            return True
        start = text.find(statement, start + 1)
    return False
