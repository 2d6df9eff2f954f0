"""Continuity (order 10): inject exchanges of earlier sessions that help with a message."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta

import msgspec
from msgspec.structs import replace

from nanoclaw_memory import tokens
from nanoclaw_memory.caches import bounded
from nanoclaw_memory.clock import moment_of, stamp
from nanoclaw_memory.conversations import anchors, topics
from nanoclaw_memory.conversations.service import excerpt
from nanoclaw_memory.intake.authorship import LONG, OwnWords, split_exchange
from nanoclaw_memory.intake.signs import only_reports
from nanoclaw_memory.lessons.corrections import asks_of
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.rendering import visible_line
from nanoclaw_memory.retrieval.candidates import BINDS, Candidate
from nanoclaw_memory.retrieval.chunker import QUOTED
from nanoclaw_memory.retrieval.currency import SHORT_ANSWER
from nanoclaw_memory.retrieval.hits import newer_of
from nanoclaw_memory.retrieval.ongoing import (
    asks_for_action,
    is_confidential,
    without_confidential,
    work_in,
)
from nanoclaw_memory.retrieval.prepare import body_of
from nanoclaw_memory.retrieval.reactions import only_comments, only_reacts
from nanoclaw_memory.retrieval.sources import only_acknowledges
from nanoclaw_memory.retrieval.stated_parts import only_asks, stated_in
from nanoclaw_memory.retrieval.statement_pairs import corrects, says_what_is_right
from nanoclaw_memory.retrieval.value_changes import continues_question
from nanoclaw_memory.store.currency import EARLIER
from nanoclaw_memory.store.keywords import terms_of
from nanoclaw_memory.store.lessons import NO_CORRECTION
from nanoclaw_memory.text import language, sentences, stems
from nanoclaw_memory.turn import blocks
from nanoclaw_memory.turn.context import PluginContext
from nanoclaw_memory.turn.plugin import Answer, Draft, Moment, Plugin, Silence
from nanoclaw_memory.turn.recaller import MOST_OF_DAYS, Recalled
from nanoclaw_memory.types import Exchange, Newer, Passage, ToolCall

MOST_CHARS = 600  # characters of one side of an exchange
MOST_PASTED = 240  # characters of the one sentence quoted from a paste
MOST_OF_CORRECTION = 160
RECENT, MID = timedelta(days=7), timedelta(days=60)
LATELY = timedelta(days=2)  # a topic this recent may be continued without being named
SHOWN_ANCHORS = 3
LAST = 12  # recent exchanges among which the last worth repeating are looked for
MOST_ENDED = 2
SHARED = 2  # content words by which a later message is about what an earlier one asked
NEEDED = 0.3  # minimal probability that a question needed memory: others are about nothing of the person's


SHORT = 45  # characters of a message that says little without its answer
NOTED = 2  # words of an answer that only acknowledges
MENTIONED, FEW_QUOTED = 'User mentioned: "', 4
BOTH = frozenset(("User", "Agent"))
FETCHED = ("import", "tool", "web")  # origins of messages that no person wrote to the agent
LEFT_OUT = "(left out: it reads like an attempt to steer the agent)"
PERHAPS_QUOTING = "perhaps quoting"
PASTED = "Pasted"  # the side of an exchange that the user only quoted


class Recollection(msgspec.Struct, frozen=True):
    """An exchange to inject, or one side of it."""

    exchange: Exchange
    score: float
    sides: frozenset[str] = BOTH
    mark: str = ""  # set if a newer statement on its subject is known
    newer: Newer | None = None  # quoted unless its own passage is injected
    newer_id: int = 0  # the id of that statement's passage
    passages: frozenset[int] = frozenset()  # ids of the passages that were found
    corrected: str = ""  # what the person corrected in the answer
    overtaken_by: str = ""  # the text of the newer statement, quoted or not
    question: str = ""  # the question before a message that reports a change without naming its subject
    binds: bool = False  # it contains a constraint on what the message asks for


class TellingLine(msgspec.Struct, frozen=True):
    """A line of the block, why it was chosen, and the statement that supersedes it."""

    text: str
    reason: str = ""
    newer: str = ""
    score: float = 0.0  # the probability that it helps; 0 if that was not asked


class Continuity(Plugin):
    """Recall exchanges across sessions; inject nothing when none helps."""

    name = "continuity"

    def __init__(self, context: PluginContext) -> None:
        self.context = context
        self.own = context.settings.plugins.entries.continuity
        self.order = self.own.order
        self.timeout_ms = self.own.timeout_ms

    # ---- before the answer ----

    def before_turn(self, message: str, moment: Moment) -> Answer:
        recalled = self.context.recaller.recall(message, moment)
        if self.own.always and not recalled.open:
            recalled = self.context.recaller.recall(message, moment, gated=False)
        most = self.own.max_recollections
        chosen = self._recollections(recalled)[: max(most, MOST_OF_DAYS) if recalled.plans else most]
        if not chosen:
            if held := self._fixated_topics(moment):
                return _draft(held, 0, recalled)
            return Silence(recalled.silence, recalled.notes, recalled.nearly)
        wanted = set(terms_of(message))
        chosen = [one for one in chosen if self._rendered(one, wanted)]
        if not chosen:
            return Silence("the same was asked before, and nothing answered it", recalled.notes)
        lines, used = self._lines(chosen, wanted, moment, "helps with the message")
        if not used:
            return Silence(f"nothing fits the {moment.budget} tokens left", recalled.notes)
        told = set(terms_of(" ".join((message, *(line.text for line in lines)))))
        own = [one for one in self._topics(moment) if told.intersection(terms_of(one.label))]
        lines += self._closing(own, moment)
        return _draft(lines, used, recalled)

    def _recollections(self, recalled: Recalled) -> list[Recollection]:
        """Group the recalled passages by exchange, each with the sides that were found and its best score."""
        sides: dict[int, list[Candidate]] = {}
        for one in recalled.chosen:
            if one.stored.source == "exchanges":
                sides.setdefault(one.stored.passage.number, []).append(one)
        exchanges = self.context.exchanges.get(list(sides))
        found, put_right = [], dict[int, Recollection]()
        for number, own in sides.items():
            if number not in exchanges:
                continue
            if right := self._put_right(exchanges[number], max(one.score for one in own)):
                put_right.setdefault(right.exchange.id, right)
            else:
                marked = next((one for one in own if one.mark and _side(one.stored.passage) != PASTED), None)
                correction = self._correction_of(exchanges[number])
                found.append(
                    Recollection(
                        exchange=exchanges[number],
                        score=max(one.score for one in own),
                        sides=frozenset(_side(one.stored.passage) for one in own),
                        mark=marked.mark
                        if marked
                        else _answered_since(exchanges[number], own, recalled.chosen),
                        newer=_newer_statement(marked, recalled) if marked else None,
                        newer_id=marked.newer_id if marked else 0,
                        passages=frozenset(one.stored.id for one in own),
                        overtaken_by=body_of(marked.newer.passage) if marked and marked.newer else "",
                        corrected=split_exchange(correction).text if correction else "",
                        question=self._question_of(exchanges[number], sides),
                        binds=any(BINDS in one.parts for one in own),
                    )
                )
        return self._with_corrections(found, put_right)

    def _put_right(self, exchange: Exchange, score: float) -> Recollection | None:
        """Return the last message that put a short answer to a question right, instead of both; None for most."""
        first = told = self._first_corrected(exchange)
        asked = split_exchange(first, teaches=False).lines
        if not (only_asks(asked) or asked.rstrip().endswith("?")):
            return None
        while (following := self.context.exchanges.following(told)) and _puts_right(following, told):
            told = following
        if told is first:
            return None
        return Recollection(exchange=told, score=score, sides=frozenset(("User",)), question=asked)

    def _first_corrected(self, exchange: Exchange) -> Exchange:
        """Return the exchange that this one put right, directly or through others; else itself."""
        before = self.context.exchanges.before(exchange)
        while before is not None and _puts_right(exchange, before):
            exchange, before = before, self.context.exchanges.before(before)
        return exchange

    def _with_corrections(
        self, found: Sequence[Recollection], put_right: Mapping[int, Recollection]
    ) -> list[Recollection]:
        """Return recollections in the order of their scores, each correction once and with the question before it."""
        later = self.context.retrieval.overtaken("exchanges", list(put_right)) if put_right else {}
        corrections = [
            replace(one, mark=later.get(number, ("", None))[0], newer=later.get(number, ("", None))[1])
            for number, one in put_right.items()
        ]
        rest = [one for one in found if one.exchange.id not in put_right]
        return sorted([*corrections, *rest], key=lambda one: -one.score) if corrections else rest

    def _correction_of(self, exchange: Exchange) -> Exchange | None:
        """Return the next message if it corrected the answer."""
        following = self.context.exchanges.following(exchange)
        if following is None:
            return None
        lessons = self.context.lessons
        taught = (lessons.get(number) for number in lessons.learnt_from(following.id))
        corrects = any(
            one and one.state != "retired" and not one.why.endswith(NO_CORRECTION) for one in taught
        )
        return following if corrects else None

    def _question_of(self, exchange: Exchange, told: Container[int]) -> str:
        """Return the question before a message like "raised it to 90", unless that question is injected too."""
        before = (
            self.context.exchanges.before(exchange) if continues_question(exchange.user_message) else None
        )
        asked = split_exchange(before).text if before and before.id not in told else ""
        return "" if stated_in(asked) else asked

    def session_start(self, moment: Moment) -> Answer:
        """Inject what was under way when the last session in this project ended; after a compaction, in this one."""
        recent = self._recent(moment, limit=LAST)
        if not recent:
            return Silence("nothing was said yet")
        session = moment.scope.session_id
        last_session = session if any(one.session_id == session for one in recent) else recent[-1].session_id
        talk = [one for one in recent if one.session_id == last_session]
        worth = (self._last_word(one, talk) for one in reversed(talk) if self._is_worth_repeating(one))
        told = {one.id: (one, sides) for one, sides in itertools.islice(_distinct(worth), MOST_ENDED)}
        ended = [told[number] for number in sorted(told)]
        later = self.context.retrieval.overtaken("exchanges", [one.id for one, _ in ended])
        last = [
            Recollection(one, 1.0, sides, *later.get(one.id, ("", None)))  # with the newer statement, if any
            for one, sides in ended
        ]
        lines, used = self._lines(last, set(), moment, "said last", alone=True)
        known = {*terms_of(" ".join(line.text for line in lines)), *terms_of(moment.scope.project)}
        own = [one for one in self._topics(moment) if not known.issuperset(terms_of(one.label))]
        lines += self._closing(own, moment)
        return _draft(lines, used) if lines else Silence("nothing that was said lately is worth repeating")

    @staticmethod
    def _last_word(told: Exchange, talk: Sequence[Exchange]) -> tuple[Exchange, frozenset[str]]:
        """Return the last exchange in which the person decided what this one asked, and the sides to repeat of it.

        What the agent proposed is over as soon as the person states something else about it.
        """
        subject = _subject_of(told)
        decided = [
            one
            for one in talk
            if one.id > told.id
            and stated_in(split_exchange(one).text)
            and len(subject & _subject_of(one)) >= SHARED
        ]
        if not decided:
            return told, BOTH
        asks = only_asks(split_exchange(told, teaches=False).lines)
        if asks and not _tells_confidential(decided[-1]):
            return decided[-1], BOTH
        return told, frozenset(("User",))

    def _lines(
        self, chosen: Sequence[Recollection], wanted: set[str], moment: Moment, why: str, alone: bool = False
    ) -> tuple[list[TellingLine], int]:
        """Render the recollections that fit the budget, oldest first, each line with its reason; return their number
        too.

        Several lines of one conversation follow a line with its topic and date; a single line contains its own date.
        `alone`: the topic is that of the recollections, and not of what was said beside them.
        """
        limit = min(self.own.context_budget, moment.budget)
        shares = (self.own.recent_share, self.own.mid_share)
        kept = allot(chosen, moment.now, limit, lambda one: self._rendered(one, wanted), shares)
        kept.sort(key=lambda one: one.exchange.id)
        lines: list[TellingLine] = []
        quoted: set[str] = set()  # newer statements that were quoted already
        near = {one.exchange.id: one.exchange for one in kept} if alone else self._neighbours(kept)
        given = frozenset[int]().union(*(one.passages for one in kept))
        talks = itertools.groupby(kept, key=lambda one: (one.exchange.session_id, self._day(one, moment)))
        for (_, day), found in talks:
            talk = list(found)
            elsewhere = _elsewhere(talk[0].exchange, moment)
            told = self._rendered_talk(talk, wanted)
            place = f"in project {elsewhere}" if elsewhere else ""
            if len(told) > 1:
                text = _text_around(talk[0].exchange, near)
                topic = topics.phrase(text)
                about = discussing(topic, text, day, moment.now.date(), elsewhere)
                # The topic of an older conversation is worth a line only if the message is about it.
                now = any(not one.mark for one in talk)  # otherwise the topic would name a state that is over
                if (
                    about
                    and now
                    and (moment.now.date() - day <= LATELY or wanted.intersection(terms_of(topic)))
                ):
                    lines.append(TellingLine(about))
                    told = self._rendered_talk(talk, wanted, topic)
                    place = ""  # the topic line names the project
            for one, line in told:
                marks = [
                    day.isoformat(),
                    place,
                    f'asked about: "{_quoted(one.question)}"' if one.question else "",
                ]
                if one.newer and one.newer_id not in given and one.newer.text not in quoted:
                    quoted.add(one.newer.text)
                    marks.append(one.newer.told(one.mark))
                else:
                    marks.append(one.mark)
                dated = f"{line} ({'; '.join(filter(None, marks))})"
                reason = f"score {one.score:.2f}; {why}"
                compared = 0.0 if one.binds or not wanted else one.score
                lines.append(TellingLine(dated, reason, one.overtaken_by, compared))
        return lines, len(kept)

    @staticmethod
    def _day(one: Recollection, moment: Moment) -> date:
        return moment_of(one.exchange.timestamp).astimezone(moment.now.tzinfo).date()

    def _neighbours(self, kept: Sequence[Recollection]) -> dict[int, Exchange]:
        """Return the recollected exchanges and their neighbours."""
        ids = {number for one in kept for number in _numbers_around(one.exchange.id)}
        return self.context.exchanges.get(sorted(ids))

    def _rendered_talk(
        self, talk: Sequence[Recollection], wanted: set[str], topic: str = ""
    ) -> list[tuple[Recollection, str]]:
        return [(one, line) for one in talk for line in self._rendered(one, wanted, topic)]

    @staticmethod
    def _rendered(one: Recollection, wanted: set[str], topic: str = "") -> list[str]:
        """Render the recalled sides; a question is rendered with its answer or not at all."""
        message, agent = split_exchange(one.exchange, teaches=False), one.exchange.agent_response
        user = message.lines
        question = only_asks(user)
        # A question, or a request of few words, is useless without its answer.
        asked = question or user.rstrip().endswith("?") or (len(user) <= SHORT and len(agent.split()) > NOTED)
        # a question about a paste does not make the paste worth repeating
        asked = asked and one.sides != {PASTED}
        told = []
        # "I'm a diabetic" says more than a topic line with "diabetic".
        says_more = (
            one.binds
            or one.question
            or not (topics.is_only(user, topic) or _repeats(user, wanted) or only_reacts(user))
        )
        if user and (agent or not question) and ("User" in one.sides or asked) and says_more:
            words = excerpt(user, wanted, MOST_CHARS)
            foreign = one.exchange.origin in FETCHED
            told.append(
                came_from(one.exchange.origin, harmless(words))
                if foreign
                else user_mentioned(words, _is_their_own(message))
            )
        if PASTED in one.sides and (pasted := _best_sentence(message.rest, wanted)):
            told.append(user_pasted(harmless(pasted)))
        if agent and ("Agent" in one.sides or asked) and not only_comments(user, agent):
            against = _quoted(excerpt(one.corrected, wanted, MOST_OF_CORRECTION))
            corrected = f', corrected: "{against}"' if against else ""
            told.append(you_said(harmless(excerpt(agent, wanted, MOST_CHARS))) + corrected)
        return told

    def _topics(self, moment: Moment, own: bool = False) -> list[topics.Topic]:
        """Return the topics of this session, or for a new session those of the last days unless `own`."""
        since = stamp(moment.now - timedelta(days=2))
        scope = moment.scope
        if scope.session_id:
            last = self.context.exchanges.of_session(scope.session_id, scope.private, topics.WINDOW)
        else:
            last = []
        last = last or ([] if own else self._recent(moment, since, topics.WINDOW))
        told = [(split_exchange(one).text, one.agent_response) for one in last]
        return topics.track([(without_confidential(said), without_confidential(own)) for said, own in told])

    def _recent(self, moment: Moment, since: str = "", limit: int = 100) -> list[Exchange]:
        """Return the last exchanges in the scope's project, oldest first."""
        return self.context.exchanges.recent(moment.scope.private, since, limit, self.context.own_project)

    def _fixated_topics(self, moment: Moment) -> list[TellingLine]:
        """Return what the session itself should keep in view: a topic that fills nearly every exchange."""
        fixated = [one.label for one in self._topics(moment, own=True) if one.state == "fixated"]
        if not fixated:
            return []
        why = "nearly every exchange of the session is about it"
        return [TellingLine(f"Topics: {', '.join(fixated)} (fixated)", why)]

    def _closing(self, now_topics: Sequence[topics.Topic], moment: Moment) -> list[TellingLine]:
        lines = []
        since = stamp(moment.now - anchors.LIFETIME)
        found = anchors.find(self._recent(moment, since), moment.now)
        held = [anchor for anchor in found if not is_confidential(anchor.text)]
        if held:
            shown = "; ".join(f'"{anchor.text}" ({anchor.kind})' for anchor in held[:SHOWN_ANCHORS])
            lines.append(TellingLine(f"Hold on to: {shown}"))
        if now_topics:
            named = ", ".join(f"{topic.label} ({topic.state})" for topic in now_topics)
            lines.append(TellingLine(f"Topics: {named}"))
        return lines

    def _is_worth_repeating(self, exchange: Exchange) -> bool:
        """Return whether an exchange is worth repeating unasked: what the person is working on, or a question about
        their own affairs that was answered.
        """
        message, answer = split_exchange(exchange, teaches=False).lines, exchange.agent_response
        if _tells_confidential(exchange):
            return False
        if work_in(message, self.context.judge):
            return True
        asks = only_asks(message) and not asks_for_action(message)
        return asks and bool(answer) and self.context.need(message) >= NEEDED

    # ---- after the answer ----

    def after_turn(self, exchange: Exchange, tool_calls: tuple[ToolCall, ...], moment: Moment) -> None:
        # Files too: a line of a page without a date gets the day on which it was first indexed.
        self.context.retrieval.refresh(embed=self.context.embedder is not None)


def _tells_confidential(exchange: Exchange) -> bool:
    """Return whether what would be repeated of an exchange is told only to who asks for it."""
    sides = split_exchange(exchange, teaches=False).lines, exchange.agent_response
    return any(is_confidential(excerpt(side, set(), MOST_CHARS)) for side in sides)


def _puts_right(message: Exchange, answered: Exchange) -> bool:
    """Return whether a message says that the short answer before it was wrong, and what is right."""
    said, answer = split_exchange(message).text, answered.agent_response
    return 0 < len(answer) <= SHORT_ANSWER and corrects(said, answer) and says_what_is_right(said)


def _subject_of(exchange: Exchange) -> set[str]:
    """Return the stems of the content words on both sides of an exchange."""
    return set(stems(f"{split_exchange(exchange).text}\n{exchange.agent_response[:MOST_CHARS]}"))


def _distinct(
    found: Iterable[tuple[Exchange, frozenset[str]]],
) -> Iterator[tuple[Exchange, frozenset[str]]]:
    """Yield each exchange once."""
    known: set[int] = set()
    for one, sides in found:
        if one.id not in known:
            known.add(one.id)
            yield one, sides


def _is_their_own(message: OwnWords) -> bool:
    """Return whether a message is told as the user's own words, and not as perhaps quoting."""
    if message.text != message.lines or message.rest:
        return False
    if message.alone and not asks_of(message.text, labels=False):
        return True
    return len(message.text) <= LONG and only_reports(message.text)


def _best_sentence(pasted: str, wanted: set[str]) -> str:
    """Return the sentence of a pasted text with most of the wanted words; empty if none has any."""
    shared = {part: len(wanted.intersection(terms_of(part))) for part in sentences(pasted)}
    best = max(shared, key=lambda part: shared[part], default="")
    return excerpt(best, wanted, MOST_PASTED) if shared.get(best) else ""


def _answered_since(asked: Exchange, own: Sequence[Candidate], chosen: Sequence[Candidate]) -> str:
    """Return the mark for an answer recalled through its question, if a later statement is about the same."""
    words = set(terms_of(asked.user_message))
    if not asked.user_message.rstrip().endswith("?") or any(
        _side(one.stored.passage) == "Agent" for one in own
    ):
        return ""
    later = (
        set(terms_of(one.stored.passage.text))
        for one in chosen
        if one.stored.passage.day > asked.timestamp[:10]
        and not one.stored.passage.text.rstrip().endswith("?")
    )
    return EARLIER if any(len(words & said) * 2 >= len(words) for said in later) else ""


def _repeats(user: str, wanted: set[str]) -> bool:
    """Return whether an earlier message equals the present one, or is a question made only of its words."""
    words = set(terms_of(user)) if wanted else set()
    return bool(words) and (words == wanted or (user.rstrip().endswith("?") and words <= wanted))


def _newer_statement(one: Candidate, recalled: Recalled) -> Newer | None:
    """Return the newer statement that this block must quote, because its own exchange may not fit."""
    said_too = one.newer is not None and one.newer.source == "exchanges"
    return newer_of(one.newer) if one.newer and said_too else recalled.later(one)


def _side(passage: Passage) -> str:
    return PASTED if passage.speaker == "User" and passage.origin == QUOTED else passage.speaker


def _draft(lines: Sequence[TellingLine], hits: int, recalled: Recalled | None = None) -> Draft:
    """Make a draft of lines with their reasons."""
    return Draft(
        blocks.CONTINUITY,
        tuple(line.text for line in lines),
        hits=hits,
        notes=recalled.notes if recalled else (),
        reasons=tuple(line.reason for line in lines),
        statements=tuple(_quoted_statement(line.text) for line in lines),
        nearly=recalled.nearly if recalled else (),
        newer=tuple(line.newer for line in lines),
        scores=tuple(line.score for line in lines),
    )


def _quoted_statement(line: str) -> str:
    """Return the user's statement quoted in a line; empty if it is too short to be recognised elsewhere."""
    quoted = line.removeprefix(MENTIONED).partition('"')[0] if line.startswith(MENTIONED) else ""
    return quoted if len(quoted.split()) > FEW_QUOTED else line


def _elsewhere(exchange: Exchange, moment: Moment) -> str:
    """Return the project of an exchange if it differs from the scope's."""
    return exchange.project if exchange.project != moment.scope.project else ""


def _numbers_around(number: int) -> range:
    return range(max(number - 3, 1), number + 4)


def _text_around(exchange: Exchange, near: Mapping[int, Exchange]) -> str:
    """Return the text around an exchange: the topic of a conversation is seldom in a single sentence."""
    around = (near[number] for number in _numbers_around(exchange.id) if number in near)
    same = (one for one in around if one.session_id == exchange.session_id)
    return "\n".join(
        part
        for one in same
        for part in (
            split_exchange(one).text[:1_000],
            "" if only_acknowledges(one.user_message, one.agent_response) else one.agent_response[:1_000],
        )
    )


def allot(
    chosen: Sequence[Recollection],
    now: datetime,
    budget: int,
    told: Callable[[Recollection], list[str]],
    shares: tuple[float, float],
) -> list[Recollection]:
    """Choose the recollections that fit: each age tier has a share, newest tier first, best first within it.

    What a tier leaves of its share passes to the next one.
    """
    told_itself = frozenset[int]().union(*(one.passages for one in chosen))

    def price(one: Recollection) -> int:
        quoted = one.newer.text if one.newer and one.newer_id not in told_itself else ""
        return sum(map(tokens.estimate, told(one))) + tokens.estimate(quoted) + 12

    tiers: list[list[Recollection]] = [[], [], []]
    for one in chosen:
        age = now - moment_of(one.exchange.timestamp)
        tiers[0 if age <= RECENT else 1 if age <= MID else 2].append(one)
    kept: list[Recollection] = []
    left = 0.0
    waiting: list[Recollection] = []
    for share, tier in zip((*shares, max(0.0, 1 - sum(shares))), tiers, strict=True):
        left += share * budget
        for one in tier:
            cost = price(one)
            if cost <= left:
                kept.append(one)
                left -= cost
            else:
                waiting.append(one)
    for one in waiting:  # the rest goes to recollections that did not fit their own tier's share
        cost = price(one)
        if cost <= left:
            kept.append(one)
            left -= cost
    return kept


_PROGRESSIVE = {
    "want": "wanting",
    "need": "needing",
    "plan": "planning",
    "prefer": "preferring",
    "like": "liking",
    "love": "loving",
    "hate": "hating",
    "hope": "hoping",
    "think": "thinking",
}
_ARTICLES = (
    "the a an my our your this that der die das den dem ein eine einen mein meine unser unsere".split()
)
_MY = regex(r"\bmy\b")
_FIRST = regex(rf"^(?:I|We) ({'|'.join(_PROGRESSIVE)}) (?P<what>[^.!?]+)[.!]?\Z", re.IGNORECASE)
_NUMBERS = ("", "", *"two three four five six seven eight nine ten eleven twelve".split())


def when(day: date, today: date) -> str:
    """Describe a day relative to today: yesterday, last Tuesday, three weeks ago, in March 2025."""
    days = (today - day).days
    if days <= 0:
        return "earlier today"
    if days == 1:
        return "yesterday"
    if days < 7:
        return f"last {day:%A}" if days > 2 else f"on {day:%A}"
    if days < 14:
        return "last week"
    if days < 56:
        return f"{_NUMBERS[days // 7]} weeks ago"
    months = (today.year - day.year) * 12 + today.month - day.month
    if months < 12:
        return f"{_NUMBERS[months]} months ago ({day:%-d %B})"
    return f"in {day:%B %Y}"


def discussing(topic: str, text: str, day: date, today: date, project: str = "") -> str:
    """Render 'You were discussing the payment API migration yesterday, in project keystone.'; empty without a topic."""
    if not _names_a_topic(topic, text):
        return ""
    moment = when(day, today)
    where = f", in project {project}" if project else ""
    article = "the " if _contains(f"the {topic}", text) else ""
    return f"You were discussing {article}{topic} {moment}{where}."


def _names_a_topic(topic: str, text: str) -> bool:
    """Return whether words that stood together name a topic: with an article, as a name, or repeatedly."""
    if not topic or any(_contains(f"{article} {topic}", text) for article in _ARTICLES):
        return bool(topic)
    # The capital of a sentence's first word does not make it a name.
    inside = any(before[-1:].islower() or before.endswith(",") for before in text.split(f" {topic}")[:-1])
    is_name = topic[0].isupper() and inside and language(text) != "german"  # there every noun has a capital
    return is_name or text.casefold().count(topic.casefold()) > 1


def _contains(phrase: str, text: str) -> bool:
    """Return whether a text contains a phrase as whole words; cheaper than a pattern per topic."""
    wanted, folded = phrase.casefold(), text.casefold()
    start = folded.find(wanted)
    while start >= 0:
        around = folded[start - 1 : start] + folded[start + len(wanted) : start + len(wanted) + 1]
        if not any(character.isalnum() or character == "_" for character in around):
            return True
        start = folded.find(wanted, start + 1)
    return False


@bounded(256 * 1024)  # each recollection is rendered several times
def harmless(text: str) -> str:
    """Return a quotable text of others or the agent, without what reads like an attack: a page may have dictated it."""
    from nanoclaw_memory.intake.suspicion import steering  # imported here: a cold hook seldom quotes anything

    return LEFT_OUT if steering(text) else text


def you_said(text: str) -> str:
    """Quote the agent."""
    return f'You said: "{_quoted(text)}"'


def user_mentioned(text: str, own: bool = True) -> str:
    """Report the user's words: "mentioned wanting …" where they said "I want …", else as a quotation.

    A message that may contain more than their `own` words is marked: not every paste can be recognised.
    """
    plain = visible_line(text)
    if not own:
        return f'User mentioned, {PERHAPS_QUOTING}: "{_quoted(plain)}"'
    match = _FIRST.match(plain)
    if match and '"' not in plain:
        what = _MY.sub("their", match["what"])
        return f"User mentioned {_PROGRESSIVE[match[1].casefold()]} {what}."
    return f'{MENTIONED}{_quoted(plain)}"'


def came_from(origin: str, text: str) -> str:
    """Quote a message that a program sent."""
    return f'Came from {origin}, not from the user: "{_quoted(text)}"'


def user_pasted(text: str) -> str:
    """Quote what the user only quoted."""
    return f'User pasted, not in their own words: "{_quoted(text)}"'


def _quoted(text: str) -> str:
    return visible_line(text).replace('"', "'")
