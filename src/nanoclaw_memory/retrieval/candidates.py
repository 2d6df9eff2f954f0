"""Collect the candidates for a question: passages found by words and by vectors, and the turns beside them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.clock import moment_of, stamp
from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.providers.affinity import affinity_of
from nanoclaw_memory.providers.calibration import Calibration, calibration
from nanoclaw_memory.providers.embedder import Identity
from nanoclaw_memory.retrieval import ranking
from nanoclaw_memory.retrieval.calendar_days import Days
from nanoclaw_memory.retrieval.constraints import near_constraints
from nanoclaw_memory.retrieval.date_words import SPOKEN
from nanoclaw_memory.retrieval.indexer import Index
from nanoclaw_memory.retrieval.relevance import asks_about_the_past
from nanoclaw_memory.store.about_days import AboutDays
from nanoclaw_memory.store.keywords import LONG_WORD, LONGEST_WORD, folded, german_stem, parts_of, terms_of
from nanoclaw_memory.store.passage_search import PassageFilter, Place, Selection, StoredPassage, Window
from nanoclaw_memory.store.passages import Passages
from nanoclaw_memory.text import STOP_WORDS, language, words

if TYPE_CHECKING:
    from nanoclaw_memory.providers.embedder import Chain, Embedded
    from nanoclaw_memory.retrieval.dates import When
    from nanoclaw_memory.store.vector_block import Floats
    from nanoclaw_memory.store.vectors import Matrix, StoredVectors

POOL = 100
OF_DAYS = 40  # passages within the days asked about, per method (by day, words, vectors)
TOLD_WITHIN = 3  # days after an event within which people report it
TOLD_SHARE = 0.5  # the same as a share of the length of a longer period
POSTINGS = 2_500  # minimal number of rows ranked by words; more in a large index
ALL_POSTINGS = 18_000  # in an index of fewer passages no word is too common for ranking
REACH = 2  # turns before and after a turn that share its score
NAMELESS = 0.75  # weight of the question without speakers' names in a local query vector
TELLING = 50  # vectors needed for a mean that represents unrelated texts
FEWEST = 4  # vectors needed to know how near any two of them are
NEIGHBOURS = 5  # nearest vectors whose mean is what a vector is near to anyway
COMPOUND = 0.5  # weight of a compound relative to its word, and of a part relative to its compound
FOREIGN = 0.25  # share of the vector weight kept if the model does not know the question's language
BINDS = "binds"  # the score part of a passage that states a person's constraint
_SHORTEST_PART = 5
# "How long", "wie hoch": the word asks for a value and names nothing.
_DEGREE = regex(
    r"\b(?:how|wie) (much|many|long|often|far|big|large|small|old|tall|high|low|deep|wide|heavy|late|early|soon|fast"
    r"|expensive|hoch|viele?|lange?|oft|weit|groß|klein|alt|tief|breit|schwer|spät|früh|schnell|teuer)\b",
    re.IGNORECASE,
)


class Pool(msgspec.Struct):
    """The candidates with their scores in each index."""

    keyword: dict[int, float] = msgspec.field(default_factory=dict)
    vector: dict[int, float] = msgspec.field(default_factory=dict)
    unknown: set[int] = msgspec.field(default_factory=set)  # found by words, without a vector so far
    places: dict[int, Place] = msgspec.field(default_factory=dict)
    held: float = 1.0  # share of the question's words, by rarity, in the best candidate
    unrelated: float | None = None  # the cosine of unrelated texts; None if unknown
    calibration: Calibration = Calibration()
    weights: tuple[float, float] = (0.0, 1.0)
    spread: dict[str, int] = msgspec.field(default_factory=dict)  # number of passages that contain each term
    # compounds and parts that substitute for a term
    forms: dict[str, list[str]] = msgspec.field(default_factory=dict)
    others: list[str] = msgspec.field(default_factory=list)  # other names of entities in the question
    total: int = 0
    affordable: int = 0  # maximal number of passages ranked when all words are too common
    near_binding: dict[str, list[int]] = msgspec.field(
        default_factory=dict
    )  # passages that may state constraints on what the question asks for, by subject
    of_days: set[int] = msgspec.field(default_factory=set)  # passages of the days asked about, or soon after
    asked: Embedded | None = None
    # passages that represent those days, whatever their words
    told: list[int] = msgspec.field(default_factory=list)
    only_days: bool = False  # the question asks only what was said or done then
    degraded: list[str] = msgspec.field(default_factory=list)

    @property
    def meaning(self) -> float:
        """Return how near the nearest candidate is: 0 like unrelated texts, 1 the same."""
        return self.meaning_of(max(self.vector.values(), default=0.0))

    def meaning_of(self, cosine: float) -> float:
        """Return how near a candidate with this cosine is."""
        if self.unrelated is None:
            base = self.calibration.near_unmeasured - self.calibration.near
            return max(cosine - base, 0.0)
        return max(cosine - self.unrelated, 0.0) / (1 - self.unrelated)


class Centres(msgspec.Struct, frozen=True):
    """The mean vectors of one embedder over arbitrary questions and passages."""

    identity: str
    question: tuple[float, ...]
    passage: tuple[float, ...]


class Candidate(msgspec.Struct):
    """A candidate passage with every component of its score."""

    stored: StoredPassage
    score: float
    parts: dict[str, float]
    mark: str = ""  # superseded or earlier
    newer: StoredPassage | None = None  # the statement that supersedes it
    gives_way: bool = True  # whether the newer statement is ranked before it

    @property
    def newer_id(self) -> int:
        """Return the newer passage that is ranked before this one; 0 if there is none."""
        return self.newer.id if self.newer and self.gives_way else 0


class Likeness(msgspec.Struct, frozen=True):
    """How near each two of some passages are, in standard deviations above the mean of all pairs."""

    places: Mapping[int, int]
    near: Sequence[Sequence[float]]
    mutual: Sequence[Sequence[float]]  # less what each of the two is near to anyway

    def of(self, one: int, other: int) -> tuple[float, float]:
        """Return both values for two passages; zeros if one has no vector."""
        if one not in self.places or other not in self.places:
            return 0.0, 0.0
        places = self.places[one], self.places[other]
        return self.near[places[0]][places[1]], self.mutual[places[0]][places[1]]


class Alike(msgspec.Struct, frozen=True):
    """Passages with their cosine to one of them, nearest first, and the model of the vectors."""

    identity: str
    cosines: tuple[tuple[str, float], ...] = ()


class Candidates:
    """Collect candidates from one index."""

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
        """Return the candidates for a question and the days that it names; `fast` searches by words only."""
        chosen = self._index.passages.search.selection(wanted) if wanted else None
        pool = Pool(total=self._index.passages.last_id(), others=self._names(question))
        german = language(question) == "german"
        # Passages contain their day in English words: in a German question, words of time would match other text.
        asked = when.rest if german and when is not None and when.days is not None else question
        terms, full = self._terms(asked, german, pool)
        pool.keyword = self._by_words(terms, pool, chosen)
        for key, score in self._by_compounds(pool, terms, chosen) if german else ():
            pool.keyword[key] = pool.keyword.get(key, 0.0) + COMPOUND * score
        pool.held = max(pool.keyword.values(), default=0.0) / full if full > 0 else 1.0
        self._add_places(pool, pool.keyword.keys(), chosen)
        if not fast and pool.total:  # an empty index has no vectors, which is normal

            def near(matrix: Matrix | StoredVectors, vector: Floats) -> dict[int, float]:
                if pool.calibration.binds:
                    pool.near_binding = near_constraints(
                        vector, lambda one, most: matrix.nearest(one, most, chosen)
                    )
                return dict(matrix.nearest(vector, POOL, chosen))

            self._add_vectors(question, pool, deadline, near)
            self._add_places(pool, pool.vector.keys() - pool.keyword.keys(), chosen)
        if when is not None:
            self._add_days(pool, when, terms, chosen or Selection())
        return pool

    def knows(self, name: str, wanted: PassageFilter | None) -> bool:
        """Return whether any passage that passes a filter contains a name."""
        chosen = self._index.passages.search.selection(wanted) if wanted else None
        return self._index.passages.search.occurrences(name, 1, chosen) > 0

    def cosines(self, question: str, source: str, deadline: float | None) -> tuple[dict[int, float], Pool]:
        """Return the cosine of the question and each row of a source that has a vector."""
        pool, rows = Pool(), self._index.passages.search.rows_of(source)
        self._add_vectors(question, pool, deadline, lambda matrix, vector: matrix.cosines(vector, list(rows)))
        return {rows[key]: cosine for key, cosine in pool.vector.items()}, pool

    def likenesses(self, source: str, pool: Pool) -> dict[int, float]:
        """Return how near each row of a source is to the question in the learnt map; nothing without such a map."""
        maps = affinity_of(pool.asked.identity.key) if pool.asked else None
        if pool.asked is None or maps is None:
            return {}
        import numpy as np

        rows = self._index.passages.search.rows_of(source)
        matrix = self._matrix(pool.asked.identity.key, pool.asked.identity.dimensions)
        vectors = matrix.vectors(list(rows))
        if not vectors:
            return {}
        found = maps.likeness(pool.asked.vector, np.stack([*vectors.values()]))
        return {rows[passage]: float(one) for passage, one in zip(vectors, found, strict=True)}

    def centred(self, pool: Pool, found: Sequence[int], centres: Centres) -> dict[int, float]:
        """Return the cosines of passages and question, each reduced by the mean of its kind.

        For an embedder without known means, return how far the plain cosines exceed that of unrelated texts.
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
        # Passages have length 1: the length without the mean follows from the product with the mean.
        return {
            key: (cosine - shared) / max(1 - 2 * length * common[key] + length**2, 1e-6) ** 0.5
            for key, cosine in own.items()
        }

    def as_questions(self, texts: Iterable[str], pool: Pool, deadline: float | None) -> Iterator[Floats]:
        """Yield the vector of each text by the model of the question, as long as there is time."""
        chain = self._index.embedder()
        if chain is None or pool.asked is None:
            return
        for text in texts:
            try:
                yield chain.embed_query(text, [pool.asked.identity], deadline).vector
            except ProviderError:  # reported for the question itself, or the time is up
                return

    def load_vectors(self) -> None:
        """Read the vectors that were added since the last read."""
        if chain := self._index.embedder():
            self._matrix(chain.identity.key, chain.identity.dimensions)

    def likeness(self, found: Sequence[int]) -> Likeness | None:
        """Return how near each two of the found passages are; None without vectors."""
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
        """Return the passages nearest to the one with a reference."""
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
        """Add passages of the days asked about: those that represent the days, and matches by words and vectors."""
        search = self._index.passages.search
        days = self._last_talk(chosen) if when.latest else when.days
        if days is None:
            return
        if when.ahead:
            self._add_coming(pool, when, days, chosen)
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

    def _add_coming(self, pool: Pool, when: When, days: Days, chosen: Selection) -> None:
        """Add passages about coming days; to a question for plans they are the answer."""
        about = AboutDays(self._index.passages.database).about(days.first, days.last, chosen, OF_DAYS)
        self._add_places(pool, set(about) - pool.places.keys(), chosen)
        pool.of_days = set(about)
        pool.told, pool.only_days = (about, True) if when.agenda else ([], False)

    def _window(self, days: Days, later: int = 0) -> Window:
        """Return the days in the form of the index, extended by some days."""
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
        """Return passages found by words; if all words are too common, the newest that contain all of them.

        If those are few, the newest with the rarest word are added.
        """
        search, most = self._index.passages.search, pool.affordable
        if not most or not terms:
            return dict(search.match(terms, POOL, chosen))
        found = dict(search.match(terms, POOL, chosen, most))
        if len(found) < POOL and len(terms) > 1:
            found = {**dict(search.match([search.rarest(terms, most)], POOL, chosen, most)), **found}
        return found

    def _terms(self, question: str, german: bool, pool: Pool) -> tuple[list[str], float]:
        """Return the terms for the keyword index, and the score of an average text with the whole question."""
        total = pool.total
        # Ranking costs by the row: rare words come first, common ones only as long as they are affordable.
        left = most = max(POSTINGS + total // 100, ALL_POSTINGS * ALL_POSTINGS // max(total, ALL_POSTINGS))
        asked = {term: _known(self._index.passages, term, most, german) for term in _subject_words(question)}
        names = [term for text in pool.others for term in terms_of(text) if term not in asked]
        pairs = [pair for known in asked.values() for pair in known]
        pairs += [pair for name in names for pair in _known(self._index.passages, name, most, False)]
        chosen: dict[str, None] = {}
        if pairs and min(pairs)[0] >= most:  # none is affordable: only passages with all of them are ranked
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
        """Return passages with compounds of the words of a German question, or with the parts of its compounds."""
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

        self._index.has_read_vectors = True
        return searched(self._index.passages, identity, dimensions, self._index.vectors)


def _meaning(question: str, embedded: Embedded, chain: Chain, pool: Pool) -> Floats:
    """Return the question's vector, mostly without its speakers' names.

    Turns are embedded with their speaker, so a name in the question matches everything that person said. A remote
    service is not called twice: that would cost money and a round trip.
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
    """Return the weights of vectors and words; vectors weigh less if the model does not know the question's
    language.
    """
    if not model.english or language(question) == "english":
        return weights
    return weights[0] * FOREIGN, weights[1]


def _subject_words(question: str) -> list[str]:
    """Return the words of a question that name its subject, if any do."""
    terms = terms_of(question)
    asking = {degree.casefold() for degree in _DEGREE.findall(question)}
    if asks_about_the_past(question):
        asking |= SPOKEN
    return [term for term in terms if term not in asking] or terms


def _rarity(count: int, total: int) -> float:
    """Return the weight of a word that `count` of `total` passages contain, as the keyword index computes it."""
    return max(math.log((total - count + 0.5) / (count + 0.5)), 0.0) if count < total else 0.0


def _known(passages: Passages, term: str, most: int, german: bool) -> list[tuple[int, str]]:
    """Return the term with its frequency; if it is unknown, compounds that contain it or the words it consists of."""
    stemmed = german_stem(term) if german else term
    # The stem of "andere" is the English "and".
    for form in dict.fromkeys((term,) if stemmed in STOP_WORDS else (stemmed, term)):
        if count := passages.search.occurrences(form, most):
            return [(count, form)]
    if len(term) < _SHORTEST_PART or " " in term:
        return []
    found = passages.search.compounds(folded(term)) or _parts_in(passages, term)
    return [(passages.search.occurrences(other, most), other) for other in found]


def _parts_in(passages: Passages, term: str) -> list[str]:
    """Return the two indexed words that a long word consists of."""
    if not LONG_WORD <= len(term) <= LONGEST_WORD:
        return []
    for parts in parts_of(term):
        known = list(itertools.takewhile(bool, (_form_in(passages, part) for part in parts)))
        if len(known) == len(parts):
            return known
    return []


def _form_in(passages: Passages, part: str) -> str:
    """Return the indexed form of a German word, or an empty text."""
    return next(filter(passages.search.occurrences, dict.fromkeys((german_stem(part), part))), "")
