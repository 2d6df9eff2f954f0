"""Tokens: how much the estimator over-counts on each kind of text, and what counting costs.

Run: .venv/bin/python bench/tokens.py [--conversations FILE]
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

from nanoclaw_memory import caches, tokens

HERE = Path(__file__).parent
CONVERSATIONS = HERE.parent.parent / "shared" / "data" / "locomo" / "locomo_dev.json"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--conversations", type=Path, default=CONVERSATIONS)
    texts = corpora(parser.parse_args().conversations)
    tokens.count("warm"), tokens.estimate("warm")
    print(
        "| text | characters | tokens | estimate / tokens | characters / 4 / tokens |",
        "|---|---:|---:|---:|---:|",
        sep="\n",
    )
    lowest = float("inf")
    for name, text in texts.items():
        exact, estimated = tokens.count(text), tokens.estimate(text)
        lowest = min(lowest, estimated / exact)
        print(
            f"| {name} | {len(text):,} | {exact:,} | {estimated / exact:.3f} | {len(text) / 4 / exact:.2f} |"
        )
    print(f"\nlowest ratio {lowest:.3f} (below 1 would be an under-count)")
    print(f"under-counts in 20,000 random texts: {under_counts(20_000)}\n")
    speed(max(texts.values(), key=len)[:300_000])
    print(f"first estimate in a new process: {cold('estimate'):.1f} ms CPU more than importing the module")
    print(f"first count in a new process:    {cold('count'):.1f} ms CPU more than importing the module")


def corpora(conversations: Path) -> dict[str, str]:
    draw = random.Random(2)
    texts: dict[str, str] = json.loads((HERE / "language_samples.json").read_text(encoding="utf-8"))
    if conversations.exists():
        turns = said(json.loads(conversations.read_text(encoding="utf-8")))
        texts = {"English conversations": "\n".join(turns), **texts}
    library = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[:25]
    texts["Python source"] = "".join(path.read_text(encoding="utf-8") for path in library)[:300_000]
    texts["base64"] = base64.b64encode(draw.randbytes(20_000)).decode()
    texts["hex"] = draw.randbytes(10_000).hex()
    texts["random Unicode"] = "".join(chr(draw.randrange(0x20, 0xD7FF)) for _ in range(5_000))
    texts["white space"] = "".join(
        draw.choice((" ", "  ", "\n", "\t", "\n\n    ")) * draw.randrange(1, 30) for _ in range(500)
    )
    return texts


def said(part: object) -> list[str]:
    """Every `text` in a nested structure."""
    if isinstance(part, list):
        return [text for each in part for text in said(each)]
    if not isinstance(part, dict):
        return []
    own = [part["text"]] if isinstance(part.get("text"), str) else []
    return own + [text for each in part.values() for text in said(each)]


def under_counts(number: int) -> int:
    draw = random.Random(3)
    known = "".join(sorted(tokens._table().chars))
    alphabets = (
        "abcdefghijklmnopqrstuvwxyz ", "ABCXYZabc'st ", "qzxjvkwQZ", "\n\t \r", "".join(map(chr, range(128))),
        "àéüßñ aeiou", "абвгдежзАБВёЁ ", "“”‘’–—…• ab.\n/", known, known + " ab",
    )  # fmt: skip
    wrong = 0
    for _ in range(number):
        letters = draw.choice(alphabets) if draw.random() < 0.7 else "".join(draw.choices(known, k=3)) + " "
        text = "".join(draw.choices(letters, k=draw.choice((1, 2, 3, 5, 8, 13, 40))))
        wrong += tokens.estimate(text) < tokens.count(text)
    return wrong


def speed(text: str) -> None:
    for name, counter in (("estimate", tokens.estimate), ("count", tokens.count)):
        for kept in caches._kept:
            kept.lately, kept.before = {}, {}
        tokens._encoding()._cache.clear()
        start = time.process_time()
        counter(text)
        rate = len(text.encode()) / (time.process_time() - start) / 1e6
        print(f"{name}: {rate:.1f} MB/s of CPU, caches empty at first")


def cold(name: str) -> float:
    """CPU milliseconds of a process that calls once, less those of one that only imports; best of five."""
    code = "import time; from nanoclaw_memory import tokens{call}; print(time.process_time())"

    def best(call: str) -> float:
        runs = [subprocess.check_output([sys.executable, "-c", code.format(call=call)]) for _ in range(5)]
        return min(map(float, runs)) * 1000

    return best(f"; tokens.{name}('The password is on page twelve.')") - best("")


if __name__ == "__main__":
    main()
