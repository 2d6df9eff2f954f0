"""Embeddings from Azure OpenAI: a deployment of a resource, with a smaller one to fall back to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from nanoclaw_memory.errors import SettingsError
from nanoclaw_memory.providers.embedder import CLOUD_WEIGHTS, Identity
from nanoclaw_memory.providers.endpoint import Desk, Endpoint, Service, web_address
from nanoclaw_memory.providers.openai import OpenAIEmbedder

if TYPE_CHECKING:
    from nanoclaw_memory.settings.sections import EmbeddingsSettings


def azure_embedders(settings: EmbeddingsSettings, desk: Desk) -> tuple[OpenAIEmbedder, ...]:
    """The deployments to try, best first."""
    if not settings.api_key:
        raise SettingsError(
            "embeddings.apiKey is not set",
            "set AZURE_OPENAI_API_KEY, or embeddings.apiKey to ${YOUR_VARIABLE}",
        )
    first = azure_embedder(settings, settings.deployment, settings.dimensions, desk)
    fallback = settings.fallback_deployment
    if not fallback or fallback == settings.deployment:
        return (first,)
    return (first, azure_embedder(settings, fallback, settings.fallback_dimensions, desk))


def azure_embedder(
    settings: EmbeddingsSettings, deployment: str, dimensions: int, desk: Desk
) -> OpenAIEmbedder:
    """One deployment, asked for vectors of this length."""
    url = azure_url(settings.endpoint, deployment, "embeddings", settings.api_version, "embeddings")
    service = Service("azure-openai", deployment, "embeddings", settings.prices.get(deployment, 0.0))
    extra: dict[str, Any] = {} if "ada-002" in deployment else {"dimensions": dimensions}
    return OpenAIEmbedder(
        Endpoint(service, url, {"api-key": settings.api_key}, desk),
        Identity("azure-openai", deployment, dimensions),
        CLOUD_WEIGHTS,
        settings.timeout_ms / 1000,
        extra,
    )


def azure_url(endpoint: str, deployment: str, operation: str, api_version: str, section: str) -> str:
    """`<endpoint>/openai/deployments/<deployment>/<operation>?api-version=<version>`."""
    base = web_address(endpoint, section)
    return (
        f"{base}/openai/deployments/{quote(deployment, safe='')}/{operation}?api-version={quote(api_version)}"
    )
