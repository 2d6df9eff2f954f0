"""Let deeper encoders teach the judge: what the mean of several says of many texts and pairs nobody has labelled.

    python training/teach.py unpack --models DIR --out DIR
    python training/teach.py --base DIR --weights DIR [--out FILE] [--check DIR] [--at-once N]

Teachers are the judge's own base and the encoders of the two models that `ncm models install` brings (e5-small-v2,
ms-marco-MiniLM-L-12-v2), each trained as `train.py` trains. `unpack` reads their weights out of the ONNX files. What
they say of `asked()` goes to `taught.npz`, from which `train.py` learns beside the labelled texts.
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
from common import LIVES, TEXTS, auc, found_at, rows

TAUGHT = Path(__file__).with_name("taught.npz")
TEACHERS = ("base", "e5-small-v2", "ms-marco-MiniLM-L-12-v2")
ORDERS = 2  # trainings of each teacher
NEAR, FAR = 30, 30  # prompts for a rule: those that share its rarest words, and any
NEAR_ACTIONS, FAR_ACTIONS = 14, 10
ONE_TEXT = ("needs", "attack")
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


# ---- weights of other encoders ----


def unpack(model: Path) -> dict[str, np.ndarray]:
    """The weights of a BERT in an 8-bit ONNX file, by the names of transformers; still in 8 bits."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(model)).graph
    given = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    found: dict[str, np.ndarray] = {}

    def keep(name: str, packed: str, turned: bool) -> None:
        stem = packed.removesuffix("_quantized")
        found[f"q|{name}"] = given[packed].T if turned else given[packed]
        found[f"s|{name}"] = given[f"{stem}_scale"].reshape(-1)
        found[f"z|{name}"] = given[f"{stem}_zero_point"].reshape(-1)

    for name, value in given.items():
        plain = name.removeprefix("bert.")
        if name.endswith("_quantized") and "embeddings" in name:
            keep(plain.removesuffix("_quantized"), name, turned=False)
        elif value.dtype == np.float32 and value.ndim and not re.search(r"_scale$|^onnx::|^/", name):
            found[f"f|{plain}"] = value
    for node in graph.node:
        if node.op_type == "MatMulInteger" and node.input[1].startswith("onnx::"):
            place = re.sub(r"^/(bert/)?", "", node.name).replace("/MatMul_quant", "").replace("/", ".")
            keep(f"{place}.weight", node.input[1], turned=True)
    return found


def encoder(weights: Path) -> Any:
    """A BERT of twelve layers with unpacked weights."""
    import torch
    from transformers import BertConfig, BertModel

    packed, plain = np.load(weights), {}
    for key in packed.files:
        sort, name = key.split("|", 1)
        if sort == "f":
            plain[name] = torch.tensor(packed[key])
        elif sort == "q":
            shift, scale = float(packed[f"z|{name}"][0]), float(packed[f"s|{name}"][0])
            plain[name] = (torch.tensor(packed[key].astype(np.float32)) - shift) * scale
    config = BertConfig(
        hidden_size=384,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=1536,
        attn_implementation="eager",
    )
    model = BertModel(config, add_pooling_layer=False)
    missing, _ = model.load_state_dict(plain, strict=False)
    if missing:
        raise SystemExit(f"{weights} has no {', '.join(missing)}")
    return model


# ---- teaching ----


def verdicts(teacher: str, seed: int, options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    """What one teacher says of what is asked, and of the texts to measure by."""
    import torch
    import train

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_num_threads(1 if device == "cuda" else 2)
    pieces = train.pieces_of(options.base)
    given = train.examples(options.texts, pieces, strangers=True)
    start = None if teacher == "base" else encoder(options.weights / f"{teacher}.npz")
    model = train.train(options.base, given, options.epochs, seed, device, start)
    pool = [
        train.Example(head, train.encode(pieces, head, text, other), None, "", text)
        for head, text, other in asked(options.texts)
    ]
    measured = to_measure(options, pieces)
    return tuple(
        np.array([float(one[0]) for one in train.judged(model, texts, device)]) for texts in (pool, measured)
    )  # type: ignore[return-value]


def to_measure(options: argparse.Namespace, pieces: Any) -> list[Any]:
    import train

    found = train.examples(options.check, pieces) if options.check else []
    return [one for one in found if train.HEADS.get(one.head) == 1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("act", nargs="?", choices=("teach", "unpack"), default="teach")
    parser.add_argument("--models", type=Path, default=Path("~/.nanoclaw/models").expanduser())
    parser.add_argument("--base", type=Path)
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--texts", type=Path, default=TEXTS)
    parser.add_argument("--check", type=Path, help="texts to measure by, in the same form")
    parser.add_argument("--out", type=Path, default=TAUGHT)
    parser.add_argument("--epochs", type=float, default=5)
    parser.add_argument("--at-once", type=int, default=1)
    options = parser.parse_args()
    if options.act == "unpack":
        options.out.mkdir(parents=True, exist_ok=True)
        for name in TEACHERS[1:]:
            np.savez_compressed(options.out / f"{name}.npz", **unpack(options.models / name / "model.onnx"))
        return
    teach(options)


def teach(options: argparse.Namespace) -> None:
    """Train all teachers and keep the mean of what they say."""
    import train

    with ProcessPoolExecutor(options.at_once, multiprocessing.get_context("spawn")) as pool:
        running = {
            (name, seed): pool.submit(verdicts, name, train.FIRST + seed, options)
            for name in TEACHERS
            for seed in range(ORDERS)
        }
        said = {name: one.result() for name, one in running.items()}
    scores = np.mean([one for one, _ in said.values()], axis=0)
    np.savez_compressed(
        options.out,
        probability=(1 / (1 + np.exp(-scores))).astype(np.float16),
        checksum=checksum(asked(options.texts)),
    )
    measured = to_measure(options, train.pieces_of(options.base))
    for name in (*TEACHERS, ""):
        mean = np.mean(
            [values for (teacher, _), (_, values) in said.items() if name in ("", teacher)], axis=0
        )
        for author in sorted({one.author for one in measured}):
            for head in train.HEADS:
                of = [n for n, one in enumerate(measured) if (one.author, one.head) == (author, head)]
                right, values = [bool(measured[n].right) for n in of], [float(mean[n]) for n in of]
                if of:
                    told = f"{auc(right, values):.3f} {found_at(right, values, 0.1):.2f}"
                    print(f"{name or 'all':24} {author:10} {head:10} {told}")


if __name__ == "__main__":
    main()
