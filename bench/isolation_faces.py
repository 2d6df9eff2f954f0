"""Every face of memory, asked the same in two homes: commands, hooks, MCP, HTTP and the helpers for other SDKs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from nanoclaw_memory import Memory, Scope
from nanoclaw_memory.clock import SystemClock

TALK = "t-private"  # the session of private exchanges and of a private transcript
KEYWORDS = {"embeddings.provider": "none", "judge.enabled": "false"}


class Home(msgspec.Struct):
    """A home under test, and the id of a private entry: its own, or one that is nobody's."""

    root: Path
    entry: str = "mem-00000000-0000-4000-8000-000000000000"

    def open(
        self, private: bool, session: str = "chat", origin: str = "owner", group: str = "main"
    ) -> Memory:
        """The home's memory as one scope sees it."""
        return Memory.open(self.root, Scope(group, session, private, origin), overrides=KEYWORDS)


# ---- one answer ----

_VOLATILE = (
    (
        re.compile(
            r"(?<=_ms\": )[\d.e-]+|(?<=_ms\":)[\d.e-]+|(?<=\"ms\":)[\d.e-]+|(?<=\"ms\": )[\d.e-]+|\b[\d.]+(?= ms\b)"
        ),
        "N",
    ),
    (re.compile(r"\b\d+(?= MB of disk)"), "N"),
    (re.compile(r"(?<=//Toby:)[\w-]+(?=@)"), "PASSWORD"),  # of a role
    (re.compile(r"(?<=\"changed_at\":\")[^\"]+"), "T"),  # when the files of a home were made
)


def plain(text: str, home: Home) -> str:
    """An answer without what differs between two equal homes: their place, and how long it took."""
    text = text.replace(home.entry, "ENTRY")
    for path in (str(home.root.resolve()), str(home.root)):
        text = text.replace(path, "HOME")
    for pattern, instead in _VOLATILE:
        text = pattern.sub(instead, text)
    return text


class Steps:
    """Time and random ids that depend on the step of the measurement alone, so that two runs can be compared."""

    def __init__(self) -> None:
        self.phase, self.step, self.made = 0, 0, 0

    def begin(self, phase: int) -> None:
        self.phase, self.step, self.made = phase, 0, 0

    def next(self) -> None:
        self.step, self.made = self.step + 1, 0

    def now(self) -> datetime:
        return datetime(2026, 2, 23, 12 + self.phase, tzinfo=UTC) + timedelta(seconds=self.step)

    def uuid(self) -> uuid.UUID:
        self.made += 1
        return uuid.UUID(f"{self.phase:02}{self.step:05}{self.made:05}{0:020}")


STEPS = Steps()


@contextlib.contextmanager
def stepped() -> Iterator[None]:
    """Time and random ids by steps, as long as the block runs."""
    clock, random = SystemClock.now, uuid.uuid4
    SystemClock.now, uuid.uuid4 = lambda self: STEPS.now(), STEPS.uuid  # type: ignore[method-assign]
    try:
        yield
    finally:
        SystemClock.now, uuid.uuid4 = clock, random  # type: ignore[method-assign]


@contextlib.contextmanager
def captured(stdin: str = "") -> Iterator[Callable[[], str]]:
    """Everything that is printed meanwhile, whoever prints it."""
    sys.stdout.flush()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as given:
        given.write(stdin.encode())
        given.seek(0)
        kept = [os.dup(number) for number in (0, 1, 2)]
        streams = sys.stdin, sys.stdout, sys.stderr
        for number, target in ((0, given), (1, out), (2, out)):
            os.dup2(target.fileno(), number)
        sys.stdin = os.fdopen(os.dup(0))
        sys.stdout, sys.stderr = (os.fdopen(os.dup(number), "w") for number in (1, 2))

        def read() -> str:
            sys.stdout.flush()
            sys.stderr.flush()
            out.seek(0)
            return out.read().decode("utf-8", "replace")

        try:
            yield read
        finally:
            sys.stdin.close()
            sys.stdout.close()
            sys.stderr.close()
            sys.stdin, sys.stdout, sys.stderr = streams
            for number, before in enumerate(kept):
                os.dup2(before, number)
                os.close(before)


# ---- faces ----


class Calls(msgspec.Struct, frozen=True, rename=lambda name: name.replace("_", " ")):
    """What is asked of every face; `{root}`, `{entry}` and `{today}` are each home's own."""

    questions: tuple[str, ...]
    commands: dict[str, tuple[tuple[str, ...], ...]]
    # What starts or changes something outside of the home, or does not end by itself.
    commands_not_asked: frozenset[str]
    events: tuple[tuple[str, dict[str, Any]], ...]
    tools: dict[str, tuple[dict[str, Any], ...]]
    resources: tuple[str, ...]
    routes: dict[str, tuple[dict[str, Any], ...]]
    routes_not_asked: frozenset[str]  # goes to the network


CALLS = msgspec.json.decode((Path(__file__).parent / "data" / "isolation.json").read_bytes(), type=Calls)
Answers = dict[tuple[str, str], str]


def filled(value: Any, home: Home) -> Any:
    """A call's arguments with this home's own places and ids."""
    if isinstance(value, str):
        return value.replace("{root}", str(home.root)).replace("{entry}", home.entry)
    if isinstance(value, Mapping):
        return {name: filled(one, home) for name, one in value.items()}
    return [filled(one, home) for one in value] if isinstance(value, list | tuple) else value


def by_command(home: Home, options: tuple[str, ...] = ("--shared",), json_too: bool = True) -> Answers:
    """What the commands print."""
    found: Answers = {}
    for name, variants in CALLS.commands.items():
        for arguments in variants:
            said = run_command(home, *options, *name.split(), *filled(arguments, home))
            found["command line", f"{name} {' '.join(arguments)}"] = said
            if json_too and name in ("search", "recall", "graph search", "turn", "status", "sessions list"):
                as_json = run_command(home, *options, "--json", *name.split(), *filled(arguments, home))
                found["command line", f"{name} {' '.join(arguments)} --json"] = as_json
    return found


def run_command(home: Home, *arguments: str, stdin: str = "") -> str:
    """One command in this process: what it prints, and its exit code."""
    from nanoclaw_memory.interfaces.cli import main

    STEPS.next()
    sets = [part for key, value in KEYWORDS.items() for part in ("--set", f"{key}={value}")]
    code: object = 0
    with captured(stdin) as read:
        try:
            main(["--home", str(home.root), *sets, *arguments])
        except SystemExit as stopped:
            code = stopped.code
        said = read()
    return f"{said}[exit {code}]"


def by_hook(home: Home) -> Answers:
    """What hooks answer."""
    found: Answers = {}
    for number, (event, payload) in enumerate(CALLS.events):
        given = json.dumps(filled({"cwd": "/", **payload}, home))
        found["hook", f"{number} {event} {payload}"] = run_command(
            home, "--shared", "hook", event, stdin=given
        )
    return found


def by_mcp(home: Home) -> Answers:
    """What the tools, resources, prompts and completions of an MCP server say."""
    from mcp import Client, MCPError
    from mcp.types import ResourceTemplateReference

    from nanoclaw_memory.interfaces.mcp.server import build_server

    found: Answers = {}

    async def ask(memory: Memory) -> None:
        async with Client(build_server(memory, "all")) as client:
            for name in ("tools", "resources", "resource_templates", "prompts"):
                found["MCP resource", f"list {name}"] = (
                    await getattr(client, f"list_{name}")()
                ).model_dump_json()
            for name, variants in CALLS.tools.items():
                for number, arguments in enumerate(variants):
                    STEPS.next()
                    result = await client.call_tool(name, filled(arguments, home))
                    found["MCP tool", f"{name} {number} {arguments}"] = result.model_dump_json()
            for name in CALLS.resources:
                uri = f"memory://{name.replace('{today}', memory.group.today.isoformat())}"
                try:
                    shown = (await client.read_resource(uri)).model_dump_json()
                except MCPError as error:
                    shown = str(error)
                found["MCP resource", uri] = shown
            for slug in ("k", "qui"):
                reference = ResourceTemplateReference(type="ref/resource", uri="memory://project/{slug}")
                try:
                    completed = await client.session.complete(reference, {"name": "slug", "value": slug})
                    shown = completed.model_dump_json()
                except Exception as error:  # noqa: BLE001 - no completions are offered: that is an answer too
                    shown = f"{type(error).__name__}: {error}"
                found["MCP completion", slug] = shown

    with home.open(private=False, origin="agent") as memory:
        asyncio.run(ask(memory))
    return found


def by_http(home: Home) -> Answers:
    """What the routes answer."""
    import logging

    from starlette.testclient import TestClient

    from nanoclaw_memory.interfaces.http import tokens
    from nanoclaw_memory.interfaces.http.app import application
    from nanoclaw_memory.interfaces.http.operations import OPERATIONS
    from nanoclaw_memory.interfaces.http.pool import MemoryPool
    from nanoclaw_memory.interfaces.http.tokens import AgentToken

    logging.getLogger("httpx").setLevel(logging.WARNING)
    found: Answers = {}
    bound = AgentToken(id="", group="main", shared=True, origin="agent")
    agents = {"Authorization": f"Bearer {tokens.new(home.root, bound)[1]}"}
    pool = MemoryPool(home.root)
    client = TestClient(application(pool, {}, "token", 80), base_url="http://127.0.0.1:80")
    headers = {"Authorization": "Bearer token", "X-NanoClaw-Shared": "true", "X-NanoClaw-Session": "chat"}
    try:
        for operation in OPERATIONS:
            if operation.name in CALLS.routes_not_asked:
                continue
            for number, arguments in enumerate(CALLS.routes.get(operation.name, ({},))):
                given = filled(arguments, home)
                path = "/api/v1" + operation.path.format(**{"id": 0, **given})
                rest = {key: value for key, value in given.items() if key not in operation.in_path}
                plainly = operation.method in ("GET", "DELETE")
                sent: dict[str, Any] = {"params": rest} if plainly else {"json": rest}
                STEPS.next()
                answer = client.request(operation.method, path, headers=headers, **sent)
                found["HTTP", f"{operation.name} {number}"] = f"{answer.status_code} {answer.text}"
                if operation.method == "GET":
                    for name, more in (("token", {}), ("token, private", {"X-NanoClaw-Shared": "false"})):
                        STEPS.next()
                        answer = client.get(path, headers={**agents, **more}, **sent)
                        found[f"HTTP by {name}", f"{operation.name} {number}"] = (
                            f"{answer.status_code} {answer.text}"
                        )
        for path in ("/healthz", "/metrics", "/api/v1/openapi.json", "/", "/memory"):
            answer = client.get(path, headers=agents)
            found["HTTP by token", path] = f"{answer.status_code} {answer.text}"
    finally:
        pool.close()
    return found


def by_sdk(home: Home) -> Answers:
    """What the helpers for other SDKs return."""
    from nanoclaw_memory.errors import NanoClawError
    from nanoclaw_memory.interfaces.sdk.claude_agent import hook_callbacks
    from nanoclaw_memory.interfaces.sdk.openai_agents import MemorySession

    found: Answers = {}

    def note(name: str, work: Callable[[], Any]) -> None:
        STEPS.next()
        try:
            found["SDK", name] = str(work())
        except NanoClawError as error:
            found["SDK", name] = f"{type(error).__name__}: {error.message} {error.hint}"

    with home.open(private=False, origin="agent") as memory:
        items = memory.workspace.sdk_items
        note("items.get", lambda: items.get(("user", "1"), "k"))
        note("items.get of the chat", lambda: items.get(("chat",), "menu"))
        note("items.search", lambda: items.search((), "barbecue salad"))
        note("items.search all", lambda: items.search((), ""))
        note("items.namespaces", lambda: items.namespaces())
        note("items.history", lambda: items.history(TALK))
        session = MemorySession(memory)
        note("session.get_items", lambda: asyncio.run(session.get_items()))
        note(
            "session.add_items",
            lambda: asyncio.run(session.add_items([{"role": "user", "content": "And drinks?"}])),
        )
        note("session.pop_item", lambda: asyncio.run(session.pop_item()))
        note("session.clear_session", lambda: asyncio.run(session.clear_session()))
        note("notes", lambda: memory.workspace.notes)
        hooks = hook_callbacks(memory)
        for question in CALLS.questions:
            prompt = partial(hooks["UserPromptSubmit"], {"prompt": question, "session_id": "sdk"}, None, None)
            note(f"agent prompt {question}", lambda prompt=prompt: _awaited(prompt()))  # type: ignore[misc]
        stop = {
            "session_id": TALK,
            "transcript_path": f"{home.root}/data/sessions/main/.claude/projects/p/{TALK}.jsonl",
        }
        note("agent stop", lambda: _awaited(hooks["Stop"](stop, None, None)))
        note("agent compaction", lambda: _awaited(hooks["PreCompact"](stop, None, None)))
        with contextlib.suppress(ImportError):
            from nanoclaw_memory.interfaces.sdk.langgraph import MemoryStore

            store = MemoryStore(memory)
            note("store.get", lambda: store.get(("user", "1"), "k"))
            note("store.search", lambda: store.search((), query="barbecue"))
            note("store.list_namespaces", lambda: store.list_namespaces())
            note("store.put", lambda: store.put(("user", "1"), "k", {"text": "from the chat"}))
            note("store.get again", lambda: store.get(("user", "1"), "k"))
    return found


def _awaited(work: Awaitable[Any]) -> Any:
    async def wait() -> Any:
        return await work

    return asyncio.run(wait())


def by_shell(home: Home) -> Answers:
    """What a shell is offered to complete a command with."""
    from nanoclaw_memory.interfaces.cli import cli

    found: Answers = {}
    for words in (
        "",
        "get ",
        "get m",
        "graph ",
        "project show ",
        "entries show m",
        "config get p",
        "--group ",
    ):
        typed = {"COMP_WORDS": f"ncm --shared {words}", "COMP_CWORD": str(2 + words.count(" "))}
        typed |= {"_NCM_COMPLETE": "bash_complete", "NANOCLAW_HOME": str(home.root)}
        with _environment(typed), captured() as read:
            with contextlib.suppress(SystemExit):
                cli.main(prog_name="ncm", complete_var="_NCM_COMPLETE")
            found["shell completion", words] = read()
    return found


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ |= variables
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def in_telemetry(home: Home, since: int) -> Answers:
    """What the calls left in the telemetry, which the owner reads and other programs may collect."""
    events = (home.root / "logs/telemetry.jsonl").read_bytes()[since:].decode()
    return {("telemetry", f"{number}"): line for number, line in enumerate(events.splitlines())}


FACES: tuple[Callable[[Home], Answers], ...] = (by_hook, by_mcp, by_sdk, by_http, by_command, by_shell)


def in_shared_scope(home: Home) -> Answers:
    """Every answer in a shared scope, comparable with another home's."""
    STEPS.begin(2)
    found: Answers = {}
    events = home.root / "logs/telemetry.jsonl"
    before = events.stat().st_size if events.exists() else 0
    for face in FACES:
        found |= face(home)
    found |= in_telemetry(home, before)
    return {call: plain(answer, home) for call, answer in found.items()}
