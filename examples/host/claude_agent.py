"""An agent on the Claude Agent SDK: resumes its group's session, with the group's memory around every prompt.

It is started by host.py in its group's directory; `pip install claude-agent-sdk` and Claude Code are needed.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

from nanoclaw_memory import Memory
from nanoclaw_memory.interfaces.sdk.claude_agent import hooks
from nanoclaw_memory.types import Scope


async def main() -> None:
    home, group, session = (os.environ[f"NANOCLAW_{name}"] for name in ("HOME", "GROUP", "SESSION"))
    with Memory.open(home, Scope(group, session)) as memory:
        options = ClaudeAgentOptions(
            cwd=Path.cwd(),
            resume=session or None,
            add_dirs=[memory.home.shared],  # with CLAUDE.md for all groups
            setting_sources=["user", "project"],
            hooks={
                "PreCompact": hooks(memory)["PreCompact"]
            },  # the host gives the blocks, and keeps what was said
        )
        async for message in query(prompt=sys.argv[1], options=options):
            if isinstance(message, ResultMessage):
                print(json.dumps({"result": message.result or "", "session_id": message.session_id}))


if __name__ == "__main__":
    asyncio.run(main())
