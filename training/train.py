"""Train the judge: texts to one encoder with several heads, calibrated on authors it has not seen, as 8-bit ONNX.

    python training/train.py --base DIR --out DIR [--check DIR] [--epochs N] [--seeds N] [--folds N] [--at-once N]

`--base` has the weights and pieces that `base.py` wrote. Each author is left out once: what the others' model says of
these texts gives the figures. Then one model learns from all of them, and from what deeper models say of many more
(`teach.py`, `taught.npz`): half of each batch. `--check` has sets to measure by, which are never trained on. Needs the
dependency group `training`; a training takes minutes on an accelerator, which several may share. A processor trains one
model in about an hour of CPU time (`--folds 0 --seeds 1`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import random
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from base import encoder
from common import TEXTS, auc, found_at, rows
from teach import TAUGHT, asked, checksum
from torch import nn

from nanoclaw_memory.providers.judge import HEADS, OWN, REACHES, TYPES, Encoded, Judge, encode, encode_lines
from nanoclaw_memory.providers.multilingual import HIDDEN
from nanoclaw_memory.providers.wordpiece import WordPiece

OFFSETS = dict(zip(HEADS, np.cumsum([0, *HEADS.values()][:-1]).tolist(), strict=True))
OUTPUTS = sum(HEADS.values())
KEPT = (0, 2, 3, 5, 6, 8, 9, 11)  # layers of the base that the judge has
RATE, HEAD_RATE, BATCH, WARM = 8e-5, 1e-3, 64, 0.1
TAUGHT_SHARE = 0.65  # of what is drawn for a head that is taught
SMOOTH = 0.06
FIRST = 7
EVEN = 0.6  # tasks are drawn by their number of texts to this power: a small task is not drowned
# More often what much depends on.
DRAWN = {"correction": 1.6, "attack": 1.2, "applies": 2.0, "same": 0.5, "meets": 0.5}


class Example:
    """One text as a head reads it, and what is right."""

    def __init__(self, head: str, read: Encoded, right: Any, author: str, text: str) -> None:
        self.head, self.read, self.right, self.author, self.text = head, read, right, author, text


def examples(folder: Path, pieces: WordPiece, strangers: bool = False) -> list[Example]:
    """All texts of all authors; with `strangers` also actions beside policies that they were not written for."""
    found: list[Example] = []

    def add(head: str, author: str, right: Any, text: str, other: str = "") -> None:
        found.append(Example(head, encode(pieces, head, text, other), right, author, text))

    for author, row in rows(folder, "needs"):
        add("needs", author, row["label"] == "need", row["text"])
    for author, row in rows(folder, "corrections"):
        add("correction", author, row["label"] == "correction", row["user"], row["prev"])
        if row["label"] == "correction" and row["reach"] in REACHES:
            add("reach", author, REACHES.index(row["reach"]), row["user"], row["prev"])
    for author, row in rows(folder, "attacks"):
        add("attack", author, row["label"] == "attack", row["text"])
    for author, row in rows(folder, "duplicates"):
        add("same", author, bool(row["same"]), row["a"], row["b"])
        add("same", author, bool(row["same"]), row["b"], row["a"])
    policies = list(rows(folder, "policies"))
    for author, row in policies:
        add("meets", author, bool(row["meets"]), row["action"], f"{row['trigger']} {row['gate']}")
    if strangers:  # an action rarely meets somebody's other policies
        chance = random.Random(1)  # noqa: S311 (training, not secrets)
        for author, row in policies:
            other = chance.choice(policies)[1]
            if other["trigger"] != row["trigger"]:
                add("meets", author, False, row["action"], f"{other['trigger']} {other['gate']}")
    rules = list(rows(folder, "applies"))
    for author, row in rules:
        add("applies", author, bool(row["applies"]), row["prompt"], row["rule"])
    if strangers:
        chance = random.Random(2)  # noqa: S311 (training, not secrets)
        for author, row in rules:
            other = chance.choice(rules)[1]["rule"]
            if other != row["rule"]:
                add("applies", author, False, row["prompt"], other)
    for author, row in rows(folder, "pages"):
        kind = row["type"] if isinstance(row["type"], str) else row["type"][0]
        if kind in TYPES:
            add("type", author, TYPES.index(kind), row["line"], row["section"])
    for author, row in rows(folder, "foreign"):
        lines = [one["text"] for one in row["lines"]]
        own = [bool(one["own"]) for one in row["lines"]]
        for read in encode_lines(pieces, lines):
            found.append(Example(OWN, read, own[: len(read.lines)], author, "\n".join(lines)))
            own = own[len(read.lines) :]
    return found


def taught_examples(folder: Path, pieces: WordPiece) -> list[Example]:
    """What the teachers said of texts and pairs that nobody labelled."""
    pool, taught = asked(folder), np.load(TAUGHT)
    if taught["checksum"] != checksum(pool):
        raise SystemExit("taught.npz is of other texts: run teach.py again")
    return [
        Example(
            head,
            encode(pieces, head, text, other),
            float(said[0]) if HEADS[head] == 1 else said[: HEADS[head]].tolist(),
            "",
            text,
        )
        for (head, text, other), said in zip(pool, taught["probability"], strict=True)
    ]


class Model(nn.Module):
    """The encoder, a row of numbers for a text, and one number for each token."""

    def __init__(self, base: Path, layers: Sequence[int]) -> None:
        super().__init__()
        self.encoder = encoder(base, layers)
        self.middle = nn.Linear(HIDDEN, HIDDEN)
        self.heads = nn.Linear(HIDDEN, OUTPUTS)
        self.tokens = nn.Linear(HIDDEN, 1)
        self.drop = nn.Dropout(0.1)

    def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> tuple[Any, Any]:
        hidden = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * mask).sum(1) / mask.sum(1)
        return self.heads(self.drop(torch.tanh(self.middle(mean)))), self.tokens(self.drop(hidden)).squeeze(
            -1
        )


class Texts:
    """All texts as rows of tokens where the model is: a batch of them is a look-up."""

    def __init__(self, given: Sequence[Example], device: str) -> None:
        self._row = {id(one): row for row, one in enumerate(given)}
        self.sizes = np.array([len(one.read.ids) for one in given])
        seconds = [len(one.read.ids) if one.read.second is None else one.read.second for one in given]
        ids = np.zeros((len(given), self.sizes.max()), dtype=np.int32)
        for row, one in enumerate(given):
            ids[row, : self.sizes[row]] = one.read.ids
        self._ids = torch.tensor(ids, device=device)
        self._ends = torch.tensor(np.stack([self.sizes, seconds], 1), device=device)
        self._places = torch.arange(ids.shape[1], device=device)

    def batch(self, chosen: Sequence[Example]) -> tuple[Any, Any, Any]:
        """Tokens, which of them are there, and which belong to the second text."""
        rows = [self._row[id(one)] for one in chosen]
        longest = int(self.sizes[rows].max())
        picked = torch.tensor(rows).to(self._ids.device, non_blocking=True)
        sizes, seconds = self._ends[picked].split(1, dim=1)
        places = self._places[:longest]
        mask = places < sizes
        return self._ids[picked, :longest].long(), mask.long(), (mask & (places >= seconds)).long()


def parts_of(chosen: Sequence[Example], device: str) -> list[Sequence[Example]]:
    """A batch; on a processor in parts of like length, because there padding costs more than twice the time."""
    if device != "cpu":
        return [chosen]
    ordered = sorted(chosen, key=lambda one: len(one.read.ids))
    return [ordered[:32], ordered[32:48], ordered[48:56], ordered[56:]]


def shares_of(one: Example) -> list[float]:
    """What is right of a head with several outputs: one of them, or the shares that were taught."""
    if isinstance(one.right, int):
        return [float(place == one.right) for place in range(HEADS[one.head])]
    return list(one.right)


def loss_of(chosen: Sequence[Example], outputs: Any, tokens: Any) -> Any:
    """The mean of all examples' losses, head by head; all that say yes or no at once."""

    def known(values: Sequence[Any]) -> Any:
        return torch.tensor(values).to(outputs.device, non_blocking=True)

    total = outputs.new_zeros(())
    binary = [row for row, one in enumerate(chosen) if HEADS.get(one.head) == 1]
    if binary:
        values = outputs[known(binary), known([OFFSETS[chosen[row].head] for row in binary])]
        wanted = known([float(chosen[row].right) for row in binary]) * (1 - SMOOTH) + SMOOTH / 2
        total = total + nn.functional.binary_cross_entropy_with_logits(values, wanted, reduction="sum")
    spans = [(row, *span) for row, one in enumerate(chosen) if one.head == OWN for span in one.read.lines]
    if spans:
        owns = [float(own) for one in chosen if one.head == OWN for own in one.right]
        rows, first, last = known(spans).unsqueeze(2).unbind(1)
        places = torch.arange(tokens.shape[1], device=tokens.device)
        inside = ((places >= first) & (places < last.maximum(first + 1))).to(tokens.dtype)
        means = (tokens[rows.squeeze(1)] * inside).sum(1) / inside.sum(1)
        loss = nn.functional.binary_cross_entropy_with_logits(means, known(owns))
        total = total + loss * sum(one.head == OWN for one in chosen)
    for head in (name for name, size in HEADS.items() if size > 1):
        if picked := [row for row, one in enumerate(chosen) if one.head == head]:
            values = outputs[known(picked), OFFSETS[head] : OFFSETS[head] + HEADS[head]]
            wanted = known([shares_of(chosen[row]) for row in picked])
            total = total + nn.functional.cross_entropy(
                values, wanted, label_smoothing=SMOOTH, reduction="sum"
            )
    return total / len(chosen)


def train(
    base: Path,
    given: Sequence[Example],
    epochs: float,
    seed: int,
    device: str,
    taught: Sequence[Example] = (),
    layers: Sequence[int] = KEPT,
) -> Model:
    """A model that has seen so many texts as `epochs` times all labelled ones; some of them are taught instead."""
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(FIRST)  # all begin alike: their weights can be averaged
    model = Model(base, layers).to(device)
    random.seed(seed)
    torch.manual_seed(seed)
    texts = Texts([*given, *taught], device)
    by_task, by_taught = Draw(given), Draw(taught)
    names = sorted(by_task.of)
    shares = [DRAWN.get(name, 1.0) * len(by_task.of[name]) ** EVEN for name in names]
    slow = [value for name, value in model.named_parameters() if name.startswith("encoder")]
    fast = [value for name, value in model.named_parameters() if not name.startswith("encoder")]
    optimiser = torch.optim.AdamW(
        [{"params": slow, "lr": RATE}, {"params": fast, "lr": HEAD_RATE}],
        weight_decay=0.01,
        fused=device == "cuda",
    )
    steps = int(epochs * len(given) / BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser,
        lambda step: min((step + 1) / (WARM * steps), max(1 - step / steps, 0.0) / (1 - WARM)),
    )
    model.train()
    for _ in range(steps):
        chosen = []
        for name in random.choices(names, shares, k=BATCH):  # noqa: S311 (training, not secrets)
            of_teachers = name in by_taught.of and random.random() < TAUGHT_SHARE  # noqa: S311
            chosen.append((by_taught if of_teachers else by_task).next(name))
        optimiser.zero_grad()
        for part in parts_of(chosen, device):
            loss = loss_of(part, *model(*texts.batch(part)))
            (loss * (len(part) / len(chosen))).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    return model.eval()


class Draw:
    """Examples by their head; each is drawn once before any is drawn again."""

    def __init__(self, given: Sequence[Example]) -> None:
        self.of: dict[str, list[Example]] = defaultdict(list)
        for one in given:
            self.of[one.head].append(one)
        self._waiting: dict[str, list[Example]] = defaultdict(list)

    def next(self, head: str) -> Example:
        if not self._waiting[head]:
            self._waiting[head] = random.sample(self.of[head], len(self.of[head]))
        return self._waiting[head].pop()


def weights_of(options: argparse.Namespace, seed: int, device: str) -> dict[str, np.ndarray]:
    """What one training leads to."""
    pieces = pieces_of(options.base)
    given = examples(options.texts, pieces, strangers=True)
    taught = taught_examples(options.texts, pieces)
    state = train(options.base, given, options.epochs, seed, device, taught=taught).state_dict()
    return {name: value.cpu().numpy() for name, value in state.items()}


def verdicts_on(
    own: Sequence[Example], base: Path, others: Sequence[Example], epochs: float, device: str
) -> list[np.ndarray]:
    """What the others' model says of an author's texts."""
    return judged(train(base, others, epochs, FIRST, device), own, device)


def averaged(base: Path, trainings: Sequence[dict[str, np.ndarray]], device: str) -> Model:
    """The mean of several trainings in different orders: steadier than any of them."""
    model = Model(base, KEPT)
    model.load_state_dict(
        {
            name: torch.tensor(np.mean([one[name] for one in trainings], axis=0).astype(value.dtype))
            for name, value in trainings[0].items()
        }
    )
    return model.to(device).eval()


@torch.no_grad()
def judged(model: Model, given: Sequence[Example], device: str) -> list[np.ndarray]:
    """What the model says of each: its head's numbers, or one for each line."""
    texts = Texts(given, device)
    found: list[np.ndarray] = [np.empty(0)] * len(given)
    order = np.argsort(texts.sizes, kind="stable")
    for start in range(0, len(given), 256):
        numbers = order[start : start + 256]
        read = model(*texts.batch([given[number] for number in numbers]))
        outputs, tokens = (value.float().cpu().numpy() for value in read)
        for row, number in enumerate(numbers):
            one = given[number]
            if one.head == OWN:
                found[number] = np.array([tokens[row, a : max(b, a + 1)].mean() for a, b in one.read.lines])
            else:
                found[number] = outputs[row, OFFSETS[one.head] : OFFSETS[one.head] + HEADS[one.head]]
    return found


def figures(head: str, given: Sequence[Example], said: Sequence[np.ndarray]) -> dict[str, float]:
    if HEADS.get(head, 1) > 1:
        return {
            "texts": len(given),
            "right": float(np.mean([s.argmax() == e.right for e, s in zip(given, said, strict=True)])),
        }
    right = [value for one in given for value in (one.right if head == OWN else [one.right])]
    scores = [float(value) for one in said for value in one]
    at_zero = np.array(scores) > 0
    yes = np.array(right, dtype=bool)
    return {
        "texts": len(right),
        "auc": auc(right, scores),
        "found": float(at_zero[yes].mean()),
        "false": float(at_zero[~yes].mean()),
        **{
            f"found at {int(share * 100)} %": found_at(right, scores, share)
            for share in (0.03, 0.05, 0.1, 0.2)
        },
    }


def platt(right: Sequence[bool], scores: Sequence[float]) -> tuple[float, float]:
    """Scale and shift that make a probability of a score."""
    x, y = torch.tensor(scores, dtype=torch.float64), torch.tensor(right, dtype=torch.float64)
    scale, shift = (
        torch.ones(1, dtype=torch.float64, requires_grad=True),
        torch.zeros(1, dtype=torch.float64, requires_grad=True),
    )
    optimiser = torch.optim.LBFGS([scale, shift], max_iter=200)

    def closure() -> Any:
        optimiser.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(scale * x + shift, y)
        loss.backward()
        return loss

    optimiser.step(closure)
    return round(float(scale), 4), round(float(shift), 4)


def by_head(
    given: Sequence[Example], said: Sequence[np.ndarray]
) -> dict[str, tuple[list[Example], list[np.ndarray]]]:
    grouped: dict[str, tuple[list[Example], list[np.ndarray]]] = defaultdict(lambda: ([], []))
    for one, value in zip(given, said, strict=True):
        grouped[one.head][0].append(one)
        grouped[one.head][1].append(value)
    return grouped


def show(title: str, given: Sequence[Example], said: Sequence[np.ndarray]) -> dict[str, Any]:
    shown = {head: figures(head, *pair) for head, pair in sorted(by_head(given, said).items())}
    for head, values in shown.items():
        print(
            f"{title:14} {head:10}",
            " ".join(
                f"{name} {value:.3f}" if name != "texts" else f"{value}" for name, value in values.items()
            ),
            flush=True,
        )
    return shown


def export(model: Model, out: Path) -> None:
    """The model as ONNX, its weights in 8 bits."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = model.cpu().float()
    plain = out / "plain.onnx"
    feed = tuple(torch.ones(1, 12, dtype=torch.long) for _ in range(3))
    names = ["input_ids", "attention_mask", "token_type_ids"]
    torch.onnx.export(
        model,
        feed,
        str(plain),
        input_names=names,
        output_names=["heads", "tokens"],
        opset_version=17,
        dynamo=False,
        dynamic_axes={name: {1: "length"} for name in names} | {"tokens": {1: "length"}},
    )
    quantize_dynamic(str(plain), str(out / "model.onnx"), weight_type=QuantType.QInt8, per_channel=True)
    plain.unlink()


def pieces_of(base: Path) -> WordPiece:
    return WordPiece((base / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1])


def left_out(
    pool: ProcessPoolExecutor, options: argparse.Namespace, given: Sequence[Example], device: str
) -> dict[str, Any]:
    """What models say of authors whom they have not read, and the calibration by it."""
    authors = sorted({one.author for one in given})
    groups = [authors[number :: options.folds] for number in range(min(options.folds, len(authors)))]
    waiting = []
    for group in groups:
        own = [one for one in given if one.author in group]
        others = [one for one in given if one.author not in group]
        waiting.append((own, pool.submit(verdicts_on, own, options.base, others, options.epochs, device)))
    left, said = list[Example](), list[np.ndarray]()
    for group, (own, answer) in zip(groups, waiting, strict=True):
        left += own
        said += answer.result()
        show(" ".join(group), own, said[-len(own) :])
    calibration = {}
    for head, (chosen, values) in by_head(left, said).items():
        if HEADS.get(head, 1) == 1:
            right = [value for one in chosen for value in (one.right if head == OWN else [one.right])]
            calibration[head] = platt(right, [float(value) for one in values for value in one])
    return {"left out": show("left out", left, said), "calibration": calibration}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="what base.py wrote")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--texts", type=Path, default=TEXTS)
    parser.add_argument("--check", type=Path, help="texts to measure by, in the same form")
    parser.add_argument("--epochs", type=float, default=8)
    parser.add_argument("--seeds", type=int, default=5, help="trainings whose mean is the model")
    parser.add_argument("--at-once", type=int, default=1, help="trainings that share the accelerator")
    parser.add_argument("--folds", type=int, default=6, help="groups of authors that are left out in turn")
    parser.add_argument("--no-export", action="store_true")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    pieces = pieces_of(options.base)
    given = examples(options.texts, pieces, strangers=True)
    print({head: sum(one.head == head for one in given) for head in (*HEADS, OWN)}, flush=True)
    report: dict[str, Any] = {"calibration": dict(Judge().card.calibration)}
    with ProcessPoolExecutor(options.at_once, multiprocessing.get_context("spawn")) as pool:
        trainings = [
            pool.submit(weights_of, options, FIRST + number, device) for number in range(options.seeds)
        ]
        if options.folds:
            report |= left_out(pool, options, given, device)
        model = averaged(options.base, [one.result() for one in trainings], device)
    if options.check:
        checked = examples(options.check, pieces)
        for author in sorted({one.author for one in checked}):
            own = [one for one in checked if one.author == author]
            report[f"check {author}"] = show(f"check {author}", own, judged(model, own, device))
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.no_export:
        export(model, options.out)
        (options.out / "vocab.txt").write_bytes((options.base / "vocab.txt").read_bytes())
        contents = {name: (options.out / name).read_bytes() for name in ("model.onnx", "vocab.txt")}
        files = {
            name: (len(content), hashlib.sha256(content).hexdigest()) for name, content in contents.items()
        }
        card = {"files": files, "calibration": report["calibration"]}
        (options.out / "judge.json").write_text(json.dumps(card, indent=1) + "\n")
    (options.out / "figures.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
