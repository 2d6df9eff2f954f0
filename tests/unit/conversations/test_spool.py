"""The spool: what hooks note is archived once, in order, and survives crashes and races."""

from __future__ import annotations

import multiprocessing
import resource
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nanoclaw_memory.conversations.spool import Spool
from nanoclaw_memory.private import locked
from nanoclaw_memory.types import Scope

T0 = datetime(2026, 2, 23, 12, tzinfo=UTC)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool")


def note(spool: Spool, kind: str, text: str, session: str = "s1", minutes: int = 0) -> None:
    spool.note(Scope(session_id=session), kind, text, T0 + timedelta(minutes=minutes))


def drained(spool: Spool, limit: int = 50, now: datetime = T0) -> list[tuple[str, str]]:
    found = []
    spool.drain(now, lambda spoken: found.append((spoken.question, spoken.answer)), limit)
    return found


def test_a_question_and_its_answer_become_one_exchange(spool):
    note(spool, "prompt", "Which port?")
    note(spool, "answer", "3000")
    assert drained(spool) == [("Which port?", "3000")]
    assert drained(spool) == []


def test_sessions_that_overlap_are_kept_apart(spool):
    note(spool, "prompt", "a?", "one")
    note(spool, "prompt", "b?", "two")
    note(spool, "answer", "b!", "two")
    note(spool, "answer", "a!", "one")
    assert sorted(drained(spool)) == [("a?", "a!"), ("b?", "b!")]


def test_a_question_waits_for_its_answer_across_drains(spool):
    note(spool, "prompt", "Slow?")
    assert drained(spool) == []
    note(spool, "answer", "Yes")
    assert drained(spool) == [("Slow?", "Yes")]


def test_a_question_that_is_never_answered_is_given_up_after_a_day(spool):
    note(spool, "prompt", "Hello?")
    assert drained(spool, now=T0 + timedelta(days=2)) == []
    assert b"Hello" not in b"".join(path.read_bytes() for path in spool.folder.iterdir())
    note(spool, "answer", "late")
    assert drained(spool, now=T0 + timedelta(days=2)) == []


def test_only_the_owner_may_read_what_waits_in_the_spool(spool):
    note(spool, "prompt", "Hello?")
    drained(spool)
    assert [path.stat().st_mode & 0o077 for path in (spool.folder, *spool.folder.iterdir())] == [0, 0, 0]


def test_a_question_asked_anew_before_its_answer_takes_the_place_of_the_first(spool):
    note(spool, "prompt", "Wich prot?")
    note(spool, "prompt", "Which port?")
    assert drained(spool) == []
    assert b"Wich" not in b"".join(path.read_bytes() for path in spool.folder.iterdir())


def test_a_limit_leaves_the_rest_for_the_next_drain(spool):
    for number in range(5):
        note(spool, "prompt", f"q{number}")
        note(spool, "answer", f"a{number}")
    assert drained(spool, limit=2) == [("q0", "a0"), ("q1", "a1")]
    assert drained(spool) == [("q2", "a2"), ("q3", "a3"), ("q4", "a4")]


def test_a_drain_that_dies_half_way_loses_nothing(spool):
    note(spool, "prompt", "q")
    note(spool, "answer", "a")

    def die(spoken):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spool.drain(T0, die)
    assert drained(spool) == [("q", "a")]


def test_a_torn_line_does_not_stop_the_others(spool):
    note(spool, "prompt", "q")
    with (spool.folder / "spool.jsonl").open("a") as handle:
        handle.write('{"at": "2026-02-23T1\n[1]\nnull\n')
    note(spool, "answer", "a")
    assert drained(spool) == [("q", "a")]


def _speak(folder: Path, name: str) -> None:
    spool = Spool(folder)
    for number in range(100):
        note(spool, "prompt", f"{name} q{number}", name)
        note(spool, "answer", f"{name} a{number}", name)


def test_writers_and_a_drainer_at_once_lose_nothing(spool):
    writers = [multiprocessing.Process(target=_speak, args=(spool.folder, f"w{n}")) for n in range(3)]
    for writer in writers:
        writer.start()
    found: list[tuple[str, str]] = []
    while any(writer.is_alive() for writer in writers):
        found += drained(spool, limit=7)
    for writer in writers:
        writer.join()
    while more := drained(spool):
        found += more
    assert len(found) == len(set(found)) == 300
    assert all(question.replace(" q", " a") == answer for question, answer in found)


def test_a_write_that_was_cut_short_is_an_error_and_costs_only_itself(spool):
    note(spool, "prompt", "Before?")
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))  # as a full disk does
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with pytest.raises(OSError, match="too large"):
            note(spool, "answer", "x" * 6000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        signal.signal(signal.SIGXFSZ, ignored)
    note(spool, "prompt", "Which database?", "s2")
    note(spool, "answer", "quartz", "s2")
    note(spool, "answer", "now", "s1")
    assert sorted(drained(spool)) == [("Before?", "now"), ("Which database?", "quartz")]


def test_a_process_that_stopped_with_the_lock_keeps_nobody_from_noting_or_draining(spool):
    note(spool, "prompt", "Which port?")
    with locked(spool.folder / "spool.jsonl"):
        note(spool, "answer", "3000")
        assert drained(spool) == [("Which port?", "3000")]
    note(spool, "prompt", "And now?")
    note(spool, "answer", "4000")
    with locked(spool.folder / "drain.lock"):
        assert spool.drain(T0, print, wait=0) == 0
    assert drained(spool) == [("And now?", "4000")]
