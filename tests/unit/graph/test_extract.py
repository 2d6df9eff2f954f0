"""What the rules read out of Markdown, and what they leave."""

from __future__ import annotations

import pytest

from nanoclaw_memory.graph.extract import FileRules, extract
from nanoclaw_memory.graph.sentence_patterns import first_name

LOG = FileRules()
PROJECT = FileRules("Keystone", "project", sections=True)


def said(text: str, rules: FileRules = LOG) -> list[tuple[str, str, str]]:
    return [(triple.subject, triple.predicate, triple.object) for triple in extract(text, rules)]


def test_pairs_of_every_style_are_facts_of_the_files_subject() -> None:
    text = (
        "- port: 3000\n- **Host:** maren\n- **Data base** — PostgreSQL\n* owner = Alice\n1. `region`: north\n"
    )
    assert said(text, PROJECT) == [
        ("Keystone", "port", "3000"),
        ("Keystone", "host", "maren"),
        ("Keystone", "data base", "PostgreSQL"),
        ("Keystone", "owner", "Alice"),
        ("Keystone", "region", "north"),
    ]


def test_each_saying_names_its_line() -> None:
    triples = extract("# Keystone\n\n- port: 3000\n\n## Risks\n- the disk is nearly full\n", PROJECT)
    assert [(triple.predicate, triple.line) for triple in triples] == [("port", 3), ("risk", 6)]


def test_a_tables_rows_are_entities_and_its_header_names_keys() -> None:
    text = "## Family\n| Name | Relation | Birthday |\n|---|---|---|\n| Tilda | daughter | 21 June |\n"
    text += "| Otto | dog | |\n"
    assert said(text, FileRules("User")) == [
        ("Tilda", "relation", "daughter"),
        ("Tilda", "daughter_of", "User"),
        ("Tilda", "birthday", "21 June"),
        ("Otto", "relation", "dog"),
        ("Otto", "dog_of", "User"),
    ]


def test_a_table_of_settings_belongs_to_the_subject() -> None:
    assert said("| Key | Value |\n|---|---|\n| port | 3000 |\n", PROJECT) == [("Keystone", "port", "3000")]


def test_arrows_are_relations() -> None:
    assert said("- Alice → owns → Keystone\n- Bob -> manages -> Alice\n") == [
        ("Alice", "owns", "Keystone"),
        ("Bob", "manages", "Alice"),
    ]


def test_plain_sentences_are_facts_and_relations() -> None:
    text = (
        "- Heidi is Robert's mother\n- Alice's birthday is March 15, 1990\n- Dag Holm manages Alice Smith.\n"
        "- Tilda is allergic to hazelnuts.\n- Kofi now works at Vattenfall\n- Alice is the owner of Keystone\n"
    )
    assert said(text) == [
        ("Heidi", "mother_of", "Robert"),
        ("Alice", "birthday", "March 15, 1990"),
        ("Dag Holm", "manages", "Alice Smith"),
        ("Tilda", "allergy", "hazelnuts"),
        ("Kofi", "works_at", "Vattenfall"),
        ("Alice", "owner_of", "Keystone"),
    ]


def test_a_roster_tells_its_people_apart() -> None:
    found = said("## People\n- **Priya Raman (Pri)**: engineer. Email priya@example.org. Based in Oslo.\n")
    assert ("Priya Raman", "email", "priya@example.org") in found
    assert ("Priya Raman", "location", "Oslo") in found
    assert ("Pri", "", "Priya Raman") in found


def test_tagged_lines_are_kept_under_their_tag_with_their_importance() -> None:
    (decision,) = extract("- [decision|i=0.9] Switched Keystone to PostgreSQL\n", LOG)
    assert (decision.subject, decision.predicate, decision.importance, decision.permanent) == (
        "Keystone",
        "decision",
        0.9,
        True,
    )
    assert said("- [context|i=0.3] Routine review of Keystone\n") == []


@pytest.mark.parametrize("label", ["[fact|i=0.9|@keystone]", "[fact|@keystone]", "[@keystone]"])
def test_the_project_of_a_log_line_is_no_part_of_what_it_states(label: str) -> None:
    assert said(f"- {label} Alice's birthday is March 15, 1990\n") == [
        ("Alice", "birthday", "March 15, 1990")
    ]


def test_the_log_writes_the_graphs_own_form_back() -> None:
    assert said("- Keystone.port = 3000\n") == [("Keystone", "port", "3000")]


def test_junk_is_left() -> None:
    text = (
        "- todo: call\n- http://example.org/a: b\n- port: TBD\n- host: ?\n- note: x\n- at 10:30 lunch\n"
        "```\n- port: 9\n```\n> - port: 8\n- name:\n- a very long key that is no key at all really: value\n"
    )
    assert said(text, FileRules("Keystone")) == []


def test_a_heading_that_is_a_name_is_the_subject_of_its_pairs() -> None:
    assert said(
        "## Alice Smith\n- phone: 1\n## Preferences\n- editor: Helix\n", FileRules(user="Robert")
    ) == [
        ("Alice Smith", "phone", "1"),
        ("Robert", "editor", "Helix"),
    ]


def test_saying_it_twice_is_saying_it_once() -> None:
    assert len(said("- port: 3000\n- Port: 3000\n", PROJECT)) == 1


def test_the_first_name_of_a_sentence_is_not_its_verb() -> None:
    assert first_name("Switched Keystone to PostgreSQL") == "Keystone"
    assert first_name("Payment API reached alpha") == "Payment API"
    assert first_name("moved to Payment API") == "Payment API"
    assert first_name("Nothing special today") == ""


def test_a_dates_year_stays_with_its_day():
    text = "## Family\n- Ida: birthday March 15, 2016, phone 555 0142\n"
    found = {(triple.subject, triple.predicate): triple.object for triple in extract(text, FileRules())}
    assert found["Ida", "birthday"] == "March 15, 2016"
