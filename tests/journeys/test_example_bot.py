"""The example bot: two groups, restart, a task, a model behind an endpoint, a socket."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

BOT = Path(__file__).parents[2] / "examples" / "bot.py"


def talk(home: Path, *lines: str, options: tuple[str, ...] = ()) -> str:
    done = subprocess.run(
        [sys.executable, str(BOT), "--home", str(home), *options],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_group_remembers_across_restarts_and_the_other_knows_nothing(home: Path) -> None:
    first = talk(
        home, "family: @Andy remember that Rex is our dog", "work: @Andy who is Rex?", "family: not you"
    )
    assert first.splitlines() == [
        "[family] Andy: I will remember that.",
        "[work] Andy: I know nothing about that in this group.",
    ]
    second = talk(home, "family: @Andy who is Rex?", "work: @Andy who is Rex?")
    assert "(family goes on with session family-" in second
    assert "[family] Andy: I remember: Rex is our dog" in second
    assert "[work] Andy: I know nothing about that in this group." in second


def test_a_task_of_a_group_speaks_in_that_group(home: Path) -> None:
    talk(home, "work: @Andy every 1s stretch your legs")
    for _ in range(20):  # it may take another second until it is due
        shown = talk(home, "family: hello")
        if "Reminder" in shown:
            break
    assert "[work] Andy: Reminder: stretch your legs" in shown
    assert "[family] Andy" not in shown


def test_the_model_gets_the_groups_memory_and_not_the_others(home: Path, httpserver: HTTPServer) -> None:
    asked: list[str] = []

    def answer(request: Request) -> Response:
        asked.append(json.dumps(request.json))
        return Response(json.dumps({"choices": [{"message": {"content": "a model's answer"}}]}))

    httpserver.expect_request("/v1/chat/completions", method="POST").respond_with_handler(answer)
    talk(home, "family: @Andy remember that Rex is our dog")
    options = ("--endpoint", httpserver.url_for("/v1"), "--model", "m")
    shown = talk(home, "family: @Andy who is Rex?", "work: @Andy who is it?", options=options)
    assert shown.count("Andy: a model's answer") == 2
    assert "Rex is our dog" in asked[0]
    assert "Rex is our dog" not in asked[1]


def test_a_model_that_is_down_costs_an_answer_and_not_the_bot(home: Path) -> None:
    shown = talk(home, "work: @Andy hi", options=("--endpoint", "http://127.0.0.1:9/v1"))
    assert "[work] Andy: (I cannot answer:" in shown


def test_visitors_talk_over_a_socket_each_in_their_group(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "s"
    bot = subprocess.Popen(
        [sys.executable, str(BOT), "--home", str(home), "--socket", str(path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert bot.stdout is not None
    try:
        assert "listening" in bot.stdout.readline()
        for name, text, expected in (
            ("family", "@Andy remember that Rex is our dog", "Andy: I will remember that.\n"),
            ("work", "@Andy who is Rex?", "Andy: I know nothing about that in this group.\n"),
        ):
            with socket.socket(socket.AF_UNIX) as visitor:
                visitor.settimeout(60)
                visitor.connect(str(path))
                visitor.sendall(f"{name}\n{text}\n".encode())
                with visitor.makefile() as heard:
                    assert heard.readline() == expected
    finally:
        bot.kill()
        bot.wait()
        bot.stdout.close()


@pytest.mark.parametrize("line", ["nonsense", ":", "nobody: @Andy hi", "family:", "\x00: x"])
def test_lines_that_are_no_messages_do_not_stop_the_bot(home: Path, line: str) -> None:
    assert "[work] Andy:" in talk(home, line, "work: @Andy hi")
