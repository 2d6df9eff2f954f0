"""Credentials that are assigned to a name: one grammar of name, link and value for every language and format."""

from __future__ import annotations

import itertools
import re
from collections.abc import Generator, Iterator

import msgspec

from nanoclaw_memory.intake.prose_credentials import ADVERB, find_in_prose, find_reversed, is_noun
from nanoclaw_memory.intake.secret_names import (
    BY_PEOPLE,
    KEYS,
    NAME,
    SHORT,
    WORDS,
    CredentialName,
    is_opened,
    line_end,
    lines_with_names,
    name_at,
    names_keeper,
)
from nanoclaw_memory.intake.secret_values import (
    CHOSEN,
    RANDOM,
    STRONG,
    WORD,
    is_code,
    is_grouped,
    is_host,
    is_passphrase,
    is_reference,
    quality,
    verbose,
)

_QUOTE = r"""["'`]{3}|\\{0,3}["'`]|[“„‘«]"""
_OPENING_QUOTE = verbose(_QUOTE)
# What may close a name: quotes, brackets, the endings of other scripts, a remark in brackets.
_CLOSE = r"""(?-i:[^\W\dA-Za-z_]){0,6}[\\"'`”’»*_\])}]{0,6}+(?:[ \t]{0,2}\([^()\n]{1,40}\)[*_]{0,3})?"""
# Any operator of any language: = := ::= ?= .= ||= => -> <- and so on; or a comma, a bracket, a bar.
_OPERATOR = (
    r"""[-+*/.?|&^%~<!]{0,3}[:=]{1,4}[=>~]{0,2}|-{1,2}>|<-{1,2}|[→⇒：＝]|\|{1,2}|\?\?|\?:|&gt;|%3[AD]|[,(]"""
)
_OPEN = rf"""[*_]{{0,3}}[ \t]{{0,2}}[\[({{]{{0,2}}[ \t]{{0,2}}(?:<!\[CDATA\[)?
    (?:(?:new[ ])?[\w.:<>!]{{1,40}}\((?={_QUOTE}))?(?:[a-z@$]{{0,2}}(?={_QUOTE}))?"""
_BELOW = r"""(?:(?:[|>][-+]?\d?|<<[-~]?["']?\w{1,20}["']?)?[ \t]{0,4}\r?\n\s{0,20}(?:[-*+][ \t]{1,3})?)?"""
_LINKS = {
    # name = value, "name": "value", name("value"), name:⏎value
    "direct": verbose(rf"{_CLOSE}[ \t]{{0,12}}(?P<operator>{_OPERATOR})[ \t]{{0,12}}{_BELOW}{_OPEN}"),
    # <name>value, <name attribute="x">value
    "element": verbose(rf"[^<>\n]{{0,120}}(?P<operator>>)\s{{0,40}}{_OPEN}"),
    # find("password").fill("value")
    "chained": verbose(rf"""[\]"'`]{{1,3}}\)\.(?P<operator>\w{{1,30}}\()(?={_QUOTE})"""),
    # expect "Password:"⏎send "value"
    "answered": verbose(
        rf"""[^\n"'`]{{0,20}}["'`][^\n"'`]{{0,10}}\r?\n[^\n"'`=:]{{0,30}}?(?P<operator>send|type|write|fill|enter
        |input)
        [a-z_]{{0,8}}[ (]{{1,2}}(?={_QUOTE})"""
    ),
    # {"name": "X_TOKEN", "value": "…"}, over a few lines
    "labelled": verbose(
        rf"""[^\n]{{0,60}}?(?:\n[^\n]{{0,60}}?){{0,3}}?(?<![a-z])(?<!=["'])
        (?:value|val|default|content|string|text|data|body)[\\"'`\]]{{0,4}}
        (?P<operator>\s{{0,8}}(?:=>|[:=>,])|[ ](?=["']))\s{{0,12}}{_OPEN}"""
    ),
    # Netflix PIN⏎8150
    "below": verbose(
        r"""[^\n.:;=?!<>(){}\[\]"'`,|\\]{0,40}(?P<operator>\r?\n)[ \t]{0,8}(?=[^\s=:(]{4,64}[ \t]*(?:[\r\n]|\Z))"""
    ),
    # var token string = "value"
    "typed": verbose(rf"""[^\n;"]{{1,60}}?(?P<operator>:?=)[ \t]{{0,8}}{_OPEN}(?={_QUOTE})"""),
}
# the password for the office is now …, Hasło do panelu: …, I changed the pin. It's …
_COPULA = r"""is|was|are|be|been|equals?|becomes?|now|ist|lautet|war|wird|hei(?:ss|ß)t|est|era|es|ser[áà]|è|é|är|er
    |on|je|jest
    |remains?|stays?|became|bleibt|wurde|reste|queda|qued[óo]|fica|ficou|resta|wordt|blijft|werd|blir|blev|будет|bude
    |to|este|là|adalah|olarak|это|είναι|هي|هو"""
_CHANGED = r"""set|changed?|reset|updated?|rotated|switched|ge[äa]ndert|gesetzt|gewijzigd|veranderd|cambi\w+
    |modifi\w+|mudad\w
    |chang[ée]e?|alterad\w|zmienion\w|ustawion\w|zm[ěe]n[ěe]n\w|ändra[td]?s?|bytt|ændret|endret|измен\w+|сменил\w*
    |поменял\w*|установлен\w?"""
_ANNOUNCED = verbose(
    rf"""(?P<pronoun>(?<![\w'’])(?:(?:it|that|this)(?:['’]s|[ ]is|[ ]was)(?:[ ]now)?|c['’]est
      |(?:es|er|sie)[ ](?:ist|lautet)))[ :]{{1,3}}
    |(?<=[ \t])(?:(?:{_COPULA})(?:[ ](?:{ADVERB})){{0,3}}
      |(?:{_CHANGED})[ ](?:\w{{1,4}}[ ])?(?:to|in|auf|zu|naar|en|a|à|su|na|til|till|para|на)(?:[ ]be)?)
      [ ]?[:,]?[ \t]{{1,3}}
    |[ \t]?(?::(?=\s)|：)[ \t]{{0,3}}(?:\r?\n\s{{0,20}})?|(?:是|为|為|は)[ \t]{{0,3}}"""
)
_UNIT = verbose(
    r"[ ](?:lines?|loc|files?|bytes?|char\w*|digits?|words?|[kmg]b|times|days?|hours?|min\w*|sec\w*|zeilen)\b"
)
# 915 330, 2 2 0 9 6
_SPACED = verbose(r"(?:\d{2,4}(?:[ -]\d{2,4}){1,3}|\d(?:[ -]\d){3,9})(?![\w.:/-]*\w)")
_OF_A_HASH = verbose(r"(?:sha-?\d+|md5|hash|checksum|digest|fingerprint)[ ][^\n]{0,20}$")
_TELLING = verbose(r"""(?s:[\s：是为為は].*[\d!@\#$%^&*+~_"“-])""")
_WINDOW, _STATEMENTS = 140, 6
_SENTENCE_END = verbose(r"[.!?…][\s]|\n")
# What must not follow the name: the statement is then about something else.
_OTHER_SUBJECT = verbose(
    r"""^[\s_-]*(?:ids?|hash\w*|digest|fingerprint|checksum|ur[il]s?|path|files?|name|type|version|image|endpoint
    |class|policy|manager
    |resets?|length|field|prompt|protect\w*|attempts?|rules?|requirements?|expir\w*|lifetime|count|limit|budget
    |usage|store|rotation
    |auth\w*|generat\w*|valid\w*|check\w*|format|param\w*|options?|column|input|box|page|strength|entropy|algorithm
    |scope|review\w*|lists?)(?![a-z])"""
)
_BARE = verbose(
    r"""(?:[^\s，。；、！？）】」"'`,;<>|{}()\[\]\\&]|&(?!\w{1,30}=)|\\(?![nrt"'`])){4,400}(?:\([^\s]{0,20})?"""
)
# k;9Zw>tRq2Lf, as servers generate them: any signs, alone at the end of a line
_GENERATED = verbose(
    r"""(?-i:(?=\S{0,30}[a-z])(?=\S{0,30}[A-Z])(?=\S{0,30}\d))(?=\S{0,30}[;<>|&][a-z0-9])
    [^\s"'`=:/\\(){}\[\]]{8,40}(?=[ \t]*(?:[\r\n]|\Z))"""
)
# abcd efgh ijkl mnop, as mail providers issue them
_IN_GROUPS = verbose(r"""(?-i:[a-z0-9]{4}(?:[ ][a-z0-9]{4}){3,7})(?=["'`.,)]{0,2}(?:[\r\n]|\Z))""")
_USER_FIELD = verbose(
    r"""(?<![a-z])(?:user(?:[ _-]?(?:name|id))?|log[ ]?in|e-?mail|account|benutzer(?:name)?|usuario|usu[áa]rio
    |utente|utilisateur
    |identifiant|gebruiker(?:snaam)?|логин|пользователь|ssid|wlan|wi-?fi|netzwerk
    |network)["'`*]{0,3}[ \t]?[:=][ \t]?["'`*]{0,3}\w"""
)
# What may separate a name from an obvious value: a user, a place, a few words.
_GAP = verbose(
    r"""(?-i:[^\W\dA-Za-z_]){1,6}[^\w\n;@/"'`]{0,5}|["'`]{0,3}(?:[^\w\n;@/"'`]|/(?=[ \t/])){1,40}"""
)
_BETWEEN = verbose(r"""["'`]?[^\s"'`,;<>|{}()\[\]]{1,40}""")
_NEAR = 5
_IN_BRACKETS = verbose(r"""[\\"'`]{0,4}\s*,\s*""")
_IN_LINES = verbose(r"""["'`]?[ \t]*\r?\n[ \t]*-[ \t]+""")
# | user | password |, and rows below it
_HEADING = verbose(
    rf"""[\s"'*`]*(?:[a-z0-9]+[ _-]){{0,2}}(?P<name>{WORDS}|{SHORT}|(?:{KEYS})[ _-]?key)s?[\s"'*`]*"""
)

_SHORTEST = {CHOSEN: 5, STRONG: 8, RANDOM: 16}
_LONG = 80  # names inside a longer value are not examined again


class _Value(msgspec.Struct, frozen=True):
    """A possible credential: its place, and whether quotes delimit it."""

    text: str
    start: int
    quoted: bool

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def find_named(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of values that are credentials by the names before or after them."""
    for start, end in sorted(lines_with_names(text, lowered).items()):
        looked_at = start
        for match in NAME.finditer(text, start, end):
            if match.start() >= looked_at and (name := name_at(text, match)):
                looked_at = yield from _values_of(name, text)
        yield from find_reversed(text, start, end)
        yield from _in_columns(text, start, end)


def _in_columns(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the cells of a table below a heading that names a credential, given the heading's line."""
    delimiter = next((sign for sign in "|\t;," if sign in text[start:end]), "")
    columns: dict[int, bool] = {}  # those with credentials; whether people choose them
    first, count = text[start:end], text.count(delimiter, start, end)
    while delimiter and end < len(text):
        start, end = end + 1, line_end(text, end + 1)
        if text.count(delimiter, start, end) != count:
            return
        columns = columns or _credential_columns(first.split(delimiter))
        cells = text[start:end].split(delimiter)
        if not columns or columns.keys() & _credential_columns(cells).keys():
            return
        for column, by_people in columns.items():
            at = start + sum(len(cell) + 1 for cell in cells[:column])
            value = cells[column].strip(" \t\r\"'*`")
            if quality(value, True, by_people) >= (CHOSEN if by_people else RANDOM):
                at += cells[column].index(value)
                yield at, at + len(value)


def _credential_columns(cells: list[str]) -> dict[int, bool]:
    found = ((number, _HEADING.fullmatch(cell)) for number, cell in enumerate(cells))
    return {number: BY_PEOPLE.match(heading["name"]) is not None for number, heading in found if heading}


def _values_of(name: CredentialName, text: str) -> Generator[tuple[int, int], None, int]:
    """Yield the credential, or the list of them, to which the first matching link leads; return where to continue."""
    looked_at = name.start
    for kind, form in _LINKS.items():
        if kind == "element" and not name.in_tag:
            continue
        link = form.match(text, name.end)
        value = _value_of(name, text, link.end(), False) if link else None
        if link and value and _is_credential(name, kind, link, value, text):
            yield value.start, value.end
            yield from _further_items(name, link[0], value, text)
            return looked_at
        if value and len(value.text) > _LONG and not value.quoted and "://" not in value.text:
            looked_at = max(looked_at, value.end)
    of_hash = _OF_A_HASH.search(text[max(0, name.start - 30) : name.start])
    if of_hash:
        return looked_at
    value = _value_announced(name, text) or _value_near(name, text)
    if value and not (is_host(value.text) and _is_place(name, value, text)):
        yield value.start, value.end
    if name.by_people:
        yield from find_in_prose(name, text)
    return looked_at


def _is_place(name: CredentialName, value: _Value, text: str) -> bool:
    """Return whether a machine's name near a credential's only says where the credential is, or what it opens."""
    return names_keeper(text, name.end) or is_opened(text[name.end : value.start])


def _value_of(name: CredentialName, text: str, start: int, prose: bool) -> _Value | None:
    """Return the value at a place; a number may be in groups."""
    if name.is_code and (name.plain or prose) and (spaced := _SPACED.match(text, start)):
        return _Value(spaced[0], start, False)
    return _value_at(text, start, prose)


def _value_announced(name: CredentialName, text: str) -> _Value | None:
    """Return a value after the words that announce it, in the name's sentence, or in the next one after `it is`."""
    end = name.end + _WINDOW
    if not _TELLING.search(text, name.end, end) or _OTHER_SUBJECT.match(text[name.end : name.end + 30]):
        return None
    ended = _SENTENCE_END.search(text, name.end, end)
    second_best = None
    for link in itertools.islice(_ANNOUNCED.finditer(text, name.end, end), _STATEMENTS):
        if ended and ended.start() < link.start() and not link["pronoun"]:
            continue
        value = _value_of(name, text, link.end(), True)
        if value and _is_announced(name, link, value, text):
            if link[0].strip() != "to":
                return value
            second_best = value
    return second_best


def _is_announced(name: CredentialName, link: re.Match[str], value: _Value, text: str) -> bool:
    if "\n" in link[0] and not _stands_alone(value, text):
        return False
    if " " in value.text and not is_grouped(value.text):
        return _is_phrase(name, value) or _SPACED.fullmatch(value.text) is not None
    if not re.search(
        r"[^\W\d_]", value.text
    ):  # a number: of a door, of a card; else a version, a date, a size
        form = r"[\d#*-]{3,12}" if name.is_code else r"\d{6,32}"
        return name.by_people and bool(re.fullmatch(form, value.text)) and not _UNIT.match(text, value.end)
    colon = link[0].strip() in (":", "：")
    if name.by_people and not colon and is_passphrase(value.text, 3):
        return True
    far = colon or link[0].strip() == "to"
    least = RANDOM if far and not name.by_people else name.least
    return quality(value.text, value.quoted, name.by_people) >= least


def _stands_alone(value: _Value, text: str) -> bool:
    """Return whether a value below its name is alone in its line."""
    alone = text[value.end : value.end + 1] in ("", "\n", "\r", "<")
    return value.quoted or (alone and not re.search("[=:]", value.text.rstrip("=")))


def _value_at(text: str, start: int, prose: bool) -> _Value | None:
    if quote := _OPENING_QUOTE.match(text, start):
        closing = {"“": "”", "„": "“", "‘": "’", "«": "»"}.get(quote[0], quote[0])
        end = text.find(closing, quote.end(), quote.end() + 400)
        while end > quote.end() and (
            text[end - 1] == "\\" != closing[0] or re.compile(r"''\w").match(text, end)
        ):  # escaped, or doubled as in YAML
            end = text.find(closing, end + (2 if text[end - 1] != "\\" else 1), quote.end() + 400)
        if end > quote.end() and ("\n" not in text[quote.end() : end] or len(closing) == 3):
            return _Value(text[quote.end() : end], quote.end(), True)
        start = quote.end()
    if grouped := _IN_GROUPS.match(text, start):
        return _Value(grouped[0], start, False)
    bare = _GENERATED.match(text, start) or _BARE.match(text, start)
    cut = bare[0].rstrip(".,;:!?)*_&\\" if prose else ",;*&\\") if bare else ""
    return _Value(cut, start, False) if len(cut) >= 4 else None


def _is_credential(name: CredentialName, kind: str, link: re.Match[str], value: _Value, text: str) -> bool:
    """Return whether a linked value is a credential."""
    if " " in value.text and not is_grouped(value.text):
        phrase = (
            value.quoted and name.is_phrase and len(value.text.split()) >= 3 and not is_reference(value.text)
        )
        sure = name.is_secret or (name.is_upper and name.by_people and link[0] == "=")
        words = value.quoted and sure and kind == "direct" and value.text.islower()
        return phrase or (words and is_passphrase(value.text, 2)) or _SPACED.fullmatch(value.text) is not None
    if kind == "below":
        return _is_below(name, value, text)
    if kind == "element" and not re.compile(r"\s*(?:\]\]>\s*)?<").match(text, value.end):
        return False
    if kind == "direct" and "\n" in link[0] and not _stands_alone(value, text):
        return False
    found, needed = quality(value.text, value.quoted, name.by_people), _needed(name, kind, link, value)
    # A plain word counts beside a user's name: login: bob⏎password: swordfish; and where the line ends with it.
    plain = found == WORD < needed == CHOSEN and name.by_people and link["operator"] in (":", "=")
    if not plain or not _is_word(value.text):
        return found >= needed
    last = name.plain and link[0] in (": ", "=") and text[value.end : value.end + 1] in ("", "\n", "\r")
    return (last and (link[0] == "=" or is_noun(value.text, True))) or _user_beside(name, value, text)


def _is_below(name: CredentialName, value: _Value, text: str) -> bool:
    """Return whether the only word in a line is the value of the short line above it."""
    if not name.by_people or name.start - text.rfind("\n", 0, name.start) > 40:
        return False
    if value.text.isdigit():
        return name.is_code and 4 <= len(value.text) <= 12
    return quality(value.text, value.quoted, True) >= name.least


def _is_phrase(name: CredentialName, value: _Value) -> bool:
    """Return whether a value is a phrase as in: password is "Ichabod 4 president" """
    words = re.sub(r"\b\d+\b ?", "", value.text).strip()
    several = len(value.text.split()) >= 3
    return value.quoted and several and name.by_people and name.plain and is_passphrase(words, 2)


def _is_word(value: str) -> bool:
    return len(value) >= 6 and (not is_code(value) or is_passphrase(value, 2))


def _user_beside(name: CredentialName, value: _Value, text: str) -> bool:
    """Return whether the line of a name, or the one before or after it, names a user."""
    start = text.rfind("\n", 0, max(0, text.rfind("\n", 0, name.start))) + 1
    end = line_end(text, line_end(text, value.end) + 1)
    return _USER_FIELD.search(text, max(start, name.start - 200), min(end, value.end + 200)) is not None


def _needed(name: CredentialName, kind: str, link: re.Match[str], value: _Value) -> int:
    """Return how credential-like a value must be: the less the name and the link indicate, the more."""
    operator = link["operator"]
    if operator in (",", "(", "|", "to", "->", "<-") or link[0].endswith("("):
        loose = operator == "," and link[0][-1:].isspace()
        if not name.by_people or (loose and not value.quoted):
            return RANDOM
        return name.least if value.quoted or operator != "(" else max(name.least, STRONG)
    if kind == "element" and link[0] == ">" and name.by_people and name.is_tag:
        return WORD if _is_word(value.text) else CHOSEN
    if kind != "direct" or name.least > CHOSEN:
        return name.least
    # A plain word counts in quotes, and in an assignment of the environment: DB_PASSWORD=swordfish.
    if value.quoted:
        phrase = _is_word(value.text) if name.by_people else name.plain and is_passphrase(value.text, 3)
        return WORD if phrase and operator in ("=", ":", "=>", ":=") else CHOSEN
    assigned = name.is_upper and link[0] == operator == "="
    if not name.by_people:
        return WORD if assigned and is_passphrase(value.text, 3) else CHOSEN
    if link[0] == ": " and re.search("[-A-Z]", value.text[1:]) and is_passphrase(value.text, 3):
        return WORD
    return WORD if assigned else CHOSEN


def _value_near(name: CredentialName, text: str) -> _Value | None:
    """Return a credential-like value a few words after a name: ID/PW master Xy7…"""
    at = name.end
    for words_between in range(_NEAR if name.least == CHOSEN else 2 if name.is_key else 0):
        gap = _GAP.match(text, at)
        between = gap and _BETWEEN.match(text, gap.end())
        if gap is None or re.search(r"[.!?][ \t]", gap[0]):
            return None
        value = _value_at(text, gap.end(), True)
        if value and value.text.isdigit() and words_between == 0 and _is_number_of(name, value.text, gap[0]):
            return value
        grouped = value is not None and " " in value.text and is_grouped(value.text)
        if value and (grouped or not re.search(r"[ =]|^\d+$|^@", value.text.rstrip("="))):
            least = _needed_near(name, words_between, value.quoted, gap[0])
            long = len(value.text) >= _SHORTEST[least]
            found = quality(value.text, value.quoted, name.by_people)
            literal = (
                value.quoted and words_between == 0 and gap[0].isspace() and name.by_people and name.plain
            )
            if (long and found >= least) or (
                literal and found == WORD and _is_word(value.text) and is_passphrase(value.text, 1)
            ):
                return value
        if between is None:
            return None
        at = between.end()
    return None


def _is_number_of(name: CredentialName, digits: str, gap: str) -> bool:
    """Return whether digits are the value as in PIN 4821, password 20482817."""
    if not name.by_people or not gap.isspace():
        return False
    if name.is_code:
        return 4 <= len(digits) <= 12 and (name.plain or name.is_upper)
    return name.plain and len(digits) >= 6


def _needed_near(name: CredentialName, words_between: int, quoted: bool, gap: str) -> int:
    if not name.beside_user:  # key 0 R4dius-Rocks, as routers are configured
        told = gap.isspace() and words_between <= name.is_secret and (name.is_key or name.is_secret)
        return STRONG if told else RANDOM
    return CHOSEN if words_between == 0 and (name.plain or quoted) else STRONG


def _further_items(name: CredentialName, link: str, value: _Value, text: str) -> Iterator[tuple[int, int]]:
    """Yield the rest of a list: passwords = ["…", "…"], tokens:⏎- …⏎- …"""
    between = _IN_BRACKETS if "[" in link else _IN_LINES if "- " in link else None
    while between and (gap := between.match(text, value.end)):
        following = _value_at(text, gap.end(), False)
        if not following or quality(following.text, following.quoted, name.by_people) < CHOSEN:
            return
        value = following
        yield value.start, value.end
