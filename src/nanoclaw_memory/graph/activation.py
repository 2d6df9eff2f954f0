"""Activation: retrieval warms facts and links them; cooling lowers unused facts by the day, missed days included."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta

from nanoclaw_memory.clock import Clock, stamp, stored_day
from nanoclaw_memory.errors import StoreError
from nanoclaw_memory.store.facts import FactTable
from nanoclaw_memory.store.relations import RelationTable
from nanoclaw_memory.store.table import keep_note, note_of
from nanoclaw_memory.types import GraphHit

# tolerance for a clock that was ahead: beyond it, cooling does not wait for that day
AHEAD = timedelta(days=7)
_COOLED_ON = "cooled_on"
WAIT_MS = 200  # the caller has its answer and should not wait longer


class Activation:
    """Warm and cool the facts and relations of one graph."""

    def __init__(self, facts: FactTable, relations: RelationTable, clock: Clock) -> None:
        self.facts = facts
        self.relations = relations
        self.clock = clock
        self.db = facts.db

    def reinforce(self, hits: Sequence[GraphHit], bump: float, linked_bump: float) -> str:
        """Warm the retrieved facts and link the answers; return why it failed, or an empty text.

        Linked facts and the rest of an entity are warmed less and not linked further.
        """
        moment = stamp(self.clock.now())
        facts: dict[int, float] = {}
        relations: dict[int, float] = {}
        for hit in hits:
            amount = linked_bump if hit.linked or hit.context else bump
            (facts if hit.kind == "fact" else relations)[hit.item.id] = amount
        answers = [hit.item.id for hit in hits if hit.kind == "fact" and not (hit.linked or hit.context)]
        if not facts and not relations:
            return ""
        try:
            with self.db.transaction(WAIT_MS):
                self.facts.bump(facts, moment)
                self.relations.bump(relations, moment)
                self.facts.wire(answers, moment)
        except StoreError as error:
            # A busy or read-only database must not cost the caller the answer.
            return f"activation not raised: {error.message}"
        return ""

    def cool(self, factor: float) -> tuple[int, int]:
        """Cool by calendar day, missed days included; return the facts changed and the days applied."""
        now = self.clock.now()
        with self.db.transaction():
            last = self.cooled_on()
            if (
                last > (now + AHEAD).date().isoformat()
            ):  # the clock was far ahead then: cooling continues from today
                last = now.date().isoformat()
                self._note(last)
            if last >= now.date().isoformat():  # each day cools only once
                return 0, 0
            changed = self._catch_up(factor, now, last)
            self._note(now.date().isoformat())
        days = (now.date() - date.fromisoformat(last)).days if last else 1
        return changed, days

    def _catch_up(self, factor: float, now: datetime, last: str) -> int:
        """Cool each fact once for every day since the last cooling, or since it was stored."""
        today = now.date()
        since = date.fromisoformat(last) if last else self._first_day(today) - timedelta(days=1)
        if since >= today:
            return 0
        start = _midnight(since + timedelta(days=1), now)
        changed = self._cool(factor ** (today - since).days, "", stamp(start))
        for number in range(1, (today - since).days + 1):
            day = since + timedelta(days=number)
            after, before = _midnight(day, now), _midnight(day + timedelta(days=1), now)
            changed += self._cool(factor ** ((today - day).days + 1), stamp(after), stamp(before))
        return changed

    def _cool(self, factor: float, after: str, before: str) -> int:
        changed = self.facts.cool(factor, after, before)
        self.relations.cool(factor, after, before)
        return changed

    def cooled_on(self) -> str:
        """Return the day of the last cooling; empty if there was none."""
        return stored_day(note_of(self.db, "graph_state", _COOLED_ON) or "")

    def _note(self, day: str) -> None:
        keep_note(self.db, "graph_state", _COOLED_ON, day)

    def _first_day(self, today: date) -> date:
        """Return the first day for which cooling can be missing."""
        ((first,),) = self.db.query("SELECT min(created_at) FROM facts WHERE created_at >= '1970'")
        return min(date.fromisoformat(stored_day(first)), today) if first else today


def _midnight(day: date, now: datetime) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=now.tzinfo)
