"""Intake: the one place that every text passes on its way in: forgotten texts are refused, credentials masked.

There are three variants, by the caller's options. `admit` refuses a forgotten text: the caller can act. `talk`
replaces it by `[forgotten]`: a conversation must go on. `without_forgotten` and `admit_or_none` leave it out of files
and archives that are read whole. If the tombstones cannot be read, `admit` and the third variant raise an error that
names the repair, and `talk` withholds the whole text: nothing is admitted unchecked.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.errors import CorruptDatabase, Refused, StoreError
from nanoclaw_memory.types import KeptOut
from nanoclaw_memory.workspace.paths import FORGOTTEN_MARK

if TYPE_CHECKING:
    from nanoclaw_memory.store.database import Database
    from nanoclaw_memory.store.opening import Store
    from nanoclaw_memory.store.phrases import Phrases
    from nanoclaw_memory.store.tombstones import TombstoneTable

T = TypeVar("T")
WITHHELD = "[withheld: the list of forgotten texts cannot be read; the owner can repair it: ncm doctor]"


class Admitted(msgspec.Struct, frozen=True):
    """A text as it may be stored."""

    text: str
    origin: str
    redacted: int = 0  # credentials that were masked
    forgotten: int = 0  # number of replacements by `[forgotten]`
    withheld: bool = False  # `text` is the notice WITHHELD, and nothing of the text itself may be stored

    @property
    def suspicions(self) -> list[str]:
        """Return the signs that the text is an instruction in disguise."""
        from nanoclaw_memory.intake.suspicion import suspicions

        return suspicions(self.text)


class Intake(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The gate of one group, with its tombstones."""

    data: Path  # the group's data folder
    # the tombstones, if the caller opens and closes their database
    database: Callable[[], Database] | None = None
    listed: Callable[[], bool] | None = None  # whether there are tombstones, if they are not in a file
    redact: bool = True
    origin: str = "owner"
    private: bool = True
    record: Callable[..., None] = lambda event, **fields: None  # as `Telemetry.record`

    @classmethod
    def at(cls, store: Store, data: Path, **named: Any) -> Intake:
        """Return the intake of the group with this data folder, wherever its home has databases."""
        if not store.url:
            return cls(data=data, **named)
        kept = store.open(data / "forgotten.db", "forgotten")
        return cls(data=data, database=lambda: kept, listed=kept.exists, **named)

    def close(self) -> None:
        """Close the database of tombstones, if this intake opened it."""
        if "_own_database" in self.__dict__:
            self._own_database.close()

    # ---- for callers that can act: a forgotten text is refused ----

    def admit(self, text: str, *beside: str) -> Admitted:
        """Return the text as it may be stored. `beside` are names and labels that are checked and stay unchanged."""
        self.refuse(text, *beside)
        return self._checked_again(self.masked(text))

    def admit_all(self, *texts: str) -> tuple[Admitted, ...]:
        """Return several texts that belong together, each as it may be stored."""
        self.refuse(*texts)
        return tuple(self._checked_again(self.masked(text)) for text in texts)

    def admit_fact(self, entity: str, key: str, value: str, *beside: str) -> Admitted:
        """Return the value of a fact or the object of a relation; key and entity decide whether it is a credential."""
        self.refuse(entity, key, value, *beside)
        return self._checked_again(self.masked_fact(entity, key, value))

    def refuse(self, *texts: str) -> None:
        """Refuse texts if any of them, or all in a row, contain what a person asked to forget."""
        if self.forgets(*texts):
            raise Refused(
                "a person asked to forget this", 'if it may come back: ncm forget --text "…" --allow'
            )

    # ---- for conversations, which must go on: `[forgotten]` replaces a forgotten text ----

    def talk(self, text: str, where: str) -> Admitted:
        """Return the text without forgotten texts and credentials; never refuse it."""
        admitted = self.unforgotten(text, where)
        if admitted.withheld:
            return admitted
        masked = self.masked(admitted.text)
        return replace(masked, forgotten=admitted.forgotten)

    def unforgotten(self, text: str, where: str) -> Admitted:
        """Return the text without forgotten texts, for agents that need its credentials: prompts, messages of a
        chat.
        """
        from nanoclaw_memory.store.phrases import masked

        try:
            gone = self._forgotten() if text else None
        except StoreError as error:
            self._withhold(where, error)
            return Admitted(WITHHELD, self.origin, withheld=True)
        clean, places = masked(gone, text) if gone else (text, 0)
        self._record_places(where, places)
        return Admitted(clean, self.origin, forgotten=places)

    def talk_value(self, value: Any, where: str) -> tuple[Any, int] | None:
        """Apply `talk` to every text in a JSON value; return it with the number of forgotten places.

        None means that the tombstones cannot be read, and nothing may be stored.
        """
        from nanoclaw_memory.intake.secrets import mask, mask_fact
        from nanoclaw_memory.store.phrases import mapped_texts, masked_value

        def masked_text(key: str, text: str) -> tuple[str, int]:
            # the meaning of a single word depends on its key
            return mask(text) if " " in text else mask_fact("", key, text)

        try:
            gone = self._forgotten()
        except StoreError as error:
            self._withhold(where, error)
            return None
        value, places = masked_value(gone, value) if gone else (value, 0)
        self._record_places(where, places)
        if self.redact:
            value, _ = mapped_texts(value, masked_text)
        return value, places

    # ---- for texts that are read whole: forgotten texts are left out ----

    def without_forgotten(self, text: str) -> str:
        """Return a file's text with empty lines in place of forgotten ones, so that line numbers stay."""
        gone = self._forgotten()
        if not gone:
            return text
        from nanoclaw_memory.store.phrases import lines_holding

        lines = text.split("\n")
        left_out = lines_holding(lines, gone)
        return "\n".join("" if number in left_out else line for number, line in enumerate(lines))

    def admit_or_none(self, text: str) -> Admitted | None:
        """Return one text of many as it may be stored; None for a forgotten one."""
        admitted = self.masked(text)
        return None if self.forgets(text) or (admitted.redacted and self.forgets(admitted.text)) else admitted

    def forgets(self, *texts: str) -> bool:
        """Return whether any of the texts, or all of them in a row, contain what a person asked to forget."""
        given = [text for text in texts if text]
        gone = self._forgotten() if given else None
        if not gone:
            return False
        from nanoclaw_memory.store.phrases import holds

        return any(holds(gone, text) for text in (*given, *([" ".join(given)] if given[1:] else [])))

    # ---- secrets ----

    def masked(self, text: str) -> Admitted:
        """Return the text without credentials."""
        if not self.redact or not text:
            return Admitted(text, self.origin)
        from nanoclaw_memory.intake.secrets import mask

        clean, redacted = mask(text)
        return Admitted(clean, self.origin, redacted)

    def masked_fact(self, entity: str, key: str, value: str) -> Admitted:
        """Return a fact's value without credentials."""
        if not self.redact:
            return Admitted(value, self.origin)
        from nanoclaw_memory.intake.secrets import mask_fact

        clean, redacted = mask_fact(entity, key, value)
        return Admitted(clean, self.origin, redacted)

    def wordings(self, text: str) -> list[str]:
        """Return a text to be forgotten, and its form after masking if it contains a credential."""
        from nanoclaw_memory.intake.secret_values import MARKER
        from nanoclaw_memory.intake.secrets import mask
        from nanoclaw_memory.store.phrases import SHORTEST
        from nanoclaw_memory.text import content_words

        masked, redacted = mask(text)
        # "The router password is …" is said of every router: the masked form counts only if it says more.
        tells = redacted and len(content_words(MARKER.sub(" ", masked))) >= SHORTEST
        return [text, masked] if tells else [text]

    # ---- the tombstones ----

    def rejects(self, names: Sequence[str], slot: str, value: str) -> bool:
        """Return whether this value of an entity's key was rejected, under any of the entity's names, in any
        spelling.

        A rejection concerns what private memory believes: in a shared scope only forgotten values are refused.
        """
        from nanoclaw_memory.store.tombstones import name_fingerprint

        kept = self.tombstones()
        return kept is not None and any(
            kept.has(asked if self.private else [name_fingerprint(name) for name in asked], key, digest)
            for asked, key, digest in _statement_marks(names, slot, value)
        )

    def reject(self, name: str, slot: str, value: str, reason: str, moment: str) -> None:
        """Refuse a value of an entity's key from now on."""
        [spelt], key, digest = _statement_marks([name], slot, value)[0]
        self._change(lambda kept: kept.insert([(spelt, key, digest, "", reason, moment)]))

    def unreject(self, names: Sequence[str], slot: str, value: str) -> bool:
        """Allow a rejected value again; return False if it was not refused."""
        marks = _statement_marks(names, slot, value)
        return self.tombstones() is not None and self._change(
            lambda kept: sum(kept.remove(*mark) for mark in marks) > 0
        )

    def forget(
        self, phrases: Phrases, values: Iterable[tuple[str, str, str]], reason: str, moment: str
    ) -> None:
        """Refuse texts, and values of the graph (name, key, digest), from now on; on disk when this returns."""
        from nanoclaw_memory.store.tombstones import name_fingerprint

        rows = [
            (name_fingerprint(name), name_fingerprint(slot), digest, "", reason, moment)
            for name, slot, digest in values
        ]
        rows += [("", "", "", mark, reason, moment) for mark in phrases.marks()]
        self._change(lambda kept: kept.insert(rows))

    def add_tombstones(self, marks: Iterable[tuple[str, str, str, str]]) -> None:
        """Add the tombstones of another machine: name, key, digest and fingerprint of each."""
        rows = [(*mark, "on another machine", "") for mark in marks]
        self._change(lambda kept: kept.insert(rows))

    def remove_tombstones(self, marks: Iterable[tuple[str, str, str, str]]) -> None:
        """Remove the tombstones that another machine removed."""
        self._change(lambda kept: kept.discard(marks))

    def fingerprint_names(self, tells: Callable[[str, Sequence[str]], bool]) -> None:
        """Replace revealing names of rejected values by fingerprints."""
        if self.tombstones() is not None:
            self._change(lambda kept: kept.fingerprint_names(tells))

    def allow(self, phrases: Phrases) -> int:
        """Allow forgotten texts again; return how many were refused."""
        return self._change(lambda kept: kept.allow(phrases)) if self.tombstones() is not None else 0

    def kept_out(self) -> list[KeptOut]:
        """Count the refused texts and values, by day and reason."""
        kept = self.tombstones()
        counted = Counter(
            (str(row[5])[:10], str(row[4]), bool(row[3])) for row in (kept.rows() if kept is not None else ())
        )
        return [
            KeptOut(day, reason, counted[day, reason, True], counted[day, reason, False])
            for day, reason in sorted({(day, reason) for day, reason, _ in counted})
        ]

    def tombstones(self) -> TombstoneTable | None:
        """Return the tombstones; None if nothing was ever rejected or forgotten. Raise a StoreError if they cannot
        be read.
        """
        from nanoclaw_memory.store.tombstones import TombstoneTable, has_list

        if not (self.listed() if self.listed else has_list(self.data, FORGOTTEN_MARK)):
            return None
        return TombstoneTable(self._opened())

    def is_damaged(self) -> bool:
        """Return whether the tombstones are lost or fail their integrity check."""
        try:
            kept = self.tombstones()
            return kept is not None and bool(self._opened().check())
        except CorruptDatabase:
            return True

    def repair(self) -> int:
        """Rebuild damaged tombstones from the copy of their fingerprints; return how many came back."""
        from nanoclaw_memory.store.tombstones import TombstoneTable

        lines = self._copy.read_text("utf-8", "replace").splitlines() if self._copy.exists() else []
        rows = [row for row in map(_row, lines) if row is not None]
        database = self._opened()
        database.set_aside()
        with database.transaction():
            TombstoneTable(database).insert(rows)
        return len(rows)

    # ---- inside ----

    def _forgotten(self) -> Phrases | None:
        try:
            return kept.texts() if (kept := self.tombstones()) is not None else None
        except StoreError as error:
            told = f"the list of forgotten texts cannot be read, so nothing can be checked: {error.message}"
            # Not CorruptDatabase: the caller would take its own database for the damaged one.
            raise StoreError(told, error.hint) from error

    def _opened(self) -> Database:
        return self.database() if self.database is not None else self._own_database

    @cached_property
    def _own_database(self) -> Database:
        from nanoclaw_memory.store.tombstones import forgotten_database

        return forgotten_database(self.data)

    @property
    def _copy(self) -> Path:
        """Return the path of the fingerprints' copy; its presence shows that there must be tombstones."""
        return self.data / FORGOTTEN_MARK

    def _change(self, act: Callable[[TombstoneTable], T]) -> T:
        """Change the tombstones and the copy of their fingerprints."""
        from nanoclaw_memory.store.tombstones import TombstoneTable, has_list, name_fingerprint
        from nanoclaw_memory.workspace.files import replace_text

        if self.listed is None:
            has_list(self.data, FORGOTTEN_MARK)  # a lost database must be repaired first, not created anew
        kept = TombstoneTable(self._opened())
        with kept.db.transaction():
            result = act(kept)
            # Before the commit, while others wait: the later copy must belong to the later tombstones.
            rows = [
                (name_fingerprint(name), name_fingerprint(slot), *rest) for name, slot, *rest in kept.rows()
            ]
            if self.listed is None:  # on a server no copy is needed beside the database
                replace_text(self._copy, "".join(f"{json.dumps(row)}\n" for row in rows))
        return result

    def _checked_again(self, admitted: Admitted) -> Admitted:
        """Check the masked text too: it may have been stored and then forgotten in that form."""
        if admitted.redacted:
            self.refuse(admitted.text)
        return admitted

    def _withhold(self, where: str, error: StoreError) -> None:
        self.record("withheld", where=where, error=error.message)

    def _record_places(self, where: str, places: int) -> None:
        if places:
            self.record("forgotten", where=where, places=places)


def _statement_marks(names: Sequence[str], slot: str, value: str) -> list[tuple[list[str], str, str]]:
    """Return names, key and digest of a statement in any spelling, and in the form of older releases."""
    from nanoclaw_memory.store.facts import digest, near_digest
    from nanoclaw_memory.store.names import spelling

    spelt = [near_digest(name) for name in names]  # the tombstones must not reveal about whom
    return [(spelt, spelling(slot), near_digest(value)), (list(names), slot, digest(value))]


def _row(line: str) -> tuple[str, ...] | None:
    """Parse a tombstone in the copy; return None for a damaged line."""
    try:
        return msgspec.json.decode(line, type=tuple[str, str, str, str, str, str])
    except msgspec.MsgspecError:
        return None
