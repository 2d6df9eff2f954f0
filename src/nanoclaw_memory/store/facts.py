"""The table of facts: entity, key and value with validity and activation; and the base of facts and relations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import msgspec

from nanoclaw_memory.store.database import Database, Row
from nanoclaw_memory.store.keywords import ESZETT, spaced
from nanoclaw_memory.store.names import FOREIGN_ORIGINS, placeholders, spelling
from nanoclaw_memory.store.table import Table, as_struct, assignments, insertion
from nanoclaw_memory.text import fingerprint, one_line
from nanoclaw_memory.types import EntityCount, Fact, Relation

VALID = (
    "({row}.valid_from <= :at OR {ahead}) AND (:all = 1 OR {row}.shared = 1)"  # noqa: S608
    f" AND (:trust = '' OR (:trust = 'foreign') = ({{row}}.origin IN {FOREIGN_ORIGINS}))"
    " AND ({row}.valid_to IS NULL OR {row}.valid_to > :at AND NOT EXISTS"
    " (SELECT 1 FROM {table} AS newer WHERE newer.id = {row}.superseded_by AND {newer_ahead}))"
)


def valid(table: str, row: str = "") -> str:
    """Return the condition of rows that a view shows; `row` is the alias of the table in a query.

    A row that a clock in the future dated is valid now, and what it retired is not.
    """
    ahead = "({0}.created_at > :now AND {0}.valid_from <= {0}.created_at)"
    row = row or table
    return VALID.format(table=table, row=row, ahead=ahead.format(row), newer_ahead=ahead.format("newer"))


_VALID = valid("facts")
POSTINGS = 4_000  # maximal rows of the keyword index that one question may read
MAX_OF_ENTITY = 2_000


class View(msgspec.Struct, frozen=True):
    """What a reader may see: facts valid at a moment, all of them or only the shared ones."""

    at: str
    all: bool = True
    past: bool = False
    trust: str = ""  # own: what the owner trusts, foreign: the rest, empty: both
    project: str = ""  # the reader's: statements of other projects are ranked lower

    @property
    def params(self) -> dict[str, Any]:
        # A view of the past includes no rows dated after it.
        now = "~" if self.past else self.at
        return {"at": self.at, "all": int(self.all), "now": now, "trust": self.trust}


ItemT = TypeVar("ItemT", Fact, Relation)


class StatementRow(msgspec.Struct, Generic[ItemT], frozen=True):
    """A fact or relation with the columns that only the graph needs; `names` are the folded ones at its ends."""

    item: ItemT
    names: tuple[str, ...]
    slot: str
    shared: bool


FactRow: TypeAlias = StatementRow[Fact]
RelationRow: TypeAlias = StatementRow[Relation]


def digest(value: str) -> str:
    """Return a digest that ignores case and spacing."""
    return fingerprint(one_line(value).casefold())[:24]


def near_digest(value: str) -> str:
    """Return a digest that ignores spelling."""
    return "~" + fingerprint(spelling(value, inflected=False))[:23]


def unspaced(*texts: str) -> str | None:
    """Return what the keyword index needs beside the texts: unspaced scripts split, ß as in questions; else None."""
    whole = " ".join(texts)
    apart = spaced(whole.translate(ESZETT))
    return apart if apart != whole else None


class StatementTable(Table[StatementRow[ItemT]]):
    """The base of the tables of facts and of relations. Writing needs an open transaction."""

    kind: ClassVar[str]  # the kind of its mentions
    words: ClassVar[tuple[str, ...]]  # the columns in the keyword index
    ends: ClassVar[tuple[str, ...]]  # the columns with the folded names
    identity: ClassVar[tuple[str, ...]]  # rows that are equal in these columns state the same
    cools: ClassVar[str] = "activation > 0.01"
    decays: ClassVar[str] = ""  # the remaining activation since the last use, if the table has one

    def read(self, row: Row) -> StatementRow[ItemT]:
        ends = -2 - len(self.ends)
        item: ItemT = as_struct(self.value, row[:ends])
        return StatementRow(item, row[ends:-2], row[-2], bool(row[-1]))

    def get(self, number: int) -> StatementRow[ItemT] | None:
        """Return one row by its id."""
        return self.first("WHERE id = :id", {"id": number})

    def many(self, ids: Iterable[int], view: View) -> list[StatementRow[ItemT]]:
        """Return those of the ids that the view shows."""
        marks, params = placeholders("i", ids)
        return self.select(f"WHERE id IN ({marks}) AND {valid(self.table)}", {**params, **view.params})

    def match(self, terms: Sequence[str], view: View, limit: int) -> list[StatementRow[ItemT]]:
        """Return rows that contain any of the terms, best first."""
        index, shown = f"{self.table}_fts", valid(self.table)
        only = f"rowid IN (SELECT id FROM {self.table} WHERE id = {index}.rowid AND {shown})"  # noqa: S608
        found = keyword_rows(self.db, index, terms, limit, only, view.params)
        rows = {row.item.id: row for row in self.many(found, view)}
        return [rows[rowid] for rowid in found if rowid in rows]

    def every(self, everything: bool) -> Iterable[StatementRow[ItemT]]:
        """Return all rows, past ones too, in the order of storing."""
        sql = f"SELECT {self.columns} FROM {self.table} WHERE :all = 1 OR shared = 1 ORDER BY id"  # noqa: S608
        return (self.read(row) for row in self.db.rows(sql, {"all": everything}))

    def insert(self, row: Mapping[str, Any]) -> int:
        """Store a new row; `row` has the columns' names."""
        filled = {**row, "spaced": unspaced(*(row[name] for name in self.words))}
        return self.db.insert(insertion(self.table, filled), filled)

    def line(
        self, names: Sequence[str], slot: str = "", everything: bool = True
    ) -> list[StatementRow[ItemT]]:
        """Return every value that a key, or each key of an entity, ever had, oldest first."""
        marks, params = placeholders("n", names)
        rest = (
            f"WHERE {self.identity[0]} IN ({marks}) AND (:slot = '' OR slot = :slot)"
            " AND (:all = 1 OR shared = 1) ORDER BY slot, valid_from, id"
        )
        return self.select(rest, {**params, "slot": slot, "all": everything})

    def retire(self, number: int, moment: str | None, by: int | None) -> None:
        """End the validity of a row at `moment`; None makes it valid again."""
        sql = f"UPDATE {self.table} SET valid_to = :moment, superseded_by = :by WHERE id = :id"  # noqa: S608
        self.db.execute(sql, {"id": number, "moment": moment, "by": by})

    def revive(self, number: int) -> None:
        """Make a retired row valid again, unless its value is valid in another row."""
        same = " AND ".join(f"other.{name} = {self.table}.{name}" for name in self.identity)
        self.db.execute(
            f"UPDATE {self.table} SET valid_to = NULL WHERE id = :id AND NOT EXISTS"  # noqa: S608
            f" (SELECT 1 FROM {self.table} AS other WHERE {same} AND other.valid_to IS NULL)",
            {"id": number},
        )

    def set(self, number: int, **values: Any) -> None:
        """Change columns of a row: the start of its validity, its author, its project."""
        sql = f"UPDATE {self.table} SET {assignments(values)} WHERE id = :id"  # noqa: S608
        self.db.execute(sql, {"id": number, **values})

    def redate(self, names: Sequence[str], moment: str, now: str) -> None:
        """Set `moment` as the date of rows dated ahead of the clock: they were stored before `now`."""
        marks, params = placeholders("n", names)
        ahead = f"{self.identity[0]} IN ({marks}) AND created_at > :now AND valid_from <= created_at"
        given = {**params, "now": now, "moment": moment}
        self.db.execute(
            f"UPDATE {self.table} SET valid_to = :moment WHERE valid_to > :moment AND superseded_by IN"  # noqa: S608
            f" (SELECT id FROM {self.table} WHERE {ahead})",
            given,
        )
        self.db.execute(
            f"UPDATE {self.table} SET valid_from = :moment WHERE valid_from > :moment AND {ahead}",  # noqa: S608
            given,
        )

    def resource(self, number: int, before: str, source: str) -> None:
        """Change the source of a row from `before` to `source`: the line moved."""
        sql = f"UPDATE {self.table} SET source = :source WHERE id = :id AND source = :before"  # noqa: S608
        self.db.execute(sql, {"id": number, "source": source, "before": before})

    def reshare(self, path: str, shared: bool) -> None:
        """Make rows from a file visible to the same scopes as the file."""
        self.db.execute(
            f"UPDATE {self.table} SET shared = :shared WHERE shared <> :shared"  # noqa: S608
            " AND source LIKE :path || ':%' AND id IN"
            " (SELECT item FROM mentions WHERE mentions.path = :path AND kind = :kind)",
            {"path": path, "shared": int(shared), "kind": self.kind},
        )

    def delete(self, number: int) -> None:
        """Delete a row; the one it had replaced is valid again."""
        table = self.table
        same = " AND ".join(f"same.{name} = {table}.{name}" for name in self.identity)
        self.db.execute(
            f"UPDATE {table} SET valid_to = (SELECT valid_to FROM {table} WHERE id = :id),"  # noqa: S608
            f" superseded_by = (SELECT superseded_by FROM {table} WHERE id = :id) WHERE superseded_by = :id"
            f" AND NOT EXISTS (SELECT 1 FROM {table} AS same WHERE {same} AND same.valid_to IS NULL)",
            {"id": number},
        )
        sql = "DELETE FROM mentions WHERE kind = :kind AND item = :id"
        self.db.execute(sql, {"kind": self.kind, "id": number})
        self.db.execute(f"DELETE FROM {table} WHERE id = :id", {"id": number})  # noqa: S608

    def bump(self, amounts: Mapping[int, float], moment: str) -> None:
        """Raise activation and count the access."""
        self.db.execute_many(
            f"UPDATE {self.table} SET activation = activation + :amount, access_count = access_count + 1,"  # noqa: S608
            f" last_accessed = :moment{f', {self.decays} = 1' if self.decays else ''} WHERE id = :id",
            [{"id": key, "amount": amount, "moment": moment} for key, amount in amounts.items()],
        )

    def cool(self, factor: float, after: str, before: str) -> int:
        """Lower the activation of rows stored from `after` until `before`; permanent facts stay."""
        own = f", {self.decays} = coalesce({self.decays}, 1) * :factor" if self.decays else ""
        return self.db.update(
            f"UPDATE {self.table} SET activation = max(activation * :factor, 0.01){own}"  # noqa: S608
            f" WHERE {self.cools} AND created_at >= :after AND created_at < :before",
            {"factor": factor, "after": after, "before": before},
        )


def valid_rows(db: Database, table: str) -> int:
    """Count the valid facts or relations."""
    return int(db.query(f"SELECT count(*) FROM {table} WHERE valid_to IS NULL")[0][0])  # noqa: S608 - our own tables


class FactTable(StatementTable[Fact]):
    """The facts of one database."""

    table = "facts"
    value = Fact
    kind = "fact"
    columns = f"{', '.join(Fact.__struct_fields__)}, name, slot, shared"
    words = ("entity", "key", "value")
    ends = ("name",)
    identity = ("name", "slot", "digest", "project")
    cools = "permanent = 0 AND activation > 0.01"
    decays = "decay_score"

    def insert(self, row: Mapping[str, Any]) -> int:
        return super().insert({**row, "digest": digest(row["value"])})

    # ---- reading ----

    def of(self, names: Sequence[str], view: View, limit: int = MAX_OF_ENTITY) -> list[FactRow]:
        """Return the facts of the folded entities; for one with very many, only the first by id."""
        marks, params = placeholders("n", names)
        rest = f"WHERE name IN ({marks}) AND {_VALID} LIMIT :limit"
        return self.select(rest, {**params, **view.params, "limit": limit})

    def at(self, names: Sequence[str], slots: Sequence[str], view: View) -> list[FactRow]:
        """Return the facts of the entities under exactly these keys."""
        marks, params = placeholders("n", names)
        keys, more = placeholders("k", slots)
        rest = f"WHERE name IN ({marks}) AND slot IN ({keys}) AND {_VALID}"
        return self.select(rest, {**params, **more, **view.params})

    def changed(self, start: str, end: str, everything: bool = True) -> list[FactRow]:
        """Return the facts that became valid or ended from `start` to before `end`, oldest change first."""
        rest = (
            "WHERE (:all = 1 OR shared = 1) AND ("
            "(valid_from >= :start AND valid_from < :end) OR (valid_to >= :start AND valid_to < :end))"
            " ORDER BY CASE WHEN valid_to >= :start AND valid_to < :end THEN valid_to ELSE valid_from END, id"
            " LIMIT 1000"
        )
        return self.select(rest, {"start": start, "end": end, "all": everything})

    def replaced(self, names: Sequence[str], after: str) -> list[FactRow]:
        """Return values of the entities that another one replaced later than `after`."""
        marks, params = placeholders("n", names)
        rest = f"WHERE name IN ({marks}) AND valid_to > :after AND superseded_by IS NOT NULL"
        return self.select(rest, {**params, "after": after})

    def stated_on(self, source: str) -> list[FactRow]:
        """Return the valid facts that a line, as `path:line`, states."""
        path, _, line = source.rpartition(":")
        rest = (
            "WHERE valid_to IS NULL AND id IN"
            " (SELECT item FROM mentions WHERE path = :path AND line = :line AND kind = 'fact')"
        )
        return self.select(rest, {"path": path, "line": int(line) if line.isdigit() else -1})

    def entities(self, view: View, limit: int, start: int) -> list[EntityCount]:
        """Return every entity that a fact or relation names, those with the most first."""
        ends = " UNION ALL ".join(
            f"SELECT {end}, {end}_name, 0, 1 FROM relations WHERE {valid('relations')}"  # noqa: S608
            for end in ("subject", "object")
        )
        sql = (
            "SELECT max(entity), sum(facts), sum(relations) FROM (SELECT entity, name, 1 AS facts, 0 AS relations"  # noqa: S608
            f" FROM facts WHERE {_VALID} UNION ALL {ends}) AS found GROUP BY name"
            " ORDER BY sum(facts) + sum(relations) DESC, name LIMIT :limit OFFSET :start"
        )
        rows = self.db.query(sql, {**view.params, "limit": limit, "start": start})
        return [EntityCount(entity, int(facts), int(relations)) for entity, facts, relations in rows]

    def top(self, view: View, low: float, high: float, limit: int) -> list[FactRow]:
        """Return the hottest facts with an activation from `low` to `high`."""
        rest = (
            f"WHERE {_VALID} AND activation >= :low AND activation <= :high"
            " ORDER BY activation DESC, id LIMIT :limit"
        )
        return self.select(rest, {**view.params, "low": low, "high": high, "limit": limit})

    def forsaken(self, unused: float, before: str, limit: int) -> list[FactRow]:
        """Return cool facts that nobody used since, the coolest first, without those that a page states."""
        rest = (
            "WHERE valid_to IS NULL AND permanent = 0 AND activation < 1"
            " AND decay_score < :unused AND created_at < :before AND NOT EXISTS (SELECT 1 FROM mentions m"
            " WHERE m.kind = 'fact' AND m.item = facts.id AND m.path NOT LIKE 'exchanges/%'"
            " AND m.path NOT LIKE 'memory/2%' AND m.path NOT LIKE 'memory/archive/%')"
            " ORDER BY activation, id LIMIT :limit"
        )
        return self.select(rest, {"unused": unused, "before": before, "limit": limit})

    def linked(
        self, ids: Sequence[int], weight: float, limit: int, view: View
    ) -> list[tuple[FactRow, int, float]]:
        """Return facts linked to any of `ids` with at least this weight, each with the linking fact and the weight."""
        marks, params = placeholders("i", ids)
        sql = (
            "SELECT fact_b, fact_a, weight FROM co_occurrences"  # noqa: S608
            f" WHERE fact_a IN ({marks}) AND fact_b NOT IN ({marks}) AND weight >= :weight"
            " UNION ALL SELECT fact_a, fact_b, weight FROM co_occurrences"
            f" WHERE fact_b IN ({marks}) AND fact_a NOT IN ({marks}) AND weight >= :weight"
            " ORDER BY weight DESC, 1 LIMIT :limit"
        )
        # Some of them may be retired; a slightly higher limit makes up for those.
        links = self.db.query(sql, {**params, "weight": weight, "limit": limit * 4})
        best: dict[int, tuple[int, float]] = {}
        for other, puller, strength in links:
            best.setdefault(other, (puller, strength))
        rows = {row.item.id: row for row in self.many(best, view)}
        return [(rows[other], *best[other]) for other in best if other in rows][:limit]

    # ---- writing ----

    def confirm(self, fact_id: int, importance: float, permanent: bool, shared: int) -> None:
        """Repeat of a known fact: raise importance, permanence and visibility, never lower them."""
        self.db.execute(
            "UPDATE facts SET importance = max(importance, :importance), shared = max(shared, :shared),"
            " permanent = max(permanent, :permanent) WHERE id = :id",
            {"id": fact_id, "importance": importance, "permanent": int(permanent), "shared": shared},
        )

    def use(self) -> tuple[int, int, str]:
        """Return how many facts are valid, how many ever answered a question, and when one last did."""
        rows = self.db.query(
            "SELECT count(*), coalesce(sum(CASE WHEN access_count > 0 THEN 1 END), 0), coalesce(max(last_accessed), '')"
            " FROM facts WHERE valid_to IS NULL"
        )
        return int(rows[0][0]), int(rows[0][1]), str(rows[0][2])

    def inherit(self, new: int, old: int) -> None:
        """Copy activation and links of a key's old value to the new one."""
        params = {"new": new, "old": old}
        self.db.execute(
            "UPDATE facts SET activation = max(activation, (SELECT activation FROM facts WHERE id = :old))"
            " WHERE id = :new",
            params,
        )
        self.db.execute(
            "INSERT INTO co_occurrences (fact_a, fact_b, weight, last_wired)"
            " SELECT min(other, :new), max(other, :new), weight, last_wired FROM"
            " (SELECT fact_b AS other, weight, last_wired FROM co_occurrences WHERE fact_a = :old"
            "  UNION ALL SELECT fact_a, weight, last_wired FROM co_occurrences WHERE fact_b = :old)"
            " WHERE other <> :new ON CONFLICT DO NOTHING",
            params,
        )

    def wire(self, ids: Sequence[int], moment: str) -> None:
        """Strengthen the links between facts that were retrieved together."""
        ordered = sorted(set(ids))
        self.db.execute_many(
            "INSERT INTO co_occurrences (fact_a, fact_b, weight, last_wired)"
            " SELECT :a, :b, 1.0, :moment WHERE EXISTS (SELECT 1 FROM facts WHERE id = :a)"
            " AND EXISTS (SELECT 1 FROM facts WHERE id = :b) ON CONFLICT (fact_a, fact_b)"
            " DO UPDATE SET weight = co_occurrences.weight + 1.0, last_wired = :moment",
            [{"a": a, "b": b, "moment": moment} for n, a in enumerate(ordered) for b in ordered[n + 1 :]],
        )


def keyword_rows(
    db: Database, table: str, terms: Sequence[str], limit: int, only: str, params: Mapping[str, Any]
) -> list[int]:
    """Return row ids that contain any of the terms, best first, within the posting budget; rarest terms first.

    When every term is too common to rank, return the newest rows with the rarest of them.
    """
    counted = sorted((count, term) for term in terms if (count := db.occurrences(table, term, POSTINGS + 1)))
    kept: list[str] = []
    spent = 0
    for count, term in counted:
        spent += count
        if spent > POSTINGS:
            break
        kept.append(term)
    if kept or not counted:
        return [rowid for rowid, _ in db.match(table, kept, limit, only, params)]
    found, given = db.containing(table, counted[0][1:])
    rows = db.query(
        f"SELECT rowid FROM {table} WHERE {found} AND {only} ORDER BY rowid DESC LIMIT :limit",  # noqa: S608
        {**params, **given, "limit": limit},
    )
    return [row[0] for row in rows]


def generation(facts: Database) -> str:
    """Return a stamp that changes with every new fact, value, relation or alias, but not with activation."""
    rows = facts.query(
        "SELECT coalesce((SELECT max(id) FROM facts), 0), coalesce((SELECT max(id) FROM relations), 0),"
        " coalesce((SELECT max(rowid) FROM aliases), 0)"
    )
    return ".".join(map(str, rows[0]))


def has_foreign(facts: Database) -> bool:
    """Return whether there is a statement from an origin that the owner does not trust."""
    wanted = f"SELECT 1 FROM {{}} WHERE origin IN {FOREIGN_ORIGINS}"  # noqa: S608 (our own words)
    exists = " OR ".join(f"EXISTS ({wanted.format(table)})" for table in ("facts", "relations", "aliases"))
    return bool(facts.query(f"SELECT {exists}")[0][0])


def all_current(facts: Database, fact_ids: Sequence[int], relation_ids: Sequence[int]) -> bool:
    """Return whether none of these was retired or deleted."""
    for table, ids in (("facts", fact_ids), ("relations", relation_ids)):
        numbers = ", ".join(str(int(number)) for number in ids)
        sql = f"SELECT count(*) FROM {table} WHERE id IN ({numbers}) AND valid_to IS NULL"  # noqa: S608 (numbers)
        if ids and facts.query(sql)[0][0] != len(set(ids)):
            return False
    return True
