"""Write what is made from the code: the commands and settings pages, and the README's tree and page list."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from nanoclaw_memory.interfaces.cli import cli
from nanoclaw_memory.settings import leaves, type_name

DOCS = Path(__file__).parent
ROOT = DOCS.parent
# As the command line itself has it: a command keeps the first help option that it is asked for.
HELP = cli.context_settings["help_option_names"]
NOTE = "<!-- Written by `make docs`; change the code, not this page. -->"


def commands_page() -> str:
    """Every command with its help text."""
    root = click.Context(cli, info_name="ncm", help_option_names=HELP)
    parts = [f"# Commands\n\n{NOTE}\n\n```text\n{cli.get_help(root)}\n```"]
    for path, command in sorted(walk(cli, root)):
        context = click.Context(command, info_name=path, help_option_names=HELP)
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


def tree() -> str:
    """The source tree with a phrase per file: the first sentence of each module."""
    source = ROOT / "src" / "nanoclaw_memory"
    lines = ["src/nanoclaw_memory/"]
    for path in sorted(source.rglob("*.py"), key=_tree_order):
        depth = len(path.relative_to(source).parts)
        if path.name == "__init__.py" and depth == 1:
            continue
        if path.name == "__init__.py":
            lines.append(
                f"{'  ' * (depth - 1)}{path.parent.name + '/':<{24 - 2 * (depth - 1)}} {phrase(path)}"
            )
        else:
            lines.append(f"{'  ' * depth}{path.name:<{24 - 2 * depth}} {phrase(path)}")
    return "```text\n" + "\n".join(lines) + "\n```"


def _tree_order(path: Path) -> tuple[tuple[int, str], ...]:
    """Files before folders, a folder's own sentence first."""
    *folders, name = path.relative_to(ROOT).parts
    return (*((1, folder) for folder in folders), (-1 if name == "__init__.py" else 0, name))


def phrase(path: Path) -> str:
    """The first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n")[0].rstrip(".")


def pages() -> str:
    """A line per page: its title and its first sentence."""
    lines = []
    for path in sorted(DOCS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        title = text.split("\n", 1)[0].lstrip("# ").strip()
        lines.append(f"- [{title}](docs/{path.name})")
    return "\n".join(lines)


def readme_page() -> str:
    """The README with its tree and list of pages made anew."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, made in (("tree", tree()), ("pages", pages())):
        start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        before, _, rest = text.partition(start)
        text = f"{before}{start}\n{made}\n{end}{rest.partition(end)[2]}"
    return text


PAGES = {"docs/commands.md": commands_page, "docs/settings.md": settings_page, "README.md": readme_page}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (ROOT / name).write_text(page(), encoding="utf-8")
        print(f"wrote {name}")
