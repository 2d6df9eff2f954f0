"""The command that starts the server."""

from __future__ import annotations

from pathlib import Path

import click

from nanoclaw_memory.interfaces.cli.common import Caller, command, pass_caller


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
