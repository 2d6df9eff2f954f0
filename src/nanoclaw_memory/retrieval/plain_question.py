"""Read what a message asks without its courtesies: "quick q: where is it again" asks "where is it?".

People leave out the question mark, or put "tell me", "remind me", "sag mal", "again", "pls" around a question. What is
found must not depend on that. All words here are closed classes.
"""

from __future__ import annotations

import re

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import words

LONGEST = 200  # characters of a message that may be one short question
FEWEST = 2  # words that remain beside the courtesies
_GREETING = regex(
    r"(?:(?:hey|hi|hello|hallo|moin|ok|okay|ah|oh|uh|um|ähm|hm+|so|btw|by the way|sorry|please|pls|plz|bitte|äh|ach|na"
    r"|hola|salut|ciao)(?:\s*[,!.:–—-]+\s*|\s+))+",
    re.IGNORECASE,
)
_ANNOUNCED = regex(
    r"(?:(?:just |nur )?(?:an?|one|eine?)? ?(?:quick|short|small|dumb|stupid|silly|kurze?|schnelle?|blöde|dumme)? ?"
    r"(?:q|question|frage|one|pregunta|domanda)s?\s*[:,–—-]+\s*|(?:just )?(?:wondering|curious)\s*[:,–—-]+\s*"
    r"|i (?:forgot|forget|don['’]?t remember|can['’]?t remember)\s*[:,.–—-]+\s*|vergessen\s*[:,.–—-]+\s*)",
    re.IGNORECASE,
)
_ASKED_OF_YOU = regex(
    r"(?:(?:can|could|would|will) (?:you|u) (?:please |pls |quickly )?|(?:please|pls|just|quickly) )?"
    r"(?:tell|remind) (?:me|us)(?: again| please| pls| quickly| once more)?\s*[,:–—-]?\s+"
    r"|(?:do|did) (?:you|u) (?:still |happen to )?(?:know|remember|recall)(?: again)?\s*[,:–—-]?\s+"
    r"|i (?:forgot|forget|wonder|don['’]?t (?:know|remember)|can['’]?t remember|need to know|want to know)\s+"
    r"|any idea\s+"
    r"|(?:kannst du|könntest du)(?: mir| mich| uns)?(?: bitte| noch ?mal| mal| kurz)* (?:sagen|erinnern)\s*,?\s+"
    r"|(?:sag|sage|erinner|erinnere|verrat)(?: mir| mich| uns)?(?: bitte| nochmals?| noch mal| mal| schnell| kurz)*"
    r"\s*[,:–—-]?\s+"
    r"|weißt du(?: noch| nochmal| zufällig| gerade)*\s*,?\s+|weisst du(?: noch| zufällig)*\s*,?\s+"
    r"|dime\s+|recuérdame\s+|dis-moi\s+|rappelle-moi\s+|dimmi\s+|ricordami\s+",
    re.IGNORECASE,
)
_AFTER = regex(
    r"(?:[\s,–—-]+(?:again|once more|please|pls|plz|thanks|thx|ty|btw|by the way|rq|nochmals?|noch ?mal|nochma|bitte"
    r"|danke|dir|eigentlich|gleich wieder|otra vez|por favor|encore|déjà|di nuovo))+(?P<end>[\s.!?…]*)$",
    re.IGNORECASE,
)
_WHICH = "what whats which who whos whom whose was wer wen wem welche welcher welches welchen welchem wessen".split()
_HOW = "when where how why wann wo wie warum wieso weshalb wohin woher wieviel wieviele womit wofür".split()
_ASKING = frozenset([*_WHICH, *_HOW, "what's", "who's", "where's", "when's", "how's", "wheres", "whens"])
_BEFORE_ASKING = frozenset(
    "on in at for to by from with of until since under about auf in im an am bei mit für von vom zu um ab bis seit über"
    " unter and und aber but".split()
)
_VERBS = frozenset(
    "is are was were am does do did has have had will would can could should shall must may might isn't aren't".split()
)
# "How many", "how do we": not "how nice", "wie gesagt", "when I run it".
_AFTER_HOW = _VERBS | frozenset(
    "many much long often old far big tall high late early soon fast heavy deep wide come about to".split()
)
_PRONOUN = frozenset("i we you he she they it there ich wir du er sie es man wer".split())
_NO_QUESTION_AFTER = frozenset(
    "a an i we you he she they if ich wir du er man gesagt besprochen immer gehabt auch wäre der die".split()
)
_HEAD = frozenset(
    [*_ASKING, *"the my our your this das der die den mein meine meinen unser unsere unseren ob".split()]
)
_INVERTED = frozenset("is are was were am does did has ist sind hat hatte wird".split())
_NO_SUBJECT = frozenset("been done fine ok okay fixed gone not erledigt fertig gut egal ok jetzt".split())
_INVERTED_BEFORE_PRONOUN = frozenset(
    "do have can could should would will must may war waren haben habe hab bin darf muss kann soll".split()
)


@bounded(1024 * 1024)
def plain_question(message: str) -> str:
    """Return a short message without courtesies, with a question mark where it asks; any other as it is."""
    text = message.strip()
    if len(text) > LONGEST or "\n" in text:
        return message
    asked, bare = _without_frame(text)
    if found := _AFTER.search(asked):
        shorter = asked[: found.start()]
        if len(words(shorter)) >= FEWEST:
            asked = shorter + found["end"].strip()
    if asked[-1:] not in (*"?.!:…", "") and (_opens_question(words(asked)) or (bare and _asks(words(asked)))):
        asked += "?"
    return asked if words(asked) else message


def _without_frame(text: str) -> tuple[str, bool]:
    """Return a text without what introduces a question, and whether anything did."""
    rest, framed = text, False
    if found := _GREETING.match(rest):
        rest = rest[found.end() :]
    if found := _ANNOUNCED.match(rest):
        rest, framed = rest[found.end() :], True
    if (found := _ASKED_OF_YOU.match(rest)) and _asks_or_names(words(rest[found.end() :])):
        rest, framed = rest[found.end() :], True
    return (rest, framed) if len(words(rest)) >= FEWEST else (text, False)


def _asks_or_names(found: list[str]) -> bool:
    """Return whether what follows "tell me" is a question or a thing: not "a joke", "about it", "to call mum"."""
    return bool(found) and (found[0] in _HEAD or _asks(found))


def _asks(found: list[str]) -> bool:
    """Return whether words begin with one that asks, perhaps behind a preposition."""
    return not _ASKING.isdisjoint(found[:1]) or _asks_behind_preposition(found)


def _asks_behind_preposition(found: list[str]) -> bool:
    return len(found) >= FEWEST and found[0] in _BEFORE_ASKING and found[1] in _ASKING


def _opens_question(found: list[str]) -> bool:
    """Return whether words in this order are a question without its mark."""
    if len(found) < FEWEST:
        return False
    first, second = found[0], found[1]
    if _asks_behind_preposition(found):
        return True
    if first in _ASKING:
        if first in ("when", "where", "how", "why"):
            return second in _AFTER_HOW
        return second not in _NO_QUESTION_AFTER
    if first in _INVERTED:
        return second not in _NO_SUBJECT
    return first in _INVERTED_BEFORE_PRONOUN and second in _PRONOUN
