"""A host: chats in, an agent process for every group, answers out, and nothing lost when it is killed.

    python examples/host/host.py --home /tmp/bot --group family=1203630@g.us --group work=work@slack < messages.jsonl
    python examples/host/host.py --home /tmp/bot --group me=local --agent "claude -p {prompt} --output-format json"

A channel is a pair of JSON lines: what people write comes on standard input,
{"chat": "work@slack", "sender": "Ann", "text": "@Andy when is the launch?"}, with "id" and "at" where the channel has
them; what agents say goes to standard output, {"chat": "work@slack", "text": "…"}. Put your WhatsApp, Slack or
Telegram library at its two ends. A line {"wait": 2} waits, for scripts.

The agent is a command, started in the group's own directory with the group's HOME, IPC directory and session; it
prints its answer, or JSON with "result" and "session_id" as `claude -p --output-format json` does. Without --agent it
is claude_agent.py where the Claude Agent SDK is installed, else plain_agent.py, which needs no model.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import queue
import shlex
import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from nanoclaw_memory import Host, Memory, NanoClawError
from nanoclaw_memory.types import Batch, ChatGroup, Task

HERE = Path(__file__).parent
LONG_TRANSCRIPT = 2_000_000  # bytes from which a conversation is archived: its client will shorten it soon
ROUND = 0.2  # seconds


class Bot:
    """Stores what is said, lets each group's agent answer in a process of its own, and sends what waits."""

    def __init__(self, memory: Memory, agent: str, timeout: float, archive_at: int) -> None:
        self.memory = memory
        self.host: Host = memory.host.state
        self.agent = shlex.split(agent)
        self.timeout = timeout
        self.archive_at = archive_at
        self.pool = ThreadPoolExecutor()
        self.working: dict[str, Future[None]] = {}  # by group: one process of a group at a time

    def hear(self, said: dict[str, Any]) -> None:
        """Store a message before anything is done with it."""
        at = said.get("at") or self.memory.clock.now()
        number = str(said.get("id") or uuid.uuid4().hex)
        self.host.store_message(
            number, str(said["chat"]), str(said["text"]), at, sender_name=str(said.get("sender", ""))
        )

    def work(self) -> bool:
        """One round; killed anywhere in it, the next start does the rest and nothing twice."""
        for problem in self.host.drain_ipc():
            print(problem, file=sys.stderr, flush=True)
        for name in [name for name, future in self.working.items() if future.done()]:
            if (error := self.working.pop(name).exception()) is not None:  # asked again in the next round
                print(f"{name or 'tasks'}: {error!r}", file=sys.stderr, flush=True)
        for group in self.host.poll():
            batch = None if group.folder in self.working else self.host.batch(group)
            if batch:
                self.working[group.folder] = self.pool.submit(self.answer, group, batch)
        if "" not in self.working:
            self.working[""] = self.pool.submit(self.run_tasks)
        for reply in self.host.outbox():
            print(json.dumps({"chat": reply.chat_jid, "text": reply.content}), flush=True)
            self.host.delivered(reply)
        return any(name for name in self.working)

    def answer(self, group: ChatGroup, batch: Batch) -> None:
        session = batch.session_id
        asked = "\n".join(f"{one.sender_name}: {one.content}" for one in (*batch.context, *batch.messages))
        with self.memory_of(group, session) as memory:
            start = "" if session else memory.boot().text
            known = memory.before_turn(batch.messages[-1].content).text
        prompt = "\n\n".join(filter(None, (start, known, asked)))
        try:
            text, session = self.run_agent(group.folder, prompt, session)
        except (OSError, subprocess.SubprocessError) as error:
            text = f"(I cannot answer: {type(error).__name__})"
        self.host.answer(batch, text, session)
        self.archive(group)

    def run_agent(self, folder: str, prompt: str, session: str) -> tuple[str, str]:
        """What the group's agent answers, and the session that its next run resumes."""
        place = self.host.place(folder)
        values = {"{prompt}": prompt, "{session}": session, "{shared}": str(place.shared)}
        command = [values.get(part, part) for part in self.agent]
        ran = subprocess.run(
            command,
            cwd=place.directory,
            env={**os.environ, **place.environment, "NANOCLAW_IPC": str(place.ipc)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=(place.container_config or {}).get("timeout", self.timeout),
            check=True,
            start_new_session=True,
        )
        try:
            found = json.loads(ran.stdout)
            return str(found["result"]), str(found.get("session_id") or session)
        except (ValueError, LookupError, TypeError):
            return ran.stdout.strip(), session

    def run_tasks(self) -> None:
        """Run what is due, each in its group's place; what a task says goes to its chat."""
        tasks = self.host.tasks()
        for run in tasks.run_due(self.run_task):
            self.host.say_result(tasks.get(run.task_id), run)

    def run_task(self, task: Task, session: str) -> str:
        text, _ = self.run_agent(task.group, task.prompt, session)
        return text

    def archive(self, group: ChatGroup) -> None:
        """Archive conversations that have grown long, before the agent's client compacts them."""
        with self.memory_of(group, "") as memory:
            for one in memory.conversations.transcripts() if memory.scope.private else ():
                if one.bytes >= self.archive_at:
                    memory.for_session(one.session_id).before_compaction(one.session_id)

    def memory_of(self, group: ChatGroup, session: str) -> Memory:
        return Memory.open(self.memory.home.root, self.host.scope(group, session))


def listen(bot: Bot) -> None:
    """Lines from standard input; when they end, what is asked is still answered."""
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    open_ = True
    while bot.work() or open_ or bot.host.poll():
        try:
            line = lines.get(timeout=ROUND)
        except queue.Empty:
            continue
        open_ = open_ and line is not None
        if line and line.strip():
            take(bot, line)
    bot.work()


def take(bot: Bot, line: str) -> None:
    try:
        said = json.loads(line)
        if "wait" in said:
            end = time.monotonic() + float(said["wait"])
            while bot.work() or time.monotonic() < end:
                time.sleep(ROUND)
        else:
            bot.hear(said)
    except (ValueError, LookupError, TypeError, NanoClawError) as error:
        print(f"not a message: {error}", file=sys.stderr, flush=True)


def default_agent() -> str:
    sdk = importlib.util.find_spec("claude_agent_sdk") is not None
    return f"{sys.executable} {HERE / ('claude_agent.py' if sdk else 'plain_agent.py')} {{prompt}}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--group", action="append", default=[], metavar="NAME=CHAT")
    parser.add_argument(
        "--several", action="append", default=[], metavar="NAME", help="several people talk there"
    )
    parser.add_argument("--trigger", default="@Andy")
    parser.add_argument("--agent", default=default_agent(), help="the command, with {prompt} and {session}")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--archive-bytes", type=int, default=LONG_TRANSCRIPT)
    options = parser.parse_args()
    with Memory.open(options.home) as memory:
        memory.init()
        bot = Bot(memory, options.agent, options.timeout, options.archive_bytes)
        for name, _, chat in (one.partition("=") for one in options.group):
            bot.host.register_group(chat, name.title(), name, options.trigger)
            # Where one person talks, the group's private memory may be used.
            bot.host.store_chat_metadata(
                chat, memory.clock.now(), name.title(), "lines", name in options.several
            )
        listen(bot)
        bot.pool.shutdown()


if __name__ == "__main__":
    main()
