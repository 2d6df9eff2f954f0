"""Embeddings over OpenAI's protocol: llama.cpp, Ollama, vLLM, OpenAI itself, and deployments on Azure."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from nanoclaw_memory.errors import ProviderError, SettingsError
from nanoclaw_memory.providers.calibration import CLOUD_WEIGHTS, LOCAL_WEIGHTS
from nanoclaw_memory.providers.embedder import Identity, checked
from nanoclaw_memory.providers.endpoint import EndpointConfig, JsonEndpoint, Service, web_address
from nanoclaw_memory.tokens import estimate

if TYPE_CHECKING:
    from nanoclaw_memory.providers.embedder import Vectors
    from nanoclaw_memory.settings.sections import EmbeddingsSettings

BATCH = 256  # the protocol's hard limit is 2,048 inputs per request
DOCUMENTS_LIMIT_S = 60.0
_DIMENSIONS = {
    "nomic-embed-text": 768,
    "mxbai-embed-large": 1024,
    "all-minilm": 384,
    "bge-m3": 1024,
    "snowflake-arctic-embed": 1024,
    "text-embedding-ada-002": 1536,
}


class OpenAIEmbedder:
    """One model behind one `/embeddings` address."""

    def __init__(
        self,
        endpoint: JsonEndpoint,
        identity: Identity,
        weights: tuple[float, float],
        timeout: float,
        extra: dict[str, Any] | None = None,
        query_prefix: str = "",
        document_prefix: str = "",
    ) -> None:
        self.identity = identity
        self.weights = weights
        self._endpoint = endpoint
        self._timeout = timeout
        self._extra = extra or {}
        self._query_prefix = query_prefix
        self._document_prefix = document_prefix

    def embed_documents(self, texts: Sequence[str], deadline: float | None = None) -> Vectors:
        import numpy as np

        parts = []
        for start in range(0, len(texts), BATCH):
            batch = [self._document_prefix + text for text in texts[start : start + BATCH]]
            # Many texts take a slow server longer than one question may.
            limit = time.monotonic() + max(self._timeout, DOCUMENTS_LIMIT_S)
            parts.append(self._ask(batch, limit if deadline is None else deadline))
        return np.concatenate(parts) if parts else checked([], 0, self.identity)

    def embed_query(self, text: str, deadline: float | None = None) -> Vectors:
        limit = time.monotonic() + self._timeout if deadline is None else deadline
        row: Vectors = self._ask([self._query_prefix + text], limit)[0]
        return row

    def _ask(self, texts: list[str], deadline: float) -> Vectors:
        inputs = [sendable(text) for text in texts]
        tokens = sum(estimate(text) for text in inputs)
        answer = self._endpoint.post({"input": inputs, **self._extra}, deadline, tokens)
        return checked(self._rows(answer), len(texts), self.identity)

    def _rows(self, answer: dict[str, Any]) -> list[Any]:
        """Return the vectors in the order of the texts: servers may answer in another order and number them."""
        items = answer.get("data")
        if not isinstance(items, list) or not all(
            isinstance(item, dict) and isinstance(item.get("embedding"), list) for item in items
        ):
            raise ProviderError(
                f"{self._endpoint.service.name}: the answer holds no embeddings", "is it an embedding model?"
            )
        numbers = [item.get("index", place) for place, item in enumerate(items)]
        if sorted(number for number in numbers if isinstance(number, int)) != list(range(len(items))):
            raise ProviderError(f"{self._endpoint.service.name}: the answer's vectors are wrongly numbered")
        return [
            item["embedding"]
            for _, item in sorted(zip(numbers, items, strict=True), key=lambda pair: pair[0])
        ]


def openai_embedder(settings: EmbeddingsSettings, config: EndpointConfig) -> OpenAIEmbedder:
    """Return the embedder that the settings describe for an OpenAI-compatible server."""
    if not settings.model:
        raise SettingsError(
            "embeddings.model is not set", "run: nanoclaw-memory config set embeddings.model nomic-embed-text"
        )
    url = path_of(web_address(settings.endpoint, "embeddings"), "embeddings")
    shortens = settings.model.startswith("text-embedding-3")
    # A model has a fixed length of vectors; only OpenAI's third generation can be asked for another.
    known = None if shortens else _DIMENSIONS.get(settings.model.partition(":")[0])
    # Another document prefix makes other vectors, so it belongs to the identity.
    prefix = settings.document_prefix.strip()
    model = f"{settings.model} [{prefix}]" if prefix else settings.model
    service = Service("openai", settings.model, "embeddings", settings.prices.get(settings.model, 0.0))
    extra: dict[str, Any] = {"model": settings.model}
    if shortens:
        extra["dimensions"] = settings.dimensions
    return OpenAIEmbedder(
        JsonEndpoint(service, url, bearer(key_for(url, settings.api_key)), config),
        Identity("openai", model, known or settings.dimensions),
        CLOUD_WEIGHTS if shortens else LOCAL_WEIGHTS,
        settings.timeout_ms / 1000,
        extra=extra,
        query_prefix=settings.query_prefix,
        document_prefix=settings.document_prefix,
    )


# ---- Azure ----


def azure_embedders(settings: EmbeddingsSettings, config: EndpointConfig) -> tuple[OpenAIEmbedder, ...]:
    """Return the deployments to try, best first."""
    if not settings.api_key:
        raise SettingsError(
            "embeddings.apiKey is not set",
            "set AZURE_OPENAI_API_KEY, or embeddings.apiKey to ${YOUR_VARIABLE}",
        )
    first = azure_embedder(settings, settings.deployment, settings.dimensions, config)
    fallback = settings.fallback_deployment
    if not fallback or fallback == settings.deployment:
        return (first,)
    return (first, azure_embedder(settings, fallback, settings.fallback_dimensions, config))


def azure_embedder(
    settings: EmbeddingsSettings, deployment: str, dimensions: int, config: EndpointConfig
) -> OpenAIEmbedder:
    """Return one deployment, asked for vectors of this length."""
    url = azure_url(settings.endpoint, deployment, "embeddings", settings.api_version, "embeddings")
    service = Service("azure-openai", deployment, "embeddings", settings.prices.get(deployment, 0.0))
    extra: dict[str, Any] = {} if "ada-002" in deployment else {"dimensions": dimensions}
    return OpenAIEmbedder(
        JsonEndpoint(service, url, {"api-key": settings.api_key}, config),
        Identity("azure-openai", deployment, dimensions),
        CLOUD_WEIGHTS,
        settings.timeout_ms / 1000,
        extra=extra,
    )


def azure_url(endpoint: str, deployment: str, operation: str, api_version: str, section: str) -> str:
    """Return `<endpoint>/openai/deployments/<deployment>/<operation>?api-version=<version>`."""
    base = web_address(endpoint, section)
    return (
        f"{base}/openai/deployments/{quote(deployment, safe='')}/{operation}?api-version={quote(api_version)}"
    )


# ---- shared by all requests ----


def sendable(text: str) -> str:
    """Return text that every server accepts: never empty (they answer 400), no half surrogate pairs."""
    sound = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return sound if sound.strip() else "(empty)"


def path_of(base: str, path: str) -> str:
    """Return the address of `embeddings` or `chat/completions` under a base that may or may not name the version."""
    if base.endswith("/" + path):
        return base
    return f"{base}/{path}" if re.search(r"/v\d+$", base) else f"{base}/v1/{path}"


def bearer(key: str) -> dict[str, str]:
    """Return the header with a key; none for a server that needs none."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def key_for(url: str, key: str) -> str:
    """Return the key, unless it is the environment's Azure key (the settings' default) and the server another."""
    azure = os.environ.get("AZURE_OPENAI_API_KEY", "")
    home = urlsplit(os.environ.get("AZURE_OPENAI_ENDPOINT", "")).hostname
    return "" if key and key == azure and urlsplit(url).hostname != home else key
