"""Commands that answer agents and programs: hook, mcp, serve, connect, web, token."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from nanoclaw_memory.errors import InvalidValue, NotFound, Refused
from nanoclaw_memory.interfaces.cli.common import Caller, Command, Output, command, given_text, group, listing

if TYPE_CHECKING:
    from nanoclaw_memory.interfaces.http.claim import ServerAddress
    from nanoclaw_memory.interfaces.http.tokens import AgentToken
    from nanoclaw_memory.memory import Memory

NO_ROLE = (
    "the database made no login role for it, so the server's own answers it; for one: ALTER ROLE … CREATEROLE"
)


@command("hook", cls=Command)
@click.argument("event")
def hook(caller: Caller, event: str) -> None:
    """Answer an agent's hook EVENT: its JSON on standard input, ours on standard output.

    Events: session-start, user-prompt-submit, pre-compact, stop, session-end, and what Gemini CLI and Cursor
    call them. Exit 0 always; on any error nothing is printed and the agent goes on. NANOCLAW_NO_HOOKS=1 in the
    environment silences all of them.

    \b
    echo '{"session_id": "s1", "prompt": "When is Ida born?"}' | ncm hook user-prompt-submit
    """
    from nanoclaw_memory.interfaces.hooks import run

    run(caller.request("hook", event), caller.overrides)


@command("mcp", cls=Command)
@click.option("--tools", default="core", help="core (eleven), all, or names with commas between them.")
def mcp(caller: Caller, tools: str) -> None:
    """Serve memory to an MCP client over standard input and output.

    \b
    ncm mcp
    claude mcp add memory -- ncm mcp --tools all
    """
    if sys.stdin is None:
        raise Refused("standard input is closed: an MCP client speaks through it", "for agents: ncm install")
    from nanoclaw_memory.interfaces.mcp.opening import run

    run(caller.request("mcp", tools), caller.overrides)


@command("serve", cls=Command)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=7717, show_default=True, help="0: any free one."
)
@click.option("--no-http", is_flag=True, help="Only the socket, for hooks and MCP on this machine.")
@click.option("--no-watch", is_flag=True, help="Do not index when files change.")
@click.option("--no-upkeep", is_flag=True, help="Do not run upkeep when it is due.")
@click.option(
    "--bind", default="127.0.0.1", metavar="ADDRESS", help="In a container, whose port is published."
)
@click.option(
    "--host", "hosts", multiple=True, metavar="NAME", help="A name by which other machines reach it."
)
@click.option("--tls-cert", type=click.Path(), help="Its certificate (PEM), where no proxy has one.")
@click.option("--tls-key", type=click.Path(), help="The key of the certificate (PEM).")
@click.option(
    "--idle-minutes",
    type=click.FloatRange(0.01, 100_000),
    default=None,
    help="End after so many without a client.",
)
@click.option("--self-started", is_flag=True, hidden=True)  # as hooks do: it gives way to any other
@click.option("--install", "wanted", flag_value="install", help="As a service, now and at every login.")
@click.option("--uninstall", "wanted", flag_value="uninstall", help="Remove that service.")
def serve(caller: Caller, wanted: str | None, **given: Any) -> None:
    """Serve this home to hooks, MCP clients and programs until stopped: one process that stays warm.

    Everything works without it, only slower and by words. It listens on a socket in the home and on loopback, for
    whoever has the token in the home's file `token`. Stop it with Ctrl-C or SIGTERM. A server that a client's session
    started gives way to it. With --install the other options become those of a service of your own (systemd, or
    launchd on macOS).

    \b
    ncm serve
    ncm serve --port 0 --json
    ncm serve --no-http --idle-minutes 60
    ncm serve --host memory.example.org --bind 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    ncm serve --install --no-http
    ncm serve --uninstall
    """
    from nanoclaw_memory.interfaces.http import serve as server

    with caller.memory(new=True) as memory:
        memory.group.require_main("serve the home")
        home = memory.home.root
        if wanted == "install":
            memory.init()
    if wanted:
        return _change_service(caller, home, wanted, given)
    options = server.ServeOptions(
        http=not given["no_http"],
        port=given["port"],
        watch=not given["no_watch"],
        upkeep=not given["no_upkeep"],
        bind=given["bind"],
        hosts=given["hosts"],
        tls=_tls(given),
        idle_minutes=given["idle_minutes"] or 0,
        self_started=given["self_started"],
    )
    server.serve(Path(home), options, lambda address: caller.show(_address(address)))


def _tls(given: dict[str, Any]) -> tuple[str, str] | None:
    if bool(given["tls_cert"]) != bool(given["tls_key"]):
        raise InvalidValue("a certificate needs its key", "give both: --tls-cert FILE --tls-key FILE")
    return (given["tls_cert"], given["tls_key"]) if given["tls_cert"] else None


def _change_service(caller: Caller, home: Path, wanted: str, given: dict[str, Any]) -> None:
    """Install or remove the service of a home; print the commands if its manager does not respond."""
    from nanoclaw_memory.interfaces.http.claim import address_of
    from nanoclaw_memory.interfaces.http.serve import DEFAULT_PORT, LOOPBACK
    from nanoclaw_memory.interfaces.install import service

    usual = {"port": DEFAULT_PORT, "bind": LOOPBACK}
    options = [f"--{name}={given[name]}" for name in usual if given[name] != usual[name]]
    options += [f"--host={name}" for name in given["hosts"]]
    if tls := _tls(given):
        options += [
            f"--tls-{name}={Path(path).absolute()}" for name, path in zip(("cert", "key"), tls, strict=True)
        ]
    options += [f"--idle-minutes={given['idle_minutes']:g}"] if given["idle_minutes"] else []
    options += [f"--{name.replace('_', '-')}" for name in ("no_http", "no_watch", "no_upkeep") if given[name]]
    found = service.service_of(home, options)
    if wanted == "uninstall":
        done = service.uninstall(home, found)
        text = f"removed {done.path}" if done.changed else "there is no service of this home"
    else:
        running = address_of(home)
        if running and not running.self_started and not found.path.exists():
            raise Refused(
                f"process {running.pid} serves this home already", f"stop it first: kill {running.pid}"
            )
        done = service.install(home, found)
        state = "runs, now and at every login" if done.running else "is written"
        text = f"the service {state}: {done.path}"
    note = f"{done.manager} did not answer; where it does: {done.by_hand}" if done.by_hand else ""
    caller.show(Output(done, text, notes=[note]))


def _address(address: ServerAddress) -> Output:
    lines = [f"serving {address.home} as process {address.pid}", f"  hooks and MCP: {address.socket}"]
    if address.url:
        lines.append(f"  MCP: {address.url}/mcp")
        lines.append("  page: ncm web opens it")
        lines.append(f"  API: {address.url}/api/v1 with the token in {address.token_file}")
    return Output(address, lines)


@command("connect", cls=Command)
@click.argument("url", required=False)
@click.option("--token", default="", help="An agent's token of that server; - reads it from standard input.")
@click.option(
    "--ca", type=click.Path(path_type=Path), help="A certificate (PEM) that the server's is signed by."
)
@click.option(
    "--connect-ms",
    type=click.IntRange(50, 5000),
    default=300,
    show_default=True,
    help="After how long a hook gives up a server that does not answer; more for one far away.",
)
@click.option("--remove", is_flag=True, help="End the connection.")
def connect(
    caller: Caller, url: str | None, token: str, ca: Path | None, connect_ms: int, remove: bool
) -> None:
    """Make this home a thin client of a server on another machine: hooks, MCP and commands ask that server.

    It has no memory of its own. While the server is away hooks are silent, and what is said waits here until it is
    back. Without a URL: shows what it is connected to, and delivers what waits.

    \b
    ncm connect https://memory.example.org --token ncm_1a2b3c4d_…
    ncm connect
    ncm connect --remove
    """
    from nanoclaw_memory.interfaces.remote import client

    if remove:
        return caller.show(Output(*client.disconnect(caller.root)))
    if url is None:
        return caller.show(Output(*client.deliver_now(caller.root)))
    caller.show(Output(*client.connect(caller.root, url, given_text(token).strip(), ca, connect_ms)))


@command("web", cls=Command)
@click.option("--print", "printed", is_flag=True, help="Print the link and open nothing.")
@click.option("--logout", is_flag=True, help="End every session of the page, and every open link.")
def web(caller: Caller, printed: bool, logout: bool) -> None:
    """Open the page of this home in your browser: see, correct and trust what agents know.

    The page is served by `ncm serve`. The link works once, within ten minutes; the browser stays logged in for
    a week, or until you end it.

    \b
    ncm web
    ncm web --print
    ncm web --logout
    """
    from nanoclaw_memory.interfaces.http.claim import address_of
    from nanoclaw_memory.interfaces.web.sessions import PageSessions

    with caller.memory() as memory:
        memory.group.require_main("open the page")
        home = memory.home.root
    if logout:
        ended = PageSessions(home).end()
        return caller.show(Output({"ended": ended}, f"ended: {ended}"))
    address = address_of(home)
    if address is None or not address.url:
        raise NotFound("the page is not served", "start it in another terminal: ncm serve")
    link = f"{address.url}/open/{PageSessions(home).new_link()}"
    opened = not printed and not caller.json and _open(link)
    note = "opened in your browser" if opened else "open it within ten minutes; it works once"
    caller.show(Output({"url": link, "opened": opened}, link, notes=[note]))


def _open(link: str) -> bool:
    import webbrowser

    return webbrowser.open(link)


@group("token")
def token() -> None:
    """Tokens for agents that ask over HTTP: each for one group, private or shared, and never the owner's rights."""


@token.command("new")
@click.option(
    "--origin",
    type=click.Choice(["agent", "tool", "import", "web"]),  # never the owner: that is what tokens are for
    default="agent",
    show_default=True,
    help="As whose word counts what is written with it.",
)
@click.option("--name", default="", help="What you will know it by.")
def new_token(memory: Memory, origin: str, name: str) -> Output:
    """Make a token for the group and the scope that --group and --shared name. It is shown this once.

    \b
    ncm token new --group family --shared
    ncm token new --group work --name claude
    """
    from nanoclaw_memory.clock import stamp
    from nanoclaw_memory.interfaces.http import tokens

    scope = memory.scope
    if scope.group not in memory.home.groups():
        raise NotFound(f"there is no group {scope.group}", f"create it: ncm init --group {scope.group}")
    bound = tokens.AgentToken(
        id="",
        group=scope.group,
        shared=not scope.private,
        origin=origin,
        name=name,
        created_at=stamp(memory.clock.now()),
    )
    made, text, role = tokens.new(memory.home.root, bound, memory.admin.make_token_role)
    note = f"{_token_line(made)}\nkeep the token now, only its hash is stored; to end it: ncm token revoke {made.id}"
    notes = [note] if role or not memory.admin.has_roles else [note, NO_ROLE]
    return Output({"token": text, **asdict(made)}, text, notes=notes)


@token.command("list")
def list_tokens(memory: Memory) -> Output:
    """List the tokens that are valid, and what each is bound to.

    \b
    ncm token list
    """
    from nanoclaw_memory.interfaces.http import tokens

    memory.group.require_main("list tokens")
    return listing("tokens", tokens.known(memory.home.root), _token_line, "No agent has a token.")


@token.command("revoke")
@click.argument("token_id", metavar="ID")
def revoke_token(memory: Memory, token_id: str) -> Output:
    """End a token, from the next request on.

    \b
    ncm token revoke 1a2b3c4d
    """
    from nanoclaw_memory.interfaces.http import tokens

    memory.group.require_main("revoke tokens")
    tokens.revoke(memory.home.root, token_id, memory.admin.drop_token_role)
    return Output({"id": token_id, "revoked": True}, f"{token_id} is not valid any more")


def _token_line(token: AgentToken) -> str:
    scope = "shared" if token.shared else "private"
    bound = f"{token.group}, {scope}, origin {token.origin}"
    return f"{token.id}  {bound}, made {token.created_at[:10]}  {token.name}".rstrip()
