"""Embeddings over HTTP against a real server on loopback: what it may do wrong, and what then happens."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pytest
import stamina
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response
from word_hash import WordHashEmbedder

from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.providers.embedder import Chain, embedder_for
from nanoclaw_memory.providers.endpoint import EndpointConfig, RetryPolicy
from nanoclaw_memory.providers.openai import OpenAIEmbedder, openai_embedder
from nanoclaw_memory.settings.sections import EmbeddingsSettings

KEY = "sk-very-secret-0123456789"
REFERENCE = WordHashEmbedder(dimensions=8)


def vectors_for(request: Request) -> Response:
    """What a good server answers."""
    body = request.get_json()
    rows = REFERENCE.embed_documents(body["input"]).tolist()
    data = [{"index": number, "embedding": row} for number, row in enumerate(rows)]
    return Response(
        json.dumps({"data": data[::-1], "usage": {"prompt_tokens": 7 * len(rows)}}),
        content_type="application/json",
    )


@pytest.fixture
def desk(tmp_path, clock) -> EndpointConfig:
    return EndpointConfig(
        tmp_path / "data", clock, RetryPolicy(attempts=3, first_pause=0.001, longest_pause=0.002)
    )


@pytest.fixture
def make(desk, httpserver) -> Callable[..., OpenAIEmbedder]:
    def make_(**settings) -> OpenAIEmbedder:
        given = {
            "provider": "openai",
            "endpoint": httpserver.url_for(""),
            "api_key": KEY,
            "model": "tiny",
            "dimensions": 8,
            "timeout_ms": 20_000,
            "prices": {"tiny": 1.0},
            **settings,
        }
        return openai_embedder(EmbeddingsSettings(**given), desk)

    return make_


def test_a_query_and_documents_become_vectors_in_the_order_of_the_texts(make, httpserver):
    httpserver.expect_request("/v1/embeddings", method="POST").respond_with_handler(vectors_for)
    embedder = make()
    texts = [f"text {number}" for number in range(5)]
    assert np.allclose(embedder.embed_documents(texts), REFERENCE.embed_documents(texts), atol=1e-6)
    assert np.allclose(embedder.embed_query("text 3"), REFERENCE.embed_query("text 3"), atol=1e-6)
    assert embedder.embed_documents([]).shape == (0, 8)
    request = httpserver.log[0][0]
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.get_json() == {"model": "tiny", "input": texts}


def test_many_texts_go_in_batches_of_256(make, httpserver):
    httpserver.expect_request("/v1/embeddings").respond_with_handler(vectors_for)
    texts = [str(number) for number in range(600)]
    assert np.allclose(make().embed_documents(texts), REFERENCE.embed_documents(texts), atol=1e-6)
    assert [len(request.get_json()["input"]) for request, _ in httpserver.log] == [256, 256, 88]


def test_prefixes_are_put_before_queries_and_documents_and_belong_to_the_identity(make, httpserver):
    httpserver.expect_request("/v1/embeddings").respond_with_handler(vectors_for)
    embedder = make(query_prefix="search_query: ", document_prefix="search_document: ")
    embedder.embed_query("tea")
    embedder.embed_documents(["tea"])
    assert [request.get_json()["input"] for request, _ in httpserver.log] == [
        ["search_query: tea"],
        ["search_document: tea"],
    ]
    assert embedder.identity != make().identity


@pytest.mark.parametrize("base", ["", "/v1", "/v1/", "/v1/embeddings"])
def test_the_address_may_or_may_not_name_the_version(make, httpserver, base):
    httpserver.expect_request("/v1/embeddings").respond_with_handler(vectors_for)
    make(endpoint=httpserver.url_for("").rstrip("/") + base).embed_query("tea")


def test_texts_that_servers_refuse_are_made_sendable(make, httpserver):
    httpserver.expect_request("/v1/embeddings").respond_with_handler(vectors_for)
    make().embed_documents(["", "  \n", "half \ud83d pair"])
    assert httpserver.log[0][0].get_json()["input"] == ["(empty)", "(empty)", "half � pair"]


def test_only_openais_third_generation_is_asked_for_a_length(make, httpserver):
    httpserver.expect_request("/v1/embeddings").respond_with_handler(vectors_for)
    make(model="text-embedding-3-small").embed_query("tea")
    assert httpserver.log[0][0].get_json()["dimensions"] == 8
    assert make(model="nomic-embed-text:v1.5").identity.dimensions == 768


def test_calls_tokens_and_cost_are_counted(make, httpserver, desk):
    httpserver.expect_request("/v1/embeddings").respond_with_handler(vectors_for)
    make().embed_documents(["a", "b"])
    (spent,) = desk.usage.total()
    assert (spent.provider, spent.model, spent.calls, spent.tokens) == ("openai", "tiny", 1, 14)
    assert spent.cost == pytest.approx(14e-6)


def rows(*vectors) -> dict:
    return {"data": [{"index": number, "embedding": vector} for number, vector in enumerate(vectors)]}


GOOD = [1.0] + [0.0] * 7
WRONG = {
    "401": (Response(f"bad key {KEY}", 401), "the key is refused"),
    "403": (Response("", 403), "the key is refused"),
    "404": (Response('{"error": {"message": "no model tiny"}}', 404), "HTTP 404: no model tiny"),
    "400 that repeats the key": (Response(json.dumps({"error": f"{KEY} is odd"}), 400), r"\*\*\* is odd"),
    "302": (Response("", 302, {"Location": "http://elsewhere.test"}), "HTTP 302"),
    "500": (Response("boom", 500), "the server failed"),
    "503": (Response("<html>busy</html>", 503), "the server failed"),
    "HTML instead of JSON": (
        Response(f"<html>{KEY}</html>", 200, content_type="text/html"),
        "answered with text/html that is not JSON",
    ),
    "JSON of another shape": (Response("[1]", 200), "unknown shape"),
    "no data": (Response('{"object": "list"}', 200), "holds no embeddings"),
    "data without embeddings": (Response('{"data": [{"index": 0}]}', 200), "holds no embeddings"),
    "no vectors": (Response(json.dumps(rows()), 200), "returned 0 vectors for 1 texts"),
    "too many vectors": (Response(json.dumps(rows(GOOD, GOOD)), 200), "returned 2 vectors for 1 texts"),
    "wrong dimensions": (Response(json.dumps(rows([1.0, 2.0])), 200), "2 dimensions, 8 are configured"),
    "NaN": (Response(json.dumps(rows([float("nan")] * 8)), 200), "NaN or infinity"),
    "zeros": (Response(json.dumps(rows([0.0] * 8)), 200), "a vector of zeros"),
    "text": (Response(json.dumps(rows(["x"] * 8)), 200), "not lists of numbers"),
    "wrong numbers": (
        Response(json.dumps({"data": [{"index": 5, "embedding": GOOD}]}), 200),
        "wrongly numbered",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_answer_is_a_clear_error_that_never_holds_the_key(make, httpserver, desk, caplog, case):
    answer, said = WRONG[case]
    httpserver.expect_request("/v1/embeddings").respond_with_response(answer)
    caplog.set_level(logging.DEBUG)
    with pytest.raises(ProviderError, match=said) as failure:
        make().embed_query("tea")
    seen = [str(failure.value), failure.value.hint, repr(failure.value), caplog.text]
    seen += [path.read_text() for path in desk.data_dir.rglob("*") if path.is_file()]
    assert not [text for text in seen if KEY in text]
    assert desk.usage.total()[0].calls == 1


def test_a_passing_failure_is_tried_again(make, httpserver):
    httpserver.expect_ordered_request("/v1/embeddings").respond_with_data("busy", 503)
    httpserver.expect_ordered_request("/v1/embeddings").respond_with_data("slow down", 429)
    httpserver.expect_ordered_request("/v1/embeddings").respond_with_handler(vectors_for)
    assert make().embed_query("tea").shape == (8,)


def test_retry_after_is_what_is_waited(make, httpserver):
    httpserver.expect_ordered_request("/v1/embeddings").respond_with_data("", 429, {"Retry-After": "0.05"})
    httpserver.expect_ordered_request("/v1/embeddings").respond_with_handler(vectors_for)
    waits: list[float] = []
    stamina.instrumentation.set_on_retry_hooks([lambda details: waits.append(details.wait_for)])
    try:
        make().embed_query("tea")
    finally:
        stamina.instrumentation.set_on_retry_hooks(None)
    assert waits == [0.05]


def test_a_retry_after_beyond_the_limit_is_not_waited_for_but_kept_to(make, httpserver, clock):
    httpserver.expect_request("/v1/embeddings").respond_with_data("", 429, {"Retry-After": "120"})
    with pytest.raises(ProviderError, match="rate limit or quota"):
        make().embed_query("tea")
    assert len(httpserver.log) == 1
    clock.moment += timedelta(seconds=119)
    with pytest.raises(ProviderError, match="left alone for 1 s after a failure: rate limit"):
        make().embed_query("tea")
    assert len(httpserver.log) == 1


def test_a_refused_key_is_no_outage(make, httpserver):
    httpserver.expect_ordered_request("/v1/embeddings").respond_with_data("", 401)
    httpserver.expect_ordered_request("/v1/embeddings").respond_with_handler(vectors_for)
    with pytest.raises(ProviderError, match="the key is refused"):
        make().embed_query("tea")
    assert make().embed_query("tea").shape == (8,)


def test_a_probe_that_is_refused_ends_the_outage(make, httpserver, clock):
    httpserver.expect_ordered_request("/v1/embeddings").respond_with_data("", 429, {"Retry-After": "60"})
    httpserver.expect_ordered_request("/v1/embeddings").respond_with_data("", 401)
    httpserver.expect_ordered_request("/v1/embeddings").respond_with_handler(vectors_for)
    with pytest.raises(ProviderError, match="rate limit"):
        make().embed_query("tea")
    clock.moment += timedelta(seconds=61)
    with pytest.raises(ProviderError, match="the key is refused"):
        make().embed_query("tea")
    assert make().embed_query("tea").shape == (8,)


def test_a_server_that_never_answers_costs_one_time_out_and_not_one_a_query(make):
    with socket.create_server(("127.0.0.1", 0), backlog=10) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ProviderError, match="no answer within"):
            make(endpoint=address, timeout_ms=200).embed_query("tea")
        for _ in range(3):  # as new processes would
            with pytest.raises(ProviderError, match="left alone"):
                make(endpoint=address, timeout_ms=200).embed_query("tea")
        silent.setblocking(False)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()  # nobody else came


def test_a_caller_without_time_does_not_count_as_an_outage(make, httpserver):
    httpserver.expect_request("/v1/embeddings").respond_with_handler(vectors_for)
    with pytest.raises(ProviderError, match="no time left"):
        make().embed_query("tea", deadline=0.0)
    assert make().embed_query("tea").shape == (8,)
    assert len(httpserver.log) == 1


def test_a_server_that_drips_does_not_outlast_the_limit(make, httpserver):
    def drip(request: Request) -> Response:
        import time

        def pieces():
            for _ in range(100):
                time.sleep(0.02)
                yield b" "

        return Response(pieces(), content_type="application/json")

    httpserver.expect_request("/v1/embeddings").respond_with_handler(drip)
    with pytest.raises(ProviderError, match=r"too slowly|no answer"):
        make(timeout_ms=100).embed_query("tea")


def test_a_server_that_dies_and_comes_back_is_found_again(make, clock):
    server = HTTPServer(port=0)
    server.expect_request("/v1/embeddings").respond_with_handler(vectors_for)
    server.start()
    embedder = make(endpoint=server.url_for(""))
    assert embedder.embed_query("tea").shape == (8,)
    port = server.port
    server.stop()
    with pytest.raises(ProviderError, match=r"cannot be reached|connection broke"):
        embedder.embed_query("tea")
    server = HTTPServer(port=port)
    server.expect_request("/v1/embeddings").respond_with_handler(vectors_for)
    server.start()
    try:
        with pytest.raises(ProviderError, match="left alone"):
            embedder.embed_query("tea")
        assert server.log == []
        clock.moment += timedelta(seconds=31)
        assert embedder.embed_query("tea").shape == (8,)
        assert make(endpoint=server.url_for("")).embed_query("tea").shape == (8,)
    finally:
        server.stop()


def test_azures_key_from_the_environment_is_sent_to_no_other_host(make, httpserver, monkeypatch):
    httpserver.expect_request("/v1/embeddings").respond_with_handler(vectors_for)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://resource.openai.azure.test")
    make().embed_query("tea")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", httpserver.url_for(""))
    make().embed_query("tea")
    assert ["Authorization" in request.headers for request, _ in httpserver.log] == [False, True]


def test_a_proxy_from_the_environment_does_not_stand_before_this_machine(make, httpserver, monkeypatch):
    httpserver.expect_request("/v1/embeddings").respond_with_handler(vectors_for)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert make().embed_query("tea").shape == (8,)


def test_the_settings_make_the_chain(httpserver, tmp_path, clock):
    httpserver.expect_request("/v1/embeddings").respond_with_handler(vectors_for)
    settings = EmbeddingsSettings(
        provider="openai", endpoint=httpserver.url_for(""), model="tiny", dimensions=8, api_key=""
    )
    chain = embedder_for(settings, tmp_path, tmp_path, clock)
    assert isinstance(chain, Chain)
    assert chain.embed_query("tea").identity.key == "openai/tiny@8"
    assert "Authorization" not in httpserver.log[0][0].headers
