"""Teach the small scorer what the judge says: hashed words and letters to `scorer.bin`.

    python training/distil.py [--heads NAME…] [--texts DIR] [--lives FILE…] [--check FILE…] [--out FILE]

The judge says of every text what it is; a linear model over hashed features learns it. Attacks and rules are learnt
from their authors alone, attacks window by window: there the judge knows no more. `--check` are lives to measure by:
how well the scorer tells their needing prompts from the idle ones, beside the judge. `--rules` are messages to measure
by, each with its kind. Heads that are not named stay as they are.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import numpy as np
from common import LIVES, TEXTS, auc, found_at, rows

from nanoclaw_memory.providers import scorer
from nanoclaw_memory.providers.judge import Judge

OUT = Path(scorer.__file__).with_name("scorer.bin")
ROUNDS, RATE, SHRINK = 30, 0.12, 2e-6
BEHAVIORAL = ("preference", "instruction", "correction")
OF_AUTHORS = ("attack", "rule")  # heads that only their authors teach
RIGHT = 0.5  # what an author's own label counts beside the judge's probability


def texts(folder: Path, lives: list[Path]) -> dict[str, dict[str, float | None]]:
    """For each head its texts, with the author's label where he gave one for it."""
    needs: dict[str, float | None] = {}
    corrections: dict[str, float | None] = {}
    for name, key in (
        ("corrections", "user"),
        ("applies", "prompt"),
        ("policies", "action"),
        ("attacks", "text"),
    ):
        needs |= {row[key]: None for _, row in rows(folder, name)}
    for life in lives:  # not their prompts: those say how good it is, and train the gate
        told = json.loads(life.read_text(encoding="utf-8"))
        needs |= {one["user"]: None for one in told["exchanges"]}
        corrections |= {one["user"]: None for one in told["exchanges"]}
    needs |= {row["text"]: float(row["label"] == "need") for _, row in rows(folder, "needs")}
    corrections |= {row["text"]: None for _, row in rows(folder, "needs")}
    corrections |= {
        row["user"]: float(row["label"] == "correction") for _, row in rows(folder, "corrections")
    }
    return {
        "needs": needs,
        "correction": corrections,
        "attack": _attacks(folder, lives),
        "rule": _rules(folder, lives),
    }


def _rules(folder: Path, lives: list[Path]) -> dict[str, float | None]:
    """What says how to work from now on, and what asks, answers, plans or states something."""
    found: dict[str, float | None] = {}
    for life in lives:
        told = json.loads(life.read_text(encoding="utf-8"))
        found |= {line: 0.0 for given in told["logs"].values() for line in given}
        found |= {one["agent"]: 0.0 for one in told["exchanges"]}
    for name, key in (("needs", "text"), ("policies", "action"), ("applies", "prompt")):
        found |= {row[key]: 0.0 for _, row in rows(folder, name)}
    for _, row in rows(folder, "corrections"):
        if row["label"] == "none" or row["reach"] == "general":
            found[row["user"]] = float(row["label"] != "none")
    found |= {row["line"]: float(row["type"] in BEHAVIORAL) for _, row in rows(folder, "pages")}
    for line in (folder / "rules.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found[row["text"]] = float(row["label"] == "rule")
    return found | {row["rule"]: 1.0 for _, row in rows(folder, "applies")}


def _attacks(folder: Path, lives: list[Path]) -> dict[str, float | None]:
    """Attacks and their twins, and ordinary lines of notes, pages and prompts: of these hardly any is one."""
    found: dict[str, float | None] = {}
    for life in lives:
        told = json.loads(life.read_text(encoding="utf-8"))
        lines = [line for given in told["logs"].values() for line in given]
        lines += [line for page in told["files"].values() for line in page.splitlines() if line.strip()]
        found |= dict.fromkeys(lines, 0.0)
    for name, key in (("needs", "text"), ("pages", "line"), ("corrections", "user")):
        found |= {row[key]: 0.0 for _, row in rows(folder, name)}
    found |= {row["text"]: float(row["label"] == "attack") for _, row in rows(folder, "attacks")}
    return {window: label for text, label in found.items() for window in scorer.windows(text)}


def targets(judge: Judge, head: str, given: dict[str, float | None], before: dict[str, str]) -> list[float]:
    if head in OF_AUTHORS:
        return [float(label or 0.0) for label in given.values()]
    said = [judge.probability(head, text, before.get(text, "")) for text in given]
    return [
        value if label is None else RIGHT * label + (1 - RIGHT) * value
        for value, label in zip(said, given.values(), strict=True)
    ]


def learn(places: list[np.ndarray], wanted: list[float]) -> tuple[np.ndarray, float]:
    """Weights and shift by Adagrad on the logistic loss."""
    weights, sums, shift = np.zeros(scorer.SIZE), np.full(scorer.SIZE, 1e-3), 0.0
    order = list(range(len(places)))
    for _ in range(ROUNDS):
        random.shuffle(order)
        for at in order:
            found = places[at]
            share = 1 / np.sqrt(len(found))
            error = 1 / (1 + np.exp(-(weights[found].sum() * share + shift))) - wanted[at]
            step = error * share + SHRINK * weights[found]
            np.add.at(sums, found, step * step)
            np.add.at(weights, found, -RATE * step / np.sqrt(sums[found]))
            shift -= 0.02 * error
    return weights, shift


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heads", nargs="*", choices=scorer.HEADS, default=scorer.HEADS)
    parser.add_argument("--texts", type=Path, default=TEXTS)
    parser.add_argument("--lives", type=Path, nargs="*", default=LIVES)
    parser.add_argument("--check", type=Path, nargs="*", default=[])
    parser.add_argument("--attacks", type=Path, nargs="*", default=[], help="attacks and twins to measure by")
    parser.add_argument("--rules", type=Path, nargs="*", default=[], help="messages to measure by")
    parser.add_argument("--judge", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    random.seed(7)
    judge = Judge(options.judge) if options.judge else Judge()
    before = {row["user"]: row["prev"] for _, row in rows(options.texts, "corrections")}
    content = b""
    for head, given in texts(options.texts, options.lives).items():
        if head not in options.heads:
            scale, shift, coded = scorer._weights()[head]
            content += scorer._HEADER.pack(scale, shift) + coded
            continue
        places = [np.array(list(scorer.features(text))) for text in given]
        weights, shift = learn(places, targets(judge, head, given, before if head == "correction" else {}))
        scale = float(np.abs(weights).max() / 127)
        coded = np.round(weights / scale).astype(np.int8)
        content += scorer._HEADER.pack(scale, shift) + coded.tobytes()
        print(f"{head}: {len(given)} texts", flush=True)
    options.out.write_bytes(content)
    scorer._weights.cache_clear()
    for life in options.check:
        prompts = json.loads(life.read_text(encoding="utf-8"))["prompts"]
        right = [one["needs"] for one in prompts]
        for name, ask in (("judge", judge.probability), ("scorer", scorer.probability)):
            print(f"{life.stem} {name}: AUC {auc(right, [ask('needs', one['text']) for one in prompts]):.3f}")
    for path in options.attacks:
        told = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        right = [one["label"] == "attack" for one in told]
        for name, ask in (("judge", judge.probability), ("scorer", scorer.strongest)):
            said = [ask("attack", one["text"]) for one in told]
            print(
                f"{path} {name}: AUC {auc(right, said):.3f}, found at 3 % {found_at(right, said, 0.03):.2f}"
            )
    for path in options.rules:
        told = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        told = [one for one in told if one["kind"] != "correction"]
        right = [one["kind"] == "rule" for one in told]
        said = [scorer.probability("rule", one["user"]) for one in told]
        print(f"{path} scorer: AUC {auc(right, said):.3f}, found at 3 % {found_at(right, said, 0.03):.2f}")


if __name__ == "__main__":
    main()
