"""Kinds of values in a statement."""

from __future__ import annotations

import pytest

from nanoclaw_memory.retrieval.value_kinds import HOST, may_end_fact, value_kinds


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("it runs on db.internal", "db.internal"),
        ("see ...docs.example.org", "docs.example.org"),
        ("it is on oak-db-3 now", "oak-db-3"),
        ("10.0.0.4 answers", "10.0.0.4"),
    ],
)
def test_a_machine_is_found_where_its_name_begins(text: str, host: str):
    assert value_kinds(text)[HOST] == {host}


@pytest.mark.parametrize("line", ["-" * 300_000, "a1.b2." * 100_000], ids=["ruler", "versions"])
def test_a_long_run_without_a_machine_is_read_once(line: str):
    assert HOST not in value_kinds(line)


@pytest.mark.parametrize("text", ["es ist " * 60_000, "sie ist " + "ge" * 200_000], ids=["words", "word"])
def test_an_event_is_looked_for_near_its_auxiliary(text: str):
    assert may_end_fact("Lena", "city", "Ulm", "Lena ist am 3. Mai nach Wien umgezogen", False)
    assert not may_end_fact("Lena", "city", "Ulm", text, False)
