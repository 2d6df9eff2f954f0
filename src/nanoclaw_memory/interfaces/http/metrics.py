"""Metrics at /metrics in the text format of Prometheus: requests and their latency, the spool, upkeep jobs."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse

from nanoclaw_memory.errors import NanoClawError
from nanoclaw_memory.interfaces.http.auth import HOLDER, OWNER, error_response
from nanoclaw_memory.types import Scope as MemoryScope

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from nanoclaw_memory.interfaces.http.pool import MemoryPool

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_PLACES = re.compile(r"/api/v1/(\w+)|/(mcp|healthz|metrics)")  # bounded: ids and names are no labels


class Metrics:
    """What one server has answered since its start, and what is spooled in its home."""

    def __init__(self, pool: MemoryPool) -> None:
        self._pool = pool
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._started = time.time()

    def counted(self, app: ASGIApp) -> ASGIApp:
        """Return an application whose requests are counted, including refused ones."""

        async def call(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                return await app(scope, receive, send)
            status, before = 500, time.perf_counter()

            async def sent(message: Message) -> None:
                nonlocal status
                status = message.get("status", status)
                await send(message)

            try:
                await app(scope, receive, sent)
            finally:
                self._count(scope, status, time.perf_counter() - before)

        return call

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        found = _PLACES.match(scope["path"])
        place = (found[1] or found[2]) if found and status != 404 else "other"
        with self._lock:
            self._requests[place, scope["method"], status] += 1
            self._seconds[place] += seconds  # type: ignore[assignment]
            for bucket in BUCKETS:
                if seconds <= bucket:
                    self._buckets[place, bucket] += 1

    async def page(self, request: Request) -> Response:
        """Return the metrics; they cover all groups, so only the owner may read them."""
        if request.scope[HOLDER] is not OWNER:
            return error_response(
                403, "PathRefused", "the metrics are for the owner: an agent's token may not read them", ""
            )
        lines = [*self._of_requests(), *await run_in_threadpool(lambda: list(self._of_home()))]
        return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")

    def _of_requests(self) -> Iterable[str]:
        with self._lock:
            requests, buckets, seconds = dict(self._requests), dict(self._buckets), dict(self._seconds)
        yield from _head("nanoclaw_requests_total", "counter", "Requests by place, method and status.")
        for (place, method, status), number in sorted(requests.items()):
            yield _line("requests_total", {"place": place, "method": method, "status": status}, number)
        yield from _head("nanoclaw_request_seconds", "histogram", "How long requests took.")
        for place, total in sorted(seconds.items()):
            count = sum(number for (one, _, _), number in requests.items() if one == place)
            for bucket in BUCKETS:
                number = buckets.get((place, bucket), 0)
                yield _line("request_seconds_bucket", {"place": place, "le": bucket}, number)
            yield _line("request_seconds_bucket", {"place": place, "le": "+Inf"}, count)
            yield _line("request_seconds_sum", {"place": place}, round(total, 6))
            yield _line("request_seconds_count", {"place": place}, count)
        yield from _head("nanoclaw_start_time_seconds", "gauge", "When the server was started.")
        yield _line("start_time_seconds", {}, round(self._started, 3))

    def _of_home(self) -> Iterable[str]:
        """Yield the spool and the jobs of every group."""
        spools, jobs = [], []
        with self._pool.open(MemoryScope()) as memory:
            groups = memory.home.groups()
        for group in groups:
            with suppress(NanoClawError, OSError), self._pool.open(MemoryScope(group)) as memory:
                spools.append((group, memory.conversations.waiting()))
                jobs += [(group, job) for job in memory.upkeep.status()]
        yield from _head("nanoclaw_spool_waiting", "gauge", "Exchanges that wait to be archived.")
        yield from (_line("spool_waiting", {"group": group}, number) for group, number in spools)
        yield from _head("nanoclaw_job_due", "gauge", "Whether an upkeep job waits to be run.")
        yield from (_line("job_due", {"group": group, "job": job.name}, int(job.due)) for group, job in jobs)
        yield from _head("nanoclaw_job_failed", "gauge", "Whether the last run of an upkeep job failed.")
        yield from (
            _line("job_failed", {"group": group, "job": job.name}, int(bool(job.error)))
            for group, job in jobs
        )


def _head(name: str, kind: str, about: str) -> list[str]:
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]


def _line(name: str, labels: Mapping[str, object], value: float) -> str:
    shown = ",".join(f'{key}="{text}"' for key, text in labels.items())  # our own words, and names of groups
    return f"nanoclaw_{name}{{{shown}}} {value}" if shown else f"nanoclaw_{name} {value}"
