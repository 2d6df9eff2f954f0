"""What the shipped judge makes of tasks, facts, corrections and rules for everywhere."""

from __future__ import annotations

import pytest

from nanoclaw_memory.lessons.learning import judged
from nanoclaw_memory.providers import scorer
from nanoclaw_memory.providers.judge import Judge
from nanoclaw_memory.store.lessons import NO_CORRECTION


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


@pytest.mark.parametrize("denial", ["No, that's wrong.", "Nein, das stimmt nicht."])
def test_a_bare_denial_corrects_the_answer_before_although_the_judge_is_unsure(scripted_judge, denial):
    taught = judged(scripted_judge, denial, "The gate is number 14.")
    assert taught is not None and not taught.sure and not taught.why.endswith(NO_CORRECTION)


def test_a_pattern_in_a_message_with_more_to_say_teaches_nothing_where_the_judge_finds_no_correction(
    scripted_judge,
):
    said = "No longer, the customs office has cleared the container this morning."
    assert judged(scripted_judge, said, "The container is still waiting.") is None


@pytest.mark.parametrize(
    "rule",
    [
        "from now on squash before merging, I want a linear history",
        "ab sofort bitte vor dem Mergen squashen",
        "please pull the schema first from now on",
    ],
)
def test_a_clause_that_says_that_it_holds_from_now_on_is_a_rule_whatever_the_models_say(
    scripted_judge, monkeypatch, rule
):
    monkeypatch.setattr(scorer, "probability", lambda head, text: 0.001)
    scripted_judge.reaches[rule] = "once"
    taught = judged(scripted_judge, rule, "")
    assert taught is not None and taught.sure and taught.reach == "topic"


@pytest.mark.parametrize(
    "told",
    [
        "from now on we ship from Bergen",
        "ab jetzt liefert der Hof nur noch dienstags",
        "in future Bergen ships it",
    ],
)
def test_what_somebody_does_from_now_on_is_no_rule_for_the_work(scripted_judge, monkeypatch, told):
    monkeypatch.setattr(scorer, "probability", lambda head, text: 0.001)
    assert judged(scripted_judge, told, "") is None
