"""Commands on typed entries: entries, recall, brief, audit, share."""

from __future__ import annotations

from typing import Any

import click

from nanoclaw_memory.interfaces.cli.common import (
    Output,
    caller_of,
    command,
    given_text,
    group,
    listing,
    noted,
)
from nanoclaw_memory.interfaces.cli.transfer import import_lines
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.rendering import marks, visible_line
from nanoclaw_memory.text import plural
from nanoclaw_memory.types import Audit, Entry, Recommendation

ENTRY_ID = click.argument("entry_id", metavar="ID")
READER = click.argument("reader", metavar="GROUP")
TYPES = click.option("--type", "-t", "types", multiple=True, help="Only these types.")
BUDGET = click.option("--budget", "token_budget", type=int, help="Most tokens; default 3,000.")


@group("entries")
def entries() -> None:
    """Store, list, show and delete typed entries.

    \b
    ncm entries store "Prefers TypeScript for new projects" --type preference
    ncm entries list --type preference
    """


@entries.command("store", new=True)
@click.argument("content")
@click.option("--type", "-t", default="", help="preference, instruction, correction, fact, …")
@click.option("--category", default="", help="Another name for --type.")
@click.option("--tag", "tags", multiple=True, help="Repeat for more.")
@click.option("--priority", "-p", default="", help="critical, high, medium or low.")
@click.option("--reason", default="", help="Why this is worth keeping.")
@click.option("--related", "related_to", multiple=True, metavar="ID", help="An entry this one belongs with.")
@click.option("--supersedes", default="", metavar="ID", help="The entry this one replaces.")
@click.option("--expires", default="", metavar="DATE", help="Last day on which it holds.")
def store(memory: Memory, /, content: str, **fields: Any) -> Output:
    """Store one entry; CONTENT `-` reads it from standard input.

    \b
    ncm entries store "The staging port is 8080" --type fact --tag ops
    echo "The staging port is 8080" | ncm entries store - --type fact
    ncm entries store "The staging port is 9090" --type fact --supersedes mem-…
    """
    result = memory.store(given_text(content), **fields)
    state = "merged with" if result.deduplicated else "stored as"
    lines = [f"{state} {result.id} ({result.type}, about {result.token_cost} tokens)"]
    if result.superseded:
        lines.append(f"replaces {result.superseded}")
    if result.redacted:
        lines.append(f"{plural(result.redacted, 'credential')} masked")
    return Output(result, [*lines, *result.notes])


@entries.command("list")
@TYPES
@click.option("--tag", "tags", multiple=True, help="Only entries with all of these tags.")
@click.option("--status", default="active", help="active, held, superseded, archived, expired or all.")
@click.option("--limit", "-k", type=click.IntRange(1, 10_000), default=100, help="Most entries.")
def list_entries(memory: Memory, types: tuple[str, ...], **filters: Any) -> Output:
    """List entries, newest first.

    \b
    ncm entries list
    ncm entries list --type fact --tag ops --status all
    """
    return listing("entries", memory.entries.all(types or None, **filters), _entry_line, "No entries.")


@entries.command("show")
@ENTRY_ID
def show(memory: Memory, entry_id: str) -> Output:
    """Show one entry with its provenance and what it replaced.

    \b
    ncm entries show mem-…
    """
    entry, *replaced = memory.entries.history(entry_id)
    related = [memory.entries.history(one)[0] for one in entry.related_to]
    came = entry.provenance
    details = {
        "why: ": visible_line(entry.reason),
        "expires ": entry.expires,
        "held: ": ", ".join(entry.suspicions),
        "replaced by ": entry.superseded_by,
        "confirmed: ": entry.confirmed,
    }
    lines = [
        _entry_line(entry),
        f"  from {came.origin}, session {visible_line(came.session_id) or 'none'}, {came.timestamp}",
        f"  tags: {', '.join(entry.tags) or 'none'}; about {entry.token_cost} tokens",
        *(f"  {label}{value}" for label, value in details.items() if value),
        *(f"  replaced {_entry_line(old)}" for old in replaced),
        *(f"  belongs with {_entry_line(other)}" for other in related),
    ]
    return Output({"entry": entry, "replaced": replaced, "related": related}, lines)


@entries.command("delete")
@ENTRY_ID
def delete(memory: Memory, entry_id: str) -> Output:
    """Delete one entry for good; what it replaced becomes current again.

    \b
    ncm entries delete mem-…
    """
    result = memory.delete(entry_id)
    restored = [f"restored {old}" for old in result.restored]
    return Output(result, [f"deleted {result.id}", *restored, *result.notes])


@entries.command("reinforce")
@ENTRY_ID
def reinforce(memory: Memory, entry_id: str) -> Output:
    """Mark an entry as still relevant, so that it fades more slowly.

    \b
    ncm entries reinforce mem-…
    """
    entry = memory.entries.reinforce(entry_id)
    return Output({"entry": entry}, f"reinforced {entry.id} ({entry.reinforcements} times)")


@entries.command("approve")
@ENTRY_ID
def approve(memory: Memory, entry_id: str) -> Output:
    """Make an entry yours that is held, that an agent suggests, or that others stored.

    \b
    ncm entries approve mem-…
    """
    entry = memory.entries.approve(entry_id)
    return Output({"entry": entry}, f"approved {entry.id}")


@entries.command("render")
def render(memory: Memory) -> Output:
    """Write the domain files anew from the entries; files edited by hand are left as they are, and listed.

    \b
    ncm entries render
    """
    written, left = memory.entries.render()
    lines = [*(f"wrote {path}" for path in written), *left]
    return Output({"written": written, "left": left}, lines, "No entries to write.")


@entries.command("status")
def status(memory: Memory) -> Output:
    """Count files, entries and tokens: what is always loaded, and what on demand.

    \b
    ncm entries status
    ncm entries status --json
    """
    found = memory.index_status()
    parts = (("files", found.legacy), ("entries", found.progressive), ("index", found.index))
    return Output(
        found, [f"{part:<8} {key}: {value}" for part, values in parts for key, value in values.items()]
    )


@entries.command("migrate")
@click.option("--dry-run", is_flag=True, help="Only show what would be stored, line by line.")
@click.option("--undo", is_flag=True, help="Take back what migrations stored and nobody has changed since.")
def migrate(memory: Memory, dry_run: bool, undo: bool) -> Output:
    """Turn MEMORY.md and memory/*.md into typed entries, after a checkpoint; the files stay as they are.

    Headings and wording decide the type, else the judge; what cannot be placed is listed. A second run adds nothing.

    \b
    ncm entries migrate --dry-run
    ncm entries migrate
    ncm entries migrate --undo
    """
    done = memory.upkeep.migrate_files(dry_run, undo)
    if undo:
        return Output(done, [f"{'would take' if dry_run else 'took'} {done.removed} entries back"])
    return Output(done, import_lines(done))


def _entry_line(entry: Entry) -> str:
    shared = "" if entry.provenance.private else "shared chat"
    status = "" if entry.status == "active" else entry.status
    trust = (entry.stored_by, marks(entry.author, (), entry.unconfirmed))
    state = "; ".join(filter(None, (status, shared, *trust)))
    line = f"{entry.id}  {entry.type:<11} {entry.priority:<8} {visible_line(entry.content)}"
    return f"{line} ({state})" if state else line


@command("recall")
@click.argument("query")
@BUDGET
@TYPES
@click.option("--priority-min", default="low", help="critical, high, medium or low.")
@click.option("--context", "include_context", is_flag=True, help="Say why each entry was stored.")
@click.option("--format", default="brief", help="brief or detailed.")
def recall(memory: Memory, query: str, types: tuple[str, ...], **options: Any) -> Output:
    """Recall what answers a question, within a token budget.

    \b
    ncm recall "how does the user like code reviews"
    ncm recall "staging port" --type fact --budget 500
    """
    result = memory.recall(query, types=types or None, **options)
    source = " from pages and talk: no entry matched" if result.fallback else ""
    note = f"{result.token_count:,} tokens{source}, {result.budget_remaining:,} left"
    small = f"The budget is too small: the first line needs {result.needed} tokens."
    nothing = small if result.needed else "Nothing was recalled."
    return Output(result, result.text, nothing, [note, *noted(result.degraded)], fenced=True)


@command("brief")
@click.option("--provenance", is_flag=True, help="Say where each entry came from.")
def brief(memory: Memory, provenance: bool) -> Output:
    """Print what matters, for a session's start.

    \b
    ncm brief
    ncm brief --provenance --json
    """
    result = memory.brief(provenance)
    text = "\n".join([result.text, *noted(result.degraded)])
    return Output(result, text.lstrip(), "No entries yet.", fenced=True)


@group("audit", invoke_without_command=True)
@click.option("--scope", default="all", help="all, memory_md, domains or system_prompt.")
@click.option("--fix", is_flag=True, help="Carry out what has a low risk, after a checkpoint.")
@click.pass_context
def audit(context: click.Context, scope: str, fix: bool) -> None:
    """Show what memory costs in tokens, what says the same twice, and what would help.

    \b
    ncm audit
    ncm audit --fix
    ncm audit verify
    """
    if context.invoked_subcommand is not None:
        return
    with caller_of(context).memory() as memory:
        result = memory.audit(scope, fix=fix)
    caller_of(context).show(Output(result, _audit_lines(result)))


def _audit_lines(audit: Audit) -> list[str]:
    analysis = audit.analysis
    lines = [f"{analysis.total_tokens:,} tokens"]
    lines += [
        f"{share.tokens:>8,}  {share.percentage:>5.1f} %  {share.source}" for share in analysis.breakdown
    ]
    for pair in analysis.duplicates:
        lines += [f"alike {pair.similarity:.0%}: {' and '.join(pair.sources)}", f"  {pair.content_a}"]
    lines += map(_advice_line, audit.recommendations)
    if audit.checkpoint:
        lines.append(f"checkpoint {audit.checkpoint} holds the state before")
    return lines


def _advice_line(advice: Recommendation) -> str:
    state = "done" if advice.applied else f"{advice.risk} risk"
    tokens = advice.estimated_savings_tokens
    return f"- {advice.description} ({state}{f', saves about {tokens:,} tokens' if tokens else ''})"


@audit.command("verify")
def verify(memory: Memory) -> Output:
    """Prove that no line of the audit log was changed or removed; exit 1 when one was.

    \b
    ncm audit verify
    """
    verdict = memory.entries.verify()
    text = [f"{verdict.records:,} records, unbroken"] if verdict.ok else verdict.problems
    result = {"verified": verdict.ok, "records": verdict.records, "problems": verdict.problems}
    return Output(result, text, failed=not verdict.ok)


@audit.command("trace")
@ENTRY_ID
def trace(memory: Memory, entry_id: str) -> Output:
    """Show an entry's whole life: who stored, merged, replaced, approved or deleted it, and when.

    \b
    ncm audit trace mem-…
    """
    life = memory.entries.trace(entry_id)
    lines = [
        f"{record['at']}  {record['event']:<10} {record['id']}  by {record['origin']}, "
        f"session {record['session'] or 'none'}"
        for record in life.records
    ]
    if life.entry is not None:
        lines.append(f"now {life.entry.status}: {visible_line(life.entry.content)}")
    return Output(life, lines, f"The audit log does not know {entry_id}.")


@group("share")
def share() -> None:
    """Publish entries, and let other groups read them.

    \b
    ncm share publish mem-…
    ncm share grant research
    ncm share recall "staging port" --group research
    """


@share.command("publish")
@ENTRY_ID
def publish(memory: Memory, entry_id: str) -> Output:
    """Publish a current entry to the groups that have a grant.

    \b
    ncm share publish mem-…
    """
    entry = memory.entries.publish(entry_id)
    return Output({"id": entry.id, "published": True}, f"published {entry.id}")


@share.command("unpublish")
@ENTRY_ID
def unpublish(memory: Memory, entry_id: str) -> Output:
    """Take a published entry back.

    \b
    ncm share unpublish mem-…
    """
    memory.entries.unpublish(entry_id)
    return Output({"id": entry_id, "published": False}, f"took back {entry_id}")


@share.command("grant")
@READER
def grant(memory: Memory, reader: str) -> Output:
    """Let a group read what this one publishes.

    \b
    ncm share grant research
    """
    memory.entries.grant(reader)
    result = {"publisher": memory.scope.group, "reader": reader, "granted": True}
    return Output(result, f"{reader} may read")


@share.command("revoke")
@READER
def revoke(memory: Memory, reader: str) -> Output:
    """Take a group's grant back.

    \b
    ncm share revoke research
    """
    memory.entries.revoke(reader)
    result = {"publisher": memory.scope.group, "reader": reader, "granted": False}
    return Output(result, f"{reader} may no longer read")


@share.command("list")
def list_shares(memory: Memory) -> Output:
    """List what this group publishes and to whom, and what it may read of others.

    \b
    ncm share list
    """
    shares = memory.entries.shares()
    lines = [
        f"{one.publisher}: {len(one.entries)} published, read by {', '.join(one.readers) or 'nobody'}"
        for one in shares
    ]
    return Output({"shares": shares}, lines, "Nothing is published.")


@share.command("recall")
@click.argument("query")
@BUDGET
@TYPES
def shared_recall(memory: Memory, query: str, types: tuple[str, ...], token_budget: int | None) -> Output:
    """Recall from what other groups have published and granted to this one.

    \b
    ncm share recall "staging port" --group research
    """
    result = memory.entries.shared_recall(query, types=types or None, token_budget=token_budget)
    return Output(result, result.text, "Nothing was recalled.", fenced=True)
