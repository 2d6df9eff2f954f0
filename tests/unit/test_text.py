"""Text: one line stays one line, slugs are never empty, fingerprints are stable."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.text import (
    content_words,
    fingerprint,
    language,
    one_line,
    sentences,
    slug,
    stem,
    stems,
    words,
)

ANY = st.text(st.characters(exclude_categories=()))


@given(ANY)
def test_one_line_has_no_break_no_control_and_no_hidden_mark(text):
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    assert not re.search(
        r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]", line
    )
    assert line == line.strip()


@given(ANY)
def test_one_line_twice_is_one_line_once(text):
    assert one_line(one_line(text)) == one_line(text)


@given(ANY)
def test_a_slug_is_a_safe_file_name(title):
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]*", slug(title))


def test_titles_in_other_scripts_get_different_slugs():
    assert slug("李雷") != slug("韓梅梅")


@given(ANY, ANY)
def test_equal_fingerprints_mean_equal_texts(one, other):
    assert (fingerprint(one) == fingerprint(other)) == (one == other)


def test_words_keep_letters_of_every_script():
    assert words("Ümit's café, 李雷 & snake_case 42!") == ["ümit's", "café", "李雷", "snake", "case", "42"]


@given(st.text(st.characters(max_codepoint=127)))
def test_plain_text_has_the_same_words_beside_an_accent(text: str):
    assert words(text) == words(f"{text} é")[:-1]


def test_content_words_drop_the_small_ones():
    assert content_words("What did we decide about the database migration?") == [
        "decide",
        "database",
        "migration",
    ]


@pytest.mark.parametrize(
    ("one", "others"),
    [
        ("swap", "swaps swapped swapping"),
        ("query", "queries querying"),
        ("use", "used uses using"),
        ("database", "databases"),
        ("address", "addresses"),
    ],
)
def test_the_forms_of_an_english_word_have_one_stem(one, others):
    assert {stem(word) for word in others.split()} == {stem(one)}


def test_german_forms_have_one_stem_where_the_text_is_german():
    assert language("Wir sichern die Datenbanken jede Nacht") == "german"
    assert stems("Wo sind die Häuser?")[-1] == stems("Das ist ein Haus")[-1]
    assert stem("datenbanken", "german") == stem("datenbank", "german")


@pytest.mark.parametrize(
    "text", ["", "hosts", "Die in the attic: he was in a war", "Use the Kindergarten am Zoo address for it"]
)
def test_a_text_that_is_not_recognisably_german_is_stemmed_as_english(text):
    assert language(text) == "english"


def test_a_sentence_ends_at_its_mark_or_line_break_and_keeps_its_mark_and_quotes():
    text = 'He said "Stop." Version 3.11 runs on api.example!  Why?\nNext line\n\n今日は雨。明日は晴れ。'
    assert sentences(text) == [
        'He said "Stop."',
        "Version 3.11 runs on api.example!",
        "Why?",
        "Next line",
        "今日は雨。",
        "明日は晴れ。",
    ]


@given(ANY)
def test_sentences_lose_nothing_but_space(text):
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    "one",
    [
        "der Fotograf kommt am 24. November um 9 Uhr.",
        "Wir fahren vom 3. bis 5. Mai nach Lindau.",
        "Bring was mit, z. B. Brot oder Salat.",
        "Ich war bei Dr. Wieland und Fr. Petersen.",
        "Es kommen ca. 5 Leute.",
        "Das ist in Nr. 7 im 1. Stock.",
        "Sie geht in die 2. Klasse.",
        "Am Donnerstag, 19. November um 11 Uhr.",
        "Ask Mr. Bates or J. R. Hartley.",
        "1. Stock links, bitte klingeln.",
    ],
)
def test_the_dot_of_a_date_or_an_abbreviation_ends_no_sentence(one: str):
    assert sentences(one) == [one]
    assert sentences(f"{one} Das ist alles.") == [one, "Das ist alles."]


@pytest.mark.parametrize(
    "text",
    [
        "Es kostet 24. Das ist viel.",
        "Er kommt am 24. Das ist gut.",
        "We meet in room 12. Bring your laptop.",
        "We take plan B. Then we see.",
        "No. I won't.",
        "Milch, Brot usw. Das reicht.",
        "Er wohnt in der Hauptstr. Das weißt du.",
        "Ich habe das Bad. Du hast die Küche.",
    ],
)
def test_a_number_or_a_word_at_its_end_ends_a_sentence(text: str):
    assert len(sentences(text)) == 2
