"""Cooling: what nobody asks about loses a little activation each day."""

from __future__ import annotations

from nanoclaw_memory.text import plural
from nanoclaw_memory.upkeep.context import Done, House


def cool(house: House, dry_run: bool = False) -> Done:
    """Cool every fact once for each day since the last time; a second run on a day changes nothing."""
    if not house.has("facts"):
        return Done()
    if dry_run:
        last = house.graph.activation.cooled_on()
        due = not last or last < house.today.isoformat()
        return Done(int(due), (f"last cooled on {last or 'no day yet'}",))
    changed, days = house.graph.cool()
    return Done(changed, (f"made up for {plural(days, 'day')}",) if days > 1 else ())
