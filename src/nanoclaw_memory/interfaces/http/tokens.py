"""Tokens of agents: each bound to a group, a privacy and an origin; the home stores only their hashes."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.errors import InvalidValue, NotFound
from nanoclaw_memory.text import fingerprint

_FORM = re.compile(r"ncm_([0-9a-f]{8})_[\w-]{43}", re.ASCII)


class AgentToken(msgspec.Struct, frozen=True, kw_only=True):
    """The rights of a token."""

    id: str
    group: str
    shared: bool
    origin: str
    name: str = ""
    created_at: str = ""


class StoredToken(AgentToken, frozen=True, kw_only=True):
    """The same as stored in the home: with the hash, and whether the database has a login role for it."""

    sha256: str
    role: bool = False


def new(
    home: Path, bound: AgentToken, make_role: Callable[[str, str], bool] = lambda name, password: False
) -> tuple[AgentToken, str, bool]:
    """Create a token with the rights in `bound`; return it, its text (shown once), and whether it has a role.

    `make_role` gets the name and the password of a login role: the token itself, so that nobody has to store it.
    """
    if not re.fullmatch(r"[\w .@-]{0,60}", bound.name):
        raise InvalidValue("the name of a token is a short word", "for example: --name family-bot")
    text = f"ncm_{secrets.token_hex(4)}_{secrets.token_urlsafe(32)}"
    known = msgspec.structs.replace(bound, id=text[4:12])
    role = make_role(role_of(known.id), text)
    # No salt: a token is 256 random bits.
    stored = StoredToken(**msgspec.structs.asdict(known), sha256=fingerprint(text), role=role)
    private.replace_json(_file(home, known.id), stored)
    return known, text, role


def role_of(identity: str) -> str:
    """Return the name of a token's login role."""
    return f"ncm_{identity}"


def known(home: Path) -> list[AgentToken]:
    """Return all valid tokens, the oldest first."""
    found = (private.read_json(path, AgentToken) for path in (home / "tokens").glob("*.json"))
    return sorted((token for token in found if token), key=lambda token: (token.created_at, token.id))


def revoke(home: Path, identity: str, drop_role: Callable[[str], bool] = lambda name: False) -> None:
    """Invalidate a token from the next request on, and drop its role.

    If the database is away, the role remains although the token is gone: repeating the call drops it.
    """
    unknown = NotFound(f"there is no token {identity[:40]!r}", "see: ncm token list")
    if not re.fullmatch(r"[0-9a-f]{8}", identity):
        raise unknown
    known = _file(home, identity).exists()
    _file(home, identity).unlink(missing_ok=True)
    if not drop_role(role_of(identity)) and not known:
        raise unknown


def bound_to(home: Path, text: str) -> StoredToken | None:
    """Return the rights of a token; None if it is invalid. Read for each request, so that changes apply at once."""
    found = _FORM.fullmatch(text)
    stored = private.read_json(_file(home, found[1]), StoredToken) if found else None
    return stored if stored and hmac.compare_digest(stored.sha256, fingerprint(text)) else None


def _file(home: Path, identity: str) -> Path:
    return home / "tokens" / f"{identity}.json"
