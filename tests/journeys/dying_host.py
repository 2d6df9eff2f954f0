"""A host that is killed at random moments: a parent forks it, kills it with -9, and starts it again.

Run as `python dying_host.py HOME KILLS SEED`. The chat side is two files that only grow: what the channel
offers is a pure function of how much was stored, and offers the last messages twice; `delivered.log` is what
reached the people.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

from nanoclaw_memory import Host, Memory, Scope
from nanoclaw_memory.types import Batch, ChatGroup

CHATS = {"a@g": ("alpha", "CANARYALPHA"), "b@g": ("beta", "CANARYBETA")}
AT = "2026-02-23T11:00:00Z"  # all the same: time alone must not decide what is new


def offer(host: Host, stored: int, chaos: random.Random) -> None:
    """The channel delivers the next message of either chat, and now and then old ones once more."""
    for number in [*range(max(stored - chaos.choice((0, 0, 3)), 0), stored + 1)]:
        jid = ("a@g", "b@g")[number % 2]
        word = CHATS[jid][1]
        text = f"@Andy question {number} {word}" if number % 3 else f"just talk {number} {word}"
        host.store_message(f"m{number}", jid, text, AT, sender_name="Ann")


def answer(host: Host, group: ChatGroup, batch: Batch) -> None:
    """What an agent run would do: think, answer, continue its session."""
    words = " ".join(message.id for message in batch.messages)
    number = int(batch.session_id.rpartition("-")[2] or 0) + 1
    host.answer(batch, f"{CHATS[group.jid][1]} answer to {words}", f"{group.folder}-{number}")


def deliver(host: Host, home: Path) -> None:
    for reply in host.outbox():
        handle = os.open(home / "delivered.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(handle, f"{reply.chat_jid} {reply.id} {reply.content}\n".encode())
        os.close(handle)
        host.delivered(reply)


def live(home: Path, until: int, seed: int, ready: int) -> None:
    """One life of the host: it goes on where the last one was killed."""
    chaos = random.Random(seed)
    with Memory.open(home, overrides={"embeddings.provider": "none"}) as memory:
        host = memory.host.state
        host.remember()
        for jid, (folder, word) in CHATS.items():
            host.register_group(jid, folder, folder, "@Andy")
            with Memory.open(home, Scope(folder)) as own:
                own.write(f"life {seed} of {word}")
        os.write(ready, b"!")
        while True:
            stored = host.database.query("SELECT COUNT(*) FROM messages WHERE is_bot_message = 0")[0][0]
            if stored < until:
                offer(host, stored, chaos)
            for group in host.poll():
                if batch := host.batch(group):
                    answer(host, group, batch)
            deliver(host, home)
            if stored >= until:
                return


def kill_one(home: Path, chaos: random.Random, seed: int) -> None:
    """Start the host and kill it: mostly while it works, now and then while it is starting."""
    hear, tell = os.pipe()
    child = os.fork()
    if child == 0:
        live(home, 1_000_000, seed, tell)
        os._exit(1)
    if chaos.random() < 0.8:
        os.read(hear, 1)
    time.sleep(chaos.uniform(0, 0.12))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(hear)
    os.close(tell)
    if os.WTERMSIG(status) != signal.SIGKILL:
        sys.exit(f"the host ended by itself: {status}")


def main(home: Path, kills: int, seed: int) -> None:
    chaos = random.Random(seed)
    for number in range(kills):
        kill_one(home, chaos, seed + number)
    with Host.open(home) as host:
        stored = host.database.query("SELECT COUNT(*) FROM messages WHERE is_bot_message = 0")[0][0]
    live(home, stored + 10, seed, os.open(os.devnull, os.O_WRONLY))
    print(kills)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
