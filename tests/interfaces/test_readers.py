"""Processes that answer questions beside the server: the same answers, nothing missed, and none left behind."""

from __future__ import annotations

import signal
import time

import pytest
from starlette.testclient import TestClient

from nanoclaw_memory.errors import ServerBusy
from nanoclaw_memory.interfaces.http.app import application
from nanoclaw_memory.interfaces.http.fair_queue import MAX_WAITING
from nanoclaw_memory.interfaces.http.pool import MemoryPool
from nanoclaw_memory.interfaces.http.readers import AHEAD, AT_ONCE, CROWD, LONGEST, ReaderQuestion
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope

API = "/api/v1"


class Crowd:
    """A server with one process beside it, which has begun because questions queued up."""

    def __init__(self, home):
        self.pool = MemoryPool(home, readers=1)
        self.readers = self.pool._readers
        self.answered = 0
        own = self.readers.ask

        def counted(asked, answered, future):
            def passed_on(found):
                self.answered += found is not None
                answered(found)

            return own(asked, passed_on, future)

        self.readers.ask = counted
        self.readers.crowded(CROWD)
        until = time.monotonic() + 60
        while not any(one and one.is_open for one in self.readers._running.values()):
            assert time.monotonic() < until
            time.sleep(0.01)
        (self.process,) = (one.process for one in self.readers._running.values())

    def ask(self, session="one", query="harbour gate", convert=lambda found: "another process"):
        """A question that waits, and what will become of it: the server's own answer, or another process's."""
        scope = Scope(session_id=session)
        asked = ReaderQuestion(scope, "search", {"query": query, "fast": "true"}, time.monotonic())
        return self.pool.submit_reading(asked, lambda memory: "the server", convert)

    def stop(self):
        """Keep the process from answering."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def client(self, **query):
        token = "t" * 40
        app = application(self.pool, {}, token, 80)
        headers = {"Authorization": f"Bearer {token}", **query}
        return TestClient(app, "http://127.0.0.1:80", headers=headers)


@pytest.fixture
def crowd(tmp_path):
    with Memory.open(tmp_path) as memory:
        memory.init()
        memory.write("The harbour gate opens at nine")
        memory.graph.upsert("Keystone", "port", "3000", "project")
    made = Crowd(tmp_path)
    yield made
    made.pool.close()


def found(answer):
    assert answer.status_code == 200
    return [hit.get("text") or hit["item"]["value"] for hit in answer.json()["hits"]]


QUESTIONS = [
    (f"{API}/search", {"query": "harbour gate", "fast": True}),
    (f"{API}/graph/search", {"query": "What port does Keystone run on?"}),
]


def test_another_process_answers_as_the_server_does(crowd):
    with crowd.client() as client:
        there = [found(client.get(path, params=query)) for path, query in QUESTIONS]
        assert crowd.answered == 2
        crowd.readers.ask = lambda asked, answered, future: False
        assert there == [found(client.get(path, params=query)) for path, query in QUESTIONS]
    assert all(there)


def test_what_was_written_before_a_question_is_found_by_another_process(crowd):
    with crowd.client() as client:
        for number in range(5):
            client.post(f"{API}/log", json={"content": f"The quokka{number} has arrived"}).raise_for_status()
            hits = found(client.get(f"{API}/search", params={"query": f"quokka{number}", "fast": True}))
            assert f"quokka{number}" in hits[0]
    assert crowd.answered == 5


def test_another_process_shows_a_shared_scope_nothing_private(crowd):
    with crowd.client(**{"X-NanoClaw-Shared": "true"}) as client:
        assert found(client.get(QUESTIONS[0][0], params=QUESTIONS[0][1])) == []
    assert crowd.answered == 1


def test_an_error_of_another_process_is_the_servers_and_does_not_end_it(crowd):
    with crowd.client() as client:
        wrong = client.get(f"{API}/search", params={"query": "harbour", "fast": True, "group": "nobody"})
        assert (wrong.status_code, wrong.json()["error"]["type"]) == (404, "NotFound")
        assert crowd.process.poll() is None
        assert crowd.answered == 1


def test_a_process_that_was_killed_costs_no_answer(crowd):
    crowd.process.kill()
    with crowd.client() as client:
        assert found(client.get(QUESTIONS[0][0], params=QUESTIONS[0][1]))
    assert crowd.answered == 0


def test_questions_that_queue_up_are_left_to_the_other_processes(crowd):
    crowd.stop()
    waiting = [crowd.ask(f"client {number}") for number in range(4 * AHEAD)]
    time.sleep(0.2)
    assert not any(one.done() for one in waiting)
    crowd.go_on()
    assert {one.result(60) for one in waiting} == {"another process"}


def test_each_of_the_questions_that_queued_up_gets_its_own_answer(crowd):
    with Memory.open(crowd.pool.home) as memory:
        for number in range(4 * AHEAD * AT_ONCE):
            memory.write(f"The quokka{number} has arrived")
    crowd.stop()
    waiting = [
        crowd.ask(f"client {number % 3}", f"quokka{number}", lambda found: found.body.decode())
        for number in range(4 * AHEAD * AT_ONCE)
    ]
    crowd.go_on()
    for number, one in enumerate(waiting):
        assert f"quokka{number} " in one.result(60)


def test_what_waits_for_a_process_that_is_killed_the_server_answers(crowd):
    crowd.stop()
    waiting = [crowd.ask(f"client {number}") for number in range(4 * AHEAD)]
    crowd.process.kill()
    assert {one.result(60) for one in waiting} == {"the server"}


def test_a_question_that_does_not_fit_into_the_pipe_the_server_answers(crowd):
    crowd.stop()
    assert crowd.ask(query="harbour " * LONGEST).result(60) == "the server"
    crowd.go_on()


def test_a_graph_query_which_may_be_slow_keeps_no_other_question_waiting(crowd):
    crowd.stop()
    with crowd.client() as client:
        asked = {"query": "MATCH (a)-[r]->(b) RETURN a"}
        assert client.get(f"{API}/graph/query", params=asked).status_code == 200
    assert crowd.answered == 0
    crowd.go_on()


def test_a_flood_of_questions_is_refused_and_keeps_no_other_client_out(crowd):
    crowd.stop()
    flood = [crowd.ask("greedy") for _ in range(MAX_WAITING + AHEAD)]
    with pytest.raises(ServerBusy):
        crowd.ask("greedy")
    other = crowd.ask("another")
    with pytest.raises(ServerBusy):
        flood[-1].result(1)  # its newest made room
    crowd.go_on()
    assert other.result(60) == "another process"
    assert {one.result(60) for one in flood[:-1]} == {"another process"}


def test_a_question_that_nobody_waits_for_any_more_is_not_handed_over(crowd):
    crowd.stop()
    waiting = [crowd.ask(f"client {number}") for number in range(2 * AHEAD)]
    assert waiting[-1].cancel()
    crowd.go_on()
    assert {one.result(60) for one in waiting[:-1]} == {"another process"}
    assert crowd.ask("later").result(60) == "another process"
    assert crowd.answered == 2 * AHEAD


def test_processes_end_with_the_server(crowd):
    crowd.pool.close()
    assert crowd.process.poll() is not None


def test_a_process_ends_when_its_server_is_gone(crowd):
    crowd.process.stdin.close()
    assert crowd.process.wait(30) == 0
