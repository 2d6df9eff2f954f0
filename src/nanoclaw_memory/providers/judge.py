"""The judge: a small local model that classifies messages, with a calibrated probability for each question."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.errors import ProviderError

if TYPE_CHECKING:
    from nanoclaw_memory.providers.local import OnnxModel
    from nanoclaw_memory.providers.wordpiece import WordPiece

FOLDER = Path(__file__).with_name("judge_model")
MAX_TOKENS = 160  # of one question; of a longer text both ends are read
MAX_LINES_TOKENS = 400  # of a message whose lines are judged together
MAX_LINES = 400
REACHES = ("general", "topic", "once")
TYPES = tuple("preference instruction correction fact context project person decision insight none".split())
# The model's heads in the order of its output, each with its number of outputs.
HEADS = {
    "needs": 1,
    "correction": 1,
    "reach": len(REACHES),
    "attack": 1,
    "same": 1,
    "meets": 1,
    "applies": 1,
    "type": len(TYPES),
}
OWN = "own"  # judged for each line of a message
REMEMBERED = 256  # cached verdicts: several plugins ask the same about one message
_MARKS = {name: number for number, name in enumerate((*HEADS, OWN), 1)}  # the ids of [unused0], [unused1] …
_CLS, _SEP = 101, 102
_REINSTALL = "reinstall nanoclaw-memory"


class JudgeCard(msgspec.Struct, frozen=True):
    """The metadata that training wrote beside the model: its files' hashes, and each head's calibration."""

    files: dict[str, tuple[int, str]]  # size and SHA-256
    calibration: dict[str, tuple[float, float]]  # scale and shift of the raw score


class Encoded(msgspec.Struct, frozen=True):
    """Token ids, where the second text begins, and which tokens each line has."""

    ids: list[int]
    second: int | None = None
    lines: tuple[tuple[int, int], ...] = ()


class Judge:
    """Answer questions about texts; every answer is a probability between 0 and 1."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder
        self._known: OrderedDict[tuple[int, ...], list[float]] = OrderedDict()

    @cached_property
    def card(self) -> JudgeCard:
        """Return the model's metadata; raise ProviderError when it is missing."""
        try:
            found = msgspec.json.decode((self.folder / "judge.json").read_bytes(), type=JudgeCard)
        except (OSError, ValueError) as error:  # also what msgspec raises
            raise ProviderError(f"the judge is missing: {error}", _REINSTALL) from None
        if missing := {"model.onnx", "vocab.txt"} - found.files.keys():
            raise ProviderError(f"the judge's card does not name {', '.join(sorted(missing))}", _REINSTALL)
        return found

    def load(self) -> None:
        """Verify and load the model; raise ProviderError when it is missing, damaged or another one."""
        try:
            heads, tokens = (self._onnx.run([_CLS, _SEP], output=name).shape for name in ("heads", "tokens"))
        except UnicodeDecodeError as error:
            raise ProviderError(f"the judge's vocabulary is no text: {error}", _REINSTALL) from None
        if heads != (sum(HEADS.values()),) or tokens != (2,):
            raise ProviderError("the judge has other heads than this version asks", _REINSTALL)

    def probability(self, head: str, text: str, other: str = "") -> float:
        """Return the probability of yes for `needs`, `correction`, `attack`, `same`, `meets` or `applies`."""
        if not text.strip():
            return 0.0
        return self._calibrated(head, self._scores(head, text, other)[0])

    def reach(self, message: str, before: str) -> dict[str, float]:
        """Return how far a correction reaches: the shares of general, topic and once."""
        return _shares(REACHES, self._scores("reach", message, before))

    def line_type(self, line: str, section: str) -> tuple[str, float]:
        """Return the type of a line of MEMORY.md, and its share of all types."""
        shares = self.line_types(line, section)
        best = max(TYPES, key=lambda kind: shares[kind])
        return best, shares[best]

    def line_types(self, line: str, section: str) -> dict[str, float]:
        """Return the share of each type of a line."""
        return _shares(TYPES, self._scores("type", line, section))

    def own_lines(self, lines: Sequence[str]) -> list[float]:
        """Return for each line of a message the probability that the person wrote it and did not paste it."""
        found: list[float] = []
        for part in encode_lines(self._onnx.tokenizer, lines[:MAX_LINES]):
            scores = self._onnx.run(part.ids, output="tokens")
            for first, last in part.lines:
                found.append(self._calibrated(OWN, float(scores[first : max(last, first + 1)].mean())))
        return found + [0.5] * (len(lines) - len(found))

    def _scores(self, head: str, text: str, other: str) -> list[float]:
        read = encode(self._onnx.tokenizer, head, text, other)
        key = tuple(read.ids)  # not the texts: one may have a million characters
        found = self._known.get(key)
        if found is None:
            row = self._onnx.run(read.ids, read.second, "heads").tolist()
            start = sum(list(HEADS.values())[: list(HEADS).index(head)])
            found = self._known[key] = row[start : start + HEADS[head]]
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return found

    def _calibrated(self, head: str, score: float) -> float:
        scale, shift = self.card.calibration.get(head, (1.0, 0.0))
        return 1 / (1 + math.exp(-max(min(scale * score + shift, 30.0), -30.0)))

    @cached_property
    def _onnx(self) -> OnnxModel:
        from nanoclaw_memory.providers.local import OnnxModel
        from nanoclaw_memory.providers.models import Model, ModelFile

        files = tuple(ModelFile(name, name, size, digest) for name, (size, digest) in self.card.files.items())
        return OnnxModel(Model("judge", "judging messages", "MIT", "", "", files), self.folder, threads=1)


def _shares(names: Sequence[str], scores: Sequence[float]) -> dict[str, float]:
    best = max(scores)
    powers = [math.exp(score - best) for score in scores]
    return {name: power / sum(powers) for name, power in zip(names, powers, strict=True)}


@cache
def shared_judge() -> tuple[Judge | None, str]:
    """Return the process's judge, loaded; None and the reason if its model is missing or damaged."""
    judge = Judge(FOLDER)
    try:
        judge.load()
    except ProviderError as error:
        return None, error.message
    return judge, ""


def encode(pieces: WordPiece, head: str, text: str, other: str = "") -> Encoded:
    """Encode one text, or two, for a head: its mark, the text, the other."""
    room = MAX_TOKENS - 4
    second = _both_ends(pieces, other, room // 2) if other else []
    ids = [_CLS, _MARKS[head], *_both_ends(pieces, text, room - len(second)), _SEP]
    return Encoded([*ids, *second, _SEP], len(ids)) if second else Encoded(ids)


def encode_lines(pieces: WordPiece, lines: Sequence[str]) -> list[Encoded]:
    """Encode the lines of a message with their neighbours, in as many parts as needed."""
    parts: list[Encoded] = []
    ids, places = [_CLS, _MARKS[OWN]], list[tuple[int, int]]()
    for line in lines:
        found = pieces.pieces(line, MAX_LINES_TOKENS // 4)
        if len(ids) + len(found) + 1 > MAX_LINES_TOKENS:
            parts.append(Encoded(ids, None, tuple(places)))
            ids, places = [_CLS, _MARKS[OWN]], []
        places.append((len(ids), len(ids) + len(found)))
        ids += [*found, _SEP]
    return [*parts, Encoded(ids, None, tuple(places))]


def _both_ends(pieces: WordPiece, text: str, limit: int) -> list[int]:
    """Return the ids of a text; of a long one the first two thirds and the last third that fit."""
    found = pieces.pieces(text, limit + 1)
    if len(found) <= limit:
        return found
    tail = limit // 3
    return found[: limit - tail] + pieces.pieces(text[-tail * 8 :], 8 * tail)[-tail:]
