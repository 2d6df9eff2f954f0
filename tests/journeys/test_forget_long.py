"""A long text leaves copies that were cut off: titles, triggers, results, summaries, chunks. They go with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dying_forget import SESSION, open_memory, traces

from nanoclaw_memory import Memory
from nanoclaw_memory.store.phrases import Phrases, holds, is_cut, lines_holding
from nanoclaw_memory.types import ToolCall

# No sentence is like another, and each tells.
PLACES = (
    "attic barn cellar dairy eyrie forge garden harbour inn jetty kiln lodge mill nave orchard pier".split()
)
LONG = " ".join(
    f"In the {place} of Xylophonburg stands quastenflosser {number} beside {PLACES[number % 16]} gate {number * 7}"
    f" and looks {['north', 'south', 'east', 'west', 'up'][number % 5]} all day."
    for number, place in enumerate(PLACES * 3)
)[:5_000]
CONTEXT = "active-context.md"  # names a topic, and is a page
WORDS = ("quastenflosser", "xylophonburg")


def yes(pages) -> bool:
    return True


def furnish(memory: Memory, home: Path, documents: Path) -> None:
    """Put the long text everywhere it can get; much of that cuts it."""
    memory.lessons.add("Always look at the harbour gate first", trigger=LONG[:60].rsplit(" ", 1)[0])
    memory.after_turn("Which way do they look?", "South.")
    memory.before_turn(LONG)
    memory.after_turn(f"No, that is wrong. You should never forget: {LONG}", f"I will not forget: {LONG}")
    memory.after_turn(LONG, "Noted.", [ToolCall("Write", LONG, LONG)])
    memory.report_tools([ToolCall("Write", LONG, LONG)] * 4)
    memory.host.tasks.add("Tell a story", "once", "2026-02-23T11:59:59Z")
    memory.host.tasks.run_due(lambda task, session: LONG)
    transcript = documents / "talk.jsonl"
    documents.mkdir(parents=True)
    turns = [("user", LONG), ("assistant", "I see."), ("user", "And the weather?"), ("assistant", "Fine.")]
    lines = [json.dumps({"role": role, "content": text, "session_id": SESSION}) for role, text in turns]
    transcript.write_text("\n".join(lines))
    memory.conversations.archive(str(transcript))
    memory.workspace.refresh_active_context()
    memory.write(f"{LONG[:3_900]}", "decision", 0.9)
    (home / "workspace/memory/2026-02-22.md").write_text(
        f"- [decision|i=0.9] {LONG}\n- Bert lives in Bergen\n"
    )
    (home / "workspace/memory/notes").mkdir()
    (home / "workspace/memory/notes/page.md").write_text(f"# Towers\n\n{LONG}\n\nAnd other things.\n")
    (documents / "report.md").write_text(f"# Report\n\nIt says: {LONG}\n\nAnd other things.\n")
    memory.admin.corpora.add("reports", [documents / "report.md"])
    memory.group.telemetry.record("strange", error=LONG[:500])
    memory.workspace.sdk_items.extend(SESSION, [{"role": "user", "content": f"{LONG[:700]}…"}])
    memory.workspace.sdk_items.put(("titles",), "t", {"title": f"About: {LONG[:80]}"})
    memory.upkeep.run()
    memory.workspace.refresh_active_context()
    memory.index()


@pytest.fixture
def full(home: Path, tmp_path: Path) -> Path:
    with open_memory(home) as memory:
        memory.init()
        furnish(memory, home, tmp_path / "documents")
    return home


@pytest.mark.files("it names the files")
def test_no_copy_that_was_cut_off_is_left(full: Path) -> None:
    held = {trace.split(":")[0].split("/")[-1] for trace in traces(full, WORDS)}
    assert {"facts.db", "continuity.db", "sdk.db", "messages.db", "reports.db", "index.db"} <= held
    with open_memory(full, session="later") as memory:
        memory.workspace.checkpoint("before")
        done = memory.forget(text=LONG, agreed=yes, checkpoints=True)
        assert done.left == done.checkpoints == ()
        assert traces(full, WORDS) == []  # while everything is open, too
        assert "Bert lives in Bergen" in (full / "workspace/memory/2026-02-22.md").read_text()
        assert memory.conversations.session(SESSION)[0].user_message == "Which way do they look?"
    assert traces(full, WORDS) == []


def test_without_consent_no_chunk_of_it_is_found(full: Path) -> None:
    with open_memory(full, session="later") as memory:
        memory.forget(text=LONG)
        memory.index()
        found = memory.search("quastenflosser harbour gate", 50, corpus="all", fast=True).hits
        assert found and not [hit for hit in found if WORDS[0] in hit.text and not hit.path.endswith(CONTEXT)]
        assert memory.search("other things", fast=True).hits


@pytest.mark.files("it copies the folder of a home")
def test_a_restore_brings_no_cut_copy_back_into_the_tables(full: Path) -> None:
    with open_memory(full, session="later") as memory:
        memory.workspace.checkpoint("old")
        memory.forget(text=LONG, agreed=yes)
        memory.workspace.restore_checkpoint("old")
        for name in ("facts", "entries", "continuity", "sdk"):
            assert not any(word in str(_everything(memory, name)).lower() for word in WORDS), name


def _everything(memory: Memory, name: str) -> list[object]:
    db = memory.group.database(name)
    tables = db.query("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%fts%'")
    return [db.query(f"SELECT * FROM {table}") for (table,) in tables]


# ---- what counts as a cut copy ----

WANTED = Phrases.of_request(LONG)


@pytest.mark.parametrize(
    "cut",
    [
        LONG[:700],
        LONG[:200].rstrip() + "…",
        f"Error: {LONG[:193]}…",
        f"You asked: {LONG[:80].rsplit(' ', 1)[0]} … and more was said",
        LONG[1_000:2_600].split(" ", 1)[1],
        LONG[-400:].split(" ", 1)[1],
        f"{LONG[:2_000]} […3,000 more characters]",
    ],
)
def test_a_copy_that_was_cut_off_is_known(cut: str) -> None:
    assert holds(WANTED, cut) and is_cut(WANTED, cut)
    assert holds(Phrases(known=frozenset(Phrases.whole_only([cut]).marks())), cut)


@pytest.mark.parametrize(
    "other",
    [
        "In the attic of Xylophonburg",  # too little to tell
        "In the attic of Xylophonburg stands quastenflosser 0 and nobody knows why",  # goes on otherwise
        "Yesterday all day. In the barn of Xylophonburg stands a horse beside it",
        "looks north all day",
    ],
)
def test_what_only_begins_alike_is_not_taken_along(other: str) -> None:
    assert not holds(WANTED, other)


def test_a_few_characters_of_a_script_without_spaces_are_too_little() -> None:
    long = "我的生日是五月十二日，我住在奥斯陆的海港旁边的一座红色的小木屋里，门牌号是七十七号。" * 2
    assert holds(Phrases.of_request(long), long[:30]) and not holds(Phrases.of_request(long), long[:8])


def test_a_line_that_was_cut_off_goes_and_its_neighbours_stay() -> None:
    lines = ["# Page", f"- [note] {LONG[:300]}…", "- Bert lives in Bergen", LONG[500:900].split(" ", 1)[1]]
    assert lines_holding(lines, WANTED) == {1, 3}
