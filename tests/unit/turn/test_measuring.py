"""Entropy, topics, anchors, claims, loops, principles and wording: small pure functions."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.clock import stamp
from nanoclaw_memory.conversations import anchors, topics
from nanoclaw_memory.conversations.service import excerpt
from nanoclaw_memory.providers.calibration import Calibration, calibration
from nanoclaw_memory.store.turns import Measure
from nanoclaw_memory.turn import claims, continuity, entropy, stability
from nanoclaw_memory.turn.continuity import Recollection, allot
from nanoclaw_memory.types import Exchange, ToolCall

NOW = datetime(2026, 2, 23, 12, tzinfo=UTC)  # a Monday
LONG = "word " * 400


@pytest.mark.parametrize(
    ("user", "agent", "parts"),
    [
        ("What time is it?", "Noon.", {}),
        ("No, that's wrong.", "", {"correction": 0.40}),
        ("I am furious", "", {"emotion": 0.30}),
        ("That makes no sense to me", "", {"paradox": 0.20}),
        ("Hi", "As an AI I like it.", {"self-talk": 0.20}),
        ("Hi", LONG, {"long answer": 0.20}),
        ("We plan to sell the car", "Since you sold the car, buy a bike.", {"plan as done": 0.30}),
    ],
)
def test_each_part_of_entropy_has_its_name_and_weight(user, agent, parts):
    assert entropy.measure(user, agent) == parts


def test_new_concepts_count_each_and_at_most_twice():
    known = {"apollo server"}
    assert entropy.measure("use Apollo Server", known=known) == {}
    assert entropy.measure("use Yoga Server", known=known) == {"new concepts": 0.15}
    many = "use Yoga Server, GraphQL, Hasura Cloud and PostgreSQL"
    assert entropy.measure(many, known=known) == {"new concepts": 0.30}
    assert entropy.measure(many, known=None) == {}


@given(st.text(max_size=500), st.text(max_size=500))
def test_entropy_is_never_more_than_the_sum_of_its_weights(user, agent):
    assert 0 <= entropy.total(entropy.measure(user, agent, set())) <= sum(entropy.WEIGHTS.values()) + 1e-9


@pytest.mark.parametrize(
    ("level", "label"),
    [
        (0.0, "stable"),
        (0.39, "stable"),
        (0.4, "active"),
        (0.8, "elevated"),
        (0.99, "elevated"),
        (1.0, "critical"),
    ],
)
def test_labels_change_at_their_borders(level, label):
    assert entropy.label(level) == label


def measures(*values, minutes=10):
    start = NOW - timedelta(minutes=minutes * len(values))
    return [
        Measure(n, stamp(start + timedelta(minutes=minutes * n)), value) for n, value in enumerate(values)
    ]


def test_trend_compares_the_last_three_with_those_before():
    assert entropy.trend(measures(0, 0, 0, 0.5, 0.5), 0.5) == "rising"
    assert entropy.trend(measures(0.9, 0.9, 0.9, 0, 0), 0) == "falling"
    assert entropy.trend(measures(0.3, 0.3, 0.3, 0.3), 0.3) == "steady"
    assert entropy.trend([], 2.0) == "steady"


def test_drift_is_sustained_after_45_minutes_without_a_break():
    assert entropy.sustained(measures(0.9, 0.9, 0.9, 0.9, 0.9), NOW) == timedelta(minutes=50)
    assert entropy.sustained(measures(0.9, 0.9, 0.2, 0.9, 0.9), NOW) is None
    assert entropy.sustained([], NOW) is None


# ---- topics ----


def test_topics_are_active_fixated_or_fading():
    texts = [
        "the payment API",
        "the payment API and tea",
        "tea again",
        "tea time",
        "green tea",
        "black tea, more tea",
    ]
    said = [(text, "") for text in texts]
    states = {topic.label: topic.state for topic in topics.track(said)}
    assert states["tea"] == "fixated"
    assert states["payment-api"] == "fading"
    assert {t.label: t.state for t in topics.track(said[:2])}["payment-api"] == "active"


def test_freshness_falls_with_every_mention():
    fresh = [topics.track([("walnuts", "")] * number)[0].freshness for number in (2, 3, 5)]
    assert fresh == sorted(fresh, reverse=True)


def test_a_topic_is_matched_by_whole_words():
    said = [("the button is red", ""), ("press the button", "")]
    assert all(topic.label != "but" for topic in topics.track(said))


def test_what_only_the_agent_says_hours_and_weekdays_are_no_topics():
    said = [
        ("opening hours are mon-fri 8-12 and 15-18", "Noted: 8-12 and 15-18."),
        ("on thursdays the practice opens mon-fri 8-12", "Noted, thursdays too."),
        ("and the practice car?", "Noted."),
    ]
    assert [topic.label for topic in topics.track(said)] == ["practice"]


def test_verbs_and_german_adjectives_are_no_topics():
    said = [("the planner shows a berth twice", "It shows them twice."), ("the planner shows the berth", "")]
    assert "shows" not in {topic.label for topic in topics.track(said)}
    said = [
        ("Ich suche ein neues Schloss für das Rad", "Ein neues Schloss?"),
        ("Das Schloss ist ein neues", ""),
    ]
    assert [topic.label for topic in topics.track(said)] == ["schloss"]


@pytest.mark.parametrize(
    ("said", "topic"),
    [
        (["Das E-Mail-Programm ist kaputt.", "Das E-Mail-Programm geht wieder."], "e-mail-programm"),
        (["The pre-commit hooks fail again.", "Run pre-commit once more."], "pre-commit"),
    ],
)
def test_a_word_with_a_hyphen_is_a_topic(said: list[str], topic: str):
    assert topic in {found.label for found in topics.track([(text, "") for text in said])}


def test_a_phrase_is_in_the_texts_own_words():
    assert topics.phrase("Let's plan the payment API migration") == "payment API migration"
    assert topics.phrase("ok, do it") == ""


# ---- anchors ----


def exchange(number, user, agent="", age=timedelta(minutes=5), session="s"):
    return Exchange(number, session, user, agent, stamp(NOW - age))


def test_anchors_are_short_recent_few_and_from_the_user():
    said = [exchange(n, f"My name is Kim number {n}. " + "x" * 500) for n in range(30)]
    found = anchors.find([*said, exchange(99, "ok", "I am a robot and my name is Bot")], NOW)
    assert len(found) == 15
    assert all(len(anchor.text) <= 200 and "Bot" not in anchor.text for anchor in found)
    assert anchors.find([exchange(1, "My name is Kim", age=timedelta(hours=3))], NOW) == []


@pytest.mark.parametrize(
    "said",
    [
        "when can I call Mehmet",
        "i am a bit late with the release",
        "call melanie back at 3",
        "call me when the build is green",
        "i'm the one who broke the build",
        "who am i supposed to ask?",
        "i'm stuck in traffic",
        "ich bin ein bisschen spät dran",
        "ich bin der Meinung, wir nehmen Go",
        "what does call me Ishmael mean",
    ],
)
def test_a_question_or_a_passing_state_is_no_anchor(said):
    assert anchors.find([exchange(1, said)], NOW) == []


@pytest.mark.parametrize(
    "said",
    [
        "call me Kim",
        "i am a nurse in Leeds",
        "I work for Siemens",
        "i'm a vegetarian",
        "ich bin Lehrerin in Kiel",
    ],
)
def test_what_somebody_says_of_themselves_is_an_anchor(said):
    assert [anchor.kind for anchor in anchors.find([exchange(1, said)], NOW)] == ["identity"]


def test_anchors_weigh_identity_and_contradiction_over_tension():
    found = anchors.find(
        [
            exchange(1, "I'm torn about the offer"),
            exchange(2, "But you said Monday"),
            exchange(3, "Call me Kim"),
        ],
        NOW,
    )
    assert [(anchor.kind, anchor.weight) for anchor in found][-1] == ("tension", 0.7)
    assert {anchor.kind for anchor in found} == {"identity", "contradiction", "tension"}


@pytest.mark.parametrize(
    ("topic", "text", "told"),
    [
        (
            "payment API migration",
            "How far is the payment API migration?",
            "discussing the payment API migration",
        ),
        ("Keystone", "Which port has Keystone?", "discussing Keystone"),
        (
            "restore drill",
            "A restore drill took an hour. Our next restore drill is in May",
            "discussing restore drill",
        ),
        ("Dear Ingrid", "Dear Ingrid, the invoice is late", ""),
        ("backfill locked", "Then backfill locked all rows", ""),
        ("diabetic", "I'm diabetic", ""),
    ],
)
def test_only_what_reads_like_a_thing_is_named_as_what_was_discussed(topic: str, text: str, told: str):
    line = continuity.discussing(topic, text, NOW.date(), NOW.date())
    assert line == (f"You were {told} earlier today." if told else "")


def test_what_a_thing_does_is_no_part_of_its_name():
    assert topics.phrase("The relay server runs on port 6100; the relay server is new") == "relay server"
    assert topics.phrase("Lotte wohnt in Utrecht, Lotte mag Utrecht") in ("Lotte", "Utrecht")


# ---- claims ----


def test_claims_of_memory_need_support():
    (claim,) = claims.memories("As you told me, your sister lives in Graz.")
    assert claims.supported(claim, ["My sister lives in Graz since May"])
    assert not claims.supported(claim, ["My brother moved to Linz"])
    assert list(claims.memories("You should call your sister.")) == []


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("yesterday we sold the car", "2026-02-22", "2026-02-22"),
        ("last week we sold the car", "2026-02-16", "2026-02-22"),
        ("last Tuesday we sold the car", "2026-02-17", "2026-02-17"),
        ("3 days ago we sold the car", "2026-02-20", "2026-02-20"),
        ("on 2026-01-05 we sold the car", "2026-01-05", "2026-01-05"),
        ("gestern haben wir das Auto verkauft", "2026-02-22", "2026-02-22"),
    ],
)
def test_days_are_read_as_people_say_them(text, first, last):
    (claim,) = claims.dated(text, NOW.date())
    assert (claim.first, claim.last) == (date.fromisoformat(first), date.fromisoformat(last))


def test_a_date_is_contradicted_only_by_what_is_on_record():
    (claim,) = claims.dated("Yesterday we sold the old car", NOW.date())
    old = exchange(1, "We sold the old car", age=timedelta(days=20))
    assert claims.contradicted(claim, [old], lambda: iter(())) == date(2026, 2, 3)
    assert claims.contradicted(claim, [], lambda: iter(())) is None
    assert claims.contradicted(claim, [old], lambda: iter([(date(2026, 2, 22), "sold the old car")])) is None


# ---- loops and principles ----


def test_loops_are_five_equal_calls_three_reads_or_three_outputs():
    assert stability.find_loops([ToolCall("bash", "make")] * 5) == ["bash was called 5 times on make"]
    assert stability.find_loops([ToolCall("bash", "make")] * 4) == []
    assert stability.find_loops([ToolCall("Read", "a.py")] * 3) == ["a.py was read 3 times"]
    outputs = [ToolCall("search", f"q{n}", "nothing found") for n in range(3)]
    assert stability.find_loops(outputs) == ["search gave the same output 3 times"]


def test_only_the_last_twenty_calls_count():
    assert (
        stability.find_loops([ToolCall("Read", "a.py")] * 3 + [ToolCall("bash", str(n)) for n in range(20)])
        == []
    )


def test_principles_are_read_from_their_section():
    soul = "# Soul\n## Voice\n- warm\n## Core Principles\n- **Directness**: say it\n1. Reliability - do it\n## End\n- x"
    assert stability.read_principles(soul) == ["directness", "reliability"]
    assert stability.read_principles("") == []


def test_filler_slips_from_directness():
    assert stability.principle_slips("Great question! Well …", "hi", ["directness"]) == {
        "directness": "opened with filler"
    }
    assert stability.principle_slips("No.", "hi", ["directness"]) == {}


# ---- words ----


@pytest.mark.parametrize(
    ("day", "words"),
    [
        ("2026-02-23", "earlier today"),
        ("2026-02-22", "yesterday"),
        ("2026-02-21", "on Saturday"),
        ("2026-02-17", "last Tuesday"),
        ("2026-02-13", "last week"),
        ("2026-02-02", "three weeks ago"),
        ("2025-11-20", "three months ago (20 November)"),
        ("2024-03-05", "in March 2024"),
    ],
)
def test_dates_are_told_in_words(day, words):
    assert continuity.when(date.fromisoformat(day), NOW.date()) == words


@given(st.dates(max_value=date(2026, 2, 23)))
def test_every_past_day_has_words(day):
    assert continuity.when(day, NOW.date())


def test_wishes_are_told_as_wishes_and_the_rest_is_quoted():
    assert continuity.user_mentioned("I want a notice.") == "User mentioned wanting a notice."
    assert continuity.user_mentioned("Is it late?") == 'User mentioned: "Is it late?"'


@given(st.text(max_size=3000), st.integers(min_value=20, max_value=800))
def test_an_excerpt_keeps_to_its_length(text, limit):
    assert len(excerpt(text, {"the"}, limit)) <= limit + 2


def test_the_newest_tier_is_filled_first_and_leftovers_are_used():
    text = "a short sentence about the weather and about the garden of my aunt"
    recent = [Recollection(exchange(n, text, age=timedelta(hours=1)), 1.0) for n in (1, 2, 3, 4)]
    old = [Recollection(exchange(n, text, age=timedelta(days=200)), 2.0) for n in (5, 6)]

    def kept(budget, shares=(0.5, 0.3)):
        found = allot([*old, *recent], NOW, budget, lambda one: [one.exchange.user_message], shares)
        return [one.exchange.id for one in found]

    assert kept(60) == [1, 5]
    assert kept(60, (1.0, 0.0)) == [1, 2]
    assert kept(60, (0.0, 0.0)) == [5, 6]
    assert kept(10_000) == [1, 2, 3, 4, 5, 6]
    assert kept(10) == []


def test_what_is_near_follows_from_what_unrelated_texts_have():
    unmeasured, e5 = Calibration(), calibration("local/e5-small-v2-int8@384")
    assert e5.cosine(e5.near, e5.unrelated) == pytest.approx(0.82, abs=0.001)
    assert unmeasured.cosine(unmeasured.near, None) is None
    low, high = (unmeasured.cosine(unmeasured.near, base) or 0.0 for base in (0.1, 0.6))
    assert 0.1 < low < 0.5 < 0.6 < high < 1.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("So the Payment API waits", "discussing the payment API yesterday"),
        ("the payment APIs wait, bathe payment API", "discussing payment API yesterday"),
        ("bathe payment API; the payment API", "discussing the payment API yesterday"),
        ("a payment API", "discussing payment API yesterday"),
    ],
)
def test_a_topic_has_its_article_where_the_talk_gave_it_one(text, said):
    assert said in continuity.discussing("payment API", text, NOW.date() - timedelta(days=1), NOW.date())
