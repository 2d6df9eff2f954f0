"""The pool of one question: what its words find, what its meaning finds, and the turns beside those."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.clock import moment_of, stamp
from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.providers.calibration import Calibration, calibration
from nanoclaw_memory.providers.embedder import Identity
from nanoclaw_memory.retrieval import ranking
from nanoclaw_memory.retrieval.calendar_days import Days
from nanoclaw_memory.retrieval.constraints import binding
from nanoclaw_memory.retrieval.date_words import SPOKEN
from nanoclaw_memory.retrieval.indexer import Index
from nanoclaw_memory.retrieval.relevance import asks_about_the_past
from nanoclaw_memory.store.keywords import LONG_WORD, LONGEST_WORD, folded, german_stem, parts_of, terms_of
from nanoclaw_memory.store.passage_search import PassageFilter, Place, Selection, StoredPassage, Window
from nanoclaw_memory.store.passages import Passages
from nanoclaw_memory.text import language, words

if TYPE_CHECKING:
    from nanoclaw_memory.providers.embedder import Chain, Embedded
    from nanoclaw_memory.retrieval.dates import When
    from nanoclaw_memory.store.vector_block import Floats
    from nanoclaw_memory.store.vectors import Matrix, StoredVectors

POOL = 100
OF_DAYS = 40  # passages that a question for days brings in by their day, by words and by meaning each
TOLD_WITHIN = 3  # days: what happened is told on the day or soon after
TOLD_SHARE = 0.5  # of a longer period's length that it is told about later
POSTINGS = 2_500  # rows ranked by words, at least; more in a large index
ALL_POSTINGS = 18_000  # up to so many passages no word is too common to be ranked by
REACH = 2  # turns before and after that lend a turn their score
NAMELESS = 0.75  # of a local query vector: the question without its speakers' names
TELLING = 50  # vectors of which the mean says what unrelated texts have
FEWEST, NEIGHBOURS = 4, 5  # vectors from which it is known what any two are; those that one is near to anyway
COMPOUND = 0.5  # what a compound of a word counts beside the word, and a part of a compound beside the whole
FOREIGN = 0.25  # of the weight of meaning, where the model does not know the question's language
_SHORTEST_PART = 5


class Pool(msgspec.Struct):
    """The candidates with what each index says of them."""

    keyword: dict[int, float] = msgspec.field(default_factory=dict)
    vector: dict[int, float] = msgspec.field(default_factory=dict)
    unknown: set[int] = msgspec.field(default_factory=set)  # found by words, and without a vector yet
    places: dict[int, Place] = msgspec.field(default_factory=dict)
    held: float = 1.0  # of the question's words, by rarity, what the best candidate has
    unrelated: float | None = None  # the cosine that unrelated texts have; None where it is not known
    calibration: Calibration = Calibration()
    weights: tuple[float, float] = (0.0, 1.0)
    spread: dict[str, int] = msgspec.field(default_factory=dict)  # in how many passages each term occurs
    forms: dict[str, list[str]] = msgspec.field(default_factory=dict)  # compounds and parts that stand for it
    others: list[str] = msgspec.field(default_factory=list)  # other names of whom the question names
    total: int = 0
    affordable: int = 0  # passages that are ranked at most, where all words are too common
    binding: dict[int, float] = msgspec.field(
        default_factory=dict
    )  # what binds a person in what is asked for
    of_days: set[int] = msgspec.field(default_factory=set)  # of the days asked about, or soon after
    asked: Embedded | None = None
    told: list[int] = msgspec.field(default_factory=list)  # what stands for those days, whatever its words
    only_days: bool = False  # nothing is asked but what was said or done then
    degraded: list[str] = msgspec.field(default_factory=list)

    @property
    def meaning(self) -> float:
        """How near the nearest candidate is: 0 like unrelated texts, 1 the same."""
        return self.meaning_of(max(self.vector.values(), default=0.0))

    def meaning_of(self, cosine: float) -> float:
        """How near a candidate with this cosine is."""
        if self.unrelated is None:
            base = self.calibration.near_unmeasured - self.calibration.near
            return max(cosine - base, 0.0)
        return max(cosine - self.unrelated, 0.0) / (1 - self.unrelated)


class Centres(msgspec.Struct, frozen=True):
    """The mean vectors of one embedder's questions and passages, whatever they are about."""

    identity: str
    question: tuple[float, ...]
    passage: tuple[float, ...]


class Candidate(msgspec.Struct):
    """A passage on its way to a hit, with every component of its score."""

    stored: StoredPassage
    score: float
    parts: dict[str, float]
    mark: str = ""  # superseded, earlier: what became of it
    newer: StoredPassage | None = None  # by which it is overtaken
    gives_way: bool = True  # whether the newer one is shown before it

    @property
    def newer_id(self) -> int:
        """The passage that is shown before it, because it is newer; 0 when there is none."""
        return self.newer.id if self.newer and self.gives_way else 0


class Likeness(msgspec.Struct, frozen=True):
    """How near each two of some passages are, as far above what any two of them are as these differ."""

    places: Mapping[int, int]
    near: Sequence[Sequence[float]]
    mutual: Sequence[Sequence[float]]  # without what each of the two is near to anyway

    def of(self, one: int, other: int) -> tuple[float, float]:
        """Both for two passages; nothing where one has no vector."""
        if one not in self.places or other not in self.places:
            return 0.0, 0.0
        places = self.places[one], self.places[other]
        return self.near[places[0]][places[1]], self.mutual[places[0]][places[1]]


class Alike(msgspec.Struct, frozen=True):
    """References of passages with their cosine to one of them, nearest first, and whose vectors these are."""

    identity: str
    cosines: tuple[tuple[str, float], ...] = ()


class Candidates:
    """Gathers pools from one index."""

    def __init__(
        self,
        index: Index,
        weights: tuple[float, float] | None = None,
        expand: Callable[[str], list[str]] | None = None,
        zone: tzinfo | None = None,
    ) -> None:
        self._index = index
        self._zone = zone or UTC
        self._weights = weights
        self._expand = expand

    def pool(
        self,
        question: str,
        fast: bool,
        when: When | None = None,
        wanted: PassageFilter | None = None,
        deadline: float | None = None,
    ) -> Pool:
        """The candidates for a question and the days that it names, if any; `fast` looks for words only."""
        chosen = self._index.passages.search.selection(wanted) if wanted else None
        pool = Pool(total=self._index.passages.last_id(), others=self._names(question))
        german = language(question) == "german"
        # Passages carry their day in English words: of a German question, words of time match other things.
        asked = when.rest if german and when is not None and when.days is not None else question
        terms, full = self._terms(asked, german, pool)
        pool.keyword = self._by_words(terms, pool, chosen)
        for key, score in self._by_compounds(pool, terms, chosen) if german else ():
            pool.keyword[key] = pool.keyword.get(key, 0.0) + COMPOUND * score
        pool.held = max(pool.keyword.values(), default=0.0) / full if full > 0 else 1.0
        self._add_places(pool, pool.keyword.keys(), chosen)
        if not fast and pool.total:  # an empty index has no vectors, which is no fault

            def near(matrix: Matrix | StoredVectors, vector: Floats) -> dict[int, float]:
                if pool.calibration.binds:
                    pool.binding = binding(vector, lambda one, most: matrix.nearest(one, most, chosen))
                return dict(matrix.nearest(vector, POOL, chosen))

            self._add_vectors(question, pool, deadline, near)
            self._add_places(pool, pool.vector.keys() - pool.keyword.keys(), chosen)
        if when is not None:
            self._add_days(pool, when, terms, chosen or Selection())
        return pool

    def knows(self, name: str, wanted: PassageFilter | None) -> bool:
        """Whether any passage that a filter lets in contains a name."""
        chosen = self._index.passages.search.selection(wanted) if wanted else None
        return self._index.passages.search.occurrences(name, 1, chosen) > 0

    def cosines(self, question: str, source: str, deadline: float | None) -> tuple[dict[int, float], Pool]:
        """How near the question is to each row of a source that has a vector."""
        pool, rows = Pool(), self._index.passages.search.rows_of(source)
        self._add_vectors(question, pool, deadline, lambda matrix, vector: matrix.cosines(vector, list(rows)))
        return {rows[key]: cosine for key, cosine in pool.vector.items()}, pool

    def centred(self, pool: Pool, found: Sequence[int], centres: Centres) -> dict[int, float]:
        """The cosines of passages and the question, each less the mean of its kind.

        Of an embedder without known means it is how far the plain ones are above those of unrelated texts.
        """
        if pool.asked is None:
            return {}
        identity = pool.asked.identity
        if not identity.key.startswith(centres.identity):
            return {key: pool.meaning_of(cosine) for key, cosine in pool.vector.items()}
        import numpy as np

        mean = np.array(centres.passage, dtype=np.float32)
        asked = pool.asked.vector - np.array(centres.question, dtype=np.float32)
        asked /= np.linalg.norm(asked) or 1.0
        length = float(np.linalg.norm(mean))
        matrix = self._matrix(identity.key, identity.dimensions)
        own, common = matrix.cosines(asked, found), matrix.cosines(mean / length, found)
        shared = float(asked @ mean)
        # Passages have the length 1: that of one less the mean follows from what it has in common with the mean.
        return {
            key: (cosine - shared) / max(1 - 2 * length * common[key] + length**2, 1e-6) ** 0.5
            for key, cosine in own.items()
        }

    def load_vectors(self) -> None:
        """Read the vectors that came since they were read last."""
        if chain := self._index.embedder():
            self._matrix(chain.identity.key, chain.identity.dimensions)

    def likeness(self, found: Sequence[int]) -> Likeness | None:
        """How near each two of what was found are; None without vectors."""
        chain = self._index.embedder()
        if chain is None:
            return None
        held = self._matrix(chain.identity.key, chain.identity.dimensions).vectors(found)
        if len(held) < FEWEST:
            return None
        import numpy as np

        cosines = np.stack([*held.values()]) @ np.stack([*held.values()]).T
        others = cosines[~np.eye(len(held), dtype=bool)].reshape(len(held), -1)
        usual, spread = others.mean(), others.std() + 1e-6
        around = np.sort(others, axis=1)[:, -NEIGHBOURS:].mean(axis=1)
        near, mutual = (cosines - usual) / spread, (2 * cosines - around[:, None] - around) / spread
        return Likeness({key: place for place, key in enumerate(held)}, near.tolist(), mutual.tolist())

    def nearest_to(self, reference: str, wanted: PassageFilter) -> Alike:
        """The passages nearest to the one with a reference."""
        passages, chain = self._index.passages, self._index.embedder()
        if chain is None:
            return Alike("")
        identity = chain.identity
        own = passages.search.referred(reference)
        matrix = self._matrix(identity.key, identity.dimensions)
        vector = matrix.vectors([own]).get(own) if own else None
        if vector is None:
            return Alike(identity.key)
        found = dict(matrix.nearest(vector, POOL, passages.search.selection(wanted)))
        stored = passages.search.load(found)
        order = sorted(stored, key=lambda key: -found[key])
        return Alike(identity.key, tuple((stored[key].passage.reference, found[key]) for key in order))

    def _add_days(self, pool: Pool, when: When, terms: list[str], chosen: Selection) -> None:
        """Add what is of the days asked about: what stands for them, and what words and meaning find among it."""
        search = self._index.passages.search
        days = self._last_talk(chosen) if when.latest else when.days
        if days is None:
            return
        during = chosen.during(self._window(days))
        pool.told = search.told(during, OF_DAYS, when.latest)
        found = dict(search.match(terms, OF_DAYS, during)) if pool.told else {}
        pool.keyword = found | pool.keyword
        self._add_places(pool, {*pool.told, *found} - pool.places.keys(), chosen)
        later = round(max(TOLD_WITHIN, TOLD_SHARE * days.length))
        pool.of_days = search.among(pool.places, self._window(days, later))
        names = {name for place in pool.places.values() for name in words(place.speaker)}
        pool.only_days = when.latest or when.only(frozenset(names))

    def _window(self, days: Days, later: int = 0) -> Window:
        """The days as the index knows them, and some days later."""
        last = days.last + timedelta(days=later)
        start = datetime.combine(days.first, time(), self._zone) + timedelta(hours=days.hours[0])
        end = datetime.combine(last, time(), self._zone) + timedelta(hours=24 if later else days.hours[1])
        return Window(days.first.isoformat(), last.isoformat(), stamp(start), stamp(end))

    def _last_talk(self, chosen: Selection) -> Days | None:
        day, moment = self._index.passages.search.last_talk(chosen)
        if moment:
            day = moment_of(moment).astimezone(self._zone).date().isoformat()
        return Days(date.fromisoformat(day), date.fromisoformat(day)) if day else None

    def _add_places(self, pool: Pool, found: Collection[int], chosen: Selection | None) -> None:
        if found:
            places = self._index.passages.search.places(found, REACH, chosen)
            pool.places |= {place.id: place for place in places}

    def _by_words(self, terms: Sequence[str], pool: Pool, chosen: Selection | None) -> dict[int, float]:
        """The passages that words find; of words that are all too common, the newest that have all of them.

        Where those are few, the newest with the rarest word are more.
        """
        search, most = self._index.passages.search, pool.affordable
        if not most or not terms:
            return dict(search.match(terms, POOL, chosen))
        found = dict(search.match(terms, POOL, chosen, most))
        if len(found) < POOL and len(terms) > 1:
            found = {**dict(search.match([search.rarest(terms, most)], POOL, chosen, most)), **found}
        return found

    def _terms(self, question: str, german: bool, pool: Pool) -> tuple[list[str], float]:
        """What the keyword index is asked for, and the score of a middling text that has all of the question."""
        total = pool.total
        # Ranking costs by the row: the rarest words come first, and common ones only while they are affordable.
        left = most = max(POSTINGS + total // 100, ALL_POSTINGS * ALL_POSTINGS // max(total, ALL_POSTINGS))
        asked = {term: _known(self._index.passages, term, most, german) for term in _asked_for(question)}
        names = [term for text in pool.others for term in terms_of(text) if term not in asked]
        pairs = [pair for known in asked.values() for pair in known]
        pairs += [pair for name in names for pair in _known(self._index.passages, name, most, False)]
        chosen: dict[str, None] = {}
        if pairs and min(pairs)[0] >= most:  # none is affordable: only what has all of them is ranked
            pool.affordable = most
            pairs = [(0, max(known)[1]) for known in asked.values() if known] or pairs[:1]
        for count, known in sorted(pairs):
            if chosen and count > left:
                break
            chosen.setdefault(known)
            left -= count
        full = sum(
            _rarity(sum(count for count, _ in known), total)
            for known in asked.values()
            if not known or any(word in chosen for _, word in known)
        )
        pool.forms = {term: [word for _, word in known] for term, known in asked.items()}
        pool.spread = {term: sum(count for count, _ in known) for term, known in asked.items()}
        return list(chosen), full

    def _by_compounds(
        self, pool: Pool, terms: list[str], chosen: Selection | None
    ) -> list[tuple[int, float]]:
        """What contains compounds of the words of a German question, or the words that its compounds are made of."""
        passages = self._index.passages
        others: dict[str, None] = {}
        for term, forms in pool.forms.items():
            if len(term) < _SHORTEST_PART:
                continue
            found = {
                word
                for word in passages.search.compounds(folded(german_stem(term)))
                if word.startswith(german_stem(term)) or word.endswith((folded(term), german_stem(term)))
            }
            found.update(_parts_in(passages, term))
            forms += found - set(forms)
            others |= dict.fromkeys(found - {*terms, term})
        return passages.search.match(list(others), POOL, chosen) if others else []

    def _names(self, question: str) -> list[str]:
        return self._expand(question) if self._expand else []

    def _add_vectors(
        self,
        question: str,
        pool: Pool,
        deadline: float | None,
        find: Callable[[Matrix | StoredVectors, Floats], dict[int, float]],
    ) -> None:
        chain = self._index.embedder()
        if chain is None:
            pool.degraded.append("vectors: embeddings are off; keywords alone answer")
            return
        old = self._index.answering()
        replaced = old not in ("", chain.identity.key)
        present = self._index.passages.identities()
        among = [Identity.of(old)] if replaced else [one for one in chain.identities if one.key in present]
        try:
            embedded = chain.embed_query(question, among, deadline)
        except ProviderError as error:
            anew = f"the index is made anew for {chain.identity.key}, words alone answer until then"
            said = f"{anew}; {error.message}" if replaced else error.message
            pool.degraded.append(f"vectors: {said}" + (f"; {error.hint}" if error.hint else ""))
            return
        if replaced:
            anew = f"is made anew for {chain.identity.key}, {old} answers until it is complete"
            pool.degraded.append(f"index: {anew}; run: nanoclaw-memory index")
        elif embedded.identity != chain.identity:
            pool.degraded.append(f"vectors: {chain.identity.key} is down, {embedded.identity.key} answers")
        pool.weights = self._weights or chain.weights_of(embedded.identity)
        pool.calibration = calibration(embedded.identity.key)
        if self._weights is None:
            pool.weights = _by_language(pool.weights, question, pool.calibration)
        pool.asked = embedded
        matrix = self._matrix(embedded.identity.key, embedded.identity.dimensions)
        vector = _meaning(question, embedded, chain, pool)
        pool.vector = find(matrix, vector)
        pool.unrelated = pool.calibration.unrelated
        if pool.unrelated is None and len(matrix) >= TELLING:
            pool.unrelated = matrix.background(vector)
        pool.unknown = matrix.without(pool.keyword.keys() - pool.vector.keys())

    def _matrix(self, identity: str, dimensions: int) -> Matrix | StoredVectors:
        from nanoclaw_memory.store.vectors import searched

        return searched(self._index.passages, identity, dimensions, self._index.vectors)


def _meaning(question: str, embedded: Embedded, chain: Chain, pool: Pool) -> Floats:
    """The question's vector, mostly without its speakers' names.

    Turns are embedded with their speaker, and a name in the question pulls in whatever that person said. A
    service is not asked twice: that would cost money and a round trip.
    """
    nameless = ranking.without_names(question, {place.speaker for place in pool.places.values()})
    if embedded.identity.provider != "local" or nameless == question:
        return embedded.vector
    import numpy as np

    try:
        other = chain.embed_query(nameless, [embedded.identity]).vector
    except ProviderError:
        return embedded.vector
    both = (1 - NAMELESS) * embedded.vector + NAMELESS * other
    mixed: Floats = (both / np.linalg.norm(both)).astype(np.float32)
    return mixed


def _by_language(weights: tuple[float, float], question: str, model: Calibration) -> tuple[float, float]:
    """The weights of meaning and words: less meaning where the model does not know the question's language."""
    if not model.english or language(question) == "english":
        return weights
    return weights[0] * FOREIGN, weights[1]


def _asked_for(question: str) -> list[str]:
    """The words of a question that say what it is about, if any do."""
    terms = terms_of(question)
    if not asks_about_the_past(question):
        return terms
    return [term for term in terms if term not in SPOKEN] or terms


def _rarity(count: int, total: int) -> float:
    """What a word that `count` of `total` passages contain is worth: the weight that the keyword index gives it."""
    return max(math.log((total - count + 0.5) / (count + 0.5)), 0.0) if count < total else 0.0


def _known(passages: Passages, term: str, most: int, german: bool) -> list[tuple[int, str]]:
    """The term with how often it occurs; when it never does, compounds of it, or the words it is made of."""
    for form in dict.fromkeys((german_stem(term), term) if german else (term,)):
        if count := passages.search.occurrences(form, most):
            return [(count, form)]
    if len(term) < _SHORTEST_PART or " " in term:
        return []
    found = passages.search.compounds(folded(term)) or _parts_in(passages, term)
    return [(passages.search.occurrences(other, most), other) for other in found]


def _parts_in(passages: Passages, term: str) -> list[str]:
    """The two words of the index that a long word is made of."""
    if not LONG_WORD <= len(term) <= LONGEST_WORD:
        return []
    for parts in parts_of(term):
        known = list(itertools.takewhile(bool, (_form_in(passages, part) for part in parts)))
        if len(known) == len(parts):
            return known
    return []


def _form_in(passages: Passages, part: str) -> str:
    """The form in which the index has a German word; empty when it has none."""
    return next(filter(passages.search.occurrences, dict.fromkeys((german_stem(part), part))), "")
