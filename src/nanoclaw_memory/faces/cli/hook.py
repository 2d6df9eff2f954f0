"""The command that agents' hooks call."""

from __future__ import annotations

import sys

import click

from nanoclaw_memory.faces.cli.face import Caller, command, pass_caller


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
    from nanoclaw_memory.faces.hooks import MAX_INPUT, run
    from nanoclaw_memory.types import Scope

    try:
        raw = sys.stdin.buffer.read(MAX_INPUT + 1)
        scope = Scope(caller.group, caller.session, private=not caller.shared)
        answer = run(event, raw, caller.memory_as, scope)
    except Exception:  # noqa: BLE001 - a hook fails open: an agent must never trip over its memory, not even over a bug
        return
    if answer:
        click.echo(answer)
