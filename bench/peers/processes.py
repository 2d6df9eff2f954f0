"""Programs beside this one: what they take of the machine, and two ways to talk to them."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """CPU of all processes under this one: the ended ones and those that still run."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Fields 11 to 14 after the name: user and system time, its own and that of its ended children.
    ticks = sum(sum(map(int, _stat(pid)[11:15])) for pid in _below(os.getpid()))
    return ended.ru_utime + ended.ru_stime + ticks / TICK


def resident_mb(process: int) -> float:
    """Resident memory of a process and all under it."""
    return sum(_resident(pid) for pid in [process, *_below(process)]) / 1024


def _resident(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)


def _below(process: int) -> list[int]:
    parents = {int(path.name): int(_stat(int(path.name))[1]) for path in Path("/proc").glob("[0-9]*")}
    found = [process]
    for one in found:
        found += [pid for pid, parent in parents.items() if parent == one]
    return found[1:]


def _stat(pid: int) -> list[str]:
    """The fields after the name, which may hold blanks; those of a process that has just ended are zero."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["0"] * 50


class Program:
    """A program that reads a line of JSON and answers with one."""

    def __init__(self, command: Sequence[str | Path], env: Mapping[str, str], log: Path) -> None:
        self.log = log
        with log.open("w") as errors:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                env=dict(env),
                cwd=env["HOME"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def ask(self, request: Mapping[str, Any]) -> Any:
        self.send(request)
        return self.read()

    def send(self, request: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def read(self) -> Any:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):  # a library may print
                return json.loads(line)
        raise RuntimeError(self.log.read_text()[-2000:] or "it ended without a word")

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class McpServer(Program):
    """An MCP server on its standard input and output."""

    def __init__(self, command: Sequence[str | Path], env: Mapping[str, str], log: Path) -> None:
        super().__init__(command, env, log)
        self.last = 0
        me = {"name": "bench", "version": "1"}
        self.request("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=me)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(self, method: str, **params: Any) -> Any:
        self.last += 1
        self.send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        while (answer := self.read()).get("id") != self.last:
            pass  # a notification
        if "error" in answer:
            raise RuntimeError(answer["error"]["message"])
        return answer["result"]

    def tool(self, name: str, **arguments: Any) -> Any:
        """What a client shows of a result: the structured content where there is one, else the text."""
        result = self.request("tools/call", name=name, arguments=arguments)
        parts = (part.get("resource", part) for part in result["content"])  # a text, or a file with its text
        text = "\n".join(part.get("text", "") for part in parts)
        if result.get("isError"):
            raise RuntimeError(text[:2000])
        return result.get("structuredContent") or text
