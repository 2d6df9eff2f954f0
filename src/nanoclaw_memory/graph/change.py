"""Facts and relations change: a new value retires the old one, a rejected value stays away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from nanoclaw_memory.clock import Clock, stamp
from nanoclaw_memory.errors import InvalidValue, Refused
from nanoclaw_memory.graph import sentence_patterns
from nanoclaw_memory.graph.extract import FileRules, extract
from nanoclaw_memory.graph.retirement import Retirement
from nanoclaw_memory.intake.intake import Intake
from nanoclaw_memory.settings.sections import GraphSettings
from nanoclaw_memory.store.facts import FactRow, FactTable, digest
from nanoclaw_memory.store.names import NameTable, fold, slot_of
from nanoclaw_memory.store.relations import RelationRow, RelationTable
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import Upserted

MAX_VALUE = 10_000
MAX_NAME = 200


class _Spell(Protocol):
    """The time for which a value held."""

    @property
    def id(self) -> int: ...
    @property
    def valid_from(self) -> str: ...
    @property
    def valid_to(self) -> str: ...


class Place(msgspec.Struct, frozen=True):
    """Where a new value comes in a key's history: whom it retires and who follows it."""

    retires: tuple[int, ...]
    until: str | None = None
    followed_by: int | None = None


def place(spells: Sequence[_Spell], start: str) -> Place:
    """The place of a value that holds from `start`."""
    covering = tuple(s.id for s in spells if s.valid_from <= start and (not s.valid_to or s.valid_to > start))
    later = min((s for s in spells if s.valid_from > start), key=lambda s: (s.valid_from, s.id), default=None)
    return Place(covering, later.valid_from if later else None, later.id if later else None)


class Origin(msgspec.Struct, frozen=True):
    """Who says it, where, and whether all may hear it."""

    source: str
    shared: bool = False
    sees_all: bool = True


class Change:
    """Writes to one graph; every method is one transaction."""

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
        self._shared_names = NameTable(facts.db, sees_all=False)
        self.retirement = Retirement(facts, relations, clock)
        self.intake = intake
        self.settings = settings
        self.clock = clock
        self.db = facts.db
        self._several = {slot_of(key) for key in settings.multi_valued_keys}
        self._one = {slot_of(key) for key in settings.single_valued_predicates}

    # ---- facts ----

    def upsert(
        self,
        entity: str,
        key: str,
        value: str,
        origin: Origin,
        category: str = "",
        importance: float = 0.5,
        permanent: bool = False,
        add: bool = False,
        valid_from: str = "",
    ) -> Upserted:
        """Say a fact. A single-valued key has one current value: what it had is retired, and kept."""
        row = self._checked(entity, key, value, category, importance)
        row |= {"permanent": int(permanent), "source": origin.source, "shared": int(origin.shared)}
        given = row["entity"]
        kept = self.intake.admit_fact(given, row["key"], row["value"], row["category"], origin.source)
        row["value"] = kept.text
        now = stamp(self.clock.now())
        start = valid_from or now
        several = add or row["slot"] in self._several
        retirement = self.retirement.seen_by(origin.sees_all)
        with self.db.transaction():
            names, row["entity"] = self._entity(row["entity"], origin.shared)
            row["name"] = fold(row["entity"])
            if row["entity"] != given:
                self.intake.refuse(row["entity"], row["key"], row["value"])
            if self.intake.rejects(names, row["slot"], digest(row["value"])):
                raise Refused(
                    f"{row['entity']}.{row['key']} = {row['value'][:80]} was rejected before",
                    "if it is right after all: nanoclaw-memory graph reject ENTITY KEY VALUE --undo",
                )
            line = self.facts.line(names, row["slot"])
            seen = [entry.fact for entry in line if origin.sees_all or entry.shared]
            same = self._same(line, digest(row["value"]), start, several)
            where = Place(()) if several else place(seen, start)
            if several and not same:
                where = Place((), *retirement.known_end(names, row["slot"], row["value"], start))
            if same:
                done = self._confirmed(same, where, start, row, permanent)
            else:
                done = self._inserted(row, where, start, now)
            if several and done.created and not where.until:
                retirement.end_contradicted(names, row["slot"], row["value"], start, done.id)
            elif done.created and not where.until:
                retirement.end_synonyms(names, row["slot"], row["value"], start, done.id)
            for entry in line:
                if entry.fact.id in done.retired:
                    retirement.end_restatements(names, entry.slot, entry.fact, row["value"], start, done.id)
            return msgspec.structs.replace(done, redacted=kept.redacted, value=kept.text)

    def _same(self, line: list[FactRow], wanted: str, start: str, several: bool) -> FactRow | None:
        """The entry of the line with this value that holds at `start`, or is the next to hold.

        Of several values none follows another: the one that holds now is the same from an earlier day on.
        """
        equal = [entry for entry in line if digest(entry.fact.value) == wanted]
        holds = [e for e in equal if not e.fact.valid_to or e.fact.valid_to > start]
        if several:
            return holds[0] if holds else None
        following = place([entry.fact for entry in line], start).followed_by
        return next((e for e in holds if e.fact.valid_from <= start or e.fact.id == following), None)

    def _confirmed(
        self, same: FactRow, where: Place, start: str, row: dict[str, Any], permanent: bool
    ) -> Upserted:
        retired = tuple(other for other in where.retires if other != same.fact.id)
        for other in retired:
            self.facts.retire(other, start, same.fact.id)
        if same.fact.valid_from > start:
            self.facts.extend(same.fact.id, start)
        self.facts.confirm(same.fact.id, row["importance"], permanent, row["shared"])
        return Upserted(same.fact.id, retired, created=False)

    def _inserted(self, row: dict[str, Any], where: Place, start: str, now: str) -> Upserted:
        self.names.learn(row["entity"])
        times = {"created_at": now, "valid_from": start, "valid_to": where.until}
        new = self.facts.insert({**row, **times, "superseded_by": where.followed_by})
        for old in where.retires:
            self.facts.retire(old, start, new)
        if where.retires and not where.until:
            self.facts.inherit(new, where.retires[-1])
        return Upserted(new, where.retires)

    def _checked(self, entity: str, key: str, value: str, category: str, importance: float) -> dict[str, Any]:
        if not 0 <= importance <= 1:
            raise InvalidValue(f"importance {importance} is outside 0 to 1", "for example --importance 0.9")
        given_key = named(key, "key")
        return {
            "entity": named(entity, "entity"),
            "key": given_key,
            "slot": slot_of(given_key),
            "value": said(value),
            "category": self.category(category),
            "importance": float(importance),
        }

    def category(self, category: str) -> str:
        """The category in the settings' spelling; an unknown one is refused."""
        wanted = one_line(category).casefold() or "fact"
        allowed = {name.casefold(): name for name in self.settings.categories}
        if allowed and wanted not in allowed and wanted != "fact":
            raise InvalidValue(
                f"category {category[:60]!r} is not known",
                f"use one of {', '.join(sorted(allowed))}; or change graph.categories in the settings",
            )
        return allowed.get(wanted, wanted)

    def known_category(self, category: str) -> str:
        """The category when the settings allow it, else the plain one."""
        allowed = {name.casefold() for name in self.settings.categories}
        return category if not allowed or category.casefold() in allowed else ""

    # ---- relations and aliases ----

    def relate(
        self,
        subject: str,
        predicate: str,
        object_: str,
        origin: Origin,
        replace: bool = False,
        valid_from: str = "",
    ) -> Upserted:
        """Say a relation. With `replace`, or for a single-valued predicate, other objects are retired."""
        row: dict[str, Any] = {
            "subject": named(subject, "subject"),
            "predicate": named(predicate, "predicate"),
            "object": named(object_, "object"),
            "source": origin.source,
            "shared": int(origin.shared),
        }
        row["slot"] = slot_of(row["predicate"])
        kept = self.intake.admit_fact(row["subject"], row["predicate"], row["object"], origin.source)
        row["object"] = kept.text
        now = stamp(self.clock.now())
        start = valid_from or now
        one = replace or row["slot"] in self._one
        retirement = self.retirement.seen_by(origin.sees_all)
        with self.db.transaction():
            given = row["subject"], row["object"]
            names, row["subject"] = self._entity(row["subject"], origin.shared)
            objects, row["object"] = self._entity(row["object"], origin.shared)
            row |= {"subject_name": fold(row["subject"]), "object_name": fold(row["object"])}
            if (row["subject"], row["object"]) != given:
                self.intake.refuse(row["subject"], row["predicate"], row["object"])
            if self.intake.rejects(names, row["slot"], digest(row["object"])):
                raise Refused(
                    f"{row['subject']} → {row['predicate']} → {row['object']} was rejected before",
                    "if it is right after all: nanoclaw-memory graph reject ENTITY KEY VALUE --undo",
                )
            line = self.relations.line(names, row["slot"])
            seen = [entry.relation for entry in line if origin.sees_all or entry.shared]
            where = place(seen, start) if one else Place(())
            same = self._same_relation(line, objects, start)
            for entry in line:
                if entry.relation.id in where.retires and (same is None or entry != same):
                    retirement.end_restatements(names, entry.slot, entry.relation, row["object"], start, None)
            if same is not None:
                retired = tuple(other for other in where.retires if other != same.relation.id)
                for other in retired:
                    self.relations.retire(other, start, same.relation.id)
                if same.relation.valid_from > start:
                    self.relations.extend(same.relation.id, start)
                if origin.shared:
                    self.relations.share(same.relation.id)
                return Upserted(same.relation.id, retired, False, kept.redacted, kept.text)
            if one and not where.until:
                retirement.end_synonyms(names, row["slot"], row["object"], start, None)
            done = self._related(row, where, start, now)
            return msgspec.structs.replace(done, redacted=kept.redacted, value=kept.text)

    def _same_relation(
        self, line: list[RelationRow], wanted: Sequence[str], start: str
    ) -> RelationRow | None:
        holds = [
            e for e in line if e.object in wanted and (not e.relation.valid_to or e.relation.valid_to > start)
        ]
        return holds[0] if holds else None

    def _related(self, row: dict[str, Any], where: Place, start: str, now: str) -> Upserted:
        self.names.learn(row["subject"])
        self.names.learn(row["object"])
        times = {"created_at": now, "valid_from": start, "valid_to": where.until}
        new = self.relations.insert({**row, **times, "superseded_by": where.followed_by})
        for old in where.retires:
            self.relations.retire(old, start, new)
        return Upserted(new, where.retires)

    def alias(self, alias: str, entity: str, origin: Origin) -> bool:
        """Give an entity another name; False when it had it."""
        other, target = named(alias, "alias"), named(entity, "entity")
        if fold(other) == fold(target):
            raise InvalidValue(f"{alias!r} is the entity's own name", "give another name of it")
        with self.db.transaction():
            self.intake.refuse(other, target, origin.source)
            return self.names.add_alias(other, target, origin.source, origin.shared)

    # ---- taking back ----

    def reject(self, entity: str, key: str, value: str, reason: str, sees_all: bool = True) -> list[int]:
        """Erase a wrong value, restore what it had replaced, and keep it from coming back."""
        slot, wanted = slot_of(named(key, "key")), digest(said(value))
        with self.db.transaction():
            names, label = self._entity(named(entity, "entity"))
            gone = [
                entry.fact.id
                for entry in self.facts.line(names, slot, sees_all)
                if digest(entry.fact.value) == wanted
            ]
            for fact_id in gone:
                self.facts.delete(fact_id)
            self.retirement.seen_by(sees_all).end_rejected(names, slot, said(value))
            related = [
                entry.relation.id
                for entry in self.relations.line(names, slot, sees_all)
                if digest(entry.relation.object) == wanted
            ]
            for relation_id in related:
                self.relations.delete(relation_id)
            self.intake.reject(fold(label), slot, wanted, reason, stamp(self.clock.now()))
            self.names.prune(names)
        return gone + related

    def unreject(self, entity: str, key: str, value: str) -> bool:
        """Let a rejected value come back."""
        with self.db.transaction():
            names, _ = self._entity(named(entity, "entity"))
            return self.intake.unreject(names, slot_of(named(key, "key")), digest(said(value)))

    # ---- judging ----

    def outdated(self, text: str, start: str) -> bool:
        """Whether a line from `start` states what was replaced or rejected since, and nothing that holds."""
        stated = [s for s in extract(f"- {text}", FileRules()) if s.kind != "alias" and not s.several]
        if stated:
            return any(self._replaced(s.kind, s.subject, s.predicate, s.object) for s in stated)
        known = [
            self._entity(name)[0] for name in sentence_patterns.names(text) if self.names.known([fold(name)])
        ]
        return any(
            self.retirement.known_end(names, "", text, start)[0] or self.retirement.was_retired(names, text)
            for names in known
        )

    def _replaced(self, kind: str, entity: str, key: str, value: str) -> bool:
        """Whether a value was known once and holds no more, or was rejected."""
        names, slot, wanted = self._entity(entity)[0], slot_of(key), digest(value)
        if self.intake.rejects(names, slot, wanted):
            return True
        if kind == "relation":
            spells: list[_Spell] = [
                row.relation
                for row in self.relations.line(names, slot)
                if digest(row.relation.object) == wanted
            ]
        else:
            spells = [row.fact for row in self.facts.line(names, slot) if digest(row.fact.value) == wanted]
        now = stamp(self.clock.now())
        return bool(spells) and not any(not spell.valid_to or spell.valid_to > now for spell in spells)

    # ---- inside ----

    def _entity(self, label: str, shared: bool = False) -> tuple[tuple[str, ...], str]:
        """All names of the entity, and the one it is kept under: an alias of one entity gives way to it.

        What all may see is not kept under a name that only a private alias leads to: that would tell it.
        """
        name = fold(label)
        table = self._shared_names if shared else self.names
        meaning = table.meanings([name])[name]
        if meaning.ambiguous or meaning.ends[0] == name:
            return (name,) if meaning.ambiguous else meaning.names, label
        return meaning.names, self.names.labels(meaning.ends)[meaning.ends[0]]


def named(text: str, what: str) -> str:
    """A name of reasonable length on one line; an empty one is refused."""
    plain = one_line(_encodable(text))
    if not plain:
        raise InvalidValue(f"the {what} is empty", f"name the {what}, as in: graph add Keystone port 3000")
    if len(plain) > MAX_NAME:
        raise InvalidValue(
            f"the {what} has {len(plain):,} characters, over the limit of {MAX_NAME}", "use a short name"
        )
    return plain


def said(value: str) -> str:
    """A value of reasonable length; an empty one is refused."""
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
    return text.replace("\x00", " ").encode("utf-8", "replace").decode("utf-8")
