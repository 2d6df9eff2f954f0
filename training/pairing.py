"""Learn which two statements that a question finds are on one subject: the weights of `retrieval/pairing.json`.

    python training/pairing.py [--data FILE…] [--lives FILE…] [--check FILE…] [--models DIR] [--homes DIR] [--out FILE]

Each set of changes is fed into one home at its dates, and every question is asked. Two hits are on one subject when
they are statements of one case. In a set the names of one case are seldom those of another, in a life they are: of the
hits of a life's prompts only an outdated value and today's are on one subject. Each set is left out once: how often
what the others teach is right about it, and how much it finds, is printed. `--check` are sets that nothing is learnt
from. `--homes` keeps what was fed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parent.parent / "bench"))

from common import LIVES, auc

import changes
import needs
from changes import TODAY
from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.providers.models import embedder
from nanoclaw_memory.retrieval import pairing
from nanoclaw_memory.retrieval.gate import probability
from nanoclaw_memory.retrieval.searcher import Question
from nanoclaw_memory.types import Scope

BENCH = Path(__file__).parent.parent / "bench" / "data"
SETS = (
    *sorted((BENCH / "fresh").glob("changes*.jsonl")),
    *sorted((BENCH / "more").glob("*/changes.jsonl")),
)
LEARNT = LIVES[:3:2]
OUT = Path(pairing.__file__).with_name("pairing.json")
SHRINK = 3.0
SHOWN = (0.2, 0.3, 0.4, 0.5, 0.6)
Array = npt.NDArray[np.float64]
Row = tuple[dict[str, float], bool]  # what speaks for a pair, and whether it is on one subject


def rows_of(path: Path, overrides: dict[str, str], homes: Path) -> list[Row]:
    """Every pair among the hits of a set's questions."""
    told = path.read_text(encoding="utf-8")
    life = json.loads(told) if path.suffix == ".json" else None
    cases = [] if life else [json.loads(line) for line in told.splitlines()]
    kept = homes / f"{path.parent.name}-{path.stem}"
    now = needs.now_of(life) if life else TODAY
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        if kept.exists():
            shutil.copytree(kept, home)
        elif life:
            needs.feed(home, life, overrides)
        else:
            changes.feed(home, cases, overrides).group.resources.close()
        with Memory.open(home, Scope(session_id="now"), clock=FixedClock(now), overrides=overrides) as memory:
            memory.index()
            memory.group.resources.resident = "embeddings.modelPath" in overrides
            found = list(_of_life(memory, life) if life else _of_cases(memory, cases))
        if not kept.exists():
            shutil.copytree(home, kept)
    return found


def _of_cases(memory: Memory, cases: Sequence[dict[str, Any]]) -> Iterator[Row]:
    case_of = {
        one["text"].removeprefix("- "): case["id"]
        for case in cases
        for one in case["statements"]
        if "fact" not in one
    }

    def case(text: str) -> str:
        return next((of for told, of in case_of.items() if told in text or text in told), "")

    for one in cases:
        for question in one["questions"]:
            for pair in pairs(memory, question, one.get("project", "")):
                older, newer = (case(side.passage.text) for side in (pair.older, pair.newer))
                yield dict(pair.signs), bool(older) and older == newer


def _of_life(memory: Memory, life: dict[str, Any]) -> Iterator[Row]:
    for prompt in life["prompts"]:
        for pair in pairs(memory, prompt["text"], prompt["project"]) if prompt["needs"] else ():
            older, newer = (side.passage.text.casefold() for side in (pair.older, pair.newer))
            outdated = any(one.casefold() in older for one in prompt["wrong"])
            yield dict(pair.signs), outdated and any(one.casefold() in newer for one in prompt["gold"])


def pairs(memory: Memory, text: str, project: str) -> Iterator[pairing.Pair]:
    """The pairs among the hits of one question."""
    group = memory.for_session("asks", project).group
    searcher = group.retrieval.searcher
    wanted = group.retrieval.filter_for(group.scope)
    question = Question(
        text=text,
        limit=10,
        today=group.clock.now().date(),
        fast=not group.resources.resident,
        wanted=wanted,
        project=project,
    )
    found = [one.stored for one in searcher.rank(question).found[:10]]
    meaning = None if question.fast else searcher.candidates.meaning([one.id for one in found])
    currency = searcher.index.currency
    known = currency.of({one.id for one in found})
    yield from pairing.pairs_among(currency, text, found, known, meaning)


def fit(rows: Sequence[Row]) -> dict[str, float]:
    """Weights of a logistic regression, by Newton's method."""
    names = list(rows[0][0])
    x = np.array([[*map(signs.__getitem__, names), 1.0] for signs, _ in rows])
    y = np.array([float(right) for _, right in rows])
    spread = np.append(x[:, :-1].std(axis=0) + 1e-6, 1.0)
    ridge = np.diag([SHRINK] * len(names) + [1e-6])
    z, weights = x / spread, np.zeros(len(names) + 1)
    for _ in range(25):
        p = 1 / (1 + np.exp(-np.clip(z @ weights, -30, 30)))
        curved = (z * (p * (1 - p) + 1e-9)[:, None]).T @ z + ridge
        weights += np.linalg.solve(curved, z.T @ (y - p) - ridge @ weights)
    return {
        name: round(float(value), 4) for name, value in zip([*names, "bias"], weights / spread, strict=True)
    }


def report(name: str, weights: dict[str, float], rows: Sequence[Row]) -> None:
    scores = np.array([probability(weights, signs) for signs, _ in rows])
    right = np.array([one for _, one in rows])
    by_rule = np.array([signs["sure by rule"] + signs["named by rule"] > 0 for signs, _ in rows])
    shares = [("rules", by_rule), *((f"{least:.1f}", scores >= least) for least in SHOWN)]
    told = [
        f"{label} {right[chosen].mean() if chosen.any() else 0:.2f}/{right[chosen].sum() / max(right.sum(), 1):.2f}"
        for label, chosen in shares
    ]
    area = auc(right.tolist(), scores.tolist()) if right.any() else 0.0
    print(
        f"{name:22} {len(rows):6} pairs {right.sum():4} right, AUC {area:.3f}; right/found {', '.join(told)}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", type=Path, nargs="*", default=SETS)
    parser.add_argument("--lives", type=Path, nargs="*", default=LEARNT)
    parser.add_argument("--check", type=Path, nargs="*", default=[])
    parser.add_argument("--models", type=Path, default=needs.MODELS)
    parser.add_argument("--homes", type=Path)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    learnt: dict[str, dict[str, float]] = {}
    model = str(embedder(options.models)[1])
    ways = {"vectors": {"embeddings.modelPath": model}, "words": {"embeddings.provider": "none"}}
    with tempfile.TemporaryDirectory() as scratch:
        homes = options.homes or Path(scratch)
        for way, overrides in ways.items():
            print(f"\n{way}")
            sets = {path: rows_of(path, overrides, homes / way) for path in (*options.data, *options.lives)}
            for path, rows in sets.items() if len(sets) > 1 else ():
                others = fit([row for other, own in sets.items() if other != path for row in own])
                report(f"{path.parent.name}/{path.stem}", others, rows)
            learnt[way] = fit([row for rows in sets.values() for row in rows])
            for path in options.check:
                report(f"checked {path.stem}", learnt[way], rows_of(path, overrides, homes / way))
    options.out.write_text(json.dumps(learnt, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
