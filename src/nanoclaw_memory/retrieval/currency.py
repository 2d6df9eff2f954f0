"""Currency: find older statements that a later one supersedes or follows on the same subject, as they come in."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.retrieval.attributes import Attributes
from nanoclaw_memory.retrieval.other_attribute import is_of_another_attribute, is_typed
from nanoclaw_memory.retrieval.prepare import body_of
from nanoclaw_memory.retrieval.reports_only import outdates_nothing
from nanoclaw_memory.retrieval.statement_pairs import (
    answers_alike,
    changes_measure,
    corrects,
    gives_another_value,
    is_copy,
    may_answer_for,
    may_change,
    of_two_projects,
    old_value_stems,
    only_gives_a_value,
    only_mentions,
    overtaken,
    share_a_word,
    statement_of,
    states_of,
    subject_words,
    telling_words,
)
from nanoclaw_memory.retrieval.value_changes import (
    assigned_stems,
    changed_stems,
    continues_question,
    supersedes,
)
from nanoclaw_memory.store.currency import BOTH, EARLIER, SUPERSEDED, CurrencyTable, Overtaken, is_statement
from nanoclaw_memory.store.passage_search import Selection, StoredPassage
from nanoclaw_memory.store.passages import Passages
from nanoclaw_memory.text import stem, words

AT_ONCE = 12  # statements and answers compared on the way to a search
COMMON = 40  # a word in more statements says nothing about their subject
ALONE = 4  # a name in at most so many statements is their subject by itself
SURE = 0.5  # minimal certainty that two statements are on one subject
CERTAIN = 0.6  # the same if their vectors say so too
NEAR = 0.1  # the same if they share fewer words: the newer must name what it changes
MENTIONED = 0.2  # certainty if they share a name that neither is about: it may be what is asked about
NAMED = 0.4  # certainty if they share only a name: they may be about anything connected with it
COUNTED = 2_000  # passages with a word, at which counting stops
TOGETHER = 6  # words in at most so many statements together are one subject
RARE = 1.5  # minimal rarity of shared words, in units of a word that occurs once
RARE_OF_CHANGE = 1.0  # the same for a statement that names what it changed
SHARE = 0.3  # minimal share of the shorter statement's words, by rarity
NEAREST = 16  # statements that one is compared with
LONGEST_CHAIN = 3  # superseding statements followed to the newest one
SHORT_ANSWER = 200  # longer answers are not a single statement with their question
UNLIKELY = 0.05  # probability of one attribute below which two statements only share a name
DOUBTFUL = 0.5  # the same below which a later statement must fit no other earlier one much better
MUCH = 4.0  # by so much larger odds
ALIKE = 0.3  # the same from which they are certainly on one subject, and a plain change supersedes
OBJECTION = "the person said that it is wrong"
_COMPARED = "cursor:compared"  # named like the cursors that a full rebuild removes


# ---- when passages come in ----


class Currency:
    """Compare new passages of one index with earlier ones about the same subject."""

    def __init__(
        self,
        passages: Passages,
        today: Callable[[], date] = date.today,
        attributes: Attributes | None = None,
    ) -> None:
        self._passages = passages
        self.today = today
        self.attributes = attributes or Attributes(lambda _: None)
        self._common: set[str] = set()  # words found in too many statements; few become rare again
        self.table = CurrencyTable(passages.database)

    def last_day(self) -> str:
        """Return the last day that something can have been said on."""
        # It may already be tomorrow in the person's time zone.
        return (self.today() + timedelta(days=1)).isoformat()

    def said(self, stored: StoredPassage) -> str:
        """Return the day on which it was said; empty for a day in the future, which a wrong clock produced."""
        said = stored.passage.said
        return said if not said or said <= self.last_day() else ""

    def is_later(self, one: StoredPassage, other: StoredPassage) -> bool:
        """Return whether one statement was certainly made after the other; on one day, times or log positions
        decide.

        A question or request states nothing unless it has another value. Against a future day the reading order
        decides.
        """
        if not statement_of(one) and not gives_another_value(other, one):
            return False
        if one.passage.stood:
            return False
        last = self.last_day()
        ahead = one.passage.said > last
        if ahead != (other.passage.said > last):
            return not ahead and one.id > other.id
        if one.passage.said != other.passage.said:
            return bool(other.passage.said) and one.passage.said > other.passage.said
        if one.passage.kind == other.passage.kind == "line" and one.document_id == other.document_id:
            return one.position > other.position
        return bool(other.passage.moment) and one.passage.moment > other.passage.moment

    def rarity(self, word: str) -> float:
        """Return how much a shared word says about the subject: the fewer passages contain it, the more."""
        count = self._passages.search.occurrences(word, COUNTED)
        return math.log((self._passages.last_id() + 50) / (count + 0.5))

    def load(self, ids: Iterable[int]) -> dict[int, StoredPassage]:
        """Return the passages with these ids."""
        return self._passages.search.load(ids)

    def of(self, older: Collection[int], visible: Selection | None = None) -> list[Overtaken]:
        """Return what supersedes these passages, among visible ones; compare those not compared before.

        A short answer is superseded together with the message that it answers.
        """
        answered = self._answered(older)
        statements = {*older, *answered.values()}
        known = self.table.of(statements, visible)
        known += self._visible([*self._corrected(older), *self._put_right(statements)], visible)
        total = self._passages.last_id()
        new = statements if total > self._compared() else {*answered.values()}
        pairs = {(row.older, row.newer) for row in known}
        found = self._visible(self._compare(new, total), visible) if new else []
        known += [row for row in found if (row.older, row.newer) not in pairs]
        known = self.judged(known)
        of_answers = [
            replace(row, older=answer)
            for answer, message in answered.items()
            for row in known
            if row.older == message
        ]
        return [row for row in self._with_news(of_answers, known) if row.kind != BOTH]

    def judged(self, rows: Sequence[Overtaken]) -> list[Overtaken]:
        """Return the rows without those of statements that only share a name, as far as vectors can tell.

        A later statement that fits another earlier one much better leaves the rest as they are. Where both are
        certainly on one attribute, the row is sure; where not, nothing is superseded.
        """
        asked = [row for row in rows if row.kind != BOTH and row.why != OBJECTION and row.sure < 1.0]
        stored = self.load({number for row in asked for number in (row.older, row.newer)})
        alone = [row for row in asked if row.newer in stored and self.question_of(stored[row.newer]) is None]
        likely = self.attributes.probabilities(
            {(row.older, row.newer) for row in alone if row.older in stored}, stored
        )

        doubtful = [pair for pair, sure in likely.items() if UNLIKELY <= sure < DOUBTFUL]
        better = self.best_older({newer for _, newer in doubtful})
        likely |= {
            pair: 0.0 for pair in doubtful if _is_much_likelier(better.get(pair[1], 0.0), likely[pair])
        }

        def judge(row: Overtaken) -> Overtaken:
            probability = likely.get((row.older, row.newer))
            if probability is None:
                return row
            if probability >= ALIKE:
                return replace(row, sure=max(row.sure, CERTAIN))
            return replace(row, kind=EARLIER, sure=min(row.sure, SURE))

        return [judge(row) for row in rows if likely.get((row.older, row.newer), 1.0) >= UNLIKELY]

    def best_older(self, statements: Iterable[int]) -> dict[int, float]:
        """Return how probably each statement is about the attribute of the earlier one that it fits best."""
        unchanged = self._passages.search.unchanged
        return {one: unchanged(("best older", one, self.today()), self._fit, one) for one in statements}

    def _fit(self, newer: int) -> float:
        near = self.attributes.nearest([newer], None).get(newer, [])
        stored = self.load({newer, *near})
        pairs = [
            (one, newer)
            for one in near
            if one in stored
            and newer in stored
            and is_statement(stored[one].passage)
            and self.is_later(stored[newer], stored[one])
            and not of_two_projects(stored[one], stored[newer])
        ]
        return max(self.attributes.probabilities(pairs, stored).values(), default=0.0)

    def _corrected(self, answers: Iterable[int]) -> list[Overtaken]:
        """Return rows for answers that the person's next message calls wrong."""
        following = self.table.following(answers)
        asked = self.load({number for pair in following.items() for number in pair})
        return [
            Overtaken(answer, message, EARLIER, OBJECTION, SURE)
            for answer, message in following.items()
            if corrects(asked[message].passage.text, asked[answer].passage.text)
        ]

    def _put_right(self, messages: Iterable[int]) -> list[Overtaken]:
        """Return rows for messages that the person's next one puts right: "no, on the 15th", "sorry, 5 February"."""
        following = self.table.following(messages, "User")
        said = self.load({number for pair in following.items() for number in pair})
        return [
            Overtaken(before, message, EARLIER, OBJECTION, SURE)
            for before, message in following.items()
            if before in said and message in said and self._puts_right(said[before], said[message])
        ]

    @staticmethod
    def _puts_right(before: StoredPassage, message: StoredPassage) -> bool:
        """Return whether a message gives another value instead of one in the message before, and no subject."""
        if before.passage.day != message.passage.day or not statement_of(before):
            return False
        return only_gives_a_value(body_of(message.passage), body_of(before.passage))

    def _with_news(self, of_answers: Sequence[Overtaken], known: Sequence[Overtaken]) -> list[Overtaken]:
        """Return all rows without those of answers that contain the newer statement themselves."""
        stored = self.load({number for row in of_answers for number in (row.older, row.newer)})
        return [
            *known,
            *(row for row in of_answers if not answers_alike(stored[row.older], stored[row.newer])),
        ]

    def _compare(self, older: Iterable[int], total: int) -> list[Overtaken]:
        """Return what supersedes these passages, whether or not the later statement was compared before."""
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

    def on_what_is_asked(
        self, rows: Sequence[Overtaken], asked: Callable[[int], Collection[str]], typed: bool = False
    ) -> list[Overtaken]:
        """Return the rows whose newer statement may be about what is asked of the older one.

        With `typed` only values of known kinds can tell: the keys of facts are put in many ways ("kept in").
        """
        stored = self.load({number for row in rows for number in (row.older, row.newer)})

        def may_be(row: Overtaken) -> bool:
            if (
                row.kind != EARLIER
                or row.why == OBJECTION
                or row.sure > SURE
                or not {row.older, row.newer} <= stored.keys()
            ):
                return True
            older, newer = (body_of(stored[number].passage) for number in (row.older, row.newer))
            questions = () if typed and not is_typed(older, newer) else asked(row.older)
            return not questions or not all(is_of_another_attribute(older, newer, one) for one in questions)

        return [row for row in rows if may_be(row)]

    def newest(
        self, rows: Sequence[Overtaken], visible: Selection | None = None
    ) -> dict[int, tuple[Overtaken, StoredPassage]]:
        """Return for each older passage the surest row, and the newest statement that is certainly on its subject.

        If that statement is itself superseded, its successor counts, provided it shares a telling word with the
        older.
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
                and share_a_word(older[number], overtaken[newer.id][1])
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
        """Compare at most so many statements that were not compared yet; return how many."""
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
        """Return the passage up to which all statements were compared."""
        return int(self._passages.meta(_COMPARED) or 0)

    def _overtaken_by(self, own: StoredPassage, total: int) -> list[Overtaken]:
        """Return the rows that relate a statement to others about the same subject, older or newer."""
        if own.passage.speaker == "Agent" and not any(map(str.isdigit, own.passage.text)):
            return []
        question = self.question_of(own)
        text = f"{body_of(question.passage)}\n{body_of(own.passage)}" if question else body_of(own.passage)
        subject = self._subject(text, total, words(own.passage.project))
        near = set(subject.nearest(own.id))
        connected = near | self._connected_by_change(statement_of(own), subject) - {own.id}
        if question:
            return self._answered_anew(own, question, connected)
        rows: list[Overtaken] = []
        for other in self.load(connected).values() if connected else ():
            older, newer = (other, own) if self.is_later(own, other) else (own, other)
            if of_two_projects(own, other) or not self.is_later(newer, older) or is_copy(newer):
                continue
            if outdates_nothing(newer, older):
                continue
            if own.passage.speaker == "Agent":  # it reports its change, and becomes outdated with its message
                changed = newer is own and _changes_measure(older, own)
                rows += overtaken(older, own, SURE) if changed else ()
                continue
            other_value = partial(gives_another_value, older, newer)
            if supersedes(statement_of(newer), body_of(older.passage), other_value):
                rows += overtaken(older, newer, SURE)
            elif other.id in near and (sure := subject.sure_of(text, other)):
                rows += _of_one_subject(older, newer, sure)
        return rows

    def question_of(self, own: StoredPassage) -> StoredPassage | None:
        """Return the question before a message that changes its subject without naming it."""
        said = own.passage
        if not (
            said.kind == "turn" and said.speaker == "User" and said.number and continues_question(said.text)
        ):
            return None
        before = self.load([self.table.before(own.id)])
        asked = next(iter(before.values()), None)
        return asked if asked and asked.passage.day == said.day and not statement_of(asked) else None

    def _answered_anew(
        self, own: StoredPassage, question: StoredPassage, near: Iterable[int]
    ) -> list[Overtaken]:
        """Return the rows of such a message: with earlier answers to the question, and with other values of its
        subject.
        """
        rows = [Overtaken(question.id, own.id, EARLIER, "what the question before asked about", SURE)]
        asked = set(subject_words(body_of(question.passage)))
        for older in self.load(near).values():
            about = not asked.isdisjoint(subject_words(body_of(older.passage)))
            later = self.is_later(own, older) and not of_two_projects(own, older)
            if about and later and gives_another_value(older, own):
                rows += overtaken(older, own, SURE)
        return rows

    def _connected_by_change(self, text: str, subject: _Subject) -> set[int]:
        """Return statements connected by what one changes, including uncompared ones that may change it."""
        changed, told = changed_stems(text) | old_value_stems(text), assigned_stems(text)
        compared = self._compared()
        found = set[int]()
        for word, ids in subject.found.items():
            if (one := stem(word)) in changed:
                found |= ids
            elif one in told:
                found |= {number for number in ids if number > compared}
        return found

    def together(self, question: str, found: Iterable[StoredPassage]) -> list[tuple[int, int]]:
        """Return pairs of statements that share several rare words of a question, and so its subject.

        A short answer has the words of the message that it answers.
        """
        by_id = {one.id: one for one in found}
        answered = self._answered(by_id)
        ids = [one.id for one in by_id.values() if is_statement(one.passage) or one.id in answered]
        having = self._having(telling_words(question)) if len(ids) > 1 else {}
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
                if few and not of_two_projects(by_id[one], by_id[other]):
                    pairs.append((one, other))
        return pairs

    def _subject(self, text: str, total: int, project: Collection[str]) -> _Subject:
        """Return the subject of a statement; within a project the project's name does not count."""
        names = {word: is_name for word, is_name in subject_words(text).items() if word not in project}
        return _Subject(names, self._having(names), total)

    def _answered(self, answers: Iterable[int]) -> dict[int, int]:
        """Return for short answers the first passage of the message that each answers."""
        ids = tuple(answers)
        find = self.table.answered
        return self._passages.search.unchanged(("answered", ids), find, ids, SHORT_ANSWER)

    def _having(self, telling: Iterable[str]) -> dict[str, set[int]]:
        """Return the statements that contain each of these words, without words that too many contain."""
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


def _is_much_likelier(one: float, other: float) -> bool:
    """Return whether a likely one of two probabilities is much larger, as a chance of so many to one."""
    return one >= ALIKE and one * (1 - other) >= MUCH * other * (1 - one)


def _of_one_subject(older: StoredPassage, newer: StoredPassage, sure: float) -> list[Overtaken]:
    """Return the rows of two statements that share their subject with this certainty."""
    if sure == NEAR:
        changed = _changes_measure(older, newer)
    elif states_of(newer, older, sure == NAMED):
        changed = sure != NAMED or (may_change(older, newer) and may_answer_for(older, newer))
    else:
        return []
    if sure == NEAR:
        sure = SURE
    elif sure == NAMED and only_mentions(older, newer):
        sure = MENTIONED
    return [row for row in overtaken(older, newer, sure) if changed or row.kind == SUPERSEDED]


def _changes_measure(older: StoredPassage, newer: StoredPassage) -> bool:
    return changes_measure(body_of(older.passage), statement_of(newer))


class _Subject(msgspec.Struct, frozen=True):
    """The telling words of a statement, and which statements contain them."""

    names: Mapping[str, bool]
    found: Mapping[str, set[int]]
    total: int

    def nearest(self, number: int) -> list[int]:
        """Return statements that share a rare name or several rare words with it, most in common first."""
        shared: defaultdict[int, list[str]] = defaultdict(list)
        for word, ids in self.found.items():
            for other in ids:
                shared[other].append(word)
        shared.pop(number, None)
        weights = {
            other: self._weight(common)
            for other, common in shared.items()
            if self._names_it(common) or self._share_rare(common, RARE_OF_CHANGE)
        }
        return sorted(weights, key=lambda other: (-weights[other], -other))[:NEAREST]

    def sure_of(self, text: str, other: StoredPassage) -> float:
        """Return how certain it is that one of the nearest is on the same subject; 0 if it is not.

        The criteria are a common name, or enough words of the shorter statement; titles before a name (Dr., Frau) are
        part of it. A common word is no name, though a word of another language may look like one.
        """
        own, before = subject_words(body_of(other.passage)), words(body_of(other.passage))
        usual = {stem(word) for word, is_name in own.items() if not is_name}
        shared = [word for word, ids in self.found.items() if other.id in ids]
        names = {word for word in shared if self.names[word] and stem(word) not in usual}
        if not self._names_it(list(names)):
            if self._weight(shared) < SHARE * min(self._weight(self.found), self._weight(own)):
                return 0.0
            if not self._share_rare(shared, RARE):
                return NEAR
        titles = {title for title, name in {*pairwise(words(text))} & {*pairwise(before)} if name in names}
        return NAMED if names.issuperset({*shared} - titles) else SURE

    def _names_it(self, shared: Sequence[str]) -> bool:
        return any(self.names[word] and len(self.found[word]) <= ALONE for word in shared)

    def _share_rare(self, shared: Sequence[str], rare: float) -> bool:
        return (
            self._weight(shared) >= rare * self._rarity(0) and self._statements_with_all(shared) <= TOGETHER
        )

    def _statements_with_all(self, shared: Sequence[str]) -> int:
        """Return how many statements contain all of these words."""
        return len(set.intersection(*(self.found[word] for word in shared)))

    def _weight(self, chosen: Iterable[str]) -> float:
        return sum(self._rarity(len(self.found.get(word, "few"))) for word in chosen)

    def _rarity(self, count: int) -> float:
        return math.log((self.total + 50) / (count + 0.5))
