"""Parse the subject of a clause: a name, a thing, something of somebody, a relative with or without a name."""

from __future__ import annotations

import re

import msgspec

from nanoclaw_memory.graph import wording
from nanoclaw_memory.graph.clauses import MINE, PARENTHESES, details_of, without_possessive
from nanoclaw_memory.graph.keys import is_attribute, is_german_key, is_known_key, may_name, singular
from nanoclaw_memory.graph.triples import Triple
from nanoclaw_memory.graph.values import ENDS, is_article, is_name, is_name_token, without_article
from nanoclaw_memory.store.names import fold

MAX_SUBJECT_WORDS = 7
_THEIRS = re.compile(r"(?:his|her|its|their|sein|seine|ihr|ihre)\b", re.I)
OWNED = re.compile(f"{MINE.pattern}|{_THEIRS.pattern}", re.I)
_HE = frozenset("he she it they er sie es".split())
_BE = frozenset("is are was were ist sind war waren".split())  # a clause is no subject
_I = frozenset("i we ich wir".split())
_NO_PART = re.compile(r"(?:your|yours|dein\w*|you|really|finally|usually|clearly|honestly|only|→|->)", re.I)
_THE = frozenset("the der die das this dieser diese dieses".split())
_OF = re.compile(r" (?:of|von|vom|des|(?<! in)(?<! an)(?<! zu)(?<! auf)(?<! bei)(?<! mit)(?<! aus) der) ")
_AT = re.compile(r" (?:for|at|für|bei|beim) ")
AKA = re.compile(
    r"^(?:aka|a\.k\.a\.|also known as|also called|alias|called|nickname|nicknamed|known as|genannt|spitzname|rufname|"
    r"kurz|auch|short)[: ]+(?P<name>.+)$",
    re.I,
)
NEW = frozenset("new neu neue neuer neues neuen neuem".split())
CLASSES = frozenset("project team service repo app server host projekt team dienst firma verein".split())


class Subject(msgspec.Struct, frozen=True):
    """The subject of a clause: an entity, and the key if it is about a property."""

    entity: str
    key: str = ""
    relative: str = ""  # the entity is known only by a relation: the owner's wife
    owner: str = ""
    implied: bool = False  # the owner is the page's subject, without being named
    bare: bool = False  # a noun without an article: only typed values are read


class SubjectReader:
    """Parse subjects; remembers whom pronouns and relatives mean."""

    def __init__(self, user: str = "User", owner: str = "") -> None:
        self.user = user
        self.owner = owner or user  # the owner of "our port": the project, in its file
        self.about = ""  # what the heading names
        self.last = ""  # the referent of a pronoun
        self.denied: Subject | None = None  # what the clause before denied
        self.named: dict[tuple[str, str], str] = {}  # (owner, relation) -> name
        self.introduced: tuple[Triple, ...] = ()  # what a subject states itself: "my partner Joaquín"

    def owned(self, text: str) -> Subject | None:
        """Return the owner and key that a text names: "Heidi's birthday", "my wife"; None if it names no owner."""
        self.about = self.last = ""
        subject = self._subject(text)
        return subject if subject and subject.key and not subject.implied else None

    def introduction(self, text: str) -> tuple[tuple[Triple, ...], str]:
        """Return what `My mother Graciela` says about a person, and their name; any other text unchanged."""
        subject = self._subject(text) if MINE.match(text) else None
        named = subject and not subject.key and self.introduced
        return (self.introduced, subject.entity) if subject and named else ((), text)

    def compound(self, text: str) -> Subject | None:
        """Return the owner in `Klassenlehrerin Mila`, `Package manager in ledgerline`, `Taschengeld von Jonah`."""
        words = text.split()
        if match := re.match(
            r"(?P<key>[^\W\d_][\w -]{1,30}?) (?:of|for|in|at|von|für|der|bei) (?P<owner>.+)$", text
        ):
            owner = without_article(match["owner"])
            named = (
                is_name(owner, 3)
                and not any(is_article(word) or word in ENDS for word in match["key"].split())
                and owner.casefold() not in wording.NO_ENTITY
            )
            return Subject(owner, match["key"].casefold()) if named else None
        title = words[0] in ("Frau", "Herr")
        if len(words) == 2 and wording.is_somebody(words[0]) and is_name(words[1]) and not title:
            return Subject(words[1], words[0].casefold())
        if (
            len(words) > 1
            and words[-1].isalpha()
            and is_known_key(words[-1])
            and is_name(" ".join(words[:-1]))
        ):
            return Subject(" ".join(words[:-1]), words[-1], implied=True)
        return None

    # ---- inside ----

    def _subject(self, text: str) -> Subject | None:
        self.introduced = ()
        name = ""
        for match in PARENTHESES.finditer(text):
            if is_name(match[1], 4) and not wording.DENIAL.search(match[1]):
                name = match[1]
            elif is_name(bare := PARENTHESES.sub("", text).strip()):
                self.introduced = tuple(self._portrait(bare, match[1]))
        text = PARENTHESES.sub("", text).strip()
        words = text.split()
        if not words or len(words) > MAX_SUBJECT_WORDS or re.search(r"[,()\"“„:]", text):
            return None
        low = words[0].casefold()
        if any(word in wording.MODALS or word in _BE or _NO_PART.fullmatch(word) for word in words):
            return None
        if not words[0][:1].isalnum() and words[0][:1] not in "-#@":
            return None  # "'I am …'"
        if len(words) == 1 and low in ("it", "es") and self.denied:
            return self.denied
        if len(words) == 1 and low in _HE:
            return Subject(self.last) if self.last not in ("", self.user) else None
        if len(words) == 1 and low in _I:
            return Subject(self.owner if low in ("we", "wir") else self.user)
        if MINE.fullmatch(words[0]) and len(words) > 1:
            owner = self.user if low in ("my", "mein", "meine", "meines", "meiner") else self.owner
            return self._possessive(owner, words[1:], name)
        if _THEIRS.fullmatch(words[0]) and len(words) > 1:
            return self._possessive(self.last, words[1:], name) if self.last not in ("", self.user) else None
        return self._other_subject(words, low, name)

    def _portrait(self, name: str, text: str) -> list[Triple]:
        """Read the parentheses after a name: another name, an age, the person's relation to somebody."""
        found: list[Triple] = []
        for part in details_of(text):
            words = part.split()
            aka = AKA.match(part)
            owned = [n for n, word in enumerate(words[:-1]) if word.endswith(("'s", "’s", "s'", "s’"))]
            german = len(words) == 2 and words[0].endswith("s") and wording.is_somebody(words[1])
            if re.fullmatch(r"\d{1,2}", part) and is_name(name, 2):
                found.append(Triple("fact", name, "age", part))
            elif aka:
                found.append(Triple("alias", aka["name"].strip(), "", name))
            elif MINE.fullmatch(words[0]) and wording.is_somebody(part):
                found.append(Triple("relation", self.user, " ".join(words[1:]).casefold(), name))
            elif owned or german:
                place = owned[0] if owned else 0
                owner = without_article(
                    " ".join([*words[:place], without_possessive(words[place]) if owned else words[0][:-1]])
                )
                what = " ".join(words[place + 1 :])
                if wording.is_somebody(what) and is_name(owner):
                    found.append(Triple("relation", owner, what.casefold(), name))
        return found

    def _other_subject(self, words: list[str], low: str, name: str) -> Subject | None:
        text = " ".join(words)
        if low in _THE and len(words) > 1:
            inner = " ".join(words[1:])
            if re.fullmatch(r"[a-z]{3,}est", inner):  # "the youngest"
                return None
            owned = [place for place, word in enumerate(words[:-1]) if place and word.endswith(("'s", "’s"))]
            if owned:
                owner = " ".join([*words[1 : owned[0]], without_possessive(words[owned[0]])])
                if re.search(r" (?:for|of|in|at|on|to|von|für) ", owner):
                    return None
                return self._possessive(owner, words[owned[0] + 1 :], name)
            if len(words) == 3 and words[1].casefold() in CLASSES and is_name(words[2]):
                return Subject(words[2])
            if of := _OF.search(inner):
                owner = without_article(inner[of.end() :])
                return Subject(owner, inner[: of.start()]) if is_name(owner) or may_name(owner) else None
            if at := _AT.search(inner):
                owner = without_article(inner[at.end() :])
                if any(map(is_name_token, owner.split())) and len(owner.split()) <= 4:
                    return Subject(owner, inner[: at.start()])
            return Subject(inner) if len(words) <= 5 and may_name(inner.replace(" for ", " ")) else None
        if low in wording.NO_ENTITY:
            return None
        if len(words) == 2 and low in CLASSES and is_name(words[1]):
            return Subject(words[1])
        owned = [place for place, word in enumerate(words[:-1]) if word.endswith(("'s", "’s", "s'", "s’"))]
        owner = " ".join([*words[: owned[0]], without_possessive(words[owned[0]])]) if owned else ""
        if owner and is_name(owner):
            if words[owned[0]].endswith(("s'", "s’")) and singular(owner.casefold()):
                return None  # "Parents' evening" is nobody's
            return self._possessive(owner, words[owned[0] + 1 :], name)
        if len(words) == 2 and low.endswith("s") and is_german_key(words[1]) and is_name_token(words[0]):
            return self._possessive(words[0][:-1], words[1:], name)
        if of := re.search(r" (?:von|of) ", text):
            owner = without_article(text[of.end() :])
            key = text[: of.start()]
            if any(word in wording.NO_ENTITY for word in key.casefold().split()):
                return None
            known = is_german_key(key) or " of " in text
            known = known and owner.casefold() not in wording.NO_ENTITY
            return Subject(owner, key.casefold()) if known and (is_name(owner) or may_name(owner)) else None
        if target := re.match(r"(?P<key>[A-ZÄÖÜ]?[\w-]+) (?:for|at|für|bei|beim) (?P<owner>.+)$", text):
            owner = without_article(target["owner"])
            named = is_name(owner, 3) and owner.casefold() not in wording.NO_ENTITY
            return Subject(owner, target["key"].casefold()) if named else None
        if is_name(text):
            return self._attribute(text) or Subject(text)
        if len(words) <= 3 and may_name(text):
            bare = not any(map(is_name_token, words)) or low.endswith(("ed", "ing"))
            return self._attribute(text) or Subject(text, bare=bare)
        return None

    def _attribute(self, text: str) -> Subject | None:
        """Read "Owner is Ravi": a property of the page's subject."""
        about = self.about or (self.owner if self.owner != self.user else "")
        if not about or fold(text) == fold(about) or not is_attribute(text):
            return None
        return Subject(about, text.casefold(), implied=True)

    def _possessive(self, owner: str, words: list[str], name: str) -> Subject | None:
        """Return what belongs to an owner: a key, or a person by their relation to the owner, with their name if it
        follows.
        """
        if len(words) > 1 and words[0].casefold() in NEW:
            words = words[1:]  # "our new landlord is Kim": the key is the old one
        whole = re.match(r"(?P<key>[^'’]+?) (?:of|at|on) the (?P<owner>[^'’]+)$", " ".join(words))
        if whole and owner in (self.user, self.owner) and not name and may_name(whole["owner"]):
            return Subject(whole["owner"], whole["key"])  # "our upload cap at the print portal"
        links, part = [], []
        for place, word in enumerate(words):
            part.append(word)
            if word.endswith(("'s", "’s", "s'", "s’")) and place + 1 < len(words):
                links.append(" ".join([*part[:-1], without_possessive(word)]))
                part = []
        if len(part) > 1 and part[0].casefold() in CLASSES and is_name(" ".join(part[1:])) and not links:
            return Subject(" ".join(part[1:]))  # "our project Keystone"
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
            self.introduced += (Triple(kind, entity, key.casefold(), name, several=True),)
            self.named[fold(owner), fold(key)] = name
            return Subject(name)
        relative = chain if links and entity != owner and (fold(owner), fold(chain)) not in self.named else ""
        return Subject(entity, key, relative, owner)

    def _known(self, owner: str, relative: str) -> str:
        """Return the name of an owner's relative, or the relation without it: `wife`, `Robert's mother`."""
        own = self.named.get((fold(owner), fold(relative)))
        return own or (relative if owner in (self.user, self.owner) else f"{owner}'s {relative}")

    def _entity(self, subject: Subject) -> str:
        """Return the entity of a clause whose subject is something of somebody: my sister, our runner."""
        return self._known(subject.entity, subject.key) if subject.key else subject.entity
