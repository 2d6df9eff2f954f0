"""Resolve the entities that a question names: known names, possessives, self-reference, first names, typos."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator

import msgspec

from nanoclaw_memory.graph.intents import concepts, relatives
from nanoclaw_memory.intake.authorship import own_words
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.store.names import NameTable, fold
from nanoclaw_memory.text import STOP_WORDS, stem

MAX_WORDS = 300  # only the beginning and the end of a longer text are read
MAX_NAME_WORDS = 5
MAX_ALIKE = 5  # entities that one first name may mean
NEAR = 400  # names compared for a typo
_TOKEN = regex(r"[^\W_]+(?:['’][^\W_]+)*['’]?[+#]*")
_SENTENCE_END = regex(r"[.!?:\n]\s*[\"'(\[]*$|^[\s\"'(\[\-*•]*$")
_CODE_BEFORE = regex(r"(?:[-_/\\:$@#<`=]|(?<![.\s])\.|^\.|\s\.)$")
_CODE_AFTER = regex(r"[-_/\\:=]\w|\.\w|[`>(\[]")
_UNSPACED = regex(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_MINE = regex(
    r"\b(?:my|mine|our|ours|who am i|what am i|how old am i|where am i|am i|was i|do i|did i|have i|should i|"
    r"mein|meine|meiner|meinem|meinen|unser|unsere|unserer|unserem|unseren|wer bin ich|bin ich|(?<=e )ich)\b"
)
_YOURS = regex(
    r"\b(?:your|yours|who are you|what are you|how old are you|are you called|were you|"
    r"dein|deine|deiner|deinem|deinen|wer bist du|bist du)\b"
)
# Common words of questions and requests: no names, even if capitalised at the start.
PLAIN = frozenset(
    "tell show give find list know remember remind get got need want make look check say said does did "
    "wann wer wie wo was welche welcher welches wem wen hat ist sind die der das ein eine und".split()
)


class Word(msgspec.Struct, frozen=True):
    """One word of a question."""

    text: str
    folded: str
    possessive: bool
    capital: bool
    first: bool  # first in its sentence, where a capital means nothing
    after: str = ""  # what stands between it and the next word
    code: bool = False  # part of a path, a selector or another identifier


class EntityMention(msgspec.Struct, frozen=True):
    """A name in the question and the (folded) entities it may mean."""

    text: str
    entities: tuple[str, ...]
    start: int
    end: int
    how: str = "name"  # name, alias, self, part, typo
    ambiguous: bool = False


class ParsedQuestion(msgspec.Struct, frozen=True):
    """The words of a question, and the entities it names."""

    words: tuple[Word, ...]
    named: tuple[EntityMention, ...] = msgspec.field(default=())

    @property
    def taken(self) -> set[int]:
        return {place for name in self.named for place in range(name.start, name.end)}

    @property
    def entities(self) -> list[str]:
        return list(dict.fromkeys(entity for name in self.named for entity in name.entities))


def words_of(text: str) -> tuple[Word, ...]:
    """Split a text into words; of a very long one only the first and the last."""
    plain = unicodedata.normalize("NFKC", text)
    matches = list(_TOKEN.finditer(plain))
    if len(matches) > MAX_WORDS:
        half = MAX_WORDS // 2
        matches = matches[:half] + matches[-half:]
    ends = [*(match.start() for match in matches[1:]), len(plain)]
    return tuple(_word(plain, match, end) for match, end in zip(matches, ends, strict=False))


def _word(text: str, match: re.Match[str], end: int) -> Word:
    plain = match.group()
    folded = plain.casefold().replace("’", "'")
    possessive = folded.endswith(("'s", "'"))
    bare = folded.removesuffix("'s").removesuffix("'") if possessive else folded
    before = text[max(0, match.start() - 8) : match.start()]
    return Word(
        text=plain,
        folded=bare,
        possessive=possessive,
        capital=plain[:1].isupper(),
        first=bool(_SENTENCE_END.search(before)),
        after=text[match.end() : end],
        code=bool(_CODE_BEFORE.search(before) or _CODE_AFTER.match(text, match.end())),
    )


class Resolver:
    """Find the entities of a question by index look-ups; no list of names is loaded."""

    def __init__(self, names: NameTable, user: str, agent: str) -> None:
        self.names = names
        self.user = user
        self.agent = agent

    def read(self, text: str) -> ParsedQuestion:
        """Parse a question and resolve its entities: exact names, else parts of names, else names with a typo."""
        words = words_of(text)
        exact = self._exact(words)
        own = {
            word.folded for word in words_of(own_words(text))
        }  # "our office" in a pasted mail is not the user's
        selves = self._selves(words, own, bool(exact))
        named = exact + selves or self._parts(words) or self._relative(words, own) or self._typos(words)
        return ParsedQuestion(words, tuple(named))

    def read_exactly(self, text: str) -> list[EntityMention]:
        """Return only the exact names in a text, without guesses."""
        return self._exact(words_of(text))

    # ---- exact ----

    def _exact(self, words: tuple[Word, ...]) -> list[EntityMention]:
        spans = dict(_spans(words))
        known = self.names.known(list({name for names in spans.values() for name in names}))
        chosen: list[tuple[int, int, str]] = []
        taken: set[int] = set()
        for start, end in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
            name = next((name for name in spans[start, end] if name in known), None)
            if name is None or taken.intersection(range(start, end)) or _means_nothing(words[start:end]):
                continue
            if _asks_of_known(words[start:end], known):
                continue
            taken.update(range(start, end))
            chosen.append((start, end, name))
        return self._resolve(_without_intents(chosen, words), words)

    def _resolve(self, chosen: list[tuple[int, int, str]], words: tuple[Word, ...]) -> list[EntityMention]:
        meanings = self.names.meanings([name for _, _, name in chosen])
        found = []
        for start, end, name in sorted(chosen):
            meaning = meanings[name]
            how = "name" if name in meaning.ends else "alias"
            entities = (*meaning.names, *self._other_form(name)) if how == "name" else meaning.names
            found.append(_mention(words, start, end, how, entities, meaning.ambiguous))
        return found

    def _other_form(self, name: str) -> tuple[str, ...]:
        """Return the full name of a person also known by their first name, or the first name, if only one person has
        it.
        """
        first = name.partition(" ")[0]
        whole = self.names.beginning(f"{first} ", 2)
        if len(whole) != 1 or name not in (first, whole[0]) or not self.names.are_persons((first, *whole)):
            return ()
        other = whole[0] if name == first else first
        return self.names.meanings([other])[other].names

    # ---- self ----

    def _selves(self, words: tuple[Word, ...], own: set[str], others: bool) -> list[EntityMention]:
        plain = " ".join(word.text.casefold() for word in words)
        found = []
        for pattern, entity, marks in (
            (_MINE, self.user, ("my", "our", "mein", "meine", "unser", "unsere", "unserer", "i")),
            (_YOURS, self.agent, ("your", "dein", "deine", "you")),
        ):
            match = pattern.search(plain)
            # Beside another name, "my" still marks an owner, but "am I" is small talk.
            if (
                not match
                or (others and match.group() not in marks)
                or not own.issuperset(match.group().split())
            ):
                continue
            place = plain[: match.start()].count(" ")
            name = fold(entity)
            found.append(
                EntityMention(entity, self.names.meanings([name])[name].names, place, place + 1, "self")
            )
        return found

    def _relative(self, words: tuple[Word, ...], own: set[str]) -> list[EntityMention]:
        """Resolve "How old is the cat?" to the owner's cat if nobody is named."""
        named = (
            at for at, word in enumerate(words) if word.folded in own and stem(word.folded) in relatives()
        )
        place = next(named, None)
        if place is None:
            return []
        user = fold(self.user)
        return [EntityMention(self.user, self.names.meanings([user])[user].names, place, place, "self")]

    # ---- parts of names and typos ----

    def _parts(self, words: tuple[Word, ...]) -> list[EntityMention]:
        found = []
        for place, word in enumerate(words):
            if not _may_be_name(word) or len(word.folded) < 2:
                continue
            first = self.names.beginning(word.folded + " ", MAX_ALIKE + 1)
            last = self.names.ending(" " + word.folded, MAX_ALIKE + 1)
            titled = [name for name in last if stem(name.partition(" ")[0]) in relatives()]  # "Cousin Mateo"
            whole = [*first, *titled] or last
            if 1 <= len(whole) <= MAX_ALIKE:
                meanings = self.names.meanings(whole)
                entities = tuple(dict.fromkeys(e for name in whole for e in meanings[name].names))
                ends = {end for name in whole for end in meanings[name].ends}
                found.append(_mention(words, place, place + 1, "part", entities, len(ends) > 1))
        return found

    def _typos(self, words: tuple[Word, ...]) -> list[EntityMention]:
        likely = [place for place, word in enumerate(words) if _may_be_name(word)]
        places = likely or [
            place for place, word in enumerate(words) if len(word.folded) >= 5 and _is_open(word)
        ]
        for length in (3, 2, 1):
            for start in places:
                if not set(range(start, start + length)) <= set(places):
                    continue
                end = start + length
                near = self._nearest(" ".join(word.folded for word in words[start:end]))
                if near:
                    meaning = self.names.meanings([near])[near]
                    return [_mention(words, start, end, "typo", meaning.names, meaning.ambiguous)]
        return []

    def _nearest(self, name: str) -> str | None:
        """Return the only known name within one edit, or two for long names; None if there are several."""
        if len(name) < 4:
            return None
        # One edit leaves one half of a name unchanged, so two range scans find every near name.
        half = max(2, (len(name) - 1) // 2)
        near = {*self.names.beginning(name[:half], NEAR), *self.names.ending(name[-half:], NEAR)}
        allowed = 1 if len(name) < 8 else 2
        near = {
            other
            for other in near
            if abs(len(name) - len(other)) <= allowed and _letters_apart(name, other) <= allowed
        }
        if not near:
            return None
        from rapidfuzz.distance import OSA  # 6 ms of a hook

        ranked = sorted((OSA.distance(name, other, score_cutoff=allowed), other) for other in near)
        ranked = [(distance, other) for distance, other in ranked if distance <= allowed]
        if not ranked or (len(ranked) > 1 and ranked[0][0] == ranked[1][0]):
            return None
        return ranked[0][1]


def _letters_apart(name: str, other: str) -> int:
    """Return a lower bound of the edits between two names: how many letters of one the other lacks."""
    own, others = Counter(name), Counter(other)
    return max((own - others).total(), (others - own).total())


def _spans(words: tuple[Word, ...]) -> Iterator[tuple[tuple[int, int], list[str]]]:
    """Yield every run of one to five words, with the forms under which it may be known, likeliest first."""
    for start in range(len(words)):
        for end in range(start + 1, min(start + MAX_NAME_WORDS, len(words)) + 1):
            before = [w.folded + ("'s" if w.possessive else "") for w in words[start : end - 1]]
            last = words[end - 1]
            forms = [last.folded]
            if last.possessive:
                forms.insert(0, last.folded + "'s")
            elif last.folded.endswith("s") and len(last.folded) > 3:
                forms.append(last.folded[:-1])  # Heidis Geburtstag
            yield (start, end), [" ".join([*before, form]) for form in forms]
            if end == start + 1 and not last.folded.isascii() and _UNSPACED.search(last.folded):
                yield from _inside(last.folded, start)


def _inside(word: str, place: int) -> Iterator[tuple[tuple[int, int], list[str]]]:
    """Yield substrings of a word in a script without spaces, longest first: a name may be anywhere in it."""
    forms = [
        run[first : first + length]
        for run in _UNSPACED.findall(word)
        for length in range(min(6, len(run)), 1, -1)
        for first in range(min(len(run) - length + 1, 60))
    ]
    yield (place, place + 1), [word, *forms]


def _mention(
    words: tuple[Word, ...], start: int, end: int, how: str, entities: tuple[str, ...], ambiguous: bool
) -> EntityMention:
    text = " ".join(word.text for word in words[start:end])
    bare = text.removesuffix("'s").removesuffix("’s").rstrip("'’")
    return EntityMention(text=bare, entities=entities, start=start, end=end, how=how, ambiguous=ambiguous)


def _asks_of_known(span: tuple[Word, ...], known: set[str]) -> bool:
    """Return whether a span is a known name and a key: `Heidi's birthday`, even if an entity has that whole name."""
    owners = [place for place, word in enumerate(span[:-1], 1) if word.possessive]
    return any(
        " ".join(word.folded for word in span[:place]) in known
        and " ".join(stem(word.folded) for word in span[place:]) in concepts()
        for place in owners
    )


def _means_nothing(span: tuple[Word, ...]) -> bool:
    """Return whether a span is a function word or number: a name only if capitalised inside a sentence."""
    if len(span) > 1:
        return all(word.folded in STOP_WORDS and not word.capital for word in span)
    word = span[0]
    plain = word.folded in STOP_WORDS or word.folded in PLAIN or word.folded.isdigit()
    return plain and not (word.capital and not word.first)


def _without_intents(
    chosen: list[tuple[int, int, str]], words: tuple[Word, ...]
) -> list[tuple[int, int, str]]:
    """Drop names that are keys: `port` in "Keystone's port", even if an entity is called Port."""
    surer = [
        (start, end, name)
        for start, end, name in chosen
        if end - start > 1
        or words[start].possessive
        or (words[start].capital and not words[start].first)
        or stem(name) not in concepts()
    ]
    return surer or chosen


def _is_open(word: Word) -> bool:
    return (
        word.folded not in STOP_WORDS
        and word.folded not in PLAIN
        and stem(word.folded) not in concepts()
        and not word.folded.isdigit()
    )


def _may_be_name(word: Word) -> bool:
    return (word.capital or word.possessive) and _is_open(word)
