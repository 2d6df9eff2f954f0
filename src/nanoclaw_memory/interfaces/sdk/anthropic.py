"""Anthropic's memory tool (`memory_20250818`) over the workspace: `/memories` is `memory/notes/`."""

from __future__ import annotations

from typing import Any

from anthropic.lib.tools import ToolError
from anthropic.tools import BetaAbstractMemoryTool

from nanoclaw_memory.errors import NanoClawError
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.rendering import visible


class MemoryTool(BetaAbstractMemoryTool):
    """Pass an instance in `tools=[…]` of a tool runner.

    The notes are ordinary Markdown files that people can read and search finds.
    """

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self._notes = memory.workspace.notes

    def execute(self, command: Any) -> str:
        """Carry out one command; the model gets the reason of what cannot be done."""
        given = command if isinstance(command, dict) else command.model_dump()
        try:
            return visible(self._notes.run(given))
        except NanoClawError as error:
            raise ToolError(error.message) from error

    # The SDK calls a method for each command; the request is in the command itself.
    view = create = str_replace = insert = delete = rename = execute
