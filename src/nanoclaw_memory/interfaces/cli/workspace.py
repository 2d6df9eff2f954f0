"""Commands on the Markdown files: write, log, boot, get, mirror, policy, checkpoint."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path

import click

from nanoclaw_memory.interfaces.cli.common import (
    Caller,
    Command,
    Output,
    clock_of,
    command,
    fields,
    given_text,
    group,
    listing,
)
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.text import plural
from nanoclaw_memory.types import Checkpoint, LogLine, Mirrored, Policy

MARKS = {"added": "+", "removed": "-", "changed": "~"}


@command("write", new=True)
@click.argument("text")
@click.option("--tag", "-t", default="", help="decision, milestone, lesson, context, …")
@click.option("--importance", "-i", type=float, help="0 to 1; 0.8 and more is kept for ever.")
def write(memory: Memory, text: str, tag: str, importance: float | None) -> Output:
    """Append a line to today's log; TEXT `-` reads it from standard input.

    \b
    ncm write "Switched to PostgreSQL" --tag decision --importance 0.9
    git log -1 --format=%s | ncm write - --tag milestone
    """
    given = given_text(text)
    made = not memory.home.exists()
    if made:
        memory.init()
    result = memory.write(given, tag, importance)
    masked = f" ({plural(result.redacted, 'credential')} masked)" if result.redacted else ""
    new = f" (a new memory at {memory.home.root})" if made else ""
    where = f"held for review: {result.held}" if result.held else f"{result.path}:{result.line}"
    return Output(result, f"{where}{masked}{new}")


@command("log")
@click.argument("date", required=False)
def log(memory: Memory, date: str | None) -> Output:
    """Show the entries of a day's log, with the project of each that has one; today's without DATE.

    \b
    ncm log
    ncm log yesterday
    ncm log 2026-02-23 --json
    """
    day, lines = memory.log(date)
    return Output({"date": day, "lines": lines}, map(_log_line, lines), f"No entries on {day}.")


def _log_line(entry: LogLine) -> str:
    importance = "" if entry.importance is None else f"{entry.importance:g}"
    moved = f"  ({entry.path})" if entry.path else ""
    project = f"@{entry.project}  " if entry.project else ""
    return f"{entry.line:>4}  {entry.tag or '-':<10} {importance:<4}  {project}{entry.text}{moved}"


@command("boot")
@click.option("--project", metavar="SLUG", default="", help="Boot as an agent of this project.")
def boot(memory: Memory, project: str) -> Output:
    """Print exactly what an agent reads at session start; sizes go to standard error.

    \b
    ncm boot
    ncm boot --project payment-api
    ncm boot --shared
    """
    result = memory.boot(project)
    notes = []
    for file in result.files:
        state = "missing" if file.missing else f"{file.chars:,} characters, {file.tokens:,} tokens"
        notes.append(f"{file.path}: {state}{' (truncated)' if file.truncated else ''}")
    return Output(result, result.text, notes=[*notes, f"{result.tokens:,} tokens in all"], fenced=True)


@command("get")
@click.argument("file")
@click.option("--start", type=int, help="First line, from 1.")
@click.option("--end", type=int, help="Last line, included.")
def get(memory: Memory, file: str, start: int | None, end: int | None) -> Output:
    """Print lines of a memory file; a missing file is empty, with a note.

    \b
    ncm get MEMORY.md
    ncm get memory/2026-02-23.md --start 3 --end 9
    """
    result = memory.get(file, start, end)
    return Output(result, result.text, notes=[result.note], exact=True)


@command("mirror", cls=Command)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--once", is_flag=True, help="Bring both to the same state once, and end.")
def mirror(caller: Caller, folder: Path, once: bool) -> None:
    """Keep DIR and a team's pages the same, both ways; ends with Ctrl-C.

    Edit the pages with any editor, with Obsidian or in a git repository. Edits of two people in one page are merged;
    where both changed the same lines, the page has those that came first, and `ncm review` offers the others.

    \b
    ncm mirror ~/Notes/team
    ncm mirror ~/Notes/team --once
    """
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    reported: set[str] = set()  # a problem is reported only once
    with caller.memory() as memory:
        try:
            for done in memory.workspace.mirror(folder, None if once else stop.wait):
                notes = [f"left out: {problem}" for problem in done.problems if problem not in reported]
                if once or done.changed or notes:
                    caller.show(Output(done, _mirrored(done) if once or done.changed else "", notes=notes))
                reported.update(done.problems)
        except KeyboardInterrupt:
            stop.set()


def _mirrored(done: Mirrored) -> str:
    counts = {
        "came": done.pulled,
        "went": done.pushed,
        "merged": done.merged,
        "deleted": done.deleted,
        "kept though deleted on the other side": done.kept,
    }
    lines = [", ".join(f"{number} {what}" for what, number in counts.items() if number) or "nothing changed"]
    if done.conflicts:
        lines.append(f"the same lines were changed in {', '.join(done.conflicts)}: see ncm review")
    return "\n".join(lines)


@group("policy")
def policy() -> None:
    """Rules learned from failures: what must happen before a risky action."""


@policy.command("add", new=True)
@click.argument("title")
@click.option("--trigger", required=True, help="What brings the policy into play.")
@click.option("--gate", required=True, help="What must happen first.")
@click.option("--reason", default="", help="What went wrong without it.")
@click.option("--source", default="", help="Where that is written down, such as a daily log.")
@click.option("--enforce", default="", help="What a tool hook does: warn (default), ask or block.")
def add_policy(memory: Memory, **parts: str) -> Output:
    """Add a policy to memory/gating-policies.md; a number once given is never given again.

    \b
    ncm policy add "Never restart the gateway unasked" --trigger "Any request to restart services" \\
      --gate "Wait for an explicit yes" --reason "A silent restart lost a session"
    """
    added = memory.workspace.add_policy(**parts)
    return Output(added, f"{added.id} at memory/gating-policies.md:{added.line}")


@policy.command("list")
def list_policies(memory: Memory) -> Output:
    """List the policies.

    \b
    ncm policy list
    """
    found = memory.workspace.policies()
    return Output({"policies": found}, "\n\n".join(map(_policy_lines, found)), "No policies yet.")


@policy.command("check")
@click.argument("action")
@click.option("--fast", is_flag=True, help="Words only: no model is loaded.")
def check_policies(memory: Memory, action: str, fast: bool) -> Output:
    """Show which policies a planned action triggers, by its words or by its meaning.

    \b
    ncm policy check "restart the gateway to load the new config"
    """
    hits = memory.workspace.check_policies(action, fast)
    rows = [
        fields(hit.policy, "id", "title", "gate", "reason", "source") | fields(hit, "matched", "by", "score")
        for hit in hits
    ]
    shown = [
        f"{_policy_lines(hit.policy)}\n  matched: {', '.join(hit.matched) or 'its meaning'} ({hit.score:g})"
        for hit in hits
    ]
    return Output({"policies": rows}, "\n\n".join(shown), "No policy is triggered.")


def _policy_lines(policy: Policy) -> str:
    parts = fields(policy, "trigger", "gate", "reason", "source", "enforce")
    lines = [f"  {name}: {text}" for name, text in parts.items() if text]
    return "\n".join([f"{policy.id}  {policy.title}", *lines])


@group("checkpoint")
def checkpoint() -> None:
    """Save the group's files and databases before risk, and bring them back."""


@checkpoint.command("create")
@click.argument("name")
@click.option("--reason", default="", help="Why; shown in the list.")
def create_checkpoint(memory: Memory, name: str, reason: str) -> Output:
    """Save the present state under a name.

    \b
    ncm checkpoint create before-migration --reason "moving to the new schema"
    """
    made = memory.workspace.checkpoint(name, reason)
    return Output(made, f"{_checkpoint_line(made, clock_of(memory))}\n{made.path}")


@checkpoint.command("list")
def list_checkpoints(memory: Memory) -> Output:
    """List the checkpoints, oldest first.

    \b
    ncm checkpoint list
    """
    found, shown = memory.workspace.checkpoints(), clock_of(memory)
    return listing("checkpoints", found, lambda one: _checkpoint_line(one, shown), "No checkpoints yet.")


@checkpoint.command("show")
@click.argument("name")
def show_checkpoint(memory: Memory, name: str) -> Output:
    """Show what a checkpoint contains.

    \b
    ncm checkpoint show before-migration
    """
    summary, manifest = memory.workspace.show_checkpoint(name)
    lines = [f"  {saved.path} ({saved.bytes:,} bytes)" for saved in manifest.files]
    lines += [f"  {path} -> {target}" for path, target in manifest.links.items()]
    lines += [f"  data/{saved.path}.db ({saved.bytes:,} bytes)" for saved in manifest.databases]
    return Output(
        {"checkpoint": summary, "manifest": manifest}, [_checkpoint_line(summary, clock_of(memory)), *lines]
    )


@checkpoint.command("restore")
@click.argument("name")
def restore_checkpoint(memory: Memory, name: str) -> Output:
    """Bring back a checkpoint; the present state is saved as another checkpoint first.

    \b
    ncm checkpoint restore before-migration
    """
    done = memory.workspace.restore_checkpoint(name)
    files = f"{plural(done.replaced, 'file')}, {plural(done.removed, 'file')} removed"
    return Output(
        done,
        f"restored {done.name}: {files}, {plural(len(done.databases), 'database')}\n"
        f"the state before is checkpoint {done.before}",
    )


@checkpoint.command("diff")
@click.argument("name")
def diff_checkpoint(memory: Memory, name: str) -> Output:
    """Show what changed since a checkpoint.

    \b
    ncm checkpoint diff before-migration
    """
    changes = memory.workspace.compare_checkpoint(name)
    shown = [
        f"{MARKS[change.kind]} {change.path}" + (f"\n{change.diff}" if change.diff else "")
        for change in changes
    ]
    return Output({"changes": changes}, "\n".join(shown), f"Nothing has changed since {name}.")


def _checkpoint_line(checkpoint: Checkpoint, shown: Callable[[str], str]) -> str:
    files, databases = plural(checkpoint.files, "file"), plural(len(checkpoint.databases), "database")
    what = f"{files}, {databases}, {checkpoint.bytes:,} bytes"
    damaged = f"  (damaged: {', '.join(checkpoint.damaged)})" if checkpoint.damaged else ""
    return (
        f"{checkpoint.name:<28} {shown(checkpoint.created_at)}  {what}{damaged}  {checkpoint.reason}".rstrip()
    )
