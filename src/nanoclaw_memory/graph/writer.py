"""Write facts, relations and aliases: a new value retires the old one, a rejected value is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.clock import Clock, stamp
from nanoclaw_memory.errors import InvalidValue, Refused
from nanoclaw_memory.graph.clauses import names as names_in
from nanoclaw_memory.graph.extract import FileRules, extract
from nanoclaw_memory.graph.handovers import ANYBODY, ends_too, is_duty, predecessors
from nanoclaw_memory.graph.retirement import Retirement, same_place
from nanoclaw_memory.graph.values import is_version
from nanoclaw_memory.intake.intake import Intake
from nanoclaw_memory.intake.suspicion import signs_of_attack
from nanoclaw_memory.settings.sections import GraphSettings
from nanoclaw_memory.store.facts import FactRow, FactTable, RelationRow, View, digest, near_digest
from nanoclaw_memory.store.names import NameTable, fold, slot_of
from nanoclaw_memory.store.relations import RelationTable
from nanoclaw_memory.text import encodable, one_line
from nanoclaw_memory.types import FOREIGN, Upserted, rank, trust

MAX_VALUE = 10_000
MAX_NAME = 200
RUNS_ON = ("runs on", "läuft auf")
LEAST_OF_ATTACK = 4  # words: no command that could steer has fewer


class NewFact(msgspec.Struct, frozen=True, kw_only=True):
    """A fact to store; `add` keeps other values of the key, `valid_from` is a stamp (empty: now)."""

    entity: str
    key: str
    value: str
    category: str = ""
    importance: float = 0.5
    permanent: bool = False
    add: bool = False
    valid_from: str = ""


class NewRelation(msgspec.Struct, frozen=True, kw_only=True):
    """A relation to store; `replace` retires other objects, `valid_from` is a stamp (empty: now)."""

    subject: str
    predicate: str
    object: str
    replace: bool = False
    valid_from: str = ""


class Origin(msgspec.Struct, frozen=True):
    """Source, author and project of a statement; whether shared scopes may see it, and its author private ones."""

    source: str
    shared: bool = False
    sees_all: bool = True
    by: str = "owner"
    project: str = ""


class _Interval(Protocol):
    """The time for which a value is valid."""

    @property
    def id(self) -> int: ...
    @property
    def valid_from(self) -> str: ...
    @property
    def valid_to(self) -> str: ...
    @property
    def origin(self) -> str: ...


class Position(msgspec.Struct, frozen=True):
    """The place of a new value in a key's history: the ids it retires, and the value after it."""

    retires: tuple[int, ...] = ()
    until: str | None = None
    followed_by: int | None = None


def position(values: Sequence[_Interval], start: str, by: str = "owner") -> Position:
    """Return the position of a value that is valid from `start`: nobody less trusted ends what another stated."""
    own = trust(by)
    valid = (v for v in values if v.valid_from <= start and (not v.valid_to or v.valid_to > start))
    current = tuple(v.id for v in valid if trust(v.origin) >= own)
    following = (v for v in values if v.valid_from > start and trust(v.origin) <= own)
    later = min(following, key=lambda v: (v.valid_from, v.id), default=None)
    return Position(current, later.valid_from if later else None, later.id if later else None)


class GraphWriter:
    """Write to one graph; every method is one transaction."""

    def __init__(
        self,
        facts: FactTable,
        relations: RelationTable,
        names: NameTable,
        settings: GraphSettings,
        clock: Clock,
        intake: Intake,
    ) -> None:
        self.facts = facts
        self.relations = relations
        self.names = names
        self.retirement = Retirement(facts, relations, clock)
        self.intake = intake
        self.settings = settings
        self.clock = clock
        self.db = facts.db
        self._multi_valued = {slot_of(key) for key in settings.multi_valued_keys}
        self._single_valued = {slot_of(key) for key in settings.single_valued_predicates}

    # ---- facts ----

    def upsert(self, fact: NewFact, origin: Origin) -> Upserted:
        """Store a fact. A single-valued key has one current value: the one before is retired and kept as history."""
        row = self._fact_row(fact, origin)
        self._refuse_attack(origin, row["entity"], row["key"], row["value"])
        kept = self.intake.admit_fact(row["entity"], row["key"], row["value"], row["category"], origin.source)
        row["value"] = kept.text
        slot, value, start = row["slot"], row["value"], fact.valid_from or self._now()
        several = fact.add or slot in self._multi_valued
        retirement = self.retirement.seen_by(origin.sees_all, origin.by, origin.project)
        with self.db.transaction():
            names = self._resolve(row, ("entity",), ("entity", "key", "value"), origin)["entity"]
            row["name"] = fold(row["entity"])
            self._refuse_rejected(names, slot, value, f"{row['entity']}.{row['key']} = {value[:80]}")
            self.facts.redate(names, min(start, self._now()), self._now())
            line = self.facts.line(names, slot)
            history = [entry for entry in line if same_place(entry.item.project, origin.project)]
            seen = [entry.item for entry in history if origin.sees_all or entry.shared]
            same = self._same_fact(history, digest(value), start, several, origin.by)
            where = Position() if several else position(seen, start, origin.by)
            if several and not same:
                where = Position((), *retirement.known_end(names, slot, value, start))
            done = self._confirm(same, where, start, row) if same else self._insert_fact(row, where, start)
            if several and done.created and not where.until:
                retirement.end_contradicted(names, slot, value, start, done.id)
            elif done.created and not where.until:
                retirement.end_synonyms(names, slot, value, start, done.id)
            for entry in history:
                if entry.item.id in done.retired:
                    retirement.end_restatements(names, slot, entry.item, value, start, done.id)
            return replace(done, redacted=kept.redacted, value=value)

    def _fact_row(self, fact: NewFact, origin: Origin) -> dict[str, Any]:
        if not 0 <= fact.importance <= 1:
            raise InvalidValue(
                f"importance {fact.importance} is outside 0 to 1", "for example --importance 0.9"
            )
        key = checked_name(fact.key, "key")
        return {
            "entity": checked_name(fact.entity, "entity"),
            "key": key,
            "slot": slot_of(key),
            "value": checked_value(fact.value),
            "category": self.category(fact.category),
            "importance": float(fact.importance),
            "permanent": int(fact.permanent),
            "source": origin.source,
            "shared": int(origin.shared),
            "origin": origin.by,
            "project": origin.project,
        }

    def _same_fact(
        self, history: list[FactRow], wanted: str, start: str, several: bool, by: str
    ) -> FactRow | None:
        """Return the entry with this value that is valid at `start`, or is the next to be.

        Several values do not follow one another: one that is valid now is the same from an earlier day on.
        """
        equal = [entry for entry in history if digest(entry.item.value) == wanted]
        equal.sort(key=lambda entry: trust(entry.item.origin))
        valid = [e for e in equal if not e.item.valid_to or e.item.valid_to > start]
        if several:
            return valid[0] if valid else None
        following = position([entry.item for entry in history], start, by).followed_by
        return next((e for e in valid if e.item.valid_from <= start or e.item.id == following), None)

    def _confirm(self, same: FactRow, where: Position, start: str, row: dict[str, Any]) -> Upserted:
        done = self._keep(self.facts, same, where, start, row)
        if trust(row["origin"]) <= trust(same.item.origin):
            self.facts.confirm(done.id, row["importance"], bool(row["permanent"]), row["shared"])
        return done

    def _insert_fact(self, row: dict[str, Any], where: Position, start: str) -> Upserted:
        done = self._insert(self.facts, row, ("entity",), where, start)
        if where.retires and not where.until:
            self.facts.inherit(done.id, where.retires[-1])
        return done

    def category(self, category: str) -> str:
        """Return the category in the settings' spelling; an unknown one is refused."""
        wanted = one_line(category).casefold() or "fact"
        allowed = {name.casefold(): name for name in self.settings.categories}
        if allowed and wanted not in allowed and wanted != "fact":
            raise InvalidValue(
                f"category {category[:60]!r} is not known",
                f"use one of {', '.join(sorted(allowed))}; or change graph.categories in the settings",
            )
        return allowed.get(wanted, wanted)

    def known_category(self, category: str) -> str:
        """Return the category if the settings allow it, else the default one."""
        allowed = {name.casefold() for name in self.settings.categories}
        return category if not allowed or category.casefold() in allowed else ""

    # ---- relations and aliases ----

    def relate(self, relation: NewRelation, origin: Origin) -> Upserted:
        """Store a relation. With `replace`, or for a single-valued predicate, other objects are retired."""
        row: dict[str, Any] = {
            "subject": checked_name(relation.subject, "subject"),
            "predicate": checked_name(relation.predicate, "predicate"),
            "object": checked_name(relation.object, "object"),
            "source": origin.source,
            "shared": int(origin.shared),
            "origin": origin.by,
            "project": origin.project,
        }
        row["slot"] = slot = slot_of(row["predicate"])
        self._refuse_attack(origin, row["subject"], row["predicate"], row["object"])
        kept = self.intake.admit_fact(row["subject"], row["predicate"], row["object"], origin.source)
        row["object"] = kept.text
        start = relation.valid_from or self._now()
        single = relation.replace or slot in self._single_valued
        retirement = self.retirement.seen_by(origin.sees_all, origin.by, origin.project)
        with self.db.transaction():
            parts = ("subject", "predicate", "object")
            ends = self._resolve(row, ("subject", "object"), parts, origin)
            names, objects = ends["subject"], ends["object"]
            row |= {"subject_name": fold(row["subject"]), "object_name": fold(row["object"])}
            self._refuse_rejected(names, slot, row["object"], " → ".join(row[part] for part in parts))
            self.relations.redate(names, min(start, self._now()), self._now())
            line = self.relations.line(names, slot)
            history = [entry for entry in line if same_place(entry.item.project, origin.project)]
            seen = [entry.item for entry in history if origin.sees_all or entry.shared]
            if not single:
                seen = [
                    item for item in seen if slot in RUNS_ON and is_other_version(item.object, row["object"])
                ]
            where = self._ended_duty(names, objects, row["predicate"], start, retirement) or position(
                seen, start, origin.by
            )
            same = self._same_relation(history, objects, start)
            for entry in history:
                if entry.item.id in where.retires and entry != same:
                    retirement.end_restatements(names, slot, entry.item, row["object"], start, None)
            if same is not None:
                done = self._keep(self.relations, same, where, start, row)
                if origin.shared and trust(origin.by) <= trust(same.item.origin):
                    self.relations.set(done.id, shared=1)
            else:
                if single and not where.until:
                    retirement.end_synonyms(names, slot, row["object"], start, None)
                done = self._insert(self.relations, row, ("subject", "object"), where, start)
            return replace(done, redacted=kept.redacted, value=kept.text)

    def hand_over(self, relation: NewRelation, old: str, origin: Origin) -> Upserted:
        """Store who is responsible for a thing instead of somebody, in the words in which the graph knows the duty.

        What the predecessor was responsible for there is retired. Without a predicate it must be known.
        """
        start = relation.valid_from or self._now()
        retirement = self.retirement.seen_by(origin.sees_all, origin.by, origin.project)
        with self.db.transaction():
            things, new = self._entity(relation.object)[0], self._entity(relation.subject)[0]
            before = () if old == ANYBODY else self._entity(old)[0]
            view = View(self._now(), origin.sees_all)
            held = predecessors(
                before, new, things, self.relations.of(things, view), self.facts.of(things, view)
            )
            held = held.until(start).of_one(relation.predicate)
            if not (held or relation.predicate):
                raise Refused(f"nobody is known to be responsible for {relation.object}", "name who is")
            done = self.relate(held.passed_on(relation), origin)
            retired = retirement.end_duties(held.rows, start, done.id)
            if not held and before and done.created:
                with suppress(Refused):  # that they were responsible was rejected
                    self._keep_end(relation, old, start, done.id, origin)
            return replace(done, retired=(*done.retired, *retired))

    def _keep_end(self, relation: NewRelation, old: str, start: str, by: int, origin: Origin) -> None:
        """Store that a predecessor's duty has ended, for a statement of it that is read later."""
        done = self.relate(
            NewRelation(subject=old, predicate=relation.predicate, object=relation.object, valid_from=start),
            origin,
        )
        if done.created:
            self.relations.retire(done.id, start, by)

    def _ended_duty(
        self,
        names: Sequence[str],
        objects: Sequence[str],
        predicate: str,
        start: str,
        retirement: Retirement,
    ) -> Position | None:
        """Return where a duty stands that was handed over after it began, but before it is stored."""
        if not is_duty(predicate):
            return None
        ends = [
            (row.item.valid_to, row.item.superseded_by)
            for row in self.relations.line(names)
            if row.names[1] in objects and is_duty(row.item.predicate) and row.item.superseded_by
            if row.item.valid_to > start and ends_too(row.item.predicate, predicate)
            if retirement.may_end(row.item)
        ]
        return Position((), *min(ends)) if ends else None

    def _same_relation(
        self, history: list[RelationRow], objects: Sequence[str], start: str
    ) -> RelationRow | None:
        same = sorted((e for e in history if e.names[1] in objects), key=lambda e: trust(e.item.origin))
        return next((e for e in same if not e.item.valid_to or e.item.valid_to > start), None)

    def alias(self, alias: str, entity: str, origin: Origin) -> bool:
        """Add another name of an entity; return False if it had it."""
        other, target = checked_name(alias, "alias"), checked_name(entity, "entity")
        if fold(other) == fold(target):
            raise InvalidValue(f"{alias!r} is the entity's own name", "give another name of it")
        self._refuse_attack(origin, other)
        with self.db.transaction():
            self.intake.refuse(other, target, origin.source)
            return self.names.add_alias(other, target, origin.source, origin.shared, origin.by)

    # ---- facts and relations alike ----

    def _resolve(
        self, row: dict[str, Any], ends: Sequence[str], parts: Sequence[str], origin: Origin
    ) -> dict[str, tuple[str, ...]]:
        """Store entities under their canonical names; return all names of each. What that reveals is checked again."""
        given = [row[end] for end in ends]
        names = {}
        for end in ends:
            names[end], row[end] = self._entity(row[end], origin.shared, origin.by)
        if [row[end] for end in ends] != given:
            self.intake.refuse(*(row[part] for part in parts))
        return names

    def _refuse_attack(self, origin: Origin, *parts: str) -> None:
        """Refuse names and a value that are, alone or in a row, a command to their reader.

        A person may add it all the same.
        """
        for text in (" ".join(parts), *parts):
            if reasons := signs_of_attack(text, origin.by) if len(text.split()) >= LEAST_OF_ATTACK else []:
                raise Refused(
                    f"this is not taken: {', '.join(reasons)}", "a person may add it at the command line"
                )

    def _refuse_rejected(self, names: Sequence[str], slot: str, value: str, shown: str) -> None:
        if self.intake.rejects(names, slot, value):
            raise Refused(
                f"{shown} was rejected before",
                "if it is right after all: nanoclaw-memory graph reject ENTITY KEY VALUE --undo",
            )

    def _insert(
        self,
        table: FactTable | RelationTable,
        row: dict[str, Any],
        ends: Sequence[str],
        where: Position,
        start: str,
    ) -> Upserted:
        for end in ends:
            self.names.learn(row[end])
        times = {"created_at": self._now(), "valid_from": start, "valid_to": where.until}
        new = table.insert({**row, **times, "superseded_by": where.followed_by})
        for old in where.retires:
            table.retire(old, start, new)
        return Upserted(new, where.retires)

    def _keep(
        self,
        table: FactTable | RelationTable,
        same: FactRow | RelationRow,
        where: Position,
        start: str,
        row: Mapping[str, Any],
    ) -> Upserted:
        """Make a stored row valid from `start` on instead of those that it retires; the most trusted author is kept."""
        retired, origin = tuple(other for other in where.retires if other != same.item.id), row["origin"]
        for other in retired:
            table.retire(other, start, same.item.id)
        if same.item.valid_from > start and trust(origin) <= trust(same.item.origin):
            table.set(same.item.id, valid_from=start)
        if rank(origin) < rank(same.item.origin):
            table.set(same.item.id, origin=origin)
        # A statement repeated outside of projects belongs to none; lines may have been read before they had one.
        if same.item.project != row["project"] and (not row["project"] or same.item.source == row["source"]):
            table.set(same.item.id, project=row["project"])
        return Upserted(same.item.id, retired, created=False)

    # ---- rejections ----

    def reject(self, entity: str, key: str, value: str, reason: str, sees_all: bool = True) -> list[int]:
        """Delete a wrong value, restore what it had replaced, and refuse it from now on."""
        slot, value = slot_of(checked_name(key, "key")), checked_value(value)
        reason = self.intake.admit(_encodable(reason)).text
        deleted: list[int] = []
        with self.db.transaction():
            names, label = self._entity(checked_name(entity, "entity"))
            for table in (self.facts, self.relations):
                found = table.line(names, slot, sees_all)
                wrong = [e.item.id for e in found if near_digest(e.item.value) == near_digest(value)]
                for number in wrong:
                    table.delete(number)
                deleted += wrong
            self.retirement.seen_by(sees_all).end_rejected(names, slot, value)
            self.intake.reject(fold(label), slot, value, reason, self._now())
            self.names.prune(names)
        return deleted

    def unreject(self, entity: str, key: str, value: str) -> bool:
        """Allow a rejected value again."""
        with self.db.transaction():
            names, _ = self._entity(checked_name(entity, "entity"))
            return self.intake.unreject(names, slot_of(checked_name(key, "key")), checked_value(value))

    def outdated(self, text: str, start: str) -> bool:
        """Return whether a line from `start` states what was replaced or rejected since, and nothing that is valid."""
        stated = [s for s in extract(f"- {text}", FileRules()) if s.kind != "alias" and not s.several]
        if stated:
            return any(self._replaced(s.kind, s.subject, s.predicate, s.object) for s in stated)
        named = [name for name in names_in(text) if self.names.known([fold(name)])]
        known = [self._entity(name)[0] for name in named]
        return any(
            self.retirement.known_end(names, "", text, start)[0] or self.retirement.was_retired(names, text)
            for names in known
        )

    def _replaced(self, kind: str, entity: str, key: str, value: str) -> bool:
        """Return whether a value was stored once and is no longer valid, or was rejected."""
        names, slot, wanted = self._entity(entity)[0], slot_of(key), digest(value)
        if self.intake.rejects(names, slot, value):
            return True
        table = self.relations if kind == "relation" else self.facts
        ends = [
            entry.item.valid_to for entry in table.line(names, slot) if digest(entry.item.value) == wanted
        ]
        return bool(ends) and all(end and end <= self._now() for end in ends)

    def _entity(self, label: str, shared: bool = False, by: str = "owner") -> tuple[tuple[str, ...], str]:
        """Return all names of an entity, and the one it is stored under: the entity that an unambiguous alias means.

        Statements that shared scopes may see are not stored under a name that only a private alias leads to, and
        those of a trusted author not under one that only others introduced.
        """
        name = fold(label)
        table = NameTable(self.db, self.names.sees_all and not shared, trusted=by not in FOREIGN)
        meaning = table.meanings([name])[name]
        if meaning.ambiguous or meaning.ends[0] == name:
            return (name,) if meaning.ambiguous else meaning.names, label
        return meaning.names, self.names.labels(meaning.ends)[meaning.ends[0]]

    def _now(self) -> str:
        return stamp(self.clock.now())


def is_other_version(one: str, other: str) -> bool:
    """Return whether two names are one product in two versions: `Node 18`, `Node 22`."""
    products = [name.rpartition(" ")[0] for name in (one, other) if is_version(name)]
    return len(products) == 2 and fold(products[0]) == fold(products[1]) and fold(one) != fold(other)


def checked_name(text: str, what: str) -> str:
    """Return a name of reasonable length on one line; an empty one is refused."""
    plain = one_line(_encodable(text))
    if not plain:
        raise InvalidValue(f"the {what} is empty", f"name the {what}, as in: graph add Keystone port 3000")
    if len(plain) > MAX_NAME:
        raise InvalidValue(
            f"the {what} has {len(plain):,} characters, over the limit of {MAX_NAME}", "use a short name"
        )
    return plain


def checked_value(value: str) -> str:
    """Return a value of reasonable length; an empty one is refused."""
    plain = _encodable(value).strip()
    if not one_line(plain):
        raise InvalidValue("the value is empty", "say a value, as in: graph add Keystone port 3000")
    if len(plain) > MAX_VALUE:
        raise InvalidValue(
            f"the value has {len(plain):,} characters, over the limit of {MAX_VALUE:,}",
            "keep long texts in a file and name the file here",
        )
    return plain


def _encodable(text: str) -> str:
    return encodable(text.replace("\x00", " "))
