"""What the rules read out of Markdown, and what they leave."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.graph.extract import FileRules, extract

LOG = FileRules()
PROJECT = FileRules("Keystone", "project")
PAGE = FileRules(page="House")
USER = FileRules("User", "user", names=True)


def said(text: str, rules: FileRules = LOG) -> list[tuple[str, str, str]]:
    return [(triple.subject, triple.predicate, triple.object) for triple in extract(text, rules)]


def test_pairs_of_every_style_are_facts_of_the_files_subject() -> None:
    text = (
        "- port: 3000\n- **Host:** maren\n- **Data base** — PostgreSQL\n* owner = Alice\n1. `region`: north\n"
    )
    assert said(text, PROJECT) == [
        ("Keystone", "port", "3000"),
        ("Keystone", "host", "maren"),
        ("Keystone", "data base", "PostgreSQL"),
        ("Keystone", "owner", "Alice"),
        ("Keystone", "region", "north"),
    ]


def test_each_saying_names_its_line() -> None:
    triples = extract(
        "# Keystone\n\n- port: 3000\n\n## Risks\n- the disk is nearly full\n- host: maren\n", PROJECT
    )
    assert [(triple.predicate, triple.line) for triple in triples] == [("port", 3), ("host", 7)]


def test_a_tables_rows_are_entities_and_its_header_names_keys() -> None:
    text = "## Family\n| Name | Relation | Birthday |\n|---|---|---|\n| Tilda | daughter | 21 June |\n"
    text += "| Otto | dog | |\n"
    assert said(text, FileRules("User")) == [
        ("Tilda", "relation", "daughter"),
        ("Tilda", "daughter of", "User"),
        ("Tilda", "birthday", "21 June"),
        ("Otto", "relation", "dog"),
        ("Otto", "dog of", "User"),
    ]


def test_a_table_of_settings_belongs_to_the_subject() -> None:
    assert said("| Key | Value |\n|---|---|\n| port | 3000 |\n", PROJECT) == [("Keystone", "port", "3000")]


def test_arrows_are_relations() -> None:
    assert said("- Alice → owns → Keystone\n- Bob -> manages -> Alice\n") == [
        ("Alice", "owns", "Keystone"),
        ("Bob", "manages", "Alice"),
    ]


def test_what_else_a_thing_does_is_no_part_of_a_list_and_a_passive_no_value() -> None:
    text = "- Deployments are done by Halina Nowicka.\n- The helper lives in src/totals.py and raises InvoiceError.\n"
    assert said(text, PAGE) == [("helper", "lives in", "src/totals.py")]


def test_plain_sentences_are_facts_and_relations() -> None:
    text = (
        "- Heidi is Robert's mother\n- Alice's birthday is March 15, 1990\n- Dag Holm manages Alice Smith.\n"
        "- Tilda is allergic to hazelnuts.\n- Kofi now works at Vattenfall\n- Alice is the owner of Keystone\n"
    )
    assert said(text) == [
        ("Heidi", "mother of", "Robert"),
        ("Alice", "birthday", "March 15, 1990"),
        ("Dag Holm", "manages", "Alice Smith"),
        ("Tilda", "allergic to", "hazelnuts"),
        ("Kofi", "works at", "Vattenfall"),
        ("Alice", "owner of", "Keystone"),
    ]


def test_a_roster_tells_its_people_apart() -> None:
    found = said("## People\n- **Priya Raman (Pri)**: engineer. Email priya@example.org. Based in Oslo.\n")
    assert ("Priya Raman", "email", "priya@example.org") in found
    assert ("Priya Raman", "location", "Oslo") in found
    assert ("Pri", "", "Priya Raman") in found


def test_a_tagged_line_gives_its_importance_to_what_it_states() -> None:
    (port,) = extract("- [fact|i=0.9] Keystone's port is 3000\n", LOG)
    assert (port.subject, port.predicate, port.importance, port.permanent) == ("Keystone", "port", 0.9, True)
    assert said("- [context|i=0.3] Keystone's port is 3000\n") == []


@pytest.mark.parametrize(
    "line",
    [
        "[decision|i=0.9] Switched Keystone to PostgreSQL because of the locks",
        "[lesson|i=0.8] Ask Björn before touching the router",
        "[idea] Keystone uses Rust",
        "[todo] Keystone's port is 3000",
    ],
)
def test_a_tagged_sentence_without_an_explicit_form_stays_a_passage(line: str) -> None:
    assert said(f"- {line}\n") == []


@pytest.mark.parametrize("label", ["[fact|i=0.9|@keystone]", "[fact|@keystone]", "[@keystone]"])
def test_the_project_of_a_log_line_is_no_part_of_what_it_states(label: str) -> None:
    assert said(f"- {label} Alice's birthday is March 15, 1990\n") == [
        ("Alice", "birthday", "March 15, 1990")
    ]


def test_the_log_writes_the_graphs_own_form_back() -> None:
    assert said("- Keystone.port = 3000\n") == [("Keystone", "port", "3000")]


def test_junk_is_left() -> None:
    text = (
        "- todo: call\n- http://example.org/a: b\n- port: TBD\n- host: ?\n- note: x\n- at 10:30 lunch\n"
        "```\n- port: 9\n```\n> - port: 8\n- name:\n- a very long key that is no key at all really: value\n"
    )
    assert said(text, FileRules("Keystone")) == []


def test_a_heading_that_is_a_name_is_the_subject_of_its_pairs() -> None:
    assert said(
        "## Alice Smith\n- phone: 1\n## Preferences\n- editor: Helix\n", FileRules(user="Robert")
    ) == [
        ("Alice Smith", "phone", "1"),
        ("Robert", "editor", "Helix"),
    ]


def test_what_is_noted_under_preferences_about_something_else_is_no_property_of_the_user():
    page = (
        "## Preferences\n- Coffee: black\n- Ring tone: Marimba\n- Windfall Choir: rehearses on Mondays at eight\n"
        "- Marlowe travel policy: second class only\n"
    )
    held = {(one.subject, one.predicate, one.object) for one in extract(page, FileRules(user="Robert"))}
    assert ("Robert", "coffee", "black") in {(a, b.casefold(), c) for a, b, c in held}
    assert not [one for one in held if "Choir" in one[1] or "choir" in one[1] or "travel" in one[1]]


def test_saying_it_twice_is_saying_it_once() -> None:
    assert len(said("- port: 3000\n- Port: 3000\n", PROJECT)) == 1


def test_a_dates_year_stays_with_its_day():
    text = "## Family\n- Ida: birthday March 15, 2016, phone 555 0142\n"
    found = {(triple.subject, triple.predicate): triple.object for triple in extract(text, FileRules())}
    assert found["Ida", "birthday"] == "March 15, 2016"


def test_a_roster_line_gives_kinship_date_and_alias_and_no_phone() -> None:
    text = "## Family\n- Zuri: daughter, born 2017-04-22, we call her Mouse\n- Biscuit: dog, beagle, 6\n"
    assert said(text, USER) == [
        ("User", "daughter", "Zuri"),
        ("Zuri", "born", "2017-04-22"),
        ("Mouse", "", "Zuri"),
        ("Biscuit", "is", "dog"),
        ("User", "dog", "Biscuit"),
        ("Biscuit", "is", "beagle"),
        ("Biscuit", "age", "6"),
    ]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Harbor depends on Kong, Redis and PostgreSQL.", ["Kong", "Redis", "PostgreSQL"]),
        ("Ravi works at Cargolane since 2019.", ["Cargolane", "2019"]),
        ("Our dentist is Dr. Lima, her number is 555 0199.", ["Dr. Lima", "555 0199"]),
        ("Ingrid's email is ingrid.h@example.org.", ["ingrid.h@example.org"]),
        ("The plan is 2 TB and costs €9.99 a month.", ["2 TB", "€9.99 a month"]),
        ("Harbor is written in Go and deployed to fly.io.", ["Go", "fly.io"]),
        ("Harbor was on port 3000, now it runs on port 3055.", ["3055"]),
        ("Annas Handynummer ist 0171 5550932.", ["0171 5550932"]),
        ("Unser Hund heißt Bruno und ist 4 Jahre alt.", ["Bruno", "4 Jahre"]),
        ("Hannes ist gegen Milch und Soja allergisch.", ["Milch", "Soja"]),
        ("Der Proxy hört auf Port 8443 und läuft auf hermes-2.", ["8443", "hermes-2"]),
        ("Bob and Alice live in Porto.", ["Porto", "Porto"]),
        ("Maeve's bedtime is 8:00, Tess's 8:30.", ["8:00", "8:30"]),
    ],
)
def test_a_value_ends_where_it_ends(sentence: str, expected: list[str]) -> None:
    assert [value for _, _, value in said(sentence, PAGE)] == expected


@pytest.mark.parametrize(
    ("sentence", "alias"),
    [
        ("Zuri (aka Mouse) lives in Porto.", ("Mouse", "", "Zuri")),
        ("We call the big meeting room the Aquarium.", ("Aquarium", "", "big meeting room")),
        ("Pancake is the codename for the CI runner.", ("Pancake", "", "CI runner")),
        ("Call me Nick.", ("Nick", "", "User")),
        ('- "the big one" → k8s-eu', ("the big one", "", "k8s-eu")),
    ],
)
def test_other_names_are_aliases(sentence: str, alias: tuple[str, str, str]) -> None:
    assert alias in said(sentence, PAGE)


@pytest.mark.parametrize(
    "sentence",
    [
        "Ben thinks Harbor runs on port 9000.",
        "Someone told me Lena lives in Bonn.",
        "If Paul moves, his number is 555 1234.",
        "Kofi used to work at Acme.",
        "Zoe's old number was 555 1234.",
        "Is Lena's birthday on 4 May?",
        "Lena's birthday is not 4 May.",
        "Lena isn't Kofi's sister.",
        "Omar wants to move to Porto.",
        "Harbor should be on port 9000.",
        'Paul said: "My name is Inigo Montoya".',
        "The ball is in Priya's court.",
        "Paul is on fire today.",
        "The API is a mess.",
        "The problem is DNS.",
        "Angeblich arbeitet Paul bei Bosch.",
        "Früher war Lena bei Bosch.",
        "Paul soll nach Bonn ziehen.",
        "Wohnt Lena noch in Jena?",
        "Das ist der Hammer.",
        "- PR 212 → merged",
        "- fix: users table migration",
        "- ~~port: 3000~~",
        "Nicht Paul hat die Prod zerlegt.",
    ],
)
def test_what_is_doubted_denied_past_asked_or_said_in_passing_is_no_fact(sentence: str) -> None:
    assert said(sentence, PAGE) == []


def test_nested_bullets_are_of_the_line_above_them() -> None:
    text = "- Architect\n  - Name: Solveig Brandt\n  - Mail: to come\n- nursery\n  - walls: Dulux 8\n"
    assert said(text, PROJECT) == [("Architect", "name", "Solveig Brandt"), ("nursery", "walls", "Dulux 8")]


def test_several_members_and_contacts_on_one_line_are_told_apart() -> None:
    assert said("Kids: Anders 9, Liv 12\n", USER) == [
        ("User", "kids", "Anders"),
        ("Anders", "age", "9"),
        ("User", "kids", "Liv"),
        ("Liv", "age", "12"),
    ]
    assert said("Plumber: Dan Achter, 555-0147, dan@example.org\n", FileRules()) == [
        ("Plumber", "is", "Dan Achter"),
        ("Dan Achter", "phone", "555-0147"),
        ("Dan Achter", "email", "dan@example.org"),
    ]


def test_front_matter_is_of_the_note() -> None:
    text = '---\nstatus: paused\nowner: "[[Lea Baran]]"\ndepends: ["[[tide]]", "[[marsh]]"]\n'
    text += "aliases: [Rey]\n---\n# Heron\n"
    assert said(text, PAGE) == [
        ("Heron", "status", "paused"),
        ("Heron", "owner", "Lea Baran"),
        ("Heron", "depends", "tide"),
        ("Heron", "depends", "marsh"),
        ("Rey", "", "Heron"),
    ]


def test_pairs_under_a_heading_are_its_own_only_where_they_are_properties() -> None:
    assert said("## Boiler\nmake: Vaillant 832\nserviced by: Kerrigan Ltd (0113 496 0182)\n", PAGE) == [
        ("Boiler", "make", "Vaillant 832"),
        ("Boiler", "serviced by", "Kerrigan Ltd"),
        ("Kerrigan Ltd", "phone", "0113 496 0182"),
    ]
    assert said("## Numbers\n- Nordbank limit: 25 MB\n- Staging database: Postgres 14\n", FileRules()) == [
        ("Nordbank limit", "is", "25 MB"),
        ("Staging database", "is", "Postgres 14"),
    ]


def test_parentheses_in_a_roster_are_details_too() -> None:
    line = "- Adaeze: mother (we call her Nonna), lives in Lagos, phone +234 803 555 0101\n"
    assert said(f"## Family\n{line}", FileRules("User", names=True)) == [
        ("User", "mother", "Adaeze"),
        ("Nonna", "", "Adaeze"),
        ("Adaeze", "lives in", "Lagos"),
        ("Adaeze", "phone", "+234 803 555 0101"),
    ]


@pytest.mark.parametrize(
    ("sentence", "stated"),
    [
        ("Lena's birthday is not in May, it is 3 June.", [("Lena", "birthday", "3 June")]),
        (
            "Ingrid Haugen's email is ingrid@nordfrost.no.",
            [("Ingrid Haugen", "email", "ingrid@nordfrost.no")],
        ),
        ("Direct reports: Lena Fischer, Jonas Berg", []),
        ("It means a lot to me", []),
        ("SLA means service level agreement", [("SLA", "", "service level agreement")]),
        ("The staging port is 7001", [("staging port", "is", "7001")]),
        ("Our project Keystone depends on Redis", [("Keystone", "depends on", "Redis")]),
        ("Backups run every night at 02:30.", [("Backups", "runs", "every night at 02:30")]),
        ("Users run into errors every day", []),
        ("Der Drucker im Flur hat die IP 192.168.4.20.", [("Drucker im Flur", "IP", "192.168.4.20")]),
        ("Rent goes up to 1,150 euros in March.", [("Rent", "is", "1,150 euros")]),
        ("Nordwind's address is Hafenstr. 12", [("Nordwind", "address", "Hafenstr. 12")]),
        ("The gateway listens on 9443, not on 8443", [("gateway", "port", "9443")]),
    ],
)
def test_what_a_sentence_states(sentence: str, stated: list[tuple[str, str, str]]) -> None:
    assert said(f"{sentence}\n", FileRules()) == stated


@pytest.mark.parametrize(
    ("message", "stated"),
    [
        ("ok so the deploy window is Thursdays at 14:00", [("deploy window", "is", "Thursdays at 14:00")]),
        ("remember that my wife's birthday is 14 March", [("wife", "birthday", "14 March")]),
        ("Ich wohne in Freiburg", [("User", "wohnt in", "Freiburg")]),
        (
            "Ich bin Vegetarierin und wohne in Bern.",
            [("User", "ist", "Vegetarierin"), ("User", "wohnt in", "Bern")],
        ),
        ("my birthday's 11 February", [("User", "birthday", "11 February")]),
        ("I'm a diabetic", [("User", "is", "diabetic")]),
        ("Thanks, Melanie! It means a lot to me.", []),
        ("I'm inspired by the sunsets of Lisbon", []),
        ("My goal is to give kids a home", []),
        ("Her name is Shadow!", []),
        ("book: physio Lindqvist, Tuesdays at six", []),
    ],
)
def test_in_talk_only_plain_statements_are_read(message: str, stated: list[tuple[str, str, str]]) -> None:
    assert said(f"{message}\n", FileRules(log=True, talk=True)) == stated


@pytest.mark.parametrize(
    ("line", "stated"),
    [
        ("- dentist of Nils: Dr. Weiler, 8 Mill Road", [("Nils", "dentist", "Dr. Weiler")]),
        (
            "- Zahnarzt Nils: Dr. Weiler, Gerber-Straße 8",
            [("Nils", "zahnarzt", "Dr. Weiler"), ("Dr. Weiler", "adresse", "Gerber-Straße 8")],
        ),
        ("- tests: `make probe`, needs the VPN", [("Keystone", "tests", "make probe")]),
        ("- broker: EMQX since 3 May, the old one is gone", [("Keystone", "broker", "EMQX")]),
        ("- retention: raw files must be gone by Friday", []),
        ("- cover: whoever is at the desk", []),
        ("- retry: six times, then it waits", []),
        ("- songs: Greensleeves, Danny Boy, one still open", []),
    ],
)
def test_the_value_of_a_pair_ends_before_what_is_told_of_it(
    line: str, stated: list[tuple[str, str, str]]
) -> None:
    assert [one for one in said(line, PROJECT) if one[1] != "address"] == stated


@pytest.mark.parametrize(
    ("sentence", "stated"),
    [
        ("Odile lives in Lyon, half days at the mill.", [("Odile", "lives in", "Lyon")]),
        ("Harbor depends on Kong, Redis and NATS.", ["Kong", "Redis", "NATS"]),
        ("Odile sits in Lyon, Bo in Lima.", [("Odile", "location", "Lyon")]),
        ("Odile chairs the Harbour Trust.", []),
        ("Die Aufsicht macht Frau Tepe.", []),
        ("Mia's brother is a baker.", [("Mia's brother", "is", "baker")]),
        ("The fee for the Harbour hall is 300 €.", [("Harbour hall", "fee", "300 €")]),
        ("Harbor payroll runs on Zento.", [("Harbor payroll", "runs on", "Zento")]),
        (
            "Odile is the archivist at Harbour Trust.",
            [("Odile", "role", "archivist"), ("Odile", "works at", "Harbour Trust")],
        ),
        ("Bo ist seit Mai für den Webshop zuständig.", [("Bo", "zuständig für", "Webshop")]),
        ("The »Badger« is Tom Rowe.", [("Badger", "", "Tom Rowe")]),
        (
            "Odile works for Zento as a designer.",
            [("Odile", "works for", "Zento"), ("Odile", "role", "designer")],
        ),
        (
            "Odile is Bo's sister and lives in Lyon.",
            [("Odile", "sister of", "Bo"), ("Odile", "lives in", "Lyon")],
        ),
        ("The vet is Dr. Rowe, 555-0199.", [("vet", "is", "Dr. Rowe"), ("Dr. Rowe", "phone", "555-0199")]),
        ("Redis listens on 6380, Kong on 5433.", [("Redis", "port", "6380"), ("Kong", "port", "5433")]),
        ("Hausverwaltung ist die Firma Kranz.", [("Hausverwaltung", "ist", "Firma Kranz")]),
        ("Kong depends on Redis only for locks.", [("Kong", "depends on", "Redis")]),
        ("Odile's ballet is cancelled until term starts on 7 May.", []),
        (
            "Frau Tepe leitet den Hort, Durchwahl 417.",
            [("Frau Tepe", "leitet", "Hort"), ("Frau Tepe", "durchwahl", "417")],
        ),
        ("Das Tor wird von Firma Kranz gewartet.", [("Tor", "gewartet von", "Firma Kranz")]),
        ("Odile's coach is Bo and her school is Northgate.", [("Odile", "coach", "Bo")]),
        (
            "Plumber → Tom Rowe 0770 900655",
            [("Plumber", "→", "Tom Rowe"), ("Tom Rowe", "phone", "0770 900655")],
        ),
        ("Harbor calls happen on Jitsi.", []),
        ("Send drafts to Odile.", []),
        ("'I am a vegan now' – Odile", []),
        ("Your main database listens on 5433.", []),
        ("Odile, his mum", []),
        ("Loki runs on fox-3, no, fox-4.", []),
        ("Erwin ist am 2.3. gestorben.", []),
        ("Die Handkasse macht Uschi.", []),
        ("Maeve = Declans Mutter, 78", [("Declan", "mutter", "Maeve")]),
        ("The balance is 0.", []),
        ("In Lyon Odile speaks French.", []),
        ("Every draft is checked by Odile.", []),
        ("Odile takes Dutch into French.", []),
        ("Parents' evening is on 9 June.", []),
        ("The old laptop is Odile's.", []),
        ("Mia uses Emacs until June.", []),
    ],
)
def test_a_clause_is_read_whole_or_not_at_all(sentence: str, stated: list[object]) -> None:
    found = said(sentence, PAGE)
    assert (found if not stated or isinstance(stated[0], tuple) else [one[2] for one in found]) == stated


@pytest.mark.parametrize(
    ("sentence", "stated"),
    [
        ("Spent the whole day with my cousin Odile at the fair.", [("User", "cousin", "Odile")]),
        ("If Bo's teacher Mrs Rowe asks, the form is in the bag.", [("Bo", "teacher", "Mrs Rowe")]),
        ("Met Bo Rowe, our electrician, on the stairs.", [("User", "electrician", "Bo Rowe")]),
        (
            "The landlord (Tom Rowe, 0770 900655) came by.",
            [("Tom Rowe", "is", "landlord"), ("Tom Rowe", "phone", "0770 900655")],
        ),
        ("Mit Dr. Weiler (Hausarzt) gesprochen.", [("Dr. Weiler", "ist", "Hausarzt")]),
        ("Does my cousin Odile still sail?", []),
        ("Dreamt that my cousin Odile had a boat.", []),
        ("His cousin (Odile) sails.", []),
        ("The meeting (Monday) was short.", []),
        ("Called Tom, my aunt, and Bo.", []),
    ],
)
def test_who_somebody_is_is_read_in_passing_whatever_happened(
    sentence: str, stated: list[tuple[str, str, str]]
) -> None:
    assert said(sentence, FileRules(log=True)) == stated


def test_a_roster_needs_no_sign_between_a_name_and_its_details() -> None:
    text = "## Crew\n- Odile Rowe (electrician) ext 4417\n- Bo desk 12, no badge yet\n"
    text += "- Ida 0770 900655\n- Tom left in May\n"
    assert said(text, PAGE) == [
        ("Odile Rowe", "role", "electrician"),
        ("Odile Rowe", "ext", "4417"),
        ("Bo", "desk", "12"),
        ("Ida", "phone", "0770 900655"),
    ]


def test_lines_below_a_thing_are_its_properties_without_a_colon() -> None:
    text = "- Clients\n  - Mill Bakery\n    - contact Odile, net 30\n- Host badger\n  Port 2202\n"
    assert said(text, PAGE) == [
        ("Mill Bakery", "contact", "Odile"),
        ("Mill Bakery", "net", "30"),
        ("badger", "port", "2202"),
    ]


def test_a_plain_noun_is_a_subject_where_its_value_is_an_identifier() -> None:
    assert said("staging lives in eu-north-1, same account.") == [("staging", "lives in", "eu-north-1")]
    assert said("chickens live in Devon, same farm.") == []


def test_what_we_use_belongs_to_the_project_of_the_page() -> None:
    found = said("We use Kong for routing.", PROJECT), said("I use Kong for routing.", PROJECT)
    assert found == ([("Keystone", "uses", "Kong")], [("User", "uses", "Kong")])


def test_a_time_is_the_time_of_what_the_page_names() -> None:
    assert said("standup: 9:45\nmeter: 18.442\n") == [("standup", "time", "9:45"), ("meter", "is", "18.442")]


def test_of_a_value_that_changed_the_last_is_read() -> None:
    assert said("- port: 3000 -> 3100 -> 3200 (since May)\n", PROJECT) == [("Keystone", "port", "3200")]


def test_in_a_log_what_something_is_must_be_a_value_a_trait_or_a_name() -> None:
    log = FileRules(log=True)
    text = "The heater in Lyon is a Vaillant dinosaur.\nThe rent is 850 €.\nOdile is vegan.\n"
    text += "Bo's teacher is Mrs Rowe.\n"
    stated = [("rent", "is", "850 €"), ("Odile", "is", "vegan"), ("Bo", "teacher", "Mrs Rowe")]
    assert said(text, log) == stated
    assert said(text.replace("The heater", "[fact] The heater"), log)[1:] == stated


def test_in_a_log_a_colon_begins_what_happened() -> None:
    log = FileRules(log=True)
    assert (
        said("- Sunday: bike tour, Bo 11 km alone\n- X-ray in Bonn: nothing torn\n- Library: new nurse", log)
        == []
    )


def test_several_pairs_on_a_line_are_of_what_the_first_one_names() -> None:
    assert said("- ledger: books of the shop, Go 1.23. Owner: Priya.") == [("ledger", "owner", "Priya")]
    assert said("- Languages: Polish, English. Talks in English.", USER) == [
        ("User", "languages", "Polish"),
        ("User", "languages", "English"),
    ]


@pytest.mark.parametrize(
    "message",
    [
        "we have 14 kids and 3 adults, how many cars",
        "The map is a lifesaver.",
        "my old draft is the culprit",
        "Kira needs the formula for the mean.",
        "Mine lives in the fridge.",
        "Montags ist bei uns Training.",
    ],
)
def test_what_a_task_is_about_is_no_fact_of_the_person(message: str) -> None:
    assert said(message, FileRules(log=True, talk=True)) == []


@pytest.mark.parametrize(
    "line",
    [
        "- Name: ____ Role: ____",
        "- Project: / Goal: / State:",
        "- Last updated: yesterday-ish",
        "- Cashier until 2021: Ms Quist",
        "Onkel Rolf gehört das Haus am See.",
        "The youngest is sixty-three.",
        "The target is 1.2 million.",
        "The app must run on Android 8.",
        "The party of Sam and Ode is on 6 June.",
        "Samir gets to the station by scooter.",
        "I'm allergic to nuts, as far as I know.",
    ],
)
def test_what_looks_like_a_statement_and_is_none_is_left(line: str) -> None:
    assert said(line) == []


@pytest.mark.parametrize(
    ("line", "stated"),
    [
        ("Rosa's allergic to soy.", ("Rosa", "allergic to", "soy")),
        ("redis01 port: 6380", ("redis01", "port", "6380")),
        ("Husband: Anton", ("User", "husband", "Anton")),
        ("Dad takes 5 mg of ramipril in the morning.", ("Dad", "takes", "5 mg of ramipril")),
        ("Dad's operation is planned for 3 March.", ("Dad's operation", "planned for", "3 March")),
        ("workers = 4096 # load test", ("workers", "is", "4096")),
    ],
)
def test_a_value_is_of_whom_the_line_names(line: str, stated: tuple[str, str, str]) -> None:
    assert said(line) == [stated]


_WORDS = st.sampled_from(
    "Rolf Odile's Tilda Müller the a der die das is has gehört gets takes macht of and und in 9 5 mg 3 May 12.11. "
    "~~x~~ ` `` - -> → = : , ; ( ) [[ ]] ** ___ # // … ... until since my User dog husband role port "
    "14:30 | > 's".split(" ")
)


@given(
    st.lists(_WORDS, max_size=12).map(" ".join),
    st.sampled_from([LOG, PROJECT, PAGE, USER, FileRules(log=True, talk=True)]),
)
def test_no_line_stops_the_reader(line: str, rules: FileRules) -> None:
    for triple in extract(f"# Keystone\n- {line}\n{line}", rules):
        assert triple.subject.strip() and triple.object.strip()


@pytest.mark.parametrize(
    "rows", ["host,ip,site\nfox-7,10.0.4.17,Jena", "host | ip | site\nfox-7 | 10.0.4.17 | Jena"]
)
def test_lines_with_one_header_and_equal_columns_are_a_table(rows: str) -> None:
    assert said(rows, FileRules()) == [("fox-7", "ip", "10.0.4.17"), ("fox-7", "site", "Jena")]


def test_the_first_column_of_a_table_may_only_count_its_rows() -> None:
    rows = "| nr | circuit | fuse |\n|---|---|---|\n| 3 | cooker | 32 A |"
    assert said(rows, FileRules()) == [("cooker", "fuse", "32 A")]


def test_what_a_form_has_as_an_example_is_not_read() -> None:
    assert (
        said("Template, please fill in:\nOwner: e.g. Max Sample\nLast incident: INC-000", FileRules()) == []
    )


@pytest.mark.parametrize("line", ["Sample from the website:", "Fill in: my father ___ in a bank"])
def test_nothing_is_read_of_a_form(line: str) -> None:
    assert said(f"{line}\nMy name is Peter.\nAddress: 12 Oak Lane\n\nOdile lives in Lyon.", FileRules()) == [
        ("Odile", "lives in", "Lyon")
    ]


@pytest.mark.parametrize(
    "text",
    [
        "host,ip,role\na,b\rc,d",
        'host,ip,role\n"a\nb",c,d\nx,y,z',
        "host,ip,role\n" + "x" * 200_000 + ",b,c",
    ],
    ids=["return in a line", "quote over lines", "huge cell"],
)
def test_what_only_looks_like_a_table_of_commas_breaks_nothing(text: str) -> None:
    page = text + "\n\nOdile lives in Lyon."
    (triple,) = [one for one in extract(page, FileRules()) if one.subject == "Odile"]
    assert page.split("\n")[triple.line - 1] == "Odile lives in Lyon."


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Unsere Bank ist die GLS. Sie spricht Türkisch.", [("User", "bank", "GLS")]),  # she is not the user
        (
            "Coach Vardan prefers chat over email, and her assistant Imre always copies everyone.",
            [("Coach Vardan", "preference", "chat over email")],
        ),
        ("Mo prefers tea, juice and coffee", [("Mo", "preference", "tea, juice and coffee")]),
        ("Team: Zoë (lead, Oslo), Kwame (backend, Accra)", [("Zoë", "role", "lead")]),
        ("Team: Kwame (backend, Accra), Yuki (design)", []),  # the team is not Kwame
        ("- dog of Nils: Baxter, bites", [("Nils", "dog", "Baxter")]),
        ("Rosa Baker runs the after-school club there.", [("Rosa Baker", "runs", "after-school club")]),
        ("The service contract ends on 2027-03-31.", [("service contract", "ends", "2027-03-31")]),
        (
            "- Tilda: Patenkind, geb. 11.9.2019",
            [("User", "patenkind", "Tilda"), ("Tilda", "born", "11.9.2019")],
        ),
        ("- Idris: son, nickname Pip", [("User", "son", "Idris"), ("Pip", "", "Idris")]),
        (
            "- My mother Graciela: phone 0161 496 0182",
            [("User", "mother", "Graciela"), ("Graciela", "phone", "0161 496 0182")],
        ),
        (
            "Our landlord is Mr. Okonjo, reachable at 0171 5550199.",
            [("User", "landlord", "Mr. Okonjo"), ("Mr. Okonjo", "phone", "0171 5550199")],
        ),
        (
            "Mein Hausarzt ist Dr. Tammen, 0421 5550133.",
            [("User", "hausarzt", "Dr. Tammen"), ("Dr. Tammen", "phone", "0421 5550133")],
        ),
        ("The plumber is Radek from Brno.", [("plumber", "is", "Radek")]),
        ("We moved in with Lena last month, she lives in Kassel.", []),  # nobody is called We
        ("Blutgruppe A negativ, allergisch gegen Penicillin.", []),
        (
            "Signal upstairs: Kestrel5, downstairs: KestrelIoT",
            [("Signal upstairs", "is", "Kestrel5"), ("downstairs", "is", "KestrelIoT")],
        ),
    ],
)
def test_each_value_is_of_whom_it_is_said(text: str, stated: list[tuple[str, str, str]]) -> None:
    assert said(f"{text}\n", FileRules()) == stated


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        (
            "I live in Utrecht with my husband Joost and our two kids, Lotte (8) and Bram (5).",
            [("User", "lives in", "Utrecht")],
        ),
        ("- Works at: Brightwater Labs as a staff engineer", [("User", "works at", "Brightwater Labs")]),
        ("- Lives in: Gdynia since 2014", [("User", "lives in", "Gdynia")]),
        ("- Piotr: brother, lives in Oslo since 2014", [("Piotr", "lives in", "Oslo")]),
        ("## Team\n- Ines Faro (PM), ines@example.org", [("Ines Faro", "email", "ines@example.org")]),
    ],
)
def test_what_stands_behind_a_place_an_employer_or_a_name_is_no_part_of_it(
    text: str, stated: list[tuple[str, str, str]]
) -> None:
    found = said(text, USER)
    assert set(stated) <= set(found)
    places = {object_ for _, predicate, object_ in found if predicate in ("lives in", "works at", "address")}
    assert places <= {object_ for _, _, object_ in stated}
    assert not any("(" in part for one in found for part in one)


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Our kids are Lotte and Bram.", [("User", "kids", "Lotte"), ("User", "kids", "Bram")]),
        (
            "I live in Utrecht with Joost and our two kids, Lotte (8) and Bram (5).",
            [
                ("User", "kids", "Lotte"),
                ("Lotte", "age", "8"),
                ("User", "kids", "Bram"),
                ("Bram", "age", "5"),
            ],
        ),
        ("My two sons are called Ole and Finn.", [("User", "sons", "Ole"), ("User", "sons", "Finn")]),
        (
            "We have three cats: Miso, Tofu and Udon",
            [("User", "cats", one) for one in ("Miso", "Tofu", "Udon")],
        ),
        ("- Our kids: Lotte (8) and Bram (5)", [("User", "kids", "Lotte"), ("User", "kids", "Bram")]),
        ("Unsere Kinder heißen Lotte und Bram.", [("User", "kinder", "Lotte"), ("User", "kinder", "Bram")]),
        ("My parents are Ana and Rui, and they live in Faro.", [("User", "parents", "Ana")]),
    ],
)
def test_all_of_several_relatives_or_pets_are_named(text: str, stated: list[tuple[str, str, str]]) -> None:
    for rules in (USER, FileRules("User", talk=True), FileRules()):
        assert set(stated) <= set(said(text, rules)), rules


@pytest.mark.parametrize(
    "text",
    [
        "My parents are Polish and German.",
        "Our kids are Lotte.",
        "Our cats are Siamese and Persian.",
        "Our kids are in Berlin and Paris.",
        "Our kids are not Lotte and Bram.",
        "His kids are Lotte and Bram.",
        "Our kids, Lotte thinks, and Bram agrees, are fine.",
        "Our services are Kong and Redis.",
    ],
)
def test_what_is_no_list_of_relatives_names_none(text: str) -> None:
    kin = {"kids", "parents", "cats"}
    assert [one for one in said(text, USER) if one[0] == "User" and one[1] in kin] == []


@pytest.mark.parametrize(
    ("text", "birthday"),
    [
        ("Jonas hat am 10. November um 15 Uhr einen Zahnarzttermin.", ""),
        ("Jonas hat im Mai frei.", ""),
        ("Jonas wird am 10. November operiert.", ""),
        ("Der Vertrag wird am 3. Mai unterschrieben.", ""),
        ("Das Auto wird am 3. Mai vorgeführt, Jonas hat am 4. Mai Prüfung.", ""),
        ("Jonas hat am 22. November Geburtstag.", "22. November"),
        ("Tilda turns 40 on 21 June.", "21 June"),
    ],
)
def test_only_a_sentence_that_says_so_tells_a_birthday(text: str, birthday: str) -> None:
    told = [value for _, key, value in said(f"- {text}\n", USER) if key in ("birthday", "geburtstag")]
    assert told == ([birthday] if birthday else [])
