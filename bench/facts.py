"""What the reader takes out of notes: what it must, nothing that is false, and whether people's questions find it.

    python bench/facts.py [--data FILE] [--models DIR] [--half first|second] [--show]

One empty home a case: its text is written as its file and read by `upkeep ingest`; then the facts, relations and
aliases that hold are compared with what a careful reader insists on (`must`) and forbids (`must_not`), and its
questions are asked. Case, markup, leading articles and end punctuation are ignored; then equality. A case is clean
when nothing forbidden is held and no value is a whole sentence. `unlisted` is held and on neither list: read it with
`--show`. `both` are the graph's answers to the question, then search's hits, six together. A question without an
answer must get no structured one (phase 1). Halves are every other case of the file: tune on the first only.
Without `--models` search has words alone.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from measure import table
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.providers.models import embedder
from nanoclaw_memory.types import Scope

ROOT = Path(__file__).parent.parent
DATA = ROOT.parent / "shared" / "data" / "facts" / "dev.jsonl"
LONG = 12  # words; a value of more is a sentence
Held = tuple[str, str, str, str]  # kind, subject, predicate, object


def plain(text: str) -> str:
    text = re.sub(r"\[\[|\]\]|[*`\"“”„]", "", text.casefold().replace("’", "'")).replace("_", " ")
    text = " ".join(text.split()).strip(" .,;:!?")
    return re.sub(r"^(?:the|an?|der|die|das|den|dem|ein|eine|einen) (?=.)", "", text)


def held(memory: Memory) -> list[Held]:
    """The facts, relations and aliases that hold now."""
    found: list[Held] = []
    for line in memory.graph.export():
        row = json.loads(line)
        if row.get("valid_to"):
            continue
        if row["type"] == "alias":
            found.append(("alias", plain(row["alias"]), "alias", plain(row["entity"])))
        elif row["type"] == "relation":
            found.append(("relation", plain(row["subject"]), plain(row["predicate"]), plain(row["object"])))
        else:
            found.append(("fact", plain(row["entity"]), plain(row["key"]), plain(row["value"])))
    return found


def _any(value: str | list[str]) -> set[str]:
    return {plain(value)} if isinstance(value, str) else {plain(one) for one in value}


def fits(item: Held, wanted: dict[str, Any]) -> bool:
    """Whether a held item is what a reader insists on; a fact whose value is a name may be a relation."""
    kind, subject, predicate, object_ = item
    if "alias" in wanted:
        return kind == "alias" and {subject} <= _any(wanted["alias"]) and {object_} <= _any(wanted["of"])
    if kind == "alias":
        return False
    entity = wanted["entity"] if "entity" in wanted else wanted["subject"]
    keys = wanted["key"] if "key" in wanted else wanted["predicate"]
    values = wanted["value"] if "value" in wanted else wanted["object"]
    return subject in _any(entity) and predicate in _any(keys) and object_ in _any(values)


def met(items: Iterable[Held], must: dict[str, Any]) -> bool:
    return any(fits(item, wanted) for wanted in (must, *must.get("or", ())) for item in items)


def forbidden(item: Held, rules: Iterable[dict[str, str]]) -> bool:
    kind, subject, predicate, object_ = item
    ways = [(subject, predicate, object_)]
    if kind == "alias":
        ways.append((object_, predicate, subject))
    return any(
        all(rule[name] == "*" or plain(rule[name]) == part for name, part in zip(rule, way, strict=True))
        for rule in rules
        for way in ways
    )


def is_sentence(item: Held, text: str) -> bool:
    """Whether a value is a whole line or sentence of the text, or too long to be a value."""
    wholes = [re.sub(r"^\s*(?:[-*+]|\d+[.)]|\[[^\]]*\])\s+", "", line) for line in text.split("\n")]
    wholes += re.split(r"(?<=[.!?])\s+", text)
    value = item[3]
    long_enough = len(value.split()) > 3
    return len(value.split()) > LONG or (long_enough and value in {plain(whole) for whole in wholes})


def answered(texts: Iterable[str], question: dict[str, Any]) -> bool:
    whole = " ".join("\n".join(texts).casefold().split())
    found = [answer.casefold() in whole for answer in question["answer"]]
    return all(found) if question.get("all") else any(found)


def judge(case: dict[str, Any], overrides: dict[str, str], show: bool) -> Counter[str]:
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with Memory.open(home, Scope(session_id="s"), overrides=overrides) as memory:
            memory.init()
            page = memory.home.workspace("main") / case["file"]
            page.parent.mkdir(parents=True, exist_ok=True)
            empty = {*held(memory)}
            page.write_text(case["text"], encoding="utf-8")
            memory.upkeep.run("ingest")
            items = [item for item in held(memory) if item not in empty]
            _count_items(case, items, found, show)
            memory.index()
            for question in case["questions"]:
                _count_answers(memory, question, found, show)
    return found


def _count_items(case: dict[str, Any], items: list[Held], found: Counter[str], show: bool) -> None:
    wrong = [one for one in items if forbidden(one, case["must_not"]) or is_sentence(one, case["text"])]
    missed = [must for must in case["must"] if not met(items, must)]
    listed = [item for item in items if any(met([item], must) for must in case["must"]) or item in wrong]
    found += Counter(
        cases=1,
        clean=not wrong,
        items=len(items),
        wrong=len(wrong),
        must=len(case["must"]),
        kept=len(case["must"]) - len(missed),
        unlisted=len(items) - len(listed),
    )
    if show:
        print(f"\n{case['id']} {case['file']}\n  {case['text']!r}")
        for item in items:
            mark = "WRONG" if item in wrong else "" if item in listed else "unlisted"
            print("  held", item, mark)
        for must in missed:
            print("  MISSED", {key: must[key] for key in must if key != "or"})


def _count_answers(memory: Memory, question: dict[str, Any], found: Counter[str], show: bool) -> None:
    hits = memory.graph.search(question["q"], 6).hits
    structured = [hit.text for hit in hits if hit.phase == 1]
    texts = [hit.text for hit in hits]
    both = [*structured, *(hit.text for hit in memory.search(question["q"], 6).hits)][:6]
    if not question["answer"]:
        found += Counter(unanswerable=1, silent=not structured, empty=not hits)
    else:
        found += Counter(
            questions=1,
            first=answered(texts[:1], question),
            six=answered(texts, question),
            both_first=answered(both[:1], question),
            both_six=answered(both, question),
        )
    if show:
        print("  asked", question["q"], question["answer"], [(hit.score, hit.text) for hit in hits])
        if question["answer"] and not answered(both, question):
            print("    NOT FOUND by both", [text[:80] for text in both])


def row(name: str, found: Counter[str]) -> list[object]:
    def share(part: str, whole: str) -> float:
        return found[part] / max(found[whole], 1)

    return [
        name,
        found["cases"],
        share("clean", "cases"),
        found["items"],
        share("wrong", "items"),
        share("unlisted", "items"),
        share("kept", "must"),
        share("first", "questions"),
        share("six", "questions"),
        share("both_first", "questions"),
        share("both_six", "questions"),
        share("silent", "unanswerable"),
        share("empty", "unanswerable"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--half", choices=["first", "second"])
    parser.add_argument("--show", action="store_true", help="print what each case gave")
    arguments = parser.parse_args()
    overrides = {"embeddings.provider": "none"}
    if arguments.models:
        overrides = {"embeddings.modelPath": str(embedder(arguments.models)[1])}
    cases = [json.loads(line) for line in arguments.data.read_text(encoding="utf-8").splitlines()]
    halves = {"first": cases[::2], "second": cases[1::2]}
    if arguments.half:
        halves = {arguments.half: halves[arguments.half]}
    rows, total = [], Counter[str]()
    for name, half in halves.items():
        found = sum((judge(case, overrides, arguments.show) for case in half), Counter[str]())
        total += found
        rows.append(row(name, found))
    head = [
        "half",
        "cases",
        "clean",
        "held items",
        "wrong",
        "unlisted",
        "must held",
        "graph first",
        "graph six",
    ]
    table([*head, "both first", "both six", "silent", "no hits"], [*rows, row("all", total)])


if __name__ == "__main__":
    main()
