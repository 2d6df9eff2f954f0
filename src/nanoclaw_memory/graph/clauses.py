"""Split text into sentences, clauses and details; separate sentences that state something from others."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nanoclaw_memory.graph import wording
from nanoclaw_memory.graph.values import is_abbreviation, is_name, name_at, typed

MINE = re.compile(r"(?:my|our|mein|meine|meines|meiner|unser|unsere|unserer|unseres)\b", re.I)
_SPLIT = re.compile(
    r"(; |, (?!\d{4,5}\b(?! ?[\d/-]))(?:and |und |but |aber )?| (?:and|und|but|aber) | [–—] )"
)
PARENTHESES = re.compile(r"\s*\(([^()]*)\)")
# Somebody who corrects themselves while speaking says both values.
_MENDED = re.compile(
    r"\b(?:ähm?|erm|uhm|nee|quatsch|no sorry|no wait|nein sorry)\b|[,–—-] (?:no|nein|nope), ", re.I
)
_UNREAL = re.compile(
    r"(?<![\w.@-])(?:dream\w*|pretend\w*|imagin\w*|jok(?:e|es|ing)|lol|haha\w*|novel|story|film|movie|sample|example|e\.g\.|"
    r"träum\w*|geträumt|witz|roman|beispiel|muster|z\. ?b\.)",
    re.I,
)
_QUOTED = re.compile(r"[\"“„»]([^\"“”„«»]{3,})[\"”“«»]")


def sentences(text: str) -> list[str]:
    """Return the sentences of a line; the dot of `Dr.`, of an initial or of a day ends none."""
    found: list[str] = []
    start = 0
    for match in re.finditer(r"[.!?…](?=\s)", text):
        word = text[start : match.end()].rsplit(" ", 1)[-1]
        if is_abbreviation(word) or re.fullmatch(r"\(?(?:\d{1,2}\.[-–]?)+", word):
            continue
        found.append(text[start : match.end()].strip())
        start = match.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


def is_own(sentence: str) -> bool:
    """Return whether a sentence is the writer's own statement: no question, form, slip of the tongue, quotation or
    dream.
    """
    if wording.QUESTION.search(sentence) or "___" in sentence or _MENDED.search(sentence):
        return False
    return not (_UNREAL.search(sentence) or any(len(m[1].split()) > 2 for m in _QUOTED.finditer(sentence)))


def stated(sentence: str) -> bool:
    """Return whether a sentence states something: no question, hearsay, condition, wish or quotation."""
    if not is_own(sentence):
        return False
    spoken = re.sub(r"\b(?:everyone|everybody) says\b", "", sentence)
    first = sentence.split(" ")[0]
    plain = sentence if first in ("Will", "May") else sentence[:1].lower() + sentence[1:]
    if wording.HEARSAY.search(spoken) or wording.DOUBT.search(plain):
        return False
    return not wording.SUBORDINATE.match(sentence)


def clauses(sentence: str) -> Iterator[tuple[str, str]]:
    """Yield the clauses of a sentence with the words that join them; nothing is split inside parentheses."""
    masked = PARENTHESES.sub(
        lambda match: re.sub(
            r"[ ,;]",
            lambda c: chr(0xE000 + ord(c.group())),
            match.group()[len(match.group()) - len(match.group().lstrip()) :],
        ).join((" ", "")),
        sentence,
    )
    parts = _SPLIT.split(masked)
    joiners = ["", *parts[1::2]]
    for joiner, clause in zip(joiners, parts[::2], strict=True):
        plain = re.sub(r"[\ue000-\ue0ff]", lambda c: chr(ord(c.group()) - 0xE000), clause)
        if plain.strip():
            yield joiner.strip(), plain.strip()


def details_of(text: str) -> list[str]:
    """Return the details of a roster line: split at commas, semicolons and full stops outside parentheses."""
    return [
        clause.strip()
        for sentence in sentences(text)
        for part in re.split(r"(?:;|,(?! \d{4}\b(?! \d))| [–—-]| /) (?![^(]*\))", sentence)
        for clause in [part]
        if clause.strip()
    ]


def only_name(sentence: str) -> str:
    """Return the name in a sentence that has only one, for "she" in the next."""
    words = sentence.rstrip(".!").split()
    found, place = [], 0
    while place < len(words):
        name, rest = name_at(" ".join(words[place:]))
        taken = len(words) - place - len(rest.split()) if name else 1
        if name and (place or taken > 1) and name.casefold() not in wording.NO_ENTITY:
            found.append(name)
        place += max(taken, 1)
    return found[0] if len(found) == 1 else ""


def with_apposition(sentence: str) -> str:
    """Rewrite `Lenas Lehrerin, Frau Dobberstein, ist …` with the name in parentheses."""
    match = re.match(r"(?P<what>[^,()]{3,50}), (?P<name>[^,()]{1,40}), (?P<rest>.+)$", sentence)
    known = match and wording.VERB.match(match["rest"]) and is_name(match["what"])
    if match and known and (re.fullmatch(r"\d{1,2}", match["name"]) or MINE.match(match["name"])):
        return f"{match['what']} ({match['name']}) {match['rest']}"
    if (
        match
        and is_name(match["name"], 4)
        and wording.VERB.match(match["rest"])
        and len(match["what"].split()) <= 4
        and wording.is_somebody(match["what"])
    ):
        return f"{match['what']} ({match['name']}) {match['rest']}"
    return sentence


def schedule(text: str) -> str:
    """Return when something recurs: `every Tuesday at 7`, `dienstags um 19:30`, `at 9:30 on weekdays`."""
    value = typed(text)
    often = r"every|each|jed|immer|\w+(?:days|tags|wochs)\b"
    if value and value.type == "schedule" and re.match(often, value.text, re.I):
        time = re.match(
            r"(?:at|um|from|ab|,)? ?(?P<time>\d{1,2}(?:[:.]\d{2})?(?: ?(?:am|pm|uhr))?)\b", value.rest, re.I
        )
        return f"{value.text} {time.group()}".strip() if time else value.text
    every = re.match(
        r"(?:every|each|jede[nrs]?|alle|täglich|daily|weekly|monthly|nightly|hourly)\b"
        r"(?: (?!for|with|in|to|by|because|für|mit|bei)[\w:]+){0,4}",
        text,
    )
    return re.sub(r"(?: (?:at|the|in|on|um|am|im|der|die|das))+$", "", every.group()) if every else ""


def without_possessive(word: str) -> str:
    """Return a possessive without its ending."""
    return re.sub(r"['’]s?$", "", word)


def names(text: str) -> tuple[str, ...]:
    """Return everything in a sentence that may be a name, in order, including a single word at its start."""
    found: list[str] = []
    tokens = text.split()
    place = 0
    while place < len(tokens):
        name, rest = name_at(" ".join(tokens[place:]))
        taken = len(tokens) - place - len(rest.split()) if name else 1
        parts = [
            part
            for part in name.replace("’", "'").removesuffix("'s").split()
            if part.casefold() not in wording.NO_ENTITY
        ]
        found += [" ".join(parts[start:]) for start in range(min(len(parts), 2))]
        place += max(taken, 1)
    return tuple(dict.fromkeys(found))
