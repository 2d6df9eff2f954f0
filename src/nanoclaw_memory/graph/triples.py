"""A fact, relation or alias that a line states, with a mark by which it is recognised later."""

from __future__ import annotations

import msgspec

from nanoclaw_memory.store.names import fold, slot_of
from nanoclaw_memory.text import fingerprint, one_line

READER = 3  # version of the reader: marks before it had none


class Triple(msgspec.Struct, frozen=True):
    """A fact (entity, key, value), a relation, or an alias (alias, empty, entity)."""

    kind: str
    subject: str
    predicate: str
    object: str
    category: str = "fact"
    importance: float = 0.5
    permanent: bool = False
    several: bool = False  # a fact beside other values of its key
    single: bool = False  # a relation that replaces other objects of its predicate
    line: int = 0
    origin: str = "owner"
    project: str = ""
    stated: str = ""  # what its line states, if that reports a change: "the limit is 40" for "put back to 40"
    instead: str = ""  # who had the duty of a relation before: a name, or anybody (`handovers.ANYBODY`)
    rule: str = ""  # the name of the rule that read it

    @property
    def mark(self) -> str:
        """Return a key that is equal for the same statement in one origin's words, on any line."""
        parts = [self.kind, fold(self.subject), slot_of(self.predicate), one_line(self.object).casefold()]
        parts += [self.origin] if self.origin != "owner" else []
        parts += [f"@{self.project}"] if self.project else []
        return f"{READER}:{fingerprint(chr(10).join(parts))[:24]}"
