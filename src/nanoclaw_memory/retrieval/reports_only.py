"""Recognise later statements that outdate nothing: of other owners, credentials, reactions, passing faults, no rule."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.retrieval.prepare import body_of
from nanoclaw_memory.retrieval.statement_pairs import (
    calls_wrong,
    gives_another_value,
    gives_up,
    statement_of,
    telling_words,
)
from nanoclaw_memory.retrieval.value_changes import changes_in, reports_change
from nanoclaw_memory.store.passage_search import StoredPassage
from nanoclaw_memory.text import STOP_WORDS, sentences, stems_in_any_language, words

FEW = 7  # telling words of a message that only reports; a longer one says more
_MASKED = "[redacted:"
_CLAUSE = regex(r"[,;]\s+|\s+(?=(?:and|but|und|aber)\s)", re.IGNORECASE)
# "ok that's better", "danke, sieht gut aus": what follows is about the answer before it.
_REACTION = regex(
    r"(?:ok|okay|thanks?(?: you)?|thx|danke|nice|great|super|perfect|cool|hm+|well|yes|yeah|ja|gut|so)?[,.! ]*"
    r"(?:(?:that(?:['’]s| is| looks)|this (?:is|looks)|it(?:['’]s| is| looks)|das (?:ist|sieht)|sieht)\s+)?"
    r"(?:(?:much|now|already|a lot|a bit|viel|schon|jetzt|schöner|etwas)\s+)*"
    r"(?:better|nicer|good|great|fine|perfect|closer|besser|schöner|gut|super|prima)\b",
    re.IGNORECASE,
)
_STATUS = (
    r"(?:wrong|broken|failing|flaky|red|slow|down|odd|strange|weird|empty|stuck|hanging|crashing|leaking|missing|dirty"
    r"|falsch|kaputt|defekt|rot|langsam|komisch|seltsam|leer|weg|undicht|fehlgeschlagen|abgestürzt)"
)
_AT_FAULT = regex(
    rf"\b(?:is|are|was|were|looks?|seems?|got|still|ist|sind|war|waren|sieht|sehen)\b[^,.;!?]{{0,40}}?\b{_STATUS}\b"
    r"|\b(?:fail(?:s|ed)|crash(?:es|ed)|broke|hangs|leaks|klemmt|tropft|spinnt|streikt)\b",
    re.IGNORECASE,
)
_WORKS = regex(
    rf"\b(?:works?|working|fixed|healthy|green|stable|okay|fine|funktioniert|heil|stabil)\b"
    rf"|\b(?:läuft|geht)(?= (?:wieder|jetzt|gut|nicht)\b|[.!]?$)|\b{_STATUS}\b",
    re.IGNORECASE,
)
# "The wall is red" says what it is like, if it was white; what is broken is so at the moment.
_STATE = regex(
    r"\b(?:is|are|was|were|ist|sind|war|waren)(?: (?:now|jetzt))? (?P<state>[^\W\d_]+)\s*[.!]?$",
    re.IGNORECASE,
)
_LASTING = frozenset("red slow empty dirty rot langsam leer".split())

_ME = "user"  # the person, whose facts are of this entity
_NAME = r"[^\W\d_a-zß-öø-ÿ][\w-]*"
# The thing that is owned: its first two words, for a compound ("phone number").
_THING = r"(?P<thing>\w[\w-]*(?:\s+\w[\w-]*)?)"
_MINE = regex(r"\b(?:my|our|mein(?:e[rnms]?)?|unse?re?[rnms]?)\s+" + _THING + r"(?!['’]s?\b)", re.IGNORECASE)
_NAMED = regex(rf"\b(?P<owner>{_NAME})['’]s?\s+{_THING}")
# "Maikes Handynummer ist …", but not "das Glas Honig kostet …" or "Preis Honig: …"
_GENITIVE = regex(
    rf"(?:^|[.!?;,]\s+)(?P<owner>{_NAME}s)\s+(?:neue[rs]?\s+)?(?P<thing>{_NAME})\s+"
    r"(?:ist|sind|war|waren|hat|heißt|lautet|liegt|steht|geht|beginnt|wird|bleibt|kommt)\b"
)
_OF = regex(rf"\b(?P<thing>\w[\w-]*)\s+(?:of|von)\s+(?P<owner>{_NAME})")
_FACT = regex(r"(?P<owner>[^\s:.]+)(?:\s+[^\s:.]+)*?[\s.](?P<thing>[^\s:]+)\s*[:=]\s")


def outdates_nothing(newer: StoredPassage, older: StoredPassage) -> bool:
    """Return whether a later statement leaves an older one valid whatever both are about."""
    if older.passage.kind == "lesson" and not _states_another_rule(newer, older):
        return True
    text, before = statement_of(newer), body_of(older.passage)
    if _are_of_different_owners(before, text, older.passage.kind == "fact"):
        return True
    if _MASKED in text and _MASKED not in before and not _without_masked(text):
        return True
    if not _only_reports(text) or _WORKS.search(before) or _is_another_state(text, before):
        return False
    return not (gives_another_value(older, newer) or gives_up(before, text))


@bounded(1024 * 1024)
def _only_reports(text: str) -> bool:
    """Return whether a text only reacts to an answer, or says what is wrong with something at the moment."""
    if reports_change(text) or changes_in(text).ended or calls_wrong(text):
        return False
    if len(sentences(text)) > 1 or len(telling_words(text)) > FEW:
        return False
    return bool(_AT_FAULT.search(text) or _REACTION.match(text))


def _is_another_state(newer: str, older: str) -> bool:
    """Return whether two statements say of the same thing what it is like, and the newer one's may last."""
    state, before = _STATE.search(newer), _STATE.search(older)
    if state is None or before is None or state["state"].casefold() not in _LASTING:
        return False
    one, other = (telling_words(match.string[: match.start()]) for match in (state, before))
    return set(one) == set(other)


@bounded(1024 * 1024)
def _without_masked(text: str) -> str:
    """Return the clauses of a text that contain no masked credential."""
    clauses = (clause for sentence in sentences(text) for clause in _CLAUSE.split(sentence))
    return " ".join(clause for clause in clauses if _MASKED not in clause and len(telling_words(clause)) > 1)


def _states_another_rule(newer: StoredPassage, older: StoredPassage) -> bool:
    """Return whether a statement says something else on most of a rule's subject: a shared word is not enough."""
    if _only_reports(body_of(newer.passage)):
        return False
    one, other = (stems_in_any_language(telling_words(body_of(each.passage))) for each in (older, newer))
    return len(one & other) * 2 >= min(len(one), len(other)) > 0


def _are_of_different_owners(older: str, newer: str, fact: bool = False) -> bool:
    """Return whether two statements are about the same thing of different owners, as far as both name them.

    An owner whom the other statement names somewhere else may be the same one. `fact` says that the older is a fact.
    """
    before, after = _owned(older, fact), _owned(newer, False)
    one, other = ({word.rstrip("s") for word in words(text)} for text in (older, newer))
    return any(
        before[thing].isdisjoint(after[thing])
        and before[thing].isdisjoint(other)
        and after[thing].isdisjoint(one)
        for thing in before.keys() & after.keys()
    )


@bounded(1024 * 1024)
def _owned(text: str, fact: bool) -> Mapping[str, frozenset[str]]:
    """Return for each thing, by its stem, the owners that a text names."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for match in _MINE.finditer(text):
        _add(found, match["thing"], _ME)
    for pattern in (_NAMED, _GENITIVE, _OF):
        for match in pattern.finditer(text):
            if match["owner"].casefold() not in STOP_WORDS:
                _add(found, match["thing"], match["owner"])
    if fact and (stated := _FACT.match(text)):
        _add(found, stated["thing"], stated["owner"])
    return {thing: frozenset(owners) for thing, owners in found.items()}


def _add(found: Mapping[str, set[str]], thing: str, owner: str) -> None:
    plain = [word for word in words(thing.replace("_", " ")) if word not in STOP_WORDS]
    for stem in stems_in_any_language(plain):
        found[stem].add(owner.casefold().rstrip("s"))  # "Maikes", "James"
