"""One damaged database: what does not need it goes on, says what is missing, and the hint really helps."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.files("a server keeps its own files whole, and gives an error where it cannot")

GARBAGE = b"garbagegarbagegarbage"
PROMPT = json.dumps({"session_id": "s2", "prompt": "What about the Keystone port?"})


@pytest.fixture
def lived(ncm, home):
    """A home in which every database holds something."""
    ncm("init")
    ncm("write", "Keystone's port is 3055 for Welt", "--tag", "fact", "-i", "0.7")
    ncm("entries", "store", "Welt prefers tea", "--type", "preference")
    ncm("graph", "add", "Keystone", "port", "3055")
    said = ("-u", "Tell me of the Keystone port and Welt", "-a", "It is 3055")
    ncm("exchange", "add", *said, "--session", "s0")
    ncm("lessons", "add", "Never push to main")
    ncm("search", "Welt", "--fast")
    ncm("groups", "add", "fam", "--chat", "c1", "--trigger", "@Andy")

    def damage(name: str, garbage: bytes = GARBAGE) -> Path:
        path = home / f"{name}.db"
        assert path.exists()
        for beside in path.parent.glob(f"{path.name}-*"):
            beside.unlink()
        path.write_bytes(garbage)
        return path

    return damage


DATABASES = ("data/facts", "data/entries", "data/continuity", "data/index", "store/messages")


@pytest.mark.parametrize("name", DATABASES)
def test_search_and_recall_give_the_lines_of_files_whatever_database_is_damaged(lived, ncm, name):
    lived(name)
    found = ncm("search", "Welt", "--fast", "--json")
    assert found.code == 0
    assert any(hit["path"].startswith("memory/2") for hit in found.json["hits"])
    said = " ".join(found.json["degraded"])
    assert (f"{Path(name).name}.db is damaged" in said) == (
        name in ("data/facts", "data/entries", "data/continuity")
    )
    recalled = ncm("recall", "Welt", "--json")
    assert recalled.code == 0
    assert "Welt" in recalled.json["text"]
    assert ("entries.db is damaged" in " ".join(recalled.json["degraded"])) == (name == "data/entries")


@pytest.mark.parametrize("name", DATABASES)
def test_sessions_start_and_turns_go_on_whatever_database_is_damaged(lived, ncm, name):
    lived(name)
    assert "# Soul" in ncm("boot").out
    assert "# Soul" in ncm("hook", "session-start", stdin='{"session_id": "other"}').out
    assert ncm("brief").code == ncm("status").code == ncm("index").code == 0
    turn = ncm("turn", "What about the Keystone port?")
    assert turn.code == 0
    hooked = ncm("hook", "user-prompt-submit", stdin=PROMPT).out
    for said in (turn.out, hooked):
        assert ("Keystone.port = 3055" in said) == (name != "data/facts")
        assert ("It is 3055" in said) == (name != "data/continuity")


def test_a_damaged_corpus_costs_only_its_own_hits(lived, ncm, home, tmp_path):
    for name in ("birds", "ships"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.md").write_text(f"# Page\n\nThe {name} of the Welt are many.\n")
        assert ncm("corpus", "add", name, str(tmp_path / name)).code == 0
    (home / "data" / "corpora" / "birds.db").write_bytes(GARBAGE)
    found = ncm("search", "Welt", "--fast", "--corpus", "all", "--json").json
    assert {hit["path"].rsplit("/", 2)[-2] for hit in found["hits"]} >= {"ships", "memory"}
    assert "corpus birds: birds.db is damaged" in " ".join(found["degraded"])
    assert "ships" in ncm("corpus", "list").out
    done = ncm("corpus", "reindex")
    assert (done.code, "birds.db is damaged" in done.out + done.err) == (0, True)
    alone = ncm("search", "Welt", "--fast", "--corpus", "birds")
    assert (alone.code, "corpus add birds" in alone.err) == (1, True)


def test_an_index_that_cannot_be_opened_leaves_the_entries(lived, ncm, home):
    path = home / "data" / "index.db"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 999")  # as a newer release leaves it
    newer = ncm("search", "Welt", "--fast", "--json").json
    path.unlink()
    path.mkdir()
    folder = ncm("search", "Welt", "--fast", "--json").json
    for found, why in ((newer, "index.db has schema 999"), (folder, "index.db cannot be used")):
        assert "Welt prefers tea" in [hit["text"] for hit in found["hits"]]
        assert f"index: {why}" in found["degraded"][0]


def test_the_brief_of_damaged_entries_says_so(lived, ncm):
    lived("data/entries")
    assert "entries.db is damaged" in ncm("brief").out
    assert "entries.db is damaged" in ncm("brief", "--json").json["degraded"][0]


def test_a_long_boot_without_a_brief_is_cut_rather_than_left_out(lived, ncm, home):
    lived("data/entries")
    (home / "workspace" / "USER.md").write_text("word " * 4000)
    told = json.loads(ncm("hook", "session-start", stdin='{"session_id": "s2"}').out)
    assert "# Soul" in told["hookSpecificOutput"]["additionalContext"]


def test_what_was_spooled_waits_until_the_damage_is_mended(lived, ncm, home):
    kept = (home / "data" / "continuity.db").read_bytes()
    lived("data/continuity")
    ncm("hook", "user-prompt-submit", stdin=PROMPT)
    ncm("hook", "stop", stdin='{"session_id": "s2", "last_assistant_message": "Still 3055."}')
    assert "Keystone.port" in ncm("hook", "user-prompt-submit", stdin=PROMPT).out
    (home / "data" / "continuity.db").write_bytes(kept)
    ncm("hook", "session-end", stdin='{"session_id": "s2"}')
    assert "Still 3055." in ncm("sessions", "show", "s2").out


@pytest.mark.parametrize("name", DATABASES)
def test_doctor_tells_of_a_damaged_database_once_and_its_json_agrees_with_its_exit_code(lived, ncm, name):
    path = lived(name)
    ran = ncm("doctor")
    assert ran.code == 1
    assert ran.out.count(f"{path.name} is damaged") == 1
    assert "sound" in ran.out  # of the others
    told = ncm("doctor", "--json")
    assert (told.code, told.json["ok"]) == (1, False)


def test_doctor_of_a_sound_home_is_ok_in_json_too(lived, ncm):
    told = ncm("doctor", "--json")
    assert (told.code, told.json["ok"]) == (0, True)


def follow(hint: str, home: Path) -> None:
    """Do what a hint says, word for word, in a shell."""
    program = f"{sys.executable} -m nanoclaw_memory --home {home}"
    spoken = re.sub(r"^[^:]*: | \([^)]*\)$", "", hint)
    commands = re.sub(r"\b(?:ncm|nanoclaw-memory) ", f"{program} ", spoken)
    subprocess.run(commands, shell=True, check=True, capture_output=True, timeout=120, env=dict(os.environ))


LATER = {
    "data/facts": (("graph", "search", "Keystone port", "--no-bump"), "3055"),
    "data/entries": (("entries", "list"), "Welt prefers tea"),
    "data/continuity": (("sessions", "list"), "Nothing was said yet"),
    "data/index": (("search", "Welt", "--fast"), "Keystone's port"),
}


@pytest.mark.parametrize("name", LATER)
@pytest.mark.parametrize("garbage", [GARBAGE, b"SQLite format 3\0" + b"\x42" * 8000], ids=["text", "header"])
def test_without_a_checkpoint_the_hint_of_doctor_rebuilds_what_can_be(lived, ncm, home, name, garbage):
    path = lived(name, garbage)
    (problem,) = [one for one in ncm("doctor", "--json").json["findings"] if one["level"] == "problem"]
    follow(problem["next"], home)
    assert f"✗ {path.name}" not in ncm("doctor").out
    command, expected = LATER[name]
    assert expected in ncm(*command).out


def test_with_a_checkpoint_the_hint_restores_the_newest_sound_one(lived, ncm, home):
    ncm("checkpoint", "create", "first")
    ncm("graph", "add", "Keystone", "owner", "Heidi")
    ncm("checkpoint", "create", "second")
    lived("data/facts")
    ncm("checkpoint", "create", "third")  # holds the damage
    failed = ncm("graph", "search", "Keystone")
    assert "checkpoint restore second" in failed.err
    follow(failed.err.strip().splitlines()[-1].strip(), home)
    assert "Heidi" in ncm("graph", "search", "Keystone owner").out


def test_a_groups_hint_names_the_group(lived, ncm, home):
    ncm("init", "--group", "fam")
    ncm("--group", "fam", "graph", "add", "Keystone", "port", "3055")
    (home / "groups" / "fam" / "data" / "facts.db").write_bytes(GARBAGE)
    failed = ncm("--group", "fam", "graph", "search", "Keystone")
    assert "upkeep ingest --group fam" in failed.err
