"""A page with a byte that is not UTF-8 is read all the same at a session's start, and the person is told."""

from __future__ import annotations

import json

import pytest

from nanoclaw_memory.interfaces.hooks import answer
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope

PAGE = b"# Memory\n\n- The ferry to Texel leaves at 7\n- caf\xe9 at the corner\n"


@pytest.fixture
def started(home):
    """Start a session; return what the client gets."""

    def start() -> dict:
        def opened(scope):
            return Memory.open(home, scope)

        raw = json.dumps({"session_id": "s1", "source": "startup"}).encode()
        return json.loads(answer("SessionStart", raw, opened, Scope()))

    with Memory.open(home) as memory:
        memory.init()
    return start


def test_a_page_with_a_wrong_byte_is_read_and_the_person_is_told(home, started):
    page = home / "workspace" / "MEMORY.md"
    page.write_bytes(PAGE)
    told = started()
    assert "The ferry to Texel leaves at 7" in told["hookSpecificOutput"]["additionalContext"]
    assert "caf\ufffd at the corner" in told["hookSpecificOutput"]["additionalContext"]
    assert "MEMORY.md is not UTF-8 text" in told["systemMessage"]
    assert page.read_bytes() == PAGE


def test_a_page_that_cannot_be_read_at_all_is_told_too(home, started):
    (home / "workspace" / "USER.md").write_bytes(b"# User\n\x00")
    told = started()
    assert "USER.md is a binary file" in told["systemMessage"]
    assert "[not loaded: USER.md" in told["hookSpecificOutput"]["additionalContext"]


def test_pages_of_right_bytes_need_no_word(started):
    assert "systemMessage" not in started()


@pytest.mark.parametrize(
    "raw",
    [
        b"\xef\xbb\xbf" + json.dumps({"prompt": "What port does Keystone use?"}).encode(),
        b'{"prompt": "Gr\xf6\xdfe? What port does Keystone use?"}',
    ],
    ids=["a byte-order mark", "Latin-1"],
)
def test_a_hook_reads_what_a_client_encodes_wrongly(home, raw):
    with Memory.open(home) as memory:
        memory.init()
        memory.graph.upsert("Keystone", "port", "3000", "project")
    found = answer("UserPromptSubmit", raw, lambda scope: Memory.open(home, scope), Scope(session_id="s1"))
    assert b"Keystone.port = 3000" in found
