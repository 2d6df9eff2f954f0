"""Host: the operational state of a bot that survives a restart: chats, replies, groups, sessions, tasks."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from msgspec.structs import replace

from nanoclaw_memory.clock import Clock, SystemClock, stamp
from nanoclaw_memory.errors import InvalidValue, NanoClawError, NotFound, StoreError
from nanoclaw_memory.host import directories
from nanoclaw_memory.host.messages import checked_name, checked_time, message_from, trigger_of
from nanoclaw_memory.host.router import OnExchange, Router
from nanoclaw_memory.host.tasks import Tasks
from nanoclaw_memory.intake.intake import Intake
from nanoclaw_memory.settings.load import load
from nanoclaw_memory.store.messages import GroupTable, MessageTable, adopt
from nanoclaw_memory.store.opening import Store
from nanoclaw_memory.store.tasks import TaskTable
from nanoclaw_memory.text import encodable
from nanoclaw_memory.types import (
    MAIN_GROUP,
    AgentPlace,
    Batch,
    Chat,
    ChatGroup,
    Message,
    Reply,
    Scope,
    Task,
    TaskRun,
)
from nanoclaw_memory.workspace.paths import Home, check_group, home_at

MAX_POLL = 1_000
MAX_SESSION = 200
NO_REPLY = "NO_REPLY"  # of an agent that has nothing to say


class Host:
    """The state of one bot in `store/messages.db`; opened on first use, shared by processes and threads."""

    def __init__(
        self,
        home: Home,
        clock: Clock,
        on_exchange: OnExchange | None = None,
        assistant: str = "Agent",
        intake: Callable[[str], Intake] | None = None,
        store: Store | None = None,
    ) -> None:
        self.home = home
        self.clock = clock
        self.assistant = assistant
        self.on_exchange = on_exchange
        self.problems: tuple[str, ...] = ()
        # Durable: a channel forgets what we acknowledged, and people do not forget a second answer.
        store = store or Store(home.root)
        self.database = store.open(store.messages, "messages", adopt, durable=True, counted=True)
        self._messages = MessageTable(self.database)
        self._groups = GroupTable(self.database)
        self._intakes: dict[str, Intake] = {}
        self._open_intake = intake or (lambda group: Intake.at(store, home.data(group)))
        self._router = Router(self._messages, self._groups, clock, assistant, self.intake)
        self._registered: dict[str, ChatGroup] = {}
        self._sessions: dict[str, str] = {}
        self._loaded = threading.local()

    @classmethod
    def open(
        cls,
        home: Path | str | None = None,
        *,
        clock: Clock | None = None,
        on_exchange: OnExchange | None = None,
        assistant: str = "Agent",
        intake: Callable[[str], Intake] | None = None,
        store: Store | None = None,
    ) -> Host:
        """Open a home's host (default `NANOCLAW_HOME` or ~/.nanoclaw) and load its groups and sessions."""
        root = home_at(home)
        store = store or Store(root, load(root).settings.store.url)
        host = cls(Home(root), clock or SystemClock(), on_exchange, assistant, intake, store)
        host._refresh()
        return host

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        self.database.close()
        for intake in self._intakes.values():
            intake.close()

    def intake(self, group: str) -> Intake:
        """Return a group's intake; each group has its own tombstones."""
        if group not in self._intakes:
            self._intakes[group] = self._open_intake(group)
        return self._intakes[group]

    # ---- messages ----

    def store_message(
        self, id: str, chat_jid: str, content: str, timestamp: str | datetime, **details: Any
    ) -> bool:
        """Store a message; return False if this chat has one with the same id, which is kept.

        `details` are sender, sender_name, is_from_me and is_bot_message.
        """
        return self.store_messages([message_from(id, chat_jid, content, timestamp, **details)]) == 1

    def store_messages(self, messages: Iterable[Message]) -> int:
        """Store checked messages in one transaction; return how many were new.

        What a person asked the chat's group to forget is stored as `[forgotten]`.
        """
        self._refresh()
        now = stamp(self.clock.now())
        given = [self._unforgotten(message) for message in messages]
        active: dict[str, str] = {}
        for message in given:
            # A sender's clock that is ahead must not keep a chat at the top for ever.
            known = active.get(message.chat_jid, "")
            active[message.chat_jid] = max(known, min(message.timestamp, now))
        with self.database.transaction():
            for jid, at in active.items():
                self._messages.put_chat(Chat(jid, "", at))
            return sum(self._messages.add(message) for message in given)

    def store_chat_metadata(
        self,
        jid: str,
        timestamp: str | datetime,
        name: str = "",
        channel: str = "",
        is_group: bool | None = None,
    ) -> None:
        """Record a chat's activity without any content."""
        self._refresh()
        at = min(checked_time(timestamp), stamp(self.clock.now()))
        shown = self.intake(self._group_of(jid)).unforgotten(encodable(name)[:512], "chat").text
        with self.database.transaction():
            self._messages.put_chat(Chat(checked_name("chat id", jid), shown, at, channel, is_group))

    def chats(self) -> list[Chat]:
        """Return all chats, the most recently active first."""
        return self._messages.chats()

    def new_messages_since(
        self, cursor: int, chats: Iterable[str] | None = None, limit: int = MAX_POLL
    ) -> tuple[list[Message], int]:
        """Return the messages after `cursor` in order of arrival, and the cursor for the next call; 0 is the start."""
        jids = None if chats is None else list(chats)
        found = self._messages.since(cursor, limit, jids)
        return found, found[-1].arrival if found else cursor

    def history(self, chat_jid: str, limit: int = 50) -> list[Message]:
        """Return the newest messages of a chat, in order, the agent's own included."""
        return self._messages.of_chat(chat_jid, 0, self._messages.last_arrival(), limit)

    # ---- answers ----

    def poll(self) -> list[ChatGroup]:
        """Return the groups that wait for an answer, the longest waiting first."""
        self._refresh()
        self._router.poll(self._registered)
        due = [jid for jid, _, _ in self._messages.due()]
        return [self._registered[jid] for jid in due if jid in self._registered]

    def batch(self, group: ChatGroup) -> Batch | None:
        """Return what a group's chat asks; the same again until it is answered."""
        return self._router.batch(group, self.session_of(group.folder))

    def answer(self, batch: Batch, text: str, session_id: str = "") -> Reply | None:
        """Store the answer, the session and the cursor in one step; return None if it was answered already."""
        if session_id:
            _checked_session(session_id)
        reply = self._router.answer(batch, text, session_id)
        if reply is not None:
            if session_id:
                self._sessions[batch.group.folder] = session_id
            # A memory that is busy or full must not undo an answer; the exchange waits for the next one.
            with suppress(StoreError):
                self.remember()
        return reply

    def say(self, group: ChatGroup, text: str, identity: str) -> Reply:
        """Put a message of the agent's own into the outbox, such as a task's result; once per `identity`."""
        reply = Reply(
            id=checked_name("message id", identity),
            chat_jid=group.jid,
            group=group.folder,
            content=self.intake(group.folder).unforgotten(text, "answer").text,
            session_id="",
            created_at=stamp(self.clock.now()),
        )
        with self.database.transaction():
            self._router.put_reply(reply)
        return reply

    def outbox(self) -> list[Reply]:
        """Return replies that no channel has confirmed yet, oldest first; send each, then call `delivered`."""
        return [reply for reply, _, _ in self._messages.replies("delivered")]

    def delivered(self, reply: Reply) -> bool:
        """Record that a reply has reached its chat."""
        with self.database.transaction():
            return self._messages.mark_reply(reply.id, "delivered", stamp(self.clock.now()))

    def remember(self) -> int:
        """Pass answered exchanges to `on_exchange`; without one they wait for a host that has one."""
        return self._router.remember(self.on_exchange) if self.on_exchange else 0

    # ---- groups ----

    @property
    def groups(self) -> dict[str, ChatGroup]:
        """Return the registered groups by chat."""
        self._refresh()
        return dict(self._registered)

    def group(self, folder: str) -> ChatGroup:
        """Return the registered group of a folder."""
        for group in self.groups.values():
            if group.folder == folder:
                return group
        raise NotFound(
            f"no chat is registered for the group {folder[:80]!r}", "see: nanoclaw-memory groups list"
        )

    def register_group(
        self,
        jid: str,
        name: str,
        folder: str,
        trigger_pattern: str,
        requires_trigger: bool = True,
        container_config: dict[str, Any] | None = None,
    ) -> ChatGroup:
        """Give a chat an agent with its own directory; registering it again changes its row.

        `container_config` is stored for the host that runs the agent; None leaves it unchanged.
        """
        known = self.groups.get(jid)
        added_at = known.added_at if known else stamp(self.clock.now())
        config = container_config if container_config is not None or known is None else known.container_config
        shown = encodable(name)[:512] or folder
        group = ChatGroup(
            jid=jid,
            name=shown,
            folder=folder,
            trigger_pattern=trigger_pattern,
            added_at=added_at,
            requires_trigger=requires_trigger,
            container_config=config,
        )
        directories.check_registration(group, self._registered.values())
        for listed in dict.fromkeys((folder, MAIN_GROUP)):  # the main group stores the names of all
            self.intake(listed).refuse(jid, shown, folder, trigger_pattern)
        directories.create_group(self.home, group, self.clock.now().date())
        with self.database.transaction():
            directories.check_registration(group, self._groups.all())
            self._messages.put_chat(Chat(jid, shown, ""))
            self._groups.put(group)
        self._registered[jid] = group
        return group

    def unregister_group(self, jid: str) -> bool:
        """Remove a chat's agent; its directory, messages and session stay."""
        with self.database.transaction():
            removed = self._groups.remove(jid)
        self._registered.pop(jid, None)
        return removed

    def place(self, folder: str) -> AgentPlace:
        """Prepare where a group's agent runs: directory, HOME with settings, IPC, environment."""
        return self._place(folder, self.session_of(folder), self.groups.values())

    def _place(self, folder: str, session_id: str, registered: Iterable[ChatGroup]) -> AgentPlace:
        for group in registered:
            if group.folder == folder and not self.home.group_root(folder).is_dir():
                directories.create_group(
                    self.home, group, self.clock.now().date()
                )  # known from v1's file only
        config = next((group.container_config for group in registered if group.folder == folder), None)
        return directories.place_of(self.home, folder, session_id, config)

    def drain_ipc(self) -> list[str]:
        """Carry out the agents' requests in their IPC directories; return what was refused and why."""
        from nanoclaw_memory.host.ipc import drain

        return drain(self)

    def scope(self, group: ChatGroup, session_id: str = "") -> Scope:
        """Return the scope of a group's agent in its current or another session; private only in a chat with one
        person.

        The main group's chat is the owner's own, unless the channel says that it is one of several people.
        """
        chat = self._messages.chat(group.jid)
        several = chat.is_group if chat is not None else None
        session_id = session_id or self.session_of(group.folder)
        private = several is False or (several is None and group.folder == MAIN_GROUP)
        return Scope(group.folder, session_id, private=private)

    # ---- sessions ----

    def set_session(self, folder: str, session_id: str) -> None:
        """Set the session that a group's next run resumes."""
        check_group(folder)
        _checked_session(session_id)
        with self.database.transaction():
            self._groups.put_session(folder, session_id)
        self._sessions[folder] = session_id

    def clear_session(self, folder: str) -> bool:
        """Make a group's next run start a new session."""
        with self.database.transaction():
            removed = self._groups.remove_session(folder)
        self._sessions.pop(folder, None)
        return removed

    def session_of(self, folder: str) -> str:
        """Return the session that a group resumes; empty for none."""
        self._refresh()
        return self._sessions.get(folder, "")

    def all_sessions(self) -> dict[str, str]:
        """Return the session of every group that has one."""
        self._refresh()
        return dict(self._sessions)

    # ---- tasks ----

    def tasks(self, actor: str = MAIN_GROUP) -> Tasks:
        """Return the tasks that a group may see and change; the main group sees all."""
        locks = self.database.path.parent / "runs"
        return Tasks(
            TaskTable(self.database),
            self.clock,
            actor,
            locks=locks,
            session_of=self.session_of,
            intake=self.intake,
        )

    def run_commands(self, tasks: Tasks, command: str, timeout: float) -> list[TaskRun]:
        """Run a group's due tasks as commands; if interrupted, it leaves none of them running.

        A task's output goes to its chat.
        """
        from nanoclaw_memory.host.command import command_runner

        stopping = threading.Event()
        registered = list(self.groups.values())
        runner = command_runner(
            command, timeout, lambda folder: self._place(folder, "", registered), stopping
        )
        try:
            runs = tasks.run_due(runner)
        finally:
            stopping.set()
        for run in runs:
            self.say_result(tasks.get(run.task_id), run)
        return runs

    def say_result(self, task: Task, run: TaskRun) -> Reply | None:
        """Put a task's output into its chat's outbox, once; return None for a failure, no output, and no chat."""
        text = run.result.strip()
        chats = [group for group in self.groups.values() if group.folder == task.group]
        group = self.groups.get(task.chat_jid) or next(iter(chats), None)
        if run.status != "success" or group is None or group not in chats or text in ("", NO_REPLY):
            return None
        return self.say(group, text, f"{task.id}-run-{run.id}")

    # ---- inside ----

    def _group_of(self, jid: str) -> str:
        """Return the group of a chat; chats of no group belong to the main one."""
        group = self._registered.get(jid)
        return group.folder if group else MAIN_GROUP

    def _unforgotten(self, message: Message) -> Message:
        group = self._group_of(message.chat_jid)
        admitted = self.intake(group).unforgotten(message.content, "message")
        # A call to the agent stays one, so that somebody learns what is wrong.
        called = re.match(r"\s*@\w+", message.content) if admitted.withheld else None
        content = f"{called[0]} {admitted.text}" if called else admitted.text
        sender = self.intake(group).unforgotten(message.sender_name, "message").text
        if content == message.content and sender == message.sender_name:
            return message
        return replace(message, content=content, sender_name=sender)

    def _refresh(self) -> None:
        """Load the maps at start, and again when another process or thread has written."""
        version = self.database.version()
        if getattr(self._loaded, "version", None) == version:
            return
        self._loaded.version = version
        usable, problems = {}, []
        for group in self._groups.all():
            try:
                check_group(group.folder)
                trigger_of(group.trigger_pattern)
            except NanoClawError as error:
                problems.append(f"{group.jid}: {error.message}; the group is left out")
            else:
                usable[group.jid] = group
        self._registered, self._sessions = usable, self._groups.sessions()
        self.problems = tuple(problems)


def _checked_session(session_id: str) -> str:
    if len(session_id) > MAX_SESSION:
        raise InvalidValue(
            f"a session id of {len(session_id):,} characters is refused", f"use at most {MAX_SESSION}"
        )
    return checked_name("session id", session_id)
