"""The host's store: messages a second with four writers; polling and restart with a million messages; archiving.

    python bench/host.py                     # 10,000 / 100,000 / 1,000,000 messages, 200 groups
    python bench/host.py --sizes 10000,100000

Times are CPU milliseconds of this process (the machine is shared); the wall clock is given where several
processes work together. The goal is that polling does not grow with the number of messages.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from nanoclaw_memory import Host, Memory
from nanoclaw_memory.conversations.transcripts import read_transcript
from nanoclaw_memory.host.messages import message_from
from nanoclaw_memory.types import Message

GROUPS = 200
WRITERS = 4
TEXT = "@Andy what did we decide about the port of the payment service last week? " * 2
WRITER = """
import sys
from nanoclaw_memory import Host
home, name, count, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
from nanoclaw_memory.host.messages import message_from
with Host.open(home) as host:
    at = "2026-02-23T11:00:00Z"
    made = [message_from(f"{name}-{n}", f"chat{n % 50}@g", "hello " * 20, at) for n in range(count)]
    for start in range(0, count, size):
        host.store_messages(made[start:start + size])
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000,1000000")
    parser.add_argument("--writes", type=int, default=2_000, help="messages of each writer")
    parser.add_argument("--turns", type=int, default=6_000, help="turns of the transcript that is archived")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report: dict[str, object] = {"writers": [writers(Path(folder), options.writes, n) for n in (1, 50)]}
        report["archive"] = archiving(Path(folder) / "archive", options.turns)
        report["polling"] = [
            polling(Path(folder) / f"host{size}", int(size)) for size in options.sizes.split(",")
        ]
    print(json.dumps(report, indent=2))


def writers(folder: Path, count: int, batch: int) -> dict[str, object]:
    """Four processes store at once; every message must be there afterwards."""
    home = folder / f"writers{batch}"
    Host.open(home).close()
    began, before = time.perf_counter(), os.times()
    started = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(home), f"w{n}", str(count), str(batch)])
        for n in range(WRITERS)
    ]
    codes = [process.wait() for process in started]
    wall, after = time.perf_counter() - began, os.times()
    with Host.open(home) as host:
        (stored,) = host.database.query("SELECT COUNT(*) FROM messages")[0]
    assert codes == [0] * WRITERS
    assert stored == WRITERS * count
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {
        "writers": WRITERS,
        "messages a transaction": batch,
        "messages": stored,
        "messages a second (wall, with process start)": round(stored / wall),
        "CPU microseconds a message": round(cpu * 1e6 / stored),
    }


def archiving(home: Path, turns: int) -> dict[str, object]:
    """A long transcript: read, and turned into Markdown."""
    transcript = home.with_suffix(".jsonl")
    lines = (
        {
            "type": role,
            "sessionId": "s",
            "timestamp": "2026-02-23T11:00:00Z",
            "message": {"role": role, "content": f"{n} {TEXT * 30}"},
        }
        for n in range(turns)
        for role in [("user", "assistant")[n % 2]]
    )
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with Memory.open(home) as memory:
        memory.init()
        reading = _cpu(lambda: read_transcript(transcript))
        whole = _cpu(lambda: memory.conversations.archive(str(transcript)))
        again = _cpu(lambda: memory.conversations.archive(str(transcript)))
        parts = memory.conversations.archives()
    assert sum(part.turns for part in parts) == turns
    return {
        "transcript MB": round(transcript.stat().st_size / 1e6),
        "turns": turns,
        "files": len(parts),
        "read ms": round(reading),
        "read + archive ms": round(whole),
        "again, nothing new ms": round(again),
    }


def polling(home: Path, size: int) -> dict[str, object]:
    """A host with many old messages: what an idle poll, a poll with one new message and an answer cost."""
    fill(home, size)
    opening = [_cpu(lambda: _open_and_poll(home)) for _ in range(5)]
    with Host.open(home) as host:
        idle = [_cpu(host.poll) for _ in range(200)]
        one = [_cpu(partial(_one_message, host, size + number)) for number in range(100)]
        cursor = host.new_messages_since(0, limit=1)[1] + size // 2
        since = [_cpu(lambda: host.new_messages_since(cursor, limit=100)) for _ in range(100)]
    return {
        "messages": size,
        "groups": GROUPS,
        "idle poll ms": _median(idle),
        "store + poll + batch + answer of one message ms": _median(one),
        "new_messages_since(cursor, limit=100) ms": _median(since),
        "restart: open + first poll ms": _median(opening),
        "file MB": round(sum(path.stat().st_size for path in (home / "store").iterdir()) / 1e6),
    }


def fill(home: Path, size: int) -> None:
    with Host.open(home) as host:
        for number in range(GROUPS):
            host.register_group(f"chat{number}@g", f"Group {number}", f"group{number}", "@Andy")
        for block in _blocks(size):
            host.store_messages(block)
        last = host.new_messages_since(size - 1)[1]
        with host.database.transaction():  # all of it was read and answered long ago
            host.database.execute(
                "UPDATE router_state SET value = :last WHERE key = 'last_arrival'", {"last": last}
            )
            host.database.execute(
                "INSERT INTO chat_cursors (chat_jid, answered) SELECT jid, :last FROM registered_groups",
                {"last": last},
            )


def _blocks(size: int) -> Iterator[list[Message]]:
    for start in range(0, size, 5_000):
        yield [
            message_from(f"m{n}", f"chat{n % GROUPS}@g", f"{n} {TEXT}", "2026-02-23T11:00:00Z")
            for n in range(start, min(start + 5_000, size))
        ]


def _open_and_poll(home: Path) -> None:
    with Host.open(home) as host:
        host.poll()


def _one_message(host: Host, number: int) -> None:
    host.store_message(f"m{number}", "chat7@g", TEXT, "2026-02-23T11:00:00Z")
    for group in host.poll():
        batch = host.batch(group)
        assert batch is not None
        host.answer(batch, "an answer", "s")


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1_000


def _median(values: list[float]) -> float:
    return round(statistics.median(values), 3)


if __name__ == "__main__":
    main()
