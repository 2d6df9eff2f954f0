"""Continuity (order 10): inject what was said in earlier sessions and helps with a message."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Container, Mapping, Sequence
from datetime import date, datetime, timedelta

import msgspec

from nanoclaw_memory import tokens
from nanoclaw_memory.caches import bounded
from nanoclaw_memory.clock import moment_of, stamp
from nanoclaw_memory.conversations import anchors, topics
from nanoclaw_memory.conversations.service import excerpt
from nanoclaw_memory.intake.own_words import said
from nanoclaw_memory.lessons.corrections import asks_of
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.rendering import visible_line
from nanoclaw_memory.retrieval.candidates import Candidate
from nanoclaw_memory.retrieval.changing import goes_on
from nanoclaw_memory.retrieval.chunker import QUOTED
from nanoclaw_memory.retrieval.hits import newer_of
from nanoclaw_memory.retrieval.prepare import body_of
from nanoclaw_memory.retrieval.sources import only_acknowledges
from nanoclaw_memory.retrieval.stating import only_asks, stated_in, tells
from nanoclaw_memory.store.currency import EARLIER
from nanoclaw_memory.store.keywords import terms_of
from nanoclaw_memory.store.lessons import NO_CORRECTION
from nanoclaw_memory.text import sentences
from nanoclaw_memory.turn import blocks
from nanoclaw_memory.turn.context import PluginContext
from nanoclaw_memory.turn.plugin import Answer, Draft, Moment, Plugin, Silence
from nanoclaw_memory.turn.recalled import Recalled
from nanoclaw_memory.types import Exchange, Newer, Passage, ToolCall

MOST_CHARS = 600  # of one side of an exchange
MOST_PASTED = 240  # of the one sentence that is told of a paste
MOST_OF_CORRECTION = 160
RECENT, MID = timedelta(days=7), timedelta(days=60)
LATELY = timedelta(days=2)  # what was talked about then may be gone on with
SHOWN_ANCHORS = 3
LAST = 12  # exchanges of a project among which the two that ended its last session are


SHORT = 45  # characters of a message that says little without its answer
NOTED = 2  # words of an answer that only takes note
MENTIONED, FEW_QUOTED = 'User mentioned: "', 4
BOTH = frozenset(("User", "Agent"))
FETCHED = ("import", "tool", "web")  # origins of messages that no person wrote to the agent
LEFT_OUT = "(left out: it reads like an attempt to steer the agent)"
PERHAPS_QUOTING = "perhaps quoting"
PASTED = "Pasted"  # the side of what a user only quoted


class Recollection(msgspec.Struct, frozen=True):
    """An exchange to be told, or one side of it."""

    exchange: Exchange
    score: float
    sides: frozenset[str] = BOTH
    mark: str = ""  # whether something newer is known on its subject
    newer: Newer | None = None  # to be quoted, unless it is told itself
    newer_id: int = 0  # its passage
    passages: frozenset[int] = frozenset()  # its own
    corrected: str = ""  # what the person said against the answer
    overtaken_by: str = ""  # the words of the newer statement, whether or not they are quoted
    question: str = ""  # what it says, without naming it, that something changed of
    binds: bool = False  # it binds the person in what is asked for


class TellingLine(msgspec.Struct, frozen=True):
    """A line of the block, why it was chosen, and the statement that overtakes it."""

    text: str
    reason: str = ""
    newer: str = ""


class Continuity(Plugin):
    """Remembers across sessions, and keeps silent when nothing is called to mind."""

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
        chosen = self._recollections(recalled)[: self.own.max_recollections]
        if not chosen:
            if held := self._of_session(moment):
                return _draft(held, 0, recalled)
            return Silence(recalled.silence, recalled.notes, recalled.nearly)
        wanted = set(terms_of(message))
        chosen = [one for one in chosen if self._told(one, wanted)]
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
        """The exchanges whose sides are among the passages, each with those sides and its best score."""
        sides: dict[int, list[Candidate]] = {}
        for one in recalled.chosen:
            if one.stored.source == "exchanges":
                sides.setdefault(one.stored.passage.number, []).append(one)
        exchanges = self.context.exchanges.get(list(sides))
        found = []
        for number, own in sides.items():
            if number in exchanges:
                marked = next((one for one in own if one.mark and _side(one.stored.passage) != PASTED), None)
                found.append(
                    Recollection(
                        exchange=exchanges[number],
                        score=max(one.score for one in own),
                        sides=frozenset(_side(one.stored.passage) for one in own),
                        mark=marked.mark
                        if marked
                        else _answered_since(exchanges[number], own, recalled.chosen),
                        newer=_newer(marked, recalled) if marked else None,
                        newer_id=marked.newer_id if marked else 0,
                        passages=frozenset(one.stored.id for one in own),
                        overtaken_by=body_of(marked.newer.passage) if marked and marked.newer else "",
                        corrected=self._correction_of(exchanges[number], sides),
                        question=self._question_of(exchanges[number], sides),
                        binds=any("binds" in one.parts for one in own),
                    )
                )
        return found

    def _correction_of(self, exchange: Exchange, told: Container[int]) -> str:
        """What the next message surely corrected of an answer, unless it is told: a mistake is not recalled alone."""
        following = self.context.exchanges.following(exchange)
        if following is None or following.id in told:
            return ""
        lessons = self.context.lessons
        taught = (lessons.get(number) for number in lessons.learnt_from(following.id))
        corrects = any(
            one and one.state != "retired" and not one.why.endswith(NO_CORRECTION) for one in taught
        )
        return said(following).text if corrects else ""

    def _question_of(self, exchange: Exchange, told: Container[int]) -> str:
        """What was asked before a message that says "raised it to 90", unless it is told itself."""
        before = self.context.exchanges.before(exchange) if goes_on(exchange.user_message) else None
        asked = said(before).text if before and before.id not in told else ""
        return "" if stated_in(asked) else asked

    def session_start(self, moment: Moment) -> Answer:
        """How the last session in this project ended; after a compaction, what this one was about."""
        recent = self._recent(moment, limit=LAST)
        if not recent:
            return Silence("nothing was said yet")
        ended = [one for one in recent if _tells(one)][-2:]
        later = self.context.retrieval.overtaken("exchanges", [one.id for one in ended])
        last = [
            Recollection(one, 1.0, BOTH, *later.get(one.id, ("", None)))  # with what is newer, if anything
            for one in ended
        ]
        lines, used = self._lines(last, set(), moment, "said last")
        return _draft([*lines, *self._closing(self._topics(moment), moment)], used)

    def _lines(
        self, chosen: Sequence[Recollection], wanted: set[str], moment: Moment, why: str
    ) -> tuple[list[TellingLine], int]:
        """The recollections within the budget, told oldest first, each line with its reason; and their number.

        Several lines of one conversation stand under what it was about; a single one says itself when it was said.
        """
        limit = min(self.own.context_budget, moment.budget)
        shares = (self.own.recent_share, self.own.mid_share)
        kept = allot(chosen, moment.now, limit, lambda one: self._told(one, wanted), shares)
        kept.sort(key=lambda one: one.exchange.id)
        lines: list[TellingLine] = []
        quoted: set[str] = set()  # newer statements whose words were given
        near = self._near(kept)
        given = frozenset[int]().union(*(one.passages for one in kept))
        talks = itertools.groupby(kept, key=lambda one: (one.exchange.session_id, self._day(one, moment)))
        for (_, day), found in talks:
            talk = list(found)
            elsewhere = _elsewhere(talk[0].exchange, moment)
            told = self._all_told(talk, wanted)
            place = f"in project {elsewhere}" if elsewhere else ""
            if len(told) > 1:
                text = _around(talk[0].exchange, near)
                topic = topics.phrase(text)
                about = discussing(topic, text, day, moment.now.date(), elsewhere)
                # Of a talk long ago its topic is worth a line only if the message is about it.
                now = any(not one.mark for one in talk)  # else it names what held earlier
                if (
                    about
                    and now
                    and (moment.now.date() - day <= LATELY or wanted.intersection(terms_of(topic)))
                ):
                    lines.append(TellingLine(about))
                    told = self._all_told(talk, wanted, topic)
                    place = ""  # the line above says it
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
                lines.append(TellingLine(dated, f"score {one.score:.2f}; {why}", one.overtaken_by))
        return lines, len(kept)

    @staticmethod
    def _day(one: Recollection, moment: Moment) -> date:
        return moment_of(one.exchange.timestamp).astimezone(moment.now.tzinfo).date()

    def _near(self, kept: Sequence[Recollection]) -> dict[int, Exchange]:
        """The recollections and what was said about when they were."""
        ids = {number for one in kept for number in _numbers_around(one.exchange.id)}
        return self.context.exchanges.get(sorted(ids))

    def _all_told(
        self, talk: Sequence[Recollection], wanted: set[str], topic: str = ""
    ) -> list[tuple[Recollection, str]]:
        return [(one, line) for one in talk for line in self._told(one, wanted, topic)]

    @staticmethod
    def _told(one: Recollection, wanted: set[str], topic: str = "") -> list[str]:
        """The sides that are recalled; a question is told with its answer, or not at all."""
        message, agent = said(one.exchange, teaches=False), one.exchange.agent_response
        user = message.lines
        question = only_asks(user)
        # A question, or a request of few words, says nothing without its answer.
        asked = question or user.rstrip().endswith("?") or (len(user) <= SHORT and len(agent.split()) > NOTED)
        asked = asked and one.sides != {PASTED}  # what was asked about a paste is told for its own sake only
        told = []
        # "I'm a diabetic" says more than that diabetic was the topic.
        says_more = one.binds or not (topics.is_only(user, topic) or _repeats(user, wanted))
        if user and (agent or not question) and ("User" in one.sides or asked) and says_more:
            words = excerpt(user, wanted, MOST_CHARS)
            foreign = one.exchange.origin in FETCHED
            own = message.alone and message.text == message.lines and not asks_of(message.text)
            told.append(
                came_from(one.exchange.origin, harmless(words)) if foreign else user_mentioned(words, own)
            )
        if PASTED in one.sides and (pasted := _telling(message.rest, wanted)):
            told.append(user_pasted(harmless(pasted)))
        if agent and ("Agent" in one.sides or asked) and not only_acknowledges(user, agent):
            against = _quoted(excerpt(one.corrected, wanted, MOST_OF_CORRECTION))
            corrected = f', corrected: "{against}"' if against else ""
            told.append(you_said(harmless(excerpt(agent, wanted, MOST_CHARS))) + corrected)
        return told

    def _topics(self, moment: Moment, own: bool = False) -> list[topics.Topic]:
        """The topics of this session; of a new one, unless only its `own` count, those of the last days."""
        since = stamp(moment.now - timedelta(days=2))
        scope = moment.scope
        if scope.session_id:
            last = self.context.exchanges.of_session(scope.session_id, scope.private, topics.WINDOW)
        else:
            last = []
        last = last or ([] if own else self._recent(moment, since, topics.WINDOW))
        return topics.track([(said(one).text, one.agent_response) for one in last])

    def _recent(self, moment: Moment, since: str = "", limit: int = 100) -> list[Exchange]:
        """The last exchanges in the scope's project, oldest first."""
        return self.context.exchanges.recent(moment.scope.private, since, limit, self.context.own_project)

    def _of_session(self, moment: Moment) -> list[TellingLine]:
        """What the session itself should keep in view: a topic that it cannot leave."""
        fixated = [one.label for one in self._topics(moment, own=True) if one.state == "fixated"]
        if not fixated:
            return []
        why = "nearly every exchange of the session is about it"
        return [TellingLine(f"Topics: {', '.join(fixated)} (fixated)", why)]

    def _closing(self, now_topics: Sequence[topics.Topic], moment: Moment) -> list[TellingLine]:
        lines = []
        since = stamp(moment.now - anchors.LIFETIME)
        held = anchors.find(self._recent(moment, since), moment.now)
        if held:
            shown = "; ".join(f'"{anchor.text}" ({anchor.kind})' for anchor in held[:SHOWN_ANCHORS])
            lines.append(TellingLine(f"Hold on to: {shown}"))
        if now_topics:
            named = ", ".join(f"{topic.label} ({topic.state})" for topic in now_topics)
            lines.append(TellingLine(f"Topics: {named}"))
        return lines

    # ---- after the answer ----

    def after_turn(self, exchange: Exchange, tool_calls: tuple[ToolCall, ...], moment: Moment) -> None:
        # Files too: a line of a page without a date is dated by the day on which it was first seen.
        self.context.retrieval.refresh(embed=self.context.embedder is not None)


def _tells(exchange: Exchange) -> bool:
    """Whether an exchange is worth a line at the next start: more than thanks, or a question with its answer."""
    message = said(exchange, teaches=False).lines
    return tells(message) or (only_asks(message) and bool(exchange.agent_response))


def _telling(pasted: str, wanted: set[str]) -> str:
    """The sentence of a pasted text that has most of the wanted words; nothing where none has any."""
    shared = {part: len(wanted.intersection(terms_of(part))) for part in sentences(pasted)}
    best = max(shared, key=lambda part: shared[part], default="")
    return excerpt(best, wanted, MOST_PASTED) if shared.get(best) else ""


def _answered_since(asked: Exchange, own: Sequence[Candidate], chosen: Sequence[Candidate]) -> str:
    """The mark of an answer that is only told with its question, where a later statement is about the same."""
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
    """Whether what was said then is what is said now, or a question all of whose words are in it."""
    words = set(terms_of(user)) if wanted else set()
    return bool(words) and (words == wanted or (user.rstrip().endswith("?") and words <= wanted))


def _newer(one: Candidate, recalled: Recalled) -> Newer | None:
    """What is newer than a recollection, where this block may have to quote it: what was said may not fit."""
    said_too = one.newer is not None and one.newer.source == "exchanges"
    return newer_of(one.newer) if one.newer and said_too else recalled.later(one)


def _side(passage: Passage) -> str:
    return PASTED if passage.speaker == "User" and passage.origin == QUOTED else passage.speaker


def _draft(lines: Sequence[TellingLine], hits: int, recalled: Recalled | None = None) -> Draft:
    """A draft of lines with their reasons."""
    return Draft(
        blocks.CONTINUITY,
        tuple(line.text for line in lines),
        hits=hits,
        notes=recalled.notes if recalled else (),
        reasons=tuple(line.reason for line in lines),
        statements=tuple(_stated(line.text) for line in lines),
        nearly=recalled.nearly if recalled else (),
        newer=tuple(line.newer for line in lines),
    )


def _stated(line: str) -> str:
    """What a line quotes of the user, where that is more than a few words, which may stand anywhere."""
    quoted = line.removeprefix(MENTIONED).partition('"')[0] if line.startswith(MENTIONED) else ""
    return quoted if len(quoted.split()) > FEW_QUOTED else line


def _elsewhere(exchange: Exchange, moment: Moment) -> str:
    """The project of an exchange, where it is another one than the scope's."""
    return exchange.project if exchange.project != moment.scope.project else ""


def _numbers_around(number: int) -> range:
    return range(max(number - 3, 1), number + 4)


def _around(exchange: Exchange, near: Mapping[int, Exchange]) -> str:
    """What was said about when an exchange was made: the topic of a talk is seldom in one sentence of it."""
    around = (near[number] for number in _numbers_around(exchange.id) if number in near)
    same = (one for one in around if one.session_id == exchange.session_id)
    return "\n".join(
        part
        for one in same
        for part in (
            said(one).text[:1_000],
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
    """The recollections that fit: each tier of age has its share, the newest tier first, the best first in each.

    What one tier leaves of its share goes to the next.
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
    for one in waiting:  # what older tiers did not use is there for what did not fit its own
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
    """A day relative to today: yesterday, last Tuesday, three weeks ago, in March 2025."""
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
    """'You were discussing the payment API migration yesterday, in project keystone.'; empty without a topic."""
    if not _is_a_thing(topic, text):
        return ""
    moment = when(day, today)
    where = f", in project {project}" if project else ""
    article = "the " if _contains(f"the {topic}", text) else ""
    return f"You were discussing {article}{topic} {moment}{where}."


def _is_a_thing(topic: str, text: str) -> bool:
    """Whether words that stood side by side are what was talked about: named with an article, as a name, or again."""
    if not topic or any(_contains(f"{article} {topic}", text) for article in _ARTICLES):
        return bool(topic)
    # The capital of a sentence's first word makes no name.
    inside = any(before[-1:].islower() or before.endswith(",") for before in text.split(f" {topic}")[:-1])
    is_name = topic[0].isupper() and inside
    return is_name or text.casefold().count(topic.casefold()) > 1


def _contains(phrase: str, text: str) -> bool:
    """Whether a text contains a phrase as whole words; cheaper than a pattern for every topic."""
    wanted, folded = phrase.casefold(), text.casefold()
    start = folded.find(wanted)
    while start >= 0:
        around = folded[start - 1 : start] + folded[start + len(wanted) : start + len(wanted) + 1]
        if not any(character.isalnum() or character == "_" for character in around):
            return True
        start = folded.find(wanted, start + 1)
    return False


@bounded(256 * 1024)  # each recollection is told several times over
def harmless(text: str) -> str:
    """What others or the agent said, to be quoted; what reads like an attack is left out: a page may dictate it."""
    from nanoclaw_memory.intake.suspicion import steering  # a cold hook has seldom anything to tell

    return LEFT_OUT if steering(text) else text


def you_said(text: str) -> str:
    """A quotation of the agent."""
    return f'You said: "{_quoted(text)}"'


def user_mentioned(text: str, own: bool = True) -> str:
    """A report of the user's words: "mentioned wanting …" where they said "I want …", else a quotation.

    Of a message that is not surely their `own` words alone it says so: a paste has no form that always shows.
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
    """A quotation of a message that a program brought."""
    return f'Came from {origin}, not from the user: "{_quoted(text)}"'


def user_pasted(text: str) -> str:
    """A quotation of what the user only quoted."""
    return f'User pasted, not in their own words: "{_quoted(text)}"'


def _quoted(text: str) -> str:
    return visible_line(text).replace('"', "'")
