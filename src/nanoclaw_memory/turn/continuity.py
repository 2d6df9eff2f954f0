"""Continuity (order 10): inject exchanges of earlier sessions that a message recalls, none far below the best."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta

from nanoclaw_memory import tokens
from nanoclaw_memory.clock import moment_of, stamp
from nanoclaw_memory.conversations import anchors, topics
from nanoclaw_memory.conversations.archive import move_oldest
from nanoclaw_memory.conversations.service import excerpt
from nanoclaw_memory.retrieval.exchange_search import Recollection
from nanoclaw_memory.retrieval.relevance import Evidence
from nanoclaw_memory.store.keywords import terms_of
from nanoclaw_memory.text import one_line
from nanoclaw_memory.turn import blocks
from nanoclaw_memory.turn.context import PluginContext
from nanoclaw_memory.turn.plugin import Answer, Draft, Moment, Plugin, Silence
from nanoclaw_memory.types import Exchange, ToolCall

MOST_CHARS = 800  # of one recollection
RECENT, MID = timedelta(days=7), timedelta(days=60)
SHARES = (0.5, 0.3, 0.2)  # of the budget: recent, mid, old; what one tier leaves goes to the next
SHOWN_ANCHORS = 3
SHOWN_NEARLY = 3
FLOOR = 0.4  # share of the best recollection's score below which another is not worth its tokens


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
        scope = moment.scope
        after = self.context.turns.compacted_up_to(scope.session_id) if scope.session_id else 0
        now_topics = self._topics(moment)
        recalled = self.context.exchange_search.recollect(
            message,
            moment.now,
            session=scope.session_id,
            after=after,
            topic_words=[word for topic in now_topics for word in topic.label.split("-")],
            project=scope.project,
            fast=self.context.embedder is None,
            deadline=moment.deadline,
        )
        ranked = recalled.found
        cold = (self.context.without_embedder,) if self.context.embedder is None else ()
        notes = (*recalled.notes, *cold)
        if not ranked:
            return Silence("nothing that was said before matches", notes)
        wanted, evidence = set(terms_of(message)), _described(recalled.evidence)
        if not self.own.always and not recalled.evidence.enough:
            nearly = self._nearly(ranked, wanted, evidence) if moment.explain else ()
            return Silence("what was said before is about something else", notes, nearly)
        least = FLOOR * ranked[0].score
        chosen = [one for one in ranked[: self.own.max_recollections] if one.score >= least]
        lines, used = self._lines(chosen, wanted, moment, evidence)
        if not used:
            return Silence(f"nothing fits the {moment.budget} tokens left", notes)
        lines += self._closing(now_topics, moment)
        left = ranked[len(chosen) :] if moment.explain else []
        return _draft(lines, used, notes, self._nearly(left, wanted, f"under {least:.2f} or over the limit"))

    def session_start(self, moment: Moment) -> Answer:
        """How the last session in this project ended; after a compaction, what this one was about."""
        recent = self._recent(moment, limit=3)
        if not recent:
            return Silence("nothing was said yet")
        last = [Recollection(one, 1.0) for one in recent[-2:]]
        lines, used = self._lines(last, set(), moment, "said last")
        return _draft([*lines, *self._closing(self._topics(moment), moment)], used)

    def _nearly(self, found: Sequence[Recollection], wanted: set[str], why: str) -> tuple[str, ...]:
        told = ((one.score, self._told(one.exchange, wanted)) for one in found[:SHOWN_NEARLY])
        return tuple(f"{' '.join(lines)} (score {score:.2f}; {why})" for score, lines in told if lines)

    def _lines(
        self, chosen: Sequence[Recollection], wanted: set[str], moment: Moment, why: str
    ) -> tuple[list[tuple[str, str]], int]:
        """The recollections within the budget, told oldest first, each line with its reason; and their number."""
        limit = min(self.own.context_budget, moment.budget)
        kept = allot(chosen, moment.now, limit, lambda one: self._told(one.exchange, wanted))
        kept.sort(key=lambda one: one.exchange.id)
        lines: list[tuple[str, str]] = []
        today = moment.now.date()
        before: tuple[str, date] | None = None
        topic = ""
        near = self._near(kept)
        later = self.context.retrieval.overtaken("exchanges", [one.exchange.id for one in kept])
        for one in kept:
            exchange = one.exchange
            day = moment_of(exchange.timestamp).astimezone(moment.now.tzinfo).date()
            if before != (exchange.session_id, day):
                text = _around(exchange, near)
                topic = topics.phrase(text)
                elsewhere = exchange.project if exchange.project != moment.scope.project else ""
                lines.append((discussing(topic, text, day, today, elsewhere), ""))
                before = (exchange.session_id, day)
            reason = f"score {one.score:.2f}; {why}"
            known = f"; {later[exchange.id][1].quoted(later[exchange.id][0])}" if exchange.id in later else ""
            told = [f"{line} ({day.isoformat()}{known})" for line in self._told(exchange, wanted, topic)]
            lines += [(line, reason) for line in told]
        return lines, len(kept)

    def _near(self, kept: Sequence[Recollection]) -> dict[int, Exchange]:
        """The recollections and what was said about when they were."""
        ids = {number for one in kept for number in _numbers_around(one.exchange.id)}
        return self.context.exchanges.get(sorted(ids))

    @staticmethod
    def _told(exchange: Exchange, wanted: set[str], topic: str = "") -> list[str]:
        both = len(exchange.user_message) + len(exchange.agent_response)
        fits = both <= MOST_CHARS
        half = MOST_CHARS // 2
        told = []
        if exchange.user_message and not topics.is_only(exchange.user_message, topic):
            user = exchange.user_message if fits else excerpt(exchange.user_message, wanted, half)
            told.append(user_mentioned(user))
        if exchange.agent_response:
            agent = exchange.agent_response if fits else excerpt(exchange.agent_response, wanted, half)
            told.append(you_said(agent))
        return told

    def _topics(self, moment: Moment) -> list[topics.Topic]:
        since = stamp(moment.now - timedelta(days=2))
        scope = moment.scope
        if scope.session_id:
            last = self.context.exchanges.of_session(scope.session_id, scope.private, topics.WINDOW)
        else:
            last = []
        last = last or self._recent(moment, since, topics.WINDOW)
        return topics.track([f"{one.user_message}\n{one.agent_response}" for one in last])

    def _recent(self, moment: Moment, since: str = "", limit: int = 100) -> list[Exchange]:
        """The last exchanges in the scope's project, oldest first."""
        return self.context.exchanges.recent(moment.scope.private, since, limit, self.context.own_project)

    def _closing(self, now_topics: Sequence[topics.Topic], moment: Moment) -> list[tuple[str, str]]:
        lines = []
        since = stamp(moment.now - anchors.LIFETIME)
        held = anchors.find(self._recent(moment, since), moment.now)
        if held:
            shown = "; ".join(f'"{anchor.text}" ({anchor.kind})' for anchor in held[:SHOWN_ANCHORS])
            lines.append((f"Hold on to: {shown}", ""))
        if now_topics:
            named = ", ".join(f"{topic.label} ({topic.state})" for topic in now_topics)
            lines.append((f"Topics: {named}", ""))
        return lines

    # ---- after the answer ----

    def after_turn(self, exchange: Exchange, tool_calls: tuple[ToolCall, ...], moment: Moment) -> None:
        # Files too: a line of a page without a date is dated by the day on which it was first seen.
        self.context.retrieval.refresh(embed=self.context.embedder is not None)
        over = self.context.exchanges.count() - self.own.max_exchanges
        if over > 0:
            move_oldest(self.context.exchanges, self.context.home.workspace(self.context.scope.group), over)


def _draft(
    lines: Sequence[tuple[str, str]], hits: int, notes: tuple[str, ...] = (), nearly: tuple[str, ...] = ()
) -> Draft:
    """A draft of lines with their reasons."""
    texts, reasons = zip(*lines, strict=True) if lines else ((), ())
    return Draft(blocks.CONTINUITY, texts, hits=hits, notes=notes, reasons=reasons, nearly=nearly)


def _described(evidence: Evidence) -> str:
    """What speaks for the best recollection."""
    return f"relevance {evidence.relevance:.2f}: words {evidence.covered:.2f}, meaning {evidence.meaning:.2f}"


def _numbers_around(number: int) -> range:
    return range(max(number - 3, 1), number + 4)


def _around(exchange: Exchange, near: Mapping[int, Exchange]) -> str:
    """What was said about when an exchange was made: the topic of a talk is seldom in one sentence of it."""
    around = (near[number] for number in _numbers_around(exchange.id) if number in near)
    same = (one for one in around if one.session_id == exchange.session_id)
    return "\n".join(f"{one.user_message[:1_000]}\n{one.agent_response[:1_000]}" for one in same)


def allot(
    chosen: Sequence[Recollection],
    now: datetime,
    budget: int,
    told: Callable[[Recollection], list[str]],
) -> list[Recollection]:
    """The recollections that fit: each tier of age has its share, the newest tier first, the best first in each."""
    tiers: list[list[Recollection]] = [[], [], []]
    for one in chosen:
        age = now - moment_of(one.exchange.timestamp)
        tiers[0 if age <= RECENT else 1 if age <= MID else 2].append(one)
    kept: list[Recollection] = []
    left = 0.0
    waiting: list[Recollection] = []
    for share, tier in zip(SHARES, tiers, strict=True):
        left += share * budget
        for one in tier:
            cost = sum(tokens.estimate(line) for line in told(one)) + 12
            if cost <= left:
                kept.append(one)
                left -= cost
            else:
                waiting.append(one)
    for one in waiting:  # what older tiers did not use is there for what did not fit its own
        cost = sum(tokens.estimate(line) for line in told(one)) + 12
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
_FIRST = re.compile(rf"^(?:I|We) ({'|'.join(_PROGRESSIVE)}) (?P<what>[^.!?]+)[.!]?\Z", re.IGNORECASE)
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
    """'You were discussing the payment API migration yesterday, in project keystone.'"""
    moment = when(day, today)
    where = f", in project {project}" if project else ""
    if not topic:
        return (
            f"You were talking {moment}{where}."
            if moment.startswith(("earlier", "yest", "last", "on"))
            else f"You talked {moment}{where}."
        )
    article = "the " if _contains(f"the {topic}", text) else ""
    return f"You were discussing {article}{topic} {moment}{where}."


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


def you_said(text: str) -> str:
    """A quotation of the agent."""
    return f'You said: "{_quoted(text)}"'


def user_mentioned(text: str) -> str:
    """A report of the user's words: "mentioned wanting …" where they said "I want …", else a quotation."""
    plain = one_line(text)
    match = _FIRST.match(plain)
    if match and '"' not in plain:
        what = re.sub(r"\bmy\b", "their", match["what"])
        return f"User mentioned {_PROGRESSIVE[match[1].casefold()]} {what}."
    return f'User mentioned: "{_quoted(plain)}"'


def _quoted(text: str) -> str:
    return one_line(text).replace('"', "'")
