"""The table of names and aliases of entities, and the normal form of names and keys."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from nanoclaw_memory.patterns import regex
from nanoclaw_memory.store.database import Database
from nanoclaw_memory.text import stem
from nanoclaw_memory.types import FOREIGN, ORIGINS, Alias

_TOKEN = regex(r"[^\W_]+(?:['’][^\W_]+)*[+#]*")
_CAMEL = regex(r"(?<=[a-z0-9])(?=[A-Z])")
_WORDS = regex(r"[^\W_]+")
_DIGRAPH = regex(r"([aou])e")
_SPELT = regex(r"(?<!\w)[-−]?\d+(?:[.,:/-]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)*[+#]*|\d+|[%€$£@]")
_BETWEEN_LETTERS = regex(r"(?<=[^\W\d_]) (?=[^\W\d_])")
_LAST = "\U0010ffff"
MAX_IN = 2_000
MAX_CHAIN = 8
FOREIGN_ORIGINS = f"({', '.join(map(repr, FOREIGN))})"  # in SQL
_TRUSTED = f"origin NOT IN {FOREIGN_ORIGINS}"
# The columns with an entity's name, and those with the text that it names.
_NAMED_BY = (
    ("facts", "entity", "name"),
    ("relations", "subject", "subject_name"),
    ("relations", "object", "object_name"),
    ("aliases", "alias", "name"),
    ("aliases", "entity", "target"),
)
# The names that a trusted origin has used.
_USED = " OR ".join(
    f"EXISTS (SELECT 1 FROM {table} AS t WHERE t.{column} = names.name AND t.{_TRUSTED})"  # noqa: S608
    for table, _, column in _NAMED_BY
)


def fold(name: str) -> str:
    """Return the normal form of a name: no case, no punctuation, one space between words."""
    plain = unicodedata.normalize("NFKC", name).casefold().replace("’", "'")
    return " ".join(_TOKEN.findall(plain)) or plain.strip()


def key_words(key: str) -> list[str]:
    """Return the words of a key: the same for `dateOfBirth`, `date_of_birth` and `Date of birth`."""
    return [word.casefold() for word in _WORDS.findall(_CAMEL.sub(" ", key))]


def slot_of(key: str) -> str:
    """Return the normal form of a key or predicate: its words with one space between."""
    return " ".join(key_words(key)) or key.strip().casefold()


def spelling(text: str, inflected: bool = True) -> str:
    """Normalise spelling: no case, accents, umlauts, punctuation or inflection.

    Numbers keep their signs and points. A single word keeps its ending unless it is `inflected`: it may be a name.
    """
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    plain = _DIGRAPH.sub(r"\1", "".join(char for char in plain if not unicodedata.combining(char)))
    words = [word.removesuffix("'s") for word in _SPELT.findall(plain.replace("’", "'"))]
    if inflected or len(words) > 1:
        words = [stem(stem(word), "german") if word.isalpha() else word for word in words]
    return _BETWEEN_LETTERS.sub("", " ".join(words)) or plain.strip()


def placeholders(prefix: str, values: Iterable[Any]) -> tuple[str, dict[str, Any]]:
    """Return `:p0, :p1, …` for an IN list, and its values; never empty SQL."""
    params = {f"{prefix}{number}": value for number, value in enumerate(values)}
    return ", ".join(f":{name}" for name in params) or "NULL", params


class Meaning(msgspec.Struct, frozen=True):
    """The meaning of a name: every name of the same entity, and the entity's own."""

    names: tuple[str, ...]
    ends: tuple[str, ...]

    @property
    def ambiguous(self) -> bool:
        return len(self.ends) > 1


# Keys and predicates that only persons have: "Harbor" and "Harbor Staging" are two things.
_OF_PERSONS = (
    "birthday", "born", "age", "role", "works at", "works for", "works as", "lives in", "reports to", "allergic to",
    "geburtstag", "alter", "beruf", "arbeitet bei", "arbeitet für", "wohnt in", "lebt in", "berichtet an", "allergie",
)  # fmt: skip


class NameTable:
    """The known names of one database; without `sees_all` only shared aliases. Writing needs a transaction.

    With `trusted`, statements of others add neither names nor aliases.
    """

    def __init__(self, db: Database, sees_all: bool = True, trusted: bool = False) -> None:
        self.db = db
        self.sees_all = sees_all
        self._seen = "1 = 1" if sees_all else "shared = 1"  # our own SQL: which aliases count
        self._seen += f" AND {_TRUSTED}" if trusted else ""
        self._used = f"({_USED})" if trusted else "1 = 1"
        self._merged_at: tuple[object, ...] = ()
        self._merged: dict[str, str] = {}

    # ---- reading ----

    def known(self, names: Sequence[str]) -> set[str]:
        """Return those of the folded names that are known."""
        found: set[str] = set()
        for start in range(0, len(names), MAX_IN):
            marks, params = placeholders("n", names[start : start + MAX_IN])
            rows = self.db.query(f"SELECT name FROM names WHERE name IN ({marks}) AND {self._used}", params)  # noqa: S608
            found.update(row[0] for row in rows)
        return found

    def targets(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Return the entities that each folded name is an alias of."""
        marks, params = placeholders("n", names)
        rows = self.db.query(
            f"SELECT name, target FROM aliases WHERE name IN ({marks}) AND {self._seen}"  # noqa: S608
            " ORDER BY name, target",
            params,
        )
        found: dict[str, list[str]] = {}
        for name, target in rows:
            found.setdefault(name, []).append(target)
        return found

    def meanings(self, names: Sequence[str]) -> dict[str, Meaning]:
        """Return for each folded name all names of the same entity, and the entity's own."""
        steps: dict[str, list[str]] = {}
        fresh = list(dict.fromkeys(names))
        for _ in range(MAX_CHAIN):
            if not fresh:
                break
            found = self.targets(fresh)
            steps |= {name: found.get(name, []) for name in fresh}
            fresh = [target for targets in found.values() for target in targets if target not in steps]
        reached = {name: _reach(name, steps) for name in names}
        others = self._sole_aliases({end for _, ends in reached.values() for end in ends})
        return {
            name: Meaning(
                tuple(dict.fromkeys([*way, *(alias for end in ends for alias in others.get(end, ()))])), ends
            )
            for name, (way, ends) in reached.items()
        }

    def _sole_aliases(self, targets: Iterable[str]) -> dict[str, list[str]]:
        """Return the aliases of each target that are aliases of nothing else."""
        marks, params = placeholders("t", targets)
        rows = self.db.query(
            f"SELECT target, name FROM (SELECT * FROM aliases WHERE {self._seen}) AS own"  # noqa: S608
            f" WHERE target IN ({marks}) AND NOT EXISTS (SELECT 1 FROM aliases AS other"
            f" WHERE other.name = own.name AND other.target <> own.target AND {self._seen})",
            params,
        )
        found: dict[str, list[str]] = {}
        for target, name in rows:
            found.setdefault(target, []).append(name)
        return found

    def merged(self) -> dict[str, str]:
        """Return folded aliases that facts or relations are stored under, each with the one entity that it means."""
        # They are few and costly to find: computed again only after a new alias, fact or relation.
        sql = (
            "SELECT count(*), max(rowid), sum(shared), (SELECT max(id) FROM facts), (SELECT max(id) FROM relations)"
            " FROM aliases"
        )
        state = self.db.query(sql)[0]
        if state != self._merged_at:
            stated = self._with_statements()
            meanings = self.meanings(stated) if stated else {}
            own = {name: meaning.ends[0] for name, meaning in meanings.items() if not meaning.ambiguous}
            self._merged_at, self._merged = state, own
        return self._merged

    def _with_statements(self) -> list[str]:
        stated = (
            "EXISTS (SELECT 1 FROM facts WHERE facts.name = aliases.name)",
            "EXISTS (SELECT 1 FROM relations WHERE subject_name = aliases.name)",
            "EXISTS (SELECT 1 FROM relations WHERE object_name = aliases.name)",
        )
        sql = f"SELECT DISTINCT name FROM aliases WHERE {self._seen} AND ({' OR '.join(stated)})"  # noqa: S608
        return [row[0] for row in self.db.query(sql)]

    def labels(self, names: Iterable[str]) -> dict[str, str]:
        """Return the original spelling of each folded name."""
        marks, params = placeholders("n", names)
        rows = self.db.query(f"SELECT name, label FROM names WHERE name IN ({marks})", params)  # noqa: S608
        return {row[0]: row[1] for row in rows}

    def beginning(self, start: str, limit: int) -> list[str]:
        """Return known names that begin with `start`."""
        rows = self.db.query(
            f"SELECT name FROM names WHERE name >= :low AND name < :high AND {self._used} LIMIT :limit",  # noqa: S608
            {"low": start, "high": start + _LAST, "limit": limit},
        )
        return [row[0] for row in rows]

    def are_persons(self, names: Sequence[str]) -> bool:
        """Return whether these names have statements that only persons have, so that they may be one."""
        marks, params = placeholders("n", names)
        slots = ", ".join(f"'{slot}'" for slot in _OF_PERSONS)
        rows = self.db.query(
            f"SELECT EXISTS (SELECT 1 FROM facts WHERE name IN ({marks}) AND slot IN ({slots}))"  # noqa: S608
            f" OR EXISTS (SELECT 1 FROM relations WHERE subject_name IN ({marks}) AND slot IN ({slots}))",
            params,
        )
        return bool(rows[0][0])

    def ending(self, end: str, limit: int) -> list[str]:
        """Return known names that end with `end`."""
        rows = self.db.query(
            f"SELECT name FROM names WHERE mirror >= :low AND mirror < :high AND {self._used} LIMIT :limit",  # noqa: S608
            {"low": end[::-1], "high": end[::-1] + _LAST, "limit": limit},
        )
        return [row[0] for row in rows]

    def aliases(self, target: str = "") -> list[Alias]:
        """Return the aliases of one folded entity, or all."""
        rows = self.db.query(
            f"SELECT alias, entity, origin FROM aliases WHERE (:target = '' OR target = :target) AND {self._seen}"  # noqa: S608
            " ORDER BY name, target",
            {"target": target},
        )
        return [Alias(*row) for row in rows]

    # ---- writing ----

    def learn(self, label: str) -> str:
        """Store a name; return its folded form."""
        name = fold(label)
        self.db.execute(
            "INSERT INTO names (name, label, mirror) VALUES (:name, :label, :mirror) ON CONFLICT DO NOTHING",
            {"name": name, "label": label, "mirror": name[::-1]},
        )
        return name

    def add_alias(self, alias: str, entity: str, source: str, shared: bool, origin: str = "owner") -> bool:
        """Make `alias` another name of `entity`; return False if it was. An alias from a shared scope becomes
        shared.

        The most trusted author is stored.
        """
        params: dict[str, Any] = {"alias": alias, "entity": entity, "source": source, "shared": int(shared)}
        params |= {"name": self.learn(alias), "target": self.learn(entity), "origin": origin}
        less = json.dumps(ORIGINS[ORIGINS.index(origin) + 1 :])
        self.db.execute(
            "UPDATE aliases SET origin = :origin WHERE name = :name AND target = :target"
            " AND origin IN (SELECT value FROM json_each(:less))",
            {"less": less, **{key: params[key] for key in ("origin", "name", "target")}},
        )
        return bool(
            self.db.update(
                "INSERT INTO aliases (alias, entity, source, name, target, shared, origin)"
                " VALUES (:alias, :entity, :source, :name, :target, :shared, :origin) ON CONFLICT (name, target)"
                " DO UPDATE SET shared = 1, source = excluded.source WHERE excluded.shared > aliases.shared",
                params,
            )
        )

    def reshare(self, path: str, shared: bool) -> None:
        """Make aliases from a file visible to the same scopes as the file."""
        self.db.execute(
            "UPDATE aliases SET shared = :shared"
            " WHERE shared <> :shared AND substr(source, 1, length(:path) + 1) = :path || ':'",
            {"path": path, "shared": int(shared)},
        )

    def remove_alias(self, name: str, target: str = "", foreign: bool = False) -> int:
        """Remove a folded alias, or only one of its entities; return how many. `foreign`: only untrusted ones."""
        params = {"name": name, "target": target, "foreign": int(foreign)}
        where = f"name = :name AND (:target = '' OR target = :target) AND {self._seen}"
        where += f" AND (:foreign = 0 OR origin IN {FOREIGN_ORIGINS})"
        gone = [
            row[0]
            for row in self.db.query(
                f"SELECT target FROM aliases WHERE {where}",  # noqa: S608
                params,
            )
        ]
        self.db.execute(f"DELETE FROM aliases WHERE {where}", params)  # noqa: S608
        self.prune([name, *gone])
        return len(gone)

    def complete(self) -> None:
        """Put the names of entities where rows have one that is not known, because it was damaged."""
        for table, text, column in _NAMED_BY:
            unknown = f"{column} NOT IN (SELECT name FROM names)"  # noqa: S608 (our own names)
            rows = self.db.query(f"SELECT DISTINCT {text}, {column} FROM {table} WHERE {unknown}")  # noqa: S608
            for label, damaged in rows:
                self.db.execute(
                    f"UPDATE OR IGNORE {table} SET {column} = :name WHERE {column} = :damaged AND {text} = :label",  # noqa: S608
                    {"name": self.learn(label), "damaged": damaged, "label": label},
                )
            self.db.execute(f"DELETE FROM {table} WHERE {unknown}")  # noqa: S608 (an alias that is there twice)

    def prune(self, names: Iterable[str]) -> None:
        """Drop those names that nothing uses any more."""
        for name in set(names):
            self.db.execute(
                "DELETE FROM names WHERE name = :name"
                " AND NOT EXISTS (SELECT 1 FROM facts WHERE facts.name = :name)"
                " AND NOT EXISTS (SELECT 1 FROM relations WHERE subject_name = :name)"
                " AND NOT EXISTS (SELECT 1 FROM relations WHERE object_name = :name)"
                " AND NOT EXISTS (SELECT 1 FROM aliases WHERE aliases.name = :name OR target = :name)",
                {"name": name},
            )


def _reach(name: str, steps: dict[str, list[str]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    reached = [name]
    for current in reached:
        reached += [target for target in steps.get(current, []) if target not in reached]
    ends = tuple(n for n in reached if not steps.get(n)) or (name,)  # a cycle ends where it began
    return tuple(reached), ends
