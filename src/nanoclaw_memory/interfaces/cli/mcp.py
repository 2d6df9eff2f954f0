"""The command that speaks MCP."""

from __future__ import annotations

import sys

import click

from nanoclaw_memory.errors import Refused
from nanoclaw_memory.interfaces.cli.common import Caller, command, pass_caller


@command("mcp")
@click.option("--tools", type=click.Choice(["core", "all"]), default="core", help="Seven tools, or all.")
@pass_caller
def mcp(caller: Caller, tools: str) -> None:
    """Serve memory to an MCP client over standard input and output.

    \b
    ncm mcp
    claude mcp add memory -- ncm mcp --tools all
    """
    if sys.stdin is None:
        raise Refused("standard input is closed: an MCP client speaks through it", "for agents: ncm install")
    from nanoclaw_memory.interfaces import shim

    request = caller.request("mcp", tools)
    connection = None if caller.overrides else shim.connect(request)
    if connection is not None:
        command = shim.command([*caller.options(), "mcp", "--tools", tools])
        shim.Conversation(connection, request, command).run()
        return
    from nanoclaw_memory.interfaces.mcp.server import serve_stdio

    caller.origin = "agent"
    caller.session = caller.session or new_session()
    with caller.memory(new=True) as memory:
        serve_stdio(memory, tools)


def new_session() -> str:
    """A name for a session whose client gives none."""
    import uuid

    return f"mcp-{uuid.uuid4()}"
