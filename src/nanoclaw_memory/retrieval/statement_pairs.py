"""Relate two statements on one subject: another value, the same again, or the end of the older one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from nanoclaw_memory import tokens
from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.retrieval.date_words import lexeme
from nanoclaw_memory.retrieval.prepare import body_of
from nanoclaw_memory.retrieval.stated_parts import stated_in
from nanoclaw_memory.retrieval.value_changes import (
    NOW,
    UNCERTAIN,
    changes_in,
    holds_now,
    replaces,
    says_change,
    values_in,
)
from nanoclaw_memory.retrieval.value_kinds import (
    BARE,
    WHEN,
    has_the_same_measures,
    may_have_another_value,
    value_kinds,
)
from nanoclaw_memory.statements import features, restates, same_statement
from nanoclaw_memory.store.currency import EARLIER, SUPERSEDED, Overtaken
from nanoclaw_memory.store.passage_search import StoredPassage
from nanoclaw_memory.text import (
    GERMAN_STOP_WORDS,
    STOP_WORDS,
    language,
    sentences,
    stem,
    stems_in_any_language,
    words,
)
from nanoclaw_memory.types import FOREIGN
from nanoclaw_memory.workspace.paths import WORKING_MEMORY

FUNCTION_WORDS = STOP_WORDS | GERMAN_STOP_WORDS
_UNTELLING = FUNCTION_WORDS | NOW
_WRITER = regex(r"^[^\W\d_][^:\n]{0,40}: ", re.MULTILINE)  # "Anna: " before what she writes in a chat
_NO = r"(?:no+|nope|nah|nein|nee+|ne|nö+)"
# "No, …", "nein am 19.", "sorry but no. …", "Quatsch, …"; "no. 7" is a number, and "no thanks" denies nothing.
_DENIAL = regex(
    rf"(?:(?:sorry|hm+|oh|ach|äh|but|aber)[,.…!]*\s+)*"
    rf"(?:{_NO}(?!\.\s*\d)(?:[,.!:;–—-]+\s*|\s+(?={_NO}\b|(?:it|its|it's|that|he|she|they|we|at|on|in|the|to|from"
    r"|es|das|der|die|den|am|um|im|in|bei|seit|sie|er|wir)\b|\d))"
    r"|(?:quatsch|blödsinn|unsinn|irrtum|nonsense|rubbish|not any ?more|nicht mehr)[,.!:;–—-]+\s*)+(?=\S)",
    re.IGNORECASE,
)
LEADING = 2  # telling words at the start of a statement that name its subject
FEW_WORDS = 8  # content words of a message that only gives another value
_OPENING_CLAUSE = regex(
    r"[^\W\d_]+(?: [^\W\d_]+)?[,.!:;–-]\s"
)  # "Sorry, …", "Quatsch, …": one or two words before it
_PUTTING_RIGHT = frozenset(
    "wrong mistake typo mean meant make rather instead correct correction falsch meine meinte sondern statt vertan"
    " vertippt verwechselt verschrieben korrektur".split()
)
_ADDS = regex(
    r"[,.!:;–-]\s(?:and|und|plus)\b|\b(?:also|too|as well|auch|außerdem|zusätzlich)\b", re.IGNORECASE
)
_BE = frozenset("is are was were has have ist sind war hat haben est es son".split())
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


# ---- the subject of a statement ----


@bounded(4 * 1024 * 1024)
def subject_words(text: str) -> Mapping[str, bool]:
    """Return the words that may name the subject, and whether each is a name rather than a common word.

    A word is common if language models have a token for it.
    """
    german = language(text) == "german"
    return {word: not _is_usual(word, german) for word in telling_words(text)}


def telling_words(text: str) -> list[str]:
    """Return the words that may name the subject; values are left out: numbers, days and months."""
    plain = dict.fromkeys(word.replace("’", "'").removesuffix("'s") for word in words(text))
    return [
        word
        for word in plain
        if word not in _UNTELLING and not word.isdigit() and not lexeme(word.removesuffix("s")).kind
    ]


@bounded(4 * 1024 * 1024)
def _is_usual(word: str, german: bool) -> bool:
    forms = (word, word.removesuffix("s"), *((word.capitalize(),) if german else ()))
    return any(tokens.is_one(f" {form}") for form in forms)


# ---- two statements ----


def overtaken(older: StoredPassage, newer: StoredPassage, sure: float) -> Iterator[Overtaken]:
    """Yield how the newer of two statements supersedes the older; one that adds nothing supersedes nothing.

    What others say never replaces what the person believes.
    """
    if is_foreign(newer) > is_foreign(older):
        return
    before, after = body_of(older.passage), body_of(newer.passage)
    facts = older.passage.kind == newer.passage.kind == "fact"
    if facts and _key(older) != _key(newer):
        return  # another attribute does not affect it
    if facts and older.passage.expires:
        yield Overtaken(older.id, newer.id, SUPERSEDED, "another value of the same key", 1.0)
    elif value := _given_up(before, after):
        yield Overtaken(older.id, newer.id, SUPERSEDED, f"it says what became of {value}", 0.95)
    elif replaces(statement_of(newer), before):
        yield Overtaken(older.id, newer.id, SUPERSEDED, "it says that this changed", 0.95)
    elif not says_nothing_new(older, newer):
        yield Overtaken(older.id, newer.id, EARLIER, "the same subject", sure)


def statement_of(stored: StoredPassage) -> str:
    """Return the statement in a passage: of a message only what it states, without the writer's name in a shared
    chat.
    """
    text = body_of(stored.passage)
    if stored.passage.kind != "turn":
        return text
    return stated_in(text if stored.passage.private else _WRITER.sub("", text))


def states_of(newer: StoredPassage, older: StoredPassage, named: bool = False) -> bool:
    """Return whether a newer passage states something about the older one's subject; a request must share more than
    a name.
    """
    stated = statement_of(newer)
    if stated == body_of(newer.passage):
        return True
    own = set(subject_words(body_of(older.passage)))
    return not own.isdisjoint(subject_words(stated)) if stated else not named


def gives_another_value(older: StoredPassage, newer: StoredPassage) -> bool:
    """Return whether a message has another value of a kind in the older statement: a number or a day."""
    before, after = (features(body_of(one.passage)) for one in (older, newer))
    days, later_days = (_days(body_of(one.passage)) for one in (older, newer))
    return _differ(before.numbers, after.numbers) or _differ(days, later_days)


def corrects(message: str, answer: str) -> bool:
    """Return whether a message calls the answer before it wrong: plainly, with "no" to what asks nothing, or by
    denying what the answer contains ("dont use npm").
    """
    from nanoclaw_memory.lessons import corrections  # a cold hook may have none

    says_so, denies = _objection(message)
    return says_so or (not answer.rstrip().endswith("?") and (denies or corrections.rejects(message, answer)))


def says_what_is_right(message: str) -> bool:
    """Return whether a message that calls something wrong says what is right instead: "no, at eleven"."""
    from nanoclaw_memory.lessons.matching import content_stems

    return bool(value_kinds(message)) or len(content_stems(_DENIAL.sub("", message, count=1))) > 1


def only_gives_a_value(message: str, before: str) -> bool:
    """Return whether a short message has another value of a kind in the one before, calls it wrong or denies it,
    and names no subject of its own: "no, on the 15th", "sorry, wrong: 5 February".
    """
    stated = [word for word in words(message) if word not in FUNCTION_WORDS]
    if len(stated) > FEW_WORDS or message.rstrip().endswith("?"):
        return False
    kinds, told = value_kinds(before), value_kinds(message)
    known, later = ({value for own in one.values() for value in own} for one in (kinds, told))
    # "31." after another word is a plain number.
    alike = any(kind in (WHEN, BARE) or kind in kinds or kind.endswith("…") for kind in told)
    if not kinds or not alike or not later - known:
        return False
    first = _OPENING_CLAUSE.match(message)
    says_so, _ = _objection(message)
    if says_so or first is None or _DENIAL.match(message):
        return says_so or first is not None
    # A subject of its own is more than an opening word: "the parents' evening is on the 12th", "ok, gym on Tuesday".
    known_words = stems_in_any_language(telling_words(before))
    told_words = set(telling_words(message[first.end() :])) - _PUTTING_RIGHT
    own = any(known_words.isdisjoint(stems_in_any_language([word])) for word in told_words)
    return not (own or _ADDS.search(message) or set(words(message)) & _BE)


def calls_wrong(message: str) -> bool:
    """Return whether a message calls something wrong."""
    return _objection(message)[0]


@bounded(1024 * 1024)
def _objection(message: str) -> tuple[bool, bool]:
    """Return whether a message calls something wrong, and whether it states something after an initial "no"."""
    from nanoclaw_memory.lessons import corrections  # a cold hook may have none

    says_so = any(found.kind == "wrong" for found in corrections.find(message))
    denied = _DENIAL.match(message)
    # "No, thanks. I have to leave" says something about something else.
    first = next(iter(sentences(message[denied.end() :])), "") if denied else ""
    if first.endswith("?"):
        return says_so, False
    return says_so, bool(stated_in(first) or value_kinds(first) or any(subject_words(first).values()))


def changes_measure(older: str, newer: str) -> bool:
    """Return whether a statement that reports a change has another number of what an older one counts."""
    if not (says_change(newer) or _TO_NUMBER.search(newer)) or UNCERTAIN.search(newer):
        return False
    before = _measures(older)
    return any(unit in before and numbers - before[unit] for unit, numbers in _measures(newer).items())


@bounded(2 * 1024 * 1024)
def _measures(text: str) -> Mapping[str, AbstractSet[str]]:
    """Return the numbers in a text, by what they count."""
    found: dict[str, set[str]] = {}
    for number, unit in _MEASURE.findall(text):
        found.setdefault(stem(unit.casefold()), set()).add(number)
    return found


def may_change(older: StoredPassage, newer: StoredPassage) -> bool:
    """Return whether a statement that shares only a name with an older one may have a new value: a number, day or
    name.

    One that holds from now on qualifies too; one that ends something does not, as that was checked before.
    """
    text = statement_of(newer)
    gone = {one for ended in changes_in(text).ended for one in ended.stems}
    if not gone.isdisjoint(map(stem, _names(older))):
        return False
    return holds_now(text) or gives_another_value(older, newer) or bool(_names(newer) - _names(older))


def may_answer_for(older: StoredPassage, newer: StoredPassage) -> bool:
    """Return whether a statement on the same subject may be about the same attribute as an older one."""
    text = statement_of(newer) or body_of(newer.passage)
    return may_have_another_value(body_of(older.passage), text)


def only_mentions(older: StoredPassage, newer: StoredPassage) -> bool:
    """Return whether neither statement is about the shared name, and the newer reports no change of it."""
    text = statement_of(newer)
    telling = [list(map(stem, telling_words(one))) for one in (body_of(older.passage), text)]
    shared = set.intersection(*map(set, telling))
    led = any(not shared.isdisjoint(own[:LEADING]) for own in telling)
    return not (led or says_change(text) or changes_in(text).things)


def _names(stored: StoredPassage) -> set[str]:
    """Return the words that may be names as values: capitals inside a sentence, or words unknown to language models."""
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
    """Return whether a newer statement contains everything in an answer."""
    return set(words(body_of(answer.passage))) - FUNCTION_WORDS <= set(words(body_of(newer.passage)))


def says_nothing_new(older: StoredPassage, newer: StoredPassage) -> bool:
    """Return whether a statement repeats another one, or says less ("run the tests" after how they are run)."""
    if older.passage.speaker == "Agent":
        return answers_alike(older, newer)
    if older.passage.kind == "fact" and _has_its_value(older, newer):
        return True
    if has_the_same_measures(body_of(older.passage), body_of(newer.passage)):
        return True
    before, after = features(body_of(older.passage)), features(body_of(newer.passage))
    named = after.names - before.stems  # a name elsewhere in the sentence is another value
    led = _begin_otherwise(body_of(older.passage), body_of(newer.passage))  # "Ann owns it", "Bo owns it"
    return (same_statement(before, after) and not (named or led)) or restates(before, after)


def _begin_otherwise(one: str, other: str) -> bool:
    """Return whether each statement begins with a capitalised content word that the other does not contain."""
    own, others = (words(text) for text in (one, other))
    if (
        not (own and others and one[:1].isupper() and other[:1].isupper())
        or {own[0], others[0]} & FUNCTION_WORDS
    ):
        return False
    return stem(own[0]) not in map(stem, others) and stem(others[0]) not in map(stem, own)


def _has_its_value(fact: StoredPassage, newer: StoredPassage) -> bool:
    """Return whether a statement contains a fact's value and reports no change, as the line it was read from does."""
    value = set(words(fact.passage.text.partition(": ")[2]))
    text = statement_of(newer)
    return bool(value) and value <= set(words(text)) and not says_change(text)


def is_copy(stored: StoredPassage) -> bool:
    """Return whether a passage was copied from the original statement: a fact read from it, or working memory."""
    source = stored.passage.reference
    read = ".md:" in source or source.startswith(("exchanges/", "entries/"))
    return (stored.passage.kind == "fact" and read) or stored.path.startswith(WORKING_MEMORY)


def of_two_projects(one: StoredPassage, other: StoredPassage) -> bool:
    """Return whether two statements belong to different projects, which do not affect each other."""
    return len({one.passage.project, other.passage.project} - {""}) == 2


def _key(fact: StoredPassage) -> str:
    return fact.passage.text.partition(": ")[0].casefold()


def is_foreign(stored: StoredPassage) -> bool:
    """Return whether others said it."""
    passage = stored.passage
    return passage.origin in FOREIGN or (passage.kind in ("turn", "fact") and not passage.private)


def old_value_stems(text: str) -> frozenset[str]:
    """Return the stems of the values that a statement names as old: of Oslo in "moved from Oslo to Bergen"."""
    return frozenset(stem(word) for value in _old_values(text) for word in _value_words(value))


def gives_up(older: str, newer: str) -> bool:
    """Return whether a statement says what became of a value of the older one, or that it ended."""
    gone = changes_in(newer).ended
    return bool(_given_up(older, newer)) or any(named.stems <= values_in(older) for named in gone)


def _given_up(older: str, newer: str) -> str:
    """Return the value of the older statement that the newer one says was changed, or an empty text."""
    known = set(words(older))
    for value in _old_values(newer):
        found = _value_words(value)
        if found and known.issuperset(found):
            return value
    return ""


def _old_values(text: str) -> list[str]:
    return [] if UNCERTAIN.search(text) else [match["old"] for match in CHANGE_OF_VALUE.finditer(text)]


def _value_words(value: str) -> list[str]:
    return [word for word in words(value) if word not in FUNCTION_WORDS]
