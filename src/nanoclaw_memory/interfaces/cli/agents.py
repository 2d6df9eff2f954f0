"""Commands that connect memory to agents: install, uninstall, hook, mcp, serve, web, token."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from nanoclaw_memory.errors import InvalidValue, NotFound, Refused
from nanoclaw_memory.interfaces.cli import UnknownName, as_called
from nanoclaw_memory.interfaces.cli.common import (
    Caller,
    Command,
    Output,
    at_terminal,
    command,
    given_text,
    group,
    listing,
    noted,
)
from nanoclaw_memory.interfaces.install.calls import Commands, Target
from nanoclaw_memory.interfaces.install.clients import CLIENTS
from nanoclaw_memory.interfaces.shim import is_remote
from nanoclaw_memory.text import nearest_names

if TYPE_CHECKING:
    from nanoclaw_memory.interfaces.http.claim import ServerAddress
    from nanoclaw_memory.interfaces.http.tokens import AgentToken
    from nanoclaw_memory.interfaces.install.install import InstallPlan
    from nanoclaw_memory.interfaces.install.survey import ClientState
    from nanoclaw_memory.memory import Memory


class ClientName(click.Choice[str]):
    """The name of a known client; for an unknown one, similar names are suggested."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self.choices:
            return value
        near = nearest_names(value, self.choices)
        raise UnknownName(f"{value!r} is no client that we know", near or ["--list"], ctx)


CLIENT = click.argument("client", type=ClientName(list(CLIENTS)))
NO_ROLE = (
    "the database made no login role for it, so the server's own answers it; for one: ALTER ROLE … CREATEROLE"
)
DRY_RUN = click.option("--dry-run", is_flag=True, help="Only show the change.")
PROJECT = click.option("--project", is_flag=True, help="In this directory's files, not in your own.")


@command("install", cls=Command)
@click.argument("client", type=ClientName(list(CLIENTS)), required=False)
@click.option("--list", "listed", is_flag=True, help="Show the clients, which are here, and what each gets.")
@click.option("--replace", is_flag=True, help="Replace an installation for another home or group.")
@click.option(
    "--server/--no-server",
    default=None,
    help="Whether a session starts a server, which ends when idle. Default: as chosen before, else yes.",
)
@click.option(
    "--models/--no-models",
    default=None,
    help="Whether to fetch the local model (72 MB, once). Default: you are asked; without a terminal, no.",
)
@DRY_RUN
@PROJECT
def install(caller: Caller, client: str | None, listed: bool, project: bool, **choices: Any) -> None:
    """Put memory into CLIENT: its hooks where it runs hooks, the MCP server everywhere.

    The exact change is shown; what was there before is kept, and `uninstall` brings it back. Each session of a client
    with hooks makes sure that a server runs: prompts are then answered by meaning, in milliseconds. It listens on a
    socket in the home only and ends after half an hour without a client (server.autostart, server.idleMinutes).

    \b
    ncm install --list
    ncm install claude-code --dry-run
    ncm install codex --models
    ncm install gemini --no-server
    ncm install cursor --project
    """
    if listed:
        return _list(caller)
    if client is None:
        raise UnknownName("which client?", ["--list"], click.get_current_context())
    install_into(caller, client, folder=_folder(project), **choices)


def install_into(
    caller: Caller,
    client: str,
    *,
    replace: bool = False,
    dry_run: bool = False,
    folder: Path | None = None,
    server: bool | None = None,
    models: bool | None = None,
    in_full: bool = True,
) -> None:
    """Install memory into a client; report the changes, `in_full` line by line, and the next step.

    `server` says whether its sessions start one, `models` whether to fetch the local model; None is the usual choice.
    """
    from nanoclaw_memory.interfaces.cli import offers
    from nanoclaw_memory.interfaces.install import install as installer

    with caller.memory(new=True) as memory:
        home = memory.home.root
        commands = _commands(caller, home)
        plan = installer.plan(client, commands, folder)
        if not dry_run:
            _agree(client, plan, commands.target, replace)
            if not is_remote(str(home)):
                memory.init()
            taken_over = [installer.record_of(_home_of(other), client, folder) for other in plan.others]
            installer.install(plan.changes, installer.record_of(home, client, folder), taken_over)
        served = offers.choose_server(home, client, server, dry_run)
        fetched = offers.fetch_model(memory, bool(models)) if caller.json and not dry_run else ""
        more = {"server": served, **({"model": fetched} if fetched else {})}
        _show(caller, client, plan, dry_run, "is installed already", in_full, more)
        if not dry_run and not caller.json:
            if plan.changes:
                _say(f"{CLIENTS[client].title} remembers from its next session on, in {home}")
                _say(f"  what it got: ncm injections; to take it out: ncm uninstall {client}")
            _say(offers.server_line(home, client, served))
            fetched = offers.fetch_model(memory, models)
            _say(offers.model_line(fetched))
    if models and fetched not in ("", offers.INSTALLED):
        raise click.exceptions.Exit(1)


def _say(line: str) -> None:
    """Tell the person about the next step, on standard error."""
    if line:
        click.echo(as_called(line), err=True)


def _list(caller: Caller) -> None:
    """Show every client: whether it is on this machine, what it supports, and whether memory is installed in it."""
    from nanoclaw_memory.interfaces.install.survey import survey

    def line(state: ClientState) -> str:
        gets = "hooks and MCP" if state.hooks else "MCP"
        here = "found" if state.here else "not found"
        by = {"no": "", "yes": f"installed for {'; '.join(state.memories)}"}.get(
            state.installed, state.installed
        )
        has = ", ".join(filter(None, [state.problem, "plugin" if state.plugin else "", by]))
        return f"{state.name:<15} {here:<10} {gets:<14} {has}".rstrip()

    caller.show(listing("clients", survey(), line, ""))


def _agree(client: str, plan: InstallPlan, target: Target, replace: bool) -> None:
    """Ask before replacing an installation for another memory."""
    if not plan.others or replace:
        return
    others = "; ".join(map(str, plan.others))
    what = f"{client} is installed for another memory ({others}); this one ({target}) would replace it"
    if not at_terminal():
        raise Refused(what, f"to replace it: ncm install {client} --replace")
    if not click.confirm(f"{what}. Replace it?"):
        raise Refused("nothing was changed")


@command("uninstall", cls=Command)
@CLIENT
@DRY_RUN
@PROJECT
def uninstall(caller: Caller, client: str, dry_run: bool, project: bool) -> None:
    """Take memory out of CLIENT again; your memory itself stays.

    With the last client, a server that a session started ends.

    \b
    ncm uninstall claude-code
    """
    from nanoclaw_memory.interfaces.http.claim import end_self_started
    from nanoclaw_memory.interfaces.install import install as installer

    with caller.memory(new=True) as memory:
        home = memory.home.root
    record, target = installer.record_of(home, client, _folder(project)), _target(caller, home)
    plan = installer.plan_removal(client, target, record, _folder(project))
    if plan.others and not plan.changes:
        options = " ".join(plan.others[0].options)
        raise Refused(
            f"{client} is installed for {plan.others[0]}", f"to remove that: ncm {options} uninstall {client}"
        )
    ended = False
    if not dry_run:
        installer.uninstall(plan.changes, record)
        ended = not installer.has_clients(home) and end_self_started(home)
    _show(caller, client, plan, dry_run, "is not installed", more={"server_ended": ended})


def _target(caller: Caller, home: Path) -> Target:
    return Target.of(home, caller.group, caller.shared)


def _commands(caller: Caller, home: Path) -> Commands:
    """Return how the client calls us; any home but the usual one is named, because a client lacks our environment."""
    from nanoclaw_memory.interfaces.install import launcher

    if launcher.is_cached() and not caller.json:
        click.echo(
            "note: this program runs from a cache; to keep it: uv tool install nanoclaw-memory", err=True
        )
    return Commands(str(launcher.path_in(home)), _target(caller, home))


def _home_of(target: Target) -> Path:
    return Path(target.home) if target.home else Path.home() / ".nanoclaw"


def _folder(project: bool) -> Path | None:
    return Path.cwd() if project else None


def _show(
    caller: Caller,
    client: str,
    plan: InstallPlan,
    dry_run: bool,
    nothing: str,
    in_full: bool = True,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    changes = plan.changes
    rows = [{"path": change.path, "diff": change.diff, "removed": change.after is None} for change in changes]
    result = {"client": client, "dry_run": dry_run, "files": rows, "notes": plan.notes, **more}
    paths = ", ".join(str(change.path) for change in changes)
    note = f"{'would change' if dry_run else 'changed'}: {paths}" if changes else ""
    diffs = "\n".join(change.diff for change in changes if in_full)
    empty = "" if changes else f"{client} {nothing}; nothing changed."
    caller.show(Output(result, diffs, empty, [note, *noted(plan.notes)]))


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
        memory.admin.require_main("serve the home")
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
        memory.admin.require_main("open the page")
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

    memory.admin.require_main("list tokens")
    return listing("tokens", tokens.known(memory.home.root), _token_line, "No agent has a token.")


@token.command("revoke")
@click.argument("token_id", metavar="ID")
def revoke_token(memory: Memory, token_id: str) -> Output:
    """End a token, from the next request on.

    \b
    ncm token revoke 1a2b3c4d
    """
    from nanoclaw_memory.interfaces.http import tokens

    memory.admin.require_main("revoke tokens")
    tokens.revoke(memory.home.root, token_id, memory.admin.drop_token_role)
    return Output({"id": token_id, "revoked": True}, f"{token_id} is not valid any more")


def _token_line(token: AgentToken) -> str:
    scope = "shared" if token.shared else "private"
    bound = f"{token.group}, {scope}, origin {token.origin}"
    return f"{token.id}  {bound}, made {token.created_at[:10]}  {token.name}".rstrip()
