"""Long work shows how far it has come, and Ctrl-C leaves a sound state and says how to go on."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from nanoclaw_memory.interfaces import cli


def make_notes(home: Path, count: int) -> None:
    for number in range(count):
        page = home / "workspace" / "memory" / f"note-{number:04}.md"
        page.write_text(f"# Note {number}\n\nAnna keeps boat number {number} in harbour {number % 7}.\n")


def make_export(path: Path) -> Path:
    """An export of ChatGPT with six conversations, as its file looks."""
    conversations = []
    for number in range(6):
        texts = {"user": f"Where is boat {number}?", "assistant": f"Boat {number} is in harbour {number}."}
        mapping = {
            role: {"message": {"author": {"role": role}, "content": {"parts": [text]}, "create_time": 1.7e9 + step}}
            for step, (role, text) in enumerate(texts.items())
        }  # fmt: skip
        conversations.append(
            {"title": f"Boat {number}", "id": f"c{number}", "create_time": 1.7e9, "mapping": mapping}
        )
    path.write_text(json.dumps(conversations))
    return path


@pytest.fixture
def steps(monkeypatch):
    """Every step that was reported; setting `stop_at` presses Ctrl-C there."""

    class Steps(list):
        stop_at = -1

    seen, shown = Steps(), cli.PROGRESS.show

    def show(stage: str, done: int, total: int) -> None:
        shown(stage, done, total)
        seen.append((stage, done, total))
        if len(seen) - 1 == seen.stop_at:
            raise KeyboardInterrupt

    monkeypatch.setattr(cli.PROGRESS, "show", show)
    monkeypatch.setattr(cli.PROGRESS, "last", "")
    return seen


def work(home: Path, tmp_path: Path) -> dict[str, tuple[str, ...]]:
    return {
        "files": ("index",),
        "jobs of main": ("upkeep", "--all-groups"),
        "conversations": ("import", "chatgpt", str(make_export(tmp_path / "conversations.json"))),
        "entries": ("entries", "migrate"),
    }


@pytest.mark.parametrize("stage", ["files", "jobs of main", "conversations", "entries"])
def test_long_work_reports_every_step(ncm, home, tmp_path, steps, stage):
    ncm("init")
    make_notes(home, 8)
    (home / "workspace" / "MEMORY.md").write_text(
        "# Memory\n\n## Preferences\n- Prefers tea\n- Likes short answers\n"
    )
    assert ncm(*work(home, tmp_path)[stage]).code == 0
    own = [(done, total) for name, done, total in steps if name == stage]
    assert own[0][0] == 0
    assert own[-1][0] == own[-1][1] > 1
    assert all(later[0] - earlier[0] == 1 for earlier, later in pairwise(own))


def test_the_merge_of_another_machines_export_reports_every_step_up_to_the_last(ncm, home, tmp_path, steps):
    ncm("init")
    for number in range(3):
        ncm("graph", "add", f"Boat {number}", "harbour", f"Pier {number}")
    ncm("export", str(tmp_path / "sync"))
    other = ("--home", str(tmp_path / "other"))
    ncm(*other, "init")
    shutil.copy(home / "sync.key", tmp_path / "other")
    assert "came in: 3 facts" in ncm(*other, "import", str(tmp_path / "sync")).out
    assert [(done, total) for name, done, total in steps if name == "facts"] == [(n, 3) for n in range(4)]


def state(ncm) -> tuple[object, ...]:
    """What can be found and read afterwards."""
    hits = ncm("search", "boat in harbour", "-k", "50", "--fast", "--json").json["hits"]
    archived = ncm("sessions", "archives", "--json").json
    return (
        sorted((hit["path"], hit["text"]) for hit in hits),
        len(archived["archives"]),
        ncm("db", "check").code,
    )


@pytest.mark.parametrize("stage", ["files", "conversations"])
def test_after_ctrl_c_the_named_command_finishes_as_if_nothing_had_happened(
    ncm, home, tmp_path, steps, stage
):
    ncm("init")
    make_notes(home, 8)
    command = work(home, tmp_path)[stage]
    steps.stop_at = 3
    stopped = ncm(*command)
    assert stopped.code == 130
    assert f"stopped at {steps[3][1]}/{steps[3][2]} {stage}: memory is sound" in stopped.err
    assert f"to go on: ncm --home {home} {' '.join(command)}" in stopped.err
    assert ncm("db", "check").code == 0
    steps.stop_at = -1
    assert ncm(*command).code == 0
    ncm("index")
    finished = state(ncm)
    reference = tmp_path / "never-stopped"
    for path in (home / "workspace" / "memory").glob("note-*.md"):
        target = reference / "workspace" / "memory" / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    ncm("--home", str(reference), "init")
    ncm("--home", str(reference), *command)
    ncm("--home", str(reference), "index")
    assert finished == state(lambda *arguments: ncm("--home", str(reference), *arguments))


def test_after_a_rebuild_was_stopped_the_hint_does_not_begin_from_the_start(ncm, home, steps):
    ncm("init")
    make_notes(home, 8)
    steps.stop_at = 2
    hint = ncm("index", "--rebuild").err
    assert hint.rstrip().endswith("index")


def test_a_ctrl_c_without_long_work_says_nothing(ncm, monkeypatch):
    from nanoclaw_memory.memory import Memory

    def interrupted(*arguments: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Memory, "open", interrupted)
    monkeypatch.setattr(cli.PROGRESS, "last", "")
    ran = ncm("status")
    assert ran.code == 130
    assert "stopped" not in ran.err


def test_elsewhere_a_line_comes_now_and_then_and_the_time_left_is_told(capsys, monkeypatch):
    line = cli.ProgressLine()
    moments = iter([0.0, 10.0, 40.0, 70.0])
    monkeypatch.setattr(cli.time, "monotonic", lambda: next(moments))
    line._shown = 0.0
    for done in (0, 10, 40, 70):
        line.show("embeddings", done, 100)
    assert capsys.readouterr().err == "40/100 embeddings, 60 s left\n70/100 embeddings, 30 s left\n"


def test_a_person_at_a_terminal_sees_a_bar_and_after_ctrl_c_how_to_go_on(ncm, home):
    ncm("init")
    make_notes(home, 1_500)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), "index"],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, close_fds=True,
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            seen += os.read(ours, 4096)
        except OSError:  # the terminal closed with its last process
            break
        if b"/1,5" in seen and process.poll() is None:
            process.send_signal(2)
            break
    while select.select([ours], [], [], 60)[0]:
        try:
            seen += os.read(ours, 4096)
        except OSError:
            break
    os.close(ours)
    assert process.wait(60) == 130, seen
    text = seen.decode()
    assert "[###" in text or "[..." in text or "files" in text
    assert "memory is sound" in text
    assert ncm("index").code == 0
    assert ncm("search", "boat number 1499", "--fast").out.count("boat number 1499") == 1


def test_a_command_that_is_short_shows_no_progress_however_long_its_process_has_run(ncm, home, monkeypatch):
    ncm("init")
    make_notes(home, 3)
    monkeypatch.setattr(cli.PROGRESS, "_shown", cli.PROGRESS._shown - 3_600)
    assert "files" not in ncm("index").err
