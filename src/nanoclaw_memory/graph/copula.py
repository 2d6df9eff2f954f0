"""Read clauses with "is": a value of a key, a role, an amount, a kind; passing states are skipped."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from nanoclaw_memory import tokens
from nanoclaw_memory.graph import wording
from nanoclaw_memory.graph.clauses import (
    MINE,
    schedule,
    without_possessive,
)
from nanoclaw_memory.graph.intents import concepts, stemmed
from nanoclaw_memory.graph.keys import is_known_key, is_several, normal_key, singular
from nanoclaw_memory.graph.subjects import Subject, SubjectReader
from nanoclaw_memory.graph.triples import Triple
from nanoclaw_memory.graph.values import (
    ENDS,
    inside,
    is_identifier,
    is_name,
    is_name_token,
    name_at,
    phrase_at,
    typed,
    without_article,
    without_preposition,
)
from nanoclaw_memory.store.names import fold
from nanoclaw_memory.text import CHANGE_WORDS

YEARS_OLD = re.compile(r"^(?P<age>\d{1,3})(?: (?:years?|yrs?)(?: old)?| Jahre(?: alt)?)?$")
_NAMING = frozenset({"name", "first name", "vorname"})
_REAL_NAMES = frozenset(
    {"legal name", "full name", "real name", "proper name", "voller name", "vollständiger name"}
)


_TITLED = re.compile(r"(?:Frau|Herr|Dr\.|Prof\.|Firma|Fa\.) ")
_ROLE_AT = re.compile(r"^(?P<role>[\w -]{2,40}?) (?:at|bei|beim) (?P<where>.+)$")
# "My goal is to give kids a home", "my work is paying off": what somebody does, wants or feels is no value.
_NO_VALUE = re.compile(
    r"(?:to|about|like|all|so|too|very|really|just|pretty|getting|going|being)\b|[a-z]{3,}ing [a-z]"
)


class OpenClause(msgspec.Struct, frozen=True):
    """Subject, predicate and kind of value of the clause before, for clauses that leave these out."""

    subject: Subject
    predicate: str
    kind: str
    object: str = ""
    after: str = ""  # the text after its object


class CopulaReader(SubjectReader):
    """Read clauses with the verb to be."""

    def __init__(self, user: str = "User", owner: str = "", habits: bool = True, talk: bool = False) -> None:
        super().__init__(user, owner)
        self.talk = talk  # conversations report feelings and moments as if they lasted
        self.habits = habits  # whether "Klaas plays the bass" is a habit; in a log it is an event
        self.pending: OpenClause | None = None
        self.since = ""
        self.listing = False  # whether the clause continues with a list
        self.verb = "is"  # the copula of the page's language

    def _fact(self, subject: Subject, key: str, value: str, kind: str, several: bool = False) -> Triple:
        self.pending = OpenClause(subject, key, kind)
        self.last = subject.entity
        return Triple("fact", subject.entity, key, value, several=several)

    def _named(self, owner: str, what: str, name: str) -> Iterator[Triple]:
        """Yield the name of a relative, pet or other person of an owner."""
        self.named[fold(owner), fold(what)] = name
        self.last = (
            name if owner in (self.user, self.owner) else ""
        )  # "his" may be the owner's or the other's
        self.pending = OpenClause(Subject(name), "", "", name)
        one = singular(what) or what
        kind = "relation" if wording.is_kin(one) or wording.is_pet(one) else "fact"
        yield Triple(kind, owner, what.casefold(), name, single=what.casefold() in wording.UNIQUE)

    def _copula(self, subject: Subject, predicate: str, rest: str) -> Iterator[Triple]:
        if subject.key and wording.PASSIVE.fullmatch(rest):
            yield from self._plain(Subject(self._entity(subject)), predicate, rest)
            return
        if subject.key and not (wording.is_somebody(subject.key) and self._is_predicate(rest)):
            yield from self._keyed(subject, rest)
            return
        subject = Subject(self._entity(subject))
        yield from self._plain(subject, predicate, rest)

    def _is_predicate(self, rest: str) -> bool:
        """Return whether a relative is described rather than named: "my partner is vegan", "her husband is a
        lawyer".
        """
        first, _, what = rest.partition(" ")
        role = first.casefold() in ("a", "an", "ein", "eine") and wording.is_role(what)
        return role or first.casefold() in wording.TRAITS or bool(YEARS_OLD.match(rest))

    def _is_lasting(self, rest: str) -> bool:
        """Return whether a state lasts: an age, a trait, a role; "inspired by" does not."""
        words = phrase_at(rest, 4)[0].casefold().split()
        return bool(words) and (
            YEARS_OLD.match(rest) is not None or bool(wording.TRAITS & {*words}) or wording.is_role(words[-1])
        )

    def _keyed(self, subject: Subject, rest: str) -> Iterator[Triple]:
        """Read "Heidi's birthday is 14 March", "our Slack channel is #harbor", "my dentist is Dr. Lima"."""
        key, entity = subject.key, subject.entity
        value = self._value(key, rest)
        if not value or (is_several(key) and not typed(value)):
            return  # who several are is read in passing
        if subject.relative and key.casefold() in _NAMING and is_name(value):
            owner, _, what = subject.relative.rpartition("'s ")
            yield from self._named(owner or subject.owner, what, value)
        elif entity == self.user and key.casefold() in _NAMING and MINE is None:
            yield Triple("fact", entity, key, value)
        elif wording.is_somebody(key) and is_name(value):
            yield from self._named(entity, key, value)
        elif wording.is_kin(key) and not typed(value):
            return  # "his wife is the emergency contact" names nobody
        else:
            self.pending = OpenClause(subject, key, "copula", value)
            self.last = entity
            yield Triple("fact", entity, normal_key(key), value)
            if key.casefold() in _REAL_NAMES and is_name(value) and entity not in (self.user, value):
                yield Triple("alias", entity, "", value)

    def _value(self, key: str, rest: str) -> str:
        """Return the value of a key up to its end; empty if there is no value."""
        if re.fullmatch(r"(?:not|nicht) [\w-]+", rest):
            return rest
        rest = re.sub(r"^(?:spelled|spelt|written|pronounced) ", "", rest)
        value = typed(without_article(without_preposition(rest)))
        if when := schedule(rest):
            return when
        if value and value.is_cut_off:
            return phrase_at(rest, 4)[0] if value.type == "number" else ""
        if value and value.type != "schedule":
            return value.text
        if wording.DENIAL.match(rest) or _NO_VALUE.match(rest):
            return ""
        first = rest.split(" ")[0].rstrip(".,;")
        if is_identifier(first) and not is_name(first):
            return first
        name, _ = name_at(rest)
        name = name.split(" (")[0]
        phrase, after = phrase_at(rest, 6)
        if after.startswith(("by ", "von ", "vom ")) and is_name(name_at(after.partition(" ")[2])[0]):
            return ""  # "deployments are done by Halina": what is done, and by whom, is no value
        if name and len(name.split()) >= len(phrase.split()):
            return name
        known = stemmed(key.split()[-1]) in concepts() or stemmed(key) in concepts()
        named = any(is_name_token(token) for token in phrase.split())
        return phrase if phrase and (named or known or not after) and len(phrase.split()) <= 6 else ""

    def _plain(self, subject: Subject, predicate: str, rest: str) -> Iterator[Triple]:
        """Read "Heidi is Robert's mother", "the plan is 2 TB", "lint-bot is maintained by the guild"."""
        entity = subject.entity
        german = predicate == "ist"
        trait = rest.casefold() in wording.TRAITS
        if entity == self.user and self.talk and _is_full_name(rest):
            yield Triple("fact", entity, "name", rest)  # "Hi, I'm Meike Harms"
            return
        if entity == self.user and (is_name(rest) or typed(rest)) and not trait:
            return
        if self.talk and entity == self.user and not self._is_lasting(rest):
            return
        if passive := wording.PASSIVE.fullmatch(rest) or wording.PASSIVE_GERMAN.fullmatch(rest):
            if _reports_change(passive["verb"]):
                return  # "moved from Oslo", "von Oslo umgezogen": an event, and what was before
            who, _ = phrase_at(passive["who"], 4)
            when = typed(passive["who"])
            if when and not when.rest:
                yield self._fact(subject, f"{passive['verb']} {passive['by']}", when.text, "date")
            elif is_name(who) or (who and passive["by"] in ("by", "von", "vom")):
                self.pending = OpenClause(subject, passive["by"], "passive", who)
                yield Triple("relation", entity, f"{passive['verb']} {passive['by']}", who)
        elif (phone := inside(rest, "phone")) and re.search(r"reach|erreich", rest):
            yield self._fact(subject, "telefon" if german else "phone", phone, "phone")
        elif (age := YEARS_OLD.match(rest)) and (" " in rest or _may_be_aged(entity, age["age"])):
            unit = rest if " " in rest else age["age"]
            yield self._fact(
                subject, "alter" if german else "age", unit.removesuffix(" alt").removesuffix(" old"), "size"
            )
        elif at := self.role_at(rest):
            self.pending = OpenClause(subject, "", "")
            yield Triple("fact", entity, "role", at[0])
            yield Triple("relation", entity, "works at" if self.verb == "is" else "arbeitet bei", at[1])
        elif relation := self.is_of(entity, rest):
            self.pending = OpenClause(subject, "", "")
            yield relation
        elif value := self._described(entity, rest):
            yield self._fact(subject, predicate, value, "copula")
            self.pending = OpenClause(subject, predicate, "copula", value)
            if is_name(value) and (phone := inside(rest[len(value) :].lstrip(" ("), "phone")):
                yield Triple("fact", value, "phone", phone)

    def role_at(self, text: str) -> tuple[str, str] | None:
        """Return what somebody is and where: `backend developer at Acme`, "the solicitor at Brack & Lowe"."""
        match = _ROLE_AT.match(without_article(text))
        if match is None or not wording.is_role(match["role"]):
            return None
        where, _ = phrase_at(match["where"], 4)
        return (match["role"], where) if is_name(where) else None

    def is_of(self, entity: str, rest: str) -> Triple | None:
        """Read "Robert's mother", "the owner of Keystone", "my daughter"."""
        words = without_article(rest).split()
        owned = [place for place, word in enumerate(words[:-1]) if word.endswith(("'s", "’s"))]
        if owned:
            owner = " ".join([*words[: owned[0]], without_possessive(words[owned[0]])])
            what, after = phrase_at(" ".join(words[owned[0] + 1 :]), 3)
            if is_name(owner) and what and not after and wording.is_somebody(what):
                return Triple("relation", entity, f"{what} of", owner)
            return None
        if MINE.match(rest):
            what, _ = phrase_at(" ".join(rest.split()[1:]), 3)
            return (
                Triple("relation", self.user, what, entity)
                if wording.is_somebody(what) and is_name(entity)
                else None
            )
        if (
            len(words) == 2
            and words[0].endswith("s")
            and wording.is_somebody(words[1])
            and is_name_token(words[0])
        ):
            return Triple("relation", words[0][:-1], words[1].casefold(), entity)
        of = re.match(r"(?P<what>\w[\w -]{1,30}?) (?:of|at|for|von|bei|vom) (?P<whom>.+)$", " ".join(words))
        if of and wording.is_somebody(of["what"].split(" ")[-1]):
            whom, _ = phrase_at(of["whom"], 4)
            joint = "of" if self.verb == "is" else "von"
            return Triple("relation", entity, f"{of['what']} {joint}", whom) if whom else None
        return None

    def _described(self, entity: str, rest: str) -> str:
        """Return a lasting description: an amount, a time, a trait, a name, a kind of thing; empty for a state."""
        value = typed(rest)
        if value and value.type in ("money", "measure", "url", "ip", "email", "phone"):
            return value.text
        value = typed(without_preposition(rest))
        after = value.rest.split(" ")[0] if value else ""
        if value and value.type in ("date", "url", "ip") and not (after[:1].isalpha() and after not in ENDS):
            return value.text  # no value: "ist am 2.3. gestorben"
        if value and value.type == "number" and not value.rest and is_known_key(entity.split()[-1]):
            return value.text  # "the staging port is 7001"
        if when := schedule(rest):
            return when
        if self.habits and value and value.type == "time" and rest.startswith(("at ", "um ")):
            return value.text
        code = rest.split(" ")[0].rstrip(".,;")
        if is_identifier(code) and not is_name(entity) and len(rest.split()) <= 2 and not typed(code):
            return code
        first = rest.split(" ")[0].casefold()
        if first.strip(".,") in wording.TRAITS and len(rest.split()) <= 2:
            return rest.split(" ")[0].strip(".,")
        phrase, after = phrase_at(rest, 5)
        if not phrase or wording.DENIAL.match(rest) or phrase.endswith(("'s", "’s", " one", " ones")):
            return ""
        named = any(is_name_token(token) for token in phrase.split())
        kind = wording.is_somebody(phrase.split()[-1])
        living = fold(entity) in map(fold, self.named.values())
        if first in ("a", "an", "ein", "eine"):
            kind = kind or phrase.casefold() in wording.TRAITS
            return phrase if kind or living or (named and not after) or (named and self.verb == "is") else ""
        person = entity == self.user or living or wording.is_kin(entity)
        if person and self.verb == "ist" and phrase[:1].isupper() and phrase.isalpha():
            return phrase  # "Aurel ist Koch": a German noun without an article is a profession
        # "the API gateway is Kong": of a thing, a name says which one; of a person it would be another person. German
        # nouns are capitalised like names: only a title or "Firma" distinguishes them.
        thing = not is_name(entity) if self.verb == "is" else _TITLED.match(phrase)
        from_there = re.match(r"(?:from|aus|of|von) (?P<where>.+)$", after)
        ends = not after or after[0] == "(" or (from_there and is_name(from_there["where"]))
        return phrase if thing and is_name(phrase) and ends else ""


def _reports_change(participle: str) -> bool:
    return participle.casefold() in CHANGE_WORDS or wording.MOVED.match(participle) is not None


def _is_full_name(text: str) -> bool:
    """Return whether a text is a first and last name: "Meike Harms", not "Head of Sales", "Team Blue" or
    "Portuguese".

    A first name that is also a common word does not count, nor does a last name that is common with a capital and
    without one ("Debian Developer"): better no name than a wrong one.
    """
    parts = text.split(" ")
    plain = all(part.replace("-", "").isalpha() and part[1:] != part[1:].upper() for part in parts)
    titled = any(wording.is_role(part) or part.casefold() in wording.TRAITS for part in parts)
    usual = tokens.is_one(f" {parts[0].casefold()}") or any(
        tokens.is_one(f" {part}") and tokens.is_one(f" {part.casefold()}") for part in parts[1:]
    )
    return len(parts) in (2, 3) and is_name(text, 3) and plain and not (titled or usual)


def _may_be_aged(entity: str, age: str) -> bool:
    """Return whether a bare number may be somebody's age: "Tilda is 9", not "the balance is 0"."""
    return is_name(entity, 3) and entity.replace(" ", "").replace("-", "").isalpha() and age.lstrip("0") != ""
