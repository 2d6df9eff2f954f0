"""How two statements on one subject stand to each other: another value, the same again, one that gives the other up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from nanoclaw_memory import tokens
from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.retrieval.changing import (
    UNCERTAIN,
    changes_in,
    holds_now,
    replaces,
    says_change,
)
from nanoclaw_memory.retrieval.date_words import lexeme
from nanoclaw_memory.retrieval.prepare import body_of
from nanoclaw_memory.retrieval.stating import stated_in
from nanoclaw_memory.statements import features, restates, same_statement
from nanoclaw_memory.store.currency import EARLIER, SUPERSEDED, Overtaken
from nanoclaw_memory.store.passage_search import StoredPassage
from nanoclaw_memory.text import GERMAN_STOP_WORDS, STOP_WORDS, language, sentences, stem, words
from nanoclaw_memory.types import FOREIGN
from nanoclaw_memory.workspace.paths import WORKING_MEMORY

FUNCTION_WORDS = STOP_WORDS | GERMAN_STOP_WORDS
_WRITER = regex(r"^[^\W\d_][^:\n]{0,40}: ", re.MULTILINE)  # "Anna: " before what she writes in a chat
_DENIAL = regex(r"(?:no|nope|nah|nein|nee|nö|not any ?more|nicht mehr)[,.!:]\s+(?!\d)", re.IGNORECASE)
LEADING = 2  # telling words of a statement among which is what it is about
_MEASURE = regex(r"(\d+(?:[.,:]\d+)*)\s?([^\W\d_]+|[€$%])")
_TO_NUMBER = regex(r"(?<!\d )\b(?:to|auf)\s+\d", re.IGNORECASE)
# Plain words of change, followed by the old value: "moved from Oslo to Bergen".
CHANGE_OF_VALUE = regex(
    r"\b(?:moved?|moving|switch\w*|chang\w+|migrat\w+|cut over|rais\w+|lower\w+|went (?:up|down)|increas\w+|reduc\w+"
    r"|upgrad\w+|downgrad\w+|exten\w+|renam\w+|transfer\w+|shift\w+|postpon\w+|convert\w+|umge\w+|gewechselt|geändert"
    r"|erhöht|gesenkt|verlängert|verschoben)\b[^.;!?]{0,60}?\b(?:from|von|vom)\s+(?P<old>[^.;!?]{1,40}?)\s+"
    r"(?:to|auf|zu|zum|zur|nach)\s",
    re.IGNORECASE,
)


# ---- what a statement is about ----


@bounded(4 * 1024 * 1024)
def subject_words(text: str) -> Mapping[str, bool]:
    """The words that may tell what a statement is about, and whether each is a name rather than a usual word.

    A word is usual when language models have a token for it.
    """
    german = language(text) == "german"
    return {word: not _is_usual(word, german) for word in telling_words(text)}


def telling_words(text: str) -> list[str]:
    """The words that may tell what a statement is about; values are left out: numbers, days and months."""
    plain = dict.fromkeys(word.replace("’", "'").removesuffix("'s") for word in words(text))
    return [
        word
        for word in plain
        if word not in FUNCTION_WORDS and not word.isdigit() and not lexeme(word.removesuffix("s")).kind
    ]


@bounded(4 * 1024 * 1024)
def _is_usual(word: str, german: bool) -> bool:
    forms = (word, word.removesuffix("s"), *((word.capitalize(),) if german else ()))
    return any(tokens.is_one(f" {form}") for form in forms)


# ---- two statements ----


def overtaken(older: StoredPassage, newer: StoredPassage, sure: float) -> Iterator[Overtaken]:
    """How two statements on one subject stand to each other; one that says nothing new overtakes nothing.

    What others say never takes the place of what the person believes.
    """
    if is_foreign(newer) > is_foreign(older):
        return
    before, after = body_of(older.passage), body_of(newer.passage)
    facts = older.passage.kind == newer.passage.kind == "fact"
    if facts and _key(older) != _key(newer):
        return  # another attribute says nothing about it
    if facts and older.passage.expires:
        yield Overtaken(older.id, newer.id, SUPERSEDED, "another value of the same key", 1.0)
    elif value := _given_up(before, after):
        yield Overtaken(older.id, newer.id, SUPERSEDED, f"it says what became of {value}", 0.95)
    elif replaces(statement_of(newer), before):
        yield Overtaken(older.id, newer.id, SUPERSEDED, "it says that this changed", 0.95)
    elif not says_nothing_new(older, newer):
        yield Overtaken(older.id, newer.id, EARLIER, "the same subject", sure)


def statement_of(stored: StoredPassage) -> str:
    """What a statement says: of a message what it states, without who wrote it in a shared chat."""
    text = body_of(stored.passage)
    if stored.passage.kind != "turn":
        return text
    return stated_in(text if stored.passage.private else _WRITER.sub("", text))


def states_of(newer: StoredPassage, older: StoredPassage, named: bool = False) -> bool:
    """Whether what a newer passage states is about what the older one is; a request has to share more than a name."""
    stated = statement_of(newer)
    if stated == body_of(newer.passage):
        return True
    own = set(subject_words(body_of(older.passage)))
    return not own.isdisjoint(subject_words(stated)) if stated else not named


def gives_another_value(older: StoredPassage, newer: StoredPassage) -> bool:
    """Whether a message has another value of a kind that the older statement has: a number or a day."""
    before, after = (features(body_of(one.passage)) for one in (older, newer))
    days, later_days = (_days(body_of(one.passage)) for one in (older, newer))
    return _differ(before.numbers, after.numbers) or _differ(days, later_days)


def corrects(message: str, answer: str) -> bool:
    """Whether a person says that the answer before is wrong: in plain words, or with a "no" to what asks nothing."""
    from nanoclaw_memory.lessons import corrections  # a cold hook may have none

    if any(found.kind == "wrong" for found in corrections.find(message)):
        return True
    denied = _DENIAL.match(message)
    if denied is None or answer.rstrip().endswith("?"):
        return False
    # "No, thanks. I have to leave" says something about something else.
    first = next(iter(sentences(message[denied.end() :])), "")
    return bool(stated_in(first))


def changes_measure(older: str, newer: str) -> bool:
    """Whether a statement that says that something changed has another number of what an older one counts."""
    if not (says_change(newer) or _TO_NUMBER.search(newer)) or UNCERTAIN.search(newer):
        return False
    before = _measures(older)
    return any(unit in before and numbers - before[unit] for unit, numbers in _measures(newer).items())


@bounded(2 * 1024 * 1024)
def _measures(text: str) -> Mapping[str, AbstractSet[str]]:
    """The numbers of a text, by what they count."""
    found: dict[str, set[str]] = {}
    for number, unit in _MEASURE.findall(text):
        found.setdefault(stem(unit.casefold()), set()).add(number)
    return found


def may_change(older: StoredPassage, newer: StoredPassage) -> bool:
    """Whether a statement that shares only a name with an older one may give another value: a number, a day, a name.

    Or it says that it holds now; but what it says is gone is no value of the older one, which was looked at before.
    """
    text = statement_of(newer)
    gone = {one for ended in changes_in(text).ended for one in ended.stems}
    if not gone.isdisjoint(map(stem, _names(older))):
        return False
    return holds_now(text) or gives_another_value(older, newer) or bool(_names(newer) - _names(older))


def only_mentions(older: StoredPassage, newer: StoredPassage) -> bool:
    """Whether neither of two statements is about the name in both, and the newer says of nothing that it changed."""
    text = statement_of(newer)
    telling = [list(map(stem, telling_words(one))) for one in (body_of(older.passage), text)]
    shared = set.intersection(*map(set, telling))
    led = any(not shared.isdisjoint(own[:LEADING]) for own in telling)
    return not (led or says_change(text) or changes_in(text).things)


def _names(stored: StoredPassage) -> set[str]:
    """The words that may be values of names: capitals inside a sentence, or words that language models do not know."""
    text = body_of(stored.passage)
    unusual = {word for word, is_name in subject_words(text).items() if is_name}
    return unusual.union(features(text).names)


def _differ(before: AbstractSet[str], after: AbstractSet[str]) -> bool:
    return bool(before) and bool(after - before)


@bounded(2 * 1024 * 1024)
def _days(text: str) -> frozenset[str]:
    return frozenset(
        found.name
        for word in words(text)
        if (found := lexeme(word.removesuffix("s"))).kind in ("weekday", "month")
    )


def share_a_word(one: StoredPassage, other: StoredPassage) -> bool:
    return not set(subject_words(body_of(one.passage))).isdisjoint(subject_words(body_of(other.passage)))


def answers_alike(answer: StoredPassage, newer: StoredPassage) -> bool:
    """Whether all that an answer tells stands in a newer statement too."""
    return set(words(body_of(answer.passage))) - FUNCTION_WORDS <= set(words(body_of(newer.passage)))


def says_nothing_new(older: StoredPassage, newer: StoredPassage) -> bool:
    """Whether a statement says the same again, or less ("run the tests" after how they are run)."""
    if older.passage.speaker == "Agent":
        return answers_alike(older, newer)
    before, after = features(body_of(older.passage)), features(body_of(newer.passage))
    named = after.names - before.stems  # a name in another place of the sentence is another value
    return (same_statement(before, after) and not named) or restates(before, after)


def is_copy(stored: StoredPassage) -> bool:
    """Whether it was copied from where the statement stands itself: a fact that was read there, or working memory."""
    source = stored.passage.reference
    read = ".md:" in source or source.startswith(("exchanges/", "entries/"))
    return (stored.passage.kind == "fact" and read) or stored.path.startswith(WORKING_MEMORY)


def of_two_projects(one: StoredPassage, other: StoredPassage) -> bool:
    """Whether statements belong to two projects, which do not change each other."""
    return len({one.passage.project, other.passage.project} - {""}) == 2


def _key(fact: StoredPassage) -> str:
    return fact.passage.text.partition(": ")[0].casefold()


def is_foreign(stored: StoredPassage) -> bool:
    """Whether others said it."""
    passage = stored.passage
    return passage.origin in FOREIGN or (passage.kind in ("turn", "fact") and not passage.private)


def _given_up(older: str, newer: str) -> str:
    """The value of the older statement that the newer one says was changed; empty when it says no such thing."""
    if UNCERTAIN.search(newer):
        return ""
    known = set(words(older))
    for match in CHANGE_OF_VALUE.finditer(newer):
        value = [word for word in words(match["old"]) if word not in FUNCTION_WORDS]
        if value and known.issuperset(value):
            return match["old"]
    return ""
