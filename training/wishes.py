"""Teach the scorer of requests about memory: patterns of wishes and of what sounds alike, to `request_scorer.bin`.

    python training/wishes.py [--out FILE] [--show]

Wishes are the patterns in `wishes/` (alternatives in round brackets, places in curly ones). One not to store something
is put before, behind and into statements; both kinds are mistyped as people do. Others are the patterns of what sounds
alike and half of the texts and lives; the other half says how many ordinary messages are taken for a wish.
"""

# ruff: noqa: E501
from __future__ import annotations

import argparse
import json
import random
import re
from binascii import crc32
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from common import LIVES, TEXTS

from nanoclaw_memory.intake import request_scorer as scorer

HERE = Path(__file__).parent / "wishes"
DRAW = random.Random(11)  # noqa: S311
FILLERS = json.loads((HERE / "fillers.json").read_text(encoding="utf-8"))
LANGUAGES = ("en", "de", "fr", "es", "it", "nl")
ORDERS = 3  # of the examples, whose weights are averaged
MOST = 2000  # characters of an ordinary text
CLOSE = 0.6  # share that a clause and a wish have in common, from which on the clause must be recognised
Example = tuple[np.ndarray, int]  # a clause and its kind: 0 none, 1 store, 2 forget
FRAMES = (
    "{w}", "{w}", "{w}: {s}", "{w}: {s}", "{w}. {s}", "{w}, {s}", "{w}, but {s}", "{w} {s}", "{w} - {s}", "{s}. {w}", "{s}. {w}.", "{s}, {w}",
    "{s} {w}", "{s}\n{w}", "{s} ({w})", "{s}. {w}. {s}.", "{s}, and {w}", "{s} - {w}", "{s}; {w}", "hey, {w}. {s}", "ok so {w}, {s}",
    "{s}, but {w}", "{w}!! {s}", "{w}... {s}", "{s} so {w}", "{w}\n\n{s}", "{s}? {w}", "between us: {s}. {w}", "{s}. btw {w}", "{s} {w} {s}",
)  # fmt: skip
LEADS = ("", "", "", "", "hey ", "ok ", "hi, ", "so ", "also ", "and ", "sorry, ", "quick one: ", "btw ")
TAILS = ("", "", "", ".", "!", " ok?", "!!", " :)", " thanks", "...")
PLEASE = {"en": ("pls", "plz", "please"), "de": ("bitte", "bidde", "pls")}


def patterns(name: str) -> Iterator[tuple[str, str]]:
    """Yield the language and the text of each pattern."""
    language = "en"
    for line in (HERE / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            language = line[2:].strip() if line[2:].strip() in LANGUAGES else language
        elif line.strip():
            yield language, line


def filled(pattern: str, language: str) -> str:
    """Return a pattern with its alternatives chosen and its places filled."""
    while found := re.search(r"\(([^()]*)\)", pattern):
        pattern = pattern[: found.start()] + DRAW.choice(found[1].split("|")) + pattern[found.end() :]
    return re.sub(r" {2,}", " ", placed(pattern, language)).replace(r"\.", ".").strip()


def placed(pattern: str, language: str) -> str:
    while found := re.search(r"\{(\w)(?::(\w\w))?\}", pattern):
        given = FILLERS[found[1]]
        said = given.get(found[2] or language, given["en"])
        pattern = pattern[: found.start()] + DRAW.choice(said.split("|")) + pattern[found.end() :]
    return pattern


def mistyped(text: str) -> str:
    """Return a text as people type it in a hurry."""
    if DRAW.random() < 0.45:
        text = text.lower()
    if DRAW.random() < 0.35:
        text = text.replace("'", "")
    if DRAW.random() < 0.2:
        text = re.sub(r"\bplease\b", lambda _: DRAW.choice(("pls", "plz", "pls")), text)
    if DRAW.random() < 0.1:
        text = re.sub(r"\byou\b", "u", text)
    if DRAW.random() < 0.15:
        text = text.replace("ä", "ae").replace("ö", "oe").replace("ü", "ue").replace("ß", "ss")
    if DRAW.random() < 0.15 and len(text) > 12:
        at = DRAW.randrange(1, len(text) - 2)
        if text[at].isalpha() and text[at + 1].isalpha():
            text = DRAW.choice(
                (
                    text[:at] + text[at + 1 :],
                    text[:at] + text[at] + text[at:],
                    text[:at] + text[at + 1] + text[at] + text[at + 2 :],
                )
            )
    return text


def wish(pattern: str, language: str, framed: bool) -> tuple[str, tuple[int, int]]:
    """Return a message with a wish, and where it is."""
    core = mistyped(filled(pattern, language))
    frame = (
        DRAW.choice(FRAMES)
        if framed
        else DRAW.choice(("{w}", "{w}", "{w}.", "hey {w}", "ok {w}", "{w}!", "{w}, thanks"))
    )
    text = ""
    span = (0, 0)
    for piece in re.split(r"(\{\w\})", frame):
        if piece == "{w}":
            span = (len(text), len(text) + len(core))
            text += core
        else:
            text += mistyped(placed(piece, language)) if piece else ""
    return text, span


def clauses_of(text: str, span: tuple[int, int] = (0, 0)) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the features of the clauses that are about as long as a span, and of those that do not touch it."""
    shares, outside = [], []
    for clause in scorer.clauses(text):
        found = np.array(scorer.features(clause), dtype=np.int32)
        common = min(clause.end, span[1]) - max(clause.start, span[0])
        if len(found) and common > 0:
            shares.append((common / (max(clause.end, span[1]) - min(clause.start, span[0])), found))
        elif len(found):
            outside.append(found)
    best = max((share for share, _ in shares), default=0.0)
    return [found for share, found in shares if share >= min(best, CLOSE)], outside


def ordinary(half: int) -> Iterator[str]:
    """Yield half of the texts and lives."""
    told = set()
    for path in sorted(TEXTS.glob("*/*.jsonl")):
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            told.update(value for value in row.values() if isinstance(value, str))
    for life in LIVES:
        given = json.loads(life.read_text(encoding="utf-8"))
        told.update(line for lines in given["logs"].values() for line in lines)
        told.update(line for page in given["files"].values() for line in page.splitlines())
        told.update(one[who] for one in given["exchanges"] for who in ("user", "agent") if who in one)
    yield from (text for text in sorted(told) if 8 < len(text) < MOST and crc32(text.encode()) % 2 == half)


def examples(each: int, halves: tuple[int, ...]) -> list[Example]:
    found: list[Example] = []
    for name, kind in (("keep.txt", 1), ("forget.txt", 2)):
        for language, pattern in patterns(name):
            for _ in range(2 * kind * each):  # there are fewer patterns of wishes to forget
                inside, outside = clauses_of(*wish(pattern, language, kind == 1 or DRAW.random() < 0.15))
                found += [(one, kind) for one in inside]
                found += [(one, 0) for one in outside]
    for language, pattern in patterns("others.txt"):
        for _ in range(3 * each):
            text = DRAW.choice(LEADS) + mistyped(filled(pattern, language)) + DRAW.choice(TAILS)
            found += [(one, 0) for one in clauses_of(text)[1]]
    for text in (text for half in halves for text in ordinary(half)):
        found += [(one, 0) for one in clauses_of(text)[1]]
    return found


def learn(given: list[Example], rounds: int, shrink: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return weights and shifts of both heads, by Adagrad on the logistic loss, in batches."""
    heads = len(scorer.HEADS)
    weights, sums, shifts = (
        np.zeros((heads, scorer.SIZE)),
        np.full((heads, scorer.SIZE), 1e-2),
        np.full(heads, -2.0),
    )
    order = np.arange(len(given))
    draw = np.random.default_rng(seed)
    for turn in range(rounds):
        draw.shuffle(order)
        loss = 0.0
        for at in range(0, len(order), 128):
            batch = [given[i] for i in order[at : at + 128]]
            for head in range(heads):
                rows = [row for row, _ in batch]
                wanted = np.array([kind == head + 1 for _, kind in batch], dtype=float)
                owner = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
                flat = np.concatenate(rows)
                logits = np.bincount(owner, weights[head, flat], len(rows)) + shifts[head]
                chance = 1 / (1 + np.exp(-np.clip(logits, -30, 30)))
                error = chance - wanted
                loss -= np.log(np.where(wanted > 0, chance, 1 - chance) + 1e-9).sum()
                step = np.bincount(flat, error[owner], scorer.SIZE)
                touched = np.unique(flat)
                step = step[touched] + shrink * len(rows) * weights[head, touched]
                sums[head, touched] += step * step
                weights[head, touched] -= 0.1 * step / np.sqrt(sums[head, touched])
                shifts[head] -= 0.02 * error.mean()
        print(f"round {turn}: loss {loss / len(order):.4f}", flush=True)
    return weights, shifts


def write(path: Path, weights: np.ndarray, shifts: np.ndarray) -> None:
    content = b""
    for row, shift in zip(weights, shifts, strict=True):
        scale = float(np.quantile(np.abs(row[row != 0]), 0.9995) / 127)
        content += scorer.HEADER.pack(scale, shift)
        content += np.clip(np.round(row / scale), -127, 127).astype(np.int8).tobytes()
    path.write_bytes(content)
    scorer._model.cache_clear()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=scorer.FILE)
    parser.add_argument("--each", type=int, default=40, help="messages of each pattern")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--shrink", type=float, default=1e-5)
    parser.add_argument(
        "--half", action="store_true", help="learn half of the ordinary texts, and count those of the other"
    )
    parser.add_argument(
        "--show", action="store_true", help="print the ordinary texts that are taken for a wish"
    )
    options = parser.parse_args()
    given = examples(options.each, (0,) if options.half else (0, 1))
    print({kind: sum(one == kind for _, one in given) for kind in (0, 1, 2)}, "clauses", flush=True)
    orders = [learn(given, options.rounds, options.shrink, seed) for seed in range(ORDERS)]
    write(options.out, *(np.mean(learnt, axis=0) for learnt in zip(*orders, strict=True)))
    scorer.FILE = options.out
    texts = list(ordinary(1))
    for head in scorer.HEADS:
        wrong = [text for text in texts if scorer.asks(head, text)]
        print(f"{head}: {len(wrong)} of {len(texts)} ordinary texts")
        if options.show:
            print("\n".join(f"  {scorer.strongest(head, text):5.1f} {text!r}" for text in wrong))


if __name__ == "__main__":
    main()
