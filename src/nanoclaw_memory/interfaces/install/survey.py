"""Report for every client whether it is used here, what it supports, and how we are installed in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from nanoclaw_memory.errors import FileProblem, NanoClawError
from nanoclaw_memory.interfaces.install import launcher
from nanoclaw_memory.interfaces.install.calls import Call, Target
from nanoclaw_memory.interfaces.install.clients import CLIENTS, Client, files_of
from nanoclaw_memory.interfaces.install.install import read_text
from nanoclaw_memory.types import Finding


class ClientState(msgspec.Struct, frozen=True, kw_only=True):
    """A client on this machine."""

    name: str
    title: str
    here: bool
    hooks: bool  # whether it calls us by itself, or only when its model asks
    installed: str  # no, yes, outdated, by hand
    plugin: bool  # whether it has our plugin, which does the same
    memories: tuple[str, ...]  # for which it is installed
    files: tuple[Path, ...]
    problem: str = ""


def survey() -> list[ClientState]:
    """Return the state of every known client."""
    return [_state(name, client) for name, client in CLIENTS.items()]


def _state(name: str, client: Client) -> ClientState:
    calls, problem, plugin = [], "", False
    for file in client.files():
        try:
            plugin = plugin or file.has_plugin(read_text(file))
            calls += [call for _, call in file.calls(read_text(file))]
        except (ValueError, FileProblem):
            problem = f"{file.path} cannot be read as {file.kind}"
    return ClientState(
        name=name,
        title=client.title,
        here=client.is_here(),
        hooks=client.has_hooks(),
        installed=_installed(calls),
        plugin=plugin,
        memories=tuple(sorted({str(call.target) for call in calls if call.is_ours})),
        files=tuple(file.path for file in client.files()),
        problem=problem,
    )


def _installed(calls: list[Call]) -> str:
    forms = {call.form for call in calls}
    if "shim" in forms:
        return "outdated"
    return "yes" if "launcher" in forms else "by hand" if forms else "no"


def check_clients(home: Path, group: str) -> Iterator[Finding]:
    """Yield findings about the clients in which this memory is installed, each with its remedy."""
    own = str(Target.of(home, group))
    states = survey()
    here = [state.name for state in states if state.here]
    if here and not any(state.plugin or state.installed != "no" for state in states):
        yield Finding(
            "note",
            f"no client is connected; here are {', '.join(here)}",
            f"nanoclaw-memory install {here[0]}",
        )
    for state in states:
        again = f"nanoclaw-memory install {state.name}"
        if state.problem and (state.here or state.installed != "no"):
            yield Finding("problem", f"{state.title}: {state.problem}", "correct the file; then: " + again)
        if state.plugin and state.memories:
            twice = f"{state.title} has our plugin and our hooks: it gets everything twice"
            yield Finding("warning", twice, f"nanoclaw-memory uninstall {state.name}")
        if state.memories and _in_directory(state.name):
            twice = (
                f"{state.title} has our hooks for you and in this directory: here it gets everything twice"
            )
            yield Finding("warning", twice, f"nanoclaw-memory uninstall {state.name} --project")
        if state.installed == "outdated":
            old = f"{state.title} has hooks of an earlier release, which block it once that is gone"
            yield Finding("problem", old, again)
        elif own in state.memories and not launcher.works(home):
            yield Finding("problem", f"{state.title} is connected to a program that is gone", again)
        elif own in state.memories:
            yield Finding("ok", f"{state.title} is connected", "nanoclaw-memory install --list")


def _in_directory(client: str) -> bool:
    """Return whether the working directory's own files of a client have calls of ours."""
    own = {file.path for file in CLIENTS[client].files()}
    try:
        files = [file for file in files_of(client, Path.cwd()) if file.path not in own]
        return any(call.is_ours for file in files for _, call in file.calls(read_text(file)))
    except (ValueError, NanoClawError):
        return False
