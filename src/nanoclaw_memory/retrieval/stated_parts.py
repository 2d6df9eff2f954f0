"""Separate the statements in a message from its questions and requests, by closed classes of words."""

from __future__ import annotations

import itertools
import re

from nanoclaw_memory import tokens
from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import language, sentences

_CLAUSE = regex(r"(?:[,;:]|\s[–—-])\s+|\s+(?=(?:and|but|und|aber)\s)", re.IGNORECASE)
_TOKEN = regex(r"[^\W_]+(?:['’][^\W_]+)?")
# Words before the one that decides: they may open a statement and a request alike.
_OPENING = frozenset(
    "ok okay hi hey hello hallo yes no ja nein and but so then also now just next first again please und aber dann"
    " jetzt nun nochmal bitte mal danke thanks".split()
)
_ASKING = frozenset("what whats which who whom whose how why where when".split())
_GERMAN_ASKING = frozenset(
    "was welche welcher welches welchen welchem wer wen wem wie warum wieso wo wann wohin woher wieviel".split()
)
_PREPOSITION = frozenset(
    "on in at for to by from of with until since about after before under auf an im am bei mit für von vom zu zum zur"
    " um ab bis seit über wegen nach vor unter".split()
)
_SUBORDINATE = frozenset("that which who because if whether to dass weil damit ob wenn um".split())
_AUXILIARY = frozenset(
    "is are was were am has have had will would can could shall should may might must do does did isn't aren't wasn't"
    " won't can't doesn't didn't hasn't haven't ist sind war waren wird werden wurde wurden hat haben hatte kann"
    " können könnte könntest kannst muss müssen soll sollen sollte darf will willst wollen hast bist gibt geht".split()
)
_POSSESSING = frozenset("have had has hat hatte haben".split())
_SUBJECT = frozenset(
    "i we he she they you it there i'm it's he's she's we're they're there's that's i've we've ich wir er sie es du"
    " man hab habe bin".split()
)
# Words that follow a verb and never a subject.
_OBJECT = frozenset(
    "the a an this that these those my our your his her its their me us him them it all every any some der die das"
    " den dem des ein eine einen einem einer mein meine meinen meinem meiner unser unsere unseren unserem dein deine"
    " deinen mir mich uns ihm ihn ihr sie es alle jede jeden jeder bitte mal doch".split()
)
# Irregular past forms: "Got a letter from the landlord" is no request.
_PAST = frozenset(
    "got went made took saw sold bought found sent told gave came left met paid heard lost won built began became "
    "brought chose drew drove fell felt forgot grew held kept knew led meant rode ran said slept spent spoke stood "
    "thought wrote wore".split()
)
_FINITE = frozenset("got gets goes went comes came kommt kam".split())  # forms that a request cannot have
_RULE = frozenset("always never don't anymore longer henceforth immer nie niemals künftig stets".split())


@bounded(2 * 1024 * 1024)
def stated_in(text: str) -> str:
    """Return the sentences or clauses of a message that state something; empty if it only asks or requests."""
    return " ".join(filter(None, map(_statement_in, sentences(text))))


def only_asks(text: str) -> bool:
    """Return whether a message is a question, with or without its mark, and states nothing."""
    if stated_in(text):
        return False
    found = [word.replace("’", "'").casefold() for word in _TOKEN.findall(text)]
    clause = list(itertools.dropwhile(lambda word: word in _OPENING, found))
    return text.rstrip().endswith("?") or (len(clause) > 1 and _asks(clause, language(text) == "german"))


def _statement_in(sentence: str) -> str:
    """Return a sentence from its first stating clause on; of a question what is stated before it."""
    german = language(sentence) == "german"
    starts = [0, *(match.end() for match in _CLAUSE.finditer(sentence))]
    ends = [*starts[1:], len(sentence)]
    last = len(ends) - sentence.endswith("?")
    for start, end in zip(starts[:last], ends[:last], strict=True):
        found = [word.replace("’", "'") for word in _TOKEN.findall(sentence[start:end])]
        clause = list(itertools.dropwhile(lambda word: word.casefold() in _OPENING, found))
        if len(clause) > 1 and _is_statement(clause, german, start > 0, last < len(ends)):
            return sentence[start : ends[last - 1]]
    return ""


def _is_statement(clause: list[str], german: bool, later: bool, before_question: bool) -> bool:
    """Return whether a clause has a subject before its verb, or says what to do at all times.

    One that may continue a request, or that names the subject of a question, must contain a recognisable verb.
    """
    found = [word.casefold() for word in clause]
    if _RULE.intersection(found):
        return True
    if _asks(found, german) or (later and _is_subordinate(found)):
        return False
    if found[0] in _SUBJECT:
        return True
    if later or (before_question and found[0] in _OBJECT | _PREPOSITION):
        return found[0] not in _PREPOSITION and not _AUXILIARY.isdisjoint(found)
    return found[0] in _OBJECT | _PREPOSITION or _verb_follows(clause, german)


def _is_subordinate(found: list[str]) -> bool:
    return found[0] in _SUBORDINATE and found[1] not in _AUXILIARY


def _asks(found: list[str], german: bool) -> bool:
    """Return whether a clause begins with a question word, at most after a preposition, or with its auxiliary."""
    asking = found[1 if found[0] in _PREPOSITION else 0].removesuffix("'s")
    if asking in (_GERMAN_ASKING if german else _ASKING):
        return True
    if found[1] in _SUBJECT | _OBJECT:
        return found[0] in _AUXILIARY or (found[1] == "ich" and found[0] in _SUBJECT)
    return (
        found[0] in _AUXILIARY
        and found[0] not in _POSSESSING
        and found[1] not in _PREPOSITION | {"be", "now"}
    )


def _verb_follows(clause: list[str], german: bool) -> bool:
    """Return whether a verb follows the beginning of a clause; a request begins with its verb, then its object."""
    found = [word.casefold() for word in clause]
    main = set(itertools.takewhile(lambda word: word not in _SUBORDINATE, found[1:]))
    if found[0].endswith("ed") or found[0] in _PAST:
        return True
    if found[1] in _OBJECT:
        return False
    if not (_AUXILIARY | _FINITE).isdisjoint(main):
        return True
    if german:  # the verb is second, and only nouns are capitalised
        plain = next((word for word in clause[1:] if not word[0].isupper()), "")
        return bool(plain) and plain not in _OBJECT | _PREPOSITION
    takes_object = len(found) > 2 and found[1].endswith(("s", "ed")) and found[2] in _OBJECT
    return takes_object or not _may_be_verb(found[0])


def _may_be_verb(word: str) -> bool:
    """Return whether an English word may be a base verb: language models have a token for its form in -ing."""
    forms = (f"{word}ing", f"{word.removesuffix('e')}ing", f"{word}{word[-1]}ing")
    return any(tokens.is_one(f" {form}") for form in forms)
