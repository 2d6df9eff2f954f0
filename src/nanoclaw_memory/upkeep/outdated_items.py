"""Find the item of a page that a new line outdates, and what takes its place: only one part of an item with several."""

from __future__ import annotations

import re

import msgspec

from nanoclaw_memory.graph.extract import FileRules, extract
from nanoclaw_memory.retrieval.statement_pairs import telling_words
from nanoclaw_memory.statements import contradiction, extends, features, succeeds, without_date
from nanoclaw_memory.store.names import fold, slot_of
from nanoclaw_memory.upkeep import pages

MAX_LABEL = 6  # words before a colon


class OutdatedItem(msgspec.Struct, frozen=True):
    """An item of a page, the text that takes its place, and why."""

    text: str = ""
    instead: str = ""
    why: str = ""


def outdated_item(page: str, new: str) -> OutdatedItem:
    """Return the first item of a page that a new line outdates; an empty one if there is none."""
    own = features(new)
    for line in map(pages.item_text, pages.items(page)):
        if extends(features(line), own):
            return OutdatedItem(line, new, "the new line says the same and more")
        parts = re.split(r";\s+", without_date(line))
        for place, part in enumerate(parts):
            if why := _outdates(new, part if len(parts) > 1 else line):
                instead = "; ".join([*parts[:place], new, *parts[place + 1 :]])
                return OutdatedItem(line, instead, why)
    return OutdatedItem()


def _outdates(new: str, known: str) -> str:
    """Return why a new line outdates a known statement; empty if it does not."""
    slots, others = _slots(new), _slots(known)
    for slot in slots.keys() & others.keys():
        if slots[slot] != others[slot]:
            return f"there it is {others[slot]}, here {slots[slot]}"
    if reason := contradiction(features(known), features(new)):
        return reason
    return (
        "the same with another value" if succeeds(without_date(known), new) or _relabels(new, known) else ""
    )


def _slots(text: str) -> dict[tuple[str, str], str]:
    """Return the facts that a line states, by entity and key."""
    return {
        (fold(triple.subject), slot_of(triple.predicate)): triple.object
        for triple in extract(f"- {without_date(text)}", FileRules())
        if triple.kind == "fact" and not triple.several
    }


def _relabels(new: str, known: str) -> bool:
    """Return whether both have one label and another amount or time of one kind behind it ("Rent: 910 euros", "rent 840
    euros"); a day in the label counts as no other label ("Opening hours from December: …").
    """
    label, colon, value = without_date(new).partition(":")
    named = telling_words(label)
    if not (colon and named and len(label.split()) <= MAX_LABEL):
        return False
    there, colon, old = without_date(known).partition(":")
    if not colon:
        there, old = "", without_date(known)
    told = telling_words(f"{there} {old}")
    if (telling_words(there) if colon else told[: len(named)]) != named:
        return False
    before, after = set(telling_words(old)).difference(named), set(telling_words(value)).difference(named)
    alike = 2 * len(before & after) >= min(len(before), len(after))
    one, other = features(old).numbers, features(value).numbers
    return alike and bool(one and other) and one != other
