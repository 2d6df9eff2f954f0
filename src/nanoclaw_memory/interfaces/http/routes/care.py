"""Endpoints of health, audit, models and settings."""

from __future__ import annotations

from typing import Any, Literal

from nanoclaw_memory.errors import Refused
from nanoclaw_memory.interfaces.http.operations import route
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import (
    Audit,
    AuditVerdict,
    DatabaseCheck,
    Finding,
    Forgotten,
    HeartbeatItem,
    JobState,
    Proposal,
    Refreshed,
    Status,
)


@route("GET", "/status")
def status(memory: Memory) -> Status:
    """What there is, at a glance."""
    return memory.status()


@route("GET", "/doctor", listed=True, lasting=True)
def doctor(memory: Memory) -> list[Finding]:
    """The check-up: each finding names the command that helps."""
    return memory.doctor()


@route("GET", "/databases", listed=True, lasting=True)
def db_check(memory: Memory, all_groups: bool = False) -> list[DatabaseCheck]:
    """The integrity of every database there is."""
    return memory.admin.check_databases(all_groups)


@route("GET", "/audit", lasting=True)
def audit(
    memory: Memory,
    part: Literal["all", "memory_md", "domains", "system_prompt"] = "all",
    recommend: bool = True,
) -> Audit:
    """What memory costs in tokens, and what would help."""
    return memory.audit(part, recommend)


@route("POST", "/audit/fix", lasting=True)
def audit_fix(memory: Memory, part: Literal["all", "memory_md", "domains", "system_prompt"] = "all") -> Audit:
    """Do the low-risk part of the advice, after a checkpoint."""
    return memory.audit(part, fix=True)


@route("GET", "/audit/log", lasting=True)
def audit_verify(memory: Memory) -> AuditVerdict:
    """Whether the audit log is whole."""
    return memory.entries.verify()


@route("GET", "/review", listed=True, lasting=True)
def review(memory: Memory) -> list[Proposal]:
    """Changes that wait for a person: what makes room first, then the oldest."""
    return memory.upkeep.review()


@route("POST", "/review/{id}", lasting=True)
def review_decide(memory: Memory, id: str, accept: bool, text: str = "") -> Proposal:
    """Accept a proposal, in other words if `text` gives them, or reject it for good."""
    return memory.upkeep.decide(id, accept, text)


@route("GET", "/upkeep", listed=True)
def upkeep_status(memory: Memory) -> list[JobState]:
    """Every job: its schedule, its last run, and whether it is due."""
    return memory.upkeep.status()


@route("POST", "/upkeep", lasting=True)
def upkeep(memory: Memory, job: str = "", dry_run: bool = False, due: bool = False) -> dict[str, Any]:
    """Run all jobs, or one; `due` only those whose time has come; `dry_run` says what they would do."""
    return {"jobs": memory.upkeep.run(job, dry_run, due)}


@route("GET", "/heartbeat", listed=True, lasting=True)
def heartbeat(memory: Memory) -> list[HeartbeatItem]:
    """HEARTBEAT.md's checklist, with the state of what can be known."""
    return memory.upkeep.heartbeat()


@route("POST", "/active-context", lasting=True)
def refresh_active_context(memory: Memory) -> Refreshed:
    """Bring active-context.md up to date with this session and the latest log."""
    return memory.workspace.refresh_active_context()


@route("GET", "/models", listed=True, lasting=True)
def models(memory: Memory, check: bool = False) -> list[dict[str, str]]:
    """The local models and how they stand; with `check` every byte is verified."""
    return memory.admin.models(check)


@route("POST", "/models", lasting=True)
def models_install(memory: Memory, names: list[str] | None = None, every: bool = False) -> dict[str, Any]:
    """Fetch and verify models; does nothing for those that are there."""
    return {"models": memory.admin.install_models(names or (), every)}


@route("GET", "/config", listed=True)
def config_rows(memory: Memory, prefix: str = "") -> list[dict[str, Any]]:
    """Every setting with its value and origin; credentials masked."""
    return memory.admin.config_rows(prefix)


@route("GET", "/config/{key}")
def config_get(memory: Memory, key: str) -> dict[str, Any]:
    """One setting."""
    value, origin = memory.admin.config_get(key)
    return {"key": key, "value": value, "from": origin}


@route("PUT", "/config/{key}")
def config_set(memory: Memory, key: str, value: str) -> dict[str, Any]:
    """Change one setting in the home's file."""
    return {"key": key, "value": memory.admin.config_set(key, value)}


@route("POST", "/forget", lasting=True)
def forget(
    memory: Memory,
    id: str = "",
    entity: str = "",
    session: str = "",
    text: str = "",
    dry_run: bool = False,
    yes: bool = False,
    keep_pages: bool = False,
    checkpoints: bool = False,
) -> Forgotten:
    """Remove something for good, from Markdown pages too unless `keep_pages`; `yes` agrees to what `dry_run` shows."""
    if not dry_run and not yes:
        raise Refused("forgetting cannot be undone; nothing was removed", "look with dry_run, agree with yes")
    return memory.forget(
        id=id,
        entity=entity,
        session=session,
        text=text,
        dry_run=dry_run,
        agreed=lambda shown: not keep_pages,
        checkpoints=checkpoints,
    )


@route("POST", "/forget/allow", lasting=True)
def forget_allow(memory: Memory, text: str) -> dict[str, Any]:
    """Let a forgotten text come back in."""
    return {"lifted": memory.admin.allow_forgotten(text)}


@route("POST", "/forget/check")
def forgets(memory: Memory, text: str) -> dict[str, Any]:
    """Whether a text is, or holds, one that a person asked to forget."""
    return {"forgotten": memory.admin.is_forgotten(text)}
