"""Read sentences that state something lasting: find the verb, the subject before it and the value after it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.graph import wording
from nanoclaw_memory.graph.intents import concepts, stemmed
from nanoclaw_memory.graph.values import (
    ENDS,
    inside,
    is_abbreviation,
    is_identifier,
    is_name,
    is_name_token,
    name_at,
    phrase_at,
    typed,
    without_article,
)
from nanoclaw_memory.store.names import fold, slot_of
from nanoclaw_memory.text import fingerprint, one_line

READER = 3  # version of the reader: marks before it had none
MAX_SUBJECT_WORDS = 7
_MINE = re.compile(r"(?:my|our|mein|meine|meines|meiner|unser|unsere|unserer|unseres)\b", re.I)
_THEIRS = re.compile(r"(?:his|her|its|their|sein|seine|ihr|ihre)\b", re.I)
_HE = frozenset("he she it they er sie es".split())
_I = frozenset("i we ich wir".split())
_THE = frozenset("the der die das this dieser diese dieses".split())
_OF = re.compile(r" (?:of|von|vom|des|der) ")
_SPLIT = re.compile(r"(; |, (?!\d{4,5}\b)(?:and |und |but |aber )?| (?:and|und|but|aber) | [–—] )")
_PARENTHESES = re.compile(r"\s*\(([^()]*)\)")
_QUOTED = re.compile(r"[\"“„»]([^\"“”„«»]{3,})[\"”“«»]")
_AKA = re.compile(
    r"^(?:aka|a\.k\.a\.|also known as|also called|alias|called|nicknamed|known as|genannt|kurz|auch|short)[: ]+"
    r"(?P<name>.+)$",
    re.I,
)
_WE_CALL = re.compile(
    r"^(?:(?:we|i|everyone|everybody|people|wir|alle|friends)(?: all)? (?:just )?)?"
    r"(?:call|calls|say|says|nennen|nenne|nennt|nenn) "
    r"(?P<whom>him|her|it|them|me|us|ihn|sie|es|mich)?\s*(?P<name>.+)$",
    re.I,
)
_SHORT = re.compile(r"^(?P<name>\S+) for short$", re.I)
_YEARS_OLD = re.compile(r"^(?P<age>\d{1,3})(?: (?:years?|yrs?)(?: old)?| Jahre(?: alt)?)?$")
_TURNS = re.compile(
    r"^(?P<who>.+?) (?:turns \d+ on|hat am|hat im|has (?:his|her) birthday on|wird am) (?P<date>.+)$", re.I
)
_SINCE = re.compile(
    r"\b(?:since|seit)(?: dem)? (?P<when>\d{4}-\d{2}-\d{2}|\d{1,2}\.\d{1,2}\.\d{4}|"
    r"(?:(?:\d{1,2}\.? )?[A-ZÄ]\w+ )?\d{4})\b ?"
)
_GEZOGEN = re.compile(
    r"^(?P<who>[^,;]+?) (?:ist|sind) (?:.{1,20} )?nach (?P<where>\w[\w -]+?) (?:um)?gezogen$"
)
_ALLERGIC = re.compile(r"^(?P<who>.+?) (?:ist|reagiert) (?:gegen|auf) (?P<what>.+?) allergisch$")
_PREFERS = re.compile(r"^(?P<who>[^,;]+?) (?:prefers|bevorzugt) (?P<what>\S+(?: \S+){0,9})$")
_MY_NAME = re.compile(
    r"^(?:name['’]s|name is|i['’]m called|my name['’]s|ich heiße) (?P<rest>[A-ZÀ-Þ].*)$", re.I
)
_HAS = re.compile(
    r"^(?:an?|one|two|three|four|twin|\d|ein\w*|zwei|drei|vier)? ?(?P<what>[\w-]+(?: [\w-]+)?)"
    r"(?: (?:called|named|namens|genannt) |[,:] ?)(?P<name>.+)$"
)
_ADDRESS = re.compile(
    r"(?:der |dem |den |the )?(?P<where>(?:\d+\w? )?[A-ZÄÖÜ][\w.'’-]*"
    r"(?: [\w.'’-]+){0,3}?(?: \d+\w?)?(?:, \d{4,5} [\w -]+)?)$"
)
_AMOUNT = re.compile(r"^(?:of )?(?P<what>[A-Za-zÄÖÜäöüß][\w-]{1,20})$")
_ROLE_AT = re.compile(r"^(?P<role>[\w -]{2,40}?) (?:at|for|with|of|bei|in der|beim) (?P<where>.+)$")
_CLASSES = frozenset("project team service repo app server host projekt team dienst firma verein".split())
_NAMING = frozenset({"name", "first name", "vorname"})
_REAL_NAMES = frozenset(
    {"legal name", "full name", "real name", "proper name", "voller name", "vollständiger name"}
)


class Triple(msgspec.Struct, frozen=True):
    """What a line states: a fact (entity, key, value), a relation, or an alias (alias, empty, entity)."""

    kind: str
    subject: str
    predicate: str
    object: str
    category: str = "fact"
    importance: float = 0.5
    permanent: bool = False
    several: bool = False  # a fact beside other values of its key
    single: bool = False  # a relation instead of other objects of its predicate
    line: int = 0

    @property
    def mark(self) -> str:
        """A key that is equal for triples that state the same, in whatever line."""
        parts = (self.kind, fold(self.subject), slot_of(self.predicate), one_line(self.object).casefold())
        return f"{READER}:{fingerprint(chr(10).join(parts))[:24]}"


class Subject(msgspec.Struct, frozen=True):
    """Whom or what a clause is about: an entity, and the key when it is about something of it."""

    entity: str
    key: str = ""
    relative: str = ""  # the entity is known only by what it is to somebody: the owner's wife
    owner: str = ""
    bare: bool = False  # a noun without an article: only typed values are read of it


class Pending(msgspec.Struct, frozen=True):
    """What the clause before stated: its subject, predicate and kind of value, for clauses that leave these out."""

    subject: Subject
    predicate: str
    kind: str
    object: str = ""


class SentenceReader:
    """Reads the sentences of one file in order; remembers whom pronouns and relatives mean."""

    def __init__(self, user: str = "User", owner: str = "", habits: bool = True) -> None:
        self.user = user
        self.habits = habits  # whether "Klaas plays the bass" is a habit; in a log it is an event
        self.owner = owner or user  # whose "our port" is: the project's, in its file
        self.about = ""  # what the heading names
        self.named: dict[tuple[str, str], str] = {}  # (owner, what to them) -> name
        self.last = ""
        self.pending: Pending | None = None
        self.since = ""
        self.verb = "is"  # the copula of the page's language

    def read(self, text: str, about: str = "") -> list[Triple]:
        """The triples that the sentences of a text state."""
        self.about = self.last = about
        found: list[Triple] = []
        for sentence in sentences(text):
            self.pending = None
            if not stated(sentence):
                self.last = ""
                continue
            triples = list(self._sentence(sentence))
            found += triples
            if not triples:
                self.last = _only_name(sentence)
        return found

    def owned(self, text: str) -> Subject | None:
        """The owner and key that a text names: "Heidi's birthday", "my wife"; None if it names no owner."""
        self.about = self.last = ""
        subject = self._subject(text)
        return subject if subject and subject.key else None

    def compound(self, text: str) -> Subject | None:
        """The owner in `Klassenlehrerin Mila`, `Package manager in ledgerline`, `Taschengeld von Jonah`."""
        words = text.split()
        if match := re.match(
            r"(?P<key>[^\W\d_][\w -]{1,30}?) (?:of|for|in|at|von|für|der|bei) (?P<owner>.+)$", text
        ):
            owner = without_article(match["owner"])
            return Subject(owner, match["key"].casefold()) if is_name(owner, 3) else None
        if len(words) == 2 and wording.is_somebody(words[0]) and is_name(words[1]):
            return Subject(words[1], words[0].casefold())
        return None

    def role_at(self, text: str) -> bool:
        """Whether a text says what somebody is: `backend developer at Acme`."""
        match = _ROLE_AT.match(text)
        return bool(match and wording.is_role(match["role"]) and is_name(phrase_at(match["where"], 4)[0]))

    def details(self, name: str, text: str, group: str = "") -> list[Triple]:
        """The triples of a roster line: details of the entity it begins with; `group` is what the roster lists."""
        found: list[Triple] = []
        self.last = name
        for number, detail in enumerate(_parts(text)):
            self.pending = Pending(Subject(name), "", "")
            if stated(detail) and not wording.PAST.search(detail) and not wording.DENIAL.search(detail):
                detail = (
                    detail[:1].lower() + detail[1:]
                    if wording.VERB.match(detail[:1].lower() + detail[1:])
                    else detail
                )
                found += self._detail(
                    name, detail.strip(" ."), group if number == 0 or group == "living" else ""
                )
        return found

    # ---- sentences and clauses ----

    def _sentence(self, sentence: str) -> Iterator[Triple]:
        sentence = wording.expanded(wording.without_denial(sentence.strip().rstrip(".!")))
        sentence = _PARENTHESES.sub(lambda m: "" if wording.DENIAL.search(m[1]) else m.group(), sentence)
        sentence = wording.ADVERBS.sub("", _with_apposition(sentence))
        self.since = ""
        if match := _SINCE.search(sentence):
            self.since, sentence = match["when"], _SINCE.sub("", sentence).replace("  ", " ").strip()
        sentence = re.sub(
            r"\b(has|have|hat|haben) ((?:\w+ )?[\w-]+), (?=[A-ZÀ-Þ])", r"\1 \2 named ", sentence
        )
        if match := _GEZOGEN.match(sentence):
            sentence = f"{match['who']} wohnt in {match['where']}"
        if match := _ALLERGIC.match(sentence):
            yield from self._allergic(match)
            return
        if (match := _PREFERS.match(sentence)) and is_name(match["who"]):
            yield Triple("fact", match["who"], "preference", match["what"])
            return
        if match := _MY_NAME.match(sentence):
            sentence = f"My name is {match['rest']}"
        together = ""
        for joiner, clause in _clauses(sentence):
            if is_name(clause, 3) and not together and joiner == "":
                together = clause
                continue
            denied = wording.DENIAL.search(clause) and not re.search(
                r"\b(?:is|are|ist|sind) (?:not|nicht) [\w-]+$", clause
            )
            if denied or (wording.PAST.search(clause) and " born" not in clause and "geboren" not in clause):
                self.pending = None
                self.last = name_at(clause)[0] or self.last
                continue
            triples = list(self._clause(clause.strip(), joiner))
            yield from triples
            if together and joiner in ("and", "und") and triples and clause.startswith(triples[0].subject):
                yield from (replace(t, subject=together) for t in triples if t.subject == triples[0].subject)
            together = ""

    def _clause(self, clause: str, joiner: str) -> Iterator[Triple]:
        before, self.pending = self.pending, None
        if match := _TURNS.match(clause):
            yield from self._birthday(match["who"], match["date"])
            return
        match = _WE_CALL.match(clause)
        if match and (triples := self._called(match)):
            yield from triples
            return
        for verb in wording.VERB.finditer(clause):
            if verb.end() == len(clause) or clause[verb.end()] != " ":
                continue
            start = clause[: verb.start()].strip()
            subject = self._carried(start, before) if len(start) < 6 else None
            subject = subject or self._subject(start)
            if subject is None:
                continue
            yield from self._introduced
            for form in wording.FORMS:
                if not clause.startswith(form + " ", verb.start()):
                    continue
                rest = clause[verb.start() + len(form) :].strip()
                for predicate, kind in wording.VERBS[form]:
                    if triples := list(self._state(subject, predicate, kind, rest)):
                        yield from triples
                        return
            self.pending = self.pending or Pending(subject, "", "")
        if self.pending:
            return
        if before and before.predicate:
            yield from self._elliptic(clause, joiner, before)

    def _carried(self, start: str, before: Pending | None) -> Subject | None:
        """The subject of a clause without one: "and costs 5 €", "who reports to …"."""
        if before is None:
            return None
        if not start:
            return Subject(self._entity(before.subject))
        if start.casefold() in ("who", "which", "der", "die", "das") and before.object:
            return Subject(before.object)
        return None

    def _elliptic(self, clause: str, joiner: str, before: Pending) -> Iterator[Triple]:
        """A clause that leaves out key or verb: "Tess's 8:30", "Ida 98", "and PostgreSQL"."""
        self.pending = before
        gap = re.match(r"(?P<name>\D+?) (?P<rest>(?:am |um |on |at )?[\d€$£+-].*)$", clause)
        name, rest = (gap["name"], gap["rest"]) if gap else name_at(clause)
        name, key = name.removesuffix("'s").removesuffix("’s"), before.subject.key
        if not is_name(name, 3):
            name = rest = ""
        if before.kind == "copula" and key and rest:
            owner = name if name + "'s" in clause.replace("’", "'") else name.removesuffix("s")
            if value := typed(_without_preposition(rest)):
                yield Triple("fact", owner, key, value.text)
        elif before.kind in ("size", "money", "date") and rest and (value := typed(rest)):
            yield Triple("fact", name, before.predicate, value.text)
        elif before.kind == "passive" and wording.PASSIVE.fullmatch(clause):
            yield from self._plain(before.subject, "is", clause)
        elif before.kind in ("names", "list") and "but" not in joiner and not gap:
            yield from self._objects(before.subject, before.predicate, before.kind, clause)

    # ---- subjects ----

    _introduced: tuple[Triple, ...] = ()  # what a subject states itself: "my partner Joaquín"

    def _subject(self, text: str) -> Subject | None:
        self._introduced = ()
        name = ""
        for match in _PARENTHESES.finditer(text):
            if is_name(match[1], 4) and not wording.DENIAL.search(match[1]):
                name = match[1]
            elif is_name(bare := _PARENTHESES.sub("", text).strip()):
                self._introduced = tuple(self._portrait(bare, match[1]))
        text = _PARENTHESES.sub("", text).strip()
        words = text.split()
        if not words or len(words) > MAX_SUBJECT_WORDS or re.search(r"[,()\"“„:]", text):
            return None
        low = words[0].casefold()
        if len(words) == 1 and low in _HE:
            return Subject(self.last) if self.last else None
        if len(words) == 1 and low in _I:
            return Subject(self.user)
        if _MINE.fullmatch(words[0]) and len(words) > 1:
            owner = self.user if low in ("my", "mein", "meine", "meines", "meiner") else self.owner
            return self._possessive(owner, words[1:], name)
        if _THEIRS.fullmatch(words[0]) and len(words) > 1 and self.last:
            return self._possessive(self.last, words[1:], name)
        return self._other_subject(words, low, name)

    def _portrait(self, name: str, text: str) -> list[Triple]:
        """What stands in parentheses after a name: another name, an age, what the person is to somebody."""
        found: list[Triple] = []
        for part in _parts(text):
            words = part.split()
            aka = _AKA.match(part)
            owned = [n for n, word in enumerate(words[:-1]) if word.endswith(("'s", "’s", "s'", "s’"))]
            german = len(words) == 2 and words[0].endswith("s") and wording.is_somebody(words[1])
            if re.fullmatch(r"\d{1,2}", part) and is_name(name, 2):
                found.append(Triple("fact", name, "age", part))
            elif aka:
                found.append(Triple("alias", aka["name"].strip(), "", name))
            elif _MINE.fullmatch(words[0]) and wording.is_somebody(part):
                found.append(Triple("relation", self.user, " ".join(words[1:]).casefold(), name))
            elif owned or german:
                place = owned[0] if owned else 0
                owner = without_article(
                    " ".join([*words[:place], _bare(words[place]) if owned else words[0][:-1]])
                )
                what = " ".join(words[place + 1 :])
                if wording.is_somebody(what) and is_name(owner):
                    found.append(Triple("relation", owner, what.casefold(), name))
        return found

    def _other_subject(self, words: list[str], low: str, name: str) -> Subject | None:
        text = " ".join(words)
        if low in _THE and len(words) > 1:
            inner = " ".join(words[1:])
            owned = [place for place, word in enumerate(words[:-1]) if place and word.endswith(("'s", "’s"))]
            if owned:
                owner = " ".join([*words[1 : owned[0]], _bare(words[owned[0]])])
                return self._possessive(owner, words[owned[0] + 1 :], name)
            if len(words) == 3 and words[1].casefold() in _CLASSES and _is_plain(words[2]):
                return Subject(words[2])
            if of := _OF.search(inner):
                owner = without_article(inner[of.end() :])
                return Subject(owner, inner[: of.start()]) if is_name(owner) or _is_plain(owner) else None
            return Subject(inner) if len(words) <= 5 and _is_plain(inner.replace(" for ", " ")) else None
        if low in wording.NO_ENTITY:
            return None
        if len(words) == 2 and low in _CLASSES and _is_plain(words[1]):
            return Subject(words[1])
        owned = [place for place, word in enumerate(words[:-1]) if word.endswith(("'s", "’s", "s'", "s’"))]
        if owned and is_name(" ".join([*words[: owned[0]], _bare(words[owned[0]])])):
            owner = " ".join([*words[: owned[0]], _bare(words[owned[0]])])
            return self._possessive(owner, words[owned[0] + 1 :], name)
        if len(words) == 2 and low.endswith("s") and _is_german_key(words[1]) and is_name_token(words[0]):
            return self._possessive(words[0][:-1], words[1:], name)
        if of := re.search(r" (?:von|of) ", text):
            owner = without_article(text[of.end() :])
            key = text[: of.start()]
            known = _is_german_key(key) or " of " in text
            return Subject(owner, key.casefold()) if known and (is_name(owner) or _is_plain(owner)) else None
        if target := re.match(r"(?P<key>[A-ZÄÖÜ]?[\w-]+) (?:for|für) (?P<owner>.+)$", text):
            owner = without_article(target["owner"])
            return Subject(owner, target["key"].casefold()) if is_name(owner, 3) else None
        if is_name(text):
            return self._attribute(text) or Subject(text)
        if len(words) <= 3 and _is_plain(text) and not text.endswith("s"):
            return self._attribute(text) or Subject(text, bare=True)
        return None

    def _attribute(self, text: str) -> Subject | None:
        """ "Owner is Ravi": a property of what the page is about."""
        about = self.about or (self.owner if self.owner != self.user else "")
        return (
            Subject(about, text.casefold())
            if about and fold(text) != fold(about) and is_attribute(text)
            else None
        )

    def _possessive(self, owner: str, words: list[str], name: str) -> Subject | None:
        """What belongs to an owner: a key, or a person by what they are to the owner, with their name if it follows."""
        links, part = [], []
        for place, word in enumerate(words):
            part.append(word)
            if word.endswith(("'s", "’s", "s'", "s’")) and place + 1 < len(words):
                links.append(" ".join([*part[:-1], _bare(word)]))
                part = []
        key = " ".join(part)
        heads = [
            n
            for n in range(1, len(part))
            if wording.is_somebody(" ".join(part[:n])) and is_name(" ".join(part[n:]))
        ]
        if heads and not name:
            key, name = " ".join(part[: heads[0]]), " ".join(part[heads[0] :])
        if not key or any(word.casefold() in wording.NO_ENTITY for word in key.split()):
            return None
        chain = "'s ".join(links)
        entity = self._known(owner, chain) if links else owner
        if name and wording.is_somebody(key):
            kind = "relation" if wording.is_kin(key) or wording.is_pet(key) else "fact"
            self._introduced += (Triple(kind, entity, key.casefold(), name, several=True),)
            self.named[fold(owner), fold(key)] = name
            return Subject(name)
        relative = chain if links and entity != owner and (fold(owner), fold(chain)) not in self.named else ""
        return Subject(entity, key, relative, owner)

    def _known(self, owner: str, relative: str) -> str:
        """The name of an owner's relative, or what they are called without it: `wife`, `Robert's mother`."""
        own = self.named.get((fold(owner), fold(relative)))
        return own or (relative if owner in (self.user, self.owner) else f"{owner}'s {relative}")

    def _entity(self, subject: Subject) -> str:
        """The entity that a clause is about when its subject is something of somebody: my sister, our runner."""
        return self._known(subject.entity, subject.key) if subject.key else subject.entity

    # ---- verbs and what follows them ----

    def _state(self, subject: Subject, predicate: str, kind: str, rest: str) -> Iterator[Triple]:
        if subject.bare and (kind not in _TYPED_KINDS or (kind == "copula" and subject.entity[:1].islower())):
            return
        if kind == "copula":
            yield from self._copula(subject, predicate, rest)
        elif kind in ("alias", "named"):
            yield from self._naming(subject, kind, rest)
        elif kind == "stands":
            phrase, _ = phrase_at(rest, 5)
            if phrase:
                yield Triple("alias", self._entity(subject), "", phrase)
        elif kind == "habit":
            yield from self._habit(Subject(self._entity(subject)), predicate, rest) if self.habits else ()
        elif kind == "has":
            yield from self._has(Subject(self._entity(subject)), rest)
        elif kind == "contact":
            key = subject.key or predicate
            yield from self._typed(Subject(subject.entity), key, kind, rest)
        elif kind in ("names", "host", "places", "list"):
            yield from self._objects(Subject(self._entity(subject)), predicate, kind, rest)
        else:
            yield from self._typed(Subject(self._entity(subject)), predicate, kind, rest)

    def _objects(self, subject: Subject, predicate: str, kind: str, rest: str) -> Iterator[Triple]:
        if kind == "host" and (port := re.match(r"[Pp]ort (\d{2,5})\b", rest)):
            yield self._fact(subject, "port", port[1], "port")
            return
        home = predicate.startswith(("live", "wohn", "leb")) and re.search(r"\d", rest)
        if home and (address := _ADDRESS.match(rest)):
            yield self._fact(
                subject, "adresse" if self.verb == "ist" else "address", address["where"], "address"
            )
            return
        if typed(rest) and kind != "list":
            return
        article = rest.split(" ")[0].casefold() in ("the", "der", "die", "das", "den", "dem")
        what, _ = phrase_at(rest, 4)
        named = any(is_name_token(token) for token in what.split())
        if not what or what.casefold() in wording.NO_ENTITY or not (named or article or kind == "list"):
            return
        if kind == "places" and not is_name(what):
            return
        if kind == "list":
            yield self._fact(subject, predicate, what, kind, several=True)
            return
        self.pending = Pending(subject, predicate, "names", what)
        self.last = subject.entity
        yield Triple("relation", subject.entity, predicate, what)
        if self.since:
            yield Triple("fact", subject.entity, f"{predicate} since", self.since)
            self.since = ""

    def _habit(self, subject: Subject, verb: str, rest: str) -> Iterator[Triple]:
        """What somebody does as a rule: an amount, something named, or a short phrase."""
        if value := typed(rest):
            yield self._fact(subject, verb, value.text, "habit")
            return
        what, _ = phrase_at(rest, 4)
        if (
            not what
            or what.casefold().split()[0] in wording.NO_ENTITY
            or subject.entity in (self.user, self.owner)
        ):
            return
        if is_name(what):
            self.pending = Pending(subject, verb, "names", what)
            yield Triple("relation", subject.entity, verb, what)
        elif is_name(subject.entity) and len(what.split()) <= 3:
            yield self._fact(subject, verb, what, "habit")

    def _has(self, subject: Subject, rest: str) -> Iterator[Triple]:
        """ "has a brother called Bosse", "has 24 GB of RAM"."""
        named = _HAS.match(rest)
        value = typed(rest)
        if named and is_name(named["name"], 3) and _singular(named["what"]):
            what = named["what"]
            yield from self._named(subject.entity, what, named["name"])
            self.pending = Pending(subject, what, "names", named["name"])
        elif value and value.type in ("measure", "number") and (what := _AMOUNT.match(value.rest)):
            yield self._fact(subject, what["what"], value.text, "size")

    def _typed(self, subject: Subject, key: str, kind: str, rest: str) -> Iterator[Triple]:
        rest = _without_preposition(rest)
        value = typed(rest)
        if kind == "phrase":
            phrase, _ = phrase_at(rest, 5)
            if phrase:
                yield self._fact(subject, key, phrase, kind)
        elif kind in ("port", "answers"):
            if port := re.match(r"[Pp]ort (\d{2,5})\b", rest):
                yield self._fact(subject, key, port[1], kind)
            elif kind == "answers" and is_name(rest, 3):
                yield Triple("alias", rest, "", subject.entity)
        elif kind == "schedule":
            if when := _schedule(rest):
                yield self._fact(subject, key, when, kind)
        elif kind == "date":
            year = re.match(r"\d{4}(?![\w-])", rest)
            if (value and value.type == "date") or year:
                yield self._fact(
                    subject, key, value.text if value and value.type == "date" else rest[:4], kind
                )
        elif value and value.type in _TYPES_OF[kind]:
            yield self._fact(subject, key, value.text, kind)

    def _fact(self, subject: Subject, key: str, value: str, kind: str, several: bool = False) -> Triple:
        self.pending = Pending(subject, key, kind)
        self.last = subject.entity
        return Triple("fact", subject.entity, key, value, several=several)

    def _naming(self, subject: Subject, kind: str, rest: str) -> Iterator[Triple]:
        name, _ = name_at(rest)
        if not name or name.casefold() in wording.NO_ENTITY:
            return
        if subject.key and wording.is_somebody(subject.key):
            yield from self._named(subject.entity, subject.key, name)
        elif kind == "alias":
            self.pending = Pending(subject, "", "")
            yield Triple("alias", name, "", self._entity(subject))
        elif subject.entity != self.user:
            yield self._fact(Subject(self._entity(subject)), "name", name, kind)

    def _named(self, owner: str, what: str, name: str) -> Iterator[Triple]:
        """A relative, pet or other person of an owner gets a name."""
        self.named[fold(owner), fold(what)] = name
        self.last = name
        self.pending = Pending(Subject(name), "", "")
        kind = "relation" if wording.is_kin(what) or wording.is_pet(what) else "fact"
        yield Triple(kind, owner, what.casefold(), name, single=what.casefold() in wording.UNIQUE)

    def _called(self, match: re.Match[str]) -> list[Triple]:
        """ "We call her Mouse", "everyone says Billie"."""
        whom, name = (match["whom"] or "").casefold(), match["name"].strip()
        entity = self.user if whom in ("me", "mich") or (not whom and self.last == self.user) else self.last
        if not whom and (parts := name.rsplit(" ", 1)) and len(parts) == 2:
            entity, name = re.sub(r" (?:the|den|die|das|der)$", "", without_article(parts[0])), parts[1]
        if not entity or not is_name(name, 3):
            return []
        return [Triple("alias", name, "", entity)]

    def _allergic(self, match: re.Match[str]) -> Iterator[Triple]:
        subject = self._subject(match["who"])
        yield from self._introduced
        if subject:
            for what in re.split(r", | und ", match["what"]):
                yield Triple("fact", self._entity(subject), "allergie", what, several=True)

    def _birthday(self, who: str, date: str) -> Iterator[Triple]:
        subject, value = self._subject(who), typed(date)
        yield from self._introduced
        german = "Geburtstag" in date or "wird" in who
        if subject and value and value.type == "date":
            yield Triple("fact", self._entity(subject), "geburtstag" if german else "birthday", value.text)

    # ---- is ----

    def _copula(self, subject: Subject, predicate: str, rest: str) -> Iterator[Triple]:
        if subject.key and not (wording.is_somebody(subject.key) and self._is_predicate(rest)):
            yield from self._keyed(subject, rest)
            return
        subject = Subject(self._entity(subject))
        yield from self._plain(subject, predicate, rest)

    def _is_predicate(self, rest: str) -> bool:
        """Whether a relative is described rather than named: "my partner is vegan"."""
        return rest.split(" ")[0].casefold() in wording.TRAITS or bool(_YEARS_OLD.match(rest))

    def _keyed(self, subject: Subject, rest: str) -> Iterator[Triple]:
        """ "Heidi's birthday is 14 March", "our Slack channel is #harbor", "my dentist is Dr. Lima"."""
        key, entity = subject.key, subject.entity
        value = self._value(key, rest)
        if not value:
            return
        if subject.relative and key.casefold() in _NAMING and is_name(value):
            owner, _, what = subject.relative.rpartition("'s ")
            yield from self._named(owner or subject.owner, what, value)
        elif entity == self.user and key.casefold() in _NAMING and _MINE is None:
            yield Triple("fact", entity, key, value)
        elif wording.is_somebody(key) and is_name(value):
            yield from self._named(entity, key, value)
        else:
            self.pending = Pending(subject, key, "copula")
            self.last = entity
            yield Triple("fact", entity, normal_key(key), value)
            if key.casefold() in _REAL_NAMES and is_name(value) and entity not in (self.user, value):
                yield Triple("alias", entity, "", value)

    def _value(self, key: str, rest: str) -> str:
        """The value of a key where it ends; empty when what follows is no value."""
        if re.fullmatch(r"(?:not|nicht) [\w-]+", rest):
            return rest
        value = typed(_without_preposition(rest))
        if when := _schedule(rest):
            return when
        if value and value.type == "number" and value.rest[:1].isalpha():
            return phrase_at(rest, 4)[0]
        if value and value.type != "schedule":
            return value.text
        if wording.DENIAL.match(rest):
            return ""
        first = rest.split(" ")[0].rstrip(".,;")
        if is_identifier(first) and not is_name(first):
            return first
        name, _ = name_at(rest)
        phrase, _ = phrase_at(rest, 6)
        if name and len(name.split()) >= len(phrase.split()):
            return name
        known = stemmed(key.split()[-1]) in concepts() or stemmed(key) in concepts()
        named = any(is_name_token(token) for token in phrase.split())
        return phrase if phrase and (named or known) and len(phrase.split()) <= 6 else ""

    def _plain(self, subject: Subject, predicate: str, rest: str) -> Iterator[Triple]:
        """ "Heidi is Robert's mother", "the plan is 2 TB", "lint-bot is maintained by the guild"."""
        entity = subject.entity
        german = predicate == "ist"
        if entity == self.user and (is_name(rest) or typed(rest)):
            return
        if passive := wording.PASSIVE.fullmatch(rest) or wording.PASSIVE_GERMAN.fullmatch(rest):
            who, _ = phrase_at(passive["who"], 4)
            named = who and any(is_name_token(token) for token in who.split())
            if named or (who and passive["by"] in ("by", "von", "vom")):
                self.pending = Pending(subject, passive["by"], "passive", who)
                yield Triple("relation", entity, f"{passive['verb']} {passive['by']}", who)
        elif (phone := inside(rest, "phone")) and re.search(r"reach|erreich", rest):
            yield self._fact(subject, "telefon" if german else "phone", phone, "phone")
        elif age := _YEARS_OLD.match(rest):
            unit = rest if " " in rest else age["age"]
            yield self._fact(
                subject, "alter" if german else "age", unit.removesuffix(" alt").removesuffix(" old"), "size"
            )
        elif relation := self.is_of(entity, rest):
            yield relation
        elif value := self._described(entity, rest):
            yield self._fact(subject, predicate, value, "copula")
            if (beside := re.search(r"\((.+)\)$", rest)) and is_name(value):
                yield from self.details(value, beside[1])

    def is_of(self, entity: str, rest: str) -> Triple | None:
        """ "Robert's mother", "the owner of Keystone", "my daughter"."""
        words = without_article(rest).split()
        owned = [place for place, word in enumerate(words[:-1]) if word.endswith(("'s", "’s"))]
        if owned:
            owner = " ".join([*words[: owned[0]], _bare(words[owned[0]])])
            what, after = phrase_at(" ".join(words[owned[0] + 1 :]), 3)
            if is_name(owner) and what and not after and wording.is_somebody(what):
                return Triple("relation", entity, f"{what} of", owner)
            return None
        if _MINE.match(rest):
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
            return (
                Triple("relation", entity, f"{of['what']} {joint}", whom) if whom and is_name(whom) else None
            )
        return None

    def _described(self, entity: str, rest: str) -> str:
        """A lasting description: an amount, a time, a trait, a name, what kind of thing it is; empty for a state."""
        value = typed(rest)
        if value and value.type in ("money", "measure", "url", "ip", "email"):
            return value.text
        value = typed(_without_preposition(rest))
        if value and value.type in ("date", "url", "ip"):
            return value.text
        if when := _schedule(rest):
            return when
        if self.habits and value and value.type == "time" and rest.startswith(("at ", "um ")):
            return value.text
        code = rest.split(" ")[0].rstrip(".,;")
        if is_identifier(code) and not is_name(entity) and len(rest.split()) <= 2 and not code.isdigit():
            return code
        first = rest.split(" ")[0].casefold()
        if first.strip(".,") in wording.TRAITS and len(rest.split()) <= 2:
            return rest
        phrase, after = phrase_at(rest, 5)
        if not phrase or wording.DENIAL.match(rest):
            return ""
        named = any(is_name_token(token) for token in phrase.split())
        kind = wording.is_somebody(phrase.split()[-1])
        living = fold(entity) in map(fold, self.named.values())
        if first in ("a", "an", "ein", "eine"):
            return phrase if kind or living or (named and self.verb == "is") else ""
        # "the API gateway is Kong": of a thing, a name says which one; of a person it would be another person.
        thing = not is_name(entity) or self.verb == "ist"
        return (
            phrase
            if thing and self.verb == "is" and is_name(phrase) and (not after or after[0] == "(")
            else ""
        )

    # ---- rosters ----

    def _detail(self, name: str, detail: str, group: str) -> Iterator[Triple]:
        """One detail of a roster line: a typed value, a key and a value, a role, another name, or a verb."""
        value = typed(detail)
        pair = re.match(r"(?P<key>[^\W\d_][\w -]{0,30}): (?P<value>.+)$", detail)
        if value and value.type in ("phone", "email", "url") and not value.rest:
            yield Triple("fact", name, value.type, value.text)
        elif value and value.type == "ip" and not value.rest:
            yield Triple("fact", name, "ip", value.text)
        elif birth := re.match(r"(?:b\.|born|geb\.|\*) ?(?P<year>\d{4})$", detail):
            yield Triple("fact", name, "born", birth["year"])
        elif group == "living" and (age := _YEARS_OLD.match(detail)):
            yield Triple("fact", name, "age", age["age"])
        elif (match := _AKA.match(detail) or _SHORT.match(detail)) and is_name(match["name"], 3):
            yield Triple("alias", match["name"], "", name)
        elif pair and (found := self._value(pair["key"], pair["value"])):
            yield Triple("fact", name, normal_key(pair["key"]), found)
        elif roles := self._role(name, detail, group):
            yield from roles
        elif keyed := _keyed_value(detail):
            yield Triple("fact", name, *keyed)
        elif detail.casefold() in wording.TRAITS:
            yield Triple("fact", name, "is", detail)
        else:
            yield from self._clause(detail, "")

    def _role(self, name: str, detail: str, group: str) -> list[Triple]:
        """What a person is: a relative of the owner, a role, a role at a company; in a roster any short detail."""
        bare = without_article(re.sub(r"^(?:my|our|mein|meine|unser|unsere) ", "", detail))
        words = bare.split()
        if not 1 <= len(words) <= 8 or wording.VERB.search(bare) or not words[0][:1].isalpha():
            return []
        short = len(words) <= 3 and is_plain_noun(bare)
        if short and wording.is_kin(bare):
            unique = words[-1].casefold() in wording.UNIQUE
            return [Triple("relation", self.user, bare.casefold(), name, single=unique)]
        if short and wording.is_pet(bare):
            mine = [Triple("relation", self.user, words[-1].casefold(), name)] if group == "living" else []
            return [Triple("fact", name, self.verb, bare, several=True), *mine]
        if short and wording.is_role(bare):
            return [Triple("fact", name, "role", bare)]
        at = _ROLE_AT.match(bare)
        if at and wording.is_role(at["role"]) and is_name(where := phrase_at(at["where"], 4)[0]):
            return [Triple("fact", name, "role", at["role"]), Triple("relation", name, "works at", where)]
        if group and len(words) <= 3 and not re.search(r"\d", bare) and not _keyed_value(detail):
            return [Triple("fact", name, self.verb, bare, several=True)]
        return []


def _keyed_value(detail: str) -> tuple[str, str] | None:
    """A key and a typed value without a colon: `birthday 8 November`, `shirt number 14`, `phone 0171 555 2093`."""
    words = detail.split()
    for count in range(1, min(4, len(words))):
        value = typed(_without_preposition(" ".join(words[count:])))
        if value is None or value.type == "schedule":
            continue
        key = [word for word in words[:count] if word not in ("on", "am", "at", "um", "is", "ist")]
        known = key and all(
            re.fullmatch(r"[^\W\d_][^\W\d_-]*", word) and word.casefold() not in _NO_KEYS for word in key
        )
        if not known or len(value.rest.split()) > 2 or (value.type == "number" and not _is_key(key[-1])):
            return None
        return normal_key(" ".join(key)), value.text
    return None


_NO_KEYS = wording.NO_ENTITY | ENDS
_TYPED_KINDS = frozenset("money date time schedule size port copula url".split())
_TYPES_OF = {
    "money": ("money",),
    "time": ("time", "number"),
    "size": ("number", "measure"),
    "url": ("url", "ip", "email"),
    "contact": ("url", "email", "phone"),
}


# ---- splitting ----


def sentences(text: str) -> list[str]:
    """The sentences of a line; the dot of `Dr.`, of an initial or of a day ends none."""
    found: list[str] = []
    start = 0
    for match in re.finditer(r"[.!?…](?=\s)", text):
        word = text[start : match.end()].rsplit(" ", 1)[-1]
        if is_abbreviation(word) or re.fullmatch(r"\(?\d{1,2}\.", word):
            continue
        found.append(text[start : match.end()].strip())
        start = match.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


def stated(sentence: str) -> bool:
    """Whether a sentence says what is: no question, hearsay, condition, wish or quotation."""
    if wording.QUESTION.search(sentence):
        return False
    if any(len(match[1].split()) > 2 for match in _QUOTED.finditer(sentence)):
        return False
    spoken = re.sub(r"\b(?:everyone|everybody) says\b", "", sentence)
    first = sentence.split(" ")[0]
    plain = sentence if first in ("Will", "May") else sentence[:1].lower() + sentence[1:]
    if wording.HEARSAY.search(spoken) or wording.DOUBT.search(plain):
        return False
    return not wording.SUBORDINATE.match(sentence)


def _clauses(sentence: str) -> Iterator[tuple[str, str]]:
    """The clauses of a sentence with the words that join them; nothing is split inside parentheses."""
    masked = _PARENTHESES.sub(
        lambda match: re.sub(
            r"[ ,;]",
            lambda c: chr(0xE000 + ord(c.group())),
            match.group()[len(match.group()) - len(match.group().lstrip()) :],
        ).join((" ", "")),
        sentence,
    )
    parts = _SPLIT.split(masked)
    joiners = ["", *parts[1::2]]
    for joiner, clause in zip(joiners, parts[::2], strict=True):
        plain = re.sub(r"[\ue000-\ue0ff]", lambda c: chr(ord(c.group()) - 0xE000), clause)
        if plain.strip():
            yield joiner.strip(), plain.strip()


def _parts(text: str) -> list[str]:
    """The details of a roster line: split at commas, semicolons and full stops outside parentheses."""
    return [
        clause.strip()
        for sentence in sentences(text)
        for part in re.split(r"(?:;|,(?! \d{4}\b)| [–—-]| /) (?![^(]*\))", sentence)
        for clause in [part]
        if clause.strip()
    ]


def _only_name(sentence: str) -> str:
    """The name in a sentence that has only one, for "she" in the next."""
    words = sentence.rstrip(".!").split()
    found, place = [], 0
    while place < len(words):
        name, rest = name_at(" ".join(words[place:]))
        taken = len(words) - place - len(rest.split()) if name else 1
        if name and (place or taken > 1) and name.casefold() not in wording.NO_ENTITY:
            found.append(name)
        place += max(taken, 1)
    return found[0] if len(found) == 1 else ""


def _with_apposition(sentence: str) -> str:
    """`Lenas Lehrerin, Frau Dobberstein, ist …` with the name in parentheses."""
    match = re.match(r"(?P<what>[^,()]{3,50}), (?P<name>[^,()]{1,40}), (?P<rest>.+)$", sentence)
    known = match and wording.VERB.match(match["rest"]) and is_name(match["what"])
    if match and known and (re.fullmatch(r"\d{1,2}", match["name"]) or _MINE.match(match["name"])):
        return f"{match['what']} ({match['name']}) {match['rest']}"
    if (
        match
        and is_name(match["name"], 4)
        and wording.VERB.match(match["rest"])
        and len(match["what"].split()) <= 4
    ):
        return f"{match['what']} ({match['name']}) {match['rest']}"
    return sentence


def _singular(noun: str) -> str:
    """A noun for relatives or pets in the singular; empty if it is none."""
    plural = {
        "kids": "kid",
        "children": "child",
        "kinder": "kind",
        "söhne": "sohn",
        "töchter": "tochter",
        "hunde": "hund",
    }
    one = plural.get(noun.casefold(), noun)
    if wording.is_kin(one) or wording.is_pet(one) or wording.is_role(one):
        return one
    less = re.sub(r"(?:n|s)$", "", one)
    return less if wording.is_kin(less) or wording.is_pet(less) else ""


def _schedule(text: str) -> str:
    """When something happens again and again: `every Tuesday at 7`, `dienstags um 19:30`, `at 9:30 on weekdays`."""
    value = typed(text)
    often = r"every|each|jed|immer|\w+(?:days|tags|wochs)\b"
    if value and value.type == "schedule" and re.match(often, value.text, re.I):
        time = re.match(
            r"(?:at|um|from|ab|,)? ?(?P<time>\d{1,2}(?:[:.]\d{2})?(?: ?(?:am|pm|uhr))?)\b", value.rest, re.I
        )
        return f"{value.text} {time.group()}".strip() if time else value.text
    every = re.match(
        r"(?:every|each|jede[nrs]?|alle|täglich|daily|weekly|monthly|nightly|hourly)\b(?: [\w:]+){0,4}", text
    )
    return every.group() if every else ""


def _without_preposition(text: str) -> str:
    return re.sub(r"^(?:(?:on|am|um|at|by|in|im|the|den|dem) )+(?=\S)", "", text)


def _bare(word: str) -> str:
    """A possessive without its ending."""
    return re.sub(r"['’]s?$", "", word)


def _is_plain(text: str) -> bool:
    """Whether a phrase may name a thing: no pronoun, no "one", no comparison in it."""
    words = text.casefold().split()
    return 1 <= len(words) <= 4 and not any(word in wording.NO_ENTITY for word in words)


def is_plain_noun(text: str) -> bool:
    return all(word.replace("-", "").isalpha() for word in text.split())


def _is_german_key(word: str) -> bool:
    """Whether a German noun names an attribute or a person by a role: Geburtstag, Patentante, Durchwahl."""
    low = word.casefold()
    endings = (
        "tag",
        "nummer",
        "adresse",
        "name",
        "größe",
        "zeit",
        "wahl",
        "wort",
        "platz",
        "port",
        "alter",
        "mail",
        "auto",
        "schule",
        "telefon",
        "handy",
        "ort",
        "termin",
        "gruppe",
        "klasse",
    )
    return word[:1].isupper() and (
        wording.is_somebody(word) or low.endswith(endings) or stemmed(low) in concepts()
    )


def is_attribute(key: str) -> bool:
    """Whether the left side of a colon is written as a property: in small letters, or a word that people ask for."""
    return key[:1].islower() or _is_key(key) or _is_key(key.split()[-1])


def _is_key(word: str) -> bool:
    return stemmed(word) in concepts() or _is_german_key(word)


def normal_key(key: str) -> str:
    """A key in lower case: `Phone number` is `phone number`; `IP` and `dateOfBirth` stay."""
    return key if any(c.isupper() for c in key[1:]) else key.lower()


def names(text: str) -> tuple[str, ...]:
    """Everything in a sentence that may be a name, in order, including a single word at its start."""
    found: list[str] = []
    tokens = text.split()
    place = 0
    while place < len(tokens):
        name, rest = name_at(" ".join(tokens[place:]))
        taken = len(tokens) - place - len(rest.split()) if name else 1
        parts = [
            part
            for part in name.replace("’", "'").removesuffix("'s").split()
            if part.casefold() not in wording.NO_ENTITY
        ]
        found += [" ".join(parts[start:]) for start in range(min(len(parts), 2))]
        place += max(taken, 1)
    return tuple(dict.fromkeys(found))
