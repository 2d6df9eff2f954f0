"""What kinds of values a statement has (a number of days, a port, a day, a machine), and whether a later one may have
another value of such a kind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.graph.handovers import is_duty
from nanoclaw_memory.graph.intents import concepts, phrases_like, stemmed
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.retrieval.date_words import lexeme
from nanoclaw_memory.retrieval.value_changes import says_change, still_names
from nanoclaw_memory.statements import NUMBER_WORDS, UNITS, features
from nanoclaw_memory.text import GERMAN_STOP_WORDS, STOP_WORDS, stem, stems_in_any_language, words

# A machine's name begins where it is first written: a ruler or a list of versions is read once.
_PART = regex(
    r"(?<!\w)(?P<host>(?<!-)(?<!\w\.)(?:[\w-]+\.)+[a-z]{2,}(?:[/:]\S*)?|\d{1,3}(?:\.\d{1,3}){3}|[a-z]+(?:-[a-z\d]+)*-\d+(?:-[a-z\d]+)*\b)"
    r"|(?P<clock>\d{1,2}:\d{2})|(?P<money>[€$£]\s?\d[\d.,]*)|(?P<number>(?<![\w.-])\d+(?:[.,:/-]\d+)*)(?P<sign>\s?[%€$£°])?(?P<th>(?:st|nd|rd|th)\b)?"
    r"|(?P<word>[^\W\d_]+(?:['’-][^\W\d_]+)*)"
)
# "has relocated", "haben wir umgebaut": what happened may have changed something.
_PERFECT = regex(
    r"\b(?:has|have|['’]ve) (?:\w+ ){0,2}?\w+(?:ed|en|nt|ought|aught|one)\b"
    r"|\b(?:hat|haben|habe|ist|sind|wurden?)\b[^!?\n]{0,120}?\b(?:\w{0,30}ge\w{2,30}(?:t|en)|(?:ver|be|er|ent|zer)\w{3,30}(?:t|en)|\w{2,30}iert)\b",
    re.IGNORECASE,
)
RETURNS = regex(r"\b(?:again|back|before|wieder|zurück|vorher|zuvor)\b", re.IGNORECASE)
_FUNCTION_WORDS = STOP_WORDS | GERMAN_STOP_WORDS
_CALENDAR = ("weekday", "month", "part", "day")
_CLOCK = frozenset("am pm uhr o'clock".split())
# Kinds beside other units and nouns.
WHEN, HOST, MONEY, DURATION, PHONE = "when", "host", "money", "duration", "phone"
PRODUCT, BARE = "product …", "number"

# Before a unit of time: a certain one, and no duration.
_OF_ONE = frozenset(
    "the this next last der des dem diese diesem nächste nächsten nächster letzte letzten letzter".split()
)
FORM = 5  # letters that forms of one word have in common
_AMOUNTS = {MONEY, DURATION, *UNITS.values()} - {"/"}


@bounded(2 * 1024 * 1024)
def value_kinds(text: str) -> Mapping[str, AbstractSet[str]]:
    """Return the values in a text by their kind: the unit after a number, else the noun before it; days; machines."""
    found: dict[str, set[str]] = {}
    parts = list(_PART.finditer(text))
    for place, match in enumerate(parts):
        if match["host"]:
            found.setdefault(HOST, set()).add(match["host"].casefold())
        elif match["clock"]:
            found.setdefault(WHEN, set()).add(match["clock"])
        elif match["money"]:
            found.setdefault(MONEY, set()).add(match["money"][1:].strip(" ."))
        elif match["number"]:
            kind, unit = _kind_of(place, parts)
            found.setdefault(kind, set()).add(f"{match['number']} {unit}".strip())
            noun = parts[place - 1]["word"] if place else None
            if noun and kind not in (WHEN, MONEY, DURATION) and noun.casefold() not in _FUNCTION_WORDS:
                found.setdefault(f"{stem(noun.casefold())} …", set()).add(match["number"])
                if noun[0].isupper():  # "Node 22" may be replaced by "Deno 2"
                    found.setdefault(PRODUCT, set()).add(f"{noun.casefold()} {match['number']}")
        elif (known := lexeme(match["word"])).kind == "unit":
            before = parts[place - 1] if place else None
            if before and before["word"] and before["word"].casefold() in _OF_ONE:  # "the end of the month"
                found.setdefault(WHEN, set()).add(f"{before['word']} {known.name}".casefold())
            elif before is None or not before["number"]:  # "two weeks", "a day"
                found.setdefault(DURATION, set()).add(
                    f"{before['word'] if before else ''} {known.name}".casefold()
                )
        elif (known := lexeme(match["word"].removesuffix("s"))).kind in _CALENDAR:
            found.setdefault(WHEN, set()).add(known.name)
        elif match["word"].casefold() in NUMBER_WORDS:
            found.setdefault(BARE, set()).add(match["word"].casefold())
    return found


def _kind_of(place: int, parts: Sequence[re.Match[str]]) -> tuple[str, str]:
    """Return the kind of a number, and its unit if units of one kind differ: its sign or unit, else the noun before
    it.
    """
    match = parts[place]
    if place and parts[place - 1]["number"] and match.start() - parts[place - 1].end() == 1:
        return PHONE, ""
    if match["sign"]:
        sign = match["sign"].strip()
        return (MONEY if sign in "€$£" else sign), ""
    after = parts[place + 1]["word"] if place + 1 < len(parts) else None
    before = parts[place - 1]["word"] if place else None
    kinds = [lexeme(word).kind if word else "" for word in (after, before)]
    if match["th"] or kinds[0] in _CALENDAR or (after or "").casefold() in _CLOCK:
        return WHEN, ""
    if after and match.string[match.end() : match.end() + 1] == "/":  # "95/h"
        return MONEY, ""
    if after and after.casefold() not in _FUNCTION_WORDS:
        unit = UNITS.get(after.casefold(), stem(after.casefold()))
        if kinds[0] == "unit" or unit in ("s", "min", "h"):
            return DURATION, UNITS.get(after.casefold()) or lexeme(after).name
        if kinds[1] not in _CALENDAR or unit in UNITS.values():
            return MONEY if unit in "€$" else unit, ""
    if kinds[1] in _CALENDAR:
        return WHEN, ""
    named = before and before.casefold() not in _FUNCTION_WORDS
    return (f"{stem(str(before).casefold())} …" if named else BARE), ""


def may_have_another_value(older: str, newer: str) -> bool:
    """Return whether a later statement may be about the same attribute: one without values, a change, or a value of
    the same kind.
    """
    before = value_kinds(older)
    if not _measures(before) or says_change(newer):
        return True
    return have_a_kind_in_common(before.keys(), value_kinds(newer).keys())


def has_the_same_measures(older: str, newer: str) -> bool:
    """Return whether a later statement repeats every amount of an older one, and neither changes nor adds any.

    One that returns to an amount says that another lay between.
    """
    before, after = (_measures(value_kinds(one)) for one in (older, newer))
    one, other = features(older), features(newer)
    names = one.names - other.stems and other.names - one.stems  # another person takes as much
    between = says_change(newer) or RETURNS.search(newer)
    return bool(before) and before == after and one.negated == other.negated and not (names or between)


def may_end_fact(entity: str, key: str, value: str, newer: str, sure: bool) -> bool:
    """Return whether a later statement may end a fact or relation: somebody else has the duty, or another value."""
    if is_duty(key) and _gives_to_another(entity, value, newer):
        return True
    if still_names(newer, value) and not (says_change(newer) and _names_key(key, newer)):
        return False
    return may_change_fact(key, value, newer, sure)


def _gives_to_another(holder: str, thing: str, text: str) -> bool:
    """Return whether a statement names a thing and somebody else: "Ann is sick, Bo does on-call"."""
    telling = [word for word in words(thing) if word not in _FUNCTION_WORDS and not lexeme(word).kind]
    own = words(text)
    if not telling or not stems_in_any_language(telling) <= stems_in_any_language(own):
        return False
    return any(
        lexeme(name.removesuffix("s")).kind == ""
        for name in features(text).names - set(map(stem, words(holder)))
    )


def may_change_fact(key: str, value: str, newer: str, sure: bool) -> bool:
    """Return whether a later statement about an entity may have another value of one of its facts.

    It must have another amount of the same kind if the fact is an amount. If the two certainly share more than a name,
    that is enough; otherwise it must report a change or an event, or name the key.
    """
    before, after = value_kinds(value), value_kinds(newer)
    if _measures(before) and not says_change(newer):
        return have_a_kind_in_common(before.keys(), after.keys()) and not has_the_same_measures(value, newer)
    return sure or says_change(newer) or bool(_PERFECT.search(newer)) or _names_key(key, newer)


def _names_key(key: str, text: str) -> bool:
    """Return whether a text contains a telling word of a key, a form of it ("licensed", "licence"), or a synonym."""
    telling = stems_in_any_language([word for word in words(key) if word not in _FUNCTION_WORDS])
    own = stems_in_any_language(words(text))
    forms = {word[:FORM] for word in telling if len(word) >= FORM}
    if telling & own or any(word[:FORM] in forms for word in own):
        return True
    synonyms = phrases_like(concepts().get(stemmed(key), frozenset()))
    found = f" {' '.join(map(stem, words(text)))} "
    return any(f" {phrase} " in found for phrase in synonyms)


def _measures(found: Mapping[str, AbstractSet[str]]) -> dict[str, AbstractSet[str]]:
    """Return the amounts among values: no days, no counts, no number that names a thing ("tank 4")."""
    counted = (
        (kind, {value for value in own if any(map(str.isdigit, value))}) for kind, own in found.items()
    )
    return {kind: own for kind, own in counted if own and kind in _AMOUNTS}


def have_a_kind_in_common(one: AbstractSet[str], other: AbstractSet[str]) -> bool:
    """Return whether values of these kinds may be of one attribute; a bare number may be of any unit or noun."""
    if one & other:
        return True
    plain, others = (any(kind not in (WHEN, HOST, PHONE) for kind in kinds) for kinds in (one, other))
    return (BARE in one and others) or (BARE in other and plain)
