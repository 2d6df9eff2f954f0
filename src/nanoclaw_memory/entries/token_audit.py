"""The token audit: tokens per source, duplicates, and recommendations."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from nanoclaw_memory import tokens
from nanoclaw_memory.clock import stamp
from nanoclaw_memory.entries import lifecycle, rules
from nanoclaw_memory.entries.domains import FOLDER, domain_path
from nanoclaw_memory.entries.entries import Entries
from nanoclaw_memory.entries.lines import masked
from nanoclaw_memory.entries.markdown import starter_lines
from nanoclaw_memory.errors import FileProblem, ProviderError
from nanoclaw_memory.providers.calibration import calibration
from nanoclaw_memory.statements import agree, features, longest_words, normal, same_statement
from nanoclaw_memory.store.entries import PRIORITIES, Filter
from nanoclaw_memory.text import one_line, plural
from nanoclaw_memory.types import (
    Audit,
    AuditAnalysis,
    AuditShare,
    Duplicate,
    Entry,
    IndexStatus,
    Recommendation,
)
from nanoclaw_memory.workspace.boot import MEMORY_MAX_LINES, SIZE_TARGETS, main_sequence
from nanoclaw_memory.workspace.files import read_text
from nanoclaw_memory.workspace.paths import day_in_path

SCOPES = ("all", "memory_md", "domains", "system_prompt")
ALIKE = 0.85
MOST_DUPLICATES = 50
STALE_DAYS = 30
MOST_EMBEDDED = 1_000  # statements; a model on two cores takes ten seconds for them
_LONG = 100_000  # characters; beyond this the count would take seconds, the estimate does not

if TYPE_CHECKING:
    from nanoclaw_memory.providers.embedder import Chain

FileLister = Callable[[], Iterable[tuple[str, Path]]]


class _Source(msgspec.Struct, frozen=True):
    name: str
    category: str  # system_prompt, memory_md, domains, brief, on_demand
    text: str


class _Statement(msgspec.Struct, frozen=True):
    text: str
    source: str
    entry: Entry | None = None


class TokenAudit:
    """Audit one group for one scope; `files` lists the Markdown that the scope may see."""

    def __init__(self, entries: Entries, files: FileLister, embedder: Chain | None) -> None:
        self._embedder = embedder
        self._entries = entries
        self._ledger = entries.ledger
        self._files = files

    def run(self, scope: str = "all", recommend: bool = True) -> Audit:
        """Count, compare, and recommend; change nothing."""
        rules.choice("scope", scope, SCOPES)
        sources = list(self._sources())
        shown = [source for source in sources if scope in ("all", source.category)]
        costs = [(source, cost(source.text)) for source in shown]
        total = sum(count for _, count in costs)
        breakdown = tuple(
            AuditShare(source.name, count, round(100 * count / total, 1) if total else 0.0, source.category)
            for source, count in sorted(costs, key=lambda pair: -pair[1])
        )
        duplicates = tuple(self._duplicates(sources, shown))
        advice = tuple(self._recommendations(sources, duplicates)) if recommend else ()
        return Audit(AuditAnalysis(total, breakdown, duplicates), advice)

    def fix(self, audit: Audit) -> Audit:
        """Carry out the low-risk recommendations; the caller has made a checkpoint."""
        done = []
        for advice in audit.recommendations:
            if advice.risk == "low":
                self._apply(advice)
            done.append(replace(advice, applied=advice.risk == "low"))
        return replace(audit, recommendations=tuple(done))

    def status(self, chunks: int) -> IndexStatus:
        """Return health and statistics: the files, the entries, and what is always loaded."""
        sources = list(self._sources())
        files = [source for source in sources if source.category != "brief"]
        table, wanted = self._ledger.table, self._wanted()
        by_type, by_priority = table.tally("type", wanted), table.tally("priority", wanted)
        stored, used = table.latest()
        memory = next((source for source in files if source.name == "MEMORY.md"), None)
        domains = [source for source in files if source.category == "domains"]
        return IndexStatus(
            legacy={
                "files": len(files),
                "chunks": chunks,
                "total_tokens_estimated": sum(tokens.estimate(source.text) for source in files),
                "memory_md_size": len(memory.text.encode()) if memory else 0,
                "memory_dir_files": sum(source.name.startswith("memory/") for source in files),
            },
            progressive={
                "total_entries": sum(count for count, _ in by_type.values()),
                "by_category": {kind: count for kind, (count, _) in by_type.items()},
                "by_priority": {PRIORITIES[n]: count for n, (count, _) in by_priority.items()},
                "total_tokens_estimated": sum(cost for _, cost in by_type.values()),
                "last_store": stored,
                "last_recall": used,
                "held": table.count(replace(wanted, statuses=("held",))),
                "domain_files": [source.name for source in domains],
            },
            index={
                "always_loaded_tokens": self._entries.brief().tokens,
                "on_demand_domains": [
                    {"name": Path(source.name).stem, "tokens": tokens.estimate(source.text)}
                    for source in domains
                ],
            },
        )

    # ---- sources ----

    def _sources(self) -> Iterator[_Source]:
        booted = main_sequence(self._ledger.clock.now().date(), self._ledger.scope)
        for relative, path in self._files():
            try:
                text = read_text(path)
            except (FileProblem, FileNotFoundError):
                continue
            yield _Source(relative, _category(relative, booted), text)
        brief = self._entries.brief().text
        if brief:
            yield _Source("brief", "brief", brief)

    def _statements(self, sources: Sequence[_Source]) -> Iterator[_Statement]:
        ours = starter_lines()
        for source in sources:
            if source.category in ("domains", "brief") or day_in_path(source.name) is not None:
                continue  # generated from entries, or a diary from which other pages were taken
            if source.name.startswith("conversations/"):
                continue
            for number, line in enumerate(source.text.splitlines(), 1):
                text = one_line(line).lstrip("-*+>#| ").removeprefix("[ ]").strip()
                if len(text) >= 20 and text not in ours:
                    yield _Statement(text, f"{source.name}:{number}")
        for entry in self._ledger.table.all(self._wanted()):
            yield _Statement(entry.content, entry.id, entry)

    def _wanted(self) -> Filter:
        return Filter(self._ledger.moment(), self._ledger.visible_types())

    # ---- duplicates ----

    def _duplicates(self, sources: Sequence[_Source], shown: Sequence[_Source]) -> Iterator[Duplicate]:
        names = {source.name for source in shown}
        entries_too = any(source.category in ("domains", "brief") for source in shown)
        found: list[Duplicate] = []
        for statement, other, alike in self._similar_pairs(list(self._statements(sources))):
            places = [statement, other]
            if _is_own_source(statement, other) or _is_own_source(other, statement):
                continue
            if not any(s.source.rpartition(":")[0] in names or (s.entry and entries_too) for s in places):
                continue
            texts = [one_line(masked(s.text))[:200] for s in places]
            found.append(Duplicate(texts[0], texts[1], round(alike, 3), (statement.source, other.source)))
        yield from sorted(found, key=lambda pair: (-pair.similarity, pair.sources))[:MOST_DUPLICATES]

    def _similar_pairs(self, statements: list[_Statement]) -> Iterator[tuple[_Statement, _Statement, float]]:
        """Return pairs that say the same by their words, or in other words with the same numbers, names and denials."""
        seen = set()
        for statement, other in _pairs(statements):
            alike = _similarity(statement.text, other.text)
            if alike >= ALIKE or (alike and same_statement(features(statement.text), features(other.text))):
                seen.add((statement.source, other.source))
                yield statement, other, alike
        for statement, other, alike in self._near(statements):
            if (statement.source, other.source) not in seen and agree(
                features(statement.text), features(other.text)
            ):
                yield statement, other, alike

    def _near(self, statements: list[_Statement]) -> Iterator[tuple[_Statement, _Statement, float]]:
        """Return pairs that the embedder calls similar; none for very many statements, or if it fails."""
        if self._embedder is None or not 1 < len(statements) <= MOST_EMBEDDED:
            return
        try:
            made = self._embedder.embed_documents([statement.text for statement in statements])
        except ProviderError:
            return
        least = calibration(made.identity.key).duplicate
        for number, row in enumerate(made.vectors @ made.vectors.T):
            for other in range(number + 1, len(statements)):
                if row[other] >= least:
                    yield statements[number], statements[other], float(row[other])

    # ---- recommendations ----

    def _recommendations(
        self, sources: Sequence[_Source], duplicates: Sequence[Duplicate]
    ) -> Iterator[Recommendation]:
        yield from self._on_duplicates(duplicates)
        yield from self._on_size(sources)
        yield from self._on_entries()
        yield from self._on_domains()

    def _on_duplicates(self, duplicates: Sequence[Duplicate]) -> Iterator[Recommendation]:
        for pair in duplicates:
            saved = tokens.estimate(pair.content_b)
            both = all(source.startswith("mem-") for source in pair.sources)
            if both and normal(pair.content_a) == normal(pair.content_b):
                text = f"{pair.sources[0]} and {pair.sources[1]} say the same: archive the older"
                yield Recommendation("archive-duplicate", text, saved, "low", pair.sources)
            else:
                text = f"{pair.sources[0]} and {pair.sources[1]} are alike ({pair.similarity:.0%}): keep one"
                yield Recommendation("remove-duplicate", text, saved, "medium", pair.sources)

    def _on_size(self, sources: Sequence[_Source]) -> Iterator[Recommendation]:
        for source in sources:
            target = SIZE_TARGETS.get(source.name)
            size = len(source.text.encode())
            if target is None or size <= target:
                continue
            saved = cost(source.text) * (size - target) // size
            if source.name == "MEMORY.md":
                text = (
                    f"MEMORY.md has {size:,} bytes, {plural(source.text.count(chr(10)), 'line')}: over "
                    f"{MEMORY_MAX_LINES} lines or {target:,} bytes the brief is loaded instead; "
                    "ncm entries migrate turns its lines into entries"
                )
                yield Recommendation("migrate", text, saved, "medium", (source.name,))
            else:
                text = f"{source.name} has {size:,} bytes, its target is {target:,}: shorten it"
                yield Recommendation("shorten", text, saved, "medium", (source.name,))

    def _on_entries(self) -> Iterator[Recommendation]:
        expired = lifecycle.expired(self._entries)
        if expired:
            text = f"{_entries(len(expired))} past their date: mark them as expired"
            yield Recommendation("expire", text, 0, "low")
        days = self._ledger.settings.entries.purge_superseded_days
        old = lifecycle.purgeable(self._entries)
        if old:
            text = f"{_entries(len(old))} replaced more than {days} days ago: purge them"
            yield Recommendation("purge", text, 0, "low")
        fading = lifecycle.stale(self._entries)
        if fading:
            saved = sum(entry.token_cost for entry in fading)
            text = f"{_entries(len(fading))} of low priority that nobody uses: offer them for archiving"
            yield Recommendation("propose-archive", text, saved, "low")

    def _on_domains(self) -> Iterator[Recommendation]:
        for kind in self._ledger.visible_types():
            missing = self._ledger.domains.missing(kind)
            if missing:
                text = f"{domain_path(kind)} is {plural(missing, 'line')} behind the entries: write it anew"
                yield Recommendation("render", text, 0, "low", (kind,))
        old = stamp(self._ledger.clock.now() - timedelta(days=STALE_DAYS))
        for kind, (count, spent) in self._ledger.table.tally("type", self._wanted()).items():
            if not self._ledger.table.used_since(kind, old):
                text = f"none of {_entries(count)} of type {kind} was used for {STALE_DAYS} days: review them"
                yield Recommendation("review-domain", text, spent, "medium", (kind,))

    def _apply(self, advice: Recommendation) -> None:
        if advice.action == "archive-duplicate":
            ages = [self._entries.get(entry_id) for entry_id in advice.targets]
            active = [entry for entry in ages if entry.status == "active"]
            if len(active) == 2:  # an earlier fix may have removed one
                self._entries.archive(min(active, key=lambda entry: entry.provenance.timestamp).id)
        elif advice.action == "expire":
            lifecycle.expire(self._entries)
        elif advice.action == "purge":
            lifecycle.purge(self._entries)
        elif advice.action == "propose-archive":
            lifecycle.propose_stale(self._entries)
        elif advice.action == "render":
            self._ledger.domains.render(advice.targets[0])


def cost(text: str) -> int:
    """Return the tokens of a text: exact, or for a very long one an upper bound."""
    return tokens.count(text) if len(text) <= _LONG else tokens.estimate(text)


def _is_own_source(entry: _Statement, line: _Statement) -> bool:
    """Return whether an entry was read from the file that contains the line, which may have moved since."""
    source = entry.entry.provenance.source if entry.entry else ""
    return bool(source) and source.rpartition(":")[0] == line.source.rpartition(":")[0]


def _category(relative: str, booted: Sequence[str]) -> str:
    if relative == "MEMORY.md":
        return "memory_md"
    if relative.startswith(FOLDER + "/"):
        return "domains"
    return "system_prompt" if relative in booted else "on_demand"


def _entries(count: int) -> str:
    return plural(count, "entry", "entries")


def _pairs(statements: Sequence[_Statement]) -> Iterator[tuple[_Statement, _Statement]]:
    """Return pairs of statements that share a rare word: only they can be similar."""
    by_word: dict[str, list[int]] = defaultdict(list)
    for number, statement in enumerate(statements):
        for word in longest_words(statement.text, 4) or [normal(statement.text)]:
            by_word[word].append(number)
    seen: set[tuple[int, int]] = set()
    for numbers in by_word.values():
        if len(numbers) > 60:  # too common to distinguish
            continue
        for place, first in enumerate(numbers):
            for second in numbers[place + 1 :]:
                if (first, second) not in seen:
                    seen.add((first, second))
                    yield statements[first], statements[second]


def _similarity(one: str, other: str) -> float:
    first, second = normal(one), normal(other)
    if first == second:
        return 1.0
    if min(len(first), len(second)) / max(len(first), len(second)) < 0.6:
        return 0.0
    return difflib.SequenceMatcher(None, first.split(), second.split(), autojunk=False).ratio()
