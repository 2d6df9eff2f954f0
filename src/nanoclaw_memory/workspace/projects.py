"""Project memory: what a project's agents must know, in `project-SLUG.md` of the group or shared by all."""

from __future__ import annotations

import re
from collections.abc import Iterable

from nanoclaw_memory.errors import InvalidValue, NotFound
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import Project, Scope
from nanoclaw_memory.workspace.files import create_text
from nanoclaw_memory.workspace.pages import first_heading, pages
from nanoclaw_memory.workspace.paths import Home, check_slug

MAX_TITLE = 200
_PROJECT = re.compile(r"(?:memory|shared)/project-([a-z0-9][a-z0-9._-]{0,63})\.md\Z")
STARTER = """# {title}

What every agent on this project must know. Not for the state of the sprint (the task tracker has it), daily
notes (they go to the log) or anything personal (MEMORY.md).

## Architecture decisions
<!-- What was chosen, over what, and why. -->

## Lessons
<!-- What went wrong, and what prevents it next time. -->

## Conventions
<!-- Habits that emerged: names, branches, reviews, releases. -->

## Risks
<!-- What may still break, and who watches it. -->
"""


def projects(home: Home, scope: Scope, shared_files: Iterable[str]) -> list[Project]:
    """Every project file this scope may see: by slug, the group's own before the shared one."""
    found = [
        Project(match[1], page.path, page.title or match[1], page.chars)
        for page in pages(home, scope, shared_files, _PROJECT)
        if (match := _PROJECT.match(page.path))
    ]
    return sorted(found, key=lambda project: (project.slug, project.path))


def new_project(home: Home, slug: str, title: str = "") -> Project:
    """Create a project's file, shared by all groups; never overwrites."""
    check_slug(slug)
    plain = one_line(title) or slug
    if len(plain) > MAX_TITLE:
        raise InvalidValue(f"the title has {len(plain):,} characters, over {MAX_TITLE}", "say it shorter")
    text = STARTER.format(title=plain)
    path = home.shared / f"project-{slug}.md"
    if not create_text(path, text):
        raise InvalidValue(
            f"there is a project {slug!r} already", f"read it: nanoclaw-memory project show {slug}"
        )
    return Project(slug, f"shared/{path.name}", first_heading(text), len(text))


def project_files(home: Home, scope: Scope, shared_files: Iterable[str], slug: str) -> list[Project]:
    """The files of one project, its own first; an error when there is none."""
    check_slug(slug)
    found = [project for project in projects(home, scope, shared_files) if project.slug == slug]
    if not found:
        raise NotFound(f"there is no project {slug!r}", f"create it: nanoclaw-memory project new {slug}")
    return found
