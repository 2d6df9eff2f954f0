"""Learn what binds a person and which requests it bears on: sentences to the weights of `constraints.json`.

    python training/constraints.py [--models DIR] [--out FILE]

Three linear heads a subject on the vectors of multilingual-e5-small, by least squares: where passages lie that state
that somebody cannot or may not do something (`stated`, searched like a question, so nothing else is stored), whether a
sentence or clause states it (`clause`), and what asks for something that this bears on (`asked`). Scores become
probabilities by scores of sentences that were left out. `patterns.txt` adds the same sentences with other people and
foods, and their look-alikes. `bench/constraints.py` measures on sentences that are not learnt from.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from common import TEXTS, auc

from nanoclaw_memory.providers.local import LocalEmbedder
from nanoclaw_memory.providers.models import embedder
from nanoclaw_memory.retrieval import constraints

OWN = TEXTS / "constraints"
PROMPTS = ("author_a", "author_b", "author_c", "author_d", "author_r", "author_s", "author_l")
EACH = 80  # prompts of an author, which ask for nothing of the kind
SHRINK, FOLDS = 3.0, 8
SHRINK_CENTRED = 1.0  # for vectors less their mean
EACH_PATTERN, PATTERN = 3, 0.5  # sentences of a pattern, and what one counts
_SLOT = re.compile(r"\{(\w+)\}")
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


def patterned() -> list[tuple[str, str, int]]:
    """Subjects and sentences of the patterns, and which pattern each is of."""
    draw, slots = random.Random(3), dict[str, list[str]]()  # noqa: S311
    found: list[tuple[str, str, int]] = []
    for number, row in enumerate((OWN / "patterns.txt").read_text(encoding="utf-8").splitlines()):
        name, _, text = row.partition("\t")
        if name.startswith("="):
            slots[name[1:]] = text.split("|")
            continue
        filled = {_SLOT.sub(lambda slot: draw.choice(slots[slot[1]]), text) for _ in range(EACH_PATTERN)}
        found += [(name, one[:1].upper() + one[1:], number) for one in sorted(filled)]
    return found


def in_company(rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Each sentence before or after another that binds nobody: people rarely say one thing alone."""
    draw, found = random.Random(7), list[tuple[str, str]]()  # noqa: S311
    others = [text for _, text in lines("other_stated")]
    for subjects, text in rows:
        other = draw.choice(others).rstrip(".")
        found.append(
            (subjects, f"{text.rstrip('.')}, {other}" if draw.random() < 0.5 else f"{other}. {text}")
        )
    return found


class Sentences(msgspec.Struct):
    """Vectors of sentences, their subjects, which are left out together, and what each counts."""

    vectors: Any
    of: list[str]
    together: Any
    counts: Any
    shrink: float = SHRINK

    def labels(self, subject: str) -> Any:
        return np.array([subject in subjects for subjects in self.of])

    def solved(self, subject: str, kept: Any) -> Any:
        """The weights and the shift that separate; both classes count the same, what is of another subject less."""
        labels = self.labels(subject)[kept]
        near = np.array([bool(subjects) for subjects in self.of])[kept]
        own = labels * self.counts[kept]
        others = np.where(near, OTHER, 1.0) * ~labels * self.counts[kept]
        counts = (0.5 / own.sum() * own + 0.5 / others.sum() * others) * len(labels)
        whole = np.hstack([self.vectors[kept], np.ones((len(labels), 1))])
        ridge = np.eye(whole.shape[1]) * self.shrink
        ridge[-1, -1] = 1e-6
        return np.linalg.solve(
            (whole.T * counts) @ whole + ridge, (whole.T * counts) @ np.where(labels, 1.0, -1.0)
        )

    def left_out(self, subject: str) -> Any:
        """The score of each sentence by weights that have not learnt from it, in whatever form."""
        scores = np.zeros(len(self.of))
        for fold in range(FOLDS):
            out = self.together % FOLDS == fold
            weights = self.solved(subject, ~out)
            scores[out] = self.vectors[out] @ weights[:-1] + weights[-1]
        return scores


def calibrated(scores: Any, labels: Any) -> tuple[float, float]:
    """Scale and shift that make probabilities of scores."""
    scale, shift = 1.0, 0.0
    for _ in range(2_000):
        off = 1 / (1 + np.exp(-(scale * scores + shift))) - labels
        scale, shift = scale - 2.0 * (off * scores).mean(), shift - 2.0 * off.mean()
    return scale, shift


def head(name: str, read: Sentences, subject: str) -> dict[str, Any]:
    labels, scores = read.labels(subject), read.left_out(subject)
    scale, shift = calibrated(scores, labels)
    probability = 1 / (1 + np.exp(-(scale * scores + shift)))
    found, false = (probability[labels] > 0.5).mean(), (probability[~labels] > 0.5).mean()
    print(
        f"{subject} {name}: AUC {auc(list(labels), list(scores)):.2f}, found {found:.2f}, false {false:.3f}"
    )
    weights = read.solved(subject, np.ones(len(labels), dtype=bool))
    coded = (
        np.round(scale * weights[:-1] * constraints.SCALE / constraints.MOST).clip(-127, 127).astype(np.int8)
    )
    return {
        "weights": base64.b64encode(coded.tobytes()).decode(),
        "shift": round(float(scale * weights[-1] + shift), 4),
    }


def learn(embed: LocalEmbedder) -> dict[str, dict[str, Any]]:
    base = lines("stated") + lines("other_stated") + prompts()[::4]
    company, asked, filled = in_company(base), lines("asked") + prompts(), patterned()

    def centred(texts: list[str]) -> Any:
        return np.vstack([constraints.centred(embed.embed_query(text)) for text in texts]).astype(float)

    # As it is indexed: a line of a page, and a person's words, also with other words.
    texts = [text for _, text in base] + [f'User said, "{text}"' for _, text in base + company]
    number = np.arange(len(base))
    stated = Sentences(
        embed.embed_documents(texts).astype(float),
        [one for one, _ in [*base, *base, *company]],
        np.tile(number, 3),
        np.ones(len(texts)),
    )
    clause = Sentences(
        centred([*(text for _, text in base), *(text for _, text, _ in filled)]),
        [*(one for one, _ in base), *(one for one, _, _ in filled)],
        np.concatenate([number, [row for _, _, row in filled]]),
        np.concatenate([np.ones(len(base)), np.full(len(filled), PATTERN)]),
        SHRINK_CENTRED,
    )
    wishes = Sentences(
        centred([text for _, text in asked]),
        [one for one, _ in asked],
        np.arange(len(asked)),
        np.ones(len(asked)),
        SHRINK_CENTRED,
    )
    return {
        subject: {
            "stated": head("stated", stated, subject),
            "clause": head("clause", clause, subject),
            "asked": head("asked", wishes, subject),
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
