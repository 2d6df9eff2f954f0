"""Endpoints of the files a person edits: log, projects, runbooks, policies, checkpoints."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from nanoclaw_memory.interfaces.http.operations import route
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import (
    Checkpoint,
    Created,
    Lines,
    Policy,
    PolicyHit,
    Project,
    Restored,
    Runbook,
    Written,
)


@route("POST", "/init")
def init(memory: Memory) -> Created:
    """Create the home, or the scope's group in it; never overwrites."""
    return memory.init()


@route("GET", "/log", listed=True)
def log(memory: Memory, day: str | None = None) -> list[Any]:
    """The entries of one day's log; today's without a day."""
    return memory.log(day)[1]


@route("POST", "/log")
def write(
    memory: Memory,
    content: Annotated[str, Field(max_length=100_000)],
    tag: str = "",
    importance: Annotated[float | None, Field(ge=0, le=1)] = None,
) -> Written:
    """Append one line to today's log."""
    return memory.write(content, tag, importance)


@route("GET", "/projects", listed=True)
def projects(memory: Memory) -> list[Project]:
    """The project files this scope may see."""
    return memory.workspace.projects()


@route("POST", "/projects")
def project_new(memory: Memory, slug: str, title: str = "") -> Project:
    """Create a project's file, shared by all groups."""
    return memory.workspace.new_project(slug, title)


@route("GET", "/projects/{slug}")
def project(memory: Memory, slug: str) -> dict[str, Any]:
    """A project's memory: the group's own file, then the shared one."""
    return {"files": memory.workspace.project(slug)}


@route("GET", "/runbooks", listed=True)
def runbooks(memory: Memory) -> list[Runbook]:
    """The how-tos."""
    return memory.workspace.runbooks()


@route("GET", "/runbooks/{name}")
def runbook(memory: Memory, name: str) -> Lines:
    """One runbook's text."""
    return memory.workspace.runbook(name)


@route("GET", "/policies", listed=True)
def policies(memory: Memory) -> list[Policy]:
    """The gating policies, in the file's order."""
    return memory.workspace.policies()


@route("POST", "/policies")
def policy_add(
    memory: Memory, title: str, trigger: str, gate: str, reason: str = "", source: str = ""
) -> Policy:
    """Add a gating policy under the next number."""
    return memory.workspace.add_policy(title, trigger, gate, reason, source)


@route("GET", "/policies/check", listed=True)
def policy_check(memory: Memory, action: str) -> list[PolicyHit]:
    """Which policies a planned action triggers, and by which words."""
    return memory.workspace.check_policies(action)


@route("GET", "/checkpoints", listed=True)
def checkpoints(memory: Memory) -> list[Checkpoint]:
    """The group's checkpoints."""
    return memory.workspace.checkpoints()


@route("POST", "/checkpoints", lasting=True)
def checkpoint(memory: Memory, name: str, reason: str = "") -> Checkpoint:
    """Save the group's files and databases under a name."""
    return memory.workspace.checkpoint(name, reason)


@route("GET", "/checkpoints/{name}/diff", lasting=True, listed=True)
def checkpoint_diff(memory: Memory, name: str) -> list[Any]:
    """What changed since a checkpoint."""
    return memory.workspace.compare_checkpoint(name)


@route("POST", "/checkpoints/{name}/restore", lasting=True)
def checkpoint_restore(memory: Memory, name: str) -> Restored:
    """Bring back a checkpoint, all or nothing; the present state is saved first."""
    return memory.workspace.restore_checkpoint(name)
