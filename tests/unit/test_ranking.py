"""Ranking: scores to an order."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.retrieval import ranking
from nanoclaw_memory.retrieval.candidates import Candidate
from nanoclaw_memory.retrieval.reranking import blended
from nanoclaw_memory.store.passage_search import Place, StoredPassage
from nanoclaw_memory.types import Passage

TODAY = date(2026, 2, 23)
_SCORES = st.dictionaries(st.integers(0, 30), st.floats(0, 50), max_size=20)


def test_a_keyword_only_hit_surfaces_beside_vector_hits():
    fused = ranking.fused({1: 8.0}, {2: 0.91, 3: 0.90, 4: 0.80}, (0.7, 0.3))
    assert fused[1] == pytest.approx(0.3)
    assert fused[4] < fused[1] < fused[2]


def test_words_count_less_when_even_the_best_match_has_little_of_the_question():
    keyword, vector = {1: 8.0}, {2: 0.91, 3: 0.80}
    both = [ranking.fused(keyword, vector, (0.5, 0.5), held) for held in (1.0, ranking.HELD, 0.1)]
    assert both[0] == both[1]
    assert both[2][1] < both[2][2] == max(both[2].values())
    assert ranking.fused(keyword, {}, (0.5, 0.5), 0.1) == ranking.fused(keyword, {}, (0.5, 0.5), 1.0)


@given(_SCORES, _SCORES, st.floats(0, 1), st.floats(0, 2))
def test_fused_scores_are_between_zero_and_one(keyword, vector, share, held):
    fused = ranking.fused(keyword, vector, (share, 1 - share), held)
    assert fused.keys() == keyword.keys() | vector.keys()
    assert all(0 <= score <= 1 + 1e-9 for score in fused.values())


def test_a_log_line_halves_in_thirty_days_and_never_falls_under_a_half():
    assert ranking.recency("2026-02-23", TODAY, 30) == 1
    assert ranking.recency("2026-01-24", TODAY, 30) == pytest.approx(0.5)
    assert ranking.recency("2020-01-01", TODAY, 30) == 0.5
    assert ranking.recency("", TODAY, 30) == 1


@given(st.dates(), st.integers(1, 400))
def test_age_never_raises_a_score(day, half_life):
    assert 0 < ranking.recency(day.isoformat(), TODAY, half_life) <= 1


def test_turns_lend_their_score_to_the_turns_beside_them():
    places = {n: Place(n, 1, n, "turn", "Ada") for n in range(1, 6)} | {9: Place(9, 2, 4, "turn", "Ada")}
    lent = ranking.neighbour_boost({3: 1.0}, places)
    assert lent[2] == lent[4] == 0.2
    assert lent[1] == lent[5] == 0.1
    assert lent[9] == 0


def test_only_one_named_speaker_counts():
    assert ranking.asked_about("What is Ada's plan?", ["Ada", "Bob"]) == "Ada"
    assert ranking.asked_about("What did Ada tell Bob?", ["Ada", "Bob"]) == ""
    assert ranking.asked_about("What is the plan?", ["Ada", "Bob"]) == ""


def test_i_is_the_person_and_you_the_agent_where_the_speakers_are_called_so():
    archive = ["User", "Agent"]
    assert ranking.asked_about("Where did I park?", archive) == "User"
    assert ranking.asked_about("What’s my dentist called, I'm lost", archive) == "User"
    assert ranking.asked_about("Was hast du mir empfohlen?", archive) == ""
    assert ranking.asked_about("Which port did you choose?", archive) == "Agent"
    assert ranking.asked_about("Can you remind me of the port?", archive) == ""
    assert ranking.asked_about("Where is the user's car?", archive) == "User"
    assert ranking.asked_about("Where did I park?", ["Ada", "Bob"]) == ""
    assert ranking.asked_about("What did Ada tell me?", ["Ada", "User"]) == "Ada"


def test_a_question_loses_the_names_of_speakers_but_never_all_of_its_words():
    speakers = ["Ada", "James", "Mary Ann"]
    assert ranking.without_names("What is Ada's plan?", speakers) == "What is plan?"
    assert ranking.without_names("Did James' dog bite Mary Ann, too?", speakers) == "Did dog bite too?"
    assert ranking.without_names("Who is Ada?", speakers) == "Who is Ada?"
    assert ranking.without_names("Where is the plan?", speakers) == "Where is the plan?"


def test_mmr_prefers_what_says_something_new():
    texts = {1: "the port is 3055", 2: "the port is 3055 now", 3: "lunch at noon", 4: "unrelated"}
    assert ranking.mmr([1, 2, 3, 4], {1: 1.0, 2: 0.95, 3: 0.85, 4: 0.0}, texts, 2) == [1, 3]


@given(
    st.lists(st.text(max_size=200).filter(lambda line: "\n" not in line), min_size=1, max_size=30),
    st.text(max_size=30),
)
def test_a_snippet_is_whole_lines_within_the_limit(lines, question):
    start, end, shown = ranking.snippet("\n".join(lines), 5, question, 300)
    assert len(shown) <= 300
    assert 5 <= start <= end <= 4 + len(lines)
    whole = "\n".join(lines[start - 5 : end - 4])
    assert shown == whole or (shown.endswith("…") and whole.startswith(shown[:-1].rstrip()))


def test_a_snippet_shows_the_lines_that_answer():
    lines = [f"filler line number {n} about nothing at all" for n in range(60)]
    lines[40] = "the deploy port of Keystone is 3055"
    start, end, shown = ranking.snippet("\n".join(lines), 1, "Keystone port")
    assert start <= 41 <= end
    assert "3055" in shown


def _candidates(*scores: float) -> list[Candidate]:
    return [
        Candidate(StoredPassage(n, 1, n, "files", "a.md", Passage(n, n, "x")), score, {})
        for n, score in enumerate(scores, 1)
    ]


def test_the_judge_reorders_a_close_field_but_not_a_clear_first():
    close = blended(_candidates(1.0, 0.98, 0.5), [-5.0, 5.0, 0.0])
    clear = blended(_candidates(1.0, 0.4, 0.3), [-5.0, 5.0, 0.0])
    assert [candidate.stored.id for candidate in close] == [2, 3, 1]
    assert clear[0].stored.id == 1


def test_a_candidate_without_a_verdict_keeps_its_score():
    ranked = blended(_candidates(1.0, 0.9, 0.8), [None, 3.0, 1.0])
    assert next(c.score for c in ranked if c.stored.id == 1) == 1.0


@given(st.dictionaries(st.integers(1, 30), st.floats(0.1, 20), min_size=2), st.floats(0.2, 0.8))
def test_what_has_no_vector_yet_keeps_the_order_of_its_words(keyword, share):
    fused = ranking.fused(keyword, {99: 0.9, 98: 0.8}, (share, 1 - share), unknown=keyword.keys())
    assert {key: fused[key] for key in keyword} == pytest.approx(ranking.of_maximum(keyword))


def test_a_match_by_words_without_a_vector_is_not_pushed_aside():
    keyword, vector = {1: 9.0, 2: 3.0}, {2: 0.9, 3: 0.85, 4: 0.8}
    known, unknown = (ranking.fused(keyword, vector, (0.5, 0.5), unknown=one) for one in ((), {1}))
    assert max(known, key=lambda key: known[key]) == 2
    assert max(unknown, key=lambda key: unknown[key]) == 1


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("Which port? I forgot.", True),
        ("Really?? Which one", True),
        ("Wer kommt? Ich weiß es nicht.", True),
        ("The port is 5432.", False),
        ("The port is 5432, and the host is keg-node-4, so what? " + "It holds. " * 60, False),
        ("", False),
    ],
)
def test_a_turn_asks_if_much_of_it_is_questions(text: str, asks: bool):
    assert ranking.asks(text) is asks


def test_a_long_list_without_the_end_of_a_sentence_is_read_once():
    assert not ranking.asks("customer 17 in region 3, " * 40_000)
