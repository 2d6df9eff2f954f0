"""Statements: the same, one that says more, a contradiction."""

from __future__ import annotations

import pytest

from nanoclaw_memory.statements import contradiction, features, near_duplicate, restates, same_statement


def test_inflection_does_not_make_another_statement():
    one, other = features("We keep the database in Berlin"), features("We keep the databases in Berlin")
    assert restates(one, other) and restates(other, one) and same_statement(one, other)
    assert near_duplicate("We keep the database in Berlin", "We keep the databases in Berlin")


def test_german_inflection_does_not_make_another_statement_either():
    one, other = (
        features("Wir sichern die Datenbank in Berlin"),
        features("Wir sichern die Datenbanken in Berlin"),
    )
    assert same_statement(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("We keep the database in Berlin", "We keep the database in Oslo"),
        ("Deploys take 5 minutes on the old host", "Deploys take 9 minutes on the old host"),
        ("Push the release branch to staging", "Never push the release branch to staging"),
    ],
)
def test_another_name_number_or_denial_makes_another_statement(one, other):
    assert not restates(features(one), features(other))
    assert not same_statement(features(one), features(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Anna's brother is a baker", "Anna's brother has a baker"),
        ("The studio has two rooms in Gent", "The studio had two rooms in Gent"),
    ],
)
def test_another_verb_is_never_merged(one, other):
    assert not near_duplicate(one, other)


def test_a_retracted_value_contradicts_the_line_that_states_it():
    known = features("The search service runs on Solr")
    assert contradiction(known, features("The search service runs on Lucene instead of Solr"))
    assert not contradiction(known, features("The mail service runs on Postfix"))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Please ask before deploying", "Ask before deploying", True),
        ("The limit is ninety days", "The limit is 90 days", True),
        ("The limit is ninety days", "The limit is nine days", False),
        ("He works for Acme", "He worked for Acme", False),
        ("Send it at two", "Send it at three", False),
    ],
)
def test_courtesy_and_written_numbers_do_not_part_what_tense_does(one, other, same):
    assert near_duplicate(one, other) is same
