"""What a session starts with unasked: what the person is working on, and nothing else that they said."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory

At = Callable[..., Memory]

WORK = (
    "We decided to move the invoice export from cron to Temporal",
    "Ich muss noch die Tests für den Parser fertig schreiben",
    "I'm halfway through porting the scheduler to asyncio; the cancel path is still missing",
    "Wir stellen gerade die Suche auf Vektoren um, der Index fehlt noch",
    "The login bug on Safari is still open, we wait for the vendor's answer",
    "Nächste Woche migrieren wir die Datenbank auf Postgres 17",
    "We agreed with Nadia to postpone the release until the audit is done",
    "TODO: rename the config keys before the freeze",
    "Der Bericht für das Quartal ist zur Hälfte fertig, es fehlen die Zahlen aus dem Vertrieb",
    "We're going with Redis for the rate limiter",
    "The upload page is nearly done, only the error messages are left",
    "The ledger import fails on negative amounts",
    "Wir bleiben vorerst bei Postgres für die Suche",
    "Wir müssen bis Freitag noch 2000 Flyer drucken, offen sind 1500 Tickets",
)
NO_WORK = (
    # how to reach or to pay somebody
    "Kunde Sommer hat IBAN DE89370400440532013000",
    "Mrs Doyle pays from GB29 NWBK 6016 1331 9268 19",
    "Kunde Brandt wohnt in der Lindenallee 14, 20095 Hamburg, Tel. 040 123456",
    "Ich muss noch das Paket schicken, und zwar nach 8004 Zürich",
    "Ich muss noch zu Frau Brandt, Am Markt 3a 20095 Hamburg",
    "We still have to call Mrs Doyle at +353 86 123 4567",
    "my email is carla.voss@example.org, I still need to confirm it",
    "I have to send my tax id 12 345 678 901 to the office",
    # credentials
    "the door code of the studio is 5512",
    "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzEXAMPLE",
    "der WLAN-Schlüssel im Büro ist Kranich!Tee77",
    "We still have to rotate the db password Rhabarber-Zug-81",
    # commands and reactions
    "looks good, commit it",
    "push it to main and open a PR",
    "Could you commit that?",
    "Das war zu lang…",
    "no, that's not what I meant",
    "passt, danke dir",
    # requests to forget
    "please forget what I said about my eyes",
    "Kannst du das bitte vergessen, was ich über Olaf gesagt habe",
    # facts that are nobody's focus
    "we hired Anke as a new tester",
    "The dentist moved my appointment",
    "my wife's birthday is on the 12th of May",
    "Mein Bruder Till ist jetzt Lehrer in Kiel",
    "I had a headache all morning",
    "Wir sind am Samstag bei Oma in Husum",
    "Wir haben gestern bei Hansen ein Regal gekauft",
    # remarks in passing
    "my therapist appointment is at 4 so i have to run",
    "ich muss gleich los, Elternabend",
    "i need to catch my train, bye",
)


@pytest.fixture(params=["rules", "judge"])
def session(request: pytest.FixtureRequest, open_memory: At) -> At:
    """Open a session as a command does, or as a server with the judge."""

    def opened(name: str) -> Memory:
        memory = open_memory(session=name, embeddings__provider="none")
        memory.group.resources.resident = request.param == "judge"
        return memory

    opened("first").init()
    return opened


def ended(memory: Memory, *said: str) -> None:
    for message in said:
        memory.after_turn(message, "Ok.")
    memory.session_end()


@pytest.mark.parametrize("said", WORK)
def test_a_session_starts_with_what_the_last_one_worked_on(session: At, said: str):
    ended(session("a"), said)
    assert said in session("b").session_start(boot_chars=9_000).boot
    assert said in session("c").session_start().text


@pytest.mark.parametrize("said", NO_WORK)
def test_a_session_starts_with_nothing_if_the_last_one_worked_on_nothing(session: At, said: str):
    before = session("0").session_start(boot_chars=9_000)
    ended(session("a"), said)
    started = session("b").session_start(boot_chars=9_000)
    assert (started.boot, started.blocks) == (before.boot, before.blocks)
    assert session("c").session_start().text == ""


def test_what_else_was_said_does_not_displace_the_work(session: At, clock: FixedClock):
    ended(session("work"), WORK[2])
    clock.moment += timedelta(days=1)
    ended(session("other"), *NO_WORK[-6:])
    assert WORK[2] in session("next").session_start(boot_chars=9_000).boot


def test_a_masked_credential_is_no_topic(session: At):
    keys = (
        f"The key of the mailer is ghp_abcdefghijklmnopqrstuvwxyz012345678{number}" for number in range(5)
    )
    ended(session("a"), *keys, WORK[0])
    told = session("a").before_turn("What about the invoice export?").text + session("b").session_start().text
    assert "redacted" not in told and "Topics: key" not in told


def test_an_answered_question_about_work_ends_a_session_unless_its_answer_is_confidential(session: At):
    told = session("a")
    told.after_turn("Why does our ingest job fail on CI?", "The workers share one temp folder.")
    told.after_turn("Which number does our ingest team have?", "Call 0171 5550199.")
    started = session("b").session_start().text
    assert "share one temp folder" in started and "0171" not in started


def _said(
    open_memory: Callable[..., Memory], clock: FixedClock, session: str, *turns: tuple[str, str]
) -> None:
    for user, agent in turns:
        clock.moment += timedelta(minutes=5)
        open_memory(session=session, project="orders").after_turn(user, agent)


PROPOSED = (
    (
        "what timeouts should I set for the shipfast client?",
        "I'd propose 30 seconds with 2 retries and a circuit breaker in the handler.",
    ),
    (
        "30s is insane. the checkout gives up after 8, so shipfast gets 4 seconds and one retry",
        "Set to 4 seconds and one retry.",
    ),
    ("actually bump it, sergio says their p99 is 5.5 so make it 6", "Timeout for shipfast is 6 seconds now."),
)


@pytest.mark.parametrize("session", ["the next", "k1"], ids=["the next session", "after a compaction"])
def test_what_the_agent_proposed_gives_way_to_the_persons_last_word(open_memory, clock, session):
    _said(open_memory, clock, "k1", *PROPOSED)
    told = open_memory(session=session, project="orders").session_start().text
    assert "30 seconds" not in told
    assert "make it 6" in told


def test_the_persons_last_word_is_not_repeated_if_it_is_confidential(open_memory, clock):
    _said(
        open_memory,
        clock,
        "k1",
        ("Which account pays the hosting bill of orders?", "The office account pays the hosting bill."),
        ("The hosting bill is paid from DE89 3704 0044 0532 0130 00.", "Noted, the hosting bill."),
    )
    told = open_memory(session="the next", project="orders").session_start().text
    assert "Which account" in told and "DE89" not in told


def test_an_answer_that_the_person_left_standing_is_repeated(open_memory, clock):
    _said(open_memory, clock, "k1", PROPOSED[0], ("thanks", "You're welcome."))
    assert "30 seconds" in open_memory(session="the next", project="orders").session_start().text


def test_a_session_starts_with_the_last_session_and_not_with_one_before_it(open_memory, clock):
    _said(open_memory, clock, "k1", ("we decided to move the ledger to Postgres next week", "Good plan."))
    clock.moment += timedelta(days=14)
    _said(open_memory, clock, "k2", ("please run the linter", "It passes."))
    assert "ledger" not in open_memory(session="k3", project="orders").session_start().text


@pytest.mark.parametrize(
    ("turns", "task", "remark"),
    [
        (
            (
                ("rename PayoutJob to DisbursementJob in the worker", "Renamed PayoutJob in 14 files."),
                ("payout_test.go still fails", "Fixed the two assertions on PayoutJob."),
                ("run go vet", "Clean."),
                ("also rename the payout-jobs queue in worker.tf", "Done."),
                ("i'm meeting my brother for lunch", "Enjoy!"),
            ),
            "rename PayoutJob",
            "brother",
        ),
        (
            (
                ("bau die Kalenderansicht auf CSS-Module um", "Kalender.module.css ist angelegt."),
                ("die Kalenderzellen sind jetzt zu schmal", "Breite korrigiert."),
                ("Kalender-Header auch", "Umgestellt."),
                ("ich muss noch ein Geschenk für Oma kaufen", "Viel Erfolg."),
            ),
            "Kalenderansicht",
            "Geschenk",
        ),
    ],
)
def test_a_session_leaves_its_task_and_not_the_last_remark_beside_it(session: At, turns, task, remark):
    told = session("a")
    for user, agent in turns:
        told.after_turn(user, agent)
    told.session_end()
    focus = told.get("memory/active-context.md").text
    assert task in focus
    assert remark not in focus
