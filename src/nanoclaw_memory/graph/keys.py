"""Tell words that name a property from others, in English and German."""

from __future__ import annotations

import re

from nanoclaw_memory.graph import wording
from nanoclaw_memory.graph.intents import concepts, stemmed


def is_attribute(key: str) -> bool:
    """Whether the left side of a colon is written as a property: in small letters, or a word that people ask for."""
    return key[:1].islower() or is_known_key(key) or is_known_key(key.split()[-1])


def is_known_key(word: str) -> bool:
    return stemmed(word) in concepts() or is_german_key(word)


def is_german_key(word: str) -> bool:
    """Whether a German noun names an attribute or a person by a role: Geburtstag, Patentante, Durchwahl."""
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
    """Whether a phrase may name a thing: no pronoun, no "one", no comparison in it."""
    words = text.casefold().split()
    return 1 <= len(words) <= 4 and not any(word in wording.NO_ENTITY for word in words)


def is_plain_noun(text: str) -> bool:
    return all(word.replace("-", "").isalpha() for word in text.split())


def singular(noun: str) -> str:
    """A noun for relatives or pets in the singular; empty if it is none."""
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


def normal_key(key: str) -> str:
    """A key in lower case: `Phone number` is `phone number`; `IP` and `dateOfBirth` stay."""
    return key if any(c.isupper() for c in key[1:]) else key.lower()
