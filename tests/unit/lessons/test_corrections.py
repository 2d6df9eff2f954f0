"""Corrections are told from quotes, code, tasks and small talk, and become lessons."""

from __future__ import annotations

import importlib.util
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.lessons import corrections, learning, matching, service
from nanoclaw_memory.providers.calibration import Calibration
from nanoclaw_memory.store.lessons import NO_CORRECTION
from nanoclaw_memory.types import Lesson

ANSWER = "Done, and pushed to main."
BENCH = Path(__file__).parents[3] / "bench" / "corrections.py"


def labelled():
    spec = importlib.util.spec_from_file_location("bench_corrections", BENCH)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_precision_and_recall_stay_above_nine_in_ten_on_both_halves():
    bench = labelled()
    everything = bench.messages()
    assert len(everything) >= 300
    for half in (everything[0::2], everything[1::2]):
        _, _, precision, recall = bench.score(half, show=False)
        assert precision >= 0.9
        assert recall >= 0.9


@pytest.mark.parametrize(
    ("message", "kind", "weight"),
    [
        ("No, wrong. It's Friday.", "wrong", 1.0),
        ("Stop doing that please", "stop", 1.0),
        ("Don't use tabs", "dont", 0.9),
        ("You should ask first", "should", 0.8),
        ("Next time add a test", "future", 0.8),
        ("That's not what I wanted", "wrong", 0.8),
        ("Please always cite sources", "always", 0.7),
        ("I prefer short answers", "prefer", 0.7),
        ("That's too verbose", "length", 0.6),
        ("Hör auf, mir das zu erklären", "stop", 1.0),
        ("Du solltest vorher fragen", "should", 0.8),
    ],
)
def test_patterns_carry_their_weights(message, kind, weight):
    found = corrections.find(message)
    assert (found[0].kind, found[0].weight) == (kind, weight)


def test_the_same_words_in_quotes_code_or_a_citation_are_no_correction():
    said = "Stop doing that"
    assert corrections.find(said)
    for hidden in (
        f'She shouted "{said}"',
        f"`{said}`",
        f"```\n{said}\n```",
        f"> {said}\nWhat does it mean?",
    ):
        assert corrections.find(hidden) == []


def test_praise_is_not_a_correction_and_a_correction_no_praise():
    assert corrections.is_praise("Perfect, exactly what I wanted!")
    assert corrections.is_praise("Genau so, danke!")
    assert not corrections.is_praise("Perfect would be without emojis. Stop using them.")


SCRAPS = (
    "Don't do that. ",
    "No. ",
    "that's wrong, ",
    "Stop it!",
    '"',
    "`",
    "```",
    "> ",
    "\n",
    "Traceback (most",
    "’",
)


@given(st.lists(st.sampled_from(SCRAPS) | st.text(max_size=300), max_size=30).map("".join))
def test_whatever_the_text_corrections_are_its_own_words_the_surest_first(text):
    found = corrections.find(text)
    weights = [one.weight for one in found]
    assert weights == sorted(weights, reverse=True)
    assert all(corrections.THRESHOLD <= weight <= 1.0 for weight in weights)
    said = set(re.findall(r"\w+", text))
    assert all(said.issuperset(re.findall(r"\w+", one.sentence)) for one in found)


def test_a_megabyte_is_read_in_part():
    assert corrections.find("Don't push to main.\n" + "x" * 1_000_000)


def test_a_lesson_says_what_and_why():
    message = "Thanks, but don't push straight to main, open a pull request."
    taught = learning.by_rules(message, ANSWER)
    assert (taught.words, taught.reach) == ("Don't push straight to main, open a pull request.", "topic")
    assert (taught.sure, taught.why) == (True, f"rule: dont 0.90; {NO_CORRECTION}")
    assert corrections.principle_of(taught.words) == "consent"


def test_a_contradiction_keeps_the_sentence_that_says_what_is_right():
    message = "No, that's wrong. Anna works at Siemens."
    assert learning.by_rules(message, ANSWER).words == "No, that's wrong. Anna works at Siemens."


@pytest.mark.parametrize(
    ("message", "reach"),
    [
        ("Stop using emojis in answers", "general"),
        ("Never delete a branch", "topic"),
        ("Don't squash the commits this time", "once"),
        ("Ausnahmsweise mit Zucker. Beim nächsten Mal wieder ohne.", "once"),
    ],
)
def test_how_to_answer_is_general_and_what_to_do_is_not_and_an_exception_holds_once(message, reach):
    assert learning.by_rules(message, ANSWER).reach == reach


def lesson(number=1, text="Don't push straight to main", trigger="Fix the login bug", **more):
    values = {"principle": "consent", "effectiveness": 1.0, "injections": 0, "state": "active", **more}
    return Lesson(number, trigger, text, **values)


def test_a_lesson_applies_by_its_own_words_by_its_trigger_or_by_meaning():
    one = lesson()
    assert matching.match("Please push it", [one], {}, matching.Reach(0.8), 3)[0].why == "words: push"
    assert matching.match("Fix the login bug again", [one], {}, matching.Reach(0.8), 3)
    assert matching.match("Ship that", [one], {}, matching.Reach(0.8), 3) == []
    assert matching.match("Ship that", [one], {1: 0.9}, matching.Reach(0.8), 3)[0].why == "meaning: 0.90"
    assert matching.match("Ship that", [one], {1: 0.7}, matching.Reach(0.8), 3) == []


def test_one_word_of_several_calls_for_a_lesson_only_where_it_is_half_of_it_or_all_of_the_message():
    one = lesson(text="Shut the staging gateway down before swapping disks")
    assert matching.match("Paint the garden gateway", [one], {}, matching.Reach(0.8), 3) == []
    assert matching.match("Push the sofa", [lesson(text="Never push it")], {}, matching.Reach(0.8), 3)
    assert matching.match("The gateway!", [one], {}, matching.Reach(0.8), 3)


def test_a_lesson_of_which_the_judge_is_not_sure_applies_if_it_is_near(scripted_judge, monkeypatch):
    one, reach = lesson(), matching.Reach(0.9, 0.8, 0.7)
    monkeypatch.setattr(scripted_judge, "probability", lambda head, *texts: 0.75)
    assert matching.judged_match("Ship that", [one], {1: 0.8}, reach, 3, scripted_judge)
    assert matching.judged_match("Ship that", [one], {1: 0.72}, reach, 3, scripted_judge) == []
    assert matching.judged_match("Ship that", [one], {}, reach, 3, scripted_judge)  # nobody knows how near


@pytest.mark.parametrize(
    ("message", "need", "found"), [("No, the second one", 0.2, 0), ("Deploy it", 0.9, 1)]
)
def test_a_message_of_few_words_gets_a_lesson_only_if_it_may_need_something(
    scripted_judge, monkeypatch, message, need, found
):
    said = {"needs": need, "applies": 0.95}
    monkeypatch.setattr(scripted_judge, "probability", lambda head, *texts: said[head])
    matches = matching.judged_match(message, [lesson()], {}, matching.Reach(0.9, 0.8, 0.7), 3, scripted_judge)
    assert len(matches) == found


def test_a_shared_word_brings_no_lesson_of_which_the_judge_says_that_it_does_not_apply(scripted_judge):
    scripted_judge.yes = {"needs": ["main"]}
    reach = matching.Reach(0.9, 0.8, 0.7)
    assert (
        matching.judged_match("Push it straight to main", [lesson()], {1: 0.95}, reach, 3, scripted_judge)
        == []
    )


def test_one_shared_word_does_not_call_for_a_lesson_that_is_about_something_else():
    reach = matching.Reach(near=0.8, far=0.5)
    assert matching.match("Can you push the sofa?", [lesson()], {1: 0.4}, reach, 3) == []
    assert matching.match("Can you push the patch?", [lesson()], {1: 0.6}, reach, 3)
    assert matching.match("Please push it to main", [lesson()], {1: 0.4}, reach, 3)


def test_a_short_message_is_compared_in_the_language_of_the_lesson():
    german = Lesson(1, "", "Die Rechnungen immer als PDF schicken", "", 1.0, 0, "active")
    found = matching.match("Rechnungen Müller PDF", [german], {}, matching.Reach(0.8), 3)
    assert [one.why for one in found] == ["words: pdf, rechnung"]


def test_what_is_near_depends_on_how_near_unrelated_texts_are():
    model = Calibration()
    low, high = matching.reach(0.1, model), matching.reach(0.7, model)
    assert 0.1 < low.far < low.near < high.far < high.near < 1.0
    assert matching.reach(None, model) == matching.Reach(model.lesson_near_unmeasured, -1.0)


def test_at_most_three_lessons_and_none_that_the_message_does_not_call_for():
    general = lesson(9, "Answer briefly", general=True)
    found = matching.match(
        "push it", [general, *(lesson(n) for n in range(1, 6))], {}, matching.Reach(0.8), 3
    )
    assert [one.lesson.id for one in found] == [1, 2, 3]
    found = matching.match("push it", [general, lesson(1)], {}, matching.Reach(0.8), 3)
    assert [one.lesson.id for one in found] == [1]


def test_effectiveness_starts_at_one_and_follows_what_happened():
    assert service.effectiveness(0, 0) == 1.0
    assert service.effectiveness(4, 4) == 1.0
    assert service.effectiveness(3, 0) == 0.25


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_effectiveness_is_a_share(known, helped):
    assert 0 < service.effectiveness(known, min(known, helped)) <= 1


@pytest.mark.parametrize(
    ("created", "effectiveness", "injections", "helped", "state", "ripe"),
    [
        ("2026-01-20T00:00:00Z", 0.9, 5, 3, "active", True),
        ("2026-02-10T00:00:00Z", 0.9, 5, 3, "active", False),
        ("2026-01-20T00:00:00Z", 0.8, 5, 3, "active", False),
        ("2026-01-20T00:00:00Z", 0.9, 4, 3, "active", False),
        ("2026-01-20T00:00:00Z", 1.0, 40, 2, "active", False),
        ("2026-01-20T00:00:00Z", 0.9, 5, 3, "metabolized", False),
    ],
)
def test_a_lesson_is_ripe_after_thirty_days_five_injections_and_real_effect(
    created, effectiveness, injections, helped, state, ripe
):
    one = lesson(
        effectiveness=effectiveness, injections=injections, helped=helped, state=state, created_at=created
    )
    assert service.is_ripe(one, datetime(2026, 2, 23, tzinfo=UTC)) is ripe


def test_twenty_injections_without_effect_retire_a_lesson():
    assert service.without_effect(20, 9)
    assert not service.without_effect(20, 10)
    assert not service.without_effect(19, 0)


@pytest.mark.parametrize(
    ("message", "lesson"),
    [
        ("named exports! I told you that last week", "Named exports! I told you that last week"),
        ("Das habe ich dir schon gesagt! Keine Emojis.", "Das habe ich dir schon gesagt! Keine Emojis."),
        ("Nice. But I told you not to use tabs for that.", "I told you not to use tabs for that."),
    ],
)
def test_a_complaint_that_it_was_said_before_brings_what_was_said(message: str, lesson: str) -> None:
    assert corrections.lesson_of(corrections.find(message), message) == lesson


APART = matching.Reach(0.8)


def taught_in_talk(
    number=1, text="Two lines are enough, I read them on the tram", said="Mail to the landlord"
):
    return lesson(number, text, f"Write to him | {said} is drafted: Dear Mr Bolt …")


def test_without_vectors_a_task_of_the_kind_that_was_corrected_brings_its_lesson():
    (found,) = matching.match(
        "Reply to the plumber by mail that Monday suits", [taught_in_talk()], {}, APART, 3
    )
    assert found.why == "kind of task: letter"
    for other in ("Bake a cake for Monday", "How do I write a reply to a mail from the landlord?"):
        assert matching.match(other, [taught_in_talk()], {}, APART, 3) == []
    assert matching.match("Reply to the plumber by mail", [taught_in_talk()], {1: 0.1}, APART, 3) == []


def test_a_kind_of_task_that_several_lessons_are_about_says_not_which_applies():
    both = [taught_in_talk(), taught_in_talk(2, "Sign with my full name")]
    assert matching.match("Reply to the plumber by mail", both, {}, APART, 3) == []


def test_a_lesson_about_one_person_is_not_for_tasks_of_its_kind_about_others():
    one = taught_in_talk(text="For Bolt no vouchers")
    assert matching.match("Reply to the plumber by mail that Monday suits", [one], {}, APART, 3) == []
    assert matching.match("Draft a mail to Bolt", [one], {}, APART, 3)


def test_german_function_words_do_not_call_for_a_lesson():
    one = lesson(text="Wir schreiben im Angebot die Preise ohne Steuer, wie es die Kunden wollen", trigger="")
    assert matching.match("Stell vor, wie wir im Urlaub waren", [one], {}, APART, 3) == []
    assert matching.match("Ergänze im Angebot die Preise für das Dach", [one], {}, APART, 3)


@pytest.mark.parametrize(
    ("message", "before"),
    [
        ("measurements always in centimetres", "The board measures 400 mm by 250 mm."),
        ("With the team we are on first-name terms", "Dear Mr Bolt, the plan is ready."),
        ("Die Summen gehören nach unten", "Die Summen stehen oben im Blatt."),
    ],
)
def test_without_the_judge_the_scorer_finds_a_correction_that_no_pattern_knows(message, before):
    assert corrections.find(message) == []
    taught = learning.by_rules(message, before)
    assert (taught.words, taught.sure, taught.states) == (learning.corrections.worded([message]), True, False)
    assert learning.by_rules(message, "") is None


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("In the nightly tests, don't use the network", "dont"),
        ("When I ask for a plan, never start with code", "dont"),
        ("Bei Terminen am Abend, nimm die Uhrzeit mit 24 Stunden, nicht mit zwölf", "use"),
    ],
)
def test_a_rule_may_follow_the_words_that_say_where_it_applies(message, kind):
    assert corrections.find(message)[0].kind == kind


def test_one_case_only_is_once_in_either_language():
    for message in ("Don't round the sums in this case", "Nimm bei der hier Euro statt Franken"):
        assert learning.by_rules(message, ANSWER).reach == "once"
