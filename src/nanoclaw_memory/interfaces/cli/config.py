"""Commands on settings: show, get, set."""

from __future__ import annotations

import json
from typing import Any

import click

from nanoclaw_memory.interfaces.cli.common import Caller, group, pass_caller


@group("config")
def config() -> None:
    """Show, read and change settings (nanoclaw.json)."""


@config.command("show")
@click.argument("prefix", default="")
@pass_caller
def show(caller: Caller, prefix: str) -> None:
    """List settings with their values and where each comes from.

    \b
    ncm config show
    ncm config show embeddings
    """
    with caller.memory(new=True) as memory:
        rows = memory.admin.config_rows(prefix)
        problems = memory.group.configuration.problems
    shown = [
        f"{row['key']:<48} {json.dumps(row['value'], ensure_ascii=False):<28} {row['from']}" for row in rows
    ]
    caller.show({"settings": rows, "problems": problems}, "\n".join(shown))
    if not caller.json:
        for problem in problems:
            click.echo(f"note: {problem}", err=True)


@config.command("get")
@click.argument("key")
@pass_caller
def get(caller: Caller, key: str) -> None:
    """Print one setting.

    \b
    ncm config get memory.chunkSize
    """
    with caller.memory(new=True) as memory:
        value, origin = memory.admin.config_get(key)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    caller.show({"key": key, "value": value, "from": origin}, text)


@config.command("set")
@click.argument("key")
@click.argument("value")
@pass_caller
def set_(caller: Caller, key: str, value: str) -> None:
    """Change one setting in nanoclaw.json; the file is checked before it is replaced.

    \b
    ncm config set user.timezone Europe/Berlin
    ncm config set embeddings.provider azure-openai
    """
    with caller.memory(new=True) as memory:
        stored: Any = memory.admin.config_set(key, value)
    caller.show({"key": key, "value": stored}, f"{key} = {json.dumps(stored, ensure_ascii=False)}")
