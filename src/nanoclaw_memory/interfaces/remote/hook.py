"""Hooks of a thin client: the server answers; while it is away they are silent, and what is said waits in a spool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from nanoclaw_memory.clock import stamp
from nanoclaw_memory.errors import NanoClawError
from nanoclaw_memory.interfaces.hooks import Event, without_files
from nanoclaw_memory.interfaces.remote.connection import (
    Answer,
    Remote,
    ServerAway,
    ask,
    is_away,
    load,
    note_away,
    query_of,
)
from nanoclaw_memory.memory.remote_spool import RemoteSpool
from nanoclaw_memory.project import project_of, slug_of
from nanoclaw_memory.text import as_typed
from nanoclaw_memory.types import MAIN_GROUP, Scope

if TYPE_CHECKING:
    from nanoclaw_memory.conversations.spool import SpooledExchange
    from nanoclaw_memory.interfaces.shim import Request

HOOK_WAIT = 2.5  # seconds for an answer of a server that is there; clients allow five
DELIVERING = ("start", "answer", "compact", "end")
REFUSED = (400, 404, 409, 413, 422)  # for good: others would wait behind it


def answer_from_server(request: Request, event: Event | None) -> bytes:
    """The JSON to print for one hook; nothing when the server is away or anything is wrong."""
    if event is None or event.payload.get("agent_type") == "":
        return b""
    home = Path(request.home).expanduser()
    try:
        remote = load(home)
        scope = _scope(request, event)
        _note(home, scope, event)
        if remote is None or is_away(home):
            return b""
        answer = _asked(remote, scope, event)
        if event.kind in DELIVERING:
            deliver(home, remote)
    except ServerAway:
        note_away(home, True)
        return b""
    except (NanoClawError, OSError):
        return b""
    note_away(home, False)
    return answer


def _scope(request: Request, event: Event) -> Scope:
    where = event.directory or request.directory
    project = slug_of(request.project) if request.project else project_of(where)
    return Scope(request.group, event.session or request.session, not request.shared, "agent", project)


def _note(home: Path, scope: Scope, event: Event) -> None:
    """Spool what was asked or answered: once the answer is there, the server gets both."""
    if event.kind in ("prompt", "asked"):
        text, kind = as_typed(event.text("prompt")), "prompt"
    elif event.kind == "answer":
        text, kind = event.text("last_assistant_message", "prompt_response", "text"), "answer"
    else:
        return
    if text.strip():
        RemoteSpool(home).note(scope, kind, text)


def _asked(remote: Remote, scope: Scope, event: Event) -> bytes:
    if event.kind in ("asked", "answer"):
        return b""
    body = json.dumps({**without_files(event.payload), "hook_event_name": event.name}).encode()
    path = f"/api/v1/hooks/{quote(event.name, safe='')}?{query_of(scope)}"
    answer = ask(remote, "POST", path, body, wait=HOOK_WAIT)
    _require_there(answer, remote)
    return answer.body if answer.status == 200 else b""


def deliver(home: Path, remote: Remote, limit: int = 20) -> int:
    """Report exchanges that wait. The server knows one by its session, moment and words, and takes it once."""

    def send(spoken: SpooledExchange) -> None:
        scope = Scope(MAIN_GROUP, spoken.session, spoken.private, "agent", spoken.project)
        said = {
            "user_message": spoken.question,
            "agent_response": spoken.answer,
            "at": stamp(spoken.at),
        }
        path = f"/api/v1/turns/after?{query_of(scope)}"
        answer = ask(remote, "POST", path, json.dumps(said).encode(), wait=HOOK_WAIT)
        _require_there(answer, remote)

    return RemoteSpool(home).deliver(send, limit)


def _require_there(answer: Answer, remote: Remote) -> None:
    """A server that is broken or does not know the token is away: nothing is lost by asking it later."""
    if answer.status == 503:
        raise NanoClawError(f"{remote.url} is busy", "ask again")
    if answer.status >= 400 and answer.status not in REFUSED:
        raise ServerAway(f"{remote.url} answered with status {answer.status}", "ncm doctor says more")
