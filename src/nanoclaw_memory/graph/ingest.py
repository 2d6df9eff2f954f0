"""Read files into the graph: new triples are stored, missing ones retired; reading twice changes nothing."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath

from msgspec.structs import replace

from nanoclaw_memory.clock import LONG_AGO, stamp, start_of, written_at
from nanoclaw_memory.errors import FileProblem, Refused
from nanoclaw_memory.graph.extract import FileRules, extract
from nanoclaw_memory.graph.known_values import new_values
from nanoclaw_memory.graph.refresh import PAGES, is_page
from nanoclaw_memory.graph.retirement import same_place
from nanoclaw_memory.graph.statements import Statement
from nanoclaw_memory.graph.triples import Triple
from nanoclaw_memory.graph.values import is_name
from nanoclaw_memory.graph.writer import GraphWriter, NewFact, NewRelation, Origin
from nanoclaw_memory.settings import Settings
from nanoclaw_memory.statements import source_date, without_date
from nanoclaw_memory.store.facts import FactTable, View
from nanoclaw_memory.store.keywords import terms_of
from nanoclaw_memory.store.mentions import MentionRow, MentionTable
from nanoclaw_memory.store.names import NameTable, fold, slot_of
from nanoclaw_memory.store.relations import RelationTable
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import Fact, Ingested, Scope, Upserted
from nanoclaw_memory.workspace.files import read_text
from nanoclaw_memory.workspace.log import archived_day
from nanoclaw_memory.workspace.paths import ARCHIVE, Home, day_in_path, memory_files, visible

# Facts that are true for life do not cool: they are asked for once a year.
LASTING = frozenset(
    "birthday|born|birth date|date of birth|geburtstag|geboren|anniversary|wedding anniversary|hochzeitstag|"
    "allergic to|allergy|allergie|blood type|blutgruppe".split("|")
)


MAX_TERMS = 12  # of a statement, by which facts are looked up that it may change
MAX_NAMED = 20
_OF_FOLDER = ("readme.md", "index.md")  # such a file is about what its folder is called


def rules_of(path: str, text: str, settings: Settings) -> FileRules:
    """Return the rules for reading a file of the workspace."""
    name = PurePosixPath(path).name
    user, agent = settings.user.entity, settings.user.agent_entity
    if name == "USER.md":
        return FileRules(user, "user", user, names=True)
    if name == "IDENTITY.md":
        return FileRules(agent, "identity", user, names=True)
    if name == "TOOLS.md":
        return FileRules("", "tool", user)
    for prefix, category in (("project-", "project"), ("tools-", "tool")):
        if name.startswith(prefix):
            return FileRules(_title(text, name[len(prefix) : -3]), category, user)
    if day_in_path(path) or path.startswith(f"{ARCHIVE}/"):
        return FileRules("", "fact", user, log=True)
    if path in PAGES:
        return FileRules("", "fact", user)
    own = PurePosixPath(path).parent.name if name.casefold() in _OF_FOLDER else name[:-3]
    return FileRules("", "fact", user, page=own.replace("-", " ").capitalize())


def _title(text: str, otherwise: str) -> str:
    """Return the file's title without a prefix such as `Runbook:`; the slug if it is a sentence."""
    for line in text.splitlines():
        if line.startswith("# "):
            title = re.sub(r" \([^()]*\)$", "", one_line(line[2:]).rpartition(": ")[2])
            return title if 0 < len(title.split()) <= 4 else otherwise
    return otherwise


class Ingest:
    """Read files into one graph."""

    def __init__(self, writer: GraphWriter, settings: Settings) -> None:
        self.writer = writer
        self.settings = settings
        self.mentions = MentionTable(writer.db)
        self.names = NameTable(writer.db, writer.names.sees_all, trusted=True)

    def file(self, path: str, text: str, moment: str = "", again: bool = False) -> Ingested:
        """Read a file; `moment` is when it was written, for today's log and files without a date in their name.

        `again` also retires what an older reader read from words that are still in the file.
        """
        day = day_in_path(path)
        now = self.writer.clock.now()
        # A modification time in the future (a wrong clock) counts as now.
        start = min(moment, stamp(now))
        if day and day > now.date():  # from a wrong clock: it replaces nothing with a correct date
            start = stamp(LONG_AGO)
        elif day:  # new lines of today's log are later than what was stored earlier today
            start = max(start_of(day.isoformat(), now), start if day == now.date() else "")
        text = self.writer.intake.without_forgotten(text)
        starts = self._archived_starts(path, text)
        text, promoted = self._promoted_starts(path, text)
        starts |= promoted
        open_to_all = visible(Scope(private=False), path, self.settings.privacy.shared_files)
        triples = self.triples(path, text)
        with self.writer.db.transaction():
            self.writer.facts.reshare(path, open_to_all)
            self.writer.relations.reshare(path, open_to_all)
            self.writer.names.reshare(path, open_to_all)
            return self._store_triples(path, text, triples, start, starts, open_to_all, again)

    def statement(self, stated: Statement) -> Ingested:
        """Read what a person said or an agent stored; empty text retires what was read from it before."""
        text = self.writer.intake.without_forgotten(stated.text)
        rules = FileRules(user=self.settings.user.entity, log=stated.talk, talk=stated.talk)
        found = list(extract(text, rules) if stated.triples is None else stated.triples)
        if stated.triples is None and text:
            found += new_values(text, self._known_before(text, stated), found)
        triples = [
            replace(self._masked(triple), origin=stated.origin, project=stated.project) for triple in found
        ]
        with self.writer.db.transaction():
            return self._store_triples(stated.path, text, triples, stated.moment, {}, until=stated.until)

    def _known_before(self, text: str, stated: Statement) -> list[Fact]:
        """Return the facts of entities that a text may name, as they were when it was said."""
        facts, now = self.writer.facts, stamp(self.writer.clock.now())
        found = facts.match(terms_of(text)[:MAX_TERMS], View(now, project=stated.project), MAX_NAMED)
        names = list(dict.fromkeys(name for row in found for name in row.names))
        return [
            row.item
            for row in (facts.line(names) if names else ())
            if row.item.valid_from < stated.moment
            and (not row.item.valid_to or row.item.valid_to >= stated.moment)
            and same_place(row.item.project, stated.project)
        ]

    def note(self, path: str, text: str, triples: list[Triple], moment: str) -> Ingested:
        """Read a note with known triples; without any, what was read from it before is retired."""
        masked = [self._masked(triple) for triple in triples if not self.writer.intake.forgets(triple.object)]
        with self.writer.db.transaction():
            return self._store_triples(path, text, masked, min(moment, stamp(self.writer.clock.now())), {})

    def _store_triples(
        self,
        path: str,
        text: str,
        triples: list[Triple],
        start: str,
        starts: Mapping[int, str],
        open_to_all: bool = False,
        again: bool = False,
        until: str = "",
    ) -> Ingested:
        """Store new triples, and retire what their source no longer states."""
        done = Ingested(path)
        with self.writer.db.transaction():
            before = self._renewed(path, self.mentions.of(path), triples)
            seen: set[str] = set()
            for triple in triples:
                mark = triple.mark
                seen.add(mark)
                source = f"{path}:{triple.line}"
                origin = Origin(source, open_to_all, by=triple.origin, project=triple.project)
                if mark in before:
                    self._move_mention(path, mark, before[mark].line, triple, before[mark].item)
                    done = replace(done, kept=done.kept + 1)
                else:
                    done = self._add(path, mark, triple, origin, starts.get(triple.line, start), done, until)
            for mark in before.keys() - seen:
                if again or ":" in mark or not self._still_stated(before[mark], text, triples):
                    done = self._retire_missing(path, mark, before[mark], done)
        return done

    def _renewed(
        self, path: str, before: dict[str, MentionRow], triples: list[Triple]
    ) -> dict[str, MentionRow]:
        """Return a file's mentions; those of an older reader with the same statement get their new marks."""
        for mark in {triple.mark for triple in triples} - before.keys():
            older = mark.rpartition(":")[2]
            if older in before:
                row = before[mark] = before.pop(older)
                self.mentions.drop(path, older)
                self.mentions.put(path, mark, row.line, row.kind, row.item)
        return before

    def _still_stated(self, mention: MentionRow, text: str, triples: list[Triple]) -> bool:
        """Return whether a file still has the words of an older reader's fact, and no line states it better."""
        table = self._table(mention.kind)
        row = table.get(mention.item) if mention.item else None
        if row is None or fold(row.item.value) not in fold(text):
            return False
        whole = f" {fold(row.item.value)} "
        return not any(f" {fold(t.object)} " in whole and fold(t.subject) in whole for t in triples)

    def seed(self, home: Home, scope: Scope, again: bool = False) -> list[Ingested]:
        """Read every seed file that this scope may see; the facts of a deleted file are retired.

        `again` also reads the logs, and retires what an older reader read and this one does not.
        """
        visible_files = memory_files(home, scope, self.settings.privacy.shared_files)
        files = {
            relative: path
            for relative, path in visible_files
            if _is_seed(relative) or (again and (day_in_path(relative) or relative.startswith(f"{ARCHIVE}/")))
        }
        done = []
        # USER.md and IDENTITY.md define the names that the others use.
        for relative in sorted(files, key=lambda name: (name not in PAGES[:2], name)):
            try:
                written, text = written_at(files[relative].stat()), read_text(files[relative])
            except FileNotFoundError:  # deleted since it was listed
                continue
            except FileProblem as problem:  # the others are read, and the facts of this one stay
                done.append(Ingested(relative, problem=problem.message))
            else:
                done.append(self.file(relative, text, written, again))
        if scope.private:
            gone = [path for path in self.mentions.paths() if _is_seed(path) and path not in files]
            done += [self.file(path, "") for path in gone]
        return done

    def triples(self, path: str, text: str) -> list[Triple]:
        """Return the triples of a file, masked as they would be stored."""
        return [self._masked(s) for s in extract(text, rules_of(path, text, self.settings))]

    def items_on(self, path: str, text: str, lines: Collection[int]) -> dict[str, set[int]]:
        """Return the ids of the facts and relations that a file states on these lines, counted from 0."""
        known = self.mentions.of(path)
        found: dict[str, set[int]] = {"fact": set(), "relation": set()}
        for triple in self.triples(path, text):
            mention = known.get(triple.mark)
            if mention is not None and mention.item and triple.line - 1 in lines:
                found[mention.kind].add(mention.item)
        return found

    def items_of(self, paths: Iterable[str]) -> dict[str, set[int]]:
        """Return the ids of the facts and relations that these sources state."""
        found: dict[str, set[int]] = {"fact": set(), "relation": set()}
        for mention in (row for path in paths for row in self.mentions.of(path).values() if row.item):
            found[mention.kind].add(mention.item)
        return found

    def _archived_starts(self, path: str, text: str) -> dict[int, str]:
        """Return for each line of a log archive the first moment of the day above it."""
        if not path.startswith(f"{ARCHIVE}/"):
            return {}
        starts: dict[int, str] = {}
        start = ""
        for number, line in enumerate(text.split("\n"), 1):
            if line.startswith("## ") and (day := archived_day(line[3:])):
                start = start_of(day.isoformat(), self.writer.clock.now())
            if start:
                starts[number] = start
        return starts

    def _promoted_starts(self, path: str, text: str) -> tuple[str, dict[int, str]]:
        """Return MEMORY.md without the dates that promotion appends, and the first moment of each such line."""
        if PurePosixPath(path).name != "MEMORY.md":
            return text, {}
        lines, starts = text.split("\n"), {}
        for number, line in enumerate(lines, 1):
            if day := source_date(line):
                lines[number - 1] = without_date(line)
                starts[number] = start_of(day.isoformat(), self.writer.clock.now())
        return "\n".join(lines), starts

    def _masked(self, triple: Triple) -> Triple:
        """Mask before the mark is computed: a mark must not be a fingerprint of a credential."""
        kept = self.writer.intake.masked_fact(triple.subject, triple.predicate, triple.object)
        return replace(triple, object=kept.text)

    def _add(
        self,
        path: str,
        mark: str,
        triple: Triple,
        origin: Origin,
        start: str,
        done: Ingested,
        until: str = "",
    ) -> Ingested:
        triple = replace(
            triple, subject=self._full_name(triple.subject), instead=self._full_name(triple.instead)
        )
        try:
            if triple.kind == "alias":
                self.writer.alias(triple.subject, triple.object, origin)
                item, retired = 0, 0
            else:
                stored = self._store(triple, origin, start)
                item, retired = stored.id, len(stored.retired)
                if until and stored.created:
                    self._table(triple.kind).retire(item, until, None)
        except Refused:  # rejected before, or too long: a file must not stop at one bad line
            return replace(done, skipped=done.skipped + 1)
        self.mentions.put(path, mark, triple.line, triple.kind, item)
        return replace(done, added=done.added + 1, retired=done.retired + retired)

    def _full_name(self, name: str) -> str:
        """Return the only known full name that begins with this name; the name itself if it is known or ambiguous."""
        folded = fold(name)
        if self.names.known([folded]) or not is_name(name, 1):
            return name
        whole = self.names.beginning(folded + " ", 2)
        return self.names.labels(whole)[whole[0]] if len(whole) == 1 else name

    def _store(self, triple: Triple, origin: Origin, start: str) -> Upserted:
        if triple.kind == "relation":
            relation = NewRelation(
                subject=triple.subject,
                predicate=triple.predicate,
                object=triple.object,
                replace=triple.single,
                valid_from=start,
            )
            if triple.instead:
                return self.writer.hand_over(relation, triple.instead, origin)
            return self.writer.relate(relation, origin)
        return self.writer.upsert(
            NewFact(
                entity=triple.subject,
                key=triple.predicate,
                value=triple.object,
                category=self.writer.known_category(triple.category),
                importance=triple.importance,
                permanent=triple.permanent or slot_of(triple.predicate) in LASTING,
                add=triple.several,
                valid_from=start,
            ),
            origin,
        )

    def _move_mention(self, path: str, mark: str, line: int, triple: Triple, item: int) -> None:
        if line == triple.line or not item:
            return
        self.mentions.put(path, mark, triple.line, triple.kind, item)
        self._table(triple.kind).resource(item, f"{path}:{line}", f"{path}:{triple.line}")

    def _table(self, kind: str) -> FactTable | RelationTable:
        return self.writer.facts if kind == "fact" else self.writer.relations

    def _retire_missing(self, path: str, mark: str, mention: MentionRow, done: Ingested) -> Ingested:
        """Retire the fact of a missing line, unless another file or a person also stated it."""
        kind, item = mention.kind, mention.item
        self.mentions.drop(path, mark)
        if not item:
            return done
        table = self._table(kind)
        if other := self.mentions.elsewhere(kind, item):
            table.resource(item, f"{path}:{mention.line}", other)
            return done
        row = table.get(item)
        if row is None or row.item.valid_to or not row.item.source.startswith(f"{path}:"):
            return done
        table.retire(item, stamp(self.writer.clock.now()), None)
        return replace(done, retired=done.retired + 1)


def _is_seed(path: str) -> bool:
    if path.startswith("shared/"):
        return fnmatch.fnmatchcase(path, "shared/project-*.md")
    return (path in PAGES or ("/" in path and path.endswith(".md"))) and is_page(path)
