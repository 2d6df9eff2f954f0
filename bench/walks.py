"""How much code a walk through the program touches: files, packages, functions, calls between files, own stack depth.

    python bench/walks.py                 our own src
    python bench/walks.py --before DIR    the same walks through another checkout, beside ours

Each walk is a real call in a home with a few logs, facts, entries, exchanges and lessons (search: logs alone), without
embeddings, and the first of its kind in its process, as a hook's is. A function counts once; module and class bodies,
lambdas and comprehensions do not count, but are part of the stack. Threads that a walk starts are followed.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from measure import table

ROOT = Path(__file__).parents[1]
PUBLISHED = {  # of version 9b57be3, traced by hand when its code was reviewed
    "prompt hook to blocks": (67, 469, 20),
    "search": (33, 211, 19),
    "write": (14, 70, 13),
    "correction to lesson": (17, 48, 10),
    "upkeep metabolize": (46, 148, 13),
    "memory_store over MCP": (31, 167, 20),
    "brief": (25, 99, 15),
    "host message to answer": (45, 220, 18),
}
OFF = {"embeddings.provider": "none"}
NOW = datetime(2026, 2, 23, 12, 0, tzinfo=UTC)
PROMPT = "How do partners verify our webhooks? Which port does Keystone use? Then please swap the disks now."

SENT = ("Send the invoices", "I sent the invoices by e-mail.")
CORRECTED = ("No, that's wrong. Never send invoices by e-mail, always use the portal.", "Understood.")


class Trace:
    """What was called while it was on."""

    def __init__(self, source: Path) -> None:
        self.source = str(source)
        self.functions: set[CodeType] = set()
        self.calls = 0
        self.depth = 0
        self._ours: dict[CodeType, bool] = {}

    def is_ours(self, code: CodeType) -> bool:
        known = self._ours.get(code)
        if known is None:
            # A class body is no function: it is not optimized.
            known = code.co_filename.startswith(self.source) and bool(code.co_flags & inspect.CO_OPTIMIZED)
            self._ours[code] = known
        return known

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or not self.is_ours(frame.f_code):
            return
        self.functions.add(frame.f_code)
        depth, caller, above = 1, None, frame.f_back
        while above is not None:
            if self.is_ours(above.f_code):
                depth += 1
                caller = caller or above.f_code.co_filename
            above = above.f_back
        self.depth = max(self.depth, depth)
        self.calls += caller is not None and caller != frame.f_code.co_filename

    @contextmanager
    def on(self) -> Iterator[None]:
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def counted(self) -> dict[str, int]:
        named = [code for code in self.functions if not code.co_name.startswith("<")]
        files = {code.co_filename for code in named}
        packages = {Path(file).relative_to(self.source).parts[0] for file in files}
        return {
            "files": len(files),
            "packages": len(packages),
            "functions": len(named),
            "calls": self.calls,
            "depth": self.depth,
        }


# ---- inside one tree; names that differ between versions are looked up ----


def _module(*names: str) -> Any:
    """The first of these modules that this version has."""
    for name in names:
        try:
            return importlib.import_module(f"nanoclaw_memory.{name}")
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("nanoclaw_memory"):
                raise
    raise SystemExit(f"this version has none of {', '.join(names)}")


def _open(home: Path, session: str) -> Any:
    from nanoclaw_memory import Memory, Scope
    from nanoclaw_memory.clock import FixedClock

    return Memory.open(home, Scope(session_id=session, origin="agent"), clock=FixedClock(NOW), overrides=OFF)


def _host(memory: Any) -> Any:
    return memory.host() if callable(memory.host) else memory.host.state


def _fact(memory: Any, entity: str, key: str, value: str) -> None:
    upsert = getattr(memory, "fact_upsert", None) or memory.graph.upsert
    upsert(entity, key, value, "project")


def fill_logs(home: Path) -> None:
    """A home with the logs of a week."""
    with _owner(home) as memory:
        memory.init()
    for day in range(1, 6):
        when = (NOW - timedelta(days=day)).date()
        text = f"# {when}\n\n- [decision|i=0.9] Chose plan {day} for the ledger\n- [fact|i=0.5] It rained\n"
        (home / "workspace" / "memory" / f"{when}.md").write_text(text)


def fill(home: Path) -> None:
    """A home with a little of everything."""
    fill_logs(home)
    with _owner(home) as memory:
        _fact(memory, "Keystone", "port", "3001")
        _fact(memory, "Keystone", "port", "4000")
        memory.store("Prefers tea before noon", "preference")
        _host(memory).register_group("1@g.us", "Family", "family", "@Andy")
    with _owner(home, NOW - timedelta(days=40)) as memory:
        memory.lessons.add("Shut the gateway down before you swap disks", trigger="swap disks")
    with _open(home, "monday") as memory:
        said = ("How do partners verify our webhooks?", "By an HMAC signature with their secret.")
        memory.after_turn(*said, at=NOW - timedelta(days=4))
        memory.search("the ledger")
    for number in range(6):  # a lesson that came back so often is ripe for SOUL.md
        with _open(home, f"swap-{number}") as memory:
            memory.before_turn("please swap the disks now")
            memory.after_turn("please swap the disks now", "Done.")
        with _owner(home) as memory:
            memory.lessons.feedback(1, True)


def hook(home: Path) -> Callable[[], object]:
    hooks = _module("interfaces.hooks.events", "interfaces.hooks", "faces.hooks")
    answer = getattr(hooks, "answer", None) or hooks.run
    from nanoclaw_memory import Scope

    def called(event: str, **payload: str) -> str:
        given = {"session_id": "tuesday", "hook_event_name": event, **payload}
        raw = json.dumps(given).encode()
        shown = answer(event, raw, lambda scope: _open(home, scope.session_id), Scope())
        return shown.decode() if isinstance(shown, bytes) else str(shown)

    def walk() -> None:
        text = called("UserPromptSubmit", prompt=PROMPT)
        assert "4000" in text and "HMAC" in text, text

    for asked, answered in (SENT, CORRECTED):
        called("UserPromptSubmit", prompt=asked)
        called("Stop", last_assistant_message=answered)
    (home / "workspace" / "memory" / "2026-01-01.md").write_text("# Day\n\n- Ann.hobby = chess\n")
    return walk


def search(home: Path) -> Callable[[], object]:
    memory = _open(home, "tuesday")
    (home / "workspace" / "memory" / "2026-01-01.md").write_text("# Day\n\n- [fact|i=0.5] A harbour\n")
    return lambda: _asserted(memory.search("which harbour did we see").hits)


def write(home: Path) -> Callable[[], object]:
    memory = _open(home, "tuesday")
    return lambda: memory.write("Chose SQLite", "decision", 0.9)


def correction(home: Path) -> Callable[[], object]:
    memory = _open(home, "tuesday")
    memory.after_turn(*SENT)
    return lambda: _asserted(memory.after_turn(*CORRECTED).lessons)


def metabolize(home: Path) -> Callable[[], object]:
    memory = _owner(home)
    run = memory.upkeep if callable(memory.upkeep) else memory.upkeep.run
    return lambda: _asserted(run("metabolize")[0].changed)


def store(home: Path) -> Callable[[], object]:
    import anyio
    from mcp import Client

    server = _module("interfaces.mcp.server", "interfaces.mcp", "faces.mcp").build_server(
        _open(home, "tuesday")
    )

    async def call() -> None:
        async with Client(server) as client:
            arguments = {"type": "fact", "content": "The harbour has three cranes"}
            done = await client.call_tool("memory_store", arguments)
            assert not done.is_error, done

    return lambda: anyio.run(call)


def brief(home: Path) -> Callable[[], object]:
    memory = _open(home, "tuesday")
    return lambda: _asserted(memory.brief().text)


def message(home: Path) -> Callable[[], object]:
    host = _host(_owner(home))

    def walk() -> None:
        host.store_message("m1", "1@g.us", "@Andy when is the picnic?", "2026-02-23T11:00:00Z")
        batch = host.batch(host.poll()[0])
        assert host.answer(batch, "On Saturday.", "family-1")

    return walk


def _owner(home: Path, now: datetime = NOW) -> Any:
    from nanoclaw_memory import Memory
    from nanoclaw_memory.clock import FixedClock

    return Memory.open(home, clock=FixedClock(now), overrides=OFF)


def _asserted(found: Any) -> Any:
    assert found, "the walk found nothing"
    return found


WALKS = {
    "prompt hook to blocks": hook,
    "search": search,
    "write": write,
    "correction to lesson": correction,
    "upkeep metabolize": metabolize,
    "memory_store over MCP": store,
    "brief": brief,
    "host message to answer": message,
}


def walked() -> dict[str, dict[str, int]]:
    """Every walk through the version that this process imports, each in processes of its own."""
    found = {}
    for name, prepared in WALKS.items():
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder) / "home"
            _in_child(partial(fill_logs if name == "search" else fill, home))
            found[name] = _in_child(partial(_traced, prepared, home))
    return found


def _traced(prepared: Callable[[Path], Callable[[], object]], home: Path) -> dict[str, int]:
    import nanoclaw_memory

    walk = prepared(home)
    trace = Trace(Path(nanoclaw_memory.__file__).parent)
    with trace.on():
        walk()
    return trace.counted()


def _in_child(work: Callable[[], Any]) -> Any:
    """Do it in a process of its own and return what it returned."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        with os.fdopen(writing, "w") as answer:
            try:
                json.dump(work(), answer)
            except BaseException:  # noqa: BLE001 - the parent reports it
                traceback.print_exc()
                os._exit(1)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        returned = answer.read()
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit("a walk failed")
    return json.loads(returned)


# ---- beside each other ----


def of(checkout: Path) -> dict[str, dict[str, int]]:
    """The walks through another checkout, in a process that imports it."""
    own = checkout / ".venv" / "bin" / "python"
    interpreter = str(own) if own.exists() else sys.executable
    environment = {**os.environ, "PYTHONPATH": f"{checkout / 'src'}:{Path(__file__).parent}"}
    done = subprocess.run(
        [interpreter, __file__, "--json"], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"the walks through {checkout} failed:\n{done.stderr}")
    counted: dict[str, dict[str, int]] = json.loads(done.stdout)
    return counted


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--before", type=Path, help="another checkout to walk through")
    parser.add_argument("--json", action="store_true", help="print this version's walks as JSON")
    given = parser.parse_args()
    if given.json:
        print(json.dumps(walked()))
        return
    ours = of(ROOT)
    before = of(given.before.resolve()) if given.before else None
    head = ["walk", "files", "packages", "functions", "calls between files", "own stack depth"]
    rows = []
    for name, counted in ours.items():
        old = before[name] if before else None
        cells = [f"{old[key]} → {counted[key]}" if old else str(counted[key]) for key in counted]
        rows.append([name, *cells, " / ".join(map(str, PUBLISHED[name]))])
    table([*head, "published for 9b57be3: files / functions / depth"], rows)


if __name__ == "__main__":
    main()
