"""The commands on entries: JSON keys, exit codes, what a person reads."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest

Ncm = Callable[..., Any]


@pytest.fixture
def ready(ncm: Ncm) -> Ncm:
    assert ncm("init").code == 0
    assert ncm("config", "set", "embeddings.provider", "none").code == 0
    return ncm


def test_store_recall_brief_delete_in_their_json_shapes(ready: Ncm) -> None:
    stored = ready(
        "entries", "store", "Prefers dark mode", "--type", "preference", "--tag", "ui", "-p", "high",
        "--reason", "said twice", "--expires", "2099-01-01", "--json",
    ).json  # fmt: skip
    assert set(stored) >= {"id", "type", "category", "stored", "deduplicated", "token_cost", "redacted"}
    recalled = ready("recall", "dark mode", "--budget", "500", "--context", "--json").json
    assert set(recalled) >= {"entries", "token_count", "budget_remaining", "total_entries_matched"}
    (entry,) = recalled["entries"]
    assert set(entry) >= {"id", "type", "content", "priority", "score", "stored_at", "tags"}
    assert entry["context"] == "said twice" and recalled["token_count"] + recalled["budget_remaining"] == 500
    brief = ready("brief", "--provenance", "--json").json
    assert set(brief) >= {"text", "entries", "generated_at", "entry_count", "brief_count"}
    assert set(brief["entries"][0]) >= {"id", "type", "content", "behavioral", "tags", "age_days"}
    shown = ready("entries", "show", stored["id"], "--json").json["entry"]
    assert shown["provenance"]["origin"] == "owner" and shown["behavioral"] is True
    assert [one["id"] for one in ready("entries", "list", "--json").json["entries"]] == [stored["id"]]
    assert ready("entries", "delete", stored["id"], "--json").json["deleted"] is True
    assert ready("entries", "delete", stored["id"]).code == 2
    assert ready("brief").out.strip() == "No entries yet."


def test_category_is_another_name_for_type(ready: Ncm) -> None:
    assert (
        ready("entries", "store", "Anna leads sales", "--category", "person", "--json").json["type"]
        == "person"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["entries", "store", "x", "--type", "gossip"], "type"),
        (["entries", "store", "x"], "type"),
        (["entries", "store", "", "--type", "fact"], "content"),
        (["entries", "store", "x" * 2_001, "--type", "fact"], "content"),
        (["entries", "store", "x", "--type", "fact", "--tag", "a\nb"], "tags"),
        (["entries", "store", "x", "--type", "fact", "--expires", "yesterday"], "expires"),
        (["entries", "store", "x", "--type", "fact", "--expires", "2020-01-01"], "expires"),
        (["entries", "store", "x", "--type", "fact", "--supersedes", "mem-1"], "supersedes"),
        (["entries", "store", "x", "--type", "fact", "--related", "mem-1"], "related_to"),
        (["entries", "store", "x", "--type", "fact", "--priority", "urgent"], "priority"),
        (["entries", "list", "--type", "gossip"], "type"),
        (["entries", "list", "--status", "dead"], "status"),
        (["entries", "show", "mem-1"], "id"),
        (["entries", "reinforce", "mem-1"], "id"),
        (["recall", "x", "--budget", "-1"], "token_budget"),
        (["recall", "x", "--format", "poem"], "format"),
        (["audit", "--scope", "moon"], "scope"),
        (["share", "publish", "mem-1"], "id"),
        (["share", "grant", "nobody"], "reader"),
    ],
)
def test_bad_input_is_refused_with_exit_2_and_the_fields_name(
    ready: Ncm, arguments: list[str], said: str
) -> None:
    ran = ready(*arguments, "--json")
    assert ran.code == 2
    assert ran.json["ok"] is False
    assert ran.json["error"]["message"].startswith(f"{said}: ")
    assert ready("entries", "list", "--status", "all", "--json").json["entries"] == []


def test_audit_verify_fails_aloud_when_a_line_was_changed(ready: Ncm, home: Any) -> None:
    first = ready("entries", "store", "Luna is a dog", "-t", "fact", "--json").json["id"]
    assert ready("audit", "verify").code == 0
    assert "store" in ready("audit", "trace", first).out
    log = home / "logs/audit.jsonl"
    log.write_text(log.read_text().replace('"origin": "owner"', '"origin": "agent"'))
    ran = ready("audit", "verify", "--json")
    assert ran.code == 1 and ran.json["verified"] is False and "line 1" in ran.json["problems"][0]


def test_audit_prints_costs_and_fixes_after_a_checkpoint(ready: Ncm) -> None:
    ready("entries", "store", "Deploys happen on Tuesday mornings", "-t", "fact")
    ready("entries", "store", "Deploys happen on Tuesday mornings", "-t", "decision")
    seen = ready("audit", "--json").json
    assert seen["analysis"]["duplicates"][0]["similarity"] == 1.0
    assert {"action", "description", "estimated_savings_tokens", "risk"} <= set(seen["recommendations"][0])
    assert "checkpoint before-audit-" in ready("audit", "--fix").out
    assert len(ready("entries", "list", "--json").json["entries"]) == 1


def test_two_groups_share_by_grant(ready: Ncm) -> None:
    ready("init", "--group", "research")
    stored = ready("entries", "store", "The gateway listens on 8080", "-t", "fact", "--json").json["id"]
    ready("share", "publish", stored)
    ready("share", "grant", "research")
    assert "main: 1 published, read by research" in ready("share", "list").out
    assert "of group main" in ready("share", "recall", "gateway", "--group", "research").out
    ready("share", "revoke", "research")
    assert ready("share", "recall", "gateway", "--group", "research").out.strip() == "Nothing was recalled."
    assert ready("share", "unpublish", stored).code == 0


def test_global_options_work_behind_a_command_that_has_commands(ready: Ncm) -> None:
    assert ready("audit", "--json").json["ok"] is True
    assert ready("audit", "verify", "--json").json["verified"] is True
    assert ready("--json", "entries", "render").json == {"ok": True, "written": [], "left": []}


def test_another_form_of_its_words_is_the_same_entry_and_one_word_more_is_not(ncm):
    ncm("init")
    ncm("entries", "store", "Back up the ledger after every third meeting", "--type", "fact")
    same = "After every 3rd meeting please back up the ledger"
    assert ncm("entries", "store", same, "--type", "fact", "--json").json["deduplicated"]
    other = ncm("entries", "store", "Back up the ledger after every meeting", "--type", "fact", "--json").json
    assert not other["deduplicated"]


def test_recall_says_what_could_not_be_asked(ncm, home) -> None:
    ncm("init")
    ncm("entries", "store", "Dolphins sleep with one eye open", "--type", "fact")
    (home / "data" / "entries.db").write_bytes(b"not a database" * 700)
    ran = ncm("recall", "dolphins")
    assert ran.code == 0 and "entries.db" in ran.err


def test_recall_does_not_say_that_talk_came_from_files(ncm):
    ncm("init")
    ncm(
        "exchange",
        "add",
        "--user",
        "The vaccine fridge is in room three",
        "--agent",
        "Noted.",
        "--session",
        "a",
    )
    recalled = ncm("recall", "vaccine fridge room")
    assert "room three" in recalled.out and "from pages and talk" in recalled.err


def test_what_was_imported_is_compared_before_the_first_question(ncm, home, tmp_path):
    ncm("init")
    told = [f"The crane on pier {number} is painted green." for number in range(60)]
    told += ["Jonna's piano lesson is on Tuesday at four.", "Jonna's piano lesson moved to Friday at five."]
    for day, text in enumerate(told):
        ncm(
            "--session", f"s{day}", "exchange", "add", "--at", f"2026-01-{1 + day // 3:02}T{10 + day % 3}:00",
            "-u", text, "-a", "Noted.",
        )  # fmt: skip
    assert ncm("export", str(tmp_path / "export")).code == 0
    other = tmp_path / "other"
    ncm("--home", str(other), "init")
    shutil.copy2(home / "sync.key", other / "sync.key")
    assert ncm("--home", str(other), "import", str(tmp_path / "export")).code == 0
    shown = ncm("--home", str(other), "--session", "q", "turn", "When is Jonna's piano lesson?").out
    assert "Friday at five" in shown
