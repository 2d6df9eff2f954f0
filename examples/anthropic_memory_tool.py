"""Anthropic's memory tool on our workspace. Without a key, the commands that a model would send are sent by hand.

python examples/anthropic_memory_tool.py [HOME]
"""

from __future__ import annotations

import sys

from nanoclaw_memory import Memory, Scope
from nanoclaw_memory.interfaces.sdk.anthropic import MemoryTool

with Memory.open(sys.argv[1] if len(sys.argv) > 1 else None, Scope(origin="agent")) as memory:
    memory.init()
    tool = MemoryTool(memory)
    # With a key: Anthropic().beta.messages.tool_runner(model=…, max_tokens=…, messages=[…], tools=[tool])
    for command in (
        {"command": "view", "path": "/memories"},
        {"command": "create", "path": "/memories/preferences.md", "file_text": "- short answers\n"},
        {
            "command": "insert",
            "path": "/memories/preferences.md",
            "insert_line": 1,
            "insert_text": "- metric units",
        },
        {"command": "view", "path": "/memories/preferences.md"},
    ):
        try:
            print(tool.call(command), end="\n\n")
        except Exception as error:  # noqa: BLE001 - what the model would be told
            print(error, end="\n\n")
