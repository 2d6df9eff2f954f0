"""The command that agents' hooks call."""

from __future__ import annotations

import sys

import click

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
    from nanoclaw_memory.interfaces import shim

    if not shim.hears():
        return
    try:
        raw = sys.stdin.buffer.read(shim.MAX_INPUT + 1)
    except OSError:
        return
    served = caller.served("hook", event)
    if served is not None and (said := shim.ask(*served, raw)) is not None:
        if said:
            shim.say(said)
        return
    _answer_here(caller, event, raw)


def _answer_here(caller: Caller, event: str, raw: bytes) -> None:
    """Without a server."""
    from nanoclaw_memory.interfaces import shim

    try:
        from nanoclaw_memory.interfaces.hooks.events import run
        from nanoclaw_memory.types import Scope

        scope = Scope(caller.group, caller.session, private=not caller.shared)
        answer = run(event, raw, caller.memory_as, scope)
    except Exception:  # noqa: BLE001 - a hook fails open: an agent must never trip over its memory, not even over a bug
        return
    if answer:
        shim.say(answer.encode("utf-8", "replace"))
