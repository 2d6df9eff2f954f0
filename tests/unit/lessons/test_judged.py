"""What the shipped judge makes of tasks, facts, corrections and rules for everywhere."""

from __future__ import annotations

import pytest

from nanoclaw_memory.lessons.learning import judged
from nanoclaw_memory.providers.judge import Judge


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge()


def steers(judge: Judge, before: str, said: str) -> str:
    """Return how far what is said would steer; empty for what never would on its own."""
    taught = judged(judge, said, before)
    if taught is None or not taught.sure or taught.states or taught.reach == "once":
        return ""
    return taught.reach


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("The migration adds three columns to members.", "drop the column nickname"),
        ("The build is green and the image is tagged.", "don't push the image yet"),
        ("The tests take about four minutes.", "Don't start the integration tests now, I'm on battery."),
        ("The service restarts on failure.", "don't restart it now"),
        ("The letter to Mr Hartig is done.", "don't send it before Friday"),
        ("I've staged the lock file and two sources.", "stage it without the lock file"),
        ("The chart shows five regions.", "skip the legend"),
        ("Die Einladung ist fertig.", "schick sie noch nicht ab"),
        ("Der Branch feature/maps ist gemergt.", "Lösch den Branch feature/maps jetzt nicht."),
    ],
)
def test_a_task_for_this_moment_or_one_thing_is_no_standing_lesson(judge, before, said):
    assert steers(judge, before, said) == ""


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("The chart uses five shades of green.", "I have a colour vision deficiency."),
        ("I can write the tool in Ruby or in Go.", "I have never been fond of Ruby."),
        ("The train leaves at 06:12.", "I am not a morning person."),
        ("Here's the recipe with chicken.", "I don't eat chicken."),
        ("Das Konzert beginnt um 21 Uhr.", "Ich arbeite freitags nie."),
        ("Hier ist ein Entwurf in Blau.", "Ich bin blind auf dem linken Auge."),
        ("I merged feature/x.", "wrong upload on my side, sorry"),
    ],
)
def test_what_a_person_says_of_themselves_is_left_to_recall(judge, before, said):
    assert steers(judge, before, said) == ""


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("The recipe uses cups.", "I want everything in grams and millilitres."),
        ("The tables are sorted by name.", "Ich hätte Tabellen gern immer nach Datum sortiert."),
        ("The chart is red and green.", "I can't tell red from green, take blue and orange in charts."),
    ],
)
def test_what_a_person_wants_of_the_answer_is_a_lesson(judge, before, said):
    assert steers(judge, before, said)


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("I added the query in get_users.", "No, don't put SQL into the routes, it belongs in the gateway."),
        ("The retry waits 37 seconds.", "No, no magic numbers, make them constants."),
        ("I used print for the debug output.", "No prints, use the logger."),
        ("I formatted it by hand.", "No, don't format by hand, run the formatter."),
        ("Die Farbe ist jetzt rot.", "Nein, keine festen Farben im CSS, nimm die Variablen."),
        ("Ich habe das Passwort eingetragen.", "Nein, keine Passwörter in Dateien, nimm die Umgebung."),
    ],
)
def test_a_no_with_what_to_do_instead_is_a_lesson(judge, before, said):
    assert steers(judge, before, said)


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (
            "The cache was stale. In summary, it was stale.",
            "Stop repeating yourself at the end of each reply.",
        ),
        ("Sorry, I apologise for the confusion.", "Quit apologising all the time."),
        ("It depends. First of all …", "Keep your replies to five lines at most, in all projects."),
        ("Here's the overview in English.", "Sprich überall Deutsch mit mir, egal in welchem Projekt."),
        ("I changed the file and removed the folder.", "Always ask before you delete anything."),
        ("Hier sind zwölf Punkte.", "Bitte keine Aufzählungen mehr in deinen Antworten."),
    ],
)
def test_a_rule_about_every_answer_is_general(judge, before, said):
    assert steers(judge, before, said) == "general"
