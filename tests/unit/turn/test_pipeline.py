"""The pipeline survives every plugin and says what became of each."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from datetime import UTC, datetime

import pytest

from nanoclaw_memory.turn.pipeline import Pipeline
from nanoclaw_memory.turn.plugin import Draft, Plugin, Silence
from nanoclaw_memory.types import Scope

NOW = datetime(2026, 2, 23, tzinfo=UTC)


class Acting(Plugin):
    def __init__(self, name, act, order=10, timeout_ms=500):
        self.name, self.act, self.order, self.timeout_ms = name, act, order, timeout_ms

    def before_turn(self, message, moment):
        return self.act(message, moment)

    def after_turn(self, exchange, tool_calls, moment):
        self.act(exchange.user_message, moment)


def good(message, moment):
    return Draft("GOOD", (f"heard {message}",))


def turn(*plugins, message="hello", budget=1000, timeout_ms=2000):
    recorded = []
    pipeline = Pipeline(plugins, budget, timeout_ms, lambda scope, rows, lines: recorded.extend(rows))
    done = pipeline.before_turn(message, Scope(), NOW)
    pipeline.close()
    return done, recorded


def reasons(done):
    return {note.plugin: note.reason for note in done.skipped}


def fail(message, moment):
    raise ValueError("no such luck\nsecond line")


def leave(message, moment):
    sys.exit(3)


def endless(message, moment):
    def lines():
        while True:
            yield "x"

    return Draft("ENDLESS", lines())


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (fail, "failed: ValueError: no such luck"),
        (leave, "failed: SystemExit: 3"),
        (lambda message, moment: 42, "returned a int, not a Draft"),
        (lambda message, moment: None, "had nothing to say"),
        (lambda message, moment: Silence("not today"), "not today"),
        (lambda message, moment: Draft("EMPTY", ()), "its block was empty"),
        (lambda message, moment: Draft("BAD", None), "failed: TypeError: 'NoneType' object is not iterable"),
    ],
)
def test_a_plugin_without_a_block_costs_only_its_own(act, why):
    done, recorded = turn(Acting("odd", act), Acting("good", good, order=20))
    assert [block.label for block in done.blocks] == ["GOOD"]
    assert reasons(done) == {"odd": why}
    assert {row.plugin: bool(row.tokens) for row in recorded} == {"odd": False, "good": True}


def test_a_hanging_plugin_is_left_behind_and_the_next_one_runs():
    release = threading.Event()
    done, _ = turn(
        Acting("hangs", lambda message, moment: release.wait(60), timeout_ms=50),
        Acting("good", good, order=20),
    )
    release.set()
    assert reasons(done) == {"hangs": "passed its time limit of 50 ms"}
    assert [block.label for block in done.blocks] == ["GOOD"]


def test_what_a_plugin_had_before_it_hung_or_failed_is_given_with_a_note():
    release = threading.Event()

    def begin(then):
        def act(message, moment):
            moment.so_far.append(Draft("HALF", (f"the first half of {then}",)))
            return then(message, moment)

        return act

    done, _ = turn(
        Acting("hangs", begin(lambda message, moment: release.wait(60)), timeout_ms=50),
        Acting("fails", begin(fail), order=20),
        Acting("good", begin(good), order=30),
    )
    release.set()
    assert [block.label for block in done.blocks] == ["HALF", "HALF", "GOOD"]
    assert [note.reason.split(";")[1] for note in done.notes] == [" what it had is given"] * 2


def test_the_whole_turn_is_bounded_and_later_plugins_are_told_of():
    release = threading.Event()
    slow = [
        Acting(f"slow{n}", lambda message, moment: release.wait(60), order=n, timeout_ms=200)
        for n in range(4)
    ]
    done, _ = turn(*slow, timeout_ms=300)
    release.set()
    assert reasons(done)["slow3"] == "the turn's 300 ms were used up"


def test_ten_megabytes_become_a_short_line_and_a_note():
    done, _ = turn(Acting("big", lambda message, moment: Draft("BIG", ("word " * 2_000_000,))))
    assert len(done.blocks[0].text) < 1_200
    assert done.notes[0].reason == "1 line cut: over the limits"


def test_a_text_in_place_of_lines_is_one_line():
    done, _ = turn(Acting("text", lambda message, moment: Draft("TEXT", "just words")))
    assert done.blocks[0].text.splitlines()[2] == "just words"


def test_an_endless_iterator_is_cut():
    done, _ = turn(Acting("endless", endless))
    assert len(done.blocks[0].text.splitlines()) <= 103


def test_what_a_plugin_prints_reaches_nobody(capsys):
    def loud(message, moment):
        print("secret")
        sys.stdout.buffer.write(b"more")
        return Draft("LOUD", ("spoke",))

    done, _ = turn(Acting("loud", loud))
    print("ours")
    assert capsys.readouterr().out == "ours\n"
    assert done.notes[0].reason == "printed 11 characters: dropped"


def test_the_output_that_another_thread_prints_to_outlives_the_plugin():
    """`print` does not hold it before Python 3.12: one that was freed meanwhile ended the process."""
    script = """
import sys, weakref
from datetime import UTC, datetime
from nanoclaw_memory.turn.pipeline import Pipeline
from nanoclaw_memory.turn.plugin import Plugin
from nanoclaw_memory.types import Scope
seen = []
class Looks(Plugin):
    name = "looks"
    def before_turn(self, message, moment):
        seen.append(weakref.ref(sys.stdout))
Pipeline([Looks()], 100, 5000, lambda scope, rows, lines: None).before_turn("x", Scope(), datetime.now(UTC))
print(seen[0]() is not None, seen[0]() is not sys.stdout)
"""
    # A process of its own: a plugin that another test abandoned may still be running here.
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert ran.stdout == "True True\n", ran.stderr


def test_other_threads_may_print_while_a_plugin_runs(capsys):
    inside, printed = threading.Event(), threading.Event()

    def wait(message, moment):
        inside.set()
        printed.wait(5)
        return None

    def other():
        inside.wait(5)
        print("from elsewhere")
        printed.set()

    thread = threading.Thread(target=other)
    thread.start()
    turn(Acting("waits", wait, timeout_ms=10_000), timeout_ms=10_000)
    thread.join()
    assert capsys.readouterr().out == "from elsewhere\n"


def test_what_follows_an_injection_is_done_only_when_it_was_injected():
    did = []
    inject = Acting("yes", lambda m, moment: Draft("YES", ("line",), then=lambda: did.append("yes")))
    too_big = Acting(
        "no", lambda m, moment: Draft("NO", ("x" * 900,), then=lambda: did.append("no")), order=20
    )
    turn(inject, too_big, budget=60)
    assert did == ["yes"]


def test_learning_that_fails_costs_nothing_but_a_note():
    done, _ = turn(Acting("odd", lambda m, moment: Draft("ODD", ("line",), then=lambda: 1 / 0)))
    assert [block.label for block in done.blocks] == ["ODD"]
    assert done.notes[0].reason == "injected, but learning failed: ZeroDivisionError: division by zero"


def test_a_recorder_that_fails_costs_nothing_but_a_note():
    pipeline = Pipeline([Acting("good", good)], 1000, 2000, lambda scope, rows, lines: 1 / 0)
    done = pipeline.before_turn("hello", Scope(), NOW)
    assert len(done.blocks) == 1
    assert "recording failed" in done.notes[0].reason


def test_plugins_run_in_order_and_share_one_budget():
    def take(message, moment):
        return Draft("TAKE", tuple(f"line {n} " + "word " * 20 for n in range(50)))

    seen = []

    def see(message, moment):
        seen.append(moment.budget)

    done, _ = turn(Acting("second", see, order=20), Acting("first", take, order=5), budget=300)
    assert done.blocks[0].tokens <= 300
    assert seen == [300 - done.blocks[0].tokens]


def test_hooks_that_only_listen_are_isolated_too():
    from nanoclaw_memory.types import Exchange

    heard = []
    pipeline = Pipeline(
        [Acting("odd", fail), Acting("good", lambda m, moment: heard.append(m), order=20)],
        1000,
        2000,
        lambda scope, rows, lines: None,
    )
    notes = pipeline.after_turn(Exchange(1, "s", "hello", "hi", ""), (), Scope(), NOW)
    assert heard == ["hello"]
    assert [note.plugin for note in notes] == ["odd"]


def test_a_hanging_plugin_does_not_keep_the_process_alive(tmp_path):
    script = """
import threading, time
from datetime import UTC, datetime
from nanoclaw_memory.turn.pipeline import Pipeline
from nanoclaw_memory.turn.plugin import Plugin
from nanoclaw_memory.types import Scope
class Hangs(Plugin):
    name = "hangs"
    timeout_ms = 20
    def before_turn(self, message, moment):
        time.sleep(600)
done = Pipeline([Hangs()], 100, 100, lambda scope, rows, lines: None).before_turn("x", Scope(), datetime.now(UTC))
print(done.skipped[0].reason)
"""
    started = time.monotonic()
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert ran.stdout == "passed its time limit of 20 ms\n"
    assert time.monotonic() - started < 100
