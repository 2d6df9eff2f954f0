"""Fit scale and shift of each of the judge's heads to texts of authors whom it has not read: `judge.json` beside it.

    python training/calibrate.py [--judge DIR] [--sets DIR…] [--own FILE]

`train.py` calibrates on authors that it leaves out (`--folds`); a model that has read all of them is calibrated here,
by the scores of the finished 8-bit model. `--own` are messages whose lines are own or not, of which every other one
counts; the rest is for measuring.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nanoclaw_memory.providers.judge import FOLDER, OWN, Judge, encode_lines

DATA = Path(__file__).parent.parent / "bench" / "data"
UNSEEN = DATA / "more" / "t"
SETS = [DATA / "fresh", *sorted(path for path in (DATA / "more").iterdir() if path != UNSEEN)]
ROUNDS, RIDGE = 50, 0.1
Array = npt.NDArray[np.float64]
Scored = list[tuple[float, bool]]  # a raw score, and whether yes is right


def asked(folder: Path) -> Iterator[tuple[str, str, str, bool]]:
    """Each text of a set with its head, the other text, and whether yes is right."""
    for one in lines_of(folder, "needs*.jsonl"):
        yield "needs", one["text"], "", one["label"] == "need"
    for path in sorted(folder.glob("*life*.json")):
        for one in json.loads(path.read_text(encoding="utf-8"))["prompts"]:
            yield "needs", one["text"], "", one["needs"]
    for one in lines_of(folder, "corrections*.jsonl"):
        before, corrects = one.get("previous_agent", one.get("prev", "")), one["label"] == "correction"
        yield "correction", one["user"], before, corrects
        for key in ("should", "should_not"):
            for prompt in one.get(key, ()) if corrects and one["reach"] != "once" else ():
                yield "applies", prompt, one["user"], key == "should"
    for one in lines_of(folder, "applies*.jsonl"):
        yield "applies", one["prompt"], one["rule"], one["applies"]
    for one in lines_of(folder, "attacks*.jsonl"):
        yield "attack", one["text"], "", one["label"] == "attack"
    for one in lines_of(folder, "duplicates*.jsonl"):
        yield "same", one["a"], one["b"], one["same"]
    for path in sorted(folder.glob("policies.json")):  # each action beside each policy
        told = json.loads(path.read_text(encoding="utf-8"))
        for action in told["actions"]:
            for policy in told["policies"]:
                gate = f"{policy['trigger']} {policy['gate']}"
                yield "meets", action["text"], gate, policy["id"] in action["triggers"]


def lines_of(folder: Path, pattern: str) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob(pattern)):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.strip():
                yield json.loads(line)


def scored_lines(judge: Judge, path: Path) -> Scored:
    """Return the scores of the lines of every other message."""
    found: Scored = []
    for text in path.read_text(encoding="utf-8").splitlines()[::2]:
        lines = json.loads(text)["lines"]
        own = iter(lines)
        for part in encode_lines(judge._onnx.tokenizer, [line["text"] for line in lines]):
            tokens = judge._onnx.run(part.ids, output="tokens")
            for first, last in part.lines:
                found.append((float(tokens[first : max(last, first + 1)].mean()), bool(next(own)["own"])))
    return found


def platt(scores: Scored) -> tuple[float, float]:
    """Return the scale and shift that make probabilities of scores."""
    raw, right = (np.array(column, dtype=float) for column in zip(*scores, strict=True))
    spread, middle = raw.std(), raw.mean()
    x = np.column_stack([(raw - middle) / spread, np.ones(len(raw))])
    fitted: Array = np.zeros(2)
    for _ in range(ROUNDS):  # Newton's method; the ridge keeps it from leaping where all are told apart
        said = 1 / (1 + np.exp(-x @ fitted))
        slope = (x * (said * (1 - said))[:, None]).T @ x + RIDGE * np.eye(2)
        fitted = fitted - np.linalg.solve(slope, x.T @ (said - right) + RIDGE * fitted)
    scale = fitted[0] / spread
    return round(float(scale), 4), round(float(fitted[1] - scale * middle), 4)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--judge", type=Path, default=FOLDER)
    parser.add_argument("--sets", type=Path, nargs="+", default=SETS)
    parser.add_argument("--own", type=Path, default=UNSEEN / "foreign.jsonl")
    options = parser.parse_args()
    judge = Judge(options.judge)
    judge.load()
    found: dict[str, Scored] = defaultdict(list)
    for folder in options.sets:
        for head, text, other, right in asked(folder):
            found[head].append((judge._scores(head, text, other)[0], right))
    found[OWN] = scored_lines(judge, options.own)
    card = json.loads((options.judge / "judge.json").read_text(encoding="utf-8"))
    card["calibration"] = {head: platt(scores) for head, scores in found.items()}
    (options.judge / "judge.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    for head, (scale, shift) in card["calibration"].items():
        print(f"{head:10} {len(found[head]):5} texts: scale {scale}, shift {shift}")


if __name__ == "__main__":
    main()
