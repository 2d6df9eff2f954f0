"""Let deeper encoders teach the judge: what the mean of several says of many texts and pairs nobody has labelled.

    python training/teach.py --base DIR [--out FILE] [--check DIR] [--orders N] [--at-once N]

Teachers are all twelve layers of the judge's base, trained as `train.py` trains, in several orders. What they say of
`asked()` goes to `taught.npz`, from which `train.py` learns beside the labelled texts.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import random
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from common import LIVES, TEXTS, rows

from nanoclaw_memory.providers.multilingual import LAYERS

TAUGHT = Path(__file__).with_name("taught.npz")
NEAR, FAR = 30, 30  # prompts for a rule: those that share its rarest words, and any
NEAR_ACTIONS, FAR_ACTIONS = 14, 10
Asked = tuple[str, str, str]  # head, text, other text


def asked(folder: Path = TEXTS, lives: Iterable[Path] = LIVES) -> list[Asked]:
    """Texts and pairs made of all authors' texts, always the same: what somebody might be asked about them."""
    chance = random.Random(3)  # noqa: S311 (training, not secrets)
    needs = _unique(row["text"] for _, row in rows(folder, "needs"))
    prompts = _unique(row["prompt"] for _, row in rows(folder, "applies"))
    lived = _unique(one["text"] for path in lives for one in json.loads(path.read_text())["prompts"])
    said = [(row["prev"], row["user"]) for _, row in rows(folder, "corrections")]
    users = _unique(user for _, user in said)
    taught = _unique(row["user"] for _, row in rows(folder, "corrections") if row["label"] == "correction")
    rules = _unique([*(row["rule"] for _, row in rows(folder, "applies")), *taught])
    policies = list(rows(folder, "policies"))
    gates = _unique(f"{row['trigger']} {row['gate']}" for _, row in policies)
    actions = _unique(row["action"] for _, row in policies)
    attacks = _unique(row["text"] for _, row in rows(folder, "attacks"))
    lines = _unique(row["line"] for _, row in rows(folder, "pages"))
    messages = [*needs, *prompts, *lived]
    made: list[Asked] = [("needs", one, "") for one in [*prompts, *lived, *users, *actions]]
    made += [("attack", one, "") for one in [*rules, *gates, *lines, *needs]]
    made += [("attack", one, "") for one in attacks]
    answers = [prev for prev, _ in said if prev]
    made += [("correction", one, chance.choice(answers)) for one in [*users, *needs, *prompts, *lived]]
    made += [("correction", one, "") for one in [*users, *prompts]]
    for head, others, texts, near, far in (
        ("applies", rules, messages, NEAR, FAR),
        ("meets", gates, [*actions, *messages], NEAR_ACTIONS, FAR_ACTIONS),
    ):
        index = Nearest(texts)
        for other in others:
            chosen = {*index.of(other, near), *chance.sample(range(len(texts)), far)}
            made += [(head, texts[number], other) for number in sorted(chosen)]
    duplicates = _unique(row[side] for _, row in rows(folder, "duplicates") for side in "ab")
    index = Nearest(duplicates)
    made += [("same", duplicates[number], one) for one in duplicates for number in index.of(one, 4)[1:]]
    made += [("reach", one, chance.choice(answers)) for one in taught]
    sections = _unique(row["section"] for _, row in rows(folder, "pages"))
    made += [("type", one, "") for one in [*duplicates, *lines, *gates, *rules]]
    made += [("type", one, chance.choice(sections)) for one in [*duplicates, *lines]]
    return list(dict.fromkeys(made))


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


class Nearest:
    """Texts by the rare words that they share."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._postings: dict[str, list[int]] = defaultdict(list)
        for number, text in enumerate(texts):
            for word in _words(text):
                self._postings[word].append(number)
        self._size = len(texts)

    def of(self, text: str, most: int) -> list[int]:
        """The nearest first."""
        score: Counter[int] = Counter()
        for word in _words(text):
            found = self._postings.get(word, ())
            for number in found:
                score[number] += math.log(self._size / len(found))  # type: ignore[assignment]
        return sorted(score, key=lambda number: (-score[number], number))[:most]


def _words(text: str) -> list[str]:
    return sorted(set(re.findall(r"\w+", text.lower())))


def checksum(pool: Sequence[Asked]) -> int:
    """Tells whether what was taught belongs to these texts."""
    return zlib.crc32(json.dumps(pool).encode())


# ---- teaching ----


def verdicts(seed: int, options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    """What one teacher says of what is asked, and of the texts to measure by."""
    import torch
    import train

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_num_threads(1 if device == "cuda" else 2)
    pieces = train.pieces_of(options.base)
    given = train.examples(options.texts, pieces, strangers=True)
    model = train.train(options.base, given, options.epochs, seed, device, layers=range(LAYERS))
    pool = [
        train.Example(head, train.encode(pieces, head, text, other), None, "", text)
        for head, text, other in asked(options.texts)
    ]
    measured = to_measure(options, pieces)
    return padded(train.judged(model, pool, device)), padded(train.judged(model, measured, device))


def padded(said: Sequence[np.ndarray]) -> np.ndarray:
    """One row for each; of a head with one output only the first column counts."""
    found = np.zeros((len(said), max(map(len, said), default=1)), dtype=np.float32)
    for row, values in enumerate(said):
        found[row, : len(values)] = values
    return found


def probabilities(pool: Sequence[Asked], scores: np.ndarray) -> np.ndarray:
    """The probability of yes, or the shares of a head's outputs."""
    import train

    found = np.zeros(scores.shape, dtype=np.float16)
    for row, (head, _, _) in enumerate(pool):
        size = train.HEADS[head]
        powers = np.exp(scores[row, :size] - (scores[row, :size].max() if size > 1 else 0))
        found[row, :size] = powers / (powers.sum() if size > 1 else 1 + powers)
    return found


def to_measure(options: argparse.Namespace, pieces: Any) -> list[Any]:
    import train

    found = train.examples(options.check, pieces) if options.check else []
    return [one for one in found if one.head in train.HEADS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="what base.py wrote")
    parser.add_argument("--texts", type=Path, default=TEXTS)
    parser.add_argument("--check", type=Path, help="texts to measure by, in the same form")
    parser.add_argument("--out", type=Path, default=TAUGHT)
    parser.add_argument("--epochs", type=float, default=5)
    parser.add_argument("--orders", type=int, default=3, help="trainings whose mean teaches")
    parser.add_argument("--at-once", type=int, default=1)
    options = parser.parse_args()
    import train

    with ProcessPoolExecutor(options.at_once, multiprocessing.get_context("spawn")) as executor:
        running = [
            executor.submit(verdicts, train.FIRST + number, options) for number in range(options.orders)
        ]
        told = [one.result() for one in running]
    pool = asked(options.texts)
    np.savez_compressed(
        options.out,
        probability=probabilities(pool, np.mean([one for one, _ in told], axis=0)),
        checksum=checksum(pool),
    )
    measured = to_measure(options, train.pieces_of(options.base))
    mean = np.mean([one for _, one in told], axis=0)
    for author in sorted({one.author for one in measured}):
        of = [number for number, one in enumerate(measured) if one.author == author]
        said = [mean[number, : train.HEADS[measured[number].head]] for number in of]
        train.show(author, [measured[number] for number in of], said)


if __name__ == "__main__":
    main()
