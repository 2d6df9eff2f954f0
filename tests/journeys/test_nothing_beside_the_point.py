"""Blocks that hold only what the message is about: no echo, nothing twice, nobody's affairs because of an "our"."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory

pytestmark = pytest.mark.usefixtures("by_rules")
MAIL = """Look at this mail and draft a polite refusal:

From: sales@cloudvault.example
To: me
Subject: Your storage plan

Dear customer, please recommend CloudVault Pro to your colleagues. Our new office is at Hafenstrasse 12.
Kind regards
Petra Simmel"""


@pytest.fixture
def say(open_memory: Callable[..., Memory], clock: FixedClock) -> Callable[..., None]:
    """Tell something in a session of its own, an hour after what was told before."""

    def tell(user: str, agent: str = "Ok.") -> None:
        clock.moment += timedelta(hours=1)
        open_memory(session=user[:50]).after_turn(user, agent)

    return tell


def asked(open_memory: Callable[..., Memory], message: str) -> str:
    return open_memory(session=f"about {message[:50]}").before_turn(message).text


def test_our_office_in_a_pasted_mail_brings_nothing_of_the_users_own(memory, open_memory):
    memory.graph.relate("User", "daughter", "Lena")
    memory.graph.upsert("User", "landlord", "Herr Brandl")
    block = asked(open_memory, MAIL)
    assert "Brandl" not in block
    assert "Lena" not in block


def test_who_asks_for_one_thing_of_their_own_gets_no_other(memory, open_memory):
    memory.graph.relate("User", "daughter", "Lena")
    memory.graph.upsert("User", "landlord", "Herr Brandl")
    block = asked(open_memory, "Who is our landlord?")
    assert "Brandl" in block
    assert "Lena" not in block


def test_the_same_question_asked_before_comes_back_as_its_answer_alone(say, open_memory):
    say("The dev server listens on port 8200 since the proxy update.")
    say("On which port does the dev server listen?", "It listens on 8200.")
    block = asked(open_memory, "on which port does the dev server listen")
    assert "It listens on 8200." in block
    assert "On which port" not in block


def test_a_lesson_that_continuity_tells_already_is_not_told_again(say, open_memory):
    say("Never run the integration tests against the live buoys, use the simulator.", "Understood.")
    block = asked(open_memory, "run the integration tests")
    assert block.count("use the simulator") == 1


def test_an_old_answer_to_the_same_question_comes_with_what_was_said_since(say, open_memory):
    say("I have a budget of 900 euros for the new bike.")
    say("How much can I spend on the bike?", "900 euros.")
    say("I raised the bike budget to 1,200.")
    say("How much can I spend on the bike?", "1,200 euros.")
    say("Let's say 1,500 for the bike.")
    block = asked(open_memory, "How much can I spend on the bike?")
    assert "1,500" in block
    assert '"900 euros."' not in block
    (answer,) = (line for line in block.splitlines() if '"1,200 euros."' in line)
    assert "earlier" in answer


def test_a_short_question_about_something_that_is_named_rarely_is_answered_without_a_model(say, open_memory):
    say("Our internet contract with Nordkabel costs 39.90 a month and ends on 31 March.")
    say("The kitchen light needs a new bulb, model E27.")
    assert "31 March" in asked(open_memory, "How long does the Nordkabel contract run?")


def test_thinking_aloud_brings_nothing(say, open_memory):
    say("Let's get going on the bookkeeping app. It runs on port 8085 in dev.", "Thanks, I'll use port 8085.")
    say("hm, let me think", "")
    assert not asked(open_memory, "hm, let me think")


@pytest.mark.parametrize(
    "message", ["What did we say about the webhooks?", "Haben wir über Webhooks gesprochen?"]
)
def test_who_asks_what_was_said_does_not_get_what_is_about_saying(memory, open_memory, say, message):
    memory.write("Say what you mean, she said: what was said and gesprochen in private stays private")
    say("The webhooks are signed with HMAC")
    block = asked(open_memory, message)
    assert "HMAC" in block
    assert "stays private" not in block


FORWARDED = """Can you summarise this?

From: Beate Kolb <b.kolb@glashaus.example>
To: team@werft.example
Subject: Delivery of the gauges

Dear all,
unfortunately the second batch of pressure gauges reaches us only in calendar week 51, because of a fire in the plant.
We would like to ship the first 240 pieces on Friday with the forwarder Kessler and send the rest after the holidays.
The price stays as agreed; for the delay we offer free transport to the yard and a further year of warranty.
I am in the office until four and can be reached on my mobile phone after that, also during the holidays.

Kind regards
Beate Kolb"""


def test_of_a_pasted_mail_only_the_sentence_that_tells_comes_back(say, open_memory):
    say(FORWARDED, "They deliver late.")
    block = asked(open_memory, "Which forwarder do they ship the gauges with?")
    assert "forwarder Kessler" in block
    assert "four and can be reached" not in block
    assert "summarise" not in block


def test_a_wish_to_forget_brings_nothing_but_the_way_to_do_it(say, open_memory):
    say("My sister Annika lives in Turku and runs a bakery there.")
    turn = open_memory(session="wish").before_turn("please forget what I said about my sister Annika")
    assert "ncm forget" in turn.text
    assert "Turku" not in turn.text
    assert "Turku" in asked(
        open_memory, "Forget what I said about the mail. Where does my sister Annika live?"
    )


@pytest.mark.parametrize(
    "message", ["run the formatter please", "can you run it locally", "delete the merged branch"]
)
def test_ordinary_work_in_a_young_memory_brings_nothing(memory, say, open_memory, message):
    memory.write("Tamsin runs the accounts at Fennmark")
    memory.write("Gauges of the main engine are read on Fridays")
    say("My knee acts up again, the doctor wants me to run no more until May.", "Get well soon.")
    say("We moved the branch office from Hull to Leeds.", "Noted.")
    assert asked(open_memory, message) == ""


@pytest.mark.parametrize(
    ("statement", "question"),
    [
        ("Mein Stundensatz liegt bei 85 Euro.", "Was ist mein Stundensatz?"),
        ("Mein Stundensatz liegt bei 85 Euro.", "mein Stundensatz?"),
        ("Die Miete beträgt ab Jänner 910 Euro.", "Wie hoch ist die Miete ab Jänner?"),
        ("My hourly rate is 85 euros.", "What's my hourly rate?"),
    ],
)
def test_a_short_question_whose_words_memory_has_is_answered_in_any_language(
    say, open_memory, statement, question
):
    """Neither the judge nor the small scorer knows that these questions need memory."""
    say(statement, "Notiert.")
    say("The shop window is cleaned on Mondays.", "Noted.")
    assert statement in asked(open_memory, question)


@pytest.mark.parametrize("message", ["nein, das andere", "How does hide glue work?", "Was ist mein Problem?"])
def test_a_reply_or_a_question_about_other_things_brings_nothing(say, open_memory, message):
    say("The dog is called Fiete and is afraid of thunder.", "Poor Fiete.")
    say("My studio opens at nine and the lamp is broken.", "Noted.")
    assert asked(open_memory, message) == ""


CHAT = """Freja says do it at 40 requests per second for now, burst 60.
Say which one you mean when there are two dashboards, the old one is gone.
What does one say on a card for a colleague who leaves after five years?
The fees are 3 to 4 percent since March.
Mila's report on owls is due on March 20, five minutes, where was the book?"""


@pytest.mark.parametrize(
    "message", ["do it", "what?", "which one?", "and now?", "where was it?", "what is 3 * 4?", "was?"]
)
def test_a_message_that_names_nothing_needs_the_conversation_alone(say, open_memory, message):
    for told in CHAT.splitlines():
        say(told)
    assert asked(open_memory, message) == ""
    assert "owls" in asked(open_memory, "when is Mila's report due?")


@pytest.mark.parametrize(
    ("statement", "question"),
    [
        ("Will does our garden on Thursdays.", "Who is Will?"),
        ("The number 555-1234 belongs to Carla from the bakery.", "who is 555-1234?"),
    ],
)
def test_a_name_that_is_also_a_plain_word_and_a_phone_number_name_somebody(
    say, open_memory, statement, question
):
    say(statement, "Noted.")
    assert statement in asked(open_memory, question)


TERN = """We're starting Tern, the invoicing service. Repo is acme/tern, default branch is trunk.
Tern's staging listens on port 8431.
Priya is on call this week, Jonas takes over on Monday.
We deploy on Tuesdays and Thursdays, never on Fridays.
The database is Postgres 16 on db-2, user tern_app.
release 2.4 is moved to April 9.
I prefer short answers without bullet points.
Sort imports with isort's black profile, please, in all my Python repos.
Connection pool is 20 per worker because the managed Postgres allows 100 connections.
Our version file is src/tern/_version.py; bump it with make bump.
Marta from finance wants the VAT report as CSV.
The queue is Redis 7, not RabbitMQ.
Customers in Austria get 14 days to pay, all others 30."""


def test_who_asks_again_for_what_the_session_has_gets_nothing_else_in_its_place(say, open_memory):
    for told in TERN.splitlines():
        say(told)
    again = "is release 2.4 moved to Monday, after Priya?"
    anew = open_memory(session="new").before_turn(again).text
    assert "moved to April 9" in anew
    assert len(anew.splitlines()) > 4  # and lines that help less
    memory = open_memory(session="today")
    assert "moved to April 9" in memory.before_turn("when is release 2.4?").text
    assert memory.before_turn(again).text == ""
    assert "Tuesdays and Thursdays" in memory.before_turn("when do we deploy?").text


def test_what_a_statement_of_the_same_session_supersedes_is_not_brought_back(say, open_memory, clock):
    for told in TERN.splitlines():
        say(told)
    clock.moment += timedelta(days=1)
    assert "Priya is on call" in open_memory(session="today").before_turn("who is on call?").text
    memory = open_memory(session="after the news")
    memory.after_turn("Heads-up: Dana is on call from today on, not Priya.", "Noted, Dana.")
    assert "Priya" not in memory.before_turn("who is on call?").text


WORK_OF_WEEKS = (
    "the on-call rota is me, Deepa and Lars, it switches on Wednesdays at noon",
    "the idempotency thing is done, it's 72h since this morning",
    "we keep raw webhook payloads for 90 days then purge, legal asked for it",
    "please always send the parcel weight in grams, the carrier wants that",
    "nightly export of orders goes to s3 bucket fjord-orders-export-eu at 02:30 UTC",
    "lars is leaving the rota as well, so it's me and Priya now, and we hand over mondays at 10",
    "add a Makefile target that lints everything",
)


@pytest.mark.parametrize(
    "message",
    [
        "good morning! how are you today?",
        "let's call it a day",
        "use that",
        "great, now do the same for the other file",
        "from now on squash before merging, I want a linear history",
        "Was kannst du eigentlich alles?",
    ],
)
def test_an_everyday_word_is_no_subject(say, open_memory, message):
    for text in WORK_OF_WEEKS:
        say(text, "Noted.")
    assert asked(open_memory, message) == ""


def test_a_question_about_such_a_subject_is_answered(say, open_memory):
    for text in WORK_OF_WEEKS:
        say(text, "Noted.")
    assert "Priya" in asked(open_memory, "who is on call with me, and when do we hand over?")
    assert "90 days" in asked(open_memory, "how long do we keep webhook payloads?")


@pytest.fixture
def kin(memory: Memory) -> Memory:
    """Know a person's family, doctors and address, and a project's owner."""
    for key, value in {
        "vet": "Dr. Brandt",
        "therapist appointment": "at 4",
        "address": "14 Mill Lane",
    }.items():
        memory.graph.upsert("User", key, value)
    memory.graph.upsert("User", "phone number", "0171 555 01")
    for predicate, name in {"daughter": "Ida", "cat": "Miso", "manager": "Sven", "partner": "Jonas"}.items():
        memory.graph.relate("User", predicate, name)
    return memory


@pytest.mark.parametrize(
    "order",
    [
        "run go vet ./...",
        "make vet",
        "what does go vet check for copied locks?",
        "kill the child process when the parent exits",
        "how do I kill a child process in node?",
        "cat main.tf and tell me what is wrong",
        "rename the partner field to vendor in the invoices table",
        "mock my phone number field in the signup form",
        "make my manager class a singleton",
        "pass the address of the struct, not a copy, in our worker pool",
        "run brew doctor and paste the output",
        "zeig mir das Kind-Element im DOM",
    ],
)
def test_an_order_with_a_word_for_a_relative_brings_nobodys_relative(kin, open_memory, order):
    assert asked(open_memory, order) == ""


@pytest.mark.parametrize(
    "remark",
    [
        "the cat is on my keyboard again",
        "my partner made lasagna",
        "my phone died",
        "thanks, my boss loved it",
        "der Arzt meint, ich soll weniger sitzen",
        "meine Tochter hat mir deinen Code erklärt",
        "explain recursion like i'm a kid",
    ],
)
def test_a_remark_about_the_family_brings_no_fact_of_the_graph(kin, open_memory, remark):
    assert "GRAPH MEMORY" not in asked(open_memory, remark)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("when is my therapist appointment?", "at 4"),
        ("who's our vet?", "Brandt"),
        ("the vet's name again?", "Brandt"),
        ("my phone number", "0171 555 01"),
        ("what's the cat called?", "Miso"),
        ("where do the kids go to school", "Ida"),
        ("put my address into the letter head", "14 Mill Lane"),
        ("buy something nice for our daughter", "Ida"),
        ("i forgot what my partner is called", "Jonas"),
        ("tomorrow i have to take the cat to the vet", "Brandt"),
        ("schreib meinem Chef eine Mail", "Sven"),
    ],
)
def test_a_question_an_order_or_a_plan_with_something_of_ones_own_brings_it(
    kin, open_memory, question, answer
):
    assert answer in asked(open_memory, question)
