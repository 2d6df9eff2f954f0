"""Classify headings and left sides of colons: a thing with properties, a roster, a kind of section, a key."""

from __future__ import annotations

import re

from nanoclaw_memory.graph import wording
from nanoclaw_memory.graph.values import typed

# Headings below which each bullet begins with a name.
ROSTER = re.compile(
    r"\b(?:people|family|contacts?|team|friends|colleagues|projects?|tools|services|hosts|servers|machines|pets|kids|"
    r"children|relatives|neighbou?rs|staff|crew|clients|customers|vendors|members|household|doctors|"
    r"leute|familie|kontakte|freunde|kollegen|kinder|haustiere|tiere|verwandte|nachbarn|kunden|mitglieder|personen|ärzte)\b",
    re.I,
)
_PEOPLE = re.compile(
    r"\b(?:people|contacts?|team|colleagues|staff|crew|leute|kontakte|kollegen|personen|doctors|ärzte)\b",
    re.I,
)
LIVING = re.compile(r"\b(?:family|pets?|kids|children|familie|kinder|haustiere?|tiere)\b", re.I)
SECTION = re.compile(
    r"\b(?:notes?|misc|todos?|ideas?|links?|log|decisions?|lessons?|preferences?|overview|summary|context|setup|commands?|"
    r"conventions?|rules?|risks?|questions?|history|background|details|infos?|open|next|done|shorthand|glossary|general|"
    r"stuff|active|current|recent|today|yesterday|week|weekly|daily|morning|afternoon|evening|who|what|how|when|where|"
    r"notizen|ideen|entscheidungen|regeln|fragen|verlauf|allgemein|offen|heute|gestern|woche|sonstiges|"
    r"health|money|finances?|travel|school|work|home|environment|numbers|infrastructure|food|hobbies|daily life|"
    r"gesundheit|geld|finanzen|reisen|schule|arbeit|alltag|umgebung|zahlen|infrastruktur|essen|technik|wer|was|wie|wo|wann)\b",
    re.I,
)
CATEGORIES = (
    (re.compile(r"family|familie|kids|kinder", re.I), "family"),
    (re.compile(r"people|contacts?|team|friends|colleagues|leute|kontakte", re.I), "person"),
    (re.compile(r"project", re.I), "project"),
    (re.compile(r"tool|service|host|server|machine|network", re.I), "tool"),
    (re.compile(r"preference|style", re.I), "preference"),
    (re.compile(r"decision", re.I), "decision"),
    (re.compile(r"lesson", re.I), "lesson"),
    (re.compile(r"convention", re.I), "convention"),
)


def group_of(heading: str) -> str:
    """Return what a roster lists: living beings, which have an age, or others."""
    return "living" if LIVING.search(heading) else "people" if _PEOPLE.search(heading) else ""


def is_thing(heading: str) -> bool:
    """Return whether a heading names something with properties, rather than a kind of section or a day."""
    words = heading.split()
    if not 1 <= len(words) <= 4 or not heading[:1].isalnum() or heading[:1].islower():
        return False
    if any(word.casefold() in wording.NO_ENTITY for word in words):
        return False  # "Things you got wrong"
    return not (
        ROSTER.search(heading) or SECTION.search(heading) or typed(heading) or re.search(r"[:?!,]", heading)
    )


def may_be_key(key: str) -> bool:
    """Return whether the left side of a colon is a key: a few words, no pronoun and no verb among them."""
    words = key.casefold().split()
    small = {
        "of",
        "for",
        "in",
        "on",
        "to",
        "by",
        "at",
        "and",
        "the",
        "von",
        "für",
        "und",
        "is",
        "bis",
        "ab",
        "am",
    }
    pronouns = frozenset(
        "maybe vielleicht always never immer nie not nicht i we you he she they it us my your who what "
        "ich wir du sie er es wer was".split()
    )
    return 1 <= len(words) <= 4 and not any(word in pronouns for word in words) and words[0] not in small
