"""Intake: the one place that every text passes on its way in: forgotten texts are kept out, credentials masked.

Three ways, by who is at the other end. `admit` refuses a forgotten text: whoever asks can act. `talk` puts
`[forgotten]` in its place: a conversation must go on. `without_forgotten` and `admit_or_none` leave it out of
files and archives that are read whole. When the list of forgotten texts cannot be read, `admit` and the third way
raise an error that names the repair, and `talk` withholds the whole text: nothing is admitted unchecked.
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
    forgotten: int = 0  # places where `[forgotten]` stands now
    withheld: bool = False  # `text` is the notice WITHHELD, and nothing of the text itself may be stored

    @property
    def suspicions(self) -> list[str]:
        """Signs that the text is an instruction in disguise."""
        from nanoclaw_memory.intake.suspicion import suspicions

        return suspicions(self.text)


class Intake(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What one group lets in, and its list of what it must not."""

    data: Path  # the group's data folder
    database: Callable[[], Database] | None = None  # the list, where somebody else opens and closes it
    listed: Callable[[], bool] | None = None  # whether there is a list, where it is no file
    redact: bool = True
    origin: str = "owner"
    private: bool = True
    record: Callable[..., None] = lambda event, **fields: None  # as `Telemetry.record`

    @classmethod
    def at(cls, store: Store, data: Path, **named: Any) -> Intake:
        """The intake of the group with this data folder, wherever its home keeps databases."""
        if not store.url:
            return cls(data=data, **named)
        kept = store.open(data / "forgotten.db", "forgotten")
        return cls(data=data, database=lambda: kept, listed=kept.exists, **named)

    def close(self) -> None:
        """Close the list, if this intake opened it."""
        if "_own_database" in self.__dict__:
            self._own_database.close()

    # ---- for whoever can act: a forgotten text is refused ----

    def admit(self, text: str, *beside: str) -> Admitted:
        """The text as it may be stored. `beside` are names and labels that are checked and kept as they are."""
        self.refuse(text, *beside)
        return self._checked_again(self.masked(text))

    def admit_all(self, *texts: str) -> tuple[Admitted, ...]:
        """Several texts that belong together, each as it may be stored."""
        self.refuse(*texts)
        return tuple(self._checked_again(self.masked(text)) for text in texts)

    def admit_fact(self, entity: str, key: str, value: str, *beside: str) -> Admitted:
        """The value of a fact or the object of a relation: its key and entity say whether it is a credential."""
        self.refuse(entity, key, value, *beside)
        return self._checked_again(self.masked_fact(entity, key, value))

    def refuse(self, *texts: str) -> None:
        """Refuse texts of which any, or all in a row, contain what a person asked to forget."""
        if self.forgets(*texts):
            raise Refused(
                "a person asked to forget this", 'if it may come back: ncm forget --text "…" --allow'
            )

    # ---- for talk that must go on: `[forgotten]` in its place ----

    def talk(self, text: str, where: str) -> Admitted:
        """The text without forgotten texts and credentials; never refused."""
        admitted = self.unforgotten(text, where)
        if admitted.withheld:
            return admitted
        masked = self.masked(admitted.text)
        return replace(masked, forgotten=admitted.forgotten)

    def unforgotten(self, text: str, where: str) -> Admitted:
        """The same for texts that an agent needs with their credentials: prompts, messages of a chat."""
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
        """`talk` for every text in a JSON value, and in how many places something was forgotten.

        None: the list of forgotten texts cannot be read, and nothing may be stored.
        """
        from nanoclaw_memory.intake.secrets import mask, mask_fact
        from nanoclaw_memory.store.phrases import mapped_texts, masked_value

        def masked_text(key: str, text: str) -> tuple[str, int]:
            return mask(text) if " " in text else mask_fact("", key, text)  # a key tells what one word is

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

    # ---- for what is read whole: left out ----

    def without_forgotten(self, text: str) -> str:
        """A file's text with empty lines in the place of forgotten ones, so that line numbers stay."""
        gone = self._forgotten()
        if not gone:
            return text
        from nanoclaw_memory.store.phrases import lines_holding

        lines = text.split("\n")
        left_out = lines_holding(lines, gone)
        return "\n".join("" if number in left_out else line for number, line in enumerate(lines))

    def admit_or_none(self, text: str) -> Admitted | None:
        """One text of many as it may be stored; None for a forgotten one."""
        admitted = self.masked(text)
        return None if self.forgets(text) or (admitted.redacted and self.forgets(admitted.text)) else admitted

    def forgets(self, *texts: str) -> bool:
        """Whether any of the texts, or all of them in a row, contain what a person asked to forget."""
        given = [text for text in texts if text]
        gone = self._forgotten() if given else None
        if not gone:
            return False
        from nanoclaw_memory.store.phrases import holds

        return any(holds(gone, text) for text in (*given, *([" ".join(given)] if given[1:] else [])))

    # ---- secrets ----

    def masked(self, text: str) -> Admitted:
        """The text without credentials."""
        if not self.redact or not text:
            return Admitted(text, self.origin)
        from nanoclaw_memory.intake.secrets import mask

        clean, redacted = mask(text)
        return Admitted(clean, self.origin, redacted)

    def masked_fact(self, entity: str, key: str, value: str) -> Admitted:
        """A fact's value without credentials."""
        if not self.redact:
            return Admitted(value, self.origin)
        from nanoclaw_memory.intake.secrets import mask_fact

        clean, redacted = mask_fact(entity, key, value)
        return Admitted(clean, self.origin, redacted)

    def wordings(self, text: str) -> list[str]:
        """A text that is to be forgotten, and how it is known where a credential in it was masked before."""
        from nanoclaw_memory.intake.secret_values import MARKER
        from nanoclaw_memory.intake.secrets import mask
        from nanoclaw_memory.store.phrases import SHORTEST
        from nanoclaw_memory.text import content_words

        masked, redacted = mask(text)
        # "The router password is …" is said of every router: only what tells more than that is known by its rest.
        tells = redacted and len(content_words(MARKER.sub(" ", masked))) >= SHORTEST
        return [text, masked] if tells else [text]

    # ---- the list of what must not come in ----

    def rejects(self, names: Sequence[str], slot: str, value: str) -> bool:
        """Whether this value of an entity's key was rejected, under any of the entity's names, in any spelling.

        What a person rejected is what private memory believes: in a shared scope only forgotten values are refused.
        """
        from nanoclaw_memory.store.tombstones import veiled

        kept = self.tombstones()
        return kept is not None and any(
            kept.has(asked if self.private else [veiled(name) for name in asked], key, digest)
            for asked, key, digest in _statement_marks(names, slot, value)
        )

    def reject(self, name: str, slot: str, value: str, reason: str, moment: str) -> None:
        """Keep a value of an entity's key out from now on."""
        [spelt], key, digest = _statement_marks([name], slot, value)[0]
        self._change(lambda kept: kept.insert([(spelt, key, digest, "", reason, moment)]))

    def unreject(self, names: Sequence[str], slot: str, value: str) -> bool:
        """Let a rejected value come back; False when it was not kept out."""
        marks = _statement_marks(names, slot, value)
        return self.tombstones() is not None and self._change(
            lambda kept: sum(kept.remove(*mark) for mark in marks) > 0
        )

    def forget(
        self, phrases: Phrases, values: Iterable[tuple[str, str, str]], reason: str, moment: str
    ) -> None:
        """Keep texts, and values of the graph (name, key, digest), out from now on; on disk when this returns."""
        from nanoclaw_memory.store.tombstones import veiled

        rows = [(veiled(name), veiled(slot), digest, "", reason, moment) for name, slot, digest in values]
        rows += [("", "", "", mark, reason, moment) for mark in phrases.marks()]
        self._change(lambda kept: kept.insert(rows))

    def bury(self, marks: Iterable[tuple[str, str, str, str]]) -> None:
        """Keep out what was forgotten or rejected on another machine: name, key, digest and fingerprint of each."""
        rows = [(*mark, "on another machine", "") for mark in marks]
        self._change(lambda kept: kept.insert(rows))

    def unbury(self, marks: Iterable[tuple[str, str, str, str]]) -> None:
        """Let come back what was allowed again on another machine."""
        self._change(lambda kept: kept.discard(marks))

    def veil(self, tells: Callable[[str, Sequence[str]], bool]) -> None:
        """Put fingerprints in the place of names of rejected values that tell."""
        if self.tombstones() is not None:
            self._change(lambda kept: kept.veil(tells))

    def allow(self, phrases: Phrases) -> int:
        """Let forgotten texts come back; returns how many were kept out."""
        return self._change(lambda kept: kept.allow(phrases)) if self.tombstones() is not None else 0

    def kept_out(self) -> list[KeptOut]:
        """How many texts and values are kept out, by day and reason."""
        kept = self.tombstones()
        counted = Counter(
            (str(row[5])[:10], str(row[4]), bool(row[3])) for row in (kept.rows() if kept is not None else ())
        )
        return [
            KeptOut(day, reason, counted[day, reason, True], counted[day, reason, False])
            for day, reason in sorted({(day, reason) for day, reason, _ in counted})
        ]

    def tombstones(self) -> TombstoneTable | None:
        """The list; None where nothing was ever rejected or forgotten. Raises a StoreError if it cannot be read."""
        from nanoclaw_memory.store.tombstones import TombstoneTable, has_list

        if not (self.listed() if self.listed else has_list(self.data, FORGOTTEN_MARK)):
            return None
        return TombstoneTable(self._opened())

    def is_damaged(self) -> bool:
        """Whether the list is gone or fails its integrity check."""
        try:
            kept = self.tombstones()
            return kept is not None and bool(self._opened().check())
        except CorruptDatabase:
            return True

    def repair(self) -> int:
        """Build a damaged list anew from the copy of its fingerprints; returns how many tombstones came back."""
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
            # No CorruptDatabase: whoever asked would take its own database for the damaged one.
            raise StoreError(told, error.hint) from error

    def _opened(self) -> Database:
        return self.database() if self.database is not None else self._own_database

    @cached_property
    def _own_database(self) -> Database:
        from nanoclaw_memory.store.tombstones import forgotten_database

        return forgotten_database(self.data)

    @property
    def _copy(self) -> Path:
        """Fingerprints of the whole list; its presence says that there must be a list."""
        return self.data / FORGOTTEN_MARK

    def _change(self, act: Callable[[TombstoneTable], T]) -> T:
        """Change the list and the copy of its fingerprints."""
        from nanoclaw_memory.store.tombstones import TombstoneTable, has_list, veiled
        from nanoclaw_memory.workspace.files import replace_text

        if self.listed is None:
            has_list(self.data, FORGOTTEN_MARK)  # a lost list must be repaired first, not begun anew
        kept = TombstoneTable(self._opened())
        with kept.db.transaction():
            result = act(kept)
            # Before the commit, while others wait: of two copies the later one must be of the later list.
            rows = [(veiled(name), veiled(slot), *rest) for name, slot, *rest in kept.rows()]
            if self.listed is None:  # a server's list needs no copy beside it
                replace_text(self._copy, "".join(f"{json.dumps(row)}\n" for row in rows))
        return result

    def _checked_again(self, admitted: Admitted) -> Admitted:
        """What was stored before and then forgotten is known by its masked words."""
        if admitted.redacted:
            self.refuse(admitted.text)
        return admitted

    def _withhold(self, where: str, error: StoreError) -> None:
        self.record("withheld", where=where, error=error.message)

    def _record_places(self, where: str, places: int) -> None:
        if places:
            self.record("forgotten", where=where, places=places)


def _statement_marks(names: Sequence[str], slot: str, value: str) -> list[tuple[list[str], str, str]]:
    """Names, key and digest of a statement in any spelling, and in this one, as older releases kept it."""
    from nanoclaw_memory.store.facts import digest, near_digest
    from nanoclaw_memory.store.names import spelling

    spelt = [near_digest(name) for name in names]  # what is kept out must not say of whom
    return [(spelt, spelling(slot), near_digest(value)), (list(names), slot, digest(value))]


def _row(line: str) -> tuple[str, ...] | None:
    """A tombstone as the copy has it; None for a line that was damaged too."""
    try:
        return msgspec.json.decode(line, type=tuple[str, str, str, str, str, str])
    except msgspec.MsgspecError:
        return None
