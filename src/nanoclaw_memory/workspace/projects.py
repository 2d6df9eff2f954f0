"""Project files (`project-SLUG.md`, of a group or shared by all) and runbooks (`memory/tools-NAME.md`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from nanoclaw_memory.errors import FileProblem, InvalidValue, NotFound
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import MAIN_GROUP, Project, Runbook, Scope
from nanoclaw_memory.workspace.files import create_text, read_text
from nanoclaw_memory.workspace.paths import Home, check_slug, memory_files, project_in_path, within
from nanoclaw_memory.workspace.roster import agent_of

MAX_TITLE = 200
_RUNBOOK = regex(r"memory/tools-([^/]{1,200})\.md\Z")
_HEADING = regex(r"^#{1,6}[ \t]+(\S.*?)[ \t]*#*[ \t]*\r?$", re.M)
STARTER = """# {title}

What every agent on this project must know. Not for the state of the sprint (the task tracker has it), daily
notes (they go to the log) or anything personal (MEMORY.md).

## Architecture decisions
<!-- What was chosen, over what, and why. -->

## Lessons
<!-- What went wrong, and what prevents it next time. -->

## Conventions
<!-- Habits that emerged: names, branches, reviews, releases. -->

## Workflow
<!-- How work moves here: its states, who tests, what is decided before it is built. -->

## Risks
<!-- What may still break, and who watches it. -->
"""
SECTIONS = ("Architecture decisions", "Lessons", "Conventions", "Workflow", "Risks")


def projects(home: Home, scope: Scope, shared_files: Iterable[str]) -> list[Project]:
    """Return every project file this scope may see: by slug, the group's own before the shared one."""
    found = [Project(*page) for page in _pages(home, scope, shared_files, _memory_of)]
    return sorted(found, key=lambda project: (project.slug, project.path))


def new_project(home: Home, group: str, slug: str, title: str = "") -> Project:
    """Create a project's file, shared by all if the group keeps the shared page; never overwrites."""
    check_slug(slug)
    plain = one_line(title) or slug
    if len(plain) > MAX_TITLE:
        raise InvalidValue(f"the title has {len(plain):,} characters, over {MAX_TITLE}", "say it shorter")
    text = STARTER.format(title=plain)
    folder = home.shared if keeps_shared_page(home, group, slug) else home.workspace(group) / "memory"
    path = folder / f"project-{slug}.md"
    if not create_text(path, text):
        raise InvalidValue(
            f"there is a project {slug!r} already", f"read it: nanoclaw-memory project show {slug}"
        )
    return Project(slug, f"{folder.name}/{path.name}", first_heading(text), len(text))


def page_to_write(home: Home, group: str, slug: str) -> str:
    """Return the page for a group's notes on a project: its own if it has one, else the shared page that it keeps."""
    check_slug(slug)
    own = f"memory/project-{slug}.md"
    shared = keeps_shared_page(home, group, slug) and not (home.workspace(group) / own).exists()
    return f"shared/project-{slug}.md" if shared else own


def keeps_shared_page(home: Home, group: str, slug: str) -> bool:
    """Return whether a group writes a project's shared page: the main group and its roster's agents."""
    agent = agent_of(home, group) if group != MAIN_GROUP else None
    return group == MAIN_GROUP or bool(agent and slug in agent.projects)


def share_project(home: Home, group: str, slug: str) -> Project:
    """Move a group's own page of a project to where all groups read it; refuse to overwrite."""
    source = home.workspace(group) / "memory" / f"project-{check_slug(slug)}.md"
    target = home.shared / source.name
    try:
        text = read_text(within(source, home.workspace(group)))
    except FileNotFoundError:
        hint = (
            f"it is shared already: {target.name}" if target.exists() else "see: nanoclaw-memory project list"
        )
        raise NotFound(f"{group} has no page of its own on {slug!r}", hint) from None
    if not create_text(target, text):
        raise InvalidValue(
            f"there is a shared page on {slug!r} already",
            f"bring {source.name} into it by hand; nothing was changed",
        )
    source.unlink()
    return Project(slug, f"shared/{target.name}", first_heading(text), len(text))


def project_files(home: Home, scope: Scope, shared_files: Iterable[str], slug: str) -> list[Project]:
    """Return the files of one project, its own first; raise an error if there is none."""
    check_slug(slug)
    found = [project for project in projects(home, scope, shared_files) if project.slug == slug]
    if not found:
        raise NotFound(f"there is no project {slug!r}", f"create it: nanoclaw-memory project new {slug}")
    return found


def runbooks(home: Home, scope: Scope, shared_files: Iterable[str]) -> list[Runbook]:
    """Return every runbook this scope may see, by name."""
    found = [Runbook(*page) for page in _pages(home, scope, shared_files, _runbook_in_path)]
    return sorted(found, key=lambda runbook: runbook.name)


def runbook(home: Home, scope: Scope, shared_files: Iterable[str], name: str) -> Runbook:
    """Return one runbook by its name, or by its file's (`deploy`, `tools-deploy`, `memory/tools-deploy.md`)."""
    wanted = name.removeprefix("memory/").removeprefix("tools-").removesuffix(".md")
    known = runbooks(home, scope, shared_files)
    for found in known:
        if found.name == wanted:
            return found
    names = ", ".join(found.name for found in known)
    raise NotFound(
        f"there is no runbook {name[:80]!r}",
        f"there are: {names}" if names else "write one as memory/tools-NAME.md",
    )


def _pages(
    home: Home, scope: Scope, shared_files: Iterable[str], named: Callable[[str], str]
) -> Iterator[tuple[str, str, str, int]]:
    """Yield name, path, title and size of matching pages; an unreadable one has the problem as title."""
    for relative, path in memory_files(home, scope, shared_files):
        name = named(relative)
        if not name:
            continue
        try:
            text = read_text(path)
        except FileProblem as problem:
            yield name, relative, f"[{problem.message}]", 0
        else:
            yield name, relative, first_heading(text) or name, len(text)


def _memory_of(relative: str) -> str:
    return project_in_path(relative) if "/project-" in relative else ""


def _runbook_in_path(relative: str) -> str:
    match = _RUNBOOK.match(relative)
    return match[1] if match else ""


def first_heading(text: str) -> str:
    """Return the text of the first heading, or an empty text."""
    match = _HEADING.search(text)
    return one_line(match[1]) if match else ""
