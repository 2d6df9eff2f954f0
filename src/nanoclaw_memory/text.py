"""Words, stems, sentences and fingerprints of a text."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.sha256 import sha256

Language = Literal["english", "german"]
LANGUAGES: tuple[Language, ...] = ("english", "german")

# Characters that break out of a line or hide in it: controls, Unicode line separators, bidi and zero-width marks.
_BREAKING = regex(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_HIDDEN = regex(r"[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")
# What clients add to a user's message.
_INJECTED = regex(
    r"<(system-reminder|command-name|command-message|command-args|local-command-stdout|local-command-stderr|"
    r"local-command-caveat|environment_context|user_instructions|task-notification|hook_context|session_context)>"
    r".*?</\1>",
    re.DOTALL,
)
_SPACES = regex(r"\s+")
_SENTENCE_END = regex(r"(?<=[.!?…])\s+|(?<=[.!?…][\"'”)])\s+|(?<=[。！？])\s*|\n+")
_BEFORE_DOT = regex(r"(?:(?P<previous>[^\s(]+)\s+)?[\"'(„“]*(?P<word>\d{1,2}|[^\W\d_]{1,8})\.\Z")
_BEFORE_ORDINAL = frozenset(
    "am vom zum bis der die das den dem des im ins ab seit beim und oder jeden jeder jedem mein meine meinen sein seine"
    " ihr ihre unser unsere unseren zur nach vor montag dienstag mittwoch donnerstag freitag samstag sonntag montag,"
    " dienstag, mittwoch, donnerstag, freitag, samstag, sonntag, zwischen".split()
)
_AFTER_ORDINAL = regex(
    r"(?:jan|feb|mär|apr|mai\b|jun|jul|aug|sep|okt|oct|nov|dez|dec|bis |und |oder |etage|stock|klasse|platz|mal\b|"
    r"runde|geburtstag|tag\b|woche|\d{1,2}\.)",
    re.I,
)
_INITIAL = regex(r"[^\W\d_]\.\s")
_BEFORE_NUMBER = frozenset("nr no tel abs art ziff kap".split())
_LETTERS = frozenset("z u d i o s m v e g a h b".split())
_ABBREVIATIONS = frozenset(
    "Dr Prof Hr Hrn Fr Frl Mag Dipl Ing Mr Mrs Ms Mx St Sra Sr Mme Mlle ca Ca zzgl inkl exkl ggf Ggf bzw vgl Vgl evtl"
    " Evtl sog geb verh max min mind approx vs resp allg Bd Hrsg".split()
)
_MAY_END = frozenset("usw etc Str str Inc Ltd Co Jr Std Min Mio Mrd Jh".split())
_WORD = regex(r"[^\W_]+(?:['’][^\W_]+)?", re.UNICODE)
_PLAIN_WORDS = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}

STOP_WORDS = frozenset(
    (
        "a about above after again against all also am an and any are as at be because been before being "
        "below between both but by can could did do does doing down during each few for from further had "
        "has have having he her here hers herself him himself his how i if in into is it its itself just "
        "let me more most my myself no nor not now of off on once only or other our ours ourselves out "
        "over own please same she should so some such than that the their theirs them themselves then "
        "there these they this those through to too under until up us very was we were what when where "
        "which while who whom whose why will with would you your yours yourself yourselves "
    ).split()
)
_ENGLISH = STOP_WORDS - set("also am an do her hers in so was".split())  # these are German words too
# Verbs whose subject or object has a new value.
CHANGE_WORDS = frozenset(
    "change changed changing switch switched switching move moved moving rename renamed replaced raise raised raising"
    " increased lower lowered reduced upgraded downgraded postponed rescheduled shifted migrated transferred swapped"
    " extended converted bumped reverted gewechselt wechseln geändert umgezogen umgestellt umbenannt verlegt verschoben"
    " erhöht gesenkt verlängert getauscht angehoben herabgesetzt hochgesetzt zurückgesetzt".split()
)
GERMAN_STOP_WORDS = frozenset(
    "aber alle als auch auf aus bei bin bis bitte da damit dann das dass dein deine dem den der des dich "
    "die dir doch du durch ein eine einem einen einer eines er es euch für ganz geht gibt habe haben hat ich ihm "
    "ihn ihr ihre im immer ist jede jeden jeder jetzt kann kein keine keinen mein meine meinem meinen meiner "
    "mich mir mit muss müssen nach nein nicht nichts nie noch nur ob oder ohne schon sehr sein seine sich sie "
    "sind soll sollen sollte statt um und uns unser unsere unter vom von vor warum weil wenn werden wie wieder "
    "wir wird wo wurde wurden zu zum zur zwischen über".split()
)
# Words that stand in most sentences of the other languages in which a message is read.
_OTHER_STOP_WORDS = frozenset(
    "les une des est sont qui que dans pour pas sur avec mais vous nous ils elle elles leur leurs mon ton ses ces cette"
    " par plus tout tous être avoir los las una unos unas del que con por para como más pero sus este esta esto ese esa"
    " muy son han hay nos ella ellos ellas gli che della delle degli dei dal dalla nel nella per non più come anche"
    " sono sei hai hanno questo questa quello quella het een van voor met niet zijn ook maar dat deze dit hij wij jij"
    " jullie haar hun naar door omdat als heeft hebben wordt worden waren hatte hatten wäre wären würde würden könnte"
    " konnte musste wollte sollte durfte damals diese dieser dieses diesem diesen jener welche welcher welches euer"
    " eure ihrem ihren ihrer ihres seinem seinen seiner seines deinem deinen deiner deines meines unserem unseren"
    " unserer denn also mal eben halt war bist seid".split()
)
FUNCTION_WORDS = STOP_WORDS | GERMAN_STOP_WORDS | _OTHER_STOP_WORDS
FREQUENT = GERMAN_STOP_WORDS | _ENGLISH


def one_line(text: str) -> str:
    """Return `text` on one line: line breaks and controls become spaces, hidden marks are removed."""
    return _SPACES.sub(" ", _HIDDEN.sub("", _BREAKING.sub(" ", text))).strip()


def as_typed(message: str) -> str:
    """Return a user's message as typed, without what clients put around it."""
    return _INJECTED.sub("", message).strip() if "<" in message else message


def encodable(text: str) -> str:
    """Replace each half of a surrogate pair by a question mark: no file or database accepts them."""
    return text.encode("utf-8", "replace").decode("utf-8")


def fingerprint(text: str) -> str:
    """Return the SHA-256 of the text as hex; surrogates that cannot be encoded stay distinct."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def words(text: str) -> list[str]:
    """Return the words of `text`, lower-cased, without punctuation."""
    if text.isascii() and "'" not in text:  # many times faster
        return text.translate(_PLAIN_WORDS).split()
    return [word.casefold() for word in _WORD.findall(text)]


def content_words(text: str) -> list[str]:
    """Return the words that carry meaning: no stop words."""
    return [word for word in words(text) if word not in STOP_WORDS]


def sentences(text: str) -> list[str]:
    """Return the sentences of `text`, with their punctuation; a line break ends one too.

    The dot of `24. November`, `im 1. Stock`, `z. B.`, `Dr. Wieland` and `Nr. 7` ends none.
    """
    found: list[str] = []
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if "\n" in end[0] or not _goes_on(text[start : end.start()], text[end.end() : end.end() + 12]):
            found.append(text[start : end.start()].strip())
            start = end.end()
    found.append(text[start:].strip())
    return [part for part in found if part]


def _goes_on(before: str, after: str) -> bool:
    """Return whether a dot belongs to a number or an abbreviation, and the sentence goes on behind it."""
    last = _BEFORE_DOT.search(before[-60:])
    if last is None:
        return False
    word, previous = last["word"], (last["previous"] or "").casefold()
    if word.isdigit():
        following = (words(after.split(" ")[0]) or [""])[0]
        starts = after[:1].isupper() and following in FREQUENT  # "Er kommt am 24. Das …"
        ordinal = not previous or previous in _BEFORE_ORDINAL
        return (ordinal and not starts) or _AFTER_ORDINAL.match(after) is not None
    if word.casefold() in _BEFORE_NUMBER:
        return after[:1].isdigit()
    if len(word) == 1:  # "z. B.", "d. h.", "J. R. Hartley", but not "plan B."
        named = not previous or any(map(_INITIAL.match, (after, f"{previous} ")))
        return (word.isupper() and named) or (word in _LETTERS and after[:1].isalpha())
    return word in _ABBREVIATIONS or (word in _MAY_END and after[:1].islower())


def only_asks(text: str) -> bool:
    """Return whether every sentence of a text is a question."""
    return all(part.endswith("?") for part in sentences(text))


def language(*texts: str) -> Language:
    """Return the language whose stemmer suits the texts: German if its frequent words outnumber the English ones."""
    return spoken_in(*texts) or "english"


def spoken_in(*texts: str) -> Language | None:
    """Return the language that the texts' frequent words indicate; None if neither, as in notes of a few words."""
    found = frozenset[str]().union(*map(_frequent, texts))
    german, english = len(found & GERMAN_STOP_WORDS), len(found & _ENGLISH)
    return None if german == english else "german" if german > english else "english"


@bounded(1024 * 1024)  # called for a message again and again, and for every lesson
def _frequent(text: str) -> frozenset[str]:
    return FREQUENT.intersection(words(text))


@bounded(8 * 1024 * 1024)
def stem(word: str, language: Language = "english") -> str:
    """Return the Snowball stem of a lower-case word: swap, swaps, swapped and swapping have the same one."""
    return str(_stemmer(language).stemWord(word.replace("’", "'")))


def stems(text: str) -> list[str]:
    """Return the stems of the content words, in order, by the language of the text."""
    spoken = language(text)
    return [stem(word, spoken) for word in content_words(text)]


def stems_of(found: Sequence[str], language: Language = "english") -> list[str]:
    """Return the stem of each of these words: computing many at once costs less than caching each."""
    stemmed: list[str] = _stemmer(language).stemWords([word.replace("’", "'") for word in found])
    return stemmed


def stems_in_any_language(found: Sequence[str]) -> frozenset[str]:
    """Return the stems of words by the rules of each language."""
    plain = "\n".join(found).replace("’", "'").split("\n") if found else []  # faster than word by word
    return frozenset().union(*(_stemmer(spoken).stemWords(plain) for spoken in LANGUAGES))


@functools.cache
def _stemmer(language: Language) -> Any:
    import Stemmer  # on first use: most commands compare no words

    return Stemmer.Stemmer(language, 0)  # without its own cache, which threads must not share


def slug(title: str, limit: int = 60) -> str:
    """Return a file name part from any title; never empty, for non-Latin titles a short fingerprint."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:limit].strip("-")
    return name or "untitled-" + fingerprint(title)[:8]


def plural(count: int, noun: str, several: str = "") -> str:
    """Return '1 line', '3 lines'; `several` is a plural that needs more than an s."""
    return f"{count:,} {noun if count == 1 else several or f'{noun}s'}"


PART_NEAR = 0.6  # least likeness to a part of a name


def nearest_names(name: str, names: Iterable[str]) -> list[str]:
    """Return up to three similar names, the nearest first; none when none is near."""
    import difflib

    asked = name.lower()
    known = {one.lower(): one for one in names}
    begun = [one for one in known if len(asked) > 2 and (one.startswith(asked) or asked.startswith(one))]
    near = begun or difflib.get_close_matches(asked, known, n=3, cutoff=0.7)
    if not near and len(asked) > 2:  # "clod" is near a part of claude-code

        def likeness(one: str) -> float:
            parts = (part for part in one.split("-") if part[:1] == asked[0])
            return max((difflib.SequenceMatcher(None, asked, part).ratio() for part in parts), default=0.0)

        ranked = sorted(
            ((likeness(one), one) for one in known if "-" in one and "." not in one), reverse=True
        )
        near = [one for found, one in ranked if found >= PART_NEAR]
    return [known[one] for one in near[:3]]
