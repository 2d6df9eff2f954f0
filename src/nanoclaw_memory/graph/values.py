"""Recognise a typed value or a name at the start of a text, and find where it ends."""

from __future__ import annotations

import re

import msgspec

from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import one_line

_MONTH = (
    r"(?:jan(?:uary|uar)?|feb(?:ruary|ruar)?|mar(?:ch)?|märz|apr(?:il)?|may|mai|june?|juni|july?|juli|aug(?:ust)?|"
    r"sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?)\.?"
)
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun|diens|donners|frei|sams|sonn|mitt)(?:days?|tags?)|mittwochs?|montags?"
_CLOCK = r"\d{1,2}[:.]\d{2}(?: ?(?:am|pm|uhr|utc))?|\d{1,2} ?(?:am|pm|uhr)\b"
_UNIT = (
    r"(?:%|°c|[tgmk]b|[tgmk]ib|kwh|kw|w|v|mah|km/h|km|cm|mm|m²|qm|m|kg|g|mg|ml|l|qt|oz|lbs?|ft|ms|fps|px|"
    r"percent|prozent|seconds?|minutes?|min|hours?|hrs?|days?|weeks?|months?|years?|people|"
    r"sekunden?|minuten?|stunden?|tagen?|wochen?|monaten?|monate|jahren?|jahre|personen)"
)
_RATE = r"(?: (?:a|an|per|pro|im|die|je) \w+|/\w+)?"
# Order matters: a date must not be read as a phone number, nor a phone number as a plain one.
_TYPES = (
    (
        "url",
        regex(r"(?:[a-z][a-z0-9+]{1,9}://|www\.|[\w-]+(?:\.[\w-]+)*\.[a-z]{2,6}/)[^\s,;)>\]]+", re.I),
    ),
    ("email", regex(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")),
    ("ip", regex(r"\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2}|:\d{1,5})?(?![\w.])")),
    (
        "date",
        regex(
            r"\d{4}-\d{2}(?:-\d{2})?(?![\w-])|\d{1,2}\.\d{1,2}\.(?:\d{4}|\d{2})?(?![\d.])|\d{1,2}/\d{1,2}/\d{2,4}|"
            rf"\d{{1,2}}(?:st|nd|rd|th|\.)?(?: of)? {_MONTH}(?:,? \d{{4}})?(?!\w)|"
            rf"{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?(?![\w:])|{_MONTH} \d{{4}}(?!\w)",
            re.I,
        ),
    ),
    (
        "money",
        regex(
            rf"(?:[€$£]|(?:EUR|USD|CHF|GBP) )\d[\d.,]*\d?k?{_RATE}|"
            rf"\d[\d.,]*(?: ?[€$£]| ?(?:EUR|Euros?|USD|CHF|dollars?|pounds|francs|Franken)\b){_RATE}",
            re.I,
        ),
    ),
    ("time", regex(rf"(?:\d{{1,2}}(?:[:.]\d{{2}})?(?: ?(?:-|–|to|bis) ?))?(?:{_CLOCK})", re.I)),
    ("measure", regex(rf"-?\d+(?:[.,]\d+)* ?{_UNIT}(?!\w)(?: (?:old|alt))?{_RATE}", re.I)),
    ("phone", regex(r"\+?\(?\d[\d ()/–-]{4,20}\d(?![\w/.]\w|\w)")),
    (
        "schedule",
        regex(rf"(?:every|each|jeden?|immer|on|am)? ?(?:other )?(?:{_DAY}|day|tag)\b", re.I),
    ),
    ("channel", regex(r"[#@][\w-]+(?:\.[\w-]+)*")),
    ("number", regex(r"-?\d+(?:[.,]\d+)*(?![\w.,:/-]*\w)")),
)
_PARTICLES = frozenset("de da del della di du van von vom zu der den la le el al bin ibn of the y e".split())
_TITLES = frozenset("dr. prof. mr. mrs. ms. st. fa. hr. fr. sr. jr. ing. mag.".split())
ARTICLES = frozenset(
    "the a an der die das den dem des ein eine einen einem einer this these our my his her its".split()
)
# Words that end a value: a time, reason or means follows, which is no part of it.
ENDS = frozenset(
    "since for from in on at by with within until till when while because so but and or which who that as than "
    "after before now today currently these those anyway anymore again too instead via per if though although "
    "seit für aus bei mit bis wenn weil aber und oder damit nach vor jetzt heute gerade wieder ab auf im am um zu "
    "zur zum fürs beim als last next every jeden immer nicht not rather over under plus sowie "
    "inklusive including whose where wo named called namens into onto through about between across against during "
    "toward towards near like except gegen durch über unter zwischen neben wegen während außer pro "
    "nightly daily weekly monthly hourly täglich wöchentlich monatlich morgens mittags abends nachts".split()
)
_LEAST_DIGITS = 6  # minimal digits of a phone number
ADDRESS = regex(
    r"\d+\w? (?:[A-Z][\w.'’-]* )+(?:St|Street|Ln|Lane|Rd|Road|Ave|Avenue|Way|Drive|Court|Ct|Place|Square|Close|"
    r"Terrace|Blvd|Row|Crescent)\b\.?|"
    r"(?:(?:[A-ZÄÖÜ][\w.-]* ){0,3}(?:Straße|Str\.|Weg|Platz|Gasse|Allee|Ring|Ufer|Damm|Markt)|"
    r"[A-ZÄÖÜ][\w.-]*(?:[Ss]tra(?:ß|ss)e|[Ss]tr\.|[Ww]eg|[Pp]latz|[Gg]asse|[Aa]llee|[Rr]ing|[Uu]fer|[Dd]amm|[Mm]arkt))"
    r" \d+ ?[a-z]?\b"
)
_STOP = regex(r"[,;] | # | // | [–—(]| - |,? (?:since|seit|as of) (?=\S)")


class TypedValue(msgspec.Struct, frozen=True):
    """A value at the start of a text, its type, and the text after it."""

    type: str
    text: str
    rest: str

    @property
    def is_cut_off(self) -> bool:
        """Return whether a number is cut off from its unit, or a measure from its reference: "3.85 percent"."""
        word = self.rest.split(" ")[0].casefold()
        if self.type == "measure":
            return word in ("from", "von", "to", "bis", "away", "entfernt")
        return self.type == "number" and word[:1].isalpha() and word not in ENDS


def typed(text: str) -> TypedValue | None:
    """Return the date, phone number, amount or other typed value that a text starts with."""
    for kind, pattern in _TYPES:
        if match := pattern.match(text):
            found = match.group().rstrip(" .,;(/-" if kind not in ("date", "url") else " ,;(")
            if kind == "url":
                found = found.rstrip(".")
            if kind == "phone" and not _is_phone(found):
                continue
            return TypedValue(kind, found, text[match.end() :].lstrip(" "))
    return None


def _is_phone(text: str) -> bool:
    """Return whether digits are a phone number: enough of them, and grouped, or with a dialling prefix."""
    if not re.match(r"[+(\d]", text) or re.search(r"[^\W\d]", text):
        return False
    grouped = " " in text or text.startswith(("+", "0")) or re.fullmatch(r"(?:\d{3}-)?\d{3}-\d{4}", text)
    return sum(map(str.isdigit, text)) >= _LEAST_DIGITS and bool(grouped)


def inside(text: str, *types: str) -> str:
    """Return the first value of one of these types anywhere in a text; empty if there is none."""
    for match in re.finditer(r"(?<![\w./:+-])(?=[+(#€$£\w])", text):
        found = typed(text[match.start() :])
        if found and found.type in types:
            return found.text
    return ""


def is_name_token(token: str) -> bool:
    """Return whether a word is written as a name: a capital, or an identifier such as `lint-bot`, `fly.io`, `k8s`."""
    bare = token.strip("\"'“”„()[]<>,;:!?")
    if not bare or is_article(bare):
        return False
    if "@" in bare[1:]:
        return False
    if bare[0].isupper() or bare[0] in "#@":
        return True
    inner = any(c in "-_./" for c in bare[1:-1]) or any(c.isdigit() for c in bare)
    return inner and any(c.isalpha() for c in bare) and typed(bare) is None


def is_name(text: str, most: int = 5) -> bool:
    """Return whether a text is one to five words written as a name, with particles and titles between."""
    tokens = text.split()
    if not 1 <= len(tokens) <= most or any(token.endswith((",", ";", ":")) for token in tokens):
        return False
    inner = {*range(1, len(tokens) - 1)}
    return all(
        is_name_token(token) or (place in inner and token in _PARTICLES) or (place and token[:1].isdigit())
        for place, token in enumerate(tokens)
    )


def is_identifier(token: str) -> bool:
    """Return whether a word is a code: `0047-1182`, `B7710923`, `4482#`."""
    return any(c.isdigit() for c in token) and bool(re.fullmatch(r"[\w#*+./:&-]+", token))


def is_host(token: str) -> bool:
    """Return whether a word is written as a machine's name: `keg-node-4`, `db.internal`, `10.0.0.4`."""
    value = typed(token)
    if value:
        return value.type == "ip" and not value.rest
    inner = any(c in "-." for c in token[1:-1]) or any(c.isdigit() for c in token)
    return inner and token[:1].isalpha() and token == token.lower() and bool(re.fullmatch(r"[\w.-]+", token))


def is_machine(token: str) -> bool:
    """Return whether a word can only be a machine's name: `oak-db-3`, `db.internal`; `sprint-14` may be anything."""
    return is_host(token) and ("." in token or token.count("-") > 1)


def is_version(text: str) -> bool:
    """Return whether a text is a product with its version: `Node 22`, `Debian 12.4`."""
    return bool(re.fullmatch(r"[A-Z][\w.+-]*(?: [A-Z][\w.+-]*)? v?\d+(?:\.\d+)*", text))


def name_at(text: str) -> tuple[str, str]:
    """Return the name that a text starts with, and the text after it; empty if it starts with none."""
    tokens = without_article(text).split(" ")
    taken: list[str] = []
    for place, token in enumerate(tokens):
        particle = (
            taken and token in _PARTICLES and place + 1 < len(tokens) and is_name_token(tokens[place + 1])
        )
        number = taken and re.fullmatch(r"\d+[.,;)]?", token) and not _is_phone(" ".join(tokens[place:][:4]))
        if not (is_name_token(token) or particle or number) or (taken and token.startswith("(")):
            break
        taken.append(token)
        if token[-1] in ",;:)!?" or (token[-1] == "." and not is_abbreviation(token)):
            break
    name = " ".join(taken).rstrip(",;:)!?")
    rest = " ".join(tokens[len(taken) :])
    if name.endswith(".") and not is_abbreviation(name.rsplit(" ", 1)[-1]):
        name = name[:-1]
    return (name, rest) if name and not name.startswith("(") else ("", text)


def is_abbreviation(token: str) -> bool:
    """Return whether a word is `Dr.`, `K.`, `z.B.`: its dot ends no sentence."""
    low = token.casefold().lstrip("(")
    return (
        low in _TITLES
        or bool(re.fullmatch(r"(?:[^\W\d_]\.)+", low))
        or low.endswith("str.")
        or low in ("nr.", "tel.", "no.", "geb.", "ca.", "bzw.", "inc.", "ltd.", "co.", "vs.", "usw.", "etc.")
    )


def is_article(word: str) -> bool:
    """Return whether a word is an article; `Des` with a capital is a name."""
    return word in ARTICLES or (word.casefold() in ARTICLES and word not in ("Des", "Den", "Her", "Its"))


def without_article(text: str) -> str:
    first, _, rest = text.partition(" ")
    return rest.strip() if rest and is_article(first) else text


def without_preposition(text: str) -> str:
    return re.sub(r"^(?:(?:on|am|um|at|by|in|im|the|den|dem) )+(?=\S)", "", text)


def head_of(text: str) -> tuple[str, str]:
    """Return the value that a text starts with, up to its end, and the text after it."""
    value = typed(text)
    if value and (not value.rest or value.rest[0] in ",;(–—" or value.rest.split(" ")[0].casefold() in ENDS):
        return value.text, value.rest.lstrip(",;")
    stop = _STOP.search(text)
    return (text[: stop.start()].strip(), text[stop.start() :].lstrip(" ,;")) if stop else (text, "")


def phrase_at(text: str, most: int = 6) -> tuple[str, str]:
    """Return the noun phrase that a text starts with, without its article, and the rest; empty if it is too long."""
    tokens = without_article(text).split()
    taken: list[str] = []
    for token in tokens:
        if taken and token.casefold().strip(",;:.") in ENDS:
            break
        if token.startswith("("):
            break
        taken.append(token)
        if token[-1] in ",;:!?" or (token[-1] == "." and not is_abbreviation(token)):
            break
    phrase = " ".join(taken).rstrip(",;:!?.") if taken and not is_abbreviation(taken[-1]) else " ".join(taken)
    if not taken or len(taken) > most or taken[0].casefold().strip(",.") in ENDS:
        return "", text
    return phrase, " ".join(tokens[len(taken) :])


_LINK = regex(r"\[([^\[\]]+)\]\([^()]*\)")
_WIKI = regex(r"\[\[(?:[^\[\]|]*\|)?([^\[\]]+)\]\]")
_STRUCK = regex(r"~~.+?~~")
_MARKUP = regex(r"(\*\*|__|`)(.+?)\1")


def unmarked(text: str) -> str:
    """Return a text on one line without Markdown's marks and without what is struck out."""
    text = _MARKUP.sub(r"\2", _STRUCK.sub("", text))
    return one_line(_LINK.sub(r"\1", _WIKI.sub(r"\1", text))).strip()
