"""A Session for the OpenAI Agents SDK: history that survives a restart.

python examples/openai_agents_session.py [HOME]
"""

from __future__ import annotations

import asyncio
import sys

from nanoclaw_memory import Memory, Scope
from nanoclaw_memory.interfaces.sdk.openai_agents import MemorySession


async def main() -> None:
    with Memory.open(
        sys.argv[1] if len(sys.argv) > 1 else None, Scope(session_id="demo", origin="agent")
    ) as memory:
        memory.init()
        session = MemorySession(memory)
        # With a key: await Runner.run(agent, "We chose PostgreSQL.", session=session)
        await session.add_items([{"role": "user", "content": "We chose PostgreSQL for the ledger."}])
        await session.add_items([{"role": "assistant", "content": "Noted."}])
        print(
            f"{len(await session.get_items())} items in session {session.session_id}; run me again for more"
        )


asyncio.run(main())
