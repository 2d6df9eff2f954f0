"""Hooks of a thin client: the server answers; while it is away they are silent, and exchanges are spooled."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from nanoclaw_memory.clock import stamp
from nanoclaw_memory.errors import NanoClawError
from nanoclaw_memory.interfaces.hooks import Event, parse, without_files
from nanoclaw_memory.interfaces.remote.connection import (
    Answer,
    PendingRequest,
    Remote,
    ServerAway,
    is_away,
    load,
    note_away,
    query_of,
)
from nanoclaw_memory.interfaces.shim import read_input
from nanoclaw_memory.memory.remote_spool import RemoteSpool
from nanoclaw_memory.project import project_of, slug_of
from nanoclaw_memory.text import as_typed
from nanoclaw_memory.types import MAIN_GROUP, Scope

if TYPE_CHECKING:
    from nanoclaw_memory.conversations.spool import SpooledExchange
    from nanoclaw_memory.interfaces.shim import Request

ENDING = 0.02  # seconds that a hook needs to end
HOOK_WAIT = 2.5  # seconds for an answer of a responding server; clients allow five
ALIVE = {"Expect": "100-continue"}  # a responding server sends 100 Continue before it computes its answer
AT_ONCE = 10  # exchanges that one hook delivers
DELIVERING = ("start", "answer", "compact", "end")
REFUSED = (400, 404, 409, 413, 422)  # permanently: others would wait behind it


def answer_from_server(request: Request) -> bytes:
    """Return the JSON to print for one hook; nothing when the server is away or anything is wrong."""
    age = _seconds_since_start()
    event = parse(request.argument, read_input())
    began = time.monotonic() - age  # the client's time for its input does not count
    if event is None or event.payload.get("agent_type") == "":
        return b""
    home = Path(request.home).expanduser()
    try:
        remote = load(home)
        scope = _scope(request, event)
        asking = _start_request(remote, scope, event) if remote and not is_away(home) else None
        _spool(home, scope, event)  # while the connection is made
        answer = _answered(asking, remote, began) if remote and asking else b""
    except ServerAway:
        note_away(home, True)
        return b""
    except (NanoClawError, OSError):
        return b""
    if remote and event.kind in DELIVERING and not is_away(home):
        _deliver_some(home, remote, began)
    return answer


def _seconds_since_start() -> float:
    """Return the seconds since this process was started, or at least its CPU time if that is unknown."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError):  # not Linux
        return time.process_time()
    return age if 0 <= age < HOOK_WAIT else time.process_time()


def _deliver_some(home: Path, remote: Remote, began: float) -> None:
    try:
        deliver(home, remote, AT_ONCE, began)
        note_away(home, False)
    except ServerAway:
        note_away(home, True)
    except (NanoClawError, OSError):
        return  # it waits for the next hook


def _scope(request: Request, event: Event) -> Scope:
    where = event.directory or request.directory
    project = slug_of(request.project) if request.project else project_of(where)
    return Scope(request.group, event.session or request.session, not request.shared, "agent", project)


def _spool(home: Path, scope: Scope, event: Event) -> None:
    """Spool a message or an answer; the server gets both together."""
    if event.kind in ("prompt", "asked"):
        text, kind = as_typed(event.text("prompt")), "prompt"
    elif event.kind == "answer":
        text, kind = event.text("last_assistant_message", "prompt_response", "text"), "answer"
    else:
        return
    if text.strip():
        RemoteSpool(home).note(scope, kind, text)


def _start_request(remote: Remote, scope: Scope, event: Event) -> PendingRequest | None:
    if event.kind in ("asked", "answer"):
        return None
    body = json.dumps({**without_files(event.payload), "hook_event_name": event.name}).encode()
    path = f"/api/v1/hooks/{quote(event.name, safe='')}?{query_of(scope)}"
    return PendingRequest(remote, "POST", path, body, ALIVE, HOOK_WAIT)


def _answered(asking: PendingRequest, remote: Remote, began: float) -> bytes:
    answer = asking.answer(spent=time.monotonic() - began + ENDING)
    _require_there(answer, remote)
    return answer.body if answer.status == 200 else b""


def deliver(home: Path, remote: Remote, limit: int, began: float | None = None) -> int:
    """Report spooled exchanges. The server recognises one by session, moment and words, and stores it once.

    A hook passes when it `began`: soon after that it abandons a server without a response.
    """

    def send(spoken: SpooledExchange) -> None:
        nonlocal began
        scope = Scope(MAIN_GROUP, spoken.session, spoken.private, "agent", spoken.project)
        said = {
            "user_message": spoken.question,
            "agent_response": spoken.answer,
            "at": stamp(spoken.at),
        }
        path = f"/api/v1/turns/after?{query_of(scope)}"
        asking = PendingRequest(remote, "POST", path, json.dumps(said).encode(), ALIVE, HOOK_WAIT)
        answer = asking.answer(spent=0.0 if began is None else time.monotonic() - began + ENDING)
        _require_there(answer, remote)
        began = None  # it responds

    return RemoteSpool(home).deliver(send, limit)


def _require_there(answer: Answer, remote: Remote) -> None:
    """Treat a server that is broken or does not know the token as away: nothing is lost by asking it later."""
    if answer.status == 503:
        raise NanoClawError(f"{remote.url} is busy", "ask again")
    if answer.status >= 400 and answer.status not in REFUSED:
        raise ServerAway(f"{remote.url} answered with status {answer.status}", "ncm doctor says more")
