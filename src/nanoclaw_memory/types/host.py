"""Types of the host: chats, messages, groups, tasks, transcripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec


class Chat(msgspec.Struct, frozen=True):
    """A conversation on some channel, as the host knows it; `is_group` is None while unknown."""

    jid: str
    name: str
    last_message_time: str
    channel: str = ""
    is_group: bool | None = None


class Message(msgspec.Struct, frozen=True):
    """One chat message; `arrival` is its number in the order of storing, to which cursors refer."""

    id: str
    chat_jid: str
    sender: str
    sender_name: str
    content: str
    timestamp: str
    is_from_me: bool = False
    is_bot_message: bool = False
    arrival: int = 0


class ChatGroup(msgspec.Struct, frozen=True):
    """A chat that has an agent: the name of its directory and the trigger that calls the agent."""

    jid: str
    name: str
    folder: str
    trigger_pattern: str
    added_at: str
    requires_trigger: bool = True
    container_config: dict[str, Any] | None = None  # for the host that runs its agent: mounts, time limit, …


class Batch(msgspec.Struct, frozen=True):
    """The messages that an agent has to answer, and those before them since the last answer."""

    group: ChatGroup
    messages: tuple[Message, ...]
    context: tuple[Message, ...] = ()
    earlier: int = 0  # context messages left out because there are too many
    session_id: str = ""


class Reply(msgspec.Struct, frozen=True):
    """An answer to a chat that may not be delivered yet; the id stays the same however often it is sent."""

    id: str
    chat_jid: str
    group: str
    content: str
    session_id: str
    created_at: str


class AgentPlace(msgspec.Struct, frozen=True):
    """Where a group's agent runs: its working directory, its HOME, its IPC directory and its environment."""

    group: str
    directory: Path
    agent_home: Path
    ipc: Path
    environment: dict[str, str]
    shared: Path  # a directory that it may also read, with CLAUDE.md for all groups
    container_config: dict[str, Any] | None = None


class Task(msgspec.Struct, frozen=True):
    """A scheduled task of a group."""

    id: str
    group: str
    chat_jid: str
    prompt: str
    schedule_type: str  # cron, interval, once
    schedule_value: str
    context_mode: str  # group, isolated
    next_run: str
    last_run: str = ""
    last_result: str = ""
    status: str = "active"  # or paused, completed
    created_at: str = ""


class TaskRun(msgspec.Struct, frozen=True):
    """One run of a task."""

    id: int
    task_id: str
    run_at: str
    duration_ms: int
    status: str  # running, success, error, interrupted
    result: str = ""
    error: str = ""


class Utterance(msgspec.Struct, frozen=True):
    """One turn of a transcript: speaker, text, and time if known."""

    speaker: str  # User, Agent
    text: str
    at: str = ""


class Transcript(msgspec.Struct, frozen=True):
    """A conversation read from a client's own file."""

    session_id: str
    source: str  # claude-code, codex, messages, exchanges
    said: tuple[Utterance, ...]
    title: str = ""


class TranscriptFile(msgspec.Struct, frozen=True):
    """A raw transcript under a group's session directory."""

    path: str
    session_id: str
    source: str
    bytes: int
    modified_at: str


class Archived(msgspec.Struct, frozen=True):
    """A conversation in the workspace as Markdown."""

    path: str
    title: str
    date: str
    session_id: str
    turns: int
    redacted: int = 0
