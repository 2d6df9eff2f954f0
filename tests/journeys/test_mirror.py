"""A team's pages: every workspace, and whatever folder a person chooses, is the same as the table on the server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.errors import Conflict
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Mirrored, Scope
from postgres import as_superuser, fresh_database

pytestmark = pytest.mark.xdist_group("postgres")

Open = Callable[..., Memory]


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with fresh_database() as made:
        monkeypatch.setenv("NANOCLAW_STORE_URL", made)
        yield made


@pytest.fixture
def machine(url: str, tmp_path: Path, clock: FixedClock) -> Iterator[Open]:
    """A machine of the team: a home of its own on the same database."""
    opened: list[Memory] = []

    def open_(name: str, group: str = "main", **more: Any) -> Memory:
        scope = Scope(group, "s1", origin=more.pop("origin", "owner"))
        opened.append(Memory.open(tmp_path / name, scope, clock=more.pop("clock", clock)))
        opened[-1].init()
        return opened[-1]

    yield open_
    for memory in opened:
        memory.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "vault"


def sync(memory: Memory, folder: Path) -> Mirrored:
    """What `ncm mirror DIR --once` does."""
    (done,) = memory.workspace.mirror(folder)
    return done


def page(memory: Memory, name: str = "MEMORY.md") -> str:
    return memory.workspace.page(name).text


def edit(memory: Memory, text: str, name: str = "MEMORY.md") -> None:
    """A person saves a page in an editor."""
    path = memory.group.workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


# ---- every workspace is a mirror ----


def test_a_page_written_on_one_machine_is_read_on_the_other(machine: Open):
    here, there = machine("here"), machine("there")
    here.write("we call the boat Marigold")
    assert "Marigold" in there.log()[1][0].text
    assert "Marigold" in there.search("what is the boat called?").hits[0].text
    edit(there, "# Long-Term Memory\n\n- the boat is green\n")
    page(there)
    assert "green" in here.search("which colour is the boat?").hits[0].text
    assert "green" in here.boot().text


def test_lines_of_two_machines_stand_in_one_log(machine: Open):
    here, there = machine("here"), machine("there")
    texts = [f"{name} line {number}" for number in range(3) for name in ("here", "there")]
    for number in range(3):
        here.write(f"here line {number}")
        there.write(f"there line {number}")
    assert sorted(line.text for line in here.log()[1]) == sorted(texts)
    assert here.log() == there.log()


def test_a_machine_that_joins_gets_the_pages_and_keeps_none_of_its_starters(machine: Open):
    here = machine("here")
    edit(here, "# Soul\n\n- answers are short\n", "SOUL.md")
    here.boot()
    there = machine("there")
    assert "answers are short" in page(there, "SOUL.md")
    assert "answers are short" in page(here, "SOUL.md")
    assert not there.upkeep.review()


def test_facts_of_pages_are_not_retired_by_the_other_machine(machine: Open):
    here, there = machine("here"), machine("there")
    edit(here, "# Long-Term Memory\n\n- Keystone.port = 5433\n")
    for memory in (here, there, here, there):
        assert memory.graph.search("Keystone port").hits[0].item.value == "5433"


def test_pages_are_indexed_once_for_all_machines(machine: Open):
    here, there = machine("here"), machine("there")
    edit(here, "# Long-Term Memory\n\n- the boat is green\n")
    here.index()
    assert (there.index().added, here.index().added) == (0, 0)


def test_groups_have_pages_of_their_own_and_all_read_what_is_shared(machine: Open):
    main, shire = machine("here"), machine("here", "shire")
    edit(shire, "# Long-Term Memory\n\n- the silver is in the well\n")
    main.workspace.new_project("keystone", "Keystone")
    there = machine("there")
    assert not there.search("where is the silver?").hits
    shire.boot()
    assert "silver" in machine("there", "shire").search("where is the silver?").hits[0].text
    assert machine("there", "shire").workspace.project("keystone")[0].exists
    (main.home.group_root("shire") / "CLAUDE.md").write_text("# Shire\n\n- speak softly\n")
    shire.boot()
    assert "softly" in machine("there", "shire").get("CLAUDE.md").text


def test_an_agents_page_is_its_own_in_the_table(machine: Open, url: str):
    machine("here", origin="agent").workspace.notes.run(
        {"command": "create", "path": "/memories/plan.md", "file_text": "row first"}
    )
    with psycopg.connect(url) as connection:
        sql = "SELECT author, version FROM \"main/pages\".pages WHERE path = 'memory/notes/plan.md'"
        assert connection.execute(sql).fetchall() == [("agent", 1)]


def test_a_role_reads_and_writes_the_pages_of_its_group_and_reads_the_common_ones(
    machine: Open, url: str, tmp_path: Path
):
    main, shire = machine("here"), machine("here", "shire")
    main.workspace.new_project("keystone", "Keystone")
    edit(shire, "# Long-Term Memory\n\n- the silver is in the well\n")
    shire.boot()
    role = shire.admin.make_role("bilbo")
    try:
        scope = Scope("shire", "s1", origin="owner")
        with Memory.open(tmp_path / "agent", scope, overrides={"store.url": role}) as agent:
            agent.init()
            assert "silver" in page(agent)
            assert agent.workspace.project("keystone")[0].exists
            edit(agent, "# Long-Term Memory\n\n- the silver is in the oak\n")
            edit(agent, "# Mine\n", "../../../shared/mine.md")
            told = " ".join(one.message for one in agent.doctor())
            assert "permission denied" in told
    finally:
        shire.admin.drop_role("bilbo")
    assert "oak" in page(shire)
    assert not (main.home.shared / "mine.md").exists()
    with psycopg.connect(as_superuser(url)) as connection:
        sql = "SELECT author FROM \"shire/pages\".pages WHERE path = 'MEMORY.md' ORDER BY version"
        assert connection.execute(sql).fetchall() == [("owner",), ("owner",), ("agent",)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(f'SET ROLE "ncm/{connection.info.dbname}/shire"')
            connection.execute('SELECT * FROM "main/pages".pages')
        connection.rollback()
        connection.execute(f'DROP OWNED BY "ncm/{connection.info.dbname}/shire" CASCADE')
        connection.execute(f'DROP ROLE "ncm/{connection.info.dbname}/shire"')
        connection.commit()


def test_while_the_database_is_away_files_serve_and_what_was_written_goes_later(
    machine: Open, tmp_path: Path, clock: FixedClock
):
    there = machine("there")
    machine("here").close()
    away = {"store.url": "postgresql://nobody:x@127.0.0.1:1/none"}
    with Memory.open(tmp_path / "here", Scope("main", "s1"), clock=clock, overrides=away) as alone:
        edit(alone, "# User\n\n- Name: Bilbo\n", "USER.md")
        assert "Bilbo" in alone.get("USER.md").text
    assert "Bilbo" not in page(there, "USER.md")
    machine("here").log()
    assert "Bilbo" in page(there, "USER.md")


def test_domain_files_have_the_entries_of_all_machines_and_nobody_seems_to_have_edited_them(machine: Open):
    here, there = machine("here"), machine("there")
    here.store("the boat is called Marigold", "fact")
    there.store("the oars are blue", "fact")
    path = "memory/domains/fact.md"
    texts = [(one.group.workspace / path).read_text() for one in (here, there)]
    (there.group.workspace / path).write_text(texts[1] + "- the mast is ash\n")
    here.store("the sail is white", "fact")  # before it hears of that
    there.store("the anchor is rusty", "fact")
    told = page(there, path)
    assert page(here, path) == told
    assert all(word in told for word in ("Marigold", "oars", "mast", "sail"))
    assert [one.diff for one in here.upkeep.review()] == ["+ the mast is ash"]


def test_every_machine_sees_the_versions_that_another_made(machine: Open):
    here, there = machine("here"), machine("there")
    for text in ("- one\n", "- one\n- two\n", "- two\n"):
        edit(here, text)
        page(here)
    found = there.workspace.versions("MEMORY.md")
    assert [there.workspace.version("MEMORY.md", one.name).text for one in found[:2]] == [
        "- one\n- two\n",
        "- one\n",
    ]


# ---- edits of two ----


def test_edits_of_two_in_one_page_are_merged(machine: Open):
    here, there = machine("here"), machine("there")
    edit(here, "# M\n\n- one\n- two\n- three\n")
    page(here), page(there)
    edit(here, "# M\n\n- one!\n- two\n- three\n")
    edit(there, "# M\n\n- one\n- two\n- three\n- four\n")
    assert page(here) == "# M\n\n- one!\n- two\n- three\n"
    assert page(there) == page(here) == "# M\n\n- one!\n- two\n- three\n- four\n"
    assert not here.upkeep.review()


def test_two_wordings_of_one_line_become_a_proposal_with_both(machine: Open):
    here, there = machine("here"), machine("there")
    edit(here, "# M\n\n- port 1\n- end\n")
    page(here), page(there)
    edit(here, "# M\n\n- port 2\n- end\n")
    edit(there, "# M\n\n- port 3\n- end\n- more\n")
    page(here)
    assert page(there) == page(here) == "# M\n\n- port 2\n- end\n- more\n"
    (offered,) = here.upkeep.review()
    assert "-- port 2" in offered.diff
    assert "+- port 3" in offered.diff
    edit(here, "# M!\n\n- port 2\n- end\n- more\n")
    there.upkeep.decide(offered.id, True)
    assert page(here) == "# M!\n\n- port 3\n- end\n- more\n"
    here.upkeep.undo(offered.id)
    assert page(there) == "# M!\n\n- port 2\n- end\n- more\n"


def test_a_conflict_whose_lines_were_changed_again_is_left_to_the_person(machine: Open):
    here, there = machine("here"), machine("there")
    edit(here, "- port 1\n")
    page(here), page(there)
    edit(here, "- port 2\n")
    edit(there, "- port 3\n")
    page(here), page(there)
    edit(here, "- port 4\n")
    (offered,) = here.upkeep.review()
    with pytest.raises(Conflict, match="changed again"):
        here.upkeep.decide(offered.id, True)
    assert page(there) == "- port 4\n"


def test_a_page_made_on_both_sides_keeps_the_first_and_offers_the_other(machine: Open):
    here, there = machine("here"), machine("there")
    edit(here, "# Boats\n\n- Marigold\n", "memory/boats.md")
    edit(there, "# Ships\n\n- Beagle\n", "memory/boats.md")
    page(here), page(there)
    assert page(here, "memory/boats.md") == page(there, "memory/boats.md") == "# Boats\n\n- Marigold\n"
    assert "Beagle" in there.upkeep.review()[0].diff


@pytest.mark.parametrize("deleted_first", [True, False])
def test_a_page_deleted_on_one_side_and_edited_on_the_other_stays(machine: Open, deleted_first: bool):
    here, there = machine("here"), machine("there")
    edit(here, "- a\n", "memory/boats.md")
    page(here), page(there)
    (here.group.workspace / "memory/boats.md").unlink()
    edit(there, "- a\n- b\n", "memory/boats.md")
    for memory in (here, there, here) if deleted_first else (there, here, there):
        page(memory)
    assert page(here, "memory/boats.md") == page(there, "memory/boats.md") == "- a\n- b\n"


def test_a_deleted_page_is_gone_everywhere_and_may_be_made_anew(machine: Open):
    here, there = machine("here"), machine("there")
    edit(here, "- a\n", "memory/boats.md")
    page(here), page(there)
    (here.group.workspace / "memory/boats.md").unlink()
    page(here)
    assert not there.workspace.page("memory/boats.md").exists
    edit(there, "- again\n", "memory/boats.md")
    page(there)
    assert page(here, "memory/boats.md") == "- again\n"


def test_a_renamed_page_takes_the_edits_of_others_along(machine: Open):
    here, there = machine("here"), machine("there")
    edit(here, "- a\n- b\n", "memory/boats.md")
    page(here), page(there)
    workspace = here.group.workspace
    (workspace / "memory/boats.md").rename(workspace / "memory/ships.md")
    edit(there, "- a\n- b\n- c\n", "memory/boats.md")
    page(there), page(here)
    assert page(there, "memory/ships.md") == page(here, "memory/ships.md") == "- a\n- b\n- c\n"
    assert not there.workspace.page("memory/boats.md").exists


def test_clocks_do_not_decide(machine: Open, clock: FixedClock):
    here = machine("here", clock=FixedClock(clock.now() + timedelta(minutes=5)))
    there = machine("there", clock=FixedClock(clock.now() - timedelta(minutes=5)))
    edit(here, "- one\n- two\n")
    page(here), page(there)
    edit(there, "- one\n- two!\n")
    os.utime(there.group.workspace / "MEMORY.md", (0, 0))  # older than what it changes
    edit(here, "- one!\n- two\n")
    page(here), page(there)
    assert page(here) == page(there) == "- one!\n- two!\n"


def test_what_is_forgotten_leaves_every_version_and_does_not_come_back(machine: Open, url: str):
    here, there = machine("here"), machine("there")
    edit(here, "# M\n\n- the safe opens with mellon\n- two\n")
    page(here), page(there)
    edit(here, "# M\n\n- the safe opens with mellon\n- two!\n")
    page(here)
    edit(there, "# M\n\n- the safe opens with mellon\n- two\n- three\n")  # before it hears of that
    here.forget(text="the safe opens with mellon", agreed=lambda pages: True)
    assert page(there) == page(here) == "# M\n\n- two!\n- three\n"
    with psycopg.connect(url) as connection:
        texts = connection.execute('SELECT path, text FROM "main/pages".pages').fetchall()
    assert not [path for path, text in texts if "mellon" in (text or "")]


# ---- a folder of the person's own ----


def test_a_folder_is_filled_and_what_is_edited_there_is_known_at_once(machine: Open, folder: Path):
    memory = machine("here")
    memory.write("we call the boat Marigold")
    assert sync(memory, folder).pulled > 5
    (folder / "boats.md").write_text("# Boats\n\n- the boat is green\n")
    (folder / "MEMORY.md").unlink()
    done = sync(memory, folder)
    assert (done.pushed, done.deleted) == (1, 1)
    assert "green" in memory.search("which colour has the boat?").hits[0].text
    assert not memory.workspace.page("MEMORY.md").exists
    assert sync(memory, folder) == Mirrored()


def test_a_lost_folder_is_filled_again_and_deletes_nothing(machine: Open, folder: Path):
    memory = machine("here")
    sync(memory, folder)
    for path in folder.rglob("*.md"):
        path.unlink()
    before = page(memory, "SOUL.md")
    sync(memory, folder)
    assert (folder / "SOUL.md").read_text() == before == page(memory, "SOUL.md")


@pytest.mark.parametrize("mounted", [True, False])
def test_pages_that_vanish_with_their_folder_come_back_and_are_deleted_by_leaving_one(
    machine: Open, mounted: bool
):
    here, there = machine("here"), machine("there")
    names = [f"memory/people/{name}.md" for name in ("ada", "bob", "cy", "dee")]
    for name in names:
        edit(here, f"- {name}\n", name)
    page(here), page(there)
    people = here.group.workspace / "memory/people"
    shutil.rmtree(people)
    if mounted:
        people.mkdir()
    (problem,) = here.group.page_problems()
    assert problem.startswith("memory/people was gone with its 4 pages")
    assert all(page(one, name) == f"- {name}\n" for one in (here, there) for name in names)
    for leaving in (names[:3], names[3:]):
        for name in leaving:
            (here.group.workspace / name).unlink()
        assert here.group.page_problems() == ()
    assert not any(there.workspace.page(name).exists for name in names)


def test_a_renamed_folder_is_no_lost_one(machine: Open):
    here, there = machine("here"), machine("there")
    for number in range(4):
        edit(here, f"- {number}\n", f"memory/people/{number}.md")
    page(here), page(there)
    (here.group.workspace / "memory/people").rename(here.group.workspace / "memory/friends")
    assert here.group.page_problems() == ()
    assert page(there, "memory/friends/3.md") == "- 3\n"
    assert not there.workspace.page("memory/people/3.md").exists


def test_what_the_memory_itself_deletes_with_its_folder_is_gone(machine: Open):
    here, there = machine("here"), machine("there")
    for number in range(4):
        edit(here, "- the safe opens with mellon\n", f"memory/safes/{number}.md")
        here.workspace.notes.run({"command": "create", "path": f"/memories/n/{number}.md", "file_text": "x"})
    page(here), page(there)
    here.workspace.notes.run({"command": "delete", "path": "/memories/n"})
    here.forget(text="the safe opens with mellon", agreed=lambda pages: True)
    for one in (here, there, here):
        assert not one.workspace.page("memory/safes/1.md").exists
        assert not one.workspace.page("memory/notes/n/1.md").exists


def test_what_is_no_page_is_reported_and_left_as_it_is(machine: Open, folder: Path, tmp_path: Path):
    memory, there = machine("here"), machine("there")
    sync(memory, folder)
    outside = tmp_path / "outside.md"
    outside.write_text("secret\n")
    bad = {
        "binary.md": b"\x89PNG\x00\x01\xff",
        "latin.md": "Müller".encode("latin1"),
        "nul.md": b"a\x00b",
        "huge.md": b"x" * 10_000_001,
    }
    for name, raw in bad.items():
        (folder / name).write_bytes(raw)
    (folder / "link.md").symlink_to(outside)
    (folder / "SOUL.md").unlink()
    (folder / "SOUL.md").symlink_to(outside)
    (folder / "picture.png").write_bytes(b"\x89PNG")
    edit(memory, "# Soul\n\n- new\n", "SOUL.md")
    (memory.group.workspace / "bad.md").write_bytes(b"\xff\xfe")
    assert any("bad.md" in one.message and "not shared" in one.message for one in memory.doctor())
    for _ in range(2):
        told = " ".join(sync(memory, folder).problems)
        assert all(name in told for name in (*bad, "link.md", "SOUL.md"))
        assert "picture" not in told
    assert outside.read_text() == "secret\n"
    assert all((folder / name).read_bytes() == raw for name, raw in bad.items())
    assert page(there, "SOUL.md") == "# Soul\n\n- new\n"
    assert not there.workspace.page("binary.md").exists
    (folder / "latin.md").write_text("Müller\n")
    sync(memory, folder)
    assert page(there, "latin.md") == "Müller\n"


def test_a_path_that_leads_out_is_never_written(machine: Open, folder: Path, url: str, tmp_path: Path):
    memory = machine("here")
    sync(memory, folder)
    bad = [
        "../out.md",
        "/tmp/out.md",
        ".git/hooks.md",
        "a/../../out.md",
        "memory/checkpoints/x.md",
        "a\nb.md",
        "x.sh",
    ]
    with psycopg.connect(url, autocommit=True) as connection:
        for path in bad:
            connection.execute(
                'INSERT INTO "main/pages".pages (path, version, text, author, machine, saved_at, mtime_ns)'
                " VALUES (%s, 1, 'x', 'agent', '', '', 1)",
                (path,),
            )
    assert len(sync(memory, folder).problems) == len(bad)
    assert not list(tmp_path.glob("out.md"))
    assert not (folder / ".git").exists()


def test_a_folder_inside_the_home_and_a_home_of_files_are_refused(
    machine: Open, ncm: Any, home: Path, folder: Path
):
    memory = machine("here")
    ran = ncm("--home", str(memory.home.root), "mirror", str(memory.group.workspace), "--once")
    assert (ran.code, "one inside the other" in ran.err) == (2, True)
    ran = ncm("--home", str(memory.home.root), "mirror", str(folder), "--once", "--json")
    assert ran.json["pulled"] > 5
    ncm("--set", "store.url=", "init")
    ran = ncm("--set", "store.url=", "mirror", str(folder), "--once")
    assert (ran.code, "files already" in ran.err) == (2, True)


def test_two_mirrors_at_once_lose_nothing(machine: Open, tmp_path: Path):
    here, there = machine("here"), machine("there")
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    began = threading.Barrier(2)

    def work(memory: Memory, name: str) -> None:
        began.wait()
        for number in range(8):
            path = tmp_path / name / "log.md"
            text = path.read_text() if path.exists() else ""
            path.write_text(f"{text}- {name} {number}\n")
            sync(memory, tmp_path / name)

    edit(here, "# Log\n", "log.md")
    sync(here, tmp_path / "a"), sync(there, tmp_path / "b")
    threads = [threading.Thread(target=work, args=one) for one in ((here, "a"), (there, "b"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sync(here, tmp_path / "a"), sync(there, tmp_path / "b")
    lines = (tmp_path / "a" / "log.md").read_text().split("\n")
    assert (tmp_path / "b" / "log.md").read_text().split("\n") == lines
    assert sorted(lines) == sorted(["# Log", "", *(f"- {name} {n}" for name in "ab" for n in range(8))])


_DYING = """
import os, sys
from pathlib import Path
from nanoclaw_memory.upkeep import mirror
from nanoclaw_memory.memory import Memory
step, home, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]
seen = 0
def dying(real):
    def call(*args, **kwargs):
        global seen
        seen += 1
        if seen == step:
            os._exit(9)
        return real(*args, **kwargs)
    return call
mirror.PageTable.put = dying(mirror.PageTable.put)
mirror.replace_text = dying(mirror.replace_text)
mirror._Synchronisation._remember = dying(mirror._Synchronisation._remember)
with Memory.open(home) as memory:
    list(memory.workspace.mirror(Path(folder)))
"""


@pytest.mark.parametrize("step", range(1, 9))
def test_killed_in_the_middle_the_next_run_ends_the_same_way(machine: Open, folder: Path, step: int):
    memory = machine("here")
    edit(memory, "- 1\n- 2\n- 3\n")
    edit(memory, "# B\n\n- x\n", "b.md")
    sync(memory, folder)
    edit(memory, "- 1\n- 2\n- 3\n- theirs\n")
    edit(memory, "# B\n\n- y\n", "b.md")
    edit(memory, "new\n", "c.md")
    page(memory)
    (folder / "MEMORY.md").write_text("- 1\n- 2\n- 3\n- mine\n")
    (folder / "b.md").write_text("# B\n\n- z\n")
    (folder / "d.md").write_text("new too\n")
    command = [sys.executable, "-c", _DYING, str(step), str(memory.home.root), str(folder)]
    assert subprocess.run(command, check=False).returncode in (0, 9)
    sync(memory, folder)
    for read in (lambda name: page(memory, name), lambda name: (folder / name).read_text()):
        assert read("MEMORY.md") == "- 1\n- 2\n- 3\n- theirs\n- mine\n"
        assert read("b.md") == "# B\n\n- y\n"
        assert (read("c.md"), read("d.md")) == ("new\n", "new too\n")
    (offered,) = memory.upkeep.review()
    assert "+- z" in offered.diff


def test_a_mirror_waits_for_an_editor_that_writes_and_for_a_server_that_is_away(
    machine: Open, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    from nanoclaw_memory.errors import StoreError
    from nanoclaw_memory.upkeep.mirror import Mirror

    memory, real = machine("here"), Mirror.sync
    path = folder / "MEMORY.md"

    def away(mirror: Mirror, quiet: bool = False, looking: bool = True) -> Mirrored:
        raise StoreError("the database is away", "start it")

    def begin_to_write() -> None:
        path.write_text("- half")

    def finish() -> None:
        path.write_text("- whole\n")
        os.utime(path, (1, 1))  # some time ago

    acts = iter(
        [
            begin_to_write,
            lambda: monkeypatch.setattr(Mirror, "sync", away),
            lambda: (finish(), monkeypatch.setattr(Mirror, "sync", real)),
        ]
    )

    def wait(seconds: float) -> bool:
        act = next(acts, None)
        if act is not None:
            act()
        return act is None

    rounds = list(memory.workspace.mirror(folder, wait))
    assert [(one.pushed, one.problems) for one in rounds[1:]] == [
        (0, ()),
        (0, ("the database is away",)),
        (1, ()),
    ]
    assert page(memory) == "- whole\n"
    monkeypatch.setattr(Mirror, "sync", away)
    with pytest.raises(StoreError, match="away"):
        list(memory.workspace.mirror(folder, wait))
