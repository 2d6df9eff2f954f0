"""What words say of themselves: that they hold once, that they last, or that they are only about the person."""

from __future__ import annotations

import re

from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import sentences

_ONCE = regex(
    r"\b(?:this (?:one )?time|just (?:this )?once|for once|for (?:now|today)|(?:for|in|on|with) this one|in this case|"
    r"(?:only|just) (?:for )?(?:today|tomorrow|tonight|now|this (?:week|weekend|issue|one|case))|"
    r"diesmal|dieses mal|ausnahmsweise|für heute|in diesem fall|(?:bei|für|in) (?:der|die|das|dem|den) hier|"
    r"(?:nur|bloß|lediglich) (?:für )?(?:heute|morgen|diese woche|diesen fall))\b",
    re.IGNORECASE,
)


# A moment as seen from now: "don't push it yet", "jetzt nicht", "not before Friday"; noon is each day's.
_MOMENT = regex(
    r"(?<!from )(?<!by )(?<!until )(?<!as of )\b(?:now|yet)$|\bright now\b|"
    r"(?<!from )(?<!as of )(?<!starting )\b(?:today|tonight|tomorrow)\b(?!['’]s\b)|"
    r"\b(?:before|until|till) (?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|i'm back)\b|\b(?:until|till) noon\b|"
    r"\bnoch nicht\b|(?<!ab )(?<!von )(?<!guten )\b(?:jetzt|heute|morgen)\b|"
    r"\b(?:vor|bis) (?:(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch)\b",
    re.IGNORECASE,
)
# Not about a moment: a change that is reported ("we use pnpm now"), or a rule for each time ("never deploy on …").
_REPORTS = regex(
    r"(?:(?:no|nein|but|and|aber|und),? )?(?:we|i|it|he|she|they|you|the|our|my|that|this|there|wir|ich|es|er|sie|du|"
    r"der|die|das|mein\w*|unser\w*)\b|.*\b(?:always|never|ever|each|every|immer|nie|niemals|jede[nmrs]?|stets|i|we|you|"
    r"ich|wir|du)\b",
    re.IGNORECASE,
)
# Words that say themselves that a rule lasts.
_FOR_GOOD = regex(
    r"\b(?:always|never|ever|each|every|next time|from (?:now|here) on|in (?:the )?future|going forward|generally|"
    r"immer|nie|niemals|stets|jede[nmrs]?|nächstes mal|beim nächsten mal|künftig|in zukunft|ab (?:jetzt|sofort)|"
    r"grundsätzlich|generell)\b",
    re.IGNORECASE,
)
# An order for good: "from now on squash", "squash from now on please", "ab sofort bitte squashen"; without "please" a
# word that begins a subject may not follow ("from now on the depot ships").
_FROM_NOW_ON = (
    r"(?:from (?:now|here) on(?:wards)?|in (?:the )?future|going forward|next time|"
    r"in zukunft|ab (?:jetzt|sofort))"
)
_ORDER = regex(
    rf"^{_FROM_NOW_ON} (?!(?:the|a|an|this|that|these|those|every|each|all|our|my|his|her|its|their|your|there)\b)"
    rf"(?-i:[a-zäöü])\w*\b(?! (?:der|die|das|den|ein\w*)\b)|"
    rf"\b(?:please|bitte)\b.*\b{_FROM_NOW_ON}\b|\b{_FROM_NOW_ON}\b.*\b(?:please|bitte)\b",
    re.IGNORECASE,
)
# "Keys must be prefixed with lp: from now on": a duty with its beginning, in one sentence.
_DUTY = regex(
    rf"\b(?:must|should|shall|needs? to|ha(?:s|ve) to|are to|is to|muss|müssen|soll|sollen)\b.*\b{_FROM_NOW_ON}(?!\w)",
    re.IGNORECASE,
)
# What a person says of themselves, unless it is what they want of the answer.
_OF_ONESELF = regex(r"(?:i|i['’](?:m|ve)|my|ich|mir|mich|mein\w*)\b", re.IGNORECASE)
_OF_ANSWER = regex(
    r"\b(?:you\w*|please|want|wanted|need|like(?= (?:you|to see|it when))|would|prefer|rather|asked|said|told|meant|"
    r"see|du|dir|dich|dein\w*|bitte|will|wollte|möchte|hätte|brauche?|bevorzuge|lieber|sagte|gesagt|meinte|sehen)\b|"
    r"\bi['’]d\b",
    re.IGNORECASE,
)
_CLAUSES = regex(r"[.,;:!?–—()\n]+")


def holds_once(own: str) -> bool:
    """Return whether words say that they hold once: an exception, or what to do at this moment."""
    return bool(_ONCE.search(own)) or any(
        _MOMENT.search(clause) and not _REPORTS.match(clause) for clause in _clauses(own)
    )


def holds_for_good(own: str) -> bool:
    """Return whether words say that they last."""
    return bool(_FOR_GOOD.search(own))


def orders_for_good(own: str) -> bool:
    """Return whether words say that a task or a duty begins: "from now on squash", "keys must be short from now on"."""
    ordered = any(_ORDER.search(clause) and not _REPORTS.match(clause) for clause in _clauses(own))
    return ordered or any(_DUTY.search(said) and not _REPORTS.match(said) for said in sentences(own))


def is_of_oneself(own: str) -> bool:
    """Return whether a person only speaks of themselves: recall covers it ("I'm allergic to hazelnuts")."""
    return all(_OF_ONESELF.match(clause) and not _OF_ANSWER.search(clause) for clause in _clauses(own))


def _clauses(own: str) -> list[str]:
    return [clause.strip() for clause in _CLAUSES.split(own) if clause.strip()]
