"""A small bot on the host: two groups, each with an agent, a session, tasks and a memory of its own.

    python examples/bot.py --home /tmp/bot                     talk in the terminal
    python examples/bot.py --home /tmp/bot --socket /tmp/bot.sock   talk over a Unix socket
    python examples/bot.py --home /tmp/bot --endpoint http://127.0.0.1:8080/v1 --model any

In the terminal a line is `GROUP: TEXT`, for example `family: @Andy remember that Rex is our dog`. Over the
socket the first line names the group, every other line is a message: `nc -U /tmp/bot.sock`, then `family`.

Without --endpoint an agent answers that needs no model: it keeps what follows "remember that", searches its
group's memory for everything else, and so shows what a group knows and what it does not. `every 10s TEXT`
schedules a task. Stop the bot (or kill it) and start it again: it goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import socketserver
import sys
import threading
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from nanoclaw_memory import Host, Memory, NanoClawError
from nanoclaw_memory.types import Batch, ChatGroup, Task

GROUPS = ("family", "work")
CALLED = "@Andy"
Agent = Callable[[Memory, Batch], str]
Send = Callable[[str, str], None]


# ---- agents ----


def plain_agent(memory: Memory, batch: Batch) -> str:
    """Answers without a model: keeps what it is told to keep, and finds it again."""
    question = batch.messages[-1].content.removeprefix(CALLED).strip()
    told = re.match(r"remember(?: that)? (.+)", question, re.IGNORECASE | re.DOTALL)
    if told:
        memory.write(told[1], "fact", 0.8)
        return "I will remember that."
    every = re.match(r"every (\S+) (.+)", question, re.DOTALL)
    if every:
        task = memory.host.tasks.add(every[2], "interval", every[1], chat_jid=batch.group.jid)
        return f"I will, first at {task.next_run[11:19]} UTC."
    memory.index()
    hits = [hit for hit in memory.search(question, limit=3).hits if "[fact" in hit.text]
    if not hits:
        return "I know nothing about that in this group."
    lines = [line for hit in hits for line in hit.text.splitlines() if "[fact" in line]
    return "I remember: " + "; ".join(re.sub(r"^.*?\] ", "", line) for line in lines)


def model_agent(endpoint: str, model: str) -> Agent:
    """Asks any OpenAI-compatible server; what memory has for the message goes before it."""
    if not endpoint.startswith(("http://", "https://")):
        sys.exit("--endpoint must be an http address, such as http://127.0.0.1:8080/v1")

    def ask(memory: Memory, batch: Batch) -> str:
        known = "\n\n".join([memory.boot().text, memory.before_turn(batch.messages[-1].content).text])
        spoken = [
            {"role": "user", "content": f"{message.sender_name}: {message.content}"}
            for message in (*batch.context, *batch.messages)
        ]
        body = {"model": model, "messages": [{"role": "system", "content": known}, *spoken]}
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get("OPENAI_API_KEY"):
            headers["Authorization"] = f"Bearer {key}"
        address = f"{endpoint}/chat/completions"
        request = urllib.request.Request(address, json.dumps(body).encode(), headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
            return str(json.load(answer)["choices"][0]["message"]["content"])

    return ask


# ---- the loop ----


class Bot:
    """Stores what is said, lets the agents answer, runs what is due, and sends what waits."""

    def __init__(self, memory: Memory, agent: Agent, send: Send) -> None:
        self.memory = memory
        self.host: Host = memory.host.state
        self.agent = agent
        self.send = send
        for name in GROUPS:
            self.host.register_group(f"{name}@local", name.title(), name, CALLED)
            # One person talks here, so the group's private memory may be used.
            self.host.store_chat_metadata(f"{name}@local", memory.clock.now(), name.title(), "local", False)

    def hear(self, name: str, sender: str, text: str) -> None:
        if name not in GROUPS:
            raise NanoClawError(f"there is no group {name!r}", f"write {' or '.join(GROUPS)}")
        now = self.memory.clock.now()
        self.host.store_message(uuid.uuid4().hex, f"{name}@local", text, now, sender_name=sender)

    def work(self) -> None:
        """One round; killed anywhere in it, the next start does the rest and nothing twice."""
        for group in self.host.poll():
            if batch := self.host.batch(group):
                self.answer(group, batch)
        self.host.tasks().run_due(self.run_task)
        for reply in self.host.outbox():
            self.send(reply.group, reply.content)
            self.host.delivered(reply)

    def answer(self, group: ChatGroup, batch: Batch) -> None:
        session = batch.session_id or f"{group.folder}-{uuid.uuid4().hex[:8]}"
        with self.memory_of(group, session) as memory:
            try:
                text = self.agent(memory, batch)
            except (OSError, ValueError, LookupError, TypeError, NanoClawError) as error:
                text = f"(I cannot answer: {error})"
        self.host.answer(batch, text, session)

    def run_task(self, task: Task, session: str) -> str:
        """A task of this bot says its prompt to its group; runs in a thread of its own."""
        with Host.open(self.memory.home.root) as host:
            host.say(host.group(task.group), f"Reminder: {task.prompt}", f"{task.id}-{uuid.uuid4().hex[:8]}")
        return "said"

    def memory_of(self, group: ChatGroup, session: str) -> Memory:
        scope = self.host.scope(group, session)
        return Memory.open(self.memory.home.root, scope, overrides={"embeddings.provider": "none"})


def in_terminal(bot: Bot) -> None:
    """Lines from standard input; ends with it, after one last round."""
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=0.2)
        except queue.Empty:
            bot.work()
            continue
        if line is None:
            break
        if line.strip():
            name, _, text = line.partition(":")
            hear(bot, name.strip(), "You", text.strip())
        bot.work()
    bot.work()


def over_socket(bot: Bot, heard: queue.Queue[tuple[str, str]]) -> None:
    while True:
        try:
            name, text = heard.get(timeout=0.2)
        except queue.Empty:
            bot.work()
            continue
        hear(bot, name, "Guest", text)
        bot.work()


def hear(bot: Bot, name: str, sender: str, text: str) -> None:
    try:
        bot.hear(name, sender, text)
    except NanoClawError as error:
        print(f"{error.message}: {error.hint}", flush=True)


class Chat(socketserver.StreamRequestHandler):
    """One visitor: names a group, then talks in it and hears what its agent says."""

    present: ClassVar[dict[str, list[Chat]]] = {}
    heard: ClassVar[queue.Queue[tuple[str, str]]] = queue.Queue()

    def handle(self) -> None:
        name = self.rfile.readline(100).decode("utf-8", "replace").strip()
        here = self.present.setdefault(name, [])
        here.append(self)
        try:
            while line := self.rfile.readline(1_000_000):
                self.heard.put((name, line.decode("utf-8", "replace").strip()))
        finally:
            here.remove(self)

    @classmethod
    def tell(cls, name: str, text: str) -> None:
        for visitor in list(cls.present.get(name, ())):
            try:
                visitor.wfile.write(f"Andy: {text}\n".encode())
            except OSError:
                continue


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--socket", type=Path)
    parser.add_argument("--endpoint", help="base address of an OpenAI-compatible server")
    parser.add_argument("--model", default="default")
    options = parser.parse_args()
    agent = model_agent(options.endpoint.rstrip("/"), options.model) if options.endpoint else plain_agent
    with Memory.open(options.home, overrides={"embeddings.provider": "none"}) as memory:
        memory.init()
        if options.socket is None:
            bot = Bot(memory, agent, lambda name, text: print(f"[{name}] Andy: {text}", flush=True))
        else:
            bot = Bot(memory, agent, Chat.tell)
        for name, session in bot.host.all_sessions().items():
            print(f"({name} goes on with session {session})", flush=True)
        if options.socket is None:
            in_terminal(bot)
            return
        options.socket.unlink(missing_ok=True)
        with socketserver.ThreadingUnixStreamServer(str(options.socket), Chat) as server:
            server.daemon_threads = True
            options.socket.chmod(0o600)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            print(f"listening on {options.socket}", flush=True)
            over_socket(bot, Chat.heard)


if __name__ == "__main__":
    main()
