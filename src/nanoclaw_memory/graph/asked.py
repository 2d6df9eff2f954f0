"""Decide which words of a message ask for something of the person's own: heads of noun phrases that are theirs."""

from __future__ import annotations

from collections.abc import Set

from msgspec.structs import replace

from nanoclaw_memory import tokens
from nanoclaw_memory.graph.entities import EntityMention, ParsedQuestion, Word
from nanoclaw_memory.graph.intents import Intent, Phrase, relatives
from nanoclaw_memory.text import GERMAN_STOP_WORDS, STOP_WORDS, stem

_MINE = frozenset(
    "my mine our ours mein meine meinem meinen meiner meines unser unsere unserem unseren unserer unseres".split()
)
_DEFINITE = frozenset(
    "the der die das den dem des im am vom zum zur beim which welche welcher welches welchen welchem".split()
)
_INDEFINITE = frozenset(
    "a an any some each every another no this that ein eine einen einem einer eines kein keine keinen keinem keiner"
    " jede jeder jedes jeden jedem diese dieser dieses diesen diesem".split()
)
_OTHERS = frozenset(
    "your his her its their whose dein deine deinen deinem deiner sein seine ihr ihre".split()
)
_DETERMINERS = _MINE | _DEFINITE | _INDEFINITE | _OTHERS
_POSSESSING = frozenset("have has had got own habe haben hat hast".split())
_OF = frozenset({"of", "von", "vom", "des"})
_INVERTED = frozenset("do does did will would can could should".split())
_AUXILIARY = _INVERTED | {"is", "are", "was", "were", "am", "has", "have"}
_QUESTION = frozenset(
    "what whats which who whos whom whose how why where when wer wen wem wie was wo wann welche welcher welches warum"
    " wohin woher".split()
)
# Words that say when or how, after a noun: "call my mother tomorrow".
_ADVERBS = frozenset(
    "today tomorrow tonight yesterday now asap later soon early late back again instead morning evening afternoon noon"
    " first ok okay thanks lol btw also immediately quickly happy monday tuesday wednesday thursday friday saturday"
    " sunday heute morgen gestern jetzt später bald danke sofort wieder zurück".split()
)
# The terms of kinship that are used like names: "call mom".
_LIKE_NAMES = frozenset("mom mum mama dad papa granny gran grandma grandpa oma opa auntie".split())
# Terms of things as well, unless somebody says whose: the child of a process, a partner in a table.
_OF_THINGS = frozenset(
    "child children parent parents sibling siblings partner friend friends neighbour neighbor neighbours neighbors"
    " cousin cousins manager family".split()
)
_MOST_BEFORE = 4  # adjectives and nouns between a determiner and its noun


def own_asks(question: ParsedQuestion, intent: Intent, asking: Set[str]) -> Intent:
    """Return the intent without the words that ask for nothing of the person's own.

    `asking` are the words of the sentences that ask, request or plan. A noun before another ("the child process", "my
    manager class") may name only keys that contain both.
    """
    phrases = NounPhrases(question, intent)
    mentions, plain = (
        tuple(replace(ask, beside=phrases.beside(ask)) for ask in asks if phrases.may_ask(ask, asking))
        for asks in (intent.mentions, intent.plain)
    )
    return Intent(mentions, plain, by_name=True)


class NounPhrases:
    """The noun phrases of a message."""

    def __init__(self, question: ParsedQuestion, intent: Intent) -> None:
        self._words = question.words
        self._mentions = {ask.start for ask in intent.mentions}
        self._places = frozenset(place for name in question.named for place in _places(name))
        self._asks = bool(question.words) and _is_question(question.words)
        nouns = (ask.start for ask in intent.asks if stem(ask.text) not in relatives())
        self._of_mine = any(self._determiner(place) in _MINE for place in nouns)
        self._fragment = all(ask.text.isdigit() or ask in intent.mentions for ask in intent.asks)

    def may_ask(self, ask: Phrase, asking: Set[str]) -> bool:
        """Return whether a word may ask for something of the person's own."""
        words = self._words[ask.start : ask.end]
        if any(word.code for word in words):
            return False
        if not (self._fragment or all(word.folded in asking for word in words)):
            return False
        determiner = self._determiner(ask.start)
        if determiner in _MINE:
            return True
        if determiner in _INDEFINITE:
            return self._asks and self._possesses(ask.start)
        if determiner in _OTHERS:
            return False
        if stem(words[0].folded) in relatives():
            return self._may_be_relative(ask, determiner)
        if ask.text in _QUESTION:  # "where is my lock file?" asks where that is
            return not self._of_mine
        if self._following(ask) in _OF:
            return self._is_owned(ask.end + 1)
        return self._asks or self._fragment or ask.start - 1 in self._places

    def beside(self, ask: Phrase) -> str:
        """Return the noun that a word only qualifies, as a stem; empty if the word stands for itself."""
        last = self._words[ask.end - 1]
        if last.possessive or last.after.strip() or ask.end >= len(self._words):
            return ""
        word = self._words[ask.end]
        if not _is_open(word) or word.folded in _ADVERBS or ask.end in self._mentions | self._places:
            return ""
        if self._is_subject(ask) and _may_be_verb(word.folded):
            return ""
        return stem(word.folded)

    def _may_be_relative(self, ask: Phrase, determiner: str) -> bool:
        """Return whether a relation that nobody is said to have may be the person's own: "the kids", "the vet"."""
        word = self._words[ask.start]
        if word.folded in _LIKE_NAMES:
            return True
        if word.folded in _OF_THINGS and not (word.possessive and self._asks):
            return False
        if self._of_a_thing():
            return False
        beside = word.possessive or (self._asks and ask.end in self._mentions)
        return determiner in _DEFINITE or beside

    def _of_a_thing(self) -> bool:
        """Return whether a relation qualifies a noun: who says "parent process" means no family by "child"."""
        named = (
            Phrase(word.folded, word.folded, place, place + 1)
            for place, word in enumerate(self._words)
            if stem(word.folded) in relatives()
        )
        return any(self._words[one.start].code or self.beside(one) for one in named)

    def _determiner(self, place: int) -> str:
        """Return the word that opens a noun's phrase: "my" of "my new dentist"; empty if there is none."""
        for before in range(place - 1, max(place - 1 - _MOST_BEFORE, -1), -1):
            word = self._words[before]
            if word.after.strip():
                return ""
            if word.folded in _DETERMINERS:
                return word.folded
            if word.possessive:
                return "my" if before in self._places or self._is_own(before) else "his"
            if not _is_open(word):
                return ""
        return ""

    def _is_own(self, place: int) -> bool:
        """Return whether a possessive belongs to the person or to a relative: "my daughter's", "the vet's"."""
        word = self._words[place].folded
        return self._determiner(place) in _MINE or (stem(word) in relatives() and word not in _OF_THINGS)

    def _is_owned(self, place: int) -> bool:
        """Return whether the noun phrase that begins here is the person's: "of my dentist", "of the vet"."""
        after = [word.folded for word in self._words[place : place + 3]]
        return bool(after) and (
            after[0] in _MINE or place in self._places or any(stem(word) in relatives() for word in after[:2])
        )

    def _following(self, ask: Phrase) -> str:
        return self._words[ask.end].folded if ask.end < len(self._words) else ""

    def _possesses(self, place: int) -> bool:
        """Return whether the question is what somebody has: "do I have a dog?"."""
        return any(word.folded in _POSSESSING for word in self._words[:place])

    def _is_subject(self, ask: Phrase) -> bool:
        """Return whether a verb may follow a noun: "when does my daughter finish school", "where do the kids go to"."""
        determiner, after = self._determiner(ask.start), self._words[ask.end + 1 : ask.end + 2]
        ends = not after or not _is_open(after[0])
        before = [word.folded for word in self._words[max(ask.start - 2 - _MOST_BEFORE, 0) : ask.start]]
        known = determiner in _MINE or (determiner in _DEFINITE and ends)
        return known and self._asks and not _INVERTED.isdisjoint(before)


def _places(name: EntityMention) -> range:
    return range(name.start, name.end) if name.how != "self" else range(0)


def _is_open(word: Word) -> bool:
    return not (word.folded in STOP_WORDS or word.folded in GERMAN_STOP_WORDS or word.folded.isdigit())


def _is_question(words: tuple[Word, ...]) -> bool:
    """Return whether a message asks: by its mark, a question word or an auxiliary at the beginning."""
    if any("?" in word.after for word in words):
        return True
    return words[0].folded in _QUESTION or words[0].folded in _AUXILIARY


def _may_be_verb(word: str) -> bool:
    """Return whether an English word may be a base verb: language models have a token for its form in -ing."""
    return any(tokens.is_one(f" {form}ing") for form in (word, word.removesuffix("e"), word + word[-1:]))
