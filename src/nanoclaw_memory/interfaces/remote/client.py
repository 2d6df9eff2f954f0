"""Connect a home to a server, disconnect it, deliver spooled exchanges, and check the connection."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nanoclaw_memory.errors import FileProblem, InvalidValue, NanoClawError, NotFound, Refused
from nanoclaw_memory.interfaces.remote.connection import (
    Remote,
    ServerAway,
    ask,
    checked,
    load,
    note_away,
    save,
)
from nanoclaw_memory.interfaces.shim import REMOTE_FILE
from nanoclaw_memory.text import plural
from nanoclaw_memory.types import Finding

SKEW_SECONDS = 60
ConnectionReport = tuple[dict[str, Any], str]
PROBE = "/api/v1/brief"


def connect(home: Path, url: str, token: str, ca: Path | None, connect_ms: int) -> ConnectionReport:
    """Connect a home that has no memory of its own, once the server has accepted the token."""
    if (home / "workspace").exists():
        raise Refused(
            f"{home} has a memory of its own", "connect another home: ncm --home ~/.nanoclaw-remote connect …"
        )
    if not token:
        raise InvalidValue(
            "the token is missing", "make one on the server: ncm token new; give it with --token"
        )
    try:
        pem = ca.read_text("ascii") if ca else ""
    except (OSError, UnicodeDecodeError) as error:
        raise FileProblem(f"{ca} cannot be read: {error}", "give a certificate as PEM") from None
    remote = Remote(url=checked(url), token=token, ca=pem, connect_ms=connect_ms)
    answer = ask(_patient(remote), "GET", PROBE)
    if answer.status == 401:
        raise Refused("the server does not know this token", "make one there: ncm token new")
    answer.json()
    save(home, remote)
    note_away(home, False)
    return {"url": remote.url, "connected": True}, f"connected to {remote.url}; next: ncm install CLIENT"


def disconnect(home: Path) -> ConnectionReport:
    """End the connection; what was not delivered stays in the spool."""
    remote = _connected(home)
    (home / REMOTE_FILE).unlink()
    waiting = _waiting(home)
    left = f"; {plural(waiting, 'exchange')} not delivered" if waiting else ""
    return {
        "url": remote.url,
        "connected": False,
        "waiting": waiting,
    }, f"no longer connected to {remote.url}{left}"


def deliver_now(home: Path) -> ConnectionReport:
    """Deliver spooled exchanges, and report the connection."""
    from nanoclaw_memory.interfaces.remote.hook import deliver

    remote = _connected(home)
    delivered = deliver(home, _patient(remote), 1000) if _waiting(home) else 0
    note_away(home, False)
    waiting = _waiting(home)
    told = {"url": remote.url, "connected": True, "delivered": delivered, "waiting": waiting}
    return told, f"connected to {remote.url}; {plural(delivered, 'exchange')} delivered, {waiting} waiting"


def findings(home: Path) -> Iterator[Finding]:
    """Yield the findings of a check of the connection."""
    remote, waiting = _connected(home), _waiting(home)
    try:
        answer = ask(_patient(remote), "GET", PROBE)
        if answer.status in (401, 403):
            told = "the server does not accept the token any more: it was revoked or is another's"
            yield Finding(
                "problem",
                told,
                f"make one on the server (ncm token new), then: ncm connect {remote.url} --token …",
            )
        else:
            answer.json()
            yield Finding("ok", f"connected to {remote.url}", "nothing to do")
        if abs(answer.skew) > SKEW_SECONDS:
            ahead = "ahead of" if answer.skew < 0 else "behind"
            told = f"this machine's clock is {abs(answer.skew) / 60:.0f} minutes {ahead} the server's"
            yield Finding("warning", told, "set the clock: what is said here is dated by it")
    except ServerAway as error:
        told = f"{error.message}; hooks are silent, and what is said waits here"
        yield Finding("problem", told, "start the server, or check the network, the name and the certificate")
    except NanoClawError as error:
        yield Finding("problem", error.message, error.hint)
    if waiting:
        yield Finding("note", f"{plural(waiting, 'exchange')} wait to be delivered", "now: ncm connect")


def _connected(home: Path) -> Remote:
    remote = load(home)
    if remote is None:
        raise NotFound(f"{home} is not connected to a server", "ncm connect https://… --token …")
    return remote


def _patient(remote: Remote) -> Remote:
    """Return the same with the longer timeout of a person."""
    from msgspec.structs import replace

    return replace(remote, connect_ms=max(remote.connect_ms, 5000))


def _waiting(home: Path) -> int:
    from nanoclaw_memory.memory.remote_spool import RemoteSpool

    return RemoteSpool(home).waiting()
