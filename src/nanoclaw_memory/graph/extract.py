"""Extract facts, relations and aliases from Markdown: front matter, pairs, tables, arrows, rosters, sentences."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.graph import wording
from nanoclaw_memory.graph.appositions import several_of
from nanoclaw_memory.graph.clauses import MINE, details_of, sentences, stated
from nanoclaw_memory.graph.headings import CATEGORIES, ROSTER, SECTION, group_of, is_thing, may_be_key
from nanoclaw_memory.graph.keys import is_attribute, is_known_key, keyed_value, normal_key
from nanoclaw_memory.graph.rosters import RosterReader
from nanoclaw_memory.graph.subjects import CLASSES
from nanoclaw_memory.graph.triples import Triple
from nanoclaw_memory.graph.trust import SURE, probability
from nanoclaw_memory.graph.values import (
    ADDRESS,
    ENDS,
    head_of,
    inside,
    is_identifier,
    is_name,
    name_at,
    typed,
    unmarked,
)
from nanoclaw_memory.store.names import slot_of
from nanoclaw_memory.text import language
from nanoclaw_memory.types import FOREIGN
from nanoclaw_memory.workspace.log import without_marks

MAX_LINE = 2_000
MAX_PER_LINE = 12
MAX_VALUE_WORDS = 12  # a longer value is a sentence: search finds it in its file
LIST_ITEM = 2  # maximal words of a list's values
SHORT_VALUE = 3  # maximal words of a value under any noun
LEAST_IMPORTANCE = 0.4  # less important lines are routine context and not stored
PERMANENT_IMPORTANCE = 0.8
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(?P<text>.+)$")
_HEADING = re.compile(r"^(?P<level>#{1,6})\s+(?P<title>.+?)\s*#*$")
_LABEL = re.compile(
    r"^\[(?P<tag>[\w-]{1,40})\s*(?:\|\s*i(?:mportance)?\s*[=:]\s*(?P<i>[\d.,]+)[^\]]*)?\]\s+(?P<text>.+)$"
)
_CLOCK = re.compile(r"^\d{1,2}[:.]\d{2}(?: ?(?:am|pm|Uhr))?\s+[–—-]?\s*(?=\D)")
_PAIR = re.compile(r"^(?P<key>[^\W\d_][\w /()&'’.-]{0,40}?)\s*(?::|=|—|–)\s+(?P<value>\S.*)$")
_BOLD = re.compile(r"\*\*(?P<key>[^*]{1,60}?):?\*\*\s*(?P<sign>:|=|—|–|-)?\s*(?P<value>\S.*)$")
_PARENT = re.compile(r"^(?P<key>[^:|]{2,40}):$")
_DOTTED = re.compile(r"^(?P<entity>[\w][\w .'-]{0,60}?)\.(?P<key>[a-z_][\w]{0,40})\s*=\s*(?P<value>\S.*)$")
_ARROWS = re.compile(r"\s*(?:↔|<->|→|-->|->|⟶|=>|➜|➔|⇒)\s*")
_LINKS = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]]+)\]\]")
_HASHTAGS = re.compile(r"^(?:#[^\W\d][\w/-]*\s+)+(?=\S)")
_UMLAUT = re.compile(r"[äöüßÄÖÜ]")
_ENGLISH = re.compile(r"\b(?:the|and|of|is|in the|for|with)\b", re.I)
_NICKNAME = re.compile(r"^(?P<first>[^\W\d_]+) [\"“„'](?P<nick>[^\W\d_]+)[\"”“'] (?P<last>[^\W\d_-]+)$")
_TAIL = re.compile(r"\s*\((?P<inner>[^()]*)\)\s*$")
_JUNK_VALUE = re.compile(
    r"^(?:tbd|todo|n/?a|none|no|unknown|[-–—]+|\?+|\.+|…|<[^>]*>|\[redacted[^\]]*\]|"
    r"keine?r?s?\b.*|nobody|niemand|"
    r"[/|] .*|.*:|\.\.\..*|tb[ac]|pending|folgt|(?:siehe|see|s\.|ask|frag|same as|wie) .*)$",
    re.IGNORECASE,
)
_BLOCKED_KEYS = frozenset(
    "http https note notes todo fixme warning example source see update edit ps nb trigger gate reason reminder "
    "question answer and or but if then file path line date datum tags tag aliases alias title created idea quote "
    "fix feat chore docs refactor revert test build perf style wip release tip hint error attention "
    "exception ausnahme stand updated edited achtung merke hinweis frage antwort beispiel idee wichtig fyi "
    "summary tldr from to cc bcc subject betreff von an re fwd user assistant system tool cv readme".split()
)
# Tags of lines about possibilities, questions and statements of others.
_UNREAL = frozenset(
    "todo idea question plan draft maybe rumor rumour quote wish dream joke hypothesis proposal option aufgabe frage "
    "idee plan gerücht zitat vorschlag wunsch".split()
)
# What a value under a key of a known type must contain.
_OF_TYPE = (
    (frozenset({"email", "mail", "e mail", "mailadresse", "email address"}), re.compile("@")),
    (
        frozenset(
            {
                "phone",
                "tel",
                "telefon",
                "handy",
                "mobile",
                "telefonnummer",
                "handynummer",
                "fax",
                "phone number",
            }
        ),
        re.compile(r"\d"),
    ),
    (frozenset({"birthday", "born", "geburtstag", "date of birth"}), re.compile(r"\d|[A-ZÄÖÜ]")),
)
_NO_START = frozenset("whoever whatever it it's that's he she they we i wir ich er sie es man wer".split())
_SAMPLE = re.compile(
    r"\b(?:template|samples?|example|dummy|mock|made[ -]up|fictional|fixtures?|seed data|placeholder|worksheet|"
    r"exercise|vorlage|muster|beispiel|platzhalter|ausfüllhilfe|übungs?|arbeitsblatt|erfunden)\b",
    re.I,
)
_NAMED_BY_TYPE = ("ip", "url", "phone", "email", "time")
_WHOLE = frozenset({"address", "adresse", "anschrift", "postal address"})  # keys whose value contains commas
_KEY_HEADS = frozenset(
    {"key", "setting", "property", "field", "what", "item", "variable", "option", "schlüssel", "feld"}
)
_KIN_HEADS = frozenset({"relation", "relationship", "kinship", "beziehung", "verwandtschaft"})


class FileRules(msgspec.Struct, frozen=True):
    """How to read a file: its subject and category, and its owner."""

    subject: str = ""
    category: str = "fact"
    user: str = "User"
    names: bool = False  # `name: X` makes X an alias of the subject
    page: str = ""  # the file's name in words: the subject of its pairs if its title names none
    log: bool = False  # lines report what happened on a day
    talk: bool = False  # a conversation: only plain statements are read


def extract(text: str, rules: FileRules) -> list[Triple]:
    """Return the triples of a file with their lines, each once."""
    found: dict[str, Triple] = {}
    lines = text.split("\n")
    place = "talk" if rules.talk else "log" if rules.log else "page"
    for triple in _Page(rules).read(text):
        number = max(triple.line - 1, 0)
        tagged = _LABEL.match(_text_of(lines[number]))  # the tag says that it is a fact
        least = 0 if triple.rule in ("dotted", "handover") else SURE["page" if tagged else place]
        lasting = tagged or not rules.log or _lasts(triple)
        if not (lasting and _is_sound(triple)):
            continue
        line = triple.stated or lines[number]
        if probability(triple, line, _above(lines, number), place) >= least:
            found.setdefault(triple.mark, triple)
    return list(found.values())


def _lasts(triple: Triple) -> bool:
    """Return whether a log's statement holds beyond its day: the value of something must be typed or a trait."""
    if triple.rule in ("pair", "pairs", "defining", "arrow"):
        return bool(typed(triple.object)) and triple.predicate not in ("is", "ist", "→")
    described = triple.kind == "fact" and triple.predicate in ("is", "ist") and triple.rule == "copula"
    return not described or bool(typed(triple.object)) or triple.object.casefold() in wording.TRAITS


def _above(lines: list[str], place: int) -> str:
    """Return the first line of a text and the one above a place: the purpose of a list or a form."""
    first = next((line for line in lines[:place] if line.strip()), "")
    return "\n".join(dict.fromkeys((first, lines[place - 1] if place else "")))


class _Page:
    """Read one file line by line; tracks the title, heading, parent line and table header above a line."""

    def __init__(self, rules: FileRules) -> None:
        self.rules = rules
        own = rules.subject if rules.subject and not rules.names else ""
        self.sentences = RosterReader(rules.user, own, habits=not rules.log, talk=rules.talk)
        self.title = self.heading = self.parent = ""
        self.keys: dict[str, list[str]] = {}  # for each heading: the left sides of the colons below it
        self.verb = "is"
        self.indent = 0  # of the parent line
        self.table: list[str] = []

    def read(self, text: str) -> Iterator[Triple]:
        lines = _with_tables(text.split("\n"))
        self.keys = _keys_below(lines)
        german = language(text) == "german" or (_UMLAUT.search(text) and not _ENGLISH.search(text))
        self.verb = self.sentences.verb = "ist" if german else "is"
        start = 0
        if lines[0].strip() == "---" and "---" in (line.strip() for line in lines[1:60]):
            start = next(n for n, line in enumerate(lines[1:], 1) if line.strip() == "---")
            yield from self._front_matter(lines[:start], lines[start + 1 :])
        fenced = False
        samples = _samples(lines)
        for number, raw in enumerate(lines[start:], start + 1):
            line = raw.rstrip()[:MAX_LINE]
            if number - 1 in samples:
                continue
            fence = line.lstrip().startswith(("```", "~~~"))
            fenced ^= fence
            if fenced or fence or line.lstrip().startswith((">", "<!--")):
                self.table = []
                continue
            triples = list(self._at(line, lines[number] if number < len(lines) else ""))[:MAX_PER_LINE]
            yield from (replace(triple, line=number) for triple in triples)

    def _at(self, line: str, below: str) -> Iterator[Triple]:
        """Yield the triples of one line, after updating the page's state."""
        table, self.table = self.table, []
        if not line.strip():
            self.parent = ""
        elif heading := _HEADING.match(line):
            title = _TAIL.sub("", unmarked(heading["title"]))
            self.heading = title if len(heading["level"]) > 1 else ""
            self.title = self.title or title
            self.parent = ""
        elif line.lstrip().startswith("|"):
            self.table = table
            yield from self._row(line)
        elif parent := _PARENT.match(unmarked(_text_of(line))):
            self.parent, self.indent = parent["key"], _indent(line)
        elif (
            below
            and _indent(below) > _indent(line)
            and may_be_key(unmarked(_text_of(line)).replace(":", "?"))
        ):
            self.parent, self.indent = unmarked(_text_of(line)), _indent(line)
        else:
            if (
                self.parent
                and _indent(line) <= self.indent
                and not (_BULLET.match(line) or _ARROWS.search(line))
            ):
                self.parent = ""
            yield from self._line(line)

    # ---- front matter ----

    def _front_matter(self, lines: list[str], body: list[str]) -> Iterator[Triple]:
        """Read YAML front matter as pairs of the note itself; lists and `[[links]]` are relations."""
        pairs: dict[str, list[str]] = {}
        key = ""
        for line in lines[1:]:
            if match := re.match(r"^(?P<key>[\w-][\w -]*):\s*(?P<value>.*)$", line):
                key = match["key"]
                pairs[key] = [match["value"]] if match["value"] else []
            elif key and (item := re.match(r"^\s+?-\s+(?P<value>.+)$|^-\s+(?P<plain>.+)$", line)):
                pairs[key].append(item["value"] or item["plain"])
        heading = next((match["title"] for line in body if (match := _HEADING.match(line))), "")
        named = (pairs.get("title") or pairs.get("name") or [heading])[0]
        entity = unmarked(named).strip("\"' ") or self.rules.subject or self.rules.page
        for key, values in pairs.items():
            for value in (one for raw in values for one in _yaml_values(raw)):
                yield from self._property(entity, key, value)

    def _property(self, entity: str, key: str, value: str) -> Iterator[Triple]:
        plain = unmarked(value).strip("\"' ")
        if slot_of(key) in ("alias", "aliases") and plain and entity:
            yield Triple("alias", plain, "", entity)
        elif slot_of(key) == "date" and plain:
            yield Triple("fact", entity, "date", plain, self._category())
        elif entity and plain and slot_of(key) not in _BLOCKED_KEYS | {"name", "cssclass", "publish", "type"}:
            kind = "relation" if _LINKS.search(value) else "fact"
            yield Triple(kind, entity, key, plain, self._category(), several=True)

    # ---- one line ----

    def _line(self, line: str) -> Iterator[Triple]:
        text, origin, project = without_marks(_text_of(line))
        if origin not in FOREIGN:
            marks = {"origin": origin, "project": project if self.rules.log else ""}
            yield from (replace(triple, **marks) for triple in self._of_text(text))

    def _of_text(self, text: str) -> Iterator[Triple]:
        label = _LABEL.match(text)
        if label and not text.startswith("[["):
            yield from self._tagged(label)
            return
        text = _CLOCK.sub("", _HASHTAGS.sub("", re.sub(r"^\([a-z]+\) (?=[A-ZÄÖÜ])", "", text)))
        triples = [*self._stated(text)]
        category = self._category()
        yield from (replace(t, category=category) if t.category == "fact" else t for t in triples)

    def _stated(self, text: str) -> list[Triple]:
        rule, triples = self._read(text, unmarked(text))
        return [triple if triple.rule else replace(triple, rule=rule) for triple in triples]

    def _read(self, text: str, plain: str) -> tuple[str, list[Triple]]:
        """Return how a line was read, and what it states."""
        if self.rules.talk:
            return "sentence", self.sentences.read(plain)
        about = self._subject() if not self.rules.names else ""
        if not stated(plain.replace('"', "") if _ARROWS.search(plain) else plain):
            return "sentence", self.sentences.read(plain, about)
        if arrows := _arrow(text) or self._pointing(text):
            return "arrow", arrows
        if dotted := _DOTTED.match(plain):
            return "dotted", [Triple("fact", dotted["entity"], dotted["key"], dotted["value"])]
        if (roster := self._roster(plain)) is not None:
            return "roster", roster
        if (parts := _pairs_of(text)) and len(parts) > 1:
            return "pairs", list(self._pairs(parts))
        if pair := self._pair(text, plain):
            return "pair", pair
        if found := self.sentences.read(plain, about):
            return "sentence", found
        return "elliptic", self._elliptic(plain)

    def _elliptic(self, plain: str) -> list[Triple]:
        """Read `Lives in Pune. Prefers calls.` under a name: sentences without a subject."""
        subject = self._subject()
        if not subject or self.rules.log:
            return []
        spoken = plain[:1].lower() + plain[1:]
        first = next(iter(sentences(plain)), "").rstrip(".")
        keyed = self.parent and keyed_value(first.partition(",")[0], listed=True)
        if not (keyed or wording.VERB.match(spoken) or self.sentences.role_at(first)):
            return []
        return self.sentences.details(subject, plain, listed=bool(self.parent))

    def _tagged(self, label: re.Match[str]) -> Iterator[Triple]:
        """Read `[decision|i=0.9] text`: the triples that it states, with its importance."""
        strength = _importance(label["i"])
        if (strength is not None and strength < LEAST_IMPORTANCE) or label["tag"].casefold() in _UNREAL:
            return
        importance = 0.5 if strength is None else strength
        for triple in self._stated(label["text"]):
            yield replace(triple, importance=importance, permanent=importance >= PERMANENT_IMPORTANCE)

    # ---- pairs ----

    def _pair(self, text: str, plain: str) -> list[Triple]:
        """Read `key: value` of the subject above it; `Heidi's birthday: 14 March` of the named one."""
        bold = _BOLD.match(text)
        match = bold if bold and (bold["sign"] or f"{bold['key']}:**" in text) else _PAIR.match(plain)
        if match is None:
            return []
        key, value = unmarked(match["key"]).strip(" :"), match["value"].strip()
        if code := re.match(r"[^`]*[:=—–]\**\s+(`[^`]+`)", text):
            value = code[1]
        if changed := _ARROWS.split(unmarked(value))[1:]:
            value = changed[-1]  # `standup: 9:30 -> 9:45`
        if (
            _BLOCKED_KEYS.intersection((slot_of(key), slot_of(key).removeprefix("last ").split(" ")[0]))
            or value.startswith("//")
            or not stated(f"{key}: {unmarked(value)} ")
        ):
            return []
        if re.match(re.escape(key) + r"\s*=", plain) and is_name(key, 3):
            other, after = name_at(unmarked(value))
            what, _, details = unmarked(value).partition(",")
            if relation := self.sentences.is_of(key, what):
                return [relation, *self.sentences.details(key, details)]
            ends = not after or unmarked(value)[len(other)] in ",;(" or after.split(" ")[0] in ENDS
            if is_name(other, 4) and ends and (" " not in key or _is_short_for(key, other)):
                return [Triple("alias", key, "", other)]
        owner = self.sentences.owned(key) or (None if self.rules.log else self.sentences.compound(key))
        if owner and not (owner.implied and (self._subject() or not typed(unmarked(value)))):
            first, _ = head_of(unmarked(value))
            loose = not self.sentences.owned(key) and not (
                typed(first) if owner.implied else _is_plain(first)
            )
            return [] if loose else self._values(owner.entity, owner.key, value)
        subject = self._subject()
        if not may_be_key(key) or re.search(r"\b(?:until|till|bis) ", key):
            return []
        if subject and (subject != self.rules.user or self.rules.subject or _is_of_user(key, value)):
            spoken = [] if self.rules.log else self._spoken(subject, key.casefold(), value)
            return spoken or self._values(subject, normal_key(key), value)
        if subject:
            return []
        if wording.is_somebody(key) and name_at(unmarked(value))[0]:
            if wording.is_kin(key) and " " not in key:
                return self._values(self.rules.user, key.casefold(), value)
            return self._values(key, self.verb, value, defining=True)
        named = is_name(_TAIL.sub("", key), 4) and not (self.rules.log or typed(key))
        if named and (portrait := self._portrait(key, unmarked(value), "")):
            return portrait
        noun = key[:1].islower() or not key.split()[-1].islower() or self.verb == "is"
        noun = noun and not re.fullmatch(r"\w+ed", key)
        if (self.rules.log and not bold) or not noun:
            return []
        return [
            replace(triple, rule="defining") for triple in self._values(key, self.verb, value, defining=True)
        ]

    def _spoken(self, subject: str, key: str, value: str) -> list[Triple]:
        """`Works at: Brightwater as an engineer`: a pair whose key is a verb is a sentence about the subject."""
        kinds = {kind for _, kind in wording.VERBS.get(key, ())}
        if kinds.isdisjoint(("names", "places")) or not name_at(value)[0]:
            return []
        return self.sentences.details(subject, f"{key} {unmarked(value)}")

    def _pairs(self, parts: list[str]) -> Iterator[Triple]:
        """Read several pairs on one line; those after `ledgerline: a ledger.` belong to what the first one names."""
        keys = [part.partition(":")[0].strip("* ") for part in parts]
        first = not self._subject() and not is_attribute(keys[0].capitalize())
        above, self.parent = self.parent, self.parent
        for part, key in zip(parts, keys, strict=True):
            yield from self._pair(part, unmarked(part))
            if first and key == keys[0] and all(is_known_key(one.split()[-1]) for one in keys[1:]):
                self.parent = keys[0]
        self.parent = above

    def _values(self, entity: str, key: str, raw: str, defining: bool = False) -> list[Triple]:
        """Return the fact or relations that a pair states, and the phone number or address beside its value."""
        if links := _LINKS.findall(raw):
            return [Triple("relation", entity, key, link) for link in links]
        code = re.match(r"`([^`]+)`", raw)
        value = wording.without_denial(next(iter(sentences(unmarked(raw))), "")).strip().rstrip(".;")
        found: list[Triple] = []
        if nick := _NICKNAME.match(value):
            value = f"{nick['first']} {nick['last']}"
            found = [Triple("alias", nick["nick"], "", value)]
        name, _ = name_at(_TAIL.sub("", value))
        tail = _TAIL.search(value)
        if tail and wording.PAST.search(tail["inner"]):
            return []
        beside = value[len(name) :] if name else ""
        more = (
            self._details_after_value(name, entity if defining else key, beside)
            if beside.startswith((", ", " (", " <", "; "))
            else []
        )
        if more:
            found, value = found + more, name
        items = re.split(r", | and | und ", value)
        if len(items) > 1 and all(is_name(item, 3) for item in items) and not typed(value):
            if defining:  # `Direct reports: Ana, Bo` does not say whose
                return found
            return [Triple("relation", entity, key, item) for item in items]
        value = code[1] if code else value if slot_of(key) in _WHOLE else _whole_value(value, defining)
        if defining and value:
            of_type = typed(value)
            odd = (
                of_type and of_type.type == "schedule" and of_type.rest[:1].isalpha()
            )  # "Samstag Wochenmarkt"
            if odd or not (of_type or is_name(value) or is_identifier(value)):
                return found
            sign = {"phone": r" |^\+", "time": ":"}.get(of_type.type, "") if of_type else ""
            sure = of_type and re.search(sign, value)
            key = of_type.type if of_type and sure and of_type.type in _NAMED_BY_TYPE else key
        if tail and is_name(_TAIL.sub("", value)):
            value = _TAIL.sub("", value)
        if not value or _JUNK_VALUE.match(value):
            return found
        kind = "relation" if re.search(r" (?:by|to|on|von|bei)$", key) and is_name(value) else "fact"
        alias = self.rules.names and entity == self.rules.subject
        if alias and slot_of(key) in ("name", "preferred name", "nickname", "full name", "spitzname"):
            found.append(Triple("alias", value, "", entity))
        return [Triple(kind, entity, key, value), *found]

    def _details_after_value(self, name: str, key: str, text: str) -> list[Triple]:
        """Read the text after a name that is a pair's value: a phone number, or details of a person."""
        if wording.is_somebody(key) and (
            found := self.sentences.details(name, text.strip(" ,;()<>").replace(")", ","))
        ):
            return found
        contacts = [
            (kind, inside(text.lstrip(" ,(<"), kind)) for kind in ("phone", "email") if slot_of(key) != kind
        ]
        address = next(filter(ADDRESS.fullmatch, details_of(text)), "")
        contacts.append(("adresse" if self.verb == "ist" else "address", address))
        return [Triple("fact", name, kind, contact) for kind, contact in contacts if contact]

    # ---- rosters ----

    def _roster(self, plain: str) -> list[Triple] | None:
        """Read `Zuri: daughter, born 2017-04-22` under People, `Pets: Rex (beagle, 6), Luna (cat)`; None if it is no
        roster.
        """
        group = self.parent or self.heading or self.title
        match = re.match(r"^(?P<name>[^:—–=]{1,60}?)(?:\s*(?::|—|–)|\s-)\s+(?P<details>\S.*)$", plain)
        comma = re.match(r"^(?P<name>[^,:()]{1,40}), (?P<details>[^:]+)$", plain)
        if match and MINE.match(plain) and (ours := [*several_of(plain, self.rules.user)]):
            return ours
        several = (
            match and len(re.findall(r"(?:^|, |and |und )[^,()]{1,30} \([^()]+\)", match["details"])) > 1
        )
        if match and (several or ROSTER.fullmatch(match["name"])):
            members = self._members(match["name"], match["details"])
            return members if several else members or None  # the first of several is not what `Team` is
        listed = bool(ROSTER.search(group))
        if listed and match is None and (member := _member(plain)):
            return self._portrait(*member, group_of(group), listed=True) or None
        match = match or (comma if comma and (listed or self._introduces(comma["details"])) else None)
        if match is None or self.sentences.owned(match["name"]):
            return None
        mine, name = self.sentences.introduction(match["name"].strip())
        details = match["details"]
        if (
            not (listed or mine or self._introduces(details))
            or not is_name(_TAIL.sub("", name))
            or is_attribute(name)
        ):
            return None
        return [*mine, *self._portrait(name, details, group_of(group), listed)] or None

    def _introduces(self, details: str) -> bool:
        """Return whether a line without a roster's heading begins like one of a roster: with what the person is."""
        first = re.split(r"[,;.(]| - ", details)[0].strip()
        own = (self.rules.names or not self.rules.subject) and not self.rules.log
        known = (wording.is_kin(first) or wording.is_role(first)) and len(first.split()) <= 3
        starts = wording.VERB.match(details) and not self.rules.subject
        return bool(own and (known or starts or self.sentences.role_at(first)))

    def _portrait(self, name: str, details: str, group: str, listed: bool = False) -> list[Triple]:
        """Return the details of one member of a roster."""
        other = _TAIL.search(name)
        name = _TAIL.sub("", name).strip()
        found = []
        if other and is_name(other["inner"], 3) and not wording.is_somebody(other["inner"]):
            found = [Triple("alias", other["inner"], "", name)]
        elif other:
            details = f"{other['inner']}, {details}"
        return found + self.sentences.details(name, details, group, listed)

    def _members(self, group: str, text: str) -> list[Triple]:
        """Read `Pets: Rex (beagle, 6), Luna (cat, 11)`, `Team: Priya, Omar and Lee`."""
        found: list[Triple] = []
        for item in re.split(r", (?![^()]*\))| and (?![^()]*\))| und (?![^()]*\))", text):
            item = re.sub(r"^(?P<name>[^\d()]+) (?P<age>\d{1,2})$", r"\g<name> (\g<age>)", item.strip())
            member = re.match(r"(?P<name>[^()]{1,40}?)(?: \((?P<details>[^()]{1,120})\))?[.]?$", item)
            details = (member["details"] if member else "") or ""
            if member is None or not (is_name(member["name"], 3) or (details and " " not in member["name"])):
                continue
            me = member["name"].casefold() in ("me", "ich", "i")
            name = self.rules.user if me else member["name"]
            if self._subject() and self._subject() != name and ROSTER.fullmatch(group):
                found.append(Triple("relation", self._subject(), group.casefold(), name))
            found += self.sentences.details(name, details, group_of(group) or "member")
        return found

    # ---- arrows and tables ----

    def _pointing(self, text: str) -> list[Triple]:
        """Read `A → B`: the heading says what B is to A; a quoted A is another name of B."""
        parts = [part.strip(" .;") for part in _ARROWS.split(text)]
        if len(parts) != 2 or not all(parts) or not stated(unmarked(text).replace('"', "")):
            return []
        left, right = unmarked(parts[0]).rpartition(": ")[2], wording.without_denial(unmarked(parts[1]))
        if relation := self.sentences.is_of(left, right) if is_name(left) else None:
            return [relation]
        target = re.split(r", | \(", right)[0]
        if phone := inside(target, "phone"):
            target = target[: target.find(phone)].strip()
        if len(left.split()) > 4 or not is_name(target) or re.search(r"progress|planned|geplant|todo", right):
            return []
        if re.fullmatch(r"[\"“„'].+[\"”“']", left):
            return [Triple("alias", left.strip("\"“”„'"), "", target)]
        found = [Triple("relation", left, "↔" if re.search(r"↔|<->", text) else "→", target)]
        contact = inside(right[len(target) :].lstrip(" ,("), "phone")
        return [*found, Triple("fact", target, "phone", contact)] if contact else found

    def _row(self, line: str) -> Iterator[Triple]:
        """Read a table's row: its first cell is the entity, the header names the keys."""
        cells = [unmarked(cell) for cell in line.strip().strip("|").split("|")]
        if not self.table:
            self.table = cells
            return
        if all(re.fullmatch(r":?-{2,}:?", cell.replace(" ", "")) for cell in cells if cell) and any(cells):
            return
        category = self._category()
        if len(self.table) == 2 and slot_of(self.table[0]) in _KEY_HEADS:
            subject = self._subject()
            if subject and len(cells) == 2:
                yield Triple("fact", subject, cells[0], cells[1], category)
            return
        table = self.table
        if cells[0].isdigit() and len(cells) > 2 and not typed(cells[1]):
            table, cells = table[1:], cells[1:]  # only the first column counts
        for head, cell in zip(table[1:], cells[1:], strict=False):
            if not head or not cells[0] or not stated(f"{cell} ") or re.fullmatch(r"\(.*\)", cell):
                continue
            yield Triple("fact", cells[0], normal_key(head), cell, category, rule="row")
            if slot_of(head) in _KIN_HEADS and self._subject():
                yield Triple("relation", cells[0], f"{slot_of(cell)} of", self._subject())

    # ---- subject and category ----

    def _subject(self) -> str:
        """Return the subject of the pairs at this place; empty if nothing above names it."""
        heading, rules = self.heading, self.rules
        about = re.match(r"^about (?P<name>.+)$|^über (?P<german>.+)$", heading, re.I)
        if self.parent:
            listed = ROSTER.search(self.parent) or SECTION.search(self.parent) or not may_be_key(self.parent)
            first, _, name = self.parent.partition(" ")  # `Host badger`
            return "" if listed else name if name and first.casefold() in CLASSES else self.parent
        if about:
            name = about["name"] or about["german"]
            if name.casefold() in ("me", "mich", "the user", "user", "[user]"):
                return rules.user
            return "" if name.casefold().startswith(("this", "the ")) else name
        if re.search(r"\bpreferences?\b|\bvorlieben\b", heading, re.I):
            return rules.subject or rules.user
        if rules.subject:
            return rules.subject
        if heading:
            return heading if is_thing(heading) and self._has_attributes(heading) else ""
        if not rules.page or (self.title and not is_thing(self.title)):
            return ""
        if self.title and not (self.title.endswith("s") and " " not in self.title):
            return self.title
        return rules.page if not self.title and is_thing(rules.page) and self._has_attributes("") else ""

    def _has_attributes(self, heading: str) -> bool:
        """Return whether the pairs below a heading are its properties, rather than separate things."""
        keys = self.keys.get(heading, [])
        if heading.endswith("s") and " " not in heading and not self.rules.page:
            return False
        own = sum(is_attribute(key) or (self.verb == "is" and key[1:].islower()) for key in keys)
        return not keys or 2 * own > len(keys)

    def _category(self) -> str:
        return next(
            (name for pattern, name in CATEGORIES if pattern.search(self.heading)), self.rules.category
        )


def _member(plain: str) -> tuple[str, str] | None:
    """Return the name and the details of a roster line without a separator: `Priscilla Owusu (charge) ext 4417`."""
    name, rest = name_at(plain)
    inner = re.match(r"\((?P<inner>[^()]+)\),?\s*(?P<rest>.*)$", rest)
    first = (details_of(rest) or [""])[0]
    value = typed(first)
    keyed = keyed_value(first, listed=True) if len(first.split()) == 2 else None
    known = inner or keyed or (value and value.type in ("phone", "email"))
    own = is_name(name, 4) and not name.endswith(("'s", "’s")) and not name[-1].isdigit()
    if not (own and known) or (" " not in name and is_attribute(name)):
        return None
    return name, ", ".join(filter(None, (inner["inner"], inner["rest"]))) if inner else rest


def _whole_value(text: str, defining: bool) -> str:
    """Return the value of a pair up to its end; empty for a list, a sentence, or a fragment that is no value."""
    value, after = head_of(text)
    words = value.split()
    parts = re.split(r"[,;] ", text)
    if (
        len(parts) > 1
        and not defining
        and all(len(part.split()) <= LIST_ITEM for part in parts)
        and not typed(value)
    ):
        alike = len({is_name(part) for part in parts}) == 1  # `Baxter, bites` is no list
        return text if alike or not is_name(value) else value
    listed = (
        after and is_name(value) and is_name(head_of(after)[0], 3) and not re.search(r"\d", head_of(after)[0])
    )
    plain = _is_plain(value) or len(words) == 1
    if (
        listed
        or after.startswith("- ")
        or (after and not plain)
        or len(words) > MAX_VALUE_WORDS
        or value.split(" ")[0].casefold() in _NO_START
    ):
        return ""
    return (
        ""
        if len(words) > SHORT_VALUE and (wording.VERB.search(value) or wording.MODALS.intersection(words))
        else value
    )


def _is_short_for(short: str, name: str) -> bool:
    """Return whether a name may be a short form of another: they share a word, or a word of it is an initial."""
    words = {word.strip(".") for word in short.split()} - {"Dr", "Prof", "Mr", "Mrs", "Ms", "Herr", "Frau"}
    return any(other.startswith(word) for word in words for other in name.split())


def _is_plain(value: str) -> bool:
    """Return whether a text is a typed value, a name or a code."""
    return bool(typed(value)) or is_name(value) or is_identifier(value)


def _samples(lines: list[str]) -> set[int]:
    """Return the lines of forms and examples: paragraphs with blanks to fill in, or that begin by saying so."""
    found: set[int] = set()
    start = 0
    for place in range(len(lines) + 1):
        if place < len(lines) and lines[place].strip():
            continue
        block = lines[start:place]
        if any("___" in line for line in block) or (len(block) > 1 and _SAMPLE.search(block[0])):
            found.update(range(start, place))
        start = place + 1
    return found


def _with_tables(lines: list[str]) -> list[str]:
    """Return the lines of a file; lines like `host,ip,role` and `host | ip | role` become table rows."""
    found = list(lines)
    start = 0
    for place in range(1, len(lines) + 1):
        if place < len(lines) and lines[place].strip():
            continue
        block = lines[start:place]
        for sign in (",", " | ", "\t"):
            rows = _rows(block, sign[1:2] or sign)
            head = rows[0] if rows else []
            named = len(head) > 2 and all(
                cell.replace(" ", "").isalpha() and len(cell.split()) < 3 for cell in head
            )
            if named and len(rows) > 1 and all(len(row) == len(head) for row in rows):
                found[start:place] = [f"| {' | '.join(row)} |" for row in rows]
        start = place + 1
    return found


def _rows(block: list[str], sign: str) -> list[list[str]]:
    """Return the cells of each line; empty if a quote spans several lines, or it is no such table."""
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(block, delimiter=sign)]
    except csv.Error:
        return []
    return rows if len(rows) == len(block) else []


def _keys_below(lines: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    heading = ""
    for line in lines:
        if match := _HEADING.match(line):
            heading = _TAIL.sub("", unmarked(match["title"])) if len(match["level"]) > 1 else ""
        elif pair := _PAIR.match(unmarked(_text_of(line))):
            found.setdefault(heading, []).append(pair["key"].strip())
    return found


def _pairs_of(text: str) -> list[str]:
    """Return the pairs of a line that has several: `Partner: Ola. Cat: Bufor.`, `make: X; model: Y`."""
    parts = re.split(r"(?:[.;,]|\s\|)\s+(?=[^\W\d_][\w-]*(?: [\w-]+){0,2}: )", text)
    return parts if all(_PAIR.match(unmarked(part)) for part in parts) else [text]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_of_user(key: str, value: str) -> bool:
    """Return whether a pair in a list of preferences is about the person, and not about something that it names."""
    return key[:1].islower() or is_known_key(key) or (" " not in key and len(value.split()) <= SHORT_VALUE)


def _text_of(line: str) -> str:
    bullet = _BULLET.match(line)
    return (bullet["text"] if bullet else line).strip()


def _arrow(text: str) -> list[Triple]:
    """Read `A → relation → B`, and chains of it."""
    parts = [unmarked(part).strip(" .;,") for part in _ARROWS.split(text)]
    if len(parts) < 3 or len(parts) % 2 == 0 or not all(parts) or not any(map(is_name, parts[::2])):
        return []
    return [Triple("relation", parts[n], parts[n + 1], parts[n + 2]) for n in range(0, len(parts) - 2, 2)]


def _yaml_values(raw: str) -> list[str]:
    raw = raw.strip()
    if raw.startswith("[") and raw.endswith("]") and not raw.startswith("[["):
        return [part for part in re.split(r",\s*", raw[1:-1]) if part.strip()]
    return [raw] if raw else []


def _is_sound(triple: Triple) -> bool:
    """Return whether a triple has no placeholder, no overlong name and no part without letters or digits."""
    entity, key, value = triple.subject, triple.predicate, triple.object
    texts = {"alias": (entity, value), "relation": (entity, value)}.get(triple.kind, (entity, key))
    if not all(any(c.isalnum() for c in text) for text in texts):
        return False
    if len(entity) > 80 or len(key) > 60 or (triple.kind != "fact" and len(value) > 80):
        return False
    typed_key = next((pattern for keys, pattern in _OF_TYPE if slot_of(key) in keys), None)
    if triple.kind == "fact" and typed_key and not typed_key.search(value):
        return False  # `Mail: folgt`, `Phone: on the fridge`
    if wording.NO_NOUN.match(entity) or (triple.kind != "alias" and wording.NO_VALUE.match(value)):
        return False  # "Im Testsystem heißt …", "Every translation is …", "customers: always formal"
    if wording.SECRETS.search(entity) and triple.kind == "relation":
        return False  # where a secret is kept is not the secret
    return (
        bool(value.strip()) and not _JUNK_VALUE.match(value.strip()) and entity.casefold() != value.casefold()
    )


def _importance(text: str | None) -> float | None:
    try:
        return min(max(float((text or "").replace(",", ".")), 0.0), 1.0)
    except ValueError:
        return None
