"""Gating policies: read as people write them, numbered once and for ever, and triggered by what is meant."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nanoclaw_memory.errors import FileProblem, InvalidValue
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import Policy
from nanoclaw_memory.workspace.policies import add, check, format_policy, parse

LINE = st.text(st.characters(exclude_categories=["Cs"]), max_size=60).map(one_line)
SAID = LINE.filter(lambda text: text and not text.endswith("#") and text.strip("-–—:.) *_") == text)

POLICIES = [
    Policy("GP-001", "Never restart gateway without confirmation", "Any request to restart services", "Ask"),
    Policy("GP-002", "Never deploy on Friday", "Deploying to production after Friday noon", "Wait"),
    Policy("GP-003", "Never email clients without review", "Sending email to clients or partners", "Review"),
    Policy("GP-004", "Back up the database before migrations", "Running a schema migration", "Back up"),
    Policy(
        "GP-005",
        "Never delete production data without a backup",
        "Any rm, delete, drop or truncate on production data",
        "Back up",
    ),
    Policy("GP-006", "Never push to main", "git push to main or release branches", "Open a pull request"),
    Policy("GP-007", "Ask before spending money", "Any paid API call or subscription", "Ask"),
    Policy("GP-008", "Rotate keys with the vault open", "Rotating or revoking API keys", "Open the vault"),
]


@pytest.mark.parametrize(
    ("action", "triggered"),
    [
        ("restart the gateway", "GP-001"),
        ("I am restarting the nginx service now", "GP-001"),
        ("restart payment-api so that it reads the new config", "GP-001"),
        ("deploy the new build to production", "GP-002"),
        ("quick deployment to prod on Friday afternoon: deploy now", "GP-002"),
        ("send the newsletter to all clients", "GP-003"),
        ("email our partners the price list", "GP-003"),
        ("run the database migration", "GP-004"),
        ("apply the pending schema migrations", "GP-004"),
        ("drop the users table in production", "GP-005"),
        ("DELETE FROM orders on the production database", "GP-005"),
        ("truncate production.events", "GP-005"),
        ("git push origin main", "GP-006"),
        ("force-push main", "GP-006"),
        ("make a paid API call to translate the page", "GP-007"),
        ("rotate the API keys", "GP-008"),
        ("revoke Bob's API key", "GP-008"),
    ],
)
def test_an_action_triggers_its_policy_and_no_other(action: str, triggered: str):
    assert [hit.policy.id for hit in check(POLICIES, action)] == [triggered]


@pytest.mark.parametrize(
    "action",
    [
        "start the meeting",
        "book a table at the restaurant",
        "update the docs of the gateway",
        "reply to customer service",
        "request a refund",
        "reload the config without restarting the gateway",
        "deploy to staging on Tuesday",
        "make plans for lunch on Friday",
        "read the deployment notes",
        "email Bob about lunch",
        "read what the clients said",
        "migrate the blog to Hugo",
        "delete the temp file",
        "look at production data",
        "the main reason is cost",
        "push the meeting to Thursday",
        "call the dentist",
        "rotate the logo by 90 degrees",
        "write the API docs",
        "any request from any user",
        "never without confirmation",
        "",
        "!!! ---",
    ],
)
def test_a_near_miss_triggers_nothing(action: str):
    assert check(POLICIES, action) == []


def test_a_hit_says_which_words_told_and_the_surest_comes_first():
    hits = check(
        [*POLICIES, Policy("GP-009", "Deploy", "Deploying to production", "x")], "deploy to production"
    )
    assert [hit.policy.id for hit in hits] == ["GP-009", "GP-002"]
    assert hits[0].matched == ("deploy", "production")
    assert 0.5 <= hits[1].score < hits[0].score <= 1


def test_a_policy_without_a_trigger_goes_by_its_title():
    half = [Policy("GP-001", "Never restart the gateway", "", "")]
    assert check(half, "restarting the gateway") and not check(half, "look at the gateway")


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=80))
def test_no_text_breaks_the_check(title: str, trigger: str, action: str):
    for hit in check([Policy("GP-001", title, trigger, "")], action):
        assert 0 < hit.score <= 1 and hit.matched


# ---- reading ----


@given(SAID, SAID, SAID, LINE, LINE)
def test_a_policy_is_read_back_as_written(title: str, trigger: str, gate: str, reason: str, source: str):
    fields = [text.lstrip("*_ ") for text in (reason, source)]
    policy = Policy("GP-012", title, trigger, gate, *fields, line=1)
    assert parse(format_policy(policy)) == [policy]


def test_what_people_type_is_understood():
    text = """# Gating policies\r
\r
## GP-001: Never restart gateway without confirmation\r
- Trigger: Any request to restart services\r
- Gate: Require explicit "yes, restart" from user\r
- Reason: Feb 15 incident\r
- Source: 2026-02-15.md\r
\r
### gp-2 — Another one ##
* **Trigger:** sending mail
  to clients
* **GATE**: ask
free text that belongs to the gate

Free text that belongs to nobody.

# Notes
- Trigger: not a policy

```markdown
## GP-099: an example in a code block
```
## GP 7) No fields at all
"""
    first, second, third = parse(text)
    assert first == Policy(
        "GP-001",
        "Never restart gateway without confirmation",
        "Any request to restart services",
        'Require explicit "yes, restart" from user',
        "Feb 15 incident",
        "2026-02-15.md",
        3,
    )
    assert (second.id, second.title, second.trigger) == ("GP-002", "Another one", "sending mail to clients")
    assert second.gate == "ask free text that belongs to the gate"
    assert third == Policy("GP-007", "No fields at all", "", "", line=23)


@given(st.text())
def test_no_file_breaks_the_parser(text: str):
    mine = "## GP-007: Ask first\n\n- Trigger: deploying\n- Gate: ask\n"
    found = parse(f"{text.replace('`', '').replace('~', '')}\n\n{mine}")
    assert (found[-1].id, found[-1].title) == ("GP-007", "Ask first")
    lines = text.count("\n") + 1
    assert all(1 <= policy.line <= lines + 2 for policy in found[:-1])


# ---- numbering ----


def numbers(path: Path) -> list[str]:
    return [policy.id for policy in parse(path.read_text())]


def test_a_number_is_never_given_twice_even_after_the_highest_was_deleted(tmp_path: Path):
    path = tmp_path / "gating-policies.md"
    for title in ("one", "two"):
        add(path, title, "t", "g")
    path.write_text(path.read_text().split("## GP-002")[0])
    assert add(path, "three", "t", "g").id == "GP-003"
    path.unlink()
    assert add(path, "four", "t", "g").id == "GP-004"


def test_a_number_given_by_hand_counts_too(tmp_path: Path):
    path = tmp_path / "gating-policies.md"
    path.write_text("## GP-041: by hand\n- Trigger: x\n")
    assert add(path, "next", "t", "g").id == "GP-042"
    assert numbers(path) == ["GP-041", "GP-042"]


def test_a_restored_checkpoint_does_not_turn_the_count_back(memory: Memory):
    memory.workspace.add_policy("one", "t", "g")
    memory.workspace.checkpoint("one-policy")
    memory.workspace.add_policy("two", "t", "g")
    memory.workspace.restore_checkpoint("one-policy")
    assert [policy.id for policy in memory.workspace.policies()] == ["GP-001"]
    assert memory.workspace.add_policy("three", "t", "g").id == "GP-003"


def test_two_processes_adding_at_once_get_different_numbers(tmp_path: Path):
    path = tmp_path / "gating-policies.md"
    script = (
        "import sys; from pathlib import Path; from nanoclaw_memory.workspace.policies import add\n"
        "for n in range(20): add(Path(sys.argv[1]), f'p{n}', 't', 'g')\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", script, str(path)]) for _ in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert numbers(path) == [f"GP-{number:03}" for number in range(1, 61)]


def test_what_stands_in_the_file_stays_with_its_line_ends(tmp_path: Path):
    path = tmp_path / "gating-policies.md"
    path.write_bytes(b"# Mine\r\n\r\nnotes without an end")
    added = add(path, "x", "t", "g")
    assert path.read_bytes() == (
        b"# Mine\r\n\r\nnotes without an end\r\n\r\n## GP-001: x\r\n- Trigger: t\r\n- Gate: g\r\n"
    )
    assert parse(path.read_text()) == [replace(added, line=5)] == [added]


def test_what_cannot_be_a_policy_is_refused(tmp_path: Path):
    path = tmp_path / "gating-policies.md"
    for fields in (
        ("", "t", "g"),
        ("x", " \n", "g"),
        ("x", "t", ""),
        ("x" * 201, "t", "g"),
        ("x", "t" * 2001, "g"),
    ):
        with pytest.raises(InvalidValue):
            add(path, *fields)
    assert not path.exists()
    (tmp_path / ".last-policy").write_text("many")
    with pytest.raises(FileProblem, match="does not hold a number"):
        add(path, "x", "t", "g")


# ---- the commands ----


def test_the_commands_add_list_and_check(memory: Memory, ncm: Callable[..., Any]):
    ran = ncm(
        "policy", "add", "Never restart\nthe gateway", "--trigger", "Any request to restart services",
        "--gate", "Ask first; token ghp_" + "x7Kq9ZmP2vLw8RtY4nBc6JdF3hGs1AeU5oQi", "--json",
    )  # fmt: skip
    assert (ran.json["id"], ran.json["title"]) == ("GP-001", "Never restart the gateway")
    assert "ghp_x7Kq" not in ran.out
    assert memory.get("memory/gating-policies.md", ran.json["line"]).text.startswith("## GP-001")
    assert [policy["id"] for policy in ncm("policy", "list", "--json").json["policies"]] == ["GP-001"]
    hits = ncm("policy", "check", "restart the gateway", "--json").json["policies"]
    assert (hits[0]["id"], hits[0]["matched"]) == ("GP-001", ["gateway", "restart"])
    assert "No policy is triggered" in ncm("policy", "check", "have lunch").out


def test_policies_of_an_untouched_home_are_none(ncm: Callable[..., Any]):
    ncm("init")
    assert "No policies yet" in ncm("policy", "list").out
    assert ncm("policy", "check", "restart", "--json").json["policies"] == []
