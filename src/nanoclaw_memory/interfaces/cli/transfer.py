"""Commands that bring memory in and out: import, export."""

from __future__ import annotations

from pathlib import Path

import click

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.interfaces.cli.common import Output, command
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.text import plural
from nanoclaw_memory.types import BroughtIn, MergedIn

TREES = ["memory-jsonl", "obsidian", "nanoclaw"]  # kinds whose content is not imported as entries
EXPORTS = ["claude", "chatgpt", "claude-code", "codex", "mem0", "basic-memory", "letta", "whatsapp", *TREES]


@command("import", new=True)
@click.argument("kind", metavar=f"[{'|'.join(EXPORTS)}]")
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option("--dry-run", is_flag=True, help="Only show what would come in of another memory's export.")
def import_(memory: Memory, kind: str, path: Path | None, dry_run: bool) -> Output:
    """Bring in an export: of another memory with its kind, or the directory that `ncm export` wrote.

    Conversations go into the archive, memories become entries with the origin `import`; suspicious behavioral
    entries are held for review. What your own machine exported keeps its origins. A second run adds nothing.

    \b
    ncm import claude ~/Downloads/claude-export.zip --dry-run
    ncm import chatgpt conversations.json
    ncm import claude-code ~/.claude/projects/my-project/memory
    ncm import ~/memory-sync
    ncm import whatsapp "WhatsApp Chat with Petra.txt"
    ncm import obsidian ~/Notes
    ncm import nanoclaw ~/nanoclaw
    """
    if path is None and kind not in EXPORTS:
        if dry_run:
            raise InvalidValue(
                "--dry-run is for exports of other memories", "git diff shows what would come in"
            )
        merged = memory.upkeep.merge_in(Path(kind).expanduser())
        memory.index()  # a hook that comes first would compare only some of what is new with what it changes
        return _merged(merged)
    if path is None or kind not in EXPORTS:
        told = (
            f"{kind!r} needs the path of the export"
            if path is None
            else f"{kind[:40]!r} is no kind of export"
        )
        raise InvalidValue(f"{told}; kinds: {', '.join(EXPORTS)}", "ncm import KIND PATH")
    done = memory.upkeep.import_export(kind, path, dry_run)
    if not dry_run:
        memory.index()
    return Output(done, import_lines(done))


@command("export")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
def export(memory: Memory, folder: Path) -> Output:
    """Write everything that is not Markdown into DIR, for your other machines: git merges it line by line.

    The lines are signed with sync.key of this home: copy it once to your other machines.

    \b
    ncm export ~/memory-sync
    """
    done = memory.upkeep.export(folder.expanduser())
    text = f"{plural(done.lines, 'line')} in {done.directory}; {plural(done.files_changed, 'file')} changed"
    return Output(done, text)


def _merged(done: MergedIn) -> Output:
    counts = {"came in": done.added, "changed": done.changed, "removed": done.removed}
    lines = [
        f"{verb}: {', '.join(f'{number} {kind}' for kind, number in found.items())}"
        for verb, found in counts.items()
        if found
    ]
    if done.forgotten:
        lines.append(f"left out because you forgot or rejected it: {done.forgotten}")
    if done.conflicts:
        lines.append(f"set on two machines: {plural(len(done.conflicts), 'proposal')}; see: ncm review")
    notes = [f"not read: {problem}" for problem in done.problems[:20]]
    notes += [f"… and {len(done.problems) - 20} more; --json lists all"] if len(done.problems) > 20 else []
    return Output(done, lines, "Nothing new.", notes=notes)


def import_lines(done: BroughtIn) -> list[str]:
    """Return what an import brought in, and what could not be placed."""
    verb = "would store" if done.dry_run else "stored"
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(done.types.items()))
    lines = [f"{verb} {done.stored} entries, {done.known} known already, {done.held} held for review"]
    if kinds:
        lines.append(f"found: {kinds}")
    if done.relations or done.conversations or done.pages:
        pages = f", {done.pages} pages" if done.pages else ""
        lines.append(f"{done.relations} relations, {done.conversations} conversations{pages}")
    if done.checkpoint:
        lines.append(f"checkpoint {done.checkpoint}; to take it back: ncm entries migrate --undo")
    lines += done.placed
    lines += [f"type told by the judge: {one}" for one in done.judged[:20]]
    lines += [f"not placed: {one}" for one in done.unplaced[:20]]
    if len(done.unplaced) > 20:
        lines.append(f"… and {len(done.unplaced) - 20} more; --json lists all")
    return lines
