"""Loops in the tool calls that a host reported: the same thing over and over."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from nanoclaw_memory.types import ToolCall

WINDOW = 20
SAME_CALL = 5
SAME_FILE = 3
SAME_OUTPUT = 3
_READS = re.compile(r"read|view|cat\b|open|get_file", re.IGNORECASE)


def find(calls: Sequence[ToolCall]) -> list[str]:
    """What repeats in the last calls, in words.

    Five calls of one tool count only with one target (or none): reading five files is work, not a loop.
    """
    last = calls[-WINDOW:]
    found = []
    reads = Counter(call.target for call in last if call.target and _READS.search(call.tool))
    found += [f"{target} was read {number} times" for target, number in reads.items() if number >= SAME_FILE]
    same = Counter((call.tool, call.target) for call in last)
    found += [
        f"{tool} was called {number} times" + (f" on {target}" if target else "")
        for (tool, target), number in same.items()
        if number >= SAME_CALL and not (target in reads and reads[target] >= SAME_FILE)
    ]
    outputs = Counter((call.tool, call.output) for call in last if call.output)
    found += [
        f"{tool} gave the same output {number} times"
        for (tool, _), number in outputs.items()
        if number >= SAME_OUTPUT
    ]
    return found[:3]
