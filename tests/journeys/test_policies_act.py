"""Gating policies act: in a turn, over MCP, before a tool runs; by words in a cold process, by meaning with models."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from nanoclaw_memory import Memory
from nanoclaw_memory.interfaces import hooks
from nanoclaw_memory.interfaces.mcp.tools import Tools
from nanoclaw_memory.retrieval import policy_matching
from nanoclaw_memory.types import Scope


@pytest.fixture
def gated(memory: Memory) -> Memory:
    add = memory.workspace.add_policy
    add("Never restart the gateway unasked", "Any request to restart services", "Wait for an explicit yes")
    add("Ask before data goes", "Deleting or dropping production data", "Make a backup first", enforce="ask")
    add("No publishing", "Publishing to the package registry", "Ruth signs it off", enforce="block")
    return memory


def blocks_of(memory: Memory, message: str) -> str:
    return memory.before_turn(message).text


def test_a_message_that_plans_a_risky_action_gets_the_gate(gated: Memory):
    text = blocks_of(gated, "Restart the payment services to load the new config")
    assert "GATING POLICIES" in text and "GP-001" in text and "Wait for an explicit yes" in text
    assert "GP-002" not in text and "GP-003" not in text


@pytest.mark.parametrize(
    "message", ["How do I restart services?", "Thanks, that helped a lot", "Write a poem"]
)
def test_a_question_or_small_talk_gets_none(gated: Memory, message: str):
    assert "GATING POLICIES" not in blocks_of(gated, message)


def test_an_agent_checks_an_action_over_mcp(gated: Memory):
    tools = Tools(gated)
    assert tools.policy_check("drop the users table with production data").startswith(
        "GP-002 Ask before data goes"
    )
    assert tools.policy_check("read the changelog") == "No policy is met."


def hook(memory: Memory, tool: str, **given: str) -> dict[str, Any]:
    payload = {"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": given, "session_id": "s"}
    from contextlib import nullcontext

    raw = json.dumps(payload).encode()
    said = hooks.answer("pre-tool-use", raw, lambda scope: nullcontext(memory), Scope())
    return json.loads(said)["hookSpecificOutput"] if said else {}


def test_a_tool_hook_warns_asks_or_blocks_as_the_policy_says(gated: Memory):
    warned = hook(gated, "Bash", command="systemctl restart services")
    assert "permissionDecision" not in warned and "GP-001" in warned["additionalContext"]
    asked = hook(gated, "Bash", command="psql -c 'drop table users'", description="Dropping production data")
    assert asked["permissionDecision"] == "ask" and "Make a backup first" in asked["permissionDecisionReason"]
    blocked = hook(gated, "Bash", command="publish to the package registry")
    assert blocked["permissionDecision"] == "deny" and "Ruth" in blocked["permissionDecisionReason"]


def test_a_tool_that_reads_or_a_text_that_is_written_is_no_action(gated: Memory):
    assert hook(gated, "Read", file_path="restart services.md") == {}
    assert hook(gated, "mcp__db__search_rows", query="dropping production data") == {}
    assert hook(gated, "Write", file_path="notes.md", content="How to restart services") == {}
    assert hook(gated, "Bash", command="ls -la") == {}


class Near:
    """An embedder that finds near what shares a letter sequence, and a judge that knows what is risky."""

    def __init__(self, risk: float) -> None:
        self.risk = risk
        self.identity = SimpleNamespace(key="near")
        self.identities = (self.identity,)

    def _vector(self, text: str) -> np.ndarray:
        words = ["restart", "delet", "publish"]
        synonyms = {"reboot": 0, "wipe": 1, "release": 2}
        found = [float(word in text.casefold()) for word in words]
        for word, place in synonyms.items():
            found[place] += float(word in text.casefold())
        return np.array([*found, 0.1])

    def embed_query(self, text: str, among: Any = None) -> Any:
        return SimpleNamespace(vectors=[self._vector(text)])

    def embed_documents(self, texts: list[str]) -> Any:
        return SimpleNamespace(vectors=[self._vector(text) for text in texts])

    def probability(self, head: str, text: str, other: str = "") -> float:
        assert head in ("meets", "needs")
        return self.risk if head == "meets" else 0.01 if "sounds good" in text else 0.9


@pytest.fixture(autouse=True)
def _no_kept_vectors():
    policy_matching._vectors.clear()
    yield
    policy_matching._vectors.clear()


def test_a_paraphrase_is_met_by_its_meaning_and_never_blocked(gated: Memory, monkeypatch: pytest.MonkeyPatch):
    near: Any = Near(0.4)
    hits = policy_matching.triggered(
        gated.workspace.policies(), "release version four to everybody", near, near
    )
    assert hits[0].policy.id == "GP-003" and hits[0].by == "meaning"
    monkeypatch.setattr(gated.workspace, "check_policies", lambda action, fast: hits)
    assert hook(gated, "Bash", command="release version four")["permissionDecision"] == "ask"


def test_policies_are_met_by_meaning_however_many_were_asked_before(gated: Memory):
    near: Any = Near(0.4)
    policies, action = gated.workspace.policies(), "release version four to everybody"
    met = policy_matching.triggered(policies, action, near, near)
    others = [replace(policies[0], trigger=f"Feeding cat {number}") for number in range(1_100)]
    policy_matching.triggered(others, action, near, near)
    added = replace(policies[0], id="GP-009", trigger="Feeding the dog")
    assert policy_matching.triggered([*policies, added], action, near, near) == met


def test_a_message_is_reminded_only_where_the_risk_is_plainer_than_where_one_asks(gated: Memory):
    policies, unsure, sure = gated.workspace.policies(), Near(0.07), Near(0.15)
    said: Any = ("release version four to everybody", unsure, unsure)
    assert (
        policy_matching.triggered(policies, *said)
        and policy_matching.triggered(policies, *said, asked=False) == []
    )
    assert policy_matching.triggered(policies, "release version four to everybody", sure, sure, asked=False)  # type: ignore[arg-type]
    assert (
        policy_matching.triggered(policies, "sounds good, release version four", sure, sure, asked=False)
        == []
    )  # type: ignore[arg-type]


def test_in_a_home_of_one_policy_a_risk_of_another_kind_does_not_bring_it(gated: Memory):
    near: Any = Near(0.5)
    only = gated.workspace.policies()[:1]
    assert [
        hit.policy.id
        for hit in policy_matching.triggered(only, "reboot the whole machine tonight", near, near)
    ] == ["GP-001"]
    assert policy_matching.triggered(only, "wipe the whole customer folder tonight", near, near) == []


class Served:
    """The models of a server, in place of those that would have to be loaded."""

    def __init__(self, memory: Memory, models: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        own = memory.group.resources
        own.resident, own.embedder = True, models
        monkeypatch.setattr(type(own), "judge", models)


def test_a_policy_whose_words_are_said_is_named_everywhere_however_harmless_a_model_finds_it(
    gated: Memory, monkeypatch: pytest.MonkeyPatch
):
    action = "restart all the services tonight"
    cold = [hit.policy.id for hit in gated.workspace.check_policies(action, fast=True)]
    assert cold == ["GP-001"] and "GP-001" in blocks_of(gated.for_session("cold"), action)
    Served(gated, Near(1e-6), monkeypatch)
    assert [hit.policy.id for hit in gated.workspace.check_policies(action)] == cold
    assert "GP-001" in Tools(gated).policy_check(action)
    assert "GP-001" in hook(gated, "Bash", command=action)["additionalContext"]
    assert "GP-001" in blocks_of(gated, action)


class Hanging(Near):
    """A model that does not come back before it is told to."""

    def __init__(self) -> None:
        super().__init__(0.4)
        self.asked, self.go_on = threading.Event(), threading.Event()

    def probability(self, head: str, text: str, other: str = "") -> float:
        self.asked.set()
        self.go_on.wait(60)
        return super().probability(head, text, other)


@pytest.mark.parametrize("message", ["restart all the services tonight", "water all the plants tonight"])
def test_a_policy_whose_words_are_said_comes_though_meaning_takes_too_long(
    gated: Memory, monkeypatch: pytest.MonkeyPatch, message: str
):
    models = Hanging()
    Served(gated, models, monkeypatch)
    turn = gated.before_turn(message)
    models.go_on.set()
    assert models.asked.is_set()
    assert ("GP-001" in turn.text) == message.startswith("restart")
    (note,) = [note.reason for note in turn.notes if note.plugin == "policies"]
    assert note.startswith("passed its time limit") and note.endswith("what it had is given")


def test_between_the_two_only_words_decide(gated: Memory):
    near: Any = Near(0.035)
    policies = gated.workspace.policies()
    assert policy_matching.triggered(policies, "wipe the old customer records", near, near) == []
    assert [
        hit.policy.id for hit in policy_matching.triggered(policies, "restart all the services", near, near)
    ] == ["GP-001"]


def test_a_policy_that_says_how_it_is_enforced_is_read_back(gated: Memory, ncm: Callable[..., Any]):
    assert [one.enforce for one in gated.workspace.policies()] == ["", "ask", "block"]
    page = (gated.home.workspace("main") / "memory/gating-policies.md").read_text()
    assert "- Enforce: block" in page
    assert ncm("policy", "add", "x", "--trigger", "y", "--gate", "z", "--enforce", "shoot").code == 2
