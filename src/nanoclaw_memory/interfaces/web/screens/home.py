"""Home: what there is, what waits, what was injected lately, and how memory is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nanoclaw_memory.interfaces.web.screen import Moved, Screen, Shown, WebRequest

if TYPE_CHECKING:
    from nanoclaw_memory.memory import Memory


def show(memory: Memory, asked: WebRequest) -> Shown:
    """What there is and what waits."""
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
    """The check-up."""
    return Shown("health.html", {"findings": memory.doctor()})


def run_upkeep(memory: Memory, asked: WebRequest) -> Moved:
    """Run the jobs that are due."""
    memory.upkeep.run(due=True)
    return Moved("/", "upkeep")


def write(memory: Memory, asked: WebRequest) -> Moved:
    """Append a line to today's log."""
    memory.write(asked.text("text"), asked.text("tag"))
    return Moved("/", "written")


SCREENS = (
    Screen("GET", "/", show),
    Screen("POST", "/write", write),
    Screen("GET", "/health", health, lasting=True),
    Screen("POST", "/upkeep", run_upkeep, lasting=True),
)
