"""Commands on project memory: list, new, show."""

from __future__ import annotations

import click

from nanoclaw_memory.interfaces.cli.common import Caller, group, pass_caller
from nanoclaw_memory.text import plural


@group("project")
def project() -> None:
    """What a project's agents must know: shared/project-SLUG.md, or the group's own."""


@project.command("list")
@pass_caller
def list_(caller: Caller) -> None:
    """List the projects, the group's own and the shared ones.

    \b
    ncm project list
    """
    with caller.memory() as memory:
        found = memory.workspace.projects()
    lines = [f"{one.slug:<24} {one.path:<40} {one.title} ({plural(one.chars, 'character')})" for one in found]
    caller.show({"projects": found}, "\n".join(lines) or "No projects yet: ncm project new SLUG")


@project.command("new")
@click.argument("slug")
@click.option("--title", default="", help="The heading; default the slug.")
@pass_caller
def new(caller: Caller, slug: str, title: str) -> None:
    """Create a project's file, shared by all groups; never overwrites.

    \b
    ncm project new payment-api --title "Payment API"
    """
    with caller.memory(new=True) as memory:
        made = memory.workspace.new_project(slug, title)
    caller.show(made, f"created {made.path}")


@project.command("show")
@click.argument("slug")
@pass_caller
def show(caller: Caller, slug: str) -> None:
    """Print a project's memory: the group's own file, then the shared one.

    \b
    ncm project show payment-api
    """
    with caller.memory() as memory:
        found = memory.workspace.project(slug)
    files = [{"path": lines.path, "text": lines.text} for lines in found]
    caller.show({"slug": slug, "files": files}, "\n".join(lines.text for lines in found))
