"""A process that ends while a thread runs a model ends with its output and its exit code."""

from __future__ import annotations

import subprocess
import sys

import pytest

ENDING = """
import sys, threading
from nanoclaw_memory.providers.judge import Judge
judge, begun = Judge(), threading.Semaphore(0)
if {loaded}:
    judge.load()

def work():
    begun.release()
    for number in range(100_000):
        judge.probability("needs", f"how long is a piece of string, number {{number}}")

threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in threads:
    begun.acquire()
if {loaded}:
    threads[0].join(0.2)
print("said", end="")
sys.exit(3)
"""


@pytest.mark.parametrize("loaded", [True, False])
def test_a_process_that_ends_while_threads_run_a_model_keeps_output_and_exit_code(loaded: bool):
    for _ in range(3):
        code = ENDING.format(loaded=loaded)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout) == (3, "said")
        assert "terminate" not in done.stderr


EMBEDDING = """
import atexit, sys, threading
from nanoclaw_memory.providers.judge import Judge
judge, begun, answered = Judge(), threading.Event(), []
judge.load()
atexit.register(lambda: print(len(answered)))

def one(number):
    begun.set() if number == 5 else None
    answered.append(judge.probability("needs", f"how long is a piece of string, number {number}"))

work = lambda: judge._onnx.each(one, range(2_000), aside=True)
threading.Thread(target=work, daemon=True).start()
begun.wait()
sys.exit(3)
"""


def test_a_process_that_ends_does_not_wait_for_all_texts_that_its_threads_were_given():
    done = subprocess.run([sys.executable, "-c", EMBEDDING], capture_output=True, text=True, timeout=120)
    assert done.returncode == 3
    assert int(done.stdout) < 1_000
