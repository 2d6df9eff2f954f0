"""Cold start: CPU of whole processes, and the ratio to bare Python in the same run.

python bench/cold_start.py
"""

from __future__ import annotations

import compileall
import sys
import tempfile
from pathlib import Path

import nanoclaw_memory
from measure import cpu_of, table
from nanoclaw_memory.memory import Memory


def main() -> None:
    # Compiled once, as an installed package is: an interpreter told not to write bytecode would compile every time.
    compileall.compile_dir(str(Path(nanoclaw_memory.__file__).parent), quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with Memory.open(home) as memory:
            memory.init()
            memory.write("Chose SQLite for the index", "decision", 0.9)
        ncm = [sys.executable, "-m", "nanoclaw_memory", "--home", str(home)]
        commands = {
            "ncm --help": [*ncm, "--help"],
            "ncm get MEMORY.md": [*ncm, "get", "MEMORY.md"],
            "ncm boot": [*ncm, "boot"],
            "ncm write": [*ncm, "write", "A line"],
            "ncm status": [*ncm, "status"],
        }
        bare = cpu_of([sys.executable, "-c", "pass"], runs=20)
        rows: list[list[object]] = [["python -c pass", bare, 1.0]]
        for name, command in commands.items():
            spent = cpu_of(command)
            rows.append([name, spent, spent / bare])
    table(["process", "CPU ms (median)", "× bare Python"], rows)


if __name__ == "__main__":
    main()
