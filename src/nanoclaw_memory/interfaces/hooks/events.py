"""Agent hooks: JSON in, JSON out, exit 0 always; a hook that fails says nothing and costs the agent nothing."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec

from nanoclaw_memory.errors import NanoClawError
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope

MAX_INPUT = 8_000_000
MAX_CONTEXT = 9_000  # clients cut at 10,000 characters and then show only a preview
GUARD = "NANOCLAW_NO_HOOKS"
_SNAKE_CLIENTS = frozenset({"cursor"})

# What each client calls the same moment.
_EVENTS = {
    "sessionstart": "start",
    "userpromptsubmit": "prompt",
    "beforeagent": "prompt",
    "beforesubmitprompt": "asked",
    "precompact": "compact",
    "precompress": "compact",
    "stop": "answer",
    "afteragent": "answer",
    "afteragentresponse": "answer",
    "sessionend": "end",
}


class Event(msgspec.Struct, frozen=True):
    """One call of a hook, whatever client it comes from."""

    name: str  # as the client spells it, for the answer
    kind: str  # start, prompt, asked, compact, answer, end
    client: str
    payload: Mapping[str, Any]

    def text(self, *keys: str) -> str:
        """The first of these fields that holds text."""
        return next((value for key in keys if isinstance(value := self.payload.get(key), str) and value), "")

    @property
    def session(self) -> str:
        return self.text("session_id", "conversation_id")[:200]


def run(
    event_name: str, raw: bytes, open_memory: Callable[[Scope], AbstractContextManager[Memory]], scope: Scope
) -> str:
    """What to print for one call of a hook; empty when there is nothing to say or anything is wrong."""
    if os.environ.get(GUARD):
        return ""
    event = parse(event_name, raw)
    if event is None or event.payload.get("agent_type") == "":
        return ""  # an internal helper of the client, not a person's session
    own = Scope(scope.group, event.session or scope.session_id, scope.private, "agent")
    with open_memory(own) as memory:
        if not memory.home.exists():
            return ""  # nobody has set memory up here: a hook must not
        try:
            return _answer(event, _HANDLERS[event.kind](memory, event))
        except (NanoClawError, OSError) as error:
            memory.telemetry.record(
                "hook failed", hook=event.kind, client=event.client, error=str(error)[:500]
            )
            return ""


def parse(event_name: str, raw: bytes) -> Event | None:
    """The event, or None when it is unknown or no JSON object."""
    kind = _EVENTS.get(event_name.replace("-", "").replace("_", "").lower())
    if kind is None or len(raw) > MAX_INPUT:
        return None
    try:
        payload = json.loads(raw or b"{}")
    except ValueError:
        return None
    if not isinstance(payload, dict):
        return None
    name = payload.get("hook_event_name")
    client = "cursor" if "cursor_version" in payload else "other"
    spelled = event_name if event_name[:1].isupper() else re.sub(r"[-_]", "", event_name.title())
    return Event(name if isinstance(name, str) else spelled, kind, client, payload)


def _start(memory: Memory, event: Event) -> str:
    """The boot context, with the brief first where it is too long; nothing on resume: it is in the window already."""
    if event.text("source") == "resume":
        return ""
    boot, blocks = memory.boot(), memory.session_start().text
    text = boot.text
    if len(text) + len(blocks) > MAX_CONTEXT and boot.mode == "full":  # the other modes have the brief in it
        text = f"{memory.brief().text}\n\n{text}".lstrip()
    return f"{_cut(text, MAX_CONTEXT - len(blocks) - 1)}\n{blocks}".strip()


def _prompt(memory: Memory, event: Event) -> str:
    """The blocks for what the person wrote; the question is spooled for when its answer comes."""
    message = event.text("prompt")
    if not message.strip():
        return ""
    _catch_up(memory, event)
    _drain(memory)
    turn = memory.before_turn(message)
    _note(memory, "prompt", message)
    return "\n\n".join(filter(None, [turn.text, _flush(memory, event)]))


def _flush(memory: Memory, event: Event) -> str:
    """Once per compaction cycle, when the transcript has grown long: ask to write down what should last."""
    try:
        size = Path(event.text("transcript_path") or "/").stat().st_size
    except OSError:
        return ""
    own = memory.settings.flush
    if not own.enabled or not own.transcript_bytes or size < own.transcript_bytes:
        return ""
    try:
        return memory.flush_needed(0, size).prompt
    except (NanoClawError, OSError):  # it could not be noted that it was asked: then it must not be asked
        return ""


def _asked(memory: Memory, event: Event) -> str:
    """Clients whose prompt hook cannot inject: only spool the question."""
    if event.text("prompt").strip():
        _catch_up(memory, event)
        _note(memory, "prompt", event.text("prompt"))
    return ""


def _compact(memory: Memory, event: Event) -> str:
    """Archive the transcript before the client shortens it."""
    _catch_up(memory, event)
    _drain(memory, 50)
    memory.before_compaction(event.text("transcript_path"))
    return ""


def _stop(memory: Memory, event: Event) -> str:
    """Spool the answer in milliseconds; what it means is worked out later."""
    answer = event.text("last_assistant_message", "prompt_response", "text")
    if answer:
        _note(memory, "answer", answer)
    else:
        _catch_up(memory, event)
    return ""


def _note(memory: Memory, kind: str, text: str) -> None:
    """Spool what was said; where nothing can be written, what is known still reaches the agent."""
    try:
        memory.note(kind, text)
    except (NanoClawError, OSError) as error:
        memory.telemetry.record("note failed", error=str(error)[:500])


def _drain(memory: Memory, limit: int = 5) -> None:
    """Archive what was spooled; what cannot be archived now stays there and costs no block."""
    try:
        memory.drain(limit)
    except (NanoClawError, OSError) as error:
        memory.telemetry.record("drain failed", error=str(error)[:500])


def _catch_up(memory: Memory, event: Event) -> None:
    """The answer to an open question from the transcript: a client gave none, or its hook never came."""
    try:
        memory.note_answer_from(event.text("transcript_path"))
    except (NanoClawError, OSError) as error:
        memory.telemetry.record("no answer in the transcript", error=str(error)[:500])


def _end(memory: Memory, event: Event) -> str:
    """Nothing essential: clients give a second, or none."""
    _catch_up(memory, event)
    _drain(memory)
    if memory.scope.private:
        memory.refresh_active_context()
    return ""


_HANDLERS: Mapping[str, Callable[[Memory, Event], str]] = {
    "start": _start,
    "prompt": _prompt,
    "asked": _asked,
    "compact": _compact,
    "answer": _stop,
    "end": _end,
}


def _cut(text: str, limit: int) -> str:
    """At most so many characters in whole lines; says when there is more."""
    note = "\n[cut: memory_search has the rest]"
    return text if len(text) <= limit else text[: max(limit - len(note), 0)].rpartition("\n")[0] + note


def _answer(event: Event, context: str) -> str:
    """The client's JSON around a context; only the two keys that every client takes."""
    if not context:
        return ""
    context = _cut(context, MAX_CONTEXT)
    if event.client in _SNAKE_CLIENTS:
        return json.dumps({"additional_context": context}, ensure_ascii=False)
    output = {"hookEventName": event.name, "additionalContext": context}
    return json.dumps({"hookSpecificOutput": output}, ensure_ascii=False)
