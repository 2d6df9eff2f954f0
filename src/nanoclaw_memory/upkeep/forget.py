"""Forget permanently: by id, entity, session or text, in every store, file and copy of one group.

The tombstone is written first and the row that identifies the request is removed last: killed at any point, the same
command completes the work. Free pages, keyword segments and the WAL of every touched database are rewritten.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.errors import InvalidValue, NotFound, Refused
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.store import erasure
from nanoclaw_memory.store.database import Database
from nanoclaw_memory.store.erasure import Wanted
from nanoclaw_memory.store.names import NameTable, fold
from nanoclaw_memory.store.phrases import Phrases, holds, is_cut
from nanoclaw_memory.text import FUNCTION_WORDS, fingerprint, spoken_in
from nanoclaw_memory.types import SHARED, Forgotten, ForgottenPage
from nanoclaw_memory.upkeep.doctor import PENDING_FORGET
from nanoclaw_memory.upkeep.forget_files import PageChange
from nanoclaw_memory.upkeep.forget_stores import ForgetTargets
from nanoclaw_memory.upkeep.review import PROPOSALS_PAGE, write_page
from nanoclaw_memory.workspace.files import replace_text

MAX_TEXT = 20_000
SHORTEST_WORD = 3  # letters or digits
# The store that identifies a request; "again" stands for everything with a tombstone.
LAST = {"id": "entries", "entity": "graph", "session": "continuity", "text": "entries", "again": "entries"}

Consent = Callable[[Sequence[ForgottenPage]], bool]


class ForgetRequest(msgspec.Struct, frozen=True):
    """What a person wants forgotten; exactly one field is set. `again`: everything forgotten before."""

    id: str = ""
    entity: str = ""
    session: str = ""
    text: str = ""
    again: bool = False

    @property
    def by(self) -> str:
        """Return the name of the set field."""
        given = [name for name in LAST if getattr(self, name)]
        if len(given) != 1:
            raise InvalidValue(
                "say what to forget, in one way", "one of --id, --entity, --session and --text"
            )
        return given[0]

    @property
    def value(self) -> str:
        return str(getattr(self, self.by))


class Forgetting:
    """One request to forget."""

    def __init__(self, targets: ForgetTargets, asked: ForgetRequest) -> None:
        self.at = targets
        self.asked = asked
        self.group = targets.group
        self.pending = self.group.data / PENDING_FORGET
        self.by = asked.by
        self.at.wanted, self.kept = self._resolved()
        if exchanges := self.at.exchanges():
            topics = erasure.topics_of(self.at.database("continuity"), exchanges)
            self.at.wanted = replace(self.at.wanted, topics=topics)

    def preview(self) -> Forgotten:
        """Return what would be removed; change nothing."""
        plan = self._result(self._pages(self._changes(), False), self.at.counted(), dry_run=True)
        return replace(plan, rows=self.at.shown())

    def carry_out(self, agreed: Consent, checkpoints: bool, keep_out: bool = False) -> Forgotten:
        """Forget; pages are changed only if `agreed` accepts the lines that would leave them.

        A text that nothing contains is refused from now on only if that is requested.
        """
        changes = self._changes()
        counted = self.at.counted()
        if self.by == "text" and not keep_out and not self.pending.exists():
            plan = self._result(self._pages(changes, False), counted, dry_run=True)
            if not plan.kept_out:
                return replace(plan, dry_run=False)
        remove_pages = not changes or agreed(self._pages(changes, False))
        replace_text(self.pending, "")
        self.at.step("pending")
        self._tombstones(changes)
        self.at.look_again()
        self.at.fingerprint_names()  # before anything is gone
        self.at.step("tombstones")
        self._erase(changes if remove_pages else [])
        held, unreadable = self.at.files.checkpoints(self.at.wanted)
        if checkpoints:
            for name in held:
                self.at.files.remove_checkpoint(name)
                self.at.step(f"checkpoint {name}")
            counted["checkpoints"] = len(held)
        self._audit(counted)
        self.at.step("audit")
        unfinished = self._scrub()
        result = self._result(self._pages(changes, remove_pages), counted)
        kept = () if checkpoints else tuple(held)
        return replace(result, checkpoints=(*kept, *unreadable), unfinished=tuple(unfinished))

    # ---- the request ----

    def _resolved(self) -> tuple[Wanted, Phrases]:
        """Return what to look for, and what to refuse from now on."""
        if len(self.asked.value) > MAX_TEXT:
            raise InvalidValue(
                f"the text has {len(self.asked.value):,} characters", "give the sentence that tells it"
            )
        wanted, kept = getattr(self, f"_by_{self.by}")()
        if self.pending.exists():  # an earlier run was killed: complete what its tombstones cover
            wanted = replace(wanted, matcher=wanted.matcher | self._forgotten_before())
        return wanted, kept

    def _by_text(self) -> tuple[Wanted, Phrases]:
        phrases = Phrases.of_request(*self.group.intake.wordings(self.asked.text))
        if not phrases:
            raise InvalidValue("the text holds no words", "give the words that are to be forgotten")
        if not any(_is_distinctive(word) for phrase in phrases.inside for word in phrase):
            raise InvalidValue(
                "the text is too short: nearly everything contains it",
                "give the sentence that tells it, or a name with --entity",
            )
        return Wanted(phrases), phrases

    def _by_again(self) -> tuple[Wanted, Phrases]:
        return Wanted(self._forgotten_before()), Phrases()

    def _forgotten_before(self) -> Phrases:
        kept = self.group.intake.tombstones()
        return kept.texts() if kept is not None else Phrases()

    def _by_id(self) -> tuple[Wanted, Phrases]:
        own = self.group.entries_of(self.asked.id)
        entry = own.ledger.table.get(self.asked.id)
        chain = own.chain(entry, depth=1_000) if entry else []  # every wording that it replaced
        if not chain and not self.pending.exists():
            raise NotFound(f"there is no entry {self.asked.id[:80]!r}", "see: ncm entries list --status all")
        table = own.ledger.table
        merged = [str(one["content"]) for entry in chain for one in table.merges_of(entry.id)]
        phrases = Phrases.of_rows([*(entry.content for entry in chain), *merged], longest=10_000)
        numbers = table.db.query(
            "SELECT number FROM entries WHERE id IN (SELECT value FROM json_each(:ids))",
            {"ids": json.dumps([entry.id for entry in chain])},
        )
        where = "entries" if own is self.group.entries else f"{SHARED}entries"
        return Wanted(phrases, keys={where: frozenset(int(number) for (number,) in numbers)}), phrases

    def _by_entity(self) -> tuple[Wanted, Phrases]:
        name = fold(self.asked.entity)
        if not name or not Phrases.of_request(self.asked.entity):
            raise InvalidValue("the entity is empty", 'name it: ncm forget --entity "Anna Kowalski"')
        names, labels = {name}, {self.asked.entity}
        for own in self.group.private_and_shared("facts"):
            table = NameTable(own.database("facts"))
            meaning = table.meanings([name])[name]
            if not meaning.ambiguous:
                names |= set(meaning.names)
                labels |= set(table.labels(meaning.names).values())
        if fold(self.group.settings.user.entity) in names:
            raise Refused(
                f"{self.asked.entity!r} is you, the owner of this memory: USER.md and much else are about you",
                'forget single things: ncm forget "their words", or one fact: ncm graph remove --purge',
            )
        if name in FUNCTION_WORDS and names == {name}:
            raise InvalidValue(
                f"{self.asked.entity!r} is a word of nearly every sentence, and no entity is called that",
                "give the name in full, or the sentence that tells it",
            )
        labels |= {spelt for label in labels for spelt in self._genitive(label)}
        wanted = Wanted(Phrases.of_request(*labels), names=frozenset(names))
        return wanted, Phrases.of_rows(self._texts(wanted))

    def _genitive(self, name: str) -> Iterator[str]:
        """Yield the German genitive of a name (Linas, without an apostrophe) if memory has it, and nothing else that is
        spelt the same: bills are no Bill's.
        """
        spelt = f"{name[:1].upper()}{name[1:]}s"
        as_written = regex(rf"(?<!\w){re.escape(spelt)}(?!\w)")
        found = list(self._texts(Wanted(Phrases.of_request(spelt)))) if name[-1:].isalpha() else []
        if found and all(as_written.search(text) and spoken_in(text) != "english" for text in found):
            yield spelt

    def _by_session(self) -> tuple[Wanted, Phrases]:
        session = Wanted(session=self.asked.session)
        entries = [row.texts[0] for row in self.at.rows("entries", erasure.ENTRY, session)]
        exchanges = self.at.rows("continuity", erasure.EXCHANGE, session)
        said = [text for row in exchanges for text in row.texts]
        phrases = Phrases.of_rows(entries, longest=10_000)
        return Wanted(phrases, session=self.asked.session), phrases | Phrases.of_talk(said)

    # ---- what is found ----

    def _texts(self, wanted: Wanted) -> Iterator[str]:
        """Yield the texts that will be removed; their tombstones contain fingerprints."""
        for step, place in (
            ("entries", erasure.ENTRY),
            ("entries", erasure.WORDING),
            ("continuity", erasure.EXCHANGE),
        ):
            for row in self.at.rows(step, place, wanted):
                yield from (text for text in row.texts if holds(wanted.matcher, text))
        for change in self.at.files.page_changes(wanted):
            # A heading may be a mere name, about which something new may be written one day.
            yield from (line.lstrip("-*+> \t") for line in change.lines if not line.startswith("#"))

    def _changes(self) -> list[PageChange]:
        """Return the changes of pages; facts from removed lines are marked for removal."""
        changes = self.at.files.page_changes(self.at.wanted)
        if self.group.has("facts"):
            keys = {name: set(found) for name, found in self.at.wanted.keys.items()}
            graph = self.group.graph
            found = [graph.items_on_lines(one.relative, one.before, one.gone) for one in changes]
            for said in (*found, graph.items_stated_in(self.at.statements())):
                keys.setdefault("facts", set()).update(said["fact"])
                keys.setdefault("relations", set()).update(said["relation"])
            self.at.wanted = replace(
                self.at.wanted, keys={name: frozenset(found) for name, found in keys.items()}
            )
        return changes

    # ---- removal ----

    def _tombstones(self, changes: Sequence[PageChange]) -> None:
        lines = (line for change in changes for line in change.lines)
        cut = [
            *self.at.cut_texts(),
            *(line for line in lines if is_cut(self.at.wanted.matcher, line)),
        ]
        kept = self.kept | Phrases.whole_only(cut)
        self.group.intake.forget(
            kept, list(self.at.graph_values()), f"forgotten by {self.by}", self.group.moment()
        )

    def _erase(self, changes: Sequence[PageChange]) -> None:
        """Erase in every store; the one that identifies the request comes last."""
        paths = {change.relative for change in changes}
        for change in changes:
            self.at.files.apply(change, self.at.wanted)
            self.at.step(f"page {change.relative}")
        self.at.erase_machine_files()
        self.at.step("machine files")
        for name in sorted(self.at.steps, key=lambda name: name.endswith(LAST[self.by])):
            self.at.erase(name)
            self.at.step(name)
        self._domains()
        self.at.step("domains")
        self.at.erase_page_versions()  # including those of domain files, which are outdated by now
        if (
            self.group.data / PROPOSALS_PAGE
        ).exists():  # derived from rows, which may have been removed because of another row
            write_page(self.group)
        said = [" ".join(phrase) for phrase in (*self.kept.inside, *self.kept.whole)]
        self.at.erase_chunks(paths, said)
        self.at.step("chunks")

    def _domains(self) -> None:
        """Rewrite the domain files; one that a person is editing was offered as a page."""
        if not self.group.has("entries"):
            return
        domains = self.group.entries.ledger.domains
        for kind in self.group.entries.ledger.visible_types():
            page = domains.read(kind)
            if page is not None and not page.edited:
                domains.discard_edits(kind)

    def _audit(self, counts: Mapping[str, int]) -> None:
        """Record in the audit log that something was forgotten and how much, never what."""
        ledger = self.group.entries.ledger
        about = {"text": fingerprint(self.asked.value)} if self.by == "text" else {}
        with ledger.db.transaction():
            ledger.audit(
                "forget",
                self.asked.id,
                by=self.by,
                removed={name: number for name, number in counts.items() if number},
                **about,
            )

    def _scrub(self) -> list[str]:
        """Rewrite every database; return those that another process blocks."""
        found: dict[Path, Database] = {}
        own = (
            *self.group.existing_databases(),
            *self.group.team_pages(),
            *(db for _, db in self.at.indexes()),
        )
        for db in (*own, self.at.messages, self.at.published):
            if db is not None:
                found[db.path] = db
        unfinished = []
        for path, db in found.items():
            if not db.scrub(self.at.wait_ms):
                unfinished.append(path.relative_to(self.group.home.root).as_posix())
            self.at.step(f"scrub {path.name}")
        if not unfinished:
            self.pending.unlink(missing_ok=True)
        return unfinished

    # ---- the report ----

    def _pages(self, changes: Sequence[PageChange], removed: bool) -> tuple[ForgottenPage, ...]:
        return tuple(
            ForgottenPage(change.relative, len(change.gone), change.diff, removed) for change in changes
        )

    def _result(
        self, pages: tuple[ForgottenPage, ...], counts: dict[str, int], dry_run: bool = False
    ) -> Forgotten:
        lines = sum(page.lines for page in pages if page.removed or dry_run)
        held, unreadable = self.at.files.checkpoints(self.at.wanted) if dry_run else ([], [])
        left = [*self.at.files.names_left(self.at.wanted), *self.at.files.others_left(self.at.wanted)]
        found = any(counts.values()) or pages or held or left or self.at.labels()
        return Forgotten(
            removed={**counts, "lines": lines},
            pages=pages,
            checkpoints=(*held, *unreadable),
            left=tuple(left),
            dry_run=dry_run,
            kept_out=len(self.kept.marks()) if found or not dry_run else 0,
        )


def _is_distinctive(word: str) -> bool:
    """Return whether a single word can be a request to forget; in some scripts a character is a word."""
    return word not in FUNCTION_WORDS and (len(word) >= SHORTEST_WORD or not word.isascii())
