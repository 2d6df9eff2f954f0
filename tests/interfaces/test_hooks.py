"""Hooks: the formats of real clients in, their JSON out, and silence whatever goes wrong."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from datetime import UTC, datetime

import pytest

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.interfaces import hooks
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope


def event(name, **fields):
    return json.dumps({"session_id": "s1", "cwd": "/", "hook_event_name": name, **fields})


@pytest.fixture
def hook(ncm):
    ncm("init")

    def call(event_name, stdin, *options):
        ran = ncm(*options, "hook", event_name, stdin=stdin)
        assert ran.code == 0
        assert ran.err == ""
        return json.loads(ran.out) if ran.out else {}

    return call


def context(answer):
    return answer.get("hookSpecificOutput", {}).get("additionalContext", "")


def test_a_session_starts_with_the_boot_context_and_only_the_two_keys_every_client_takes(hook):
    answer = hook("session-start", event("SessionStart", source="startup"))
    assert set(answer) == {"hookSpecificOutput"}
    assert set(answer["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}
    assert answer["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert "# Soul" in context(answer)


def test_a_person_without_a_memory_is_told_how_to_begin_and_nothing_is_created(ncm, home):
    ran = ncm("hook", "session-start", stdin=event("SessionStart", source="startup"))
    assert "ncm init" in json.loads(ran.out)["systemMessage"]
    assert ncm("hook", "user-prompt-submit", stdin=event("UserPromptSubmit", prompt="hello")).out == ""
    assert not home.exists()


def test_whoever_starts_a_session_learns_that_proposals_wait_and_the_model_does_not(hook, home):
    (home / "workspace/memory/2026-01-02.md").write_text("- [decision|i=0.9] Keystone uses SQLite\n")
    hook("session-start", event("SessionStart", source="startup", session_id="s0"))
    with Memory.open(home, clock=FixedClock(datetime(2026, 1, 4, tzinfo=UTC))) as memory:
        memory.upkeep.run("promote")
    answer = hook("session-start", event("SessionStart", source="startup"))
    assert answer["systemMessage"] == "memory: 1 proposal for you: ncm review"
    assert "proposal" not in context(answer)
    assert "systemMessage" not in hook("session-start", event("SessionStart", source="compact"))


def test_a_resumed_session_is_not_told_again_but_a_compacted_one_is(hook):
    assert hook("SessionStart", event("SessionStart", source="resume")) == {}
    assert "# Soul" in context(hook("SessionStart", event("SessionStart", source="compact")))


def test_a_boot_context_over_the_clients_cap_is_cut_at_its_end_after_the_brief(hook, ncm, home):
    ncm("entries", "store", "Prefers tea", "--type", "preference")
    (home / "workspace" / "USER.md").write_text("many words\n" * 2000)
    text = context(hook("session-start", event("SessionStart", source="startup")))
    assert 8_000 < len(text) < 10_000
    assert text.index("Prefers tea") < text.index("# Soul") < text.index("many words")
    assert "[cut: memory_search has the rest]" in text


def test_an_event_that_does_not_name_itself_is_answered_as_clients_spell_it(hook):
    answer = hook("session-start", json.dumps({"session_id": "s1", "source": "startup"}))
    assert answer["hookSpecificOutput"]["hookEventName"] == "SessionStart"


def test_a_prompt_gets_what_the_graph_knows(hook, ncm):
    ncm("graph", "add", "Keystone", "port", "3000", "--category", "project")
    answer = hook("user-prompt-submit", event("UserPromptSubmit", prompt="What port does Keystone run on?"))
    assert "[GRAPH MEMORY]" in context(answer)
    assert "Keystone.port = 3000" in context(answer)


def test_a_client_whose_window_drops_what_a_turn_was_given_gets_it_again(hook, ncm):
    ncm("graph", "add", "Keystone", "port", "3000", "--category", "project")
    for client, again in (("", False), ("openclaw", True)):
        asked = event(
            "UserPromptSubmit", session_id=f"s{client}", client=client, prompt="Which port has Keystone?"
        )
        assert "Keystone.port = 3000" in context(hook("user-prompt-submit", asked))
        assert ("Keystone.port = 3000" in context(hook("user-prompt-submit", asked))) == again


def test_a_prompt_that_memory_knows_nothing_about_gets_nothing(hook):
    answer = hook("user-prompt-submit", event("UserPromptSubmit", prompt="What is seven times eight?"))
    assert "[GRAPH MEMORY]" not in context(answer)
    assert "[CONTINUITY CONTEXT]" not in context(answer)


def test_what_was_asked_and_answered_can_be_found_in_a_later_session(hook, ncm):
    hook("user-prompt-submit", event("UserPromptSubmit", prompt="Shall we keep REST alive for the partners?"))
    hook(
        "stop",
        event("Stop", last_assistant_message="Yes, six months of deprecation.", stop_hook_active=False),
    )
    hook("session-end", event("SessionEnd", reason="other"))
    assert "six months of deprecation" in ncm("sessions", "search", "deprecation of REST").out


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x1c", "\x0c", "\r"])
def test_a_line_break_of_any_alphabet_in_a_prompt_loses_nothing(hook, ncm, mark):
    hook(
        "user-prompt-submit", event("UserPromptSubmit", prompt=f"Where does quartz run?{mark}On which port?")
    )
    hook("stop", event("Stop", last_assistant_message=f"On basalt.{mark}Port 7431.", stop_hook_active=False))
    hook("session-end", event("SessionEnd", reason="other"))
    assert "7431" in ncm("sessions", "search", "quartz port").out


def claude_lines(*turns):
    """A transcript as Claude Code writes it: who said what, tools in between."""
    for role, text in turns:
        yield {"type": role, "sessionId": "s1", "message": {"role": role, "content": text}}
        tool = [{"type": "tool_result", "content": "noise"}]
        yield {"type": "user", "sessionId": "s1", "message": {"role": "user", "content": tool}}


def codex_lines(*turns):
    """A transcript as Codex writes it."""
    for role, text in turns:
        content = [{"type": "input_text" if role == "user" else "output_text", "text": text}]
        yield {"type": "response_item", "payload": {"type": "message", "role": role, "content": content}}


def wrote(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


@pytest.mark.parametrize("lines", [claude_lines, codex_lines])
def test_a_stop_without_the_answer_takes_it_from_the_transcript(hook, ncm, tmp_path, lines):
    asked = "Shall we keep REST alive for the partners?"
    earlier = [("user", "Hello"), ("assistant", "Good morning.")]
    path = wrote(
        tmp_path / "t.jsonl", lines(*earlier, ("user", asked), ("assistant", "Yes, for six months."))
    )
    hook("user-prompt-submit", event("UserPromptSubmit", prompt=asked, transcript_path=path))
    hook("stop", event("Stop", transcript_path=path, stop_hook_active=False, last_assistant_message=None))
    hook("session-end", event("SessionEnd", reason="other"))
    said = ncm("sessions", "show", "s1").out
    assert "Yes, for six months." in said
    assert "Good morning." not in said


def test_a_transcript_that_lags_behind_does_not_answer_with_what_was_said_before(hook, ncm, tmp_path):
    path = wrote(tmp_path / "t.jsonl", claude_lines(("user", "Hello"), ("assistant", "Good morning.")))
    hook("user-prompt-submit", event("UserPromptSubmit", prompt="Which port?", transcript_path=path))
    hook("stop", event("Stop", transcript_path=path))
    assert "Nothing was said" in ncm("sessions", "list").out
    wrote(tmp_path / "t.jsonl", claude_lines(("user", "Which port?"), ("assistant", "Port 3000.")))
    hook("session-end", event("SessionEnd", reason="other", transcript_path=path))
    assert "Port 3000." in ncm("sessions", "show", "s1").out


def test_an_answer_whose_stop_never_came_is_archived_with_the_next_prompt(hook, ncm, tmp_path):
    turns = [("user", "Which port?"), ("assistant", "Port 3000."), ("user", "[Request interrupted by user]")]
    path = wrote(tmp_path / "t.jsonl", claude_lines(*turns))
    hook("user-prompt-submit", event("UserPromptSubmit", prompt="Which port?", transcript_path=path))
    hook("user-prompt-submit", event("UserPromptSubmit", prompt="And the host?", transcript_path=path))
    assert "Port 3000." in ncm("sessions", "show", "s1").out


def test_a_correction_after_a_stop_without_the_answer_teaches_a_lesson(hook, ncm, tmp_path):
    turns = [("user", "Where do I put the config?"), ("assistant", "Into /etc/keystone.conf.")]
    path = wrote(tmp_path / "t.jsonl", claude_lines(*turns))
    hook("user-prompt-submit", event("UserPromptSubmit", prompt=turns[0][1], transcript_path=path))
    hook("stop", event("Stop", transcript_path=path))
    correction = "No, that's wrong. Never put config into /etc, always use the project folder."
    wrote(
        tmp_path / "t.jsonl",
        claude_lines(*turns, ("user", correction), ("assistant", "Understood.")),
    )
    hook("user-prompt-submit", event("UserPromptSubmit", prompt=correction, transcript_path=path))
    hook("stop", event("Stop", transcript_path=path))
    hook("session-end", event("SessionEnd", transcript_path=path))
    assert "project folder" in ncm("lessons", "list").out


def test_a_transcript_that_is_no_regular_file_is_left_alone(hook, ncm, tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), "/dev/zero", str(tmp_path), "\0", "x" * 5000):
        hook("user-prompt-submit", event("UserPromptSubmit", prompt="Which port?", transcript_path=path))
        hook("stop", event("Stop", transcript_path=path))
    assert "Nothing was said" in ncm("sessions", "list").out


def test_an_exchange_that_memory_refuses_does_not_keep_the_others_waiting(hook, ncm):
    ncm("graph", "add", "Keystone", "port", "3000", "--category", "project")
    ours = ncm("turn", "What port does Keystone run on?").out.strip()  # nothing of it is a person's
    assert ours.startswith("[GRAPH MEMORY]")
    for asked, said in ((ours, ours), ("Which host?", "The one in the cellar.")):
        hook("user-prompt-submit", event("UserPromptSubmit", prompt=asked))
        hook("stop", event("Stop", last_assistant_message=said))
    hook("session-end", event("SessionEnd"))
    assert "The one in the cellar." in ncm("sessions", "show", "s1").out


def test_credentials_never_lie_in_the_spool(hook, home):
    token = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
    hook("user-prompt-submit", event("UserPromptSubmit", prompt=f"use {token} please"))
    hook("stop", event("Stop", last_assistant_message=f"I used {token}; wifi password: blue-Falcon-9"))
    kept = "".join(path.read_text() for path in (home / "data" / "spool").iterdir())
    assert "[redacted:github]" in kept
    assert token not in kept
    assert "blue-Falcon" not in kept


def test_gemini_and_cursor_speak_their_own_names(hook, ncm):
    ncm("graph", "add", "Keystone", "port", "3000", "--category", "project")
    asked = hook("BeforeAgent", event("BeforeAgent", prompt="What port does Keystone run on?"))
    assert "Keystone.port = 3000" in context(asked)
    hook("AfterAgent", event("AfterAgent", prompt="x", prompt_response="3000"))
    cursor = json.dumps({"conversation_id": "c1", "cursor_version": "3", "hook_event_name": "sessionStart"})
    assert "# Soul" in hook("sessionStart", cursor)["additional_context"]
    assert hook("beforeSubmitPrompt", json.dumps({"cursor_version": "3", "prompt": "hello"})) == {}


# What Gemini CLI 0.61 puts before the first prompt of a session, and what it writes into its transcript.
GEMINI_PROMPT = "<hook_context>## SOUL.md\nNever be unkind &lt;ever&gt;. Always say so.</hook_context>\n\n{}"


def gemini_lines(*turns):
    context = "<session_context>\nThis is the Gemini CLI. My operating system is: linux\n</session_context>"
    yield {"sessionId": "s1", "projectHash": "43e8", "startTime": "2026-11-16T00:40:12.239Z", "kind": "main"}
    first = {
        "id": "d049",
        "timestamp": "2026-11-16T00:40:12.240Z",
        "type": "user",
        "content": [{"text": context}],
    }
    yield {"$set": {"messages": [first], "lastUpdated": "2026-11-16T00:40:12.240Z"}}
    for role, text in turns:
        if role == "user":
            parts = [
                {"text": GEMINI_PROMPT.format(text)},
                {"text": "<hook_context>Keystone = 3000</hook_context>"},
            ]
            yield {"id": "36", "timestamp": "2026-11-16T00:41:50.642Z", "type": "user", "content": parts}
        else:
            yield {"id": "96", "timestamp": "2026-11-16T00:41:50.692Z", "type": "gemini", "content": text}
        yield {"id": "97", "timestamp": "2026-11-16T00:41:51Z", "type": "info", "content": "Update available"}


def test_what_a_client_puts_before_a_prompt_is_not_taken_for_the_users_words(hook, ncm):
    for number, said in enumerate(("We decided Keystone uses port 5433.", "Which port does Keystone use?")):
        prompt = GEMINI_PROMPT.format(said)
        asked = event("BeforeAgent", session_id=f"g{number}", prompt=prompt)
        answer = context(hook("BeforeAgent", asked))
        assert "unkind" not in answer
        hook(
            "AfterAgent",
            event(
                "AfterAgent", session_id=f"g{number}", prompt=prompt, prompt_response="Keystone is on 5433."
            ),
        )
        hook("session-end", event("SessionEnd", session_id=f"g{number}"))
    assert "5433" in answer
    assert [row["user_message"] for row in ncm("sessions", "show", "g0", "--json").json["exchanges"]] == [
        "We decided Keystone uses port 5433."
    ]
    assert ncm("lessons", "list", "--json").json["lessons"] == []
    assert "unkind" not in ncm("sessions", "search", "unkind soul", "--json").out
    assert hook("BeforeAgent", event("BeforeAgent", prompt=GEMINI_PROMPT.format(""))) == {}


def test_a_gemini_transcript_is_archived_before_it_is_compressed(hook, home, tmp_path):
    turns = [
        ("user", "Which database?"),
        ("gemini", "PostgreSQL 17."),
        ("user", "Why?"),
        ("gemini", "It is there."),
    ]
    path = wrote(tmp_path / "session-1.jsonl", gemini_lines(*turns))
    hook("PreCompress", event("PreCompress", trigger="auto", transcript_path=path))
    (archive,) = (home / "workspace" / "conversations").glob("*.md")
    text = archive.read_text()
    for _, said in turns:
        assert text.count(f": {said}") == 1
    for foreign in ("unkind", "Keystone", "session_context", "Update available"):
        assert foreign not in text


def test_a_transcript_in_a_format_that_nobody_knows_is_named_as_such(ncm, tmp_path):
    ncm("init")
    path = wrote(tmp_path / "t.jsonl", [{"kind": "utterance", "words": "hello"}] * 3)
    ran = ncm("sessions", "archive", path, "--json")
    assert ran.code == 1
    assert "format" in ran.json["error"]["message"]
    (tmp_path / "empty.jsonl").write_text("")
    assert "Nothing new" in ncm("sessions", "archive", str(tmp_path / "empty.jsonl")).out


def test_records_of_claude_code_that_are_no_turns_are_not_archived(hook, home, tmp_path):
    turn = {"role": "user", "content": "Which database?"}
    records = [
        {"type": "queue-operation", "operation": "enqueue", "content": "Which database?", "sessionId": "s1"},
        {"type": "user", "sessionId": "s1", "message": turn},
        {"type": "api-request-blob", "sessionId": "s1", "message": turn},
        {"type": "last-prompt", "lastPrompt": "Which database?", "message": turn},
        {
            "type": "assistant",
            "sessionId": "s1",
            "message": {"role": "assistant", "content": "PostgreSQL 17."},
        },
    ]
    hook("pre-compact", event("PreCompact", transcript_path=wrote(tmp_path / "t.jsonl", records)))
    (archive,) = (home / "workspace" / "conversations").glob("*.md")
    assert archive.read_text().count(": Which database?") == 1


def test_a_transcript_is_archived_before_compaction(hook, home, tmp_path):
    transcript = tmp_path / "t.jsonl"
    lines = [
        {"type": "user", "sessionId": "s1", "message": {"role": "user", "content": "Which database?"}},
        {
            "type": "assistant",
            "sessionId": "s1",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "PostgreSQL 17."}]},
        },
    ]
    transcript.write_text("\n".join(map(json.dumps, lines)))
    hook("pre-compact", event("PreCompact", trigger="auto", transcript_path=str(transcript)))
    (archive,) = (home / "workspace" / "conversations").glob("*.md")
    assert "PostgreSQL 17." in archive.read_text()
    with sqlite3.connect(home / "data" / "index.db") as index:
        paths = [path for (path,) in index.execute("SELECT name FROM documents WHERE source = 'files'")]
    assert f"conversations/{archive.name}" in paths  # before any search has looked


def test_a_long_transcript_asks_once_to_write_down_what_should_last(hook, tmp_path):
    transcript = tmp_path / "long.jsonl"
    transcript.write_bytes(b"x" * 2_200_000)
    long = event("UserPromptSubmit", prompt="go on", transcript_path=str(transcript))
    assert "NO_REPLY" in context(hook("user-prompt-submit", long))
    assert "NO_REPLY" not in context(hook("user-prompt-submit", long))
    short = event(
        "UserPromptSubmit", prompt="go on", transcript_path=str(tmp_path / "none.jsonl"), session_id="s2"
    )
    assert "NO_REPLY" not in context(hook("user-prompt-submit", short))


@pytest.mark.parametrize("odd", [{"transcript_path": "/x\0"}, {"transcript_path": "/\ud800"}])
def test_a_name_that_no_file_can_have_costs_no_block(ncm, odd):
    ncm("init")
    ncm("graph", "add", "Keystone", "port", "3000", "--category", "project")
    asked = {"session_id": "s1", "prompt": "What port does Keystone use?", **odd}
    assert "Keystone.port = 3000" in ncm("hook", "user-prompt-submit", stdin=json.dumps(asked)).out


def test_half_a_character_in_a_sessions_name_costs_no_context(ncm):
    ncm("init")
    started = {"session_id": "s\ud800", "source": "startup"}
    assert "# Soul" in ncm("hook", "session-start", stdin=json.dumps(started)).out


def test_a_payload_that_is_nested_too_deeply_is_no_event():
    assert hooks.parse("stop", b"[" * 200_000) is None


@pytest.mark.parametrize(
    "stdin",
    [
        "",
        "not json",
        "[]",
        "null",
        '"text"',
        "{" * 5000,
        '{"prompt": 7}',
        '{"session_id": ["x"], "prompt": "hi"}',
        "\udcff",
    ],
)
@pytest.mark.parametrize(
    "name", ["user-prompt-submit", "session-start", "stop", "pre-compact", "no-such-event"]
)
def test_malformed_input_is_answered_with_silence_or_a_context_never_an_error(ncm, name, stdin):
    ran = ncm("hook", name, stdin=stdin.encode("utf-8", "surrogateescape").decode("latin-1"))
    assert (ran.code, ran.err) == (0, "")
    assert not ran.out or "hookSpecificOutput" in json.loads(ran.out)


def test_a_prompt_of_five_megabytes_is_survived(hook):
    answer = hook("user-prompt-submit", event("UserPromptSubmit", prompt="word " * 1_000_000))
    assert len(context(answer)) < 10_000


def test_a_transcript_that_does_not_exist_is_no_error(hook):
    assert hook("pre-compact", event("PreCompact", transcript_path="/no/such/file.jsonl")) == {}


def test_a_broken_database_costs_the_agent_nothing(hook, home):
    (home / "data" / "facts.db").write_bytes(b"garbage" * 1000)
    (home / "data" / "continuity.db").write_bytes(b"garbage" * 1000)
    answer = hook("user-prompt-submit", event("UserPromptSubmit", prompt="What port does Keystone run on?"))
    assert "[GRAPH MEMORY]" not in context(answer)


def test_broken_settings_cost_the_agent_nothing(hook, home):
    (home / "nanoclaw.json").write_text("{broken")
    assert hook("user-prompt-submit", event("UserPromptSubmit", prompt="hello")) == {}


@pytest.mark.parametrize("settings", ['{"memory": {"boots": "both"}}', "{ no json"])
def test_a_session_starts_with_a_line_on_broken_settings(hook, home, settings):
    (home / "nanoclaw.json").write_text(settings)
    for source in ("startup", "resume"):
        told = hook("session-start", event("SessionStart", source=source))["systemMessage"]
        assert told.startswith("memory does not work: ")
        assert "nanoclaw.json" in told


def test_our_own_child_agents_do_not_call_us_back(hook, monkeypatch):
    monkeypatch.setenv("NANOCLAW_NO_HOOKS", "1")
    assert hook("session-start", event("SessionStart", source="startup")) == {}


def test_a_shared_scope_boots_without_private_files(hook, home):
    (home / "workspace" / "MEMORY.md").write_text("the salary is 100")
    answer = hook("session-start", event("SessionStart", source="startup"), "--shared")
    assert "# Soul" in context(answer)
    assert "salary" not in context(answer)


def test_a_group_sees_only_its_own_memory(hook, ncm):
    ncm("init", "--group", "family")
    ncm("graph", "add", "Keystone", "port", "3000", "--category", "project")
    prompt = event("UserPromptSubmit", prompt="What port does Keystone run on?")
    assert "3000" not in context(hook("user-prompt-submit", prompt, "--group", "family"))
    assert hook("session-start", event("SessionStart", source="startup"), "--group", "../x") == {}


def test_what_was_said_is_found_by_its_meaning_after_the_session_without_a_server_or_a_command(
    home, ncm, ncm_process, models_dir
):
    ncm("init")
    (home / "models").symlink_to(models_dir)
    with Memory.open(home, Scope(session_id="s1")) as memory:
        memory.after_turn("I must not eat gluten, the doctor says", "I will remember.")
        for number in range(50):
            memory.after_turn(f"Ticket {number} is about the export of table {number}", f"Noted {number}.")
    question = ("search", "which food is forbidden for me", "--json")
    assert "gluten" not in ncm(*question).out  # too much waits to be embedded on the way to an answer
    assert ncm_process("hook", "session-end", stdin=event("SessionEnd", reason="other")).code == 0
    until = time.monotonic() + 60
    while "gluten" not in (found := ncm(*question).out) and time.monotonic() < until:
        time.sleep(0.2)
    assert "gluten" in found


def test_what_a_session_left_is_both_judged_and_indexed_after_its_end(home, ncm, ncm_process, models_dir):
    ncm("init")
    (home / "models").symlink_to(models_dir)
    for prompt, told in (
        ("What is the length of the pier?", "It is 300 feet long."),
        ("No, that is wrong: always answer in metric units.", "91 metres."),
    ):
        ncm_process("hook", "user-prompt-submit", stdin=event("UserPromptSubmit", prompt=prompt))
        ncm_process("hook", "stop", stdin=event("Stop", last_assistant_message=told))
    ncm_process("hook", "session-end", stdin=event("SessionEnd", reason="other"))

    def ran():
        jobs = json.loads(ncm("upkeep", "status", "--json").out)["jobs"]
        return {job["name"] for job in jobs if job["last_run"]}

    until = time.monotonic() + 60
    jobs_of_a_session = {"learn", "promote", "metabolize", "index"}
    while not jobs_of_a_session <= ran() and time.monotonic() < until:
        time.sleep(0.2)
    assert ran() == jobs_of_a_session


def test_the_end_of_a_session_without_a_server_makes_the_days_proposals(ncm, home, monkeypatch):
    """Otherwise MEMORY.md would stay empty for whoever runs neither the server nor cron."""
    ncm("init")
    ncm("exchange", "add", "--user", "We decided to drop Kafka for good", "--agent", "Understood.")
    started = []
    monkeypatch.setattr(os, "posix_spawnp", lambda name, arguments, *rest, **more: started.append(arguments))
    ended = hooks.parse("session-end", b"{}")
    with Memory.open(home) as memory:
        hooks._start_background_work(memory, ended)
        memory.upkeep.run()
        hooks._start_background_work(memory, ended)
    assert [[job for job in words if job in ("promote", "metabolize")] for words in started[:1]] == [
        ["promote", "metabolize"]
    ]
    assert not any("promote" in words for words in started[1:])
