"""The MCP tools: each a thin call of Memory; models read their names, docstrings and results."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
from pydantic import Field

from nanoclaw_memory.clock import local_day
from nanoclaw_memory.interfaces.mcp.texts import for_model
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.rendering import fenced, inert_line, inert_lines, item_line, short_ids
from nanoclaw_memory.types import Fact, GraphAnswer, Recall, Relation, Stored, stated_by

Query = Annotated[str, Field(description="A question or key words", max_length=10_000)]
Type = Literal[
    "preference", "instruction", "correction", "fact", "context", "project", "person", "decision", "insight"
]
Priority = Literal["critical", "high", "medium", "low"]
Share = Annotated[float, Field(ge=0, le=1)]
EntryId = Annotated[str, Field(description="mem-…")]
Limit = Annotated[int, Field(ge=1, le=50)]
Rows = list[dict[str, Any]] | None
Budget = Annotated[int, Field(ge=1, le=100_000)]
NOTED_AGAIN = 600.0  # seconds


class Tools:
    """The tools; a model reads a method's name, arguments and docstring."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._noted_at: dict[str, float] = {}

    def memory_search(
        self,
        query: Annotated[str, Field(description="Empty: the most recent entries", max_length=10_000)] = "",
        limit: Annotated[int, Field(ge=1, le=100)] = 5,
        type: Annotated[Type | None, Field(description="Only entries of this type")] = None,
        tags: Annotated[list[str] | None, Field(description="Only entries with all of these")] = None,
        include_superseded: bool = False,
        corpus: Annotated[str, Field(description="Domain documents by name, or all")] = "",
    ) -> str:
        """Search all memory: pages, logs, past conversations, entries, facts. Each line has its place, or the id of an
        entry, and its date. Where a text is cut (…), memory_get reads the file, memory_recall the rest."""
        found = self._memory.search(
            query,
            limit,
            types=[type] if type else None,
            tags=tags or (),
            include_superseded=include_superseded,
            corpus=corpus,
        )
        return self._noted(self._memory.fenced(found.hits, query) or "Nothing was found.", found.degraded)

    def memory_get(
        self,
        file: Annotated[str, Field(description="MEMORY.md, memory/2026-02-23.md, …")],
        start_line: Annotated[int | None, Field(ge=1)] = None,
        end_line: Annotated[int | None, Field(ge=1)] = None,
    ) -> str:
        """Read a memory file, or some of its lines."""
        lines = self._memory.get(file, start_line, end_line)
        note = [inert_line(lines.note)] if lines.note else []
        return fenced([inert_lines(lines.text.rstrip("\n")), *note]) if lines.text else inert_line(lines.note)

    def graph_search(self, query: Query, limit: Limit = 6) -> str:
        """Look up facts and relations of named people, projects and things ("What is Keystone's port?")."""
        answer = self._memory.graph.search(query, limit)
        self._memory.graph.reinforce(answer.hits)
        return self._noted(_facts(answer), answer.degraded)

    def graph_history(
        self, entity: str, key: Annotated[str, Field(description="Only this key or relation")] = ""
    ) -> str:
        """All about one person, project or thing: facts, relations to others, and earlier values with their dates."""
        known: list[Fact | Relation] = [
            *self._memory.graph.history(entity, key),
            *self._memory.graph.relations_of(entity, key),
        ]
        zone = self._memory.clock.now().tzinfo
        lines = [
            f"{local_day(one.valid_from, zone) or 'always'} to {local_day(one.valid_to, zone) or 'now'}: {one.text}"
            f" [{'; '.join(filter(None, (short_ids(one.source), stated_by(one.origin))))}]"
            for one in known
        ]
        return fenced(map(item_line, lines)) or "Nothing is known about that."

    def memory_recall(
        self,
        query: Query,
        categories: Annotated[list[str] | None, Field(description="Only these types of entries")] = None,
        priority_min: Priority = "low",
        token_budget: Budget = 3000,
        include_context: Annotated[bool, Field(description="Also why each was stored")] = False,
        format: Annotated[Literal["brief", "detailed"], Field(description="detailed: uncut")] = "brief",
    ) -> str:
        """Search all memory, entries first, what answers as far as a token budget holds."""
        found = self._memory.recall(
            query,
            types=categories,
            priority_min=priority_min,
            token_budget=token_budget,
            include_context=include_context,
            format=format,
        )
        return self._noted(_recalled(found, token_budget, "Nothing was found."), found.degraded)

    def memory_brief(self, include_provenance: bool = False) -> str:
        """The most important entries, as a session starts with them; with provenance: ids and sessions too."""
        brief = self._memory.brief(include_provenance)
        return self._noted(brief.text or "No entry is stored yet.", brief.degraded)

    def memory_index_status(self) -> str:
        """Sizes, counts and token costs of all memory."""
        status = msgspec.to_builtins(self._memory.index_status())
        parts = ((part, key, value) for part, values in status.items() for key, value in values.items())
        return "\n".join(inert_line(f"{part}.{key}: {value}") for part, key, value in parts)

    def memory_audit(
        self, scope: Literal["all", "memory_md", "domains", "system_prompt"] = "all", recommend: bool = True
    ) -> str:
        """What memory costs in tokens, duplicates, and what would help."""
        audit = self._memory.audit(scope, recommend)
        lines = [
            f"{share.source}: {share.tokens:,} tokens ({share.percentage:.0f} %)"
            for share in audit.analysis.breakdown
        ]
        lines += [f"{advice.risk} risk: {advice.description}" for advice in audit.recommendations]
        return "\n".join(map(item_line, map(short_ids, lines))) or "Nothing is stored yet."

    def memory_shared_recall(self, query: Query, token_budget: Budget = 3000) -> str:
        """Recall what other groups have published to this one."""
        found = self._memory.entries.shared_recall(query, token_budget=token_budget)
        return _recalled(found, token_budget, "Nothing that is shared with this group matches.")

    def policy_check(
        self, action: Annotated[str, Field(description="What you are about to do, in words or as a command")]
    ) -> str:
        """Which of the owner's rules a risky action meets: call it before you send, delete, deploy, pay or publish."""
        hits = self._memory.workspace.check_policies(action)
        lines = [
            f"{hit.policy.id} {hit.policy.title}: {hit.policy.gate} (when: {hit.policy.trigger})"
            for hit in hits
        ]
        return "\n".join(map(item_line, lines)) or "No policy is met."

    def memory_turn(
        self,
        message: Annotated[str, Field(description="The user's message, as it came")],
        context_tokens: Annotated[int, Field(ge=0, description="Tokens in your window, if you know")] = 0,
    ) -> str:
        """For hosts without hooks: what memory has to say to a message, before you answer it."""
        turn = self._memory.before_turn(message, repeat=True)  # one server may serve several conversations
        private = context_tokens and self._memory.scope.private
        flush = self._memory.conversations.flush_needed(context_tokens).prompt if private else ""
        return "\n\n".join(filter(None, (turn.text, flush))) or "Memory has nothing to add."

    def memory_write(
        self,
        content: str,
        importance: Annotated[Share | None, Field(description="0.8 and more is kept for ever")] = None,
        tag: Annotated[str, Field(description="decision, milestone, lesson, context")] = "",
        project: Annotated[
            str, Field(description="A slug: what all its agents must know goes to its page")
        ] = "",
    ) -> str:
        """Append what happened or was decided to today's log."""
        if project:
            written = self._memory.workspace.note_project(project, content, tag or "lesson")
        else:
            written = self._memory.write(content, tag, importance)
        if written.held:
            why = ", ".join(self._memory.entries.get(written.held).suspicions)
            return short_ids(f"Not written: held as {written.held} until a person approves it: {why}.")
        place = written.path if project else f"{written.path}:{written.line}"
        return f"Written to {place}.{_masked(written.redacted)}"

    def fact_upsert(
        self,
        entity: str,
        key: str,
        value: str,
        category: Annotated[str, Field(description="person, project, tool, decision, …")] = "",
        importance: Share = 0.5,
    ) -> str:
        """Set a fact of a person, project or thing. The key's earlier value becomes history."""
        done = self._memory.graph.upsert(entity, key, value, category, importance)
        changed = " (changed)" if done.retired else ""
        return inert_line(f"{entity}.{key} = {done.value}") + changed + _masked(done.redacted)

    def memory_store(
        self,
        content: Annotated[str, Field(description="One insight in plain words", max_length=2000)],
        type: Type | None = None,
        category: Annotated[str | None, Field(description="Another name of type")] = None,
        tags: list[str] | None = None,
        priority: Priority = "medium",
        supersedes: Annotated[str, Field(description="Id of the entry this replaces")] = "",
        related_to: Annotated[list[str] | None, Field(description="Ids of entries")] = None,
        expires: Annotated[str, Field(description="ISO date")] = "",
        context: Annotated[str, Field(description="Why it is worth keeping")] = "",
    ) -> str:
        """Store a typed entry that later sessions start with. What says the same is merged; what it contradicts is
        passed as supersedes."""
        stored = self._memory.store(
            content,
            type or "",
            category=category or "",
            tags=tags or (),
            priority=priority,
            supersedes=supersedes,
            related_to=related_to or (),
            expires=expires,
            context=context,
        )
        alike = [self._memory.entries.get(one) for one in stored.similar]
        return "\n".join(
            [_stored(stored), *(f"{short_ids(entry.id)}: {item_line(entry.content, 120)}" for entry in alike)]
        )

    def memory_graph_query(
        self,
        query: Annotated[
            str,
            Field(
                description="MATCH (a:Person)-[r:OWNS]->(b {name: 'Keystone'}) WHERE a.city = 'Lisbon' "
                "RETURN a.name, b.port ORDER BY a.name LIMIT 10",
                max_length=10_000,
            ),
        ],
        as_of: Annotated[str | None, Field(description="A past date, or YYYY-MM")] = None,
        limit: Annotated[int, Field(ge=1, le=1000)] = 100,
    ) -> str:
        """Query the knowledge graph in openCypher: MATCH of up to three hops, WHERE, RETURN, count. It only reads.

        Entities are nodes, found by name or alias; facts are their properties, a fact's category their label.
        `MATCH ()-[r]->() RETURN type(r), count(*)` lists the relations that there are.
        """
        table = self._memory.graph.query(query, as_of, limit)
        text = fenced(map(item_line, table.lines)) or "Nothing matches."
        more = ["there are more rows than these"] * table.truncated
        return "\n".join([self._noted(text, table.degraded), *map(inert_line, (*table.notes, *more))])

    def memory_graph_ingest(
        self,
        facts: Annotated[Rows, Field(description="{entity, key, value, category?, valid_from?}")] = None,
        relations: Annotated[Rows, Field(description="{subject, predicate, object, valid_from?}")] = None,
        aliases: Annotated[Rows, Field(description="{alias, entity}")] = None,
    ) -> str:
        """Add relations between people, projects and things, facts and other names, up to 200 at once."""
        done = self._memory.graph.ingest_rows(facts or (), relations or (), aliases or ())
        counts = f"{done.facts} facts, {done.relations} relations, {done.aliases} aliases stored"
        known = f"{done.known} were known, {done.retired} old values became history"
        lines = [f"{counts}; {known}.{_masked(done.redacted)}"]
        lines += [f"skipped: {problem}" for problem in done.problems]
        return "\n".join(map(inert_line, lines))

    def memory_delete(self, id: EntryId) -> str:
        """Delete an entry for good; the one that it had replaced becomes current again."""
        deleted = self._memory.delete(id)
        back = f" Current again: {', '.join(deleted.restored)}." if deleted.restored else ""
        return short_ids(f"Deleted {deleted.id}.{back}")

    def memory_reinforce(self, id: EntryId) -> str:
        """Mark an entry as still relevant, so that it fades more slowly."""
        return short_ids(f"Reinforced {self._memory.entries.reinforce(id).id}.")

    def _noted(self, text: str, degraded: Iterable[str]) -> str:
        """Return the text and why it may be incomplete; the same reason is not repeated for a while, to save tokens."""
        now = time.monotonic()
        self._noted_at = {note: at for note, at in self._noted_at.items() if now - at < NOTED_AGAIN}
        new = [note for note in degraded if note not in self._noted_at]
        self._noted_at |= dict.fromkeys(new, now)
        return "\n".join([text, *(inert_line(f"degraded: {for_model(note)}") for note in new)])


def _masked(redacted: int) -> str:
    return " A credential in it was masked and is not kept." if redacted else ""


def _recalled(found: Recall, budget: int, nothing: str) -> str:
    if not found.needed:
        return found.text or nothing
    return f"token_budget {budget} is too small: the first line needs {found.needed}."


def _stored(stored: Stored) -> str:
    """Describe the result of storing an entry."""
    said = [f"{'Merged with' if stored.deduplicated else 'Stored as'} {stored.id} ({stored.type})."]
    if stored.superseded:
        said.append(f"It replaces {stored.superseded}.")
    if stored.suspicions:
        said.append(f"It is held until a person approves it: {', '.join(stored.suspicions)}.")
    else:
        said += [f"{inert_line(note)}." for note in stored.notes]
    if stored.similar:
        said.append("Alike; if they say the same, delete one or store again with supersedes:")
    return short_ids(" ".join(said[:1]) + _masked(stored.redacted) + "".join(f" {one}" for one in said[1:]))


def _facts(answer: GraphAnswer) -> str:
    lines = [hit.told + (" [linked]" if hit.linked else "") for hit in answer.hits]
    notes = [f"{name} may mean several: {', '.join(answer.entities)}" for name in answer.ambiguous]
    return fenced(map(item_line, lines + notes)) or "Nothing is known about that."
