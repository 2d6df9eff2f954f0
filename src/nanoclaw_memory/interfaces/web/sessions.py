"""Sessions of the page: a one-time link becomes a cookie; the home stores the hashes of both, so a restart ends
none.
"""

from __future__ import annotations

import hmac
import secrets
import time
from contextlib import suppress
from pathlib import Path

from nanoclaw_memory import private
from nanoclaw_memory.text import fingerprint

LINK_SECONDS = 600
SESSION_SECONDS = 7 * 24 * 3600


class PageSessions:
    """Links and sessions as empty files `web-sessions/KIND-HASH`; whoever may write there owns the home."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "web-sessions"

    def new_link(self) -> str:
        """Return the secret of a link that opens the page once, within ten minutes."""
        return self._new("link")

    def redeem(self, link: str) -> str | None:
        """Return the secret of a new session for a link; None for a link that is used, expired or unknown."""
        path, valid = self._file("link", link), self._is_fresh("link", link, LINK_SECONDS)
        try:
            path.unlink()  # of two simultaneous requests only one removes it
        except OSError:
            return None
        self._remove_old()
        return self._new("session") if valid else None

    def is_valid(self, session: str) -> bool:
        """Return whether a cookie names a session that has not ended."""
        return self._is_fresh("session", session, SESSION_SECONDS)

    def end(self, session: str = "") -> int:
        """End one session, or all of them with every open link; return how many sessions ended."""
        ended = [self._file("session", session)] if session else [*self._folder.glob("*-*")]
        for path in ended:
            path.unlink(missing_ok=True)
        return sum(path.name.startswith("session") for path in ended)

    def _new(self, kind: str) -> str:
        secret = secrets.token_urlsafe(32)
        private.replace_file(self._file(kind, secret), "")
        return secret

    def _file(self, kind: str, secret: str) -> Path:
        return self._folder / f"{kind}-{fingerprint(secret)}"  # no salt: a secret is 256 random bits

    def _is_fresh(self, kind: str, secret: str, seconds: int) -> bool:
        try:
            age = time.time() - self._file(kind, secret).stat().st_mtime
        except OSError:
            return False
        return age < seconds

    def _remove_old(self) -> None:
        for path in self._folder.glob("*-*"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > SESSION_SECONDS:
                    path.unlink()


def csrf_token(session: str) -> str:
    """Return the token in every form of a session; it reveals nothing of the cookie."""
    return hmac.new(session.encode(), b"form", "sha256").hexdigest()
