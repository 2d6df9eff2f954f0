"""Nouns of agents built with other SDKs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StoredItem:
    """What an agent of another SDK keeps under a namespace and key."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any]
    created_at: str
    updated_at: str
