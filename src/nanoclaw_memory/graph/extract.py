"""Text -> facts, relations and aliases, by rules: pairs, tables, arrows, tagged lines, sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.graph import sentences
from nanoclaw_memory.graph.sentences import Saying
from nanoclaw_memory.store.names import fold, slot_of
from nanoclaw_memory.text import one_line

MAX_LINE = 2_000
MAX_PER_LINE = 5
LEAST_IMPORTANCE = 0.4  # routine context is no fact
PERMANENT_IMPORTANCE = 0.8
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(?P<text>.+)$")
_HEADING = re.compile(r"^(?P<level>#{1,6})\s+(?P<title>.+?)\s*#*$")
_LABEL = re.compile(
    r"^\[(?P<tag>[\w-]{1,40})\s*(?:\|\s*i(?:mportance)?\s*[=:]\s*(?P<i>[\d.,]+)[^\]]*)?\]\s+(?P<text>.+)$"
)
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


class Manner(msgspec.Struct, frozen=True):
    """How a file is to be read: whom it is about, and whether its sections' sentences are facts too."""

    subject: str = ""
    category: str = "fact"
    user: str = "User"
    sections: bool = False  # bullets that are no pairs become facts under their heading
    names: bool = False  # `name: X` makes X an alias of the subject


class _Place(msgspec.Struct):
    """Where in the file we are."""

    title: str = ""
    heading: str = ""
    fenced: bool = False
    table: list[str] = msgspec.field(default_factory=list)


def extract(text: str, manner: Manner) -> list[Saying]:
    """Everything a file says by rule, with its lines, without repetition."""
    found: dict[tuple[str, str, str, str], Saying] = {}
    for saying in _walk(text, manner):
        if _is_sound(saying):
            key = (saying.kind, fold(saying.a), slot_of(saying.b), one_line(saying.c).casefold())
            found.setdefault(key, saying)
    return _with_aliases(list(found.values()))


def _walk(text: str, manner: Manner) -> Iterator[Saying]:
    place = _Place()
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.rstrip()[:MAX_LINE]
        if line.lstrip().startswith(("```", "~~~")):
            place.fenced = not place.fenced
        if place.fenced or not line.strip() or line.lstrip().startswith((">", "<!--", "```", "~~~")):
            place.table = []
            continue
        heading = _HEADING.match(line)
        if heading:
            title = _plain(heading["title"])
            place.heading = title if len(heading["level"]) > 1 else ""
            place.title = place.title or title
            place.table = []
        elif line.lstrip().startswith("|"):
            yield from _row(line, number, place, manner)
        else:
            place.table = []
            sayings = list(_line(line, place, manner))[:MAX_PER_LINE]
            yield from (replace(saying, line=number) for saying in sayings)


# ---- one line ----


def _line(line: str, place: _Place, manner: Manner) -> Iterator[Saying]:
    bullet = _BULLET.match(line)
    text = bullet["text"].strip() if bullet else line.strip()
    label = _LABEL.match(text)
    if label and not text.startswith("[["):
        yield from _tagged(label, manner)
        return
    if bullet is None and not (manner.sections and place.heading):
        yield from _sentence(text, place, manner)
        return
    pair = _pair(text)
    theirs = list(sentences.theirs(_plain(text)))
    if _arrow(text):
        yield from _arrow(text)
    elif theirs:
        yield from (replace(saying, category=_category(place, manner)) for saying in theirs)
    elif pair and (_subject(place, manner) or _ROSTER.search(place.heading) or _DOTTED.match(_plain(text))):
        yield from _kept(pair, text, place, manner)
    else:
        spoken = list(_sentence(text, place, manner))
        yield from spoken
        if manner.sections and not spoken:
            yield from _section(text, place, manner)
        elif not spoken and (name := sentences.begins_with(_plain(text))):
            yield Saying("fact", name, "note", _plain(text), "note", 0.4, several=True, unsure=True)


def _tagged(label: re.Match[str], manner: Manner) -> Iterator[Saying]:
    """`[decision|i=0.9] text`: what it says, or else the whole of it under its tag, of whom it is about."""
    strength = _importance(label["i"])
    text = _plain(label["text"])
    if strength is not None and strength < LEAST_IMPORTANCE:
        return
    tag = label["tag"].casefold()
    importance = 0.5 if strength is None else strength
    permanent = importance >= PERMANENT_IMPORTANCE
    pair = _DOTTED.match(text)
    spoken = [*_arrow(label["text"]), *sentences.read(text)]
    if pair:
        spoken = [Saying("fact", pair["entity"], pair["key"], pair["value"])]
    yield from (replace(saying, importance=importance, permanent=permanent) for saying in spoken)
    # A second copy of what was read would outlive it: a newer value retires the fact, and no sentence.
    if pair or sentences.says_all(text, spoken):
        return
    told = next((saying.a for saying in spoken if saying.kind != "alias"), "")
    yield from _whole(text, told or manner.subject, tag, Saying("", "", "", "", tag, importance, permanent))


def _whole(text: str, about: str, key: str, like: Saying) -> Iterator[Saying]:
    """A sentence as a fact of whom it is about; when that is not plain, of somebody known in it, or of none."""
    about = about or sentences.subject(text)
    others = () if about else sentences.names(text)
    guess = about or sentences.first_name(text)
    if guess or others:
        name = guess or others[0]
        yield replace(like, kind="fact", a=name, b=key, c=text, several=True, unsure=not guess, others=others)


def _arrow(text: str) -> list[Saying]:
    """`A → relation → B`, and chains of it."""
    parts = [_plain(part).strip(" .;,") for part in _ARROWS.split(text)]
    if len(parts) < 3 or len(parts) % 2 == 0 or not all(parts):
        return []
    return [Saying("relation", parts[n], parts[n + 1], parts[n + 2]) for n in range(0, len(parts) - 2, 2)]


def _pair(text: str) -> tuple[str, str] | None:
    """A key and a value: `key: value`, `**Key:** value`, `**Key** — value`."""
    match = _BOLD.match(text) or _PAIR.match(_plain(text))
    if not match:
        return None
    key, value = (
        _key(_plain(match["key"]).strip(" :")),
        sentences.without_denial(_plain(match["value"]).strip()),
    )
    if len(key.split()) > 5 or value.startswith("//") or slot_of(key) in _BLOCKED_KEYS:
        return None
    return key, value


def _kept(pair: tuple[str, str], text: str, place: _Place, manner: Manner) -> Iterator[Saying]:
    key, value = pair
    category = _category(place, manner)
    if _ROSTER.search(place.heading) and text.lstrip("*` ")[:1].isupper():
        yield from sentences.portrait(_named_in(text, key), value, category)
        return
    dotted = _DOTTED.match(_plain(text))
    if dotted:
        yield Saying("fact", dotted["entity"], dotted["key"], dotted["value"], category)
        return
    subject = _subject(place, manner)
    if not subject:
        return
    yield Saying("fact", subject, key, value, category)
    if (
        manner.names
        and slot_of(key) in ("name", "preferred name", "nickname", "full name")
        and subject == manner.subject
    ):
        yield Saying("alias", value, "", subject)


def _sentence(text: str, place: _Place, manner: Manner) -> Iterator[Saying]:
    category = _category(place, manner)
    for saying in [*_arrow(text), *sentences.read(_plain(text))]:
        yield replace(saying, category=category if saying.category == "fact" else saying.category)


def _section(text: str, place: _Place, manner: Manner) -> Iterator[Saying]:
    plain = re.sub(r"^\d{4}-\d{2}-\d{2}: ", "", _plain(text))
    key = _section_key(place)
    if not manner.sections or not key or len(plain.split()) < 3:
        return
    like = Saying("fact", "", key, plain, _category(place, manner))
    whole = list(_whole(plain, _subject(place, manner), key, like))
    title = place.heading or place.title
    if title and all(saying.unsure for saying in whole):
        whole = [replace(like, a=title, several=True, others=sentences.names(plain))]
    yield from whole


def _row(line: str, number: int, place: _Place, manner: Manner) -> Iterator[Saying]:
    """A table's row: its first cell is the entity, the header names the keys."""
    cells = [_plain(cell) for cell in line.strip().strip("|").split("|")]
    if not place.table:
        place.table = cells
        return
    if all(re.fullmatch(r":?-{2,}:?", cell.replace(" ", "")) for cell in cells if cell) and any(cells):
        return
    category = _category(place, manner)
    if len(place.table) == 2 and slot_of(place.table[0]) in _KEY_HEADS:
        subject = _subject(place, manner)
        if subject and len(cells) == 2:
            yield Saying("fact", subject, cells[0], cells[1], category, line=number)
        return
    for head, cell in zip(place.table[1:], cells[1:], strict=False):
        if not head or not cell or not cells[0]:
            continue
        yield Saying("fact", cells[0], _key(head), cell, category, line=number)
        if slot_of(head) in _KIN_HEADS and _subject(place, manner):
            yield Saying(
                "relation",
                cells[0],
                f"{slot_of(cell).replace(' ', '_')}_of",
                _subject(place, manner),
                line=number,
            )


# ---- what a line is about ----


def _subject(place: _Place, manner: Manner) -> str:
    heading = place.heading
    about = re.match(r"^about (?P<name>.+)$", heading, re.I)
    if _ABOUT_USER.match(heading):
        return manner.user
    if about and not about["name"].casefold().startswith(("this", "the ")):
        return about["name"]
    if re.search(r"\bpreferences?\b", heading, re.I):
        return manner.subject or manner.user
    if heading and not manner.subject and sentences.is_name(heading) and not _ROSTER.search(heading):
        return heading
    return manner.subject


def _section_key(place: _Place) -> str:
    words = place.heading.casefold().split()
    if not words:
        return "note" if place.title else ""
    if len(words) > 4 or _ROSTER.search(place.heading) or place.heading.casefold().startswith("about"):
        return "note" if place.heading.casefold().startswith("about") else ""
    last = words[0] if "and" in words else words[-1]
    return last[:-1] if last.endswith("s") and not last.endswith("ss") else last


def _category(place: _Place, manner: Manner) -> str:
    return next((name for pattern, name in _CATEGORIES if pattern.search(place.heading)), manner.category)


# ---- what is worth keeping ----


def _is_sound(saying: Saying) -> bool:
    """No placeholders, no endless names, nothing without letters or digits."""
    names = {"alias": (saying.a, saying.c), "relation": (saying.a, saying.b, saying.c)}
    texts = names.get(saying.kind, (saying.a, saying.b))
    if not all(any(c.isalnum() for c in text) for text in texts) or len(saying.a) > 80 or len(saying.b) > 60:
        return False
    if saying.kind != "fact" and len(saying.c) > 80:
        return False
    return bool(saying.c.strip()) and not _JUNK_VALUE.match(saying.c.strip())


def _with_aliases(sayings: list[Saying]) -> list[Saying]:
    """`X is Y` makes X an alias only of a Y that the same file says something else about."""
    known = {fold(saying.a) for saying in sayings if saying.kind != "alias"}
    return [s for s in sayings if s.kind != "alias" or not s.unsure or fold(s.c) in known]


def _key(key: str) -> str:
    """`Birthday` and `Phone number` are keys like `birthday`; `IP` and `dateOfBirth` stay as they are."""
    return key.lower() if not any(c.isupper() for c in key[1:]) else key


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
