"""Safe files: nothing lost, nothing half, and every refusal says why."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nanoclaw_memory.errors import FileProblem, InvalidValue
from nanoclaw_memory.workspace.files import (
    HALF,
    append_line,
    create_text,
    newline_of,
    read_text,
    replace_text,
    split_lines,
)

ONE_LINE = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=80)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(ONE_LINE, min_size=1, max_size=8),
    start=st.sampled_from(["", "# x\n", "a\r\nb\r\n", "end"]),
)
def test_appended_lines_are_read_back_in_order(tmp_path: Path, lines: list[str], start: str):
    path = tmp_path / "log.md"
    path.write_bytes(start.encode())
    numbers = [append_line(path, line) for line in lines]
    found = read_text(path).replace("\r\n", "\n").removesuffix("\n").split("\n")
    assert found[-len(lines) :] == lines
    assert [found[number - 1] for number in numbers] == lines


def test_a_new_file_starts_with_its_header_and_the_line_knows_its_number(tmp_path: Path):
    assert append_line(tmp_path / "new" / "day.md", "- x", "# Day\n\n") == 3
    assert (tmp_path / "new" / "day.md").read_bytes() == b"# Day\n\n- x\n"


def test_crlf_files_keep_their_line_ends(tmp_path: Path):
    path = tmp_path / "windows.md"
    path.write_bytes(b"# Day\r\n- one\r\n")
    append_line(path, "- two")
    assert path.read_bytes() == b"# Day\r\n- one\r\n- two\r\n"


@pytest.mark.parametrize(("ending", "newline"), [(b"- one", b"\n"), (b"# Day\r\n- one", b"\r\n")])
def test_a_missing_final_newline_never_joins_two_lines(tmp_path: Path, ending: bytes, newline: bytes):
    path = tmp_path / "open.md"
    path.write_bytes(ending)
    append_line(path, "- two")
    assert path.read_bytes() == ending + newline + b"- two" + newline


def test_replacing_keeps_the_mode_and_leaves_no_other_file(tmp_path: Path):
    path = tmp_path / "MEMORY.md"
    path.write_text("old")
    path.chmod(0o640)
    replace_text(path, "new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["MEMORY.md"]


def test_replacing_through_a_link_changes_the_file_and_keeps_the_link(tmp_path: Path):
    (tmp_path / "real.md").write_text("old")
    (tmp_path / "link.md").symlink_to("real.md")
    replace_text(tmp_path / "link.md", "new")
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "real.md").read_text() == "new"


def test_a_reader_sees_the_old_or_the_new_text_and_never_a_mix(tmp_path: Path):
    path = tmp_path / "page.md"
    texts = [letter * 200_000 for letter in "ab"]
    replace_text(path, texts[0])
    seen: set[str] = set()
    done = threading.Event()

    def read_on() -> None:
        while not done.is_set():
            seen.add(read_text(path))

    reader = threading.Thread(target=read_on)
    reader.start()
    for number in range(60):
        replace_text(path, texts[number % 2])
    done.set()
    reader.join()
    assert seen and seen <= set(texts)


def test_creating_never_overwrites(tmp_path: Path):
    assert create_text(tmp_path / "x.md", "mine")
    assert not create_text(tmp_path / "x.md", "other")
    assert (tmp_path / "x.md").read_text() == "mine"
    (tmp_path / "dangling.md").symlink_to("nowhere.md")
    assert not create_text(tmp_path / "dangling.md", "other")
    assert not (tmp_path / "nowhere.md").exists()


def test_text_that_is_not_utf8_is_refused_and_left_as_it_is(tmp_path: Path):
    path = tmp_path / "latin.md"
    path.write_bytes(b"caf\xe9")
    with pytest.raises(FileProblem, match="not UTF-8"):
        read_text(path)
    assert path.read_bytes() == b"caf\xe9"


def test_appending_to_a_file_that_is_not_utf8_keeps_its_bytes(tmp_path: Path):
    path = tmp_path / "latin.md"
    path.write_bytes(b"caf\xe9\n")
    append_line(path, "- new")
    assert path.read_bytes() == b"caf\xe9\n- new\n"


def test_a_file_over_the_limit_is_refused_with_its_size(tmp_path: Path):
    path = tmp_path / "big.md"
    with path.open("wb") as stream:
        stream.truncate(50_000_000)
    with pytest.raises(FileProblem, match="50,000,000 bytes"):
        read_text(path)
    assert path.stat().st_size == 50_000_000


def test_a_pipe_between_the_files_is_refused_and_never_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.md")
    with pytest.raises(FileProblem, match="no regular file"):
        read_text(tmp_path / "pipe.md")
    with pytest.raises(FileProblem):
        append_line(tmp_path / "pipe.md", "- x")


def test_half_a_character_is_refused_before_a_file_is_made(tmp_path: Path):
    for write in (append_line, replace_text):
        with pytest.raises(InvalidValue, match="half a character"):
            write(tmp_path / "x.md", "smile \ud83d")
    assert os.listdir(tmp_path) == []


def test_what_the_file_system_refuses_is_said_clearly(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop.md").symlink_to("loop.md")
    for write in (append_line, replace_text, create_text):
        with pytest.raises(FileProblem):
            write(tmp_path / "file" / "below.md", "text")
    for path in (tmp_path / "file" / "below.md", tmp_path / "loop.md", tmp_path):
        with pytest.raises(FileProblem):
            read_text(path)


@pytest.mark.parametrize("limit", [60, 4096])
def test_a_full_disk_takes_the_half_line_back(tmp_path: Path, limit: int):
    """A file size limit cuts the write short just as a full disk does."""
    path = tmp_path / "log.md"
    path.write_bytes(b"- kept\n" + b"x" * (limit - 20) + b"\n")
    before = path.read_bytes()
    script = (
        "import resource, sys; from pathlib import Path; "
        "from nanoclaw_memory.workspace.files import append_line, replace_text; "
        "from nanoclaw_memory.errors import FileProblem\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        "for write in (append_line, replace_text):\n"
        "    try: write(Path(sys.argv[1]), '- ' + 'y' * 5000)\n"
        "    except FileProblem as error: print(error.message)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.count("cannot be written") == 2, done.stderr
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["log.md"]


def test_lines_end_only_at_a_newline():
    text = "a\x0cb\u2028c\nd\r\ne"
    assert split_lines(text) == ["a\x0cb\u2028c\n", "d\r\n", "e"]
    assert split_lines("") == []
    assert split_lines("a\n") == ["a\n"]


@given(st.text())
def test_split_lines_lose_nothing(text: str):
    assert "".join(split_lines(text)) == text


def test_the_newline_is_the_first_one_used():
    assert newline_of("a\r\nb\n") == "\r\n"
    assert newline_of("a\nb\r\n") == "\n"
    assert newline_of("none") == "\n"


# ---- half a character at the end of a log ----

TORN = "- Grüße aus Köln, 生日".encode()[:-1]


def test_a_log_that_ends_with_half_a_character_is_read_and_says_so(tmp_path: Path):
    path = tmp_path / "2026-02-23.md"
    path.write_bytes(b"# 2026-02-23\n\n- one\n" + TORN)
    assert read_text(path) == f"# 2026-02-23\n\n- one\n- Grüße aus Köln, 生{HALF}"
    assert path.read_bytes().endswith(TORN)  # reading changes nothing


@pytest.mark.parametrize("name", ["2026-02-23.md", "exchanges-2026-02.md"])
def test_the_next_line_mends_it(tmp_path: Path, name: str):
    path = tmp_path / name
    path.write_bytes(b"- one\n" + TORN)
    assert append_line(path, "- next") == 3
    assert path.read_text(encoding="utf-8") == "- one\n- Grüße aus Köln, 生\n- next\n"


@given(st.text(min_size=1, max_size=20), st.integers(min_value=1, max_value=3))
def test_wherever_a_log_is_cut_the_next_line_stands_whole(tmp_path_factory, text: str, lost: int):
    path = tmp_path_factory.mktemp("cut") / "2026-02-23.md"
    raw = b"- one\n- " + text.replace("\n", " ").replace("\r", " ").encode("utf-8", "replace")
    path.write_bytes(raw[:-lost])
    append_line(path, "- next")
    lines = path.read_bytes().decode("utf-8").split("\n")
    assert lines[0] == "- one" and lines[-2:] == ["- next", ""]


def test_only_a_torn_end_is_forgiven(tmp_path: Path):
    path = tmp_path / "2026-02-23.md"
    for raw in (b"caf\xe9 at nine\n" + TORN, b"- caf\xe9\n", b"\xff"):
        path.write_bytes(raw)
        with pytest.raises(FileProblem, match="not UTF-8"):
            read_text(path)
        append_line(path, "- next")
        assert path.read_bytes().startswith(raw)
