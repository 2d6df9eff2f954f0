"""Read sentences that state something lasting: find the verb, the subject before it and the value after it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from msgspec.structs import replace

from nanoclaw_memory import tokens
from nanoclaw_memory.graph import wording
from nanoclaw_memory.graph.appositions import appositions
from nanoclaw_memory.graph.changed_values import as_current
from nanoclaw_memory.graph.clauses import (
    PARENTHESES,
    clauses,
    is_own,
    only_name,
    schedule,
    sentences,
    stated,
    with_apposition,
)
from nanoclaw_memory.graph.copula import CopulaReader, OpenClause
from nanoclaw_memory.graph.handovers import handover
from nanoclaw_memory.graph.keys import is_known_key, keyed_value, normal_key, singular
from nanoclaw_memory.graph.subjects import Subject
from nanoclaw_memory.graph.triples import Triple
from nanoclaw_memory.graph.values import (
    ENDS,
    TypedValue,
    is_host,
    is_identifier,
    is_machine,
    is_name,
    is_name_token,
    is_version,
    name_at,
    phrase_at,
    typed,
    without_article,
    without_preposition,
)
from nanoclaw_memory.store.names import fold

_WE_CALL = re.compile(
    r"^(?P<who>(?:we|i|everyone|everybody|people|wir|alle|friends)(?: all)? (?:just )?)?"
    r"(?:call|calls|say|says|nennen|nenne|nennt|nenn) "
    r"(?P<whom>him|her|it|them|me|us|ihn|sie|es|mich)?(?(who)|(?(whom)|(?!)))\s*(?P<name>.+)$",
    re.I,
)
# "Jonas hat am 10. November einen Termin" tells no birthday.
_TURNS = re.compile(
    r"^(?P<who>.+?) (?:(?:turns \d+ on|has (?:his|her) birthday on) (?P<date>.+)|"
    r"hat (?:am|im) (?P<tag>.+ geburtstag))$",
    re.I,
)
_SINCE = re.compile(
    r"\b(?:since|seit)(?: dem)? (?P<when>\d{4}-\d{2}-\d{2}|\d{1,2}\.\d{1,2}\.\d{4}|"
    r"(?:(?:\d{1,2}\.? )?[A-ZÄ]\w+ )?\d{4})\b ?"
)
_GEZOGEN = re.compile(
    r"^(?P<who>[^,;]+?) (?:ist|sind) (?:.{1,20} )?nach (?P<where>\w[\w -]+?) (?:um)?gezogen$"
)
_ZUSTÄNDIG = re.compile(
    r"^(?P<who>.+?) (?:ist|sind) (?:[^,]{1,20} )?für (?P<what>.+?) (?:zuständig|verantwortlich)$"
)
_NICKNAMED = re.compile(
    r"^(?:the |der |die |das )?[\"“„»](?P<nick>[^\"“”„«»]{2,30})[\"”“«] (?:is|ist|means|heißt) (?P<rest>.+)$",
    re.I,
)
_ALLERGIC = re.compile(r"^(?P<who>.+?) (?:ist|reagiert) (?:gegen|auf) (?P<what>.+?) allergisch$")
_PREFERS = re.compile(r"^(?P<who>[^,;]+?) (?:prefers|bevorzugt) (?P<what>.+)$")
_MOST_WORDS = 10  # of a preference
_LIST_ITEM = 2
_BEFORE_CONTACT = re.compile(r"^[a-zäöü]+ (?:at|on|under|unter|per) (?=\S+(?: \d[\d ]*)?$)")  # "reachable at"
_MY_NAME = re.compile(
    r"^(?:name['’]s|name is|i['’]m called|my name['’]s|ich heiße) (?P<rest>[A-ZÀ-Þ].*)$", re.I
)
_HAS = re.compile(
    r"^(?:an?|one|two|three|four|twin|\d|ein\w*|zwei|drei|vier)? ?(?:new |neue[nrs]? )?(?P<what>[\w-]+(?: [\w-]+)?)"
    r"(?: (?:called|named|namens|genannt) |[,:] ?)(?P<name>.+)$"
)
_ADDRESS = re.compile(
    r"(?:der |dem |den |the )?(?P<where>(?:\d+\w? )?[A-ZÄÖÜ][\w.'’-]*"
    r"(?: [\w.'’-]+){0,3}?(?: \d+\w?)?(?:, \d{4,5} [\w -]+)?)$"
)
_OF_PLAIN = frozenset("owns manages leads maintains uses teaches leitet betreut besitzt nutzt".split()) | {
    "handles",
    "takes care of",
    "deals with",
    "responsible for",
    "zuständig für",
}
_WHEN = frozenset(
    "on at in with before after within every each since these most seit am um im mit bei jeden jede immer".split()
)
_PASSING = frozenset("needs requires braucht benötigt gets takes nimmt".split()) | {
    "go to",
    "goes to",
    "geht in",
}
_PARTICLES = frozenset("out up off over back down to sich".split())
_ENDING = frozenset("until till bis when while before except außer instead statt".split())
_AMOUNT = re.compile(r"^(?:of )?(?P<what>[A-Za-zÄÖÜäöüß][\w-]{1,20})$")
_GAPPED = ("size", "money", "date", "listens", "port")
_TYPED_KINDS = frozenset("money date time schedule size port listens copula url".split())
_TYPES_OF = {
    "money": ("money",),
    "time": ("time", "number"),
    "size": ("number", "measure"),
    "url": ("url", "ip", "email"),
    "contact": ("url", "email", "phone"),
}


class SentenceReader(CopulaReader):
    """Read the sentences of one file in order."""

    def read(self, text: str, about: str = "") -> list[Triple]:
        """Return the triples that the sentences of a text state."""
        self.about = self.last = about
        found: list[Triple] = []
        for sentence in sentences(text):
            self.pending = self.denied = None
            sentence = wording.without_opening(sentence) if self.talk else sentence
            passing = appositions(sentence, self.user, self.verb) if is_own(sentence) else ()
            if not stated(sentence):
                found += (replace(triple, rule="apposition") for triple in passing)
                self.last = ""
                continue
            triples = [
                triple for triple in self._sentence(sentence) if not self.talk or self._is_personal(triple)
            ]
            known = {(fold(triple.subject), fold(triple.object)) for triple in triples}
            found += (
                replace(triple, rule="apposition")
                for triple in passing
                if (fold(triple.subject), fold(triple.object)) not in known
            )
            found += triples
            if not triples:  # in conversation the only name may be the addressee's
                self.last = "" if self.talk else only_name(sentence)
        return found

    def _is_personal(self, triple: Triple) -> bool:
        """Return whether a statement in conversation is about a person or a value, rather than the task at hand."""
        who, key, value = triple.subject, triple.predicate, triple.object
        if key in _PASSING or typed(who):
            return False
        person = who == self.user or any(map(is_name_token, who.split())) or wording.is_kin(who)
        known = is_known_key(key.split(" ")[-1]) or is_known_key(who.split(" ")[-1])
        exact = typed(value)
        if triple.kind == "fact" and exact and exact.type in ("number", "measure"):
            return known or _is_specific(key if who == self.user else who, exact)
        if triple.kind == "relation" and (is_host(value) or is_version(value)):
            return True
        if triple.kind != "fact" or exact:
            return bool(person or exact)
        return person and (who != self.user or is_name(value) or known or key in ("is", "ist", "allergic to"))

    def _sentence(self, sentence: str) -> Iterator[Triple]:
        sentence = wording.expanded(wording.without_denial(sentence.strip().rstrip(".!")))
        sentence = PARENTHESES.sub(lambda m: "" if wording.DENIAL.search(m[1]) else m.group(), sentence)
        if given := handover(sentence, self.verb):
            self.last = given.subject
            yield given
            return
        now = wording.NOW.search(sentence) and not wording.BESIDE.search(sentence)
        sentence = wording.ADVERBS.sub("", with_apposition(sentence))
        sentence = self._without_since(sentence)
        sentence = re.sub(
            r"\b(has|have|hat|haben) ((?:\w+ )?[\w-]+), (?=[A-ZÀ-Þ])", r"\1 \2 named ", sentence
        )
        sentence = re.sub(r"\b(?:wird|werden) (?=(?:von|vom|durch) )", "ist ", sentence)
        if match := _GEZOGEN.match(sentence):
            sentence = f"{match['who']} wohnt in {match['where']}"
        if match := _ZUSTÄNDIG.match(sentence):
            sentence = f"{match['who']} ist zuständig für {match['what']}"
        if (match := _NICKNAMED.match(sentence)) and is_name(name := name_at(match["rest"])[0], 3):
            yield Triple("alias", match["nick"], "", name, rule="alias")
            return
        if match := _ALLERGIC.match(sentence):
            yield from self._allergic(match)
            return
        if (match := _PREFERS.match(sentence)) and is_name(match["who"]) and (what := _listed(match["what"])):
            yield Triple("fact", match["who"], "preference", what)
            return
        if match := _MY_NAME.match(sentence):
            sentence = f"My name is {match['rest']}"
        together, stated = "", set[tuple[str, str]]()
        original = list(clauses(sentence))
        parts = [(joiner, as_current(clause, self.verb)) for joiner, clause in original]
        if _is_joint_subject(parts):
            return
        for place, (joiner, clause) in enumerate(parts):
            self.listing = _is_listing(parts[place:])
            pronoun = clause.split(" ")[0].casefold() in wording.NO_ENTITY  # "Ich bin" is no Arabic name
            if is_name(clause, 3) and not together and joiner == "" and not pronoun:
                together = clause
                continue
            denied = wording.DENIAL.search(clause) and not re.search(
                r"\b(?:is|are|ist|sind) (?:not|nicht) [\w-]+$", clause
            )
            if denied or (wording.PAST.search(clause) and not wording.BORN.search(clause)):
                self.pending = None
                self._turn_to(clause)
                continue
            reported = clause if clause != original[place][1] else ""
            triples = list(self._clause(clause.strip(), joiner))
            if now or reported:
                triples = [_since_now(triple, stated, reported) for triple in triples]
            stated.update((triple.subject, triple.predicate) for triple in triples)
            yield from triples
            if together and joiner in ("and", "und") and triples and clause.startswith(triples[0].subject):
                yield from (replace(t, subject=together) for t in triples if t.subject == triples[0].subject)
            together = ""

    def _without_since(self, text: str) -> str:
        """Return a text without "since 2019", which is stored for the statement that follows."""
        match = _SINCE.search(text)
        self.since = match["when"] if match else ""
        return _SINCE.sub("", text).replace("  ", " ").strip() if match else text

    def _turn_to(self, clause: str) -> None:
        """Remember what a clause denies or reports as past: "it is 3 June" may state what holds instead."""
        verb = wording.VERB.search(clause)
        self.denied = self._subject(clause[: verb.start()].strip()) if verb else None
        name = name_at(clause)[0]
        name = "" if name.casefold() in wording.NO_ENTITY else name  # "We moved in with Lena, she …"
        self.last = self.denied.entity if self.denied else name or self.last

    def _clause(self, clause: str, joiner: str) -> Iterator[Triple]:
        before, self.pending = self.pending, None
        if match := _TURNS.match(clause):
            yield from self._birthday(match["who"], match["date"] or match["tag"])
            return
        contact = typed(_BEFORE_CONTACT.sub("", clause))
        if before and contact and contact.type in ("phone", "email") and not contact.rest:
            self.pending = before
            if is_name(before.object):  # "The vet is Dr. Hallam, 555-0199"
                yield Triple("fact", before.object, contact.type, contact.text, rule="detail")
            return
        match = _WE_CALL.match(clause)
        if match and (triples := self._called(match)):
            yield from triples
            return
        for verb in wording.VERB.finditer(clause):
            if verb.end() == len(clause) or clause[verb.end()] != " ":
                continue
            start = re.sub(r"['’]s$", "", clause[: verb.start()].strip())  # "Rosa's allergic to"
            subject = self._carried(start, before) if len(start) < 6 else None
            subject = subject or self._subject(start)
            if subject is None:
                continue
            yield from self.introduced
            for form in wording.FORMS:
                if not clause.startswith(form + " ", verb.start()):
                    continue
                rest = clause[verb.start() + len(form) :].strip()
                for predicate, kind in wording.VERBS[form]:
                    if triples := list(self._state(subject, predicate, kind, rest)):
                        yield from (replace(triple, rule=kind) for triple in triples)
                        return
            self.pending = self.pending or OpenClause(subject, "", "")
        if self.pending:
            return
        if before and before.predicate:
            yield from self._elliptic(clause, joiner, before)
        elif not self.talk:
            name, rest = name_at(clause)
            own = name.casefold() not in wording.NO_ENTITY and not is_known_key(name.split(" ")[0])
            if rest and not self.pending and is_name(name, 3) and own:
                self.pending = OpenClause(Subject(name), "", "")  # "Theo started at Bosch and reports to Ann"

    def _carried(self, start: str, before: OpenClause | None) -> Subject | None:
        """Return the subject of a clause without one: "and costs 5 €", "who reports to …"."""
        if before is None:
            return None
        if not start:
            return Subject(self._entity(before.subject))
        if start.casefold() in ("who", "which", "der", "die", "das") and before.object:
            return Subject(before.object)
        return None

    def _elliptic(self, clause: str, joiner: str, before: OpenClause) -> Iterator[Triple]:
        """Read a clause that leaves out key or verb: "Tess's 8:30", "Ida 98", "and PostgreSQL"."""
        self.pending = before
        gap = re.match(r"(?P<name>\D+?) (?P<rest>(?:am |um |on |at )?[\d€$£+-].*)$", clause)
        name, rest = (gap["name"], gap["rest"]) if gap else name_at(clause)
        name, key = name.removesuffix("'s").removesuffix("’s"), before.subject.key
        if not is_name(name, 3):
            name = rest = ""
        if before.kind == "copula" and key and rest and (singular(name) or not is_known_key(name)):
            owner = name if name + "'s" in clause.replace("’", "'") else name.removesuffix("s")
            if value := typed(without_preposition(rest)):
                yield Triple("fact", owner, key, value.text)
        elif before.kind in _GAPPED and rest and (value := typed(without_preposition(rest))):
            yield Triple("fact", name, before.predicate, value.text)
        elif before.kind in ("passive", "copula") and wording.PASSIVE.fullmatch(clause):
            yield from self._plain(before.subject, "is", clause)
        elif (
            before.kind in ("names", "list")
            and self.listing
            and not gap
            and not _OTHER_VERB.match(clause)
            and _goes_on_alike(before.after, phrase_at(clause, 4)[1])
        ):
            clause = clause.removeprefix(f"{before.predicate.rsplit(' ', 1)[-1]} ")
            yield from self._objects(before.subject, before.predicate, before.kind, clause)
        elif (keyed := keyed_value(clause)) and is_known_key(keyed[0].split(" ")[-1].capitalize()):
            yield Triple("fact", self._entity(before.subject), *keyed, rule="detail")

    def _state(self, subject: Subject, predicate: str, kind: str, rest: str) -> Iterator[Triple]:
        code = kind in ("names", "host") and " " not in subject.entity and is_identifier(rest.split(" ")[0])
        lasting = " " in subject.entity and _is_amount(rest)  # "session timeout is 20 minutes"
        typed_kind = kind in _TYPED_KINDS and not (
            kind == "copula" and subject.entity[:1].islower() and not lasting
        )
        if subject.bare and not (typed_kind or code):
            return
        if kind == "copula" or (kind == "amount" and _is_amount(rest)):
            yield from self._copula(subject, predicate, rest)
        elif kind == "amount":
            return
        elif kind in ("alias", "named"):
            yield from self._naming(subject, kind, rest)
        elif kind in ("stands", "means"):
            phrase, _ = phrase_at(rest, 5)
            # "It means a lot": only an abbreviation or a name is a meaning.
            written = re.fullmatch(r"[A-Z\d&/.-]{2,}", subject.entity) or (
                is_name(subject.entity) and any(map(is_name_token, phrase.split()))
            )
            if phrase and (kind == "stands" or written):
                yield Triple("alias", self._entity(subject), "", phrase)
        elif kind == "habit":
            yield from self._habit(Subject(self._entity(subject)), predicate, rest) if self.habits else ()
        elif kind == "has":
            yield from self._has(Subject(self._entity(subject)), rest)
        elif kind == "contact":
            key = subject.key or predicate
            yield from self._typed(Subject(subject.entity), key, kind, rest)
        elif kind == "machine":
            yield from self._machine(Subject(self._entity(subject)), predicate, rest)
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
        if (port := re.match(r"(?P<host>\S+),? [Pp]ort (?P<number>\d{2,5})$", rest)) and is_host(
            port["host"]
        ):
            yield Triple("relation", subject.entity, predicate, port["host"])
            yield self._fact(subject, "port", port["number"], "port")
            return
        article = rest.split(" ")[0].casefold() in ("the", "der", "die", "das", "den", "dem")
        # German "an" is no article, and in "Rolf gehört das Haus" the owner comes first.
        whose = predicate == "gehört" and re.match(r"(?:das|die|ein)\b", rest)
        if whose or re.match(r"an (?:der|die|das|den|dem) ", rest):
            return
        what, after = phrase_at(rest, 4)
        what = re.sub(r" (?:only|there|here|nur|dort|hier)$", "", what)
        named = any(is_name_token(token) for token in what.split())
        if predicate in ("languages", "sprachen") and not named:
            return
        if self.verb == "ist" and " " in what and re.search(r" [a-zäöüß]+$", what):
            return  # "ist bei Lindner geblieben": German nouns are capitalised, so this is the rest of a verb
        plain = predicate in _OF_PLAIN and is_name(subject.entity) and rest == what and what.isalpha()
        if (
            not what
            or what.casefold() in wording.NO_ENTITY
            or not (named or article or plain or kind == "list")
        ):
            return
        if (kind == "places" and not is_name(what)) or after.split(" ")[0].casefold() in _ENDING:
            return
        if kind == "list":
            self.pending = OpenClause(subject, predicate, kind, what, after)
            self.last = subject.entity
            yield Triple("fact", subject.entity, predicate, what, several=True)
            return
        if predicate == "runs" and is_version(what):
            predicate = "runs on"
        self.pending = OpenClause(subject, predicate, "names", what, after)
        self.last = subject.entity
        yield Triple("relation", subject.entity, predicate, what)
        role = re.match(r"(?:as|als) (?:an? |the |eine? |der |die )?(?P<what>[\w-]+(?: [\w-]+){0,2})$", after)
        if role and wording.is_role(role["what"]):
            yield Triple("fact", subject.entity, "role" if self.verb == "is" else "beruf", role["what"])
        if self.since:
            yield Triple("fact", subject.entity, f"{predicate} since", self.since)
            self.since = ""

    def _machine(self, subject: Subject, predicate: str, rest: str) -> Iterator[Triple]:
        """Read "is on keg-node-4", "is on Node 22": a machine's name, or a product with its version."""
        where = re.split(r", | (?:and|und) ", rest)[0]
        host, _, port = where.partition(" ")
        if is_name(subject.entity) and not is_host(subject.entity):
            return  # somebody is on holiday, and on a machine for an hour
        if is_machine(host) and (not port or re.match(r"[Pp]ort \d", port) or port.split(" ")[0] in ENDS):
            yield Triple("relation", subject.entity, predicate, host)
            self.pending = OpenClause(subject, predicate, "host", host)
            if number := re.match(r"[Pp]ort (\d{2,5})\b", port):
                yield self._fact(subject, "port", number[1], "port")
        elif (version := re.match(r"\S+(?: \S+)? v?\d[\d.]*(?= |$)", where)) and is_version(version.group()):
            yield Triple("relation", subject.entity, predicate, version.group())

    def _habit(self, subject: Subject, verb: str, rest: str) -> Iterator[Triple]:
        """Read what somebody does regularly: an amount, something named, or a short phrase."""
        if value := typed(rest):
            if value.type != "schedule" and not value.is_cut_off and not value.rest.startswith("von "):
                yield self._fact(subject, verb, f"{value.text}{_measured(value)}", "habit")
            return
        what, after = phrase_at(rest, 4)
        if (
            not what
            or (after and after.split(" ")[0].casefold() not in _WHEN)
            or (verb == "gets" and what.split()[0].endswith("ed"))
            or what.split()[0] in _PARTICLES
            or what.casefold().split()[0] in wording.NO_ENTITY
            or subject.entity in (self.user, self.owner)
        ):
            return
        if is_name(what) and not re.search(r" (?:von|of) ", what):
            self.pending = OpenClause(subject, verb, "names", what)
            yield Triple("relation", subject.entity, verb, what)
        elif is_name(subject.entity) and len(what.split()) <= 3:
            yield self._fact(subject, verb, what, "habit")

    def _has(self, subject: Subject, rest: str) -> Iterator[Triple]:
        """Read "has a brother called Bosse", "has 24 GB of RAM"."""
        named = _HAS.match(rest)
        value = typed(rest)
        if named and is_name(named["name"], 3) and singular(named["what"]):
            what = named["what"]
            yield from self._named(subject.entity, what, named["name"])
            self.pending = OpenClause(subject, what, "names", named["name"])
        elif keyed := self._keyed_has(rest):
            yield self._fact(subject, *keyed, "has")
        elif (
            not self.talk
            and value
            and value.type in ("measure", "number")
            and (what := _AMOUNT.match(value.rest))
        ):
            yield self._fact(subject, what["what"], value.text, "size")

    def _keyed_has(self, rest: str) -> tuple[str, str] | None:
        """Read "has the IP 10.0.0.4", "hat die Nummer 0171 5550147": a known key and a typed value."""
        key, _, after = without_article(rest).partition(" ")
        value = typed(after)
        if not value or value.type in ("schedule", "channel") or value.rest or not is_known_key(key):
            return None
        return normal_key(key), value.text

    def _typed(self, subject: Subject, key: str, kind: str, rest: str) -> Iterator[Triple]:
        rest = without_preposition(rest)
        value = typed(rest)
        if kind == "phrase":
            phrase, _ = phrase_at(rest, 5)
            if phrase:
                yield self._fact(subject, key, phrase, kind)
        elif kind in ("port", "answers", "listens"):
            word = "?" if kind == "listens" else ""
            if port := re.match(rf"(?:[Pp]ort ){word}(\d{{2,5}})\b(?![.:]\d)", rest):
                yield self._fact(subject, key, port[1], kind)
            elif kind == "answers" and is_name(rest, 3):
                yield Triple("alias", rest, "", subject.entity)
        elif kind == "schedule":
            if (when := schedule(rest)) and subject.entity != self.user:
                yield self._fact(subject, key, when, kind)
        elif kind == "date":
            year = re.match(r"(?:19|20)\d\d(?![\w-])", rest)
            if (value and value.type == "date") or year:
                yield self._fact(
                    subject, key, value.text if value and value.type == "date" else rest[:4], kind
                )
        elif value and value.type in _TYPES_OF[kind] and not value.is_cut_off:
            yield self._fact(subject, key, value.text, kind)
            host = re.match(r"(?:UTC |Uhr )?(?:on|auf) (?P<host>\S+)$", value.rest)
            if host and is_name(host["host"]):
                yield Triple(
                    "relation", subject.entity, "runs on" if self.verb == "is" else "läuft auf", host["host"]
                )

    def _naming(self, subject: Subject, kind: str, rest: str) -> Iterator[Triple]:
        name, _ = name_at(rest)
        if not name or name.casefold() in wording.NO_ENTITY:
            return
        if subject.key and wording.is_somebody(subject.key):
            yield from self._named(subject.entity, subject.key, name)
        elif kind == "alias":
            self.pending = OpenClause(subject, "", "")
            yield Triple("alias", name, "", self._entity(subject))
        elif subject.entity != self.user:
            yield self._fact(Subject(self._entity(subject)), "name", name, kind)

    def _called(self, match: re.Match[str]) -> list[Triple]:
        """Read "We call her Mouse", "everyone says Billie"."""
        whom, name = (match["whom"] or "").casefold(), match["name"].strip()
        entity = self.user if whom in ("me", "mich") or (not whom and self.last == self.user) else self.last
        if not whom and (parts := name.rsplit(" ", 1)) and len(parts) == 2:
            entity, name = re.sub(r" (?:the|den|die|das|der)$", "", without_article(parts[0])), parts[1]
        if not entity or not is_name(name, 3):
            return []
        return [Triple("alias", name, "", entity)]

    def _allergic(self, match: re.Match[str]) -> Iterator[Triple]:
        subject = self._subject(match["who"])
        yield from self.introduced
        if subject:
            for what in re.split(r", | und ", match["what"]):
                yield Triple("fact", self._entity(subject), "allergie", what, several=True)

    def _birthday(self, who: str, date: str) -> Iterator[Triple]:
        subject, value = self._subject(who), typed(date)
        yield from self.introduced
        german = "geburtstag" in date.casefold()
        if subject and value and value.type == "date":
            yield Triple("fact", self._entity(subject), "geburtstag" if german else "birthday", value.text)


def _since_now(triple: Triple, stated: AbstractSet[tuple[str, str]], reported: str) -> Triple:
    """Return what holds since a change: a thing runs in one place, unless the sentence lists several."""
    own = triple.kind == "relation" and (triple.subject, triple.predicate) not in stated
    single = own and triple.predicate in wording.ONE_AT_A_TIME
    return replace(triple, single=triple.single or single, stated=reported)


def _is_specific(who: str, value: TypedValue) -> bool:
    """Return whether an amount belongs to something that lasts: "session timeout", "Zahlungsfrist", not "lunch"."""
    return " " in who or (value.type == "measure" and not tokens.is_one(f" {who.casefold()}"))


def _is_amount(text: str) -> bool:
    value = typed(text)
    return value is not None and value.type in ("money", "measure", "number") and not value.is_cut_off


def _is_joint_subject(parts: Sequence[tuple[str, str]]) -> bool:
    """Return whether "and" joins two parts of a single subject: "the party of Sam and Ode"."""
    if len(parts) < 2 or parts[1][0] not in ("and", "und"):
        return False
    first = parts[0][1]
    if wording.VERB.search(first):
        return False
    return not is_name(first, 3) or bool(re.search(r" (?:of|von|zwischen) ", first))


_BESIDE = ("", "with", "mit")
# "lives in src/a.py and raises BadName" continues with another verb, "on Kong and Redis" with a list.
_OTHER_VERB = re.compile(r"[a-z]+[a-rt-z]s (?=[A-Z])")


def _is_listing(parts: Sequence[tuple[str, str]]) -> bool:
    """Return whether clauses continue a list: "…, Redis and Kong"; a lone word after a comma is something else."""
    last = next((n for n, (joiner, _) in enumerate(parts, 1) if joiner.split(" ")[-1] in ("and", "und")), 0)
    if last:
        return not any(wording.VERB.search(clause) for _, clause in parts[:last])
    return len(parts) > 1 and all(is_name(clause, 3) for _, clause in parts)


def _goes_on_alike(after: str, other: str) -> bool:
    """Return whether two items of a list continue alike: "for auth", "as a cache"; "with Anna" begins no list."""
    first, second = after.split(" ")[0], other.split(" ")[0]
    return first == second or not (first in _BESIDE or second in _BESIDE or second.startswith("("))


def _listed(text: str) -> str:
    """Return a short list whole, else the text before the next clause; empty if that is long."""
    first, *others = [clause for _, clause in clauses(text)]
    whole = text if all(len(other.split()) <= _LIST_ITEM for other in others) else first
    return whole if len(whole.split()) <= _MOST_WORDS else ""


def _measured(value: TypedValue) -> str:
    """Return what a measure is of: " of ramipril", " Ibuprofen"."""
    joint = " of" if value.rest.startswith("of ") else ""
    if value.type != "measure" or not (joint or value.rest[:1].isupper()):
        return ""
    what, _ = phrase_at(value.rest.removeprefix("of "), 3)
    return f"{joint} {what}" if what else ""
