"""Endpoints of the host: groups, tasks, conversations."""

from __future__ import annotations

from typing import Any, Literal

from nanoclaw_memory.interfaces.http.operations import route
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Archived, Task, TaskRun, TranscriptFile


@route("GET", "/groups", listed=True)
def groups(memory: Memory) -> list[Any]:
    """The chats that have an agent of their own."""
    return [{"chat": chat, "group": group} for chat, group in memory.host.state.groups.items()]


@route("POST", "/groups")
def register_group(
    memory: Memory, chat: str, name: str, folder: str, trigger: str, requires_trigger: bool = True
) -> Any:
    """Give a chat an agent and a memory of its own."""
    return memory.host.state.register_group(chat, name, folder, trigger, requires_trigger)


@route("GET", "/tasks", listed=True)
def tasks(memory: Memory) -> list[Task]:
    """The scheduled tasks of this group; of all groups for the main one."""
    return memory.host.tasks.all()


@route("POST", "/tasks")
def add_task(
    memory: Memory,
    prompt: str,
    kind: Literal["cron", "interval", "once"],
    value: str,
    group: str = "",
    context_mode: Literal["isolated", "group"] = "isolated",
    chat: str = "",
) -> Task:
    """Schedule a prompt."""
    return memory.host.tasks.add(prompt, kind, value, group, context_mode, chat)


@route("DELETE", "/tasks/{id}")
def remove_task(memory: Memory, id: str) -> Task:
    """Forget a task."""
    return memory.host.tasks.remove(id)


@route("POST", "/tasks/{id}/pause")
def pause_task(memory: Memory, id: str) -> Task:
    """Stop a task until it is resumed."""
    return memory.host.tasks.pause(id)


@route("POST", "/tasks/{id}/resume")
def resume_task(memory: Memory, id: str) -> Task:
    """Let a paused task run again."""
    return memory.host.tasks.resume(id)


@route("GET", "/tasks/{id}/runs", listed=True)
def task_runs(memory: Memory, id: str) -> list[TaskRun]:
    """What a task's runs gave, newest first."""
    return memory.host.tasks.logs(id, 1000)


@route("GET", "/conversations", listed=True)
def archives(memory: Memory) -> list[Archived]:
    """The conversations archived in the workspace."""
    return memory.conversations.archives()


@route("POST", "/conversations", lasting=True)
def archive(memory: Memory, transcript: str) -> dict[str, Any]:
    """Write what is new in a transcript (a file or a session id) to conversations/."""
    return {"archived": memory.conversations.archive(transcript)}


@route("GET", "/transcripts", listed=True)
def transcripts(memory: Memory) -> list[TranscriptFile]:
    """The raw transcripts of this group's agent, newest first."""
    return memory.conversations.transcripts()
