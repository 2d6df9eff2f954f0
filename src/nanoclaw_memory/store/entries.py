"""The table of typed entries: write, find, filter, count; the rules are in `entries`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from nanoclaw_memory.store.database import Row
from nanoclaw_memory.store.keywords import like, spaced, terms_of
from nanoclaw_memory.store.table import Table, as_struct, assignments, insertion
from nanoclaw_memory.types import Entry, Provenance

PRIORITIES = ("critical", "high", "medium", "low")
SHORT_ID = 12  # characters that identify an entry unless another id begins the same: `mem-` and eight more
BEHAVIORAL = ("preference", "instruction", "correction")
# The columns of an entry's fields, and of its provenance.
_OWN = {name: name for name in Entry.__struct_fields__ if name not in ("behavioral", "provenance")}
_OWN |= {"expires": "expires_at"}
_CAME = {name: name for name in Provenance.__struct_fields__}
_CAME |= {"group": "group_name", "timestamp": "created_at", "origin": "author"}
_LISTS = ("tags", "related_to", "suspicions")


class Filter(msgspec.Struct, frozen=True):
    """Which entries a query may return; tested before any limit. Entries that expired by `now` are left out."""

    now: str
    types: tuple[str, ...] | None = None  # None: every type
    tags: tuple[str, ...] = ()  # all of them
    statuses: tuple[str, ...] = ("active",)
    priority_min: str = "low"
    open_types: tuple[str, ...] | None = None  # of other types only what shared scopes stored; None: all
    without: tuple[str, ...] = ()  # ids that are left out
    without_authors: tuple[str, ...] = ()  # whose entries are left out unless a person has approved them

    def sql(self) -> tuple[str, dict[str, Any]]:
        """Return the condition on `entries`, and its values."""
        params: dict[str, Any] = {"now": self.now, "worst": PRIORITIES.index(self.priority_min)}
        parts = [_one_of("status", self.statuses, params), "priority <= :worst"]
        if "expired" not in self.statuses:
            parts.append("(expires_at IS NULL OR expires_at > :now)")
        if self.types is not None:
            parts.append(_one_of("type", self.types, params))
        if self.open_types is not None:
            opened = _one_of("type", self.open_types, params, "open") if self.open_types else "FALSE"
            parts.append(f"(private = 0 OR {opened})")
        if self.without:
            parts.append(f"NOT {_one_of('id', self.without, params)}")
        if self.without_authors:
            parts.append(f"(confirmed <> '' OR NOT {_one_of('author', self.without_authors, params)})")
        for number, tag in enumerate(self.tags):
            parts.append(like("tags", f"tag{number}", tag, params, "\n"))
        return " AND ".join(parts), params


class EntryTable(Table[Entry]):
    """The entries of one database. Writing needs an open transaction."""

    table = "entries"
    columns = ", ".join((*_OWN.values(), *_CAME.values()))

    def read(self, row: Row) -> Entry:
        own = dict(zip(_OWN, row, strict=False))
        own |= {name: _split(own[name]) for name in _LISTS}
        own |= {"priority": PRIORITIES[own["priority"]], "behavioral": own["type"] in BEHAVIORAL}
        return Entry(**own, provenance=as_struct(Provenance, row[len(_OWN) :]))

    # ---- reading ----

    def get(self, entry_id: str) -> Entry | None:
        """Return an entry by its id or a unique prefix of it: models are shown short ones."""
        last = entry_id + "~" if len(entry_id) >= SHORT_ID else entry_id
        found = self.select("WHERE id >= :id AND id <= :last LIMIT 2", {"id": entry_id, "last": last})
        return found[0] if len(found) == 1 or (found and found[0].id == entry_id) else None

    def recent(self, wanted: Filter, limit: int) -> list[Entry]:
        """Return entries, newest first."""
        return self._select(wanted, "ORDER BY created_at DESC, number DESC LIMIT :limit", limit=limit)

    def all(self, wanted: Filter) -> list[Entry]:
        """Return entries in the order of writing."""
        return self._select(wanted, "ORDER BY number")

    def those(self, ids: Sequence[str], wanted: Filter) -> list[Entry]:
        """Return those of these entries that pass a filter, in the order of storing."""
        more = "AND id IN (SELECT value FROM json_each(:ids)) ORDER BY number"
        return self._select(wanted, more, ids=json.dumps(list(ids))) if ids else []

    def weightiest(self, wanted: Filter, limit: int) -> list[Entry]:
        """Return entries by priority, then newest first."""
        return self._select(
            wanted, "ORDER BY priority, created_at DESC, number DESC LIMIT :limit", limit=limit
        )

    def matching(self, query: str, wanted: Filter, limit: int) -> list[Entry]:
        """Return entries that contain any of the query's words, best first."""
        where, params = wanted.sql()
        only = f"EXISTS (SELECT 1 FROM entries WHERE number = entries_fts.rowid AND {where})"  # noqa: S608
        ranked = self.db.match("entries_fts", terms_of(query), limit, only, params)
        found = self.by_number([number for number, _ in ranked])
        return [found[number] for number, _ in ranked if number in found]

    def by_number(self, numbers: Sequence[int]) -> dict[int, Entry]:
        """Return the entries with these row numbers."""
        params: dict[str, Any] = {}
        where = _one_of("number", numbers, params)
        rows = self.db.query(f"SELECT number, {self.columns} FROM entries WHERE {where}", params)  # noqa: S608
        return {int(number): self.read(tuple(row)) for number, *row in rows}

    def same_text(self, entry_type: str, text_key: str, now: str) -> list[Entry]:
        """Return the current entries of the type with the same normalised text."""
        # Only the key is looked up in the index: with the status in it, SQLite would read every active row.
        found = self.select("WHERE type = :type AND text_key = :key", {"type": entry_type, "key": text_key})
        return [e for e in found if e.status == "active" and (e.expires is None or e.expires > now)]

    def has_text(self, entry_type: str, text_key: str) -> bool:
        """Return whether an entry of the type with this text was ever stored, whatever its status."""
        sql = "SELECT 1 FROM entries WHERE type = :type AND text_key = :key LIMIT 1"
        return bool(self.db.query(sql, {"type": entry_type, "key": text_key}))

    def holding_all(self, words: Sequence[str], wanted: Filter, limit: int) -> list[Entry]:
        """Return entries whose content contains every one of the words: candidates for a duplicate."""
        if not words:
            return []
        where, params = wanted.sql()
        found, given = self.db.containing("entries_fts", words, every=True, column="content")
        rest = (
            "WHERE number IN (SELECT rowid FROM entries_fts "  # noqa: S608
            f"WHERE {found} ORDER BY rowid DESC LIMIT 200) AND {where} LIMIT :limit"
        )
        return self.select(rest, {**params, **given, "limit": limit})

    def predecessors(self, entry_id: str) -> list[Entry]:
        """Return the entries that this one replaced."""
        return self.select("WHERE superseded_by = :id ORDER BY number", {"id": entry_id})

    def count(self, wanted: Filter) -> int:
        where, params = wanted.sql()
        return int(self.db.query(f"SELECT count(*) FROM entries WHERE {where}", params)[0][0])  # noqa: S608

    def tally(self, column: str, wanted: Filter) -> dict[Any, tuple[int, int]]:
        """Return, for each value of `column` (type, priority, status), how many entries have it, and their tokens."""
        where, params = wanted.sql()
        sql = f"SELECT {column}, count(*), sum(token_cost) FROM entries WHERE {where} GROUP BY 1 ORDER BY 1"  # noqa: S608
        return {value: (int(count), int(cost)) for value, count, cost in self.db.query(sql, params)}

    def subjects(self, wanted: Filter, most: int) -> list[tuple[str, int]]:
        """Return the most frequent tags of the newest entries, with their counts; tags of a single entry do not
        count.
        """
        where, params = wanted.sql()
        sql = f"SELECT tags FROM entries WHERE {where} AND tags <> '' ORDER BY number DESC LIMIT 2000"  # noqa: S608
        found = (tag for (tags,) in self.db.query(sql, params) for tag in _split(tags))
        # One word: a tag that every session's start shows must not be a sentence.
        counts = Counter(tag for tag in found if tag.replace("-", "").isalnum())
        return [(tag, count) for tag, count in counts.most_common(most) if count > 1]

    def latest(self) -> tuple[str | None, str | None]:
        """Return when an entry was last stored, and when one was last used since."""
        sql = "SELECT max(created_at), max(CASE WHEN used_at > created_at THEN used_at END) FROM entries"
        return self.db.query(sql)[0]

    def used_since(self, entry_type: str, moment: str) -> bool:
        """Return whether any current entry of the type was stored, recalled or reinforced since."""
        sql = "SELECT 1 FROM entries WHERE status = 'active' AND type = :type AND used_at >= :moment LIMIT 1"
        return bool(self.db.query(sql, {"type": entry_type, "moment": moment}))

    def superseded_before(self, moment: str) -> list[Entry]:
        return self.select("WHERE status = 'superseded' AND superseded_at < :moment", {"moment": moment})

    def expired_by(self, moment: str) -> list[Entry]:
        return self.select("WHERE status = 'active' AND expires_at <= :moment", {"moment": moment})

    def suggested(self, since: str) -> list[Entry]:
        """Return private entries of agents since then that nobody has confirmed."""
        behavioral = ", ".join(f"'{kind}'" for kind in BEHAVIORAL)
        rest = (
            "WHERE status = 'active' AND author = 'agent' AND confirmed = ''"
            f" AND private = 1 AND type IN ({behavioral}) AND created_at >= :since"
        )
        return self.select(rest, {"since": since})

    def ids(self, entry_type: str) -> set[str]:
        """Return every entry of the type, whatever its status."""
        rows = self.db.query("SELECT id FROM entries WHERE type = :type", {"type": entry_type})
        return {str(entry_id) for (entry_id,) in rows}

    def in_domain(self, entry_type: str) -> set[str]:
        """Return the ids that were in the domain file when we last wrote it."""
        sql = "SELECT id FROM entries WHERE type = :type AND status = 'active' AND in_domain = 1"
        return {str(row[0]) for row in self.db.query(sql, {"type": entry_type})}

    def merges_of(self, entry_id: str) -> list[dict[str, Any]]:
        """Return the wordings that merges replaced, oldest first."""
        sql = "SELECT content, session_id, origin, merged_at FROM merges WHERE entry_id = :id ORDER BY id"
        return [
            {"content": content, "session_id": session, "origin": origin, "merged_at": moment}
            for content, session, origin, moment in self.db.query(sql, {"id": entry_id})
        ]

    # ---- writing ----

    def add(self, entry: Entry, text_key: str) -> None:
        # `author` names the origin; the old column allows few words.
        row = {**_row(entry), "text_key": text_key, "origin": "agent"}
        self._index(self.db.insert(insertion("entries", row), row), entry)

    def change(self, entry: Entry, text_key: str) -> None:
        """Replace the row of an entry."""
        values = {**_row(entry), "text_key": text_key}
        self.db.execute(f"UPDATE entries SET {assignments(values)} WHERE id = :id", values)  # noqa: S608
        ((number,),) = self.db.query("SELECT number FROM entries WHERE id = :id", {"id": entry.id})
        self.db.execute("DELETE FROM entries_fts WHERE rowid = :number", {"number": number})
        self._index(number, entry)

    def put(self, values: Mapping[str, Any], number: int) -> int:
        """Store the columns of an entry of another machine as a new row, or in place of row `number`."""
        if number:
            sql = f"UPDATE entries SET {assignments(values)} WHERE number = :number"  # noqa: S608
            self.db.execute(sql, {**values, "number": number})
            self.db.execute("DELETE FROM entries_fts WHERE rowid = :number", {"number": number})
        else:
            new = {**values, "used_at": values["updated_at"], "origin": "agent"}
            number = self.db.insert(insertion("entries", new), new)
        self._index(number, self.by_number([number])[number])
        return number

    def reindex(self) -> None:
        """Fill the keyword index of copied rows."""
        self.db.execute("DELETE FROM entries_fts")
        for number, *row in self.db.query(f"SELECT number, {self.columns} FROM entries"):  # noqa: S608
            self._index(int(number), self.read(tuple(row)))

    def keep_wording(self, entry: Entry, provenance: Provenance) -> None:
        """Record the wording that a merge is about to replace."""
        row = {"entry_id": entry.id, "content": entry.content, "session_id": provenance.session_id}
        row |= {"origin": provenance.origin, "merged_at": provenance.timestamp}
        self.db.execute(insertion("merges", row), row)

    def leave_out(self, ids: Iterable[str]) -> None:
        """Record that a domain file has no room for these entries."""
        self.db.execute_many("UPDATE entries SET in_domain = 0 WHERE id = :id", [{"id": one} for one in ids])

    def take_in(self, entry_type: str) -> None:
        """Record that a domain file was written again."""
        sql = "UPDATE entries SET in_domain = 1 WHERE type = :type AND in_domain = 0"
        self.db.execute(sql, {"type": entry_type})

    def set_status(self, entry_id: str, status: str, moment: str) -> None:
        sql = "UPDATE entries SET status = :status, updated_at = :moment WHERE id = :id"
        self.db.execute(sql, {"id": entry_id, "status": status, "moment": moment})

    def supersede(self, entry_id: str, successor: str, moment: str) -> bool:
        """Retire an active entry in favour of another; return False if another process was first."""
        sql = (
            "UPDATE entries SET status = 'superseded', superseded_by = :successor, superseded_at = :moment, "
            "updated_at = :moment WHERE id = :id AND status = 'active'"
        )
        return self.db.update(sql, {"id": entry_id, "successor": successor, "moment": moment}) == 1

    def restore(self, entry_id: str, moment: str) -> None:
        """Make a superseded entry current again."""
        sql = (
            "UPDATE entries SET status = 'active', superseded_by = NULL, superseded_at = NULL, "
            "updated_at = :moment WHERE id = :id"
        )
        self.db.execute(sql, {"id": entry_id, "moment": moment})

    def relink(self, removed: str, successor: str) -> None:
        """Link the neighbours of an entry that is removed from the middle of a chain."""
        sql = "UPDATE entries SET superseded_by = :successor WHERE superseded_by = :removed"
        self.db.execute(sql, {"removed": removed, "successor": successor})

    def delete(self, entry_id: str) -> None:
        """Remove the row, its words, old wordings, and every mention by id."""
        ((number,),) = self.db.query("SELECT number FROM entries WHERE id = :id", {"id": entry_id})
        mention = {"id": entry_id, "line": f"\n{entry_id}\n", "like": f"%\n{entry_id}\n%", "newline": "\n"}
        self.db.execute("DELETE FROM entries_fts WHERE rowid = :number", {"number": number})
        self.db.execute("DELETE FROM merges WHERE entry_id = :id", mention)
        self.db.execute("DELETE FROM entries WHERE id = :id", mention)
        self.db.execute("UPDATE entries SET supersedes = NULL WHERE supersedes = :id", mention)
        self.db.execute(
            "UPDATE entries SET related_to = replace(related_to, :line, :newline) "
            "WHERE related_to LIKE :like",
            mention,
        )

    def reinforce(self, entry_id: str, moment: str) -> None:
        sql = "UPDATE entries SET used_at = :moment, reinforcements = reinforcements + 1 WHERE id = :id"
        self.db.execute(sql, {"id": entry_id, "moment": moment})

    def touch(self, ids: Iterable[str], moment: str, unless_since: str) -> None:
        """Record that entries were used, unless recorded since then: most recalls then write nothing."""
        sql = (
            "UPDATE entries SET used_at = :moment WHERE id = :id"
            " AND (used_at < :since OR used_at = created_at)"
        )
        given = [{"id": entry_id, "moment": moment, "since": unless_since} for entry_id in ids]
        self.db.execute_many(sql, given)

    # ---- inside ----

    def _select(self, wanted: Filter, tail: str, **more: Any) -> list[Entry]:
        where, params = wanted.sql()
        return self.select(f"WHERE {where} {tail}", {**params, **more})

    def _index(self, number: int, entry: Entry) -> None:
        around = " ".join((*entry.tags, entry.reason))
        self.db.execute(
            "INSERT INTO entries_fts (rowid, content, around) VALUES (:number, :content, :around)",
            {"number": number, "content": spaced(entry.content), "around": spaced(around)},
        )


def _row(entry: Entry) -> dict[str, Any]:
    row = {column: getattr(entry, name) for name, column in _OWN.items()}
    row |= {column: getattr(entry.provenance, name) for name, column in _CAME.items()}
    row |= {name: _joined(row[name]) for name in _LISTS}
    return row | {"priority": PRIORITIES.index(entry.priority), "private": int(entry.provenance.private)}


def _joined(parts: Sequence[str]) -> str:
    return "\n" + "\n".join(parts) + "\n" if parts else ""


def _split(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split("\n") if part)


def _one_of(column: str, values: Sequence[Any], params: dict[str, Any], prefix: str = "") -> str:
    names = [f"{prefix}{column}{place}" for place in range(len(values))]
    params.update(zip(names, values, strict=True))
    return f"{column} IN ({', '.join(':' + name for name in names) or 'NULL'})"
