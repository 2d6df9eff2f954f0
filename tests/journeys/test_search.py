"""Searching memory: finds the right lines, stays fresh, keeps secrets, and says what is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from word_hash import WordHashEmbedder

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.errors import InvalidValue, NotFound
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.providers.embedder import Chain, Identity, QuestionVectors
from nanoclaw_memory.retrieval import candidates
from nanoclaw_memory.types import Scope


@pytest.fixture
def notes(memory: Memory) -> Memory:
    """A memory with some notes and a deterministic embedder."""
    memory.group.resources.embedder = Chain((WordHashEmbedder(),))
    write(
        memory,
        "MEMORY.md",
        "# Memory\n\n## Projects\n\n- Keystone runs on port 3055\n\n## People\n\n- Ada likes tea\n",
    )
    write(
        memory,
        "memory/project-keystone.md",
        "# Keystone\n\nThe migration to PostgreSQL was decided in March.\n",
    )
    memory.write("Chose SQLite for the index", "decision", 0.9)
    return memory


def write(memory: Memory, path: str, text: str | bytes) -> Path:
    base = memory.home.root if path.startswith("shared/") else memory.home.workspace(memory.scope.group)
    target = base / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text if isinstance(text, bytes) else text.encode())
    return target


def paths(found) -> list[str]:
    return [hit.path for hit in found.hits]


# ---- finding ----


def test_a_question_finds_the_lines_with_path_and_range(notes: Memory):
    hit = notes.search("Which port does Keystone run on?").hits[0]
    assert (hit.path, hit.start_line, hit.end_line) == ("MEMORY.md", 5, 5)
    assert "3055" in hit.text
    assert notes.get(hit.path, hit.start_line, hit.end_line).text.rstrip("\n") == hit.text


def test_an_index_of_shared_chats_that_have_said_nothing_lacks_no_vectors(
    open_memory: Callable[..., Memory], models_dir: Path
):
    model = str(models_dir / "e5-small-v2")
    memory = open_memory(embeddings__modelPath=model)
    memory.init()
    memory.write("Keystone runs on port 3055")
    memory.index()
    assert open_memory(private=False, embeddings__modelPath=model).search("Keystone port").degraded == ()
    found = open_memory(embeddings__modelPath=model).search("Keystone port")
    assert found.hits and found.degraded == ()


def test_words_are_found_in_any_form_and_none_need_match_all(notes: Memory):
    assert paths(notes.search("what did we decide about migrating the databases", fast=True))[0] == (
        "memory/project-keystone.md"
    )


def test_every_kind_of_memory_is_found(notes: Memory):
    write(notes, "conversations/2026-02-20-tea.md", "# Tea\n\n**Ada**: I drink oolong\n\n**Agent**: Noted\n")
    write(notes, "shared/project-lantern.md", "# Lantern\n\nIts codename was zephyr.\n")
    assert paths(notes.search("oolong"))[0] == "conversations/2026-02-20-tea.md"
    assert paths(notes.search("zephyr"))[0] == "shared/project-lantern.md"
    assert paths(notes.search("Chose SQLite"))[0] == "memory/2026-02-23.md"


def test_the_answer_to_a_question_in_a_conversation_is_found_by_the_words_of_the_question(notes: Memory):
    talk = (
        "**Ada**: Where did you spend the holidays?\n\n**Bob**: In Lisbon, it was lovely!\n\n**Ada**: Nice\n"
    )
    write(notes, "conversations/2026-01-05-trip.md", "# Trip\n\n" + talk)
    hits = notes.search("where did Bob spend the holidays").hits
    assert hits[0].path == "conversations/2026-01-05-trip.md"
    assert any("Lisbon" in hit.text for hit in hits[:2])


@dataclass(frozen=True)
class Asked(WordHashEmbedder):
    """An embedder of some provider that remembers what it was asked."""

    provider: str = "local"
    questions: list[str] = field(default_factory=list)

    @property
    def identity(self) -> Identity:
        return Identity(self.provider, self.model, self.dimensions)

    def embed_query(self, text: str, deadline: float | None = None):
        self.questions.append(text)
        return super().embed_query(text)


@pytest.mark.parametrize(("provider", "times"), [("local", 2), ("azure-openai", 1)])
def test_a_speakers_name_does_not_drown_what_is_asked_and_a_service_is_asked_once(
    notes: Memory, provider: str, times: int
):
    embedder = Asked(provider=provider)
    notes.group.resources.embedder = Chain((embedder,))
    talk = "".join(f"**Ada**: Ada and Ada again, said Ada {number}\n" for number in range(30))
    write(notes, "conversations/2026-01-05-talk.md", f"# Talk\n\n{talk}**Bob**: We bake sourdough bread\n")
    notes.index()
    embedder.questions.clear()
    found = notes.search("does Ada bake sourdough", explain=True)
    assert embedder.questions == ["does Ada bake sourdough", "does bake sourdough"][:times]
    nearest = max(found.hits, key=lambda hit: hit.parts["cosine"])
    assert ("sourdough" in nearest.text) is (times == 2)
    embedder.questions.clear()
    notes.search("sourdough")
    assert embedder.questions == ["sourdough"]


@pytest.mark.parametrize("mark", ["'", "’"])
def test_a_possessive_finds_the_name_itself(notes: Memory, mark: str):
    assert paths(notes.search(f"Keystone{mark}s", fast=True))[0] in (
        "MEMORY.md",
        "memory/project-keystone.md",
    )


def test_text_without_spaces_is_found(notes: Memory):
    write(notes, "memory/cjk.md", "# 笔记\n\n我们决定把数据库迁移到新服务器\n")
    write(notes, "memory/jp.md", "# メモ\n\n明日は東京で会議があります\n")
    assert paths(notes.search("数据库", fast=True)) == ["memory/cjk.md"]
    assert paths(notes.search("東京の会議はいつ", fast=True))[0] == "memory/jp.md"


def test_german_compounds_are_found_by_their_parts_and_parts_by_their_compound(notes: Memory):
    write(notes, "memory/de.md", "# Technik\n\nDie Datenbankmigration ist fertig.\n")
    write(notes, "memory/de2.md", "# Wohnung\n\nDie Küche hat ein neues Fenster.\n")
    assert paths(notes.search("Migration der Datenbank", fast=True))[:1] != []
    assert "memory/de.md" in paths(notes.search("Datenbank", fast=True))
    assert "memory/de2.md" in paths(notes.search("Küchenfenster", fast=True))


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("Wann ist die Wartung der Heizung?", "Heizungswartung am Dienstag"),
        ("Was kostet die Heizungswartung?", "Für die Wartung der Heizung zahlen wir 200 Euro"),
        ("Wie viele Häuser hat der Nachbar?", "Der Nachbar verkauft ein Haus"),
        ("wo steht das Haeuschen", "Das Häuschen steht am See"),
        ("In welcher Strasse wohnt Jo?", "Jo zieht in die Lange Straße"),
        ("In welcher Straße wohnt Jo?", "Jo zieht in die Lange Strasse"),
        ("Was war mit den Kündigungen?", "Die Kuendigung ist raus"),
    ],
)
def test_german_words_are_found_in_another_form(memory: Memory, question: str, line: str):
    for other in (
        "Die Katze schläft",
        "Das Auto ist in der Werkstatt und die Bremsen sind neu",
        line,
        "Wir kaufen Brot",
    ):
        memory.write(other)
    hits = memory.search(question, fast=True).hits
    assert hits, question
    assert line in hits[0].text


def test_query_syntax_is_only_text(notes: Memory):
    for question in ('"', "a OR", "NEAR(", "port*", "body:port", "-port", "(((", "'; DROP TABLE chunks; --"):
        notes.search(question, fast=True)
    assert notes.search("port", fast=True).hits


@pytest.mark.parametrize(("question", "limit"), [("   x" * 2_000, 5), ("port", 0), ("port", 10_000)])
def test_a_question_or_limit_out_of_bounds_is_refused(notes: Memory, question: str, limit: int):
    with pytest.raises(InvalidValue):
        notes.search(question, limit)


def test_old_log_lines_fade_and_important_ones_do_not(notes: Memory):
    write(notes, "memory/2026-02-22.md", "# 2026-02-22\n\n- the gateway restarted\n")
    write(notes, "memory/2025-02-22.md", "# 2025-02-22\n\n- the gateway restarted\n")
    write(notes, "memory/2025-01-22.md", "# 2025-01-22\n\n- [decision|i=0.9] the gateway restarted\n")
    hits = notes.search("gateway restarted", 3, explain=True).hits
    ages = {hit.path: hit.parts["recency"] for hit in hits}
    assert ages["memory/2025-02-22.md"] == 0.5 < ages["memory/2026-02-22.md"] < 1
    assert ages["memory/2025-01-22.md"] == 1


@pytest.mark.parametrize(
    "question", ["what happened yesterday?", "was war gestern?", "what did I do on 22 February?"]
)
def test_a_question_for_a_day_finds_the_lines_of_that_day(notes: Memory, question: str):
    write(notes, "memory/2026-02-22.md", "# 2026-02-22\n\n- [note|i=0.3] The printer got new toner\n")
    write(notes, "memory/2026-02-20.md", "# 2026-02-20\n\n- [note|i=0.9] The router was replaced\n")
    hit = notes.search(question, fast=True).hits[0]
    assert hit.path == "memory/2026-02-22.md"
    assert "the day" in hit.why


def test_a_question_for_a_time_finds_talk_and_changes_of_that_time(
    memory: Memory, open_memory: Callable[..., Memory], clock: FixedClock
):
    for days in (20, 3, 1):
        clock.moment -= timedelta(days=days)
        open_memory(session=f"talk {days}").after_turn(
            f"The rooster number {days} crowed", "It crowed at 5 in the morning."
        )
        clock.moment += timedelta(days=days)
    memory.graph.upsert(
        "Rooster", "name", "Percy", valid_from=(clock.moment - timedelta(days=3)).date().isoformat()
    )
    assert [hit.text for hit in memory.search("what did we talk about yesterday?", 2, fast=True).hits] == [
        "The rooster number 1 crowed",
        "It crowed at 5 in the morning.",
    ]
    three = memory.search("what happened three days ago?", 3, fast=True).hits
    assert {hit.text for hit in three} == {
        "The rooster number 3 crowed",
        "It crowed at 5 in the morning.",
        "Rooster name: Percy",
    }
    weeks = memory.search("Was haben wir vor drei Wochen besprochen?", 1, fast=True).hits
    assert weeks[0].text == "The rooster number 20 crowed"
    memory.graph.upsert(
        "Rooster", "colour", "white", valid_from=(clock.moment - timedelta(days=1)).date().isoformat()
    )
    latest = memory.search("what were we talking about?", 9, fast=True).hits
    assert latest[0].text == "The rooster number 1 crowed"
    assert "white" not in str(latest)


def test_a_day_is_the_day_where_the_person_is(home: Path):
    clock = FixedClock(datetime(2026, 2, 23, 2, 30, tzinfo=ZoneInfo("America/Los_Angeles")))
    clock.moment -= timedelta(hours=7)  # the evening of the 22nd there, the 23rd in UTC
    with Memory.open(home, Scope(session_id="evening"), clock=clock) as memory:
        memory.after_turn("The kettle is broken", "I will remember.")
    clock.moment += timedelta(hours=7)
    with Memory.open(home, clock=clock) as memory:
        assert (
            memory.search("what did we discuss yesterday evening?", 1, fast=True).hits[0].text
            == "The kettle is broken"
        )
        assert "the day" not in memory.search("what about the kettle this morning?", 1, fast=True).hits[0].why


def test_a_question_for_long_ago_is_not_answered_with_what_is_recent(notes: Memory):
    write(notes, "memory/2025-03-10.md", "- [note|i=0.4] The gateway was restarted\n")
    write(notes, "memory/2026-02-22.md", "- [note|i=0.4] The gateway was restarted again\n")
    assert (
        paths(notes.search("when was the gateway restarted in March 2025", fast=True))[0]
        == "memory/2025-03-10.md"
    )
    assert paths(notes.search("when was the gateway restarted", fast=True))[0] == "memory/2026-02-22.md"


def test_a_decision_that_was_given_up_comes_after_the_one_that_replaced_it(notes: Memory):
    write(notes, "memory/2026-02-10.md", "- [decision|i=0.9] We chose PostgreSQL as the database for Atlas\n")
    write(
        notes,
        "memory/2026-02-12.md",
        "- [decision|i=0.9] Database: we moved Atlas from PostgreSQL to SQLite\n",
    )
    first, second = notes.search("Which database does Atlas use?", 2, fast=True).hits
    assert (first.path, second.path) == ("memory/2026-02-12.md", "memory/2026-02-10.md")
    assert (second.mark, second.newer.place, second.newer.day) == (
        "superseded",
        "memory/2026-02-12.md:1",
        "2026-02-12",
    )
    assert "superseded, by memory/2026-02-12.md:1 of 2026-02-12" in notes.fenced([second])


def test_what_init_wrote_is_no_memory_until_somebody_writes_there(notes: Memory):
    assert not notes.search("Core Principles directness reliability", fast=True).hits
    soul = notes.home.workspace("main") / "SOUL.md"
    soul.write_text(soul.read_text() + "- patience: wait for the tests\n")
    (hit,) = notes.search("Core Principles patience", fast=True).hits
    assert "patience" in hit.text and "directness" not in hit.text


def test_explain_shows_every_component(notes: Memory):
    hit = notes.search("Keystone port", explain=True).hits[0]
    assert {"keyword", "cosine", "fused", "neighbours", "speaker", "recency"} <= hit.parts.keys()
    assert "words" in hit.why
    assert 0 <= hit.score <= 1


def test_other_names_of_an_entity_are_looked_for(notes: Memory):
    write(notes, "memory/project-db.md", "# Storage\n\nThe Blackbird cluster is upgraded on Fridays.\n")
    assert notes.search("Nightjar?", fast=True).hits == ()
    notes.graph.upsert("Nightjar", "kind", "database cluster")
    notes.graph.alias("Blackbird", "Nightjar")
    found = notes.search("Nightjar?", fast=True)
    assert paths(found) == ["data/facts.db", "memory/project-db.md"]


def test_mmr_gives_hits_that_differ(notes: Memory):
    for number in range(4):
        write(notes, f"memory/same-{number}.md", "# Backup\n\nThe backup runs every night at two.\n")
    plain = [hit.text for hit in notes.search("backup runs at night", 4).hits]
    spread = [hit.text for hit in notes.search("backup runs at night", 4, mmr=True).hits]
    assert len(set(plain)) == 1
    assert len(set(spread)) == 4
    assert spread[0] == plain[0]


def test_one_long_file_leaves_room_for_others_that_are_nearly_as_good(notes: Memory):
    parts = "\n".join(f"## Part {n}\n\nThe ferry timetable of pier {n}.\n" for n in range(9))
    write(notes, "memory/ferries.md", f"# Ferries\n\n{parts}")
    write(notes, "memory/holiday.md", "# Holiday\n\nWe looked up the ferry timetable for the island trip.\n")
    write(
        notes, "memory/weather.md", "# Weather\n\nA timetable of storms in the north, kept by the station.\n"
    )
    found = paths(notes.search("ferry timetable", 12))
    assert found[:3] == ["memory/ferries.md"] * 3
    assert "memory/holiday.md" in found[:5]
    assert found.index("memory/weather.md") > 9  # far behind: what a file says best is not held back for it


def test_a_conversation_may_give_every_hit(notes: Memory):
    talk = "\n".join(f"**{('Ann', 'Bob')[n % 2]}**: the ferry timetable, part {n}" for n in range(12))
    write(notes, "conversations/2026-02-20-ferry.md", f"# Talk\n\n{talk}\n")
    write(notes, "memory/holiday.md", "# Holiday\n\nWe looked up the ferry timetable for the island trip.\n")
    found = notes.search("ferry timetable", 5, explain=True)
    assert {hit.path for hit in found.hits} == {"conversations/2026-02-20-ferry.md"}
    assert all("same file" not in hit.parts for hit in found.hits)


# ---- staying fresh ----


def test_a_search_sees_what_was_just_written(notes: Memory):
    notes.search("anything")
    notes.write("The cat is called Miso")
    assert "Miso" in notes.search("what is the cat called").hits[0].text


def test_deleted_and_renamed_files_leave_no_ghosts(notes: Memory):
    write(notes, "memory/tools-x.md", "# X\n\nA quokka sits here.\n")
    assert paths(notes.search("quokka"))[0] == "memory/tools-x.md"
    workspace = notes.home.workspace("main")
    (workspace / "memory/tools-x.md").rename(workspace / "memory/tools-y.md")
    found = [hit for hit in notes.search("quokka").hits if "quokka" in hit.text]
    assert [hit.path for hit in found] == ["memory/tools-y.md"]
    (workspace / "memory/tools-y.md").unlink()
    assert not any("quokka" in hit.text for hit in notes.search("quokka").hits)
    assert not notes.group.database("index").match("passages_fts", ["quokka"], 1)


def test_identical_text_is_embedded_once_and_survives_a_rebuild(notes: Memory):
    for name in ("a", "b"):
        write(notes, f"memory/{name}.md", "# Same\n\nExactly the same text in two files.\n")
    first = notes.index()
    again = notes.index(rebuild=True)
    assert first.embedded < first.chunks
    assert again.added == again.files
    assert again.embedded == 0


def test_text_that_differs_in_case_and_blanks_alone_is_embedded_once(notes: Memory):
    notes.index()
    texts = ("Exactly the same text.", "exactly  the SAME text.", "Exactly another text.")
    for number, text in enumerate(texts):
        write(notes, f"memory/{number}.md", f"# Same\n\n{text}\n")
    done = notes.index()
    assert (done.added, done.embedded) == (3, 2)


def test_an_unchanged_file_is_not_read_again(notes: Memory):
    notes.index()
    assert notes.index().added == 0


def test_a_touched_file_with_the_same_content_keeps_its_chunks(notes: Memory):
    notes.index()
    before = notes.group.database("index").query("SELECT max(id) FROM passages")
    os.utime(notes.home.workspace("main") / "MEMORY.md", (1, 1))
    notes.index()
    assert notes.group.database("index").query("SELECT max(id) FROM passages") == before


def test_another_chunk_size_cuts_all_files_anew(notes: Memory, open_memory: Callable[..., Memory]):
    write(notes, "memory/long.md", "# Long\n\n" + "\n".join(f"line {n} of a long file" for n in range(200)))
    before = notes.index().chunks
    other = open_memory(memory__chunkSize="100", memory__chunkOverlap="20")
    other.group.resources.embedder = Chain((WordHashEmbedder(),))
    assert other.index().chunks > before


def test_another_model_embeds_anew_and_never_mixes(notes: Memory):
    notes.index()
    notes.group.resources.embedder = Chain((WordHashEmbedder(dimensions=32, model="other"),))
    done = notes.index()
    assert done.embedded == done.chunks
    assert list(notes.group.retrieval.index.passages.identities()) == ["fake/other@32"]


def test_vectors_of_another_model_are_not_used_and_it_is_said(notes: Memory):
    for number in range(40):
        write(
            notes, f"memory/n{number}.md", f"# N{number}\n\nA note about subject {number} and nothing else.\n"
        )
    notes.index()
    notes.group.resources.embedder = Chain((WordHashEmbedder(dimensions=32, model="other"),))
    found = notes.search("Keystone port")
    assert found.hits[0].path == "MEMORY.md"
    assert any("nanoclaw-memory index" in line for line in found.degraded)


def test_many_changes_are_left_to_index_and_said(notes: Memory):
    notes.index()
    for number in range(80):
        write(notes, f"memory/bulk-{number}.md", f"bulk {number}")
    assert any("80 files changed" in line for line in notes.search("Keystone").degraded)
    notes.index()
    assert notes.search("Keystone").degraded == ()


@pytest.mark.files("it damages the file")
def test_a_deleted_or_damaged_index_is_built_anew(notes: Memory):
    notes.index()
    notes.close()
    data = notes.home.data("main")
    (data / "index.db").write_bytes(b"this is no database" * 500)
    for name in ("index.db-wal", "index.db-shm"):
        (data / name).unlink(missing_ok=True)
    found = notes.search("Keystone port")
    assert found.hits[0].path == "MEMORY.md"
    assert any("damaged" in line for line in found.degraded)
    notes.close()
    (data / "index.db").unlink()
    assert notes.search("Keystone port").hits[0].path == "MEMORY.md"


def test_search_answers_while_another_process_indexes(notes: Memory):
    import fcntl

    notes.index()
    notes.write("something new about otters")
    with (notes.home.data("main") / "index.db-indexing").open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        found = notes.search("Keystone port")
        assert found.hits[0].path == "MEMORY.md"
        assert any("another process is indexing" in line for line in found.degraded)
        assert any("another process" in line for line in notes.index().degraded)
    assert "otters" in notes.search("otters").hits[0].text


# ---- who sees what ----


def test_a_shared_scope_finds_only_shared_files(notes: Memory, open_memory: Callable[..., Memory]):
    for number in range(
        150
    ):  # more private matches than any pool holds: the filter must come before the limit
        write(notes, f"memory/private-{number}.md", "# P\n\nKeystone port port port Keystone secret\n")
    notes.index()
    shared = open_memory(private=False, privacy__sharedFiles='["memory/project-*.md"]')
    shared.group.resources.embedder = notes.group.resources.embedder
    found = shared.search("Keystone port migration PostgreSQL", 50)
    assert "memory/project-keystone.md" in paths(found)
    assert "secret" not in "".join(hit.text for hit in found.hits)
    assert "MEMORY.md" not in paths(found)


def test_a_group_never_finds_another_groups_files(notes: Memory, open_memory: Callable[..., Memory]):
    family = open_memory("family")
    family.init()
    family.group.resources.embedder = notes.group.resources.embedder
    assert not any("3055" in hit.text for hit in family.search("Keystone port").hits)


# ---- bad files ----


def test_files_that_are_no_text_are_skipped_aloud_and_the_rest_is_found(notes: Memory):
    write(notes, "memory/latin.md", "Grüße aus München\n".encode("latin-1"))
    write(notes, "memory/binary.md", b"PNG\x00\x01\x02 binary")
    big = write(notes, "memory/huge.md", b"x")
    os.truncate(big, 200_000_000)
    done = notes.index()
    reasons = {skipped.path: skipped.reason for skipped in done.skipped}
    assert "not UTF-8" in reasons["memory/latin.md"]
    assert "binary" in reasons["memory/binary.md"]
    assert "over the limit" in reasons["memory/huge.md"]
    assert notes.search("Keystone port").hits[0].path == "MEMORY.md"


def test_a_directory_loop_and_a_link_that_leaves_are_survived(notes: Memory, tmp_path: Path):
    workspace = notes.home.workspace("main")
    (workspace / "memory" / "loop").symlink_to(workspace / "memory")
    (tmp_path / "outside.md").write_text("a wombat outside")
    (workspace / "memory" / "link.md").symlink_to(tmp_path / "outside.md")
    notes.index()
    assert not any("wombat" in hit.text for hit in notes.search("wombat").hits)
    assert notes.search("Keystone port").hits[0].path == "MEMORY.md"


def test_a_file_that_vanishes_while_it_is_read_leaves_nothing(notes: Memory):
    doomed = write(notes, "memory/doomed.md", "# D\n\nA narwhal.\n")
    index = notes.group.retrieval.index
    reader = index.read

    def vanishing(path: Path) -> str:
        if path == doomed:
            doomed.unlink(missing_ok=True)
        return reader(path)

    index.read = vanishing
    notes.index()
    assert not any("narwhal" in hit.text for hit in notes.search("narwhal").hits)
    assert "memory/doomed.md" not in index.passages.files()


def test_a_killed_run_goes_on_where_it_stopped(notes: Memory):
    for number in range(10):
        write(notes, f"memory/k{number}.md", f"# K{number}\n\nNote number {number} about kelp.\n")
    index = notes.group.retrieval.index
    reader = index.read

    class Killed(BaseException):
        pass

    def dying(path: Path) -> str:
        if path.name == "k5.md":
            raise Killed
        return reader(path)

    index.read = dying
    with pytest.raises(Killed):
        notes.index()
    index.read = reader
    known = len(index.passages.files())
    done = notes.index()
    assert known > 0
    assert done.added == done.files - known
    assert done.pending == 0


# ---- without a model ----


def test_without_an_installed_model_words_answer_and_it_is_said(memory: Memory):
    write(memory, "MEMORY.md", "# Memory\n\n- Keystone runs on port 3055\n")
    found = memory.search("Keystone port")
    assert found.hits[0].path == "MEMORY.md"
    assert any("nanoclaw-memory models install" in line for line in found.degraded)


def test_fast_search_loads_no_model_and_no_numpy(notes: Memory, ncm_process: Callable[..., object]):
    notes.index()
    code = (
        "import sys; from nanoclaw_memory.memory import Memory\n"
        f"m = Memory.open({str(notes.home.root)!r}); r = m.search('Keystone port', fast=True)\n"
        "assert r.hits[0].path == 'MEMORY.md' and r.degraded == (), r\n"
        "print(sorted({'numpy', 'onnxruntime', 'httpx2'} & set(sys.modules)))"
    )
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


# ---- corpora ----


def test_a_corpus_is_searched_by_name_or_together_and_removed(notes: Memory, tmp_path: Path):
    books = tmp_path / "books"
    books.mkdir()
    (books / "a.md").write_text("# Sailing\n\nA sheet is a rope that trims a sail.\n")
    (books / "b.html").write_text(
        "<h1>Knots</h1><p>The bowline makes a loop.</p><script>var bowline</script>"
    )
    (books / "c.txt").write_text("A halyard raises the mainsail.")
    done = notes.admin.corpora.add("sailing", [books])
    assert (done.files, done.skipped) == (3, ())
    hit = notes.search("which rope trims a sail", corpus="sailing").hits[0]
    assert (hit.corpus, hit.path) == ("sailing", str(books / "a.md"))
    assert notes.search("bowline", corpus="sailing").hits[0].text == "# Knots\nThe bowline makes a loop."
    assert not any(hit.corpus for hit in notes.search("bowline").hits)
    assert {"sailing", ""} == {
        hit.corpus for hit in notes.search("rope sail Keystone port", corpus="all").hits
    }
    notes.admin.corpora.remove("sailing")
    assert notes.admin.corpora.all() == ()
    with pytest.raises(NotFound):
        notes.search("bowline", corpus="sailing")


def test_a_pdf_is_found_by_page_and_a_broken_one_is_skipped_aloud(notes: Memory, tmp_path: Path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.pdf").write_bytes(pdf("The heron nests in reeds"))
    (tmp_path / "docs/b.pdf").write_bytes(b"%PDF-1.4 broken")
    done = notes.admin.corpora.add("birds", [tmp_path / "docs"])
    assert [Path(skipped.path).name for skipped in done.skipped] == ["b.pdf"]
    hit = notes.search("where does the heron nest", corpus="birds").hits[0]
    assert hit.heading == "page 1"


def test_a_corpus_stays_hidden_from_a_shared_scope(notes: Memory, open_memory, tmp_path: Path):
    (tmp_path / "x.md").write_text("# X\n\nprivate papers\n")
    notes.admin.corpora.add("papers", [tmp_path / "x.md"])
    shared = open_memory(private=False)
    with pytest.raises(NotFound):
        shared.search("papers", corpus="papers", fast=True)


def test_a_changed_document_is_taken_in_and_a_deleted_one_leaves(notes: Memory, tmp_path: Path):
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "a.md").write_text("# A\n\nold lorikeet\n")
    notes.admin.corpora.add("d", [folder])
    (folder / "a.md").write_text("# A\n\nnew kookaburra\n")
    assert notes.search("kookaburra", corpus="d").hits[0].text == "# A\n\nnew kookaburra"
    shutil.rmtree(folder)
    assert notes.admin.corpora.reindex("d").removed == 1


def pdf(text: str) -> bytes:
    """A PDF of one page with one line of text."""
    stream = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % len(out)
    return out + b"xref\n0 6\n0000000000 65535 f \n" + table + trailer


def test_doctor_says_that_a_multilingual_model_would_help_where_memory_is_not_english(
    open_memory: Callable[..., Memory], models_dir: Path
):
    memory = open_memory(embeddings__modelPath=str(models_dir / "e5-small-v2"))
    memory.init()
    for number in range(12):
        memory.write(f"Wir haben die Rechnung Nummer {number} für das Haus bezahlt")
    memory.search("Rechnung", fast=True)
    (said,) = [one for one in memory.doctor() if "local embedder" in one.message]
    assert (said.level, "multilingual" in said.message) == ("warning", True)


@pytest.fixture
def household(open_memory: Callable[..., Memory], models_dir: Path) -> Memory:
    memory = open_memory(embeddings__modelPath=str(models_dir / "multilingual-e5-small"))
    memory.init()
    for line in (
        *("I am severely allergic to walnuts", "Workshop insurance: Merkur, policy until June"),
        *("Only hide glue on tops, never PVA", "Please always write dates as day month year", "Nele age: 9"),
        *("Sorry: the arching is 18.5 mm.", "Oma's phone: 0316 555123", "name: Ilse Brandner"),
        *("Wir haben das Boot verkauft", "Der Garten braucht einen neuen Zaun", "The car is a grey Skoda"),
        *("Die Waschmaschine ist von Miele", "Oma hat am 4. März Geburtstag", "Deploys happen on Tuesdays"),
    ):
        memory.write(line)
    memory.index()
    return memory


@pytest.mark.parametrize(
    "question",
    [
        "😀",
        "...",
        "???",
        '"unbalanced ( OR AND *',
        "biopsy",
        "Photosynthese",
        "oboe",
        "volcano",
        "Hubschrauber",
    ],
)
def test_a_question_without_a_word_that_memory_knows_gets_no_hits(household: Memory, question: str):
    assert household.search(question).hits == ()


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("Versicherung", "Merkur"),
        ("boat", "Boot"),
        ("washing", "Miele"),
        ("birthday", "Oma"),
    ],
)
def test_a_lone_word_in_another_language_or_spelling_still_finds(
    household: Memory, question: str, found: str
):
    assert found in household.search(question).hits[0].text


def test_many_new_rows_are_read_step_by_step_and_the_search_says_so(
    open_memory: Callable[..., Memory],
) -> None:
    memory = open_memory()
    memory.init()
    for number in range(70):
        memory.graph.upsert(f"Shelf{number}", "colour", f"shade{number}")
    index = memory.group.retrieval.index
    for asked in range(3):
        assert memory.graph.search(f"What colour is Shelf{asked}?").hits  # reads few rows on its way
    read = index.passages.counts()["facts"]
    assert 0 < read < 70
    assert not memory.search("Which colour is Shelf69?", fast=True).degraded
    assert index.passages.counts()["facts"] == 70


def test_a_reply_that_only_acknowledges_is_no_hit_and_a_short_answer_is_one(memory: Memory) -> None:
    for said, reply in (
        ("Our dentist is Dr. Okafor on Mill Lane", "Noted."),
        ("Die Praxis von Dr. Okafor ist umgezogen", "Mach ich."),
        ("Tell me the colour of the gate of Dr. Okafor", "Dusty teal."),
        ("What colour is the door of Dr. Okafor?", "Blue."),
        ("Book Dr. Okafor for next week", "Thursday."),
    ):
        memory.after_turn(said, reply)
    texts = {hit.text for hit in memory.search("Dr. Okafor", fast=True).hits}
    assert {"Blue.", "Thursday.", "Dusty teal."} <= texts and not {"Noted.", "Mach ich."} & texts
    assert "Agent: Noted." in memory.conversations.search("Noted")[0].text


def test_what_is_shown_has_the_day_of_the_person_and_not_of_greenwich(home: Path):
    clock = FixedClock(datetime(2026, 11, 6, 0, 30, tzinfo=ZoneInfo("Europe/Berlin")))
    with Memory.open(home, Scope(session_id="night"), clock=clock) as memory:
        memory.init()
        memory.write("Keystone's port is 3055", "fact")
        memory.after_turn("The kettle is broken", "I will look for another kettle.")
        memory.upkeep.run("ingest")
        assert [hit.since for hit in memory.graph.search("Keystone's port").hits] == ["2026-11-06"]
        assert {hit.day for hit in memory.search("kettle", fast=True).hits} == {"2026-11-06"}


def test_a_heading_that_init_wrote_is_no_memory_and_an_item_is_shown_without_its_bullet(
    memory: Memory, home: Path
):
    page = home / "workspace" / "USER.md"
    page.write_text(
        page.read_text().replace("## Family\n", "## Family\n\n- Osric sings in the family choir\n")
    )
    assert [hit.text for hit in memory.search("family projects", fast=True).hits] == [
        "- Osric sings in the family choir"
    ]
    assert memory.search("decisions preferences", fast=True).hits == ()
    recalled = memory.recall("Osric choir", fast=True)
    assert [one.content for one in recalled.entries] == ["Osric sings in the family choir"]
    assert "] Osric sings in the family choir\n" in recalled.text


def test_an_entry_says_in_words_why_it_was_found(memory: Memory):
    memory.store("Osric sings in the choir", "fact")
    assert memory.search("Osric choir", fast=True).hits[0].why == "words"


def test_with_a_cache_bound_of_0_everything_answers_and_nothing_is_kept(tmp_path):
    scope = Scope(session_id="s")
    with Memory.open(tmp_path, scope, overrides={"memory.cacheBytes": "0"}) as memory:
        memory.init()
        memory.group.resources.embedder = Chain((WordHashEmbedder(),), asked=QuestionVectors(0))
        memory.write("The harbour gate opens at nine")
        memory.index()
        for _ in range(2):
            assert "opens at nine" in memory.search("When does the harbour gate open?").hits[0].text
            assert "opens at nine" in memory.before_turn("When does the harbour gate open?", repeat=True).text
        kept = {one.name: (one.bytes, one.most) for one in memory.status().caches}
    assert kept["vectors"] == kept["questions"] == (0, 0)


def test_of_words_that_are_all_common_the_passage_with_all_of_them_is_found_however_old(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(candidates, "POSTINGS", 20)
    monkeypatch.setattr(candidates, "ALL_POSTINGS", 20)
    words = ("kettle", "harbour", "violin")
    write(memory, "memory/a.md", "# A\n\nThe kettle of the harbour is beside the violin.\n")
    for number in range(150):
        write(memory, f"memory/b{number:03}.md", f"# B\n\nNote {number} tells of one {words[number % 3]}.\n")
    memory.index()
    assert paths(memory.search("kettle harbour violin", 5, fast=True))[0] == "memory/a.md"
    assert len(paths(memory.search("kettle harbour violin", 20, fast=True))) == 20  # and others after it


def test_a_line_with_a_masked_credential_comes_last(memory, open_memory):
    open_memory(session="a").after_turn(
        "which broker we use is in the env: BROKER_PASSWORD=hunter2-Blaabaer-9x broker broker",
        "Please rotate it.",
    )
    open_memory(session="b").after_turn("the message broker that we use is RabbitMQ", "Noted.")
    hits = open_memory(session="c").search("what broker do we use").hits
    assert "RabbitMQ" in hits[0].text
    assert any("[redacted" in hit.text for hit in hits[1:])
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
