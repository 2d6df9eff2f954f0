"""Detect from closed word classes what a statement assigns a value to, and what a later one changes or ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from nanoclaw_memory import tokens
from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.retrieval.date_words import lexeme
from nanoclaw_memory.retrieval.stated_parts import stated_in
from nanoclaw_memory.text import CHANGE_WORDS, GERMAN_STOP_WORDS, STOP_WORDS, language, stem, words

MOST_WORDS = 5  # words of a name for a thing
SHORT = 12  # words of a message that continues the subject of a question
VALUE_WITHIN = 3  # telling words and numbers after the subject in which the value is looked for
_CLAUSE = regex(
    r"[,;:!?()]+\s*|(?<!\bDr)(?<!\bMr)(?<!\bMrs)(?<!\bProf)\.\s+|\s[–—-]\s"
    r"|\s+(?=(?:and|but|because|so|und|aber|weil|denn)\s)",
    re.IGNORECASE,
)
_TOKEN = regex(r"[^\W_]+(?:[-'’.][^\W_]+)*['’]?")
UNCERTAIN = regex(
    r"\b(?:if|might|(?-i:may)|could|would|should|maybe|perhaps|wants?|thinking|consider\w*|suggest\w*|propos\w*|falls|wenn|ob"
    r"|vielleicht|könnten?|würden?|wäre\w*|sollten?|möchte\w*|überleg\w*)\b|\?",
    re.IGNORECASE,
)
# Verbs whose subject or object has ended.
_ENDED = frozenset(
    "quit left leaves leaving retired resigned died closed cancelled canceled dropped sold ditched abandoned scrapped"
    " replaced stopped gekündigt aufgehört verkauft verstorben abgeschafft ersetzt verlassen".split()
)
_LEFT = frozenset("quit left leaves leaving retired resigned gekündigt aufgehört verlassen".split())
_NO_MORE = regex(
    r"\b(?:instead of|rather than|no longer|away from|(?:mov\w+|came|come|got|went) off|goodbye|back from|statt"
    r"|anstatt|anstelle von|nicht mehr)\s+",
    re.IGNORECASE,
)
_NEW = frozenset("new neu neue neuer neues neuen neuem".split())
NOW = frozenset("now jetzt nun since seit ab inzwischen neuerdings künftig".split())
_HAVE = frozenset("has have had got hat habe haben hatte".split())
_NEXT = frozenset("now next today tomorrow this".split())  # follows "from"
_MINE = frozenset("my our mein meine meinen meinem meiner unser unsere unseren unserem unserer unsre".split())
_OF = frozenset("of for at von vom für bei beim des".split())  # between the words of one name
_ARTICLES = frozenset("the a an der die das den dem ein eine einen einem einer".split())
_PRONOUNS = frozenset("i we he she they you it there ich wir er sie es du man".split())
_TITLES = frozenset("mr mrs ms dr prof frau herr herrn".split())
_VERBS = frozenset(
    "is are was were am has have had will be been got gets get goes go going went it's i'm i've we're we've she's he's"
    " they're that's ist sind war wird hat haben hatte habe hab heißt bin".split()
)
_FUNCTION_WORDS = (STOP_WORDS | GERMAN_STOP_WORDS | _VERBS | _TITLES | _MINE | NOW) - _NEW


class Named(msgspec.Struct, frozen=True):
    """The words that name a thing, as stems; `head` is the name without its owner."""

    stems: frozenset[str]
    head: frozenset[str]
    mine: bool = False  # the speaker's own: "our dentist"
    is_name: bool = False  # only a proper name, about which much may be known


class Change(msgspec.Struct, frozen=True):
    """What a statement changes and what it ends."""

    things: tuple[Named, ...] = ()
    ended: tuple[Named, ...] = ()
    whose: tuple[
        Named, ...
    ] = ()  # subjects of a change whose attribute is not named: "Paul has grown, 36 now"


def supersedes(newer: str, older: str, other_value: Callable[[], bool]) -> bool:
    """Return whether a newer statement changes the subject of an older one, or ends its value.

    If the older statement only mentions the subject, the newer one must have another value of the same kind.
    """
    change = changes_in(newer)
    if change == Change():
        return False
    known = _known(older)
    subjects = subjects_in(older)
    for named in change.things:
        about = [subject for subject in subjects if not named.head.isdisjoint(subject.head)]
        # Somebody who moved still teaches the cello; "my sister Antje lives in Kiel" is about what changed.
        if named.stems <= known and any(subject.mine or not named.is_name for subject in about):
            return True
    value = values_in(older)
    if any(named.stems <= value for named in change.ended):
        return True
    return any(named.stems <= known for named in change.whose) and other_value()


def replaces(newer: str, older: str) -> bool:
    """Return whether a newer statement certainly changes something of the speaker's own, by its very name."""
    own = {named.stems for named in subjects_in(older) if named.mine}
    changed = [named.stems for named in changes_in(newer).things if named.stems in own]
    # "Lena has piano on Mondays now" changes a lesson, not what else is known of "our Lena".
    led = {named.stems for named in subjects_in(newer) if not named.mine}
    if any(one not in led for one in changed):
        return True
    gone = any(named.stems <= values_in(older) for named in changes_in(newer).ended)
    return bool(changed) and (gone or _has_verb_of_change(newer))


def _has_verb_of_change(text: str) -> bool:
    """Return whether a statement has a verb of change, or "new"; with "now" alone it may be any verb."""
    folded = [word.casefold() for word in _TOKEN.findall(text)]
    goes = any(_goes_to(folded, place) for place in range(len(folded)))
    return goes or not (CHANGE_WORDS | _NEW).isdisjoint(folded)


def still_names(newer: str, value: str) -> bool:
    """Return whether a statement contains a name as value and does not end it: "Antje moved"."""
    if any(character.isdigit() for character in value):
        return False
    gone = any(named.stems <= _stems(_TOKEN.findall(value)) for named in changes_in(newer).ended)
    return not gone and set(words(value)) <= set(words(newer))


@bounded(2 * 1024 * 1024)
def changes_in(text: str) -> Change:
    """Return what a statement changes or ends; possible changes do not count."""
    if UNCERTAIN.search(text):
        return Change()
    things, ended, whose = list[Named](), list[Named](), list[Named]()
    german = language(text) == "german"
    before_it = Named(frozenset(), frozenset())
    for clause in _clauses(text):
        folded = [word.casefold() for word in clause]
        subject = _leading(clause, german)[0]
        for place, word in enumerate(folded):
            before, after = clause[:place], clause[place + 1 :]
            if word in _NEW:
                things.append(_following(after, german))
            if word in CHANGE_WORDS:
                things += [_following(after, german), _plain(before, german)]
            if word in _ENDED:
                gone = _plain(before, german)
                # Whoever left something is gone, and what they left goes on without them.
                ended += [gone] if word in _LEFT and gone.head else [_following(after, german), gone]
            if _is_now(folded, place) or _goes_to(folded, place):
                if _HAVE.isdisjoint(folded[max(place - 1, 0) : place + 2]):
                    things.append(subject)  # who now has a lesson on Thursdays has not changed
                whose.append(subject if subject.head else before_it)
        before_it = subject if subject.head else before_it
    ended += [_following(_TOKEN.findall(text[match.end() :]), german) for match in _NO_MORE.finditer(text)]
    return Change(*(tuple(named for named in found if named.head) for found in (things, ended, whose)))


@bounded(2 * 1024 * 1024)
def subjects_in(text: str) -> tuple[Named, ...]:
    """Return the subjects to which the clauses of a statement assign values."""
    german = language(text) == "german"
    found = (_leading(clause, german)[0] for clause in _clauses(text))
    return tuple(named for named in found if named.head)


@bounded(2 * 1024 * 1024)
def values_in(text: str) -> frozenset[str]:
    """Return the stems among which the values of a statement are."""
    german = language(text) == "german"
    found = set[str]()
    for clause in _clauses(text):
        rest = clause[_leading(clause, german)[1] :]
        found |= _stems([word for word in rest if word.casefold() not in _FUNCTION_WORDS][:VALUE_WITHIN])
    return frozenset(found)


def continues_question(message: str) -> bool:
    """Return whether a message reports a change without naming its subject, as after a question: "raised it to 90"."""
    stated = stated_in(message) if len(message.split()) <= SHORT else ""
    return bool(stated) and says_change(stated) and not subjects_in(stated)


def says_change(text: str) -> bool:
    """Return whether a statement reports a change, an end, or something that holds from a certain time."""
    folded = [word.casefold() for word in _TOKEN.findall(text)]
    gone = not _ENDED.isdisjoint(folded) or bool(_NO_MORE.search(text))
    goes = any(_goes_to(folded, place) for place in range(len(folded)))
    return holds_now(text) or ((gone or goes) and not UNCERTAIN.search(text))


def reports_change(text: str) -> bool:
    """Return whether a statement reports a change or an end in words of change; "now" and "since" are not enough."""
    folded = [word.casefold() for word in _TOKEN.findall(text)]
    goes = any(
        _goes_to(folded, place) or folded[place : place + 2] == ["back", "to"] for place in range(len(folded))
    )
    told = goes or not (CHANGE_WORDS | _ENDED).isdisjoint(folded) or bool(_NO_MORE.search(text))
    return told and not UNCERTAIN.search(text)


def holds_now(text: str) -> bool:
    """Return whether a statement reports a change, or something that holds from a certain time."""
    folded = [word.casefold() for word in _TOKEN.findall(text)]
    found = any(word in CHANGE_WORDS or _is_now(folded, place) for place, word in enumerate(folded))
    return found and not UNCERTAIN.search(text)


def changed_stems(text: str) -> frozenset[str]:
    """Return the stems of what a statement changes or ends."""
    change = changes_in(text)
    return frozenset[str]().union(*(named.stems for named in change.things + change.ended + change.whose))


def assigned_stems(text: str) -> frozenset[str]:
    """Return the stems of a statement's subjects and values."""
    return values_in(text).union(*(named.stems for named in subjects_in(text)))


@bounded(2 * 1024 * 1024)
def _known(text: str) -> frozenset[str]:
    return _stems(_TOKEN.findall(text))


def _clauses(text: str) -> list[list[str]]:
    return [found for part in _CLAUSE.split(text) if (found := _TOKEN.findall(part))]


def _is_now(folded: Sequence[str], place: int) -> bool:
    """Return whether a word marks a beginning or return: "seit", "from April", "back to tea"."""
    word, following = folded[place], folded[place + 1] if place + 1 < len(folded) else ""
    if word == "from":
        return following in _NEXT or bool(lexeme(following.removesuffix("s")).kind)
    return word in NOW or (word == "back" and following == "to")


def _goes_to(folded: Sequence[str], place: int) -> bool:
    """Return whether something goes "up to 90"."""
    return folded[place] in ("up", "down") and folded[place + 1 : place + 2] == ["to"]


def _leading(clause: Sequence[str], german: bool) -> tuple[Named, int]:
    """Return the subject at the beginning of a clause, and where it ends."""
    own, mine, place = list[str](), False, 0
    for place, word in enumerate(clause):  # noqa: B007 (where it ended is told)
        low = word.casefold()
        if not own and low in _MINE:
            mine = True
        elif (
            low in _VERBS
            or low in CHANGE_WORDS
            or low in _ENDED
            or low[0].isdigit()
            or len(own) == MOST_WORDS
        ):
            break
        elif low in _FUNCTION_WORDS:
            if low in _PRONOUNS or (own and low not in _OF | _TITLES | _ARTICLES):
                break
        elif german and own and word[0].islower():
            break  # the verb: only nouns are capitalised
        else:
            own.append(word)
    else:
        place = len(clause)
    return _named(own, mine, german), place


def _following(clause: Sequence[str], german: bool) -> Named:
    """Return what the words after a verb of change name, up to the end of the name."""
    own, mine = list[str](), False
    for word in clause:
        low = word.casefold()
        if not own and low in _MINE:
            mine = True
        elif low in _FUNCTION_WORDS or low in _NEXT or low[0].isdigit():
            if own or low not in _ARTICLES | _TITLES:
                break
        elif (german and own and word[0].islower()) or len(own) == MOST_WORDS or lexeme(low).kind:
            break
        else:
            own.append(word)
    return _named(own, mine, german)


def _plain(clause: Sequence[str], german: bool) -> Named:
    """Return what the words before a verb of change name, without its auxiliaries."""
    own = [word for word in clause if word.casefold() not in _FUNCTION_WORDS]
    return _named(own, any(word.casefold() in _MINE for word in clause), german)


def _named(own: Sequence[str], mine: bool, german: bool) -> Named:
    owners = [place for place, word in enumerate(own) if word.replace("’", "'").endswith(("'s", "s'"))]
    head = own[owners[-1] + 1 :] if owners else own
    # German nouns are capitalised, and no language model has a token for a compound.
    is_name = not german and not any(tokens.is_one(f" {word.casefold()}") for word in own)
    return Named(_stems(own), _stems(head), mine, is_name and not owners)


def _stems(found: Sequence[str]) -> frozenset[str]:
    """Return the stems of content words that are no numbers or days; one stemmer, because notes reveal no language."""
    folded = (word.casefold().replace("’", "'").removesuffix("'").removesuffix("'s") for word in found)
    return frozenset(
        stem(word)
        for word in folded
        if word and word not in _FUNCTION_WORDS and not word[0].isdigit() and not lexeme(word).kind
    )
