"""The README's first command: the demo runs from nothing and shows the main job."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_demo_shows_a_working_memory_and_touches_only_its_own_home(tmp_path):
    home = tmp_path / "demo"
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py"), str(home)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The database migration is blue-green" in done.stdout
    assert "Prefers tea before noon" in done.stdout
    assert "Ida.birthday = March 15, 2016" in done.stdout
    assert "Keystone.port = 4000" in done.stdout
    assert "[CONTINUITY CONTEXT]" in done.stdout
    assert "MEMORY.md is private" in done.stdout
    assert "ncm:" not in done.stdout.replace("ncm: MEMORY.md is private", "")
    assert (home / "workspace" / "MEMORY.md").exists()
    assert not (Path.home() / ".nanoclaw").exists()


def test_the_makefile_has_the_verbs_of_the_readme():
    shown = subprocess.run(
        ["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert {line.split()[0] for line in shown.splitlines()} >= {"demo", "test", "lint", "bench", "docs"}
