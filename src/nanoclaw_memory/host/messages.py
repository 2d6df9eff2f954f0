"""Messages from channels: valid sizes, names and times, and the trigger patterns that call the agent."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from datetime import UTC, datetime

from nanoclaw_memory.clock import read_moment, stamp
from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.text import encodable
from nanoclaw_memory.types import Message

MAX_BYTES = 2 * 1024 * 1024
MAX_NAME = 512
MAX_PATTERN = 500
SEEN_CHARS = 65_536  # a call to the agent is in the first pages of a message or nowhere
_PLAIN = re.compile(r"[^\\^$.|?*+()\[\]{}]*\Z")

Trigger = Callable[[str], bool]


def message_from(
    id: str,
    chat_jid: str,
    content: str,
    timestamp: str | datetime,
    sender: str = "",
    sender_name: str = "",
    is_from_me: bool = False,
    is_bot_message: bool = False,
) -> Message:
    """Return a valid message, or raise InvalidValue that names what is wrong with it."""
    if not isinstance(content, str):  # channels send null for a picture without words
        raise InvalidValue(
            f"message {str(id)[:80]!r} has no text", "give its text, or a note such as [image]"
        )
    text = encodable(content)
    size = len(text.encode())
    if size > MAX_BYTES:
        raise InvalidValue(
            f"message {str(id)[:80]!r} has {size:,} bytes, over the limit of {MAX_BYTES:,}",
            "send long texts as files; the message was not stored",
        )
    return Message(
        id=checked_name("message id", id),
        chat_jid=checked_name("chat id", chat_jid),
        sender=encodable(sender)[:MAX_NAME],
        sender_name=encodable(sender_name)[:MAX_NAME],
        content=text,
        timestamp=checked_time(timestamp),
        is_from_me=is_from_me,
        is_bot_message=is_bot_message,
    )


def checked_name(what: str, name: str) -> str:
    """Check an id from outside: not empty, not endless, without control characters."""
    if not isinstance(name, str):  # a channel's number or null
        name = ""
    if not 0 < len(name) <= MAX_NAME or any(ord(sign) < 32 for sign in name) or name != encodable(name):
        raise InvalidValue(
            f"the {what} {name[:80]!r} is refused",
            f"give 1 to {MAX_NAME} visible characters",
        )
    return name


def checked_time(timestamp: str | datetime) -> str:
    """Return a moment in the stored format; a time without a zone is UTC."""
    try:
        moment = timestamp if isinstance(timestamp, datetime) else read_moment(timestamp)
        if moment.year < 1970:
            raise ValueError(moment)
        return stamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError, TypeError):
        raise InvalidValue(
            f"{str(timestamp)[:80]!r} is no time", "give ISO 8601, such as 2026-02-23T14:05:00Z"
        ) from None


# ---- triggers: people write the patterns, so matching must take linear time ----


@functools.lru_cache(maxsize=1_000)
def trigger_of(pattern: str) -> Trigger:
    """Return the predicate of a pattern; raise InvalidValue if it is invalid.

    A plain word such as `@Andy` must open the message, in any case and as a whole word; anything with signs of a
    regular expression is one, and may match anywhere.
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
    # RE2 needs encodable text.
    return expression.search(encodable(text[:SEEN_CHARS].strip())) is not None


class _Expression:
    """The methods of a compiled RE2 pattern that we use."""

    def search(self, text: str) -> object | None: ...


def _compiled(pattern: str) -> _Expression:
    # RE2 instead of `re`: Python's matcher backtracks, cannot be interrupted, and one `^(a+)+$` would stop the host
    # for every group. RE2 runs in linear time and refuses what would grow when compiled.
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
