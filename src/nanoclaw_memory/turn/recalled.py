"""What helps with a message, asked once for all plugins of a turn: passages of every kind behind one gate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.errors import StoreError
from nanoclaw_memory.retrieval import dates
from nanoclaw_memory.retrieval.gate import ANSWERED, CONCEIVABLE
from nanoclaw_memory.retrieval.hits import newer_of
from nanoclaw_memory.retrieval.searcher import Question
from nanoclaw_memory.store.currency import EARLIER
from nanoclaw_memory.workspace.policies import POLICIES

if TYPE_CHECKING:
    from nanoclaw_memory.retrieval.candidates import Candidate
    from nanoclaw_memory.retrieval.gate import Helpful, Verdict
    from nanoclaw_memory.turn.context import PluginContext
    from nanoclaw_memory.turn.plugin import Moment
    from nanoclaw_memory.types import Newer, Passage

# Chosen by bench/needs.py on lives that the weights were not learnt from.
OPEN = 0.4  # probability that a message needs memory from which anything is injected
SHARE = 0.15  # of the best passage's probability below which another is not worth its tokens
MOST_OF_DAYS = 10  # passages of the days asked about
LEAST = 0.03  # probability below which a passage is never worth its tokens
MOST = 6  # passages of one turn
SURELY_NEEDED = 0.8  # probability that a message needs memory below which it gets fewer
FEW = 5
NEARLY = 5  # passages reported as nearly chosen
AS_GOOD = 0.5  # of the best statement's probability, from which one that is newer than an old answer is shown beside it
SUPERSEDED = "superseded"
TOLD_ELSEWHERE = (
    "memory/active-context",
    POLICIES,
)  # at the start; by the plugin that knows which policy is met


class Recalled(msgspec.Struct, frozen=True):
    """The passages for a turn in the order in which they are shown, and what was decided about the others."""

    chosen: tuple[Candidate, ...]
    probability: float  # that the message needs memory
    nearly: tuple[str, ...]
    notes: tuple[str, ...]
    said: tuple[Candidate, ...] = ()  # what shared chats say to it; shown after what is chosen, and marked

    def later(self, one: Candidate) -> Newer | None:
        """What is newer on a chosen passage's subject, to be quoted unless it is shown itself."""
        newer = one.newer
        shown = newer is None or any(newer.id == other.stored.id for other in self.chosen)
        return None if newer is None or shown else newer_of(newer)

    @property
    def open(self) -> bool:
        """Whether the message needs memory at all."""
        return self.probability >= OPEN

    @property
    def silence(self) -> str:
        """Why nothing is injected."""
        if not self.open:
            return f"the message needs no memory (probability {self.probability:.2f}, needed {OPEN})"
        return "nothing that helps is of this kind"


class Recaller:
    """Asks the index once a message; the plugins of the turn share the answer."""

    def __init__(self, context: PluginContext) -> None:
        self._context = context
        self._last: tuple[tuple[str, str, bool, bool], Recalled] | None = None
        self.facts_told: frozenset[tuple[str, int]] = (
            frozenset()
        )  # kind and number of those in this turn's block

    @property
    def asked(self) -> bool:
        """Whether this turn has asked the index already, which took in what changed."""
        return self._last is not None

    def recall(self, message: str, moment: Moment, gated: bool = True) -> Recalled:
        """What helps with a message: nothing where it needs nothing, unless it is asked without the gate."""
        key = (message, moment.scope.session_id, moment.explain, gated)
        if self._last is None or self._last[0] != key:
            self._last = (key, self._ask(message, moment, gated))
        return self._last[1]

    def _ask(self, message: str, moment: Moment, gated: bool) -> Recalled:
        context, scope = self._context, moment.scope
        cold, need = context.embedder is None, context.need(message)
        by_words = (context.without_embedder,) if cold else ()
        when = dates.when(message, moment.now.date())
        if gated and need < CONCEIVABLE and not (moment.explain or when.only() or when.latest):
            return Recalled((), 0.0, (), by_words)  # whatever is found, the gate stays closed
        after = context.turns.compacted_up_to(scope.session_id) if scope.session_id else 0
        question = Question(
            text=message,
            limit=MOST_OF_DAYS,
            today=moment.now.date(),
            fast=cold,
            wanted=context.retrieval.for_turn(scope.session_id, after),
            deadline=moment.deadline,
            project=scope.project,
            searched=False,
        )
        try:
            found = context.retrieval.consider(question, need)
        except StoreError as error:  # facts can be looked up all the same
            return Recalled((), need, (), (error.message,))
        verdict = found.verdict
        verdict = replace(verdict, helpful=tuple(filter(self._untold, verdict.helpful)))
        picked = _picked(verdict) if verdict.probability >= OPEN or not gated else []
        known = {one.candidate.stored.id for one in picked}
        bound = [one for one in filter(self._untold, found.binding) if one.candidate.stored.id not in known]
        chosen = self._in_order(question, [*bound, *picked], verdict.helpful)
        return Recalled(
            chosen,
            max(verdict.probability, OPEN) if bound else verdict.probability,
            _nearly(verdict, chosen) if moment.explain else (),
            (*found.degraded, *by_words),
            self._said(question, need, MOST - len(chosen)),
        )

    def _in_order(
        self, question: Question, picked: Sequence[Helpful], helpful: Sequence[Helpful]
    ) -> tuple[Candidate, ...]:
        """The picked passages in order; what is newer than an answer is looked for among all that may help."""
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
            if one.parts.get(ANSWERED) and any(_said_after(answer, other.stored.passage) for other in chosen):
                one.mark = one.mark or EARLIER
        return chosen

    def _said(self, question: Question, need: float, left: int) -> tuple[Candidate, ...]:
        """What shared chats say to a message in private, as far as there is room."""
        chats = self._context.shared_retrieval
        if chats is None or left <= 0:
            return ()
        wanted = replace(chats.filter_for(self._context.scope), left_out=("lessons",), statuses=("",))
        question = replace(question, wanted=wanted)
        try:
            verdict = chats.consider(question, need).verdict
        except StoreError:  # private memory answers without it
            return ()
        picked = _picked(verdict)[:left] if verdict.probability >= OPEN else []
        shown = chats.searcher.in_order(question, [one.candidate for one in picked])
        return tuple(one for one in shown if one.mark != SUPERSEDED)

    def _untold(self, one: Helpful) -> bool:
        """Whether a passage is none of this turn's facts, of the focus that sessions start with, or of the policies."""
        stored = one.candidate.stored
        fact = (stored.passage.kind, stored.passage.number)
        return fact not in self.facts_told and not stored.path.startswith(TOLD_ELSEWHERE)


def _picked(verdict: Verdict) -> list[Helpful]:
    """The passages that are worth their tokens, the more of them the surer it is that any are needed."""
    if verdict.about["only days"]:  # what was done then is asked, and nothing else
        return [one for one in verdict.helpful if one.parts["of days only"]][:MOST_OF_DAYS]
    best = verdict.helpful[: MOST if verdict.probability >= SURELY_NEEDED else FEW]
    # What the same message was answered before sets no standard for what was said since.
    first = next((one for one in best if not one.candidate.parts.get(ANSWERED)), None)
    least = max(SHARE * first.probability, LEAST) if first else 0.0
    picked = [*best[:1], *(one for one in best[1:] if one is first or one.probability >= least)]
    if first is None or first is best[0]:
        return picked
    answer = best[0].candidate.stored.passage
    since = (
        one
        for one in verdict.helpful[:MOST]
        if one not in picked and one.probability >= AS_GOOD * first.probability
    )
    return picked + [one for one in since if _said_after(answer, one.candidate.stored.passage)]


def _said_after(answer: Passage, other: Passage) -> bool:
    """Whether a person said something after an answer; what they ask is none."""
    later = other.kind == "turn" and other.number > answer.number
    return later and other.speaker == "User" and "?" not in other.text


def _nearly(verdict: Verdict, chosen: Sequence[Candidate]) -> tuple[str, ...]:
    known = {one.stored.id for one in chosen}
    left = [one for one in verdict.helpful if one.candidate.stored.id not in known][:NEARLY]
    return tuple(
        f"{one.candidate.stored.passage.text[:200]} ({one.candidate.stored.path}; helps {one.probability:.2f})"
        for one in left
    )
