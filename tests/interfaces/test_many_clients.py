"""Many clients of one server: none waits for a slow one, none is pushed out by a flood, each reads what was written."""

from __future__ import annotations

import asyncio
import gc
import itertools
import threading
import time
import weakref
from concurrent.futures import Future
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from nanoclaw_memory.errors import ServerBusy
from nanoclaw_memory.interfaces.http.app import application
from nanoclaw_memory.interfaces.http.fair_queue import MAX_WAITING, FairQueue, QueuedWork
from nanoclaw_memory.interfaces.http.pool import MAX_SESSIONS, MAX_THREADS, MemoryPool
from nanoclaw_memory.interfaces.mcp.stream import MOST_CALLS, McpStream
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope

API = "/api/v1"


@pytest.fixture
def pool(tmp_path):
    with Memory.open(tmp_path) as memory:
        memory.init()
        memory.write("The harbour gate opens at nine")
    made = MemoryPool(tmp_path)
    yield made
    made.close()


@pytest.fixture
def api(pool):
    app = application(pool, {}, "t" * 40, 80)
    with TestClient(app, "http://127.0.0.1:80", headers={"Authorization": "Bearer " + "t" * 40}) as client:
        yield client


@pytest.fixture
def occupied(pool):
    """Every thread of the owner's memory is at work until the end of the test."""
    free, begun = threading.Event(), threading.Semaphore(0)

    def wait(memory):
        begun.release()
        assert free.wait(60)

    for number in range(MAX_THREADS):
        pool.submit(Scope(session_id=f"slow-{number}"), wait)
        assert begun.acquire(timeout=60)
    yield
    free.set()


def asked(pool, session, work=lambda memory: None):
    return pool.submit(Scope(session_id=session), work, asked_at=time.monotonic())


def test_a_question_does_not_wait_for_a_slow_one_of_another_client(pool):
    free = threading.Event()
    slow = asked(pool, "slow", lambda memory: free.wait(60))
    found = asked(pool, "quick", lambda memory: memory.search("harbour gate", fast=True)).result(60)
    assert "opens at nine" in found.hits[0].text
    assert not slow.done()
    free.set()
    assert slow.result(60)


def test_a_flood_is_refused_and_does_not_keep_others_out(pool, occupied):
    flood = [asked(pool, "flood") for _ in range(MAX_WAITING)]
    with pytest.raises(ServerBusy, match="too many requests"):
        asked(pool, "flood")
    other = asked(pool, "other")
    assert [one.done() for one in flood] == [False] * (MAX_WAITING - 1) + [True]
    with pytest.raises(ServerBusy):
        flood[-1].result()
    assert not other.done()


def test_a_client_that_is_refused_is_told_when_to_ask_again(pool, occupied, api):
    for _ in range(MAX_WAITING):
        asked(pool, "flood")
    answer = api.get(f"{API}/search", params={"query": "harbour", "session": "flood"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["error"]["type"] == "ServerBusy"


def test_what_was_written_before_a_question_came_in_is_found(pool):
    """A look at the files serves all questions that came in before it, and no later one."""
    for number in range(20):
        with Memory.open(pool.home) as memory:
            memory.write(f"The quokka{number} has arrived")
        found = [
            asked(pool, f"s{one}", lambda memory, word=f"quokka{number}": memory.search(word, fast=True))
            for one in range(6)
        ]
        assert all(f"quokka{number}" in one.result(60).hits[0].text for one in found)


def test_what_hooks_noted_before_a_question_came_in_is_found(pool):
    for number in range(5):
        scope = Scope(session_id=f"talk-{number}")
        asked(pool, "graph", lambda memory: memory.graph.search("harbour")).result(60)
        with Memory.open(pool.home, scope) as memory:
            memory.conversations.note("prompt", f"Where is the walrus{number}?")
            memory.conversations.note("answer", f"The walrus{number} is in the north dock.")
        found = asked(pool, "s", lambda memory, word=f"walrus{number}": memory.search(word, fast=True))
        assert "north dock" in " ".join(hit.text for hit in found.result(60).hits)


def test_an_index_that_threads_find_damaged_at_once_is_built_anew_and_read_by_all(pool):
    index = pool.home / "data" / "index.db"

    def ask(word):
        wait = threading.Barrier(MAX_THREADS)

        def search(memory):
            wait.wait(60)
            found = memory.search(word, fast=True)
            return found, memory.group.database("index")._inode

        asking = [asked(pool, f"s{number}", search) for number in range(MAX_THREADS)]
        return [one.result(60) for one in asking]

    ask("harbour")
    with Memory.open(pool.home) as memory:
        memory.group.database("index").query("PRAGMA wal_checkpoint(TRUNCATE)")
    index.write_bytes(index.read_bytes()[:2048] + b"x" * 60_000)
    assert all(found.hits for found, _ in ask("harbour"))
    with Memory.open(pool.home) as memory:
        memory.write("The quokka has arrived")
    answers = ask("quokka")
    assert all("quokka" in found.hits[0].text for found, _ in answers)
    assert {inode for _, inode in answers} == {index.stat().st_ino}


def test_ten_thousand_sessions_keep_few_memories_and_files_open(pool):
    started = threading.active_count()
    asked(pool, "first", lambda memory: memory.get("MEMORY.md")).result(60)
    files = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(0, 10_000, 100):
        found = [
            asked(pool, f"session-{one}", lambda memory: memory.get("MEMORY.md"))
            for one in range(number, number + 100)
        ]
        assert all(one.result(60).exists for one in found)
    assert threading.active_count() - started <= MAX_THREADS
    assert len(list(Path("/proc/self/fd").iterdir())) - files <= 20 * MAX_THREADS
    scope = Scope(session_id="x")
    assert len(pool.submit_to_worker(scope, lambda own: own._local.own.sessions).result(60)) <= MAX_SESSIONS


def test_what_a_closed_session_had_open_is_free_at_once(pool):
    closed = []

    def turn(memory):
        memory.before_turn("Which harbour gate opens at nine?")
        memory.search("harbour", fast=True)
        closed.append(weakref.ref(memory.group))

    gc.disable()
    try:
        for number in range(MAX_SESSIONS + 20):
            pool.submit(Scope(session_id=f"session-{number}"), turn, asked_at=None).result(60)
        left = sum(one() is not None for one in closed)
    finally:
        gc.enable()
    assert left <= MAX_SESSIONS


def test_of_an_mcp_client_that_asks_and_never_reads_no_more_is_read():
    async def converse():
        async def read():
            return b'{"jsonrpc": "2.0", "id": 7, "method": "tools/list"}\n'

        stream = McpStream(read, read)
        lines = aiter(stream._lines())
        for _ in range(MOST_CALLS):
            await anext(lines)
        further = asyncio.ensure_future(anext(lines))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not further.done()
        await stream.write('{"jsonrpc": "2.0", "id": 7, "result": {}}')
        assert await further

    asyncio.run(converse())


@given(st.lists(st.sampled_from("abcd"), max_size=60), st.integers(1, 20))
def test_every_client_s_turn_comes_round_and_its_jobs_stay_in_order(clients, most):
    queue, kept = FairQueue(most), {}
    for number, client in enumerate(clients):
        job = QueuedWork(lambda: None, Future(), float(number))
        try:
            queue.put(client, job)
        except ServerBusy:
            continue
        kept[job.asked_at] = client, job
    queue.close()
    taken = [(kept[job.asked_at][0], job.asked_at) for job in queue]
    assert len(taken) <= most
    for client in set(clients):
        own = [at for name, at in taken if name == client]
        assert own == sorted(own)
        places = [place for place, (name, _) in enumerate(taken) if name == client]
        assert all(later - one <= 4 for one, later in itertools.pairwise(places))
    refused = {at for at, (_, job) in kept.items() if job.future.done()}
    assert refused == kept.keys() - {at for _, at in taken}
