"""Learn what two statements say of their subjects, whatever these are called: `retrieval/attributes.json`.

    python training/attributes.py [--data FILE…] [--lives FILE…] [--check FILE…] [--models DIR] [--out FILE]

A linear map of the embedder's vectors, in which names and wording count little and the attribute much: the directions
are learnt (a linear discriminant) from forms of 80 attributes with changing names (`training/attributes/`), and from
statements of foreign authors with the later ones that stand for them. A logistic regression over the likeness in this
map and what the words share then says how probably a later statement is about the same attribute of the same subject.
Wrong pairs: two attributes of one name, one attribute of two names, the nearest statements of other cases, and these
with the name of the first put in. `--check` are sets that nothing is learnt from.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import LIVES, auc
from pairing import BENCH, CHANGES, SETS, fit

from nanoclaw_memory.memory import Memory
from nanoclaw_memory.providers.models import embedder
from nanoclaw_memory.retrieval import attributes
from nanoclaw_memory.retrieval.gate import gate_weights, probability
from nanoclaw_memory.retrieval.statement_pairs import subject_words
from nanoclaw_memory.retrieval.value_changes import says_change

FORMS = Path(__file__).parent / "attributes"
MODELS = Path(__file__).parent.parent / ".venv" / "models"
KEPT, SHRUNK = 192, 0.3  # directions of the map; how far the scatter is drawn to a ball
FOLDS = 3
NEAREST, NAMED, FILLED = 5, 6, 10
_NAME = re.compile(r"(?<=[\w,;] )[A-ZÄÖÜ][a-zäöüßéèáíóú]{2,}\b")
NAMES = {
    ("person", "en"): "Marcus Priya Oliver Nora Tessa Gwen Idris Callum Bea Rufus Hattie Owen",
    (
        "person",
        "de",
    ): "Lena Jonas Mira Falk Silke Bernd Oma_Käthe Tante_Hilde Ben Stefan Frau_Kurz Herr_Lorenz",
    ("person", "fr"): "Inès Hugo Mathis Chloé Léa",
    ("person", "es"): "Carmen Diego Lucía Pablo",
    (
        "thing",
        "en",
    ): "the_ledger_service orders the_payments_gateway checkout the_billing_dashboard search-api"
    " the_uat_box the_mobile_app the_importer Lantern the_staging_cluster the_bus",
    (
        "thing",
        "de",
    ): "der_Zahnarzt das_Sommerfest die_Chorprobe Kinderturnen der_Elternabend das_Adventskonzert"
    " die_Leiter der_Schwimmkurs das_Turnier der_Flohmarkt die_Werkstatt die_Chorfahrt",
    ("thing", "fr"): "le_cours_de_danse la_chorale le_tournoi_d'échecs le_vide-grenier le_boulanger",
    ("thing", "es"): "el_servidor_de_correo la_clase_de_yoga la_reunión la_excursión el_almacén",
}


class Pair(NamedTuple):
    """An older statement, a newer one, and whether it stands for the older one."""

    older: str
    newer: str
    right: bool


class Form(NamedTuple):
    """How one attribute is stated and changed in one language."""

    kind: str
    language: str
    attribute: str
    older: list[str]
    newer: list[str]


def forms() -> Iterator[Form]:
    """The lines of `training/attributes/`; a bar within brackets separates values."""
    for kind in ("person", "thing"):
        for line in (FORMS / f"{kind}.txt").read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                parts = re.split(r"\|(?![^\[\]]*\])", line)
                yield Form(kind, parts[0], parts[1], parts[2].split(";"), parts[3].split(";"))


def filled(form: str, name: str, chance: random.Random) -> str:
    """A form with a name and one of each of its values."""
    return re.sub(r"\[([^]]+)\]", lambda found: chance.choice(found[1].split("|")), form.replace("{n}", name))


def names_of(form: Form) -> list[str]:
    return [name.replace("_", " ") for name in NAMES[form.kind, form.language].split()]


def of_forms(chance: random.Random) -> list[Pair]:
    """Pairs of forms: one attribute of one name, and what only looks like it."""
    found, known = [], list(forms())
    for form in known:
        others = [one for one in known if one[:2] == form[:2] and one.attribute != form.attribute]
        for _ in range(FILLED):
            place = chance.randrange(len(form.older))
            name, another = chance.sample(names_of(form), 2)
            older = filled(form.older[place], name, chance)
            newer = form.newer[place if len(form.newer) == len(form.older) else 0]
            found.append(Pair(older, filled(newer, name, chance), True))
            found.append(Pair(older, filled(chance.choice(form.newer), another, chance), False))
            for other in chance.sample(others, min(2, len(others))):
                said = chance.choice(other.newer if chance.random() < 0.7 else other.older)
                found.append(Pair(older, filled(said, name, chance), False))
    return found


def classes(chance: random.Random) -> dict[str, list[str]]:
    """Statements of each attribute, with changing names."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for form in forms():
        for stated in (form.older, form.newer):
            for place, each in enumerate(stated):
                one = f"{form.kind} {form.attribute} {place if len(form.older) == len(form.newer) else 0}"
                found[one] += [filled(each, chance.choice(names_of(form)), chance) for _ in range(6)]
    return found


def statements_of(path: Path) -> tuple[list[tuple[str, str, int]], list[Pair]]:
    """The statements of a set or a life with their case and age, and the pairs in which a value changed."""
    if path.suffix == ".json":
        life = json.loads(path.read_text(encoding="utf-8"))
        said = [one for one in life["exchanges"] if len(one["user"]) < 300 and "?" not in one["user"]]
        told = [(str(place), one["user"], one["days_ago"]) for place, one in enumerate(said)]
        pairs = [
            Pair(older, newer, True)
            for prompt in life["prompts"]
            for place, (_, older, _) in enumerate(told)
            for _, newer, _ in told[place + 1 :]
            if prompt["needs"] and _has(older, prompt["wrong"]) and _has(newer, prompt["gold"])
        ]
        return told, list(dict.fromkeys(pairs))
    told, pairs = [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        own = sorted(case["statements"], key=lambda one: -one["days_ago"])
        told += [(case["id"], _text(one), one["days_ago"]) for one in own]
        if case["kind"] in CHANGES:
            outdated = [
                (place, _text(one))
                for place, one in enumerate(own)
                if _has(_text(one), case["retired"]) and not _has(_text(one), case["current"])
            ]
            pairs += [
                Pair(older, _text(one), True)
                for place, older in outdated
                for one in own[place + 1 :]
                if _has(_text(one), case["current"])
            ]
    return told, pairs


def _text(statement: dict[str, Any]) -> str:
    fact = statement.get("fact")
    plain = (
        f"{fact['entity']} {fact['key'].replace('_', ' ')}: {fact['value']}" if fact else statement["text"]
    )
    return str(plain).removeprefix("- ")


def _has(text: str, wanted: Sequence[str]) -> bool:
    return any(one.casefold() in text.casefold() for one in wanted)


def wrong_pairs(
    told: Sequence[tuple[str, str, int]], vectors: Callable[[Sequence[str]], Any], chance: random.Random
) -> list[Pair]:
    """Statements of other cases: the nearest, those that share words, and some with the older one's name put in."""
    held = vectors([text for _, text, _ in told])
    near = held @ held.T
    named = [(case, text, found) for case, text, _ in told if (found := _NAME.findall(text))]
    changing = [one for one in named if says_change(one[1])] or named
    wrong = []
    for place, (case, text, _) in enumerate(told):
        order = [one for one in np.argsort(-near[place]) if told[one][0] != case]
        own = set(subject_words(text))
        alike = sorted(order, key=lambda one: -len(own & set(subject_words(told[one][1]))))
        wrong += [Pair(text, told[one][1], False) for one in (*order[:NEAREST], *alike[:3])]
    for case, text, own_names in named:
        for _ in range(NAMED):
            other, said, found = chance.choice(changing if chance.random() < 0.6 else named)
            if other != case:
                put = re.sub(rf"\b{re.escape(chance.choice(found))}\b", chance.choice(own_names), said)
                wrong.append(Pair(text, put, False))
    return wrong


def learn_map(groups: Sequence[Any], pairs: Any, every: Any) -> Any:
    """The directions in which statements differ more than those of one attribute do."""
    spread = np.concatenate([group - group.mean(axis=0) for group in groups])
    within = 2 * spread.T @ spread / len(spread) + pairs.T @ pairs / len(pairs)
    within += SHRUNK * np.trace(within) / len(within) * np.eye(len(within))
    sizes, axes = np.linalg.eigh(within)
    whitened = axes @ np.diag(sizes**-0.5) @ axes.T
    return whitened @ np.linalg.eigh(whitened @ np.cov(every.T) @ whitened)[1][:, -KEPT:]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", type=Path, nargs="*", default=SETS)
    parser.add_argument("--lives", type=Path, nargs="*", default=LIVES)
    parser.add_argument("--check", type=Path, nargs="*", default=[BENCH / "fresh" / "changes_3.jsonl"])
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--kept", type=Path, help="a file in which the vectors are kept for the next run")
    parser.add_argument("--out", type=Path, default=attributes.FILE)
    options = parser.parse_args()
    chance = random.Random(7)  # noqa: S311 (which names are filled in)
    mean = np.array(gate_weights().centres.passage, dtype=np.float32)
    held: dict[str, Any] = (
        dict(np.load(options.kept, allow_pickle=True).item())
        if options.kept and options.kept.exists()
        else {}
    )
    overrides = {"embeddings.modelPath": str(embedder(options.models)[1])}
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(Path(folder) / "home", overrides=overrides) as memory,
    ):
        memory.init()
        chain = memory.group.retrieval.index.embedder()
        assert chain is not None

        def vectors(texts: Sequence[str], spoken: bool = True) -> Any:
            """Centred vectors of statements, as of a message or as of a line."""
            asked = [f'User said, "{text}"' if spoken else text for text in texts]
            missing = [text for text in dict.fromkeys(asked) if text not in held]
            for start in range(0, len(missing), 32):
                part = missing[start : start + 32]
                held.update(zip(part, chain.embed_documents(part).vectors - mean, strict=True))
            found = np.stack([held[text] for text in asked])
            return found / np.linalg.norm(found, axis=1, keepdims=True)

        sets = {path: statements_of(path) for path in (*options.data, *options.lives, *options.check)}
        own = [path for path in sets if path not in options.check]
        pairs = {
            str(path): [*right, *wrong_pairs(told, vectors, chance)] for path, (told, right) in sets.items()
        }
        pairs["forms"] = of_forms(chance)
        groups = [
            np.concatenate([vectors(texts), vectors(texts[::3], spoken=False)])
            for texts in classes(chance).values()
        ]
        every = vectors([one for path in own for pair in pairs[str(path)] for one in pair[:2]])

        def apart(paths: Sequence[Path]) -> Any:
            right = [pair for path in paths for pair in sets[path][1]]
            older, newer = [one.older for one in right], [one.newer for one in right]
            said = vectors(older) - vectors(newer)
            return np.concatenate([said, vectors(older) - vectors(newer, spoken=False)])

        def rows(some: Sequence[Pair], chosen: Any) -> list[tuple[int, dict[str, float], bool]]:
            one, other = (vectors([pair[side] for pair in some]) @ chosen for side in (0, 1))
            one, other = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (one, other))
            like = (one * other).sum(axis=1)
            return [
                (0, dict(attributes.features(pair.older, pair.newer, float(near))), pair.right)
                for pair, near in zip(some, like, strict=True)
            ]

        # The likeness of a pair must not come from a map that it taught.
        taught: list[tuple[int, dict[str, float], bool]] = []
        for fold in range(FOLDS):
            rest = [path for place, path in enumerate(own) if place % FOLDS != fold]
            chosen = learn_map(
                [one for place, one in enumerate(groups) if place % FOLDS != fold], apart(rest), every
            )
            for path in own[fold::FOLDS]:
                taught += rows(pairs[str(path)], chosen)
            taught += rows(pairs["forms"][fold::FOLDS], chosen)
        # Right pairs are few: each counts three times.
        weights = fit([row for row in taught for _ in range(3 if row[2] else 1)])
        learnt = learn_map(groups, apart(own), every)
        for path in options.check:
            found = rows(pairs[str(path)], learnt)
            right, scores = [one[2] for one in found], [probability(weights, one[1]) for one in found]
            alone = auc(right, [one[1]["attribute"] for one in found])
            print(f"checked {path.stem}: AUC {auc(right, scores):.3f}, of the map alone {alone:.3f}")
            for least in (0.03, 0.05, 0.1, 0.2, 0.3, 0.5):
                kept = [
                    [score >= least for score, one in zip(scores, right, strict=True) if one == side]
                    for side in (True, False)
                ]
                print(f"  {least}: {np.mean(kept[0]):.2f} of the right, {np.mean(kept[1]):.3f} of the wrong")
    if options.kept:
        np.save(options.kept, held, allow_pickle=True)  # type: ignore[arg-type]
    scale = float(np.abs(learnt).max()) / 127
    codes = np.rint(learnt / scale).astype(np.int8)
    content = {
        "identity": gate_weights().centres.identity,
        "directions": KEPT,
        "mean": [round(float(value), 5) for value in mean],
        "map": base64.b64encode(codes.tobytes()).decode(),
        "weights": weights,
    }
    options.out.write_text(json.dumps(content) + "\n", encoding="utf-8")
    print(weights)


if __name__ == "__main__":
    main()
