"""What there is, at a glance: counts and sizes from the file system, nothing opened."""

from __future__ import annotations

import msgspec

from nanoclaw_memory.clock import Clock
from nanoclaw_memory.settings import Settings
from nanoclaw_memory.types import Scope, Status
from nanoclaw_memory.workspace.paths import Home, memory_files


def status(home: Home, scope: Scope, settings: Settings, clock: Clock) -> Status:
    """The state of one group in a home."""
    data = home.data(scope.group)
    sizes = {path.stem: path.stat().st_size for path in sorted(data.glob("*.db"))} if data.is_dir() else {}
    files = sum(1 for _ in memory_files(home, scope, settings.privacy.shared_files))
    exists = home.workspace(scope.group).is_dir()
    groups = tuple(home.groups())
    return Status(
        home.root, scope.group, exists, groups, files, sizes, _embedder(home, settings), _usage(home, clock)
    )


def _embedder(home: Home, settings: Settings) -> str:
    from nanoclaw_memory.providers import models

    own = settings.embeddings
    if own.provider == "azure-openai":
        return f"azure-openai {own.deployment} ({own.dimensions})"
    if own.provider == "openai":
        return f"openai {own.model}"
    if own.provider == "none":
        return "none: keyword and graph search"
    folder = models.directory(models.EMBEDDER, home.models, own.model_path)
    state = "installed" if models.installed(models.EMBEDDER, folder) else "not installed"
    return f"local {models.EMBEDDER.name} ({state})"


def _usage(home: Home, clock: Clock) -> tuple[dict[str, float | str], ...]:
    from nanoclaw_memory.providers.usage import Usage

    return tuple(
        msgspec.to_builtins(spent) for spent in Usage(home.data("main") / "usage.json", clock).total()
    )
