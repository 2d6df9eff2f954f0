"""Recognise in talk what is settled: a decision, an idea that was given up, a rule; by the forms of saying so."""

from __future__ import annotations

import re

from nanoclaw_memory.graph import wording
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.retrieval.ongoing import DECIDES, HAS_CHANGED, leaves

_CALLED = regex(
    r"^\W*(?:(?:ok|okay|so|right|alright|gut|also|na gut),? )?(?:final |team |new |neue )?"
    r"(?:decision|call|agreed|rule|policy|verdict|entscheidung|beschluss|regel)\s*[:–—-]|"
    r"[,–—-] (?:decided|agreed|final|(?:team )?rule|beschlossen|abgemacht|entschieden)\W*$|^scratch that\b",
    re.IGNORECASE,
)
_SETTLES = regex(
    # what we do from now on
    r"\bwe(?:['’](?:re|ll)| are| will)? (?:(?:now|just|all|only|definitely) )*(?:(?:go|going) (?:w/|with)|"
    r"(?:stay|staying|stick|sticking) (?:on|with|to) (?!this\b|th(?:at|e) (?:page|line|call)\b)|"
    r"(?:keep|keeping|drop|dropping|abandon|abandoning|ditch|ditching) (?!an eye\b|you\b|it\b|into\b|\w+ing\b)|"
    r"(?:move|moving|switch|switching|migrate|migrating) (?:\w+ ){0,3}"
    r"(?:to (?!the next\b|line\b|page\b)|over|away|off)|standardi[sz]e)|"
    r"\bwir (?:nehmen|bleiben|setzen|verwenden) (?:\w+ ){0,2}?(?:bei|auf|für|künftig|nur)\b|"
    r"\bwir nehmen (?!an\b)[A-ZÄÖÜ]|\blassen wir(?=\s*(?:[.,;!]|$|sein|weg|bleiben|fallen))|"
    # what all agreed on
    r"\b(?:everyone|everybody|all of us|the team|alle|das team) (?:\w+ )?(?:agreed|decided|voted)\b|"
    r"\bhaben uns (?:gegen|für)\b[^.;!?]*\b(?:entschieden|ausgesprochen)\b|"
    # an idea that was given up, a version that is fixed
    r"\b(?:idea|plan|proposal|approach|project|migration|rewrite|option|idee|vorschlag|projekt|ansatz)(?: \w+ \w+)? "
    r"(?:is|are|ist|sind) (?:now |jetzt )?(?:dead|off(?: the table)?|on hold|out(?! of)|cancell?ed|gone|history|tot|"
    r"gestorben|vom tisch|gestrichen|raus)\b(?! again)|\b(?:is|are) (?:off the table|on hold)\b|\bvom tisch\b|"
    r"\bpin (?:\S+ ){1,5}(?:at|to|on|auf) v?\d|"
    # what belongs where, and where not
    r"\b(?:goes?|lives?|belongs?|stays?|(?:is|are) (?:kept|stored|sent|done)|gehör(?:t|en)|komm(?:t|en)|bleib(?:t|en)) "
    r"[^.;!?]{3,60}(?:, (?:not|never|nicht)|\binstead of (?!\w+ing\b)|\bstatt) ?",
    re.IGNORECASE,
)
# States of things that go away by themselves.
_PASSING = (
    r"(?:errors?|problems?|warnings?|issues?|failures?|tokens?|fehler\w*|problem\w*|warnung\w*|zeit|lust)\b"
)
_FORBIDS = regex(
    r"^\W*(?:(?:so|and|ok|und),? )?(?:never (?!mind\b|seen\b|had\b|heard\b|been\b|\w+ed\b)\w+|nie wieder|niemals)\b|"
    r"^\W*(?:no more (?!\w+ left)(?=\w+ (?:\w+ )?(?:in|on|for|from|to|at|into|with)\b)|"
    rf"kein\w* (?=[^.;!?]{{2,30}} mehr\b))(?!(?:\w+ )?{_PASSING})",
    re.IGNORECASE,
)
_STILL_OPEN = regex(
    r"\b(?:not yet|undecided|noch nicht|noch nichts|(?:not|n['’]t) (?:\w+ )?(?:decided|settled|agreed))\b",
    re.IGNORECASE,
)


def is_called_decision(sentence: str) -> bool:
    """Return whether a sentence is called a decision or a rule: "ok decision: …", "…, decided"."""
    return bool(_CALLED.search(sentence)) and not _STILL_OPEN.search(sentence)


def is_decided(sentence: str) -> bool:
    """Return whether a sentence says what is settled; what is still open is not, nor that somebody leaves."""
    if _STILL_OPEN.search(sentence) or leaves(sentence):
        return False
    if _SETTLES.search(sentence) or HAS_CHANGED.search(sentence):
        return True
    return bool(DECIDES.search(sentence)) and not wording.DENIAL.search(sentence)


def forbids(sentence: str) -> bool:
    """Return whether a sentence is a rule that forbids something: "never deploy on fridays"."""
    return bool(_FORBIDS.search(sentence))
