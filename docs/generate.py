"""Write the pages that are made from the code: docs/commands.md and docs/settings.md."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from nanoclaw_memory.faces.cli import cli
from nanoclaw_memory.settings import leaves, type_name

DOCS = Path(__file__).parent
NOTE = "<!-- Written by `make docs`; change the code, not this page. -->"


def commands_page() -> str:
    """Every command with its help text."""
    root = click.Context(cli, info_name="ncm")
    parts = [f"# Commands\n\n{NOTE}\n\n```text\n{cli.get_help(root)}\n```"]
    for path, command in sorted(walk(cli, root)):
        context = click.Context(command, info_name=path)
        parts.append(f"## `{path}`\n\n```text\n{command.get_help(context)}\n```")
    return "\n\n".join(parts) + "\n"


def walk(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """All commands below a group with their full names."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        path = f"{context.command_path} {name}"
        yield path, command
        if isinstance(command, click.Group):
            yield from walk(command, click.Context(command, info_name=path))


def settings_page() -> str:
    """Every setting with type, default, environment variable and sentence."""
    rows = []
    for leaf in leaves():
        default = json.dumps(msgspec.to_builtins(leaf.default), ensure_ascii=False).replace("|", "\\|")
        rows.append(
            f"| `{leaf.path}` | {type_name(leaf)} | `{default}` | `{leaf.variable}` | {leaf.description} |"
        )
    intro = """Settings live in `nanoclaw.json` in the home. Precedence: `--set KEY=VALUE`, then the
environment variable, then a project's `nanoclaw.json`, then the home's, then the default. `${VAR}` and
`${VAR:-default}` are expanded. A project file may set only `memory.*`, `graph.*` and `plugins.entries.*`: no
endpoints, keys, paths or privacy. `ncm config show` tells where each value comes from, `ncm config get KEY`
reads one, `ncm config set KEY VALUE` changes one.

```console
$ ncm config set user.timezone Europe/Berlin
$ ncm config get user.timezone
Europe/Berlin
$ ncm config show user
user.timezone … file
```"""
    head = "| key | type | default | environment | what it does |\n|---|---|---|---|---|"
    return f"# Settings\n\n{NOTE}\n\n{intro}\n\n{head}\n" + "\n".join(rows) + "\n"


PAGES = {"commands.md": commands_page, "settings.md": settings_page}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
        print(f"wrote docs/{name}")
