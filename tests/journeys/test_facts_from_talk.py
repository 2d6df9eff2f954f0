"""What a person says, and what entries state, is in the graph: with its project, as long as its source is there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.interfaces.cli import cli
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope

At = Callable[..., Memory]


@pytest.fixture
def at(memory: Memory, home: Path, clock: FixedClock) -> Iterator[At]:
    """Open the memory as a session in a project; all are closed at the end."""
    opened: list[Memory] = []

    def open_(project: str = "", session: str = "s1", origin: str = "owner", private: bool = True) -> Memory:
        scope = Scope(session_id=session, project=project, origin=origin, private=private)
        opened.append(Memory.open(home, scope, clock=clock))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()


def answers(memory: Memory, question: str) -> list[str]:
    return [hit.text for hit in memory.graph.search(question).hits]


@pytest.mark.parametrize(
    "said", ["Hi, I'm Meike Harms, I look after the docks", "Ich bin Meike Harms, ich leite das Dock"]
)
def test_who_introduces_themselves_by_their_full_name_has_it(at: At, said: str):
    at().after_turn(said, "Hello!")
    assert answers(at(session="s2"), "What is my name?")[0] == "User.name = Meike Harms"


@pytest.mark.parametrize(
    "said",
    [
        "I'm Head of Sales",
        "I'm Portuguese",
        "I'm Team Lead",
        "I'm Scrum Master",
        "I'm Old School",
        "I'm not Meike Harms",
        "I'm VP Sales",
        "I'm Debian Developer",
        "Ich bin Wirtschaftsinformatik Student",
    ],
)
def test_what_somebody_is_is_no_name(at: At, said: str):
    at().after_turn(said, "I see.")
    assert "User.name" not in " ".join(answers(at(session="s2"), "What is my name?"))


def test_what_a_person_says_plainly_is_in_the_graph_at_once(at: At):
    at().after_turn(
        "By the way, my daughter Ida turns 9 on 3 May. My boss is Anna Weber.", "Noted: her boss is Carl Ott."
    )
    later = at(session="s2")
    assert answers(later, "When is my daughter's birthday?")[0] == "Ida.birthday = 3 May"
    assert answers(later, "Who is my boss?")[0] == "User.boss = Anna Weber"
    assert not any("Carl" in one for one in answers(later, "Who is Anna Weber's boss?"))
    fact = later.graph.history("Ida", "birthday")[0]
    assert (fact.origin, fact.source) == ("user", "exchanges/1:1")


@pytest.mark.parametrize(
    "message",
    [
        "Is Keystone's port 3055?",
        "If Keystone's port is 3055 we must change the firewall.",
        "Lena said Keystone's port is 3055.",
        "Write a test that checks this:\n> Keystone's port is 3055.",
        "Keystone's port was 3055.",
        "Thanks, Keystone means a lot to me.",
    ],
)
def test_what_a_person_asks_supposes_quotes_or_remembers_is_no_fact(at: At, message: str):
    at().after_turn(message, "I see.")
    assert answers(at(session="s2"), "What is Keystone's port?") == []


@pytest.mark.parametrize(
    "message",
    [
        "Translate to German: My doctor Mallory lives in Oslo and Keystone runs on port 9999.",
        'Translate "My doctor Mallory lives in Oslo. Keystone runs on port 9999." into German.',
    ],
)
def test_a_text_that_a_message_is_about_retires_nothing(at: At, message: str):
    at().graph.upsert("Keystone", "port", "3001")
    at().after_turn(message, "Gern.")
    assert answers(at(session="s2"), "Which port does Keystone run on?") == ["Keystone.port = 3001"]


def test_an_entry_that_states_something_is_in_the_graph_as_long_as_it_holds(at: At, clock: FixedClock):
    memory = at(origin="agent")
    kept = memory.store("Kornblume uses Postgres", "fact")
    memory.store("Ravi Menon owns Harbor", "fact", expires="2026-03-01")
    assert "Kornblume → uses → Postgres" in answers(memory, "What does Kornblume use?")
    assert "Ravi Menon → owns → Harbor" in answers(memory, "Who owns Harbor?")
    memory.store("Kornblume uses MariaDB", "fact", supersedes=kept.id)
    found = answers(memory, "What does Kornblume use?")
    assert "Kornblume → uses → MariaDB" in found and "Kornblume → uses → Postgres" not in found
    clock.moment += timedelta(days=30)
    assert not any("Ravi" in one for one in answers(memory, "Who owns Harbor?"))


def test_what_a_shared_chat_says_is_nobodys_fact(at: At):
    at(private=False).after_turn("My boss is Anna Weber.", "Noted.")
    assert not any("boss" in one for one in answers(at(), "Who is my boss?"))


@pytest.mark.parametrize(
    ("said", "question", "answer"),
    [
        (
            "our ledger database is on slate-db-4, port 6440",
            "Where does the ledger database run?",
            "slate-db-4",
        ),
        ("our ledger database is on slate-db-4, port 6440", "Which port has the ledger database?", "6440"),
        ("the ledger db lives on slate-db-4 port 6440", "Where does the ledger db run?", "slate-db-4"),
        ("the thumbnail worker is on Ruby 3.2 now", "What does the thumbnail worker run on?", "Ruby 3.2"),
        ("Widerrufsfrist ist 21 Tage", "Wie lang ist die Widerrufsfrist?", "21 Tage"),
        ("Das Mahnziel für Feldkamp beträgt 12 Tage", "Welches Mahnziel hat Feldkamp?", "12 Tage"),
        ("Die Rüstzeit liegt bei 35 Minuten", "Wie lang ist die Rüstzeit?", "35 Minuten"),
        ("Frau Olsson handles insurance", "Who handles insurance?", "Frau Olsson"),
    ],
)
def test_a_plain_statement_about_a_thing_in_talk_is_a_fact(at: At, said: str, question: str, answer: str):
    at().after_turn(said, "Noted.")
    assert answer in answers(at(session="s2"), question)[0]


@pytest.mark.parametrize(
    ("before", "change", "question", "now", "gone"),
    [
        (
            "the retry limit of the courier API is 30",
            "we raised the courier API's retry limit from 30 to 75",
            "What is the retry limit of the courier API?",
            "75",
            "30",
        ),
        (
            "the retry limit of the courier API is 75",
            "the retry limit of the courier API went back to 30",
            "What is the retry limit of the courier API?",
            "30",
            "75",
        ),
        (
            "the stocktaking is on 4 May",
            "we moved the stocktaking from 4 May to 18 May",
            "When is the stocktaking?",
            "18 May",
            "4 May",
        ),
        (
            "Das Mahnziel für Feldkamp beträgt 12 Tage",
            "Wir haben das Mahnziel für Feldkamp von 12 Tagen auf 20 Tage erhöht",
            "Welches Mahnziel hat Feldkamp?",
            "20 Tage",
            "12 Tage",
        ),
        (
            "the thumbnail worker runs on Ruby 3.2",
            "upgraded the thumbnail worker to Ruby 3.4 today",
            "What does the thumbnail worker run on?",
            "Ruby 3.4",
            "Ruby 3.2",
        ),
        (
            "the ledger db runs on slate-db-4",
            "the ledger db moved to slate-db-9",
            "Where does the ledger db run?",
            "slate-db-9",
            "slate-db-4",
        ),
    ],
)
def test_a_reported_change_is_the_new_value_and_ends_the_old_one(
    at: At, clock: FixedClock, before: str, change: str, question: str, now: str, gone: str
):
    at().after_turn(before, "Noted.")
    clock.moment += timedelta(days=3)
    at(session="s2").after_turn(change, "Noted.")
    found = answers(at(session="s3"), question)
    assert now in found[0]
    assert not any(one.endswith(f" {gone}") for one in found)


@pytest.mark.parametrize(
    "said",
    [
        "set the retry limit of the courier API to 75",
        "Please raise the courier API's retry limit to 75",
        "we will raise the courier API's retry limit to 75",
        "Should we raise the courier API's retry limit to 75?",
    ],
)
def test_a_change_that_is_asked_for_or_planned_is_no_fact(at: At, said: str):
    at().after_turn(said, "Done.")
    assert answers(at(session="s2"), "What is the retry limit of the courier API?") == []


@pytest.mark.parametrize(
    ("before", "said", "question", "still"),
    [
        (
            "Das Mahnziel für Feldkamp beträgt 12 Tage",
            "Wir haben das Mahnziel für Feldkamp nicht auf 20 Tage erhöht",
            "Welches Mahnziel hat Feldkamp?",
            "12 Tage",
        ),
        (
            "Das Mahnziel für Feldkamp beträgt 12 Tage",
            "Das Mahnziel für Feldkamp wurde fast auf 20 Tage erhöht",
            "Welches Mahnziel hat Feldkamp?",
            "12 Tage",
        ),
        (
            "the retry limit of the courier API is 30",
            "Nobody raised the courier API's retry limit to 75",
            "What is the retry limit of the courier API?",
            "30",
        ),
    ],
)
def test_a_change_that_is_denied_ends_nothing(
    at: At, clock: FixedClock, before: str, said: str, question: str, still: str
):
    at().after_turn(before, "Noted.")
    clock.moment += timedelta(days=3)
    at(session="s2").after_turn(said, "Noted.")
    (found,) = answers(at(session="s3"), question)
    assert found.endswith(f" {still}")


@pytest.mark.parametrize(
    ("before", "said", "question", "both"),
    [
        (
            "Ivar arbeitet bei Acme",
            "Ivar arbeitet jetzt auch bei Globex",
            "Wo arbeitet Ivar?",
            ("Acme", "Globex"),
        ),
        (
            "the ledger db runs on slate-db-4",
            "the ledger db now also runs on slate-db-9",
            "Where does the ledger db run?",
            ("slate-db-4", "slate-db-9"),
        ),
        (
            "Mara ist Lehrerin",
            "Mara wohnt jetzt in Bergen und Oslo",
            "Wo wohnt Mara?",
            ("Bergen", "Oslo"),
        ),
    ],
)
def test_what_holds_now_beside_another_value_does_not_end_it(
    at: At, clock: FixedClock, before: str, said: str, question: str, both: tuple[str, str]
):
    at().after_turn(before, "Noted.")
    clock.moment += timedelta(days=3)
    at(session="s2").after_turn(said, "Noted.")
    found = "\n".join(answers(at(session="s3"), question))
    assert all(one in found for one in both)


@pytest.mark.parametrize(
    "line",
    [
        "slate-db-4 ist von Falkenstein umgezogen",
        "Die Lieferung ist von Feldkamp gekommen",
        "Tomma ist mit dem Rad gefahren",
        "Arvid ist bei Feldkamp geblieben",
        "Der Frachter ist in Bremerhaven gelandet",
        "slate-db-4 is moved from Falkenstein",
    ],
)
def test_what_moved_or_happened_is_no_relation(memory: Memory, line: str):
    memory.write(line)
    memory.upkeep.run("ingest")
    assert [row for row in memory.graph.export() if "relation" in row] == []


def test_a_value_said_in_one_repository_retires_none_of_another(at: At):
    at("orchard", "o1").after_turn("The staging port is 7001.", "Noted.")
    at("keystone", "k1").after_turn("The staging port is 7002.", "Noted.")
    at("keystone").write("Gateway's timeout is 30 seconds", "fact", 0.9)
    at("orchard").write("Gateway's timeout is 90 seconds", "fact", 0.9)
    for project, port, timeout in (("orchard", "7001", "90"), ("keystone", "7002", "30")):
        memory = at(project, "q")
        hits = memory.graph.search("What is the staging port?").hits
        assert port in hits[0].text and not hits[0].elsewhere and len(hits) == 2
        assert hits[1].elsewhere in hits[1].dated and hits[1].elsewhere != project
        assert timeout in answers(memory, "What is Gateway's timeout?")[0]
    at("orchard", "o2").after_turn("The staging port is 7011.", "Noted.")
    now = answers(at("orchard", "q2"), "What is the staging port?")
    assert "7011" in now[0] and "7002" in now[1] and len(now) == 2


def test_what_the_owner_adds_belongs_to_no_project_unless_they_name_one(at: At, home: Path):
    runner = CliRunner()

    def add(*args: str) -> None:
        done = runner.invoke(cli, ["--home", str(home), "graph", "add", *args])
        assert done.exit_code == 0, done.output

    add("Keystone", "port", "3000")
    assert at("orchard").graph.history("Keystone")[0].project == ""
    add("Gateway", "port", "1", "--project", "orchard")
    add("Gateway", "port", "2", "--project", "keystone")
    hits = at("keystone").graph.search("Gateway's port?").hits
    assert [hit.item.value for hit in hits] == ["2", "1"]
    add("Gateway", "port", "3")  # for every project
    assert answers(at("keystone"), "Gateway's port?") == ["Gateway.port = 3"]


def test_what_is_said_in_two_projects_is_one_hit(at: At):
    for project in ("orchard", "keystone"):
        at(project, project).after_turn("Lena's birthday is 3 June.", "Noted.")
    assert answers(at("harbor"), "When is Lena's birthday?") == ["Lena.birthday = 3 June"]


def test_facts_leave_with_the_session_or_entry_that_is_forgotten(at: At):
    at(session="gone").after_turn("Keystone's port is 3055.", "Noted.")
    stored = at().store("Kornblume uses Postgres", "fact")
    memory = at(session="q")
    assert answers(memory, "What is Keystone's port?") and answers(memory, "What does Kornblume use?")
    memory.forget(session="gone")
    assert memory.graph.history("Keystone") == []
    memory.forget(id=stored.id)
    assert memory.graph.relations_of("Kornblume") == []


def test_upkeep_reads_what_was_said_before_there_was_a_graph_of_talk(at: At):
    memory = at()
    for number in range(250):
        memory.after_turn(f"Server{number}'s port is {4000 + number}.", "Noted.")
    done = memory.upkeep.run("ingest")
    assert done[0].changed == 250
    assert memory.upkeep.run("ingest")[0].changed == 0


def test_what_was_read_from_an_overtaken_statement_is_marked_as_that_is_and_found_once(
    memory: Memory, clock: FixedClock
):
    memory.after_turn("The Falcon parser is licensed under GPLv3.", "Noted.")
    clock.moment += timedelta(days=30)
    memory.graph.upsert("Falcon parser", "licence", "Apache-2.0")
    question = "Under which licence is the Falcon parser?"
    (read,) = [hit for hit in memory.graph.search(question).hits if "GPLv3" in hit.text]
    assert read.mark == "earlier" and read.newer is not None and "Apache-2.0" in read.newer.text
    found = memory.search("Is the Falcon parser licensed under GPLv3?", fast=True).hits
    assert [hit.kind for hit in found if "GPLv3" in hit.text] == ["exchange"]


def test_the_reader_of_sentences_is_not_loaded_where_nothing_new_was_said(memory: Memory, home: Path):
    memory.after_turn("My boss is Anna Weber.", "Noted.")
    assert answers(memory, "Who is my boss?")
    code = (
        "import sys; from pathlib import Path; from nanoclaw_memory import Memory\n"
        f"with Memory.open(Path({str(home)!r})) as memory: memory.before_turn('Who is my boss?')\n"
        "print('nanoclaw_memory.graph.extract' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


@pytest.mark.parametrize(
    "request_of_a_text",
    [
        "proofread this — {}",
        "Proofread this; {}",
        "translate this... {}",
        "Übersetze ins Englische – {}",
        "is this correct English? {}",
        "Can you fix the grammar of this? {}",
        "tl;dr {}",
        "translate [{}]",
    ],
)
def test_what_stands_behind_a_request_about_a_text_in_the_same_line_is_no_fact(memory, request_of_a_text):
    memory.after_turn(request_of_a_text.format("Zorvane's port is 6666. Quillon lives in Lisbon."), "Done.")
    assert memory.graph.search("What is Zorvane's port, and where does Quillon live?").hits == ()


@pytest.mark.parametrize(
    "before", ["We moved on — ", "Is that clear? ", "Summarize our meeting; ", "Translate is down. "]
)
def test_what_stands_behind_a_sign_that_parts_no_request_is_the_persons_fact(memory, before):
    memory.after_turn(f"{before}Zorvane's port is 6666.", "Done.")
    assert [hit.item.value for hit in memory.graph.search("What is Zorvane's port?").hits] == ["6666"]
