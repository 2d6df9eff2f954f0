"""Decide of which project a lesson is: that in which it was said, the one that it names, or none."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from nanoclaw_memory import tokens
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import sentences

_PROJECT = (
    r"(?:repo|repos|repository|project|code ?base|monorepo|workspace|projekt\w*|repositor\w+|codebasis)"
)
_PART = (
    r"(?:package|service|app|application|site|library|product|team|paket|dienst|anwendung|bibliothek|produkt)"
)
_PLACE = regex(
    r"\b(?:in|around) here\b|\bhier (?:drin|im|in (?:der|dem|diese[mr]))\b|\bbei uns hier\b|"
    rf"\b(?:this|diese[mrs]?|dieses) (?:\w+ )?(?:{_PROJECT}|{_PART})\b|"
    rf"\b(?:in|within|across|throughout|im) (?:the |our |dem |unserem )?{_PROJECT}\b(?! (?:you|which|that)\b)",
    re.IGNORECASE,
)
# "Here" is the place if a clause ends with it or a rule begins with it: "we use tabs here", "hier immer mit Umlauten".
_HERE = regex(
    r"\bhere(?=\s*(?:[,.;:!?)]|$))|"
    r"^(?:(?:but|and|also|please|no),? )*here,? "
    r"(?!(?:is|are|was|were|you|comes?|goes|it|the|a|an|my)\b|['’]s)\w+|"
    r"\bhier\b(?! (?:ist|sind|war|waren|hast|habt|hat|kommt|kommen|steht|der|die|das|ein|eine|mein|meine|noch|mal)\b)",
    re.IGNORECASE,
)
_NOT_PLACE = regex(
    r"\b(?:right|over|come|from|up to|out of|look|see|get|got|put it|listed|given|von|bis|siehe) (?:here|hier)\b|"
    # a complaint about one answer: "you used the wrong name here"
    r"\b(?:you|du)\b(?! (?:always|never|should|must|have to|need to|sollst|solltest|musst|darfst)).*\b(?:here|hier)\b|"
    r"\b(?:hier|here) (?:hast|habt|hattest|you (?:have|wrote|used|forgot))\b",
    re.IGNORECASE,
)
_EVERYWHERE = regex(
    r"\b(?:everywhere|überall)\b|\bacross (?:the )?(?:projects|repos|repositories)\b|"
    r"\b(?:every|all|any|each|whichever|whatever|jede[mnrs]?|alle[nr]?|welche[mnrs]|sämtliche[nr]?) "
    rf"(?:of )?(?:(?:the|my|our|mein|unser)\w* )?{_PROJECT}s?\b",
    re.IGNORECASE,
)
LEAST_NAME = 3  # shorter names of projects are words of other meaning too


class LessonPlace(msgspec.Struct, frozen=True):
    """The project of a lesson, empty for none, and whether the lesson holds in that project only."""

    project: str = ""
    only: bool = False


def place_of(words: str, said_in: str, everywhere: bool, known: Iterable[str]) -> LessonPlace:
    """Return the place of a lesson: words that name a project or say "here" bind it; any other is labelled elsewhere
    unless it holds everywhere.
    """
    for project in sorted({said_in, *known} - {""}, key=len, reverse=True):
        if names(words, project, surely=project != said_in and tokens.is_one(f" {project}")):
            return LessonPlace(project, only=True)
    if not said_in:
        return LessonPlace()
    if says_here(words):
        return LessonPlace(said_in, only=True)
    return LessonPlace("" if everywhere or _EVERYWHERE.search(words) else said_in)


def says_here(words: str) -> bool:
    """Return whether words say that they hold in the place where they are said."""
    return any(
        _PLACE.search(sentence) or (_HERE.search(sentence) and not _NOT_PLACE.search(sentence))
        for sentence in sentences(words)
    )


def names(text: str, project: str, surely: bool = False) -> bool:
    """Return whether a text names a project as a place: "in keystone", "für das Projekt keystone".

    `surely`: it says that it is a project, or marks the name: an ordinary word ("in tests") may mean something else.
    """
    if len(project) < LEAST_NAME:
        return False
    spelt = r"[-_ ]".join(map(re.escape, project.split("-")))
    said = rf"(?:{_PROJECT} [`\"'*]*|(?:{_PROJECT} )?[`\"'*]+)" if surely else rf"(?:{_PROJECT} )?[`\"'*]*"
    place = (
        r"\b(?:in|for|at|within|on|inside|im|bei|für|auf|from|of) (?:the |das |der |dem |die )?"
        rf"{said}{spelt}\b(?![-_/.]\w)"
    )
    beside = rf"\b{spelt} (?:repo|repository|project|projekt|codebase)\b"
    # Not `regex`, which keeps patterns on disk: a name is not the program's.
    return bool(re.search(f"{place}|{beside}", text, re.IGNORECASE))
