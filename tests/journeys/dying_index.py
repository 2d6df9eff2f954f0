"""An indexer that is killed with -9 at random moments and started again until a run comes to its end.

Run as `python dying_index.py HOME MODEL CHUNK_SIZE KILLS SEED`; prints how often it was killed.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path

from word_hash import WordHashEmbedder

from nanoclaw_memory.memory import Memory
from nanoclaw_memory.providers.embedder import Chain


def opened(home: Path, model: str, chunk_size: str) -> Memory:
    memory = Memory.open(home, overrides={"memory.chunkSize": chunk_size, "memory.chunkOverlap": "10"})
    memory.group.resources.embedder = Chain((WordHashEmbedder(model=model),))
    return memory


def live(home: Path, model: str, chunk_size: str, told: int) -> None:
    """One life: index, and say each step."""
    with opened(home, model, chunk_size) as memory:
        memory.index(progress=lambda stage, done, of: os.write(told, b"."))


def killed(home: Path, model: str, chunk_size: str, steps: int) -> bool:
    """Start an indexer and kill it after so many steps; whether that happened before its end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        live(home, model, chunk_size, writing)
        os._exit(0)
    os.close(writing)
    seen = 0
    while seen < steps and (step := os.read(reading, 1)):
        seen += len(step)
    if seen == steps:
        os.kill(child, signal.SIGKILL)
    os.close(reading)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def main() -> None:
    home, model, chunk_size = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    chance = random.Random(int(sys.argv[5]))
    deaths = sum(killed(home, model, chunk_size, chance.randint(1, 12)) for _ in range(int(sys.argv[4])))
    if killed(home, model, chunk_size, sys.maxsize):
        raise SystemExit("the last run was not to be killed")
    print(deaths)


if __name__ == "__main__":
    main()
