"""The command that agents' hooks call."""

from __future__ import annotations

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
    from nanoclaw_memory.interfaces.hooks import run

    run(caller.request("hook", event), caller.overrides)
