"""Read who takes over what from whom, and pass on what the graph knows the predecessor to be responsible for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.graph import wording
from nanoclaw_memory.graph.keys import may_name
from nanoclaw_memory.graph.triples import Triple
from nanoclaw_memory.graph.values import is_name, typed, without_article
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.store.names import fold, slot_of

if TYPE_CHECKING:
    from nanoclaw_memory.graph.writer import NewRelation
    from nanoclaw_memory.store.facts import FactRow, RelationRow

MOST_WORDS = 20  # of a sentence that reports a handover
ANYBODY = "*"  # whoever had it before
_NAME = r"(?:(?:Frau|Herrn?|Dr\.|Mr\.|Ms\.|Mrs\.) )?[A-ZÀ-Þ][\w'’-]*(?: [A-ZÀ-Þ][\w'’-]*){0,2}"
_DO = r"(?:(?:has|have|is|was|hat|will) )?"
_FORMS = (
    # "Ann hands the shop over to Bo"
    rf"(?P<old>{_NAME}) {_DO}(?:hand(?:s|ed|ing)|pass(?:es|ed|ing)|turn(?:s|ed|ing)|transfer(?:s|red|ring)"
    rf"|gives|gave|given) (?P<over>over |on )?(?P<what>.+?) (?P<later>over |on )?to (?P<new>{_NAME})",
    # "Bo takes over the shop from Ann", "Bo took the shop over"
    rf"(?P<new>{_NAME}) {_DO}(?:takes|took|taken|taking) over (?P<what>.+?)(?: from (?P<old>{_NAME}))?",
    rf"(?P<new>{_NAME}) {_DO}(?:takes|took|taken|taking) (?P<what>.+?) over(?: from (?P<old>{_NAME}))?",
    # "the shop goes from Ann to Bo"
    rf"(?P<what>.+?) (?P<goes>goes|went|passes|passed|moves|moved|geht|ging|wechselt) (?:over )?(?:from|von)"
    rf" (?P<old>{_NAME}) (?:to|an|auf|zu) (?P<new>{_NAME})(?: über)?",
    # "Ann übergibt Bo den Laden", "Ann hat den Laden an Bo übergeben", "Ann gibt den Laden an Bo ab"
    rf"(?P<old>{_NAME}) (?:übergibt|übergab|überträgt|übertrug) (?P<what>.+?) an (?P<new>{_NAME})",
    rf"(?P<old>{_NAME}) (?:gibt|gab) (?P<what>.+?) an (?P<new>{_NAME}) (?:ab|weiter)",
    rf"(?P<old>{_NAME}) hat (?P<what>.+?) an (?P<new>{_NAME}) (?:übergeben|abgegeben|weitergegeben|übertragen)",
    # "Bo übernimmt den Laden von Ann", "Bo hat den Laden von Ann übernommen"
    rf"(?P<new>{_NAME}) (?:übernimmt|übernahm) (?P<what>.+?)(?: von (?P<old>{_NAME}))?",
    rf"(?P<new>{_NAME}) hat (?P<what>.+?)(?: von (?P<old>{_NAME}))? übernommen",
)
_WHEN = (
    r"(?: (?:today|yesterday|now|this (?:morning|week|month)|as of today|since \S+|heute|gestern|jetzt|nun|ab sofort"
    r"|diese Woche))?"
)
_HANDOVERS = tuple(regex(f"{form}{_WHEN}") for form in _FORMS)
_INNER_WHEN = regex(
    r"^(?:jetzt|nun|heute|gestern|ab sofort|ab heute|now|also|auch) | (?:jetzt|nun|heute|gestern|now|today)$"
)
# "Bo is the new product owner of the shop", "die neue Ansprechpartnerin für den Laden ist Bo"
_NEW = (
    r"(?i:(?:(?:the|our|der|die|das|unsere?r?|seine?|ihre?) )?(?:new|neue[rs]?)) (?P<role>[\w-]+(?: [\w-]+)?)"
)
_OF = "(?:of|for|at|von|vom|für|bei|der|des)"
_SUCCESSIONS = tuple(
    regex(form)
    for form in (
        rf"(?P<new>{_NAME}) (?:is|ist|becomes|became|wird)(?: now| jetzt)? {_NEW} {_OF} (?P<what>.+)",
        rf"{_NEW} {_OF} (?P<what>.+?) (?:is|ist|becomes|wird)(?: now| jetzt)? (?P<new>{_NAME})",
    )
)
_DUTIES = frozenset(
    "owns manages leads maintains runs besitzt leitet führt betreut verwaltet wartet".split()
) | {
    "handles",
    "takes care of",
    "deals with",
    "responsible for",
    "zuständig für",
    "kümmert sich um",
    "looks after",
    "heads",
}
_HELD = frozenset(
    "owned maintained managed led run headed handled geleitet geführt betreut verwaltet gewartet verantwortet".split()
)
_BACKWARDS = frozenset({"belongs to", "gehört", "gehört zu"})


class Predecessors(msgspec.Struct, frozen=True):
    """What others are responsible for at a thing: the relations of both directions, and the thing's own facts."""

    relations: tuple[RelationRow, ...] = ()
    facts: tuple[FactRow, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rows)

    @property
    def rows(self) -> tuple[FactRow | RelationRow, ...]:
        return (*self.relations, *self.facts)

    def until(self, start: str) -> Predecessors:
        """Return those that held already at a moment."""
        return Predecessors(
            tuple(row for row in self.relations if row.item.valid_from <= start),
            tuple(row for row in self.facts if row.item.valid_from <= start),
        )

    def of_one(self, predicate: str) -> Predecessors:
        """Return those of a role, if it is named; none if several people had what one takes over."""
        role = slot_of(predicate)
        named = is_duty(predicate) and role not in _DUTIES
        kept = Predecessors(
            tuple(row for row in self.relations if not named or row.slot == role),
            tuple(row for row in self.facts if not named or row.slot == role.rpartition(" ")[0]),
        )
        people = {row.names[is_held_by(row.item.predicate)] for row in kept.relations} | {
            fold(row.item.value) for row in kept.facts
        }
        return kept if len(people) == 1 else Predecessors()

    def passed_on(self, relation: NewRelation) -> NewRelation:
        """Return the successor's relation in the words of the first predecessor: owns, product owner of."""
        for row in self.relations:
            if is_held_by(row.item.predicate):
                return replace(
                    relation, subject=row.item.subject, predicate=row.item.predicate, object=relation.subject
                )
            return replace(relation, predicate=row.item.predicate)
        return replace(relation, predicate=f"{self.facts[0].item.key} of") if self.facts else relation


def handover(sentence: str, verb: str) -> Triple | None:
    """Return who is responsible for what from now on, and instead of whom; None if a sentence is no handover.

    "Ann gives the keys to Bo" and "Bo takes over the lead" count only if the graph knows who had them: their predicate
    is empty.
    """
    if len(sentence.split()) > MOST_WORDS:
        return None
    for form in _HANDOVERS:
        match = form.fullmatch(sentence)
        if match is None:
            continue
        found = match.groupdict()
        what = without_article(_INNER_WHEN.sub("", found["what"]))
        if not _is_thing(what) or not is_name(found["new"]) or found["new"].casefold() in wording.NO_ENTITY:
            return None
        over = "over" not in found or found["over"] or found["later"]
        explicit = found.get("old") and over and "goes" not in found
        predicate = ("responsible for" if verb == "is" else "zuständig für") if explicit else ""
        old = found.get("old") or ANYBODY
        return Triple("relation", found["new"], predicate, what, rule="handover", instead=old)
    for form in _SUCCESSIONS:
        match = form.fullmatch(sentence)
        what = without_article(match["what"]) if match else ""
        if match and _is_thing(what) and wording.is_role(match["role"]) and not wording.is_kin(match["role"]):
            joint = "of" if verb == "is" else "von"
            return Triple(
                "relation", match["new"], f"{match['role']} {joint}", what, rule="handover", instead=ANYBODY
            )
    return None


def is_duty(predicate: str) -> bool:
    """Return whether a relation's subject is responsible for its object: owns, leads, product owner of."""
    head = predicate.casefold().removeprefix("new ").removesuffix(" of").removesuffix(" von")
    role = head != predicate.casefold() and wording.is_role(head)
    return head in _DUTIES or (role and not wording.is_kin(head))


def ends_too(handed_over: str, duty: str) -> bool:
    """Return whether who handed one duty over has another no more: the same one, or any if it was no role."""
    return slot_of(handed_over) == slot_of(duty) or handed_over.casefold() in _DUTIES


def is_held_by(predicate: str) -> bool:
    """Return whether a relation's object is responsible for its subject: belongs to, maintained by."""
    low = predicate.casefold()
    verb, _, joint = low.partition(" ")
    return low in _BACKWARDS or (verb in _HELD and joint in ("by", "von", "vom"))


def predecessors(
    old: Sequence[str],
    new: Sequence[str],
    things: Sequence[str],
    relations: Sequence[RelationRow],
    facts: Sequence[FactRow],
) -> Predecessors:
    """Return which of a thing's statements say that these names are responsible for it; without names, that
    anybody is.
    """

    def is_old(name: str) -> bool:
        return name not in new and (not old or name in old)

    held = [
        row
        for row in relations
        if (is_duty(row.item.predicate) and row.names[1] in things and is_old(row.names[0]))
        or (is_held_by(row.item.predicate) and row.names[0] in things and is_old(row.names[1]))
    ]
    own = [row for row in facts if _is_duty_key(row) and is_old(fold(row.item.value))]
    return Predecessors(tuple(held), tuple(own))


def _is_duty_key(row: FactRow) -> bool:
    return wording.is_role(row.item.key) and not wording.is_kin(row.item.key) and is_name(row.item.value)


def _is_thing(what: str) -> bool:
    plain = re.sub(r"\b(?:of|for|von|für|der|des|the) ", "", what)
    return len(what.split()) <= 6 and may_name(plain) and not typed(what)
