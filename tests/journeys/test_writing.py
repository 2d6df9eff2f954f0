"""Writing memory: nothing acknowledged is lost, nothing is half, and nothing outside is reached."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nanoclaw_memory.errors import FileProblem
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope

# A process that opens the home given to it; what it writes comes as Python lines.
PROCESS = """
import os, random, signal, sys
from datetime import UTC, datetime
from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory
memory = Memory.open(sys.argv[1], clock=FixedClock(datetime(2026, 2, 23, 12, tzinfo=UTC)))
def write(name, number, length):
    memory.write(f"{name}/{number} " + "é" * (length - number % 9), "context", 0.5)
"""
# A hundred children, each killed after a random number of lines at a random moment of the next one.
KILLS = """
chance = random.Random(23)
for child in range(100):
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        number = 0
        while True:
            write(f"w{child}", number, 700)
            os.write(writer, b"%d\\n" % number)
            number += 1
    os.close(writer)
    with os.fdopen(reader) as told:
        seen = [told.readline() for _ in range(chance.randrange(6))]
        for _ in range(chance.randrange(20_000)):
            pass
        os.kill(pid, signal.SIGKILL)
        seen += told.readlines()
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    for line in seen:
        print(f"w{child}/{line.strip()}")
"""


def start(home: Path, lines: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROCESS + lines, str(home), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def text_of(name: str, length: int) -> str:
    number = int(name.partition("/")[2] or 0)
    return f"{name} " + "é" * (length - number % 9)


def test_a_writer_killed_a_hundred_times_loses_no_acknowledged_line(memory: Memory, home: Path):
    told, problems = start(home, KILLS).communicate(timeout=240)
    assert problems == ""
    acknowledged = told.split()
    assert len(acknowledged) > 100

    entries = memory.log()[1]
    found = {entry.text.split(" ")[0]: entry for entry in entries}
    assert set(acknowledged) <= found.keys()
    for name in acknowledged:
        assert found[name] == replace(found[name], text=text_of(name, 700), tag="context", importance=0.5)
    # A line that nobody was told of may be whole, absent or, where a kill meets a page border, cut; not often.
    assert len([entry for name, entry in found.items() if entry.text != text_of(name, 700)]) <= 1
    folder = home / "workspace" / "memory"
    assert sorted(path.name for path in folder.iterdir()) == [
        "2026-02-23.md",
        "active-context.md",
        "checkpoints",
        "gating-policies.md",
    ]
    assert memory.write("life goes on").line > len(entries)


def test_four_processes_appending_interleave_nothing(memory: Memory, home: Path):
    lines = "for number in range(500): write(sys.argv[2], number, 20)"
    writers = [start(home, lines, f"w{number}") for number in range(4)]
    assert [writer.communicate(timeout=240)[1] for writer in writers] == [""] * 4
    entries = [entry.text for entry in memory.log()[1]]
    assert len(entries) == 2000
    for number in range(4):
        mine = [text for text in entries if text.startswith(f"w{number}/")]
        assert mine == [text_of(f"w{number}/{n}", 20) for n in range(500)]


def test_the_number_given_is_the_lines_own(memory: Memory):
    first, second = memory.write("one"), memory.write("two", "decision", 0.9)
    assert memory.get(first.path, first.line, first.line).text == "- one\n"
    assert memory.get(second.path, second.line, second.line).text == "- [decision|i=0.9] two\n"


@pytest.mark.parametrize(
    ("content", "given", "line"),
    [
        ("[decision|i=0.9] Chose SQLite", {}, "- [decision|i=0.9|@tide] Chose SQLite"),
        ("- [lesson|i=0.7] Measure first", {}, "- [lesson|i=0.7|@tide] Measure first"),
        ("[decision|i=0.9] Chose SQLite", {"importance": 0.4}, "- [decision|i=0.4|@tide] Chose SQLite"),
        ("[decision|i=0.9] Chose SQLite", {"tag": "note"}, "- [note|@tide] [decision|i=0.9] Chose SQLite"),
        ("[decision|by owner] Chose SQLite", {}, "- [@tide] [decision|by owner] Chose SQLite"),
        ("[decision|i=0.9|@reef] Chose SQLite", {}, "- [@tide] [decision|i=0.9|@reef] Chose SQLite"),
        ("[x] done", {}, "- [@tide] [x] done"),
        ("[docs|i=1](https://example.org)", {}, "- [@tide] [docs|i=1](https://example.org)"),
    ],
)
def test_content_that_has_its_tag_and_importance_before_it_is_tagged_so(
    home: Path, content: str, given: dict[str, Any], line: str
):
    with Memory.open(home, Scope(project="tide")) as memory:
        memory.init()
        memory.write(content, **given)
        assert memory.get(f"memory/{memory.group.today}.md").text.splitlines()[-1] == line


def test_a_log_with_windows_line_ends_and_no_final_newline_stays_one(memory: Memory, home: Path):
    path = home / "workspace" / "memory" / "2026-02-23.md"
    path.write_bytes(b"# Monday\r\n\r\n- typed by hand")
    memory.write("added")
    assert path.read_bytes() == b"# Monday\r\n\r\n- typed by hand\r\n- added\r\n"
    assert [entry.text for entry in memory.log()[1]] == ["typed by hand", "added"]


def test_writing_in_a_home_that_was_never_initialised_works(ncm: Callable[..., Any], home: Path):
    assert ncm("write", "first words").code == 0
    assert [line["text"] for line in ncm("log", "--json").json["lines"]] == ["first words"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("get", "../../etc/passwd"),
        ("get", "/etc/passwd"),
        ("get", "link.md"),
        ("get", "memory/folder/secret.md"),
        ("get", "memory/nul\x00.md"),
        ("get", "x" * 5000 + ".md"),
        ("get", "half\udcff.md"),
        ("--group", "../x", "get", "MEMORY.md"),
        ("--group", "../x", "write", "text"),
        ("--group", "../x", "init"),
        ("--group", "", "init"),
        ("write", "half \ud83d"),
        ("write", " "),
        ("write", "x" * 5000),
        ("write", "x", "--tag", "a b"),
        ("write", "x", "--importance", "2"),
        ("boot", "--project", "../../etc/passwd"),
        ("project", "new", "../x"),
        ("project", "show", "../x"),
        ("runbook", "show", "../../../etc/passwd"),
        ("checkpoint", "create", "../x"),
        ("checkpoint", "restore", "../x"),
        ("log", "some other day"),
    ],
)
def test_what_is_refused_exits_2_with_a_hint_and_changes_nothing(
    memory: Memory, ncm: Callable[..., Any], home: Path, tmp_path: Path, arguments: tuple[str, ...]
):
    (tmp_path / "secret.md").write_text("secret")
    (home / "workspace" / "link.md").symlink_to(tmp_path / "secret.md")
    (home / "workspace" / "memory" / "folder").symlink_to(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    ran = ncm(*arguments, "--json")
    assert ran.code == 2, ran
    assert ran.json["error"]["hint"]
    assert "secret" not in ran.json["error"]["message"].replace("secret.md", "")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_refusal_reads_well_from_a_real_shell(memory: Memory, ncm_process: Callable[..., Any], home: Path):
    for arguments in (("get", "../../etc/passwd"), ("get", b"caf\xe9.md".decode("utf-8", "surrogateescape"))):
        ran = ncm_process(*arguments)
        assert ran.code == 2 and ran.out == ""
        assert ran.err.startswith("ncm: ") and "Traceback" not in ran.err


def test_a_missing_file_is_empty_with_a_note(memory: Memory, ncm: Callable[..., Any]):
    ran = ncm("get", "memory/2020-01-01.md", "--json")
    assert ran.code == 0
    assert (ran.json["exists"], ran.json["text"]) == (False, "")
    assert "there is no memory/2020-01-01.md yet" in ran.json["note"]


def test_a_file_of_fifty_megabytes_or_of_other_bytes_gives_a_clear_error_and_stays(
    memory: Memory, ncm: Callable[..., Any], home: Path
):
    big, latin = home / "workspace" / "big.md", home / "workspace" / "latin.md"
    with big.open("wb") as stream:
        stream.truncate(50_000_000)
    latin.write_bytes(b"caf\xe9\n")
    for name, message in (("big.md", "50,000,000 bytes"), ("latin.md", "not UTF-8")):
        ran = ncm("get", name)
        assert ran.code == 1 and message in ran.err
    assert (big.stat().st_size, latin.read_bytes()) == (50_000_000, b"caf\xe9\n")


def test_a_day_that_someone_saved_in_another_encoding_still_takes_lines(memory: Memory, home: Path):
    path = home / "workspace" / "memory" / "2026-02-23.md"
    path.write_bytes(b"- caf\xe9\n")
    memory.write("kept")
    assert path.read_bytes() == b"- caf\xe9\n- kept\n"
    with pytest.raises(FileProblem, match="not UTF-8"):
        memory.log()


def test_a_home_that_cannot_be_written_is_a_clear_problem(
    memory: Memory, home: Path, ncm: Callable[..., Any]
):
    folder = home / "workspace" / "memory"
    (folder / "2026-02-23.md").unlink()
    folder.chmod(0o555)
    # Root may write anywhere but in /proc.
    given = ("--home", "/proc/nanoclaw") if os.getuid() == 0 else ()
    try:
        for command in (("write", "x"), ("policy", "add", "x", "--trigger", "y", "--gate", "z"), ("init",)):
            ran = ncm(*given, *command)
            assert ran.code == 1 and ("cannot be written: " in ran.err or "cannot be made: " in ran.err), ran
            assert "permissions" in ran.err
    finally:
        folder.chmod(0o755)


def test_a_file_in_the_way_of_the_workspace_is_a_clear_problem(ncm: Callable[..., Any], home: Path):
    home.mkdir()
    (home / "workspace").write_text("not a folder")
    ran = ncm("write", "x")
    assert ran.code == 1 and "cannot be written" in ran.err
