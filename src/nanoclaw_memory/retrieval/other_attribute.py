"""Detect that a later statement shares a name with an older one, and says nothing about what a question asks of it."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from itertools import pairwise

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.graph.intents import concepts
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.retrieval.date_words import lexeme
from nanoclaw_memory.retrieval.statement_pairs import FUNCTION_WORDS, calls_wrong, gives_up, subject_words
from nanoclaw_memory.retrieval.value_changes import subjects_in
from nanoclaw_memory.retrieval.value_kinds import BARE, FORM, HOST, WHEN, have_a_kind_in_common, value_kinds
from nanoclaw_memory.statements import NUMBER_WORDS
from nanoclaw_memory.text import language, stem, stems_in_any_language, words

_WHEN = regex(r"\b(?:when|wann|what (?:time|day)|which day|wie ?viel uhr|welchem tag)\b", re.IGNORECASE)
_HOW_MUCH = regex(
    r"\b(?:how (?:many|much|long|often|high|old|big)|wie (?:viele?|lange|oft|hoch|alt|groß))\b", re.IGNORECASE
)
# A capital after a word that no name follows ("keine Laktose", "the API") begins no name.
_CAPITAL = regex(r"(?:(?P<before>[\w'’-]+)[ \t]+)?(?P<name>\b[^\W\d_a-zß-öø-ÿ][\w.+#-]*\w)")
_RETURNS = regex(
    r"\b(?:back to|as before|as it was|wie (?:vorher|zuvor|früher)|wieder auf|zurück auf)\b", re.IGNORECASE
)
_CODE = regex(r"\w[/_:.@]+\w|[/#@]\w")  # a path, channel or address
_BEFORE_NOUNS = frozenset(
    "ein eine einen einem einer eines der die das den dem des im am "
    "zum zur beim vom kein keine keinen keinem keiner mein meine meinen meinem meiner unser unsere unseren unserem "
    "unserer sein seine ihr ihre per pro jede jeder jedes".split()
)
_ADJECTIVE = regex(r"[a-zäöüß]{3,}(?:e|es|en|er|em)")


def is_of_another_attribute(older: str, newer: str, asked: str) -> bool:
    """Return whether a later statement certainly leaves valid what a question asks an older one for.

    The newer one lacks a word of the question that the older one has, and neither has a value of the same kind nor
    ends the older one's. They have nothing in common but words of the question, or nothing of the question.
    """
    before, after, wanted = _stems(older), _stems(newer), _stems(asked)
    shared = before & after
    if not shared or not _is_one_name(shared, older) or _returns(older, newer):
        return False
    lost = (wanted & before) - after
    if not any(_is_missing(one, newer) for one in lost):
        return False
    about_value = not shared <= wanted
    if about_value and (after & wanted or not _is_subject(shared - wanted, older)):
        return False
    return not _may_have_its_value(older, newer, asked, about_value)


def is_typed(older: str, newer: str) -> bool:
    """Return whether one of two statements has a number, a day or another value of a known kind."""
    return bool(value_kinds(older) or value_kinds(newer))


def _returns(older: str, newer: str) -> bool:
    """Return whether a statement ends an older value, calls it wrong, or says that it is as it was before."""
    return gives_up(older, newer) or calls_wrong(newer) or bool(_RETURNS.search(newer))


def _may_have_its_value(older: str, newer: str, asked: str, about_value: bool) -> bool:
    """Return whether a statement has a value of the kind that is asked for, or else of one in the older statement.

    One that is about the older one's value ("Dario" in "who is our accountant?") may name another instead of it.
    """
    before, after = value_kinds(older).keys(), value_kinds(newer).keys()
    counts, others = (bool(kinds - {WHEN, HOST}) for kinds in (before, after))
    if WHEN in before and BARE in after and not _only_counts(newer):
        return True  # "every Monday", "on the first of the month"
    if _WHEN.search(asked) and (WHEN in before or counts):
        return WHEN in after or (BARE in after and not _only_counts(newer))
    if _HOW_MUCH.search(asked) and (WHEN in before or counts):
        return others or WHEN in after
    if have_a_kind_in_common(before, after) or (counts and others):
        return True
    if _CODE.search(older) and _CODE.search(newer):
        return True
    new, old = _names(newer) - _plain_stems(older), _names(older) - _plain_stems(newer)
    return bool(new) and (about_value or bool(old))


def _only_counts(text: str) -> bool:
    """Return whether every number in a text says how many there are of a thing: "two forklifts"."""
    own = words(text)
    after = [
        own[place + 1 : place + 2] for place, word in enumerate(own) if word in NUMBER_WORDS or word.isdigit()
    ]
    return all(_is_thing(word) for following in after for word in following or [""])


def _is_thing(word: str) -> bool:
    return word not in FUNCTION_WORDS | {""} and not lexeme(word.removesuffix("s")).kind


def _is_subject(name: AbstractSet[str], text: str) -> bool:
    """Return whether a statement begins with a name: "Dario is our accountant"."""
    return any(not named.stems.isdisjoint(name) for named in subjects_in(text)[:1])


def _is_one_name(shared: AbstractSet[str], text: str) -> bool:
    """Return whether these stems belong to words that follow one another in a text: "the Halden warehouse"."""
    places = [
        place
        for place, word in enumerate(words(text))
        if not shared.isdisjoint(stems_in_any_language([word]))
    ]
    own = words(text)
    runs: list[list[str]] = []
    for place in places:
        if place - 1 in places:
            runs[-1].append(own[place])
        else:
            runs.append([own[place]])
    return any(shared <= stems_in_any_language(run) for run in runs)


def _is_missing(one: str, text: str) -> bool:
    """Return whether a text contains neither a form of a word nor a synonym."""
    own = _stems(text)
    if len(one) >= FORM and any(word[:FORM] == one[:FORM] for word in own):
        return False
    known = concepts()
    means = known.get(one, frozenset[int]())
    return all(means.isdisjoint(known.get(word, ())) for word in own)


@bounded(2 * 1024 * 1024)
def _names(text: str) -> frozenset[str]:
    """Return the words that may be names of somebody or something, as stems."""
    common, capital, german = set[str](), set[str](), language(text) == "german"
    for match in _CAPITAL.finditer(text):
        name, before = match["name"].casefold(), match["before"] or ""
        if lexeme(name.removesuffix("s")).kind or (german and _precedes_noun(before)):
            common.add(name)
        elif before:
            capital.add(name)
    own = words(text)
    counted = {word for before, word in pairwise(own) if before.isdigit() or before in NUMBER_WORDS}
    unusual = {word for word, is_name in subject_words(text).items() if is_name}
    if german:  # no language model has a token for most German words
        unusual &= {match["name"].casefold() for match in _CAPITAL.finditer(text)}
    return frozenset(map(stem, capital | (unusual - common - counted)))


def _plain_stems(text: str) -> frozenset[str]:
    return frozenset(map(stem, words(text)))


def _precedes_noun(word: str) -> bool:
    """Return whether a German word precedes nouns rather than names."""
    return (
        word.casefold() in _BEFORE_NOUNS | NUMBER_WORDS.keys()
        or word.isdigit()
        or bool(_ADJECTIVE.fullmatch(word))
    )


@bounded(2 * 1024 * 1024)
def _stems(text: str) -> frozenset[str]:
    return stems_in_any_language(list(subject_words(text)))
