"""Background work of a server: keep indexes fresh, archive spooled exchanges, run the upkeep that is due."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

from nanoclaw_memory.rendering import visible_line
from nanoclaw_memory.types import Scope

if TYPE_CHECKING:
    from nanoclaw_memory.interfaces.http.pool import MemoryPool

INTERVAL_SECONDS = 30.0
MAX_WATCHERS = 64


class BackgroundWork:
    """Daemon threads of the server; each ends soon after `stop`."""

    def __init__(self, pool: MemoryPool, watch: bool, upkeep: bool) -> None:
        self._pool = pool
        self._watch = watch
        self._upkeep = upkeep
        self._stop = threading.Event()
        self._watchers: dict[str, threading.Thread] = {}
        self._rounds = threading.Thread(target=self._run_rounds, name="background", daemon=True)

    def start(self) -> None:
        """Start the first round."""
        self._rounds.start()

    def stop(self) -> None:
        """Start nothing more."""
        self._stop.set()

    def join(self, seconds: float) -> None:
        """Wait for the running work up to a limit: what is cut off is repeated next time."""
        until = time.monotonic() + seconds
        for thread in (self._rounds, *self._watchers.values()):
            thread.join(max(0.0, until - time.monotonic()))

    def _run_rounds(self) -> None:
        try:
            self._pool.warm()
        except Exception as error:  # noqa: BLE001 - not even a bug may end what all later rounds do
            _log(f"loading the models: {error}")
        while not self._stop.is_set():
            for group in self._groups():
                if self._stop.is_set():
                    return
                if self._watch:
                    self._ensure_watcher(group)
                self._maintain(group)
            self._stop.wait(INTERVAL_SECONDS)

    def _groups(self) -> list[str]:
        try:
            with self._pool.open(Scope()) as memory:
                return memory.home.groups()
        except Exception as error:  # noqa: BLE001 - not even a bug may end what all later rounds do
            _log(f"upkeep: {error}")
            return []

    def _maintain(self, group: str) -> None:
        try:
            with self._pool.open(Scope(group)) as memory:
                with memory.group.resources.judging():
                    memory.conversations.drain()
                if self._upkeep and not self._stop.is_set():
                    memory.upkeep.run(due=True)
        except Exception as error:  # noqa: BLE001 - not even a bug may end what all later rounds do
            _log(f"upkeep of {group}: {error}")

    def _ensure_watcher(self, group: str) -> None:
        known = self._watchers.get(group)
        most = min(MAX_WATCHERS, self._pool.files // 128)
        if (known is None and len(self._watchers) < most) or (known and not known.is_alive()):
            thread = threading.Thread(target=self._watch_files, args=(group,), name="watch", daemon=True)
            self._watchers[group] = thread
            thread.start()

    def _watch_files(self, group: str) -> None:
        try:
            with self._pool.open(Scope(group)) as memory:
                for _ in memory.admin.watch(self._stop):
                    if self._stop.is_set():
                        return
        except Exception as error:  # noqa: BLE001 - not even a bug may end what all later rounds do
            _log(f"watching {group}: {error}")  # the next round starts it again


def _log(text: str) -> None:
    print(visible_line(f"ncm serve: {text}"), file=sys.stderr, flush=True)
