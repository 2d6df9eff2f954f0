"""Agents on other machines: a thin client over TLS, and what happens while its server is away."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from serving import SHIM, Served, serving, start

PROMPT = {"session_id": "s-1", "prompt": "Which port does Keystone use?", "cwd": "/somewhere/keystone"}


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    subject = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
    words = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    subprocess.run(
        ["openssl", *words, "-keyout", str(key), "-out", str(cert), *subject], check=True, capture_output=True
    )
    return cert, key


class Laptop:
    """A thin client of a server."""

    def __init__(self, home: Path, served: Served, ca: Path) -> None:
        self.home = home
        self.served = served
        self.ca = ca
        self.url = served.url.replace("127.0.0.1", "localhost")

    def run(self, *words: str, stdin: str = "", code: int | None = 0) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "nanoclaw_memory", "--home", str(self.home), *words]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60)
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done

    def json(self, *words: str, code: int | None = 0) -> Any:
        return json.loads(self.run("--json", *words, code=code).stdout)

    def connect(self, token: str, code: int = 0, url: str = "") -> subprocess.CompletedProcess[str]:
        words = ["connect", url or self.url, "--token", token, "--ca", str(self.ca), "--connect-ms", "2000"]
        return self.run(*words, code=code)

    def hook(self, event: str, **payload: Any) -> Any:
        done = subprocess.run(
            [*SHIM, "--home", str(self.home), "hook", event],
            input=json.dumps(payload),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0
        assert done.stderr == ""
        return json.loads(done.stdout) if done.stdout else None

    def say(self, question: str, answer: str) -> None:
        self.hook("UserPromptSubmit", **{**PROMPT, "prompt": question})
        self.hook("Stop", session_id="s-1", last_assistant_message=answer)

    def findings(self) -> str:
        return json.dumps(self.json("doctor", code=None)["findings"])


def ncm(home: Path, *words: str) -> Any:
    command = [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), "--json", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificate(tmp_path_factory.mktemp("tls"), "localhost")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, files: tuple[Path, Path]) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("server") / "home"
    tls = ("--tls-cert", str(files[0]), "--tls-key", str(files[1]))
    with serving(home, "--no-upkeep", "--host", "memory.example.org", *tls) as found:
        ncm(home, "init", "--group", "work")
        ncm(home, "graph", "add", "Keystone", "port", "4711", "--group", "work")
        yield found


@pytest.fixture
def token(served: Served) -> dict[str, str]:
    made: dict[str, str] = ncm(served.home, "token", "new", "--group", "work", "--name", "laptop")
    return made


@pytest.fixture
def laptop(tmp_path: Path, served: Served, files: tuple[Path, Path], token: dict[str, str]) -> Laptop:
    machine = Laptop(tmp_path / "thin", served, files[0])
    machine.connect(token["token"])
    return machine


def said(served: Served) -> list[tuple[str, str]]:
    sessions = ncm(served.home, "sessions", "list", "--group", "work")["sessions"]
    found = []
    for session in sessions:
        shown = ncm(served.home, "sessions", "show", session["session_id"], "--group", "work")
        found += [(one["user_message"], one["agent_response"]) for one in shown["exchanges"]]
    return found


def test_hooks_go_to_the_server_and_leave_no_memory_here(laptop: Laptop, served: Served) -> None:
    context = laptop.hook("UserPromptSubmit", **PROMPT)["hookSpecificOutput"]
    assert context["hookEventName"] == "UserPromptSubmit"
    assert "4711" in context["additionalContext"]
    laptop.hook("Stop", session_id="s-1", last_assistant_message="Keystone listens on 4711.")
    assert ("Which port does Keystone use?", "Keystone listens on 4711.") in said(served)
    assert not (laptop.home / "workspace").exists()
    assert not (laptop.home / "data").exists()
    assert {path.name for path in laptop.home.iterdir()} <= {"remote.json", "remote-spool"}
    assert (laptop.home / "remote.json").stat().st_mode & 0o077 == 0


def test_commands_go_to_the_server_with_the_origin_of_the_token(laptop: Laptop, served: Served) -> None:
    laptop.run("write", "Chose Rust for Lanterna", "--tag", "decision")
    assert "Chose Rust" in str(laptop.json("search", "Lanterna"))
    assert laptop.json("graph", "search", "Keystone port")["hits"][0]["value"] == "4711"
    stored = laptop.json("entries", "store", "The kettle is blue", "--type", "fact")
    assert "kettle" in str(laptop.json("recall", "kettle"))
    shown = ncm(served.home, "entries", "show", stored["id"], "--group", "work")
    assert shown["entry"]["provenance"]["origin"] == "agent"
    assert stored["id"] in str(laptop.json("entries", "list"))
    assert "Chose Rust" in str(laptop.json("log"))
    laptop.run("graph", "add", "Lanterna", "language", "Rust")
    assert laptop.json("graph", "history", "Lanterna")["facts"][0]["value"] == "Rust"
    assert "4711" in str(laptop.json("turn", "Which port does Keystone use?"))
    refused = laptop.run("forget", "Keystone", "--yes", code=2)
    assert "thin client" in refused.stderr
    assert not (laptop.home / "workspace").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("brief", "--provenance"),
        ("boot",),
        ("get", "MEMORY.md"),
        ("log",),
        ("search", "Keystone"),
        ("recall", "Keystone"),
        ("project", "list"),
        ("runbook", "list"),
        ("policy", "list"),
        ("policy", "check", "deploy on a Friday"),
        ("entries", "list", "--status", "all"),
        ("sessions", "list"),
        ("sessions", "search", "Keystone"),
        ("lessons", "list"),
        ("graph", "search", "Keystone port", "--no-bump"),
        ("graph", "query", "MATCH (a)-[r]->(b) RETURN a, r, b"),
        ("graph", "top"),
        ("graph", "list"),
        ("graph", "history", "Keystone"),
        ("graph", "show", "Keystone"),
    ],
    ids=" ".join,
)
def test_a_command_prints_here_what_it_prints_there(
    laptop: Laptop, served: Served, words: tuple[str, ...]
) -> None:
    def shown(result: Any) -> Any:
        return {name: value for name, value in result.items() if name not in ("took_ms", "generated_at")}

    here, there = laptop.json(*words), ncm(served.home, "--group", "work", *words)
    assert sorted(shown(here)) == sorted(shown(there))
    assert here.get("facts", here.get("entries")) == there.get("facts", there.get("entries"))


def test_mcp_goes_to_the_server(laptop: Laptop) -> None:
    opening = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    calls = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
         "params": {"name": "graph_search", "arguments": {"query": "Keystone port"}}},
    ]  # fmt: skip
    done = laptop.run("mcp", "--tools", "all", stdin="".join(json.dumps(one) + "\n" for one in calls))
    answers = {one["id"]: one for one in map(json.loads, done.stdout.splitlines())}
    assert "4711" in json.dumps(answers[2]["result"])


def test_a_client_may_be_installed_without_a_memory_here(laptop: Laptop) -> None:
    laptop.run("install", "claude-code")
    assert not (laptop.home / "workspace").exists()


def test_a_path_of_a_remote_client_is_not_read_on_the_server(
    laptop: Laptop, served: Served, tmp_path: Path
) -> None:
    bait = tmp_path / "transcript.jsonl"
    line = {"type": "user", "sessionId": "s-9", "message": {"role": "user", "content": "Bait Xanadu"}}
    bait.write_text(json.dumps(line) + "\n")
    import httpx2

    headers = {"Authorization": f"Bearer {json.loads((laptop.home / 'remote.json').read_text())['token']}"}
    with httpx2.Client(
        base_url=laptop.url, headers=headers, verify=ssl.create_default_context(cafile=laptop.ca)
    ) as client:
        body = {"session_id": "s-9", "transcript_path": str(bait), "cwd": "/etc"}
        assert client.post("/api/v1/hooks/PreCompact", json=body).status_code == 200
    assert "Xanadu" not in str(ncm(served.home, "sessions", "search", "Xanadu", "--group", "work"))


# ---- away, and back ----


def test_what_is_said_while_the_server_is_away_comes_once(tmp_path: Path, files: tuple[Path, Path]) -> None:
    home = tmp_path / "server"
    tls = ("--tls-cert", str(files[0]), "--tls-key", str(files[1]), "--no-upkeep")
    served = start(home, *tls)
    port = served.url.rpartition(":")[2]
    ncm(home, "init", "--group", "work")
    laptop = Laptop(tmp_path / "thin", served, files[0])
    laptop.connect(ncm(home, "token", "new", "--group", "work")["token"])
    laptop.hook("UserPromptSubmit", **{**PROMPT, "prompt": "Asked while it was there"})
    assert served.stop() == 0

    laptop.hook("Stop", session_id="s-1", last_assistant_message="Answered when it was gone")
    laptop.say("What about the ferry?", "It leaves at nine.")
    assert "silent" in laptop.findings()
    assert "2 exchanges wait" in laptop.findings()
    before = {path.name: path.read_bytes() for path in (laptop.home / "remote-spool").iterdir()}

    command = [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), "--json", "serve"]
    again = subprocess.Popen(
        [*command, "--port", port, "--no-watch", *tls], stdout=subprocess.PIPE, text=True
    )
    assert again.stdout is not None
    again.stdout.readline()
    try:
        assert laptop.json("connect")["delivered"] == 2
        assert laptop.json("connect")["waiting"] == 0
        for name, text in before.items():  # the same spool once more
            (laptop.home / "remote-spool" / name).write_bytes(text)
        assert laptop.json("connect")["delivered"] == 2
    finally:
        again.terminate()
        again.wait(30)
    assert sorted(said(served)) == [
        ("Asked while it was there", "Answered when it was gone"),
        ("What about the ferry?", "It leaves at nine."),
    ]


def test_a_server_that_does_not_answer_costs_a_hook_its_limit_once(laptop: Laptop) -> None:
    silent = socket.socket()
    silent.bind(("127.0.0.1", 0))
    silent.listen(0)  # accepts, and says nothing
    told = json.loads((laptop.home / "remote.json").read_text())
    told |= {"url": f"https://localhost:{silent.getsockname()[1]}", "connect_ms": 200}
    (laptop.home / "remote.json").write_text(json.dumps(told))
    assert laptop.hook("UserPromptSubmit", **PROMPT) is None
    assert (laptop.home / "remote-away").exists(), "the next hooks do not ask it"
    silent.close()


@pytest.mark.parametrize("alive", [True, False])
def test_a_slow_server_is_waited_for_if_it_gives_a_sign_of_life(laptop: Laptop, alive: bool) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    answer = b'{"systemMessage": "late"}'

    def serve() -> None:
        with server, server.accept()[0] as client:
            client.recv(65536)
            if alive:
                client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            time.sleep(2.2)
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(answer), answer))

    threading.Thread(target=serve, daemon=True).start()
    told = json.loads((laptop.home / "remote.json").read_text())
    told |= {"url": f"http://127.0.0.1:{server.getsockname()[1]}", "connect_ms": 2_000}
    (laptop.home / "remote.json").write_text(json.dumps(told))
    found = laptop.hook("UserPromptSubmit", **PROMPT)
    assert (found == {"systemMessage": "late"}) is alive
    assert (laptop.home / "remote-away").exists() is not alive


def test_a_revoked_token_ends_at_once_and_what_is_said_waits(
    laptop: Laptop, served: Served, token: dict[str, str]
) -> None:
    laptop.say("Before the end", "Yes.")
    ncm(served.home, "token", "revoke", token["id"])
    assert laptop.hook("UserPromptSubmit", **PROMPT) is None
    laptop.hook("Stop", session_id="s-1", last_assistant_message="After the end")
    assert "does not accept the token" in laptop.findings()
    assert "1 exchange wait" in laptop.findings()
    laptop.connect(ncm(served.home, "token", "new", "--group", "work")["token"])
    assert laptop.json("connect")["delivered"] == 1
    assert ("Which port does Keystone use?", "After the end") in said(served)


def test_doctor_says_that_the_clocks_differ(tmp_path: Path) -> None:
    class Ahead(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"ok": true}')

        def date_time_string(self, timestamp: float | None = None) -> str:
            return formatdate(time.time() + 300, usegmt=True)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Ahead)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = tmp_path / "thin"
    home.mkdir()
    (home / "remote.json").write_text(
        json.dumps({"url": f"http://127.0.0.1:{server.server_port}", "token": "x"})
    )
    command = [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), "doctor"]
    done = subprocess.run(command, capture_output=True, text=True)
    server.shutdown()
    assert "clock is 5 minutes behind the server's" in done.stdout


# ---- what is refused ----


def test_a_wrong_token_address_or_certificate_connects_nothing(
    tmp_path: Path, served: Served, files: tuple[Path, Path], token: dict[str, str]
) -> None:
    laptop = Laptop(tmp_path / "thin", served, files[0])
    assert "does not know this token" in laptop.connect("ncm_00000000_" + "x" * 43, code=2).stderr
    assert "plain http" in laptop.connect(token["token"], code=2, url="http://memory.example.org").stderr
    assert "cannot be reached" in laptop.connect(token["token"], code=1, url="https://localhost:1").stderr
    laptop.ca = certificate(tmp_path, "localhost")[0]
    assert "--ca FILE" in laptop.connect(token["token"], code=1).stderr
    laptop.ca = files[0]
    other_name = served.url  # 127.0.0.1 is not in the certificate
    assert "certificate" in laptop.connect(token["token"], code=1, url=other_name).stderr
    assert not (laptop.home / "remote.json").exists()


def test_a_home_with_a_memory_does_not_become_a_thin_client(
    served: Served, files: tuple[Path, Path], token: dict[str, str], tmp_path: Path
) -> None:
    laptop = Laptop(tmp_path / "own", served, files[0])
    laptop.run("init")
    assert "memory of its own" in laptop.connect(token["token"], code=2).stderr


def test_other_machines_get_neither_the_page_nor_the_owners_rights(
    served: Served, files: tuple[Path, Path]
) -> None:
    import httpx2

    told = {"Host": "memory.example.org", "Authorization": f"Bearer {served.token}"}
    with httpx2.Client(base_url=served.url, verify=False) as client:
        assert client.get("/healthz", headers={"Host": "memory.example.org"}).status_code == 200
        assert client.get("/api/v1/status", headers=told).status_code == 403
        assert client.get("/", headers={"Host": "memory.example.org"}).status_code == 403
        assert client.get("/api/v1/brief", headers={**told, "Host": "evil.example.org"}).status_code == 421


def test_metrics_are_for_the_owner(served: Served, token: dict[str, str]) -> None:
    import httpx2

    with httpx2.Client(base_url=served.url, verify=False) as client:
        own = {"Authorization": f"Bearer {served.token}"}
        client.get("/api/v1/search?query=x", headers=own)
        text = client.get("/metrics", headers=own).text
        assert 'nanoclaw_requests_total{place="search",method="GET",status="200"}' in text
        assert 'nanoclaw_request_seconds_bucket{place="search",le="+Inf"}' in text
        assert 'nanoclaw_spool_waiting{group="work"} 0' in text
        assert 'nanoclaw_job_due{group="main"' in text
        agent = {"Authorization": f"Bearer {token['token']}"}
        assert client.get("/metrics", headers=agent).status_code == 403
        assert client.get("/metrics").status_code == 401
