"""Recall for a message, asked once for all plugins of a turn: passages of every kind behind one gate."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.errors import StoreError
from nanoclaw_memory.intake.authorship import asking_words
from nanoclaw_memory.intake.memory_requests import asks_to_forget
from nanoclaw_memory.intake.secret_values import lacks_its_value
from nanoclaw_memory.retrieval import coming_days
from nanoclaw_memory.retrieval.gate import ANSWERED, is_conceivable
from nanoclaw_memory.retrieval.hits import newer_of
from nanoclaw_memory.retrieval.plain_question import plain_question
from nanoclaw_memory.retrieval.prepare import body_of
from nanoclaw_memory.retrieval.relevance import names_nothing
from nanoclaw_memory.retrieval.searcher import Question
from nanoclaw_memory.store.currency import EARLIER
from nanoclaw_memory.workspace.policies import POLICIES

if TYPE_CHECKING:
    from nanoclaw_memory.retrieval.candidates import Candidate
    from nanoclaw_memory.retrieval.gate import Helpful, Verdict
    from nanoclaw_memory.store.passage_search import StoredPassage
    from nanoclaw_memory.turn.context import PluginContext
    from nanoclaw_memory.turn.plugin import Moment
    from nanoclaw_memory.types import Newer, Passage

# Chosen with bench/needs.py on conversations that the weights were not trained on.
OPEN = 0.37  # minimal probability that a message needs memory for anything to be injected
OPEN_BY_WORDS = 0.34  # the same without vectors
WORTH, WORTH_BY_WORDS = 0.04, 0.035  # minimal chance that a passage is the first that answers, to be injected
ANSWERS = 0.5  # share of its probability by which a helpful passage makes further ones superfluous
SHARE = 0.15  # minimal share of the best passage's probability
SURE = 0.8  # probability of the best passage from which on, with the model, others need a larger share
SHARE_BESIDE_SURE = 0.4
MOST_OF_DAYS = 10  # maximal passages when the message asks about certain days
MOST = 6  # maximal passages of one turn
NEARLY = 5  # rejected passages that are reported
AS_GOOD = 0.5  # minimal share of the best statement's probability for a statement newer than an old answer
SUPERSEDED = "superseded"
INJECTED_ELSEWHERE = (
    "memory/active-context",
    POLICIES,
)  # injected at the session's start, or by the policy plugin


class Recalled(msgspec.Struct, frozen=True):
    """The passages for a turn in the order of display, and what was decided about the others."""

    chosen: tuple[Candidate, ...]
    probability: float  # that the message needs memory
    nearly: tuple[str, ...]
    notes: tuple[str, ...]
    said: tuple[Candidate, ...] = ()  # passages of shared chats; shown after the chosen ones, marked
    least: float = OPEN  # the probability from which on anything is injected
    plans: bool = False  # they are what is planned for the days that the message asks about

    def later(self, one: Candidate) -> Newer | None:
        """Return the newer statement on a chosen passage's subject, to be quoted unless it is chosen itself."""
        newer = one.newer
        if newer is None or lacks_its_value(newer.passage.text):
            return None
        shown = any(newer.id == other.stored.id for other in self.chosen)
        return None if shown else newer_of(newer)

    @property
    def open(self) -> bool:
        """Return whether the message needs memory at all."""
        return self.probability >= self.least

    @property
    def silence(self) -> str:
        """Return why nothing is injected."""
        if not self.open:
            return f"the message needs no memory (probability {self.probability:.2f}, needed {self.least})"
        return "nothing that helps is of this kind"


class Recaller:
    """Search once per message; the plugins of the turn share the result."""

    def __init__(self, context: PluginContext) -> None:
        self._context = context
        self._last: tuple[tuple[str, str, bool, bool], Recalled] | None = None
        self.facts_told: frozenset[tuple[str, int]] = (
            frozenset()
        )  # kind and number of the facts in this turn's block

    @property
    def asked(self) -> bool:
        """Return whether this turn has searched already, which also refreshed the index."""
        return self._last is not None

    def recall(self, message: str, moment: Moment, gated: bool = True) -> Recalled:
        """Return what helps with a message: nothing if it needs no memory, unless called with `gated=False`."""
        key = (message, moment.scope.session_id, moment.explain, gated)
        if self._last is None or self._last[0] != key:
            self._last = (key, self._ask_own(message, moment, gated))
        return self._last[1]

    def _ask_own(self, message: str, moment: Moment, gated: bool) -> Recalled:
        """Ask with the person's own words; if these need nothing, with what they pasted too."""
        own = asking_words(message)
        if not own or own == message.strip():
            return self._ask(message, moment, gated, own)
        found = self._ask(own, moment, gated, own)
        return found if found.chosen else self._ask(message, moment, gated, own)

    def _ask(self, message: str, moment: Moment, gated: bool, own: str) -> Recalled:
        context, scope = self._context, moment.scope
        asked = plain_question(message)
        cold, need = context.embedder is None, max(map(context.need, {message, asked}))
        by_words = (context.without_embedder,) if cold else ()
        when = coming_days.when(own, moment.now.date())
        if gated and names_nothing(asked) and not (when.days or when.latest):
            return Recalled((), 0.0, (), by_words)  # the conversation itself is all that it needs
        if gated and not is_conceivable(need, asked) and not (moment.explain or when.only() or when.latest):
            return Recalled((), 0.0, (), by_words)  # the gate stays closed whatever is found
        after = context.turns.compacted_up_to(scope.session_id) if scope.session_id else 0
        question = Question(
            text=asked,
            limit=MOST_OF_DAYS,
            today=moment.now.date(),
            fast=cold or not own,  # the vector of a log is near to anything
            wanted=context.retrieval.for_turn(scope.session_id, after),
            deadline=moment.deadline,
            project=scope.project,
            searched=False,
            own=asked if own == message.strip() else own,
        )
        try:
            found = context.retrieval.consider(question, need)
        except StoreError as error:  # facts can be looked up all the same
            return Recalled((), need, (), (error.message,))
        verdict = found.verdict
        helpful = filter(self._is_new_to_turn, verdict.helpful)
        verdict = replace(verdict, helpful=tuple(one for one in helpful if not _is_wish_to_forget(one)))
        least = OPEN_BY_WORDS if question.fast else OPEN
        picked = _picked(verdict, cold) if verdict.probability >= least or not gated else []
        known = {one.candidate.stored.id for one in picked}
        bound = [
            one
            for one in filter(self._is_new_to_turn, found.binding)
            if one.candidate.stored.id not in known and not _is_wish_to_forget(one)
        ]
        in_window = (
            replace(question, wanted=context.retrieval.for_turn("", 0)) if scope.session_id else question
        )
        ordered = self._in_order(in_window, [*bound, *picked], verdict.helpful)
        window = _Window(scope.session_id, after)
        chosen = tuple(
            one
            for one in ordered
            if not (
                window.has(one.stored)
                or window.overtakes(one)
                or lacks_its_value(
                    one.stored.passage.text
                )  # a newer statement that was put beside an older one
            )
        )
        return Recalled(
            chosen,
            max(verdict.probability, least) if bound else verdict.probability,
            _nearly(verdict, chosen) if moment.explain else (),
            (*found.degraded, *by_words),
            self._from_shared_chats(question, need, MOST - len(chosen)),
            least,
            when.agenda,
        )

    def _in_order(
        self, question: Question, picked: Sequence[Helpful], helpful: Sequence[Helpful]
    ) -> tuple[Candidate, ...]:
        """Order the picked passages; for an old answer, newer statements are looked for among all that may help."""
        answered = any(one.candidate.parts.get(ANSWERED) for one in picked)
        best = {
            one.candidate.stored.id: one.candidate for one in (*picked, *(helpful[:MOST] if answered else ()))
        }
        pool = [one.candidate for one in helpful]
        shown = self._context.retrieval.searcher.in_order(question, list(best.values()), pool)
        left = best.keys() - {one.candidate.stored.id for one in picked}
        left -= {one.newer.id for one in shown if one.newer and one.stored.id not in left}
        chosen = tuple(one for one in shown if one.mark != SUPERSEDED and one.stored.id not in left)
        for one in chosen:
            answer = one.stored.passage
            if one.parts.get(ANSWERED) and any(
                _is_later_statement(answer, other.stored.passage) for other in chosen
            ):
                one.mark = one.mark or EARLIER
        return chosen

    def _from_shared_chats(self, question: Question, need: float, left: int) -> tuple[Candidate, ...]:
        """Return what shared chats contribute to a private message, if there is room."""
        chats = self._context.shared_retrieval
        if chats is None or left <= 0:
            return ()
        wanted = replace(chats.filter_for(self._context.scope), left_out=("lessons",), statuses=("",))
        question = replace(question, wanted=wanted)
        try:
            verdict = chats.consider(question, need).verdict
        except StoreError:  # private memory answers without it
            return ()
        least = OPEN_BY_WORDS if question.fast else OPEN
        picked = _picked(verdict, question.fast)[:left] if verdict.probability >= least else []
        shown = chats.searcher.in_order(question, [one.candidate for one in picked])
        return tuple(one for one in shown if one.mark != SUPERSEDED)

    def _is_new_to_turn(self, one: Helpful) -> bool:
        """Return whether a passage tells something, and is injected nowhere else: as a fact, a policy, at the start."""
        stored = one.candidate.stored
        if lacks_its_value(stored.passage.text):
            return False
        fact = (stored.passage.kind, stored.passage.number)
        return fact not in self.facts_told and not stored.path.startswith(INJECTED_ELSEWHERE)


def _is_wish_to_forget(one: Helpful) -> bool:
    """Return whether a person said this to have something forgotten: to repeat it would be the opposite."""
    passage = one.candidate.stored.passage
    return passage.speaker == "User" and asks_to_forget(body_of(passage))


class _Window(msgspec.Struct, frozen=True):
    """What the model still has of the conversation itself: the session's exchanges after a number."""

    session: str
    after: int

    def has(self, stored: StoredPassage) -> bool:
        """Return whether a passage was said in it."""
        said = stored.passage
        return bool(self.session) and said.session == self.session and said.number > self.after

    def overtakes(self, one: Candidate) -> bool:
        """Return whether something said in it certainly supersedes a passage."""
        return one.newer is not None and one.gives_way and self.has(one.newer)


def _picked(verdict: Verdict, cold: bool) -> list[Helpful]:
    """Choose the passages that are worth their tokens: the surer those before it, the less likely is it that another
    is needed, above all beside one that surely helps (which a `cold` process cannot tell well enough).
    """
    if verdict.about["only days"]:  # the message asks what was done then, and nothing else
        return [one for one in verdict.helpful if one.parts["of days only"]][:MOST_OF_DAYS]
    best = verdict.helpful[:MOST]
    # The old answer to the same message must not raise the threshold for newer statements.
    first = next((one for one in best if not one.candidate.parts.get(ANSWERED)), None)
    share = SHARE_BESIDE_SURE if first and not cold and first.probability >= SURE else SHARE
    least = share * first.probability if first else 0.0
    worth, unanswered = WORTH_BY_WORDS if cold else WORTH, 1.0
    picked = [*best[:1]]
    for before, one in pairwise(best):
        if not before.candidate.parts.get(ANSWERED):
            unanswered *= 1 - ANSWERS * before.probability
        if one is first or (one.probability >= least and one.probability * unanswered >= worth):
            picked.append(one)
    if first is None or first is best[0]:
        return picked
    answer = best[0].candidate.stored.passage
    since = (one for one in best if one not in picked and one.probability >= AS_GOOD * first.probability)
    return picked + [one for one in since if _is_later_statement(answer, one.candidate.stored.passage)]


def _is_later_statement(answer: Passage, other: Passage) -> bool:
    """Return whether a passage is the person's statement, not a question, made after an answer."""
    later = other.kind == "turn" and other.number > answer.number
    return later and other.speaker == "User" and "?" not in other.text


def _nearly(verdict: Verdict, chosen: Sequence[Candidate]) -> tuple[str, ...]:
    known = {one.stored.id for one in chosen}
    left = [one for one in verdict.helpful if one.candidate.stored.id not in known][:NEARLY]
    return tuple(
        f"{one.candidate.stored.passage.text[:200]} ({one.candidate.stored.path}; helps {one.probability:.2f})"
        for one in left
    )
