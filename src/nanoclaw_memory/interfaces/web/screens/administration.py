"""Home and health, forgetting with its plan, groups and tasks, settings with their origin, and the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.interfaces.web.screen import Redirection, RenderedScreen, Screen, WebRequest
from nanoclaw_memory.types import MAIN_GROUP

if TYPE_CHECKING:
    from nanoclaw_memory.memory import Memory

SECRET = "[set]"  # noqa: S105 - what stands for a credential
WHAT = ("text", "entity", "session", "id")


# ---- home ----


def home(memory: Memory, request: WebRequest) -> RenderedScreen:
    """Show the overview and open proposals."""
    waiting = memory.upkeep.review()
    return RenderedScreen(
        "home.html",
        {
            "status": memory.status(),
            "counts": memory.counts(),
            "waiting": len(waiting),
            "held": sum(proposal.kind == "held" for proposal in waiting),
            "conflicts": sum(bool(proposal.payload.get("replaces")) for proposal in waiting),
            "injected": memory.conversations.injections(limit=8),
            "jobs": [job for job in memory.upkeep.status() if job.due or job.error],
        },
    )


def health(memory: Memory, request: WebRequest) -> RenderedScreen:
    """Show the check-up."""
    return RenderedScreen("health.html", {"findings": memory.doctor()})


def run_upkeep(memory: Memory, request: WebRequest) -> Redirection:
    """Run the jobs that are due."""
    memory.upkeep.run(due=True)
    return Redirection("/", "upkeep")


def write(memory: Memory, request: WebRequest) -> Redirection:
    """Append a line to today's log."""
    memory.write(request.text("text"), request.text("tag"))
    return Redirection("/", "written")


# ---- forget ----


def forget_form(memory: Memory, request: WebRequest) -> RenderedScreen:
    """Show the form for forgetting."""
    return RenderedScreen(
        "forget.html", {"what": request.text("what") or "text", "name": request.text("name"), "plan": None}
    )


def forget(memory: Memory, request: WebRequest) -> RenderedScreen:
    """Show the plan, store by store and page by page; carry it out only after it was shown and agreed to."""
    what, name = request.text("what"), request.text("name")
    if what not in WHAT or not name:
        raise InvalidValue("nothing is named", "give a text, an entity, a session or an id")
    agreed = request.text("agreed") == "1"
    keep_pages = request.text("keep_pages") == "1"
    asked_for = {what: name}
    plan = memory.forget(**asked_for, dry_run=not agreed, agreed=lambda pages: not keep_pages)  # type: ignore[arg-type]
    return RenderedScreen("forget.html", {"what": what, "name": name, "plan": plan, "agreed": agreed})


# ---- groups and tasks ----


def groups(memory: Memory, request: WebRequest) -> RenderedScreen:
    """Show the groups of the home, the chats that have an agent, and the scheduled tasks."""
    administers = memory.scope.group == MAIN_GROUP
    values: dict[str, Any] = {
        "administers": administers,
        "groups": memory.home.groups() if administers else [memory.scope.group],
        "chats": list(memory.host.state.groups.values()) if administers else [],
        "tasks": memory.host.tasks.all(),
        "runs": memory.host.tasks.logs(request.text("task")) if request.text("task") else None,
        "task": request.text("task"),
    }
    return RenderedScreen("groups.html", values)


def add_task(memory: Memory, request: WebRequest) -> Redirection:
    """Schedule a task of this group."""
    memory.host.tasks.add(request.text("prompt"), request.text("kind"), request.text("value"))
    return Redirection("/groups", "saved")


def change_task(memory: Memory, request: WebRequest) -> Redirection:
    """Pause, resume or remove a task."""
    tasks = memory.host.tasks
    acts = {"pause": tasks.pause, "resume": tasks.resume, "remove": tasks.remove}
    request.act(acts)(request.text("id"))
    return Redirection("/groups", "changed")


# ---- settings and audit ----


def settings(memory: Memory, request: WebRequest) -> RenderedScreen:
    """Show every setting whose key or description contains the words, with its value and origin."""
    words = request.text("q").casefold()
    rows = [row for row in memory.admin.config_rows() if words in f"{row['key']} {row['about']}".casefold()]
    return RenderedScreen("settings.html", {**request.slice(rows), "query": request.text("q")})


def change_setting(memory: Memory, request: WebRequest) -> Redirection:
    """Change one setting."""
    if request.text("value") != SECRET:  # a credential is never shown, so it cannot have been edited
        memory.admin.config_set(request.text("key"), request.text("value"))
    return Redirection("/settings", "saved")


def audit(memory: Memory, request: WebRequest) -> RenderedScreen:
    """Show the last changes of entries."""
    return RenderedScreen(
        "audit.html", {**request.slice(memory.entries.audit_records(1000)), "verdict": None}
    )


def verify(memory: Memory, request: WebRequest) -> RenderedScreen:
    """Show the same, and whether the log is intact."""
    shown = audit(memory, request)
    return RenderedScreen(shown.template, {**shown.values, "verdict": memory.entries.verify()})


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
