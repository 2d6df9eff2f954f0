"""Watch folders for changes, debounced; a regular sweep finds what events missed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from nanoclaw_memory import private

QUIET_MS = 1_500
LONGEST_MS = 15_000
SWEEP_S = 30.0


def changes(
    folders: Sequence[Path], stop: threading.Event, quiet_ms: int = QUIET_MS, sweep_s: float = SWEEP_S
) -> Iterator[str]:
    """Yield `start`, then `change` when files were quiet again after a change, and `sweep` now and then."""
    import watchfiles

    for folder in folders:
        private.make_folder(folder)
    yield "start"
    batches = watchfiles.watch(
        *folders,
        watch_filter=_is_memory,
        step=quiet_ms,
        debounce=max(quiet_ms, LONGEST_MS),
        rust_timeout=int(sweep_s * 1000),
        yield_on_timeout=True,
        stop_event=stop,
        raise_interrupt=True,
        ignore_permission_denied=True,
    )
    for batch in batches:
        if stop.is_set():
            return
        yield "change" if batch else "sweep"


def _is_memory(change: object, path: str) -> bool:
    """Whether an event can be of a memory file; a folder's own events have no suffix."""
    name = path.rpartition("/")[2]
    return not name.startswith(".") and ("." not in name or name.endswith(".md"))
