"""The search commands as a person and a script use them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path


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
    assert ran.out.startswith("MEMORY.md:1-3  ")
    assert "(words)" in ran.out


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
    assert "nanoclaw-memory models install" in ran.err
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
