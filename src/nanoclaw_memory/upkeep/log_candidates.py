"""Select log lines for MEMORY.md, together with sentences of messages: grouped over days, scored, with their
sources.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.errors import FileProblem
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.retrieval.date_words import LEXICON
from nanoclaw_memory.retrieval.stated_parts import stated_in
from nanoclaw_memory.statements import features, gives_reason, same_statement
from nanoclaw_memory.store.mentions import MentionTable
from nanoclaw_memory.text import content_words, fingerprint, one_line
from nanoclaw_memory.types import FOREIGN, ORIGINS
from nanoclaw_memory.upkeep.log_blocks import UNTAGGED, archives, dated_blocks, logs
from nanoclaw_memory.workspace import log
from nanoclaw_memory.workspace.files import read_text

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

WINDOW = 90  # days back that are read
MIN_IMPORTANCE = 0.45  # less important lines are never worth keeping
CERTAIN = 0.8
PER_DAY = 0.08  # for each further day with another wording, three at most
PER_USE = 0.04  # for each time that it answered a question, five at most
LASTING = 0.05  # for a repetition after a week
ROUTINE_DAYS = 3  # the same words on so many days are a habit of the log, no insight
MAX_TEXT = 400
# Repetition counts only for lines with one of these tags, or that answered a question.
_LASTING_TAGS = frozenset(
    "decision lesson milestone preference project person user family correction insight".split()
)
# Open items do not last, and lines of others are never promoted on their own.
_NEVER_PROMOTED = frozenset("todo task question open idea web tool untrusted import".split())
# What such lines say holds until somebody changes it.
_SETTLED = _LASTING_TAGS - {"project", "milestone"} | {"instruction", "principle", "value"}
_WEEKDAYS = "|".join(name for name, word in LEXICON.items() if word.kind == "weekday")
# What is over on a day: "tomorrow", "by Friday", but not "every Friday" or "from Monday on".
_FOR_A_DAY = regex(
    r"\b(?:tonight|tomorrow|this (?:week|weekend|afternoon|evening|morning)|(?:next|coming) \w+|(?:today|heute)(?=\W*$)"
    r"|übermorgen|heute abend|(?<!am )(?<!jeden )morgen|dieses wochenende|(?:nächste|kommende|diese)[nmrs]? \w+)\b"
    rf"|(?<!from )(?<!as of )\b(?:on|by|before|for|until|till|am|bis|vor|für) (?:{_WEEKDAYS})\b(?! on\b)",
    re.IGNORECASE,
)
SAID = "exchanges/"  # followed by its number: the path of an exchange
_QUESTION = re.compile(r"\?\s*$")


class DatedLine(msgspec.Struct, frozen=True):
    """One log line, or sentence of a message, with its day and its position."""

    day: date
    path: str
    number: int
    text: str
    tag: str
    importance: float
    origin: str = "owner"
    project: str = ""

    @property
    def exchange(self) -> int:
        """Return the number of the exchange that contains it; 0 for a log line."""
        return int(self.path.removeprefix(SAID)) if self.path.startswith(SAID) else 0


class PromotionCandidate(msgspec.Struct, frozen=True):
    """Lines that say the same, and their score."""

    lines: tuple[DatedLine, ...]  # the best wording first
    score: float
    why: str

    @property
    def best(self) -> DatedLine:
        return self.lines[0]

    @property
    def text(self) -> str:
        return self.best.text

    @property
    def origin(self) -> str:
        """Return the origin of the wording that is proposed."""
        return self.best.origin

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(f"{line.path}:{line.number}" for line in self.lines))


def log_candidates(group: Group, told: Iterable[DatedLine] = ()) -> list[PromotionCandidate]:
    """Return the lines of the last months and of talk worth keeping, what lasts first; today's are left out."""
    lines = [*dated_lines(group, group.today - timedelta(days=WINDOW), group.today), *told]
    uses = MentionTable(group.graph.db).uses() if group.has("facts") else {}
    routine = _routine(lines)
    worth = [line for line in lines if line.importance >= MIN_IMPORTANCE and _eligible(line, routine)]
    found = [_scored(same, uses) for same in _groups(worth)]
    chosen = [one for one in found if one.score >= group.settings.upkeep.promote_score]
    return sorted(chosen, key=lambda one: (_passes(one.best), -one.score, one.best.day, one.best.number))


def _passes(line: DatedLine) -> int:
    """Return how soon a line is over: a decision last, a chore and what is due on a day first."""
    if _FOR_A_DAY.search(line.text):
        return 3
    return 0 if line.tag in _SETTLED else 1 if stated_in(line.text) else 2


def dated_lines(group: Group, oldest: date, end: date) -> Iterator[DatedLine]:
    """Yield the log lines of some days (the last one excluded), wherever they are by now."""
    months = {f"{oldest + timedelta(days=step):%Y-%m}" for step in range(0, (end - oldest).days + 31, 28)}
    files = [(None, path, file) for path, file in archives(group.workspace) if file.stem in months]
    for day, path, file in [*logs(group.workspace), *files]:
        if day is not None and not oldest <= day < end:
            continue
        try:
            text = read_text(file)
        except (FileProblem, FileNotFoundError):
            continue  # reported by ingest
        for own, block in dated_blocks(text, day):
            entry = log.parse_line(block.lines[0].rstrip("\r\n"), block.start + 1)
            if entry is not None and oldest <= own < end:
                importance = UNTAGGED if entry.importance is None else entry.importance
                yield DatedLine(
                    day=own,
                    path=path,
                    number=entry.line,
                    text=one_line(entry.text),
                    tag=entry.tag.lower(),
                    importance=importance,
                    origin=entry.origin,
                    project=entry.project,
                )


def _routine(lines: Iterable[DatedLine]) -> set[str]:
    """Return the texts that the log repeats word for word on several days."""
    days: dict[str, set[date]] = defaultdict(set)
    for line in lines:
        days[line.text.casefold()].add(line.day)
    return {text for text, on in days.items() if len(on) >= ROUTINE_DAYS}


def _eligible(line: DatedLine, routine: set[str]) -> bool:
    """Return whether a line may be promoted at all."""
    if (
        line.origin in FOREIGN
        or line.tag in _NEVER_PROMOTED
        or _QUESTION.search(line.text)
        or len(line.text) > MAX_TEXT
    ):
        return False
    if line.importance < CERTAIN and (line.tag == "context" or line.text.casefold() in routine):
        return False
    return len(set(content_words(line.text))) >= 2


def _groups(lines: list[DatedLine]) -> list[list[DatedLine]]:
    """Group lines that say the same in other words."""
    read = [features(line.text) for line in lines]
    lines_with: dict[str, list[int]] = defaultdict(list)
    for number, one in enumerate(read):
        for word in one.stems:
            lines_with[word].append(number)
    group_of = list(range(len(lines)))
    for number, one in enumerate(read):
        # A word in every other line does not distinguish, and would make this quadratic.
        telling = [word for word in one.stems if len(lines_with[word]) <= 60]
        shared = Counter(other for word in telling for other in lines_with[word] if other > number)
        for other, count in shared.items():
            if count * 2 >= len(telling) and same_statement(one, read[other]):
                _join(group_of, number, other)
    groups: dict[int, list[DatedLine]] = defaultdict(list)
    for number, line in enumerate(lines):
        groups[_root(group_of, number)].append(line)
    return list(groups.values())


def _root(group_of: list[int], number: int) -> int:
    while group_of[number] != number:
        number = group_of[number]
    return number


def _join(group_of: list[int], one: int, other: int) -> None:
    group_of[_root(group_of, other)] = _root(group_of, one)


def _scored(lines: list[DatedLine], uses: dict[tuple[str, int], int]) -> PromotionCandidate:
    best = max(lines, key=lambda line: (line.importance, -ORIGINS.index(line.origin), line.day, line.number))
    others = sorted((line for line in lines if line is not best), key=lambda line: (line.day, line.number))
    days = {line.day for line in lines}
    wordings = {fingerprint(line.text.casefold()) for line in lines}
    again = min(len(days), len(wordings)) - 1
    answered = sum(uses.get((line.path, line.number), 0) for line in lines)
    lasting = (max(days) - min(days)).days >= 7
    if best.importance < CERTAIN and not answered and not any(line.tag in _LASTING_TAGS for line in lines):
        again, lasting = 0, False
    score = (
        best.importance
        + PER_DAY * min(again, 3)
        + PER_USE * min(answered, 5)
        + LASTING * (lasting and again > 0)
    )
    kept = "said in talk" if best.exchange else f"of importance {best.importance:g}"
    reasons = [f"{best.tag or 'line'} {kept}"]
    reasons += ["with its reason"] if gives_reason(best.text) else []
    reasons += [f"said on {len(days)} days"] if len(days) > 1 else []
    reasons += (
        [f"answered {answered} questions" if answered > 1 else "answered a question"] if answered else []
    )
    return PromotionCandidate((best, *others), round(score, 3), ", ".join(reasons))
