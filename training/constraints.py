"""Learn what binds a person and which requests it bears on: sentences to the weights of `constraints.json`.

    python training/constraints.py [--models DIR] [--out FILE]

Two linear heads a subject on the vectors of multilingual-e5-small, by least squares: what states that somebody cannot
or may not do something (`stated`), and what asks for something that this bears on (`asked`). Scores become
probabilities by scores of sentences that were left out. The directions are searched like questions, so nothing else is
stored.
"""

from __future__ import annotations

import argparse
import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import TEXTS, auc

from nanoclaw_memory.providers.local import LocalEmbedder
from nanoclaw_memory.providers.models import embedder
from nanoclaw_memory.retrieval import constraints

OWN = TEXTS / "constraints"
PROMPTS = ("author_a", "author_b", "author_c", "author_d", "author_r", "author_s", "author_l")
EACH = 80  # prompts of an author, which ask for nothing of the kind
SHRINK, FOLDS = 3.0, 8
OTHER = 0.3  # what a sentence of another subject counts among those that are none


def lines(name: str) -> list[tuple[str, str]]:
    """Subjects and sentences of a file."""
    rows = (OWN / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    found = (row.rpartition("\t") for row in rows)
    return [(subjects, text) for subjects, _, text in found]


def prompts() -> list[tuple[str, str]]:
    rows = [
        (TEXTS / author / "needs.jsonl").read_text(encoding="utf-8").splitlines()[:EACH] for author in PROMPTS
    ]
    return [("", json.loads(line)["text"]) for part in rows for line in part]


def solved(vectors: Any, labels: Any, near: Any) -> Any:
    """The weights and the shift that separate; both classes count the same, what is of another subject less."""
    others = np.where(near, OTHER, 1.0) * ~labels
    counts = np.where(labels, 0.5 / labels.sum(), 0.5 / others.sum() * others) * len(labels)
    whole = np.hstack([vectors, np.ones((len(vectors), 1))])
    ridge = np.eye(whole.shape[1]) * SHRINK
    ridge[-1, -1] = 1e-6
    return np.linalg.solve(
        (whole.T * counts) @ whole + ridge, (whole.T * counts) @ np.where(labels, 1.0, -1.0)
    )


def left_out(vectors: Any, labels: Any, near: Any, sentences: int) -> Any:
    """The score of each sentence by weights that have not learnt from it, in whatever form."""
    scores = np.zeros(len(labels))
    folds = np.arange(len(labels)) % sentences % FOLDS
    for fold in range(FOLDS):
        kept = folds != fold
        weights = solved(vectors[kept], labels[kept], near[kept])
        scores[folds == fold] = vectors[folds == fold] @ weights[:-1] + weights[-1]
    return scores


def calibrated(scores: Any, labels: Any) -> tuple[float, float]:
    """Scale and shift that make probabilities of scores."""
    scale, shift = 1.0, 0.0
    for _ in range(2_000):
        off = 1 / (1 + np.exp(-(scale * scores + shift))) - labels
        scale, shift = scale - 2.0 * (off * scores).mean(), shift - 2.0 * off.mean()
    return scale, shift


def head(name: str, vectors: Any, of: list[str], subject: str, sentences: int) -> dict[str, Any]:
    labels = np.array([subject in subjects for subjects in of])
    near = np.array([bool(subjects) for subjects in of])
    scores = left_out(vectors, labels, near, sentences)
    scale, shift = calibrated(scores, labels)
    probability = 1 / (1 + np.exp(-(scale * scores + shift)))
    found, false = (probability[labels] > 0.5).mean(), (probability[~labels] > 0.5).mean()
    print(
        f"{subject} {name}: AUC {auc(list(labels), list(scores)):.2f}, found {found:.2f}, false {false:.3f}"
    )
    weights = solved(vectors, labels, near)
    coded = (
        np.round(scale * weights[:-1] * constraints.SCALE / constraints.MOST).clip(-127, 127).astype(np.int8)
    )
    return {
        "weights": base64.b64encode(coded.tobytes()).decode(),
        "shift": round(float(scale * weights[-1] + shift), 4),
    }


def learn(embed: LocalEmbedder) -> dict[str, dict[str, Any]]:
    stated = lines("stated") + lines("other_stated") + prompts()[::4]
    asked = lines("asked") + prompts()
    asks: Callable[[str], Any] = embed.embed_query
    # As it is indexed: a line of a page, and a person's words.
    texts = [text for _, text in stated] + [f'User said, "{text}"' for _, text in stated]
    sentences = len(stated)
    stated *= 2
    facts = embed.embed_documents(texts).astype(float)
    wishes = np.vstack([asks(text) for _, text in asked]).astype(float)
    return {
        subject: {
            "stated": head("stated", facts, [one for one, _ in stated], subject, sentences),
            "asked": head("asked", wishes, [one for one, _ in asked], subject, len(asked)),
        }
        for subject in "fatspm"
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, default=Path("~/.nanoclaw/models").expanduser())
    parser.add_argument("--out", type=Path, default=constraints.FILE)
    options = parser.parse_args()
    heads = learn(LocalEmbedder(*embedder(options.models)))
    options.out.write_text(json.dumps(heads, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
