"""Find claims of memory in an answer, and check them against exchanges and logs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta

import msgspec

from nanoclaw_memory import statements
from nanoclaw_memory.clock import moment_of
from nanoclaw_memory.lessons.matching import telling
from nanoclaw_memory.text import language, sentences, stem, words
from nanoclaw_memory.types import Exchange

ENOUGH = 0.6  # share of a claim's words that one text must contain to support it
MOST_CLAIMS = 5
_MEMORY = re.compile(
    r"\b(?:(?:as|like) (?:you|we) (?:told|said|mentioned|asked|explained|discussed|agreed|decided)(?: me)?(?: earlier|"
    r" before| already| yesterday| last \w+)*|you (?:told me|mentioned|once said)(?: earlier| before| that)*|"
    r"(?:i remember|i recall)(?: that| when| you)*|(?:last time|earlier) (?:you|we) \w+|"
    r"wie (?:du|wir) (?:gesagt|erwähnt|besprochen|vereinbart|erzählt)(?: hast| haben| hatten)?|"
    r"(?:according to|as per|per|in) (?:your|our|my) (?:notes?|logs?|records?|conversations?)|"
    r"(?:laut|gemäß|in) (?:deinen|unseren|meinen|unserem) (?:notizen|aufzeichnungen|gespräch\w*)|"
    r"(?:as|like|what|which) (?:you|we) (?:prefer(?:red)?|wanted|noticed|asked)(?: for)?|"
    r"(?:what|which) (?:you|we) (?:decided|agreed|chose)|so haben wir es(?: ja)?(?: auch)?|"
    r"du (?:hast|hattest) (?:mir )?(?:gesagt|erzählt|erwähnt),?(?: dass)?|ich erinnere mich(?:,? dass)?)\b",
    re.IGNORECASE,
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TAGE = ("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag")
_WHEN = re.compile(
    r"\b(?:(?P<yesterday>yesterday|gestern)|(?P<week>last week|letzte woche)|(?P<month>last month|letzten monat)|"
    rf"(?:last|on|letzten|am) (?P<day>{'|'.join((*_WEEKDAYS, *_TAGE))})|(?P<ago>\d{{1,3}}) (?P<unit>days|weeks) ago|"
    r"vor (?P<vor>\d{1,3}) (?P<einheit>tagen|wochen)|(?P<iso>\d{4}-\d{2}-\d{2}))\b",
    re.IGNORECASE,
)
_PAST = re.compile(r"\b(?:we|you|i|wir|du|ich)\b", re.IGNORECASE)


_VALUE = re.compile(
    r"(?P<before>[^\W\d_]{3,})?\W{0,2}(?P<value>\d+(?:[.,:/]\d+)*)\W{0,2}(?P<after>[^\W\d_]{2,})?"
)
_PARTS = (
    ("morning", "morgen"), ("noon", "mittag"), ("afternoon", "nachmittag"), ("evening", "abend"), ("night", "nacht"),
)  # fmt: skip
_CLOSED: dict[str, dict[str, int]] = {
    "a day of the week": {name: day for names in (_WEEKDAYS, _TAGE) for day, name in enumerate(names)},
    "a part of the day": {name: part for part, names in enumerate(_PARTS) for name in names},
}
_DECIDED = re.compile(
    r"\b(?:decided|chose|chosen|agreed|settled|picked|went with|entschieden|beschlossen|gewählt|geeinigt)\b",
    re.I,
)


class Claim(msgspec.Struct, frozen=True):
    """A statement of an answer that something was said or happened, and between which days if it says so."""

    text: str
    words: tuple[str, ...]
    first: date | None = None
    last: date | None = None


def memories(answer: str) -> Iterator[Claim]:
    """Claims to remember a statement of the user."""
    found = (Claim(text, words) for _, text, words in _matches(answer, _MEMORY))
    return itertools.islice(found, MOST_CLAIMS)


def dated(answer: str, today: date) -> Iterator[Claim]:
    """Claims that something was said or done on a certain day."""
    found = (
        Claim(text, words, *days)
        for match, text, words in _matches(answer, _WHEN)
        if _PAST.search(text) and (days := _days(match, today)) and days[1] <= today
    )
    return itertools.islice(found, MOST_CLAIMS)


def _matches(answer: str, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], str, tuple[str, ...]]]:
    """The sentences that match: the match, the sentence, and its content stems outside the match."""
    for sentence in sentences(answer[:8_000]):
        match = pattern.search(sentence)
        rest = sentence[: match.start()] + " " + sentence[match.end() :] if match else ""
        words = telling(rest, language(sentence.rstrip(".!?")[:200]))
        if match and len(words) >= 2:
            yield match, sentence.rstrip(".!?")[:200], words


def supported(claim: Claim, texts: Sequence[str]) -> bool:
    """Whether one of the texts contains enough of the claim's words."""
    return any(_share(claim, text) >= ENOUGH for text in texts)


def conflicts(answer: str, user: str, recorded: Callable[[str], Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Sentences that state another number, date or decision than the record has on the same subject, with that record.

    A value that the record or the person has anywhere near is no conflict: several may hold.
    """
    stated = (one for one in sentences(answer[:8_000]) if not one.endswith("?"))
    stating = (one for one in stated if _kinds(one) or _DECIDED.search(one))
    for sentence in itertools.islice(stating, MOST_CLAIMS):
        known, said = recorded(sentence), _kinds(sentence)
        there = "\n".join((*known, user))
        anywhere = _kinds(there)
        other = [kind for kind in said if said[kind].isdisjoint(anywhere.get(kind, ()))]
        for line in known:
            if any(kind in _kinds(line) and _same_thing(line, sentence, kind) for kind in other) or (
                _decided_otherwise(line, sentence, statements.features(there))
            ):
                yield sentence.rstrip(".!?")[:200], line[:200]
                break


def _kinds(text: str) -> dict[str, set[str]]:
    """The values of a text by kind: numbers by the telling words beside them (`port 3000`), days, parts of days."""
    found: dict[str, set[str]] = {}
    for match in _VALUE.finditer(text):
        for word in telling(f"{match['before'] or ''} {match['after'] or ''}", language(text)):
            found.setdefault(word, set()).add(match["value"])
    for word in words(text):
        for kind, values in _CLOSED.items():
            if (value := values.get(word.removesuffix("s"))) is not None:
                found.setdefault(kind, set()).add(str(value))
    return found


def _same_thing(line: str, sentence: str, kind: str) -> bool:
    """Whether two texts are about one thing, whatever their values of the kind."""
    one, other = statements.features(line), statements.features(sentence)
    spoken = language(sentence)
    values = {kind, *(stem(word, spoken) for word in words(f"{line} {sentence}") if _is_value(word))}
    names = (one.names - other.stems - values, other.names - one.stems - values)
    first, second = one.stems - values, other.stems - values
    if all(names) or not first or not second:
        return False
    return len(first & second) / min(len(first), len(second)) >= ENOUGH


def _is_value(word: str) -> bool:
    return any(word.removesuffix("s") in values for values in _CLOSED.values())


def _decided_otherwise(line: str, sentence: str, there: statements.Features) -> bool:
    """Whether both tell a decision on one thing, and the sentence names a choice that no record has."""
    one, other = statements.features(line), statements.features(sentence)
    if not (_DECIDED.search(line) and _DECIDED.search(sentence)) or not other.names - there.stems:
        return False
    first, second = one.stems - one.names, other.stems - other.names
    common = len(first & second) / max(min(len(first), len(second)), 1)
    return bool(one.names - other.stems) and len(first & second) >= 2 and common >= ENOUGH


def contradicted(
    claim: Claim, exchanges: Sequence[Exchange], logs: Callable[[], Iterator[tuple[date, str]]]
) -> date | None:
    """The day on record, if exchanges or logs have the claim only on other days; else None."""
    known: list[date] = []
    for one in exchanges:
        if _share(claim, f"{one.user_message}\n{one.agent_response}") >= ENOUGH:
            known.append(moment_of(one.timestamp).date())
    known += [day for day, line in logs() if _share(claim, line) >= ENOUGH]
    if not known or claim.first is None or claim.last is None:
        return None
    # One day of tolerance: what was done late in the evening is often reported as the next day's.
    slack = timedelta(days=1)
    if any(claim.first - slack <= day <= claim.last + slack for day in known):
        return None
    last = claim.last
    return min(known, key=lambda day: abs(day - last))


def _share(claim: Claim, text: str) -> float:
    there = set(telling(text[:20_000], language(claim.text)))  # a short line may not show its language
    return sum(word in there for word in claim.words) / len(claim.words)


def _days(match: re.Match[str], today: date) -> tuple[date, date] | None:
    if match["yesterday"]:
        return today - timedelta(days=1), today - timedelta(days=1)
    if match["week"]:
        monday = today - timedelta(days=today.weekday() + 7)
        return monday, monday + timedelta(days=6)
    if match["month"]:
        last = today.replace(day=1) - timedelta(days=1)
        return last.replace(day=1), last
    if match["day"]:
        name = match["day"].casefold()
        wanted = (_WEEKDAYS if name in _WEEKDAYS else _TAGE).index(name)
        back = (today.weekday() - wanted - 1) % 7 + 1
        return today - timedelta(days=back), today - timedelta(days=back)
    if match["iso"]:
        try:
            day = date.fromisoformat(match["iso"])
        except ValueError:
            return None
        return day, day
    number = int(match["ago"] or match["vor"])
    weeks = (match["unit"] or match["einheit"]).casefold() in ("weeks", "wochen")
    day = today - timedelta(days=number * (7 if weeks else 1))
    slack = timedelta(days=3 if weeks else 0)
    return day - slack, day + slack
