"""The documents and questions of the comparison, and how an answer is judged."""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from changes import TODAY, judge  # the sibling measurement has the rules for outdated values

DATA = Path(__file__).parents[3] / "shared" / "data"
CHANGED = ("change", "revert", "retraction")


@dataclass(frozen=True)
class Document:
    """A conversation of one day, or the notes of one day, as statements."""

    name: str
    day: str
    title: str
    statements: tuple[str, ...]
    conversation: bool

    @property
    def markdown(self) -> str:
        if not self.conversation:
            return f"# {self.title}\n\n" + "".join(f"- {one}\n" for one in self.statements)
        turns = (one.split(": ", 1) for one in self.statements)
        body = "\n\n".join(f"**{speaker}**: {text}" for speaker, text in turns)
        return f"# {self.title}\n\n## {self.day}\n\n{body}\n"


@dataclass(frozen=True)
class Question:
    """A question with the statements that answer it, or with the case whose value has changed."""

    text: str
    evidence: tuple[str, ...] = ()
    case: dict[str, Any] | None = None

    def judged(self, shown: str) -> dict[str, bool]:
        if self.case is not None:
            return judge(shown.split("\n"), self.case)
        found = _trigrams(shown)
        return {"answer": any(_stands_in(statement, found) for statement in self.evidence)}


def read(data: Path, conversations: int, questions: int) -> tuple[list[Document], list[Question]]:
    """Conversations of LoCoMo and the daily notes of the changes, with about as many questions of each."""
    documents, asked = _locomo(json.loads((data / "locomo/locomo_dev.json").read_text())[:conversations])
    notes, changed = _notes([json.loads(line) for line in (data / "changes/dev.jsonl").open()])
    return documents + notes, _spread(asked, questions) + _spread(changed, questions)


def _locomo(samples: list[dict[str, Any]]) -> tuple[list[Document], list[Question]]:
    documents: list[Document] = []
    questions: list[Question] = []
    for sample in samples:
        talk = sample["conversation"]
        turns: dict[str, str] = {}
        for key in (key for key in talk if re.fullmatch(r"session_\d+", key)):
            said = {_turn_id(turn["dia_id"]): _turn(turn) for turn in talk[key]}
            turns |= said
            day = datetime.strptime(talk[f"{key}_date_time"].split(" on ")[1], "%d %B, %Y").date().isoformat()
            title = f"{talk['speaker_a']} and {talk['speaker_b']}, {key.replace('_', ' ')}"
            name = f"{day}-{talk['speaker_a'].lower()}-{key.rpartition('_')[2]}"
            documents.append(Document(name, day, title, tuple(said.values()), True))
        for asked in sample["qa"]:
            ids = map(_turn_id, re.findall(r"D\d+:\d+", " ".join(asked["evidence"])))
            evidence = tuple(turns[one] for one in ids if one in turns)
            if evidence and asked["category"] != 5:  # 5: has no answer
                questions.append(Question(asked["question"], evidence))
    return documents, questions


def _turn_id(text: str) -> str:
    session, turn = re.findall(r"\d+", text)
    return f"D{int(session)}:{int(turn)}"


def _turn(turn: dict[str, str]) -> str:
    shared = f" and shared {turn['blip_caption']}" if turn.get("blip_caption") else ""
    return f"{turn['speaker']}: {' '.join(turn['text'].split())}{shared}"


def _notes(cases: list[dict[str, Any]]) -> tuple[list[Document], list[Question]]:
    by_day: dict[str, list[str]] = defaultdict(list)
    for case in cases:
        for statement in case["statements"]:
            day = (TODAY - timedelta(days=statement["days_ago"])).date().isoformat()
            by_day[day].append(" ".join(statement["text"].removeprefix("- ").split()))
    documents = [Document(day, day, day, tuple(by_day[day]), False) for day in sorted(by_day)]
    changed = [case for case in cases if case["retired"] and case["kind"] in CHANGED]
    return documents, [Question(text, case=case) for case in changed for text in case["questions"]]


def _spread(questions: list[Question], wanted: int) -> list[Question]:
    """At most `wanted` questions, evenly taken."""
    step = max(1.0, len(questions) / wanted)
    return [questions[int(place * step)] for place in range(min(wanted, len(questions)))]


def _trigrams(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[place : place + 3]) for place in range(max(1, len(words) - 2))}


def _stands_in(statement: str, shown: set[tuple[str, ...]]) -> bool:
    """Whether half of the statement or more is shown: results are cut, and speakers written in many ways."""
    grams = _trigrams(statement.split(": ", 1)[1])
    return 2 * len(grams & shown) >= len(grams)
