"""An embedding server that misbehaves: every search still answers and says what is wrong."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from nanoclaw_memory.memory import Memory


def vectors(request: Request, size: int = 8) -> list[dict]:
    texts = json.loads(request.data)["input"]
    return [
        {"index": n, "embedding": [1.0 + sum(map(ord, text)) % (axis + 7) for axis in range(size)]}
        for n, text in enumerate(texts)
    ]


def good(request: Request) -> Response:
    return Response(json.dumps({"data": vectors(request)}), content_type="application/json")


def short(request: Request) -> Response:
    return Response(json.dumps({"data": vectors(request)[:-1]}), content_type="application/json")


def longer(request: Request) -> Response:
    return Response(json.dumps({"data": vectors(request, 9)}), content_type="application/json")


def not_a_number(request: Request) -> Response:
    data = [{**one, "embedding": [math.nan] * 8} for one in vectors(request)]
    return Response(json.dumps({"data": data}), content_type="application/json")


def html(request: Request) -> Response:
    return Response("<html><body>login</body></html>", content_type="text/html")


def silent(request: Request) -> Response:
    time.sleep(1.5)  # longer than the limit below: this is the server's fault, not the test's pace
    return good(request)


def status(code: int) -> Callable[[Request], Response]:
    return lambda request: Response("no", status=code)


@pytest.fixture
def served(
    httpserver: HTTPServer, open_memory: Callable[..., Memory], request: pytest.FixtureRequest
) -> Memory:
    slow = "never answers" in request.node.name
    memory = open_memory(
        embeddings__provider="openai",
        embeddings__endpoint=httpserver.url_for("/v1"),
        embeddings__model="test-model",
        embeddings__dimensions="8",
        embeddings__timeoutMs="700" if slow else "20000",
    )
    memory.init()
    path = memory.home.workspace("main") / "MEMORY.md"
    path.write_text("# Memory\n\n- Keystone runs on port 3055\n", encoding="utf-8")
    return memory


def test_shared_chats_that_said_nothing_yet_are_no_fault(
    served: Memory, httpserver: HTTPServer, open_memory: Callable[..., Memory]
) -> None:
    httpserver.expect_request("/v1/embeddings").respond_with_handler(good)
    own = served.settings.embeddings
    chat = open_memory(
        private=False,
        embeddings__provider="openai",
        embeddings__endpoint=own.endpoint,
        embeddings__model="test-model",
        embeddings__dimensions="8",
    )
    chat.search("Keystone port")
    found = served.search("Keystone port")
    assert "3055" in found.hits[0].text
    assert found.degraded == ()


FAULTS = {
    "too few vectors": (short, "returned"),
    "wrong dimensions": (longer, "dimensions"),
    "not a number": (not_a_number, ""),
    "html": (html, ""),
    "401": (status(401), "401"),
    "429": (status(429), "429"),
    "500": (status(500), "500"),
    "never answers": (silent, ""),
}


@pytest.mark.parametrize("name", FAULTS)
def test_search_survives_an_embedder_with_a_fault(served: Memory, httpserver: HTTPServer, name: str):
    fault, said = FAULTS[name]
    httpserver.expect_request("/v1/embeddings").respond_with_handler(fault)
    found = served.search("Which port does Keystone use?")
    assert found.hits[0].path == "MEMORY.md"
    complaints = [line for line in found.degraded if line.startswith("vectors:")]
    assert complaints
    assert said in " ".join(complaints)
    assert served.group.retrieval.index.passages.identities() == {}


def test_the_server_dies_in_the_middle_of_a_session_and_comes_back(
    served: Memory, httpserver: HTTPServer, clock, home: Path
):
    from datetime import timedelta

    state = {"alive": True}
    httpserver.expect_request("/v1/embeddings").respond_with_handler(
        lambda request: good(request) if state["alive"] else Response("down", status=500)
    )
    assert served.search("Keystone port").degraded == ()
    state["alive"] = False
    served.write("The heron arrived")
    during = served.search("heron")
    assert "heron" in during.hits[0].text
    assert any("500" in line for line in during.degraded)
    asked = len(httpserver.log)
    again = served.search("heron arrived")
    assert again.hits and again.degraded
    assert len(httpserver.log) == asked  # the breaker: an outage costs one time-out, not one per query
    state["alive"] = True
    clock.moment += timedelta(minutes=15)
    served.search("heron")
    after = served.search("heron")
    assert after.degraded == ()
    assert "heron" in after.hits[0].text
