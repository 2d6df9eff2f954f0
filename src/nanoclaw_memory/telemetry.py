"""Append one JSON line per event to logs/telemetry.jsonl, rotated; nothing leaves the machine."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.clock import Clock, stamp

_JSON = json.JSONEncoder(ensure_ascii=False).encode


class Telemetry(msgspec.Struct, frozen=True):
    """Append events; a failed write never disturbs the caller."""

    path: Path
    clock: Clock
    enabled: bool = True
    max_bytes: int = 5_000_000

    def record(self, event: str, **details: Any) -> None:
        """Write one event. Values must be JSON; texts of memory do not belong here."""
        self.record_all(event, (details,))

    def record_all(self, event: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write several events of one kind, opening the file once."""
        if not self.enabled:
            return
        at = stamp(self.clock.now())
        lines = [_JSON({"at": at, "event": event, **row}) for row in rows]
        try:
            self._append("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
        except OSError:
            return  # a full or read-only disk must not cost the caller an answer

    def _append(self, lines: bytes) -> None:
        handle = self._opened()
        try:
            if os.fstat(handle).st_size + len(lines) > self.max_bytes:
                self.path.replace(self.path.with_suffix(".1.jsonl"))
                os.close(handle)
                handle = self._opened()
            os.write(handle, lines)
        finally:
            os.close(handle)

    def _opened(self) -> int:
        # O_APPEND with a single write keeps lines of several processes whole.
        how = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        try:
            return os.open(self.path, how, 0o600)
        except FileNotFoundError:
            private.make_folder(self.path.parent)
            return os.open(self.path, how, 0o600)
