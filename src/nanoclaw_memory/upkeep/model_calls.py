"""Ask the configured language model in batches within a budget; the cost is estimated before and counted after."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from nanoclaw_memory import tokens
from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.providers.usage import FILE_NAME, Usage
from nanoclaw_memory.providers.writer import fenced
from nanoclaw_memory.text import plural
from nanoclaw_memory.types import MAIN_GROUP

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

BATCH_TOKENS = 3_000  # of the texts in one call
ANSWER_TOKENS = 4_000
_ARRAY = re.compile(r"\[.*\]", re.DOTALL)


def json_rows(answer: str) -> list[Any] | None:
    """The JSON array in a model's answer; None if there is none."""
    match = _ARRAY.search(answer)
    try:
        rows = json.loads(match[0]) if match else None
    except ValueError:
        return None
    return rows if isinstance(rows, list) else None


class ModelCalls:
    """The calls of one job: whether they are allowed, what they may cost, and what they did."""

    def __init__(self, group: Group, task: str, prompt: str) -> None:
        self._settings = group.settings.writer
        self._prompt = prompt
        self.writer = group.resources.writer if task in self._settings.tasks else None
        self._usage = Usage(group.home.data(MAIN_GROUP) / FILE_NAME, group.clock)
        self._before = self._spent()

    def batches(self, texts: Sequence[str]) -> Iterator[range]:
        """The places of texts that go into one call each; what is over the budget of a run waits for the next."""
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
        """What a run over these texts would cost at most, in words."""
        calls = list(self.batches(texts))
        chosen = [texts[place] for call in calls for place in call]
        sent = sum(map(tokens.estimate, chosen)) + len(calls) * tokens.estimate(self._prompt)
        cost = (sent * self._settings.price_in + sent // 2 * self._settings.price_out) / 1e6
        told = f"{plural(len(chosen), 'text')} in {plural(len(calls), 'call')}, about {sent + sent // 2:,} tokens"
        left = f"; {len(texts) - len(chosen)} wait for the next run" if len(chosen) < len(texts) else ""
        return f"{told}, ${cost:.4f}{left}"

    def ask(self, texts: Sequence[str]) -> tuple[list[Any], str]:
        """The rows of the model's answer to numbered texts, and why there are none."""
        listed = "\n".join(f"{place}. {text}" for place, text in enumerate(texts, 1))
        try:
            assert self.writer is not None
            answer = self.writer.complete(self._prompt, fenced("notes", listed), ANSWER_TOKENS)
        except ProviderError as problem:
            return [], f"the language model failed: {problem.message}"
        rows = json_rows(answer)
        return rows or [], "" if rows is not None else "the language model's answer is no JSON array"

    def cost(self) -> str:
        """What the calls of this run did cost, in words; empty when there were none."""
        calls, used, dollars = (now - before for now, before in zip(self._spent(), self._before, strict=True))
        return f"{plural(int(calls), 'call')}, {int(used):,} tokens, ${dollars:.4f}" if calls else ""

    def _spent(self) -> tuple[float, float, float]:
        own = self._settings
        for row in self._usage.total():
            if (row.provider, row.model) == (own.provider, own.model):
                return row.calls, row.tokens, row.cost
        return 0.0, 0.0, 0.0
