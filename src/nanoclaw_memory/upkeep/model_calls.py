"""Call the configured language model in batches within a budget; estimate the cost before and count it after."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from nanoclaw_memory import tokens
from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.providers.usage import FILE_NAME, Usage
from nanoclaw_memory.providers.writer import Writer, fenced
from nanoclaw_memory.text import plural
from nanoclaw_memory.types import MAIN_GROUP

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

T = TypeVar("T")
BATCH_TOKENS = 3_000  # of the texts in one call
ANSWER_TOKENS = 4_000
_ARRAY = re.compile(r"\[.*\]", re.DOTALL)


def ask_for(kind: type[T], writer: Writer, task: str, texts: Sequence[str]) -> tuple[list[T | None], str]:
    """Return the rows of a model's answer to numbered texts, None for malformed ones; and why there are none."""
    listed = "\n".join(f"{place}. {text}" for place, text in enumerate(texts, 1))
    try:
        answer = writer.complete(task, fenced("notes", listed), ANSWER_TOKENS)
    except ProviderError as problem:
        return [], f"the language model failed: {problem.message}"
    match = _ARRAY.search(answer)
    try:
        rows = json.loads(match[0]) if match else None
    except ValueError:
        rows = None
    if not isinstance(rows, list):
        return [], "the language model's answer was refused: it is no JSON array"
    return [converted(row, kind) for row in rows], ""


def converted(row: Any, kind: type[T]) -> T | None:
    """Return a row of an answer, or None if it is malformed."""
    try:
        return msgspec.convert(row, kind)
    except msgspec.ValidationError:
        return None


class ModelCalls:
    """The calls of one job: whether they are allowed, their budget, and their cost."""

    def __init__(self, group: Group, task: str, prompt: str) -> None:
        self._settings = group.settings.writer
        self._prompt = prompt
        self.writer = group.resources.writer if task in self._settings.tasks else None
        self._usage = Usage(group.home.data(MAIN_GROUP) / FILE_NAME, group.clock)
        self._before = self._spent()

    def batches(self, texts: Sequence[str]) -> Iterator[range]:
        """Yield the positions of texts for each call; texts over the budget of a run wait for the next."""
        fixed = tokens.estimate(self._prompt)
        left, start, size = self._settings.max_tokens, 0, 0
        for place, text in enumerate(texts):
            cost = tokens.estimate(text) + 5
            if size and size + cost > BATCH_TOKENS:
                yield range(start, place)
                left, start, size = left - size - fixed, place, 0
            if size + cost + fixed > left:
                break
            size += cost
        else:
            place = len(texts)
        if place > start:
            yield range(start, place)

    def estimate(self, texts: Sequence[str]) -> str:
        """Return the maximal cost of a run over these texts, as text."""
        calls = list(self.batches(texts))
        chosen = [texts[place] for call in calls for place in call]
        sent = sum(map(tokens.estimate, chosen)) + len(calls) * tokens.estimate(self._prompt)
        cost = (sent * self._settings.price_in + sent // 2 * self._settings.price_out) / 1e6
        told = f"{plural(len(chosen), 'text')} in {plural(len(calls), 'call')}, about {sent + sent // 2:,} tokens"
        left = f"; {len(texts) - len(chosen)} wait for the next run" if len(chosen) < len(texts) else ""
        return f"{told}, ${cost:.4f}{left}"

    def ask(self, kind: type[T], texts: Sequence[str]) -> tuple[list[T | None], str]:
        """Return the rows of the model's answer to numbered texts; and why there are none."""
        assert self.writer is not None
        return ask_for(kind, self.writer, self._prompt, texts)

    def cost(self) -> str:
        """Return the cost of this run's calls, as text; empty if there were none."""
        calls, used, dollars = (now - before for now, before in zip(self._spent(), self._before, strict=True))
        return f"{plural(int(calls), 'call')}, {int(used):,} tokens, ${dollars:.4f}" if calls else ""

    def _spent(self) -> tuple[float, float, float]:
        own = self._settings
        for row in self._usage.total():
            if (row.provider, row.model) == (own.provider, own.model):
                return row.calls, row.tokens, row.cost
        return 0.0, 0.0, 0.0
