"""Nouns of agents built with other SDKs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class StoredItem(msgspec.Struct, frozen=True):
    """What an agent of another SDK keeps under a namespace and key."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any]
    created_at: str
    updated_at: str
