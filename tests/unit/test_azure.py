"""Azure OpenAI: the address, the header, and the way from the large to the small deployment."""

from __future__ import annotations

import json

import pytest
from werkzeug import Request, Response

from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.providers.embedder import Chain
from nanoclaw_memory.providers.endpoint import EndpointConfig, RetryPolicy
from nanoclaw_memory.providers.openai import azure_embedders
from nanoclaw_memory.settings.sections import EmbeddingsSettings

LARGE = "/openai/deployments/text-embedding-3-large/embeddings"
SMALL = "/openai/deployments/text-embedding-3-small/embeddings"


def vectors_for(request: Request) -> Response:
    body = request.get_json()
    data = [
        {"index": number, "embedding": [1.0 + number] * body["dimensions"]}
        for number, _ in enumerate(body["input"])
    ]
    return Response(json.dumps({"data": data, "usage": {"prompt_tokens": 1_000_000}}))


@pytest.fixture
def chain(httpserver, tmp_path, clock) -> Chain:
    settings = EmbeddingsSettings(
        provider="azure-openai", endpoint=httpserver.url_for(""), api_key="azure-key", timeout_ms=20_000
    )
    desk = EndpointConfig(tmp_path, clock, RetryPolicy(2, 0.001, 0.002))
    return Chain(azure_embedders(settings, desk), timeout=20)


def test_the_request_has_azures_shape(chain, httpserver):
    httpserver.expect_request(LARGE, query_string="api-version=2024-06-01").respond_with_handler(vectors_for)
    answer = chain.embed_documents(["a", "b"])
    assert (answer.vectors.shape, answer.identity.key) == (
        (2, 3072),
        "azure-openai/text-embedding-3-large@3072",
    )
    request = httpserver.log[0][0]
    assert request.headers["api-key"] == "azure-key"
    assert request.get_json() == {"input": ["a", "b"], "dimensions": 3072}


def test_weights_favour_the_vector(chain):
    assert chain.weights == (0.7, 0.3)


def test_when_the_large_one_is_out_of_quota_the_small_one_answers_and_says_so(chain, httpserver):
    httpserver.expect_request(LARGE).respond_with_data("", 429, {"Retry-After": "600"})
    httpserver.expect_request(SMALL).respond_with_handler(vectors_for)
    answer = chain.embed_query("tea")
    assert answer.identity.key == "azure-openai/text-embedding-3-small@1536"
    assert answer.vector.shape == (1536,)
    chain.embed_query("tea")
    assert [request.path for request, _ in httpserver.log] == [LARGE, SMALL, SMALL]  # the breaker remembers


def test_the_small_one_is_left_alone_when_the_index_has_no_vectors_of_it(chain, httpserver):
    httpserver.expect_request(LARGE).respond_with_data("", 500)
    with pytest.raises(ProviderError, match="text-embedding-3-large: the server failed"):
        chain.embed_query("tea", among={chain.identity})
    assert {request.path for request, _ in httpserver.log} == {LARGE}


def test_when_both_are_down_the_error_names_both(chain, httpserver):
    httpserver.expect_request(LARGE).respond_with_data("", 500)
    httpserver.expect_request(SMALL).respond_with_data("", 503)
    with pytest.raises(ProviderError, match=r"3-large: the server failed.*3-small: the server failed"):
        chain.embed_query("tea")


def test_costs_follow_the_price_list(chain, httpserver, tmp_path, clock):
    httpserver.expect_request(LARGE).respond_with_handler(vectors_for)
    httpserver.expect_request(SMALL).respond_with_handler(vectors_for)
    for identity in chain.identities:
        chain.embed_documents(["a"], identity)
    assert [spent.cost for spent in EndpointConfig(tmp_path, clock).usage.total()] == pytest.approx(
        [0.13, 0.02]
    )


def test_without_a_fallback_the_chain_has_one_member(tmp_path, clock):
    settings = EmbeddingsSettings(endpoint="https://a.test", api_key="k", fallback_deployment="")
    assert len(azure_embedders(settings, EndpointConfig(tmp_path, clock))) == 1
