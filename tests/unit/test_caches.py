"""What functions keep between calls: the same results, within a bound in bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory import caches
from nanoclaw_memory.memory import Memory


@given(st.lists(st.text(max_size=300), max_size=60), st.integers(0, 4_000))
def test_a_kept_result_is_the_one_of_the_function_and_all_fit_into_the_bound(
    texts: list[str], most: int
) -> None:
    before = caches.taken()

    @caches.bounded(most)
    def halves(text: str, upper: bool = False) -> tuple[str, ...]:
        return tuple((text.upper() if upper else text).split("a"))

    for text in (*texts, *texts):
        assert halves(text) == tuple(text.split("a"))
        assert halves(text, upper=True) == tuple(text.upper().split("a"))
        now = caches.taken()
        assert now[0] - before[0] <= now[1] - before[1] == most
    caches._kept.pop()


def test_what_was_used_lately_is_kept() -> None:
    asked: list[str] = []

    @caches.bounded(20_000)
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    for number in range(500):
        length("often")
        length(f"once {number}" + "x" * 100)
    caches._kept.pop()
    assert asked.count("often") == 1 and len(asked) == 501


def test_status_shows_what_words_and_texts_take(memory: Memory) -> None:
    memory.init()
    memory.write("Bluebottle listens on port 7070")
    memory.search("Which port?", fast=True)
    (shown,) = [one for one in memory.status().caches if one.name == "words and texts"]
    assert 0 < shown.bytes <= shown.most
