"""Nouns of the check-up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finding:
    """One line of a check-up: how bad, what, and the command that helps."""

    level: str  # ok, note, warning, problem
    message: str
    next: str = ""


@dataclass(frozen=True)
class Status:
    """What a home holds, at a glance."""

    home: Path
    group: str
    exists: bool
    groups: tuple[str, ...]
    files: int
    databases: dict[str, int]  # name -> bytes
    embedder: str
    usage: tuple[dict[str, float | str], ...] = ()
