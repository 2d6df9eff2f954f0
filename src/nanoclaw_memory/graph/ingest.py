"""A file -> the graph: what is new comes in, what is gone is retired; reading it twice changes nothing."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import PurePosixPath

from msgspec.structs import replace

from nanoclaw_memory.clock import stamp
from nanoclaw_memory.errors import Refused
from nanoclaw_memory.graph.change import Change, Origin
from nanoclaw_memory.graph.extract import Manner, extract
from nanoclaw_memory.graph.sentences import Saying
from nanoclaw_memory.graph.times import start_of
from nanoclaw_memory.settings import Settings
from nanoclaw_memory.store.mentions import MentionRow, MentionTable
from nanoclaw_memory.store.names import fold, slot_of
from nanoclaw_memory.text import fingerprint, one_line
from nanoclaw_memory.types import Ingested, Scope, Upserted
from nanoclaw_memory.workspace.log import archived_day
from nanoclaw_memory.workspace.paths import ARCHIVE, day_in_path, visible

_PROMOTED = re.compile(r"\s*\((\d{4}-\d{2}-\d{2})\)\s*$")


def manner_of(path: str, text: str, settings: Settings) -> Manner:
    """How a file of the workspace is to be read."""
    name = PurePosixPath(path).name
    user, agent = settings.user.entity, settings.user.agent_entity
    if name == "USER.md":
        return Manner(user, "user", user, names=True)
    if name == "IDENTITY.md":
        return Manner(agent, "identity", user, names=True)
    if name == "MEMORY.md":
        return Manner("", "fact", user, sections=True)
    if name == "TOOLS.md":
        return Manner("", "tool", user, sections=True)
    for prefix, category in (("project-", "project"), ("tools-", "tool")):
        if name.startswith(prefix):
            return Manner(_title(text, name[len(prefix) : -3]), category, user, sections=True)
    return Manner("", "fact", user)


def _title(text: str, otherwise: str) -> str:
    """The file's title without a prefix such as `Runbook:`; the slug when it is a sentence."""
    for line in text.splitlines():
        if line.startswith("# "):
            title = one_line(line[2:]).rpartition(": ")[2]
            return title if 0 < len(title.split()) <= 4 else otherwise
    return otherwise


class Ingest:
    """Brings files into one graph, and keeps it in step with them."""

    def __init__(self, change: Change, settings: Settings) -> None:
        self.change = change
        self.settings = settings
        self.mentions = MentionTable(change.db)

    def file(self, path: str, text: str, moment: str = "") -> Ingested:
        """Read a file; `moment` is when it was written, for today's log and files without a date in their name."""
        day = day_in_path(path)
        now = self.change.clock.now()
        # A file from the future (a wrong clock) holds now already.
        start = min(moment, stamp(now))
        if day:  # of today's log we know more than the day: its new lines came after what was told before
            start = max(start_of(day.isoformat(), now), start if day == now.date() else "")
        text = self.change.intake.without_forgotten(text)
        starts = self._archived_starts(path, text)
        text, promoted = self._promoted_starts(path, text)
        starts |= promoted
        open_to_all = visible(Scope(private=False), path, self.settings.privacy.shared_files)
        sayings = self.sayings(path, text)
        done = Ingested(path)
        with self.change.db.transaction():
            before = self.mentions.of(path)
            self.change.facts.reshare(path, open_to_all)
            self.change.relations.reshare(path, open_to_all)
            self.change.names.reshare(path, open_to_all)
            seen: set[str] = set()
            for saying in sayings:
                mark = mark_of(saying)
                seen.add(mark)
                origin = Origin(f"{path}:{saying.line}", open_to_all)
                if mark in before:
                    self._moved(path, mark, before[mark].line, saying, before[mark].item)
                    done = replace(done, kept=done.kept + 1)
                else:
                    done = self._said(path, mark, saying, origin, starts.get(saying.line, start), done)
            for mark in before.keys() - seen:
                done = self._gone(path, mark, before[mark], done)
        return done

    def sayings(self, path: str, text: str) -> list[Saying]:
        """What a file says, as it would be taken in."""
        return [self._masked(s) for s in extract(text, manner_of(path, text, self.settings))]

    def items_on(self, path: str, text: str, lines: Collection[int]) -> dict[str, set[int]]:
        """Ids of the facts and relations that a file says on these lines, counted from 0."""
        known = self.mentions.of(path)
        found: dict[str, set[int]] = {"fact": set(), "relation": set()}
        for saying in self.sayings(path, text):
            said = known.get(mark_of(saying))
            if said is not None and said.item and saying.line - 1 in lines:
                found[said.kind].add(said.item)
        return found

    def _archived_starts(self, path: str, text: str) -> dict[int, str]:
        """For each line of an archive of logs the first moment of the day it stands under."""
        if not path.startswith(f"{ARCHIVE}/"):
            return {}
        starts: dict[int, str] = {}
        start = ""
        for number, line in enumerate(text.split("\n"), 1):
            if line.startswith("## ") and (day := archived_day(line[3:])):
                start = start_of(day.isoformat(), self.change.clock.now())
            if start:
                starts[number] = start
        return starts

    def _promoted_starts(self, path: str, text: str) -> tuple[str, dict[int, str]]:
        """MEMORY.md without the dates that promotion puts after its lines, and for each line its first moment."""
        if PurePosixPath(path).name != "MEMORY.md":
            return text, {}
        lines, starts = text.split("\n"), {}
        for number, line in enumerate(lines, 1):
            if (match := _PROMOTED.search(line)) and (day := archived_day(match[1])):
                lines[number - 1] = line[: match.start()]
                starts[number] = start_of(day.isoformat(), self.change.clock.now())
        return "\n".join(lines), starts

    def _masked(self, saying: Saying) -> Saying:
        """Masked before it gets its mark: a mark must not be a fingerprint of a credential."""
        return replace(saying, c=self.change.intake.masked_fact(saying.a, saying.b, saying.c).text)

    def _said(
        self, path: str, mark: str, saying: Saying, origin: Origin, start: str, done: Ingested
    ) -> Ingested:
        known = next(filter(None, map(self._known, saying.others)), "") or self._known(saying.a)
        if saying.unsure and saying.kind == "fact" and not known:
            return done
        saying = replace(saying, a=known or saying.a)
        try:
            if saying.kind == "alias":
                self.change.alias(saying.a, saying.c, origin)
                item, retired = 0, 0
            else:
                told = self._tell(saying, origin, start)
                item, retired = told.id, len(told.retired)
        except Refused:  # rejected before, or too long: a file must not stop at one bad line
            return replace(done, skipped=done.skipped + 1)
        self.mentions.put(path, mark, saying.line, saying.kind, item)
        return replace(done, added=done.added + 1, retired=done.retired + retired)

    def _known(self, name: str) -> str:
        """The entity of a name: itself, or the one full name that begins with it; else nothing."""
        folded = fold(name)
        if self.change.names.known([folded]):
            return name
        whole = self.change.names.beginning(folded + " ", 2)
        return self.change.names.labels(whole)[whole[0]] if len(whole) == 1 else ""

    def _tell(self, saying: Saying, origin: Origin, start: str) -> Upserted:
        if saying.kind == "relation":
            return self.change.relate(saying.a, saying.b, saying.c, origin, valid_from=start)
        return self.change.upsert(
            saying.a,
            saying.b,
            saying.c,
            origin,
            self.change.known_category(saying.category),
            saying.importance,
            saying.permanent,
            saying.several,
            start,
        )

    def _moved(self, path: str, mark: str, line: int, saying: Saying, item: int) -> None:
        if line == saying.line or not item:
            return
        self.mentions.put(path, mark, saying.line, saying.kind, item)
        table = self.change.facts if saying.kind == "fact" else self.change.relations
        table.resource(item, f"{path}:{line}", f"{path}:{saying.line}")

    def _gone(self, path: str, mark: str, said: MentionRow, done: Ingested) -> Ingested:
        """A line that is gone takes its fact along, unless another file or a person said it too."""
        kind, item = said.kind, said.item
        self.mentions.drop(path, mark)
        if not item:
            return done
        if other := self.mentions.elsewhere(kind, item):
            table = self.change.facts if kind == "fact" else self.change.relations
            table.resource(item, f"{path}:{said.line}", other)
            return done
        moment = stamp(self.change.clock.now())
        if kind == "fact":
            row = self.change.facts.get(item)
            if row is None or row.fact.valid_to or not row.fact.source.startswith(f"{path}:"):
                return done
            self.change.facts.retire(item, moment, None)
        else:
            relation = self.change.relations.get(item)
            if relation is None or relation.relation.valid_to:
                return done
            if not relation.relation.source.startswith(f"{path}:"):
                return done
            self.change.relations.retire(item, moment, None)
        return replace(done, retired=done.retired + 1)


def mark_of(saying: Saying) -> str:
    """Identifies what is said, wherever it stands."""
    said = "\n".join((saying.kind, fold(saying.a), slot_of(saying.b), one_line(saying.c).casefold()))
    return fingerprint(said)[:24]
