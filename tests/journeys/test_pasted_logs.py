"""A log pasted with a question does not decide what is asked: the person's own words do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.intake.authorship import asking_words, own_words
from nanoclaw_memory.memory import Memory

LOG = "".join(f"2026-02-23 INFO worker processed job id={number} in 12ms\n" for number in range(30))
THREE = "".join(LOG.splitlines(keepends=True)[:3])
QUESTION = "what port is my orders instance on?"


@pytest.fixture
def told(open_memory: Callable[..., Memory], clock: FixedClock) -> Callable[[str], str]:
    said = (
        "ok so the orders api: for local dev I run it on 8088, 8080 is taken by the proxy",
        "I moved my local orders instance to port 9191 because 8088 clashes with the mailhog",
        "nightly export of orders goes to the bucket fjord-orders at 02:30 UTC",
        "30s is insane. the checkout gives up after 8, so the carrier gets 4 seconds and one retry",
        "the on-call rota is me, Deepa and Lars, it switches on Wednesdays at noon",
    )
    for number, text in enumerate(said):
        open_memory(session=f"t{number}").after_turn(text, "Noted.")
    return lambda message: open_memory(session=message[-200:]).before_turn(message).text


@pytest.mark.parametrize(
    "message",
    [
        f"{LOG}\n{QUESTION}",
        f"{QUESTION}\n\n{LOG}",
        f"{THREE}\n{QUESTION}",
        f"{QUESTION}\n\n{THREE}",
        f"```\n{THREE}```\n{QUESTION}",
        f"{LOG * 700}\n{QUESTION}",
        f"```\n{LOG * 700}```\n{QUESTION}",
    ],
    ids=[
        "under a log",
        "over a log",
        "under three lines",
        "over three lines",
        "under a fence",
        "1 MB",
        "1 MB fenced",
    ],
)
def test_a_question_beside_a_log_is_answered_like_the_question_alone(
    told: Callable[[str], str], message: str
):
    alone = told(QUESTION)
    assert "9191" in alone
    assert told(message) == alone


@pytest.mark.parametrize("size", [1, 30, 700])
def test_a_log_alone_asks_nothing_although_it_names_days(told: Callable[[str], str], size: int):
    assert told(LOG * size) == ""


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-19T03:12:44Z ERROR [dispatcher] lease lost",
        "Nov 19 03:12:44 web1 sshd[812]: session closed",
        '10.0.0.7 - - [19/Nov/2026:03:12:44 +0000] "GET / HTTP/1.1" 200 12',
        "time=2026-11-19 level=info msg=ready",
        '{"level": "info", "msg": "ready"}',
        "npm ERR! code ELIFECYCLE",
        "--- FAIL: TestParse (0.00s)",
        "goroutine 1 [running]:",
    ],
)
def test_a_single_line_of_a_log_is_not_what_somebody_asks(line: str):
    assert asking_words(f"{line}\nwhat's this?") == "what's this?"


@pytest.mark.parametrize(
    "message",
    [
        "first the port\nthen the host",
        "2026-11-19 is when we release\nwhich branch is it?",
        "we pay 12 a month\nand they pay 13\nwho is right?",
        "{name} is a placeholder\nwhat does it stand for?",
    ],
)
def test_a_persons_own_lines_are_all_asked(message: str):
    assert asking_words(message) == message


TABLES = "The tables at our wedding\nTable 1 seats 4\nTable 2 seats 6\nTable 3 seats 8"


def test_a_list_of_ones_own_is_not_what_is_asked_and_yet_not_pasted():
    assert own_words(TABLES) == TABLES
    assert asking_words(f"{TABLES}\nAre these enough?") == "The tables at our wedding\nAre these enough?"
