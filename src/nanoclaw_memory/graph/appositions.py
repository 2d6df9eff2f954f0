"""Read what a sentence says in passing: "my sister Renske", "Radek, our plumber", "the secretary (Len, 555-0147)"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nanoclaw_memory import tokens
from nanoclaw_memory.graph import wording
from nanoclaw_memory.graph.clauses import details_of, without_possessive
from nanoclaw_memory.graph.keys import is_several, singular
from nanoclaw_memory.graph.triples import Triple
from nanoclaw_memory.graph.values import is_name, is_name_token, name_at, typed

_MY = re.compile(r"(?:my|our|mein|meine|meinen|meinem|meiner|unser|unsere|unserem|unseren|unserer)", re.I)
_INSIDE = re.compile(r"(?P<before>[^()]*?) ?\((?P<inside>[^()]+)\)")
_BETWEEN = re.compile(
    r"(?P<name>[^,;:()]+), (?P<whose>my|our|the|a|an|mein|meine|unser|unsere|der|die|ein|eine) "
    r"(?P<what>[^\W\d_][\w-]+(?: [\w-]+)?)(?=[,.;!]|$)(?!, (?:and|und|or|oder)\b)",
)
_OPENS = re.compile(
    r"(?:\w+ed|met|saw|told|rang|spoke|gave|sent|got|had|with|and|but|for|from|to|at|by|mit|bei|beim|von|vom|für|an|"
    r"zu|und|aber|hab|habe|war|traf)",
    re.I,
)
_SEVERAL = re.compile(
    rf"(?:^|[ ,])(?:{_MY.pattern}|(?:we|I) have|(?:wir|ich) haben?)(?: \w+)? (?P<what>[^\W\d_]+)"
    r"(?P<joint>(?: are| sind)? (?:called|named)| heißen|,|:| (?:are|sind)) (?P<names>.+)$",
    re.I,
)
_ONE_OF_SEVERAL = re.compile(r"(?P<name>[^()]{1,40}?)(?: \((?:(?P<age>\d{1,2})|[^()]*)\))?$")
# "My parents are Polish and German": usual words that end so name nobody.
_ADJECTIVE = re.compile(r"\w+(?:ish|ese|ch|an|ic)$")
_CONTACTS = ("phone", "email")


def appositions(sentence: str, user: str, verb: str) -> Iterator[Triple]:
    """Who somebody is, whatever the sentence tells of them; `verb` is the copula of its language."""
    yield from _owned(sentence, user)
    yield from several_of(sentence, user)
    for match in _INSIDE.finditer(sentence):
        yield from _in_parentheses(match["before"], match["inside"], user, verb)
    for match in _BETWEEN.finditer(sentence):
        name, what = _last_name(match["name"]), match["what"]
        if not name or not wording.is_known_role(what):
            continue
        if _MY.fullmatch(match["whose"]):
            yield _of(user, what, name)
        elif not wording.is_kin(what):
            yield Triple("fact", name, verb, what)


def _owned(sentence: str, user: str) -> Iterator[Triple]:
    """ "my sister Renske", "Lena's teacher Mrs Ode"."""
    words = sentence.split()
    for place, word in enumerate(words[:-2]):
        possessive = word.endswith(("'s", "’s")) and is_name_token(word)
        owner = user if _MY.fullmatch(word) else without_possessive(word) if possessive else ""
        if not owner:
            continue
        for count in (1, 2):
            what = " ".join(words[place + 1 : place + 1 + count])
            name = _first_name(" ".join(words[place + 1 + count :]))
            if name and wording.is_somebody(what) and what.replace(" ", "").replace("-", "").isalpha():
                yield _of(owner, what, name)
                break


def several_of(sentence: str, user: str) -> Iterator[Triple]:
    """ "our kids are Lotte and Bram", "my cats, Miso and Tofu": relatives or pets, if everything named is a name."""
    match = _SEVERAL.search(sentence.rstrip(" .!"))
    if match is None or not is_several(match["what"]):
        return
    named = re.split(r", (?:and (?:they|we|I|both)|und)\b|; ", match["names"])[0]
    items = [_ONE_OF_SEVERAL.match(item) for item in re.split(r", (?:and |und )?| and | und ", named)]
    members = [item for item in items if item and is_name(item["name"], 3)]
    described = match["joint"].strip() in ("are", "sind")
    unsure = wording.is_pet(singular(match["what"])) or all(_is_adjective(item["name"]) for item in members)
    if len(members) < max(len(items), 2) or (described and unsure):
        return
    for item in members:
        yield Triple("relation", user, match["what"].casefold(), item["name"])
        if item["age"]:
            yield Triple("fact", item["name"], "age", item["age"])


def _is_adjective(word: str) -> bool:
    return bool(_ADJECTIVE.match(word)) and tokens.is_one(f" {word.casefold()}")


def _in_parentheses(before: str, inside: str, user: str, verb: str) -> Iterator[Triple]:
    parts = details_of(inside)
    words = before.split()
    name = _last_name(before)
    mine = len(words) > 1 and _MY.fullmatch(words[-2])
    known = words and (wording.is_somebody if mine else wording.is_known_role)(words[-1])
    if known and _first_name(parts[0]) == parts[0] and (mine or not wording.is_kin(words[-1])):
        name = parts.pop(0)
        yield _of(user, words[-1], name) if mine else Triple("fact", name, verb, words[-1])
    elif not name:
        return
    for part in parts:
        value = typed(part)
        if value and value.type in _CONTACTS and not value.rest:
            yield Triple("fact", name, value.type, value.text)
        elif wording.is_known_role(part) and not wording.is_kin(part) and len(part.split()) <= 2:
            yield Triple("fact", name, verb, part)


def _of(owner: str, what: str, name: str) -> Triple:
    kind = "relation" if wording.is_kin(what) or wording.is_pet(what) else "fact"
    return Triple(kind, owner, what.casefold(), name, several=True)


def _first_name(text: str) -> str:
    """The name that a text begins with; a day or a pronoun ends it, and a number is none."""
    name, _ = name_at(text)
    kept: list[str] = []
    for token in name.removesuffix("'s").removesuffix("’s").split():
        if token.casefold() in wording.NO_ENTITY or any(c.isdigit() for c in token):
            break
        kept.append(token)
    found = " ".join(kept)
    return found if is_name(found, 3) and not text.startswith("(") and not wording.is_somebody(found) else ""


def _last_name(text: str) -> str:
    """The name that a text ends with."""
    words = text.split()
    start = len(words)
    while start and is_name_token(words[start - 1]) and not words[start - 1].endswith((",", ";", ":")):
        start -= 1
    if start < len(words) - 1 and _OPENS.fullmatch(words[start]):  # "Met Bo Rowe", "Mit Dr. Weiler"
        start += 1
    found = " ".join(words[start:])
    plain = found and not any(
        word.casefold() in wording.NO_ENTITY or word.isdigit() for word in words[start:]
    )
    return found if plain and is_name(found, 3) and not wording.is_somebody(found) else ""
