"""What continuity recalls of earlier sessions, what it costs, and whether it keeps silent about other people's.

    python bench/continuity.py [--data FILE] [--models DIR] [--cold] [--limit N] [--always]

LoCoMo's development conversations are fed session by session as exchanges (two turns each); a month later every
question is put as a message of a new session. `evidence` is the share of a question's evidence turns whose text is
in the injected block (mean over questions), `any` the share of questions with at least one. The negative controls
are the questions of the next conversation in the list, put three times: as they are; with their names taken for known
ones; and with the names of its two people exchanged for those of ours, so that only what is asked tells that it is
foreign. `--always` switches abstention off.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.providers.models import embedder
from nanoclaw_memory.retrieval import relevance
from nanoclaw_memory.types import Scope

ROOT = Path(__file__).parent.parent
DATA = ROOT.parent / "shared" / "data" / "locomo" / "locomo_dev.json"
MODELS = ROOT / ".venv" / "models"
LABEL = "CONTINUITY CONTEXT"
MAIN = (1, 2, 3, 4)
_SESSIONS = itertools.count()


def sessions(conversation: dict[str, Any]) -> Iterator[tuple[str, datetime, list[dict[str, str]]]]:
    """The sessions in order, with their moment and turns."""
    for number in itertools.count(1):
        if f"session_{number}_date_time" not in conversation:
            return
        turns = conversation.get(f"session_{number}")
        if turns:
            text = conversation[f"session_{number}_date_time"]
            at = datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            yield f"session-{number}", at, turns


def said(turn: dict[str, str]) -> str:
    """A turn as the protocol words it."""
    shared = f" and shared {turn['blip_caption']}" if turn.get("blip_caption") else ""
    return f'{turn["speaker"]} said, "{turn["text"]}"{shared}'


def feed(
    home: Path, sample: dict[str, Any], models: Path, cold: bool, always: bool = False
) -> tuple[Memory, dict[str, str]]:
    """A memory that heard the whole conversation, opened a month later; and each turn's text."""
    clock = FixedClock(datetime(2023, 1, 1, tzinfo=UTC))
    overrides = {
        "plugins.allow": "continuity",
        "telemetry.enabled": "false",
        "embeddings.modelPath": str(embedder(models)[1]),
        "plugins.timeoutMs": "60000",
        "plugins.entries.continuity.timeoutMs": "60000",
        "plugins.entries.continuity.always": str(always).lower(),
    }
    texts = {}
    for name, at, turns in sessions(sample["conversation"]):
        clock.moment = at
        with Memory.open(home, Scope(session_id=name), clock=clock, overrides=overrides) as memory:
            for pair in _pairs(turns):
                sides = [said(turn) for turn in pair]
                texts.update({turn["dia_id"]: text for turn, text in zip(pair, sides, strict=True)})
                memory.after_turn(sides[0], sides[1] if len(sides) > 1 else "")
                clock.moment += timedelta(minutes=1)
    clock.moment += timedelta(days=30)
    memory = Memory.open(home, Scope(session_id="later"), clock=clock, overrides=overrides)
    if not cold:
        memory.group.resources.resident = True
        while memory.conversations.embed(256):
            pass
    return memory, texts


def _pairs(turns: list[dict[str, str]]) -> Iterator[tuple[dict[str, str], ...]]:
    for start in range(0, len(turns), 2):
        yield tuple(turns[start : start + 2])


def evidence_of(question: dict[str, Any], texts: dict[str, str]) -> list[str]:
    """The evidence turns that exist, ids normalised."""
    found = re.findall(r"D(\d+):0*(\d+)", " ".join(map(str, question.get("evidence", []))))
    return [name for name in dict.fromkeys(f"D{day}:{turn}" for day, turn in found) if name in texts]


def plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", text.casefold())


def ask(memory: Memory, question: str) -> tuple[str, int, float]:
    """The block, its tokens, and the CPU milliseconds."""
    session = memory.for_session(f"later-{next(_SESSIONS)}")  # none is told a line twice
    started = time.process_time()
    turn = session.before_turn(question)
    spent = (time.process_time() - started) * 1000
    block = next((block for block in turn.blocks if block.label == LABEL), None)
    return (block.text, block.tokens, spent) if block else ("", 0, spent)


def speakers(sample: dict[str, Any]) -> tuple[str, str]:
    return sample["conversation"]["speaker_a"], sample["conversation"]["speaker_b"]


def foreign_tokens(memory: Memory, own: dict[str, Any], other: dict[str, Any], limit: int) -> list[list[int]]:
    """Tokens injected for each question of another conversation: as it is, names known, names exchanged."""
    names = dict(zip(speakers(other), speakers(own), strict=True))
    found: list[list[int]] = [[], [], []]
    for question in other["qa"][:limit]:
        text = question["question"]
        found[0].append(ask(memory, text)[1])
        known_share = relevance.known_share
        relevance.known_share = lambda names, known: 1.0
        found[1].append(ask(memory, text)[1])
        relevance.known_share = known_share
        exchanged = re.sub(r"\b(?:" + "|".join(names) + r")\b", lambda name: names[name[0]], text)
        found[2].append(ask(memory, exchanged)[1])
    return found


def run(arguments: argparse.Namespace) -> None:
    samples = json.loads(arguments.data.read_text(encoding="utf-8"))
    own: list[tuple[int, float, int]] = []
    foreign: list[list[int]] = [[], [], []]
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for place, sample in enumerate(samples):
            folder_of = Path(folder, str(place))
            memory, texts = feed(folder_of, sample, arguments.models, arguments.cold, arguments.always)
            for question in sample["qa"][: arguments.limit]:
                wanted = evidence_of(question, texts)
                if not wanted:
                    continue
                block, tokens, spent = ask(memory, question["question"])
                times.append(spent)
                there = plain(block)
                share = sum(plain(texts[name])[:150] in there for name in wanted) / len(wanted)
                own.append((question["category"], share, tokens))
            other = samples[(place + 1) % len(samples)]
            for all_of, more in zip(
                foreign, foreign_tokens(memory, sample, other, arguments.limit), strict=True
            ):
                all_of += more
            memory.close()
    report(own, foreign, times, arguments)


def report(
    own: list[tuple[int, float, int]], foreign: list[list[int]], times: list[float], arguments: Any
) -> None:
    how = f"{'cold (words only)' if arguments.cold else 'resident (words and vectors)'}"
    print(f"### Continuity, {how}{', abstention off' if arguments.always else ''}\n")
    print("| questions | number | evidence | any | silent | mean tokens |\n|---|---|---|---|---|---|")
    groups = [("categories 1-4", MAIN)] + [(f"category {n}", (n,)) for n in (1, 2, 3, 4, 5)]
    for name, wanted in groups:
        rows = [row for row in own if row[0] in wanted]
        count = max(len(rows), 1)
        shares, hit = sum(r[1] for r in rows) / count, sum(r[1] > 0 for r in rows) / count
        silent, tokens = sum(r[2] == 0 for r in rows) / count, sum(r[2] for r in rows) / count
        print(f"| {name} | {len(rows)} | {shares:.3f} | {hit:.3f} | {silent:.3f} | {tokens:.0f} |")
    for name, found in zip(("", ", names known", ", names exchanged"), foreign, strict=True):
        silent, mean = sum(tokens == 0 for tokens in found) / len(found), sum(found) / len(found)
        print(f"| of another conversation{name} | {len(found)} | | | {silent:.3f} | {mean:.0f} |")
    times.sort()
    print(f"\nCPU a turn: p50 {times[len(times) // 2]:.1f} ms, p95 {times[int(len(times) * 0.95)]:.1f} ms.")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--cold", action="store_true", help="as a new process: without the embedding model")
    parser.add_argument("--always", action="store_true", help="without abstention")
    parser.add_argument("--limit", type=int, default=10_000, help="questions a conversation")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
