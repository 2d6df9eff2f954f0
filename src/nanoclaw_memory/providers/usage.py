"""Calls, tokens and dollars by provider and model, stored on disk so that `status` can show them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TypeAlias

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.clock import Clock

FILE_NAME = "usage.json"
_DAYS_KEPT = 31
_EARLIER = "earlier"

Days: TypeAlias = dict[str, dict[str, dict[str, float]]]


class UsageRow(msgspec.Struct, frozen=True):
    """The use of a provider's model, for one day or in total."""

    provider: str
    model: str
    calls: int = 0
    failures: int = 0
    tokens: int = 0
    cost: float = 0.0


class Usage(msgspec.Struct, frozen=True):
    """A ledger in the home's data directory: one sum per day and model; days past a month are folded."""

    path: Path
    clock: Clock

    def record(
        self, provider: str, model: str, tokens: int = 0, cost: float = 0.0, failed: bool = False
    ) -> None:
        """Add one call. A ledger that cannot be written never costs the caller an answer."""
        with suppress(OSError), self._lock():
            days = self._read()
            day = days.setdefault(self.clock.now().date().isoformat(), {})
            sums = day.setdefault(f"{provider}/{model}", {})
            _add(sums, {"calls": 1, "failures": int(failed), "tokens": tokens, "cost": cost})
            private.replace_json(self.path, _folded(days))

    def total(self) -> tuple[UsageRow, ...]:
        """Return the total use, by provider and model."""
        return _spent(self._read().values())

    def _lock(self) -> AbstractContextManager[int]:
        private.make_folder(self.path.parent)
        return private.locked(self.path.with_name(f".{self.path.name}.lock"))

    def _read(self) -> Days:
        return private.read_json(self.path, dict[str, dict[str, dict[str, float]]]) or {}


def _folded(days: Days) -> Days:
    """Return the ledger with days past a month summed into one."""
    dated = sorted(day for day in days if day != _EARLIER)
    for day in dated[:-_DAYS_KEPT]:
        earlier = days.setdefault(_EARLIER, {})
        for who, sums in days.pop(day).items():
            _add(earlier.setdefault(who, {}), sums)
    return days


def _add(sums: dict[str, float], more: dict[str, float]) -> None:
    for name, amount in more.items():
        sums[name] = sums.get(name, 0) + amount


def _spent(days: Iterable[dict[str, dict[str, float]]]) -> tuple[UsageRow, ...]:
    sums: dict[str, dict[str, float]] = {}
    for day in days:
        for who, more in day.items():
            _add(sums.setdefault(who, {}), more)
    return tuple(_line(who, one) for who, one in sorted(sums.items()))


def _line(who: str, sums: dict[str, float]) -> UsageRow:
    provider, _, model = who.partition("/")
    calls, failures, tokens = (int(sums.get(name, 0)) for name in ("calls", "failures", "tokens"))
    return UsageRow(
        provider=provider,
        model=model,
        calls=calls,
        failures=failures,
        tokens=tokens,
        cost=sums.get("cost", 0.0),
    )
