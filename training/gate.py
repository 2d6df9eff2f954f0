"""Learn what a helpful passage is: people's notes and prompts to the weights of `gate.json`.

    python training/gate.py [--lives FILE…] [--check FILE…] [--models DIR] [--judge DIR] [--out FILE]

Each life is fed into a home at its dates, whole and as a third and an eighth of it, so that a young memory is met too,
and every prompt is asked as the first message of a new session. A passage helps when it has a string that its author
named as an answer. Most messages need nothing, so the memory of a life is also asked what it cannot know: its own
prompts whose answer is in the part left out, some of other people's, and ordinary work (`texts/work.txt`). What helps
is learnt from whole lives, whether anything does from all. Each life is left out once: how the others' weights do on it
is printed, and gives the second model, that says whether anything helps at all, passages as it will meet them.
`--check` are lives to measure by that are not learnt from.
"""

from __future__ import annotations

import argparse
import json
import pickle
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parent.parent / "bench"))

from common import LIVES, TEXTS, auc

from nanoclaw_memory.intake.authorship import asking_words
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.providers import scorer
from nanoclaw_memory.providers.judge import Judge
from nanoclaw_memory.providers.models import embedder
from nanoclaw_memory.retrieval import gate
from nanoclaw_memory.retrieval.candidates import Centres
from nanoclaw_memory.retrieval.plain_question import plain_question
from nanoclaw_memory.retrieval.searcher import Question
from nanoclaw_memory.turn.recaller import OPEN
from needs import NOW, feed

OUT = Path(gate.__file__).with_name("gate.json")
MODEL = "local/multilingual-e5-small"
SIZES, WHOLE = (1, 1 / 3, 1 / 8), "1.00"
FOREIGN = 50  # prompts of other lives that a life is asked
# What a prompt counts when it is learnt whether anything helps: authors chose their own prompts with care.
COUNTS = {"own": 1.0, "work": 0.3, "lost": 0.15, "foreign": 0.1}
SHRINK_PASSAGE, SHRINK_MESSAGE = 3.0, 2.0
OF_VECTORS = 12  # of the best passages of a prompt, whose vectors make the centre
Array = npt.NDArray[np.float64]
Lives = dict[str, "list[Prompt]"]


class Prompt(msgspec.Struct):
    """A prompt with what speaks for it and for each of its passages."""

    source: str
    needs: bool
    about: dict[str, float]
    names: list[str]
    features: Array  # of each passage, by name
    right: Array
    foreign: Sequence[bool]
    pasted: Sequence[bool]
    asked: Array | None = None
    vectors: Sequence[Array | None] = ()

    def column(self, name: str) -> int:
        return self.names.index(name)


def younger(life: dict[str, Any], share: float, seed: str) -> dict[str, Any]:
    """A part of a life: of its sessions, its log lines and the lines of its pages."""
    if share == 1:
        return life
    drawn = random.Random(seed)  # noqa: S311 - the same sample again
    kept = {one for one in sorted({one["session"] for one in life["exchanges"]}) if drawn.random() < share}
    files = {
        path: "\n".join(
            line for line in text.split("\n") if not line.lstrip().startswith("-") or drawn.random() < share
        )
        for path, text in life["files"].items()
    }
    logs = {day: [line for line in lines if drawn.random() < share] for day, lines in life["logs"].items()}
    talk = [one for one in life["exchanges"] if one["session"] in kept]
    return {
        **life,
        "files": files,
        "logs": {day: lines for day, lines in logs.items() if lines},
        "exchanges": talk,
    }


def asked_of(
    name: str, life: dict[str, Any], lives: Mapping[str, Any], seed: str
) -> Iterator[dict[str, Any]]:
    """The prompts that a memory is asked, each with where it is from."""
    drawn = random.Random(seed)  # noqa: S311 - the same sample again
    told = [*life["files"].values(), *(line for lines in life["logs"].values() for line in lines)]
    told += [text for one in life["exchanges"] for text in (one["user"], one["agent"])]
    known = "\n".join(told).casefold()

    def answered(prompt: Mapping[str, Any], by: str = "gold") -> bool:
        return any(text.casefold() in known for text in prompt[by])

    for prompt in life["prompts"]:
        if not prompt["needs"] or answered(prompt):
            yield {**prompt, "source": "own"}
        elif not answered(prompt, "wrong"):  # an old answer would be of use
            yield {**prompt, "needs": False, "source": "lost"}
    projects = sorted({one["project"] for one in life["prompts"]})
    for line in (TEXTS / "work.txt").read_text(encoding="utf-8").splitlines():
        text, _, ruled = line.partition("|")
        if text.strip() and not line.startswith("#") and name[-1] not in ruled.split():
            project = drawn.choice([one for one in projects if one] or [""])
            yield {"text": text.strip(), "project": project, "needs": False, "gold": [], "source": "work"}
    others = [
        one
        for other, found in lives.items()
        if other != name
        for one in found["prompts"]
        if one["needs"] and not answered(one)
    ]
    for prompt in drawn.sample(others, min(FOREIGN, len(others))):
        yield {**prompt, "project": drawn.choice(projects), "needs": False, "source": "foreign"}


def prompts_of(
    life: dict[str, Any], asked: Sequence[dict[str, Any]], judge: Judge, models: Path
) -> dict[str, list[Prompt]]:
    """Every prompt as a process without models sees it, and as one with them."""
    overrides = {"embeddings.modelPath": str(embedder(models)[1])}
    found: dict[str, list[Prompt]] = {"words": [], "vectors": []}
    with tempfile.TemporaryDirectory() as folder:
        clock = feed(Path(folder) / "home", life, overrides)
        with Memory.open(Path(folder) / "home", clock=clock, overrides=overrides) as memory:
            memory.upkeep.run("ingest")
            memory.index()
            for title in found:
                memory.group.resources.resident = title == "vectors"
                found[title] = [_prompt(memory, one, judge if title == "vectors" else None) for one in asked]
    return found


def _prompt(memory: Memory, prompt: dict[str, Any], judge: Judge | None) -> Prompt:
    retrieval = memory.group.retrieval
    probability, asked = judge.probability if judge else scorer.probability, plain_question(prompt["text"])
    need = max(probability("needs", text) for text in {prompt["text"], asked})
    own = asking_words(prompt["text"])
    question = Question(
        text=asked,
        limit=60,
        today=NOW.date(),
        fast=judge is None,
        wanted=retrieval.for_turn("", 0),
        project=prompt["project"],
        searched=False,
        own=asked if own == prompt["text"].strip() else own,
    )
    seen = retrieval.searcher.consider(question, need).verdict
    passages = [one.candidate.stored.passage for one in seen.helpful]
    names = list(seen.helpful[0].parts) if seen.helpful else []
    made = Prompt(
        source=prompt["source"],
        needs=prompt["needs"],
        about=dict(seen.about),
        names=names,
        features=np.array([[one.parts[name] for name in names] for one in seen.helpful]),
        right=np.array(
            [
                float(
                    prompt["needs"] and any(gold.casefold() in one.text.casefold() for gold in prompt["gold"])
                )
                for one in passages
            ]
        ),
        foreign=[gate.is_foreign(asked, one.text) for one in passages],
        pasted=[gate.is_pasted(one) for one in passages],
    )
    chain = retrieval.searcher.index.embedder()
    if judge and chain:
        made.asked = chain.embed_query(asked, [chain.identity]).vector
        matrix = retrieval.searcher.candidates._matrix(chain.identity.key, chain.identity.dimensions)
        known = matrix.vectors([one.candidate.stored.id for one in seen.helpful])
        made.vectors = [known.get(one.candidate.stored.id) for one in seen.helpful]
    return made


def centres_of(lives: Lives) -> Centres:
    """The means of the questions that people ask, and of what is found for them."""
    own = [
        one for prompts in lives.values() for one in prompts if one.source == "own" and one.asked is not None
    ]
    asked = {one.asked.tobytes(): one.asked for one in own if one.asked is not None}
    found = {
        vector.tobytes(): vector for one in own for vector in one.vectors[:OF_VECTORS] if vector is not None
    }
    means = [np.mean([*vectors.values()], axis=0, dtype=np.float64) for vectors in (asked, found)]
    question, passage = (tuple(round(float(number), 5) for number in mean) for mean in means)
    return Centres(MODEL, question, passage)


def centre(lives: Lives, centres: Centres) -> None:
    """Set anew what speaks for passages by their meaning."""
    question, passage = np.array(centres.question), np.array(centres.passage)
    for one in (one for prompts in lives.values() for one in prompts if one.asked is not None):
        asked = one.asked - question
        for row, vector in enumerate(one.vectors):
            own = None if vector is None else vector.astype(np.float64) - passage
            near = 0.0 if own is None else float(own @ asked / (np.linalg.norm(own) * np.linalg.norm(asked)))
            for name, value in gate.of_meaning(one.about["need"], near).items():
                one.features[row, one.column(name)] = value


def fit(x: Array, y: Array, counts: Array, shrink: float) -> Array:
    """Weights of a logistic regression and its bias, by Newton's method."""
    x = np.hstack([x, np.ones((len(x), 1))])
    ridge = np.diag([shrink] * (x.shape[1] - 1) + [1e-6])
    weights = np.zeros(x.shape[1])
    for _ in range(15):
        p = 1 / (1 + np.exp(-x @ weights))
        gradient = x.T @ (counts * (y - p)) - ridge @ weights
        weights += np.linalg.solve((x * (counts * p * (1 - p) + 1e-9)[:, None]).T @ x + ridge, gradient)
    return weights


def named(names: Sequence[str], weights: Array) -> dict[str, float]:
    return {name: round(float(value), 4) for name, value in zip([*names, "bias"], weights, strict=True)}


def of_passages(prompts: Sequence[Prompt]) -> dict[str, float]:
    """The weights of passages: learnt from what their authors asked of them."""
    own = [one for one in prompts if one.source == "own" and one.names]
    right = np.concatenate([one.right for one in own])
    return named(
        own[0].names,
        fit(np.vstack([one.features for one in own]), right, np.ones(len(right)), SHRINK_PASSAGE),
    )


def ranked(weights: dict[str, float], one: Prompt) -> list[tuple[gate.Helpful, int]]:
    """The passages of a prompt as these weights order them."""
    made = []
    for row, features in enumerate(one.features):
        parts = dict(zip(one.names, features.tolist(), strict=True))
        likely = gate.probability(weights, parts) * (parts["covered"] if one.pasted[row] else 1.0)
        made.append((gate.Helpful(None, likely, parts), row))  # type: ignore[arg-type]
    return sorted(made, key=lambda pair: -pair[0].probability)


def verdict(weights: dict[str, float], one: Prompt) -> dict[str, float]:
    best = ranked(weights, one)
    return gate.verdict_features(one.about, [pair[0] for pair in best], one.foreign[best[0][1]])


Verdicts = list[tuple[dict[str, float], Prompt]]


def verdicts(weights: dict[str, float], prompts: Sequence[Prompt]) -> Verdicts:
    return [(verdict(weights, one), one) for one in prompts if one.names]


def of_messages(rows: Verdicts) -> dict[str, float]:
    """The weights of messages."""
    names = list(rows[0][0])
    x = np.array([[features[name] for name in names] for features, _ in rows])
    needs = np.array([float(one.needs) for _, one in rows])
    counts = np.array([COUNTS[one.source] for _, one in rows])
    return named(names, fit(x, needs, counts, SHRINK_MESSAGE))


def report(name: str, weights: gate.Weights, prompts: Sequence[Prompt]) -> None:
    needing = [one for one in prompts if one.needs and one.names]
    places = [
        next((place for place, (_, row) in enumerate(ranked(weights.passage, one)) if one.right[row]), 99)
        for one in needing
    ]
    shares = [f"@{most} {np.mean([place < most for place in places]):.2f}" for most in (3, 5, 8, 12)]
    rows = verdicts(weights.passage, prompts)
    scores = [gate.probability(weights.message, features) for features, _ in rows]
    opened = []
    for source in sorted({one.source for one in prompts}):
        idle = [
            score
            for score, (_, one) in zip(scores, rows, strict=True)
            if not one.needs and one.source == source
        ]
        opened += [f"{source} {np.mean([score >= OPEN for score in idle]):.2f}"] if idle else []
    needed = [score >= OPEN for score, (_, one) in zip(scores, rows, strict=True) if one.needs]
    area = auc([one.needs for _, one in rows], scores)
    print(
        f"{name:22} gold {' '.join(shares)} | gate AUC {area:.3f} opened {np.mean(needed):.2f},"
        f" idle {', '.join(opened)}",
        flush=True,
    )


def learn(lives: Lives, title: str) -> gate.Weights:
    """Weights from all lives; each life is first judged by the others' weights."""
    people = sorted({name.partition(" ")[0] for name in lives})

    def of(person: str) -> list[Prompt]:
        return [one for name, found in lives.items() for one in found if name.partition(" ")[0] == person]

    def helping(without: str = "") -> dict[str, float]:
        whole = (name for name in lives if name.endswith(WHOLE) and name.partition(" ")[0] != without)
        return of_passages([one for name in whole for one in lives[name]])

    left_out = {one: verdicts(helping(one), of(one)) for one in people}
    for name, prompts in lives.items():
        person = name.partition(" ")[0]
        message = of_messages([row for other in people if other != person for row in left_out[other]])
        report(f"{title} {name}", gate.Weights(helping(person), message), prompts)
    return gate.Weights(helping(), of_messages([row for one in people for row in left_out[one]]))


def collected(options: argparse.Namespace) -> dict[str, Lives]:
    """What a memory of every life sees in every prompt; `check` lives as they are."""
    judge = Judge(options.judge) if options.judge else Judge()
    lives = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in options.lives}
    found: dict[str, Lives] = {"words": {}, "vectors": {}}
    for name, life in lives.items():
        for share in SIZES:
            part = younger(life, share, f"{name}{share}")
            prompts = list(asked_of(name, part, lives, f"{name}{share}p"))
            for title, made in prompts_of(part, prompts, judge, options.models).items():
                found[title][f"{name} {share:.2f}"] = made
    for path in options.check:
        life = json.loads(path.read_text(encoding="utf-8"))
        prompts = [{**one, "source": "own"} for one in life["prompts"]]
        for title, made in prompts_of(life, prompts, judge, options.models).items():
            found[title][f"check {path.parent.name}/{path.stem}"] = made
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=Path, nargs="+", default=LIVES)
    parser.add_argument("--check", type=Path, nargs="*", default=[])
    parser.add_argument("--models", type=Path, default=Path("~/.nanoclaw/models").expanduser())
    parser.add_argument("--judge", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument(
        "--dump", type=Path, help="where all features are kept; read instead, where it is there"
    )
    options = parser.parse_args()
    if options.dump and options.dump.exists():
        found = pickle.loads(options.dump.read_bytes())  # noqa: S301 - our own file
    else:
        found = collected(options)
        if options.dump:
            options.dump.write_bytes(pickle.dumps(found))
    learnt = {}
    centres = centres_of(
        {name: one for name, one in found["vectors"].items() if not name.startswith("check")}
    )
    centre(found["vectors"], centres)
    for title, lives in found.items():
        learnt[title] = learn(
            {name: one for name, one in lives.items() if not name.startswith("check")}, title
        )
        for name in (name for name in lives if name.startswith("check")):
            report(f"{title} {name}", learnt[title], lives[name])
    made = gate.GateWeights(learnt["words"], learnt["vectors"], centres)
    options.out.write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n")


if __name__ == "__main__":
    main()
