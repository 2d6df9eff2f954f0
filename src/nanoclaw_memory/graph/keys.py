"""Recognise words that name a property, in English and German."""

from __future__ import annotations

import re

from nanoclaw_memory.graph import wording
from nanoclaw_memory.graph.intents import concepts, stemmed
from nanoclaw_memory.graph.values import ENDS, is_name, typed, without_preposition

_DAYS = frozenset("mo di mi do fr sa so mon tue tues wed weds thu thurs fri sat sun".split())
_NO_KEYS = (wording.NO_ENTITY | ENDS | _DAYS) - {"next"}  # `next appointment 2026-12-01`


def is_attribute(key: str) -> bool:
    """Return whether the left side of a colon is written as a property: in lower case, or a word that people ask
    for.
    """
    return key[:1].islower() or is_known_key(key) or is_known_key(key.split()[-1])


def is_known_key(word: str) -> bool:
    return stemmed(word) in concepts() or is_german_key(word)


def is_german_key(word: str) -> bool:
    """Return whether a German noun names an attribute or a person by a role: Geburtstag, Patentante, Durchwahl."""
    low = word.casefold()
    endings = (
        "tag",
        "nummer",
        "adresse",
        "name",
        "größe",
        "zeit",
        "wahl",
        "wort",
        "platz",
        "port",
        "alter",
        "mail",
        "auto",
        "schule",
        "telefon",
        "handy",
        "ort",
        "termin",
        "gruppe",
        "klasse",
    )
    return word[:1].isupper() and (
        wording.is_somebody(word) or low.endswith(endings) or stemmed(low) in concepts()
    )


def may_name(text: str) -> bool:
    """Return whether a phrase may name a thing: no pronoun, no "one", no comparison in it."""
    words = text.casefold().split()
    return 1 <= len(words) <= 4 and not any(word in wording.NO_ENTITY for word in words)


def is_plain_noun(text: str) -> bool:
    return all(word.replace("-", "").isalpha() for word in text.split())


def singular(noun: str) -> str:
    """Return the singular of a noun for relatives or pets; empty for other nouns."""
    plural = {
        "kids": "kid",
        "children": "child",
        "kinder": "kind",
        "söhne": "sohn",
        "töchter": "tochter",
        "hunde": "hund",
    }
    one = plural.get(noun.casefold(), noun)
    if wording.is_kin(one) or wording.is_pet(one) or wording.is_role(one):
        return one
    less = re.sub(r"(?:n|s)$", "", one)
    return less if wording.is_kin(less) or wording.is_pet(less) else ""


def is_several(noun: str) -> bool:
    """Whether a noun names several relatives or pets: kids, cats, parents."""
    one = singular(noun)
    whole = one.casefold() != noun.casefold() or one.casefold() in ("parents", "eltern")
    return whole and (wording.is_kin(one) or wording.is_pet(one))


def normal_key(key: str) -> str:
    """Return a key in lower case: `Phone number` becomes `phone number`; `IP` and `dateOfBirth` stay."""
    return key if any(c.isupper() for c in key[1:]) else key.lower()


def keyed_value(detail: str, listed: bool = False) -> tuple[str, str] | None:
    """Return a key and a value without a colon: `birthday 8 November`, `contact Fern`; in a list also `ext 4417`."""
    words = detail.split()
    for count in range(1, min(4, len(words))):
        key = [word for word in words[:count] if word not in ("on", "am", "at", "um", "is", "ist")]
        rest = " ".join(words[count:])
        value = typed(without_preposition(rest))
        if value is None and is_name(rest, 3) and not wording.VERB.match(detail):
            named = key and is_known_key(key[-1]) and key[-1].islower() and _may_be_key(key)
            return (normal_key(" ".join(key)), rest) if named else None
        if value is None or value.type == "schedule":
            continue
        whole = listed and len(words) == 2 and not value.rest and words[0].islower()
        vague = value.type == "number" and not (is_known_key(key[-1]) if key else False) and not whole
        return (
            (normal_key(" ".join(key)), value.text)
            if _may_be_key(key) and not vague and len(value.rest.split()) <= 2
            else None
        )
    return None


def _may_be_key(words: list[str]) -> bool:
    """Return whether words before a value name a property: plain words, none a day, a preposition or a verb."""
    plain = all(
        re.fullmatch(r"[^\W\d_][^\W\d_.-]*\.?", word) and word.casefold() not in _NO_KEYS and not typed(word)
        for word in words
    )
    verb = len(words) > 1 and words[0][:1].isupper() and words[-1].islower()  # "Zertifikate laufen 2 Jahre"
    return bool(words) and plain and not verb
