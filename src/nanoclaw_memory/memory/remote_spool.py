"""The spool of a thin client: what was said waits here until the server has it; credentials are masked before."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from nanoclaw_memory.conversations.spool import LOCK_SECONDS, Spool, SpooledExchange
from nanoclaw_memory.types import Scope

FOLDER = "remote-spool"


class RemoteSpool:
    """What hooks of one home noted for a server elsewhere."""

    def __init__(self, home: Path) -> None:
        self._spool = Spool(home / FOLDER)

    def note(self, scope: Scope, kind: str, text: str) -> None:
        """Append what was asked (`prompt`) or answered (`answer`)."""
        from nanoclaw_memory.intake.secrets import mask

        self._spool.note(scope, kind, mask(text)[0], datetime.now(UTC))

    def deliver(self, send: Callable[[SpooledExchange], None], limit: int = 20) -> int:
        """Send whole exchanges, oldest first. When `send` raises an error, all wait: the server takes none twice."""
        return self._spool.drain(datetime.now(UTC), send, limit, wait=LOCK_SECONDS)

    def waiting(self) -> int:
        """How many exchanges are whole and wait."""
        return self._spool.waiting()
