"""Search one index: candidates are fused, boosted by neighbours, aged, compared, and judged as a whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import date, tzinfo

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.errors import CorruptDatabase, StoreError
from nanoclaw_memory.intake.secret_values import MARKER
from nanoclaw_memory.retrieval import coming_days, dates, gate, ranking, relevance
from nanoclaw_memory.retrieval.candidates import BINDS, Candidate, Candidates, Pool
from nanoclaw_memory.retrieval.constraints import STATED, read_clauses, stated_constraint
from nanoclaw_memory.retrieval.indexer import Index
from nanoclaw_memory.retrieval.ordering import in_order
from nanoclaw_memory.retrieval.pairing import POOLED, Asked
from nanoclaw_memory.retrieval.prepare import body_of, without_label
from nanoclaw_memory.retrieval.reranking import Reranking
from nanoclaw_memory.retrieval.stated_parts import only_asks, stated_in
from nanoclaw_memory.retrieval.statement_pairs import FUNCTION_WORDS
from nanoclaw_memory.store.keywords import terms_of
from nanoclaw_memory.store.passage_search import PassageFilter, StoredPassage
from nanoclaw_memory.text import words
from nanoclaw_memory.workspace.paths import ARCHIVE, WORKING_MEMORY

PERMANENT = 0.8  # log lines of this importance never age
CONSIDERED = 60  # candidates loaded for ageing and reranking
FIRST_PLACES = 10  # half of these places go to the days asked about
JUDGED = 5  # best results in which the words of the question are looked for
_PREFERRED = {"entry": 0, "turn": 2}  # which kind of the same statement is kept: lowest first, 1 for others
_COPIED = 3  # the rank of a copy in working memory
A_QUESTION = 0.6  # factor for a question in a captured conversation compared with an answer
MOST_BINDING = 6  # maximal constraints in one turn
_SAID = ("turn", "line", "item", "entry", "section")  # kinds of passages in which a person states something
SHORTEST = 3  # minimal words of a text that another one contains to be the same statement


class Question(msgspec.Struct, frozen=True):
    """A question and how to search for it."""

    text: str
    limit: int
    today: date
    fast: bool = False
    explain: bool = False
    mmr: bool = False
    rerank: bool = False
    wanted: PassageFilter | None = None
    deadline: float | None = None
    names_known: bool = False  # another index contains the names in the question
    project: str = ""  # the person's current project, whose passages are preferred
    searched: bool = True  # an explicit search; a message of a conversation may be about anything
    own: str | None = None  # the person's own words of a text with a paste, in which no day is asked about

    @property
    def dated(self) -> str:
        """Return the text whose days are asked about: a log names days too."""
        return self.text if self.own is None else self.own


class Ranking(msgspec.Struct, frozen=True):
    """Passages, best first, the evidence for them as a whole, and what could not take part."""

    found: list[Candidate]
    evidence: relevance.Evidence
    degraded: list[str]


class GateResult(msgspec.Struct, frozen=True):
    """What may help with a message, and what could not take part."""

    verdict: gate.Verdict
    degraded: list[str]
    binding: tuple[gate.Helpful, ...] = ()  # constraints of the person on what the message asks for


class Searcher:
    """Searches one index."""

    def __init__(
        self,
        index: Index,
        half_life: int,
        weights: tuple[float, float] | None = None,
        expand: Callable[[str], list[str]] | None = None,
        reranking: Reranking | None = None,
        zone: tzinfo | None = None,
    ) -> None:
        self.index = index
        self._half_life = half_life
        self._reranking = reranking
        self.candidates = Candidates(index, weights, expand, zone)

    def search(self, question: Question) -> Ranking:
        """Return what answers the question; nothing if no passage does."""
        degraded = self._refresh(question)
        with self.index.passages.search.settled():
            return self._answered(question, self._rank(question, degraded))

    def _answered(self, question: Question, ranked: Ranking) -> Ranking:
        if not ranked.evidence.enough:
            return Ranking([], ranked.evidence, ranked.degraded)
        found = _distinct(question.text, _answering(question.text, ranked.found))
        if question.mmr:
            found = _spread(found, question.limit)
        found = _masked_last(self.in_order(question, found))
        best = found[0].score if found else 0.0
        sure = ranked.evidence.relevance
        for candidate in found:
            candidate.score = sure * candidate.score / best if best > 0 else 0.0
        return Ranking([one for one in found if one.score >= 0.00005], ranked.evidence, ranked.degraded)

    def in_order(
        self, question: Question, ranked: Sequence[Candidate], pool: Sequence[Candidate] = ()
    ) -> list[Candidate]:
        """Return at most the limit of candidates in display order, older statements marked and after the newer.

        Later statements are looked for among the best of the `pool` that the candidates were chosen from.
        """
        if not ranked:
            return []
        when = coming_days.when(question.dated, question.today)
        of_then = when.days is not None and when.days.last < question.today
        # The number of a day is no value that an older statement could be asked for by.
        text = when.rest or question.text if when.agenda else question.text
        with self.index.passages.search.settled():
            visible = self.index.passages.search.selection(question.wanted) if question.wanted else None
            best = (pool or ranked)[:POOLED]
            likeness = None if question.fast else self.candidates.likeness([one.stored.id for one in best])
            asked = Asked(text, best, likeness, question.searched)
            return in_order(self.index.currency, ranked, asked, question.limit, visible, of_then)

    def rank(self, question: Question) -> Ranking:
        """Return every candidate in order, and the evidence for the best."""
        degraded = self._refresh(question)
        with self.index.passages.search.settled():
            return self._rank(question, degraded)

    def _rank(self, question: Question, degraded: list[str]) -> Ranking:
        when = coming_days.when(question.dated, question.today)
        pool = self.candidates.pool(question.text, question.fast, when, question.wanted, question.deadline)
        found = self._ranked(question, pool)
        if question.rerank and self._reranking is not None:
            found, said = self._reranking.of(question.text, found, pool.places, self.index.passages)
            pool.degraded += said
        # Missing vectors are reported once: by the embedding that failed, if one did.
        known = any(line.startswith("vectors:") for line in degraded)
        degraded += [line for line in pool.degraded if not (known and line.startswith("vectors:"))]
        texts = [_context(candidate, found) for candidate in found[:JUDGED]]
        return Ranking(found, self._evidence(question, when, pool, texts), degraded)

    def consider(self, question: Question, need: float) -> GateResult:
        """Return what may help with a message, most helpful first, and how probable it is that anything does."""
        degraded = self._refresh(
            question, every=True
        )  # from every source: other parts of the turn need not repeat it
        when = coming_days.when(question.dated, question.today)
        pool = self.candidates.pool(question.text, question.fast, when, question.wanted, question.deadline)
        found = _without_repeats(question.text, self._ranked(question, pool))
        known = self._evidence(question, when, pool, ())
        near = self.candidates.centred(pool, [one.stored.id for one in found], gate.gate_weights().centres)
        bound = self._constraints(question, pool)
        binding = {one.candidate.stored.id: one.probability for one in bound}
        for one in found:
            one.parts[gate.CENTRED] = near.get(one.stored.id, 0.0)
            if one.stored.id in binding:
                one.parts[BINDS] = binding[one.stored.id]
        asked = gate.GateInput(question.text, question.today, need, question.project, question.own)
        verdict = gate.judge(asked, pool, found, known.known_names, known.names)
        kept = {one.stored.id for one in _distinct(question.text, [one.candidate for one in verdict.helpful])}
        helpful = tuple(one for one in verdict.helpful if one.candidate.stored.id in kept)
        return GateResult(
            replace(verdict, helpful=helpful), degraded + pool.degraded, tuple(bound[:MOST_BINDING])
        )

    def _constraints(self, question: Question, pool: Pool) -> list[gate.Helpful]:
        """Return the constraints on what a message asks for that somebody states: those of whom it names first, then
        the surest.
        """
        sure: dict[int, float] = {}
        now = time.monotonic()
        limit = None if question.deadline is None else now + (question.deadline - now) / 2
        stored = self.index.passages.search.load({key for keys in pool.near_binding.values() for key in keys})
        for subject, near in pool.near_binding.items():
            for one in (stored[key] for key in near if key in stored):
                said = body_of(one.passage)
                if one.passage.kind not in _SAID or one.passage.speaker == "Agent" or only_asks(said):
                    continue
                clauses = self.candidates.as_questions(read_clauses(said), pool, limit)
                sure[one.id] = max(stated_constraint(subject, clauses), sure.get(one.id, 0.0))
        named = {name.casefold() for name in relevance.names_in(question.text)}
        order = sorted(
            (key for key, probability in sure.items() if probability >= STATED),
            key=lambda key: (named.isdisjoint(words(stored[key].passage.text)), -sure[key]),
        )
        return [
            gate.Helpful(Candidate(stored[key], sure[key], {BINDS: sure[key]}), sure[key], {})
            for key in order
        ]

    def _refresh(self, question: Question, every: bool = False) -> list[str]:
        """Index what changed; if that fails, the index answers as it is."""
        sources = question.wanted.sources if question.wanted and not every else None
        try:
            return self.index.refresh(embed=not question.fast, sources=sources, quiet=not question.searched)
        except CorruptDatabase:  # the index itself is damaged
            raise
        except StoreError as error:  # another database it needs failed, such as the tombstones
            return [f"index: {error.message}; for what helps: nanoclaw-memory doctor"]

    def _evidence(
        self, question: Question, when: dates.When, pool: Pool, texts: Sequence[str]
    ) -> relevance.Evidence:
        asked = (
            when.rest if when.days is not None else question.text
        )  # the day itself is no word of the answer
        spread = {term: pool.spread[term] for term in terms_of(asked) if term in pool.spread} or pool.spread
        weights = {term: relevance.rarity(count, pool.total) for term, count in spread.items()}
        names = relevance.names_in(question.text)
        known = relevance.known_share(
            names,
            lambda name: pool.spread.get(name, 0) > 0 or self.candidates.knows(name, question.wanted),
        )
        coverage = relevance.Coverage(question.text, weights, pool.total, pool.forms, pool.others)
        share = max(map(coverage.of, texts), default=0.0)
        # A day was asked for, and something was said on it. A message may name a day and be about something else.
        of_days = bool(pool.told) and (question.searched or pool.only_days)
        return relevance.Evidence(
            searched=question.searched,
            past=relevance.asks_about_the_past(question.text),
            covered=1.0 if of_days else share,
            meaning=self._meaning(question, pool),
            names=len(names),
            known_names=1.0 if of_days or pool.others or question.names_known else known,
            calibration=pool.calibration,
            vectors=bool(pool.vector),
        )

    def _meaning(self, question: Question, pool: Pool) -> float:
        """Return how near the nearest passage is. A lone word that memory has never seen is somewhat near to anything,
        and a text without words means nothing: for them a passage must be near beyond what all texts have in common.
        """
        telling = [term for term in terms_of(question.text) if term not in FUNCTION_WORDS]
        if not question.searched or len(telling) > 1 or any(pool.spread.get(term) for term in telling):
            return pool.meaning
        nearest = sorted(pool.vector, key=pool.vector.__getitem__)[-JUDGED:] if telling else []
        apart = self.candidates.centred(pool, nearest, gate.gate_weights().centres)
        return pool.meaning if max(apart.values(), default=0.0) >= relevance.APART else 0.0

    def _ranked(self, question: Question, pool: Pool) -> list[Candidate]:
        fused = ranking.fused(pool.keyword, pool.vector, pool.weights, pool.held, pool.unknown)
        beside = ranking.neighbour_boost(fused, pool.places)
        about = ranking.asked_about(question.text, {place.speaker for place in pool.places.values()})
        scores = {key: fused.get(key, 0.0) + beside.get(key, 0.0) for key in pool.places}
        if about:
            of_speaker = (key for key, place in pool.places.items() if place.speaker == about)
            scores |= {key: scores[key] * (1 + ranking.SPEAKER) for key in of_speaker}
        scores |= {key: scores[key] * (1 + ranking.OF_THE_DAY) for key in pool.of_days & scores.keys()}
        scores |= ranking.by_day(scores, pool.told, pool.only_days)
        # At the same score a passage that shares a word comes first.
        best = sorted(scores)
        best.sort(key=lambda key: pool.keyword.get(key, 0.0), reverse=True)
        best.sort(key=scores.__getitem__, reverse=True)
        best = best[: max(CONSIDERED, question.limit)]
        stored = self.index.passages.search.load(best)
        found = []
        for key in best:
            if key not in stored:
                continue  # removed since the candidates were collected
            aged = 1.0 if key in pool.of_days else self._recency(question, stored[key])
            project = stored[key].passage.project
            near = ranking.project_share(project, question.project, question.text) if project else 1.0
            asking = stored[key].passage.kind == "turn" and ranking.asks(stored[key].passage.text)
            answers = ranking.ASKING if asking else 1.0
            parts = {
                "keyword": pool.keyword.get(key, 0.0),
                "cosine": pool.vector.get(key, 0.0),
                "fused": fused.get(key, 0.0),
                "neighbours": beside.get(key, 0.0),
                "speaker": ranking.SPEAKER if about and stored[key].passage.speaker == about else 0.0,
                "day": ranking.OF_THE_DAY if key in pool.of_days else 0.0,
                "recency": aged,
                "project": near,
                "answers": answers,
            }
            found.append(Candidate(stored[key], scores[key] * aged * near * answers, parts))
        return _of_days_first(_by_file(sorted(found, key=lambda candidate: -candidate.score)), pool)

    def _recency(self, question: Question, stored: StoredPassage) -> float:
        passage = stored.passage
        if passage.kind != "line" or (passage.importance or 0.0) >= PERMANENT:
            return 1.0
        aged = ranking.recency(passage.day, question.today, self._half_life)
        return aged * ranking.ARCHIVED if stored.path.startswith(f"{ARCHIVE}/") else aged


def _masked_last(found: Sequence[Candidate]) -> list[Candidate]:
    """Put passages with a masked credential, and the reply to one, after the others: what they say is hidden."""
    hidden = [one for one in found if MARKER.search(one.stored.passage.text)]
    talks = {one.stored.passage.number for one in hidden if one.stored.passage.kind == "turn"}
    masked = [
        one
        for one in found
        if one in hidden or (one.stored.passage.kind == "turn" and one.stored.passage.number in talks)
    ]
    told = [one for one in found if one not in masked]
    for one in masked if told else ():
        one.score = min(one.score, told[-1].score)
    return told + masked


def _context(candidate: Candidate, found: Sequence[Candidate]) -> str:
    """Return a passage with its context; one side of an exchange with the other."""
    passage = candidate.stored.passage
    texts = [passage.text]
    if passage.kind == "turn" and passage.number:
        texts = [one.stored.passage.text for one in found if one.stored.passage.number == passage.number]
    return "\n".join((*texts, passage.heading, passage.speaker, passage.tags, candidate.stored.path))


def _by_file(ranked: list[Candidate]) -> list[Candidate]:
    """Limit the passages of one page to leave places for others; turns and log lines are not limited."""
    sections = [candidate for candidate in ranked if candidate.stored.passage.kind in ("section", "item")]
    shares = ranking.crowding([candidate.stored.document_id for candidate in sections])
    for candidate, share in zip(sections, shares, strict=True):
        candidate.parts["same file"] = share
        candidate.score *= share
    return sorted(ranked, key=lambda candidate: -candidate.score)


def _of_days_first(ranked: list[Candidate], pool: Pool) -> list[Candidate]:
    """Give at least every other top place to passages of the days asked about; the scores stay with their places."""
    if not pool.of_days:
        return ranked
    scores = [candidate.score for candidate in ranked]
    of_days = [candidate for candidate in ranked if candidate.stored.id in pool.of_days]
    others = [candidate for candidate in ranked if candidate.stored.id not in pool.of_days]
    chosen: list[Candidate] = []
    placed = 0
    while of_days or others:
        owed = placed < (len(chosen) + 1) // 2 and len(chosen) < FIRST_PLACES
        if of_days and (not others or owed or of_days[0].score >= others[0].score):
            chosen.append(of_days.pop(0))
            placed += 1
        else:
            chosen.append(others.pop(0))
    for candidate, score in zip(chosen, scores, strict=True):
        candidate.score = score
    return chosen


def _answering(question: str, ranked: Sequence[Candidate]) -> list[Candidate]:
    """Drop the same question asked before; other questions of the person count less than answers."""
    asked = words(question)
    found = []
    for candidate in ranked:
        passage = candidate.stored.passage
        if passage.speaker == "User" and passage.number:
            if words(passage.text) == asked:
                continue
            if "?" in passage.text and not ranking.covered(question, stated_in(passage.text)):
                candidate.score *= A_QUESTION
        found.append(candidate)
    return sorted(found, key=lambda candidate: -candidate.score)


def _without_repeats(message: str, found: Sequence[Candidate]) -> list[Candidate]:
    """Drop the same message said before, which proves nothing; of its answers only the last is kept."""
    asked = set(terms_of(message))
    turns = {one.stored.id: one.stored.passage for one in found if one.stored.passage.kind == "turn"}
    telling = max((term for term in asked if " " not in term), key=len, default="")
    again = {
        turn.number
        for turn in turns.values()
        # Most lack even the longest word of it, which is checked in a moment.
        if turn.speaker == "User" and telling in turn.text.casefold() and set(terms_of(turn.text)) == asked
    }
    answers = {
        key: turn.number for key, turn in turns.items() if turn.speaker == "Agent" and turn.number in again
    }
    last = max(answers.values(), default=0)
    kept = []
    for one in found:
        if answers.get(one.stored.id) == last:
            one.parts[gate.ANSWERED] = 1.0
        elif one.stored.id in turns and turns[one.stored.id].number in again:
            continue
        kept.append(one)
    return kept


def _distinct(question: str, ranked: Sequence[Candidate]) -> list[Candidate]:
    """Keep each statement once: the entry, else what was written, else what was said, not its copy.

    A passage that contains another one's text is the same statement if it has no more of the question's words. A fact
    is the same as the line that it was read from.
    """
    copied = any(one.stored.path.startswith(WORKING_MEMORY) for one in ranked)
    others: dict[str, list[tuple[str, Candidate]]] = {one.stored.source: [] for one in ranked}
    if not copied and len(others) < 2:
        return list(ranked)
    kept: list[Candidate] = []
    # For each text of more than a few words: its candidate, and how many of other sources were kept before it.
    repeated: dict[tuple[str, str], tuple[int, Candidate]] = {}
    lines = {
        f"{one.stored.path}:{number}": one
        for one in ranked
        if one.stored.source == "files"
        for number in range(one.stored.passage.start_line, one.stored.passage.end_line + 1)
    }
    for candidate in sorted(ranked, key=_preference):
        passage, source = candidate.stored.passage, candidate.stored.source
        text = _plain_line(passage.text) if passage.kind == "line" else _plain(body_of(passage))
        # Within one source only a word-for-word repetition is the same, unless it is a mere "thanks".
        before, again = repeated.get((source, text), (len(others[source]), None))
        same = lines.get(passage.reference) or next(
            (
                one
                for other, one in others[source][:before]
                if (text in other or other in text) and _same(question, text, other)
            ),
            again,
        )
        if same is not None:
            # A fact has no project: it counts as the line does that it was read from.
            share = 1.0 if passage.project else same.parts.get("project", 1.0)
            same.score = max(same.score, candidate.score * share)
        else:
            if text.count(" ") > SHORTEST:
                repeated[source, text] = before, candidate
            kept.append(candidate)
            for name, of_others in others.items():
                if name != source:
                    of_others.append((text, candidate))
    return sorted(kept, key=lambda candidate: -candidate.score)


@bounded(4 * 1024 * 1024)
def _plain(text: str) -> str:
    return f" {' '.join(words(text))} "


@bounded(12 * 1024 * 1024)
def _plain_line(text: str) -> str:
    return f" {' '.join(words(without_label(text)))} "


def _preference(one: Candidate) -> int:
    copied = one.stored.path.startswith(WORKING_MEMORY)
    return _COPIED if copied else _PREFERRED.get(one.stored.passage.kind, 1)


def _same(question: str, one: str, other: str) -> bool:
    """Return whether two texts, of which one contains the other, are the same statement."""
    shorter, longer = (one, other) if len(one) < len(other) else (other, one)
    if len(shorter) == len(longer):
        return True
    if shorter.count(" ") <= SHORTEST:
        return False
    return ranking.covered(question, longer) <= ranking.covered(question, shorter)


def _spread(ranked: Sequence[Candidate], limit: int) -> list[Candidate]:
    """Return the best that also differ from each other; exact repetitions are returned once."""
    first = {candidate.stored.passage.text: candidate for candidate in reversed(ranked[: limit * 8])}
    by_id = {
        candidate.stored.id: candidate
        for candidate in ranked
        if first.get(candidate.stored.passage.text) is candidate
    }
    scores = {key: candidate.score for key, candidate in by_id.items()}
    texts = {key: candidate.stored.passage.text for key, candidate in by_id.items()}
    return [by_id[key] for key in ranking.mmr(list(by_id)[: limit * 4], scores, texts, limit)]
