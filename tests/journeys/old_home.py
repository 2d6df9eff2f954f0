"""A home that version 9b57be3 made, what that version printed about it, and what today's commands print.

Run as `python old_home.py WORK STRIDE` it kills today's first commands with -9 at every STRIDE-th step of their
writing, and prints what each death lost. `fixtures/make_old_home.py` made the home.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import apsw

FIXTURES = Path(__file__).parents[1] / "fixtures"
INVENTORY: dict[str, Any] = json.loads((FIXTURES / "home_9b57be3.json").read_text(encoding="utf-8"))
BEFORE: dict[str, Any] = INVENTORY["commands"]
FORGOTTEN: dict[str, str] = INVENTORY["forgotten"]
# What depends on the day on which it is asked, or on where the home lies.
_PASSING = frozenset("activation tier maturity_days path bytes token_cost".split())
# What using memory counts.
USES = frozenset("access_count injections used_at last_used outcomes".split())
# Read elsewhere in the tests, by their own keys.
_APART = ("config show", "boot", "db check", "corpus list", "audit verify", "checkpoint show")
# Whatever opens each database for the first time, and asks each group what it must keep out.
FIRST_COMMANDS = (
    ("index",),
    ("write", FORGOTTEN["text"]),
    ("write", INVENTORY["forgotten of research"], "--group", "research"),
    ("entries", "list"),
    ("graph", "search", "Keystone"),
    ("recall", "staging port"),
    ("sessions", "search", "harbour bucket"),
    ("lessons", "list"),
    ("tasks", "list"),
    ("corpus", "list"),
    ("index", "--group", "research"),
    ("turn", "where do the logs of Keystone go?"),
)


def unpack(folder: Path) -> Path:
    """The home as that version left it; its corpus knows where its documents lie now."""
    with tarfile.open(FIXTURES / "home_9b57be3.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    for path in (folder / "home" / "data" / "corpora").glob("*.db"):
        connection = apsw.Connection(str(path))
        sources = json.dumps([str(folder / "documents")])
        connection.execute("UPDATE meta SET value = ? WHERE key = 'sources'", (sources,))
        connection.close()
    return folder / "home"


def command(home: Path, *arguments: str) -> tuple[int, str, str]:
    """Run a command in this process: exit code, output, errors."""
    from nanoclaw_memory.interfaces.cli import main

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(["--home", str(home), *arguments])
        except SystemExit as stopped:
            return int(stopped.code or 0), out.getvalue(), err.getvalue()
    raise AssertionError("a command always exits")


def lost(home: Path, passing: frozenset[str] = frozenset()) -> dict[str, Any]:
    """What the old version printed and today's does not, by command; keys in `passing` may change."""
    found: dict[str, Any] = {}
    for asked, before in BEFORE.items():
        if asked.startswith(_APART):
            continue
        code, out, err = command(home, *asked.split(), *([] if "export" in asked else ["--json"]))
        if code:
            found[asked] = f"exit {code}: {out}{err}"
            continue
        after = [json.loads(line) for line in out.splitlines()] if "export" in asked else json.loads(out)
        if missing := list(_missing(before, after, _PASSING | passing)):
            found[asked] = missing
    for name, text in FORGOTTEN.items():
        code, out, _ = command(home, "write", text, "--json")
        if code != 2:
            found[f"tombstone of {name}"] = f"exit {code}: {out}"
    return found


def _missing(before: Any, after: Any, passing: frozenset[str], at: str = "") -> Iterator[str]:
    """Records and values of `before` that `after` lacks; more of both is fine."""
    if isinstance(before, dict):
        others = after if isinstance(after, dict) else {}
        for key in before.keys() - passing:
            yield from _missing(before[key], others.get(key), passing, f"{at}.{key}")
    elif isinstance(before, list) and before and isinstance(before[0], dict):
        for record in before:
            others = after if isinstance(after, list) else []
            if not any(not list(_missing(record, other, passing)) for other in others):
                yield f"{at}: {json.dumps(record, ensure_ascii=False)}"
    elif at.endswith(".query") and after == "":
        return  # prompts that got a lesson were kept with whatever credentials they had
    elif before != after and (before, after) != ("correction", "user"):  # the origin of a lesson
        yield f"{at}: {before!r} became {after!r}"


# ---- deaths ----


def _writing(home: Path, step: Callable[[str], None]) -> None:
    """Report every statement that changes a database, and every file of the home that is opened to be written,
    renamed or removed."""

    def on_statement(cursor: Any, statement: str, bindings: Any) -> bool:
        verb = statement.lstrip().split(None, 1)[0].upper() if statement.strip() else ""
        if verb not in ("SELECT", "PRAGMA", "WITH", "EXPLAIN", ""):
            connection = cursor if isinstance(cursor, apsw.Connection) else cursor.connection
            step(f"{verb} in {Path(connection.filename).name}")
        return True

    def on_event(event: str, arguments: Sequence[Any]) -> None:
        writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
        changes = writes or event in ("os.rename", "os.remove", "os.truncate")
        if changes and str(arguments[0]).startswith(str(home)):
            step(f"{event} {Path(str(arguments[0])).name}")

    apsw.connection_hooks.append(lambda connection: setattr(connection, "exec_trace", on_statement))
    sys.addaudithook(on_event)


def _in_child(work: Callable[[], Any]) -> tuple[int, Any]:
    """Do it in a process of its own: its status and what it returned."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        with os.fdopen(writing, "w") as answer:
            json.dump(work(), answer)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        told = answer.read()
    _, status = os.waitpid(child, 0)
    return status, json.loads(told) if told else None


def first_commands(home: Path, dies_at: int = 0) -> list[str]:
    """Run the first commands; the steps of their writing, or death at one of them."""
    steps: list[str] = []

    def step(name: str) -> None:
        steps.append(name)
        if len(steps) == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    _writing(home, step)
    for arguments in FIRST_COMMANDS:
        command(home, *arguments)
    return steps


def main(work: Path, stride: int) -> None:
    _, steps = _in_child(lambda: first_commands(unpack(work / "whole")))
    deaths: dict[str, Any] = {}
    for number in range(1, len(steps), stride):
        home = unpack(work / str(number))
        status, _ = _in_child(lambda home=home, number=number: first_commands(home, number))
        killed = os.WIFSIGNALED(status)
        _, gone = _in_child(lambda home=home: lost(home, USES))
        deaths[f"{number} {steps[number - 1]}"] = gone if killed else "it was not killed"
    print(json.dumps({"steps": steps, "deaths": deaths}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
