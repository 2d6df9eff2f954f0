"""Recognise what only reacts: thanks, "make it shorter", and a reply that comments on a statement."""

from __future__ import annotations

import re

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.conversations.topics import empty_words
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.retrieval.sources import SHORT_REPLY, only_acknowledges
from nanoclaw_memory.retrieval.stated_parts import only_asks, stated_in
from nanoclaw_memory.retrieval.statement_pairs import FUNCTION_WORDS, subject_words
from nanoclaw_memory.text import content_words, words

# A number, or a day of the week.
_VALUE = regex(r"\d|\b[^\W\d_]+(?:days?|tags?)\b(?<!today)(?<!everyday)", re.IGNORECASE)
_NAMED = regex(r"(?<=[^.!?:] )[A-Z]")  # a capital within a sentence


def is_substantial(text: str) -> bool:
    """Return whether a message is more than thanks, a sign, "ok, go on", or the introduction of a paste."""
    return len(content_words(text)) > 1 and not text.rstrip().endswith(":") and not only_reacts(text)


@bounded(512 * 1024)
def only_reacts(text: str) -> bool:
    """Return whether a message only reacts to an answer: "thanks, that helped", "make it shorter", "the second one".

    Such a message names no subject. One word of it may ("show me the diff"), unless the message states something.
    """
    named = {word: rare for word, rare in subject_words(text).items() if word not in empty_words()}
    if any(named.values()) or _VALUE.search(text) or text.rstrip().endswith("?"):
        return False
    return len(named) <= (0 if stated_in(text) else 1) and not only_asks(text)


def only_comments(user: str, agent: str) -> bool:
    """Return whether a reply acknowledges, or says nothing but a few usual words to a statement: "A good fix."."""
    if only_acknowledges(user, agent):
        return True
    if len(agent.split()) > SHORT_REPLY or "?" in user or not stated_in(user) or _NAMED.search(agent):
        return False
    telling = subject_words(agent)
    plain = all(
        word in FUNCTION_WORDS or word in telling for word in words(agent)
    )  # neither a number nor a day
    return plain and not any(telling.values())
