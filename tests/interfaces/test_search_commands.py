"""The search commands as a person and a script use them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


def notes(home: Path) -> None:
    folder = home / "workspace"
    (folder / "memory").mkdir(parents=True, exist_ok=True)
    (folder / "MEMORY.md").write_text("# Memory\n\n- Keystone runs on port 3055\n", encoding="utf-8")


def test_index_and_search_give_the_promised_keys(ncm: Callable, home: Path):
    ncm("init")
    notes(home)
    indexed = ncm("index", "--json").json
    assert {"files", "chunks", "added", "removed", "embedded", "degraded", "skipped"} <= indexed.keys()
    found = ncm("search", "Keystone port", "--fast", "--json").json
    assert {"hits", "degraded", "took_ms"} <= found.keys()
    assert {"kind", "path", "start_line", "end_line", "text", "score", "why"} <= found["hits"][0].keys()
    assert found["hits"][0]["path"] == "MEMORY.md"


def test_search_shows_path_lines_and_reason(ncm: Callable, home: Path):
    ncm("init")
    notes(home)
    ran = ncm("search", "Keystone port", "--fast")
    assert ran.code == 0
    assert ran.out.startswith("MEMORY.md:3  ")
    assert "(words)" in ran.out


@pytest.mark.parametrize("query", [(), ("",), ("  ",)])
def test_a_search_for_nothing_says_how_to_search(ncm: Callable, query: tuple[str, ...]):
    ncm("init")
    ran = ncm("search", *query)
    assert ran.code == 2 and "say what to search for" in ran.err and 'search "when' in ran.err
    assert ncm("search", *query, "--json").json["error"]["message"] == "say what to search for"
    assert ncm("search", *query, "--type", "fact").code == 0


def test_no_hits_is_no_failure_and_wrong_input_is(ncm: Callable, home: Path):
    ncm("init")
    ran = ncm("search", "xyzzy plugh", "--fast")
    assert (ran.code, ran.out.strip()) == (0, "Nothing found.")
    assert ncm("search", "x", "-k", "0").code == 2
    assert ncm("search", "x", "--corpus", "nowhere").code == 2
    assert ncm("corpus", "add", "Bad Name", str(home)).code == 2
    assert ncm("corpus", "add", "books", "/no/such/folder").code == 2


def test_a_missing_model_is_said_with_the_command_that_helps(ncm: Callable, home: Path):
    ncm("init")
    notes(home)
    ran = ncm("search", "Keystone port")
    assert "ncm models install" in ran.err
    assert ran.code == 0


def test_corpus_commands_go_round(ncm: Callable, home: Path, tmp_path: Path):
    (tmp_path / "guide.md").write_text("# Guide\n\nThe bowline makes a loop.\n", encoding="utf-8")
    ncm("init")
    assert ncm("corpus", "add", "knots", str(tmp_path / "guide.md"), "--json").json["chunks"] == 1
    assert ncm("corpus", "list", "--json").json["corpora"][0]["name"] == "knots"
    hit = ncm("search", "bowline", "--corpus", "knots", "--fast", "--json").json["hits"][0]
    assert hit["corpus"] == "knots"
    assert ncm("corpus", "reindex", "--json").json["files"] == 1
    assert ncm("corpus", "remove", "knots").code == 0
    assert (tmp_path / "guide.md").exists()


def test_watch_indexes_what_changes_and_ends_on_a_signal(ncm: Callable, home: Path):
    ncm("init")
    command = [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), "watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdout is not None
        assert "read" in process.stdout.readline()  # the first run takes in what is there
        notes(home)
        assert process.stdout.readline().startswith("1 read")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert ncm("search", "Keystone port", "--fast", "--json").json["hits"][0]["path"] == "MEMORY.md"


def test_bench_embed_needs_some_notes_and_compares(ncm: Callable, home: Path):
    ncm("init")
    assert ncm("bench", "embed", "--set", "embeddings.provider=none").code == 2
    for number in range(8):
        text = f"# Note {number}\n\nThe project number {number} ships in spring. It needs careful planning soon.\n"
        (home / "workspace" / "memory" / f"n{number}.md").write_text(text, encoding="utf-8")
    ncm("index", "--set", "embeddings.provider=none")
    rows = ncm("bench", "embed", "--json", "--set", "embeddings.provider=none").json["results"]
    assert [row["name"] for row in rows] == ["keyword"]


@pytest.mark.parametrize("command", [("search", "x"), ("graph", "search", "x"), ("sessions", "search", "x")])
def test_how_many_hits_may_be_asked_for_is_the_same_everywhere(ncm, command):
    ncm("init")
    ncm("entries", "store", "The x stands for nothing", "--type", "fact")
    off = ("--set", "embeddings.provider=none")
    for number in ("0", "-1", "101", "150", "201"):
        ran = ncm(*off, *command, "-k", number)
        assert (ran.code, ran.out) == (2, "") and f"{number} is not in the range 1<=x<=100" in ran.err
    for number in ("1", "70", "100"):
        assert ncm(*off, *command, "-k", number).code == 0


def test_the_facade_says_the_same_limits(memory):
    from nanoclaw_memory.errors import InvalidValue

    for types in (None, ["fact"]):
        for number in (0, 101):
            with pytest.raises(InvalidValue, match=f"{number} is outside 1 to 100"):
                memory.search("x", number, types=types, fast=True)


def test_watching_tells_what_happened_and_a_missing_model_once(ncm, monkeypatch):
    from nanoclaw_memory.memory.admin import AdminPart
    from nanoclaw_memory.types import Indexed

    def run(added: int, embedded: int = 0) -> Indexed:
        return Indexed(3, 5, added, 0, embedded, 0, (), ("embeddings: no model",), 1.0)

    ncm("init")
    runs = [run(3), run(0), run(0), run(1), run(0, 2), run(0)]
    monkeypatch.setattr(AdminPart, "watch", lambda self, stop: iter(runs))
    ran = ncm("watch")
    assert ran.out.splitlines() == [
        "3 read, 0 removed, 0 embedded", "1 read, 0 removed, 0 embedded", "0 read, 0 removed, 2 embedded",
    ]  # fmt: skip
    assert ran.err.count("embeddings: no model") == 1
    quiet = [run(0), run(0)]
    monkeypatch.setattr(AdminPart, "watch", lambda self, stop: iter(quiet))
    ran = ncm("watch")
    assert ran.out == "" and ran.err.count("embeddings: no model") == 1
