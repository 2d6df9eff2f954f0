"""What a server does unasked: keep indexes fresh, archive what was spooled, run the upkeep that is due."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

from nanoclaw_memory.errors import NanoClawError
from nanoclaw_memory.types import Scope

if TYPE_CHECKING:
    from nanoclaw_memory.interfaces.http.pool import Resident

EVERY_SECONDS = 30.0
MOST_WATCHED = 64


class Chores:
    """Threads of the server's own; each looks at `stop`, and none keeps the process alive."""

    def __init__(self, resident: Resident, watch: bool, upkeep: bool) -> None:
        self._resident = resident
        self._watch = watch
        self._upkeep = upkeep
        self._stop = threading.Event()
        self._watchers: dict[str, threading.Thread] = {}
        self._rounds = threading.Thread(target=self._go_round, name="chores", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._rounds.start()

    def stop(self) -> None:
        """Begin nothing more."""
        self._stop.set()

    def join(self, seconds: float) -> None:
        """Wait for what is being done, up to a limit: a chore that is cut off is done again next time."""
        until = time.monotonic() + seconds
        for thread in (self._rounds, *self._watchers.values()):
            thread.join(max(0.0, until - time.monotonic()))

    def _go_round(self) -> None:
        self._resident.warm()
        while not self._stop.is_set():
            for group in self._groups():
                if self._stop.is_set():
                    return
                if self._watch:
                    self._see_to_watcher(group)
                self._serve_group(group)
            self._stop.wait(EVERY_SECONDS)

    def _groups(self) -> list[str]:
        with self._resident.open(Scope()) as memory:
            return memory.home.groups()

    def _serve_group(self, group: str) -> None:
        try:
            with self._resident.open(Scope(group)) as memory:
                memory.drain()
                if self._upkeep and not self._stop.is_set():
                    memory.upkeep(due=True)
        except (NanoClawError, OSError) as error:
            _say(f"upkeep of {group}: {error}")

    def _see_to_watcher(self, group: str) -> None:
        known = self._watchers.get(group)
        if (known is None and len(self._watchers) < MOST_WATCHED) or (known and not known.is_alive()):
            thread = threading.Thread(target=self._keep_indexed, args=(group,), name="watch", daemon=True)
            self._watchers[group] = thread
            thread.start()

    def _keep_indexed(self, group: str) -> None:
        try:
            with self._resident.open(Scope(group)) as memory:
                for _ in memory.watch(self._stop):
                    if self._stop.is_set():
                        return
        except (NanoClawError, OSError) as error:
            _say(f"watching {group}: {error}")  # the next round starts it anew


def _say(text: str) -> None:
    print(f"ncm serve: {text}", file=sys.stderr, flush=True)
