"""Validate what a channel delivers: message sizes, names, clean text, one form of time."""

from __future__ import annotations

from datetime import UTC, datetime

from nanoclaw_memory.clock import moment_of, stamp
from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.text import encodable
from nanoclaw_memory.types import Message

MAX_BYTES = 2 * 1024 * 1024
MAX_NAME = 512


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
    """A valid message, or InvalidValue that names what is wrong with it."""
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
    """An id from outside: not empty, not endless, without control characters."""
    if not isinstance(name, str):  # a channel's number or null
        name = ""
    if not 0 < len(name) <= MAX_NAME or any(ord(sign) < 32 for sign in name) or name != encodable(name):
        raise InvalidValue(
            f"the {what} {name[:80]!r} is refused",
            f"give 1 to {MAX_NAME} visible characters",
        )
    return name


def checked_time(timestamp: str | datetime) -> str:
    """A moment as stored; a time without a zone is UTC."""
    try:
        moment = timestamp if isinstance(timestamp, datetime) else moment_of(timestamp)
        if moment.year < 1970:
            raise ValueError(moment)
        return stamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError, TypeError):
        raise InvalidValue(
            f"{str(timestamp)[:80]!r} is no time", "give ISO 8601, such as 2026-02-23T14:05:00Z"
        ) from None
