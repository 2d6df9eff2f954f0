"""What a person says about keeping: that this is not to be stored, or that something is to be forgotten."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import STOP_WORDS, words
from nanoclaw_memory.types import Utterance

UNKEPT = "[off the record]"  # stands in the spool for what is not to be stored; it is no more kept than that
MAX_CHARS = 16_000

# Said of a conversation and of nothing else.
_CONFIDENTIAL = regex(
    r"\boff the record\b|"
    r"\bkeep (?:this|that|it|all of this) (?:strictly |just |all )?(?:to yourself|between (?:us|you and me))\b|"
    r"\b(?:stays?|remains?|just|strictly) between (?:us|you and me)\b(?! and\b)|"
    r"\b(?:bleib(?:t|en)|nur|streng) unter uns\b|\bunter uns gesagt\b|"
    r"\bbehalt(?:e|en sie)? (?:das|dies|es) (?:bitte )?für (?:dich|sich)\b",
    re.I,
)
# A clause that tells the agent not to keep something: what is meant must be all of its object, so that
# "don't store the token in git" and "don't save it as a draft" are none.
_BEGIN = r"(?P<before>^|[.!?:;,–—(\n]|\b(?:and|but|so|und|aber|also))[ \t]{0,8}"
_END = r"(?=[ \t]{0,8}(?:$|[.!?:;,–—)\n]|(?:please|ok(?:ay)?|anywhere|bitte|irgendwo|thanks|danke)\b))"
_PLEASE = r"(?P<please>please |bitte )?"
_NOT = r"(?:don['’]?t|do not|you (?:must|should|may) not) (?:ever )?"
_SAID = r"what i(?:['’]ve| have)? (?:just )?(?:said|told you)"
_TALK = rf"(?:this|that|our) (?:conversation|chat|talk|message|exchange)|{_SAID}"
_THIS = rf"(?:this|that|it|(?:any|all) of (?:this|that|it)|{_TALK})"
_MEMORY = r" (?:in|to|into) (?:your|the|any) (?:memory|notes)"
_UNREMEMBERED = regex(
    rf"{_BEGIN}{_PLEASE}{_NOT}(?:(?:remember|memori[sz]e) {_THIS}|"
    rf"(?:store|save|record|archive|keep|put|write) (?:(?:{_TALK})|{_THIS}{_MEMORY})){_END}|"
    rf"{_BEGIN.replace('before', 'davor')}(?:bitte )?(?:merke? dir (?:das|dies|es) (?:bitte )?nicht|"
    rf"(?:das|dies) (?:bitte )?nicht merken){_END}",
    re.I,
)
# The same words are said of files and values: they count where the message before them states something.
_UNSTORED = regex(
    rf"{_BEGIN}{_PLEASE}(?:{_NOT}(?:(?:store|save|record|archive) {_THIS}|(?:write|note) {_THIS} down)|"
    r"(?:speicher[en]?|notiere?|archiviere?) (?:sie )?(?:das|dies|es) (?P<bitte>bitte )?nicht(?: ab)?|"
    r"(?:(?:das|dies|es) )?(?P<bitte2>bitte )?nicht (?:ab|mit)?(?:speichern|notieren|aufschreiben|archivieren))"
    rf"{_END}",
    re.I,
)
_STATING = frozenset(
    "is are was were has have had will wants says said told ist sind war hat haben will".split()
)
_ASKING = frozenset("please do don't can could would will you let's just then now bitte".split())
_FORGET = regex(
    r"\b(?:please |bitte )(?:just )?(?:forget|vergiss) (?:that|this|it|all of (?:this|that)|das|es|dies)"
    rf"(?: again| wieder)?{_END}|"
    r"\b(?:forget|vergiss) (?:that|this|it|das|es|dies)(?: again| wieder)?,? (?:please|bitte)\b|"
    r"\bforget (?:that |what |everything )?i (?:just )?(?:said|told|mentioned|wrote)\b|"
    r"\b(?:forget|delete|erase|remove) (?:everything|all|what) (?:that )?you (?:know|remember|(?:have )?stored)\b|"
    r"\bvergiss,? (?:bitte )?(?:was ich|dass ich|alles,? was)\b|\b(?:lösche?|vergiss) alles\b",
    re.I,
)


def is_unkept(message: str) -> bool:
    """Whether the person says that the conversation itself is not to be stored."""
    return _in_own_words(message, _says_unkept)


def asks_to_forget(message: str) -> bool:
    """Whether the person wishes that something is forgotten, which only a command of theirs does."""
    return _in_own_words(message, lambda said: _FORGET.search(said) is not None)


def without_unkept(said: Iterable[Utterance]) -> Iterator[Utterance]:
    """The turns of a transcript without those that are not to be stored, and their answers."""
    unkept = False
    for turn in said:
        if turn.speaker == "User":
            unkept = is_unkept(turn.text)
        if not unkept:
            yield turn


def _in_own_words(message: str, says: Callable[[str], bool]) -> bool:
    """Whether the person says it themselves; hardly any message says it at all, and few are read for who wrote them."""
    shown = message[:MAX_CHARS]
    if not says(shown):
        return False
    from nanoclaw_memory.intake.own_words import own_words

    return says(own_words(shown))


def _says_unkept(said: str) -> bool:
    if _CONFIDENTIAL.search(said) or _UNREMEMBERED.search(said):
        return True
    return any(_is_of_talk(said, found) for found in _UNSTORED.finditer(said))


def _is_of_talk(said: str, found: re.Match[str]) -> bool:
    """Whether a clause is a sentence of its own, says please, or follows a statement rather than a task."""
    if found["please"] or found["bitte"] or found["bitte2"] or found["before"] in ("", ".", "!", "?", "\n"):
        return True
    before = words(re.split(r"[.!?\n]", said[: found.start()])[-1])[:2]
    stated = bool(before) and before[0] in STOP_WORDS and before[0] not in _ASKING
    return stated or (len(before) > 1 and before[1] in _STATING)
