"""A trained scorer of credentials in conversations and notes, by the form of a word and the words around it.

`training/credentials.py` produces `secret_scorer.bin`: a scale, a shift and one byte for each hashed feature.
"""

from __future__ import annotations

import functools
import itertools
import re
import struct
from binascii import crc32  # loaded anyway, unlike zlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex

SIZE = 1 << 16
FILE = Path(__file__).with_name("secret_scorer.bin")
CUES = 1 << 17  # bits
HEADER = struct.Struct("<ff")
UNFIT = frozenset(("", "hex", "uuid", "url"))  # signs, and forms that are credentials only after a name
ODD = frozenset(("mixed", "alnum", "other", "long"))
BEFORE, AFTER = 8, 4  # words of context
LONGEST = 64  # characters of a word; longer ones are data, which the rules examine
LONGEST_PHRASE = 24  # words
FOUND = "§"  # replaces a credential in the context of another word
THRESHOLD = 0.3  # logit
BLOCK = 16_000  # characters that are examined together
_BORDERS = frozenset(",;:/|\n=\"'`<>(){}")
_EDGE = ("^", "$", "\n")
_EDGES: tuple[list[str], ...] = ([], ["\n"])
_INSIDE = r"""[^\s"'`“”„«»,;()<>\[\]{}|=]"""
_WORD = regex(
    rf"""\[redacted:[a-z0-9-]{{1,40}}\]|[A-Za-z][A-Za-z0-9+.-]{{1,15}}:(?://|\S{{1,64}}@\S{{1,64}}\?)[^\s"'`<>]+
    |[^\W\d_]+(?:['’][^\W\d_]+)?(?=!+(?:[\s"'”)]|\Z))
    |[^\W_](?:{_INSIDE}*(?<![.:!?…*]))(?:[!$\#]|(?<=\d)\*)*|\n|\S""",
    re.VERBOSE,
)
_FILE_ENDINGS = """py js ts md txt json ya?ml toml cfg ini sh log pdf zip png jpe?g html? css sql csv xlsx? docx? go rs
    java php rb c h cpp""".split()
_KINDS = (
    ("url", regex(r"(?i)[a-z][a-z0-9+.-]*:(?://|\S+@\S+\?)\S+|www\.\S+|[\w.+-]+@[\w-]+\.[\w.-]+"
                  r"|(?:[\w-]+\.)+(?:com|org|net|io|de|dev|example|local|internal|test)(?:[/:]\S*)?")),
    ("path", regex(rf"[~.]{{0,2}}/\S+|\w+(?:/[\w.-]+)+|[A-Za-z]:\\\S*|[\w-]+\.(?:{'|'.join(_FILE_ENDINGS)})")),
    ("uuid", regex(r"\S{0,20}[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\S{0,20}")),
    ("date", regex(r"\d{4}-\d\d(?:-\d\d)?(?:T\S+)?"
                   r"|\d{1,2}[./]\d{1,2}[./]?(?:\d{2,4})?|\d{1,2}:\d\d(?::\d\d\S*)?|(?:19|20)\d\d")),
    ("version", regex(r"[vV]?\d+(?:\.\d+)+\S*")),
    ("unit", regex(r"[€$£]?\d+(?:[.,]\d+)*(?:[a-zA-Zµ%°€]{1,3}|st|nd|rd|th|min|[kKMGT]i?[Bb])\.?|[€$£]\d\S*")),
    ("digits", regex(r"\d{4,12}[#*]?|[#*]\d{3,12}[#*]?|\d{3}[#*]")),
    ("number", regex(r"\d+|[\d.,+/-]{2,}|0x[0-9a-fA-F]+")),
    ("hex", regex(r"(?=\S*\d)(?:[A-Za-z0-9]{1,12}[-_:])*(?:[0-9a-f]{7,}|[0-9A-F]{7,})(?:-\w{1,8})?")),
    ("constant", regex(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[A-Z]{2,6}-?\d{1,6}")),
    ("code", regex(r"[$@%&]?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[a-z]+(?:[A-Z][a-z]+)+"
                   r"|[a-z]+(?:_[a-z]+)+|-{1,2}[a-z][\w-]*")),
    ("title", regex(r"[^\W\d_a-z][^\W\d_A-Z]+")),
    ("upper", regex(r"[^\W\d_a-z]+")),
    ("word", regex(r"[^\W\d_]+(?:['’][a-z]+)?")),
    ("joined", regex(r"[^\W\d_]+(?:[-_.+&][^\W\d_]+)+")),
)  # fmt: skip


class ScoredWord(msgspec.Struct, frozen=True):
    """A word or a sign, with its features as a candidate and as a neighbour."""

    text: str
    kind: str  # "" for a sign
    context: str  # the form its neighbours see
    is_cue: bool
    is_short: bool  # too short to be more than part of a phrase


def find_scored(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of words that are probably credentials."""
    for start in range(0, len(text), BLOCK):
        block = text[start : start + BLOCK]
        found = tagged(words(block))
        spans = [match.span() for match in _WORD.finditer(block)] if found else []
        for _, run in itertools.groupby(enumerate(found), lambda pair: pair[1] - pair[0]):
            places = [at for _, at in run]
            yield start + spans[places[0]][0], start + spans[places[-1]][1]


def words(text: str) -> list[ScoredWord]:
    return list(map(_word, _WORD.findall(text)))


def tagged(block: Sequence[ScoredWord]) -> list[int]:
    """Return the words over the threshold; earlier results are context for later words."""
    found: dict[int, None] = {}  # an ordered set
    for at in candidates(block):
        if block[at].is_short and at - 1 not in found:
            continue
        if score(block, at, found) >= THRESHOLD:
            if at - 2 in found and block[at - 1].text not in _BORDERS:
                found[at - 1] = None  # mustard & honey, Ichabod 4 president
            found[at] = None
    return list(found)


def candidates(block: Sequence[ScoredWord]) -> Iterator[int]:
    """Yield the words to score: those near a word that often accompanies credentials, and those of unusual form."""
    near, end = -1, len(block) + BEFORE
    ahead = (at for at, word in enumerate(block) if word.is_cue)
    following = next(ahead, end)
    for at, word in enumerate(block):
        while following - AFTER <= at:
            near, following = following + BEFORE, next(ahead, end)
        if word.kind in ODD or (at <= near and word.kind not in UNFIT):
            yield at


def score(block: Sequence[ScoredWord], at: int, found: Collection[int]) -> float:
    """Return the logit of a word being a credential or part of one."""
    scale, shift, _, _ = _model()
    kind = block[at].kind
    before, after, position = context(block, at, found)
    total = _sum_own(block[at].text) + sum(_sum_position(name, kind) for name in position)
    total += sum(_sum_near("w", word, kind) for word in before)
    total += sum(_sum_near("v", word, kind) for word in after)
    return scale * total + shift


def context(
    block: Sequence[ScoredWord], at: int, found: Collection[int]
) -> tuple[list[str], list[str], list[str]]:
    """Return the words before and after a word, and the names of the features of its position."""
    begin = at
    while begin - 1 in found and at - begin < LONGEST_PHRASE:
        begin -= 1  # the words of a phrase have the context of its first
    before = [FOUND if i in found else block[i].context for i in range(max(0, begin - BEFORE), begin)]
    after = [word.context for word in block[at + 1 : at + 1 + AFTER]]
    last, following = before[-1] if before else "^", after[0] if after else "$"
    edges = last in _EDGE, before[-2:-1] in _EDGES, following in _EDGE, after[1:2] in _EDGES
    position = [f"b{last}", f"c{' '.join(before[-2:])}", f"d{' '.join(before[-3:])}", f"a{following}"]
    position += [f"e{' '.join(after[:2])}", f"x{last} {following}", f"s{min(at - begin, 3)}", f"i{edges}"]
    return list(dict.fromkeys(filter(str.isalpha, before))), list(dict.fromkeys(after)), position


def own_features(text: str) -> list[int]:
    """Return the features of a word's form: its shape, length, alternating kinds of characters, letters."""
    shape = "".join(
        "0" if char.isdigit() else "A" if char.isupper() else "a" if char.isalpha() else char
        for char in text[:40]
    )
    runs = "".join(char for i, char in enumerate(shape) if not i or shape[i - 1] != char)[:10]
    low = f"<{text[:40].lower()}>"
    digits = sum(char.isdigit() for char in text)
    named = [f"k{_kind(text)}", f"r{runs}", f"z{min(len(text), 24)}", f"g{min(digits, 9)}"]
    named += [f"q{runs}{len(text).bit_length()}", *(f"S{char}" for char in set(text) if not char.isalnum())]
    return [place(name) for name in (*named, *(f"h{low[i : i + 3]}" for i in range(len(low) - 2)))]


def near_features(side: str, word: str, kind: str) -> list[int]:
    """Return the features of a nearby word, whole and in parts, alone and combined with the candidate's kind."""
    named = [side + word]
    if side == "w":
        framed = f"<{word[:24]}>"
        named += [f"p{framed[i : i + 4]}" for i in range(max(1, len(framed) - 3))]
    return [place(name) for one in named for name in (one, kind + one)]


def place(name: str, size: int = SIZE) -> int:
    return crc32(name.encode("utf-8", "surrogatepass")) % size


def cue_places(word: str) -> list[int]:
    """Return the indexes of a word and its parts in the table of cues."""
    parts = [word] if len(word) < 4 else [word, *(word[i : i + 4] for i in range(min(len(word), 24) - 3))]
    return [place(part, CUES) for part in parts]


@bounded(2 * 1024 * 1024)
def _sum_near(side: str, word: str, kind: str) -> int:
    return sum(map(_model()[2].__getitem__, near_features(side, word, kind)))


@bounded(1024 * 1024)
def _sum_position(name: str, kind: str) -> int:
    weights = _model()[2]
    return weights[place(name)] + weights[place(kind + name)]


@bounded(512 * 1024)
def _sum_own(text: str) -> int:
    return sum(map(_model()[2].__getitem__, own_features(text)))


@bounded(4 * 1024 * 1024)
def _word(text: str) -> ScoredWord:
    kind, lower = _kind(text), text.lower()[:24]
    cues = _model()[3]
    is_cue = kind != "" and any(cues[at >> 3] >> (at & 7) & 1 for at in cue_places(lower))
    plain = not kind or kind in ("word", "title", "upper", "joined")
    shown = FOUND if text.startswith("[redacted:") else lower if plain else f"_{kind}"
    return ScoredWord(text, kind, shown, is_cue, len(text) < 4 and kind != "digits")


def _kind(text: str) -> str:
    """Return the form of a word; none for a sign and for long data."""
    if not text[0].isalnum() or len(text) > LONGEST:
        return ""
    if text.isalpha() and text[1:].islower():  # most words: a new process compiles no pattern for them
        return "word" if text[0].islower() else "title"
    for name, pattern in _KINDS:
        if pattern.fullmatch(text):
            return name
    digits, signs = any(map(str.isdigit, text)), any(not char.isalnum() for char in text)
    if len(text) >= 16 and digits:
        return "long"
    return "mixed" if digits and signs else "alnum" if digits else "other"


@functools.cache
def _model() -> tuple[float, float, Sequence[int], bytes]:
    """Return scale, shift, weights and cues; if the file is damaged, a scorer that finds nothing."""
    try:
        content = FILE.read_bytes()
    except OSError:
        content = b""
    if len(content) != HEADER.size + SIZE + CUES // 8:
        return 0.0, THRESHOLD - 1, bytes(SIZE), bytes(CUES // 8)
    scale, shift = HEADER.unpack_from(content)
    end = HEADER.size + SIZE
    return scale, shift, memoryview(content)[HEADER.size : end].cast("b"), content[end:]
