"""What becomes of archived exchanges: vectors for all, and a file in the workspace for the oldest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nanoclaw_memory.clock import moment_of
from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.store.exchanges import Exchanges
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import Exchange
from nanoclaw_memory.workspace.files import append_line

if TYPE_CHECKING:
    from nanoclaw_memory.providers.embedder import Chain

BATCH = 200
MAX_TOLD = 2_000
MAX_EMBEDDED = 2_000  # characters of a side: what the embedder reads of it


def embed_pending(exchanges: Exchanges, chain: Chain | None, limit: int) -> int:
    """Give vectors to exchanges that have none, newest first; gives how many. A failure leaves it for later."""
    todo = exchanges.without_vector(chain.identity.key, limit) if chain is not None else []
    sides = [
        (one.id, side, text[:MAX_EMBEDDED])
        for one in todo
        for side, text in enumerate((one.user_message, one.agent_response))
        if text.strip()
    ]
    if chain is None or not sides:
        return 0
    try:
        vectors = chain.embed_documents([text for _, _, text in sides]).vectors
    except ProviderError:
        return 0  # words serve meanwhile
    rows = [
        (number, side, vector.tobytes()) for (number, side, _), vector in zip(sides, vectors, strict=True)
    ]
    exchanges.put_vectors(chain.identity.key, rows)
    return len(todo)


def archive_path(exchange: Exchange) -> str:
    """The file of the month in which it was said."""
    return f"conversations/exchanges-{exchange.timestamp[:7]}.md"


def move_oldest(exchanges: Exchanges, workspace: Path, number: int) -> int:
    """Write the oldest exchanges to their archive files, then delete them; gives how many.

    A crash between the two leaves an exchange in both places rather than in none.
    """
    oldest = exchanges.oldest(min(number, BATCH))
    for one in oldest:
        path = workspace / archive_path(one)
        append_line(path, _entry(one), f"# Exchanges of {one.timestamp[:7]}\n\n")
    exchanges.remove(one.id for one in oldest)
    return len(oldest)


def _entry(one: Exchange) -> str:
    day = moment_of(one.timestamp)
    head = f"## {day:%Y-%m-%d %H:%M} {one_line(one.session_id)}".rstrip()
    user, agent = one_line(one.user_message)[:MAX_TOLD], one_line(one.agent_response)[:MAX_TOLD]
    return f"{head}\n\n**User**: {user}\n\n**Agent**: {agent}\n"
