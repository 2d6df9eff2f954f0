"""Learn which readings of the graph are right: readings judged by eye to the weights of `trust.json`.

    python training/facts.py [--readings FILE] [--out FILE]

Each line of the file is what the reader took out of somebody's line: the line, the one above it, where it stands, the
triple, the rule that read it, and whether a person called it right. Authors are left out in eight groups: what of the
others' right and wrong readings would be kept at each threshold is printed.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections import Counter
from pathlib import Path

import numpy as np

from nanoclaw_memory.graph import trust
from nanoclaw_memory.graph.triples import Triple

READINGS = Path(__file__).parent / "texts" / "readings.jsonl"
OUT = Path(trust.__file__).with_name("trust.json")
SHRINK = 3.0
RARE = 5  # features of fewer readings are left out
FOLDS = 8
FOREIGN = 0.3


def fit(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Weights of a logistic regression, by Newton's method, the bias last; `counts` is how much each row does."""
    weights = np.zeros(x.shape[1])
    ridge = np.diag([SHRINK] * (x.shape[1] - 1) + [1e-6])
    for _ in range(8):
        p = 1 / (1 + np.exp(-x @ weights))
        gradient = x.T @ (counts * (y - p)) - ridge @ weights
        weights += np.linalg.solve((x * (counts * p * (1 - p) + 1e-9)[:, None]).T @ x + ridge, gradient)
    return weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readings", type=Path, default=READINGS)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    rows = [json.loads(line) for line in arguments.readings.read_text(encoding="utf-8").splitlines()]
    seen = [
        trust.features(Triple(*row["triple"], rule=row["rule"]), row["line"], row["before"], row["kind"])
        for row in rows
    ]
    counts = Counter(name for names in seen for name in names)
    names = sorted(name for name, count in counts.items() if count >= RARE)
    x = np.array([[float(name in found) for name in names] + [1.0] for found in seen])
    y = np.array([float(row["right"]) for row in rows])
    # Orders, games and letters of others are no notes: they say what is wrong, and little about how often.
    much = np.array([FOREIGN if "attacks" in row["author"] else 1.0 for row in rows])
    folds = np.array([zlib.crc32(row["author"].encode()) % FOLDS for row in rows])
    p = np.zeros(len(rows))
    for fold in {*folds.tolist()}:
        weights = fit(x[folds != fold], y[folds != fold], much[folds != fold])
        p[folds == fold] = 1 / (1 + np.exp(-x[folds == fold] @ weights))
    print(f"{len(rows)} readings, {1 - y.mean():.3f} wrong; authors left out:")
    own = much == 1
    for least in (0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        kept = (p >= least) & own
        print(
            f"  {least}: right ones kept {y[kept].sum() / y[own].sum():.2f}, wrong {1 - y[kept].mean():.3f}"
        )
    weights = fit(x, y, much)
    chosen = {name: round(float(w), 2) for name, w in zip([*names, "bias"], weights, strict=True)}
    text = json.dumps({name: w for name, w in chosen.items() if abs(w) >= 0.03}, ensure_ascii=False, indent=0)
    arguments.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
