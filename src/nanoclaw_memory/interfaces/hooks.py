"""Answer agent hooks: JSON in, JSON out, exit 0 always; a context longer than a client accepts is cut."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.errors import NanoClawError, SettingsError
from nanoclaw_memory.interfaces import shim
from nanoclaw_memory.patterns import keep, regex
from nanoclaw_memory.project import project_of, slug_of
from nanoclaw_memory.rendering import cut, inert_line, json_text
from nanoclaw_memory.text import as_typed, plural
from nanoclaw_memory.types import Scope

if TYPE_CHECKING:
    from nanoclaw_memory.memory import Memory

MAX_ACTION, MAX_RULE = 1_000, 400
# Tools that change nothing, and arguments that are text to be written rather than actions.
_READING = regex(
    r"(?:read|grep|glob|ls|list|get|search|find|view|fetch|web|todo|task|notebookread|ask)", re.I
)
_CONTENT = frozenset({"content", "new_string", "old_string", "new_source", "file_text", "insert_text"})
# How long a separate process waits for another writer, and how many seconds after its start it ends.
WAIT_MS, COMPACTION_WAIT_MS = 300, 5_000
SECONDS, OTHER_SECONDS = {"compact": 28.0, "start": 9.0, "end": 2.8}, 4.8
POLITENESS = 15  # of 19 steps: background work yields to the client
RESTART_SECONDS = 60  # between attempts of prompts to start a server that has ended
MAX_CONTEXT = 9_000  # clients cut at 10,000 characters and then show only a preview
_SNAKE_CLIENTS = frozenset({"cursor"})
_PASSING_CLIENTS = frozenset({"openclaw"})  # what they get in one turn leaves their window with the next

# Each client's names for the same events.
_KINDS = {
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
    "pretooluse": "tool",
    "beforetool": "tool",
}


class Event(msgspec.Struct, frozen=True):
    """One call of a hook, from any client."""

    name: str  # in the client's spelling, for the answer
    kind: str  # start, prompt, asked, compact, answer, end, tool
    client: str
    payload: Mapping[str, Any]
    remote: bool = False  # from another machine: it names no file here, and reports exchanges separately
    repeat: bool = False  # earlier answers may not have reached the session

    def text(self, *keys: str) -> str:
        """Return the first of these fields that contains text."""
        return next((value for key in keys if isinstance(value := self.payload.get(key), str) and value), "")

    @property
    def session(self) -> str:
        named = self.text("session_id", "conversation_id")[:200]
        return named.encode("utf-8", "replace").decode()  # half a character fits into no database

    @property
    def directory(self) -> str:
        """Return where the person works; Cursor lists all roots of its window."""
        roots = self.payload.get("workspace_roots")
        first = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else ""
        return self.text("cwd") or first


Aside = Callable[["Memory", Event], None]  # background work that a session's start or end triggers


def run(
    request: shim.Request, overrides: Mapping[str, str] | None = None, aside: Aside | None = None
) -> None:
    """Answer one hook on standard output: by the home's server, else in this process."""
    if not shim.has_input():
        return
    if shim.is_remote(request.home):
        from nanoclaw_memory.interfaces.remote.hook import answer_from_server

        return shim.write_answer(answer_from_server(request))
    raw = shim.read_input()
    connection = None if overrides else shim.connect(request)
    answer = None if connection is None else shim.ask(connection, request, raw)
    if answer is None:
        asked = connection is not None or os.environ.get(shim.NO_SERVER) == shim.ASKED
        answer = _answer_here(request, raw, overrides or {}, asked, aside)
    return shim.write_answer(answer)


def run_and_exit(request: shim.Request) -> None:
    """Answer one hook and end the process at once, without garbage collection or clean-up.

    Whatever it waits for, it ends about when clients would end it.
    """
    import _thread
    import faulthandler

    seconds = SECONDS.get(kind_of(request.argument), OTHER_SECONDS)

    def give_up() -> None:
        time.sleep(seconds)
        os._exit(0)

    _thread.start_new_thread(give_up, ())
    # No Python thread runs while a regular expression is matched: a signal's default action needs none.
    faulthandler.dump_traceback_later(seconds + 0.1, exit=True, file=os.open(os.devnull, os.O_WRONLY))
    run(request, aside=_start_background_work)
    keep()
    os._exit(0)


def _answer_here(
    request: shim.Request, raw: bytes, overrides: Mapping[str, str], asked: bool, aside: Aside | None
) -> bytes:
    def open_memory(scope: Scope) -> Memory:
        from nanoclaw_memory.memory import Memory

        memory = Memory.open(request.home, scope, overrides=overrides, directory=Path.cwd())
        memory.group.resources.defers_graph = kind_of(request.argument) == "prompt"
        patient = kind_of(request.argument) == "compact"
        memory.group.resources.wait_ms = COMPACTION_WAIT_MS if patient else WAIT_MS
        return memory

    try:
        named = slug_of(request.project) if request.project else ""
        scope = Scope(request.group, request.session, private=not request.shared, project=named)
        return answer(request.argument, raw, open_memory, scope, request.directory, repeat=asked, aside=aside)
    except Exception:  # noqa: BLE001 - a hook fails open: not even a bug in memory may stop an agent
        return b""


def answer(
    event_name: str,
    raw: bytes,
    open_memory: Callable[[Scope], AbstractContextManager[Memory]],
    scope: Scope,
    directory: str = "",
    remote: bool = False,
    repeat: bool = False,
    aside: Aside | None = None,
) -> bytes:
    """Return the JSON to print for one hook; empty when there is nothing to add or anything is wrong.

    `directory` is where the hook runs, for clients that do not report where the person works. Files named by a
    `remote` client are on its own machine and are not read. `repeat` injects lines that the session already received,
    for a server whose answer came too late.
    """
    event = parse(event_name, raw)
    if event is not None and remote:
        event = replace(event, remote=True, payload=without_files(event.payload))
    if event is not None and repeat:
        event = replace(event, repeat=True)
    if event is None or event.payload.get("agent_type") == "":
        return b""  # an internal helper of the client, not a person's session
    where = event.directory or directory
    project = scope.project or project_of(where)
    origin = "agent" if scope.origin == "owner" else scope.origin
    own = Scope(scope.group, event.session or scope.session_id, scope.private, origin, project, scope.client)
    try:
        with open_memory(own) as memory:
            return _answer_with(memory, event, where, aside)
    except SettingsError as error:  # nothing is stored until the settings are repaired
        told = f"memory does not work: {inert_line(error.message, MAX_RULE)}"
        return _note(told) if event.kind == "start" and event.client == "other" else b""


def _answer_with(memory: Memory, event: Event, where: str, aside: Aside | None) -> bytes:
    """Answer one hook with a memory that is open; only mistakes in the settings are left to the caller."""
    if not memory.home.exists():
        told = "nanoclaw-memory has nothing to remember in yet. To begin: ncm init"
        return _plugin_note(event, told)  # a hook never creates a home
    try:
        if memory.group.is_off(where):
            return b""
        context = _HANDLERS[event.kind](memory, event)
        told = _told_person(memory, event) if event.kind == "start" else ""
        if aside is not None and event.kind in ("start", "prompt", "end"):
            _attempt(memory, "background work", partial(aside, memory, event))
        return _answer_json(event, context, told).encode("utf-8", "replace")
    except SettingsError:
        raise
    except (NanoClawError, OSError) as error:
        memory.group.telemetry.record(
            "hook failed", hook=event.kind, client=event.client, error=str(error)[:500]
        )
        return b""


def _start_background_work(memory: Memory, event: Event) -> None:
    """Start what goes on after the hook: the home's server, or else the work that hooks leave undone."""
    if event.kind != "end" and _wants_server(memory) and (event.kind == "start" or _is_gone(memory, event)):
        minutes = str(memory.settings.server.idle_minutes)
        options = ["--no-http", "--idle-minutes", minutes, "--self-started"]
        command = shim.command(["--home", str(memory.home.root), "serve", *options])
        own = {name: value for name, value in os.environ.items() if name not in shim.CALLERS}
        return _start_process(command, own)  # it is for every session, not for this one alone
    if event.kind == "prompt":
        return None
    group = memory.group
    learn = group.has("facts") and group.lessons.unjudged(1)
    # One process runs both: a second one would find the lock of the first and end.
    index = ["index"] if group.resources.embeds_here else []
    jobs = [*(["learn"] if learn else []), *memory.upkeep.unproposed(), *index]
    if jobs:
        work = ["--home", str(memory.home.root), "--group", memory.scope.group, "upkeep", *jobs]
        _start_process(["nice", "-n", str(POLITENESS), *shim.command(work)])


def _wants_server(memory: Memory) -> bool:
    """Return whether this session should start a server: none answered, and one may run here for later sessions."""
    if not memory.settings.server.autostart or shim.has_settings_in_environment():
        return False  # settings in the environment bypass a server
    missed = os.environ.get(shim.NO_SERVER) in (None, "", shim.ABSENT, shim.ASKED)
    # A machine of continuous integration is gone after the session.
    return missed and not os.environ.get("CI") and os.access(memory.home.root, os.W_OK)


def _is_gone(memory: Memory, event: Event) -> bool:
    """Return whether a server that ran ended during this session; at most one prompt in a minute starts it again."""
    if event.repeat:
        return False  # it was asked, and was only too slow
    lock = memory.home.root / "serve.lock"  # its time is that of the server's last use
    try:
        if time.time() - lock.stat().st_mtime < RESTART_SECONDS:
            return False
        os.utime(lock)
    except OSError:  # none ever ran
        return False
    return True


def _start_process(command: list[str], environment: Mapping[str, str] = os.environ) -> None:
    """Start a process that outlives this one and keeps nothing of the client's open; a failure is silent."""
    silent = [(os.POSIX_SPAWN_OPEN, handle, os.devnull, os.O_RDWR, 0) for handle in range(3)]
    closed = [(os.POSIX_SPAWN_CLOSE, handle) for handle in _inherited()]
    with suppress(OSError, NotImplementedError):
        os.posix_spawnp(command[0], command, environment, file_actions=[*silent, *closed], setsid=True)


def _inherited() -> list[int]:
    """Return the open files that a new process would inherit, without the standard ones."""
    found = []
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - a hook pays for paths
        with suppress(OSError):  # the one that listed them
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
    return found


def without_files(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return a client's payload without paths on its machine."""
    return {
        name: value
        for name, value in payload.items()
        if name not in ("transcript_path", "cwd", "workspace_roots")
    }


def _plugin_note(event: Event, line: str) -> bytes:
    """At a session's start, return a line for a person whose plugin has no working memory; else nothing."""
    is_told = event.kind == "start" and event.client == "other" and event.text("source") == "startup"
    return _note(line) if is_told else b""


def _note(line: str) -> bytes:
    return json.dumps({"systemMessage": line}).encode()


def kind_of(event_name: str) -> str:
    """Return the kind of an event for its name in any client's spelling; empty when unknown."""
    return _KINDS.get(shim.event_key(event_name), "")


def parse(event_name: str, raw: bytes) -> Event | None:
    """Parse an event; return None when it is unknown or not a JSON object."""
    kind = kind_of(event_name)
    if not kind or len(raw) > shim.MAX_INPUT:
        return None
    try:
        payload = json.loads(raw.decode("utf-8-sig", "replace") or "{}")
    except (ValueError, RecursionError):
        return None
    if not isinstance(payload, dict):
        return None
    name = payload.get("hook_event_name")
    client = "cursor" if "cursor_version" in payload else str(payload.get("client") or "other")
    spelled = event_name if event_name[:1].isupper() else event_name.title().replace("-", "").replace("_", "")
    return Event(name if isinstance(name, str) else spelled, kind, client, payload)


def _start(memory: Memory, event: Event) -> str:
    """Return the boot context and the blocks; nothing on resume, as the window still contains them."""
    source = event.text("source")
    if source == "resume":
        return ""
    return memory.session_start(MAX_CONTEXT, cleared=source in ("clear", "compact")).text


def _told_person(memory: Memory, event: Event) -> str:
    """Return a line for the person at a session's start; the model does not get it."""
    return _mistaken(memory, event) or _damaged(memory, event) or _waiting(memory, event)


def _damaged(memory: Memory, event: Event) -> str:
    """Return a line for the person when a page cannot be read as it is."""
    if event.client != "other" or not memory.scope.private:
        return ""
    with suppress(NanoClawError, OSError):  # a session starts without it
        if found := memory.boot_problems():
            return f"memory cannot read every page as it is: {inert_line('; '.join(found), MAX_RULE)}. See: ncm doctor"
    return ""


def _mistaken(memory: Memory, event: Event) -> str:
    """Return a line for the person when the server goes on with earlier settings because the file has a mistake."""
    mistake = memory.group.resources.settings_mistake
    if not mistake or event.client != "other":
        return ""
    return f"memory goes on with its settings from before this mistake: {inert_line(mistake, MAX_RULE)}"


def _waiting(memory: Memory, event: Event) -> str:
    """Return a line for the person when proposals are open; the model does not get it."""
    if event.client != "other" or event.text("source") not in ("", "startup") or not memory.scope.private:
        return ""
    with suppress(NanoClawError, OSError):  # a session starts without it
        if waiting := memory.upkeep.count_open():
            own = "" if memory.scope.group == "main" else f" --group {memory.scope.group}"
            return f"memory: {plural(waiting, 'proposal')} for you: ncm review{own}"
    return ""


def _prompt(memory: Memory, event: Event) -> str:
    """Return the blocks for the person's message; the message is spooled until its answer comes."""
    message = as_typed(event.text("prompt"))
    if not message.strip():
        return ""
    _catch_up(memory, event)
    # First: a turn that fails or is cut off must not lose the message.
    _spool(memory, event, "prompt", message)
    _drain(memory)
    turn = memory.before_turn(message, repeat=event.repeat or event.client in _PASSING_CLIENTS)
    return "\n\n".join(filter(None, [turn.text, _flush(memory, event)]))


def _flush(memory: Memory, event: Event) -> str:
    """Once per compaction cycle, when the transcript has grown long: ask the agent to write down what should last."""
    try:
        size = Path(event.text("transcript_path") or "/").stat().st_size
    except (OSError, ValueError):  # no file can have this name
        return ""
    own = memory.settings.flush
    if not own.enabled or not own.transcript_bytes or size < own.transcript_bytes:
        return ""
    try:
        return memory.conversations.flush_needed(0, size).prompt
    except (NanoClawError, OSError):  # it could not be recorded, so it must not be asked
        return ""


def _spool_prompt(memory: Memory, event: Event) -> str:
    """Only spool the message, for clients whose prompt hook cannot inject."""
    message = as_typed(event.text("prompt"))
    if message.strip():
        _catch_up(memory, event)
        _spool(memory, event, "prompt", message)
    return ""


def _compact(memory: Memory, event: Event) -> str:
    """Archive the transcript before the client shortens it."""
    _catch_up(memory, event)
    _drain(memory, 50)
    memory.before_compaction(event.text("transcript_path"))
    return ""


def _stop(memory: Memory, event: Event) -> str:
    """Spool the answer within milliseconds; it is analysed later."""
    answer = event.text("last_assistant_message", "prompt_response", "text")
    if answer:
        _spool(memory, event, "answer", answer)
    else:
        _catch_up(memory, event)
    return ""


def _spool(memory: Memory, event: Event, kind: str, text: str) -> None:
    """Spool a message or an answer; another machine spools its own and reports complete exchanges."""
    if not event.remote:
        _attempt(memory, "note", lambda: memory.conversations.note(kind, text))


def _drain(memory: Memory, limit: int = 5) -> None:
    """Archive spooled exchanges; those that cannot be archived now stay in the spool."""
    from nanoclaw_memory.memory.team_pages import synchronised

    def drain() -> None:
        with synchronised(memory.group):
            memory.group.drain_spool(limit, WAIT_MS / 1000)

    _attempt(memory, "drain", drain)


def _catch_up(memory: Memory, event: Event) -> None:
    """Spool the answer to an open question from the transcript: the client sent none, or its hook never ran."""
    path = event.text("transcript_path")
    if event.remote:
        return
    _attempt(memory, "answer from transcript", lambda: memory.conversations.note_answer_from(path))


def _attempt(memory: Memory, what: str, work: Callable[[], object]) -> None:
    """Run work that may fail without costing the agent its context; a failure is recorded."""
    try:
        work()
    except (NanoClawError, OSError) as error:
        memory.group.telemetry.record(f"{what} failed", error=str(error)[:500])


def _session_end(memory: Memory, event: Event) -> str:
    """Do nothing essential: clients allow a second, or none."""
    _catch_up(memory, event)
    _drain(memory)
    _attempt(memory, "taking in what was said", memory.group.catch_up)
    if memory.scope.private:
        memory.workspace.refresh_active_context()
    return ""


def _tool(memory: Memory, event: Event) -> str:
    """Return the policies that a tool call triggers, as the answer's parts: the reaction, and why."""
    action = _action(event)
    hits = memory.workspace.check_policies(action, fast=not memory.group.resources.resident) if action else []
    if not hits:
        return ""
    # A match by meaning alone never refuses a call.
    wanted = {
        "ask" if hit.by == "meaning" and hit.policy.enforce == "block" else hit.policy.enforce for hit in hits
    }
    decision = next((one for one in ("block", "ask") if one in wanted), "warn")
    rules = [inert_line(f"{hit.policy.id} {hit.policy.title}: {hit.policy.gate}", MAX_RULE) for hit in hits]
    return "\n".join([decision, *rules])


def _action(event: Event) -> str:
    """Describe what a tool is about to do by its name and short arguments; empty for a read-only tool."""
    name, given = event.text("tool_name"), event.payload.get("tool_input")
    if not name or _READING.match(name.rpartition("__")[2]) or not isinstance(given, dict):
        return ""
    texts = [text for key, text in given.items() if isinstance(text, str) and key not in _CONTENT]
    words = " ".join(re.sub(r"[-_]+", " ", name.rpartition("__")[2]).split())
    return " ".join([words, *texts])[:MAX_ACTION]


def _tool_json(event: Event, told: str) -> str:
    """Return the decision on a tool call; a warning decides nothing and is only shown with the call."""
    decision, _, rules = told.partition("\n")
    if decision == "warn":
        context = f"This action meets a rule of the owner:\n{rules}"
        return json_text({"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": context}})
    own = {"permissionDecision": "deny" if decision == "block" else "ask", "permissionDecisionReason": rules}
    return json_text({"hookSpecificOutput": {"hookEventName": event.name, **own}})


_HANDLERS: Mapping[str, Callable[[Memory, Event], str]] = {
    "start": _start,
    "prompt": _prompt,
    "asked": _spool_prompt,
    "compact": _compact,
    "answer": _stop,
    "end": _session_end,
    "tool": _tool,
}


def _answer_json(event: Event, context: str, told: str = "") -> str:
    """Wrap a context into the client's JSON, with keys that every client accepts, and a line for the person."""
    line = {"systemMessage": told} if told else {}
    if not context:
        return json_text(line) if line else ""
    if event.kind == "tool":
        return _tool_json(event, context)
    context = cut(context, MAX_CONTEXT)
    if event.client in _SNAKE_CLIENTS:
        return json_text({"additional_context": context})
    own = {"hookEventName": event.name, "additionalContext": context}
    return json_text({**line, "hookSpecificOutput": own})
