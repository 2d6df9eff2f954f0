"""Learn which later statement stands for an older one that a question finds: the weights of `retrieval/pairing.json`.

    python training/pairing.py [--data FILE…] [--lives FILE…] [--check FILE…] [--models DIR] [--homes DIR] [--out FILE]

Each set of changes is fed into one home at its dates, and every question is asked, as a search and as a message of a
conversation. A later statement stands for an older one where both are of one case in which something changes. In a set
the names of one case are seldom those of another, in a life they are: there only today's value stands for an outdated
one. Pairs that the rules decide are left to these. Each set is left out once: how many of the marks that the others
teach would be right is printed. `--check` are sets that nothing is learnt from. `--homes` keeps what was fed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

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
# By four authors; nothing is learnt from the third set in `fresh`, which only measures.
SETS = (
    *((BENCH / "fresh" / name) for name in ("changes.jsonl", "changes_2.jsonl")),
    *sorted((BENCH / "more").glob("*/changes.jsonl")),
)
OUT = Path(pairing.__file__).with_name("pairing.json")
OLDER = 6  # of the best, which are shown
CHANGES = ("change", "revert", "retraction")
SHRINK = 3.0
SHOWN = (0.1, 0.15, 0.2, 0.3)
Right = Callable[[str, str], bool | None]  # whether a text stands for an older one; None where both may hold
Row = tuple[
    int, dict[str, float], bool
]  # the older statement of a question, what speaks for a pair, whether it is right
Found = dict[str, list[Row]]  # by the way of asking


def rows_of(path: Path, overrides: dict[str, str], homes: Path) -> Found:
    """What every question of a set finds."""
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
            memory.upkeep.run("ingest")
            memory.index()
            memory.group.resources.resident = "embeddings.modelPath" in overrides
            found: Found = {"search": [], "turn": []}
            for asked, project, right in _of_life(life) if life else _of_cases(cases):
                for way, rows in found.items():
                    rows += _asked(memory, way, asked, project, right)
        if not kept.exists():
            shutil.copytree(home, kept)
    return found


def _of_cases(cases: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str, Right]]:
    case_of = {_plain(_text_of(one)): case for case in cases for one in case["statements"]}

    def case(text: str) -> dict[str, Any] | None:
        plain = _plain(text)
        return next((of for told, of in case_of.items() if told in plain or plain in told), None)

    def right(older: str, newer: str) -> bool | None:
        before, after = case(older), case(newer)
        if before is None or before is not after:
            return False
        return None if before["kind"] in ("both_hold", "refinement") else before["kind"] in CHANGES

    for one in cases:
        for question in one["questions"]:
            yield question, one.get("project", ""), right


def _text_of(statement: dict[str, Any]) -> str:
    fact = statement.get("fact")
    return f"{fact['entity']} {fact['key']}: {fact['value']}" if fact else statement["text"]


def _plain(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def _of_life(life: dict[str, Any]) -> Iterator[tuple[str, str, Right]]:
    for prompt in life["prompts"]:

        def right(older: str, newer: str, prompt: dict[str, Any] = prompt) -> bool | None:
            if not any(one.casefold() in older.casefold() for one in prompt["wrong"]):
                return False
            return any(one.casefold() in newer.casefold() for one in prompt["gold"]) or None

        if prompt["needs"]:
            yield prompt["text"], prompt["project"], right


def _asked(memory: Memory, way: str, text: str, project: str, right: Right) -> Iterator[Row]:
    """The pairs among what one question finds, as a search or as a message."""
    group = memory.for_session("asks", project).group
    retrieval = group.retrieval
    question = Question(
        text=text,
        limit=10,
        today=group.clock.now().date(),
        fast=not group.resources.resident,
        wanted=retrieval.filter_for(group.scope) if way == "search" else retrieval.for_turn("", 0),
        project=project,
        searched=way == "search",
    )
    if way == "search":
        pool = retrieval.searcher.rank(question).found
    else:
        pool = [one.candidate for one in retrieval.searcher.consider(question, 0.9).verdict.helpful]
    pool = pool[: pairing.POOLED]
    likeness = (
        None if question.fast else retrieval.searcher.candidates.likeness([one.stored.id for one in pool])
    )
    currency = retrieval.searcher.index.currency
    known = currency.of({one.stored.id for one in pool[:OLDER]})
    asked = pairing.Asked(text, pool, likeness, question.searched)
    for pair in pairing.pairs(currency, asked, pool[:OLDER], known):
        is_right = right(pair.older.passage.text, pair.newer.passage.text)
        if is_right is not None:
            yield hash((text, pair.older.id)), dict(pair.features), is_right


def fit(rows: Sequence[Row]) -> dict[str, float]:
    """Weights of a logistic regression, by Newton's method."""
    names = list(rows[0][1])
    x = np.array([[*map(signs.__getitem__, names), 1.0] for _, signs, _ in rows])
    y = np.array([float(right) for *_, right in rows])
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
    """How many older statements get a right mark, and how many a wrong one, at several thresholds."""
    scores = [probability(weights, signs) for _, signs, _ in rows]
    owed = {older for older, _, right in rows if right}
    told = []
    for least in SHOWN:
        best: dict[int, tuple[float, bool]] = {}
        for (older, _, right), score in zip(rows, scores, strict=True):
            best[older] = max(best.get(older, (0.0, False)), (score, right))
        given = [right for score, right in best.values() if score >= least]
        told.append(f"{least}: {sum(given)} right, {len(given) - sum(given)} wrong")
    area = auc([right for *_, right in rows], scores) if owed else 0.0
    count = len({older for older, *_ in rows})
    print(f"{name:20} {count} older, {len(owed)} overtaken, AUC {area:.3f}; {'; '.join(told)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", type=Path, nargs="*", default=SETS)
    parser.add_argument("--lives", type=Path, nargs="*", default=LIVES)
    parser.add_argument("--check", type=Path, nargs="*", default=[])
    parser.add_argument("--models", type=Path, default=needs.MODELS)
    parser.add_argument("--homes", type=Path)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    learnt: dict[str, dict[str, float]] = {}
    model = str(embedder(options.models)[1])
    means = {"vectors": {"embeddings.modelPath": model}, "words": {"embeddings.provider": "none"}}
    with tempfile.TemporaryDirectory() as scratch:
        homes = options.homes or Path(scratch)
        for title, overrides in means.items():
            paths = (*options.data, *options.lives, *options.check)
            sets = {path: rows_of(path, overrides, homes / title) for path in paths}
            for way in ("search", "turn"):
                print(f"\n{way}, {title}")
                own = {path: found[way] for path, found in sets.items() if path not in options.check}
                for path in own:
                    others = [row for other, rows in own.items() if other != path for row in rows]
                    report(f"{path.parent.name}/{path.stem}", fit(others), own[path])
                learnt[f"{way}, {title}"] = fit([row for rows in own.values() for row in rows])
                for path in options.check:
                    report(f"checked {path.stem}", learnt[f"{way}, {title}"], sets[path][way])
    options.out.write_text(json.dumps(learnt, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
