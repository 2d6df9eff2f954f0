"""Run a task as a command: no shell, a time limit, an output limit, no process left behind."""

from __future__ import annotations

import os
import re
import selectors
import shlex
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event
from time import monotonic

import msgspec

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.host.tasks import Runner, TaskFailed
from nanoclaw_memory.types import AgentPlace, Task

KEPT_BYTES = 64_000
MAX_BYTES = 16_000_000  # a command that writes more is stopped
GRACE_SECONDS = 2.0
PLACEHOLDERS = ("{prompt}", "{group}", "{session}", "{task}")


class CommandResult(msgspec.Struct, frozen=True):
    """How a command ended."""

    code: int
    output: str
    timed_out: bool = False
    flooded: bool = False


def command_runner(
    template: str, timeout: float, place: Callable[[str], AgentPlace], stopping: Event
) -> Runner:
    """Return a runner that starts a command for each task; placeholders such as `{prompt}` are replaced whole.

    Once `stopping` is set, running commands are terminated.
    """
    parts = _parts(template)
    if not 0 < timeout <= 86_400:
        raise InvalidValue(f"a time limit of {timeout} s is refused", "give 1 to 86400 seconds")

    def run(task: Task, session: str) -> str:
        # Not an option of the command: a prompt never begins with a hyphen.
        prompt = f" {task.prompt}" if task.prompt.startswith("-") else task.prompt
        values = {"{prompt}": prompt, "{group}": task.group, "{session}": session, "{task}": task.id}
        arguments = [_filled(part, values) for part in parts]
        where = place(task.group)
        environment = {**os.environ, **where.environment, "NANOCLAW_SESSION": session}
        return _judged(run_command(arguments, where.directory, environment, timeout, stopping), timeout)

    return run


def run_command(
    arguments: list[str], directory: Path, environment: Mapping[str, str], timeout: float, stopping: Event
) -> CommandResult:
    """Run to the end, the time limit or the output limit; afterwards the whole process group is gone."""
    try:
        process = subprocess.Popen(
            arguments,
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise TaskFailed(f"{arguments[0]} cannot be started: {error}") from None
    try:
        kept, state = _read(process, monotonic() + timeout, stopping)
    finally:
        _stop(process)
    text = kept.decode("utf-8", "replace").strip()
    return CommandResult(process.returncode, text, state == "timeout", state == "flood")


def _read(process: subprocess.Popen[bytes], deadline: float, stopping: Event) -> tuple[bytes, str]:
    """Return the command's output, cut to the limit, and why reading ended: end, timeout or flood."""
    assert process.stdout is not None
    kept, total = b"", 0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while (left := deadline - monotonic()) > 0 and not stopping.is_set():
            if not selector.select(min(left, 0.1)):
                if process.poll() is not None:
                    return (
                        kept,
                        "end",
                    )  # a child process may keep the pipe open; it ends with the process group
                continue
            block = os.read(process.stdout.fileno(), 65_536)
            if not block:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(max(deadline - monotonic(), 0))
                return kept, "end" if process.poll() is not None else "timeout"
            kept += block[: KEPT_BYTES - len(kept)]
            total += len(block)
            if total > MAX_BYTES:
                return kept, "flood"
    return kept, "timeout"


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Terminate the command and everything it started, first by SIGTERM."""
    with suppress(ProcessLookupError, PermissionError):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_SECONDS)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _judged(ended: CommandResult, timeout: float) -> str:
    if ended.timed_out:
        raise TaskFailed(f"stopped after {timeout:g} s", ended.output)
    if ended.flooded:
        raise TaskFailed(f"stopped: it wrote over {MAX_BYTES:,} bytes", ended.output)
    if ended.code != 0:
        raise TaskFailed(f"exit code {ended.code}", ended.output)
    return ended.output


def _parts(template: str) -> list[str]:
    try:
        parts = shlex.split(template)
    except ValueError as error:
        raise InvalidValue(f"the command is refused: {error}", "check its quotes") from None
    if not parts or not any(place in part for part in parts for place in PLACEHOLDERS):
        raise InvalidValue(
            f"the command {template[:80]!r} does not use the task",
            'put {prompt} where the prompt belongs, for example "claude -p {prompt}"',
        )
    return parts


def _filled(part: str, values: Mapping[str, str]) -> str:
    """Fill an argument's placeholders in one pass: a prompt that contains `{group}` stays as it is."""
    return re.sub(r"\{(?:prompt|group|session|task)\}", lambda match: values[match[0]], part)
