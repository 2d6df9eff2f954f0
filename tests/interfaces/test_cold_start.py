"""A hook is a new process for every prompt: what it imports and compiles is kept small."""

import json
import os
import subprocess
import sys
from pathlib import Path

from nanoclaw_memory.memory import Memory

# As the ordinary command answers a hook, with an account of what was imported and compiled on the way.
DRIVER = """
import os, re, sys
from re import _compiler
compiled, ordinary = [], _compiler.compile
_compiler.compile = lambda pattern, flags=0: compiled.append(str(pattern)) or ordinary(pattern, flags)
leave = os._exit
os._exit = lambda code: (print(repr((compiled, sorted(sys.modules))), file=sys.stderr), leave(code))
sys.argv[0] = "ncm"
from nanoclaw_memory.__main__ import main
main()
"""


def run_hook(home: Path, cache: Path, name: str, **payload: str) -> tuple[list[str], set[str]]:
    """The patterns that a hook's process compiled, and the modules that it imported."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPYCACHEPREFIX": str(cache), "NANOCLAW_NO_SERVER": "1"}
    environment["PYTHONPATH"] = str(Path(sys.modules["nanoclaw_memory"].__file__ or "").parent.parent)
    command = [sys.executable, "-c", DRIVER, "--home", str(home), "hook", name]
    told = json.dumps({"session_id": "s1", **payload}).encode()
    done = subprocess.run(command, input=told, env=environment, capture_output=True, check=True)
    compiled, modules = eval(done.stderr.decode().splitlines()[-1])
    return compiled, set(modules)


def test_a_conversations_hooks_compile_no_pattern_twice_and_import_no_heavy_module(tmp_path: Path):
    home, cache = tmp_path / "home", tmp_path / "bytecode"
    with Memory.open(home) as memory:
        memory.init()
        memory.write("Chose Postgres 16 for the Keystone project", "decision", 0.9)
    for number in range(2):
        prompt = f"Which Postgres does Keystone use, and who said that in week {number}?"
        of_prompt = run_hook(home, cache, "user-prompt-submit", prompt=prompt)
        answer = f"We agreed on Postgres {number + 15} last week; no, it's version 16."
        of_answer = run_hook(home, cache, "stop", last_assistant_message=answer)
    assert of_prompt[0] == of_answer[0] == []
    heavy = {
        "click",
        "dataclasses",
        "inspect",
        "numpy",
        "onnxruntime",
        "rapidfuzz",
        "urllib.parse",
        "pydantic",
    }
    assert (of_prompt[1] | of_answer[1]) & heavy == set()
