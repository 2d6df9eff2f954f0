"""Make the judge's base of multilingual-e5-small: its weights, with a vocabulary that WordPiece reads.

    python training/base.py --models DIR --out DIR [--pieces N]

The model of `ncm models install multilingual-e5-small` knows 250,000 pieces of a hundred languages; two thirds of the
judge's size would be pieces that hardly any text has. Here they are folded as WordPiece folds a text (lower case, no
marks), what then is the same piece gets the mean of its vectors, and the pieces that occur most in the words of
sixteen languages (`wordfreq`) and in the training texts stay. `weights.npz` has the vectors in 8 bits and the twelve
layers in the 4 bits they came in; `train.py` reads as many layers as it is told.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import TEXTS

from nanoclaw_memory.providers.models import MULTILINGUAL
from nanoclaw_memory.providers.multilingual import HIDDEN, LAYERS, WeightsFile
from nanoclaw_memory.providers.unigram import SPACE
from nanoclaw_memory.providers.wordpiece import WordPiece

# Languages by the share of their words in what is counted: English and German are what the texts are in.
SHARES = {"en": 0.4, "de": 0.25} | dict.fromkeys("fr es it nl pt pl ru tr sv cs uk ja zh ar".split(), 0.025)
WORDS = 120_000  # of a language
TEXTS_SHARE = 0.5  # what the training texts count beside all languages
CUTS = (100_000, 60_000, 40_000)  # what is left out leads to other pieces: it is counted again after each cut
# Ids as WordPiece has them: padding, the heads' marks, begin and end.
MARKS = ["[PAD]", *(f"[unused{number}]" for number in range(99)), "[UNK]", "[CLS]", "[SEP]"]
MATRICES = ("q", "k", "v", "ao", "fi", "fo")
# The parts of a layer, as the file and as transformers call them.
NAMES = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


def folded(pieces: dict[str, int]) -> dict[str, list[int]]:
    """WordPiece's pieces, each with those of the model that read alike; none that WordPiece would split."""
    splitting = WordPiece(())
    found: dict[str, list[int]] = defaultdict(list)
    for piece, number in pieces.items():
        begins, text = piece.startswith(SPACE), piece.removeprefix(SPACE)
        words = splitting._split(text)
        if len(words) != 1 or SPACE in text:
            continue
        (word,) = words
        alone = len(splitting._split(f"a{word}")) > 1
        found[word if begins or alone else f"##{word}"].append(number)
    return found


def counted(pieces: set[str], words: Counter[str]) -> Counter[str]:
    """How often each piece occurs in the words, split as WordPiece does."""
    names = sorted(pieces)
    splitting = WordPiece(["[UNK]"] * 101 + names)
    found: Counter[str] = Counter()
    for word, weight in words.items():
        for number in splitting._pieces_of(word):
            if number > 100:
                found[names[number - 101]] += weight  # type: ignore[assignment]
    return found


def words_of_languages(folder: Path) -> Counter[str]:
    """Words with their weight: of each language by its share, and of the training texts."""
    import wordfreq

    splitting, found = WordPiece(()), Counter[str]()

    def add(counts: dict[str, float], share: float) -> None:
        total = sum(counts.values())
        for text, count in counts.items():
            for word in splitting._split(text):
                found[word] += share * count / total  # type: ignore[assignment]

    for language, share in SHARES.items():
        known = wordfreq.get_frequency_dict(language, "best")
        add({word: known[word] for word in sorted(known, key=known.__getitem__)[-WORDS:]}, share)
    told: Counter[str] = Counter()
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            told.update(_words(json.loads(line)))
    add(dict(told), TEXTS_SHARE)
    return found


def _words(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.split()
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [word for one in inner for word in _words(one)]


def chosen(pieces: dict[str, list[int]], words: Counter[str], most: int) -> list[str]:
    """The pieces that occur most; single characters of the commonest scripts always."""
    single = {piece for piece in pieces if len(piece.removeprefix("##")) == 1}
    left = set(pieces)
    for size in (*CUTS, most):
        seen = counted(left, words)
        ranked = sorted(left, key=lambda piece: (-seen[piece] - (piece in single) * _floor(piece), piece))
        left = set(ranked[:size])
    return sorted(left)


def _floor(piece: str) -> float:
    """What a single character counts at least: letters of alphabets are needed to spell what has no piece."""
    letter = piece.removeprefix("##")
    return 1.0 if letter.isascii() or "\u00a0" <= letter <= "\u04ff" else 0.0


def encoder(base: Path, layers: Sequence[int] = range(LAYERS)) -> Any:
    """A BERT of these layers with the weights of `weights.npz`."""
    import torch
    from transformers import BertConfig, BertModel

    kept = np.load(base / "weights.npz")
    words = kept["words"].astype(np.float32) * kept["words.s"].astype(np.float32)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=HIDDEN,
        num_hidden_layers=len(layers),
        num_attention_heads=12,
        intermediate_size=4 * HIDDEN,
        attn_implementation="sdpa",
    )
    given = {
        "embeddings.word_embeddings.weight": words,
        "embeddings.position_embeddings.weight": kept["emb.pos"].reshape(-1, HIDDEN),
        "embeddings.token_type_embeddings.weight": kept["emb.type"].reshape(-1, HIDDEN),
        "embeddings.LayerNorm.weight": kept["emb.ln.w"],
        "embeddings.LayerNorm.bias": kept["emb.ln.b"],
    }
    for number, layer in enumerate(layers):
        for short, name in NAMES.items():
            weight = kept[f"l{layer}.{short}.w"]
            if short in MATRICES:
                scale = kept[f"l{layer}.{short}.s"].astype(np.float32)
                weight = unpacked(weight, scale).reshape(4 * HIDDEN if short == "fi" else HIDDEN, -1)
            given[f"encoder.layer.{number}.{name}.weight"] = weight
            given[f"encoder.layer.{number}.{name}.bias"] = kept[f"l{layer}.{short}.b"]
    model = BertModel(config, add_pooling_layer=False)
    model.load_state_dict({name: torch.tensor(value.astype(np.float32)) for name, value in given.items()})
    return model


def unpacked(halves: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Weights out of blocks of 32 of 4 bits, whose low halves are the first 16."""
    return (np.concatenate([halves & 15, halves >> 4], axis=-1).astype(np.float32) - 8) * scale[..., None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, default=Path("~/.nanoclaw/models").expanduser())
    parser.add_argument("--texts", type=Path, default=TEXTS)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pieces", type=int, default=25_000, help="rows of the vocabulary, marks included")
    options = parser.parse_args()
    known = MULTILINGUAL.files[0]
    file = WeightsFile(options.models / MULTILINGUAL.name / known.name, known.sha256)
    tokenizer = file.tokenizer()
    pieces = folded(tokenizer._pieces)
    stay = chosen(pieces, words_of_languages(options.texts), options.pieces - len(MARKS))

    blocks = file.blocks("emb.word").reshape(-1, HIDDEN // 32)
    vectors = unpacked(blocks["halves"], blocks["scale"].astype(np.float32)).reshape(-1, HIDDEN)
    middle = vectors.mean(0)
    table = np.tile(middle, (len(MARKS) + len(stay), 1))
    begin, end, unknown = tokenizer._begin, tokenizer._end, tokenizer._unknown
    table[100], table[101], table[102] = vectors[unknown], vectors[begin], vectors[end]
    for row, piece in enumerate(stay, len(MARKS)):
        likely = np.array([math.exp(tokenizer._scores[number]) for number in pieces[piece]])
        table[row] = np.average(vectors[pieces[piece]], axis=0, weights=likely)
    scale = np.abs(table).max(1, keepdims=True) / 127
    kept: dict[str, np.ndarray] = {
        "words": np.round(table / scale).astype(np.int8),
        "words.s": scale.astype(np.float16),
    }
    for name in file._tensors:
        layer, part, *last = name.split(".")
        if name == "emb.word":
            continue
        if part in MATRICES and last == ["w"]:
            block = file.blocks(name)
            kept[f"{layer}.{part}.w"], kept[f"{layer}.{part}.s"] = block["halves"], block["scale"]
        else:
            kept[name] = file.numbers(name).astype(np.float16)
    options.out.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(options.out / "weights.npz", **kept)
    (options.out / "vocab.txt").write_text("\n".join([*MARKS, *stay]) + "\n", encoding="utf-8")
    print(f"{len(MARKS) + len(stay)} pieces, {LAYERS} layers")


if __name__ == "__main__":
    main()
