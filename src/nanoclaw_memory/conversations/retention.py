"""Vectors for exchanges that have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.store.exchanges import Exchanges

if TYPE_CHECKING:
    from nanoclaw_memory.providers.embedder import Chain

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
