"""Cooling: what nobody asks about loses a little activation each day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nanoclaw_memory.text import plural
from nanoclaw_memory.types import Done

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group


def cool(group: Group, dry_run: bool = False) -> Done:
    """Cool every fact once for each day since the last time; a second run on a day changes nothing."""
    if not group.has("facts"):
        return Done()
    if dry_run:
        last = group.graph.activation.cooled_on()
        due = not last or last < group.today.isoformat()
        return Done(int(due), (f"last cooled on {last or 'no day yet'}",))
    changed, days = group.graph.cool()
    return Done(changed, (f"made up for {plural(days, 'day')}",) if days > 1 else ())
