"""Each format of export, read from a file, a folder or a zip; broken ones are refused as a whole."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.entries import importers
from nanoclaw_memory.entries.importers import KINDS, read_export
from nanoclaw_memory.entries.markdown import Imports
from nanoclaw_memory.errors import FileProblem, InvalidValue
from nanoclaw_memory.interfaces.cli.transfer import EXPORTS as OFFERED
from nanoclaw_memory.types import Utterance

CLAUDE = [
    {
        "uuid": "c-1",
        "name": "Trip to Bergen",
        "created_at": "2026-01-05T10:00:00.000000Z",
        "updated_at": "2026-01-05T10:05:00.000000Z",
        "chat_messages": [
            {
                "sender": "human",
                "text": "When does the ferry leave?",
                "content": [{"type": "text", "text": "When does the ferry leave?"}],
                "created_at": "2026-01-05T10:00:00.000000Z",
                "attachments": [{"file_name": "plan.txt", "extracted_content": "Day 1: fjord"}],
            },
            {
                "sender": "assistant",
                "text": "At nine.",
                "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "At nine."}],
                "created_at": "2026-01-05T10:00:05.000000Z",
                "attachments": [],
            },
        ],
    },
    {"uuid": "c-2", "name": "", "created_at": "2026-01-06T10:00:00Z", "chat_messages": []},
]


def _node(name: str, parent: str | None, children: list[str], message: Any = None) -> dict[str, Any]:
    return {"id": name, "parent": parent, "children": children, "message": message}


def _message(role: str, parts: list[Any], at: float | None = 1767607200.0, **metadata: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": parts}
    return {"author": {"role": role}, "create_time": at, "content": content, "metadata": metadata}


CHATGPT = [
    {
        "title": "Ferry",
        "create_time": 1767607200.0,
        "conversation_id": "g-1",
        "current_node": "e",
        "mapping": {
            "root": _node("root", None, ["sys"]),
            "sys": _node("sys", "root", ["a"], _message("system", ["You are"], None)),
            "a": _node("a", "sys", ["b", "d"], _message("user", ["When?", {"asset": "image"}])),
            "b": _node("b", "a", [], _message("assistant", ["An answer that was thrown away"])),
            "d": _node("d", "a", ["e"], _message("assistant", ["At nine."], None)),
            "e": _node("e", "d", ["h"], _message("user", ["Thanks"])),
            "h": _node("h", "e", [], _message("user", ["hidden"], is_visually_hidden_from_conversation=True)),
        },
    }
]
MEMORIES = {
    "MEMORY.md": "- [How I answer](feedback.md): short\n- The laptop is called Falcon\n",
    "feedback.md": "---\nname: answers\ntype: feedback\nmodified: 2026-01-01\n---\n\nAnswer short.\n**Why:** I skim.\n",
    "me.md": '---\nname: "me"\nmetadata:\n  type: user\n---\nWorks at a dairy in Bergen.\n',
    "odd.md": "# Notes\n\n- The server runs in Oslo\n\n```\ncode\n```\n",
}
NOTES = {
    "Ferry.md": (
        "---\ntitle: Ferry\ntype: note\ntags: [travel]\n---\n\n# Ferry\n\n## Observations\n"
        "- [schedule] Leaves at nine #travel #bergen (from the quay)\n- [decision] We take the early one\n\n"
        "## Relations\n- starts_in [[Bergen]]\n- part of [[Trip|the trip]]\n- [[Harbour]]\n\nSome prose here.\n"
    )
}
MEM0 = {
    "results": [
        {
            "id": "m-1",
            "memory": "Likes to travel by train",
            "categories": ["travel", "x" * 80],
            "user_id": "u",
        },
        {"id": "m-2", "memory": "Name is Alex", "categories": None},
        {"id": "m-3", "memory": ""},
    ]
}


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def zipped(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def texts(found: Imports) -> list[tuple[str, str]]:
    return [(one.type, one.content) for one in found.entries]


def test_the_command_offers_every_format_that_is_read() -> None:
    assert [*KINDS, "memory-jsonl", "obsidian", "nanoclaw"] == OFFERED


@pytest.mark.parametrize("form", ["file", "folder", "zip"])
def test_a_claude_export_gives_its_conversations(tmp_path: Path, form: str) -> None:
    files = {"conversations.json": json.dumps(CLAUDE), "users.json": "[]"}
    folder = written(tmp_path / "export", files)
    inside = {f"data/{name}": text for name, text in files.items()}
    path = {"file": folder / "conversations.json", "folder": folder}.get(form) or zipped(
        tmp_path / "e.zip", inside
    )
    (chat,) = read_export("claude", path).conversations
    assert (chat.session_id, chat.title, chat.source) == ("import-claude-c-1", "Trip to Bergen", "import")
    assert chat.said == (
        Utterance("User", "When does the ferry leave?\n\nDay 1: fjord", "2026-01-05T10:00:00.000Z"),
        Utterance("Agent", "At nine.", "2026-01-05T10:00:05.000Z"),
    )


def test_a_chatgpt_export_gives_the_branch_that_was_shown_without_hidden_turns(tmp_path: Path) -> None:
    path = zipped(tmp_path / "e.zip", {"conversations.json": json.dumps(CHATGPT), "chat.html": "<html>"})
    (chat,) = read_export("chatgpt", path).conversations
    assert [(turn.speaker, turn.text) for turn in chat.said] == [
        ("User", "When?"),
        ("Agent", "At nine."),
        ("User", "Thanks"),
    ]
    assert chat.session_id == "import-chatgpt-g-1"
    assert all(turn.at.startswith("2026-01-05T10:00:00") for turn in chat.said)


def test_a_chatgpt_export_in_pieces_without_ids_or_times_keeps_its_conversations_apart(
    tmp_path: Path,
) -> None:
    def bare(text: str) -> dict[str, Any]:
        node = _node("a", None, [], _message("user", [text], None))
        return {"title": None, "mapping": {"a": {**node, "id": None}}}

    folder = written(
        tmp_path,
        {
            "conversations-000.json": json.dumps([bare("one")]),
            "conversations-001.json": json.dumps([bare("two")]),
        },
    )
    first, second = read_export("chatgpt", folder).conversations
    assert first.session_id != second.session_id
    assert (first.said[0].text, second.said[0].text) == ("one", "two")


def test_a_tree_that_runs_in_a_circle_ends(tmp_path: Path) -> None:
    circle = {"a": _node("a", "b", ["b"], _message("user", ["hm"])), "b": _node("b", "a", ["a"])}
    path = tmp_path / "c.json"
    path.write_text(json.dumps([{"title": "t", "current_node": "b", "mapping": circle}]))
    assert len(read_export("chatgpt", path).conversations[0].said) == 1


def test_claude_code_memory_gives_an_entry_a_file_and_skips_what_only_points(tmp_path: Path) -> None:
    found = read_export("claude-code", written(tmp_path, MEMORIES))
    assert sorted(texts(found)) == [
        ("correction", "Answer short. **Why:** I skim."),
        ("fact", "The laptop is called Falcon"),
        ("fact", "The server runs in Oslo"),
        ("person", "Works at a dairy in Bergen."),
    ]
    assert {one.source for one in found.entries} == {"MEMORY.md:2", "feedback.md:7", "me.md:6", "odd.md:3"}
    assert found.unplaced == ["odd.md:5: a code block stays in its file"]


def test_a_codex_memory_is_read_as_pages(tmp_path: Path) -> None:
    pages = {
        "MEMORY.md": "# Task group: api\n\n## User preferences\n\n- prefers pnpm over npm\n",
        "memory_summary.md": "## Conventions\n\n- Run make lint before every commit\n",
    }
    assert texts(read_export("codex", written(tmp_path, pages))) == [
        ("preference", "prefers pnpm over npm"),
        ("instruction", "Run make lint before every commit"),
    ]


@pytest.mark.parametrize("tree", [MEM0, MEM0["results"], {"memories": MEM0["results"]}])
def test_a_mem0_export_gives_entries_with_their_ids_and_usable_tags(tmp_path: Path, tree: Any) -> None:
    path = tmp_path / "memories.json"
    path.write_text(json.dumps(tree))
    found = read_export("mem0", path)
    assert texts(found) == [("preference", "Likes to travel by train"), ("fact", "Name is Alex")]
    assert found.entries[0].tags == ("travel", "x" * 50)
    assert found.entries[0].source == "memories.json:m-1"
    assert found.unplaced == ["memories.json:m-3: empty"]


def test_an_empty_mem0_export_is_empty_not_broken(tmp_path: Path) -> None:
    path = tmp_path / "memories.json"
    path.write_text('{"results": []}')
    assert read_export("mem0", path) == Imports()


def test_basic_memory_notes_give_observations_and_relations(tmp_path: Path) -> None:
    found = read_export("basic-memory", written(tmp_path, NOTES))
    assert texts(found) == [
        ("fact", "Ferry: Leaves at nine"),
        ("decision", "Ferry: We take the early one"),
    ]
    assert found.entries[0].tags == ("schedule", "travel", "bergen")
    assert [(one.subject, one.predicate, one.object) for one in found.relations] == [
        ("Ferry", "starts in", "Bergen"),
        ("Ferry", "part of", "Trip"),
        ("Ferry", "links to", "Harbour"),
    ]
    assert found.unplaced == ["Ferry.md:18: neither an observation nor a relation"]


def test_one_bad_page_is_said_and_the_others_come_in(tmp_path: Path) -> None:
    written(tmp_path, {"good.md": "- The server runs in Oslo\n", ".hidden/x.md": "- secret is this\n"})
    (tmp_path / "bad.md").write_bytes(b"- caf\xe9 is here\n")
    found = read_export("codex", tmp_path)
    assert texts(found) == [("fact", "The server runs in Oslo")]
    assert len(found.unplaced) == 1 and "bad.md" in found.unplaced[0] and "UTF-8" in found.unplaced[0]


PROJECTS = [
    {
        "uuid": "p-1",
        "name": "Ferry app",
        "description": "Shows when the next ferry leaves",
        "is_private": True,
        "is_starter_project": False,
        "prompt_template": "# How\n\n- Always answer with the pier's name\n- Never guess a departure\n",
        "created_at": "2026-01-05T10:00:00Z",
        "docs": [{"uuid": "d-1", "filename": "piers.md", "content": "x" * 1234}],
    },
    {
        "uuid": "p-0",
        "name": "How to use Claude",
        "is_starter_project": True,
        "prompt_template": "",
        "docs": [],
    },
    {"uuid": "p-2", "name": "Empty", "description": "", "prompt_template": None, "docs": []},
]
REMEMBERED = [
    {
        "conversations_memory": "**Work**\n\nAnna leads the sales team in Oslo.\n",
        "project_memories": {"p-1": "- The ferry app is deployed from Bergen every Monday\n"},
        "account_uuid": "a-1",
    }
]


@pytest.mark.parametrize("form", ["zip", "folder"])
def test_a_claude_exports_projects_and_memories_become_entries_and_documents_are_named(
    tmp_path: Path, form: str
) -> None:
    files = {"conversations.json": CLAUDE, "projects.json": PROJECTS, "memories.json": REMEMBERED}
    texts = {name: json.dumps(tree) for name, tree in files.items()} | {"users.json": "[{}]"}
    path = zipped(tmp_path / "export.zip", texts) if form == "zip" else written(tmp_path, texts)
    found = read_export("claude", path)
    assert [(one.type, one.content) for one in found.entries if one.source.startswith("projects")] == [
        ("project", "Ferry app: Shows when the next ferry leaves"),
        ("instruction", "In the project Ferry app: Always answer with the pier's name"),
        ("instruction", "In the project Ferry app: Never guess a departure"),
    ]
    remembered = {one.source: one.content for one in found.entries if one.source.startswith("memories")}
    assert "Anna leads the sales team in Oslo." in remembered.values()
    assert remembered["memories.json:p-1:1"] == "The ferry app is deployed from Bergen every Monday"
    assert len(found.conversations) == 1
    left = "\n".join(found.unplaced)
    assert "the document piers.md of Ferry app (1,234 characters) was left out" in left
    assert "How to use Claude is Claude's own example" in left


def test_projects_alone_are_read_too(tmp_path: Path) -> None:
    path = tmp_path / "projects.json"
    path.write_text(json.dumps(PROJECTS))
    assert len(read_export("claude", path).entries) == 3
    path.write_text(json.dumps(PROJECTS[0]))
    assert len(read_export("claude", path).entries) == 3


@pytest.mark.parametrize("kind", ["claude", "chatgpt", "mem0"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "3",
        '"x"',
        '{"a": 1}',
        "[1]",
        "[null]",
        '[{"mapping": 3}]',
        "[[[[",
        "\x00",
        '[{"uuid": 1}',
    ],
)
def test_what_is_no_export_is_refused_with_the_file_named(tmp_path: Path, kind: str, text: str) -> None:
    path = tmp_path / "strange.json"
    path.write_text(text)
    with pytest.raises(FileProblem, match=r"strange\.json"):
        read_export(kind, path)


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_missing_an_empty_and_a_wrong_place_are_refused(tmp_path: Path, kind: str) -> None:
    with pytest.raises(InvalidValue):
        read_export(kind, tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileProblem):
        read_export(kind, tmp_path / "empty")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\xff")
    with pytest.raises(FileProblem):
        read_export(kind, tmp_path / "picture.png")


def test_an_unknown_format_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue) as refused:
        read_export("evernote", tmp_path)
    assert "basic-memory" in refused.value.hint


@pytest.mark.parametrize("kind", ["claude", "chatgpt", "mem0"])
def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "conversations.json"
    with path.open("wb") as handle:
        handle.truncate(importers.MAX_BYTES + 1)  # sparse: no disk is used
    with pytest.raises(FileProblem, match="over the limit"):
        read_export(kind, path)


def test_a_zip_without_the_file_a_cut_zip_and_deep_nesting_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match="no such file"):
        read_export("claude", zipped(tmp_path / "other.zip", {"readme.txt": "hello"}))
    whole = zipped(tmp_path / "whole.zip", {"conversations.json": json.dumps(CLAUDE)})
    cut = tmp_path / "cut.zip"
    cut.write_bytes(whole.read_bytes()[:-40])
    with pytest.raises(FileProblem):
        read_export("claude", cut)
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(FileProblem):
        read_export("claude", deep)


def test_an_endless_turn_is_cut_aloud(tmp_path: Path) -> None:
    chat = {"uuid": "u", "chat_messages": [{"sender": "human", "text": "x" * 200_000}]}
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([chat]))
    (said,) = read_export("claude", path).conversations[0].said
    assert said.text.endswith("[cut: 100,000 of 200,000 characters]")


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=True) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "uuid name chat_messages sender text content mapping message author role parts create_time parent"
                " children id current_node results memory categories title created_at attachments type".split()
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)


@given(
    tree=st.lists(json_values, max_size=3) | json_values, kind=st.sampled_from(["claude", "chatgpt", "mem0"])
)
def test_any_json_is_read_or_refused_but_never_breaks(
    tmp_path_factory: pytest.TempPathFactory, tree: Any, kind: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps(tree))
    try:
        found = read_export(kind, path)
    except FileProblem:
        return
    assert all(one.content and one.source for one in found.entries)
