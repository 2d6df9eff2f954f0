"""What a statement says was changed or given up, and which older statement that is about."""

from __future__ import annotations

import pytest

from nanoclaw_memory.retrieval.value_changes import continues_question, replaces, still_names, supersedes


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Our florist is Mrs. Adeyemi in Bell Street", "We changed florists, it's Mr. Kwon now"),
        ("my barber is Enzo", "new barber since May: Tariq"),
        ("our heating bill is 140 a month", "the heating bill goes up to 165 from March"),
        ("our parcels go with Swiftpost", "from today parcels go with Hermod instead of Swiftpost"),
        ("Unser Kinderarzt ist Dr. Sommer", "Wir haben den Kinderarzt gewechselt, jetzt Dr. Yildiz"),
        ("unser Vermieter ist Herr Ohm", "der neue Vermieter ist die Wobau"),
    ],
)
def test_something_of_the_speakers_own_that_changed_is_surely_replaced(older, newer):
    assert supersedes(newer, older, other_value=lambda: False)
    assert replaces(newer, older)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("the test server of magpie runs on port 4100", "test server moved to port 4200"),
        ("we print our flyers at Copyhaus", "Copyhaus closed, so we print at Blitz"),
        ("my accountant is Ms Rowe", "Ms Rowe retired"),
        ("wir nehmen Trello für die Aufgaben", "statt Trello nehmen wir jetzt ein Heft"),
        ("my aunt Bryony lives in Leeds", "Bryony moved to York"),
    ],
)
def test_a_thing_that_changed_and_a_value_that_is_gone_overtake_what_was_said_of_them(older, newer):
    assert supersedes(newer, older, other_value=lambda: False)
    assert not replaces(newer, older)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("my day rate for Ostrow is 500", "Belling pays 520 a day from now on"),
        ("Bryony's birthday is 4 May", "Bryony moved to York"),
        ("Mrs. Okonjo teaches Osric the cello", "Mrs. Okonjo has moved to Station Road 8"),
        ("we upgraded redis to 7 on the old wombat box", "we're moving off wombat"),
        ("our florist is Mrs. Adeyemi", "we might change florists in spring"),
        ("our florist is Mrs. Adeyemi", "Mrs. Adeyemi's shop is closed on Mondays now"),
    ],
)
def test_what_is_about_something_else_or_uncertain_overtakes_nothing(older, newer):
    assert not supersedes(newer, older, other_value=lambda: True)


def test_who_is_named_before_a_value_that_holds_now_overtakes_another_value_of_theirs_only():
    older, newer = "Nell's shoe size is 31", "Nell has grown, 33 now"
    assert supersedes(newer, older, other_value=lambda: True)
    assert not supersedes(newer, older, other_value=lambda: False)


@pytest.mark.parametrize("message", ["raised it to 96 from this month", "hab auf 91 erhöht", "it's 40 now"])
def test_a_message_goes_on_with_what_was_asked_where_it_names_nothing(message):
    assert continues_question(message)


@pytest.mark.parametrize("message", ["thanks", "the rent is 900 now", "what is it now?", "I like it"])
def test_a_message_that_names_its_subject_or_changes_nothing_goes_on_with_no_question(message):
    assert not continues_question(message)


def test_a_name_that_a_newer_statement_has_is_no_value_that_it_overtakes_unless_it_is_gone():
    assert still_names("Bryony moved to York", "Bryony")
    assert not still_names("Bryony moved to York", "Leeds")
    assert not still_names("Ms Rowe retired", "Ms Rowe")
    assert not still_names("moved to 4200 because grafana took 4100", "4100")
