"""LoCoMo through the public path: each session is an archived conversation, each question a `Memory.search`.

    python bench/locomo.py DATA [--models DIR] [--keep DIR] [--rerank] [--ablate] [--modes keyword,vector,hybrid]
        [--first-person]

DATA is a file of the LoCoMo shape (not shipped: its licence is CC BY-NC). One memory per conversation; the unit
is the dialog turn; the query is the question alone. Prints Markdown tables; `--json FILE` writes all figures;
`--ablate` takes the steps of hybrid search away one by one. `--first-person` writes the two speakers as User and Agent,
as archives of an agent do, and asks with "I" and "you" instead of their names.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from nanoclaw_memory.memory import Memory
from nanoclaw_memory.retrieval import candidates, ranking
from nanoclaw_memory.types import Hit

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
MODES: dict[str, dict[str, str]] = {
    "keyword": {"embeddings.provider": "none"},
    "vector": {"memory.searchWeights.vector": "1", "memory.searchWeights.bm25": "0"},
    "hybrid": {},
    "hybrid + cross-encoder": {"rerank.provider": "local", "rerank.timeoutMs": "60000"},
}
DEPTH = 100
DATA = Path(__file__).parent.parent.parent / "shared" / "data" / "locomo" / "locomo_dev.json"


@dataclass(frozen=True)
class Asked:
    """A question with the turns that answer it."""

    text: str
    evidence: tuple[str, ...]
    category: int


@dataclass(frozen=True)
class Conversation:
    """A conversation as files, and which line of which file is which turn."""

    name: str
    files: dict[str, str]
    turns: dict[tuple[str, int], str]
    questions: tuple[Asked, ...]


@dataclass
class Sums:
    """Figures of the questions of one category."""

    rows: list[dict[str, float]] = field(default_factory=list)

    def mean(self, name: str) -> float:
        return statistics.fmean(row[name] for row in self.rows) if self.rows else math.nan


def main() -> None:
    options = _options()
    samples = json.loads(options.data.read_text(encoding="utf-8"))
    conversations = [_conversation(_in_person(one) if options.first_person else one) for one in samples]
    chosen = [
        name for name in MODES if name in options.modes.split(",") or (options.rerank and "cross" in name)
    ]
    with tempfile.TemporaryDirectory() as scratch:
        root = options.keep or Path(scratch)
        for conversation in conversations:
            _write(root / conversation.name, conversation, options.models)
        results = {name: _measure(root, conversations, MODES[name]) for name in chosen}
        if options.ablate:
            results |= _ablated(root, conversations)
    _print(results)
    if options.json:
        options.json.write_text(json.dumps(_plain(results), indent=2), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=Path, nargs="?", default=DATA)
    parser.add_argument("--models", type=Path, default=Path("~/.nanoclaw/models").expanduser())
    parser.add_argument(
        "--keep", type=Path, help="keep the memories here, so that a second run embeds nothing"
    )
    parser.add_argument("--modes", default="keyword,vector,hybrid")
    parser.add_argument("--rerank", action="store_true", help="the cross-encoder too: minutes of CPU")
    parser.add_argument("--ablate", action="store_true", help="hybrid with one step left out at a time")
    parser.add_argument("--first-person", action="store_true", help='"I" and "you" instead of names')
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


# ---- the data as files ----


def _conversation(sample: dict[str, Any]) -> Conversation:
    talk = sample["conversation"]
    files: dict[str, str] = {}
    turns: dict[tuple[str, int], str] = {}
    for number, session in _sessions(talk):
        day = _day(talk[f"session_{number}_date_time"])
        path = f"conversations/{day}-session-{number}.md"
        lines = [f"# Session {number}", "", f"## {day}", ""]
        for turn in session:
            shared = f" and shared {turn['blip_caption']}" if turn.get("blip_caption") else ""
            lines.append(f"**{turn['speaker']}**: {' '.join(turn['text'].split())}{shared}")
            turns[path, len(lines)] = _turn_id(turn["dia_id"])
        files[path] = "\n".join(lines) + "\n"
    known = set(turns.values())
    questions = []
    for asked in sample["qa"]:
        ids = dict.fromkeys(_turn_id(text) for text in re.findall(r"D\d+:\d+", " ".join(asked["evidence"])))
        evidence = tuple(one for one in ids if one in known)
        if evidence:
            questions.append(Asked(asked["question"], evidence, asked["category"]))
    return Conversation(sample["sample_id"], files, turns, tuple(questions))


def _in_person(sample: dict[str, Any]) -> dict[str, Any]:
    """The sample with its first speaker as the user who asks, and the second as the agent."""
    talk = dict(sample["conversation"])
    called = {talk["speaker_a"]: ("User", "I", "my"), talk["speaker_b"]: ("Agent", "you", "your")}
    for number, session in _sessions(talk):
        talk[f"session_{number}"] = [turn | {"speaker": called[turn["speaker"]][0]} for turn in session]
    questions = []
    for asked in sample["qa"]:
        text = asked["question"]
        for name, (_, subject, owner) in called.items():
            text = re.sub(rf"\b{name}['’]s\b", owner, text)
            text = re.sub(rf"\b{name}\b", subject, text)
        questions.append(asked | {"question": text})
    return sample | {"conversation": talk, "qa": questions}


def _sessions(talk: dict[str, Any]) -> Iterator[tuple[int, list[dict[str, str]]]]:
    numbers = sorted(int(key.split("_")[1]) for key in talk if re.fullmatch(r"session_\d+", key))
    return ((number, talk[f"session_{number}"]) for number in numbers)


def _turn_id(text: str) -> str:
    session, turn = re.findall(r"\d+", text)
    return f"D{int(session)}:{int(turn)}"


def _day(text: str) -> str:
    """'1:56 pm on 8 May, 2023' as 2023-05-08."""
    return datetime.strptime(text.split(" on ")[1], "%d %B, %Y").date().isoformat()


def _write(home: Path, conversation: Conversation, models: Path) -> None:
    with Memory.open(home) as memory:
        home.mkdir(parents=True, exist_ok=True)
        if not (home / "models").is_symlink():
            (home / "models").symlink_to(models.resolve())
        for path, text in conversation.files.items():
            target = home / "workspace" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                target.write_text(text, encoding="utf-8")
        began = time.process_time()
        done = memory.index()
        took = time.process_time() - began
        print(
            f"{conversation.name}: {done.chunks} chunks, {done.embedded} embedded, {took:.1f} s of CPU",
            flush=True,
        )
        for line in done.degraded:
            print(f"  {line}")


# ---- the figures ----


def _measure(root: Path, conversations: list[Conversation], overrides: dict[str, str]) -> dict[str, Any]:
    turn_level: dict[int, Sums] = defaultdict(Sums)
    session_level: dict[int, Sums] = defaultdict(Sums)
    latency: list[float] = []
    for conversation in conversations:
        with Memory.open(root / conversation.name, overrides=overrides) as memory:
            memory.search("warm up", 1)
            for asked in conversation.questions:
                began = time.process_time()
                found = memory.search(asked.text, DEPTH)
                latency.append((time.process_time() - began) * 1000)
                ranked = _turns_of(conversation, found.hits)
                turn_level[asked.category].rows.append(_figures(ranked, set(asked.evidence)))
                sessions = list(dict.fromkeys(one.split(":")[0] for one in ranked))
                wanted = {one.split(":")[0] for one in asked.evidence}
                session_level[asked.category].rows.append(_figures(sessions, wanted))
    return {"turn": turn_level, "session": session_level, "latency": sorted(latency)}


def _ablated(root: Path, conversations: list[Conversation]) -> dict[str, dict[str, Any]]:
    """Hybrid search without each of its steps, and without all of them."""
    fields = "bm25(1.0, 0.4, 0.5)"
    steps: dict[str, tuple[Any, str, Any]] = {
        "score from turns beside": (ranking, "_NEIGHBOURS", {}),
        "words of turns beside": (None, "bm25(1.0, 0.0, 0.5)", None),
        "bonus for the speaker named": (ranking, "SPEAKER", 0.0),
        "speaker, heading and day in the words": (None, "bm25(1.0, 0.4, 0.0)", None),
        "question without names": (candidates, "NAMELESS", 0.0),
        "less weight for words that share little": (ranking, "HELD", 1e-9),
        "more weight for the days asked about": (ranking, "OF_THE_DAY", 0.0),
    }
    kept = {name: getattr(module, attribute) for name, (module, attribute, _) in steps.items() if module}
    results = {}
    for left_out in [*([name] for name in steps), list(steps)]:
        for name in left_out:
            module, attribute, without = steps[name]
            if module is None:
                weights = "bm25(1.0, 0.0, 0.0)" if len(left_out) > 1 else attribute
                _set_fields(root, conversations, weights)
            else:
                setattr(module, attribute, without)
        label = f"no {left_out[0]}" if len(left_out) == 1 else "none of these"
        results[f"hybrid, {label}"] = _measure(root, conversations, {})
        for name, value in kept.items():
            setattr(steps[name][0], steps[name][1], value)
        _set_fields(root, conversations, fields)
    return results


def _set_fields(root: Path, conversations: list[Conversation], weights: str) -> None:
    for conversation in conversations:
        with Memory.open(root / conversation.name) as memory, memory.group.database("index").transaction():
            memory.group.database("index").execute(
                "INSERT INTO passages_fts (passages_fts, rank) VALUES ('rank', :weights)",
                {"weights": weights},
            )


def _turns_of(conversation: Conversation, hits: tuple[Hit, ...]) -> list[str]:
    found = (conversation.turns.get((hit.path, hit.start_line)) for hit in hits)
    return list(dict.fromkeys(one for one in found if one))


def _figures(ranked: list[str], wanted: set[str]) -> dict[str, float]:
    places = [place for place, one in enumerate(ranked, 1) if one in wanted]
    figures = {"mrr": 1 / places[0] if places else 0.0}
    for depth in (1, 5, 10, 20, 50):
        hit = sum(place <= depth for place in places)
        figures |= {f"r{depth}": hit / len(wanted), f"any{depth}": hit > 0, f"all{depth}": hit == len(wanted)}
    gain = sum(1 / math.log2(place + 1) for place in places if place <= 10)
    figures["ndcg"] = gain / sum(1 / math.log2(place + 1) for place in range(1, min(len(wanted), 10) + 1))
    return figures


def _main_figure(by_category: dict[int, Sums]) -> Sums:
    return Sums([row for category in (1, 2, 3, 4) for row in by_category[category].rows])


def _print(results: dict[str, dict[str, Any]]) -> None:
    columns = ("r1", "r5", "r10", "any5", "any10", "all5", "all10", "mrr", "ndcg")
    print(f"\n| mode | questions | n | {' | '.join(columns)} |\n|" + "---|" * (len(columns) + 3))
    for name, result in results.items():
        rows = [("1-4", _main_figure(result["turn"]))]
        rows += [(f"{number} {label}", result["turn"][number]) for number, label in CATEGORIES.items()]
        for label, sums in rows:
            cells = " | ".join(f"{sums.mean(column):.3f}" for column in columns)
            print(f"| {name} | {label} | {len(sums.rows)} | {cells} |")
    print("\n| mode | session r1 | r5 | r10 | CPU ms p50 | p95 |\n|---|---|---|---|---|---|")
    for name, result in results.items():
        sums = _main_figure(result["session"])
        times = result["latency"]
        cells = " | ".join(f"{sums.mean(column):.3f}" for column in ("r1", "r5", "r10"))
        print(f"| {name} | {cells} | {times[len(times) // 2]:.1f} | {times[int(len(times) * 0.95)]:.1f} |")


def _plain(results: dict[str, dict[str, Any]]) -> dict[str, Any]:
    names = ("r1", "r5", "r10", "r20", "r50", "any5", "any10", "all5", "all10", "mrr", "ndcg")
    return {
        mode: {
            level: {
                "1-4": {name: round(_main_figure(result[level]).mean(name), 4) for name in names},
                **{
                    CATEGORIES[number]: {name: round(sums.mean(name), 4) for name in names}
                    for number, sums in sorted(result[level].items())
                },
            }
            for level in ("turn", "session")
        }
        for mode, result in results.items()
    }


if __name__ == "__main__":
    main()
