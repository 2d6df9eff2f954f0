"""What a session was given already, at its start and in its turns: it is not given a second time, unless it changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import fingerprint, one_line
from nanoclaw_memory.turn.plugin import Draft

# Marks and ages change while the statement stays the same. Dates stay: they may be what is stated.
_MARK = regex(
    r"\[(?:linked|earlier|superseded)\b[^\[\]]*\]"
    r'|\s*[;·] (?:earlier|superseded)(?:, (?:see|by) .*? of \d{4}-\d\d-\d\d(?:: ".*?")?)?(?=[)\]·])'
)
_AGE = regex(
    r"\b(?:\d+d ago|earlier today|today|yesterday|undated|last (?:week|\w+day)|on \w+day"
    r"|(?:\d+|a|an|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve) (?:day|week|month|year)s? ago)\b"
)
_BULLET = regex(r"^(?:[-*+•>#]+\s+)+")
_OPENING = ("", *" \"'“„«(*_[`")  # what may stand before a statement
_CLOSING = ".,;:!?)]\"'”»*_`"


class Given:
    """The start of a session, and what its turns were told last of each subject, as fingerprints."""

    def __init__(self, starts: Iterable[str] = (), lines: Mapping[str, str] | None = None) -> None:
        self._start = " ".join(map(comparable, starts))
        self._lines = {subject: set(stated.split()) for subject, stated in (lines or {}).items()}
        self._told: set[str] = set()  # subjects of this turn

    @property
    def new(self) -> dict[str, str]:
        """What this turn was told of each subject."""
        return {subject: " ".join(sorted(self._lines[subject])) for subject in self._told}

    def has(self, line: FreshLine) -> bool:
        """Whether this is among the last that the session was told of its subject, in a turn or in its start."""
        told = self._lines.get(line.subject)
        return line.stated in told if told else _contains(self._start, line.statement)

    def add(self, shown: Sequence[FreshLine], repeated: Sequence[FreshLine]) -> None:
        """Note what the session is given now; of its subjects only what still holds, which `repeated` lines do.

        What a block of this turn says, a later one need not say again, unless it was said as something earlier.
        """
        holds = (line.compared for line in shown if not _MARK.search(line.text))
        self._start = " ".join((self._start, *holds))
        for line in shown:
            if line.subject not in self._told:
                self._lines[line.subject] = set()
                self._told.add(line.subject)
            self._lines[line.subject].add(line.stated)
        for line in repeated:
            if line.subject in self._told:
                self._lines[line.subject].add(line.stated)


class FreshLine(msgspec.Struct, frozen=True):
    """A line that may be new to the session."""

    text: str
    reason: str
    compared: str  # without its mark and age
    statement: str  # what is looked for in the session's start

    @property
    def stated(self) -> str:
        """A fingerprint of what the line says."""
        return fingerprint(self.compared)[:32]

    @property
    def subject(self) -> str:
        """A fingerprint of what a line "X = Y" is about, so that a value that came back is told again."""
        return fingerprint(self.compared.partition(" = ")[0])[:32]


def fresh_lines(draft: Draft, given: Given) -> tuple[list[FreshLine], list[FreshLine]]:
    """The lines of a draft to be given, and those that the session has already.

    A line that only introduces others comes with the first of them that is new; what closes a block comes when the
    block has anything new and the line itself is new.
    """
    kept: list[FreshLine] = []
    repeated: list[FreshLine] = []
    waiting: list[FreshLine] = []
    answered = False  # whether a line came since the last introduction
    for place, text in enumerate(draft.lines):
        reason = draft.reasons[place] if place < len(draft.reasons) else ""
        stated = draft.statements[place] if place < len(draft.statements) else ""
        compared = comparable(text)
        line = FreshLine(text, reason, compared, comparable(stated) if stated else compared)
        if draft.reasons and not reason:
            waiting = [line] if answered else [*waiting, line]
            answered = False
            continue
        answered = True
        if given.has(line) or any(one.compared == compared for one in kept):
            repeated.append(line)
            continue
        kept += [*waiting, line]
        waiting = []
    if kept and not answered:
        kept += [line for line in waiting if not given.has(line)]
    return kept, repeated


def comparable(text: str) -> str:
    """A text as it is compared: without bullets, marks, ages, line breaks and the case of its letters."""
    plain = " ".join(_BULLET.sub("", line.strip()) for line in text.splitlines())
    return one_line(_AGE.sub("~", _MARK.sub("", plain.casefold()))).strip("… ")


def _contains(text: str, statement: str) -> bool:
    """Whether a text contains a statement as whole words: "port = 300" is not in "port = 3000", nor in "port = 300.5".

    One word alone is in any text.
    """
    start = text.find(statement) if " " in statement else -1
    while start >= 0:
        end = start + len(statement)
        before, after = text[max(start - 1, 0) : start], text[end : end + 3].lstrip(_CLOSING)[:1]
        if before in _OPENING and after in ("", " "):
            return True
        start = text.find(statement, start + 1)
    return False
