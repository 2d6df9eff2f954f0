"""Read a new value of a known fact out of a report that names its entity: "the billing database is on 7422 now"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from nanoclaw_memory.graph import wording
from nanoclaw_memory.graph.clauses import sentences, stated
from nanoclaw_memory.graph.triples import Triple
from nanoclaw_memory.graph.values import ENDS, typed
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.store.names import fold
from nanoclaw_memory.text import CHANGE_WORDS, GERMAN_STOP_WORDS, STOP_WORDS, stem, words
from nanoclaw_memory.types import Fact

MOST_WORDS = 24  # of a sentence that reports a new value
_TYPES = ("number", "ip", "money")
_NUMBER = regex(r"(?<![\w.,:/+#-])(?=[€$£\d])")
_SINCE = regex(r"\b(?:since|seit|another|neue[rsnm]?|andere[rsnm]?|new)\b", re.IGNORECASE)
_UNCERTAIN = regex(
    r"\b(?:if|might|may|could|would|should|maybe|perhaps|almost|nearly|wenn|falls|ob|vielleicht|könnte\w*|würde\w*"
    r"|sollte\w*|fast|beinahe|was|were|war|waren)\b|\?",
    re.IGNORECASE,
)
_PLACE = frozenset("on in at for of from only auf im in für bei von der des beim nur".split())
_BEFORE = regex(r"(?:^|\s)(?:on|to|at|now|auf|bei|jetzt|[=:,])\s*$", re.IGNORECASE)


def new_values(text: str, known: Sequence[Fact], triples: Iterable[Triple]) -> Iterator[Triple]:
    """Yield the known facts to which a text gives another value of the same type; those read otherwise are left out.

    A sentence must report a change, name the entity, and contain one such value: with the key beside it, or after "on"
    or "to" if the entity has no other value of the type.
    """
    read = {(fold(triple.subject), fold(triple.predicate)) for triple in triples}
    for number, line in enumerate(text.split("\n"), 1):
        for sentence in sentences(line):
            if not _reports(sentence):
                continue
            for fact in known:
                unread = (fold(fact.entity), fold(fact.key)) not in read
                if unread and (value := _new_value(sentence.rstrip(".!"), fact, known)):
                    yield Triple("fact", fact.entity, fact.key, value, line=number, rule="known value")


def _reports(sentence: str) -> bool:
    own = words(sentence)
    told = wording.NOW.search(sentence) or _SINCE.search(sentence) or not CHANGE_WORDS.isdisjoint(own)
    other = wording.DENIAL.search(sentence) or wording.BESIDE.search(sentence) or _UNCERTAIN.search(sentence)
    return bool(told) and not other and len(own) <= MOST_WORDS and stated(sentence)


def _new_value(sentence: str, fact: Fact, known: Sequence[Fact]) -> str:
    old = typed(fact.value)
    if old is None or old.type not in _TYPES or old.rest or not _names_only(sentence, fact.entity):
        return ""
    places = [match.start() for match in _NUMBER.finditer(sentence)]
    values = [
        (place, value) for place in places if (value := typed(sentence[place:])) and value.type == old.type
    ]
    others = [(place, value) for place, value in values if value.text != old.text]
    if len(others) != 1:
        return ""
    place, value = others[0]
    following = value.rest.split(" ")[0].casefold().strip(",;.!")
    other_place = following in _PLACE or (following[:1].isalnum() and following not in ENDS)
    if value.is_cut_off or other_place:
        return ""
    alike = [one for one in known if fold(one.entity) == fold(fact.entity) and _type(one.value) == old.type]
    named = {stem(word) for word in words(fact.key.replace("_", " "))} <= {
        stem(word) for word in words(sentence)
    }
    alone = len({fold(one.key) for one in alike}) == 1 and len(value.text) == len(old.text)
    return value.text if named or (alone and bool(_BEFORE.search(sentence[:place]))) else ""


def _type(value: str) -> str:
    found = typed(value)
    return found.type if found and not found.rest else ""


def _names_only(sentence: str, entity: str) -> bool:
    """Return whether a sentence names an entity, and not a part or another copy of it: "the database on staging"."""
    plain = fold(re.sub(r"[^\w.'’-]+", " ", sentence))
    folded = f" {plain} "
    before, found, after = folded.partition(f" {fold(entity)} ")
    first, last = after.split(" ")[:2], before.split(" ")[-1]
    elsewhere = first[0] in _PLACE and not "".join(first[1:])[:1].isdigit()
    usual = not last or last in STOP_WORDS | GERMAN_STOP_WORDS | CHANGE_WORDS or last in ("put", "setzt")
    return bool(found) and not elsewhere and usual
