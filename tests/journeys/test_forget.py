"""Forget is real: afterwards no byte is left, nothing brings it back, and a killed one completes."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import apsw
import pytest
from dying_forget import SESSION, TEXT, WORDS, forget, furnish, open_memory, traces

from nanoclaw_memory import Memory, Scope
from nanoclaw_memory.errors import InvalidValue, NotFound, PathRefused, Refused
from postgres import another_database, moved_aside

PAGES = {'"main/pages".pages'}  # a team's table has what the files have


def yes(pages) -> bool:
    return True


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory, _store: str) -> Iterator[tuple[Path, str, str]]:
    """A home full of the text, made once; tests work on copies."""
    root = tmp_path_factory.mktemp("furnished")
    entry = furnish(root / "home", root / "documents")
    with moved_aside(_store) as url:
        yield root, entry, url


@pytest.fixture
def full(
    furnished: tuple[Path, str, str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Path, str]]:
    root, entry, url = furnished
    shutil.copytree(root / "home", home)
    with ExitStack() as closing:
        if url:
            monkeypatch.setenv("NANOCLAW_STORE_URL", closing.enter_context(another_database(url)))
        yield home, entry


@pytest.mark.files("it names the files")
def test_the_scene_holds_the_text_in_every_store(full: tuple[Path, str]) -> None:
    files = {trace.split(":")[0].split("/")[-1] for trace in traces(full[0])}
    expected = {
        *("facts.db", "entries.db", "continuity.db", "index.db", "sdk.db", "main.db", "messages.db"),
        *("reports.db", "spool.jsonl", "telemetry.jsonl", f"{SESSION}.jsonl", "MEMORY.md", "2026-02-23.md"),
        *("fact.md", "plan.txt", "old.md", ".MEMORY.md.x1.tmp"),
    }
    assert expected <= files


@pytest.mark.parametrize("by", ["text", "id"])
def test_afterwards_no_byte_of_the_text_is_left_in_the_home(full: tuple[Path, str], by: str) -> None:
    home, entry_id = full
    with open_memory(home, session="") as memory:
        memory.workspace.checkpoint("before")
        vectors = home / "data" / "index.db-vectors"
        vectors.write_bytes(b"vectors of all that was indexed")
        done = memory.forget(**{by: TEXT if by == "text" else entry_id}, agreed=yes, checkpoints=True)
        assert not vectors.exists()
        assert done.unfinished == done.left == done.checkpoints == ()
        assert traces(home) == []  # while the process still has everything open, too
    assert traces(home) == []
    told = {name for name, number in done.removed.items() if number}
    assert told >= {
        *("entries", "wordings", "published", "facts", "relations", "aliases", "lessons", "exchanges"),
        *("sdk_items", "messages", "chunks", "spooled", "transcripts", "log_lines", "lines", "checkpoints"),
    }


def test_what_has_nothing_to_do_with_it_stays(full: tuple[Path, str]) -> None:
    home, _ = full
    with open_memory(home, session="") as memory:
        memory.forget(text=TEXT, agreed=yes)
        assert "Bert lives in Bergen" in (home / "workspace/MEMORY.md").read_text()
        assert "as she said" not in (home / "workspace/MEMORY.md").read_text()
        assert "The office moved to Oslo" in (home / "workspace/memory/2026-02-23.md").read_text()
        assert (home / "workspace/memory/notes/plan.txt").read_text() == "one\ntwo\n"
        assert "keep me" in (home / "data/versions/MEMORY/old.md").read_text()
        assert "something harmless" in (home / "data/spool/spool.jsonl").read_text()
        assert [fact.value for fact in memory.graph.history("Diary", "colour")] == ["green"]
        assert memory.group.database("continuity").query("SELECT user_message FROM exchanges") == [
            ("Tell me about towers",)
        ]
        assert [m.id for m in memory.host.state.new_messages_since(0)[0]] == ["m2"]
        (archive,) = (home / "workspace/conversations").glob("*.md")
        assert "And the weather?" in archive.read_text()
        assert memory.search("other things", corpus="reports", fast=True).hits
        assert all(not check.problems for check in memory.admin.check_databases())


def test_a_dry_run_shows_what_would_go_and_changes_nothing(full: tuple[Path, str]) -> None:
    home, _ = full
    with open_memory(home, session="") as memory:
        memory.workspace.checkpoint("before")
        before = traces(home)
        preview = memory.forget(text=TEXT, dry_run=True)
        assert traces(home) == before
        assert preview.checkpoints == ("before",)
        kinds = {row.partition(":")[0] for row in preview.rows}
        assert {"exchanges", "entries", "lessons"} <= kinds and all(
            row.partition(": ")[2] for row in preview.rows
        )
        assert not any(page.removed for page in preview.pages)
        assert any(f"-- [fact|i=0.9] {TEXT}\n" in page.diff for page in preview.pages)
        done = memory.forget(text=TEXT, agreed=yes)
    gone = {name: number for name, number in done.removed.items() if number}
    assert gone == {name: number for name, number in preview.removed.items() if number}
    assert [page.path for page in done.pages] == [page.path for page in preview.pages]


def test_without_consent_pages_stay_and_are_named_but_nothing_finds_their_lines(
    full: tuple[Path, str],
) -> None:
    home, _ = full
    with open_memory(home, session="") as memory:
        done = memory.forget(text=TEXT)
        assert {page.path for page in done.pages} >= {"MEMORY.md", "memory/2026-02-23.md"}
        assert not any(page.removed for page in done.pages)
        assert TEXT in (home / "workspace/memory/2026-02-23.md").read_text()
        memory.upkeep.run("ingest")
        memory.index()
        assert not [
            hit for hit in memory.search("Quastenflosser tower", fast=True).hits if "uasten" in hit.text
        ]
    left = {trace.split(":")[0] for trace in traces(home)}
    assert not [path for path in left if path.endswith((".db", "-wal")) and "index" not in path]


def test_a_session_goes_with_all_it_said_and_stored(full: tuple[Path, str]) -> None:
    home, _ = full
    with open_memory(home, session="other") as memory:
        memory.after_turn("Which day is it in Reykjavik?", "Monday.")
        done = memory.forget(session=SESSION, agreed=yes)
        assert done.removed["exchanges"] == 3 and done.removed["spooled"] == 2
        rows = memory.group.database("continuity").query("SELECT user_message FROM exchanges")
        assert rows == [("Which day is it in Reykjavik?",)]
        assert memory.entries.all(status="all") == []
        assert memory.workspace.sdk_items.history(SESSION) == []
        assert not list((home / "workspace/conversations").glob("*.md"))
        assert not list((home / "data/sessions").rglob("*.jsonl"))
        assert memory.after_turn(TEXT, "again").id == 0


def test_an_entity_goes_with_its_aliases_its_section_and_whatever_names_it(home: Path) -> None:
    with open_memory(home) as memory:
        memory.init()
        page = home / "workspace" / "MEMORY.md"
        page.write_text("# Memory\n\n## Zebulon Quist\n\n- Phone: 0171 5550199\n\n## Bert\n\n- likes tea\n")
        memory.graph.upsert("Zebulon Quist", "phone", "0171 5550199")
        memory.graph.relate("Bert", "works with", "Zebulon Quist")
        memory.graph.relate("Bert", "works with", "Carla")
        memory.graph.alias("Zeb", "Zebulon Quist")
        memory.store("Zeb prefers mornings", "person")
        memory.after_turn("I met Zebulon Quist's sister", "How nice.")
        memory.after_turn("Bert called", "When?")
        memory.upkeep.run("ingest")
        memory.index()
        done = memory.forget(entity="zeb", agreed=yes)
        assert done.removed["aliases"] == 1 and done.removed["entries"] == 1
        assert page.read_text() == "# Memory\n\n## Bert\n\n- likes tea\n"
        assert [row.item.object for row in memory.graph.relations.every(True)] == ["Carla"]
        with pytest.raises(Refused):
            memory.graph.upsert("Zebulon Quist", "phone", "0171 5550199")
        memory.graph.upsert("Zebulon Quist", "car", "a new one")  # only what was forgotten stays away
        memory.forget(entity="Zebulon Quist", agreed=yes)
    assert traces(home, ("zebulon", "quist", "5550199")) == []


@pytest.mark.parametrize(
    "what", [("--entity", "Jonas"), ("--text", "Jonas wants to know how varnish layers work")]
)
def test_a_rule_outlives_the_talk_in_which_it_was_taught(home: Path, ncm: Any, what: tuple[str, str]) -> None:
    off = ("--set", "judge.enabled=false", "--session", "a", "exchange", "add")
    ncm("init")
    ncm(
        *off,
        "-u",
        "Jonas wants to know how varnish layers work.",
        "-a",
        "- ground for Jonas\n- colour\n- top coat",
    )
    ncm(*off, "-u", "Please never use emojis or bullet lists in your explanations.", "-a", "Understood.")
    assert "never use emojis" in ncm("lessons", "list").out
    planned = ncm("forget", *what, "--dry-run").out
    assert "emojis" not in planned and "varnish" in planned
    assert ncm("forget", *what, "--yes").code == 0
    kept = ncm("lessons", "list").out
    assert "never use emojis" in kept and "active" in kept and "Jonas" not in kept
    assert [
        path for path in home.rglob("*") if path.is_file() and b"varnish layers" in path.read_bytes()
    ] == []


def test_a_rule_that_names_who_is_forgotten_goes_too(home: Path, ncm: Any) -> None:
    off = ("--set", "judge.enabled=false", "--session", "a", "exchange", "add")
    ncm("init")
    ncm(*off, "-u", "Write to the parents about the concert.", "-a", "Dear all, the concert is on Friday.")
    ncm(*off, "-u", "No, never put Jonas in copy when you write to the parents.", "-a", "Understood.")
    assert "Jonas" in ncm("lessons", "list").out
    ncm("forget", "--entity", "Jonas", "--yes")
    assert "No lessons" in ncm("lessons", "list").out


def test_small_talk_of_what_was_forgotten_may_be_said_again(memory: Memory) -> None:
    memory.after_turn("I met Zebulon Quist yesterday", "How nice.")
    memory.forget(entity="Zebulon Quist")
    assert memory.after_turn("Bert called", "How nice.").new
    memory.after_turn("Thank you", "You are welcome.")
    memory.forget(session="s1")
    assert memory.after_turn("Thank you", "Any time.").new


def test_a_rejected_value_does_not_tell_whose_it_was(memory: Memory, home: Path) -> None:
    memory.graph.upsert("Zebulon Quist", "phone", "0171 5550199")
    memory.graph.reject("Zebulon Quist", "phone", "0171 5550199", "Zebulon said so")
    memory.forget(entity="Zebulon Quist")
    with pytest.raises(Refused):
        memory.graph.upsert("Zebulon Quist", "phone", "0171 5550199")
    memory.close()
    assert traces(home, ("zebulon", "quist")) == []


@pytest.mark.parametrize("hidden", ["\u200b", "\u00ad", "\u2060", "\ufeff", "\u202e", "\U000e0041"])
def test_what_nobody_sees_in_a_word_does_not_bring_it_back(memory: Memory, hidden: str) -> None:
    memory.forget(text=TEXT, keep_out=True)
    again = TEXT.replace("hideout", f"hide{hidden}out")
    for tell in (lambda: memory.write(again), lambda: memory.store(again, "fact")):
        with pytest.raises(Refused, match="asked to forget"):
            tell()
    assert memory.host.state.store_message("m", "c@g", again, "2026-02-23T11:00:00Z")
    assert memory.host.state.history("c@g")[0].content == "[forgotten]"


def test_a_source_that_tells_is_refused_and_forgotten(memory: Memory, home: Path, tmp_path: Path) -> None:
    rows = tmp_path / f"{TEXT}.jsonl"  # a file's name is the source of its rows
    rows.write_text(json.dumps({"entity": "Diary", "key": "colour", "value": "green"}) + "\n")
    assert memory.graph.import_file(rows).facts == 1
    assert TEXT in memory.graph.history("Diary")[0].source
    memory.forget(text=TEXT)
    assert [fact.source for fact in memory.graph.history("Diary")] == [""]
    rows.write_text(json.dumps({"entity": "Diary", "key": "size", "value": "small"}) + "\n")
    assert memory.graph.import_file(rows).skipped == 1
    memory.close()
    assert traces(home) == []


def test_files_that_only_their_owner_may_change_are_named(memory: Memory, home: Path) -> None:
    todo = home / "data/sessions/main/.claude/todos/1.json"
    todo.parent.mkdir(parents=True)
    todo.write_text(json.dumps([{"content": TEXT}]))
    (home / "workspace/memory/old.md").write_bytes(TEXT.encode("utf-16"))
    (home / "workspace/memory/latin.md").write_bytes(f"caf\u00e9\n{TEXT}\n".encode("latin-1"))
    (home / "workspace/memory/other.md").write_bytes(b"\xff\xfe harmless")
    done = memory.forget(text=TEXT, agreed=yes)
    assert set(done.left) == {"agent/.claude/todos/1.json", "memory/old.md", "memory/latin.md"}


def test_a_registered_name_goes_with_it(memory: Memory, home: Path) -> None:
    memory.host.state.register_group("x@chat", "Zebulon Quist", "family", "@Andy")
    with open_memory(home, group="family") as family:
        family.forget(text="Zebulon Quist", agreed=yes)
    assert memory.host.state.groups["x@chat"].name == "family"
    memory.close()
    assert traces(home, ("zebulon", "quist")) == []


def test_no_way_in_brings_it_back(full: tuple[Path, str], tmp_path: Path) -> None:
    home, _ = full
    with open_memory(home, session="later") as memory:
        memory.forget(text=TEXT, agreed=yes, checkpoints=True)
        for tell in (
            lambda: memory.store(f"By the way, {TEXT.lower()}!", "fact"),
            lambda: memory.store("Something else", "fact", reason=TEXT),
            lambda: memory.write(f"note: {TEXT}"),
            lambda: memory.graph.upsert("Diary", "note", TEXT),
            lambda: memory.graph.relate("Diary", "says", TEXT),
            lambda: memory.graph.alias(TEXT, "Diary"),
        ):
            with pytest.raises(Refused, match="asked to forget"):
                tell()
        said = memory.after_turn(f"I repeat: {TEXT}", "Yes.")
        assert (said.id, said.new) == (0, False) and "forget" in said.notes[0].reason
        memory.conversations.note("prompt", TEXT)
        memory.conversations.note("answer", "noted")
        assert memory.conversations.drain() == 1
        memory.conversations.archive(str(_transcript(tmp_path)))
        _put_back_into_files(memory, home, tmp_path)
    # In the files that it was written into by hand, and in the copies of them that the migration made.
    left = {
        re.sub(r"workspace/memory/checkpoints/before-migrate[^/]*/", "", trace.split(":")[0])
        for trace in traces(home)
    }
    assert left - PAGES <= {
        "workspace/MEMORY.md",
        "workspace/memory/2026-02-22.md",
        "workspace/memory/domains/fact.md",
    }


def _transcript(folder: Path) -> Path:
    path = folder / "again.jsonl"
    lines = [{"role": "user", "content": TEXT}, {"role": "assistant", "content": "Good."}]
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return path


def _put_back_into_files(memory: Memory, home: Path, folder: Path) -> None:
    """A person restores old files, or imports an old export; upkeep runs as every day."""
    page = home / "workspace" / "MEMORY.md"
    page.write_text(f"{page.read_text()}\n- {TEXT}\n")
    (home / "workspace/memory/2026-02-22.md").write_text(f"- [decision|i=0.9] {TEXT}\n")
    domain = home / "workspace/memory/domains/fact.md"
    domain.write_text(f"{domain.read_text()}- {TEXT}\n")
    rows = folder / "rows.jsonl"
    rows.write_text(json.dumps({"type": "fact", "entity": "Diary", "key": "note", "value": TEXT}) + "\n")
    assert memory.graph.import_file(rows).facts == 0
    export = folder / "mem0.json"
    export.write_text(json.dumps([{"id": "1", "memory": TEXT}]))
    assert memory.upkeep.import_export("mem0", export).stored == 0
    assert memory.upkeep.migrate_files().stored >= 0
    memory.entries.render()
    runs = {run.name: run.error for run in memory.upkeep.run()}
    assert not any(runs.values())
    memory.upkeep.review()
    memory.index()
    assert all("uastenflosser" not in hit.text for hit in memory.search("Quastenflosser", fast=True).hits)


def test_a_line_that_was_never_read_is_not_read_later(memory: Memory, home: Path) -> None:
    memory.forget(text="Zebulon's phone number is 0171 5550199", keep_out=True)
    (home / "workspace/memory/2026-02-22.md").write_text(
        "- [fact|i=0.9] Zebulon's phone number is 0171 5550199\n- Carla's phone number is 0172 1\n"
    )
    memory.upkeep.run("ingest")
    assert {fact.entity for fact in memory.graph.top()} == {"Carla"}


def test_a_damaged_graph_stops_neither_entries_nor_exchanges(memory: Memory, home: Path) -> None:
    (home / "data").mkdir(exist_ok=True)
    (home / "data/facts.db").write_bytes(b"no database at all" * 100)
    assert memory.store("The office is in Oslo", "fact").stored
    assert memory.write("The office is in Oslo").line == 3


def test_what_was_forgotten_may_be_allowed_again(full: tuple[Path, str]) -> None:
    with open_memory(full[0], session="later") as memory:
        memory.forget(text=TEXT, agreed=yes)
        assert memory.admin.allow_forgotten(TEXT) == 1
        assert memory.admin.allow_forgotten(TEXT) == 0
        assert memory.store(TEXT, "fact").stored


def test_forgetting_brings_no_older_wording_back(memory: Memory) -> None:
    first = memory.store("The office is in Oslo", "fact").id
    second = memory.store("The office is in Bergen, Kaigaten 7", "fact", supersedes=first).id
    memory.graph.upsert("Office", "street", "Karl Johan")
    memory.graph.upsert("Office", "street", "Kaigaten 7")
    memory.forget(text="Kaigaten 7")
    assert memory.entries.all() == []
    assert memory.entries.get(first).status == "superseded"
    assert not memory.graph.search("Which street is the office in?").hits
    with pytest.raises(NotFound):
        memory.entries.get(second)


def test_an_id_takes_the_wordings_it_replaced_along(memory: Memory) -> None:
    first = memory.store("The office is in Oslo", "fact").id
    second = memory.store("The office is in Bergen", "fact", supersedes=first).id
    assert memory.forget(id=second).removed["entries"] == 2
    assert memory.entries.all(status="all") == []
    with pytest.raises(NotFound):
        memory.forget(id=second)


def test_the_audit_log_stays_whole_records_it_and_never_held_the_text(full: tuple[Path, str]) -> None:
    home, _ = full
    log = home / "logs" / "audit.jsonl"
    assert not any(word in log.read_text().lower() for word in WORDS)
    with open_memory(home, session="") as memory:
        memory.forget(text=TEXT, agreed=yes)
        verdict = memory.entries.verify()
    assert verdict.ok, verdict.problems
    last = json.loads(log.read_text().splitlines()[-1])
    assert last["event"] == "forget" and last["by"] == "text" and last["removed"]["entries"] == 3


def test_checkpoints_are_named_and_kept_unless_asked_and_a_restore_cannot_revive_rows(
    full: tuple[Path, str],
) -> None:
    home, _ = full
    with open_memory(home, session="") as memory:
        memory.workspace.checkpoint("old")
        done = memory.forget(text=TEXT, agreed=yes)
        assert done.checkpoints == ("old",) and "checkpoints" not in done.removed
        memory.workspace.restore_checkpoint("old")
        assert memory.admin.is_forgotten(TEXT)
        assert "uastenflosser" not in str(memory.entries.all(status="all"))
        again = memory.forget(text=TEXT, agreed=yes, checkpoints=True)
        assert again.removed["entries"] == 0 and again.removed["checkpoints"] == 1
        assert {page.path for page in again.pages} >= {"MEMORY.md"}
    assert traces(home) == []


def test_another_group_keeps_what_it_knows(full: tuple[Path, str]) -> None:
    home, _ = full
    with open_memory(home, group="family") as other:
        other.init()
        other.write(TEXT)
        other.store(TEXT, "fact")
    with open_memory(home, session="") as memory:
        memory.forget(text=TEXT, agreed=yes)
    with open_memory(home, group="family") as other:
        assert [entry.content for entry in other.entries.all()] == [TEXT]
        assert not other.admin.is_forgotten(TEXT)
        assert other.forget(text=TEXT, agreed=yes).removed["entries"] == 1
    assert traces(home) == []


def test_only_a_person_in_private_may_forget(home: Path, memory: Memory) -> None:
    with Memory.open(home, Scope(private=False)) as shared, pytest.raises(PathRefused):
        shared.forget(text="anything at all")
    with Memory.open(home, Scope(origin="agent")) as agent, pytest.raises(Refused):
        agent.forget(text="anything at all")


@pytest.mark.parametrize(
    "wrong", [{}, {"text": "?!"}, {"entity": "  "}, {"text": "a", "id": "b"}, {"text": "x " * 11_000}]
)
def test_a_request_that_names_nothing_is_refused_and_changes_nothing(
    memory: Memory, home: Path, wrong: dict[str, str]
) -> None:
    with pytest.raises(InvalidValue):
        memory.forget(**wrong)
    assert not (home / "data" / "forget.pending").exists()


@pytest.mark.files("SQLite's readers keep old pages in the file")
def test_a_reader_that_holds_an_old_state_makes_it_say_so(
    full: tuple[Path, str], ncm: Callable[..., object]
) -> None:
    home, _ = full
    reader = apsw.Connection(str(home / "data" / "entries.db"))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM entries").fetchall()
    with open_memory(home, session="") as memory:
        done = _forget_within(memory, 50)
        assert done.unfinished == ("data/entries.db",)
        assert any("entries.db" in trace for trace in traces(home))
        assert any("forget" in finding.message and finding.level == "problem" for finding in memory.doctor())
    reader.execute("COMMIT")
    reader.close()
    ran = ncm("forget", "--text", TEXT, "--yes", "--json")
    assert ran.code == 0 and ran.json["unfinished"] == []
    assert traces(home) == []


def _forget_within(memory: Memory, wait_ms: int):
    from nanoclaw_memory.upkeep.forget import ForgetRequest, Forgetting
    from nanoclaw_memory.upkeep.forget_stores import ForgetTargets

    targets = ForgetTargets(memory.group, wait_ms=wait_ms)
    return Forgetting(targets, ForgetRequest(text=TEXT)).carry_out(yes, checkpoints=False)


@pytest.mark.files("it copies the folder of a home for every step")
@pytest.mark.parametrize(("by", "stride"), [("text", 1), ("id", 4), ("session", 4), ("entity", 4)])
def test_killed_at_any_step_the_same_command_completes_it(
    furnished: tuple[Path, str], tmp_path: Path, by: str, stride: int
) -> None:
    value = {"text": TEXT, "id": furnished[1], "session": SESSION, "entity": "Ludmilla"}[by]
    script = Path(__file__).with_name("dying_forget.py")
    done = subprocess.run(
        [sys.executable, str(script), str(furnished[0] / "home"), str(tmp_path), by, value, str(stride)],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told["lives"]) * stride > 20
    assert {step: left for step, left in told["lives"].items() if left} == {}
    if by != "session":  # pages do not say which session they come from
        assert told["undisturbed"] == []


def test_killed_between_forgetting_and_erasing_nothing_comes_in_from_then_on(
    full: tuple[Path, str], ncm: Callable[..., Any]
) -> None:
    home, _ = full
    child = os.fork()
    if not child:
        forget(home, "text", TEXT, stop_at=2)  # "pending", "tombstones"
        os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert any(re.search(r"entries(\.db|\")", one) for one in traces(home))  # nothing was erased yet
    assert ncm("write", f"so {TEXT.upper()}").code == 2
    with open_memory(home, session="later") as memory:
        assert memory.after_turn(TEXT, "again").id == 0
        assert any("forget" in one.message and one.level == "problem" for one in memory.doctor())


@pytest.mark.files("it copies the folder of a home for every step")
def test_a_restore_killed_at_any_step_revives_nothing_that_was_forgotten_since(
    full: tuple[Path, str], tmp_path: Path
) -> None:
    home, _ = full
    with open_memory(home, session="") as memory:
        memory.workspace.checkpoint("old")
        memory.forget(text=TEXT, agreed=yes)
    assert not [one for one in traces(home) if "/checkpoints/" not in one]
    script = Path(__file__).with_name("dying_restore.py")
    done = subprocess.run(
        [sys.executable, str(script), str(home), str(tmp_path / "lives"), "4"],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    for step in ("decided", "loaded facts", "applied", "forgetting: tombstones", "concluded", "finished"):
        assert step in told["steps"]
    assert len(told["lives"]) > 8
    assert {step: left for step, left in told["lives"].items() if left} == {}


# ---- a person at a terminal ----


CTRL_C = b"\x03"


def _at_a_terminal(home: Path, *arguments: str, answer: bytes) -> tuple[int, str]:
    """Run the command on a terminal of its own, answer its question, and give its exit code and what was shown."""
    main, side = pty.openpty()
    command = [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), "forget", *arguments]
    process = subprocess.Popen(
        command, stdin=side, stdout=side, stderr=side, start_new_session=True, preexec_fn=_controlling
    )
    os.close(side)
    shown = b""
    asked = False
    try:
        for _ in range(120):
            if not select.select([main], [], [], 1)[0]:
                # As at a keyboard: a Ctrl-C between two waits of `input` is not seen until the next key.
                if asked and answer == CTRL_C:
                    os.write(main, answer)
                continue
            try:
                shown += os.read(main, 65_536)
            except OSError:  # the other end is closed: the command has ended
                break
            if not asked and b"[y/N]" in shown:
                asked = True
                os.write(main, answer)
        code = process.wait(60)  # before the terminal goes: it would take the command with it
    finally:
        process.kill()
        os.close(main)
    assert asked, shown
    return code, shown.decode()


def _controlling() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C reaches the command as it would from a keyboard


@pytest.fixture
def told(memory: Memory) -> Memory:
    memory.write(TEXT, "fact")
    memory.store(TEXT, "fact")
    memory.close()
    return memory


def test_at_a_terminal_the_diff_is_shown_and_yes_takes_the_lines_out(told: Memory, home: Path) -> None:
    code, shown = _at_a_terminal(home, "--text", TEXT, answer=b"y\n")
    assert code == 0 and f"-- [fact] {TEXT}" in shown and "[y/N]" in shown
    assert "removed: entries 1" in shown and "lines 1" in shown
    assert traces(home) == []


@pytest.mark.parametrize("answer", [b"n\n", b"\n"])
def test_no_and_a_mere_return_change_nothing_at_all(told: Memory, home: Path, answer: bytes) -> None:
    before = traces(home)
    code, shown = _at_a_terminal(home, "--text", TEXT, answer=answer)
    assert code == 1 and "would remove: entries 1" in shown and "nothing was removed" in shown
    assert traces(home) == before
    assert not told.admin.is_forgotten(TEXT) and not (home / "data" / "forget.pending").exists()


def test_it_is_asked_too_when_no_page_is_involved(memory: Memory, home: Path) -> None:
    memory.store(TEXT, "fact")
    memory.close()
    code, shown = _at_a_terminal(home, "--text", TEXT, answer=b"n\n")
    assert code == 1 and "nothing was removed" in shown
    assert memory.search(TEXT, fast=True).hits


@pytest.mark.parametrize("more", [(), ("--json",), ("--checkpoints",)])
def test_without_a_terminal_nothing_is_forgotten_unless_agreed_to(
    told: Memory, home: Path, ncm: Any, more: tuple[str, ...]
) -> None:
    before = traces(home)
    ran = ncm("forget", "--text", TEXT, *more, stdin="y\n")
    assert ran.code == 2 and "--dry-run" in ran.out + ran.err and "--yes" in ran.out + ran.err
    assert traces(home) == before and not told.admin.is_forgotten(TEXT)


def test_pages_may_be_left_alone(told: Memory, home: Path, ncm: Any) -> None:
    plan = ncm("forget", "--text", TEXT, "--dry-run", "--keep-pages")
    assert plan.code == 0 and "would keep memory/" in plan.out and f"-- [fact] {TEXT}" not in plan.out
    ran = ncm("forget", "--text", TEXT, "--yes", "--keep-pages")
    assert ran.code == 0 and "kept in memory/" in ran.out
    left = {one.split(":")[0] for one in traces(home)} - PAGES
    assert len(left) == 1 and left.pop().startswith("workspace/memory/2026-")


def test_the_roster_and_the_names_of_tokens_are_reported(memory: Memory, home: Path, ncm: Any) -> None:
    memory.workspace.put_agent("Pete", "keeps the Quastenflosser tower")
    token = ncm("--json", "token", "new", "--name", "Quastenflosser tower").json["id"]
    left = memory.forget(text="Quastenflosser tower").left
    assert set(left) == {"agents.json", f"tokens/{token}.json"}


def test_ctrl_c_at_the_question_changes_nothing(told: Memory, home: Path) -> None:
    before = traces(home)
    code, shown = _at_a_terminal(home, "--text", TEXT, answer=CTRL_C)
    assert code == 130 and "Traceback" not in shown, (code, shown)
    assert traces(home) == before
    assert not told.admin.is_forgotten(TEXT) and not (home / "data" / "forget.pending").exists()
    assert _at_a_terminal(home, "--text", TEXT, answer=b"y\n")[0] == 0
    assert traces(home) == []


@pytest.mark.files("it damages the file of the list")
def test_nothing_is_restored_while_the_list_of_forgotten_texts_is_damaged(memory: Memory, home: Path) -> None:
    import os

    from nanoclaw_memory.errors import StoreError

    memory.store("The locker opens with marmalade quartz", "fact")
    memory.workspace.checkpoint("before")
    memory.forget(text="marmalade quartz", agreed=yes)
    memory.close()
    (home / "data" / "forgotten.db").write_bytes(os.urandom(9000))
    with pytest.raises(StoreError, match="nothing was restored"):
        memory.workspace.restore_checkpoint("before")
    assert memory.entries.all() == []


def test_an_accent_makes_another_word_for_forgetting(memory: Memory):
    memory.write("José called about the boat")
    memory.write("Jose called about the car")
    memory.forget(text="Jose", agreed=lambda pages: True)
    assert [line.text for line in memory.log()[1]] == ["José called about the boat"]


@pytest.mark.parametrize("word", ["der", "und", "ich", "nicht", "the", "les", "que", "het", "waren"])
def test_a_word_of_nearly_every_sentence_is_never_forgotten(memory: Memory, word: str) -> None:
    memory.after_turn("Der Hund heißt Krümel und ich bin nicht sein Herr", "Gut.")
    with pytest.raises(InvalidValue, match="too short"):
        memory.forget(text=word, agreed=yes)
    with pytest.raises(InvalidValue, match="nearly every sentence"):
        memory.forget(entity=word, agreed=yes)
    assert memory.search("Krümel", fast=True).hits


def test_an_entity_goes_in_the_german_genitive_too_and_no_other_word_does(memory: Memory) -> None:
    memory.after_turn("Linas Kinderturnen ist jetzt dienstags um 15 Uhr", "Gut.")
    memory.after_turn("Der Lina-Termin beim Zahnarzt ist am Freitag", "Gut.")
    memory.after_turn("Hans' Auto steht in der Werkstatt", "Gut.")
    memory.after_turn("All bills are due on Friday", "Fine.")
    for name in ("lina", "Hans", "Bill"):
        memory.forget(entity=name, agreed=yes)
    left = " ".join(one.user_message for one in memory.group.exchanges.recent())
    assert left == "All bills are due on Friday"


def test_forgetting_a_common_word_says_how_much_it_takes(memory: Memory, ncm: Any) -> None:
    for number in range(12):
        memory.after_turn(f"Der Garten braucht heute {number} Eimer Wasser", "Gut.", at=None)
    memory.close()
    told = ncm("forget", "Garten", "--dry-run").out
    assert "careful: this one word takes 12 texts, and every later text with it is refused" in told
