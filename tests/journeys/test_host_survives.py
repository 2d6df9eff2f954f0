"""Two groups, a host killed fifty times: nothing is lost, answered twice, or seen by the other group."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from nanoclaw_memory import Host, Memory, Scope

KILLS = 50
pytestmark = pytest.mark.xdist_group("the host that is killed")  # one survivor serves all
BOT = Path(__file__).with_name("dying_host.py")
GROUPS = {"alpha": ("a@g", "CANARYALPHA"), "beta": ("b@g", "CANARYBETA")}


ONE_HOME = True


@pytest.fixture(scope="module")
def survivor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("survivor")
    seed = int.from_bytes(os.urandom(4))
    print(f"seed {seed}")
    done = subprocess.run(
        [sys.executable, str(BOT), str(home), str(KILLS), str(seed)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
    assert int(done.stdout) == KILLS
    return home


def test_every_message_is_stored_once_and_in_order(survivor: Path) -> None:
    with Host.open(survivor) as host:
        messages, _ = host.new_messages_since(0, limit=1_000_000)
    numbers = [int(message.id[1:]) for message in messages if not message.is_bot_message]
    assert len(numbers) > 20
    assert numbers == list(range(len(numbers)))


def test_every_question_is_answered_exactly_once(survivor: Path) -> None:
    with Host.open(survivor) as host:
        messages, _ = host.new_messages_since(0, limit=1_000_000)
        assert host.outbox() == []
        assert host.poll() == []
    asked = Counter(message.id for message in messages if message.content.startswith("@Andy"))
    replies = [message for message in messages if message.is_bot_message]
    answered = Counter(word for reply in replies for word in re.findall(r"\bm\d+\b", reply.content))
    assert {name: answered[name] for name in asked} == dict(asked)
    # What only talked is never answered on its own; it may stand between two questions of one batch.
    assert max(answered.values()) == 1


def test_every_answer_was_delivered_and_a_second_delivery_has_the_same_id(survivor: Path) -> None:
    delivered = [line.split(" ", 2) for line in (survivor / "delivered.log").read_text().splitlines()]
    with Host.open(survivor) as host:
        messages, _ = host.new_messages_since(0, limit=1_000_000)
    replies = {(m.chat_jid, m.id): m.content for m in messages if m.is_bot_message}
    assert {(jid, identity): text for jid, identity, text in delivered} == replies


def test_session_pointers_count_every_answer(survivor: Path) -> None:
    with Host.open(survivor) as host:
        messages, _ = host.new_messages_since(0, limit=1_000_000)
        sessions = host.all_sessions()
    for folder, (jid, _) in GROUPS.items():
        answers = sum(1 for m in messages if m.is_bot_message and m.chat_jid == jid)
        assert sessions[folder] == f"{folder}-{answers}"


def test_no_byte_of_one_group_lies_under_the_other(survivor: Path) -> None:
    for folder, other in (("alpha", "beta"), ("beta", "alpha")):
        word = GROUPS[folder][1].encode()
        assert any(word in path.read_bytes() for path in _files(survivor / "groups" / folder))
        for place in (
            survivor / "groups" / other,
            survivor / "data" / "sessions" / other,
            survivor / "shared",
        ):
            assert [path for path in _files(place) if word in path.read_bytes()] == []


def test_one_group_never_finds_what_the_other_said(survivor: Path) -> None:
    for folder, other in (("alpha", "beta"), ("beta", "alpha")):
        with Memory.open(survivor, Scope(other), overrides={"embeddings.provider": "none"}) as memory:
            memory.index()
            found = memory.search(f"{GROUPS[folder][1]} life", limit=50)
            assert found.hits
            assert all(GROUPS[folder][1] not in hit.text for hit in found.hits)


def test_every_exchange_is_in_its_groups_memory_exactly_once(survivor: Path) -> None:
    with Host.open(survivor) as host:
        messages, _ = host.new_messages_since(0, limit=1_000_000)
    for folder, (jid, _) in GROUPS.items():
        with Memory.open(survivor, Scope(folder, private=False)) as memory:  # chats are shared scopes
            rows = memory.group.database("continuity").query(
                "SELECT agent_response FROM exchanges ORDER BY id"
            )
        replies = [m.content for m in messages if m.is_bot_message and m.chat_jid == jid]
        assert [text for (text,) in rows] == replies


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
