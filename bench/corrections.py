"""How well corrections are told from other messages, and how soon a lesson from one is injected.

    python bench/corrections.py [--half tune|held-out|both] [--errors] [--simulate]

The messages in bench/data/corrections.txt are our own. Odd ones are the tune half, even ones the held-out half;
patterns were tuned on the tune half only. Prints a Markdown table. `--errors` lists the mistakes of the tune half.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from nanoclaw_memory.lessons import corrections

DATA = Path(__file__).parent / "data" / "corrections.txt"


def messages() -> list[tuple[bool, str, str]]:
    """Label, kind and text of every message."""
    found = []
    for line in DATA.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            label, kind, text = line.split("|", 2)
            found.append((label == "+", kind, text.replace("\\n", "\n")))
    return found


def score(sample: list[tuple[bool, str, str]], show: bool) -> tuple[int, int, float, float]:
    """Number, corrections, precision and recall."""
    right = wrong = missed = 0
    for label, kind, text in sample:
        said = bool(corrections.find(text))
        right += said and label
        wrong += said and not label
        missed += label and not said
        if show and said != label:
            print(f"{'missed' if label else 'false alarm'} | {kind} | {text!r}")
    return len(sample), right + missed, right / max(right + wrong, 1), right / max(right + missed, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--half", choices=("tune", "held-out", "both"), default="both")
    parser.add_argument("--errors", action="store_true", help="list the mistakes of the tune half")
    arguments = parser.parse_args()
    everything = messages()
    halves = {"tune": everything[0::2], "held-out": everything[1::2]}
    started = time.process_time()
    corrections.find("warm")
    load = time.process_time() - started
    rows = []
    for name, sample in halves.items():
        if arguments.half in (name, "both"):
            started = time.process_time()
            rows.append((name, *score(sample, arguments.errors and name == "tune")))
            spent = (time.process_time() - started) / len(sample)
    print("| half | messages | corrections | precision | recall |\n|---|---|---|---|---|")
    for name, number, positive, precision, recall in rows:
        print(f"| {name} | {number} | {positive} | {precision:.3f} | {recall:.3f} |")
    print(f"\nLoading the patterns: {load * 1000:.1f} ms of CPU; one message: {spent * 1e6:.0f} µs.")


if __name__ == "__main__":
    main()
