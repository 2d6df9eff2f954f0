"""What the graph answers, in which phase, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nanoclaw_memory.errors import NotFound
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Fact


@pytest.fixture
def known(memory: Memory) -> Memory:
    """A small family and two projects."""
    memory.graph.upsert("Partner Boyd", "birthday", "July 7, 1976", "person")
    memory.graph.upsert("Partner Boyd", "full_name", "Partner Boyd", "person")
    memory.graph.alias("Partner", "Partner Boyd")
    memory.graph.relate("Partner Boyd", "partner_of", "User")
    memory.graph.upsert("User", "name", "Robert", "user")
    memory.graph.upsert("User", "timezone", "America/Chicago", "user")
    memory.graph.upsert("User", "birthday", "May 1, 1975", "user")
    memory.graph.upsert("Agent", "name", "Pip", "agent")
    memory.graph.upsert("Heidi", "phone", "+1-555-0100", "person")
    memory.graph.alias("Mama", "Heidi")
    memory.graph.upsert("Keystone", "port", "3000", "project")
    memory.graph.upsert("Keystone", "stack", "Next.js and PostgreSQL", "project")
    memory.graph.relate("User", "owns", "Keystone")
    memory.graph.relate("User", "owns", "Payment API")
    memory.graph.relate("Dana", "manages", "User")
    return memory


def first(memory: Memory, question: str, **more: Any) -> tuple[str, int]:
    hits = memory.graph.search(question, **more).hits
    return (hits[0].text, hits[0].score) if hits else ("", 0)


@pytest.mark.parametrize(
    ("question", "answer", "score"),
    [
        ("When is Partner's birthday?", "Partner Boyd.birthday = July 7, 1976", 95),
        ("when is partner's birthday", "Partner Boyd.birthday = July 7, 1976", 95),
        ("When was Partner Boyd born?", "Partner Boyd.birthday = July 7, 1976", 95),
        ("How old is Partner?", "Partner Boyd.birthday = July 7, 1976", 95),
        ("What port does Keystone run on?", "Keystone.port = 3000", 95),
        ("What is keystone built with?", "Keystone.stack = Next.js and PostgreSQL", 95),
        ("Mama's phone number", "Heidi.phone = +1-555-0100", 95),
        ("MAMA’S TELEPHONE?", "Heidi.phone = +1-555-0100", 95),
        ("Wie ist Mamas Telefonnummer?", "Heidi.phone = +1-555-0100", 95),
        ("What is my name?", "User.name = Robert", 95),
        ("What is your name?", "Agent.name = Pip", 95),
        ("Who owns Keystone?", "User → owns → Keystone", 90),
    ],
)
def test_a_question_is_answered_by_entity_and_intent(
    known: Memory, question: str, answer: str, score: int
) -> None:
    assert first(known, question) == (answer, score)


def test_all_relations_with_the_predicate_that_is_asked_come_first(known: Memory) -> None:
    hits = known.graph.search("What projects does User own?").hits
    assert [hit.text for hit in hits[:2]] == ["User → owns → Keystone", "User → owns → Payment API"]
    assert [hit.score for hit in hits[:2]] == [90, 90]


def test_without_an_intent_everything_known_of_the_entity_comes(known: Memory) -> None:
    hits = known.graph.search("Tell me about Keystone").hits
    assert {(hit.score, hit.phase) for hit in hits} == {(70, 2), (65, 2)}
    assert {hit.text for hit in hits} >= {"Keystone.port = 3000", "User → owns → Keystone"}


def test_who_am_i_gives_the_users_own_facts(known: Memory) -> None:
    texts = [hit.text for hit in known.graph.search("who am i").hits]
    assert "User.name = Robert" in texts


def test_my_partners_birthday_is_not_mine(known: Memory) -> None:
    known.graph.reinforce(known.graph.search("When is my birthday?").hits)
    hits = known.graph.search("When is my partner's birthday?").hits
    assert hits[0].text == "Partner Boyd.birthday = July 7, 1976"


def test_a_relative_without_a_name_is_reached_over_the_relation(memory: Memory) -> None:
    memory.graph.upsert("User", "birthday", "May 1, 1975")
    memory.graph.upsert("Anna", "birthday", "June 2, 1977")
    memory.graph.relate("Anna", "wife_of", "User")
    assert first(memory, "When is my wife's birthday?") == ("Anna.birthday = June 2, 1977", 95)


def test_of_an_unknown_relative_the_users_own_birthday_is_no_answer(memory: Memory) -> None:
    memory.graph.upsert("User", "birthday", "May 1, 1975")
    hits = memory.graph.search("When is my wife's birthday?").hits
    assert all(hit.score < 95 for hit in hits)


def test_keywords_find_facts_and_relations_when_no_entity_is_named(known: Memory) -> None:
    hits = known.graph.search("anything with PostgreSQL?").hits
    assert (hits[0].text, hits[0].score, hits[0].phase) == ("Keystone.stack = Next.js and PostgreSQL", 50, 3)
    relation = known.graph.search("who is managing things").hits[0]
    assert (relation.text, relation.score, relation.phase) == ("Dana → manages → User", 40, 4)


def test_a_search_for_named_entities_only_gives_the_same_answer_or_nothing(known: Memory) -> None:
    graph, unnamed, named = known.graph, "anything with PostgreSQL?", "What is Keystone's port?"
    assert graph.search(named, named_only=True).hits[0] == graph.search(named).hits[0]
    assert graph.search(unnamed).hits
    assert graph.search(unnamed, named_only=True).hits == ()


def test_a_question_over_two_relations(known: Memory) -> None:
    hit = known.graph.search("Who manages the owner of Keystone?").hits[0]
    assert hit.text == "Dana → manages → User"
    assert "two steps from Keystone" in hit.why


def test_a_question_over_a_fact_whose_value_is_a_name(memory: Memory) -> None:
    memory.graph.upsert("Keystone", "owner", "Alice Smith")
    memory.graph.upsert("Alice Smith", "email", "alice@example.org")
    assert first(memory, "What is the email of the owner of Keystone?")[0] == (
        "Alice Smith.email = alice@example.org"
    )


def test_the_direction_of_a_relation_is_heard(memory: Memory) -> None:
    memory.graph.relate("Bob", "manages", "Alice")
    memory.graph.relate("Alice", "manages", "Carol")
    assert first(memory, "Who manages Alice?")[0] == "Bob → manages → Alice"
    assert first(memory, "Whom does Alice manage?")[0] == "Alice → manages → Carol"


def test_a_typo_is_read_only_when_nothing_exact_matched_and_says_so(known: Memory) -> None:
    hit = known.graph.search("What port does Keystoen run on?").hits[0]
    assert hit.text == "Keystone.port = 3000"
    assert "read Keystoen as this name" in hit.why
    exact = known.graph.search("Keystoen, no: what port does Keystone use?").hits[0]
    assert "read" not in exact.why


def test_a_first_name_stands_for_the_one_who_has_it_and_for_two_it_is_ambiguous(memory: Memory) -> None:
    memory.graph.upsert("Alice Smith", "phone", "1")
    assert first(memory, "Alice's phone?") == ("Alice Smith.phone = 1", 95)
    memory.graph.upsert("Alice Jones", "phone", "2")
    answer = memory.graph.search("Alice's phone?")
    assert answer.ambiguous == ("Alice",)
    assert {hit.item.value for hit in answer.hits if isinstance(hit.item, Fact)} == {"1", "2"}


def test_a_relative_with_a_title_is_one_of_those_who_have_the_name(memory: Memory) -> None:
    memory.graph.relate("User", "dentist", "Mateo Brandt")
    memory.graph.relate("Cousin Mateo", "lives in", "Leith")
    answer = memory.graph.search("Where does Mateo live?")
    assert answer.ambiguous == ("Mateo",)
    assert answer.hits[0].text == "Cousin Mateo → lives in → Leith"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Telefonnummer meiner Tante", ["Wilma.phone = 1"]),
        ("What's the phone of my brother-in-law?", ["Egon.phone = 2"]),
        ("Wann ist mein Patenkind geboren?", ["Pascal.born = 2012-02-02"]),
        ("my uncle's phone", []),  # others have one
        ("my brother's phone", []),
        (
            "Wer vertritt Frau Kolbe?",
            ["Vertretung Kolbe: Malte.dienst = früh"],
        ),  # a title, and no wife of mine
    ],
)
def test_every_relative_is_asked_for_in_either_language_and_nobody_answers_for_another(
    memory: Memory, question: str, answer: list[str]
) -> None:
    for what, name, key, value in (
        ("aunt", "Wilma", "phone", "1"),
        ("brother-in-law", "Egon", "phone", "2"),
        ("godson", "Pascal", "born", "2012-02-02"),
    ):
        memory.graph.relate("User", what, name)
        memory.graph.upsert(name, key, value)
    memory.graph.upsert("Vertretung Kolbe: Malte", "dienst", "früh")
    assert [hit.text for hit in memory.graph.search(question).hits if isinstance(hit.item, Fact)] == answer


def test_an_alias_of_several_is_reported_as_ambiguous(memory: Memory) -> None:
    memory.graph.upsert("Alex Smith", "phone", "1")
    memory.graph.upsert("Alex Jones", "phone", "2")
    memory.graph.alias("Lex", "Alex Smith")
    memory.graph.alias("lex", "Alex Jones")
    answer = memory.graph.search("lex's phone")
    assert answer.ambiguous == ("lex",)
    assert {hit.text for hit in answer.hits if hit.score == 95} == {
        "Alex Smith.phone = 1",
        "Alex Jones.phone = 2",
    }


def test_alias_chains_are_followed_and_circles_end(memory: Memory) -> None:
    memory.graph.upsert("Kubernetes", "version", "1.31")
    memory.graph.alias("K8s", "Kube")
    memory.graph.alias("Kube", "Kubernetes")
    assert first(memory, "which version is k8s?") == ("Kubernetes.version = 1.31", 95)
    memory.graph.alias("Kubernetes", "K8s")
    assert first(memory, "which version is k8s?")[0] == "Kubernetes.version = 1.31"


def test_what_is_said_of_an_alias_belongs_to_the_entity(known: Memory) -> None:
    done = known.graph.upsert("mama", "phone", "+1-555-0199")
    assert len(done.retired) == 1
    assert first(known, "Heidi's phone") == ("Heidi.phone = +1-555-0199", 95)


def test_what_was_said_of_a_name_before_it_became_an_alias_is_found_and_replaced(memory: Memory) -> None:
    memory.graph.upsert("Mama", "phone", "1")
    memory.graph.alias("Mama", "Heidi")
    assert first(memory, "Heidi's phone") == ("Mama.phone = 1", 95)
    memory.graph.upsert("Heidi", "phone", "2")
    assert [hit.text for hit in memory.graph.search("Mama's phone").hits] == ["Heidi.phone = 2"]


@pytest.mark.parametrize("name", ["Ümit", "李雷", "Ольга", "O'Brien", "Jean-Luc", "C++", "node.js", "🚀"])
def test_names_in_any_script_are_found(memory: Memory, name: str) -> None:
    memory.graph.upsert(name, "birthday", "May 4")
    assert first(memory, f"When is {name}'s birthday?")[0] == f"{name}.birthday = May 4"


def test_a_name_inside_a_sentence_without_spaces_is_found(memory: Memory) -> None:
    memory.graph.upsert("李雷", "生日", "五月四日")
    assert first(memory, "李雷的生日是什么时候")[0] == "李雷.生日 = 五月四日"


def test_german_nouns_are_not_all_taken_for_entities(memory: Memory) -> None:
    memory.graph.upsert("Heidi", "birthday", "3 May")
    memory.graph.upsert("Tisch Katalog", "price", "12 Euro")
    answer = memory.graph.search("Wann hat Heidi Geburtstag und welcher Kuchen kommt auf den Tisch?")
    assert answer.entities == ("Heidi",)
    assert answer.hits[0].text == "Heidi.birthday = 3 May"


def test_a_thing_called_like_a_key_does_not_take_the_question(memory: Memory) -> None:
    memory.graph.upsert("Port", "meaning", "a harbour")
    memory.graph.upsert("Keystone", "port", "3000")
    assert first(memory, "What port does Keystone run on?")[0] == "Keystone.port = 3000"


def test_will_is_a_name_only_when_it_is_written_as_one(memory: Memory) -> None:
    memory.graph.upsert("Will", "phone", "1")
    assert memory.graph.search("will it rain").entities == ()
    assert first(memory, "Do you have the phone of Will?") == ("Will.phone = 1", 95)


def test_keyword_rows_come_only_when_no_entity_is_named_however_hot_they_are(memory: Memory) -> None:
    memory.graph.upsert("Keystone", "port", "3000")
    memory.graph.upsert("Harbour", "note", "the keystone port is closed")
    loud = memory.graph.search("harbour").hits
    for _ in range(30):
        memory.graph.reinforce(loud)
    hits = memory.graph.search("what about keystone").hits
    assert [hit.text for hit in hits] == ["Keystone.port = 3000"]
    assert hits[0].combined > 100 > memory.graph.search("what is closed?").hits[0].combined


@pytest.fixture
def family(memory: Memory) -> Memory:
    memory.graph.upsert("User", "name", "Nadia")
    memory.graph.upsert("User", "lives in", "Lisbon")
    memory.graph.upsert("User", "birthday", "May 1")
    memory.graph.upsert("User", "phone", "1")
    memory.graph.relate("User", "daughter", "Zuri")
    memory.graph.upsert("Zuri", "born", "2017-04-22")
    memory.graph.relate("User", "cat", "Momo")
    memory.graph.upsert("Momo", "age", "11")
    return memory


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When is my daughter's birthday?", "Zuri.born = 2017-04-22"),
        ("When is our daughter's birthday?", "Zuri.born = 2017-04-22"),
        ("When was my daughter born?", "Zuri.born = 2017-04-22"),
        ("How old is our cat?", "Momo.age = 11"),
        ("Wie alt ist die Katze?", "Momo.age = 11"),
        ("What is our cat called?", "User → cat → Momo"),
        ("Where do I live?", "User.lives in = Lisbon"),
    ],
)
def test_a_relative_or_pet_is_meant_and_never_the_user(family: Memory, question: str, answer: str) -> None:
    assert first(family, question)[0] == answer


@pytest.mark.parametrize(
    "question",
    [
        "Where does our mother live?",
        "What is our dog called?",
        "What is my mother's phone?",
        "Our husband's name?",
        "When is my son's birthday?",
    ],
)
def test_of_a_relative_or_pet_that_is_unknown_nothing_is_answered(family: Memory, question: str) -> None:
    assert [hit.text for hit in family.graph.search(question).hits if hit.phase == 1] == []


@pytest.mark.parametrize(
    "question",
    ["what are my kids' names", "names of my children?", "Wie heißen meine Kinder?", "who are my kids"],
)
def test_all_relatives_of_a_kind_are_named_whatever_word_each_stands_under(
    family: Memory, question: str
) -> None:
    family.graph.relate("User", "son", "Kacper")
    found = [hit.text for hit in family.graph.search(question).hits if hit.phase == 1]
    assert sorted(found) == ["User → daughter → Zuri", "User → son → Kacper"]


@pytest.mark.parametrize(
    "question", ["who is in my family?", "tell me about our family", "Wer gehört zu meiner Familie?"]
)
def test_a_question_for_the_family_names_every_relative_and_no_pet(family: Memory, question: str) -> None:
    family.graph.relate("User", "brother", "Piotr")
    found = [hit.text for hit in family.graph.search(question).hits if hit.phase == 1]
    assert sorted(found) == ["User → brother → Piotr", "User → daughter → Zuri"]


def test_somebodys_number_is_their_phone_and_another_number_is_not(family: Memory) -> None:
    family.graph.upsert("Zuri", "phone", "555-0147")
    family.graph.upsert("Zuri", "shoe size", "31")
    for question in ("what's my daughter's number?", "Zuri's number", "Wie ist Zuris Nummer?"):
        assert first(family, question) == ("Zuri.phone = 555-0147", 95), question
    hits = family.graph.search("what is Zuri's locker number?").hits
    assert [hit.text for hit in hits if hit.phase == 1] == []


def test_who_is_named_stands_before_who_is_alike(memory: Memory) -> None:
    memory.graph.upsert("User", "doctor", "Dr. Visser")
    memory.graph.upsert("User", "dentist", "Dr. Lima")
    assert first(memory, "who is my dentist?")[0] == "User.dentist = Dr. Lima"
    assert first(memory, "who is my doctor?")[0] == "User.doctor = Dr. Visser"
    assert first(memory, "Wer ist mein Arzt?")[0] == "User.doctor = Dr. Visser"


@pytest.mark.parametrize("message", ["write a poem about a family of foxes", "the font family is wrong"])
def test_a_family_that_is_nobodys_is_not_mine(family: Memory, message: str) -> None:
    assert family.graph.search(message, named_only=True).hits == ()


def test_an_alias_is_explained_and_other_names_are_told(memory: Memory) -> None:
    memory.graph.alias("Vesper", "payments rewrite")
    assert first(memory, "What is Vesper?") == ("Vesper → is another name of → payments rewrite", 90)
    memory.graph.upsert("Zuri", "age", "8")
    memory.graph.alias("Mouse", "Zuri")
    assert first(memory, "What do we call Zuri?")[0] == "Mouse → is another name of → Zuri"
    assert "(since )" not in memory.graph.search("What is Vesper?").hits[0].dated
    assert memory.graph.reinforce(memory.graph.search("What is Vesper?").hits) == ""


@pytest.mark.parametrize(
    "message",
    [
        "Zuri asks how many teeth a shark has",
        "is Lisbon bigger than Porto?",
        "how do I exit less without clearing the screen",
        "Zuri sent this: lgtm. answer with something short and friendly",
    ],
)
def test_a_message_that_only_mentions_somebody_gets_nothing_of_them(family: Memory, message: str) -> None:
    family.graph.relate("Zuri", "goes to", "Oakfield Primary")
    assert family.graph.search(message, named_only=True).hits == ()


def test_every_hit_says_all_it_must(known: Memory) -> None:
    for hit in known.graph.search("Partner birthday").hits:
        assert hit.tier in ("Hot", "Warm", "Cool")
        assert hit.why
        assert hit.phase in (1, 2, 3, 4)
        assert hit.combined == pytest.approx(
            (100 if hit.score >= 65 else 0) + 0.7 * hit.score / 100 + 0.3 * 1.0
        )


NASTY = [
    "", " ", '"', "*", "NEAR(a b)", "a:b", "-x", "entity:Keystone", "'; DROP TABLE facts; --", "\x00", "a\x00b",
    "🚀🔥", "(((", "AND OR NOT", "\ud800", "x" * 100_000, "word " * 20_000, "%_", "\\", "{}[]", "Ω" * 3000,
]  # fmt: skip


@pytest.mark.parametrize("query", NASTY)
def test_no_query_fails_or_reaches_another_table(known: Memory, query: str) -> None:
    answer = known.graph.search(query)
    assert len(answer.hits) <= 6
    assert known.graph.search("Mama's phone").hits[0].text == "Heidi.phone = +1-555-0100"


def test_what_is_told_in_private_stays_hidden_in_a_shared_scope(
    known: Memory, open_memory: Callable[..., Memory]
) -> None:
    shared = open_memory(private=False)
    assert shared.graph.search("When is Partner's birthday?").hits == ()
    assert shared.graph.search("PostgreSQL").hits == ()
    assert shared.graph.history("Heidi") == []
    assert list(shared.graph.export()) == []
    shared.graph.upsert("Lunch", "place", "canteen")
    assert shared.graph.search("Lunch place").hits[0].text == "Lunch.place = canteen"


def test_a_shared_scope_does_not_learn_who_is_known(
    known: Memory, open_memory: Callable[..., Memory]
) -> None:
    known.graph.alias("Mama", "Partner Boyd")
    shared = open_memory(private=False)
    for query in ("mama", "Partner", "Boyd", "Heidy", "who am I"):
        answer = shared.graph.search(query)
        assert (answer.entities, answer.ambiguous) == ((), ())
    for name in ("Mama", "Heidi", "Dana"):
        with pytest.raises(NotFound):
            shared.graph.show(name)
    shared.graph.upsert("Keystone", "status", "live")
    assert shared.graph.search("Keystone").entities == ("Keystone",)
    assert shared.graph.drawn("Keystone")["text"] == "Keystone\n└─ status = live"


def test_another_group_sees_nothing(known: Memory, open_memory: Callable[..., Memory]) -> None:
    other = open_memory(group="family")
    other.init()
    assert other.graph.search("When is Partner's birthday?").hits == ()


def test_a_persons_first_and_full_name_are_one_whichever_came_first(memory: Memory):
    memory.graph.upsert("Lena", "birthday", "3 June")
    memory.graph.relate("Lena Fischer", "works at", "Initech")
    assert first(memory, "Where does Lena work?") == ("Lena Fischer → works at → Initech", 90)
    assert first(memory, "When is Lena Fischer's birthday?") == ("Lena.birthday = 3 June", 95)
    memory.graph.upsert("Harbor", "port", "1")
    memory.graph.upsert("Harbor Staging", "port", "2")
    assert [hit.text for hit in memory.graph.search("Harbor's port").hits] == ["Harbor.port = 1"]
    memory.graph.relate("Lena Meyer", "works at", "Globex")
    assert first(memory, "Where does Lena work?")[1] < 90  # nobody knows which


@pytest.mark.parametrize(
    ("predicate", "place", "question"),
    [("wohnt in", "Bern", "Wo wohne ich?"), ("arbeitet bei", "Migros", "Wo arbeite ich?")],
)
def test_i_am_meant_in_german_too(memory: Memory, predicate: str, place: str, question: str):
    memory.graph.relate("User", predicate, place)
    assert first(memory, question) == (f"User → {predicate} → {place}", 90)


def test_a_school_is_found_by_who_goes_there(memory: Memory):
    memory.graph.relate("User", "daughter", "Pia")
    memory.graph.relate("Pia", "goes to", "Eastfield School")
    assert first(memory, "Which school does my daughter go to?")[0] == "Pia → goes to → Eastfield School"


def test_what_is_ours_may_be_a_things_own(memory: Memory) -> None:
    memory.graph.upsert("User", "wholesaler", "Alvetra")
    memory.graph.upsert("User", "sister", "Antje")
    memory.graph.upsert("Practice", "wholesaler", "Covetrus")
    memory.graph.upsert("Practice", "city", "Husum")
    found = [hit.text for hit in memory.graph.search("who is our wholesaler").hits]
    assert found[:2] == ["User.wholesaler = Alvetra", "Practice.wholesaler = Covetrus"]
    assert "Practice.city = Husum" not in found
    mine = [hit.text for hit in memory.graph.search("who is my wholesaler").hits]
    assert "Practice.wholesaler = Covetrus" not in mine


@pytest.mark.parametrize("asked", ["welche Handschuhgröße", "welche Handschuhgrösse"])
def test_a_word_with_sharp_s_is_found_in_both_spellings(memory: Memory, asked: str) -> None:
    memory.graph.upsert("Praxis", "Handschuhgröße", "6.5")
    assert first(memory, asked)[0] == "Praxis.Handschuhgröße = 6.5"


def test_lists_know_what_was_said_a_moment_ago(memory: Memory) -> None:
    memory.after_turn("Our dentist is Dr. Okafor on Mill Lane", "Noted.")
    assert [one.entity for one in memory.graph.entities()] == ["User"]


def test_the_hottest_know_it_too(memory: Memory) -> None:
    memory.after_turn("Our dentist is Dr. Okafor on Mill Lane", "Noted.")
    assert [fact.key for fact in memory.graph.top()] == ["dentist"]


def test_the_history_knows_it_too(memory: Memory) -> None:
    memory.after_turn("Our dentist is Dr. Okafor on Mill Lane", "Noted.")
    assert [fact.key for fact in memory.graph.history("User")] == ["dentist"]
