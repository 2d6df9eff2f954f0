"""Commands on typed entries: entries, recall, brief."""

from __future__ import annotations

from typing import Any

import click

from nanoclaw_memory.interfaces.cli.common import Caller, command, given_text, group, pass_caller
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import Entry


@group("entries")
def entries() -> None:
    """Store, list, show and delete typed entries.

    \b
    ncm entries store "Prefers TypeScript for new projects" --type preference
    ncm entries list --type preference
    """


@entries.command("store")
@click.argument("content")
@click.option("--type", "-t", "kind", default="", help="preference, instruction, correction, fact, …")
@click.option("--category", default="", help="Another name for --type.")
@click.option("--tag", "tags", multiple=True, help="Repeat for more.")
@click.option("--priority", "-p", default="", help="critical, high, medium or low.")
@click.option("--reason", default="", help="Why this is worth keeping.")
@click.option("--related", multiple=True, metavar="ID", help="An entry this one belongs with.")
@click.option("--supersedes", default="", metavar="ID", help="The entry this one replaces.")
@click.option("--expires", default="", metavar="DATE", help="Last day on which it holds.")
@pass_caller
def store(caller: Caller, /, content: str, kind: str, related: tuple[str, ...], **given: Any) -> None:
    """Store one entry; CONTENT `-` reads it from standard input.

    \b
    ncm entries store "The staging port is 8080" --type fact --tag ops
    echo "The staging port is 8080" | ncm entries store - --type fact
    ncm entries store "The staging port is 9090" --type fact --supersedes mem-…
    """
    fields = {name: value for name, value in given.items() if value}
    with caller.memory(new=True) as memory:
        result = memory.store(given_text(content), kind, related_to=related, **fields)
    state = "merged with" if result.deduplicated else "stored as"
    lines = [f"{state} {result.id} ({result.type}, about {result.token_cost} tokens)"]
    if result.superseded:
        lines.append(f"replaces {result.superseded}")
    if result.redacted:
        lines.append(f"{result.redacted} credential{'s' * (result.redacted > 1)} masked")
    caller.show(result, "\n".join([*lines, *result.notes]))


@entries.command("list")
@click.option("--type", "-t", "kinds", multiple=True, help="Only these types.")
@click.option("--tag", "tags", multiple=True, help="Only entries with all of these tags.")
@click.option("--status", default="active", help="active, held, superseded, archived, expired or all.")
@click.option("--limit", "-k", type=click.IntRange(1, 10_000), default=100, help="Most entries.")
@pass_caller
def list_(caller: Caller, kinds: tuple[str, ...], tags: tuple[str, ...], status: str, limit: int) -> None:
    """List entries, newest first.

    \b
    ncm entries list
    ncm entries list --type fact --tag ops --status all
    """
    with caller.memory() as memory:
        found = memory.entries.all(kinds or None, tags, status, limit)
    caller.show({"entries": found}, "\n".join(_row(entry) for entry in found) or "No entries.")


@entries.command("show")
@click.argument("entry_id", metavar="ID")
@pass_caller
def show(caller: Caller, entry_id: str) -> None:
    """Show one entry with its provenance and what it replaced.

    \b
    ncm entries show mem-…
    """
    with caller.memory() as memory:
        entry, *replaced = memory.entries.history(entry_id)
    came = entry.provenance
    lines = [
        _row(entry),
        f"  from {came.origin}, session {one_line(came.session_id) or 'none'}, {came.timestamp}",
        f"  tags: {', '.join(entry.tags) or 'none'}; about {entry.token_cost} tokens",
        *([f"  why: {one_line(entry.reason)}"] if entry.reason else []),
        *([f"  expires {entry.expires}"] if entry.expires else []),
        *([f"  held: {', '.join(entry.suspicions)}"] if entry.suspicions else []),
        *([f"  replaced by {entry.superseded_by}"] if entry.superseded_by else []),
        *(f"  replaced {_row(old)}" for old in replaced),
    ]
    caller.show({"entry": entry, "replaced": replaced}, "\n".join(lines))


@entries.command("delete")
@click.argument("entry_id", metavar="ID")
@pass_caller
def delete(caller: Caller, entry_id: str) -> None:
    """Delete one entry for good; what it replaced becomes current again.

    \b
    ncm entries delete mem-…
    """
    with caller.memory() as memory:
        result = memory.delete(entry_id)
    lines = [f"deleted {result.id}", *(f"restored {old}" for old in result.restored), *result.notes]
    caller.show(result, "\n".join(lines))


@entries.command("reinforce")
@click.argument("entry_id", metavar="ID")
@pass_caller
def reinforce(caller: Caller, entry_id: str) -> None:
    """Mark an entry as still relevant, so that it fades more slowly.

    \b
    ncm entries reinforce mem-…
    """
    with caller.memory() as memory:
        entry = memory.entries.reinforce(entry_id)
    caller.show({"entry": entry}, f"reinforced {entry.id} ({entry.reinforcements} times)")


@entries.command("render")
@pass_caller
def render(caller: Caller) -> None:
    """Write the domain files anew from the entries; files edited by hand are left, and said.

    \b
    ncm entries render
    """
    with caller.memory() as memory:
        written, left = memory.entries.render()
    lines = [*(f"wrote {path}" for path in written), *left]
    caller.show({"written": written, "left": left}, "\n".join(lines) or "No entries to write.")


@entries.command("status")
@pass_caller
def status(caller: Caller) -> None:
    """Count files, entries and tokens: what is always loaded, and what on demand.

    \b
    ncm entries status
    ncm entries status --json
    """
    with caller.memory() as memory:
        found = memory.index_status()
    parts = (("files", found.legacy), ("entries", found.progressive), ("index", found.index))
    lines = [f"{part:<8} {key}: {value}" for part, values in parts for key, value in values.items()]
    caller.show(found, "\n".join(lines))


@entries.command("migrate")
@click.option("--dry-run", is_flag=True, help="Only show what would be stored.")
@pass_caller
def migrate(caller: Caller, dry_run: bool) -> None:
    """Turn MEMORY.md and memory/*.md into typed entries; the files stay as they are.

    Headings and wording decide the type; what cannot be placed is listed. A second run adds nothing.

    \b
    ncm entries migrate --dry-run
    ncm entries migrate
    """
    from nanoclaw_memory.interfaces.cli.importing import told

    with caller.memory() as memory:
        done = memory.upkeep.migrate_files(dry_run)
    caller.show(done, told(done))


@command("recall")
@click.argument("query")
@click.option("--budget", type=int, help="Most tokens; default 3,000.")
@click.option("--type", "-t", "kinds", multiple=True, help="Only these types.")
@click.option("--priority-min", default="low", help="critical, high, medium or low.")
@click.option("--context", is_flag=True, help="Say why each entry was stored.")
@click.option("--format", "form", default="brief", help="brief or detailed.")
@pass_caller
def recall(
    caller: Caller,
    query: str,
    budget: int | None,
    kinds: tuple[str, ...],
    priority_min: str,
    context: bool,
    form: str,
) -> None:
    """Recall what answers a question, within a token budget.

    \b
    ncm recall "how does the user like code reviews"
    ncm recall "staging port" --type fact --budget 500
    """
    with caller.memory() as memory:
        result = memory.recall(
            query,
            types=kinds or None,
            priority_min=priority_min,
            token_budget=budget,
            include_context=context,
            format=form,
        )
    caller.show(result, result.text or "Nothing was recalled.")
    if not caller.json:
        source = " from files: no entry matched" if result.fallback else ""
        click.echo(f"{result.token_count:,} tokens{source}, {result.budget_remaining:,} left", err=True)


@command("brief")
@click.option("--provenance", is_flag=True, help="Say where each entry came from.")
@pass_caller
def brief(caller: Caller, provenance: bool) -> None:
    """Print what matters, for a session's start.

    \b
    ncm brief
    ncm brief --provenance --json
    """
    with caller.memory() as memory:
        result = memory.brief(provenance)
    said = [f"note: {one}" for one in result.degraded]
    caller.show(result, "\n".join([result.text or ("" if said else "No entries yet."), *said]).lstrip())


def _row(entry: Entry) -> str:
    state = "" if entry.status == "active" else f" ({entry.status})"
    return f"{entry.id}  {entry.type:<11} {entry.priority:<8} {one_line(entry.content)}{state}"
