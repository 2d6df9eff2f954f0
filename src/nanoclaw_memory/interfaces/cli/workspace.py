"""Commands on the Markdown files: init, write, log, boot, get, project, agents, runbook, policy, checkpoint, mirror."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import click

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.interfaces.cli.common import (
    Caller,
    Command,
    Output,
    at_terminal,
    clock_of,
    command,
    fields,
    given_text,
    group,
    listing,
    noted,
)
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.text import nearest_names, plural
from nanoclaw_memory.types import Agent, Checkpoint, LogLine, Mirrored, Policy, Project

_PLUGINS = ("policies", "graph-memory", "recall", "continuity", "stability", "growth-vectors")
# The recommended plugins for each use; what is not named keeps its default.
PROFILES: dict[str, dict[str, str]] = {
    "personal": {"plugins.allow": json.dumps(_PLUGINS)},
    "project": {"plugins.allow": json.dumps(_PLUGINS[:-1])},
    "team": {"plugins.allow": json.dumps(_PLUGINS[:-2])},
    "code": {"plugins.allow": json.dumps(_PLUGINS[:-2]), "cron.ragReindex": ""},
    "minimal": {"plugins.allow": "[]", "cron.ragReindex": ""},
}
MARKS = {"added": "+", "removed": "-", "changed": "~"}


@command("init", cls=Command)
@click.option("--profile", type=click.Choice(list(PROFILES)), help="Set up for one use.")
def init(caller: Caller, profile: str | None) -> None:
    """Create a home, or with --group a group in it; files that exist are kept.

    At a terminal, a new home asks for your name, your time zone and the client to connect; Enter goes on. A profile
    sets which plugins run: personal all of them; project all but lessons; team and code neither lessons nor
    stability; minimal none: files, facts and search. Code and minimal read no domain documents by the clock.

    \b
    ncm init
    ncm init --group family
    ncm init --profile code
    """
    with caller.memory(new=True) as memory:
        result = memory.init()
        for key, value in PROFILES[profile].items() if profile else ():
            memory.admin.config_set(key, value)
        is_new = "nanoclaw.json" in result.created and at_terminal() and not caller.json
        if is_new:
            _ask_who(memory)
    counts = [f"{plural(len(result.created), 'file')} created"] if result.created else []
    counts += [f"{plural(len(result.kept), 'file')} kept"] if result.kept else []
    own = "" if caller.group == "main" else f", group {caller.group}"
    caller.show(Output(result, f"Memory at {result.home}{own} ({', '.join(counts)})"))
    if is_new:
        from nanoclaw_memory.interfaces.cli.agents import install_into

        for number, client in enumerate(_ask_for_clients()):
            install_into(caller, client, models=False if number else None, in_full=False)


def _ask_who(memory: Memory) -> None:
    """Ask for name and time zone, and write them where agents and the clock find them."""
    from nanoclaw_memory.clock import machine_zone

    name = click.prompt("Your name", default="", show_default=False)
    here = machine_zone() or "UTC"
    named = click.prompt("Your time zone", default=here, value_proc=_zone)
    if named != here:
        memory.admin.config_set("user.timezone", named)
    memory.workspace.introduce({"name": name, "timezone": named})


def _zone(typed: str) -> str:
    """Return a time zone for its name or its city; ask again when there is none."""
    from nanoclaw_memory.clock import zone_named

    try:
        return zone_named(typed)
    except InvalidValue as error:
        raise click.UsageError(f"{error.message}; {error.hint}") from None


def _ask_for_clients() -> list[str]:
    """Ask which clients of this machine to connect."""
    from nanoclaw_memory.interfaces.install.survey import survey

    found = [
        client.name for client in survey() if client.here and client.installed == "no" and not client.plugin
    ]
    click.echo(
        f"Clients found here: {', '.join(found)}" if found else "No client that we know was found here."
    )
    chosen: list[str] = click.prompt(
        "Connect which", default=" ".join(found[:1]) or "none", value_proc=_clients
    )
    return chosen


def _clients(typed: str) -> list[str]:
    from nanoclaw_memory.interfaces.install.clients import CLIENTS

    names = [] if typed.strip().lower() in ("none", "no", "n") else typed.replace(",", " ").split()
    for name in names:
        if name not in CLIENTS:
            near = nearest_names(name, CLIENTS)
            raise click.UsageError(f"{name!r} is no client that we know; {', '.join(near) or 'or none'}?")
    return names


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


@group("project")
def project() -> None:
    """What a project's agents must know: shared/project-SLUG.md, or the group's own."""


@project.command("list")
def list_projects(memory: Memory) -> Output:
    """List the projects: their files, the group's own and the shared ones, and what was said in each.

    \b
    ncm project list
    """
    return _projects(memory)


@command("projects")
def projects(memory: Memory) -> Output:
    """List the projects; the same as `project list`.

    \b
    ncm projects
    """
    return _projects(memory)


def _projects(memory: Memory) -> Output:
    found = memory.workspace.projects()
    return Output({"projects": found}, map(_project_line, found), "No projects yet: ncm project new SLUG")


def _project_line(project: Project) -> str:
    page = f"{project.title} ({plural(project.chars, 'character')})" if project.path else "no file yet"
    said = f", {plural(project.exchanges, 'exchange')}, last {project.last[:10]}" if project.exchanges else ""
    return f"{project.slug:<24} {project.path or '-':<40} {page}{said}"


@project.command("new", new=True)
@click.argument("slug")
@click.option("--title", default="", help="The heading; default the slug.")
def new_project(memory: Memory, slug: str, title: str) -> Output:
    """Create a project's file, in the main group for all groups; never overwrites.

    \b
    ncm project new payment-api --title "Payment API"
    """
    made = memory.workspace.new_project(slug, title)
    return Output(made, f"created {made.path}")


@project.command("show")
@click.argument("slug")
def show_project(memory: Memory, slug: str) -> Output:
    """Print a project's memory: the group's own file, then the shared one.

    \b
    ncm project show payment-api
    """
    found = memory.workspace.project(slug)
    files = [fields(lines, "path", "text") for lines in found]
    return Output({"slug": slug, "files": files}, "\n".join(lines.text for lines in found), exact=True)


@project.command("note")
@click.argument("slug")
@click.argument("text")
@click.option("--section", default="Lessons", help="decision, lesson, convention, workflow or risk.")
def note_project(memory: Memory, slug: str, text: str, section: str) -> Output:
    """Add a line to a project's page, which is created if it is missing; TEXT `-` reads standard input.

    \b
    ncm project note payment-api "Deploys need two reviews" --section convention
    """
    done = memory.workspace.note_project(slug, given_text(text), section)
    where = f"{done.path}:{done.line}" if done.line else f"{done.path} says so already"
    where = f"held for review: {done.held}" if done.held else where
    return Output(done, where)


@project.command("share")
@click.argument("slug")
def share_project(memory: Memory, slug: str) -> Output:
    """Let all groups read the main group's own page on a project: it moves to shared/.

    \b
    ncm project share payment-api
    """
    made = memory.workspace.share_project(slug)
    return Output(made, f"all groups read {made.path} now")


@project.command("close")
@click.argument("slug")
@click.option("--since", default="", metavar="DAY", help="The first day of the phase; default 90 days ago.")
def close_phase(memory: Memory, slug: str, since: str) -> Output:
    """Close a phase: propose for the project's page what its log has and the page lacks.

    \b
    ncm project close payment-api --since 2026-02-01
    """
    made = memory.workspace.close_phase(slug, since)
    lines = [f"{proposal.id}  {proposal.payload['section']}: {proposal.payload['text']}" for proposal in made]
    return Output(
        {"proposals": made}, lines, "Nothing new to propose.", noted(["decide: ncm review"] if made else [])
    )


@group("agents")
def agents() -> None:
    """The roster: who works here, in which group, on which projects."""


@agents.command("list")
def list_agents(memory: Memory) -> Output:
    """List the agents.

    \b
    ncm agents list
    """
    return listing("agents", memory.workspace.agents(), _agent_line, "No agents yet: ncm agents add NAME")


def _agent_line(agent: Agent) -> str:
    return f"{agent.name:<16} {agent.role:<24} {agent.group:<16} {', '.join(agent.projects) or '-'}"


@agents.command("add")
@click.argument("name")
@click.option("--role", default="", help="What it does: Project Manager.")
@click.option("--in", "group_name", metavar="GROUP", default="main", help="Its group; default main.")
@click.option("--on", "projects", metavar="SLUG", multiple=True, help="A project it works on; repeat it.")
@click.option(
    "--load", "loads", metavar="FILE", multiple=True, help="A file it reads at its start; default all."
)
def add_agent(
    memory: Memory, name: str, role: str, group_name: str, projects: tuple[str, ...], loads: tuple[str, ...]
) -> Output:
    """Add an agent to the roster, or change the one of that name; its group is created if it is missing.

    \b
    ncm agents add Pete --role "Project Manager" --in pete --on payment-api --load SOUL.md
    """
    made = memory.workspace.put_agent(name, role, group_name, projects, loads)
    return Output(made, _agent_line(made))


@group("runbook")
def runbook() -> None:
    """How-tos of the group: memory/tools-NAME.md."""


@runbook.command("list")
def list_runbooks(memory: Memory) -> Output:
    """List the runbooks.

    \b
    ncm runbook list
    """
    found = memory.workspace.runbooks()
    lines = [f"{one.name:<24} {one.title} ({plural(one.chars, 'character')})" for one in found]
    return Output({"runbooks": found}, lines, "No runbooks yet: write memory/tools-NAME.md")


@runbook.command("show")
@click.argument("name")
def show_runbook(memory: Memory, name: str) -> Output:
    """Print a runbook.

    \b
    ncm runbook show deploy
    """
    lines = memory.workspace.runbook(name)
    return Output(fields(lines, "path", "text"), lines.text, exact=True)


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
