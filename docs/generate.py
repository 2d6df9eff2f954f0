"""Write what is made from the code: the pages on commands, settings and the code, and the index of all pages."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
    intro = "Every command with its options, as `--help` prints it."
    parts = [f"# Commands\n\n{NOTE}\n\n{intro}\n\n```text\n{cli.get_help(root)}\n```"]
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
    intro = """The settings are in `nanoclaw.json` in the home. The first of these that has a value counts:
`--set KEY=VALUE`, the environment variable, a project's `nanoclaw.json`, the home's, the default. `${VAR}` and
`${VAR:-default}` are expanded. A project's file may set only `memory.*`, `graph.*` and `plugins.entries.*`: no
endpoints, keys, paths or privacy. `ncm config show` prints where each value comes from, `ncm config get KEY` reads
one, `ncm config set KEY VALUE` changes one.

```console
$ ncm config set user.timezone Europe/Berlin
$ ncm config get user.timezone
Europe/Berlin
$ ncm config show user
user.timezone … file
```"""
    head = "| key | type | default | environment | what it does |\n|---|---|---|---|---|"
    return f"# Settings\n\n{NOTE}\n\n{intro}\n\n{head}\n" + "\n".join(rows) + "\n"


def code_map_page() -> str:
    """The source tree with the first sentence of every module."""
    source = ROOT / "src" / "nanoclaw_memory"
    lines = ["src/nanoclaw_memory/"]
    for path in sorted(source.rglob("*.py"), key=_tree_order):
        depth = len(path.relative_to(source).parts)
        if path.name == "__init__.py" and depth == 1:
            continue
        if path.name == "__init__.py":
            depth -= 1
        name = path.parent.name + "/" if path.name == "__init__.py" else path.name
        lines.append(f"{'  ' * depth}{name:<{28 - 2 * depth}} {phrase(path)}")
    return f"# Code map\n\n{NOTE}\n\n{MAP_INTRO}\n\n```text\n" + "\n".join(lines) + "\n```\n"


MAP_INTRO = """Every module with the first sentence of its docstring: to learn where something happens, search this page
for a word of your question. Imports only go down; `make lint` checks it:

`interfaces` > `memory` > `turn`, `upkeep` > `retrieval` > `graph`, `entries`, `conversations`, `lessons`, `host` >
`intake` > `workspace`, `store`, `providers` > the modules beside them, which import nothing of ours but each other.

Three walks show how it works:

1. A log line is found: `Memory.write` → `intake` → `workspace/log`, then `Memory.search` → `retrieval`, which reads
   what has changed, collects candidates and ranks them.
2. A turn is enriched: `interfaces/hooks` → `Memory.before_turn` → `turn/pipeline` → plugins → `retrieval` → blocks.
3. A correction becomes a principle: `Memory.after_turn` → `lessons` → `upkeep` → a proposal → `ncm review` →
   SOUL.md."""


def _tree_order(path: Path) -> tuple[tuple[int, str], ...]:
    """Files before folders, a folder's own sentence first."""
    *folders, name = path.relative_to(ROOT).parts
    return (*((1, folder) for folder in folders), (-1 if name == "__init__.py" else 0, name))


def phrase(path: Path) -> str:
    """The first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n")[0].rstrip(".")


# Every page once, in the order in which they are best read.
READING_ORDER = {
    "Tutorial": ("tutorial",),
    "How to": tuple(
        "install hooks mcp import workspace projects injections forget checkpoints two-machines team policies eval"
        " corpus embeddings server remote web sdk plugins host".split()
    ),
    "Reference": ("commands", "settings", "http", "measurements", "code-map"),
    "Explanation": tuple(
        "overview graph entries search turn lessons judge upkeep security secrets tokens documents".split()
    ),
}


INDEX_INTRO = """Read the tutorial first. Then, if you

- *use agents that others made*: Install, Hooks and clients, The workspace, Projects, Forget;
- *want to know why it said that*: What was injected, Turns, Search, Security of memory;
- *write agents yourself*: Other SDKs, MCP, HTTP, Plugins, The host;
- *work on this program*: the code map and CONTRIBUTING.md in the folder above."""


def index_page() -> str:
    """The pages in their reading order, each with its first sentence."""
    made = {"commands": commands_page, "settings": settings_page, "code-map": code_map_page}
    lines = [f"# The pages\n\n{NOTE}\n\n{INDEX_INTRO}\n"]
    for kind, names in READING_ORDER.items():
        lines.append(f"## {kind}\n")
        for name in names:
            text = made[name]() if name in made else (DOCS / f"{name}.md").read_text(encoding="utf-8")
            lines.append(f"- [{text.split(chr(10), 1)[0].lstrip('# ')}]({name}.md): {first_sentence(text)}")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def first_sentence(page: str) -> str:
    """The first sentence after a page's title, with links as plain words."""
    paragraphs = [part for part in page.split("\n\n")[1:] if part != NOTE]
    text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", " ".join(paragraphs[0].split()))
    found = re.match(r".+?\.(?=\s|$)", text)
    return (found.group() if found else text).rstrip(":.") + "."


def mcp_listing() -> str:
    """What the MCP server answers to a client's first questions, in both generations of the protocol."""
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_PROTOCOL_VERSION

    methods = [f"{noun}/list" for noun in ("tools", "prompts", "resources", "resources/templates")]
    client = {"capabilities": {}, "clientInfo": {"name": "make docs", "version": "1"}}
    versions = list(HANDSHAKE_PROTOCOL_VERSIONS)
    first = {"method": "initialize", "params": {"protocolVersion": versions[-1], **client}}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in (
        ("protocolVersion", LATEST_PROTOCOL_VERSION), ("clientInfo", client["clientInfo"]), ("clientCapabilities", {}),
    )}  # fmt: skip
    asked = [{"method": name, "params": {"_meta": meta}} for name in ("server/discover", *methods)]
    listing = {
        "versions": versions,
        "version": LATEST_PROTOCOL_VERSION,
        "sessions": asyncio.run(mcp_answers([first, *({"method": name} for name in methods)])),
        "stateless": asyncio.run(mcp_answers(asked)),
    }
    return json.dumps(listing, ensure_ascii=False, indent=1) + "\n"


async def mcp_answers(calls: list[dict[str, Any]]) -> dict[str, Any]:
    """The results of calls, by their method."""
    from nanoclaw_memory.interfaces.mcp.server import build_server
    from nanoclaw_memory.interfaces.mcp.stream import McpStream
    from nanoclaw_memory.memory import Memory

    lines = [json.dumps({"jsonrpc": "2.0", "id": call["method"], **call}).encode() + b"\n" for call in calls]
    answers: dict[str, Any] = {}

    async def read() -> bytes:
        return lines.pop(0) if lines else b""

    async def send(raw: bytes) -> None:
        answer = json.loads(raw)
        answers[answer["id"]] = answer["result"]

    with tempfile.TemporaryDirectory() as folder, Memory.open(folder) as memory:
        await McpStream(read, send).serve(build_server(memory, "all"))
    return {call["method"]: answers[call["method"]] for call in calls}


PAGES = {
    "src/nanoclaw_memory/interfaces/mcp/listing.json": mcp_listing,
    "docs/commands.md": commands_page,
    "docs/settings.md": settings_page,
    "docs/code-map.md": code_map_page,
    "docs/README.md": index_page,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (ROOT / name).write_text(page(), encoding="utf-8")
        print(f"wrote {name}")
