"""What a person does not want stored is in no file, and a wish to forget is answered with the way to do it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nanoclaw_memory.intake.memory_requests import asks_not_to_store, asks_to_forget
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.memory.remote_spool import RemoteSpool
from nanoclaw_memory.types import Scope, ToolCall

SECRET = "Jonas wants to sell the Zwickau practice. keep that to yourself, don't store it"


@pytest.mark.parametrize(
    "message",
    [
        SECRET,
        "off the record: we close in May",
        "Das bleibt unter uns, nicht speichern",
        "My PIN is four four seven one, don't store it",
        "Swantje moved out. Don't store that.",
        "She is ill, please don't record that anywhere",
        "do not keep this conversation",
        "please don't remember this",
        "don't put this in your memory",
        "Anna ist schwanger, bitte nicht speichern",
        "Merk dir das nicht",
        "Behalte das bitte für dich",
        "Between us: Bram has applied for a job in Malmö. Please don't store that anywhere.",
        "Confidential: we sell the summer house. Don't save this please.",
        "Unter uns: Katrin ist schwanger. Bitte nirgends speichern",
        "Unter uns: der Chef geht im Juni. Das bitte nicht speichern",
        "Das bleibt bitte unter uns: ich habe gekündigt",
        "Das muss unter uns bleiben: Jonas ist durchgefallen",
        "Our margin is 41 percent. Please leave that out of your memory",
        "Ich möchte nicht, dass du das speicherst: mein Gehalt liegt bei 72.000",
        "What I just said about Clara must not be stored",
        "This is off the record, but please be frank.",
        "Off the record, and I mean it: Jonas is leaving",
        "Don't save our conversation.",
        "I have much to tell about Jonas. " * 400 + "Please don't store this conversation.",
        "This isn't for the record, but Oskar's firm is nearly broke.",
        "I'd rather you didn't keep this: my sister is in rehab.",
        "Nicht ins Gedächtnis schreiben: der Jonas hat Schulden.",
        "Please forget what I'm about to say, Nele has been expelled.",
        "not for storage: the alarm code is on the fridge",
        "keep this confidential: we are selling the house",
        "Das bitte vertraulich behandeln: Papa verkauft das Haus.",
        "Vergiss bitte gleich wieder, was ich dir jetzt erzähle: Otto ist krank.",
        "Frage, und vergiss das bitte danach: ist ein Burnout versichert?",
        "Unter uns, das bleibt nicht im Gedächtnis: wir verkaufen das Haus",
        "Behalt das bitte nicht: ich nehme seit März Antidepressiva",
        "Forget I said this afterwards: dad's in rehab",
        "incognito please: I'm planning to propose on the 12th",
    ],
)
def test_a_person_who_does_not_want_the_talk_itself_kept_is_understood(message: str):
    assert asks_not_to_store(message)


@pytest.mark.parametrize(
    "message",
    [
        "don't store the token in git",
        "passwords: don't store them in plain text",
        "compute the hash, don't store it",
        "rename the file and don't save it",
        "don't save it as a draft",
        "catch the exception but don't log it",
        "I don't remember that",
        "we don't store it in the database",
        "We must not store it longer than 30 days",
        "Why don't you store it in Redis?",
        "the difference between us and them",
        "unter uns wohnt eine Familie",
        "Die Datei nicht speichern",
        'He wrote: "this is off the record, so do not tell it to anybody of the other team"',
        "> keep this to yourself\nwhat does he mean?",
        "Translate into German: Please don't store this anywhere.",
        "My boss writes: please don't store that anywhere.",
        "From: Eve\nSubject: talks\n\nPlease don't store that anywhere.",
        "Nicht im Cache speichern, sondern auf die Platte",
        "keep it off the main branch",
        "that stays between the two services",
        "You don't remember that?",
        "Translate this mail:\n\nDear all,\nplease don't store that."
        + " We sell gauges." * 600
        + "\n\nKind regards\nEve",
        "The journalist said it was off the record, but printed it anyway.",
        "Keep the config confidential in the vault.",
        "Keep it private, name the three dates and agree on a time.",
        "This isn't for production: use the staging key.",
        "Please forget about the deadline, it moved to May.",
        "I forget what I'm about to do every morning.",
        "compute the hash, don't store it, but print it",
    ],
)
def test_what_is_said_of_files_and_values_or_by_others_is_no_such_wish(message: str):
    assert not asks_not_to_store(message)


WISHES = Path(__file__).parents[2] / "bench" / "data" / "wishes"


def texts_of(*names: str) -> list[str]:
    return [
        line for name in names for line in (WISHES / name).read_text("utf-8").splitlines() if line.strip()
    ]


@pytest.mark.parametrize(
    ("names", "least"), [(("wishes.txt",), 0.93), (("fresh.txt",), 0.96), (("fresh_2.txt",), 0.7)]
)
def test_most_wishes_of_several_authors_are_understood(names: tuple[str, ...], least: float):
    wishes = texts_of(*names)
    assert sum(map(asks_not_to_store, wishes)) >= least * len(wishes)


def test_nothing_that_only_sounds_alike_is_taken_for_a_wish():
    others = texts_of("lookalikes.txt", "lookalikes_2.txt", "noforget.txt", "own.txt", "notown.txt")
    assert [text for text in others if asks_not_to_store(text)] == []


def test_nearly_all_wishes_that_nothing_was_built_from_are_understood():
    unkept, forgotten, others = (texts_of(f"apart_{kind}.txt") for kind in ("wishes", "forget", "others"))
    assert sum(map(asks_not_to_store, unkept)) >= 0.92 * len(unkept)
    assert sum(map(asks_to_forget, forgotten)) >= 0.92 * len(forgotten)
    assert sum(asks_not_to_store(text) or asks_to_forget(text) for text in others) <= 0.05 * len(others)


def anywhere(home: Path, word: bytes) -> list[Path]:
    return [path for path in home.rglob("*") if path.is_file() and word in path.read_bytes()]


def hook(ncm: Callable[..., Any], name: str, **fields: Any) -> str:
    payload = {"session_id": "s1", "hook_event_name": name, "cwd": "/", **fields}
    return str(ncm("hook", name, stdin=json.dumps(payload)).out)


def test_a_message_off_the_record_and_its_answer_leave_no_trace_of_hooks(ncm, home: Path):
    ncm("init")
    told = hook(ncm, "UserPromptSubmit", prompt=SECRET)
    assert "[KEEPING]" in told and "not archive this exchange" in told
    assert anywhere(home, b"Zwickau") == []
    hook(ncm, "Stop", last_assistant_message="I will not tell anybody about Zwickau.")
    hook(ncm, "UserPromptSubmit", prompt="The vaccine fridge is in room three")
    hook(ncm, "Stop", last_assistant_message="Noted: room three.")
    hook(ncm, "SessionEnd", reason="other")
    assert anywhere(home, b"Zwickau") == []
    assert "room three" in ncm("--session", "s2", "turn", "Where is the vaccine fridge?").out


def test_an_exchange_that_is_reported_whole_is_not_archived_and_says_so(ncm, home: Path):
    ncm("init")
    added = ncm(
        "exchange", "add", "--user", SECRET, "--agent", "I keep Zwickau to myself.", "--session", "s1"
    )
    assert added.out.strip() == "not archived" and "asked not to keep it" in added.err
    assert "[KEEPING]" in ncm("turn", SECRET, "--session", "s1").out
    assert anywhere(home, b"Zwickau") == []


@pytest.mark.parametrize(
    "wish", ["This isn't for the record, but", "not for storage:", "Please forget what I'm about to say,"]
)
def test_a_wish_that_introduces_the_statement_keeps_it_out_of_the_home(ncm, home: Path, wish: str):
    ncm("init")
    hook(ncm, "UserPromptSubmit", prompt=f"{wish} the Zwickau practice is nearly broke.")
    hook(ncm, "Stop", last_assistant_message="I am sorry about Zwickau.")
    hook(ncm, "SessionEnd", reason="other")
    assert anywhere(home, b"Zwickau") == []


def test_an_archived_transcript_is_without_it_and_its_answer(memory: Memory, home: Path, tmp_path: Path):
    said = [("user", "Where is the fridge?"), ("assistant", "In room three.")]
    said += [("user", SECRET), ("assistant", "Zwickau it is."), ("assistant", "Nobody will hear of Zwickau.")]
    said += [("user", "And the freezer?"), ("assistant", "In room four.")]
    path = tmp_path / "s1.jsonl"
    rows = [{"type": who, "sessionId": "s1", "message": {"role": who, "content": text}} for who, text in said]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    written = memory.before_compaction(str(path))
    assert written is not None
    text = (home / "workspace" / written.path).read_text()
    assert "room three" in text and "room four" in text
    assert anywhere(home, b"Zwickau") == []


@pytest.mark.parametrize(
    "message",
    [
        "thats a secret, please forget it",
        "Bitte vergiss das wieder",
        "Vergiss bitte, was ich über Veit gesagt habe",
        "Kannst du bitte das mit Veit wieder vergessen?",
        "Lösch bitte alles, was du über Philippa weißt",
        "Vergiss das mit der Probezeit bitte wieder",
        "Please delete all you have stored.",
        "Can you delete everything you know about my ex?",
        "Now forget everything you have stored about Ben",
    ],
)
def test_a_wish_to_forget_names_the_command_that_does_it(ncm, message: str):
    ncm("init")
    assert asks_to_forget(message)
    assert "ncm forget" in ncm("turn", message).out


@pytest.mark.parametrize(
    "message",
    ["forget it, let's do the other one", "forget that, use tabs instead", "please don't forget it",
     "don't forget that we meet at nine", "please forget that approach", "vergiss nicht das Brot",
     "Lösch bitte alle Dateien in tmp", "Don't forget what I said about the harbour",
     "Delete everything you generated"],
)  # fmt: skip
def test_an_idiom_a_correction_or_a_reminder_is_no_wish_to_forget(ncm, message: str):
    ncm("init")
    assert "[KEEPING]" not in ncm("turn", message).out


@pytest.mark.parametrize(
    "message",
    [
        "Das darfst du dir nicht merken: Stefan hat sich in Ulm beworben.",
        "Das darfst du dir aber nicht merken.",
        "Erzähl das keinem, aber Stefan hat gekündigt.",
        "Erzähl das bitte niemandem weiter: Lena ist verliebt.",
        "Sag das keinem: wir ziehen um.",
        "Das war privat, bitte wieder vergessen: Stefan hat Schulden.",
        "Ne garde pas ça en mémoire : Paul a perdu son travail.",
        "N'enregistre pas ça, s'il te plaît : je suis enceinte.",
        "Ne le dis à personne : on déménage.",
        "Ne note pas ce que je viens de dire.",
        "No lo guardes, por favor: estoy embarazada.",
        "No guardes esto: mi hermano tiene deudas.",
        "No se lo digas a nadie: nos mudamos.",
        "No recuerdes esto, por favor.",
        "Non memorizzarlo, per favore: sono incinta.",
        "Non salvare questo: mio fratello ha debiti.",
        "Non dirlo a nessuno: ci trasferiamo.",
        "Don't tell anyone, but Stefan quit his job.",
        "Tell nobody: we're moving.",
        "Don't write this down anywhere: she's pregnant.",
        "You mustn't remember this: he failed the exam.",
        "This was private, please forget it again: he has debts.",
        "Que ça reste entre nous : je démissionne.",
        "Que quede entre nosotros: dejo el trabajo.",
        "Resti tra noi: lascio il lavoro.",
        "Niet opslaan alsjeblieft: ik ben zwanger.",
    ],
)
def test_whoever_denies_keeping_or_telling_this_is_understood_in_their_language(message: str):
    assert asks_not_to_store(message)


@pytest.mark.parametrize(
    "message",
    [
        "Vergiss nicht, die Oma anzurufen.",
        "Vergiss nicht: am Freitag kommt der Schornsteinfeger um 8 Uhr.",
        "don't forget to water the plants",
        "Merk dir bitte: Lena hat dienstags Klavier.",
        "remember that we don't keep the receipts",
        "remember that we don't tell clients the price first",
        "Merk dir, dass wir die Belege nicht aufheben.",
        "Ich kann mir das nicht merken.",
        "Das darf man nicht vergessen.",
        "Sag keinem Kunden den Preis vor der Prüfung.",
        "Erzähl mir einen Witz.",
        "Wir erzählen das den Kindern nicht, sie schlafen schon.",
        "Sie hat es niemandem erzählt.",
        "He told nobody about the exam.",
        "Nobody told me that.",
        "Don't tell me the result yet.",
        "Sag mir nicht, dass der Bus weg ist!",
        "N'oublie pas d'appeler mamie.",
        "Note que la réunion est lundi.",
        "Ne garde pas les tickets de caisse, on n'en a plus besoin.",
        "No olvides llamar a la abuela.",
        "No guardes los recibos del chorro de agua.",
        "Guarda esto: la reunión es el lunes.",
        "Non dimenticare di chiamare la nonna.",
        "Non salvare il file nella cartella vecchia.",
        "Ricordati che non teniamo gli scontrini.",
        "On ne garde pas les factures plus de dix ans.",
        "No se lo digas en inglés, dilo en español.",
        "Don't tell the user the stack trace, log it.",
        "Das war privat bezahlt, bitte nicht in die Vereinskasse buchen.",
        "Erzähl das keinem Kind so, das ist zu schwierig formuliert.",
        "Non è vero che mio zio non lo guarda.",
        "Don't write the tests down in the README.",
        "Never tell anyone our API key in the docs.",
        "compute it, don't note it",
        "Never note that down in the README",
        "No lo guardes en la carpeta vieja",
        "Ne garde pas ça dans le frigo",
        "Incognito-Modus funktioniert in Safari nicht, bitte beheben.",
        "no note that please",
        "Das private Repo kannst du bitte vergessen: wir nutzen das öffentliche.",
    ],
)
def test_reminders_and_what_is_not_kept_elsewhere_are_no_wish_about_memory(message: str):
    assert not asks_not_to_store(message) and not asks_to_forget(message)


def test_a_wish_to_forget_is_not_recalled_itself(memory: Memory):
    memory.after_turn("Vergiss bitte, was ich über Tim gesagt habe, der kommt nicht mehr.", "Okay.")
    memory.after_turn("Tante Rosa bringt am Freitag den Salat mit.", "Okay.")
    for message in (
        "Tim kommt nicht mehr, oder?",
        "Was habe ich über Tim gesagt?",
        "Wer bringt den Salat mit?",
    ):
        assert "Vergiss bitte" not in memory.for_session("next").before_turn(message).text
    assert "Salat" in memory.for_session("other").before_turn("Wer bringt am Freitag den Salat mit?").text


@pytest.mark.parametrize(
    "message",
    [
        "dont put this anywhere: priya told me they might cut the Zwickau budget in q2",
        "don't note this anywhere pls, the Zwickau site closes",
        "keep this out of memory pls. I applied in Zwickau",
        "pls dont save this msg. we sell Zwickau in may",
        "bitte nirgendwo ablegen: Zwickau wird verkauft",
        "the Zwickau deal is off, and pls dont rember this one",
        "Priya (dont write this down) says Zwickau is next",
        "n'enregistre pas ce message stp : on ferme Zwickau",
        "no lo apuntes en ningún sitio: cierran Zwickau",
        "non segnartelo da nessuna parte, Zwickau chiude",
        "sla dit nergens op aub, Zwickau gaat dicht",
    ],
)
def test_what_somebody_does_not_want_kept_in_their_own_words_is_in_no_file(ncm, home: Path, message: str):
    ncm("init")
    assert "[KEEPING]" in hook(ncm, "UserPromptSubmit", prompt=message)
    hook(ncm, "Stop", last_assistant_message="I will not mention Zwickau.")
    hook(ncm, "UserPromptSubmit", prompt="What are we working on?")
    hook(ncm, "Stop", last_assistant_message="On the budget.")
    hook(ncm, "SessionEnd", reason="other")
    assert "Zwickau" not in ncm("--session", "s2", "turn", "What do you know about Zwickau?").out
    assert anywhere(home, b"Zwickau") == []


@pytest.mark.parametrize(
    "message",
    [
        "pls delete the thing about my landlord from your memory",
        "wipe the landlord thing please",
        "lösch bitte das mit dem Vermieter",
        "what I told you about the landlord, can you erase it?",
        "The rent went up. Pls get rid of what you know about my landlord. And what's for lunch?",
    ],
)
def test_a_wish_to_forget_gets_the_way_to_do_it_and_never_the_thing(memory: Memory, message: str):
    memory.store("My landlord Mr. Quill sues us over the rent; mein Vermieter klagt", "fact")
    memory.graph.upsert("landlord", "name", "Quill")
    memory.after_turn("My landlord Mr. Quill sues us over the rent", "That is hard.")
    told = memory.for_session("next").before_turn(message).text
    assert "ncm forget" in told
    assert "Quill" not in told


@pytest.mark.parametrize(
    "message",
    [
        "don't save the file yet",
        "the cache should not store this header",
        "keep this out of the public API",
        "delete the landlord table",
        "forget about the deadline, we have time",
        "nobody remembers the password policy",
        "Why do neural networks forget what they learnt?",
        "Speicher die Datei noch nicht.",
        "Lösch bitte die Zeile mit dem Vermieter aus der Tabelle.",
        "Never store passwords in the log.",
    ],
)
def test_rules_for_code_files_and_things_are_no_request_about_memory(message: str):
    assert not asks_not_to_store(message) and not asks_to_forget(message)


def test_a_tool_that_is_called_for_a_message_off_the_record_is_not_noted(ncm, memory: Memory, home: Path):
    memory.before_turn("dont put this anywhere: we sell the practice")
    memory.report_tools([ToolCall("Bash", "grep Zwickau sales.csv")])
    memory.after_turn("dont put this anywhere: we sell the practice", "I see.")
    hook(ncm, "UserPromptSubmit", prompt="dont put this anywhere: we sell the practice")
    memory.for_session("s1").report_tools([ToolCall("Bash", "grep Zwickau sales.csv")])
    assert anywhere(home, b"Zwickau") == []


def test_the_title_that_a_client_gave_a_talk_off_the_record_is_not_archived(
    memory: Memory, home: Path, tmp_path: Path
):
    said = [("user", "Where is the fridge?"), ("assistant", "In room three.")]
    said += [("user", "pls dont save this msg. we sell Zwickau"), ("assistant", "Zwickau, I see.")]
    rows = [{"type": who, "sessionId": "s1", "message": {"role": who, "content": text}} for who, text in said]
    rows.append({"type": "summary", "summary": "Sale of Zwickau"})
    path = tmp_path / "s1.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert memory.before_compaction(str(path)) is not None
    assert anywhere(home, b"room three") != []
    assert anywhere(home, b"Zwickau") == []


def test_a_thin_client_spools_a_mark_for_a_message_off_the_record_and_its_answer(tmp_path: Path):
    spool, scope = RemoteSpool(tmp_path), Scope(session_id="s1")
    spool.note(scope, "prompt", "dont put this anywhere: we sell Zwickau")
    spool.note(scope, "answer", "Zwickau, I see.")
    spool.note(scope, "prompt", "Where is the fridge?")
    spool.note(scope, "answer", "In room three.")
    assert anywhere(tmp_path, b"Zwickau") == []
    assert anywhere(tmp_path, b"room three") != []
