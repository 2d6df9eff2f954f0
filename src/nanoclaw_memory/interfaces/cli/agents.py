"""Commands that clients and their hooks start: hook, mcp, serve."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from nanoclaw_memory.errors import Refused
from nanoclaw_memory.interfaces.cli.common import Caller, command, pass_caller


@command("hook")
@click.argument("event")
@pass_caller
def hook(caller: Caller, event: str) -> None:
    """Answer an agent's hook EVENT: its JSON on standard input, ours on standard output.

    Events: session-start, user-prompt-submit, pre-compact, stop, session-end, and what Gemini CLI and Cursor
    call them. Exit 0 always; on any error nothing is printed and the agent goes on.

    \b
    echo '{"session_id": "s1", "prompt": "When is Ida born?"}' | ncm hook user-prompt-submit
    """
    from nanoclaw_memory.interfaces.hooks import run

    run(caller.request("hook", event), caller.overrides)


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
        shim.relay(connection, request, [*caller.options(), "mcp", "--tools", tools])
        return
    import uuid

    from nanoclaw_memory.interfaces.mcp.server import serve_stdio

    caller.origin = "agent"
    caller.session = caller.session or f"mcp-{uuid.uuid4()}"
    with caller.memory(new=True) as memory:
        serve_stdio(memory, tools)


@command("serve")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=7717, show_default=True, help="0: any free one."
)
@click.option("--no-http", is_flag=True, help="Only the socket, for hooks and MCP on this machine.")
@click.option("--no-watch", is_flag=True, help="Do not index when files change.")
@click.option("--no-upkeep", is_flag=True, help="Do not run upkeep when it is due.")
@pass_caller
def serve(caller: Caller, port: int, no_http: bool, no_watch: bool, no_upkeep: bool) -> None:
    """Serve this home to hooks, MCP clients and programs until stopped: one process that stays warm.

    Everything works without it, only slower. It listens on a socket in the home and on loopback, for whoever
    has the token in the home's file `token`. Stop it with Ctrl-C or SIGTERM.

    \b
    ncm serve
    ncm serve --port 0 --json
    ncm serve --no-http
    """
    from nanoclaw_memory.interfaces.http.serve import ServeOptions, ServerAddress
    from nanoclaw_memory.interfaces.http.serve import serve as run

    def announce(address: ServerAddress) -> None:
        lines = [f"serving {address.home} as process {address.pid}", f"  hooks and MCP: {address.socket}"]
        if address.url:
            lines += [
                f"  MCP: {address.url}/mcp",
                f"  API: {address.url}/api/v1 with the token in {address.token_file}",
            ]
        caller.show(address, "\n".join(lines))

    with caller.memory(new=True) as memory:
        memory.admin.require_main("serve the home")
        home = memory.home.root
    run(Path(home), ServeOptions(not no_http, port, not no_watch, not no_upkeep), announce)
