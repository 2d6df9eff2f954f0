"""What the judge's heads bring over the rules before them and over a linear head on the embedder's vector.

    python bench/judge.py [--dev DIR] [--further DIR] [--unseen DIR] [--models DIR] [--vectors FILE] [--heads HEAD…]

Three columns of texts: the development sets, texts of further authors in `bench/data/fresh`, by whose scores among
others the calibration is fitted, and texts of two authors in `bench/data/more/t`, written after all else had been
decided. None of the authors saw the code, and no training reads their texts. The linear head is a logistic regression
that learns from the judge's own training texts; of a pair it reads both vectors, their difference and their product;
its ridge is chosen on one author left out. `found` and `false` are shares at the product's threshold, or at .5 where
the product does not use the head. Every other message of the set for own lines is for its calibration; the figures are
of the rest. `--vectors` keeps the embedder's vectors between runs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "training"))

from common import TEXTS, auc, found_at, rows

from linear_head import Linear
from measure import table
from nanoclaw_memory.entries import markdown
from nanoclaw_memory.intake import authorship
from nanoclaw_memory.intake.suspicion import suspicions
from nanoclaw_memory.lessons import corrections, learning, matching
from nanoclaw_memory.providers import scorer
from nanoclaw_memory.providers.judge import FOLDER, REACHES, TYPES, Judge
from nanoclaw_memory.providers.local import LocalEmbedder
from nanoclaw_memory.providers.models import embedder, installed
from nanoclaw_memory.statements import near_duplicate
from nanoclaw_memory.types import Lesson, Policy
from nanoclaw_memory.workspace import policies

ROOT = Path(__file__).parent.parent
DEV = ROOT.parent / "shared" / "data"
FRESH = Path(__file__).parent / "data" / "fresh"
UNSEEN = Path(__file__).parent / "data" / "more" / "t"
MODELS = ROOT / ".venv" / "models"
SHARES = (0.03, 0.05, 0.1, 0.2)
BINS = 5
ENOUGH = 10  # texts of each kind, for a figure of one language
THRESHOLDS = {"correction": learning.CORRECTION_FROM}
USED = {
    "needs": "yes: whether a message gets anything (the turn's gate)",
    "correction": "yes: what becomes a lesson",
    "reach": "yes: how far a lesson reaches",
    "own": "yes: which lines of a message may teach",
    "applies": "yes: which lessons a message gets",
    "attack": "no: finds more than the rules at as many false alarms, but too little to hold texts by",
    "same": "no: too many wrong merges, and a wrong merge loses a memory",
    "meets": "no: at its best threshold a third get the right policy, and each action a wrong one",
    "type": "yes: lines of which neither heading nor wording tells a type (`ncm entries migrate`)",
}


class Case(msgspec.Struct, frozen=True):
    """A text, or one beside others of which the likeliest counts; what is right, and what the rules say."""

    text: str
    others: tuple[str, ...]
    right: bool
    lang: str
    rule: bool


# ---- the sets ----


def lines_of(folder: Path, *names: str) -> list[dict[str, Any]]:
    """The cases of the first of these files that there is."""
    for name in names:
        if (folder / name).exists():
            text = (folder / name).read_text(encoding="utf-8")
            told = [json.loads(line) for line in text.splitlines() if line.strip()]
            given = {"pasted": False, "reach": "", "should": (), "should_not": ()}
            return [{"previous_agent": one.get("prev", ""), **given, **one} for one in told]
    return []


def needs(folder: Path) -> list[Case]:
    paths = sorted(folder.glob("needs/*.json")) or sorted(folder.glob("life_*.json"))
    prompts = [one for path in paths for one in json.loads(path.read_text(encoding="utf-8"))["prompts"]]
    more = lines_of(folder, "needs.jsonl")
    prompts += [{"text": one["text"], "needs": one["label"] == "need"} for one in more]
    return [Case(one["text"], ("",), one["needs"], "", True) for one in prompts]  # before, all got something


def correction(folder: Path) -> list[Case]:
    return [
        Case(
            one["user"],
            (one["previous_agent"],),
            one["label"] == "correction",
            one["lang"],
            bool(corrections.find(one["user"])),
        )
        for one in lines_of(folder, "corrections/dev.jsonl", "corrections.jsonl")
    ]


def applies(folder: Path) -> list[Case]:
    """Each correction as a rule, beside the prompts to which it applies and those to which it does not."""
    found = []
    for one in lines_of(folder, "corrections/dev.jsonl", "corrections.jsonl"):
        rule = one["user"]
        for key in ("should", "should_not"):
            for prompt in one[key] if one["label"] == "correction" and one["reach"] != "once" else ():
                lesson = Lesson(
                    id=1,
                    trigger=one["previous_agent"],
                    lesson=rule,
                    principle="",
                    effectiveness=0,
                    injections=0,
                    state="active",
                )
                said = bool(matching.match(prompt, [lesson], {}, matching.Reach(2), 1))
                found.append(Case(prompt, (rule,), key == "should", one["lang"], said))
    return found


def attack(folder: Path) -> list[Case]:
    return [
        Case(one["text"], ("",), one["label"] == "attack", one["lang"], bool(suspicions(one["text"])))
        for one in lines_of(folder, "poison/dev.jsonl", "attacks.jsonl")
    ]


def same(folder: Path) -> list[Case]:
    return [
        Case(one["a"], (one["b"],), one["same"], one["lang"], near_duplicate(one["a"], one["b"]))
        for one in lines_of(folder, "duplicates/dev.jsonl", "duplicates.jsonl")
    ]


def meets(folder: Path) -> list[Case]:
    """Each action beside all policies: whether any gate must be applied."""
    path = next(
        (one for name in ("policies/dev.json", "policies.json") if (one := folder / name).exists()), None
    )
    told = json.loads(path.read_text(encoding="utf-8")) if path else {"policies": [], "actions": []}
    known = [Policy(one["id"], "", one["trigger"], one["gate"]) for one in told["policies"]]
    gates = tuple(f"{one.trigger} {one.gate}" for one in known)
    return [
        Case(one["text"], gates, bool(one["triggers"]), one["lang"], bool(policies.check(known, one["text"])))
        for one in told["actions"]
    ]


SETS: dict[str, Callable[[Path], list[Case]]] = {
    "needs": needs,
    "correction": correction,
    "applies": applies,
    "attack": attack,
    "same": same,
    "meets": meets,
}


# ---- what the linear head learns from ----


def taught(head: str) -> list[tuple[str, tuple[str, str], bool]]:
    """What the judge learnt this head from: author, texts, label."""
    read: dict[str, tuple[str, Callable[[dict[str, Any]], tuple[tuple[str, str], bool]]]] = {
        "needs": ("needs", lambda one: ((one["text"], ""), one["label"] == "need")),
        "correction": (
            "corrections",
            lambda one: ((one["user"], one["prev"]), one["label"] == "correction"),
        ),
        "applies": ("applies", lambda one: ((one["prompt"], one["rule"]), bool(one["applies"]))),
        "attack": ("attacks", lambda one: ((one["text"], ""), one["label"] == "attack")),
        "same": ("duplicates", lambda one: ((one["a"], one["b"]), bool(one["same"]))),
        "meets": (
            "policies",
            lambda one: ((one["action"], f"{one['trigger']} {one['gate']}"), bool(one["meets"])),
        ),
    }
    name, of = read[head]
    return [(author, *of(one)) for author, one in rows(TEXTS, name)]


# ---- figures ----


def row(by: str, right: Sequence[bool], scores: Sequence[float], limit: float) -> list[object]:
    yes, values = np.array(right, dtype=bool), np.array(scores)
    at = [found_at(right, scores, share) for share in SHARES]
    return [by, auc(right, scores), (values[yes] >= limit).mean(), (values[~yes] >= limit).mean(), *at]


def calibration(right: Sequence[bool], said: Sequence[float]) -> list[object]:
    """The expected error, and per bin how many were right of how many."""
    yes, values = np.array(right, dtype=float), np.array(said)
    places = np.minimum((values * BINS).astype(int), BINS - 1)
    parts: list[object] = []
    error = 0.0
    for place in range(BINS):
        inside = places == place
        if inside.any():
            error += inside.mean() * abs(yes[inside].mean() - values[inside].mean())
        parts.append(f"{yes[inside].mean():.2f} of {inside.sum()}" if inside.any() else "none")
    return [error, *parts]


def languages(cases: Sequence[Case], said: Sequence[float]) -> Iterable[str]:
    for lang in sorted({one.lang for one in cases}):
        own = [(one.right, score) for one, score in zip(cases, said, strict=True) if one.lang == lang]
        right = [yes for yes, _ in own]
        if lang and min(sum(right), len(right) - sum(right)) >= ENOUGH:
            yield f"{lang} {auc(right, [score for _, score in own]):.2f} ({len(own)})"


def measure_head(head: str, sets: dict[str, Path], judge: Judge, linear: Linear | None) -> None:
    """Print one head's table: rules, linear head, scorer and judge on both columns of texts."""
    limit = THRESHOLDS.get(head, 0.5)
    print(f"\n### {head}\n\nIn the product: {USED[head]}; threshold {limit}.\n")
    found, calibrated, notes = list[list[object]](), list[list[object]](), list[str]()
    score = linear.learn(taught(head)) if linear else None
    for name, folder in sets.items():
        cases = SETS[head](folder)
        if not cases:
            continue
        right = [one.right for one in cases]
        rule = np.array([one.rule for one in cases])
        yes = np.array(right, dtype=bool)
        found.append([f"rules, {name}", "", rule[yes].mean(), rule[~yes].mean(), *[""] * len(SHARES)])
        if linear and score:
            values = [
                score(linear.vectors([(one.text, other) for other in one.others])).max() for one in cases
            ]
            found.append(row(f"linear head, {name}", right, values, 0.0))
        if head in scorer.HEADS:
            small = [scorer.probability(head, one.text) for one in cases]
            found.append(row(f"scorer, {name}", right, small, limit))
        said = [max(judge.probability(head, one.text, other) for other in one.others) for one in cases]
        found.append(row(f"**judge, {name}**", right, said, limit))
        calibrated.append([name, len(cases), *calibration(right, said)])
        notes += [f"{name}: {', '.join(told)}"] if (told := list(languages(cases, said))) else []
    table(["by, on", "AUC", "found", "false", *(f"found at {share:.0%} false" for share in SHARES)], found)
    print("\nHow often it is right where it says .0-.2, .2-.4, …; the expected error:\n")
    table(["texts", "number", "error", ".0-.2", ".2-.4", ".4-.6", ".6-.8", ".8-1"], calibrated)
    if notes:
        print(f"\nAUC by language: {'; '.join(notes)}.")


def measure_lessons(sets: dict[str, Path], judge: Judge) -> None:
    """Corrections as lessons are learnt: the judge on a person's own words, beside the plainest rules."""
    found = []
    for name, folder in sets.items():
        cases = lines_of(folder, "corrections/dev.jsonl", "corrections.jsonl")
        reach = [
            REACHES.index(one["reach"])
            == int(np.argmax(list(judge.reach(one["user"], one["previous_agent"]).values())))
            for one in cases
            if one["reach"]
        ]
        for by in ("rules", "judge"):
            said = [(one["label"] == "correction", one["pasted"], teaches(one, by, judge)) for one in cases]
            yes, no = [one[2] for one in said if one[0]], [one[2] for one in said if not one[0]]
            pasted = [one[2] for one in said if one[1]]
            shares = [sum(yes) / max(len(yes), 1), sum(no) / max(len(no), 1)]
            right = sum(reach) / max(len(reach), 1) if by == "judge" else ""
            found.append([f"{by}, {name}", *shares, f"{sum(pasted)} of {len(pasted)}", right])
    print("\n### corrections and reach, as lessons are learnt\n")
    table(["by, on", "found", "false", "out of pasted texts", "reach right"], found)


def teaches(one: dict[str, Any], by: str, judge: Judge) -> bool:
    if by == "rules":
        return learning.by_rules(one["user"], one["previous_agent"]) is not None
    return learning.judged(judge, one["user"], one["previous_agent"]) is not None


def measure_types(sets: dict[str, Path], judge: Judge) -> None:
    """Lines of MEMORY.md: whether the type is right; memory called none, and none called memory."""
    found = []
    for name, folder in sets.items():
        cases = lines_of(folder, "pages/dev.jsonl")
        pages = {one["page"]: (folder / "pages" / one["page"]).read_text(encoding="utf-8") for one in cases}
        for by in ("rules", "judge", "rules, else judge") if cases else ():
            said = []
            for one in cases:
                number, section = place_of(pages[one["page"]], one["line"])
                kinds = one["type"] if isinstance(one["type"], list) else [one["type"]]
                if by == "judge":
                    said.append((kinds, judge.line_type(one["line"], section)[0]))
                else:
                    asked = judge if "judge" in by else None
                    said.append((kinds, read_types(pages[one["page"]], asked).get(number, "none")))
            memory = [kind == "none" for kinds, kind in said if "none" not in kinds]
            noise = [kind != "none" for kinds, kind in said if "none" in kinds]
            right = [kind in kinds for kinds, kind in said]
            shares = [sum(part) / len(part) for part in (right, memory, noise)]
            found.append([f"{by}, {name}", len(cases), *shares])
    print(f"\n### type\n\nIn the product: {USED['type']}. The judge knows {len(TYPES)} types.\n")
    table(["by, on", "lines", "right", "memory taken for none", "none taken for memory"], found)


def place_of(page: str, line: str) -> tuple[int, str]:
    """The number of a line in its page, and the heading above it."""
    section = ""
    for number, own in enumerate(page.split("\n"), 1):
        if own.strip() == line.strip():
            return number, section
        if own.startswith("#"):
            section = own.strip("# ")
    return 0, section


def read_types(page: str, judge: Judge | None) -> dict[int, str]:
    """The types that an import gives to the lines of a page."""
    found = markdown.Imports()
    markdown.read_page(found, "MEMORY.md", page, judge=judge)
    return {int(one.source.rpartition(":")[2]): one.type for one in found.entries}


def measure_own(folder: Path, judge: Judge) -> None:
    """A person's own lines beside pasted ones, with and without a mark."""
    rules, right, scores = list[bool](), list[bool](), list[float]()
    for one in lines_of(folder, "foreign.jsonl")[1::2]:
        lines = [line["text"] for line in one["lines"]]
        left = set(authorship.own_words("\n".join(lines)).split("\n"))
        rules += [line.strip() in left for line in lines]
        right += [bool(line["own"]) for line in one["lines"]]
        scores += judge.own_lines(lines)
    if not right:
        return
    yes = np.array(right)
    print(
        f"\n### own\n\nIn the product: {USED['own']}; threshold {authorship.OWN_FROM}; {len(right)} lines.\n"
    )
    by_rules = [np.array(rules)[yes].mean(), np.array(rules)[~yes].mean()]
    table(
        ["by, on", "AUC", "found", "false", *(f"found at {share:.0%} false" for share in SHARES)],
        [
            ["rules, unseen authors", "", *by_rules, *[""] * len(SHARES)],
            row("**judge, unseen authors**", right, scores, authorship.OWN_FROM),
        ],
    )


def resident_bytes() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def measure_cost(sets: dict[str, Path], models: Path) -> Judge:
    """Time, memory and size; the first to run, in a process that has loaded an embedder as a server has."""
    if installed(*embedder(models)):
        LocalEmbedder(*embedder(models)).embed_documents(["one two three"])
    before, started, cpu = resident_bytes(), time.perf_counter(), time.process_time()
    judge = Judge()
    judge.load()
    loaded = [(time.perf_counter() - started) * 1000, (time.process_time() - cpu) * 1000]
    texts = [one.text for folder in sets.values() for one in needs(folder) if len(one.text) <= 200]
    p50, p95 = spent(judge.probability, texts)
    size = sum(path.stat().st_size for path in FOLDER.iterdir()) / 1e6
    print(
        f"Judge: {size:.1f} MB on disk; loaded in {loaded[0]:.0f} ms ({loaded[1]:.0f} ms of CPU); "
        f"{resident_bytes() - before:.0f} MB more of memory; {p50:.1f} ms of CPU a short text (p95 {p95:.1f}), "
        f"{len(texts)} texts of at most 200 characters."
    )
    size = Path(scorer.__file__).with_name("scorer.bin").stat().st_size / 1000
    p50, p95 = spent(scorer.probability, texts)
    print(f"Scorer: {size:.0f} KB; {p50:.2f} ms of CPU a short text (p95 {p95:.2f}).")
    return judge


def spent(ask: Callable[[str, str], float], texts: Sequence[str]) -> tuple[float, float]:
    """Median and 95th percentile of CPU milliseconds a text."""
    found = []
    for text in texts:
        started = time.process_time()
        ask("needs", text)
        found.append((time.process_time() - started) * 1000)
    p50, p95 = np.quantile(found, (0.5, 0.95))
    return float(p50), float(p95)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dev", type=Path, default=DEV)
    parser.add_argument("--further", type=Path, default=FRESH)
    parser.add_argument("--unseen", type=Path, default=UNSEEN)
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--heads", nargs="*", default=list(SETS), choices=list(SETS))
    arguments = parser.parse_args()
    sets = {
        "development": arguments.dev,
        "further authors": arguments.further,
        "unseen authors": arguments.unseen,
    }
    judge = measure_cost(sets, arguments.models)
    found = installed(*embedder(arguments.models))
    linear = Linear(arguments.models, arguments.vectors) if found else None
    for head in arguments.heads:
        measure_head(head, sets, judge, linear)
        if linear:
            linear.keep()
    measure_lessons(sets, judge)
    measure_own(arguments.unseen, judge)
    measure_types(sets, judge)


if __name__ == "__main__":
    main()
