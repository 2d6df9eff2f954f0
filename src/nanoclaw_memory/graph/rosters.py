"""Read the details of a roster line: what somebody is, typed values, other names, verbs without a subject."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from nanoclaw_memory.graph import wording
from nanoclaw_memory.graph.clauses import MINE, details_of, stated
from nanoclaw_memory.graph.copula import YEARS_OLD, OpenClause
from nanoclaw_memory.graph.keys import is_plain_noun, keyed_value, normal_key
from nanoclaw_memory.graph.sentences import SentenceReader
from nanoclaw_memory.graph.subjects import AKA, OWNED, Subject
from nanoclaw_memory.graph.triples import Triple
from nanoclaw_memory.graph.values import ADDRESS, is_name, typed, without_article

_SHORT = re.compile(r"^(?P<name>\S+) for short$", re.I)
_BORN = re.compile(r"(?:b\.|born|geb\.|geboren|\*)(?: am| on| in)? ?(?P<when>.+)$", re.I)
_INNER = re.compile(r"(?<=\w) \(([^()]*)\)$")


class RosterReader(SentenceReader):
    """Read roster lines beside sentences, with the same memory of names."""

    listed = False  # whether the line belongs to a list of its kind

    def details(self, name: str, text: str, group: str = "", listed: bool = False) -> list[Triple]:
        """Return the triples of a roster line: details of the entity it begins with; `group` is what the roster
        lists.
        """
        found: list[Triple] = []
        self.listed = listed
        self.last = name
        before = ""
        for detail in _with_inner(details_of(text)):
            self.pending = OpenClause(Subject(name), "", "")
            if stated(detail) and not wording.PAST.search(detail) and not wording.DENIAL.search(detail):
                detail = wording.ADVERBS.sub("", detail)
                detail = (
                    detail[:1].lower() + detail[1:]
                    if wording.VERB.match(detail[:1].lower() + detail[1:])
                    else detail
                )
                living = group == "living" and (YEARS_OLD.match(detail) or wording.is_pet(before))
                found += self._detail(
                    name, detail.strip(" ."), group if not before or living else "", not before
                )
            before = detail
        return found

    def _detail(self, name: str, detail: str, group: str, first: bool) -> Iterator[Triple]:
        """Read one detail of a roster line: a typed value, a key and a value, a role, another name, or a verb."""
        value = typed(detail)
        pair = re.match(r"(?P<key>[^\W\d_][\w -]{0,30}): (?P<value>.+)$", detail)
        if value and value.type in ("phone", "email", "url") and not value.rest:
            yield Triple("fact", name, value.type, value.text)
        elif value and value.type == "ip" and not value.rest:
            yield Triple("fact", name, "ip", value.text)
        elif birth := _birth(detail):
            yield Triple("fact", name, "born", birth)
        elif group == "living" and (age := YEARS_OLD.match(detail)):
            yield Triple("fact", name, "age", age["age"])
        elif (match := AKA.match(detail) or _SHORT.match(detail)) and is_name(match["name"], 3):
            yield Triple("alias", match["name"], "", name)
        elif pair and (found := self._value(pair["key"], pair["value"])):
            yield Triple("fact", name, normal_key(pair["key"]), found)
        elif detail.casefold().replace(" ", "-") in wording.TRAITS:
            yield Triple("fact", name, "is", detail)
        elif ADDRESS.fullmatch(detail):
            yield Triple("fact", name, "adresse" if self.verb == "ist" else "address", detail)
        elif owners := self._portrait(name, detail) if len(detail.split()) > 1 else []:
            yield from owners
        elif roles := self._role(name, detail, group, first):
            yield from roles
        elif keyed := keyed_value(detail, self.listed):
            yield Triple("fact", name, *keyed)
        else:
            yield from self._clause(self._without_since(detail), "")

    def _role(self, name: str, detail: str, group: str, first: bool) -> list[Triple]:
        """Return what a person is: a relative of the owner, a role, a role at a company; in a roster any short
        detail.
        """
        bare = without_article(re.sub(r"^(?:my|our|mein|meine|unser|unsere) ", "", detail))
        words = bare.split()
        if not 1 <= len(words) <= 8 or not words[0][:1].isalpha():
            return []
        if len(words) > 1 and wording.VERB.search(bare):  # "lead" alone is a role
            return []
        short = len(words) <= 3 and is_plain_noun(bare)
        if OWNED.match(detail) and not MINE.match(detail):
            return []  # "his mum" is not mine
        own = len(words) == 1 or bare != detail or (first and not words[0].endswith("s"))
        if short and wording.is_kin(bare) and own:
            unique = words[-1].casefold() in wording.UNIQUE
            return [Triple("relation", self.user, bare.casefold(), name, single=unique)]
        if short and wording.is_pet(bare):
            mine = [Triple("relation", self.user, words[-1].casefold(), name)] if group == "living" else []
            return [Triple("fact", name, self.verb, bare, several=True), *mine]
        if short and wording.is_role(bare):
            return [Triple("fact", name, "role", bare)]
        if at := self.role_at(bare):
            return [Triple("fact", name, "role", at[0]), Triple("relation", name, "works at", at[1])]
        kind = group in ("living", "member") and bare.islower() and short
        if kind or (group == "people" and bare.isupper() and bare.isalpha()):
            return [Triple("fact", name, self.verb, bare, several=True)]
        return []


def _birth(detail: str) -> str:
    """Return when somebody was born: a date or a year; empty for other details."""
    born = _BORN.match(detail)
    date = typed(born["when"]) if born else None
    year = born and re.fullmatch(r"\d{4}", born["when"])
    return born["when"] if born and (year or (date and date.type == "date" and not date.rest)) else ""


def _with_inner(details: Iterable[str]) -> Iterator[str]:
    """Yield details, and after each its part in parentheses: `mother (we call her Mama)`."""
    for detail in details:
        inner = _INNER.search(detail)
        yield _INNER.sub("", detail) if inner else detail
        yield from details_of(inner[1]) if inner else ()
