"""A real server process of `ncm serve` for tests, and ways to ask it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from nanoclaw_memory.interfaces import shim

SHIM = [sys.executable, "-I", "-S", str(Path(shim.__file__))]


@dataclass
class Served:
    """A running server."""

    process: subprocess.Popen[str]
    place: dict[str, Any]
    home: Path

    @property
    def url(self) -> str:
        return str(self.place["url"])

    @property
    def token(self) -> str:
        return (self.home / "token").read_text().strip()

    def client(self, **headers: str) -> httpx2.Client:
        told = {"Authorization": f"Bearer {self.token}", **headers}
        return httpx2.Client(base_url=self.url, headers=told, timeout=60)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


def start(home: Path, *options: str, init: bool = True, files: int = 0) -> Served:
    """Start a server of a home, which may open so many files, and wait until it listens."""
    if init:
        command = [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), "init"]
        subprocess.run(command, check=True, capture_output=True)
    arguments = ["--home", str(home), "--json", "serve", "--port", "0", "--no-watch", *options]
    limit = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh"] if files else []
    process = subprocess.Popen(
        [*limit, sys.executable, "-m", "nanoclaw_memory", *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return Served(process, json.loads(process.stdout.readline()), home)


@contextmanager
def serving(home: Path, *options: str, files: int = 0) -> Iterator[Served]:
    """A server for the time of a block; it must end cleanly unless the block ended it."""
    served = start(home, *options, files=files)
    try:
        yield served
    finally:
        if served.process.poll() is None:
            assert served.stop() == 0
        assert served.process.stdout is not None
        served.process.stdout.close()


def through_shim(home: Path, *arguments: str, stdin: str = "", **environment: str) -> str:
    """What the shim prints; it must succeed in silence."""
    done = subprocess.run(
        [*SHIM, "--home", str(home), *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def prompt(text: str, session: str = "s1") -> str:
    event = {"session_id": session, "hook_event_name": "UserPromptSubmit", "prompt": text}
    return json.dumps(event)


def context(answer: str) -> str:
    """What a hook's answer puts before the model."""
    found = json.loads(answer) if answer else {}
    return str(found.get("hookSpecificOutput", {}).get("additionalContext", ""))
