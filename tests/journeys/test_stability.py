"""What a session is told about itself: contradicted answers, loops, unrest, topics; and what binds a person."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.turn import claims
from nanoclaw_memory.types import ToolCall

NEXT = "Thanks. Go on."


def told(memory: Memory, message: str = NEXT) -> str:
    return memory.before_turn(message).text


def test_an_answer_that_contradicts_the_graph_or_the_log_is_noticed(memory: Memory):
    memory.graph.upsert("Keystone", "port", "3055")
    memory.write("The board of Harbor meets on 24 June in Aarhus", "decision", 0.9)
    memory.after_turn("Which port does Keystone use?", "Keystone listens on port 8080.")
    text = told(memory)
    assert "Contradicts the record" in text and "8080" in text and "3055" in text
    memory.after_turn("And the board?", "The board of Harbor meets on 17 June in Aarhus.")
    assert "17 june" in told(memory).casefold()


@pytest.mark.parametrize(
    "answer",
    [
        "Keystone listens on port 3055.",
        "The board of Harbor meets on 24 June in Aarhus.",
        "I would open port 8080 in the firewall of the other machine.",
        "A board meeting usually takes 90 minutes.",
        "Does Keystone listen on port 8080?",
        "Harbor has 12 members.",
    ],
)
def test_an_answer_that_agrees_or_is_about_something_else_is_left_alone(memory: Memory, answer: str):
    memory.graph.upsert("Keystone", "port", "3055")
    memory.write("The board of Harbor meets on 24 June in Aarhus", "decision", 0.9)
    memory.after_turn("What do you think?", answer)
    assert "record" not in told(memory)


def test_a_record_that_something_was_said_about_since_accuses_nobody(memory: Memory, clock: FixedClock):
    memory.write("Order deadline at Alvetra is thursdays 14:00", "fact", 0.9)
    memory.after_turn("Until when?", "The order deadline at Alvetra is 12:00.")
    assert "Contradicts the record" in told(memory)
    clock.moment += timedelta(days=9)
    memory.after_turn("The order deadline at Alvetra is wednesdays noon now", "Noted.")
    later = memory.for_session("later")
    later.after_turn("Until when?", "The order deadline at Alvetra is 12:00.")
    assert "record" not in told(later)


def test_a_person_who_corrects_is_not_told_that_the_talk_drifts(memory: Memory):
    memory.after_turn("Plan the day with Renske and Halvor", "Eight o'clock.")
    said = "No, that is wrong, first come Harbor Gate and Elm Street, after them Quist Hall"
    assert "Drift" not in told(memory, said)


@pytest.mark.parametrize(
    ("sentence", "record", "value"),
    [
        ("Pixel gets 0.4 ml of syrup every evening", "Pixel gets 0.4 ml of syrup every morning", "evening"),
        ("The sauna costs 35 % more in winter", "The sauna costs 20 % more in winter", "35"),
        ("Das Lager öffnet um 9 Uhr in Halle", "Das Lager in Halle öffnet um 7 Uhr", "9"),
        ("Pixel eats at noon", "Otto eats at night", None),
        ("The sauna costs 35 francs", "The sauna was built in 1980", None),
    ],
)
def test_values_are_compared_only_with_values_of_the_same_thing(
    sentence: str, record: str, value: str | None
):
    found = claims.disagreement(sentence, [record], claims.stated(""))
    assert (found[0] if found else None) == value


def test_a_contradiction_is_found_beside_pages_of_pasted_numbers(memory: Memory):
    memory.write("The board of Harbor meets on 24 June in Aarhus", "decision", 0.9)
    rows = "\n".join(f"{number} rows took {number * 3} ms for {number % 24} users" for number in range(3_000))
    for name in ("one", "two", "three"):
        memory.after_turn(f"Here is log {name}, is it slow?\n{rows}", "It looks fine.")
    memory.after_turn("When is the board?", "The board of Harbor meets on 17 June in Aarhus.")
    assert "17 june" in told(memory).casefold()


def test_what_is_ascribed_to_the_person_must_stand_somewhere(memory: Memory):
    memory.write("Weekly report goes to Renske, one page, as PDF", "fact", 0.6)
    made_up = "I put the budget section first, as you decided with the auditors on the terrace."
    memory.after_turn("Write the weekly report", made_up)
    assert "Unsupported memory" in told(memory)
    memory.after_turn("And to whom?", "You said the weekly report goes to Renske as a PDF of one page.")
    assert "PDF of one page" not in told(memory)


def test_the_same_exchange_again_and_again_is_a_loop_with_and_without_tools(
    memory: Memory, clock: FixedClock
):
    for _ in range(3):
        memory.after_turn("Run the tests", "I ran the tests, and three of them failed.")
        clock.moment += timedelta(seconds=5)
    assert "the same was answered 3 times" in told(memory)
    other = memory.for_session("s2")
    for _ in range(3):
        other.after_turn("Read it", "Done.", [ToolCall("Read", "app.py")])
        clock.moment += timedelta(seconds=5)
    assert "app.py was read 3 times" in told(other)


def test_one_exchange_that_is_reported_twice_is_no_loop(memory: Memory):
    for _ in range(4):  # at the same moment: a client's two hooks, or a spool that was read again
        memory.after_turn("Run the tests", "I ran the tests, and three of them failed.")
    assert "Loop" not in told(memory)


def test_unrest_is_remembered_over_the_session_and_fades(memory: Memory):
    angry = ("This is wrong!!!", "No, that is wrong again!! Damn.", "Still wrong!! I am fed up.")
    levels = [memory.after_turn(message, "Sorry.").entropy for message in angry]
    assert levels[0] < min(levels[1:]) and levels[2] >= 0.8
    calm = [memory.after_turn(f"Thanks, number {n} is fine", "Good.").entropy for n in range(4)]
    assert calm == sorted(calm, reverse=True) and calm[-1] < 0.1


def test_a_session_that_cannot_leave_a_topic_is_told_once(memory: Memory, clock: FixedClock):
    for number in range(6):
        memory.after_turn(
            f"The backfill locked the orders table again, attempt {number}",
            f"The backfill held its lock for {number + 2} minutes.",
        )
        clock.moment += timedelta(minutes=2)
    assert "backfill" in told(memory, "ok") and "fixated" not in told(memory, "ok")


@pytest.mark.parametrize(
    ("stated", "asked"),
    [
        ("I'm a diabetic, by the way", "What should we cook tonight?"),
        ("ich esse übrigens kein Gluten, Zöliakie", "what should I cook for the team dinner on Friday?"),
        ("I can't do stairs since my hip operation", "find us a hotel in Lisbon"),
        ("meine Tochter hat Angst vor Hunden", "shall we visit friends who keep three dogs?"),
        (
            "Unsere Lena verträgt keine Haselnüsse, letztes Jahr mussten wir deswegen in die Notaufnahme.",
            "Ich will für Lenas Klasse einen Kuchen backen, gib mir ein Rezept.",
        ),
        ("Paul hat Zöliakie.", "what shall we cook?"),
        ("Gluten geht bei Tante Moni nicht.", "Was kochen wir heute Abend für alle?"),
        ("Vorsicht bei Lena: Nüsse sind für sie lebensgefährlich.", "Was packe ich für das Picknick ein?"),
        ("Mein Mann muss auf Zucker achten.", "plan the Christmas dinner for nine"),
        (
            "Ma fille est allergique aux noix, on a dû l'emmener aux urgences l'an dernier.",
            "snacks for the school trip?",
        ),
    ],
)
def test_what_binds_a_person_comes_in_any_session_that_asks_for_what_it_bears_on(
    open_memory: Callable[..., Memory], models_dir: Path, stated: str, asked: str
):
    memory = open_memory(session="then", embeddings__modelPath=str(models_dir / "multilingual-e5-small"))
    memory.init()
    memory.after_turn("The staging cluster moved to Frankfurt", "Noted.")
    memory.after_turn(stated, "Noted, thank you.")
    memory.after_turn("We use Kafka for the events of the shop", "Noted.")
    memory.index()
    memory.group.resources.resident = True
    assert stated in told(memory.for_session("dinner"), asked)
    for other in ("fix the typo in the README", "why is the build red?", "What is the capital of Mongolia?"):
        assert stated not in told(memory.for_session(other), other)


def test_other_news_about_a_person_does_not_outdate_what_binds_them(
    open_memory: Callable[..., Memory], models_dir: Path
):
    memory = open_memory(session="then", embeddings__modelPath=str(models_dir / "multilingual-e5-small"))
    memory.init()
    memory.write("Karl Orlick cannot climb stairs since his accident")
    memory.write("Karl Orlick changed jobs and is at Weidmann since Monday")
    memory.index()
    memory.group.resources.resident = True
    line = next(
        line
        for line in told(memory.for_session("trip"), "find us a hotel in Lisbon").split("\n")
        if "stairs" in line
    )
    assert "earlier" not in line


def test_what_binds_a_person_is_not_left_out_for_other_news_about_them(
    open_memory: Callable[..., Memory], models_dir: Path
):
    memory = open_memory(session="then", embeddings__modelPath=str(models_dir / "multilingual-e5-small"))
    memory.init()
    memory.after_turn("Unsere Lena verträgt keine Haselnüsse, wir waren deswegen beim Notarzt.", "Okay.")
    memory.after_turn(
        "Herr Aydin kann dienstags nicht mehr, Lena hat Klavier jetzt montags um 17 Uhr.", "Okay."
    )
    memory.index()
    memory.group.resources.resident = True
    assert "Haselnüsse" in told(memory.for_session("dinner"), "Was kochen wir heute Abend für alle?")


def test_what_binds_a_person_is_told_in_their_words_and_not_as_a_topic(
    open_memory: Callable[..., Memory], models_dir: Path
):
    memory = open_memory(session="then", embeddings__modelPath=str(models_dir / "multilingual-e5-small"))
    memory.init()
    memory.after_turn("Hi, I'm Meike Harms, I look after the docks", "Hello Meike.")
    memory.for_session("later").after_turn("I'm a diabetic", "Thanks for telling me.")
    memory.index()
    memory.group.resources.resident = True
    found = told(memory.for_session("dinner"), "What should we cook tonight?")
    assert 'User mentioned: "I\'m a diabetic"' in found


def test_only_principles_from_which_an_answer_slipped_are_reported(memory: Memory, home: Path):
    (home / "workspace/SOUL.md").write_text(
        "# Soul\n\n## Core Principles\n- directness: x\n- candour: y\n- care: z\n"
    )
    memory.after_turn("No, that is wrong!!", "Great question! Perhaps it might work.")
    text = told(memory, "No, you just said the opposite!! Damn.")
    assert "directness (slipped: opened with filler)" in text and "candour" not in text and "care" not in text


def test_a_principle_that_was_written_meanwhile_counts(memory: Memory, home: Path):
    soul = home / "workspace/SOUL.md"
    soul.write_text("# Soul\n\n## Core Principles\n- care: z\n")
    memory.after_turn("Which port is it?", "Great question! It is 3000.")
    assert "directness" not in told(memory, "No, you just said the opposite!! Damn.")
    soul.write_text("# Soul\n\n## Core Principles\n- directness: x\n")
    memory.after_turn("No, that is wrong!!", "Great question! Perhaps it might work.")
    assert "directness (slipped" in told(memory, "No, you contradict yourself again!! Damn it.")


@pytest.mark.parametrize(
    ("said", "answers"),
    [
        (
            ["port is 3307 now", "And which port is it?"],
            ["Noted: the ledger service now listens on port 3307."] * 2,
        ),
        (
            ["The review of the ledger is at 15:00 now", "Remind me"],
            ["Moved to 15:00.", "The review of the ledger is at 15:00."],
        ),
    ],
)
def test_what_the_person_has_just_changed_contradicts_no_record(
    memory: Memory, said: list[str], answers: list[str]
):
    memory.write("The ledger service listens on port 3306", "fact", 0.9)
    memory.write("The review of the ledger is at 14:00", "fact", 0.9)
    for message, answer in zip(said, answers, strict=True):
        memory.after_turn(message, answer)
        assert "Contradicts" not in told(memory)


def test_a_weekday_that_is_today_may_mean_today(memory: Memory, clock: FixedClock):
    assert clock.now().strftime("%A") == "Monday"
    memory.write("We decided on RabbitMQ for the queue", "decision", 0.9)
    memory.after_turn("What about the queue?", "We decided on RabbitMQ for the queue on Monday.")
    assert "Date contradicts" not in told(memory)
    memory.after_turn("What about the queue?", "We decided on RabbitMQ for the queue last Monday.")
    assert "Date contradicts" in told(memory)


SERVICES = "Orion Kafka Grafana Loki Vault Nomad Redis Traefik Consul Minio Argo Flux".split()


@pytest.mark.parametrize(
    "said",
    [
        "Don't use {0} for {1} Gate, use {2} Cloud",
        "the {0} timeout of {1} Gate is {3} s, not 20",
        "nimm {2} statt {0} in der {1}-Ablage",
    ],
)
def test_an_hour_of_ordinary_changes_is_no_unrest(memory: Memory, home: Path, clock: FixedClock, said: str):
    (home / "workspace/SOUL.md").write_text("# Soul\n\n## Core Principles\n- reliability: x\n- consent: y\n")
    for number, names in enumerate(zip(SERVICES, SERVICES[1:], SERVICES[2:], strict=False)):
        message = said.format(*names, 30 + number)
        assert "STABILITY" not in told(memory, message)
        memory.after_turn(message, "Done.")
        clock.moment += timedelta(minutes=7)


def test_a_change_that_is_asked_for_is_no_slip_from_a_principle(memory: Memory, home: Path):
    (home / "workspace/SOUL.md").write_text("# Soul\n\n## Core Principles\n- consent: x\n")
    memory.after_turn("Don't push the branch before Friday", "I won't.")
    assert "slipped" not in told(memory, "You contradict yourself!! Damn it.")
    memory.after_turn("No, that's wrong, ask before you push!!", "Sorry.")
    assert "consent (slipped: the user corrected you)" in told(memory, "You contradict yourself!! Damn it.")
