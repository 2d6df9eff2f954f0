"""Currency: outdated statements, which a later one supersedes or follows on one subject; found when they come in."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, timedelta
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from nanoclaw_memory import tokens
from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.retrieval.date_words import lexeme
from nanoclaw_memory.retrieval.prepare import body_of
from nanoclaw_memory.retrieval.stating import stated_in
from nanoclaw_memory.statements import features, restates, same_statement
from nanoclaw_memory.store.currency import BOTH, EARLIER, SUPERSEDED, CurrencyTable, Overtaken, is_statement
from nanoclaw_memory.store.passage_search import Selection, StoredPassage
from nanoclaw_memory.store.passages import Passages
from nanoclaw_memory.text import GERMAN_STOP_WORDS, STOP_WORDS, language, words
from nanoclaw_memory.types import FOREIGN
from nanoclaw_memory.workspace.paths import WORKING_MEMORY

FUNCTION_WORDS = STOP_WORDS | GERMAN_STOP_WORDS
AT_ONCE = 8  # statements compared on the way to a search
COMMON = 40  # statements with a word from which on it says nothing about their subject
ALONE = 4  # statements with a name up to which the name alone is their subject
SURE = 0.5  # how sure it is that two statements on one subject stand for each other
NAMED = 0.4  # the same of two that share nothing but a name: they may be about anything that has it
TOGETHER = 6  # statements that contain the same words up to which these are one subject
RARE = 1.5  # how rare words have to be together, in words that occur once
RARE_OF_CHANGE = 1.0  # the same of a statement that says itself what was changed
SHARE = 0.3  # of the words of the shorter statement, by rarity
NEAREST = 16  # statements with which one is compared
LONGEST_CHAIN = 3  # statements that overtook each other which are followed to the newest
SHORT_ANSWER = 200  # characters of an answer that says, with its question, one thing
_WRITER = regex(r"^[^\W\d_][^:\n]{0,40}: ", re.MULTILINE)  # "Anna: " before what she writes in a chat
_COMPARED = "cursor:compared"  # among those that go when everything is read anew
# Plain words of change, followed by the old value: "moved from Oslo to Bergen".
_CHANGE = regex(
    r"\b(?:moved?|moving|switch\w*|chang\w+|migrat\w+|cut over|rais\w+|lower\w+|went (?:up|down)|increas\w+|reduc\w+"
    r"|upgrad\w+|downgrad\w+|exten\w+|renam\w+|transfer\w+|shift\w+|postpon\w+|convert\w+|umge\w+|gewechselt|geändert"
    r"|erhöht|gesenkt|verlängert|verschoben)\b[^.;!?]{0,60}?\b(?:from|von|vom)\s+(?P<old>[^.;!?]{1,40}?)\s+"
    r"(?:to|auf|zu|zum|zur|nach)\s",
    re.IGNORECASE,
)
_UNCERTAIN = regex(
    r"\b(?:if|might|may|could|would|should|maybe|perhaps|wants?|thinking|consider\w*|suggest\w*|propos\w*|falls|wenn|ob"
    r"|vielleicht|könnten?|würden?|wäre\w*|sollten?|möchte\w*|überleg\w*)\b|\?",
    re.IGNORECASE,
)


# ---- what a statement is about ----


@bounded(4 * 1024 * 1024)
def subject_words(text: str) -> Mapping[str, bool]:
    """The words that may tell what a statement is about, and whether each is a name rather than a usual word.

    A word is usual when language models have a token for it.
    """
    german = language(text) == "german"
    return {word: not _is_usual(word, german) for word in _telling(text)}


def _telling(text: str) -> list[str]:
    """The words that may tell what a statement is about; values are left out: numbers, days and months."""
    plain = dict.fromkeys(word.replace("’", "'").removesuffix("'s") for word in words(text))
    return [
        word
        for word in plain
        if word not in FUNCTION_WORDS and not word.isdigit() and not lexeme(word.removesuffix("s")).kind
    ]


@bounded(4 * 1024 * 1024)
def _is_usual(word: str, german: bool) -> bool:
    forms = (word, word.removesuffix("s"), *((word.capitalize(),) if german else ()))
    return any(tokens.is_one(f" {form}") for form in forms)


# ---- when passages come in ----


class Currency:
    """Compares what is new in one index with what was said before about the same subject."""

    def __init__(self, passages: Passages, today: Callable[[], date] = date.today) -> None:
        self._passages = passages
        self.today = today
        self._common: set[str] = set()  # words that were found in too many statements; few become rare again
        self.table = CurrencyTable(passages.database)

    def said(self, stored: StoredPassage) -> str:
        """The day on which it was said; empty for a day to come, which a wrong clock made."""
        # Where the person is it may be tomorrow.
        said = stored.passage.said
        return said if said <= (self.today() + timedelta(days=1)).isoformat() else ""

    def is_later(self, one: StoredPassage, other: StoredPassage) -> bool:
        """Whether one statement was surely made after the other; of the same day their moments tell, or a log's lines.

        A question or a request states nothing, unless it has another value. Against a day to come the order of reading
        tells.
        """
        if not statement_of(one) and not _gives_another_value(other, one):
            return False
        ahead = bool(one.passage.said) and not self.said(one)
        if ahead != (bool(other.passage.said) and not self.said(other)):
            return not ahead and one.id > other.id
        if one.passage.said != other.passage.said:
            return bool(other.passage.said) and one.passage.said > other.passage.said
        if one.passage.kind == other.passage.kind == "line" and one.document_id == other.document_id:
            return one.position > other.position
        return bool(other.passage.moment) and one.passage.moment > other.passage.moment

    def load(self, ids: Iterable[int]) -> dict[int, StoredPassage]:
        """The passages of these ids."""
        return self._passages.search.load(ids)

    def of(self, older: Collection[int], visible: Selection | None = None) -> list[Overtaken]:
        """What overtakes these passages, of what a selection lets in; known by comparison, or compared now.

        A short answer is overtaken with the message that it answers.
        """
        answered = self._answered(older)
        statements = {*older, *answered.values()}
        known = self.table.of(statements, visible)
        total = self._passages.last_id()
        new = statements if total > self._compared() else {*answered.values()}
        pairs = {(row.older, row.newer) for row in known}
        found = self._visible(self._compare(new, total), visible) if new else []
        known += [row for row in found if (row.older, row.newer) not in pairs]
        of_answers = [
            replace(row, older=answer)
            for answer, message in answered.items()
            for row in known
            if row.older == message
        ]
        return [row for row in self._with_news(of_answers, known) if row.kind != BOTH]

    def _with_news(self, of_answers: Sequence[Overtaken], known: Sequence[Overtaken]) -> list[Overtaken]:
        """All rows, without those of answers that say themselves what the newer statement does."""
        stored = self.load({number for row in of_answers for number in (row.older, row.newer)})
        return [
            *known,
            *(row for row in of_answers if not _answers_alike(stored[row.older], stored[row.newer])),
        ]

    def _compare(self, older: Iterable[int], total: int) -> list[Overtaken]:
        """What overtakes these passages, whether or not the later statement was compared when it came in."""
        statements = [one for one in self.load(older).values() if is_statement(one.passage)]
        today, unchanged = self.today(), self._passages.search.unchanged
        found = (
            unchanged(("overtaken", one.id, today), self._overtaken_by, one, total) for one in statements
        )
        return [
            row for one, rows in zip(statements, found, strict=True) for row in rows if row.older == one.id
        ]

    def _visible(self, rows: Sequence[Overtaken], visible: Selection | None) -> list[Overtaken]:
        if not rows or visible is None or not visible.here:
            return list(rows)
        sql = f"SELECT id FROM passages WHERE id IN (SELECT value FROM json_each(:newer)) AND {visible.here}"  # noqa: S608
        newer = json.dumps([row.newer for row in rows])
        allowed = set(self._passages.search.ids(sql, {"newer": newer, **visible.params}))
        return [row for row in rows if row.newer in allowed]

    def newest(
        self, rows: Sequence[Overtaken], visible: Selection | None = None
    ) -> dict[int, tuple[Overtaken, StoredPassage]]:
        """Of each older passage the surest row, and the newest statement that is sure to be on its subject.

        Where that one was overtaken itself, what overtook it counts, if it shares a telling word with the older.
        """
        chosen = self._newest(rows)
        for _ in range(LONGEST_CHAIN):
            overtaken = (
                self._newest(self.of({newer.id for _, newer in chosen.values()}, visible)) if chosen else {}
            )
            older = self.load(chosen)
            moved = {
                number: (row, overtaken[newer.id][1])
                for number, (row, newer) in chosen.items()
                if newer.id in overtaken
                and number in older
                and row.sure >= SURE <= overtaken[newer.id][0].sure
                and _share_a_word(older[number], overtaken[newer.id][1])
            }
            if not moved:
                break
            chosen |= moved
        return chosen

    def _newest(self, rows: Sequence[Overtaken]) -> dict[int, tuple[Overtaken, StoredPassage]]:
        stored = self.load({row.newer for row in rows})
        found: defaultdict[int, list[Overtaken]] = defaultdict(list)
        for row in rows:
            if row.newer in stored:
                found[row.older].append(row)
        chosen = {}
        for older, own in found.items():
            surest = max(own, key=lambda row: row.sure)
            last = max(
                (row for row in own if row.sure >= min(SURE, surest.sure)),
                key=lambda row: (self.said(stored[row.newer]), stored[row.newer].passage.moment, row.sure),
            )
            chosen[older] = surest, stored[last.newer]
        return chosen

    def refresh(self, most: int = AT_ONCE) -> int:
        """Compare statements that were not compared yet, at most so many; returns how many."""
        last, total = self._compared(), self._passages.last_id()
        if last >= total:
            return 0
        waiting = self.table.statements_after(last, most)
        stored = self.load(waiting)
        with self._passages.database.transaction():
            for number in waiting:
                self.table.put(self._overtaken_by(stored[number], total))
            reached = waiting[-1] if len(waiting) == most else total
            self._passages.set_meta(_COMPARED, str(reached))
        return len(waiting)

    def _compared(self) -> int:
        """The passage up to which all statements were compared."""
        return int(self._passages.meta(_COMPARED) or 0)

    def _overtaken_by(self, own: StoredPassage, total: int) -> list[Overtaken]:
        """The rows that a statement makes with others about the same subject, older or newer."""
        text = body_of(own.passage)
        subject = self._subject(text, total)
        sure = set(subject.nearest(own.id))
        near = sure | set(subject.nearest(own.id, RARE_OF_CHANGE) if _CHANGE.search(text) else ())
        rows: list[Overtaken] = []
        for other in self.load(near).values() if near else ():
            older, newer = (other, own) if self.is_later(own, other) else (own, other)
            if _of_two_projects(own, other):
                continue
            if self.is_later(newer, older) and not _is_copy(newer) and subject.is_of(other):
                named = subject.only_names(text, other)
                if states_of(newer, older, named):
                    found = _overtaken(older, newer, NAMED if named else SURE)
                    rows += [row for row in found if other.id in sure or row.kind == SUPERSEDED]
        return rows

    def together(self, question: str, found: Iterable[StoredPassage]) -> list[tuple[int, int]]:
        """Pairs of statements that share several words of a question, which few others have: what it asks about.

        A short answer has the words of the message that it answers.
        """
        by_id = {one.id: one for one in found}
        answered = self._answered(by_id)
        ids = [one.id for one in by_id.values() if is_statement(one.passage) or one.id in answered]
        having = self._having(_telling(question)) if len(ids) > 1 else {}
        messages = self.load(answered.values()) if having else {}
        also = {
            word: {
                answer
                for answer, message in answered.items()
                if word in words(messages[message].passage.text)
            }
            for word in having
        }
        pairs = []
        for place, one in enumerate(ids):
            for other in ids[place + 1 :]:
                shared = [some for word, some in having.items() if {one, other} <= some | also[word]]
                few = len(shared) > 1 and len(set.intersection(*shared)) <= TOGETHER
                if few and not _of_two_projects(by_id[one], by_id[other]):
                    pairs.append((one, other))
        return pairs

    def _subject(self, text: str, total: int) -> _Subject:
        names = subject_words(text)
        return _Subject(names, self._having(names), total)

    def _answered(self, answers: Iterable[int]) -> dict[int, int]:
        """Of short answers the first passage of the message that each answers."""
        ids = tuple(answers)
        find = self.table.answered
        return self._passages.search.unchanged(("answered", ids), find, ids, SHORT_ANSWER)

    def _having(self, telling: Iterable[str]) -> dict[str, set[int]]:
        """The statements that contain each of these words; without the words that too many contain."""
        found: dict[str, set[int]] = {}
        unchanged, find = self._passages.search.unchanged, self.table.statements_with
        for word in telling:
            common = word in self._common
            ids = None if common else unchanged(("statements", word), find, word, COMMON)
            if ids is None or len(ids) == COMMON:
                self._common.add(word)
            else:
                found[word] = set(ids)
        return found


class _Subject(msgspec.Struct, frozen=True):
    """The telling words of a statement, and which statements contain them."""

    names: Mapping[str, bool]
    found: Mapping[str, set[int]]
    total: int

    def nearest(self, number: int, rare: float = RARE) -> list[int]:
        """Statements that share a rare name with it, or rare words that few have; most in common first."""
        shared: defaultdict[int, list[str]] = defaultdict(list)
        for word, ids in self.found.items():
            for other in ids:
                shared[other].append(word)
        shared.pop(number, None)
        least = rare * self._rarity(0)
        weights = {
            other: weight
            for other, common in shared.items()
            if ((weight := self._weight(common)) >= least and self._together(common) <= TOGETHER)
            or self._names_it(common)
        }
        return sorted(weights, key=lambda other: (-weights[other], -other))[:NEAREST]

    def is_of(self, other: StoredPassage) -> bool:
        """Whether one of the nearest is about the same: the name, or enough of the words of the shorter statement."""
        shared = [word for word, ids in self.found.items() if other.id in ids]
        shorter = min(self._weight(self.found), self._weight(subject_words(body_of(other.passage))))
        return self._names_it(shared) or self._weight(shared) >= SHARE * shorter

    def only_names(self, text: str, other: StoredPassage) -> bool:
        """Whether one of the nearest shares nothing but names, with what stands before them in both (Dr., Frau)."""
        shared = {word for word, ids in self.found.items() if other.id in ids}
        pairs = set(pairwise(words(text))) & set(pairwise(words(body_of(other.passage))))
        titles = {title for title, name in pairs if self.names.get(name)}
        return all(self.names[word] for word in shared - titles)

    def _names_it(self, shared: Sequence[str]) -> bool:
        return any(self.names[word] and len(self.found[word]) <= ALONE for word in shared)

    def _together(self, shared: Sequence[str]) -> int:
        """How many statements contain all of these words."""
        return len(set.intersection(*(self.found[word] for word in shared)))

    def _weight(self, chosen: Iterable[str]) -> float:
        return sum(self._rarity(len(self.found.get(word, "few"))) for word in chosen)

    def _rarity(self, count: int) -> float:
        return math.log((self.total + 50) / (count + 0.5))


def _overtaken(older: StoredPassage, newer: StoredPassage, sure: float) -> Iterator[Overtaken]:
    """How two statements on one subject stand to each other; one that says nothing new overtakes nothing.

    What others say never takes the place of what the person believes.
    """
    if is_foreign(newer) > is_foreign(older):
        return
    before, after = body_of(older.passage), body_of(newer.passage)
    facts = older.passage.kind == newer.passage.kind == "fact"
    if facts and _key(older) != _key(newer):
        return  # another attribute says nothing about it
    if facts and older.passage.expires:
        yield Overtaken(older.id, newer.id, SUPERSEDED, "another value of the same key", 1.0)
    elif value := _given_up(before, after):
        yield Overtaken(older.id, newer.id, SUPERSEDED, f"it says what became of {value}", 0.95)
    elif not says_nothing_new(older, newer):
        yield Overtaken(older.id, newer.id, EARLIER, "the same subject", sure)


def statement_of(stored: StoredPassage) -> str:
    """What a statement says: of a message what it states, without who wrote it in a shared chat."""
    text = body_of(stored.passage)
    if stored.passage.kind != "turn":
        return text
    return stated_in(text if stored.passage.private else _WRITER.sub("", text))


def states_of(newer: StoredPassage, older: StoredPassage, named: bool = False) -> bool:
    """Whether what a newer passage states is about what the older one is; a request has to share more than a name."""
    stated = statement_of(newer)
    if stated == body_of(newer.passage):
        return True
    own = set(subject_words(body_of(older.passage)))
    return not own.isdisjoint(subject_words(stated)) if stated else not named


def _gives_another_value(older: StoredPassage, newer: StoredPassage) -> bool:
    """Whether a message has another value of a kind that the older statement has: a number or a day."""
    before, after = (features(body_of(one.passage)) for one in (older, newer))
    days, later_days = (_days(body_of(one.passage)) for one in (older, newer))
    return _differ(before.numbers, after.numbers) or _differ(days, later_days)


def _differ(before: AbstractSet[str], after: AbstractSet[str]) -> bool:
    return bool(before) and bool(after - before)


def _days(text: str) -> set[str]:
    return {
        found.name
        for word in words(text)
        if (found := lexeme(word.removesuffix("s"))).kind in ("weekday", "month")
    }


def _share_a_word(one: StoredPassage, other: StoredPassage) -> bool:
    return not set(subject_words(body_of(one.passage))).isdisjoint(subject_words(body_of(other.passage)))


def _answers_alike(answer: StoredPassage, newer: StoredPassage) -> bool:
    """Whether all that an answer tells stands in a newer statement too."""
    return set(words(body_of(answer.passage))) - FUNCTION_WORDS <= set(words(body_of(newer.passage)))


def says_nothing_new(older: StoredPassage, newer: StoredPassage) -> bool:
    """Whether a statement says the same again, or less ("run the tests" after how they are run)."""
    if older.passage.speaker == "Agent":
        return _answers_alike(older, newer)
    before, after = features(body_of(older.passage)), features(body_of(newer.passage))
    return same_statement(before, after) or restates(before, after)


def _is_copy(stored: StoredPassage) -> bool:
    """Whether it was copied from where the statement stands itself: a fact that was read there, or working memory."""
    source = stored.passage.reference
    read = ".md:" in source or source.startswith(("exchanges/", "entries/"))
    return (stored.passage.kind == "fact" and read) or stored.path.startswith(WORKING_MEMORY)


def _of_two_projects(one: StoredPassage, other: StoredPassage) -> bool:
    """Whether statements belong to two projects, which do not change each other."""
    return len({one.passage.project, other.passage.project} - {""}) == 2


def _key(fact: StoredPassage) -> str:
    return fact.passage.text.partition(": ")[0].casefold()


def is_foreign(stored: StoredPassage) -> bool:
    """Whether others said it."""
    passage = stored.passage
    return passage.origin in FOREIGN or (passage.kind in ("turn", "fact") and not passage.private)


def _given_up(older: str, newer: str) -> str:
    """The value of the older statement that the newer one says was changed; empty when it says no such thing."""
    if _UNCERTAIN.search(newer):
        return ""
    known = set(words(older))
    for match in _CHANGE.finditer(newer):
        value = [word for word in words(match["old"]) if word not in FUNCTION_WORDS]
        if value and known.issuperset(value):
            return match["old"]
    return ""
