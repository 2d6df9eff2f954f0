"""Home and health, forgetting with its plan, groups and tasks, settings with their origin, and the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.interfaces.web.screen import Moved, Screen, Shown, WebRequest
from nanoclaw_memory.types import MAIN_GROUP

if TYPE_CHECKING:
    from nanoclaw_memory.memory import Memory

SECRET = "[set]"  # noqa: S105 - what stands for a credential
WHAT = ("text", "entity", "session", "id")


# ---- home ----


def home(memory: Memory, asked: WebRequest) -> Shown:
    """Show the overview and open proposals."""
    waiting = memory.upkeep.review()
    return Shown(
        "home.html",
        {
            "status": memory.status(),
            "counts": memory.counts(),
            "waiting": len(waiting),
            "held": sum(one.kind == "held" for one in waiting),
            "conflicts": sum(bool(one.payload.get("replaces")) for one in waiting),
            "injected": memory.conversations.injections(limit=8),
            "jobs": [job for job in memory.upkeep.status() if job.due or job.error],
        },
    )


def health(memory: Memory, asked: WebRequest) -> Shown:
    """Show the check-up."""
    return Shown("health.html", {"findings": memory.doctor()})


def run_upkeep(memory: Memory, asked: WebRequest) -> Moved:
    """Run the jobs that are due."""
    memory.upkeep.run(due=True)
    return Moved("/", "upkeep")


def write(memory: Memory, asked: WebRequest) -> Moved:
    """Append a line to today's log."""
    memory.write(asked.text("text"), asked.text("tag"))
    return Moved("/", "written")


# ---- forget ----


def forget_form(memory: Memory, asked: WebRequest) -> Shown:
    """Show the form for forgetting."""
    return Shown(
        "forget.html", {"what": asked.text("what") or "text", "name": asked.text("name"), "plan": None}
    )


def forget(memory: Memory, asked: WebRequest) -> Shown:
    """Show the plan, store by store and page by page; carry it out only after it was shown and agreed to."""
    what, name = asked.text("what"), asked.text("name")
    if what not in WHAT or not name:
        raise InvalidValue("nothing is named", "give a text, an entity, a session or an id")
    agreed = asked.text("agreed") == "1"
    keep_pages = asked.text("keep_pages") == "1"
    asked_for = {what: name}
    plan = memory.forget(**asked_for, dry_run=not agreed, agreed=lambda pages: not keep_pages)  # type: ignore[arg-type]
    return Shown("forget.html", {"what": what, "name": name, "plan": plan, "agreed": agreed})


# ---- groups and tasks ----


def groups(memory: Memory, asked: WebRequest) -> Shown:
    """Show the groups of the home, the chats that have an agent, and the scheduled tasks."""
    administers = memory.scope.group == MAIN_GROUP
    values: dict[str, Any] = {
        "administers": administers,
        "groups": memory.home.groups() if administers else [memory.scope.group],
        "chats": list(memory.host.state.groups.values()) if administers else [],
        "tasks": memory.host.tasks.all(),
        "runs": memory.host.tasks.logs(asked.text("task")) if asked.text("task") else None,
        "task": asked.text("task"),
    }
    return Shown("groups.html", values)


def add_task(memory: Memory, asked: WebRequest) -> Moved:
    """Schedule a task of this group."""
    memory.host.tasks.add(asked.text("prompt"), asked.text("kind"), asked.text("value"))
    return Moved("/groups", "saved")


def change_task(memory: Memory, asked: WebRequest) -> Moved:
    """Pause, resume or remove a task."""
    tasks = memory.host.tasks
    acts = {"pause": tasks.pause, "resume": tasks.resume, "remove": tasks.remove}
    asked.act(acts)(asked.text("id"))
    return Moved("/groups", "changed")


# ---- settings and audit ----


def settings(memory: Memory, asked: WebRequest) -> Shown:
    """Show every setting whose key or description contains the words, with its value and origin."""
    words = asked.text("q").casefold()
    rows = [row for row in memory.admin.config_rows() if words in f"{row['key']} {row['about']}".casefold()]
    return Shown("settings.html", {**asked.slice(rows), "query": asked.text("q")})


def change_setting(memory: Memory, asked: WebRequest) -> Moved:
    """Change one setting."""
    if asked.text("value") != SECRET:  # a credential is never shown, so it cannot have been edited
        memory.admin.config_set(asked.text("key"), asked.text("value"))
    return Moved("/settings", "saved")


def audit(memory: Memory, asked: WebRequest) -> Shown:
    """Show the last changes of entries."""
    return Shown("audit.html", {**asked.slice(memory.entries.audit_records(1000)), "verdict": None})


def verify(memory: Memory, asked: WebRequest) -> Shown:
    """Show the same, and whether the log is intact."""
    shown = audit(memory, asked)
    return Shown(shown.template, {**shown.values, "verdict": memory.entries.verify()})


SCREENS = (
    Screen("GET", "/", home),
    Screen("POST", "/write", write),
    Screen("GET", "/health", health, lasting=True),
    Screen("POST", "/upkeep", run_upkeep, lasting=True),
    Screen("GET", "/forget", forget_form),
    Screen("POST", "/forget", forget, lasting=True),
    Screen("GET", "/groups", groups),
    Screen("POST", "/groups", add_task),
    Screen("POST", "/tasks/{id}", change_task),
    Screen("GET", "/settings", settings),
    Screen("POST", "/settings", change_setting),
    Screen("GET", "/audit", audit),
    Screen("GET", "/audit/check", verify, lasting=True),
)
