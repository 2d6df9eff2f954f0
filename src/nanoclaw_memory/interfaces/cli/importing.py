"""The command that brings in what other memories exported."""

from __future__ import annotations

from pathlib import Path

import click

from nanoclaw_memory.interfaces.cli.common import Caller, command, pass_caller
from nanoclaw_memory.types import BroughtIn

KINDS = ["claude", "chatgpt", "claude-code", "codex", "mem0", "basic-memory"]


@command("import")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only show what would come in.")
@pass_caller
def import_(caller: Caller, kind: str, path: Path, dry_run: bool) -> None:
    """Bring in an export: conversations into the archive, memories as entries with the origin `import`.

    A second run adds nothing. Suspicious behavioral entries are held for review.

    \b
    ncm import claude ~/Downloads/claude-export.zip --dry-run
    ncm import chatgpt conversations.json
    ncm import claude-code ~/.claude/projects/my-project/memory
    """
    with caller.memory(new=True) as memory:
        done = memory.upkeep.import_export(kind, path, dry_run)
    caller.show(done, told(done))


def told(done: BroughtIn) -> str:
    """What came in, in a few lines."""
    verb = "would store" if done.dry_run else "stored"
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(done.types.items()))
    lines = [f"{verb} {done.stored} entries, {done.known} known already, {done.held} held for review"]
    if kinds:
        lines.append(f"found: {kinds}")
    if done.relations or done.conversations:
        lines.append(f"{done.relations} relations, {done.conversations} conversations")
    lines += [f"not placed: {one}" for one in done.unplaced[:20]]
    if len(done.unplaced) > 20:
        lines.append(f"… and {len(done.unplaced) - 20} more; --json lists all")
    return "\n".join(lines)
