"""What install offers beside a client's files: a server that starts with a session, and the local model."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import click

from nanoclaw_memory.errors import NanoClawError
from nanoclaw_memory.interfaces.cli.common import at_terminal
from nanoclaw_memory.interfaces.install.clients import CLIENTS
from nanoclaw_memory.interfaces.shim import is_remote
from nanoclaw_memory.memory import Memory

AUTOSTART = "server.autostart"
SIZE = "72 MB"
INSTALLED, MISSING = "installed", "missing"


def choose_server(home: Path, client: str, wanted: bool | None, dry_run: bool) -> bool:
    """Return whether sessions start a server, and record it in the settings; an earlier choice stays unless changed."""
    if is_remote(str(home)) or not CLIENTS[client].has_hooks():
        return False
    with Memory.open(home) as memory:  # a setting of the home, whatever group is installed
        chosen, origin = memory.admin.config_get(AUTOSTART)
        if wanted is None:
            wanted = origin == "default" or bool(chosen)
        if not dry_run and (wanted != chosen or origin == "default"):
            memory.admin.config_set(AUTOSTART, json.dumps(wanted))
    if not wanted and not dry_run:
        from nanoclaw_memory.interfaces.http.claim import end_self_started

        end_self_started(home)
    return wanted


def server_line(home: Path, client: str, served: bool) -> str:
    """Return a line on the server: what starts it, or how to have one."""
    from nanoclaw_memory.interfaces.http.claim import address_of

    if is_remote(str(home)):
        return ""
    if served:
        return (
            f"  its sessions start a server, which ends when idle; without: ncm install {client} --no-server"
        )
    if address_of(home) is not None:
        return ""
    return "  optional: ncm serve --install (keeps the model loaded: prompts get answers by meaning too)"


def fetch_model(memory: Memory, wanted: bool | None) -> str:
    """Fetch the local model if it is missing and wanted; return its state, or why it could not be fetched.

    A person at a terminal is asked. Empty where no local model is used.
    """
    scope = memory.scope
    if (
        is_remote(str(memory.home.root))
        or not scope.private
        or memory.settings.embeddings.provider != "local"
    ):
        return ""
    if "not installed" not in memory.status().embedder:
        return INSTALLED
    if wanted is None:
        wanted = at_terminal() and _agreed()
    if not wanted:
        return MISSING
    try:
        with Memory.open(memory.home.root) as owner:
            owner.admin.install_models(progress=partial(click.echo, err=True))
    except NanoClawError as error:
        return error.message
    return INSTALLED


def model_line(state: str) -> str:
    """Return a line on a model that is not there."""
    if state in ("", INSTALLED):
        return ""
    why = "" if state == MISSING else f"  {state}\n"
    return f"{why}  optional: ncm models install ({SIZE}, once: finds by meaning, in a hundred languages)"


def _agreed() -> bool:
    question = (
        f"Fetch the local model ({SIZE}, once)? With it memory is found by meaning, in a hundred languages"
    )
    try:
        return click.confirm(question, default=True, err=True)
    except click.Abort:  # the client is installed all the same
        click.echo(err=True)
        return False
