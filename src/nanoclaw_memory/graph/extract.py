"""Extract facts, relations and aliases from text by rules: pairs, tables, arrows, tagged lines, sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.graph import sentence_patterns
from nanoclaw_memory.graph.sentence_patterns import Triple
from nanoclaw_memory.store.names import fold, slot_of
from nanoclaw_memory.text import one_line

MAX_LINE = 2_000
MAX_PER_LINE = 5
LEAST_IMPORTANCE = 0.4  # below: routine context, not stored
PERMANENT_IMPORTANCE = 0.8
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(?P<text>.+)$")
_HEADING = re.compile(r"^(?P<level>#{1,6})\s+(?P<title>.+?)\s*#*$")
_LABEL = re.compile(
    r"^\[(?P<tag>[\w-]{1,40})\s*(?:\|\s*i(?:mportance)?\s*[=:]\s*(?P<i>[\d.,]+)[^\]]*)?\]\s+(?P<text>.+)$"
)
_PROJECT = re.compile(r"^\[@[a-z0-9._-]+\]\s+|\|@[a-z0-9._-]+(?=\]\s)")  # in a log line's label
_PAIR = re.compile(r"^(?P<key>[^\W\d_][\w /()&'’.-]{0,40}?)\s*(?::|=|—|–)\s+(?P<value>\S.*)$")
_BOLD = re.compile(r"\*\*(?P<key>[^*]{1,60}?):?\*\*\s*:?\s*(?:—|–)?\s*(?P<value>\S.*)$")
_DOTTED = re.compile(r"^(?P<entity>[\w][\w .'-]{0,60}?)\.(?P<key>[a-z_][\w]{0,40})\s*=\s*(?P<value>\S.*)$")
_ARROWS = re.compile(r"\s*(?:→|->|-->|⟶)\s*")
_MARKUP = re.compile(r"(\*\*|__|`)(.+?)\1")
_LINK = re.compile(r"\[([^\[\]]+)\]\([^()]*\)")
_JUNK_VALUE = re.compile(
    r"^(?:tbd|todo|n/?a|none|unknown|-+|\?+|\.+|…|<[^>]*>|\[redacted[^\]]*\])$", re.IGNORECASE
)
_BLOCKED_KEYS = frozenset(
    "http https note notes todo fixme warning example source see update edit ps nb trigger gate reason "
    "question answer and or but if then file path line".split()
)
# Headings below which each bullet begins with a name.
_ROSTER = re.compile(
    r"\b(?:people|family|contacts?|team|friends|colleagues|projects?|tools|services|hosts|servers|machines|pets)\b",
    re.I,
)
_ABOUT_USER = re.compile(r"^about (?:me|the user|\[?user\]?)$", re.I)
_KEY_HEADS = frozenset({"key", "setting", "property", "field", "what", "item", "variable", "option"})
_KIN_HEADS = frozenset({"relation", "relationship", "kinship"})
_CATEGORIES = (
    (re.compile(r"family", re.I), "family"),
    (re.compile(r"people|contacts?|team|friends|colleagues", re.I), "person"),
    (re.compile(r"project", re.I), "project"),
    (re.compile(r"tool|service|host|server|machine|network", re.I), "tool"),
    (re.compile(r"preference|style", re.I), "preference"),
    (re.compile(r"decision", re.I), "decision"),
    (re.compile(r"lesson", re.I), "lesson"),
    (re.compile(r"convention", re.I), "convention"),
)


class FileRules(msgspec.Struct, frozen=True):
    """How to read a file: its subject and category, and whether the sentences of its sections are facts."""

    subject: str = ""
    category: str = "fact"
    user: str = "User"
    sections: bool = False  # other bullets than pairs become facts under their heading
    names: bool = False  # `name: X` makes X an alias of the subject


class _Cursor(msgspec.Struct):
    """The current position in the file: its title, heading and table header."""

    title: str = ""
    heading: str = ""
    fenced: bool = False
    table: list[str] = msgspec.field(default_factory=list)


def extract(text: str, rules: FileRules) -> list[Triple]:
    """Return the triples of a file with their lines, each once."""
    found: dict[str, Triple] = {}
    for triple in _walk(text, rules):
        if _is_sound(triple):
            found.setdefault(triple.mark, triple)
    return _with_aliases(list(found.values()))


def _walk(text: str, rules: FileRules) -> Iterator[Triple]:
    cursor = _Cursor()
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.rstrip()[:MAX_LINE]
        if line.lstrip().startswith(("```", "~~~")):
            cursor.fenced = not cursor.fenced
        if cursor.fenced or not line.strip() or line.lstrip().startswith((">", "<!--", "```", "~~~")):
            cursor.table = []
            continue
        heading = _HEADING.match(line)
        if heading:
            title = _plain(heading["title"])
            cursor.heading = title if len(heading["level"]) > 1 else ""
            cursor.title = cursor.title or title
            cursor.table = []
        elif line.lstrip().startswith("|"):
            yield from _row(line, number, cursor, rules)
        else:
            cursor.table = []
            triples = list(_line(line, cursor, rules))[:MAX_PER_LINE]
            yield from (replace(triple, line=number) for triple in triples)


# ---- one line ----


def _line(line: str, cursor: _Cursor, rules: FileRules) -> Iterator[Triple]:
    bullet = _BULLET.match(line)
    text = _PROJECT.sub("", bullet["text"].strip() if bullet else line.strip(), count=1)
    label = _LABEL.match(text)
    if label and not text.startswith("[["):
        yield from _tagged(label, rules)
        return
    if bullet is None and not (rules.sections and cursor.heading):
        yield from _sentence(text, cursor, rules)
        return
    pair = _pair(text)
    theirs = list(sentence_patterns.theirs(_plain(text)))
    if _arrow(text):
        yield from _arrow(text)
    elif theirs:
        yield from (replace(triple, category=_category(cursor, rules)) for triple in theirs)
    elif pair and (_subject(cursor, rules) or _ROSTER.search(cursor.heading) or _DOTTED.match(_plain(text))):
        yield from _kept(pair, text, cursor, rules)
    else:
        spoken = list(_sentence(text, cursor, rules))
        yield from spoken
        if rules.sections and not spoken:
            yield from _section(text, cursor, rules)
        elif not spoken and (name := sentence_patterns.begins_with(_plain(text))):
            note = Triple("fact", name, "note", _plain(text), category="note", importance=0.4)
            yield replace(note, several=True, unsure=True)


def _tagged(label: re.Match[str], rules: FileRules) -> Iterator[Triple]:
    """`[decision|i=0.9] text`: the triples it states, or else the whole text under its tag."""
    strength = _importance(label["i"])
    text = _plain(label["text"])
    if strength is not None and strength < LEAST_IMPORTANCE:
        return
    tag = label["tag"].casefold()
    importance = 0.5 if strength is None else strength
    permanent = importance >= PERMANENT_IMPORTANCE
    pair = _DOTTED.match(text)
    spoken = [*_arrow(label["text"]), *sentence_patterns.read(text)]
    if pair:
        spoken = [Triple("fact", pair["entity"], pair["key"], pair["value"])]
    yield from (replace(triple, importance=importance, permanent=permanent) for triple in spoken)
    # Storing the sentence too would outlive the fact: a newer value retires facts, not sentences.
    if pair or sentence_patterns.says_all(text, spoken):
        return
    about = next((triple.subject for triple in spoken if triple.kind != "alias"), "")
    like = Triple("fact", "", tag, text, category=tag, importance=importance, permanent=permanent)
    yield from _whole(about or rules.subject, like)


def _whole(about: str, like: Triple) -> Iterator[Triple]:
    """Yield a whole sentence as a fact of its subject, or unsurely of a name in it."""
    about = about or sentence_patterns.subject(like.object)
    others = () if about else sentence_patterns.names(like.object)
    guess = about or sentence_patterns.first_name(like.object)
    if guess or others:
        yield replace(like, subject=guess or others[0], several=True, unsure=not guess, others=others)


def _arrow(text: str) -> list[Triple]:
    """`A → relation → B`, and chains of it."""
    parts = [_plain(part).strip(" .;,") for part in _ARROWS.split(text)]
    if len(parts) < 3 or len(parts) % 2 == 0 or not all(parts):
        return []
    return [Triple("relation", parts[n], parts[n + 1], parts[n + 2]) for n in range(0, len(parts) - 2, 2)]


def _pair(text: str) -> tuple[str, str] | None:
    """A key and a value: `key: value`, `**Key:** value`, `**Key** — value`."""
    match = _BOLD.match(text) or _PAIR.match(_plain(text))
    if not match:
        return None
    key, value = (
        sentence_patterns.normal_key(_plain(match["key"]).strip(" :")),
        sentence_patterns.without_denial(_plain(match["value"]).strip()),
    )
    if len(key.split()) > 5 or value.startswith("//") or slot_of(key) in _BLOCKED_KEYS:
        return None
    return key, value


def _kept(pair: tuple[str, str], text: str, cursor: _Cursor, rules: FileRules) -> Iterator[Triple]:
    key, value = pair
    category = _category(cursor, rules)
    if _ROSTER.search(cursor.heading) and text.lstrip("*` ")[:1].isupper():
        yield from sentence_patterns.portrait(_named_in(text, key), value, category)
        return
    dotted = _DOTTED.match(_plain(text))
    if dotted:
        yield Triple("fact", dotted["entity"], dotted["key"], dotted["value"], category)
        return
    subject = _subject(cursor, rules)
    if not subject:
        return
    yield Triple("fact", subject, key, value, category)
    if (
        rules.names
        and slot_of(key) in ("name", "preferred name", "nickname", "full name")
        and subject == rules.subject
    ):
        yield Triple("alias", value, "", subject)


def _sentence(text: str, cursor: _Cursor, rules: FileRules) -> Iterator[Triple]:
    category = _category(cursor, rules)
    for triple in [*_arrow(text), *sentence_patterns.read(_plain(text))]:
        yield replace(triple, category=category if triple.category == "fact" else triple.category)


def _section(text: str, cursor: _Cursor, rules: FileRules) -> Iterator[Triple]:
    plain = re.sub(r"^\d{4}-\d{2}-\d{2}: ", "", _plain(text))
    key = _section_key(cursor)
    if not rules.sections or not key or len(plain.split()) < 3:
        return
    like = Triple("fact", "", key, plain, _category(cursor, rules))
    whole = list(_whole(_subject(cursor, rules), like))
    title = cursor.heading or cursor.title
    if title and all(triple.unsure for triple in whole):
        whole = [replace(like, subject=title, several=True, others=sentence_patterns.names(plain))]
    yield from whole


def _row(line: str, number: int, cursor: _Cursor, rules: FileRules) -> Iterator[Triple]:
    """A table's row: its first cell is the entity, the header names the keys."""
    cells = [_plain(cell) for cell in line.strip().strip("|").split("|")]
    if not cursor.table:
        cursor.table = cells
        return
    if all(re.fullmatch(r":?-{2,}:?", cell.replace(" ", "")) for cell in cells if cell) and any(cells):
        return
    category = _category(cursor, rules)
    if len(cursor.table) == 2 and slot_of(cursor.table[0]) in _KEY_HEADS:
        subject = _subject(cursor, rules)
        if subject and len(cells) == 2:
            yield Triple("fact", subject, cells[0], cells[1], category, line=number)
        return
    for head, cell in zip(cursor.table[1:], cells[1:], strict=False):
        if not head or not cell or not cells[0]:
            continue
        yield Triple("fact", cells[0], sentence_patterns.normal_key(head), cell, category, line=number)
        if slot_of(head) in _KIN_HEADS and _subject(cursor, rules):
            yield Triple(
                "relation",
                cells[0],
                f"{slot_of(cell).replace(' ', '_')}_of",
                _subject(cursor, rules),
                line=number,
            )


# ---- subject and key ----


def _subject(cursor: _Cursor, rules: FileRules) -> str:
    heading = cursor.heading
    about = re.match(r"^about (?P<name>.+)$", heading, re.I)
    if _ABOUT_USER.match(heading):
        return rules.user
    if about and not about["name"].casefold().startswith(("this", "the ")):
        return about["name"]
    if re.search(r"\bpreferences?\b", heading, re.I):
        return rules.subject or rules.user
    if heading and not rules.subject and sentence_patterns.is_name(heading) and not _ROSTER.search(heading):
        return heading
    return rules.subject


def _section_key(cursor: _Cursor) -> str:
    words = cursor.heading.casefold().split()
    if not words:
        return "note" if cursor.title else ""
    if len(words) > 4 or _ROSTER.search(cursor.heading) or cursor.heading.casefold().startswith("about"):
        return "note" if cursor.heading.casefold().startswith("about") else ""
    last = words[0] if "and" in words else words[-1]
    return last[:-1] if last.endswith("s") and not last.endswith("ss") else last


def _category(cursor: _Cursor, rules: FileRules) -> str:
    return next((name for pattern, name in _CATEGORIES if pattern.search(cursor.heading)), rules.category)


# ---- filters ----


def _is_sound(triple: Triple) -> bool:
    """Whether a triple has no placeholder, no overlong name and no part without letters or digits."""
    entity, key, value = triple.subject, triple.predicate, triple.object
    texts = {"alias": (entity, value), "relation": (entity, key, value)}.get(triple.kind, (entity, key))
    if not all(any(c.isalnum() for c in text) for text in texts):
        return False
    if len(entity) > 80 or len(key) > 60 or (triple.kind != "fact" and len(value) > 80):
        return False
    return bool(value.strip()) and not _JUNK_VALUE.match(value.strip())


def _with_aliases(triples: list[Triple]) -> list[Triple]:
    """Keep `X is Y` as an alias only if the same file states something else about Y."""
    known = {fold(triple.subject) for triple in triples if triple.kind != "alias"}
    return [s for s in triples if s.kind != "alias" or not s.unsure or fold(s.object) in known]


def _named_in(text: str, key: str) -> str:
    """The name at the start of a line, as written there."""
    start = _plain(text)[: len(key) + 2].lstrip("*` ")
    return start[: len(key)] if start[: len(key)].casefold() == key.casefold() else key


def _plain(text: str) -> str:
    return one_line(_LINK.sub(r"\1", _MARKUP.sub(r"\2", text))).strip()


def _importance(text: str | None) -> float | None:
    try:
        return min(max(float((text or "").replace(",", ".")), 0.0), 1.0)
    except ValueError:
        return None
