"""Find passages: filters as SQL, the keyword index, positions and days."""

from __future__ import annotations

import json
from array import array
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.caches import BoundedCache
from nanoclaw_memory.store.database import Database
from nanoclaw_memory.store.keywords import like
from nanoclaw_memory.types import Passage

T = TypeVar("T")

CURRENT = ("", "held")  # statuses that are shown by default
REMEMBERED = 16  # filters of an unchanged index: a turn uses the same one again and again
COMMON = 4_000  # passages with a term beyond which its scores are not cached
_MISSING: Any = object()
_KEPT = BoundedCache(32 * 1024 * 1024)  # results for unchanged indexes, by their states
FEW = 1_000  # passages excluded by a filter up to which they are listed once, not tested by every query


_COLUMNS = ", ".join(f"p.{name}" for name in Passage.__struct_fields__)
_LOAD = (
    f"SELECT p.id, p.document_id, p.position, d.source, d.name, {_COLUMNS} FROM passages p"  # noqa: S608
    " JOIN documents d ON d.id = p.document_id WHERE p.id IN (SELECT value FROM json_each(:ids))"
)


class StoredPassage(msgspec.Struct, frozen=True):
    """A passage in the index: its place and text; `path` is the name of its document."""

    id: int
    document_id: int
    position: int
    source: str
    path: str
    passage: Passage


class Place(msgspec.Struct, frozen=True):
    """The position of a passage in its document."""

    id: int
    document_id: int
    position: int
    kind: str
    speaker: str


class PassageFilter(msgspec.Struct, frozen=True):
    """Which passages a query may return; tested before any limit."""

    sources: tuple[str, ...] | None = None  # None: every source
    left_out: tuple[str, ...] = ()  # sources; cheaper than to name most of them
    documents: tuple[int, ...] | None = None  # None: every document
    statuses: tuple[str, ...] = CURRENT
    now: str = ""  # passages that have expired by then are left out
    types: tuple[str, ...] | None = None  # of entries; None: every type
    tags: tuple[str, ...] = ()  # all of them
    lowest_priority: int = 99
    session: str = ""  # whose rows after `after` are left out: they are still in the model's window
    after: int = 0
    since: str = ""  # the first and the last day on which it was said
    until: str = ""
    project: str = ""
    person: str = ""  # the speaker, or a person named in it

    def including(self) -> tuple[str, dict[str, Any]]:
        """Return the condition for a passage in SQL; empty for all."""
        params: dict[str, Any] = {}
        parts = []
        if self.sources is not None:
            params["sources"] = json.dumps(self.sources)
            of_source = "SELECT id FROM documents WHERE source IN (SELECT value FROM json_each(:sources))"
            parts.append(f"document_id IN ({of_source})")
        if self.documents is not None:
            params["documents"] = json.dumps(self.documents)
            parts.append("document_id IN (SELECT value FROM json_each(:documents))")
        if self.types is not None:
            params["types"] = json.dumps(self.types)
            # The entries of a type are one document: this uses an index, while the type itself is read row by row.
            of_type = "source = 'entries' AND name IN (SELECT value FROM json_each(:types))"
            parts.append(f"document_id IN (SELECT id FROM documents WHERE {of_type})")  # noqa: S608
        if self.lowest_priority < 99:
            params["lowest_priority"] = self.lowest_priority
            parts.append("priority <= :lowest_priority")
        for number, tag in enumerate(self.tags):
            parts.append(like("tags", f"tag{number}", tag, params, "\n"))
        if self.since or self.until:
            params |= {"since": self.since, "until": self.until or "9999"}
            parts.append("day <> '' AND day BETWEEN :since AND :until")
        if self.project:
            params["project"] = self.project
            parts.append("project = :project")
        if self.person:
            speaks = like("'|' || speaker || '|'", "person", self.person, params, "|")
            parts.append(f"({speaks} OR {like('text', 'named', self.person, params)})")
        return " AND ".join(parts), params

    def excluding(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield conditions that exclude a passage; each uses an index."""
        if self.left_out:
            of_source = "SELECT id FROM documents WHERE source IN (SELECT value FROM json_each(:left_out))"
            yield f"document_id IN ({of_source})", {"left_out": json.dumps(self.left_out)}
        statuses = json.dumps(self.statuses)
        yield (
            "status <> '' AND status NOT IN (SELECT value FROM json_each(:statuses))",
            {"statuses": statuses},
        )
        if self.now and "expired" not in self.statuses:
            yield "expires <> '' AND expires <= :now", {"now": self.now}
        if self.session:
            own = "SELECT id FROM documents WHERE source = 'exchanges' AND name = :session"
            yield (
                f"document_id = ({own}) AND number > :after",
                {"session": self.session, "after": self.after},
            )


class Window(msgspec.Struct, frozen=True):
    """A time range: days as written, and its first and last moment in UTC for the person's time zone."""

    first: str
    last: str
    start: str
    end: str

    def condition(self) -> tuple[str, dict[str, str]]:
        """Return the condition for a passage of this time, in SQL; in UTC its moment may be on another day."""
        params = {
            "window_first": self.first,
            "window_last": self.last,
            "window_start": self.start,
            "window_end": self.end,
            "window_low": min(self.first, self.start[:10]),
            "window_high": max(self.last, self.end[:10]),
        }
        return (
            "day <> '' AND day BETWEEN :window_low AND :window_high AND CASE WHEN moment = ''"
            " THEN day BETWEEN :window_first AND :window_last"
            " ELSE moment >= :window_start AND moment < :window_end END",
            params,
        )


class Selection(msgspec.Struct, frozen=True):
    """A filter as SQL on `passages`: conditions to include and exclude, and their values."""

    within: str = ""
    without: str = ""
    params: Mapping[str, Any] = {}
    excluded: tuple[int, ...] = ()  # the ids that `without` finds, if known

    @property
    def is_listed(self) -> bool:
        """Return whether it includes everything but some known passages."""
        return not self.within and bool(self.excluded) == bool(self.without)

    def during(self, window: Window) -> Selection:
        """Return the same, limited to a time range."""
        condition, params = window.condition()
        within = f"{self.within} AND {condition}" if self.within else condition
        return replace(self, within=within, params={**self.params, **params})

    def beside(self, column: str) -> str:
        """Return the same as a further condition on few rows: each is looked up by itself."""
        seen = f"SELECT 1 FROM passages WHERE id = {column} AND {self.within}"  # noqa: S608
        within = f" AND EXISTS ({seen})" if self.within else ""
        return within + (f" AND {column} NOT IN ({self.without})" if self.without else "")

    @property
    def here(self) -> str:
        """Return the condition on rows of `passages` themselves."""
        without = f"id NOT IN ({self.without})" if self.without else ""
        return " AND ".join(part for part in (self.within, without) if part)

    def of(self, column: str) -> str:
        """Return the condition on an id column."""
        # The plus prevents row-by-row lookups instead of a walk over the keyword index.
        within = f"+{column} IN (SELECT id FROM passages WHERE {self.within})" if self.within else ""  # noqa: S608
        without = f"+{column} NOT IN ({self.without})" if self.without else ""
        return " AND ".join(part for part in (within, without) if part)


class PassageSearch:
    """Read the passages of one search index."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._selected: tuple[str, dict[PassageFilter, Selection]] = "", {}
        self._state: tuple[str, str] | None = None
        self._asked = self._first = False  # whether a question was answered before, or is the first

    def selection(self, wanted: PassageFilter) -> Selection:
        """Return a filter as SQL; few excluded passages become a list of ids, because conditions cost every query."""
        now = self._generation()
        if wanted.now and self._unchanged_since():  # between moments without an expiry the filter is the same
            moments = self.unchanged("expiries", self._expiries)
            passed = bisect_right(moments, wanted.now)
            wanted = replace(wanted, now=moments[passed - 1] if passed else "")
        if self._selected[0] != now or len(self._selected[1]) >= REMEMBERED:
            self._selected = now, {}
        known = self._selected[1]
        if wanted not in known:
            known[wanted] = self._selection(wanted)
        return known[wanted]

    def _expiries(self) -> tuple[str, ...]:
        sql = "SELECT DISTINCT expires FROM passages WHERE expires <> '' ORDER BY expires"
        return tuple(str(moment) for (moment,) in self.database.query(sql))

    def _generation(self) -> str:
        if self._state is not None:
            return self._state[1]
        rows = self.database.query("SELECT value FROM meta WHERE key = 'generation'")
        return str(rows[0][0]) if rows else ""

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Treat the index as unchanged during one question: new rows belong to the next."""
        outer, self._first, self._asked = self._state, not self._asked, True
        self._state = self._unchanged_since()
        try:
            yield
        finally:
            self._state, self._first = outer, False

    def _unchanged_since(self) -> tuple[str, str] | None:
        """Return the index and its last change; None if nothing is cached, as in a hook's process, which asks only
        once.
        """
        if self._first or (self._state is None and (self.database.writing or self.database.read_only)):
            return None
        return self._state or self._noted(self.database.place, self._generation())

    @staticmethod
    def _noted(place: str, generation: str) -> tuple[str, str]:
        """Return the state of an index; results for its former state are dropped at once."""
        if _KEPT.get(place) != generation:
            _KEPT.age()
            _KEPT.put(place, generation)
        return place, generation

    def unchanged(self, what: Hashable, find: Callable[..., T], *given: Any) -> T:
        """Return the result of `find`, cached in memory until the index changes."""
        state = self._unchanged_since()  # taken before reading: a cached result is never older than its state
        if state is None:
            return find(*given)
        found = _KEPT.get((state, what), _MISSING)
        if found is _MISSING:
            found = find(*given)
            _KEPT.put((state, what), found)
        return cast("T", found)

    def _selection(self, wanted: PassageFilter) -> Selection:
        within, params = wanted.including()
        conditions, values = zip(*wanted.excluding(), strict=True)
        without = " UNION ALL ".join(f"SELECT id FROM passages WHERE {one}" for one in conditions)  # noqa: S608
        others = {name: value for some in values for name, value in some.items()}
        few = self.ids(f"{without} LIMIT {FEW + 1}", others)
        if not few:
            return Selection(within, "", params)
        if len(few) <= FEW:
            known = params | {"excluded": json.dumps(few)}
            return Selection(within, "SELECT value FROM json_each(:excluded)", known, tuple(few))
        return Selection(within, without, params | others)

    def ids(self, condition: str, params: Mapping[str, Any]) -> list[int]:
        """Return the passages that meet a condition of a `Selection`."""
        return [int(number) for (number,) in self.database.query(condition, params)]

    def referred(self, reference: str) -> int:
        """Return the passage of the entry with this id; 0 when there is none."""
        sql = "SELECT id FROM passages WHERE kind = 'entry' AND reference = :reference"
        rows = self.database.query(sql, {"reference": reference})
        return int(rows[0][0]) if rows else 0

    def load(self, ids: Iterable[int]) -> dict[int, StoredPassage]:
        """Return the passages with these ids; those of an unchanged index are cached."""
        if not (wanted := set(ids)):
            return {}
        state = self._unchanged_since()
        if state is None:
            return self._read(wanted)
        kept = _KEPT.several([(state, number) for number in wanted])
        found = {one.id: one for one in kept if one is not None}
        if missing := wanted - found.keys():
            for number, one in self._read(missing).items():
                _KEPT.put((state, number), one)
                found[number] = one
        return dict(sorted(found.items()))

    def _read(self, ids: Iterable[int]) -> dict[int, StoredPassage]:
        rows = self.database.query(_LOAD, {"ids": json.dumps(list(ids))})
        return {
            row[0]: StoredPassage(row[0], row[1], row[2], row[3], row[4], Passage(*row[5:])) for row in rows
        }

    def rows_of(self, source: str) -> dict[int, int]:
        """Return every passage of a source with its row there."""
        sql = "SELECT id, number FROM passages WHERE document_id IN (SELECT id FROM documents WHERE source = :source)"
        return dict(self.database.query(sql, {"source": source}))

    def match(
        self, terms: Sequence[str], limit: int, chosen: Selection | None, newest: int = 0
    ) -> list[tuple[int, float]]:
        """Return passages that contain any of the terms, or of the `newest` that contain all of them, best first."""
        alone = not newest and (chosen is None or chosen.is_listed)
        if alone and self.database.is_file and self._unchanged_since():
            found = self._best(terms, limit, chosen.excluded if chosen else ())
            if found is not None:
                return found
        only, params = (chosen.of("rowid"), chosen.params) if chosen else ("", None)
        return self.database.match("passages_fts", terms, limit, only, params, newest)

    def _best(
        self, terms: Sequence[str], limit: int, excluded: Iterable[int]
    ) -> list[tuple[int, float]] | None:
        """Return the same from cached scores per term, whose sum is SQLite's score. None if a term is common."""
        kept = [self.unchanged(("scores", term), self._scores, term) for term in terms]
        if not all(kept):
            return None
        # In the order of the terms, as SQLite adds: another order may differ in the last bit.
        scores: dict[int, float] = dict(zip(*kept[0], strict=True)) if kept else {}
        for one in kept[1:]:
            for number, score in zip(*one, strict=True):
                scores[number] = scores.get(number, 0.0) + score
        for number in excluded:
            scores.pop(number, None)
        if len(scores) > limit:
            least = sorted(scores.values(), reverse=True)[limit - 1]
            scores = {number: score for number, score in scores.items() if score >= least}
        return sorted(scores.items(), key=lambda one: (-one[1], one[0]))[:limit]

    def _scores(self, term: str) -> tuple[array[Any], ...]:
        """Return the passages that contain a term, and its score in each; empty for a common term."""
        found, params = self.database.containing("passages_fts", [term])
        sql = f"SELECT rowid, -rank FROM passages_fts WHERE {found} LIMIT {COMMON + 1}"  # noqa: S608
        rows = self.database.query(sql, params)
        if len(rows) > COMMON:
            return ()
        return array("q", (row[0] for row in rows)), array("d", (row[1] for row in rows))

    def rarest(self, terms: Sequence[str], most: int) -> str:
        """Return, among terms that occur at least so often, the one whose newest occurrences reach back furthest."""
        return min(terms, key=lambda term: self.database.newest("passages_fts", [term], most))

    def occurrences(self, term: str, most: int = 1, chosen: Selection | None = None) -> int:
        """Count the passages that contain the term; stop at `most`."""
        if chosen is not None and chosen.of("rowid"):
            return self.database.occurrences("passages_fts", term, most, chosen.of("rowid"), chosen.params)
        what = "passages_fts", term, most
        return self.unchanged(("occurrences", what), self.database.occurrences, *what)

    def compounds(self, part: str, limit: int = 20) -> list[str]:
        """Return long words that contain `part`: "migration" finds "datenbankmigration"."""
        rows = self.database.query(
            "SELECT word FROM long_words WHERE instr(word, :part) > 0 LIMIT :limit",
            {"part": part, "limit": limit},
        )
        return [str(word) for (word,) in rows]

    def places(self, ids: Iterable[int], reach: int, chosen: Selection | None = None) -> list[Place]:
        """Return the positions of these passages, and the chosen turns up to `reach` positions around a turn."""
        state = self._unchanged_since()
        wanted = set(ids)
        kept = _KEPT.several([(state, one, Place) for one in wanted]) if state else []
        found = [place for place in kept if place is not None]
        missing = wanted.difference(place.id for place in found)
        if missing:
            found += (read := self._places(missing, reach, chosen))
            for place in read if state else ():
                if place.kind != "turn":  # its neighbours do not count
                    _KEPT.put((state, place.id, Place), place)
        return found

    def _places(self, ids: Iterable[int], reach: int, chosen: Selection | None) -> list[Place]:
        beside = chosen.beside("n.id") if chosen else ""
        rows = self.database.query(
            "WITH found AS MATERIALIZED (SELECT id, document_id, position, kind, speaker FROM passages"  # noqa: S608
            " WHERE id IN (SELECT value FROM json_each(:ids)))"
            " SELECT * FROM found UNION ALL"
            " SELECT n.id, n.document_id, n.position, n.kind, n.speaker FROM found p JOIN passages n"
            " ON n.document_id = p.document_id AND n.position <> p.position"
            f" AND n.position BETWEEN p.position - :reach AND p.position + :reach WHERE p.kind = 'turn'{beside}",
            {"ids": json.dumps(list(ids)), "reach": reach, **(chosen.params if chosen else {})},
        )
        return [Place(*row) for row in rows]

    def sample(self, limit: int) -> list[str]:
        """Return texts of passages, newest first."""
        rows = self.database.query(
            "SELECT text FROM passages ORDER BY id DESC LIMIT :limit", {"limit": limit}
        )
        return [str(text) for (text,) in rows]

    def told(self, chosen: Selection, limit: int, talk: bool = False) -> list[int]:
        """Return passages that represent a time range: the weightiest of every day and document first.

        With `talk` only what was said: facts of that day do not answer "what were we talking about?".
        """
        kinds = "kind = 'turn'" if talk else "kind <> 'lesson'"
        rows = self.database.query(
            "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY document_id, day ORDER BY"  # noqa: S608
            " coalesce(importance, 0.5) DESC, speaker = 'User' DESC, min(length(text), 300) DESC, id) AS place"
            f" FROM passages WHERE {kinds} AND {chosen.here})"
            " ORDER BY place, id DESC LIMIT :limit",
            {"limit": limit, **chosen.params},
        )
        return [int(number) for (number,) in rows]

    def among(self, ids: Iterable[int], window: Window) -> set[int]:
        """Return those of these passages that are in a time range."""
        condition, params = window.condition()
        rows = self.database.query(
            f"SELECT id FROM passages WHERE id IN (SELECT value FROM json_each(:ids)) AND {condition}",  # noqa: S608
            {"ids": json.dumps(list(ids)), **params},
        )
        return {int(number) for (number,) in rows}

    def last_talk(self, chosen: Selection | None) -> tuple[str, str]:
        """Return day and moment of the newest turn; empty when there is none."""
        only = chosen.here if chosen is not None else ""
        rows = self.database.query(
            f"SELECT day, moment FROM passages WHERE kind = 'turn' AND day <> ''{' AND ' + only if only else ''}"  # noqa: S608
            " ORDER BY day DESC, moment DESC LIMIT 1",
            chosen.params if chosen else {},
        )
        return (str(rows[0][0]), str(rows[0][1])) if rows else ("", "")
