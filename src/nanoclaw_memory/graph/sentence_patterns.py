"""Patterns of sentences that state a fact or relation: "X is Y's Z", "Y's Z is V", "A manages B"."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from nanoclaw_memory.store.names import fold, slot_of
from nanoclaw_memory.text import STOP_WORDS, fingerprint, one_line

_N = r"[A-ZÀ-ÖØ-Þ\u0400-\u042f][\w.&'’-]*(?<!['’]s)"
NAME = rf"(?:{_N})(?: {_N}){{0,3}}"
_IS_OF = re.compile(rf"^(?P<a>{NAME}) is (?P<c>{NAME})['’]s (?P<b>[a-z][\w -]{{1,30}}?)\.?$")
_HAS = re.compile(
    rf"^(?P<a>{NAME})['’]s (?P<b>[a-z][\w -]{{1,30}}?) (?:is|are|was)(?: called| named)? "
    r"(?P<c>[^.;]{1,120}?)\.?$"
)
_THE_OF = re.compile(rf"^(?P<a>{NAME}) is (?:the|an?) (?P<b>[a-z][\w -]{{1,30}}?) of (?P<c>{NAME})\.?$")
_THEIRS = re.compile(rf"^(?P<a>{NAME})['’]s (?P<b>[^\W\d_][\w /-]{{1,30}}?)\s*(?::|=)\s+(?P<c>\S.{{0,300}})$")
_SAME = re.compile(rf"^(?P<a>{NAME}) (?:is|means|= ) ?(?P<c>{NAME})\.?$")
_VERBS = (
    "manages|owns|leads|maintains|works at|works for|lives in|reports to|uses|runs on|depends on|likes|"
    "created|wrote|teaches|repairs|knows|belongs to|is married to|is part of|moved to"
)
_DOES = re.compile(rf"^(?P<a>{NAME})(?: now)? (?P<b>{_VERBS}) (?P<c>[^.;,]{{2,60}}?)\.?$")
_SAYS = (
    (re.compile(rf"^(?P<a>{NAME}) is allergic to (?P<c>[^.;]{{2,60}})"), "allergy"),
    (
        re.compile(
            rf"^(?P<a>{NAME})(?: now)? (?:runs|listens|serves|is|uses)(?: on| at)? port (?P<c>\d{{1,5}})\b"
        ),
        "port",
    ),
    (re.compile(rf"^(?P<a>{NAME}) works as (?:an? )?(?P<c>[^.;,]{{2,60}})"), "role"),
    (re.compile(rf"^(?P<a>{NAME}) was born (?:on|in) (?P<c>[^.;]{{2,40}})"), "birthday"),
    (re.compile(rf"^(?P<a>{NAME}) speaks (?P<c>[^.;]{{2,60}})"), "languages"),
    (re.compile(rf"^(?P<a>{NAME}) prefers (?P<c>[^.;]{{2,80}})"), "preference"),
)
# "15 March, not 14 March": the denied part does not belong to the value.
_DENIAL = re.compile(
    r"(?<=\S)(?:\s*[,;—–]\s*|\s+-\s+|\s+\()(?:and |but )?(?:not|nicht|instead of|rather than|no longer)\s[^.;]{1,60}$"
)
_BARE_DENIAL = re.compile(r"(?<=\S)\s+(?:not|nicht|instead of)\s+(?=\d|[A-ZÀ-Þ])[^.;,]{1,40}$")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PHONE = re.compile(r"(?<![\w.])\+?\d[\d ()/-]{6,18}\d(?!\w|\.\w)")
_BASED = re.compile(r"\b(?:based|lives|located) in (?P<c>[^.;,]{2,40})", re.I)
_DETAIL = re.compile(r"^(?P<key>[a-z][\w ]{1,24}?):? (?P<value>(?:[^.;,]|, (?=\d)){1,60})$")
_DETAIL_KEYS = frozenset("phone email birthday born port host role address url stack status owner".split())
_NO_NAMES = STOP_WORDS | frozenset(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "
    "september october november december utc today tomorrow yesterday".split()
)
# How notes begin: "Switched Keystone to …", "Retire the old host".
_VERB = re.compile(
    r"\w+ed|Chose|Built|Made|Set|Put|Cut|Took|Went|Got|Began|Wrote|Found|Use|Keep|Never|Always|Ship|Retire|Move|"
    r"Switch|Drop|Add|Stop|Start|Run|Do|Decide|Decision|Note|Ordered|Met|Sent|Ask|Call|Check|Tell|Remember|Remind|"
    r"Buy|Send|Meet|Pay|Book|Fix|Review|Update|Try|Write|Read|See|Let|Make|Give|Get|Take|Bring|Prefer|Avoid"
)
# What follows a lone name at a sentence's start: "Heidi started at Acme". A plural there is a plain word more often.
_ACTS = re.compile(
    r"(?P<name>\w*[^\Ws])(?:['’]s)? (?:is|was|has|had|will|can|now|also|still|wants|needs|likes|loves|hates|lives|"
    r"works|speaks|uses|runs|owns|manages|leads|no longer|\w+ed|took|left|got|went|began|chose|bought|sold|met|said|"
    r"told|gave|made|built|wrote|became)\b"
)
_PREDICATES = {"is married to": "married_to", "is part of": "part_of", "moved to": "lives_in"}
_CAMEL = re.compile(r"(?P<name>[A-Z]\w*[a-z]\w*[A-Z]\w*)(?:['’]s)? (?![A-Z])")


class Triple(msgspec.Struct, frozen=True):
    """What a line states: a fact (entity, key, value), a relation, or an alias (alias, empty, entity)."""

    kind: str
    subject: str
    predicate: str
    object: str
    category: str = "fact"
    importance: float = 0.5
    permanent: bool = False
    several: bool = False
    unsure: bool = False
    line: int = 0
    others: tuple[str, ...] = ()  # further names in a sentence stored whole: a known one is its entity

    @property
    def mark(self) -> str:
        """A key that is equal for triples that state the same, in whatever line."""
        parts = (self.kind, fold(self.subject), slot_of(self.predicate), one_line(self.object).casefold())
        return fingerprint("\n".join(parts))[:24]


def is_name(text: str) -> bool:
    """One to four capitalised words."""
    return bool(re.fullmatch(NAME, text))


def subject(text: str) -> str:
    """The name that a sentence begins with and that a verb follows; empty if there is none.

    A word with a capital inside, such as PostgreSQL, is a name whatever follows.
    """
    match = _ACTS.match(text) or _CAMEL.match(text)
    name = match["name"] if match else ""
    return name if is_name(name) and not _VERB.fullmatch(name) and name.casefold() not in _NO_NAMES else ""


def first_name(text: str) -> str:
    """The first name in a sentence; an ordinary word or a verb at its start is none."""
    for match in re.finditer(NAME, text):
        parts = match.group().rstrip(".,'’").split()
        if match.start() == 0 and (_VERB.fullmatch(parts[0]) or len(parts) == 1):
            parts = parts[1:] if _VERB.fullmatch(parts[0]) or parts[0][1:].islower() else parts
        parts = [part for part in parts if part.casefold() not in _NO_NAMES]
        if parts:
            return " ".join(parts)
    return ""


def names(text: str) -> tuple[str, ...]:
    """Everything in a sentence that may be a name, in order, including a single word at its start."""
    found: list[str] = []
    for match in re.finditer(NAME, text):
        parts = [part for part in match.group().rstrip(".,'’").split() if part.casefold() not in _NO_NAMES]
        found += [" ".join(parts[start:]) for start in range(min(len(parts), 2))]
    return tuple(dict.fromkeys(found))


def without_denial(text: str) -> str:
    """Cut off a trailing denial: `Rex, not Luna` becomes `Rex`; `not ready` stays."""
    return _BARE_DENIAL.sub("", _DENIAL.sub("", text))


def says_all(text: str, triples: list[Triple]) -> bool:
    """Whether the triples read from a sentence cover all of it."""
    plain = without_denial(text).rstrip(" .!")
    return any(triple.kind != "alias" and plain.endswith(triple.object.rstrip(" .!")) for triple in triples)


def begins_with(text: str) -> str:
    """The name that a line begins with: Tilda in `Tilda's play moved`; empty if there is none."""
    match = re.match(rf"(?P<name>{NAME})(?:['’]s)? ", text)
    return match["name"] if match and match["name"].casefold() not in _NO_NAMES else ""


def read(text: str) -> Iterator[Triple]:
    """Yield the triples that a sentence states."""
    text = without_denial(text)
    for pattern, key in _SAYS:
        if match := pattern.match(text):
            yield Triple("fact", match["a"], key, match["c"].strip(), several=key == "allergy")
            return
    if match := _IS_OF.match(text) or _THE_OF.match(text):
        predicate = f"{match['b'].strip().replace(' ', '_')}_of"
        yield Triple("relation", match["a"], predicate, match["c"].rstrip("."))
    elif match := _HAS.match(text):
        yield Triple("fact", match["a"], match["b"].strip(), match["c"].strip())
    elif own := list(theirs(text)):
        yield from own
    elif match := _DOES.match(text):
        predicate = _PREDICATES.get(match["b"], match["b"].replace(" ", "_"))
        yield Triple("relation", match["a"], predicate, match["c"].strip())
    elif match := _SAME.match(text):
        yield Triple("alias", match["a"], "", match["c"].rstrip("."), unsure=True)


def theirs(text: str) -> Iterator[Triple]:
    """Yield the fact in `Heidi's birthday: 14 March`."""
    if match := _THEIRS.match(without_denial(text)):
        yield Triple("fact", match["a"], normal_key(match["b"].strip()), match["c"].strip())


def portrait(name: str, text: str, category: str) -> Iterator[Triple]:
    """Yield triples for a roster line about the entity it begins with: the whole text, and known details."""
    match = re.match(r"^(?P<name>[^()]{1,60}?)\s*\((?P<other>[^()]{1,40})\)$", name)
    entity = match["name"] if match else name
    yield Triple("fact", entity, "about", text, category)
    if match and is_name(match["other"]):
        yield Triple("alias", match["other"], "", entity)
    if email := _EMAIL.search(text):
        yield Triple("fact", entity, "email", email.group(), category)
    elif phone := _PHONE.search(text):
        yield Triple("fact", entity, "phone", phone.group().strip(), category)
    if based := _BASED.search(text):
        yield Triple("fact", entity, "location", based["c"].strip(), category)
    for part in re.split(r"[.;] |, (?!\d)", text):  # a date's year belongs to its day: March 15, 2016
        detail = _DETAIL.match(part.strip())
        if detail and detail["key"].casefold() in _DETAIL_KEYS:
            yield Triple("fact", entity, detail["key"], detail["value"].strip(), category)


def normal_key(key: str) -> str:
    """A key in lower case: `Phone number` is `phone number`; `IP` and `dateOfBirth` stay."""
    return key if any(c.isupper() for c in key[1:]) else key.lower()
