"""From messages to answers: nothing is skipped, nothing is answered twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nanoclaw_memory import Host
from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.types import Scope

AT = "2026-02-23T11:00:00.000Z"


def say(host: Host, text: str, chat: str = "a@g", identity: str = "", at: str = AT) -> bool:
    known = len(host.history(chat, 10_000))
    return host.store_message(identity or f"{chat}-{known}", chat, text, at, sender_name="Ann")


@pytest.fixture
def family(host: Host):
    return host.register_group("a@g", "Family", "family", "@Andy")


def texts(messages) -> list[str]:
    return [message.content for message in messages]


# ---- storing ----


def test_a_message_with_a_known_id_is_stored_once_and_the_first_stays(host: Host) -> None:
    assert host.store_message("1", "a@g", "first", AT) is True
    assert host.store_message("1", "a@g", "second", AT) is False
    assert host.store_message("1", "b@g", "another chat", AT) is True
    assert texts(host.history("a@g")) == ["first"]


def test_a_message_of_one_megabyte_is_kept_whole_and_a_larger_one_is_refused(host: Host) -> None:
    host.store_message("1", "a@g", "x" * 1_048_576, AT)
    assert len(host.history("a@g")[0].content) == 1_048_576
    with pytest.raises(InvalidValue, match="over the limit"):
        host.store_message("2", "a@g", "x" * 2_100_000, AT)


def test_a_picture_without_words_is_refused_with_what_to_give(host: Host) -> None:
    with pytest.raises(InvalidValue, match="has no text") as refused:
        host.store_message("1", "a@g", None, AT)  # type: ignore[arg-type]
    assert "[image]" in refused.value.hint


@pytest.mark.parametrize(
    ("identity", "chat", "at"),
    [
        (7, "a@g", AT),
        (None, "a@g", AT),
        ("", "a@g", AT),
        ("1", "", AT),
        ("1\n2", "a@g", AT),
        ("1", "x" * 600, AT),
        ("1", "a@g", "yesterday"),
        ("1", "a@g", "0001-01-01T00:00:00Z"),
        ("1\ud800", "a@g", AT),
    ],
)
def test_bad_ids_and_times_are_refused_and_nothing_is_stored(host: Host, identity, chat, at) -> None:
    with pytest.raises(InvalidValue):
        host.store_message(identity, chat, "x", at)
    assert host.new_messages_since(0) == ([], 0)


def test_broken_characters_and_nul_do_not_stop_a_message(host: Host) -> None:
    host.store_message("1", "a@g", "half \ud800 pair \x00 nul", AT)
    assert host.history("a@g")[0].content == "half ? pair \x00 nul"


def test_chat_metadata_keeps_what_is_known_and_activity_only_moves_on(host: Host) -> None:
    host.store_chat_metadata("a@g", "2026-02-23T10:00:00Z", "Family", "whatsapp", True)
    host.store_chat_metadata("a@g", "2026-02-22T10:00:00Z")
    (chat,) = host.chats()
    assert (chat.name, chat.channel, chat.is_group) == ("Family", "whatsapp", True)
    assert chat.last_message_time == "2026-02-23T10:00:00.000Z"


def test_a_clock_that_runs_ahead_does_not_keep_a_chat_on_top(host: Host) -> None:
    host.store_message("1", "future@g", "hello from 2099", "2099-01-01T00:00:00Z")
    assert host.chats()[0].last_message_time == "2026-02-23T12:00:00.000Z"
    assert host.history("future@g")[0].timestamp == "2099-01-01T00:00:00.000Z"


# ---- cursors ----


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.booleans()), min_size=1, max_size=25),
    st.integers(1, 7),
)
def test_a_cursor_gives_every_message_once_whatever_the_timestamps(tmp_path_factory, sent, limit) -> None:
    with Host.open(tmp_path_factory.mktemp("h"), clock=FixedClock(_noon())) as host:
        cursor, seen = 0, []
        for number, (chat, hour, read_now) in enumerate(sent):
            host.store_message(str(number), chat, "x", f"2026-02-2{hour}T00:00:00Z")
            while read_now:
                found, cursor = host.new_messages_since(cursor, limit=limit)
                seen += found
                read_now = bool(found)
        while True:
            found, cursor = host.new_messages_since(cursor, limit=limit)
            if not found:
                break
            seen += found
        assert [message.id for message in seen] == [str(number) for number in range(len(sent))]


def _noon():
    from datetime import UTC, datetime

    return datetime(2026, 2, 23, 12, 0, tzinfo=UTC)


def test_a_message_stored_after_the_newest_was_deleted_is_still_seen(host: Host) -> None:
    say(host, "one")
    _, cursor = host.new_messages_since(0)
    with host.database.transaction():
        host.database.execute("DELETE FROM messages")
    say(host, "two", identity="new")
    assert texts(host.new_messages_since(cursor)[0]) == ["two"]


def test_a_row_that_another_program_inserts_is_numbered_too(host: Host) -> None:
    say(host, "one")
    _, cursor = host.new_messages_since(0)
    with host.database.transaction():
        host.database.execute(
            "INSERT OR REPLACE INTO messages (id, chat_jid, content) VALUES ('v', 'a@g', 'two')"
        )
    assert texts(host.new_messages_since(cursor)[0]) == ["two"]


# ---- asking and answering ----


def test_only_a_call_makes_a_chat_due_and_what_was_said_before_comes_as_context(host: Host, family) -> None:
    say(host, "shall we eat?")
    assert host.poll() == []
    say(host, "@Andy what is for dinner?")
    say(host, "I am hungry")
    assert host.poll() == [family]
    batch = host.batch(family)
    assert texts(batch.messages) == ["@Andy what is for dinner?"]
    assert texts(batch.context) == ["shall we eat?"]


def test_a_batch_stays_until_it_is_answered_and_is_answered_once(host: Host, family) -> None:
    say(host, "@Andy hi")
    host.poll()
    batch = host.batch(family)
    assert host.batch(family) == batch
    assert host.answer(batch, "hello", "s1") is not None
    assert host.answer(batch, "hello again", "s2") is None
    assert host.poll() == []
    assert host.batch(family) is None
    assert [reply.content for reply in host.outbox()] == ["hello"]
    assert host.all_sessions() == {"family": "s1"}


def test_the_faster_of_two_processes_answers(open_host: Callable[..., Host]) -> None:
    one, two = open_host(), open_host()
    family = one.register_group("a@g", "Family", "family", "@Andy")
    say(one, "@Andy hi")
    assert one.poll() == two.poll() == [family]
    first, second = one.batch(family), two.batch(family)
    assert two.answer(second, "from two", "s2")
    assert one.answer(first, "from one", "s1") is None
    assert one.all_sessions() == {"family": "s2"}


def test_a_message_that_comes_while_the_agent_thinks_is_answered_next(host: Host, family) -> None:
    say(host, "@Andy one")
    host.poll()
    batch = host.batch(family)
    say(host, "@Andy two")
    host.poll()
    host.answer(batch, "1", "s")
    assert host.poll() == [family]
    assert texts(host.batch(family).messages) == ["@Andy two"]


def test_a_group_without_trigger_answers_everything_but_its_own_words(host: Host) -> None:
    main = host.register_group("me@s", "Me", "main", "@Andy", requires_trigger=False)
    say(host, "hello", "me@s")
    host.poll()
    host.answer(host.batch(main), "hi", "s")
    assert host.poll() == []


def test_a_long_backlog_is_answered_in_pieces_without_a_gap(host: Host) -> None:
    group = host.register_group("a@g", "A", "alpha", "@Andy", requires_trigger=False)
    for number in range(450):
        host.store_message(str(number), "a@g", f"m{number}", AT)
    seen = []
    while host.poll():
        batch = host.batch(group)
        assert batch.context == ()
        seen += texts(batch.messages)
        host.answer(batch, "ok", "s")
    assert seen == [f"m{number}" for number in range(450)]


def test_too_much_context_is_cut_to_the_newest_and_counted(host: Host, family) -> None:
    for number in range(80):
        say(host, f"chat {number}")
    say(host, "@Andy?")
    host.poll()
    batch = host.batch(family)
    assert (len(batch.context), batch.earlier) == (50, 30)
    assert batch.context[-1].content == "chat 79"


def test_messages_that_are_deleted_before_the_answer_leave_nothing_due(host: Host, family) -> None:
    say(host, "@Andy secret")
    host.poll()
    with host.database.transaction():
        host.database.execute("DELETE FROM messages")
    assert host.batch(family) is None
    assert host.poll() == []


def test_a_reply_waits_in_the_outbox_until_it_is_delivered(open_host: Callable[..., Host]) -> None:
    host = open_host()
    family = host.register_group("a@g", "Family", "family", "@Andy")
    say(host, "@Andy hi")
    host.poll()
    reply = host.answer(host.batch(family), "hello", "s1")
    host.close()
    again = open_host()
    assert again.outbox() == [reply]
    assert again.delivered(reply) is True
    assert again.delivered(reply) is False
    assert again.outbox() == []


def test_the_agent_says_something_once_per_identity(host: Host, family) -> None:
    host.say(family, "good morning", "task-1-run-1")
    host.say(family, "good morning", "task-1-run-1")
    assert [reply.content for reply in host.outbox()] == ["good morning"]
    assert host.poll() == []


# ---- the bridge to memory ----


def test_exchanges_reach_the_memory_of_their_group_even_after_a_restart(
    open_host: Callable[..., Host],
) -> None:
    silent = open_host()
    family = silent.register_group("a@g", "Family", "family", "@Andy")
    say(silent, "@Andy my dog is Rex")
    silent.poll()
    silent.answer(silent.batch(family), "noted", "s1")
    silent.close()
    heard: list[tuple[str, ...]] = []
    host = open_host(on_exchange=lambda *exchange: heard.append(exchange))
    assert host.remember() == 1
    assert host.remember() == 0
    assert heard == [("family", "s1", "Ann: @Andy my dog is Rex", "noted", "2026-02-23T12:00:00.000Z")]


def test_a_group_chat_is_a_shared_scope_and_a_single_person_a_private_one(host: Host, family) -> None:
    assert host.scope(family) == Scope("family", "", private=False)
    host.store_chat_metadata("a@g", AT, is_group=False)
    assert host.scope(family).private is True
    main = host.register_group("me@s", "Me", "main", "@Andy")
    assert host.scope(main).private is True
    host.store_chat_metadata("me@s", AT, is_group=True)  # others read along
    assert host.scope(main).private is False


# ---- what v1 wrote ----


def test_cursors_are_kept_in_the_form_of_v1_too(host: Host, family) -> None:
    say(host, "@Andy hi", at="2026-02-23T11:30:00Z")
    say(host, "@Andy from the future", at="2099-01-01T00:00:00Z")
    host.poll()
    host.answer(host.batch(family), "hello", "s1")
    state = dict(host.database.query("SELECT key, value FROM router_state"))
    assert state["last_timestamp"] == "2026-02-23T11:30:00.000Z"
    assert json.loads(state["last_agent_timestamp"]) == {"a@g": "2026-02-23T11:30:00.000Z"}


# ---- triggers ----


@pytest.mark.parametrize(
    ("pattern", "text", "calls"),
    [
        ("@Andy", "@andy hello", True),
        ("@Andy", "  @ANDY, hello", True),
        ("@Andy", "hello @Andy", False),
        ("@Andy", "@Andyman hello", False),
        ("@Андрей", "@андрей привет", True),
        (r"\bandy\b", "hello Andy!", True),
        (r"^(hey|hi) andy", "Hi Andy", True),
        (r"^(hey|hi) andy", "so, hi andy", False),
    ],
)
def test_a_plain_word_must_open_the_message_and_an_expression_may_stand_anywhere(
    host: Host, pattern: str, text: str, calls: bool
) -> None:
    group = host.register_group("a@g", "A", "alpha", pattern)
    say(host, text)
    assert host.poll() == ([group] if calls else [])


@pytest.mark.parametrize("bomb", [r"^(a+)+$", r"(a|aa)+$", r"(.*)*x", r"((a*)*)*b", "a?" * 100 + "a" * 100])
def test_a_regex_bomb_cannot_stop_the_host(host: Host, bomb: str) -> None:
    host.register_group("bomb@g", "Bomb", "bomb", bomb)
    other = host.register_group("b@g", "B", "beta", "@Andy")
    host.store_message("1", "bomb@g", "a" * 60_000 + "!", AT)
    say(host, "@Andy still there?", "b@g")
    assert other in host.poll()


@pytest.mark.parametrize("pattern", ["", "  ", "(", r"(?=x)y", r"(a)\1", r"((a{100}){100}){100}", "x" * 600])
def test_a_pattern_that_cannot_be_bounded_is_refused(host: Host, pattern: str) -> None:
    with pytest.raises(InvalidValue):
        host.register_group("a@g", "A", "alpha", pattern)
    assert host.groups == {}


def test_a_bad_row_of_another_program_leaves_out_only_its_group(host: Host, home: Path, clock) -> None:
    good = host.register_group("b@g", "B", "beta", "@Andy")
    with host.database.transaction():
        for jid, folder, pattern in (("x@g", "../../etc", "@A"), ("y@g", "yy", "((")):
            host.database.execute(
                "INSERT INTO registered_groups (jid, name, folder, trigger_pattern, added_at) "
                "VALUES (:jid, 'n', :folder, :pattern, '')",
                {"jid": jid, "folder": folder, "pattern": pattern},
            )
    with Host.open(home, clock=clock) as other:
        assert list(other.groups.values()) == [good]
        assert len(other.problems) == 2


def test_maps_follow_what_another_process_writes(open_host: Callable[..., Host], clock: FixedClock) -> None:
    one, two = open_host(), open_host()
    group = one.register_group("a@g", "A", "alpha", "@Andy")
    one.set_session("alpha", "s1")
    assert two.groups == {"a@g": group}
    assert two.all_sessions() == {"alpha": "s1"}
    two.clear_session("alpha")
    assert one.session_of("alpha") == ""
    clock.moment += timedelta(days=1)
    assert one.register_group("a@g", "New", "alpha", "@Bo").added_at == group.added_at


def test_what_is_acknowledged_is_on_disk_even_after_a_power_cut(host: Host) -> None:
    say(host, "hi")
    assert host.database.query("PRAGMA synchronous") == [(2,)]  # FULL: every commit is synced
