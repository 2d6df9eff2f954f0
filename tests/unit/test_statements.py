"""Statements: the same, one that says more, a contradiction."""

from __future__ import annotations

import pytest

from nanoclaw_memory.statements import contradiction, features, near_duplicate, restates, same_statement


def test_inflection_does_not_make_another_statement():
    one, other = features("We keep the database in Berlin"), features("We keep the databases in Berlin")
    assert restates(one, other) and restates(other, one) and same_statement(one, other)


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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The freight lift is out of order", "The freight lift is nearly out of order"),
        ("The choir has no tenor", "The choir has no second tenor"),
        ("Refill at 20", "Refill 20"),
        ("Ida spielt seit drei Jahren Oboe", "Ida spielte drei Jahre Oboe"),
        ("The club meets every first Monday", "The club meets every Monday"),
        ("The boy's bike is in the cellar", "The boys' bike is in the cellar"),
        ("Only Ida may open the till", "Ida may only open the till"),
        ("The bus goes from Gent to Brugge", "The bus goes from Brugge to Gent"),
        ("Hunde jagen am Abend Katzen", "Katzen jagen am Abend Hunde"),
        ("Am Abend jagen Hunde Katzen", "Katzen jagen Hunde am Abend"),
    ],
)
def test_one_small_word_more_or_elsewhere_is_never_merged(one, other):
    assert not near_duplicate(one, other) and not near_duplicate(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Water the ferns after every heat wave", "After every heat wave, water the ferns"),
        ("Im Mai muss die Heizung zur Wartung", "Die Heizung muss im Mai zur Wartung"),
        ("The oven needs 20 minutes", "The oven needs twenty min"),
        ("The fee is due on the first of May", "The fee is due on the 1st of May"),
        ("The gate takes 5 cars per minute", "The gate takes five cars/min"),
        ("Der Platz kostet 30 Euro", "Der Platz kostet 30 €"),
    ],
)
def test_a_part_elsewhere_and_other_forms_of_numbers_and_units_are_merged(one, other):
    assert near_duplicate(one, other) and near_duplicate(other, one)


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
