"""Rate how much a value looks like a credential by itself, regardless of its context."""

from __future__ import annotations

import functools
import math
import re
from itertools import pairwise

from nanoclaw_memory.patterns import regex

# Patterns are verbose and ignore case unless they say otherwise.
verbose = functools.partial(regex, flags=re.VERBOSE | re.IGNORECASE)

_LACKS_VALUE = verbose(r"^\W*\[redacted:[a-z0-9-]{1,40}\]\s*[=:] | \[redacted:[a-z0-9-]{1,40}\][^\w\[]*$")
MARKER = verbose(r"\[redacted:[a-z0-9-]{1,40}\]")
# The ratings.
NOTHING, WORD, CHOSEN, STRONG, RANDOM = range(5)

_DUMMY = verbose(
    r"""^(?:your|my|the|some|an?|new|old|test|dummy|fake|sample|example|user|db|api|auth|access|client)?[ _.-]*
    (?:pass(?:word|wd|phrase|code)?|passwort|pwd|secret|token|key|credentials?|value|here|string|text)
    [ _.-]*(?:here|goes|value|string|text|key|id|name|\d{1,3})?[ _.!-]*$"""
)
_EXAMPLE = verbose(
    r"""example|placeholder|change[-_ ]?(?:me|it|this)|redacted|replace[-_ ]?(?:me|with)|your[-_ ]|insert[-_ ]
    |dummy|not[-_ ]?a[-_ ]?real|xxxx|\*\*\*|\.\.\.|…|a-z\\?-?0-9"""
)
_MASKED = verbose(r"(?s:^(?:(.)\1*|[x*•.…_-]+)$)")
_REFERENCE = verbose(
    r"""(?s:^(?:<.*|.*>|&lt;.*|\.?\\?\$.*|.*\$\{.*|%.*%|\#?\{.*|\[.*|@[a-z_]+@?   # <your key>, ${VAR}, %VAR%
    |(?:\.{0,2}|~)/(?!.*[=+]).*|[a-z]:\\.*|[\#.][a-z][a-z_-]*   # a path, a selector
    |(?:https?|file|op|vault|env|secretref|arn|projects|ssm|keyring):.*   # a link, or a reference to a vault
    |!{1,2}[a-z][a-z/:-]{1,20}|[&:][a-z_]+)$)"""
)
_HASHED = verbose(r"^(?:sha(?:1|256|384|512)[:-]|\$2[aby]\$|\$argon2|\$6\$)")
_TECHNICAL = verbose(
    r"""^(?:
    (?:sha|md|aes|rsa|utf|iso|base|hs|rs|es|oauth|argon|ed|bcrypt|pbkdf|ipv|https?/?|v|x|rfc|web|s|k8|i18)
    [-_ ]?\d[\w.-]{0,6}(?:-?(?:encoded|hashed|based|safe|bit))?   # SHA-256, base64-encoded
    |\d+password|\d+[-–]?(?:bit|char|byte|digit|day|hour|minute|second|week|month)\w*   # 1Password, 16-bit
    |\d+(?:[.,:/–-]\d+)*(?:k|m|g|kb|mb|s|ms|h|d|px|%|st|nd|rd|th|x)?   # 15m, 1.4.2, 12th
    |0x[0-9a-f]{1,8}|\d+/\w{2,4}|scram-sha-\d+|\d-\w+|[a-z][\w.-]*[:@]\d+(?:\.\d+)+[\w.-]*):?$"""
)
_CODE = verbose(
    r"""(?-i:[(\[{]|::|->|=>   # a call, an index, a path, an arrow
    |^!?(?!\w*[A-Za-z][013457][a-z]{2})[A-Za-z_]\w*(?:\??\.[A-Za-z_]\w*)+!?$   # config.password
    |^[a-z]+(?:[A-Z][a-z]+)+$|^[A-Z][a-z]+(?:[A-Z][a-z]+)+$   # camelCase, AuthToken
    |^[A-Za-z]+(?:[_-][A-Za-z]+)+$)"""
)
# A coordinate of Maven or Gradle; a repository at a commit, as workflows pin their actions.
_DEPENDENCY = verbose(r"[a-z][\w-]*(?:\.[\w-]+)+:[\w.-]+:\d[\w.+-]*|[\w.-]+(?:/[\w.-]+)+@[0-9a-f]{40}")
# Lower-case words and small numbers, one at least with a number at its end, perhaps with a port, as machines are named:
# api-fra-2, db-3.internal, assets-eu1, kafka-a1:9092.
_LABEL = r"(?:[a-z]+\d{0,3}|\d{1,3})[a-z]?"
_HOST = verbose(
    rf"""(?-i:(?=[a-z][^\d]*\d)(?:(?:{_LABEL})(?:[-.](?:{_LABEL}))+(?P<port>:\d{{2,5}})?|[a-z]+\d{{0,3}}:\d{{4,5}}))"""
)
# Parts joined as in program identifiers: lh_node_stats, TAP::Parser, foo.f90.
_NAMED = verbose(r"(?:[a-z$]+\d{0,3}|\d{1,2})(?:(?:_|::|\.|/)+(?:[a-z$]+\d{0,3}[a-z]{0,4}|\d{1,3}|v\d))+")
# Words and numbers of any length, joined: 0013_customer_level, backup_2026_02_28_full, 4521-price-rules.
_PART = r"(?:[a-z]+\d{0,3}[a-z]{0,4}|\d{1,14}[a-z]?)"
_IDENTIFIER = verbose(rf"(?-i:{_PART}(?:_{_PART})+|\d{{3,14}}(?:-[a-z]{{2,}}\d{{0,2}}){{2,}})[!.]?")
_WORD_OF_IDENTIFIER = verbose(r"(?:\A|(?<=[_-]))[a-z]{2,}")
# Parts of identifiers and of adjectives: a name with one of them is no passphrase.
_NAMING = verbose(
    r"""^(?:pass\w*|pwd?|pw|secrets?|tokens?|keys?|cred\w*|auth\w*|users?|names?|ids?|api|app|my|our|your|the|new|old|test
    |demo|fake|mock|some|none?|non|not|no|is|to|of|by|per|end|date|up|out|one|two|multi|time|self|auto|pre|re|un|in
    |base\w*|based|case|read|write|only|safe|plain|text|raw|default|current|field|input|label|form|type|value|file|path
    |dir|url|host|port|db|data\w*|config\w*|settings?|env|var|prod\w*|dev|local|stag\w+|server|service|svc|client|session
    |access|refresh|bearer|csrf|jwt|web\w*|http\w*|json|html|error|err|invalid|missing|reset|change\w*|confirm\w*|login
    |sign|account|admin|root|x|id|store|vault|manager|provider|policy|rule|hash\w*|crypt\w*|encrypt\w*|encod\w*|store[sd]
    |protected|generated|supplied|provided|defined|specific|sensitive|known|long|term|lived|free|less|required|string
    |public|private|shared|aws|azure|gcp|google|github|gitlab|kube\w*|docker|redis|postgres\w*|mysql|mongo\w*|email|mail
    |phone|number|code|codes|step|factor|verif\w*|validat\w*|check|get|set|add|delete|remove|update|create|show|hide)$"""
)
_PLAIN_WORDS = frozenset(
    """required optional string strings none null nil undefined true false yes missing empty unknown invalid
    valid expired disabled enabled encrypted hashed hidden unset unchanged protected incorrect correct wrong
    reset rotated stored provided default plaintext boolean integer number varchar text bytes object any never
    always admin root guest user test demo login foobar""".split()
)


def quality(value: str, quoted: bool, by_people: bool) -> int:
    """Return how much a value looks like a credential, by itself."""
    if not re.search(r"[\x21-\x7e]", value):
        return WORD  # of another script
    value = MARKER.sub("", value)
    if not value or is_placeholder(value) or is_reference(value) or _HASHED.search(value):
        return NOTHING
    if (not quoted and "(" in value) or re.fullmatch(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+", value):
        return NOTHING  # a call, the name of a variable
    if is_random(value) or is_grouped(value):
        return RANDOM
    digits = sum(char.isdigit() for char in value)
    if not any(char.isalpha() for char in value):
        return CHOSEN if by_people and digits >= 4 and len(value) <= 32 else NOTHING
    if _TECHNICAL.search(value):
        return NOTHING
    if not quoted and is_code(value):
        return WORD
    signs = re.search(r"[!@#$%^&*+~]", value) is not None
    if digits and len(value) >= 5:
        mixed = any(char.islower() for char in value) and any(char.isupper() for char in value[1:])
        return STRONG if len(value) >= 8 and (signs or mixed or digits >= 3) else CHOSEN
    if len(value) >= 16 and _rises(value) > 0.15 * len(value):
        return CHOSEN
    return CHOSEN if len(value) >= 6 and signs and not digits else WORD


def is_placeholder(value: str) -> bool:
    """Return whether a value is only a placeholder: your-key, xxxx, ****, anything with "example"."""
    return bool(_EXAMPLE.search(value) or _MASKED.match(value))


def is_reference(value: str) -> bool:
    """Return whether a value is a word for a credential, or its location: password, ${DB_PASSWORD}, /run/secrets/db."""
    value = value.strip("'\"")
    if value.lower() in _PLAIN_WORDS or (value[:1] in ",;:)" and not is_random(value)):
        return True
    return bool(_DUMMY.search(value) or _REFERENCE.search(value))


def is_dependency(value: str) -> bool:
    """Return whether a value names a version of a package: org.acme:parser:1.4.2, acme/checkout@ with a whole
    commit.
    """
    return _DEPENDENCY.fullmatch(value.strip("'\"")) is not None


def is_host(value: str) -> bool:
    """Return whether a value may be the name of a machine; a passphrase may look the same."""
    return _HOST.fullmatch(value) is not None


def has_port(value: str) -> bool:
    """Return whether a value is the name of a machine with a port, as no passphrase looks: lumen-db-01:3307."""
    host = _HOST.fullmatch(value)
    return host is not None and host["port"] is not None


def is_name(value: str) -> bool:
    """Return whether a value may be the name of a machine or in a program; a passphrase may look the same."""
    return is_host(value) or _NAMED.fullmatch(value) is not None


def is_identifier(value: str) -> bool:
    """Return whether a value may name a migration, a file, a ticket, a branch or a table: words and numbers, joined."""
    return _IDENTIFIER.fullmatch(value) is not None and len(_WORD_OF_IDENTIFIER.findall(value)) > 1


def is_code(value: str) -> bool:
    """Return whether a value is program text: a call, an attribute, a name in camelCase or with hyphens."""
    return _CODE.search(value) is not None


def is_passphrase(value: str, words: int) -> bool:
    """Return whether a value is so many words, joined by signs or blanks, that are no name in a program."""
    parts = re.split(r"[ _.-]+", value)
    if len(parts) < words or not all(part.isalpha() and len(part) < 16 for part in parts):
        return False
    sentence = len(parts) > 3 or " " in value
    telling = [part for part in parts[:8] if len(part) > 3 or not sentence]
    return sum(map(len, parts)) >= 4 * words and not any(_NAMING.search(part) for part in telling)


def is_chosen(value: str) -> bool:
    """Return whether a value looks like a credential by itself, with digits or signs in it."""
    return quality(value, False, False) >= CHOSEN


def is_random(value: str) -> bool:
    """Return whether a value was generated: long, with letters and digits alternating."""
    if len(value) < 16 or sum(char.isalpha() for char in value) < 4 or " " in value:
        return False
    turns = sum(a.isalnum() and b.isalnum() and a.isdigit() != b.isdigit() for a, b in pairwise(value))
    if turns < max(3, len(value) // 12) and (not turns or turns + _rises(value) < max(6, 0.22 * len(value))):
        return False
    return re.fullmatch(r"(?:[A-Za-z]+\d{0,4}[_.-])+[A-Za-z]*\d{0,4}", value) is None  # words and numbers


def is_grouped(value: str) -> bool:
    """Return whether a value is a key in groups, as products and mail providers issue them: abcd efgh ijkl mnop."""
    groups = re.split(r"[ -]", value)
    alike = len(groups) >= 4 and {len(group) for group in groups} in ({4}, {5}, {6})
    return alike and "".join(groups).isalnum() and (" " in value or not "".join(groups).isdigit())


def _rises(value: str) -> int:
    """Return how often a capital follows a small letter."""
    return sum(a.islower() and b.isupper() for a, b in pairwise(value))


def entropy(value: str) -> float:
    """Return the Shannon entropy in bits per character."""
    counts = (value.count(char) for char in set(value))
    return -sum(number / len(value) * math.log2(number / len(value)) for number in counts)


def lacks_its_value(text: str) -> bool:
    """Return whether the value of a statement, or what it is called, was masked: it tells nothing any more."""
    return "[redacted:" in text and bool(_LACKS_VALUE.search(text))
