"""What somebody types in the first days, and what they are told."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from nanoclaw_memory.clock import SystemClock


@pytest.mark.parametrize("named", ["yesterday", "gestern"])
def test_a_log_is_shown_by_a_day_in_words(ncm, named: str):
    ncm("init")
    yesterday = SystemClock().now().date() - timedelta(days=1)
    folder = Path(ncm("status", "--json").json["home"]) / "workspace" / "memory"
    (folder / f"{yesterday}.md").write_text("- The kettle broke\n")
    assert "The kettle broke" in ncm("log", named).out
    assert "'the kettle' is no date" in ncm("log", "the kettle").err
    assert "'last month' is more than a day" in ncm("log", "last month").err


def test_a_time_zone_is_set_by_its_city(ncm):
    ncm("init")
    assert ncm("config", "set", "user.timezone", "Berlin").out == 'user.timezone = "Europe/Berlin"\n'
    refused = ncm("config", "set", "user.timezone", "Leipzig")
    assert refused.code == 2 and "large city of your zone" in refused.err


def test_an_entry_without_a_type_is_told_that_it_is_missing(ncm):
    ncm("init")
    refused = ncm("entries", "store", "Prefers tea")
    assert refused.code == 2 and "type: it is missing" in refused.err and "preference" in refused.err


def test_a_client_is_suggested_by_a_part_of_its_name(ncm):
    refused = ncm("install", "clod")
    assert refused.code == 2 and "install claude-code" in refused.err


def test_a_transcript_is_told_how_to_go_in(ncm, tmp_path: Path):
    ncm("init")
    project = tmp_path / "project"
    project.mkdir()
    (project / "5c1f.jsonl").write_text("{}\n")
    refused = ncm("import", "claude-code", str(project / "5c1f.jsonl"))
    assert refused.code and "sessions archive" in refused.err
    refused = ncm("import", "claude-code", str(project))
    assert refused.code and "sessions archive" in refused.err


def test_transcripts_beside_imported_notes_are_reported(ncm, tmp_path: Path):
    ncm("init")
    project = tmp_path / "project"
    project.mkdir()
    (project / "5c1f.jsonl").write_text("{}\n")
    (project / "worker.md").write_text("---\ntype: project\n---\nThe payouts worker is written in Go\n")
    done = ncm("import", "claude-code", str(project)).out
    assert "stored 1 entries" in done
    assert "1 transcript (5c1f.jsonl)" in done and "sessions archive" in done


def test_the_owner_is_not_forgotten_by_name(ncm):
    ncm("init")
    page = Path(ncm("status", "--json").json["home"]) / "workspace" / "USER.md"
    page.write_text("# User\n\n- The user jreuter has root on atlas\n")
    refused = ncm("forget", "--entity", "User", "--dry-run")
    assert refused.code == 2
    assert "the owner of this memory" in refused.err and "graph remove" in refused.err


def test_the_sums_of_injections_name_no_more_sessions_than_asked_for(ncm):
    ncm("init")
    ncm("graph", "add", "Keystone", "port", "3055")
    for number in range(5):
        ncm("--session", f"s{number}", "turn", "What is Keystone's port?")
    told = ncm("injections", "--limit", "2").out
    assert told.count("  session s") == 2
    assert "… and 3 more sessions" in told


def test_what_lost_its_value_to_masking_is_not_told_unasked(ncm):
    ncm("init")
    key = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
    ncm("entries", "store", f"The Adyen HMAC key is {key}", "--type", "fact")
    ncm(
        "entries",
        "store",
        f"The Adyen login is ci with password {key} and it expires in May",
        "--type",
        "fact",
    )
    ncm("graph", "add", "Adyen", "hmac key", key)
    assert "HMAC" not in ncm("brief").out
    assert "expires in May" in ncm("brief").out
    told = ncm("--session", "q", "turn", "What is the HMAC key of Adyen?").out
    assert "hmac key" not in told.casefold()
