"""One HTTP endpoint for JSON: retries, a time limit, a circuit breaker, a record of use."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.clock import Clock, SystemClock
from nanoclaw_memory.errors import ProviderError, SettingsError
from nanoclaw_memory.providers.usage import FILE_NAME, Usage
from nanoclaw_memory.text import one_line

if TYPE_CHECKING:
    import httpx2

MAX_ANSWER_BYTES = 128_000_000
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


class RetryPolicy(msgspec.Struct, frozen=True):
    """How often and after what pauses (in seconds, plus jitter) a call is retried."""

    attempts: int = 3
    first_pause: float = 0.2
    longest_pause: float = 1.0


class EndpointConfig(msgspec.Struct, frozen=True):
    """What every endpoint of a home shares: the directory of its state, the clock, the retry policy."""

    data_dir: Path
    clock: Clock = msgspec.field(default_factory=SystemClock)
    retries: RetryPolicy = RetryPolicy()

    def breaker(self, name: str) -> Breaker:
        return Breaker(
            self.data_dir / "breakers" / f"{re.sub(r'[^A-Za-z0-9.-]+', '-', name)}.json", self.clock
        )

    @property
    def usage(self) -> Usage:
        return Usage(self.data_dir / FILE_NAME, self.clock)


class Service(msgspec.Struct, frozen=True):
    """The provider and model of an endpoint, for messages, the ledger and the price list."""

    provider: str
    model: str
    section: str  # of the settings, for hints
    price_in: float = 0.0  # dollars per million tokens
    price_out: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.provider} {self.model}"

    def cost(self, tokens_in: int, tokens_out: int) -> float:
        return (tokens_in * self.price_in + tokens_out * self.price_out) / 1e6


class _Failure(Exception):
    """One attempt failed; the text never contains the key."""

    def __init__(
        self, reason: str, hint: str = "", status: int = 0, retry_after: float | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.status = status
        self.retry_after = retry_after

    @property
    def outage(self) -> bool:
        """Return whether the endpoint is down or overloaded, rather than the request wrong."""
        return self.status == 0 or self.status in _RETRIED


class JsonEndpoint:
    """Post JSON and return the JSON object of the answer, or raise a ProviderError."""

    def __init__(
        self, service: Service, url: str, headers: Mapping[str, str], config: EndpointConfig
    ) -> None:
        self.service = service
        self._url = url
        self._headers = {name: value.strip() for name, value in headers.items()}
        if not all(value.isascii() and value.isprintable() for value in self._headers.values()):
            raise SettingsError(
                f"{service.section}.apiKey holds characters that no key has",
                "copy the key again, without quotes",
            )
        self._config = config
        self._breaker = config.breaker(f"{urlsplit(url).netloc}-{service.model}")
        self._lock = threading.Lock()
        self._client: httpx2.Client | None = None

    def post(self, body: Mapping[str, Any], deadline: float, tokens: int) -> dict[str, Any]:
        """Return the answer to `body` before `deadline`; `tokens` is charged when the answer contains no number."""
        if time.monotonic() >= deadline:  # the caller's lack of time is no fault of the endpoint
            raise ProviderError(f"{self.service.name}: no time left to ask")
        if outage := self._breaker.outage():
            raise ProviderError(
                f"{self.service.name} is left alone for {self._breaker.seconds_left():.0f} s"
                f" after a failure: {outage.reason}",
                "it is tried again by itself",
            )
        try:
            answer = self._attempts(body, deadline)
        except _Failure as failure:
            if failure.outage:
                self._breaker.opened(failure.reason, failure.retry_after)
            else:
                self._breaker.closed()  # it answers; what is wrong is the question
            self._charge(0, 0, failed=True)
            raise ProviderError(f"{self.service.name}: {failure.reason}", failure.hint) from None
        self._breaker.closed()
        usage = answer.get("usage")
        counts = usage if isinstance(usage, dict) else {}
        sent, written = (  # OpenAI's names, and Anthropic's
            _count(counts.get(one, counts.get(other)), default)
            for one, other, default in (
                ("prompt_tokens", "input_tokens", tokens),
                ("completion_tokens", "output_tokens", 0),
            )
        )
        self._charge(sent, written)
        return answer

    def _charge(self, tokens_in: int, tokens_out: int, failed: bool = False) -> None:
        cost = self.service.cost(tokens_in, tokens_out)
        self._config.usage.record(
            self.service.provider, self.service.model, tokens_in + tokens_out, cost, failed
        )

    def _attempts(self, body: Mapping[str, Any], deadline: float) -> dict[str, Any]:
        import stamina

        retries = self._config.retries

        def again(error: Exception) -> bool | float:
            if not isinstance(error, _Failure) or not error.outage:
                return False
            pause = error.retry_after
            if time.monotonic() + (retries.longest_pause if pause is None else pause) >= deadline:
                return False  # the answer would come too late
            return True if pause is None else pause

        for attempt in stamina.retry_context(
            on=again,
            attempts=retries.attempts,
            timeout=None,  # `again` knows the deadline
            wait_initial=retries.first_pause,
            wait_max=retries.longest_pause,
            wait_jitter=retries.first_pause,
        ):
            with attempt:
                return self._once(body, deadline)
        raise AssertionError("stamina returns or raises")

    def _once(self, body: Mapping[str, Any], deadline: float) -> dict[str, Any]:
        import httpx2

        left = max(deadline - time.monotonic(), 0.001)
        try:
            with self._open().stream(
                "POST", self._url, json=body, headers=self._headers, timeout=left
            ) as response:
                content = b"".join(_within(response.iter_bytes(), deadline))
                return self._decoded(response.status_code, response.headers, content)
        except httpx2.TimeoutException:
            raise _Failure(f"no answer within {left:.1f} s") from None
        except httpx2.ConnectError:
            raise _Failure("cannot be reached (connection refused or no such host)", self._check()) from None
        except httpx2.HTTPError as error:
            raise _Failure(f"the connection broke ({type(error).__name__})") from None

    def _decoded(self, status: int, headers: Mapping[str, str], content: bytes) -> dict[str, Any]:
        if status != 200:
            raise self._refusal(status, headers, content)
        try:
            answer = json.loads(content)
        except ValueError:
            kind = one_line(headers.get("content-type", "nothing"))[:60]
            raise _Failure(f"answered with {kind} that is not JSON", self._check(), 200) from None
        if not isinstance(answer, dict):
            raise _Failure("answered with JSON of an unknown shape", self._check(), 200)
        return answer

    def _refusal(self, status: int, headers: Mapping[str, str], content: bytes) -> _Failure:
        if status in (401, 403):
            # Some servers repeat the key in the body of this answer, so it is not quoted.
            return _Failure(
                f"the key is refused (HTTP {status})", f"check {self.service.section}.apiKey", status
            )
        if status == 429:
            wait = _retry_after(headers.get("retry-after", ""))
            return _Failure("rate limit or quota reached (HTTP 429)", "wait, or raise the quota", 429, wait)
        if status in _RETRIED:
            return _Failure(
                f"the server failed (HTTP {status})", "", status, _retry_after(headers.get("retry-after", ""))
            )
        return _Failure(f"HTTP {status}{self._server_message(content)}", self._check(), status)

    def _server_message(self, content: bytes) -> str:
        """Return the server's own error message, short and without any header value it may repeat."""
        try:
            error = json.loads(content)["error"]
            text = one_line(str(error["message"] if isinstance(error, dict) else error))
        except (ValueError, KeyError, TypeError):
            return ""
        for value in self._headers.values():
            for secret in {value, value.removeprefix("Bearer ")}:
                text = text.replace(secret, "***") if secret else text
        return f": {text[:200]}"

    def _check(self) -> str:
        section = self.service.section
        return f"check {section}.endpoint and the model or deployment: nanoclaw-memory config show {section}"

    def _open(self) -> httpx2.Client:
        import httpx2

        with self._lock:
            if self._client is None:
                # A proxy from the environment is never used for a server on this machine.
                remote = urlsplit(self._url).hostname not in _LOOPBACK
                self._client = httpx2.Client(trust_env=remote)
            return self._client


def web_address(address: str, section: str) -> str:
    """Return a configured base address without a trailing slash; raise SettingsError unless it is http or https."""
    parts = urlsplit(address.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(
            f"{section}.endpoint is not an http or https address: {address!r}",
            f"run: nanoclaw-memory config set {section}.endpoint https://…",
        )
    if parts.username or parts.password:
        raise SettingsError(
            f"{section}.endpoint must not hold a user name or password", f"put the key into {section}.apiKey"
        )
    return address.strip().rstrip("/")


def _within(chunks: Iterator[bytes], deadline: float) -> Iterator[bytes]:
    """Yield the body's pieces within the limits of time and size: a slow server must not exceed them."""
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if time.monotonic() > deadline:
            raise _Failure("the answer came too slowly")
        if size > MAX_ANSWER_BYTES:
            raise _Failure(f"the answer is larger than {MAX_ANSWER_BYTES // 1_000_000} MB", "", 200)
        yield chunk


def _retry_after(text: str) -> float | None:
    """Return the seconds that the server asks us to wait: a number or an HTTP date."""
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _count(value: Any, default: int) -> int:
    return value if isinstance(value, int) and value >= 0 else default


FIRST_PAUSE_S = 30.0
LONGEST_PAUSE_S = 600.0


class Outage(msgspec.Struct, frozen=True):
    """Until when an endpoint is not called, after how many failures, and why."""

    until: float
    failures: int
    reason: str


class Breaker:
    """Decides whether an endpoint may be called; the state is one small file, shared by all processes."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock

    def outage(self) -> Outage | None:
        """Return the outage that prevents calls, or None when a call may be made.

        When a pause has just ended, the caller becomes the one probe: for the others the pause continues until the
        probe is `closed` or `opened`, or a first pause has passed without either.
        """
        known = self._read()
        if known is None:
            return None
        now = self._now()
        # An end further away than the longest pause means that the machine's clock was set back.
        if now < known.until <= now + LONGEST_PAUSE_S:
            return known
        self._write(Outage(now + FIRST_PAUSE_S, known.failures, known.reason))
        return None

    def opened(self, reason: str, retry_after: float | None = None) -> None:
        """Record a failure: pause twice as long as the last time, or as long as the endpoint asked for."""
        before = self._read()
        failures = before.failures + 1 if before else 1
        pause = FIRST_PAUSE_S * 2.0 ** min(failures - 1, 10)
        until = self._now() + min(max(pause, retry_after or 0.0), LONGEST_PAUSE_S)
        self._write(Outage(until, failures, reason))

    def closed(self) -> None:
        """Record an answer of the endpoint."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def seconds_left(self) -> float:
        """Return how long the pause still lasts; 0 when calls are allowed. Changes nothing."""
        known = self._read()
        return max(0.0, known.until - self._now()) if known else 0.0

    def _now(self) -> float:
        return self._clock.now().timestamp()

    def _read(self) -> Outage | None:
        return private.read_json(self._path, Outage)  # without one the endpoint is tried

    def _write(self, outage: Outage) -> None:
        with suppress(OSError):  # on a read-only disk the outage is forgotten, but the answer is kept
            private.replace_json(self._path, outage)
