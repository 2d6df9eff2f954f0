"""Who asks."""

from __future__ import annotations

import msgspec

MAIN_GROUP = "main"


class Scope(msgspec.Struct, frozen=True):
    """Who asks: the group whose directory is used, the session, and whether private memory may be seen."""

    group: str = MAIN_GROUP
    session_id: str = ""
    private: bool = True
    origin: str = "owner"  # who writes: owner, agent, tool, web, import; set by the face, never by arguments
