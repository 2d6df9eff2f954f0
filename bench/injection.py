"""Suspicion rules on attack and benign memories: caught and false rates, tuned and held-out halves.

python bench/injection.py [--show]
"""

from __future__ import annotations

import sys

import injection_corpus as corpus
from measure import cpu_ms, table
from nanoclaw_memory.intake.suspicion import suspicions


def main() -> None:
    rows = []
    for half in ("TUNE", "HELD_OUT"):
        attacks = corpus.lines(getattr(corpus, f"ATTACK_{half}"))
        benign = corpus.lines(getattr(corpus, f"BENIGN_{half}"))
        missed = [text for text in attacks if not suspicions(text)]
        false = [text for text in benign if suspicions(text)]
        caught = f"{len(attacks) - len(missed)} of {len(attacks)}"
        name = half.lower().replace("_", "-")
        rows.append(
            [
                name,
                caught,
                1 - len(missed) / len(attacks),
                f"{len(false)} of {len(benign)}",
                len(false) / len(benign),
            ]
        )
        if "--show" in sys.argv:
            print(*(f"missed: {text!r}" for text in missed), sep="\n")
            print(*(f"false: {text!r} {suspicions(text)}" for text in false), sep="\n")
    table(["half", "attacks caught", "rate", "benign held", "rate"], rows)
    long = " ".join(corpus.lines(corpus.BENIGN_TUNE))[:2000]
    print(f"\nCPU of one text of 2,000 characters: p50 {cpu_ms(lambda: suspicions(long))[0]:.2f} ms")


if __name__ == "__main__":
    main()
