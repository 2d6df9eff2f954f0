"""What a line states: a fact, a relation or an alias, with the mark by which it is known again."""

from __future__ import annotations

import msgspec

from nanoclaw_memory.store.names import fold, slot_of
from nanoclaw_memory.text import fingerprint, one_line

READER = 3  # version of the reader: marks before it had none


class Triple(msgspec.Struct, frozen=True):
    """What a line states: a fact (entity, key, value), a relation, or an alias (alias, empty, entity)."""

    kind: str
    subject: str
    predicate: str
    object: str
    category: str = "fact"
    importance: float = 0.5
    permanent: bool = False
    several: bool = False  # a fact beside other values of its key
    single: bool = False  # a relation instead of other objects of its predicate
    line: int = 0
    origin: str = "owner"
    project: str = ""
    rule: str = ""  # which way of reading made it

    @property
    def mark(self) -> str:
        """A key that is equal for triples that state the same in one origin's words, in whatever line."""
        parts = [self.kind, fold(self.subject), slot_of(self.predicate), one_line(self.object).casefold()]
        parts += [self.origin] if self.origin != "owner" else []
        parts += [f"@{self.project}"] if self.project else []
        return f"{READER}:{fingerprint(chr(10).join(parts))[:24]}"
