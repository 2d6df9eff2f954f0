"""Connections to a real server: slow, silent, too many, and with few files to open."""

from __future__ import annotations

import http.client
import json
import resource
import select
import socket
import time
from contextlib import ExitStack

import pytest
from serving import context, serving, through_shim

API = "/api/v1"
CLOSED_WITHIN = 25  # the limit is ten seconds; the machine may be busy


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("connections") / "home", "--no-upkeep") as found:
        yield found


@pytest.fixture
def connect(served):
    """Connections to the server, closed at the end."""
    with ExitStack() as stack:
        yield lambda sent=b"", source="": stack.enter_context(connected(served, sent, source))


def connected(served, sent=b"", source=""):
    address = ("127.0.0.1", int(served.url.rpartition(":")[2]))
    visitor = socket.create_connection(address, timeout=30, source_address=(source, 0) if source else None)
    visitor.sendall(sent)
    return visitor


def request(served, path, *headers, method="GET"):
    host = served.url.removeprefix("http://")
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {served.token}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def closed(visitor):
    """Whether the server has closed a connection, whatever it sent before."""
    try:
        visitor.setblocking(False)
        while visitor.recv(65536):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True


def answers(served):
    with served.client() as client:
        return client.get(f"{API}/status").status_code == 200


def test_a_client_that_does_not_finish_its_request_is_closed_however_it_dawdles(served, connect):
    slow = {
        "silent": connect(),
        "half of the headers": connect(b"GET / HTTP/1.1\r\nHo"),
        "one header at a time": connect(b"GET /healthz HTTP/1.1\r\n"),
        "half of the next request": connect(request(served, "/healthz") + b"GET /hea"),
        "a body that nobody asked for": connect(
            request(served, "/healthz", "Content-Length: 99", method="GET") + b"x"
        ),
    }
    until = time.monotonic() + CLOSED_WITHIN
    while (left := [name for name, one in slow.items() if not closed(one)]) and time.monotonic() < until:
        for name in left:
            if name != "silent":
                try:
                    slow[name].sendall(b"X-A: 1\r\n" if name == "one header at a time" else b"x")
                except OSError:
                    continue
        select.select([], [], [], 0.5)
    assert left == []
    assert answers(served)


def test_a_client_that_does_not_read_its_answers_is_closed(served, connect):
    stuck = connect()
    many = request(served, f"{API}/openapi.json") * 200
    stuck.settimeout(CLOSED_WITHIN)
    with pytest.raises(ConnectionError):
        while True:  # until the server neither reads on nor keeps the connection
            stuck.sendall(many)
    assert answers(served)


def test_a_client_that_sends_ever_more_requests_ahead_is_closed(served, connect):
    flooding, sent = connect(), 0
    many = request(served, f"{API}/search?query=harbour") * 500
    flooding.settimeout(CLOSED_WITHIN)
    with pytest.raises(ConnectionError):
        while sent < 48 * 1024 * 1024:  # the system's own buffers take some megabytes
            sent += flooding.send(many[sent % len(many) :])
    assert answers(served)


def test_thousands_of_half_open_connections_keep_nobody_out(served, connect):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    try:
        half = [connect(b"GET / HTTP/1.1\r\nHo") for _ in range(2100)]
        assert answers(served)
        assert "# Soul" in context(through_shim(served.home, "hook", "session-start", stdin="{}"))
        assert sum(not closed(one) for one in half) <= 256
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_peer_with_too_many_connections_loses_its_oldest_and_others_none(served, connect):
    other = connect(source="127.0.0.9")
    own = [connect() for _ in range(400)]
    assert answers(served)  # so all of them have been accepted
    assert closed(own[0])
    assert not closed(own[-1])
    assert not closed(other)


def test_where_every_connection_of_a_peer_is_being_answered_the_next_is_told_when_to_ask_again(
    served, connect
):
    unfinished = request(served, f"{API}/log", "Content-Length: 9", method="POST")
    crowd = [connect(unfinished) for _ in range(256)]
    time.sleep(1)  # until all have been read
    refused = http.client.HTTPResponse(connect(request(served, f"{API}/status")))
    refused.begin()
    assert (refused.status, refused.headers["retry-after"]) == (503, "1")
    assert json.load(refused)["error"]["type"] == "ServerBusy"
    assert not any(map(closed, crowd))


@pytest.mark.parametrize("files", [128, 1024])
def test_a_server_that_may_open_few_files_survives_more_connections_than_that(tmp_path, files):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as stack:
        few = stack.enter_context(serving(tmp_path / "home", "--no-upkeep", files=files))
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
        try:
            for _ in range(files + 100):
                stack.enter_context(connected(few, b"GET / HTTP/1.1\r\nHo"))
            assert answers(few)
            for number in range(40):  # sessions have connections to the databases of their own
                with few.client(**{"X-NanoClaw-Session": f"s{number}"}) as client:
                    turned = client.post(f"{API}/turns/before", json={"message": "Which tea does Ida like?"})
                    assert turned.status_code == 200, turned.text
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_kept_alive_request_does_not_wait_for_an_acknowledgement(served):
    connection = http.client.HTTPConnection(served.url.removeprefix("http://"))
    took = []
    for _ in range(40):
        start = time.perf_counter()
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        took.append(time.perf_counter() - start)
    connection.close()
    # A delayed acknowledgement takes at least 40 ms, every time once the connection is warm.
    assert min(took[20:]) < 0.03


def test_mcp_over_http_opens_no_endless_stream(served):
    with served.client(Accept="text/event-stream") as client:
        assert client.get("/mcp").status_code == 405


def test_a_question_of_a_megabyte_is_refused_and_costs_nobody_else_the_server(served):
    long = "harbour gate " * 80_000
    with served.client() as client:
        assert client.get(f"{API}/search", params={"query": long[:60_000]}).status_code == 400
        assert client.post(f"{API}/turns/before", json={"message": long}).status_code == 200
    assert answers(served)
    with connected(served, b"GET " + API.encode() + b"/search?query=" + b"x" * 1_000_000) as visitor:
        assert b" 400 " in visitor.recv(65536).split(b"\r\n")[0] or closed(visitor)
    assert answers(served)
