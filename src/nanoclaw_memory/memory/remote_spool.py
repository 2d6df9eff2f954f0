"""The spool of a thin client: exchanges wait here until the server accepts them; credentials are masked first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from nanoclaw_memory.conversations.spool import LOCK_SECONDS, Spool, SpooledExchange
from nanoclaw_memory.types import Scope

FOLDER = "remote-spool"


class RemoteSpool:
    """Exchanges that the hooks of one home recorded for a server elsewhere."""

    def __init__(self, home: Path) -> None:
        self._spool = Spool(home / FOLDER)

    def note(self, scope: Scope, kind: str, text: str) -> None:
        """Append a message (`prompt`) or an answer (`answer`); a mark for one that must not be stored."""
        from nanoclaw_memory.intake.memory_requests import UNKEPT, asks_not_to_store
        from nanoclaw_memory.intake.secrets import mask

        waiting = self._spool.open_question(scope.session_id)
        asked = text if kind == "prompt" else waiting[0] if waiting else ""
        spooled = UNKEPT if asks_not_to_store(asked) else mask(text)[0]
        self._spool.note(scope, kind, spooled, datetime.now(UTC))

    def deliver(self, send: Callable[[SpooledExchange], None], limit: int = 20) -> int:
        """Send complete exchanges, oldest first. If `send` fails, all of them stay: the server ignores repeats."""
        return self._spool.drain(datetime.now(UTC), send, limit, wait=LOCK_SECONDS)

    def waiting(self) -> int:
        """Count the exchanges that are complete and unsent."""
        return self._spool.waiting()
