"""Nouns of the check-up."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """One line of a check-up: how bad, what, and the command that helps."""

    level: str  # ok, note, warning, problem
    message: str
    next: str = ""


class Status(msgspec.Struct, frozen=True):
    """What a home holds, at a glance."""

    home: Path
    group: str
    exists: bool
    groups: tuple[str, ...]
    files: int
    databases: dict[str, int]  # name -> bytes
    embedder: str
    usage: tuple[dict[str, float | str], ...] = ()
