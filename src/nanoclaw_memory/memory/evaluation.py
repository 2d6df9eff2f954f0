"""Evaluate a memory by a person's own questions: what must and what must not appear; nothing is changed."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nanoclaw_memory.errors import FileProblem, InvalidValue, NotFound
from nanoclaw_memory.tokens import estimate
from nanoclaw_memory.types import EvalAnswer, EvalQuestion, Evaluation

if TYPE_CHECKING:
    from nanoclaw_memory.memory.api import Memory

FACES = ("search", "graph", "recall", "turn")
EXAMPLE = Path(__file__).parent / "sixty_questions"
MAX_QUESTIONS = 5_000
TOP = 6
_HINT = 'write [[question]] ask = "…" must = ["…"] into a .toml file, or {"ask", "must"} a line of .jsonl'
# Other common names of the fields for questions and answers.
_SYNONYMS = {"question": "ask", "query": "ask", "q": "ask", "answer": "must", "expect": "must", "faces": "in"}


def read_questions(path: Path) -> list[EvalQuestion]:
    """Return the questions of a TOML, JSON or JSONL file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise NotFound(f"there is no file {path.name}", _HINT) from None
    except (UnicodeDecodeError, OSError) as error:
        raise FileProblem(f"{path.name} cannot be read: {error}", "save it as UTF-8 text") from None
    rows = _rows(path, text)
    if not 1 <= len(rows) <= MAX_QUESTIONS:
        raise InvalidValue(f"{path.name} has {len(rows):,} questions", f"1 to {MAX_QUESTIONS:,}; {_HINT}")
    return [_question(number, row) for number, row in enumerate(rows, 1)]


def _rows(path: Path, text: str) -> list[Any]:
    import json
    import tomllib

    try:
        if path.suffix.casefold() == ".toml":
            return list(tomllib.loads(text).get("question", []))
        if path.suffix.casefold() == ".jsonl":
            return [json.loads(line) for line in text.split("\n") if line.strip()]
        read = json.loads(text)
    except ValueError as error:
        raise InvalidValue(f"{path.name} cannot be read: {error}", _HINT) from None
    rows = read.get("questions") or read.get("question") if isinstance(read, dict) else read
    return rows if isinstance(rows, list) else []


def _question(number: int, row: Any) -> EvalQuestion:
    if not isinstance(row, dict):
        raise InvalidValue(f"question {number} is no object", _HINT)
    given = {_SYNONYMS.get(str(key), str(key)): value for key, value in row.items()}
    listed: dict[str, Any] = {
        key: (given[key],) if isinstance(given[key], str) else given[key]
        for key in ("must", "must_not", "in")
        if key in given
    }
    try:
        asked = msgspec.convert(given | listed, EvalQuestion)
    except msgspec.ValidationError as error:
        raise InvalidValue(f"question {number}: {error}", _HINT) from None
    unknown = [face for face in asked.faces if face not in FACES]
    if unknown or not asked.ask.strip():
        what = f"there is no face {unknown[0]!r}" if unknown else "it asks nothing"
        raise InvalidValue(f"question {number}: {what}", f"faces are {', '.join(FACES)}")
    if not (asked.must or asked.must_not or asked.nothing):
        raise InvalidValue(f"question {number} expects nothing", _HINT)
    return asked


def evaluate(
    memory: Memory, questions: Sequence[EvalQuestion], before: Evaluation | None, fast: bool
) -> Evaluation:
    """Ask every question in each of its faces; one that passed `before` and fails now is a regression."""
    begun = time.perf_counter()
    answers = tuple(
        _answered(memory, question, face, fast)
        for question in questions
        for face in question.faces or (("turn",) if question.nothing else FACES)
    )
    failed = tuple(question.ask for question in questions if not _passed(question, answers))
    passed = {(answer.ask, answer.face) for answer in before.answers if answer.passed} if before else set()
    lost = tuple(one for one in answers if not one.passed and (one.ask, one.face) in passed)
    return Evaluation(answers, failed, lost, before is not None, round(time.perf_counter() - begun, 2))


def _passed(question: EvalQuestion, answers: Iterable[EvalAnswer]) -> bool:
    """Return whether the answer appears in all named faces, else in any face, and nothing unwanted appears."""
    own = [answer for answer in answers if answer.ask == question.ask]
    if question.faces or question.nothing:
        return all(answer.passed for answer in own)
    return any(answer.passed for answer in own) and not any(answer.shown for answer in own)


def _answered(memory: Memory, question: EvalQuestion, face: str, fast: bool) -> EvalAnswer:
    text = "\n".join(_lines(memory, question.ask, face, fast))
    whole = _plain(text)
    missing = tuple(one for one in question.must if _plain(one) not in whole)
    shown = tuple(one for one in question.must_not if _plain(one) in whole)
    return EvalAnswer(
        ask=question.ask,
        face=face,
        passed=not missing and not shown and not (question.nothing and whole),
        missing=missing,
        shown=shown,
        tokens=estimate(text) if text else 0,
    )


def _lines(memory: Memory, ask: str, face: str, fast: bool) -> list[str]:
    """Return what a face shows, as text; nothing is warmed, counted as used or recorded."""
    if face == "search":
        return [hit.text for hit in memory.search(ask, TOP, fast=fast).hits]
    if face == "graph":
        return [hit.text for hit in memory.graph.search(ask, TOP).hits]
    if face == "recall":
        return [memory.recall(ask, fast=fast, noted=False).text]
    return [memory.before_turn(ask, explain=True, repeat=True).text]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


# ---- the accepted result, and the example ----


def saved_at(path: Path) -> Path:
    """Return where the accepted result for a file of questions is stored."""
    return path.with_name(f"{path.stem}.accepted.json")


def read_saved(path: Path) -> Evaluation | None:
    """Return the accepted result, or None if there is none."""
    try:
        return msgspec.json.decode(saved_at(path).read_bytes(), type=Evaluation)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, msgspec.ValidationError) as error:
        hint = f"remove {saved_at(path).name}, then save again: nanoclaw-memory eval {path.name} --save"
        raise FileProblem(f"{saved_at(path).name} cannot be read: {error}", hint) from None


@contextmanager
def example() -> Iterator[Memory]:
    """Return a home with the sample workspace of the sixty questions; it is removed afterwards."""
    from nanoclaw_memory.memory.api import Memory

    with tempfile.TemporaryDirectory(prefix="nanoclaw-eval-") as folder, Memory.open(Path(folder)) as memory:
        memory.init()
        workspace = memory.home.workspace("main")
        shutil.rmtree(workspace)
        shutil.copytree(EXAMPLE / "workspace", workspace)
        memory.graph.seed(memory.home, again=True)
        memory.index()
        yield memory
