"""Rewrite reports of a change as the statement that holds since: "raised the limit to 40" as "the limit is 40"."""

from __future__ import annotations

import re

from nanoclaw_memory.graph import wording
from nanoclaw_memory.graph.values import ENDS, is_host, is_name, is_version, typed, without_article
from nanoclaw_memory.text import CHANGE_WORDS

MOST_WORDS = 24  # of a clause that reports a change
_TELLING = frozenset("set put brought back went goes wieder gesetzt gestellt zurückgestellt".split())
_VERB = "|".join(sorted(CHANGE_WORDS, key=len, reverse=True))
_WHO = r"(?P<who>(?:[Ww]e|I|[Tt]hey|[Hh]e|[Ss]he|[A-Z][\w-]+(?: [A-Z][\w-]+)?) (?:(?:have|has|had|just|also) )*)?"
_BACK = r"(?:(?:back|up|down|over|again) )*"
_REPORTS = (
    # "we raised the limit from 40 to 120", "put the limit back to 40"
    re.compile(
        rf"^{_WHO}(?i:(?P<verb>{_VERB}|set|put|brought)) (?P<what>.+?) (?:from .+? )?{_BACK}(?:to|at) (?P<new>\S.*)$"
    ),
    # "the freeze moved to 16 October", "the limit was raised from 40 to 120", "the limit is back at 40"
    re.compile(
        rf"^(?P<what>.+?) (?:(?:has|have|was|were|is|are|been|got|gets|now) )*"
        rf"(?i:(?P<verb>{_VERB}|set|put|back|went|goes)) (?:from .+? )?{_BACK}(?:to|at) (?P<new>\S.*)$"
    ),
    # "das Limit wurde von 40 auf 120 erhöht", "wir haben das Limit auf 40 gesenkt"
    re.compile(
        r"^(?:(?:[Ww]ir|[Ii]ch|[A-ZÄÖÜ][\w-]+) (?:haben|habe|hat) )?(?P<what>.+?) "
        r"(?:(?:ist|sind|wurde|wurden|wird) )?(?:[a-zäöü]+ ){0,3}?(?:(?:von|vom) .+? )?(?:wieder )?"
        r"(?:auf|zu|zum|zurück auf|an) "
        rf"(?P<new>\S.*?) (?i:(?P<verb>{_VERB}|gesetzt|gestellt|zurückgesetzt|zurückgestellt))(?: worden)?$"
    ),
    # "das Limit liegt wieder bei 40"
    re.compile(
        r"^(?P<what>.+?) (?:ist|sind|liegt|steht) (?P<verb>)(?:(?:jetzt|nun) )?wieder (?:auf|bei|beim) (?P<new>\S.*)$"
    ),
)
_RENEWED = re.compile(r"(?:up|down)(?:graded?|dated?)|updat|bump|aktualisiert|gehoben", re.I)
_WHEN = re.compile(
    r"(?:,? (?:today|yesterday|tonight|now|again|finally|this \w+|last \w+|heute|gestern|jetzt|wieder|endlich))+$"
)
_MOVED = re.compile(r"mov|migrat|transfer|shift|switch|umge|verleg|gewechselt", re.I)
_ALMOST = re.compile(r"\b(?:almost|nearly|fast|beinahe)\b", re.I)
_HOW_MUCH = re.compile(r" (?:by|um) .+$")
_TYPES = ("money", "measure", "number", "date", "time", "ip")


def as_current(sentence: str, verb: str = "is") -> str:
    """Return what holds since a reported change; the sentence itself if it reports none that can be read."""
    found = [word.casefold() for word in sentence.split()]
    if len(found) > MOST_WORDS or not (_TELLING | CHANGE_WORDS).intersection(found):
        return sentence
    for report in _REPORTS:
        match = report.match(sentence)
        if match and not _is_denied(match) and (current := _current(match, verb)):
            return current
    return sentence


def _is_denied(match: re.Match[str]) -> bool:
    """Return whether the words before the value, or a verb at the end, say that the change did not happen."""
    at_end = match.start("verb") > match.start("new")
    told = match.string if at_end else match.string[: match.start("new")]
    return bool(wording.DENIAL.search(told) or _ALMOST.search(told))


def _current(match: re.Match[str], verb: str) -> str:
    what, new = _HOW_MUCH.sub("", match["what"]), _WHEN.sub("", match["new"].rstrip(".!"))
    plain = without_article(what)
    groups = match.groupdict()
    if "who" in groups and not groups["who"] and not match["verb"].casefold().endswith("ed"):
        return ""  # "set the limit to 40" asks for it
    if plain.casefold() in ("it", "this", "that", "them", "es", "das", "ihn", "sie") or " to " in plain:
        return ""
    value = typed(new)
    thing = (
        what if plain != what or is_name(plain) or "'s " in what or "’s " in what else f"{_the(verb)} {what}"
    )
    if value and value.type in _TYPES and not value.is_cut_off and _ends(value.rest):
        version = _RENEWED.match(match["verb"]) and is_name(plain, 3)
        if is_name(plain, 3) and value.type == "number" and not version:
            return ""
        return f"{plain}'s version {verb} {value.text}" if version else f"{thing} {verb} {value.text}"
    if value and value.type == "number" and re.fullmatch(r"[^\W\d_-]+(?:(?: per |/)\w+)?", value.rest):
        return (
            "" if is_name(plain, 3) else f"{thing} {verb} {value.text} {value.rest}"
        )  # "120 requests per second"
    host = new.split(",")[0].split(" ")[0]
    if is_host(host) and _MOVED.match(match["verb"]) and _ends(new[len(host) :].lstrip(" ,")):
        return f"{thing} {'runs on' if verb == 'is' else 'läuft auf'} {host}"
    return f"{thing} {'runs on' if verb == 'is' else 'läuft auf'} {new}" if is_version(new) else ""


def _the(verb: str) -> str:
    return "the" if verb == "is" else "das"


def _ends(rest: str) -> bool:
    """Return whether a value ends where only a time, a reason or nothing follows."""
    return not rest or not rest[0].isalnum() or rest.split(" ")[0].casefold().strip(",;") in ENDS
