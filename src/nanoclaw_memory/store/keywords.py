"""What the keyword index stores of a text, and which terms a question asks for."""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from typing import Any

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import GERMAN_STOP_WORDS, language, stem, words

LONG_WORD = 9
LONGEST_WORD = 80  # longer ones are no words, and are not analysed
SHORTEST_STEM = 4  # shorter words have no endings worth removing
MAX_TERMS = 64
MAX_CAPITALS = 64  # SQL should not be nested deeper
# Only words that never distinguish texts: dropping all stop words loses answers ("used to", "before").
_FUNCTION_WORDS = frozenset(
    "a about am an and are as at be been but by can could did do does for from had has have he her him his"
    " how i if in into is it its let me my of on or our she should so than that the their them then there these"
    " they this those to us was we were what when where which who whom whose why will with would you"
    " your".split()
)
_GERMAN_FUNCTION_WORDS = GERMAN_STOP_WORDS.union(
    "ab also am an ans beim bisher da dabei diese diesem diesen dieser dieses eigentlich euer eure gibts hatte hatten"
    " hast hier hin her in ins ist ja jene man mal nochmal selber so unserem unseren unserer unseres war waren was"
    " wann welche welchem welchen welcher welches wem wen wer wessen wieso woher wohin wollte wollten will wollen"
    " worden".split()
)
ESZETT = str.maketrans({"ß": "ss", "ẞ": "SS"})  # as `words` reads a question
_FOLDED = str.maketrans({"ä": "a", "ö": "o", "ü": "u"})
# Scripts written without spaces, and Hangul, whose particles are attached to the word: each character is a word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003134f"
)
_NAME = regex(r"\b(?=\w{4,80}\b)(?:[a-z0-9]+[A-Z]|[A-Z]+[a-z0-9]+[A-Z]|[A-Z]{2,}[a-z])[A-Za-z0-9]*\b")
_HUMP = regex(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# No other character belongs to such a script, not even typographic signs.
_BEYOND = regex("[\u0e00-\u0eff\u1000-\u17ff\u3040-\U0003ffff]")


@functools.cache
def _run() -> re.Pattern[str]:
    """Compile the pattern of a run of such characters on first use: most texts have none and it takes milliseconds."""
    return re.compile(f"[{_UNSPACED}]+")


def _is_unspaced(text: str) -> bool:
    # The comparison spares most processes a pattern that takes milliseconds to compile.
    return not text.isascii() and max(text) >= "\u0e00" and bool(_BEYOND.search(text))


def spaced(text: str) -> str:
    """Return the text with every character of an unspaced script standing alone."""
    if not _is_unspaced(text):
        return text
    return _run().sub(lambda found: "".join(f" {one} " for one in found.group()), text)


def indexed(text: str, german: bool) -> str:
    """Return the text for the index: its words, and German stems if it may be German."""
    plain = spaced(text.translate(ESZETT))
    if parts := " ".join(part for name in _names(plain) for part in _split_name(name)):
        plain = f"{plain}\n{parts}"
    if not german:
        return plain
    found = words(plain)
    stems = dict.fromkeys(map(german_stem, found))
    return f"{plain}\n{' '.join(one for one in stems if one not in found)}"


def _names(text: str) -> list[str]:
    """Return the names with inner capitals, as in programs: parseHttpRequest, HTTPServer."""
    return list(dict.fromkeys(_NAME.findall(text)))


def _split_name(name: str) -> list[str]:
    return [part.lower() for part in _HUMP.split(name)]


def german_stem(term: str) -> str:
    """Return the indexed form of a German word, common to all its inflections."""
    return stem(term, "german") if len(term) >= SHORTEST_STEM and " " not in term else term


def terms_of(question: str) -> list[str]:
    """Return the words and character pairs to look for, without function words unless there is nothing else."""
    return list(_terms(question))


@bounded(1024 * 1024)  # called for a question again and again
def _terms(question: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for asked in words(question):
        # "Keystone's port" is also where only the name occurs
        word = asked.removesuffix("'s").removesuffix("’s")
        if not _is_unspaced(word):
            found.setdefault(word)
            continue
        for part in _run().split(word):
            if part:
                found.setdefault(part)
        for run in _run().findall(word):
            for pair in _pairs(run):
                found.setdefault(pair)
    for name in _names(question):  # it may be written another way: render_glyph_run, HTTP server
        for two in itertools.pairwise(_split_name(name)):
            found.setdefault(" ".join(two))
    common = _GERMAN_FUNCTION_WORDS if language(question) == "german" else _FUNCTION_WORDS
    meaningful = [term for term in found if term not in common]
    return tuple((meaningful or list(found))[:MAX_TERMS])


def parts_of(word: str) -> list[tuple[str, str]]:
    """Return the ways to read a long word as a compound of two, with or without a linking letter."""
    return [
        (word[:cut], word[cut + link :])
        for cut in range(4, len(word) - 3)
        for link in (0, 1)
        if len(word) - cut - link >= 4
    ]


def long_words(text: str) -> set[str]:
    """Return the words long enough to be compounds, in the form of the keyword index: without umlauts."""
    plain = _run().sub(" ", text) if _is_unspaced(text) else text
    return {folded(word) for word in words(plain) if LONG_WORD <= len(word) <= LONGEST_WORD}


def folded(word: str) -> str:
    """Return a lower-case word without umlauts."""
    return word.translate(_FOLDED)


def _pairs(run: str) -> list[str]:
    if len(run) == 1:
        return [run]
    return [f"{first} {second}" for first, second in itertools.pairwise(run)]


def like(column: str, name: str, text: str, params: dict[str, Any], beside: str = "") -> str:
    """Return a condition that a column contains a text, ignoring the case of any alphabet; add its values."""
    literal = text.casefold().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    params[name] = f"%{beside}{literal}{beside}%"
    # LIKE itself ignores case in ASCII only.
    spelt = text + text.lower() + unicodedata.normalize("NFC", text.upper())
    capitals = sorted({one for one in spelt if not one.isascii() and one.casefold() != one})
    for number, letter in enumerate(capitals[:MAX_CAPITALS]):
        params |= {f"{name}_{number}": letter, f"{name}_{number}_small": letter.casefold()}
        column = f"replace({column}, :{name}_{number}, :{name}_{number}_small)"
    return f"{column} LIKE :{name} ESCAPE '\\'"
