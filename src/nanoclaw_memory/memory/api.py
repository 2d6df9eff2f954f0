"""Memory, the public API: the verbs that tools are named after, and a typed part for everything else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from nanoclaw_memory.clock import Clock, stamp
from nanoclaw_memory.errors import InvalidValue, NanoClawError, StoreError
from nanoclaw_memory.memory.group import Group
from nanoclaw_memory.memory.resources import Resources
from nanoclaw_memory.memory.team_pages import with_pages
from nanoclaw_memory.types import (
    Archived,
    Audit,
    Boot,
    Brief,
    Created,
    Deleted,
    Evaluation,
    Finding,
    Forgotten,
    ForgottenPage,
    Found,
    Hit,
    Indexed,
    IndexStatus,
    Lines,
    LogLine,
    PluginNote,
    Recall,
    Recorded,
    Scope,
    Status,
    Stored,
    ToolCall,
    Turn,
    Written,
)
from nanoclaw_memory.workspace.paths import Home, home_at, locate, log_path, memory_files
from nanoclaw_memory.workspace.roster import with_project

if TYPE_CHECKING:
    from nanoclaw_memory.entries.token_audit import TokenAudit
    from nanoclaw_memory.graph.graph import KnowledgeGraph
    from nanoclaw_memory.lessons.service import LessonService
    from nanoclaw_memory.memory.admin import AdminPart
    from nanoclaw_memory.memory.conversations import ConversationsPart
    from nanoclaw_memory.memory.entries import EntriesPart
    from nanoclaw_memory.memory.host import HostPart
    from nanoclaw_memory.memory.upkeep import UpkeepPart
    from nanoclaw_memory.memory.workspace import WorkspacePart
    from nanoclaw_memory.retrieval.calendar_days import Days
    from nanoclaw_memory.settings import Settings
    from nanoclaw_memory.store.passage_search import PassageFilter
    from nanoclaw_memory.types.arguments import (
        AuditScope,
        Content,
        Count,
        Fraction,
        Message,
        Moment,
        PassageKind,
        Priority,
        Query,
        RecallFormat,
        TokenBudget,
    )
Progress = Callable[[str, int, int], None]


@with_pages
class Memory:
    """The memory of one group as one scope sees it. Everything is opened on first use."""

    def __init__(self, group: Group, owner: bool = True) -> None:
        self.group = group
        self._owner = owner  # whether closing this object also closes the databases

    @classmethod
    def open(
        cls,
        home: Path | str | None = None,
        scope: Scope | None = None,
        *,
        clock: Clock | None = None,
        overrides: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> Self:
        """Open a home (default `NANOCLAW_HOME` or ~/.nanoclaw); nothing is read or written until it is used.

        A restore that was killed half-way is finished first; one that is running is waited for.
        """
        root = home_at(home)
        scope = scope or Scope()
        scope = with_project(Home(root), scope)
        group = Group(Resources(root, scope.group, clock, overrides, directory), scope)
        group.finish_restore()
        return cls(group)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the plugins, and close every database that was opened."""
        self.group.close()
        if self._owner:
            self.group.resources.close()

    def for_session(self, session_id: str, project: str | None = None, client: str | None = None) -> Self:
        """Return the same memory as seen by another session, in this project and client unless others are named.

        The copy shares everything that is open and must not outlive this object.
        """
        own = self.scope.project if project is None else project
        by = self.scope.client if client is None else client
        return type(self)(self.group.in_session(session_id, own, by), owner=False)

    @property
    def scope(self) -> Scope:
        return self.group.scope

    @property
    def home(self) -> Home:
        return self.group.home

    @property
    def settings(self) -> Settings:
        return self.group.settings

    @property
    def clock(self) -> Clock:
        return self.group.clock

    # ---- parts ----

    @property
    def graph(self) -> KnowledgeGraph:
        """Return facts, relations and aliases; files that changed are read before it answers."""
        return self.group.fresh_graph

    @cached_property
    def entries(self) -> EntriesPart:
        """Return the typed entries: list, approve, archive, publish, trace."""
        from nanoclaw_memory.memory.entries import EntriesPart

        return EntriesPart(self.group)

    @cached_property
    def conversations(self) -> ConversationsPart:
        """Return sessions, exchanges, transcripts and the spool of the hooks."""
        from nanoclaw_memory.memory.conversations import ConversationsPart

        return ConversationsPart(self.group)

    @cached_property
    def lessons(self) -> LessonService:
        """Return what corrections taught: list, detail, outcomes, add, retire, feedback."""
        from nanoclaw_memory.lessons.service import LessonService

        self.group.require_group()
        return LessonService(self.group.lessons, self.group.intake, self.scope, self.clock)

    @cached_property
    def workspace(self) -> WorkspacePart:
        """Return projects, runbooks, policies, checkpoints, notes and the active context."""
        from nanoclaw_memory.memory.workspace import WorkspacePart

        return WorkspacePart(self.group)

    @cached_property
    def upkeep(self) -> UpkeepPart:
        """Return upkeep: jobs, review, imports."""
        from nanoclaw_memory.memory.upkeep import UpkeepPart

        return UpkeepPart(self.group)

    @cached_property
    def host(self) -> HostPart:
        """Return the host: chats, messages, groups and scheduled tasks."""
        from nanoclaw_memory.memory.host import HostPart

        return HostPart(self.group)

    @cached_property
    def admin(self) -> AdminPart:
        """Return administration: settings, models, databases, domain documents."""
        from nanoclaw_memory.memory.admin import AdminPart

        return AdminPart(self.group)

    # ---- reading ----

    def init(self) -> Created:
        """Create the home, or a group in it; existing files are never overwritten."""
        from nanoclaw_memory.workspace.starter import initialise

        self.group.require_private("how a memory begins")
        return initialise(self.home, self.scope.group, self.group.today)

    def search(
        self,
        query: Query = "",
        limit: Annotated[int, Meta(ge=1, le=100)] = 10,
        *,
        types: Sequence[str] | None = None,
        tags: Sequence[str] = (),
        include_superseded: bool = False,
        corpus: str = "",
        fast: bool = False,
        rerank: bool | None = None,
        mmr: bool = False,
        explain: bool = False,
        kinds: Sequence[PassageKind] = (),
        since: str = "",
        until: str = "",
        in_project: str = "",
        person: str = "",
    ) -> Found:
        """Return ranked hits over everything in memory, best first, and report what could not take part.

        A question that nothing answers returns no hits.

        `types`, `tags` and `include_superseded` restrict it to entries; an empty query returns the recent ones.
        `corpus` names domain documents to search instead, or `all` for them and memory together. `fast` searches
        by words only and loads no model; `rerank` defaults to the setting; `mmr` prefers hits that differ.
        `kinds`, `since`, `until` (days), `in_project` and `person` (who said it, or is named) filter the hits.
        """
        from nanoclaw_memory.retrieval.searcher import Question

        self.group.require_group()
        self.group.settle_spool()
        again = self.settings.rerank.provider != "none" if rerank is None else rerank
        if types is not None or tags or include_superseded or not query.strip():
            found = self._search_entries(query, limit, types, tags, include_superseded, fast)
        else:
            today = self.group.today
            asked = Question(
                text=query,
                limit=limit,
                today=today,
                fast=fast,
                explain=explain,
                mmr=mmr,
                rerank=again and not fast,
                project=self.scope.project,
            )
            first = _days(since, today).first.isoformat() if since else ""
            last = _days(until, today).last.isoformat() if until else ""

            def narrowed(wanted: PassageFilter) -> PassageFilter:
                sources = tuple(kinds) or wanted.sources
                return replace(
                    wanted, sources=sources, since=first, until=last, project=in_project, person=person
                )

            if corpus in ("", "all"):
                asked = replace(asked, wanted=narrowed(self.group.retrieval.filter()))
            found = self.group.retrieval.search(asked, corpus)
            if (chats := self.group.shared_chats) is not None and corpus in ("", "all"):
                wanted = narrowed(chats.retrieval.filter_for(self.scope))
                found = _with_shared_hits(found, chats.retrieval.search(replace(asked, wanted=wanted)), limit)
        self.group.telemetry.record("search", hits=len(found.hits), took_ms=found.took_ms)
        return found

    def _search_entries(
        self,
        query: str,
        limit: int,
        types: Sequence[str] | None,
        tags: Sequence[str],
        include_superseded: bool,
        fast: bool,
    ) -> Found:
        import time

        from nanoclaw_memory.retrieval.hits import entry_hit

        def found_in(group: Group) -> Found:
            known = group.entries.search(
                query, types=types, tags=tags, include_superseded=include_superseded, limit=limit, fast=fast
            )
            return Found(tuple(entry_hit(hit, {}) for hit in known.hits), known.degraded)

        began = time.monotonic()
        found = found_in(self.group)
        if (chats := self.group.shared_chats) is not None and chats.has("entries"):
            found = _with_shared_hits(found, found_in(chats), limit)
        return replace(found, took_ms=round((time.monotonic() - began) * 1000, 1))

    def recall(
        self,
        query: Query,
        *,
        types: Sequence[str] | None = None,
        priority_min: Priority = "low",
        token_budget: TokenBudget | None = None,
        include_context: bool = False,
        format: RecallFormat = "brief",
        fast: bool = False,
        noted: bool = True,
    ) -> Recall:
        """Search, and pack the hits into a token budget; entries come first when equally good, and `noted` counts
        their use.
        """
        from nanoclaw_memory.entries.rules import TYPES
        from nanoclaw_memory.retrieval.recall import RecallRequest, recall

        self.group.require_group()
        self.group.settle_spool()
        budget = self.settings.entries.recall_budget if token_budget is None else token_budget
        kinds = None if types is None else tuple(types)
        wanted = RecallRequest(query, kinds, priority_min, budget, include_context, format, fast)
        chats = self.group.shared_chats
        beside = (chats.entries, chats.retrieval) if chats is not None else None
        found = recall(self.group.entries, self.group.retrieval, wanted, beside)
        if not noted:
            return found
        try:
            self.group.entries.note_use(
                entry.id for entry in found.entries if entry.type in TYPES and not entry.shared
            )
        except StoreError as error:  # the answer must not fail because the store is busy or read-only
            self.group.telemetry.record("note_use failed", error=error.message)
        self.group.telemetry.record("recall", tokens=found.token_count, entries=len(found.entries))
        return found

    def evaluate(self, path: Path, save: bool = False, fast: bool = False) -> Evaluation:
        """Ask a file's questions through every way of reading; `save` stores the result as the one to compare with."""
        from nanoclaw_memory.memory import evaluation

        self.group.require_own_file(path)
        questions = evaluation.read_questions(path)
        before = None if save else evaluation.read_saved(path)
        result = evaluation.evaluate(self, questions, before, fast)
        if save:
            evaluation.saved_at(path).write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1))
        return result

    @staticmethod
    def evaluate_example(fast: bool = False) -> Evaluation:
        """Ask the sixty questions of the sample workspace, in a home that is removed afterwards."""
        from nanoclaw_memory.memory import evaluation

        with evaluation.example() as memory:
            questions = evaluation.read_questions(evaluation.EXAMPLE / "queries.json")
            return evaluation.evaluate(memory, questions, None, fast)

    def fenced(self, hits: Sequence[Hit], question: str = "") -> str:
        """Render hits as text for an agent: one line each, fenced as data, with origin and age; long ones are cut."""
        from nanoclaw_memory.retrieval.recall import hits_text

        return hits_text(hits, self.group.today, self.scope.project, question)

    def get(self, file: str, start_line: int | None = None, end_line: int | None = None) -> Lines:
        """Return exact lines of a memory file; a missing file or range is empty with a note, never an error.

        Lines of a daily log that were moved to an archive are read from there.
        """
        from nanoclaw_memory.workspace.files import read_lines

        self.group.require_group()
        shared_files = self.settings.privacy.shared_files
        found = read_lines(self.home, self.scope, shared_files, file, start_line, end_line)
        path, first, last = (
            self.group.archived(found.path) if found.path.startswith("memory/") else ("", 0, 0)
        )
        if not last:
            return found
        if found.exists:
            return replace(found, note=f"more of that day is in {path}, lines {first} to {last}")
        end = last if end_line is None else min(first + end_line - 1, last)
        moved = read_lines(self.home, self.scope, shared_files, path, first + (start_line or 1) - 1, end)
        return replace(moved, note=f"moved to {path}")

    def log(self, day: str | date | None = None) -> tuple[date, list[LogLine]]:
        """Return the entries of one day's log, by default today's."""
        from nanoclaw_memory.workspace import log

        days = _days(day or self.group.today, self.group.today)
        if days.length > 1:
            raise InvalidValue(f"{day!r} is more than a day", f"name one of them, such as {days.last}")
        wanted = days.first
        own = log_path(wanted, self.scope.private)
        found = self.get(own)
        lines = log.parse(found.text) if found.path == own else []
        path, first, last = self.group.archived(own)
        if last:
            moved = log.parse(self.get(path).text)
            lines += [replace(line, path=path) for line in moved if first <= line.line <= last]
        return wanted, lines

    def boot(self, project: str = "", max_chars: Count = 0) -> Boot:
        """Return what an agent reads at session start, within the caps and with privacy applied.

        A text longer than `max_chars` has the brief first and is cut at its end.
        """
        from nanoclaw_memory.workspace import boot

        self.group.require_group()
        return boot.boot(
            self.home,
            self.scope,
            self.settings,
            self.group.today,
            project,
            brief=lambda: self.brief().text,
            mask=lambda text: self.group.intake.masked(text).text,
            most=max_chars,
        )

    def boot_problems(self) -> list[str]:
        """Return which pages cannot be read as they are at session start, and why."""
        from nanoclaw_memory.workspace import boot

        return boot.problems(self.home, self.scope, self.settings, self.group.today)

    def brief(self, include_provenance: bool = False) -> Brief:
        """Return the most important entries within the limits; empty with a note when that takes too long."""
        self.group.require_group()
        if not self.group.has("entries"):  # starting a session must not create a database
            return self._no_brief()
        try:
            return self.group.entries.brief(include_provenance)
        except StoreError as error:  # a session starts with the parts that work
            from nanoclaw_memory.retrieval.sources import missing

            return self._no_brief(missing("entries", error))

    def _no_brief(self, *why: str) -> Brief:
        return Brief(generated_at=self.group.moment(), degraded=why)

    def index_status(self) -> IndexStatus:
        """Return health and statistics of files, entries and what is always loaded."""
        self.group.require_group()
        return self._token_audit().status(self.group.retrieval.index.passages.count()[1])

    def audit(self, scope: AuditScope = "all", recommend: bool = True, fix: bool = False) -> Audit:
        """Return the token cost of memory and recommendations; `fix` applies the low-risk ones after a checkpoint."""
        self.group.require_group()
        work = self._token_audit()
        audit = work.run(scope, recommend or fix)
        if not fix or not any(advice.risk == "low" for advice in audit.recommendations):
            return audit
        name = f"before-audit-{self.clock.now():%Y%m%d-%H%M%S}"
        self.workspace.checkpoint(name, "before ncm audit --fix")
        return replace(work.fix(audit), checkpoint=name)

    def _token_audit(self) -> TokenAudit:
        from nanoclaw_memory.entries.token_audit import TokenAudit

        shared = self.settings.privacy.shared_files
        local = self.settings.embeddings.provider == "local"  # an audit spends no money at a provider
        return TokenAudit(
            self.group.entries,
            lambda: memory_files(self.home, self.scope, shared),
            self.group.resources.embedder if local else None,
        )

    def status(self) -> Status:
        """Return an overview of the home; opens no database."""
        from nanoclaw_memory.memory.admin import status

        return status(self.group)

    def counts(self) -> dict[str, int]:
        """Count exchanges, active entries, valid facts and relations, and lessons, as doctor does."""
        from nanoclaw_memory.store.entries import Filter
        from nanoclaw_memory.store.facts import valid_rows

        group = self.group
        found = {"exchanges": group.exchanges.count()} if group.has("continuity") else {}
        if group.has("entries"):
            found["entries"] = group.entries.ledger.table.count(Filter(stamp(group.clock.now())))
        if group.has("facts"):
            found |= {table: valid_rows(group.database("facts"), table) for table in ("facts", "relations")}
            found["lessons"] = len(group.lessons.all())
        return found

    def doctor(self, fix: bool = False) -> list[Finding]:
        """Check home, settings, files and databases; `fix` removes what killed writers left behind."""
        from nanoclaw_memory.upkeep.doctor import examine

        return examine(self.group, fix)

    # ---- writing ----

    def write(self, content: Content, tag: str = "", importance: Fraction | None = None) -> Written:
        """Append one line to today's log (a shared scope has its own); it is on disk when this returns.

        Content may begin with its tag and importance, `[decision|i=0.9] …`. A line of an agent or of others that reads
        like an attack becomes an entry that is held for review.
        """
        from nanoclaw_memory.workspace import log
        from nanoclaw_memory.workspace.files import append_line

        self.group.require_group()
        admitted = self.group.intake.admit(content, tag)
        self.group.refuse_decided(admitted.text)
        if held := self.group.hold_attack(admitted.text):
            return Written("", 0, admitted.redacted, held)
        text, typed, weight = (admitted.text, tag, None) if tag else log.typed_label(admitted.text)
        importance = weight if importance is None else importance
        line = log.format_line(text, typed, importance, self.scope.project, admitted.origin)
        today = self.group.today
        relative, path = locate(self.home, self.scope, log_path(today, self.scope.private), ())
        number = append_line(path, line, log.header(today))
        self.group.telemetry.record("write", chars=len(line), redacted=admitted.redacted)
        return Written(relative, number, admitted.redacted)

    def store(
        self,
        content: Annotated[str, Meta(max_length=20_000)],
        type: str = "",
        *,
        category: str = "",
        tags: Sequence[str] = (),
        priority: str = "",
        reason: str = "",
        context: str = "",
        related_to: Sequence[str] = (),
        supersedes: str = "",
        expires: str = "",
    ) -> Stored:
        """Store one typed entry; its provenance comes from the scope.

        `category` is another name for `type`, `context` for `reason`; `supersedes` names the entry it replaces.
        """
        from nanoclaw_memory.entries import rules

        self.group.require_group()
        draft = rules.draft(
            content,
            type,
            now=self.clock.now(),
            category=category,
            tags=tags,
            priority=priority,
            reason=reason,
            context=context,
            related_to=related_to,
            supersedes=supersedes,
            expires=expires,
        )
        self.group.refuse_decided(draft.content)
        stored = self.group.entries.store(draft, self.group.source_in_session)
        self.group.telemetry.record(
            "store", type=stored.type, deduplicated=stored.deduplicated, status=stored.status
        )
        return stored

    def delete(self, entry_id: str) -> Deleted:
        """Delete an entry permanently; the entry that it had replaced becomes current again."""
        deleted = self.group.entries_of(entry_id).delete(entry_id)
        self.group.telemetry.record("delete", restored=len(deleted.restored))
        return deleted

    def forget(
        self,
        *,
        id: str = "",
        entity: str = "",
        session: str = "",
        text: str = "",
        dry_run: bool = False,
        agreed: Callable[[Sequence[ForgottenPage]], bool] | None = None,
        checkpoints: bool = False,
        keep_out: bool = False,
    ) -> Forgotten:
        """Remove something permanently from every store and file, and refuse it from now on.

        `agreed` receives the lines that would leave Markdown pages; unless it agrees, the pages stay as they are.
        A text that nothing contains is refused from now on only with `keep_out`.
        """
        from nanoclaw_memory.upkeep.forget import ForgetRequest, Forgetting

        self.group.require_owner("forget")
        work = Forgetting(self.group.forget_targets(), ForgetRequest(id, entity, session, text))
        if dry_run:
            return work.preview()
        done = work.carry_out(agreed or (lambda pages: False), checkpoints, keep_out)
        self.group.telemetry.record("forget", removed=sum(done.removed.values()), pages=len(done.pages))
        return done

    def index(self, rebuild: bool = False, progress: Progress | None = None) -> Indexed:
        """Bring the search index up to date with everything it is built from."""
        from nanoclaw_memory.progress import watching

        with watching(progress):
            return self.group.index(rebuild)

    # ---- around a model call ----

    def session_start(self, boot_chars: Count = 0, cleared: bool = False) -> Turn:
        """Return the blocks for the start of a session, or for its continuation after a compaction; stable when
        repeated.

        With `boot_chars` the boot context precedes them, together within that many characters. `cleared` means that
        the model's window was emptied, so that blocks of earlier turns may be injected again.
        """
        if not boot_chars:
            return self.group.lifecycle.session_start(cleared)
        surely = boot_chars // 2  # the rest of the boot context may be cut to make room for the blocks
        turn = self.group.lifecycle.session_start(cleared, lambda: self.boot(max_chars=surely).text)
        left = max(boot_chars - len(turn.text) - 1, 1)
        boot = self.group.lifecycle.boot(f"boot {boot_chars}", lambda: self.boot(max_chars=left))
        return replace(turn, boot=boot.text)

    def before_turn(self, message: Message, explain: bool = False, repeat: bool = False) -> Turn:
        """Return the blocks to put before a model call, which plugins returned none, and why.

        `explain` is a dry run: it reports why each line was chosen and what was nearly chosen, and records nothing.
        Lines that the session already received are left out; `repeat` keeps them, for callers who do not know what
        the model's window contains.
        """
        reads_graph = self.settings.plugins.entries.graph_memory.enabled
        with self.group.refreshed_graph() if reads_graph else nullcontext("") as stale:
            turn = self.group.lifecycle.before_turn(message, explain, repeat)
        return replace(turn, notes=(*turn.notes, PluginNote("graph-memory", stale))) if stale else turn

    def after_turn(
        self,
        user_message: Message,
        agent_response: Message,
        tool_calls: Sequence[ToolCall] = (),
        at: Moment | None = None,
    ) -> Recorded:
        """Archive an exchange, measure it, and learn from it."""
        with self.group.resources.judging():
            recorded = self.group.lifecycle.after_turn(user_message, agent_response, tool_calls, at)
        if self.group.resources.resident:
            self.group.catch_up()
        return recorded

    def report_tools(self, calls: Sequence[ToolCall]) -> None:
        """Record tool calls between two messages, so that loops are detected."""
        self.group.lifecycle.report_tools(calls)

    def before_compaction(self, transcript: str = "") -> Archived | None:
        """Archive a transcript before the host compacts the window; from now on its exchanges may be recalled."""
        from nanoclaw_memory.upkeep.flush import compacted

        own = self.group.conversations
        given = own.read(transcript) if transcript else None
        written = own.archive(given) if given else None
        if written:  # words are searchable at once; vectors come with the next indexing run
            self.group.retrieval.refresh()
        self.group.lifecycle.before_compaction(given)
        if self.scope.private:  # shared scopes never get a flush prompt
            compacted(self.group.data, self.scope.session_id)
        return written

    def session_end(self) -> tuple[PluginNote, ...]:
        """Notify the plugins that the session is over, and refresh active-context.md; return what failed."""
        notes = self.group.lifecycle.session_end()
        if not self.scope.private:  # the page is private, as is what it contains
            return notes
        try:
            self.workspace.refresh_active_context()
        except NanoClawError as error:
            notes = (*notes, PluginNote("active-context", error.message))
        return notes


def _with_shared_hits(found: Found, said: Found, limit: int) -> Found:
    """Append what shared chats said to the hits, marked and never ranked above them."""
    lowest = found.hits[-1].score if found.hits else 1.0
    marked = (replace(hit, shared=True, score=min(hit.score, lowest)) for hit in said.hits)
    degraded = tuple(dict.fromkeys((*found.degraded, *said.degraded)))
    return Found((*found.hits, *marked)[:limit], degraded, found.took_ms + said.took_ms)


def _days(named: str | date, today: date) -> Days:
    """Return the days that a person names: a date, or words such as yesterday, last Friday, gestern."""
    from nanoclaw_memory.retrieval.calendar_days import Days
    from nanoclaw_memory.retrieval.dates import when

    if isinstance(named, date):
        return Days(named, named)
    try:
        day = date.fromisoformat(named)
        return Days(day, day)
    except ValueError:
        found = when(named, today)
    if found.days is None or found.rest:
        raise InvalidValue(f"{named!r} is no date", "write it as YYYY-MM-DD, or as yesterday or last Friday")
    return found.days
