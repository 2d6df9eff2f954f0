"""Route messages to answers: who asks, which messages belong to it, and a cursor that moves only with the answer.

Messages are numbered as they are stored (`arrival`); cursors count in these numbers, so equal, late or wrong
timestamps neither hide nor repeat a message. Three steps, each one transaction:

1. `poll` reads what arrived since the last poll, records the chats that ask, and moves the reading cursor.
2. `batch` only reads: called again after a crash it returns the same messages.
3. `answer` stores the reply, the session and the chat's cursor together, or nothing when another process was
   faster. The reply then stays in the outbox until its delivery is confirmed, under an id that never changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress

from nanoclaw_memory.clock import Clock, stamp
from nanoclaw_memory.errors import Refused
from nanoclaw_memory.host.messages import message_from, trigger_of
from nanoclaw_memory.intake.intake import Intake
from nanoclaw_memory.store.messages import GroupTable, MessageTable, user_messages
from nanoclaw_memory.types import Batch, ChatGroup, Message, Reply

READ_LIMIT = 500
BATCH_LIMIT = 200
CONTEXT_LIMIT = 50

# group folder, session id, user message, agent response, time
OnExchange = Callable[[str, str, str, str, str], None]


class Router:
    """Read for all registered groups; each chat has its own cursor."""

    def __init__(
        self,
        messages: MessageTable,
        groups: GroupTable,
        clock: Clock,
        assistant: str,
        intake: Callable[[str], Intake],
    ) -> None:
        self.messages = messages
        self.groups = groups
        self.clock = clock
        self.assistant = assistant
        self.intake = intake

    # ---- polling ----

    def poll(self, registered: Mapping[str, ChatGroup]) -> None:
        """Read everything that has arrived and record the chats that ask for an answer."""
        while self._poll_once(registered):
            pass

    def _poll_once(self, registered: Mapping[str, ChatGroup]) -> bool:
        seen = int(self.messages.state("last_arrival") or 0)
        if self.messages.last_arrival() <= seen:
            return False
        arrived = self.messages.since(seen, READ_LIMIT)
        if not arrived:
            return False
        asking = _asking(arrived, registered)
        with self.messages.db.transaction():
            # Patterns were tried outside the transaction; if another process has read meanwhile, check again.
            if int(self.messages.state("last_arrival") or 0) != seen:
                return True
            for jid, (first, last) in asking.items():
                self.messages.ask(jid, first, last)
            self.messages.put_state("last_arrival", str(arrived[-1].arrival))
            self._note_time("last_timestamp", arrived)
        return True

    def _note_time(self, key: str, arrived: list[Message]) -> None:
        """Update v1's cursor beside ours; a clock that is ahead must not push it into the future."""
        now = stamp(self.clock.now())
        latest = max((message.timestamp for message in arrived if message.timestamp <= now), default="")
        if latest > self.messages.state(key):
            self.messages.put_state(key, latest)

    # ---- batches ----

    def batch(self, group: ChatGroup, session_id: str) -> Batch | None:
        """Return what a chat waits to have answered, oldest first; None if nothing."""
        due = self.messages.due_of(group.jid)
        if due is None:
            return None
        first, last = due
        asking = self.messages.of_people(group.jid, first, last, BATCH_LIMIT)
        if not asking:  # deleted since they were read
            self._settle(group.jid, first, last)
            return None
        since = self.messages.answered(group.jid) + 1
        context = self.messages.of_chat(group.jid, since, first - 1, CONTEXT_LIMIT)
        earlier = self.messages.count(group.jid, since, first - 1) - len(context)
        return Batch(group, tuple(asking), tuple(context), earlier, session_id)

    def _settle(self, jid: str, first: int, last: int) -> None:
        with self.messages.db.transaction():
            self.messages.settle(jid, first, last)

    # ---- answers ----

    def answer(self, batch: Batch, text: str, session_id: str) -> Reply | None:
        """Store the answer and move the cursor in one step; return None if it was answered already."""
        jid, last = batch.group.jid, batch.messages[-1].arrival
        first = batch.messages[0].arrival
        now = stamp(self.clock.now())
        text = self.intake(batch.group.folder).unforgotten(text, "answer").text
        reply = Reply(
            id=f"reply-{last}",
            chat_jid=jid,
            group=batch.group.folder,
            content=text,
            session_id=session_id,
            created_at=now,
        )
        with self.messages.db.transaction():
            if not self.messages.settle(jid, first, last):
                return None
            if session_id:
                self.groups.put_session(batch.group.folder, session_id)
            self._note_agent_time(jid, batch)
            if text.strip():  # an agent may have nothing to say
                self.put_reply(reply, (first, last))
        return reply

    def put_reply(self, reply: Reply, arrivals: tuple[int, int] | None = None) -> None:
        """Store a reply in its chat and in the outbox, within the caller's transaction."""
        message = message_from(
            reply.id,
            reply.chat_jid,
            reply.content,
            reply.created_at,
            sender=self.assistant,
            sender_name=self.assistant,
            is_from_me=True,
            is_bot_message=True,
        )
        self.messages.add(message)
        self.messages.add_reply(reply, arrivals)

    def _note_agent_time(self, jid: str, batch: Batch) -> None:
        known = self.messages.state("last_agent_timestamp")
        try:
            times = json.loads(known or "{}")
        except ValueError:
            times = {}
        now = stamp(self.clock.now())
        latest = max((m.timestamp for m in batch.messages if m.timestamp <= now), default="")
        if isinstance(times, dict) and latest > str(times.get(jid, "")):
            self.messages.put_state("last_agent_timestamp", json.dumps({**times, jid: latest}))

    # ---- after the answer ----

    def remember(self, on_exchange: OnExchange) -> int:
        """Pass every answered exchange to the memory of its group, in order; return how many."""
        waiting = self.messages.replies("remembered")
        for reply, first, last in waiting:
            asking = self.messages.of_people(reply.chat_jid, first, last, BATCH_LIMIT)
            spoken = "\n".join(_spoken(message) for message in asking)
            # What memory refuses today it refuses tomorrow; it must not block what comes after it.
            with suppress(Refused):
                on_exchange(reply.group, reply.session_id, spoken, reply.content, reply.created_at)
            with self.messages.db.transaction():
                self.messages.mark_reply(reply.id, "remembered", stamp(self.clock.now()))
        return len(waiting)


def _asking(arrived: list[Message], registered: Mapping[str, ChatGroup]) -> dict[str, tuple[int, int]]:
    """Return, per chat, the first and last message that calls its agent."""
    found: dict[str, tuple[int, int]] = {}
    for message in user_messages(arrived):
        group = registered.get(message.chat_jid)
        if group is None:
            continue
        if not group.requires_trigger or trigger_of(group.trigger_pattern)(message.content):
            first, _ = found.get(group.jid, (message.arrival, 0))
            found[group.jid] = (first, message.arrival)
    return found


def _spoken(message: Message) -> str:
    return f"{message.sender_name}: {message.content}" if message.sender_name else message.content
