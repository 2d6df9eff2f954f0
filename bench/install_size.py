"""How much an installation takes: megabytes on disk and packages, the largest first.

python bench/install_size.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
COUNT = """
import importlib.metadata, json
sizes = {}
for one in importlib.metadata.distributions():
    files = [one.locate_file(file) for file in one.files or ()]
    sizes[one.name] = sum(file.stat().st_size for file in files if file.is_file())
print(json.dumps(sizes))
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "venv" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", python.parent.parent], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-compile", ROOT], check=True)
        done = subprocess.run([python, "-c", COUNT], check=True, capture_output=True, text=True)
    sizes = {
        name: size for name, size in json.loads(done.stdout).items() if name not in ("pip", "setuptools")
    }
    print(f"{len(sizes)} packages, {sum(sizes.values()) / 1e6:.0f} MB (without pip and compiled bytecode)")
    for name in sorted(sizes, key=sizes.__getitem__, reverse=True)[:10]:
        print(f"  {name:<20} {sizes[name] / 1e6:6.1f} MB")


if __name__ == "__main__":
    main()
