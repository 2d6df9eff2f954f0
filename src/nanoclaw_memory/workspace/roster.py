"""The roster of agents (`agents.json` in the home): name, role, group, projects, and what each reads at its start."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from nanoclaw_memory.errors import FileProblem, InvalidValue
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import MAIN_GROUP, Agent, Scope
from nanoclaw_memory.workspace.files import locked, read_text, replace_text
from nanoclaw_memory.workspace.paths import Home, check_group, check_slug, relative_to_memory

FILE = "agents.json"
MAX_NAME = 100


def agents(home: Home) -> list[Agent]:
    """Return every agent of the roster, in its order; none if there is no roster."""
    try:
        text = read_text(home.root / FILE)
    except FileNotFoundError:
        return []
    try:
        return [_checked(agent) for agent in msgspec.json.decode(text, type=list[Agent])]
    except (msgspec.MsgspecError, InvalidValue) as error:
        raise FileProblem(f"{FILE}: {error}", "correct it by hand, or see: ncm agents --help") from None


def agent_of(home: Home, group: str) -> Agent | None:
    """Return the first agent of a group in the roster; None for a damaged roster."""
    with suppress(FileProblem):  # reported by doctor
        return next((agent for agent in agents(home) if agent.group == group), None)
    return None


def put(home: Home, agent: Agent) -> Agent:
    """Add an agent, or change the one of the same name."""
    checked = _checked(agent)
    with locked(home.root):
        known = agents(home)
        kept = [checked if one.name == checked.name else one for one in known]
        rows = kept if checked in kept else [*known, checked]
        replace_text(home.root / FILE, msgspec.json.format(msgspec.json.encode(rows)).decode() + "\n")
    return checked


def with_project(home: Home, scope: Scope) -> Scope:
    """Add the project of the group's agent to a scope without one, if the agent has exactly one."""
    if scope.project or not (home.root / FILE).exists():
        return scope
    agent = agent_of(home, scope.group)
    only = agent.projects[0] if agent and len(agent.projects) == 1 else ""
    return msgspec.structs.replace(scope, project=only)


def _checked(agent: Agent) -> Agent:
    name, role = one_line(agent.name), one_line(agent.role)
    if not name or len(name) > MAX_NAME or len(role) > MAX_NAME:
        raise InvalidValue(f"an agent's name {name[:40]!r} is refused", f"give 1 to {MAX_NAME} characters")
    return msgspec.structs.replace(
        agent,
        name=name,
        role=role,
        group=check_group(agent.group or MAIN_GROUP),
        projects=tuple(map(check_slug, agent.projects)),
        loads=tuple(map(relative_to_memory, agent.loads)),
    )
