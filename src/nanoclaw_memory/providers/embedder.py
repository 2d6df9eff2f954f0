"""The Embedder protocol and the chain of configured embedders; every vector carries the identity of its model."""

from __future__ import annotations

import functools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.errors import ProviderError, SettingsError

if TYPE_CHECKING:
    from concurrent.futures import Future

    import numpy as np
    import numpy.typing as npt

    from nanoclaw_memory.clock import Clock
    from nanoclaw_memory.providers.endpoint import EndpointConfig
    from nanoclaw_memory.providers.local import LocalEmbedder
    from nanoclaw_memory.settings.sections import EmbeddingsSettings

    Vectors: TypeAlias = npt.NDArray[np.float32]


QUESTION_BYTES = 2 * 1024 * 1024  # of vectors of the last questions


class Identity(msgspec.Struct, frozen=True):
    """The model of a vector; vectors of two identities are never compared."""

    provider: str
    model: str
    dimensions: int

    @property
    def key(self) -> str:
        """Return a stable text for databases and caches: `local/e5-small-v2-int8-d74a213c@384`."""
        return f"{self.provider}/{self.model}@{self.dimensions}"

    @classmethod
    def of(cls, key: str) -> Identity:
        """Return the identity that has this key."""
        provider, _, rest = key.partition("/")
        model, _, dimensions = rest.rpartition("@")
        return cls(provider, model, int(dimensions))


class Embedded(msgspec.Struct, frozen=True, eq=False):
    """Vectors, one row per text and L2-normalised, with the identity of their model."""

    vectors: Vectors
    identity: Identity

    @property
    def vector(self) -> Vectors:
        """Return the only row: a query's vector."""
        row: Vectors = self.vectors[0]
        return row


class Embedder(Protocol):
    """One model at one provider. `deadline` is a `time.monotonic()` moment; passing it raises a ProviderError."""

    @property
    def identity(self) -> Identity: ...

    @property
    def weights(self) -> tuple[float, float]:
        """Return the weights of a vector score and a keyword score when they are fused."""

    def embed_documents(self, texts: Sequence[str], deadline: float | None = None) -> Vectors:
        """Return an (n, d) array of float32, each row of length 1; (0, d) for an empty list."""

    def embed_query(self, text: str, deadline: float | None = None) -> Vectors:
        """Return a (d,) array of float32 of length 1."""


class QuestionVectors:
    """A cache of the last questions' vectors, bounded in bytes: one embedding serves all that wait for it.

    Questions are stored as hashes: what a person asks to forget is not kept here.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.nbytes = 0
        self._known: OrderedDict[bytes, Future[Embedded]] = OrderedDict()
        self._guard = threading.Lock()

    def get(
        self, question: object, limit: float, embed: Callable[[], Embedded], anew: bool = False
    ) -> Embedded:
        """Return the vector of a question, computed once for all concurrent callers, and again for later ones if
        `anew`.
        """
        from concurrent.futures import Future

        key = _key(question)
        if anew:
            self.drop(question)
        with self._guard:
            known = self._known.get(key)
            made = self._known[key] = known or Future()
            self._known.move_to_end(key)
        if known is not None:
            try:
                return known.result(max(limit - time.monotonic(), 0.0))
            except TimeoutError:
                raise ProviderError("embedding the question took too long") from None
        try:
            found = embed()
        except BaseException as error:
            self._known.pop(key, None)
            made.set_exception(error)
            raise
        self._keep(made, found)
        return found

    def drop(self, question: object) -> None:
        """Drop the vector of a question, unless it is being computed."""
        with self._guard:
            known = self._known.get(_key(question))
            if known is not None and known.done():
                del self._known[_key(question)]
                self.nbytes -= known.result().vectors.nbytes

    def _keep(self, made: Future[Embedded], found: Embedded) -> None:
        """Publish a vector, add its size, and drop the oldest."""
        with self._guard:
            made.set_result(found)
            self.nbytes += found.vectors.nbytes
            if self.nbytes <= self.most:
                return
            ready = [key for key, future in self._known.items() if future.done()]
            for key in ready:
                self.nbytes -= self._known.pop(key).result().vectors.nbytes
                if self.nbytes <= self.most:
                    return


def _key(question: object) -> bytes:
    from _blake2 import blake2b  # hashlib takes five times as long to import

    return blake2b(repr(question).encode("utf-8", "replace"), digest_size=16).digest()


class Chain(msgspec.Struct, frozen=True):
    """Embedders in order of preference; the result names the one that was used.

    Documents are embedded by exactly the requested identity (the first by default), so that an index never mixes two.
    A query uses the first member that answers *and* that the index has vectors of; while an index is rebuilt that may
    be one that was configured `former`ly.
    """

    members: tuple[Embedder, ...]
    timeout: float = 10.0
    former: Callable[[Identity], Embedder | None] = lambda identity: None
    asked: QuestionVectors = msgspec.field(default_factory=lambda: QuestionVectors(QUESTION_BYTES))

    @property
    def identity(self) -> Identity:
        return self.members[0].identity

    @property
    def identities(self) -> tuple[Identity, ...]:
        return tuple(member.identity for member in self.members)

    @property
    def weights(self) -> tuple[float, float]:
        return self.members[0].weights

    def weights_of(self, identity: Identity) -> tuple[float, float]:
        """Return the fusion weights that belong to `identity`."""
        return self._member(identity).weights

    def embed_documents(self, texts: Sequence[str], identity: Identity | None = None) -> Embedded:
        """Embed `texts` with one identity; raise ProviderError when it fails, without a fallback."""
        member = self._member(identity or self.identity)
        return Embedded(member.embed_documents(texts), member.identity)

    def embed_query(
        self, text: str, among: Collection[Identity] | None = None, deadline: float | None = None
    ) -> Embedded:
        """Embed a query with the first member in `among` that answers within the time limit."""
        limit = time.monotonic() + self.timeout
        limit = limit if deadline is None else min(limit, deadline)
        named = None if among is None else tuple(sorted(identity.key for identity in among))
        # A search calls a service again, so that an outage is reported; the parts of a turn call it once.
        anew = deadline is None and self.identity.provider != "local"
        found = self.asked.get((named, text), limit, lambda: self._embed_query(text, among, limit), anew)
        if found.identity != self.identity:  # the preferred one may answer again next time
            self.asked.drop((named, text))
        return found

    def _embed_query(self, text: str, among: Collection[Identity] | None, limit: float) -> Embedded:
        chosen = [member for member in self.members if among is None or member.identity in among]
        older = (self.former(identity) for identity in among or () if identity not in self.identities)
        chosen += [member for member in older if member is not None]
        failures: list[ProviderError] = []
        for place, member in enumerate(chosen):
            # The remaining time is shared by the members to come: a silent first one must leave the next its turn.
            now = time.monotonic()
            try:
                vector = member.embed_query(text, now + (limit - now) / (len(chosen) - place))
            except ProviderError as error:
                failures.append(error)
            else:
                return Embedded(vector[None, :], member.identity)
        if not failures:
            raise ProviderError(
                f"the index holds no vectors of {self.identity.key}", "run: nanoclaw-memory index"
            )
        raise ProviderError("; ".join(error.message for error in failures), failures[0].hint)

    def _member(self, identity: Identity) -> Embedder:
        for member in self.members:
            if member.identity == identity:
                return member
        if (older := self.former(identity)) is not None:
            return older
        raise ProviderError(
            f"no configured embedder makes vectors of {identity.key}", "run: nanoclaw-memory index --rebuild"
        )


def checked(rows: Any, count: int, identity: Identity) -> Vectors:
    """Return a provider's result as normalised float32 rows, or raise an error that names what is wrong with it."""
    import numpy as np

    who = f"{identity.provider} {identity.model}"
    if len(rows) != count:
        raise ProviderError(f"{who} returned {len(rows)} vectors for {count} texts")
    if not count:
        return np.empty((0, identity.dimensions), dtype=np.float32)
    try:
        matrix = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        raise ProviderError(f"{who} returned vectors that are not lists of numbers of one length") from None
    if matrix.ndim != 2 or matrix.shape[1] != identity.dimensions:
        given = matrix.shape[1] if matrix.ndim == 2 else 0
        raise ProviderError(
            f"{who} returned {given} dimensions, {identity.dimensions} are configured",
            f"run: nanoclaw-memory config set embeddings.dimensions {given}" if given else "",
        )
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise ProviderError(f"{who} returned a vector that holds NaN or infinity")
    if not (lengths > 0).all():
        raise ProviderError(f"{who} returned a vector of zeros")
    normalised: Vectors = (matrix / lengths).astype(np.float32)
    return normalised


class UnusableEmbedder(msgspec.Struct, frozen=True):
    """A service that cannot be called, and why: words and the graph answer without it."""

    identity: Identity
    why: str
    hint: str
    weights: tuple[float, float] = (0.7, 0.3)  # it takes no part

    def embed_documents(self, texts: Sequence[str], deadline: float | None = None) -> Vectors:
        raise ProviderError(self.why, self.hint)

    def embed_query(self, text: str, deadline: float | None = None) -> Vectors:
        raise ProviderError(self.why, self.hint)


def embedder_for(
    settings: EmbeddingsSettings,
    models_dir: Path,
    data_dir: Path,
    clock: Clock | None = None,
    most: int = QUESTION_BYTES,
) -> Chain | None:
    """Return the configured chain; None when embeddings are off. Nothing is loaded or called before first use.

    `models_dir` is the home's `models/`; `data_dir` (the home's `data/`) stores breaker state and usage; at most
    `most` bytes of questions' vectors are kept in memory.
    """
    from nanoclaw_memory.clock import SystemClock

    if settings.provider == "none":
        return None
    build = _Builder(settings, models_dir, data_dir, clock or SystemClock())
    asked = QuestionVectors(min(most, QUESTION_BYTES))
    return Chain(build.members(), settings.timeout_ms / 1000, functools.cache(build.former), asked)


class _Builder(msgspec.Struct, frozen=True):
    """Build the embedders that the settings describe."""

    settings: EmbeddingsSettings
    models_dir: Path
    data_dir: Path
    clock: Clock

    def members(self) -> tuple[Embedder, ...]:
        """Return the configured embedders, the preferred one first; one without a key acts as one that is down."""
        own = self.settings
        if own.provider == "local":
            return (self.local(),)
        from nanoclaw_memory.providers.openai import azure_embedders, openai_embedder

        try:
            if own.provider == "azure-openai":
                return azure_embedders(own, self.config)
            return (openai_embedder(own, self.config),)
        except SettingsError as error:
            if own.endpoint and (own.api_key if own.provider == "azure-openai" else own.model):
                raise  # an invalid value is refused; a missing one may be there in the next shell
            # A crontab, or a client that starts an MCP server, lacks the variables of a shell.
            model = own.deployment if own.provider == "azure-openai" else own.model or "unnamed"
            return (
                UnusableEmbedder(Identity(own.provider, model, own.dimensions), error.message, error.hint),
            )

    def former(self, identity: Identity) -> Embedder | None:
        """Return the embedder of an earlier configuration, if the present one still allows it.

        This is limited to this machine and the configured service: no question is sent to a service that was
        abandoned.
        """
        settings = self.settings
        if identity.provider == "local":
            return self._local_of(identity)
        if identity.provider != settings.provider:
            return None
        from nanoclaw_memory.providers.openai import azure_embedder, openai_embedder

        if identity.provider == "azure-openai":
            named = identity.model in (settings.deployment, settings.fallback_deployment)
            return (
                azure_embedder(settings, identity.model, identity.dimensions, self.config) if named else None
            )
        server = openai_embedder(replace(settings, dimensions=identity.dimensions), self.config)
        return server if server.identity == identity else None

    def _local_of(self, identity: Identity) -> Embedder | None:
        """Return the local embedder of an identity, if it is still installed: another may have replaced it."""
        from nanoclaw_memory.providers.local import LocalEmbedder
        from nanoclaw_memory.providers.models import EMBEDDERS, directory

        others = (LocalEmbedder(model, directory(model, self.models_dir)) for model in EMBEDDERS)
        known = (self.local(), *others)
        return next(
            (
                local_embedder
                for local_embedder in known
                if local_embedder.identity == identity and local_embedder.installed
            ),
            None,
        )

    def local(self) -> LocalEmbedder:
        from nanoclaw_memory.providers.local import LocalEmbedder
        from nanoclaw_memory.providers.models import embedder

        own = self.settings
        name = own.model if own.provider == "local" else ""  # else it is a model of the server
        return LocalEmbedder(*embedder(self.models_dir, name, own.model_path))

    @property
    def config(self) -> EndpointConfig:
        from nanoclaw_memory.providers.endpoint import EndpointConfig

        return EndpointConfig(self.data_dir, self.clock)
