"""Trigger patterns: whether a message calls the agent. People write them, so matching takes linear time."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.text import encodable

MAX_PATTERN = 500
SEEN_CHARS = 65_536  # a call to the agent is in the first pages of a message or nowhere
_PLAIN = re.compile(r"[^\\^$.|?*+()\[\]{}]*\Z")

Trigger = Callable[[str], bool]


@functools.lru_cache(maxsize=1_000)
def trigger_of(pattern: str) -> Trigger:
    """The predicate of a pattern; InvalidValue when it cannot be one.

    A plain word such as `@Andy` must open the message, in any case and as a whole word; anything with signs
    of a regular expression is one, and may match anywhere.
    """
    if not pattern.strip() or len(pattern) > MAX_PATTERN:
        raise InvalidValue(
            f"a trigger pattern of {len(pattern):,} characters is refused",
            f"give 1 to {MAX_PATTERN} characters, such as @Andy",
        )
    if _PLAIN.match(pattern):
        return functools.partial(_opens_with, pattern.strip().casefold())
    return functools.partial(_matches, _compiled(pattern))


def _opens_with(word: str, text: str) -> bool:
    opening = text[:SEEN_CHARS].lstrip().casefold()
    after = opening[len(word) : len(word) + 1]
    return opening.startswith(word) and not (after.isalnum() or after == "_")


def _matches(expression: _Expression, text: str) -> bool:
    # RE2 wants text that can be encoded.
    return expression.search(encodable(text[:SEEN_CHARS].strip())) is not None


class _Expression:
    """What we use of a compiled RE2 pattern."""

    def search(self, text: str) -> object | None: ...


def _compiled(pattern: str) -> _Expression:
    # RE2 instead of `re`: Python's matcher backtracks, cannot be interrupted, and one `^(a+)+$` would stop
    # the host for every group. RE2 runs in linear time and refuses what would grow when compiled.
    import re2

    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    options.max_mem = 1 << 20
    try:
        compiled: _Expression = re2.compile(encodable(pattern), options)
    except re2.error as error:
        reason = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise InvalidValue(
            f"the trigger pattern {pattern[:80]!r} is refused: {reason}",
            "use RE2 syntax: no look-around, no back-references, small repeat counts",
        ) from None
    return compiled
