"""Run every measurement in turn: `make bench`. Each can be run alone; see its first lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NOT_MEASUREMENTS = {"run.py", "measure.py", "linear_head.py", "embedding_server.py"}


def main() -> None:
    for path in sorted(HERE.glob("*.py")):
        if path.name in NOT_MEASUREMENTS:
            continue
        print(f"\n## {path.stem}\n", flush=True)
        done = subprocess.run([sys.executable, str(path)], cwd=HERE.parent)
        if done.returncode:
            print(f"{path.name} ended with exit {done.returncode}", file=sys.stderr)


if __name__ == "__main__":
    main()
