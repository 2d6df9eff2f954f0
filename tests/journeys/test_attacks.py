"""Every attack and fault that succeeded once, and which test shows that it no longer does; some are tried again here."""

# ruff: noqa: E501

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
HERE = "journeys/test_attacks"
SHOWN_BY = {
    # critical
    "private talk in a shared chat's start": f"{HERE} test_a_shared_chat_starts_without_a_word_of_private_talk",
    "any private content on any face of a shared chat": "journeys/test_two_worlds test_no_answer_in_a_shared_scope_depends_on_private_content",
    "a shared log line, fact or relation replaces a private one": f"{HERE} test_what_a_shared_chat_says_is_no_private_belief",
    "a shared value is warmed until it comes first": "journeys/test_two_worlds test_what_a_shared_chat_says_changes_nothing_that_private_memory_says",
    "a shared alias redirects a private name": "journeys/test_two_worlds test_what_a_shared_chat_says_changes_nothing_that_private_memory_says",
    "a shared correction becomes a private lesson": "journeys/test_lessons test_what_a_shared_chat_teaches_waits_for_review",
    "a shared preference stands in the private brief": "journeys/test_two_worlds test_brief_boot_and_lessons_are_private_memorys_own",
    "a pasted mail becomes an active lesson": "journeys/test_origin test_no_lesson_out_of_a_quoted_or_pasted_text_is_active",
    "a lesson passes no check and names no origin": "journeys/test_origin test_a_lesson_that_somebody_else_adds_waits_for_the_owner",
    "an outdated value unmarked in search and recall": "journeys/test_currency test_of_two_statements_on_one_subject_the_newer_stands_first_and_the_older_is_marked",
    "an outdated value in the graph": "journeys/test_current_facts test_a_newer_statement_leaves_nothing_of_the_old_one",
    "two keys for one thing stand side by side": "journeys/test_current_facts test_one_thing_under_two_names_has_one_value",
    "a sentence is read too far or under the wrong name": f"{HERE} test_a_value_ends_where_it_ends_and_a_heading_is_no_thing",
    # major
    "a stored text closes its fence": "interfaces/test_output test_no_stored_text_breaks_out_of_any_answer",
    "boot and session start have no fence": "journeys/test_origin test_boot_fences_what_an_agent_wrote_and_says_whose_it_is",
    "an agent's attack in a log, page or fact starts the next session": "journeys/test_origin test_no_session_starts_with_an_attack_that_an_agent_or_others_wrote",
    "a command that is called a fact": "journeys/test_origin test_a_suspicious_text_is_held_under_any_type",
    "items of other SDKs know no privacy": "journeys/test_two_worlds test_items_of_other_sdks_stay_where_they_were_put",
    "attacks that no rule knows": "unit/test_steering test_a_text_that_reads_like_steering_is_held_unless_the_owner_wrote_it",
    "whatever its words, what others want steers": "journeys/test_origin test_what_others_want_is_held_whatever_its_words_and_shown_in_review",
    "forms of assignment that hide a credential": "unit/test_secrets test_an_assignment_is_seen_in_whatever_language_or_format",
    "services whose tokens are not known": "unit/test_secrets test_a_random_value_under_the_name_of_a_service_is_masked",
    "ordinary text that is masked": "unit/test_secrets test_ordinary_text_and_placeholders_are_left_alone",
    "a byte that cannot be decoded": "journeys/test_lost_data test_a_byte_that_cannot_be_decoded_stops_no_command_and_is_named",
    "random bytes in the index": "journeys/test_lost_data test_a_search_heals_an_index_with_random_bytes",
    "a kept-alive request waits": "interfaces/test_connections test_a_kept_alive_request_does_not_wait_for_an_acknowledgement",
    "unfinished headers": "interfaces/test_connections test_a_client_that_does_not_finish_its_request_is_closed_however_it_dawdles",
    "thousands of half-open connections": "interfaces/test_connections test_thousands_of_half_open_connections_keep_nobody_out",
    "more connections than open files": "interfaces/test_connections test_a_server_that_may_open_few_files_survives_more_connections_than_that",
    "a write-ahead log that was cut or deleted": "journeys/test_lost_data test_a_lost_wal_is_noticed_until_the_loss_is_accepted",
    "an attack said in a shared chat, noted or hidden in a name is recalled": "journeys/test_origin test_no_session_starts_with_an_attack_that_an_agent_or_others_wrote",
    "a text that a pattern reads in endless ways": f"{HERE} test_no_text_that_repeats_itself_holds_a_turn_up",
    # minor
    "how many private pages there are, by the time of a shared search": "unit/test_paths test_a_shared_scope_lists_a_folder_again_only_when_its_names_changed",
    "a forgotten text whose credential was masked on its way": "journeys/test_ways_in test_a_text_is_forgotten_and_kept_out_where_a_credential_in_it_was_masked_before",
    "terminal sequences": "interfaces/test_output test_a_terminal_gets_no_control_and_a_line_begins_only_with_an_item",
    "a shared chat archives a private transcript": "journeys/test_isolation test_a_shared_chat_archives_no_private_talk",
    "import and corpus read another group": "journeys/test_isolation test_no_argument_reads_a_file_of_another_group",
    "privacy that is given twice": "interfaces/test_agent_tokens test_of_two_privacies_the_stricter_counts_and_what_is_unclear_is_refused",
    "an agent needs the owner's token": "interfaces/test_agent_tokens test_what_is_the_owners_is_refused",
    "a manifest with a link into a missing folder": "journeys/test_broken_checkpoints test_a_link_into_a_folder_that_the_manifest_does_not_name_is_restored_with_it",
    "a restore that cannot end": "journeys/test_broken_checkpoints test_a_restore_that_cannot_be_finished_is_given_up_once_and_says_the_way_back",
    "what a killed checkpoint leaves": "journeys/test_broken_checkpoints test_any_checkpoint_command_sweeps_what_a_killed_one_left",
    "a clock that was wrong": "journeys/test_wrong_clock test_a_value_said_with_a_clock_ahead_is_current_at_once_and_a_correction_ends_it_for_good",
    "a clock that nobody warns of": "journeys/test_wrong_clock test_doctor_warns_of_what_is_dated_in_the_future_and_dates_it_anew_in_its_order",
    "a group that is called what was forgotten": f"{HERE} test_no_group_is_called_what_was_forgotten",
    "lost facts and tombstones": "journeys/test_lost_data test_a_lost_database_is_reported_and_not_begun_anew_in_silence",
    "lost tombstones": "journeys/test_lost_data test_lost_tombstones_are_reported_and_let_nothing_in",
    "our own marks and headings as hits": "journeys/test_search test_a_heading_that_init_wrote_is_no_memory_and_an_item_is_shown_without_its_bullet",
}  # fmt: skip


@pytest.mark.parametrize("attack", SHOWN_BY)
def test_every_attack_has_a_test(attack: str):
    file, name = SHOWN_BY[attack].split()
    tree = ast.parse((TESTS / f"{file}.py").read_text(encoding="utf-8"))
    assert name in {one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_a_shared_chat_starts_without_a_word_of_private_talk(memory, ncm):
    ncm("exchange", "add", "-u", "Our biopsy at the Charite came back positive", "-a", "I am sorry.")
    ncm("--shared", "exchange", "add", "-u", "Good morning all, the picnic is on", "-a", "Good morning!")
    for shown in (
        ncm("--shared", "hook", "session-start", stdin="{}"),
        ncm("--shared", "turn", "Any news of the picnic?"),
    ):
        assert shown.code == 0 and not any(word in shown.out for word in ("biopsy", "Charite", "positive"))


def test_what_a_shared_chat_says_is_no_private_belief(memory, ncm):
    ncm("graph", "add", "Anna Kowalski", "phone", "111")
    ncm("graph", "relate", "Keystone", "owned_by", "Anna Kowalski")
    ncm("--shared", "write", "Anna Kowalski's phone is 999", "--tag", "fact", "--importance", "0.9")
    ncm("--shared", "graph", "add", "Anna Kowalski", "phone", "666")
    ncm("--shared", "graph", "relate", "Keystone", "owned_by", "Eve")
    ncm("--shared", "graph", "alias", "Anna", "Eve")
    first, *others = ncm("graph", "search", "What is Anna Kowalski's phone?").out.splitlines()
    assert "= 111" in first and all("said in the shared chat" in line for line in others if "phone" in line)
    known = json.loads(ncm("--json", "graph", "history", "Anna Kowalski", "phone").out)["facts"]
    assert next(one["value"] for one in known if not one["valid_to"]) == "111"
    assert "Anna Kowalski" in ncm("graph", "search", "Who owns Keystone?").out.splitlines()[0]


@pytest.mark.parametrize(
    ("line", "question", "told", "untold"),
    [
        ("Heidi's phone number is now 0172 222", "Heidi's phone number", "= 0172 222", "now"),
        ("Atlas uses Postgres as its database", "Atlas database", "Postgres", "as its"),
    ],
)
def test_a_value_ends_where_it_ends_and_a_heading_is_no_thing(
    memory, ncm, home, line, question, told, untold
):
    page = home / "workspace" / "MEMORY.md"
    page.write_text(f"# Memory\n\n## Facts\n- Keystone deadline: 3 May\n- {line}\n")
    found = ncm("graph", "search", question).out.split("  (")[0]
    assert told in found and untold not in found
    assert "Facts" not in ncm("graph", "list").out


def test_no_group_is_called_what_was_forgotten(memory, ncm):
    ncm("forget", "--text", "purple umbrella", "--keep-out", "--yes")
    refused = ncm("groups", "add", "family", "--chat", "x@y", "--name", "The Purple  Umbrella")
    assert refused.code == 2 and "forget" in refused.err


SIGNS = ["1", "a", "A", *"_-.:=,;'\"/@<[({$%#&+*!~`^\t\né密’", "\r\n", " ", ". ", ", ", "a ", "A a "]
PIECES = [
    *SIGNS,
    "1.",
    "1,",
    "a1",
    "a.",
    "a-",
    "a,",
    "a'",
    "(a",
    "[a",
    "<a",
    "//",
    "key",
    "test",
    "prod",
    "v1",
    "of the ",
]


@pytest.mark.parametrize("before", ["", "password", "my key ", "# ", "I live in "])
def test_no_text_that_repeats_itself_holds_a_turn_up(home, before):
    """In a process of its own: no thread can end a pattern that tries all ways to read a text."""
    texts = [
        f"{before}{piece * times}{end}" for piece in PIECES for times in (38, 300) for end in ("x", " x!")
    ]
    code = (
        "import json, sys; from nanoclaw_memory.memory import Memory; from nanoclaw_memory.types import Scope\n"
        "with Memory.open(sys.argv[1], Scope(session_id='s1')) as memory:\n"
        "    memory.init()\n"
        "    for text in json.load(sys.stdin):\n"
        "        memory.before_turn(text)\n"
        "        memory.after_turn(text, 'ok')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(home)], input=json.dumps(texts), text=True, timeout=120
    )
    assert done.returncode == 0
