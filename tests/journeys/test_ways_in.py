"""Every way by which text gets into a home, and what each does with a text that a person asked to forget.

REFUSED: whoever asks can act, and gets an error. MASKED: talk goes on, with `[forgotten]` in its place, and the
telemetry says so. LEFT OUT: a whole file or turn is read without it. OWN: a person's own Markdown stays as it is.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dying_forget import traces
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nanoclaw_memory import Memory
from nanoclaw_memory.errors import Refused, StoreError
from nanoclaw_memory.intake.intake import WITHHELD
from nanoclaw_memory.intake.secrets import mask
from nanoclaw_memory.memory.remote_spool import RemoteSpool
from nanoclaw_memory.types import ToolCall

TEXT = "Ludmilla's secret hideout is the Quastenflosser tower"
TAG = "quastenflosser-x7"
WORDS = ("hideout", "quastenflosser")
LATER = "later"


@dataclass(frozen=True)
class Scene:
    """A home in which the text was forgotten, and a place for files outside of it."""

    memory: Memory
    home: Path
    outside: Path

    def file(self, name: str, content: Any) -> Path:
        path = self.outside / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def page(self, relative: str, text: str) -> None:
        path = self.home / "workspace" / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def scene(open_memory: Callable[..., Memory], home: Path, tmp_path: Path) -> Scene:
    memory = open_memory(session="before")
    memory.init()
    memory.store(TEXT, "fact")
    memory.store("Something to reword", "fact")
    memory.host.state.register_group("me@chat", "main", "main", "@Andy")
    memory.workspace.checkpoint("old")
    memory.forget(text=TEXT, agreed=lambda pages: True)
    memory.forget(text=TAG, keep_out=True)
    assert not [one for one in traces(home, WORDS) if "/checkpoints/" not in one]
    return Scene(open_memory(session=LATER), home, tmp_path / "outside")


def anew(memory: Memory) -> Any:
    """The entry that is there to be changed."""
    return memory.entries.all()[0]


# ---- who asks can act ----

REFUSED: dict[str, Callable[[Scene], object]] = {
    "write": lambda s: s.memory.write(f"note: {TEXT}", "fact"),
    "store": lambda s: s.memory.store(f"By the way, {TEXT.lower()}!", "fact"),
    "store: reason": lambda s: s.memory.store("Something else", "fact", reason=TEXT),
    "store: tags": lambda s: s.memory.store("Something else", "fact", tags=[TAG]),
    "store: supersedes": lambda s: s.memory.store(TEXT, "fact", supersedes=anew(s.memory).id),
    "fact_upsert": lambda s: s.memory.graph.upsert("Diary", "note", TEXT),
    "relate": lambda s: s.memory.graph.relate("Diary", "says", TEXT),
    "alias": lambda s: s.memory.graph.alias(TEXT, "Diary"),
    "graph.reject: reason": lambda s: s.memory.graph.reject("Diary", "colour", "red", TEXT),
    "lessons.add": lambda s: s.memory.lessons.add(TEXT),
    "lessons.add: trigger": lambda s: s.memory.lessons.add("Say less", trigger=TEXT),
    "policy_add": lambda s: s.memory.workspace.add_policy(
        "Towers", "naming a tower", "ask first", reason=TEXT
    ),
    "project_new": lambda s: s.memory.workspace.new_project("tower", TEXT),
    "project_note": lambda s: s.memory.workspace.note_project("tower", f"note: {TEXT}"),
    "put_agent": lambda s: s.memory.workspace.put_agent("Pete", TEXT),
    "tasks.update": lambda s: s.memory.host.tasks.update(
        s.memory.host.tasks.add("Say hello", "once", "2026-03-01T10:00:00Z").id, f"Remember that {TEXT}"
    ),
    "checkpoint": lambda s: s.memory.workspace.checkpoint("fine", TEXT),
    "config_set": lambda s: s.memory.admin.config_set("user.entity", TEXT),
    "notes: create": lambda s: s.memory.workspace.notes.create("/memories/a.md", f"one\n{TEXT}\n"),
    "notes: create, by its name": lambda s: s.memory.workspace.notes.create(f"/memories/{TEXT}.md", "one\n"),
    "notes: insert": lambda s: (
        s.memory.workspace.notes.create("/memories/b.md", "one\n"),
        s.memory.workspace.notes.insert("/memories/b.md", 1, TEXT),
    ),
    "notes: str_replace": lambda s: (
        s.memory.workspace.notes.create("/memories/c.md", "one\n"),
        s.memory.workspace.notes.str_replace("/memories/c.md", "one", TEXT),
    ),
    "notes: rename": lambda s: (
        s.memory.workspace.notes.create("/memories/d.md", "one\n"),
        s.memory.workspace.notes.rename("/memories/d.md", f"/memories/{TEXT}.md"),
    ),
    "review_decide: text": lambda s: s.memory.upkeep.decide(_promotion(s), True, TEXT),
    "tasks.add": lambda s: s.memory.host.tasks.add(f"Remember that {TEXT}", "once", "2026-03-01T10:00:00Z"),
    "host.register_group": lambda s: s.memory.host.state.register_group("me@chat", TEXT, "main", "@Andy"),
}


def _promotion(scene: Scene) -> str:
    if (scene.home / "workspace/memory/2026-02-20.md").exists():
        return scene.memory.upkeep.review()[0].id
    scene.page("memory/2026-02-20.md", "- [decision|i=0.9] The office moves to Oslo in March\n")
    scene.memory.upkeep.run("promote")
    return scene.memory.upkeep.review()[0].id


@pytest.mark.parametrize("way", REFUSED)
def test_who_can_act_is_refused_and_nothing_comes_in(scene: Scene, way: str) -> None:
    with pytest.raises(Refused, match="asked to forget"):
        REFUSED[way](scene)
    assert _left(scene) == set()


# ---- talk that must go on ----


def _adapters() -> dict[str, Callable[[Scene], object]]:
    def agents_session(s: Scene) -> list[Any]:
        from nanoclaw_memory.interfaces.sdk.openai_agents import MemorySession

        session = MemorySession(s.memory)
        talk = [{"role": "user", "content": f"I repeat: {TEXT}!"}, {"role": "assistant", "content": "Yes."}]
        asyncio.run(session.add_items(talk))
        return asyncio.run(session.get_items())

    def langgraph(s: Scene) -> Any:
        pytest.importorskip("langgraph")
        from nanoclaw_memory.interfaces.sdk.langgraph import MemoryStore

        store = MemoryStore(s.memory)
        store.put(("people",), "l", {"note": f"I repeat: {TEXT}", "deep": [{"more": "fine"}]})
        return store.get(("people",), "l").value

    def claude_agent(s: Scene) -> str:
        from nanoclaw_memory.interfaces.sdk.claude_agent import hook_callbacks

        given = {"prompt": f"I repeat: {TEXT}", "session_id": LATER}
        asyncio.run(hook_callbacks(s.memory)["UserPromptSubmit"](given, None, None))
        return "".join(path.read_text() for path in (s.home / "data/spool").glob("*.jsonl"))

    return {"openai agents": agents_session, "langgraph": langgraph, "claude agent": claude_agent}


def _message(scene: Scene, **more: Any) -> Any:
    host = scene.memory.host.state
    said = f"@Andy I repeat: {TEXT}, all right?"
    assert host.store_message("m1", "me@chat", said, "2026-02-23T11:00:00Z", **more)
    return host.history("me@chat")[0].content


def _answer(scene: Scene) -> Any:
    host = scene.memory.host.state
    host.store_message("m1", "me@chat", "@Andy where is it?", "2026-02-23T11:00:00Z")
    batch = host.batch(host.poll()[0])
    assert batch is not None
    return host.answer(batch, f"I repeat: {TEXT}", "s9")


def _task(scene: Scene) -> Any:
    tasks = scene.memory.host.tasks
    made = tasks.add("Tell a story", "once", "2026-02-23T11:59:59Z")
    tasks.run_due(lambda task, session: f"I repeat: {TEXT}")
    return [tasks.get(made.id).last_result, tasks.logs(made.id)]


def _failing_task(scene: Scene) -> Any:
    def fail(task: Any, session: str) -> str:
        raise ValueError(f"I repeat: {TEXT}")

    tasks = scene.memory.host.tasks
    made = tasks.add("Tell a story", "once", "2026-02-23T11:59:59Z")
    tasks.run_due(fail)
    return [tasks.get(made.id).last_result, tasks.logs(made.id)]


def _chat_name(scene: Scene) -> Any:
    scene.memory.host.state.store_chat_metadata("me@chat", "2026-02-23T11:00:00Z", name=f"I repeat: {TEXT}")
    return scene.memory.host.state.chats()


def _sender(scene: Scene) -> Any:
    scene.memory.host.state.store_message(
        "m1", "me@chat", "hello", "2026-02-23T11:00:00Z", sender_name=f"I repeat: {TEXT}"
    )
    return scene.memory.host.state.history("me@chat")


def _ipc(scene: Scene) -> Any:
    host = scene.memory.host.state
    folder = host.place("main").ipc / "messages"
    (folder / "1.json").write_text(json.dumps({"type": "message", "text": f"I repeat: {TEXT}"}))
    assert host.drain_ipc() == []
    return host.outbox()


def _turn(scene: Scene) -> Any:
    """What a prompt leaves behind: the outcome of a lesson's injection, the cache of the graph's answers."""
    scene.memory.graph.upsert("Diary", "colour", "green")
    scene.memory.lessons.add("Always name the tower with its number", trigger="where is the tower")
    scene.memory.before_turn(
        f"I repeat: {TEXT}; which colour has Diary, and where is the tower with its number?"
    )
    rows = scene.memory.group.database("continuity").query("SELECT question FROM graph_answers")
    outcomes = scene.memory.group.database("facts").query("SELECT query_text FROM vector_outcomes")
    assert rows and outcomes
    return [rows, outcomes]


def _tools(scene: Scene) -> Any:
    scene.memory.report_tools([ToolCall("Bash", f"echo I repeat: {TEXT}", "")])
    return scene.memory.group.database("continuity").query("SELECT target FROM tool_calls")


def _note(scene: Scene) -> Any:
    scene.memory.conversations.note("prompt", f"I repeat: {TEXT}")
    scene.memory.conversations.note("answer", "Noted.")
    assert scene.memory.conversations.drain() == 1
    return [one.user_message for one in scene.memory.conversations.session(LATER)]


def _late_note(scene: Scene) -> str:
    turns = [("user", "Where is it?"), ("assistant", f"I repeat: {TEXT}")]
    lines = [json.dumps({"role": role, "content": text}) for role, text in turns]
    scene.memory.conversations.note("prompt", "Where is it?")
    assert scene.memory.conversations.note_answer_from(str(scene.file("late.jsonl", "\n".join(lines))))
    scene.memory.conversations.drain()
    return scene.memory.conversations.session(LATER)[-1].agent_response


def _history(scene: Scene) -> Any:
    items = scene.memory.workspace.sdk_items
    items.extend(LATER, [{"type": "function_call", "arguments": json.dumps({"a": f"I repeat: {TEXT}"})}])
    (kept,) = items.history(LATER)
    assert json.loads(kept["arguments"]) == {"a": "I repeat: [forgotten]"}
    return kept


MASKED: dict[str, Callable[[Scene], object]] = {
    "host message": _message,
    "host sender": _sender,
    "host chat name": _chat_name,
    "host answer": _answer,
    "host ipc": _ipc,
    "task result": _task,
    "task error": _failing_task,
    "before_turn": _turn,
    "report_tools": _tools,
    "note and drain": _note,
    "note_answer_from": _late_note,
    "sdk_items.extend": _history,
    **_adapters(),
}


@pytest.mark.parametrize("way", MASKED)
def test_talk_goes_on_without_it_and_the_telemetry_says_so(scene: Scene, way: str) -> None:
    told = str(MASKED[way](scene))
    assert "I repeat: [forgotten]" in told.replace("I repeat:  ", "I repeat: ")
    assert _left(scene) == set()
    scene.memory.close()
    assert _left(scene) == set()
    events = [json.loads(line) for line in (scene.home / "logs/telemetry.jsonl").read_text().splitlines()]
    assert [one for one in events if one["event"] == "forgotten" and one["places"] >= 1]


def test_a_masked_message_still_calls_its_agent(scene: Scene) -> None:
    assert _message(scene) == "@Andy I repeat: [forgotten] all right?"
    host = scene.memory.host.state
    assert [group.folder for group in host.poll()] == ["main"]


@pytest.mark.files("an older release's list was a file")
def test_what_an_older_release_forgot_is_kept_out_of_chats_after_the_next_upkeep(scene: Scene) -> None:
    (scene.home / "data" / "forgotten").unlink()  # the mark that hooks and the host look for
    scene.memory.upkeep.run("ingest")
    assert _message(scene) == "@Andy I repeat: [forgotten] all right?"


# ---- whole files, exchanges and turns are read without it ----


def _exchange(scene: Scene) -> None:
    done = scene.memory.after_turn(f"I repeat: {TEXT}", "Yes.", [ToolCall("Bash", TEXT, TEXT)])
    assert (done.id, done.new) == (0, False) and "forget" in done.notes[0].reason


def _transcript(scene: Scene) -> None:
    turns = [("user", TEXT), ("assistant", "I see."), ("user", "And the weather?"), ("assistant", "Fine.")]
    lines = "\n".join(json.dumps({"role": role, "content": text}) for role, text in turns)
    assert scene.memory.conversations.archive(str(scene.file("talk.jsonl", lines)))
    assert scene.memory.before_compaction(str(scene.file("talk.jsonl", lines))) is None


def _graph_import(scene: Scene) -> None:
    rows = [{"type": "fact", "entity": "Diary", "key": "note", "value": TEXT}]
    path = scene.file("rows.jsonl", "\n".join(map(json.dumps, rows)))
    assert scene.memory.graph.import_file(path).facts == 0


def _export(kind: str, name: str, content: Any, stored: int = 0) -> Callable[[Scene], None]:
    def bring(scene: Scene) -> None:
        path = scene.file(name, content)
        folder = kind in ("claude-code", "codex", "basic-memory")
        done = scene.memory.upkeep.import_export(kind, path.parent if folder else path)
        assert done.stored == stored

    return bring


def _pages(scene: Scene) -> None:
    """A person writes it into pages again; upkeep runs as every day. Only their own pages hold it."""
    scene.page("memory/2026-02-22.md", f"- [decision|i=0.9] {TEXT}\n- [question] Is it so that {TEXT}?\n")
    scene.page("memory/2026-02-21.md", f"- [decision|i=0.9] {TEXT}\n")
    domain = scene.home / "workspace/memory/domains/fact.md"
    domain.write_text(f"{domain.read_text()}- {TEXT}\n")
    assert scene.memory.upkeep.migrate_files().stored == 0
    scene.memory.entries.render()
    assert not any(run.error for run in scene.memory.upkeep.run())
    scene.memory.workspace.refresh_active_context()
    scene.memory.session_end()
    scene.memory.upkeep.review()
    scene.memory.graph.seed(scene.memory.home)
    scene.memory.index()
    assert not scene.memory.search("Quastenflosser", fast=True).hits


def _corpus(scene: Scene) -> None:
    scene.file("documents/report.md", f"# Report\n\nIt says that {TEXT}.\n\nAnd other things.\n")
    scene.memory.admin.corpora.add("reports", [scene.outside / "documents"])
    assert scene.memory.search("other things", corpus="reports", fast=True).hits


def _task_by_ipc(scene: Scene) -> None:
    host = scene.memory.host.state
    request = {
        "type": "schedule_task",
        "prompt": TEXT,
        "schedule_type": "cron",
        "schedule_value": "0 9 * * *",
    }
    (host.place("main").ipc / "tasks" / "1.json").write_text(json.dumps(request))
    (refused,) = host.drain_ipc()
    assert "asked to forget" in refused


def _named_item(scene: Scene) -> None:
    scene.memory.workspace.sdk_items.put(("people",), TEXT, {"note": "x"})
    assert scene.memory.workspace.sdk_items.search((), "") == []


def _import_named_after_it(scene: Scene) -> None:
    path = scene.file(f"{TEXT}.json", [{"id": "1", "memory": "Likes tea with milk"}])
    assert scene.memory.upkeep.import_export("mem0", path).stored == 0


LEFT_OUT: dict[str, Callable[[Scene], object]] = {
    "after_turn": _exchange,
    "archive and before_compaction": _transcript,
    "graph import": _graph_import,
    "import mem0": _export("mem0", "mem0.json", [{"id": "1", "memory": TEXT}]),
    "import claude-code": _export("claude-code", "cc/x.md", f"---\nname: x\ntype: user\n---\n{TEXT}\n"),
    "import codex": _export("codex", "cx/MEMORY.md", f"# Facts\n\n- {TEXT}\n"),
    "import basic-memory": _export(
        "basic-memory", "bm/Tower.md", f"# Tower\n\n- [fact] {TEXT}\n- says [[{TEXT}]]\n"
    ),
    "import claude": _export(
        "claude",
        "conversations.json",
        [{"uuid": "c1", "name": TEXT, "chat_messages": [{"sender": "human", "text": TEXT}]}],
    ),
    "import chatgpt": _export(
        "chatgpt",
        "conversations.json",
        [
            {
                "title": TEXT,
                "mapping": {
                    "a": {
                        "parent": None,
                        "children": [],
                        "message": {"author": {"role": "user"}, "content": {"parts": [TEXT]}},
                    }
                },
            }
        ],
    ),
    "import whatsapp": _export("whatsapp", "chat.txt", f"12.10.24, 18:03 - Petra: {TEXT}\n"),
    "import, by the file's name": _import_named_after_it,
    "corpora.add": _corpus,
    "host ipc: a task": _task_by_ipc,
    "sdk_items.put, by its name": _named_item,
}


@pytest.mark.parametrize("way", LEFT_OUT)
def test_what_is_read_whole_is_read_without_it(scene: Scene, way: str) -> None:
    LEFT_OUT[way](scene)
    scene.memory.upkeep.run()
    scene.memory.close()
    assert _left(scene) == set()


def test_a_persons_own_pages_may_hold_it_and_nothing_else_takes_it_from_there(scene: Scene) -> None:
    _pages(scene)
    scene.memory.close()
    assert _left(scene) - {'"main/pages".pages'} == {  # a team's pages are in that table
        "workspace/memory/2026-02-21.md",
        "workspace/memory/2026-02-22.md",
        "workspace/memory/domains/fact.md",
    }


def test_a_restored_checkpoint_brings_no_row_back(scene: Scene) -> None:
    scene.memory.workspace.restore_checkpoint("old")
    scene.memory.close()
    assert _left(scene) == set()


# ---- the list of forgotten texts is damaged or gone ----


def _damage(scene: Scene, how: str = "random") -> None:
    """What a bad disk, or somebody who removes files, does to the list."""
    scene.memory.close()
    path = scene.home / "data" / "forgotten.db"
    for beside in path.parent.glob(f"{path.name}*"):
        beside.unlink()
    if how != "gone":
        path.write_bytes({"random": random.Random(7).randbytes(20_000), "empty": b""}[how])


@pytest.mark.files("it damages the file of the list")
@pytest.mark.parametrize("how", ["random", "gone", "empty"])
@pytest.mark.parametrize("way", REFUSED)
def test_a_list_that_cannot_be_read_refuses_whoever_can_act(scene: Scene, way: str, how: str) -> None:
    if way == "review_decide: text":
        _promotion(scene)
    _damage(scene, how)
    with pytest.raises(StoreError, match="list of forgotten texts cannot be read") as refused:
        REFUSED[way](scene)
    assert "doctor --fix" in refused.value.hint
    assert _left(scene) == set()


def _withheld_message(scene: Scene) -> None:
    _damage(scene)
    assert str(_message(scene)).startswith("@Andy [withheld:")
    assert [group.folder for group in scene.memory.host.state.poll()] == ["main"]


def _withheld_sender(scene: Scene) -> None:
    _damage(scene)
    assert _sender(scene)[0].sender_name == WITHHELD


def _withheld_chat_name(scene: Scene) -> None:
    _damage(scene)
    assert [chat.name for chat in _chat_name(scene)] == [WITHHELD]


def _withheld_answer(scene: Scene) -> None:
    _damage(scene)
    assert _answer(scene).content == WITHHELD


def _withheld_ipc(scene: Scene) -> None:
    _damage(scene)
    assert [reply.content for reply in _ipc(scene)] == [WITHHELD]


def _withheld_task(scene: Scene) -> None:
    made = scene.memory.host.tasks.add("Tell a story", "once", "2026-02-23T11:59:59Z")
    _damage(scene)
    scene.memory.host.tasks.run_due(lambda task, session: TEXT)
    assert scene.memory.host.tasks.get(made.id).last_result == WITHHELD


def _withheld_failing_task(scene: Scene) -> None:
    def fail(task: Any, session: str) -> str:
        raise ValueError(TEXT)

    made = scene.memory.host.tasks.add("Tell a story", "once", "2026-02-23T11:59:59Z")
    _damage(scene)
    scene.memory.host.tasks.run_due(fail)
    assert scene.memory.host.tasks.get(made.id).last_result == f"Error: {WITHHELD}"


def _withheld_turn(scene: Scene) -> None:
    _damage(scene)
    turn = scene.memory.before_turn(TEXT)
    assert turn.blocks == () and "withheld" in turn.skipped[0].reason


def _withheld_tools(scene: Scene) -> None:
    _damage(scene)
    assert _tools(scene) == []


def _waiting_note(scene: Scene) -> None:
    """What is said stays in the spool, unread by anything, until the list is repaired; then it is checked."""
    _damage(scene)
    for question in (TEXT, "How is the weather?"):
        scene.memory.conversations.note("prompt", question)
        scene.memory.conversations.note("answer", "Noted.")
    with pytest.raises(StoreError, match="list of forgotten texts"):
        scene.memory.conversations.drain()
    assert {path.split("/")[1] for path in _left(scene)} == {"spool"}
    scene.memory.doctor(fix=True)
    assert scene.memory.conversations.drain() == 2
    said = [one.user_message for one in scene.memory.conversations.session(LATER)]
    assert said == ["[forgotten]", "How is the weather?"]


def _waiting_late_note(scene: Scene) -> None:
    lines = [
        json.dumps({"role": "user", "content": "Where?"}),
        json.dumps({"role": "assistant", "content": TEXT}),
    ]
    _damage(scene)
    scene.memory.conversations.note("prompt", "Where?")
    assert scene.memory.conversations.note_answer_from(str(scene.file("late.jsonl", "\n".join(lines))))
    scene.memory.doctor(fix=True)
    assert scene.memory.conversations.drain() == 1
    assert scene.memory.conversations.session(LATER)[-1].agent_response == "[forgotten]"


def _withheld_items(scene: Scene) -> None:
    _damage(scene)
    scene.memory.workspace.sdk_items.extend(LATER, [{"role": "user", "content": TEXT}, {"role": "user"}])
    scene.memory.workspace.sdk_items.put(("people",), "l", {"note": TEXT})
    assert (
        scene.memory.workspace.sdk_items.history(LATER) == []
        and not scene.memory.workspace.sdk_items.namespaces()
    )


def _of_an_adapter(name: str) -> Callable[[Scene], None]:
    def use(scene: Scene) -> None:
        _damage(scene)
        try:
            MASKED[name](scene)
        except AttributeError:  # langgraph's item was not stored, so there is none to look at
            assert name == "langgraph"
        scene.memory.doctor(fix=True)
        scene.memory.conversations.drain()

    return use


WITHHELD_WAYS: dict[str, Callable[[Scene], None]] = {
    "host message": _withheld_message,
    "host sender": _withheld_sender,
    "host chat name": _withheld_chat_name,
    "host answer": _withheld_answer,
    "host ipc": _withheld_ipc,
    "task result": _withheld_task,
    "task error": _withheld_failing_task,
    "before_turn": _withheld_turn,
    "report_tools": _withheld_tools,
    "note and drain": _waiting_note,
    "note_answer_from": _waiting_late_note,
    "sdk_items.extend": _withheld_items,
    **{name: _of_an_adapter(name) for name in _adapters()},
}


@pytest.mark.files("it damages the file of the list")
@pytest.mark.parametrize("way", MASKED)
def test_talk_that_cannot_be_checked_is_withheld_and_the_telemetry_says_so(scene: Scene, way: str) -> None:
    WITHHELD_WAYS[way](scene)
    scene.memory.close()
    assert _left(scene) == set()
    events = [json.loads(line) for line in (scene.home / "logs/telemetry.jsonl").read_text().splitlines()]
    assert [one for one in events if one["event"] == "withheld" and "forgotten.db" in one["error"]]


@pytest.mark.files("it damages the file of the list")
@pytest.mark.parametrize("way", LEFT_OUT)
def test_nothing_is_read_whole_while_it_cannot_be_checked(scene: Scene, way: str) -> None:
    _damage(scene)
    if way == "sdk_items.put, by its name":
        LEFT_OUT[way](scene)
    elif way == "host ipc: a task":
        with pytest.raises(AssertionError, match="list of forgotten texts cannot be read"):
            LEFT_OUT[way](scene)
    else:
        with pytest.raises(StoreError, match="list of forgotten texts cannot be read"):
            LEFT_OUT[way](scene)
    scene.memory.upkeep.run()
    scene.memory.close()
    assert _left(scene) == set()


@pytest.mark.files("it damages the file of the list")
@pytest.mark.parametrize("how", ["random", "gone", "empty"])
def test_the_hint_builds_the_list_anew_and_everything_is_kept_out_again(
    scene: Scene, ncm: Callable[..., Any], how: str
) -> None:
    _damage(scene, how)
    assert any("forgotten.db" in one.message and one.level == "problem" for one in scene.memory.doctor())
    told = ncm("write", "anything else")
    assert told.code == 1 and "doctor --fix" in told.err
    assert "2 tombstones" in ncm("doctor", "--fix").out
    assert ncm("write", TEXT).code == 2 and ncm("write", "anything else").code == 0
    assert not [one for one in scene.memory.doctor() if one.level == "problem"]
    assert all(not check.problems for check in scene.memory.admin.check_databases())
    assert (scene.home / "data/forgotten.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.files("it damages the file of the list")
def test_a_search_answers_from_what_is_indexed_and_takes_in_nothing_unchecked(scene: Scene) -> None:
    scene.memory.write("The harbour gate is green")
    assert scene.memory.search("harbour gate", fast=True).hits
    _damage(scene)
    scene.page("memory/2026-02-22.md", f"- {TEXT}\n")
    found = scene.memory.search("harbour gate", fast=True)
    assert found.hits and "list of forgotten texts" in found.degraded[0]
    assert not [hit for hit in scene.memory.search("Quastenflosser", fast=True).hits if "uasten" in hit.text]
    scene.memory.close()
    assert _left(scene) == {"workspace/memory/2026-02-22.md"}


def test_a_damaged_graph_does_not_let_a_forgotten_text_in(scene: Scene) -> None:
    scene.memory.graph.upsert("Diary", "colour", "green")
    scene.memory.close()
    (scene.home / "data/facts.db").write_bytes(random.Random(7).randbytes(50_000))
    for tell in (lambda: scene.memory.write(TEXT), lambda: scene.memory.store(TEXT, "fact")):
        with pytest.raises(Refused, match="asked to forget"):
            tell()
    assert scene.memory.write("Something else").line


def test_where_nothing_was_forgotten_no_list_is_made_or_opened(memory: Memory, home: Path) -> None:
    memory.write("One")
    memory.store("Two", "fact")
    memory.graph.upsert("Diary", "colour", "green")
    memory.conversations.note("prompt", "Three")
    memory.before_turn("Four")
    assert not list((home / "data").glob("forgotten*"))


@pytest.mark.files("a schema is no link")
def test_a_group_whose_list_is_a_link_into_another_is_refused(
    scene: Scene, open_memory: Callable[..., Memory]
) -> None:
    other = open_memory(group="family")
    other.init()
    folder = scene.home / "groups/family/data"
    folder.mkdir(exist_ok=True)
    (folder / "forgotten.db").symlink_to(scene.home / "data/forgotten.db")
    with pytest.raises((StoreError, Refused), match="is a link"):
        other.write("anything")


# ---- credentials ----


def test_credentials_in_items_of_other_sdks_are_masked_and_the_rest_stays(memory: Memory, home: Path) -> None:
    call = {
        "type": "function_call",
        "call_id": "call_a1B2c3D4e5F6g7H8",
        "arguments": json.dumps({"pwd": "blue-Falcon-9"}),
    }
    memory.workspace.sdk_items.extend(
        "s", [{"role": "user", "content": "the wifi password is blue-Falcon-9."}, call]
    )
    memory.workspace.sdk_items.put(
        ("people",), "anna", {"password": "blue-Falcon-9", "city": ["Oslo", {"n": 1}]}
    )
    said, kept = memory.workspace.sdk_items.history("s")
    assert said == {"role": "user", "content": "the wifi password is [redacted:credential]."}
    assert kept["call_id"] == call["call_id"] and "redacted" in kept["arguments"]
    item = memory.workspace.sdk_items.get(("people",), "anna")
    assert item is not None and item.value == {
        "password": "[redacted:credential]",
        "city": ["Oslo", {"n": 1}],
    }
    memory.close()
    assert traces(home, ("falcon",)) == []


def test_credentials_in_what_stands_beside_a_text_are_masked(memory: Memory, home: Path) -> None:
    told = "the wifi password is blue-Falcon-9"
    memory.graph.reject("Diary", "colour", "red", told)
    memory.workspace.new_project("tower", told)
    memory.workspace.put_agent("Pete", told)
    memory.workspace.checkpoint("old", told)
    memory.report_tools([ToolCall("Bash", "curl -u anna:blue-Falcon-9 https://example.org")])
    memory.after_turn("Is it up?", "Yes.", [ToolCall("Bash", f"echo {told}")])
    memory.close()
    assert traces(home, ("falcon",)) == []


def test_a_tool_call_on_a_file_whose_name_is_no_text_is_recorded(memory: Memory) -> None:
    assert memory.after_turn("Read it", "Done.", [ToolCall("Read", "caf\udce9.txt")]).new
    assert memory.group.database("continuity").query("SELECT target FROM tool_calls") == [("caf?.txt",)]


# ---- wherever it stands ----

LETTERS = st.sampled_from(["", " ", "\t", "\n", "\u00a0"])
SIGNS = st.sampled_from(["", ",", ".", "!", "…", "“", "*", "_", ")", "\u200b", "\u00ad"])
AROUND = st.lists(st.sampled_from(["so", "they", "say", "Ökonomie", "生日", "0171"]), max_size=4).map(
    " ".join
)


def test_a_turn_does_not_admit_it_when_a_word_of_it_looks_like_a_credential(scene: Scene) -> None:
    whole = TEXT.replace("secret hideout", "secret: hIdEoUt!")
    assert "[redacted" in mask(whole)[0]
    assert scene.memory.after_turn(whole, "Yes.").id == 0
    turns = [{"role": "user", "content": whole}, {"role": "assistant", "content": "Yes."}]
    scene.memory.before_compaction(str(scene.file("talk.json", turns)))
    assert _left(scene) == set()


def test_forgetting_what_one_credential_is_leaves_what_is_said_of_another(memory: Memory) -> None:
    memory.init()
    memory.write("In Oslo the router password is Beta88yyk, Lena changes it every May")
    said = memory.after_turn(
        "In Bergen the router password is Gamma99xxq, the caretaker is Ivar Moe", "Noted."
    )
    assert said.redacted
    memory.forget(text="the router password is Alpha77zz9", agreed=lambda pages: True)
    assert "Lena" in memory.search("who changes it in Oslo?", fast=True).hits[0].text
    assert "Ivar" in memory.search("caretaker in Bergen", fast=True).hits[0].text
    assert memory.after_turn("In Narvik the router password is Delta11wwe, ask Sigrid", "Noted.").new


def test_a_text_is_forgotten_and_kept_out_where_a_credential_in_it_was_masked_before(
    memory: Memory, tmp_path: Path
) -> None:
    told = "the boathouse behind Wendelin's mill opens with the password Bluebird42!"
    memory.init()
    assert memory.after_turn(told, "Noted.").redacted
    memory.forget(text=told)
    assert not memory.search("boathouse mill", fast=True).hits
    spool = RemoteSpool(tmp_path / "laptop")  # of a thin client, which masks what it sends
    spool.note(memory.scope, "prompt", told)
    spool.note(memory.scope, "answer", "Noted.")
    taken: list[int] = []
    spool.deliver(lambda spoken: taken.append(memory.after_turn(spoken.question, spoken.answer).id))
    assert taken == [0]
    assert memory.admin.allow_forgotten(told) == 2
    assert memory.after_turn(told, "Noted.").id


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_way_in_admits_it_however_it_is_written(scene: Scene, data: st.DataObject) -> None:
    spoken = [
        data.draw(SIGNS) + "".join(data.draw(st.sampled_from([letter, letter.upper()])) for letter in word)
        for word in TEXT.split()
    ]
    text = spoken[0] + "".join(f"{data.draw(SIGNS)} {data.draw(LETTERS)}{word}" for word in spoken[1:])
    whole = f"{data.draw(AROUND)} {text}{data.draw(SIGNS)} {data.draw(AROUND)}"
    for admit in (
        lambda: scene.memory.write(whole),
        lambda: scene.memory.store(whole, "fact"),
        lambda: scene.memory.graph.upsert("Diary", "note", whole),
        lambda: scene.memory.lessons.add(whole),
        lambda: scene.memory.workspace.notes.create("/memories/a.md", whole),
        lambda: scene.memory.host.tasks.add(whole, "once", "2026-03-01T10:00:00Z"),
    ):
        with pytest.raises(Refused, match="asked to forget"):
            admit()
    assert scene.memory.after_turn(whole, "Yes.").id == 0
    scene.memory.conversations.note("prompt", whole)
    scene.memory.workspace.sdk_items.extend(LATER, [{"content": whole}])
    scene.memory.host.state.store_message(data.draw(st.uuids()).hex, "me@chat", whole, "2026-02-23T11:00:00Z")
    assert _left(scene) == set()


# ---- the list is whole ----

READS_OR_NAMES_ONLY = {
    "counts",
    "evaluate",
    "evaluate_example",
    *(
        "open",
        "close",
        "for_session",
        "database",
        "today",
        "require_group",
        "require_main",
        "require_home",
        "fenced",
        "watch",
        "forgets",
    ),
    *("init", "get", "log", "projects", "project", "runbooks", "runbook", "policies", "policy_check"),
    *("db_check", "search", "index", "bench_embed", "graph_search", "graph_reinforce", "boot", "brief"),
    *(
        "recall",
        "shared_recall",
        "reinforce",
        "delete",
        "index_status",
        "audit",
        "audit_verify",
        "audit_trace",
    ),
    *(
        "config_rows",
        "config_get",
        "sessions",
        "session",
        "session_search",
        "session_start",
        "embed_exchanges",
    ),
    *(
        "boot_problems",
        "transcripts",
        "archives",
        "doctor",
        "status",
        "models",
        "models_install",
        "heartbeat",
        "flush_needed",
    ),
    *("upkeep_status", "install_cron", "forget", "forget_allow"),
}
OTHERWISE = {  # under the name of a way above
    *("entries_migrate", "import_export", "upkeep", "review", "session_end", "refresh_active_context"),
    *("drain", "note", "run_tasks", "host", "checkpoint_restore", "archive", "before_compaction"),
}


def test_every_method_of_the_facade_is_on_a_list() -> None:
    public = {
        name
        for name, found in inspect.getmembers(Memory)
        if not name.startswith("_") and (inspect.isfunction(found) or inspect.ismethod(found))
    }
    ways = {
        way.split(":")[0].split(".")[0].split(",")[0].split(" ")[0] for way in (*REFUSED, *MASKED, *LEFT_OUT)
    }
    assert public - ways - READS_OR_NAMES_ONLY - OTHERWISE == set()


def _left(scene: Scene) -> set[str]:
    """The files that hold it, but for the checkpoint that was made before."""
    found = {trace.split(":")[0] for trace in traces(scene.home, WORDS)}
    return {path for path in found if "/checkpoints/" not in path}


# ---- the faces ----

COMMANDS = [
    ("write", TEXT),
    ("entries", "store", TEXT, "--type", "fact"),
    ("graph", "add", "Diary", "note", TEXT),
    ("graph", "relate", "Diary", "says", TEXT),
    ("graph", "alias", TEXT, "Diary"),
    ("lessons", "add", TEXT),
    ("policy", "add", TEXT, "--trigger", "naming it", "--gate", "ask"),
    ("project", "new", "tower", "--title", TEXT),
    ("project", "note", "tower", TEXT),
    ("checkpoint", "create", "x", "--reason", TEXT),
    ("config", "set", "user.entity", TEXT),
    ("tasks", "add", TEXT, "--every", "2h"),
    ("groups", "add", "main", "--chat", "me@chat", "--name", TEXT, "--trigger", "@Andy"),
    ("groups", "add", "fam2", "--chat", "x@chat", "--name", TEXT),
    ("groups", "add", "fam2", "--chat", TEXT),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_is_refused_with_exit_2_and_the_way_out(
    scene: Scene, ncm: Callable[..., Any], command: tuple[str, ...]
) -> None:
    ran = ncm(*command)
    assert ran.code == 2 and "a person asked to forget this" in ran.err and "--allow" in ran.err
    assert _left(scene) == set()


@pytest.mark.parametrize("event", ["user-prompt-submit", "stop"])
def test_a_hook_spools_without_it_and_never_fails(scene: Scene, ncm: Callable[..., Any], event: str) -> None:
    said = {"prompt": f"I repeat: {TEXT}", "last_assistant_message": f"I repeat: {TEXT}", "session_id": LATER}
    assert ncm("hook", event, stdin=json.dumps(said)).code == 0
    spooled = [path.read_text() for path in (scene.home / "data/spool").glob("*.jsonl")]
    assert "I repeat: [forgotten]" in "".join(spooled)
    assert _left(scene) == set()


def test_the_model_is_told_by_mcp(scene: Scene) -> None:
    from mcp import Client

    from nanoclaw_memory.interfaces.mcp.server import build_server

    async def tell() -> list[Any]:
        async with Client(build_server(scene.memory, "all")) as client:
            return [
                await client.call_tool("memory_store", {"type": "fact", "content": TEXT}),
                await client.call_tool("memory_write", {"content": TEXT}),
                await client.call_tool("fact_upsert", {"entity": "Diary", "key": "note", "value": TEXT}),
            ]

    for answer in asyncio.run(tell()):
        assert answer.is_error and "asked to forget" in answer.content[0].text
    assert _left(scene) == set()


def test_the_memory_tool_tells_the_model(scene: Scene) -> None:
    pytest.importorskip("anthropic")
    from anthropic.lib.tools import ToolError

    from nanoclaw_memory.interfaces.sdk.anthropic import MemoryTool

    with pytest.raises(ToolError, match="asked to forget"):
        MemoryTool(scene.memory).call({"command": "create", "path": "/memories/a.md", "file_text": TEXT})
    assert _left(scene) == set()
