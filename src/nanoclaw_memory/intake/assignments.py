"""Credentials that a name gives away: one grammar of name, link and value, whatever the language or format."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Generator, Iterator
from itertools import pairwise

import msgspec

MARKER = r"\[redacted:[a-z0-9-]{1,40}\]"

# All patterns below are verbose, ignore case unless they say otherwise, and are compiled on first use.

# ---- names ----

# Wherever they stand in an identifier: dbPassword, X_AUTH_TOKEN, mytoken; misspelt too.
_WORDS = r"""pass(?:wd|phrase|code|wort|key)|pa{1,2}s{1,3}w?o[rw]{1,2}d|pswd|kennwort|secret|sercret|token|credential
    |api[\s_.-]?key|contrase[ñn]a|senha|wachtwoord|l[öo]senord|adgangskode|salasana|has[łl]o|heslo|jelsz[óo]|[şs]ifre
    |mot[\s_-]de[\s_-]passe|парол[ьяю]|токен|סיסמ[אה]|كلمة\s(?:المرور|السر)|पासवर्ड|密[码碼]|口令|令牌|パスワード|暗証番号
    |トークン|비밀번호|비번|암호|패스워드|토큰"""
# Too short for that: they begin a word, or follow one that often comes before them (rootpw, userpass).
_SHORT = r"""pass|pwd|p/?w|psk|mdp|pin|puk|cv[vc]2?|creds?|otp|jwt|pat|auth|bearer|cookie|sid|session(?:[\s_-]?id)?"""
_BEFORE_SHORT = r"root|user|db|bind|admin|require|my|any|ssh|sql|smtp|mail|ftp|wpa|become|pg|redis"
_KEYS = r"""access|auth(?:entication)?|private|secret|sign(?:ing|ature)?|encrypt(?:ion)?|master|account|subscription
    |licen[sc]e|activation|client|shared|storage|consumer|webhook|deploy|admin|functions?|service|security|recovery|app"""
_NAME = rf"""(?P<word>{_WORDS})
    |(?:(?<![A-Za-z0-9+])|(?-i:(?<=[a-z])(?=[A-Z]))|(?:{_BEFORE_SHORT}))(?P<short>{_SHORT})
     (?-i:(?![A-Za-z])|(?=[sS](?![A-Za-z]))|(?<=[a-z])(?=[A-Z]))
    |(?:{_KEYS})[\s_.-]?(?P<keyed>key)
    |(?P<key>key)"""
_KEYWORDS = (
    "pass pasw passo paas pswd pw p/w psk mdp pin puk cvv cvc cred otp jwt pat auth bearer cookie sid session key secret "
    "sercret token kennwort contrase senha wachtwoord senord adgangskode salasana hasło haslo heslo jelsz ifre парол "
    "токен סיסמ كلمة पासवर्ड 密 口令 令牌 パスワード 暗証番号 トークン 비밀번호 비번 암호 패스워드 토큰"
).split()
# People choose these themselves, and a plain word may do.
_BY_PEOPLE = r"pa{1,2}s|pswd|pwd|p/?w|psk|pin|puk|cv[vc]|mdp|kennwort|contrase|senha|wachtw|[^\x00-\x7f]"
# These alone say little: only a random value is a credential.
_WEAK = r"otp|jwt|pat|auth|cookie|sid|session.*"
_IDENTIFIER = r"(?:[_.-]?[A-Za-z0-9]){0,40}"
# How the word may go on and still name the credential itself.
_SAME = r"""s?(?:[_.-]?(?:key|value|val|token|secret|pass(?:word)?|text|string|str|base64|b64|plain|raw|prod(?:uction)?
    |dev|test|live|stag(?:e|ing)|new|old|current|default|main|admin|root|user|db|ci|env|header|any|v?\d{1,3}))*"""
# Public, or about the credential: even a random value is none.
_PUBLIC = r"(?:public|primary|foreign|sort|partition|idempotency|cache|hash|site|publishable|host)[\s_.-]?$"
_ABOUT = r"""(?:^|[_.-]|(?-i:(?<=[a-z])(?=[A-Z])))(?:ids?|hash(?:ed|es)?|digest|fingerprint|checksum|sha\d*|md5|arn
    |ur[il]s?|path|file|name|host|type|version|image|ref|endpoint|class|policy|manager)(?![a-z])"""
_WITH_USER = r"(?:id|user|username|login|account|계정|아이디)[\W_]{1,4}$|--?$"

# ---- links ----

_QUOTE = r"""["'`]{3}|\\{0,3}["'`]|[“„‘«]"""
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
    "direct": rf"{_CLOSE}[ \t]{{0,12}}(?P<operator>{_OPERATOR})[ \t]{{0,12}}{_BELOW}{_OPEN}",
    # <name>value, <name attribute="x">value
    "element": rf"[^<>\n]{{0,120}}(?P<operator>>)\s{{0,40}}{_OPEN}",
    # {"name": "X_TOKEN", "value": "…"}, over a few lines
    "labelled": rf"""[^\n]{{0,60}}?(?:\n[^\n]{{0,60}}?){{0,3}}?(?<![a-z])
        (?:value|val|default|content|string|text|data|body)[\\"'`\]]{{0,4}}
        (?P<operator>\s{{0,8}}(?:=>|[:=>,])|[ ](?=["']))\s{{0,12}}{_OPEN}""",
    # var token string = "value"
    "typed": rf"""[^\n;"]{{1,60}}?(?P<operator>:?=)[ \t]{{0,8}}{_OPEN}(?={_QUOTE})""",
    # the password for the office is now …
    "stated": r"""[*_`"'”]{0,3}(?:[ ](?:for|of|to|on|at|in|we|i|you|von|für|zu|de|del|per|pour)[ ][^\n.:;=]{1,50}?)?
        [ \t]{1,3}(?P<operator>(?:ha[sd]|have)(?:[ ]now)?[ ]been[ ]\w{3,8}[ ]to
        |(?:is|was|are|be)(?:[ ](?:now|still|currently|just|then|again))?(?:[ ](?:set|changed|reset|updated)[ ]to)?
        |(?:set|changed|reset|updated)?[ ]?to(?:[ ]be)?|equals|ist|lautet|war|est|es|è|é|är|er|jest)
        [:,]?[ \t]{1,3}[*_]{0,3}""",
}
_BARE = r"""(?:[^\s"'`,;<>|{}()\[\]\\&]|&(?!\w{1,30}=)|\\(?![nrt"'`])){4,400}(?:\([^\s]{0,20})?"""
# What may stand between a name and a value that both are plain to see: a user, a place, a few words.
_GAP = r"(?-i:[^\W\dA-Za-z_]){1,6}[^\w\n;@/]{0,5}|(?:[^\w\n;@/]|/(?=[ \t/])){1,5}"
_BETWEEN = r"""[^\s"'`,;<>|{}()\[\]]{1,40}"""
_NEAR = 5
# hunter2 is the password
_REVERSED = rf"""(?<![^\s"'`(/\#;*])(?P<value>[^\s"'`(){{}}<>,;:=]{{5,200}})["'`)*]{{0,3}}[ \t]{{1,3}}(?:is|as|ist|als)
    (?:[ ](?:the|my|our|your|his|her|their|a|das|mein|unser|[a-z0-9-]{{2,12}})){{0,3}}[ ](?:{_WORDS}|pin)(?![a-z])
    (?![ _-]?{_ABOUT})"""

# ---- values ----

_DUMMY = r"""^(?:your|my|the|some|an?|new|old|test|dummy|fake|sample|example|user|db|api|auth|access|client)?[ _.-]*
    (?:pass(?:word|wd|phrase|code)?|passwort|pwd|secret|token|key|credentials?|value|here|string|text)
    [ _.-]*(?:here|goes|value|string|text|key|id|name|\d{1,3})?[ _.!-]*$"""
_EXAMPLE = r"""example|placeholder|change[-_ ]?(?:me|it|this)|redacted|replace[-_ ]?(?:me|with)|your[-_ ]|insert[-_ ]
    |dummy|not[-_ ]?a[-_ ]?real|xxxx|\*\*\*|\.\.\.|…"""
_MASKED = r"(?s:^(?:(.)\1*|[x*•.…_-]+)$)"
_REFERENCE = r"""(?s:^(?:<.*|.*>|\$.*|%.*%|\{.*|@\w+@|\[.*                   # <your key>, ${VAR}, $(pass show x), %VAR%
    |(?:\.{0,2}|~)/(?!.*[=+]).*|[a-z]:\\.*                                  # a path
    |(?:https?|file|op|vault|env|secretref|arn|projects|ssm|keyring):.*     # a link, or a reference to a vault
    |!{1,2}[a-z]{2,14})$)"""
_HASHED = r"^(?:sha(?:1|256|384|512)[:-]|\$2[aby]\$|\$argon2|\$6\$)"
_TECHNICAL = r"""^(?:(?:sha|md|aes|rsa|utf|iso|base|hs|rs|es|oauth|argon|ed|bcrypt|pbkdf|ipv|http|http/|v|x|rfc|web|s|k8|i18)
    [-_ ]?\d[\w.-]{0,6}(?:-?(?:encoded|hashed|based|safe|bit))?               # SHA-256, base64-encoded
    |\d+password|\d+[-–]?(?:bit|char|byte|digit|day|hour|minute|second|week|month)\w*   # 1Password, 16-bit
    |\d+(?:[.,:/–-]\d+)*(?:k|m|g|kb|mb|s|ms|h|d|px|%|st|nd|rd|th|x)?         # 15m, 1.4.2, 12th
    |0x[0-9a-f]{1,8}|\d+/\w{2,4}|scram-sha-\d+|\d-\w+):?$"""
_CODE = r"""(?-i:[(\[{]|::|->|=>                                              # a call, an index, a path, an arrow
    |^[A-Za-z_]\w*(?:\??\.[A-Za-z_]\w*)+$                                    # config.password
    |^[a-z]+(?:[A-Z][a-z]+)+$|^[A-Z][a-z]+(?:[A-Z][a-z]+)+$                  # camelCase, AuthToken
    |^[A-Za-z]+(?:[_-][A-Za-z]+)+$)"""
_PLAIN_WORDS = frozenset(
    """required optional string strings none null nil undefined true false yes missing empty unknown invalid
    valid expired disabled enabled encrypted hashed hidden unset unchanged protected incorrect correct wrong
    reset rotated stored provided default plaintext boolean integer number varchar text bytes object any never
    always admin root guest user test demo login foobar""".split()
)
_LONG = 80  # names inside a value of so many characters are not looked at again
# How much a value looks like a credential by itself.
_NOTHING, _WORD, _CHOSEN, _STRONG, _RANDOM = range(5)
_SHORTEST = {_CHOSEN: 5, _STRONG: 8, _RANDOM: 16}


@functools.cache
def pattern(text: str) -> re.Pattern[str]:
    """A verbose pattern that ignores case, compiled when it is first needed: clean text pays for none."""
    return re.compile(text, re.VERBOSE | re.IGNORECASE)


class _Name(msgspec.Struct, frozen=True, kw_only=True):
    """A name that says credential: where it stands, and what it takes for a value to be believed."""

    start: int
    end: int  # of the whole identifier
    by_people: bool
    plain: bool  # it cannot mean anything else, as `pass` can
    is_phrase: bool
    is_upper: bool
    in_tag: bool
    least: int


class _Value(msgspec.Struct, frozen=True):
    """A possible credential: where it stands, and whether quotes mark its ends."""

    text: str
    start: int
    quoted: bool

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def find_named(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """The spans of values that are credentials by the names before or after them."""
    for start, end in sorted(_lines_with_keywords(text, lowered).items()):
        looked_at = start
        for match in pattern(_NAME).finditer(text, start, end):
            if match.start() >= looked_at and (name := _name(text, match)):
                looked_at = yield from _values_of(name, text)
        for match in pattern(_REVERSED).finditer(text, start, end):
            value = match["value"].rstrip(".!?*_")
            if any(char.isdigit() for char in value) and is_chosen(value):
                yield match.start("value"), match.start("value") + len(value)


def _lines_with_keywords(text: str, lowered: str) -> dict[int, int]:
    lines: dict[int, int] = {}
    for keyword in _KEYWORDS:
        at = lowered.find(keyword)
        while at >= 0:
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            lines[text.rfind("\n", 0, at) + 1] = end
            at = lowered.find(keyword, end)
    return lines


def _name(text: str, match: re.Match[str]) -> _Name | None:
    """The name that a credential's word belongs to; None where it is part of another word, or of another name."""
    word, end = match[match.lastgroup or 0], match.end()
    tail = pattern(_IDENTIFIER).match(text, end)[0]  # type: ignore[index]
    rest = tail[1:] if tail[:1] in ("s", "S") else tail
    if rest[:1].isalpha() and word[-1].isascii() and rest[0].islower() == word[-1].islower():
        return None  # secretary, tokenize, keyboard
    before = text[max(0, match.start() - 60) : match.start()]
    if pattern(_ABOUT).search(tail) or re.search(r"\[redacted:[a-z-]*$", before):
        return None
    if match.lastgroup == "key" and pattern(_PUBLIC).search(before):
        return None
    weak = match.lastgroup == "key" or pattern(_WEAK).fullmatch(word) is not None
    return _Name(
        start=match.start(),
        end=end + len(tail),
        by_people=pattern(_BY_PEOPLE).match(word) is not None,
        plain=match.lastgroup == "word"
        or len(match[0]) > 5
        or pattern(_WITH_USER).search(before) is not None,
        is_phrase="phrase" in word.lower(),
        is_upper=match[0].isupper(),
        in_tag=re.search(r"<[\w.:-][^<>\n]*$|<$", before) is not None,
        least=_RANDOM if weak or not pattern(_SAME).fullmatch(tail) else _CHOSEN,
    )


def _values_of(name: _Name, text: str) -> Generator[tuple[int, int], None, int]:
    """The credential, or the list of them, to which the first fitting link leads; returns where to look on."""
    looked_at = name.start
    for kind, form in _LINKS.items():
        if kind == "element" and not name.in_tag:
            continue
        link = pattern(form).match(text, name.end)
        value = _value_at(text, link.end(), kind == "stated") if link else None
        if link and value and _is_credential(name, kind, link, value, text):
            yield value.start, value.end
            yield from _further_items(name, link[0], value, text)
            return looked_at
        if value and len(value.text) > _LONG:
            looked_at = max(looked_at, value.end)
    if value := _value_near(name, text):
        yield value.start, value.end
    return looked_at


def _value_at(text: str, start: int, prose: bool) -> _Value | None:
    if quote := pattern(_QUOTE).match(text, start):
        closing = {"“": "”", "„": "“", "‘": "’", "«": "»"}.get(quote[0], quote[0])
        end = text.find(closing, quote.end(), quote.end() + 400)
        while end > 0 and text[end - 1] == "\\" != closing[0]:
            end = text.find(closing, end + 1, quote.end() + 400)
        if end > quote.end() and ("\n" not in text[quote.end() : end] or len(closing) == 3):
            return _Value(text[quote.end() : end], quote.end(), True)
        start = quote.end()
    bare = pattern(_BARE).match(text, start)
    cut = bare[0].rstrip(".,;:!?)*_&\\" if prose else ",;*&\\") if bare else ""
    return _Value(cut, start, False) if len(cut) >= 4 else None


def _is_credential(name: _Name, kind: str, link: re.Match[str], value: _Value, text: str) -> bool:
    """Whether a linked value is one."""
    if " " in value.text and not _is_grouped(value.text):
        return value.quoted and name.is_phrase and len(value.text.split()) >= 3
    if kind == "element" and not re.compile(r"\s*(?:\]\]>\s*)?<").match(text, value.end):
        return False
    if kind == "direct" and "\n" in link[0] and not value.quoted:  # below its name it stands alone
        alone = text[value.end : value.end + 1] in ("", "\n", "\r", "<")
        if not alone or re.search("[=:]", value.text.rstrip("=")):
            return False
    return _quality(value.text, value.quoted, name.by_people) >= _needed(name, kind, link, value)


def _needed(name: _Name, kind: str, link: re.Match[str], value: _Value) -> int:
    """How much a value must look like a credential: the less the name and the link say, the more."""
    operator = link["operator"]
    if operator in (",", "(", "|", "to", "->", "<-") or link[0].endswith("("):
        loose = operator == "," and link[0][-1:].isspace()
        if not name.by_people or (loose and not value.quoted):
            return _RANDOM
        return name.least if value.quoted or operator != "(" else max(name.least, _STRONG)
    if kind != "direct" or not name.by_people or name.least > _CHOSEN:
        return name.least
    # A plain word counts in quotes, and in an assignment of the environment: DB_PASSWORD=swordfish.
    if value.quoted:
        long = len(value.text) >= 6 and not pattern(_CODE).search(value.text)
        return _WORD if long and operator in ("=", ":", "=>", ":=") else _CHOSEN
    return _WORD if name.is_upper and link[0] == operator == "=" else _CHOSEN


def _value_near(name: _Name, text: str) -> _Value | None:
    """A value that looks like a credential by itself, a few words after a name: ID/PW master IhqSb1Gg."""
    if name.least > _CHOSEN:
        return None
    at = name.end
    for words_between in range(_NEAR):
        gap = pattern(_GAP).match(text, at)
        if gap is None or re.search(r"[.!?][ \t]", gap[0]):
            return None
        least = _RANDOM if not name.by_people else _STRONG if words_between or not name.plain else _CHOSEN
        value = _value_at(text, gap.end(), True)
        if (
            value
            and len(value.text) >= _SHORTEST[least]
            and not re.search(r"[ =]|^\d+$", value.text.rstrip("="))
        ):
            if _quality(value.text, value.quoted, name.by_people) >= least:
                return value
        between = pattern(_BETWEEN).match(text, gap.end())
        if between is None:
            return None
        at = between.end()
    return None


def _further_items(name: _Name, link: str, value: _Value, text: str) -> Iterator[tuple[int, int]]:
    """The rest of a list: passwords = ["…", "…"], tokens:⏎- …⏎- …"""
    in_brackets, in_lines = r"[\\\"'`]{0,4}\s*,\s*", r"[\"'`]?[ \t]*\r?\n[ \t]*-[ \t]+"
    form = in_brackets if "[" in link else in_lines if "- " in link else ""
    while form and (gap := pattern(form).match(text, value.end)):
        following = _value_at(text, gap.end(), False)
        if not following or _quality(following.text, following.quoted, name.by_people) < _CHOSEN:
            return
        value = following
        yield value.start, value.end


def _quality(value: str, quoted: bool, by_people: bool) -> int:
    """How much a value looks like a credential, by itself."""
    value = pattern(MARKER).sub("", value)
    if not value or is_placeholder(value) or is_reference(value) or pattern(_HASHED).search(value):
        return _NOTHING
    if (not quoted and "(" in value) or re.fullmatch(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+", value):
        return _NOTHING  # a call, the name of a variable
    if is_random(value) or _is_grouped(value):
        return _RANDOM
    digits = sum(char.isdigit() for char in value)
    if not any(char.isalpha() for char in value):
        return _CHOSEN if by_people and digits >= 4 and len(value) <= 32 else _NOTHING
    if pattern(_TECHNICAL).search(value):
        return _NOTHING
    if not quoted and pattern(_CODE).search(value):
        return _WORD
    signs = re.search(r"[!@#$%^&*+~]", value) is not None
    if digits and len(value) >= 5:
        mixed = any(char.islower() for char in value) and any(char.isupper() for char in value[1:])
        return _STRONG if len(value) >= 8 and (signs or mixed or digits >= 3) else _CHOSEN
    if len(value) >= 16 and _rises(value) > 0.15 * len(value):
        return _CHOSEN
    return _CHOSEN if len(value) >= 6 and signs and not digits else _WORD


def is_placeholder(value: str) -> bool:
    """Whether a value only stands for one: your-key, xxxx, ****, anything with "example"."""
    return bool(pattern(_EXAMPLE).search(value) or pattern(_MASKED).match(value))


def is_reference(value: str) -> bool:
    """Whether a value is a word for a credential, or says where it is: password, ${DB_PASSWORD}, /run/secrets/db."""
    if value.lower() in _PLAIN_WORDS:
        return True
    return bool(pattern(_DUMMY).search(value) or pattern(_REFERENCE).search(value))


def is_chosen(value: str) -> bool:
    """Whether a value looks like a credential by itself, with digits or signs in it."""
    return _quality(value, False, False) >= _CHOSEN


def is_random(value: str) -> bool:
    """Whether a value was made by a generator: long, and letters and digits take turns."""
    if len(value) < 16 or sum(char.isalpha() for char in value) < 4 or " " in value:
        return False
    turns = sum(a.isalnum() and b.isalnum() and a.isdigit() != b.isdigit() for a, b in pairwise(value))
    if turns < max(3, len(value) // 12) and (not turns or turns + _rises(value) < max(6, 0.22 * len(value))):
        return False
    return re.fullmatch(r"(?:[A-Za-z]+\d{0,4}[_.-])+[A-Za-z]*\d{0,4}", value) is None  # words and numbers


def _is_grouped(value: str) -> bool:
    """Whether a value is a key in groups, as products and mail providers give them: abcd efgh ijkl mnop."""
    groups = re.split(r"[ -]", value)
    alike = len(groups) >= 4 and {len(group) for group in groups} in ({4}, {5}, {6})
    return alike and "".join(groups).isalnum() and not "".join(groups).isdigit()


def _rises(value: str) -> int:
    """How often a capital follows a small letter."""
    return sum(a.islower() and b.isupper() for a, b in pairwise(value))


def entropy(value: str) -> float:
    """Shannon entropy in bits a character."""
    counts = (value.count(char) for char in set(value))
    return -sum(number / len(value) * math.log2(number / len(value)) for number in counts)
