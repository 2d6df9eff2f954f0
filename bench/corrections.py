"""What is learnt from corrections and where it comes up: the development half of other people's messages, and our own.

    python bench/corrections.py [--data FILE] [--models DIR] [--before PYTHON] [--ways cold,upkept,resident] [--cases N]
    python bench/corrections.py --own [--errors] [--chat FILE]

One home a case: the answer before, the message, then every prompt as the first message of a session of its own.
Ways: `cold` is what hooks do without a server (read by rules, answered by words), `upkept` the same after `ncm upkeep
learn`, `archived` a cold process that archives the exchange itself, `resident` a server with embedder and judge.
`--before` measures an older version too: the Python that has it. The session's start counts as coming up,
so a rule for every session comes up wrongly wherever its author named a prompt without it; the last column leaves those
rules out.
`--data bench/data/fresh/corrections.jsonl` is a further author's.

`--kinds` reads bench/data/more/m/messages.jsonl: plain facts, answers, changes, thanks, standing rules and corrections.
Of each kind it says how many became an active lesson, how many were noted at all, and how many are marked as a
correction of the answer before.

`--own` reads bench/data/corrections.txt, our own messages: the rules, and the judge beside them. Odd ones were used
for the patterns and are among the judge's training texts, even ones were not; both have one author, who also wrote the
patterns. `--chat` counts false alarms in LoCoMo's development conversations, in which nobody corrects an agent.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OWN = HERE / "data" / "corrections.txt"
KINDS = HERE / "data" / "more" / "m" / "messages.jsonl"
SHARED = HERE.parent.parent / "shared" / "data"
MODELS = HERE.parent / ".venv" / "models"
WAYS = ("cold", "upkept", "archived", "resident")
COLUMNS = (
    "found",
    "false alarms",
    "out of pasted",
    "all its words",
    "reach right",
    "comes up",
    "comes up wrongly",
    "the same where corrected",
    "once came up",
    "wrongly, not general",
)


# ---- one case, one home ----


def feed(memory: Any, case: dict[str, Any], way: str) -> None:
    """The exchange before and the message, as hooks or as a process that archives them."""
    said = (("Please go on.", case["previous_agent"]), (case["user"], "Understood."))
    for user, agent in said:
        if way in ("cold", "upkept") and hasattr(memory, "conversations"):
            memory.conversations.note("prompt", user)
            memory.conversations.note("answer", agent)
        else:
            memory.after_turn(user, agent)
    if way in ("cold", "upkept") and hasattr(memory, "conversations"):
        memory.conversations.drain(10)
    if way == "upkept":
        memory.upkeep.run("learn")


def shown(memory: Any, prompt: str, number: int) -> bool:
    """Whether a lesson is before the model at the first message of a session."""
    session = memory.for_session(f"new-{number}")
    if not hasattr(session, "group"):  # the version before
        session.resident = memory.resident
    blocks = [*session.session_start().blocks, *session.before_turn(prompt).blocks]
    return any(block.label == "GROWTH VECTORS" for block in blocks)


def run_case(case: dict[str, Any], way: str, embedder: Any) -> dict[str, Any]:
    """What was learnt from a case, and where it came up."""
    from nanoclaw_memory.memory import Memory
    from nanoclaw_memory.types import Scope

    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, Scope(session_id="one")) as memory:
        memory.init()
        if way == "resident":
            make_resident(memory, embedder)
        feed(memory, case, way)
        lessons = list_lessons(memory)
        stored = " ".join(f"{one.lesson} {one.trigger}" for one in lessons).casefold()
        return {
            "learnt": bool(lessons),
            "words": all(word.casefold() in stored for word in case["lesson_words"]),
            "reach": getattr(lessons[0], "reach", "") if lessons else "",
            "should": [shown(memory, text, n) for n, text in enumerate(case["should"])],
            "should_not": [shown(memory, text, n + 10) for n, text in enumerate(case["should_not"])],
        }


def make_resident(memory: Any, embedder: Any) -> None:
    if hasattr(memory, "group"):
        memory.group.resources.resident = True
        memory.group.resources.embedder = embedder
    else:  # the version before
        memory.resident = True
        memory.embedder = embedder


def list_lessons(memory: Any) -> list[Any]:
    found = memory.lessons
    return list(found() if callable(found) else found.lessons())


def chain(models: Path) -> Any:
    """The embedder, loaded once for all homes."""
    from nanoclaw_memory.clock import SystemClock
    from nanoclaw_memory.providers.embedder import embedder_for
    from nanoclaw_memory.settings import Settings

    return embedder_for(Settings().embeddings, models, Path(tempfile.mkdtemp()), SystemClock("UTC"))


# ---- all cases ----


def measured(cases: list[dict[str, Any]], way: str, models: Path) -> list[float]:
    """The figures of a way, in the order of COLUMNS."""
    embedder = chain(models) if way == "resident" else None
    done = [(case, run_case(case, way, embedder)) for case in cases]
    right = [pair for pair in done if pair[0]["label"] == "correction"]
    others = [pair for pair in done if pair[0]["label"] != "correction"]
    learnt = [pair for pair in right if pair[1]["learnt"]]
    return [
        mean(result["learnt"] for _, result in right),
        mean(result["learnt"] for _, result in others),
        sum(result["learnt"] for case, result in others if case["pasted"]),
        mean(result["words"] for _, result in learnt),
        mean(result["reach"] == case["reach"] for case, result in learnt),
        mean(value for _, result in done for value in result["should"]),
        mean(value for _, result in done for value in result["should_not"]),
        mean(value for _, result in right for value in result["should_not"]),
        sum(any(result["should_not"]) for case, result in right if case["reach"] == "once"),
        mean(value for case, result in done if case["reach"] != "general" for value in result["should_not"]),
    ]


def mean(values: Iterator[bool] | Any) -> float:
    found = [float(value) for value in values]
    return sum(found) / len(found) if found else 0.0


def row(name: str, values: list[float]) -> str:
    cells = [f"{value:.0f}" if COLUMNS[n] in COUNTED else f"{value:.2f}" for n, value in enumerate(values)]
    return f"| {name} | {' | '.join(cells)} |"


COUNTED = ("out of pasted", "once came up")


def before(python: str, arguments: argparse.Namespace, ways: list[str]) -> Iterator[tuple[str, list[float]]]:
    """The same of an older version, measured by its own Python."""
    for way in ways:
        if way in ("cold", "resident"):  # it knew no other
            command = [python, __file__, "--data", str(arguments.data), "--models", str(arguments.models)]
            command += ["--ways", way, "--cases", str(arguments.cases), "--json"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            yield f"before, {way}", json.loads(done.stdout)[way]


# ---- kinds of message ----


def kinds(arguments: argparse.Namespace) -> None:
    """What becomes of each kind of message: a lesson, a note, a mark on the answer before."""
    from nanoclaw_memory.memory import Memory
    from nanoclaw_memory.store import lessons as rows
    from nanoclaw_memory.types import Scope

    cases = [json.loads(line) for line in KINDS.read_text(encoding="utf-8").splitlines()]
    unsure = getattr(rows, "NO_CORRECTION", "\0")  # the version before marked every one
    print("| kind | messages | way | active | noted | marked as a correction |\n|---|---|---|---|---|---|")
    for way in arguments.ways.split(","):
        embedder = chain(arguments.models) if way == "resident" else None
        counted: dict[str, list[tuple[bool, bool, bool]]] = {}
        for case in cases:
            with (
                tempfile.TemporaryDirectory() as folder,
                Memory.open(folder, Scope(session_id="one")) as memory,
            ):
                memory.init()
                if way == "resident":
                    make_resident(memory, embedder)
                feed(memory, {"previous_agent": case["prev"], "user": case["user"]}, way)
                found = [one for one in list_lessons(memory) if one.state != "retired"]
            active, marked = (
                [one.state == "active" for one in found],
                [not one.why.endswith(unsure) for one in found],
            )
            counted.setdefault(case["kind"], []).append((any(active), bool(found), any(marked)))
            right = any(active) == case["lesson"] and any(marked) <= case["corrects"]
            if arguments.errors and not right:
                print(f"{way} {case['kind']} {[one.why for one in found]} {case['user']!r}")
        for kind, results in counted.items():
            shares = " | ".join(str(sum(one[n] for one in results)) for n in range(3))
            print(f"| {kind} | {len(results)} | {way} | {shares} |", flush=True)


# ---- our own messages ----


def messages() -> list[tuple[bool, str, str]]:
    """Label, kind and text of every message of our own."""
    found = []
    for line in OWN.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            label, kind, text = line.split("|", 2)
            found.append((label == "+", kind, text.replace("\\n", "\n")))
    return found


def score(
    sample: list[tuple[bool, str, str]], show: bool, judge: Any = None
) -> tuple[int, int, float, float]:
    """Number, corrections, precision and recall; by rules, or with the judge beside them."""
    from nanoclaw_memory.lessons.learning import by_rules, judged

    right = wrong = missed = 0
    for label, kind, text in sample:
        said = (judged(judge, text, "Done.") if judge else by_rules(text, "Done.")) is not None
        right += said and label
        wrong += said and not label
        missed += label and not said
        if show and said != label:
            print(f"{'missed' if label else 'false alarm'} | {kind} | {text!r}")
    return len(sample), right + missed, right / max(right + wrong, 1), right / max(right + missed, 1)


def own_messages(arguments: argparse.Namespace) -> None:
    from nanoclaw_memory.lessons import corrections
    from nanoclaw_memory.providers.judge import shared_judge

    everything = messages()
    print("| half | messages | corrections | precision | recall |\n|---|---|---|---|---|")
    for name, judge in (("rules", None), ("judge and rules", shared_judge()[0])):
        for half, sample in (("tune", everything[0::2]), ("held out", everything[1::2])):
            started = time.process_time()
            number, positive, precision, recall = score(sample, arguments.errors and half == "tune", judge)
            spent = (time.process_time() - started) / len(sample) * 1000
            print(
                f"| {name}, {half} | {number} | {positive} | {precision:.3f} | {recall:.3f} | {spent:.1f} ms"
            )
    if arguments.chat.exists():
        turns = [
            turn["text"]
            for sample in json.loads(arguments.chat.read_text(encoding="utf-8"))
            for name, session in sample["conversation"].items()
            if name.startswith("session_") and isinstance(session, list)
            for turn in session
        ]
        wrong = sum(bool(corrections.find(text)) for text in turns)
        print(
            f"\nFalse alarms of the rules in {len(turns):,} turns of chat: {wrong} ({wrong / len(turns):.2%})."
        )


def as_case(line: str) -> dict[str, Any]:
    """A case of a set that says no more than what was said and what it is, in the words of the others."""
    case: dict[str, Any] = {"should": [], "should_not": [], "lesson_words": [], "pasted": False} | json.loads(
        line
    )
    return {"previous_agent": case.pop("prev", ""), **case}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=SHARED / "corrections" / "dev.jsonl")
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--before", default="", help="the Python of an older version")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--cases", type=int, default=0, help="only so many")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--own", action="store_true", help="our own messages instead")
    parser.add_argument("--kinds", action="store_true", help="messages of several kinds instead")
    parser.add_argument(
        "--errors", action="store_true", help="list the mistakes (of our own: of the tune half)"
    )
    parser.add_argument("--chat", type=Path, default=SHARED / "locomo" / "locomo_dev.json")
    arguments = parser.parse_args()
    if arguments.own or arguments.kinds:
        (own_messages if arguments.own else kinds)(arguments)
        return
    cases = [as_case(line) for line in arguments.data.read_text(encoding="utf-8").splitlines()]
    cases, ways = cases[: arguments.cases or None], arguments.ways.split(",")
    if arguments.json:
        json.dump({way: measured(cases, way, arguments.models) for way in ways}, sys.stdout)
        return
    print(f"| {len(cases)} cases | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 1)}")
    for name, values in before(arguments.before, arguments, ways) if arguments.before else ():
        print(row(name, values), flush=True)
    for way in ways:
        print(row(way, measured(cases, way, arguments.models)), flush=True)


if __name__ == "__main__":
    main()
