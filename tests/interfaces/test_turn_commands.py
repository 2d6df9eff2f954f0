"""Turns, exchanges, sessions and lessons on the command line; third-party plugins."""

from __future__ import annotations

import fcntl
import json
import re
from pathlib import Path

import pytest

from nanoclaw_memory.memory import Memory
from nanoclaw_memory.memory.resources import Resources
from nanoclaw_memory.types import Turn

PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"


def test_turn_prints_blocks_and_json_has_the_promised_keys(ncm):
    ncm("init")
    ncm("graph", "add", "Keystone", "port", "3000", "--category", "project")
    said = ncm("turn", "What port does Keystone run on?")
    assert said.code == 0
    assert "• Keystone.port = 3000" in said.out
    assert "continuity: " in said.err
    result = ncm("turn", "What port does Keystone run on?", "--session", "s7", "--json").json
    assert {"blocks", "skipped", "notes", "took_ms"} <= set(result)
    assert set(result["blocks"][0]) == {"label", "text", "tokens"}
    assert {"plugin", "reason"} == set(result["skipped"][0])


def test_turn_reads_a_long_message_from_standard_input(ncm):
    ncm("init")
    assert ncm("turn", "-", "--json", stdin="hello " * 200_000).json["blocks"] == []


def test_exchange_add_gives_an_id_and_later_sessions_remember(ncm):
    ncm("init")
    added = ncm(
        "exchange", "add", "--user", "The Zephyr launch is in October", "--agent", "Noted", "--session", "s1"
    )
    assert added.code == 0
    more = ncm("exchange", "add", "-u", "And the party?", "-a", "Friday", "--session", "s1", "--json").json
    assert (more["id"], more["new"]) == (2, True)
    assert "in October" in ncm("turn", "When is the Zephyr launch?", "--session", "s2").out
    listed = ncm("sessions", "list", "--json").json["sessions"]
    assert [(one["session_id"], one["exchanges"]) for one in listed] == [("s1", 2)]
    assert len(ncm("sessions", "show", "s1", "--json").json["exchanges"]) == 2
    hits = ncm("sessions", "search", "Zephyr", "--json").json["hits"]
    assert hits[0]["exchange_id"] == 1
    assert ncm("sessions", "show", "nope").code == 2


def test_state_survives_between_processes(ncm_process):
    ncm_process("init")
    ncm_process("exchange", "add", "-u", "Fix it", "-a", "Pushed to main", "--session", "a")
    ncm_process("exchange", "add", "-u", "Don't push to main", "-a", "Sorry", "--session", "a")
    ran = ncm_process("turn", "Push the other fix", "--session", "b")
    assert "• Don't push to main [consent]" in ran.out
    assert ncm_process("lessons", "list", "--json").json["lessons"][0]["injections"] == 1


def test_an_empty_exchange_and_a_bad_moment_are_refused(ncm):
    ncm("init")
    assert ncm("exchange", "add", "--user", " ", "--agent", "").code == 2
    assert ncm("exchange", "add", "--user", "x", "--at", "soon").code == 2
    assert ncm("turn", "x", "--session", "s" * 300).code == 2


def test_lessons_can_be_taught_shown_judged_and_retired(ncm):
    ncm("init")
    added = ncm(
        "lessons", "add", "Ask before deleting a branch", "--when", "clean up branches", "--json"
    ).json
    assert {"id", "trigger", "lesson", "principle", "effectiveness", "injections", "state"} <= set(added)
    assert ncm("lessons", "outcomes", str(added["id"]), "--good").code == 2
    ncm("turn", "Delete the old branch", "--session", "s")
    assert ncm("lessons", "outcomes", str(added["id"]), "--good").code == 0
    shown = ncm("lessons", "show", str(added["id"])).out
    assert "helped (good feedback" in shown
    assert ncm("lessons", "retire", str(added["id"]), "--reason", "done", "--json").json["state"] == "retired"
    assert ncm("lessons", "list", "--state", "active").out.strip() == "No lessons yet."
    assert ncm("lessons", "list", "--state", "odd").code == 2
    assert ncm("lessons", "show", "99").code == 2


def test_the_list_of_lessons_counts_what_is_only_noted(ncm):
    ncm("init")
    ncm("lessons", "add", "Ask before deleting a branch")
    ncm(
        "exchange",
        "add",
        "--user",
        "Load the crates",
        "--agent",
        "The crates go to hall 4.",
        "--session",
        "s",
    )
    said = "No, that is wrong, the crates go to hall 7 just this once."
    ncm("exchange", "add", "--user", said, "--agent", "Noted.", "--session", "s")
    assert len(ncm("lessons", "list", "--json").json["lessons"]) == 2
    listed = ncm("lessons", "list").out
    assert "branch" in listed and "hall 7" not in listed and "1 more noted only" in listed
    assert "hall 7" in ncm("lessons", "list", "--state", "candidate").out


@pytest.mark.parametrize(
    "message", ["swap the disk now", "I am swapping the disk now", "swapped disks yesterday, again?"]
)
def test_every_form_of_its_words_calls_for_a_lesson(ncm, message):
    lesson = "Shut the staging gateway down before you swap disks"
    ncm("init")
    ncm("lessons", "add", lesson, "--when", "swap disks")
    assert lesson in ncm("turn", message).out


# ---- plugins of others ----


def example() -> str:
    """The plugin that docs/plugins.md shows."""
    found = re.search(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert found
    return found.group(1)


def install(home: Path, name: str, source: str) -> None:
    folder = home / "extensions" / name
    folder.mkdir(parents=True)
    (folder / "plugin.py").write_text(source, encoding="utf-8")


def allow(home: Path, *names: str, **settings) -> None:
    tree = {"plugins": {"allow": ["graph-memory", *names], "entries": settings}}
    (home / "nanoclaw.json").write_text(json.dumps(tree), encoding="utf-8")


def test_the_documented_plugin_runs_once_a_person_allows_it(ncm, home):
    ncm("init")
    install(home, "open-tasks", example())
    (home / "workspace" / "memory" / "active-context.md").write_text("## Open Questions\n- Which queue?\n")
    assert "OPEN TASKS" not in ncm("turn", "What is open?").out
    allow(home, "open-tasks", **{"open-tasks": {"most": 1, "priority": 1}})
    said = ncm("turn", "What is open?")
    assert said.out.startswith("[OPEN TASKS]\n")
    assert "• Which queue?" in said.out


def test_a_folder_alone_runs_nothing(ncm, home):
    ncm("init")
    install(home, "evil", "raise SystemExit('ran')")
    said = ncm("turn", "hello")
    assert said.code == 0
    assert "evil" not in said.err


def test_a_project_file_cannot_allow_a_plugin(ncm, home, tmp_path, monkeypatch):
    ncm("init")
    install(home, "evil", "print('ran')\ndef plugin(context): raise ValueError('ran')")
    project = tmp_path / "project"
    project.mkdir()
    (project / "nanoclaw.json").write_text(json.dumps({"plugins": {"allow": ["evil"]}}))
    monkeypatch.chdir(project)
    said = ncm("turn", "hello")
    assert said.code == 0
    assert "evil" not in said.err


def test_a_plugin_that_cannot_be_loaded_is_named_and_the_turn_succeeds(ncm, home):
    ncm("init")
    install(home, "broken", "import no_such_module")
    install(home, "odd", "def plugin(context): return 42")
    allow(home, "broken", "odd", "missing", "../../etc")
    result = ncm("turn", "hello", "--json")
    reasons = {note["plugin"]: note["reason"] for note in result.json["notes"]}
    assert result.code == 0
    assert "ModuleNotFoundError" in reasons["broken"]
    assert "not a Plugin" in reasons["odd"]
    assert "no installed package offers it" in reasons["missing"]
    assert "a plugin's name is" in reasons["../../etc"]


def test_a_plugin_that_hangs_raises_prints_or_floods_never_spoils_the_turn(ncm_process, home):
    ncm_process("init")
    head = "from nanoclaw_memory.turn.plugin import Draft, Plugin\n"
    acts = {
        "hangs": "import time; time.sleep(600)",
        "raises": "raise RuntimeError('no')",
        "prints": "print('noise'); return Draft('NOISE', ('ok',))",
        "floods": "return Draft('FLOOD', ('word ' * 2_000_000,))",
    }
    for name, act in acts.items():
        install(
            home,
            name,
            f"{head}class P(Plugin):\n    timeout_ms = 100\n    def before_turn(self, message, moment):\n"
            f"        {act}\ndef plugin(context): return P()\n",
        )
    allow(home, *acts)
    ran = ncm_process("turn", "hello", "--json")
    assert ran.code == 0
    result = ran.json
    reasons = {note["plugin"]: note["reason"] for note in result["skipped"] + result["notes"]}
    assert "time limit of 100 ms" in reasons["hangs"]
    assert "RuntimeError: no" in reasons["raises"]
    assert "dropped" in reasons["prints"]
    assert "cut" in reasons["floods"]
    assert {block["label"] for block in result["blocks"]} == {"NOISE", "FLOOD"}


# ---- explained, and what it cost ----


def rows(home: Path) -> list[tuple]:
    """What a turn may leave behind: injections, lines given, warmth of facts, injections of lessons."""
    import sqlite3

    found = []
    for database, sql in (
        ("continuity", "SELECT * FROM injections"),
        ("continuity", "SELECT * FROM given_lines"),
        ("continuity", "SELECT * FROM session_starts"),
        ("continuity", "SELECT * FROM graph_answers"),
        ("facts", "SELECT id, activation, access_count FROM facts"),
        ("facts", "SELECT * FROM vector_outcomes"),
        ("facts", "SELECT * FROM growth_vectors"),
    ):
        with sqlite3.connect(home / "data" / f"{database}.db") as connection:
            found += connection.execute(sql).fetchall()
    return found


def test_an_explained_turn_gives_reasons_and_leaves_nothing_behind(ncm, home):
    ncm("init")
    ncm("graph", "add", "Keystone", "port", "3000", "--category", "project")
    ncm("lessons", "add", "Ask before you restart Keystone", "--when", "restart keystone")
    ncm("exchange", "add", "-u", "Which queue has Keystone?", "-a", "RabbitMQ.", "--session", "s0")
    ncm("turn", "hello", "--session", "s1")
    before = rows(home)
    asked = "Which port has Keystone, and may I restart Keystone? Which queue?"
    said = ncm("turn", asked, "--session", "s1", "--explain")
    assert re.search(r"• Keystone\.port = 3000 \(since .*\)\n      because score ", said.out)
    assert re.search(
        r"  • Ask before you restart Keystone \[consent\] \(.*\)\n      because score ", said.out
    )
    result = ncm("turn", asked, "--session", "s1", "--explain", "--json").json
    assert {one["plugin"] for one in result["explained"]} == {
        "policies",
        "graph-memory",
        "recall",
        "continuity",
        "stability",
        "growth-vectors",
    }
    assert set(result["explained"][0]) == {"plugin", "tokens", "ms", "silent", "lines", "nearly"}
    assert rows(home) == before
    assert ncm("turn", asked, "--session", "s1", "--json").json["blocks"] == result["blocks"]
    assert rows(home) != before


def test_explain_says_what_nearly_made_it(ncm, home):
    ncm("init")
    ncm("graph", "add", "Keystone", "port", "3000", "--category", "project")
    ncm("turn", "Which port has Keystone?", "--session", "s1")
    again = ncm("turn", "Which port has Keystone?", "--session", "s1", "--explain").out
    assert "graph-memory  silent: this session was given all of it already" in again
    assert re.search(r"not: • Keystone\.port = 3000 .*\(this session was given it already\)\n", again)


def test_a_plugins_own_reasons_are_shown_and_one_without_them_still_works(ncm, home):
    ncm("init")
    head = "from nanoclaw_memory.turn.plugin import Draft, Plugin, Silence\n"
    drafts = {
        "plain": "Draft('PLAIN', ('one', 'two'))",
        "reasoned": "Draft('REASONED', ('a',), reasons=('because I can',), nearly=('b (too old)',))",
        "quiet": "Silence('not today', nearly=('c (not asked)',))",
    }
    for name, draft in drafts.items():
        body = f"class P(Plugin):\n    def before_turn(self, message, moment):\n        return {draft}\n"
        install(home, name, f"{head}{body}def plugin(context): return P()\n")
    allow(home, *drafts)
    result = ncm("turn", "hello", "--explain", "--json").json
    told = {one["plugin"]: one for one in result["explained"]}
    assert [line["text"] for line in told["plain"]["lines"]] == ["one", "two"]
    assert told["reasoned"]["lines"] == [{"text": "a", "reason": "because I can"}]
    assert told["reasoned"]["nearly"] == ["b (too old)"]
    assert (told["quiet"]["silent"], told["quiet"]["nearly"]) == ("not today", ["c (not asked)"])


def test_injections_tell_what_was_injected_why_and_for_how_many_tokens(ncm):
    ncm("init")
    assert ncm("injections").out == "Nothing was injected yet.\n"
    ncm("graph", "add", "Keystone", "port", "3000", "--category", "project")
    ncm("hook", "session-start", stdin=json.dumps({"session_id": "s1", "source": "startup"}))
    given = ncm("turn", "Which port has Keystone?", "--session", "s1", "--json").json["blocks"][0]["tokens"]
    ncm("turn", "Which port has Keystone?", "--session", "s2")
    ncm("turn", "hello", "--session", "s2")
    found = ncm("injections", "--session", "s1", "--json").json
    assert {"injections", "plugins", "sessions", "calls", "tokens"} <= set(found)
    assert [(one["event"], one["plugin"]) for one in found["injections"]] == [
        ("turn", "graph-memory"),
        ("start", "boot"),
    ]
    (line,) = found["injections"][0]["lines"]
    assert line["text"].startswith("• Keystone.port = 3000 (since ")
    assert line["reason"].startswith("score ")
    sums = {one["name"]: one["tokens"] for one in found["plugins"]}
    assert sums["graph-memory"] == given
    assert sums["boot"] > 30
    assert found["tokens"] == sum(sums.values()) == found["sessions"][0]["tokens"]
    assert found["calls"] == 2
    everything = ncm("injections", "--limit", "1", "--json").json
    assert len(everything["injections"]) == 1
    assert everything["tokens"] == found["tokens"] + given
    assert everything["calls"] == 4
    assert ncm("injections", "--since", "2999-01-01", "--json").json["tokens"] == 0
    assert ncm("injections", "--since", "soon").code == 2
    assert ncm("injections", "--shared").code == 2


def test_a_start_that_is_asked_for_again_is_paid_again(ncm):
    ncm("init")
    ncm("exchange", "add", "-u", "Which queue?", "-a", "RabbitMQ.", "--session", "s0")
    start = json.dumps({"session_id": "s1", "source": "startup"})
    ncm("hook", "session-start", stdin=start)
    once = ncm("injections", "--json").json["plugins"]
    ncm("hook", "session-start", stdin=start)
    twice = ncm("injections", "--json").json["plugins"]
    assert {one["name"]: one["tokens"] for one in twice} == {one["name"]: 2 * one["tokens"] for one in once}
    assert {"boot", "continuity"} == {one["name"] for one in once}


def test_what_is_forgotten_leaves_the_list_of_injections(ncm, home):
    ncm("init")
    ncm("exchange", "add", "-u", "The safe is behind the green painting", "-a", "Noted.", "--session", "s0")
    ncm("turn", "Where is the safe, behind which painting?", "--session", "s1")
    assert "green painting" in ncm("injections").out
    before = ncm("injections", "--json").json["tokens"]
    ncm("forget", "--session", "s0", "--yes")
    after = ncm("injections", "--json")
    assert "green painting" not in after.out
    assert after.json["tokens"] == before
    assert b"green painting" not in (home / "data" / "continuity.db").read_bytes()


def test_a_reason_that_several_plugins_have_is_given_once(ncm):
    ncm("init")
    told = ncm("turn", "Thanks!").err.splitlines()
    assert len({line.partition(": ")[2] for line in told[:-1]}) == len(told) - 1
    assert any(line.startswith("recall, continuity: ") for line in told)


def test_a_session_is_titled_by_the_first_sentence_that_says_what_it_is_about(ncm):
    ncm("init")
    ncm("exchange", "add", "--user", "Hi!", "--agent", "Hello", "--session", "a")
    long = "Mach mal. Die Rechnung an die Firma Kettler muss bis Freitag hinaus, sonst ist das Skonto weg"
    ncm("exchange", "add", "--user", long, "--agent", "Gut.", "--session", "a")
    ncm("exchange", "add", "--user", "gehe", "--agent", "Gut.", "--session", "b")
    listed = {one["session_id"]: one["title"] for one in ncm("sessions", "list", "--json").json["sessions"]}
    assert listed == {"a": "Die Rechnung an die Firma Kettler muss bis Freitag hinaus,…", "b": "gehe"}
    assert "Die Rechnung an die Firma" in ncm("sessions", "list").out


def test_a_turn_is_answered_with_the_models_where_a_server_runs(ncm, home, monkeypatch):
    ncm("init")
    with_models = []

    def noted(memory, *given):
        with_models.append(memory.group.resources.resident)
        return Turn((), (), ())

    monkeypatch.setattr(Memory, "before_turn", noted)
    installed = iter([True, False])
    monkeypatch.setattr(Resources, "warm", lambda self: next(installed))
    ncm("turn", "hello", "--explain")
    lock = home / "serve.lock"
    lock.write_text(json.dumps({"pid": 1, "home": str(home), "socket": "none"}))
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ncm("turn", "hello", "--explain")
        ncm("turn", "hello", "--explain")  # a server loads no models either where there are none
    ncm("turn", "hello", "--explain")
    assert with_models == [False, True, False, False]
