"""Commands on projects and those who work on them: project, projects, agents, runbook."""

from __future__ import annotations

import click

from nanoclaw_memory.interfaces.cli.common import Output, command, fields, given_text, group, listing, noted
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.text import plural
from nanoclaw_memory.types import Agent, Project


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
