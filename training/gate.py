"""Learn what a helpful passage is: people's notes and prompts to the weights of `gate.json`.

    python training/gate.py [--lives FILE…] [--check FILE…] [--models DIR] [--judge DIR] [--out FILE]

Each life is fed into a home at its dates, and every prompt is asked as the first message of a new session. A passage
helps when it has a string that its author named as an answer. Each life is left out once: how the others' weights do on
it is printed, and gives the second model, that says whether anything helps at all, passages as it will meet them.
`--check` are lives to measure by that are not learnt from.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "bench"))

from common import LIVES, auc

from nanoclaw_memory.memory import Memory
from nanoclaw_memory.providers import scorer
from nanoclaw_memory.providers.judge import Judge
from nanoclaw_memory.providers.models import embedder
from nanoclaw_memory.retrieval import gate
from nanoclaw_memory.retrieval.searcher import Question
from needs import NOW, feed

OUT = Path(gate.__file__).with_name("gate.json")
SHRINK_PASSAGE, SHRINK_MESSAGE = 3.0, 2.0
Row = tuple[dict[str, float], bool]


class Prompt(msgspec.Struct):
    """A prompt with what speaks for it and for each of its passages."""

    needs: bool
    about: dict[str, float]
    passages: list[Row]


def prompts_of(path: Path, judge: Judge | None, models: Path) -> list[Prompt]:
    """Every prompt of a life; without a judge as a process without models sees it."""
    life = json.loads(path.read_text(encoding="utf-8"))
    overrides = (
        {"embeddings.modelPath": str(embedder(models)[1])} if judge else {"embeddings.provider": "none"}
    )
    found = []
    with tempfile.TemporaryDirectory() as folder:
        clock = feed(Path(folder) / "home", life, overrides)
        with Memory.open(Path(folder) / "home", clock=clock, overrides=overrides) as memory:
            memory.upkeep.run("ingest")
            memory.index()
            memory.group.resources.resident = judge is not None
            for prompt in life["prompts"]:
                found.append(_prompt(memory, prompt, judge))
    return found


def _prompt(memory: Memory, prompt: dict[str, Any], judge: Judge | None) -> Prompt:
    retrieval = memory.group.retrieval
    need = (judge.probability if judge else scorer.probability)("needs", prompt["text"])
    question = Question(
        text=prompt["text"],
        limit=60,
        today=NOW.date(),
        fast=judge is None,
        wanted=retrieval.for_turn("", 0),
        project=prompt["project"],
        searched=False,
    )
    seen = retrieval.searcher.consider(question, need).verdict
    rows = [
        (
            dict(one.parts),
            any(gold.casefold() in one.candidate.stored.passage.text.casefold() for gold in prompt["gold"]),
        )
        for one in seen.helpful
    ]
    return Prompt(prompt["needs"], dict(seen.about), rows)


def fit(rows: Sequence[Row], shrink: float) -> dict[str, float]:
    """Weights of a logistic regression, by Newton's method."""
    names = list(rows[0][0])
    x = np.array([[features[name] for name in names] + [1.0] for features, _ in rows])
    y = np.array([float(right) for _, right in rows])
    ridge = np.diag([shrink] * len(names) + [1e-6])
    weights = np.zeros(len(names) + 1)
    for _ in range(60):
        p = 1 / (1 + np.exp(-x @ weights))
        gradient = x.T @ (y - p) - ridge @ weights
        weights += np.linalg.solve((x * (p * (1 - p) + 1e-9)[:, None]).T @ x + ridge, gradient)
    return {name: round(float(value), 4) for name, value in zip([*names, "bias"], weights, strict=True)}


def passages(prompts: Sequence[Prompt]) -> list[Row]:
    return [row for one in prompts for row in one.passages]


def ranked(weights: dict[str, float], one: Prompt) -> list[tuple[gate.Helpful, bool]]:
    """The passages of a prompt as these weights order them."""
    made = [
        (gate.Helpful(None, gate.probability(weights, parts), parts), right)  # type: ignore[arg-type]
        for parts, right in one.passages
    ]
    return sorted(made, key=lambda pair: -pair[0].probability)


def verdicts(weights: dict[str, float], prompts: Sequence[Prompt]) -> list[Row]:
    return [
        (gate.verdict_features(one.about, [pair[0] for pair in ranked(weights, one)]), one.needs)
        for one in prompts
        if one.passages
    ]


def report(name: str, weights: gate.Weights, prompts: Sequence[Prompt]) -> None:
    needing = [one for one in prompts if one.needs]
    shares = []
    for most in (3, 5, 8, 12):
        found = [any(right for _, right in ranked(weights.passage, one)[:most]) for one in needing]
        shares.append(f"@{most} {np.mean(found):.2f}")
    rows = verdicts(weights.passage, prompts)
    scores = [gate.probability(weights.message, features) for features, _ in rows]
    right = [needs for _, needs in rows]
    opened = [
        f"{limit}: {np.mean([s >= limit for s, r in zip(scores, right, strict=True) if r]):.2f}/"
        f"{np.mean([s >= limit for s, r in zip(scores, right, strict=True) if not r]):.2f}"
        for limit in (0.4, 0.5, 0.6, 0.7)
    ]
    print(
        f"{name:18} gold {' '.join(shares)} | gate AUC {auc(right, scores):.3f} opened {' '.join(opened)}",
        flush=True,
    )


def learn(lives: dict[str, list[Prompt]], title: str) -> gate.Weights:
    """Weights from all lives; each life is first judged by the others' weights."""
    left_out: dict[str, list[Row]] = {}
    for name in lives:
        others = [one for other, prompts in lives.items() if other != name for one in prompts]
        left_out[name] = verdicts(fit(passages(others), SHRINK_PASSAGE), lives[name])
    for name, prompts in lives.items():
        others = [one for other, given in lives.items() if other != name for one in given]
        message = fit([row for other in lives if other != name for row in left_out[other]], SHRINK_MESSAGE)
        report(f"{title} {name}", gate.Weights(fit(passages(others), SHRINK_PASSAGE), message), prompts)
    every = [one for prompts in lives.values() for one in prompts]
    rows = [row for found in left_out.values() for row in found]
    return gate.Weights(fit(passages(every), SHRINK_PASSAGE), fit(rows, SHRINK_MESSAGE))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=Path, nargs="+", default=LIVES)
    parser.add_argument("--check", type=Path, nargs="*", default=[])
    parser.add_argument("--models", type=Path, default=Path("~/.nanoclaw/models").expanduser())
    parser.add_argument("--judge", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--dump", type=Path, help="where all features are written, to try other ways on")
    options = parser.parse_args()
    judge = Judge(options.judge) if options.judge else Judge()
    weights = {}
    for title, by in (("words", None), ("vectors", judge)):
        lives = {path.stem: prompts_of(path, by, options.models) for path in options.lives}
        weights[title] = learn(lives, title)
        for path in options.check:
            prompts = prompts_of(path, by, options.models)
            lives[f"check {path.stem}"] = prompts
            report(f"{title} {path.stem}", weights[title], prompts)
        if options.dump:
            options.dump.with_suffix(f".{title}").write_bytes(msgspec.msgpack.encode(lives))
    options.out.write_bytes(msgspec.json.format(msgspec.json.encode(weights), indent=1) + b"\n")


if __name__ == "__main__":
    main()
