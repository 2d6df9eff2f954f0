"""The shim: the same answers with a server and without one, whatever state the server is in."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from serving import SHIM, context, prompt, serving, through_shim

from nanoclaw_memory.interfaces import shim
from nanoclaw_memory.interfaces.mcp.texts import CORE, MORE
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.private import locked
from nanoclaw_memory.types import Scope


@pytest.fixture
def anyio_backend():
    return "asyncio"


def stock(home):
    """Something in every layer that hooks read, without a model."""
    with Memory.open(home) as memory:
        memory.init()
        memory.graph.upsert("Keystone", "port", "3000", "project")
        memory.store("Prefers tea", "preference")
        memory.write("Chose SQLite", "decision", 0.9)
    with Memory.open(home, Scope("work")) as work:
        work.init()
        work.graph.upsert("Vault", "opens_with", "plum blossom")
    return home


@pytest.fixture
def stocked(home):
    """A home without a server."""
    return stock(home)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The same with one."""
    with serving(stock(tmp_path_factory.mktemp("shim") / "home"), "--no-http", "--no-upkeep") as found:
        yield found.home


EVENTS = [
    ("session-start", {"source": "startup"}),
    ("session-start", {"source": "resume"}),
    ("SessionStart", {"source": "compact"}),
    ("user-prompt-submit", {"prompt": "What port does Keystone run on?"}),
    ("user-prompt-submit", {"prompt": "What is seven times eight?"}),
    ("user-prompt-submit", {"prompt": ""}),
    ("user-prompt-submit", {"prompt": 7}),
    ("BeforeAgent", {"prompt": "What port does Keystone run on?"}),
    ("beforeSubmitPrompt", {"cursor_version": "3", "prompt": "hello"}),
    ("sessionStart", {"cursor_version": "3"}),
    ("stop", {"last_assistant_message": "3000"}),
    ("pre-compact", {"transcript_path": "/no/such/file"}),
    ("session-end", {}),
    ("no-such-event", {}),
]


def unmarked(answer):
    """An answer without the random marks at the ends of its blocks."""
    import re

    return re.sub(r"(\[/[A-Z ]+) [0-9a-f]{8}\]", r"\1]", answer)


def test_hooks_give_the_same_answers_with_and_without_a_server(stocked, served):
    def ask_all(home):
        return [
            unmarked(
                through_shim(
                    home,
                    *options,
                    "hook",
                    name,
                    stdin=json.dumps({"session_id": "same", "hook_event_name": name, **fields}),
                )
            )
            for options in ((), ("--shared",), ("--group", "work"))
            for name, fields in EVENTS
        ]

    cold, warm = ask_all(stocked), ask_all(served)
    assert [json.loads(answer) if answer else {} for answer in warm] == [
        json.loads(answer) if answer else {} for answer in cold
    ]
    assert any("Keystone.port = 3000" in answer for answer in warm)


@pytest.mark.parametrize("stdin", ["", "not json", "[]", "null", "{" * 5000, "\x00", '{"session_id": ["x"]}'])
def test_malformed_input_is_met_with_silence_through_the_server_too(served, stdin):
    assert through_shim(served, "hook", "no-such-event", stdin=stdin) == ""
    assert through_shim(served, "hook", "user-prompt-submit", stdin=stdin) == ""


def test_a_prompt_of_five_megabytes_passes_and_one_of_nine_is_met_with_silence(served):
    asked = prompt("What port does Keystone run on? " + "x " * 2_500_000)
    assert "Keystone" in context(through_shim(served, "hook", "user-prompt-submit", stdin=asked))
    assert through_shim(served, "hook", "user-prompt-submit", stdin=prompt("x" * 9_000_000)) == ""
    assert "# Soul" in context(through_shim(served, "hook", "session-start", stdin="{}"))


def test_a_hook_sees_the_group_it_was_installed_for_and_no_other(served):
    asked = prompt("What does the Vault open with?")
    own = through_shim(served, "--group", "work", "hook", "user-prompt-submit", stdin=asked)
    assert "plum blossom" in own
    for options in ((), ("--group", "../work"), ("--group", "../groups/work"), ("--group", "nowhere")):
        assert "plum" not in through_shim(served, *options, "hook", "user-prompt-submit", stdin=asked)
    # The payload cannot choose: only the command that a person installed names the group.
    forged = json.dumps({**json.loads(asked), "group": "work", "scope": {"group": "work"}})
    assert "plum" not in through_shim(served, "hook", "user-prompt-submit", stdin=forged)


@pytest.mark.parametrize("more", ["", ":", ":.", ":/nowhere:./"])
def test_nothing_is_imported_from_the_directory_in_which_a_client_runs(stocked, tmp_path, more):
    (tmp_path / "msgspec.py").write_text("raise SystemExit('a module of the project was run')")
    command = [*SHIM, "--home", str(stocked), "status"]
    environment = {**os.environ, "PYTHONPATH": f"{os.environ.get('PYTHONPATH', '')}{more}"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, env=environment)
    assert (done.returncode, done.stderr) == (0, "")


def test_our_own_child_agents_are_not_answered(served):
    asked = prompt("What port does Keystone run on?")
    assert through_shim(served, "hook", "user-prompt-submit", stdin=asked, NANOCLAW_NO_HOOKS="1") == ""


def test_settings_in_the_environment_go_round_the_server(served):
    asked = prompt("What port does Keystone run on?")
    name = "NANOCLAW_PLUGINS_ENTRIES_GRAPH_MEMORY_ENABLED"
    silent = through_shim(served, "hook", "user-prompt-submit", stdin=asked, **{name: "false"})
    assert "GRAPH MEMORY" not in silent


def test_the_command_itself_uses_the_server_when_it_is_there(stocked, ncm_process):
    with serving(stocked, "--no-http") as served:
        served.process.send_signal(signal.SIGSTOP)  # a server that hangs costs patience, never the answer
        try:
            slow = through_shim(stocked, "hook", "session-start", stdin="{}")
        finally:
            served.process.send_signal(signal.SIGCONT)
        quick = ncm_process("hook", "session-start", stdin="{}")
    assert "# Soul" in context(slow)
    assert unmarked(quick.out) == unmarked(slow)


def liar(path, answer):
    """Something that listens like a server and answers wrongly."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()

    def lie():
        while True:
            try:
                visitor = listening.accept()[0]
            except OSError:
                return
            with visitor:
                while visitor.recv(65536):
                    pass
                visitor.sendall(answer)

    threading.Thread(target=lie, daemon=True).start()
    return listening


@pytest.mark.parametrize("answer", [b"", b"12", b"99\n{}", b"x\n{}", b"-1\n", b"\n\n"])
def test_half_an_answer_is_no_answer(stocked, answer):
    listening = liar(stocked / "ncm.sock", answer)
    try:
        found = through_shim(stocked, "hook", "user-prompt-submit", stdin=prompt("Keystone port?"))
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
    assert "Keystone.port = 3000" in context(found)


@pytest.mark.parametrize("name", ["continuity.db-lock", "spool/drain.lock", "spool/spool.jsonl"])
def test_a_hook_waits_for_no_other_process_and_loses_nothing(stocked, name):
    with Memory.open(stocked, Scope(session_id="s1")) as memory:
        memory.after_turn("Hello", "Hi")
        memory.conversations.note("prompt", "The staging database is quartz")
        memory.conversations.note("answer", "Noted")
        with locked(stocked / "data" / name):
            asked = prompt("What port does Keystone run on?")
            found = through_shim(stocked, "hook", "user-prompt-submit", stdin=asked)
            stop = json.dumps({"session_id": "s1", "last_assistant_message": "3000"})
            assert through_shim(stocked, "hook", "stop", stdin=stop) == ""
        assert "Keystone.port = 3000" in context(found)
        memory.conversations.drain()
        said = [one.user_message for one in memory.conversations.session("s1")]
    assert said == ["Hello", "The staging database is quartz", "What port does Keystone run on?"]


@pytest.mark.parametrize("command", [SHIM, [sys.executable, "-m", "nanoclaw_memory"]])
@pytest.mark.parametrize("where", ["stocked", "served"])
def test_a_client_that_never_closes_its_end_is_answered_all_the_same(where, command, request):
    home = request.getfixturevalue(where)
    arguments = [
        *command,
        "--home",
        str(home),
        "--session",
        f"{where}{len(command)}",
        "hook",
        "session-start",
    ]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asking:
        asking.stdin.write("{}")
        asking.stdin.flush()
        assert "# Soul" in context(asking.stdout.read())
        assert asking.wait(60) == 0


def test_a_hook_that_waits_for_ever_ends_in_silence(stocked, monkeypatch):
    code = (
        "from nanoclaw_memory.interfaces import hooks, shim; import time; "
        "hooks.OTHER_SECONDS = 0.1; hooks.run = lambda request, **more: time.sleep(3600); "
        "hooks.run_and_exit(shim.parse(['hook', 'stop']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_hook_in_which_no_thread_gets_its_turn_ends_and_blocks_nothing():
    code = (
        "from nanoclaw_memory.interfaces import hooks, shim; import re, threading; hooks.OTHER_SECONDS = 0.1; "
        "endless = threading.Thread(target=lambda: re.match('(?:a|a)*b', 'a' * 60), daemon=True); "
        "hooks.run = lambda request, **more: (endless.start(), endless.join()); "
        "hooks.run_and_exit(shim.parse(['hook', 'user-prompt-submit']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert done.returncode != 2  # with which a hook forbids the prompt
    assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.parametrize("through", ["shim", "command"])
def test_a_server_that_answers_too_late_costs_no_block_and_notes_the_prompt_once(
    stocked, through, ncm_process
):
    asked = prompt("What port does Keystone run on?")
    with Memory.open(stocked, Scope(session_id="s1")) as server:
        socket_of_a_slow_one = liar(stocked / "ncm.sock", b"")  # it has worked, and its answer is lost
        try:
            turn = server.before_turn("What port does Keystone run on?")
            server.conversations.note("prompt", "What port does Keystone run on?")
            if through == "shim":
                found = through_shim(stocked, "hook", "user-prompt-submit", stdin=asked)
            else:
                found = ncm_process("hook", "user-prompt-submit", stdin=asked).out
        finally:
            socket_of_a_slow_one.shutdown(socket.SHUT_RDWR)
            socket_of_a_slow_one.close()
    assert "Keystone.port = 3000" in turn.text
    assert "Keystone.port = 3000" in context(found)
    spooled = "".join(path.read_text() for path in (stocked / "data/spool").glob("*.jsonl"))
    assert spooled.count("What port does Keystone run on?") == 1


def test_a_server_that_hangs_is_waited_for_once_and_the_next_hooks_answer_without_it(stocked, monkeypatch):
    monkeypatch.setattr(shim, "TIMEOUT", 0.2)
    hanging = socket.socket(socket.AF_UNIX)  # it accepts, and never answers
    hanging.bind(str(stocked / "ncm.sock"))
    hanging.listen()
    request = shim.parse(["--home", str(stocked), "hook", "user-prompt-submit"])
    conversation = shim.parse(["--home", str(stocked), "mcp"])
    try:
        asked = shim.connect(request)
        assert asked is not None
        assert shim.ask(asked, request, b"{}") is None
        assert shim.connect(request) is None
        assert shim.connect(conversation) is not None
        mark = stocked / "ncm.sock.hangs"
        old = time.time() - shim.HANGS_SECONDS - 1
        os.utime(mark, (old, old))
        assert shim.connect(request) is not None
    finally:
        hanging.close()


def test_a_server_that_takes_the_place_of_a_hanging_one_is_asked_at_once(stocked):
    (stocked / "ncm.sock.hangs").write_text("")
    before = time.time() - 5
    os.utime(stocked / "ncm.sock.hangs", (before, before))
    with socket.socket(socket.AF_UNIX) as fresh:
        fresh.bind(str(stocked / "ncm.sock"))
        fresh.listen()
        assert shim.connect(shim.parse(["--home", str(stocked), "hook", "stop"])) is not None


def test_a_plain_file_in_the_sockets_place_is_no_server(stocked):
    (stocked / "ncm.sock").write_text("")
    assert "# Soul" in context(through_shim(stocked, "hook", "session-start", stdin="{}"))


def test_the_shim_imports_nothing_that_costs_time():
    code = (
        "import sys; sys.argv = ['shim']; before = set(sys.modules); "
        f"exec(compile(open({shim.__file__!r}).read(), 'shim', 'exec'), {{'__name__': 'shim'}}); "
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(done.stdout.replace("'", '"')))
    assert not loaded & {
        "json",
        "re",
        "socket",
        "pathlib",
        "site",
        "typing",
        "subprocess",
        "asyncio",
        "hashlib",
    }


def test_the_installed_command_answers_a_hook_without_the_command_line_library(stocked):
    code = (
        "import sys; from nanoclaw_memory.__main__ import main; "
        f"sys.argv = ['ncm', '--home', {str(stocked)!r}, 'hook', 'session-start']; main()"
    )
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code], input="{}", capture_output=True, text=True
    )
    assert "# Soul" in context(done.stdout)
    assert "click" not in done.stderr
    scripts = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["scripts"]
    assert set(scripts.values()) == {"nanoclaw_memory.__main__:main"}


def test_without_a_server_the_shim_answers_a_hook_itself_and_python_starts_once(stocked, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    command = [sys.executable, "-X", "importtime", "-I", "-S", shim.__file__, "--home", str(stocked)]
    done = subprocess.run([*command, "hook", "session-start"], input="{}", capture_output=True, text=True)
    assert "# Soul" in context(done.stdout)
    assert "nanoclaw_memory.interfaces.hooks" in done.stderr  # a second process would report nothing
    for seldom in ("ipaddress", "platform", "textwrap", "msgspec.inspect", "ast"):
        assert f" {seldom}\n" not in done.stderr


def test_a_prompt_hook_leaves_talk_to_the_sessions_end(stocked):
    def hook(event: str, **payload: str) -> None:
        through_shim(stocked, "hook", event, stdin=json.dumps({"session_id": "s", **payload}))

    hook("user-prompt-submit", prompt="My dentist is Dr. Amara Quill.")
    hook("stop", last_assistant_message="Noted.")
    hook("user-prompt-submit", prompt="Thanks!")
    with Memory.open(stocked) as memory:
        assert "Quill" not in str(memory.group.graph.search("Who is my dentist?"))
    hook("session-end", reason="other")
    with Memory.open(stocked) as memory:
        assert "Quill" in str(memory.group.graph.search("Who is my dentist?"))


@pytest.mark.parametrize(
    "arguments",
    [["hook"], ["mcp", "--json"], ["--set", "a=b", "hook", "stop"], ["search", "x"], [], ["hook", "a", "b"],
     ["--home"], ["hook", "a\nb"], ["--session", "a\nb", "hook", "stop"]],
)  # fmt: skip
def test_what_the_shim_does_not_know_is_left_to_the_command(arguments):
    assert shim.parse(arguments) is None


def test_the_shim_reads_the_options_that_install_writes(monkeypatch):
    for words in (
        ["--home", "/h", "--group", "g", "--shared", "--session", "s", "hook", "stop"],
        ["hook", "stop", "--shared", "--home=/h", "--group=g", "--session=s"],
    ):
        request = shim.parse(words)
        assert request is not None
        assert (request.home, request.group, request.session, request.shared) == ("/h", "g", "s", True)
        assert (request.kind, request.argument) == ("hook", "stop")
    monkeypatch.setenv("NANOCLAW_GROUP", "work")
    request = shim.parse(["mcp", "--tools", "all"])
    assert request is not None
    assert (request.group, request.argument) == ("work", "all")


# ---- MCP ----


def parameters(home, *options):
    environment = {name: value for name, value in os.environ.items() if name != "NANOCLAW_HOME"}
    return StdioServerParameters(
        command=SHIM[0], args=[*SHIM[1:], "--home", str(home), *options], env=environment
    )


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("with_server", [True, False])
async def test_an_mcp_client_gets_the_same_with_and_without_a_server(stocked, served, mode, with_server):
    home = served if with_server else stocked

    async def ask():
        async with Client(parameters(home, "mcp", "--tools", "all"), mode=mode) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            fact = await client.call_tool("graph_search", {"query": "What port does Keystone run on?"})
            refused = await client.call_tool("memory_get", {"file": "../../etc/passwd"})
            missing = await client.call_tool("memory_delete", {"id": "mem-nosuch"})
            soul = (await client.read_resource("memory://soul")).contents[0].text
            stored = await client.call_tool("memory_store", {"type": "fact", "content": f"Kettle {mode}"})
            assert not stored.is_error
            found = await client.call_tool("memory_search", {"query": "Kettle", "type": "fact"})
            assert " · agent · today]" in found.content[0].text
            return names, fact.content[0].text, refused.content[0].text, missing.content[0].text, soul

    names, fact, refused, missing, soul = await ask()
    assert len(names) == len({*CORE, *MORE})
    assert "Keystone.port = 3000" in fact
    assert "outside the memory" in refused
    assert missing
    assert soul.startswith("# Soul")


@pytest.mark.anyio
async def test_fifty_calls_at_once_through_the_shim_all_answer(served):
    import anyio

    async with Client(parameters(served, "mcp")) as client:
        results = []

        async def one(number):
            results.append(await client.call_tool("memory_write", {"content": f"line {number}"}))

        async with anyio.create_task_group() as group:
            for number in range(50):
                group.start_soon(one, number)
    assert sum(not result.is_error for result in results) == 50


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_conversation_goes_on_when_its_server_is_killed(stocked, mode):
    with serving(stocked, "--no-http", "--no-upkeep") as running:
        async with Client(parameters(stocked, "mcp"), mode=mode) as client:
            before = await client.call_tool("graph_search", {"query": "Keystone port"})
            running.stop(signal.SIGKILL)
            after = await client.call_tool("graph_search", {"query": "Keystone port"})
            written = await client.call_tool("memory_write", {"content": "written without it"})
    assert after.content[0].text == before.content[0].text
    assert not written.is_error


def test_calls_that_a_killed_server_took_are_answered_with_an_error(stocked):
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(stocked / "ncm.sock"))
    listening.listen()
    with subprocess.Popen(
        [*SHIM, "--home", str(stocked), "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout
        visitor = listening.accept()[0]
        call = {"jsonrpc": "2.0", "id": 'a"7', "method": "tools/call", "params": {"name": "memory_write"}}
        process.stdin.write(json.dumps(call).encode() + b"\n")
        process.stdin.flush()
        while b"memory_write" not in visitor.recv(65536):
            pass
        visitor.sendall(b'{"jsonrpc": "2.0", "id": "half an ans')
        listening.close()
        visitor.close()
        answer = json.loads(process.stdout.readline())
        process.stdin.close()
        assert process.wait(30) == 0
    assert answer["id"] == 'a"7'
    assert "stopped" in answer["error"]["message"]


def test_a_correction_is_learnt_after_the_session_though_no_server_runs_and_the_client_waits_for_nothing(
    stocked,
):
    def said(event, **payload):
        given = json.dumps({"session_id": "s1", **payload})
        return through_shim(stocked, "hook", event, stdin=given)

    said("user-prompt-submit", prompt="Write the release mail to our customers")
    said("stop", last_assistant_message="Hey folks!! 🎉🎉 Our shiny new release 4.2 is out!! 🚀")
    said(
        "user-prompt-submit",
        prompt="the exclamation marks and emojis make us look like teenagers, spare me those",
    )
    said("stop", last_assistant_message="Here is a sober version.")
    with Memory.open(stocked) as memory:
        assert not memory.lessons.lessons()  # no rule knows these words
    said("session-end")  # ends although what it set going has only begun
    until = time.monotonic() + 60
    learnt = ()
    while not learnt and time.monotonic() < until:
        time.sleep(0.2)
        with Memory.open(stocked) as memory:
            learnt = memory.lessons.lessons()
    assert ["exclamation marks" in one.lesson for one in learnt] == [True]
