"""Find claims about the past in an answer, and check them and its values against the record."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, timedelta

import msgspec

from nanoclaw_memory.clock import moment_of
from nanoclaw_memory.lessons.matching import content_stems
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.retrieval.date_words import lexeme
from nanoclaw_memory.retrieval.statement_pairs import FUNCTION_WORDS
from nanoclaw_memory.text import language, sentences, stem
from nanoclaw_memory.types import Exchange

ENOUGH = 0.6  # share of a claim's words that one text must contain to be about it
SUPPORT = 0.25  # share of its words that the nearest texts must contain together
NEAREST = 5  # number of texts that may support a claim together
FEW_WORDS = 3  # claims with fewer words are too short to be checked
MOST_CLAIMS = 5
# Phrases that attribute something to the person, to others or to the record.
_MEMORY = regex(
    r"\b(?:(?:according to|as per|in|from) (?:your|our|my) (?:notes?|records?|logs?|conversation|chat)|"
    r"i (?:remember|recall)|"
    r"(?<!told )(?<!tell )(?<!asked )(?<!if )you(?:'ve| have|'d| had)?(?: \w+ly| also| already| once| yourself)? "
    r"(?:told|said|gave|made|chose|wrote|wanted|did|went|took|found|left|kept|\w{3,}ed)\b"
    r"(?: me| earlier| before| that)*|"
    r"we (?:agreed|decided|discussed|promised|settled|talked|did)|(?:last time|earlier) (?:you|we) \w+|"
    r"(?:himself|herself|he|she|they|(?-i:[A-Z]\w+)) (?:asked|promised|requested|wanted)\b|"
    r"laut (?:deinen|unseren|meinen) notizen|steht in (?:deinen|unserem|unseren)|du (?:hast|hattest|wolltest|warst)|"
    r"hast du|haben wir|wie (?:du|wir) (?:gesagt|erwähnt|besprochen|vereinbart|erzählt)|"
    r"ich erinnere mich(?:,? dass)?)\b",
    re.IGNORECASE,
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TAGE = ("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag")
_WHEN = regex(
    r"\b(?:(?P<yesterday>yesterday|gestern)|(?P<week>last week|letzte woche)|(?P<month>last month|letzten monat)|"
    rf"(?:(?P<on>on|am)|last|letzten) (?P<day>{'|'.join((*_WEEKDAYS, *_TAGE))})|"
    r"(?P<ago>\d{1,3}) (?P<unit>days|weeks) ago|"
    r"vor (?P<vor>\d{1,3}) (?P<einheit>tagen|wochen)|(?P<iso>\d{4}-\d{2}-\d{2}))\b",
    re.IGNORECASE,
)
_PAST = regex(r"\b(?:we|you|i|wir|du|ich)\b", re.IGNORECASE)


class Claim(msgspec.Struct, frozen=True):
    """A statement in an answer that something was said or happened, and between which days if it says so."""

    text: str
    words: tuple[str, ...]
    first: date | None = None
    last: date | None = None


def memories(answer: str) -> Iterator[Claim]:
    """Yield claims to remember a statement of the user."""
    found = (Claim(text, words) for _, text, words in _matches(answer, _MEMORY) if len(words) >= FEW_WORDS)
    return itertools.islice(found, MOST_CLAIMS)


def dated(answer: str, today: date) -> Iterator[Claim]:
    """Yield claims that something was said or done on a certain day."""
    found = (
        Claim(text, words, *days)
        for match, text, words in _matches(answer, _WHEN)
        if _PAST.search(text) and (days := _days(match, today)) and days[1] <= today
    )
    return itertools.islice(found, MOST_CLAIMS)


def _matches(answer: str, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], str, tuple[str, ...]]]:
    """Yield each matching sentence: the match, the sentence, and its content stems outside the match."""
    for sentence in sentences(answer[:8_000]):
        match = pattern.search(sentence)
        rest = sentence[: match.start()] + " " + sentence[match.end() :] if match else ""
        words = content_stems(rest, language(sentence.rstrip(".!?")[:200]))
        if match and len(words) >= 2:
            yield match, sentence.rstrip(".!?")[:200], words


def supported(claim: Claim, texts: Sequence[str]) -> bool:
    """Return whether the texts nearest to a claim together contain enough of its words."""
    spoken = language(claim.text)
    found = sorted((set(claim.words) & set(content_stems(text[:20_000], spoken)) for text in texts), key=len)
    return len(set().union(*found[-NEAREST:])) / len(claim.words) >= SUPPORT


# ---- values that contradict the record ----

_NUMBER = regex(r"(?<![\w.,:-])(?P<number>\d(?:[\d,.:]*\d)?)(?P<sign>\s?%|(?:st|nd|rd|th|\.)(?=\s))?")
_WORD, _NAME = regex(r"[^\W\d_]+"), regex(r"\b[A-ZÄÖÜ][\w-]+")
BESIDE = 80  # characters before and after a number in which the words beside it are looked for


class Stated(msgspec.Struct, frozen=True):
    """The values that a person named, by their kind, and all their numbers whatever they count."""

    values: Mapping[str, AbstractSet[str]]
    numbers: AbstractSet[str]


def stated(text: str) -> Stated:
    """Return the values in what a person said."""
    numbers = {match["number"].replace(",", "").removesuffix(":00") for match in _NUMBER.finditer(text)}
    return Stated(values(text), numbers)


def values(text: str) -> dict[str, set[str]]:
    """Return the values in a text by their kind: date, time, weekday, part of the day, number of something."""
    found: dict[str, set[str]] = {}
    for match in _NUMBER.finditer(text):
        before = _WORD.findall(text, max(match.start() - BESIDE, 0), match.start())
        after = _WORD.findall(text, match.end(), match.end() + BESIDE)
        near = [lexeme(word) for word in (*after[:1], *before[-1:])]
        month = next((word for word in near if word.kind == "month"), None)
        if month is not None:
            kind = f"date {month.name}" if len(match["number"]) > 2 else "date"
            found.setdefault(kind, set()).add(f"{match['number']} {month.name}")
        elif ":" in match["number"] or (after and after[0].casefold() in ("uhr", "am", "pm")):
            found.setdefault("time", set()).add(match["number"].removesuffix(":00"))
        elif of := (match["sign"] or "").strip() or _counted(before, after):
            found.setdefault(f"number of {of}", set()).add(match["number"].replace(",", ""))
    for word in _WORD.findall(text):
        known = lexeme(word.casefold().removesuffix("s")) if not lexeme(word).kind else lexeme(word)
        if known.kind in ("weekday", "part"):
            found.setdefault(known.kind, set()).add(known.name)
    return found


def _counted(before: Sequence[str], after: Sequence[str]) -> str:
    """Return what a number counts: the noun after it, else the word before it."""
    for word in (*after[:1], *before[-1:]):
        if word.casefold() not in FUNCTION_WORDS:
            return stem(word.casefold(), "english")
    return ""


def disagreement(sentence: str, records: Sequence[str], said: Stated) -> tuple[str, str] | None:
    """Return a value in a sentence and the record that contradicts it; a value that any record confirms is correct."""
    own = values(sentence)
    if not own:
        return None
    recorded = [values(text) for text in records]
    known: dict[str, set[str]] = {}
    for one in (*recorded, said.values):
        for kind, found in one.items():
            known.setdefault(kind, set()).update(found)
    words = set(content_stems(sentence, language(sentence)))
    for record, one in zip(records, recorded, strict=True):
        for kind, found in one.items():
            if not len(own.get(kind, ())) == len(found) == 1 or own[kind] & (known[kind] | said.numbers):
                continue
            shared = words & set(content_stems(record, language(sentence)))
            about = (
                shared - {kind.removeprefix("number of ")} - set(content_stems(" ".join(found), "english"))
            )
            if len(about) >= 2 or about & _names(record):
                return next(iter(own[kind])), record
    return None


def _names(text: str) -> set[str]:
    return {stem(name.casefold(), language(text)) for name in _NAME.findall(text)}


def contradicted(
    claim: Claim, exchanges: Sequence[Exchange], logs: Callable[[], Iterator[tuple[date, str]]]
) -> date | None:
    """Return the recorded day if exchanges or logs have the claim only on other days, else None."""
    known: list[date] = []
    for exchange in exchanges:
        if _share(claim, f"{exchange.user_message}\n{exchange.agent_response}") >= ENOUGH:
            known.append(moment_of(exchange.timestamp).date())
    known += [day for day, line in logs() if _share(claim, line) >= ENOUGH]
    if not known or claim.first is None or claim.last is None:
        return None
    # One day of tolerance: what was done late in the evening is often dated the next day.
    slack = timedelta(days=1)
    if any(claim.first - slack <= day <= claim.last + slack for day in known):
        return None
    last = claim.last
    return min(known, key=lambda day: abs(day - last))


def _share(claim: Claim, text: str) -> float:
    there = set(
        content_stems(text[:20_000], language(claim.text))
    )  # a short line may not reveal its language
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
        # On a Monday, "on Monday" is today or a week ago.
        return today - timedelta(days=back), today - timedelta(days=0 if match["on"] and back == 7 else back)
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
