"""Find credentials in text, with their spans, and mask them."""

from __future__ import annotations

import bisect
import functools
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from nanoclaw_memory.store.names import slot_of

# A masked neighbour can lay bare the border of the next secret; this many looks settle every real text.
_LOOKS = 8

# No vendor's token is shorter: text without such a run needs no look at their rules.
_SHORTEST_TOKEN = 16

# Kept as text and compiled on first use: a hook that masks clean text pays for none of them.
_MARKER = r"\[redacted:[a-z0-9-]{1,40}\]"
_MASKED = r"(?s)^(?:(.)\1*|[xX*•.…_-]+)$"
_REFERENCE = r"""(?xs)
        ^(?:<.*|.*>|\$.*|%.*%|\{.*|@\w+@|\[.*          # <your key>, ${VAR}, $(pass show x), %VAR%, {{ x }}
        |(?:\.{0,2}|~)/(?!.*[=+]).*|[A-Za-z]:\\.*          # a path
        |(?:https?|file|op|vault|env|secretref|arn|projects):.*   # a link, or a reference to a vault
        |!\w+)$"""
_CODE = r"""(?x)
        [(\[{]|::|->|=>                                    # a call, an index, a path, an arrow
        |^[A-Za-z_]\w*(?:\??\.[A-Za-z_]\w*)+$               # config.password
        |^[a-z]+(?:[A-Z][a-z]+)+$|^[A-Z][a-z]+(?:[A-Z][a-z]+)+$   # camelCase, AuthToken
        |^[A-Za-z]+(?:[_-][A-Za-z]+)+$"""
_DUMMY = r"""(?xi)
        (?:your|my|the|some|an?|new|old|test|dummy|fake|sample|example|user|db|api|auth|access|client)?[ _.-]*
        (?:pass(?:word|wd|phrase|code)?|passwort|pwd|secret|token|key|credentials?|value|here|string|text)
        [ _.-]*(?:here|goes|value|string|text|key|id|name|\d{1,3})?[ _.!-]*"""
_EXAMPLE = (
    r"(?i)example|placeholder|change[-_ ]?(?:me|it|this)|redacted|replace[-_ ]?(?:me|with)|your[-_ ]|insert[-_ ]|"
    r"dummy|not[-_ ]?a[-_ ]?real|xxxx|\*\*\*|\.\.\.|…"
)
_TECHNICAL = r"""(?xi)
        (?:sha|md|aes|rsa|utf|iso|base|hs|rs|es|oauth|argon|ed|bcrypt|pbkdf|ipv|http|http/|v|x|rfc|web|s|k8|i18)
        [-_ ]?\d[\w.-]{0,6}(?:-?(?:encoded|hashed|based|safe|bit))?            # SHA-256, base64-encoded
        |\d+password|\d+[-–]?(?:bit|char|byte|digit|day|hour|minute|second|week|month)\w*  # 1Password, 16-bit
        |\d+(?:[.,:/–-]\d+)*(?:k|m|g|kb|mb|s|ms|h|d|px|%|st|nd|rd|th|x)?       # 15m, 1.4.2, 12th"""
_HASHED = r"(?i)^(?:sha(?:1|256|384|512)[:-]|\$2[aby]\$|\$argon2|\$6\$)"
_PLAIN_WORDS = frozenset(
    """required optional string strings none null nil undefined true false yes missing empty unknown invalid
    valid expired disabled enabled encrypted hashed hidden unset unchanged protected incorrect correct wrong
    reset rotated stored provided default plaintext boolean integer number varchar text bytes object any never
    always admin root guest user test demo login foobar""".split()
)


# Keys under which a single word is the credential itself; several words say where it is kept.
_PASSWORD_KEY = (
    r"\b(?:password|passwd|passwort|passphrase|passcode|pwd|kennwort|pin|puk|cvc|cvv)"  # noqa: S105
    r"(?: (?:code|number|nummer))?$"
)
_TOKEN_KEY = r"\b(?:token|secret|api ?key|access key|secret key|private key|client secret|credentials?)$"  # noqa: S105


class Secret(msgspec.Struct, frozen=True):
    """A credential: its kind and where it stands."""

    kind: str
    start: int
    end: int


class _SecretRule(msgspec.Struct, frozen=True):
    """One rule; `value` says what speaks for a match.

    token: its own form and entropy. block: its form alone. placed: where it stands, unless a placeholder.
    assigned, env, stated: the name before it; the value must look chosen.
    """

    name: str
    keywords: tuple[str, ...]
    pattern: str
    group: int
    entropy: float
    value: str

    @property
    def by_line(self) -> bool:
        """Whether the rule looks for a name and its value, which share a line."""
        return self.value in ("assigned", "env", "stated")


def find(text: str) -> list[Secret]:
    """The credentials in `text`, in order, never overlapping."""
    found: list[Secret] = []
    shown, origins = text, [(0, 0)]
    for _ in range(_LOOKS):
        fresh = _scan(shown)
        if not fresh:
            break
        found = sorted(found + [_moved(secret, origins) for secret in fresh], key=lambda secret: secret.start)
        shown, origins = _masked(text, found)
    return found


def mask(text: str) -> tuple[str, int]:
    """`text` with every credential replaced by `[redacted:<kind>]`, and how many there were."""
    found = find(text)
    return (_masked(text, found)[0], len(found)) if found else (text, 0)


def _masked(text: str, found: list[Secret]) -> tuple[str, list[tuple[int, int]]]:
    """The masked text, and pairs of (position in it, position in `text`) where unmasked stretches begin."""
    parts: list[str] = []
    origins = [(0, 0)]
    length = position = 0
    for secret in found:
        parts += (text[position : secret.start], f"[redacted:{secret.kind}]")
        length += len(parts[-2]) + len(parts[-1])
        position = secret.end
        origins.append((length, position))
    return "".join(parts) + text[position:], origins


def _moved(secret: Secret, origins: list[tuple[int, int]]) -> Secret:
    shown, original = origins[bisect.bisect_right(origins, (secret.start, math.inf)) - 1]
    offset = original - shown
    return Secret(secret.kind, secret.start + offset, secret.end + offset)


def _scan(text: str) -> list[Secret]:
    """One look at the text: what the rules find outside the markers, overlaps joined."""
    lowered = text.replace("İ", "i").lower()  # the one letter whose lower case is longer
    has_token = max(map(len, text.split()), default=0) >= _SHORTEST_TOKEN
    hits: list[tuple[int, int, int, str]] = []
    for order, rule in enumerate(_rules()):
        if rule.value != "token" or has_token:
            hits += [(start, end, order, rule.name) for start, end in _spans(rule, text, lowered)]
    if not hits:
        return []
    markers = [marker.span() for marker in _compiled(_MARKER).finditer(text)]
    return [piece for secret in _joined(hits) for piece in _outside(secret, markers)]


def _matches(rule: _SecretRule, text: str, lowered: str) -> Iterator[re.Match[str]]:
    """Matches of a rule: in the whole text if a keyword is there, for names and values only in such lines."""
    if not rule.by_line:
        if not rule.keywords or any(keyword in lowered for keyword in rule.keywords):
            yield from _compiled(rule.pattern).finditer(text)
        return
    lines: dict[int, int] = {}
    for keyword in rule.keywords:
        at = lowered.find(keyword)
        while at >= 0:
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            lines[text.rfind("\n", 0, at) + 1] = end
            at = lowered.find(keyword, end)
    for start in sorted(lines):
        yield from _compiled(rule.pattern).finditer(text, start, lines[start])


def _spans(rule: _SecretRule, text: str, lowered: str) -> Iterator[tuple[int, int]]:
    for match in _matches(rule, text, lowered):
        group = rule.group if rule.group >= 0 else (match.lastindex or 0)
        start, end = match.span(group)
        quoted = start > 0 and text[start - 1] in "\"'`"
        if not quoted and rule.by_line:
            end = start + len(text[start:end].rstrip(".,;:!?)*_&\\" if rule.value == "stated" else ",;*`\\"))
        value = _compiled(_MARKER).sub("", text[start:end])
        if value and _is_real(value, rule, quoted, match.group()):
            yield start, end


def _is_real(value: str, rule: _SecretRule, quoted: bool, context: str) -> bool:
    """Whether a matched value is a credential rather than a placeholder, a reference or a word."""
    if rule.value == "block":
        return True
    if rule.entropy and _entropy(value) < rule.entropy:
        return False
    if _compiled(_EXAMPLE).search(value) or _compiled(_MASKED).match(value):
        return False
    if rule.value == "token":
        return True
    if (
        _compiled(_DUMMY).fullmatch(value)
        or _compiled(_REFERENCE).match(value)
        or value.lower() in _PLAIN_WORDS
    ):
        return False
    if rule.value == "placed":
        return True
    return _is_chosen(value, rule, quoted, context)


def _is_chosen(value: str, rule: _SecretRule, quoted: bool, context: str) -> bool:
    """Whether a value given to a name such as `password` was chosen by a person or a generator."""
    if _compiled(_HASHED).match(value):
        return False
    about_password = re.search(r"pass|pwd|pin|kennwort|mdp|contrase", context, re.IGNORECASE) is not None
    digits = any(char.isdigit() for char in value)
    letters = any(char.isalpha() for char in value)
    if " " in value or "\t" in value:
        return quoted and "phrase" in context.lower() and len(value.split()) >= 3
    if not letters:
        return about_password and sum(char.isdigit() for char in value) >= 4 and len(value) <= 32
    if _compiled(_TECHNICAL).fullmatch(value):
        return False
    if rule.value == "env":
        return about_password or digits or len(value) >= 16
    if not quoted and _compiled(_CODE).search(value):
        return False
    if digits:
        return len(value) >= 5
    if rule.value == "assigned" and quoted:
        return (len(value) >= 6 and not _compiled(_CODE).search(value)) or _entropy(value) >= 3.8
    symbols = sum(not char.isalnum() for char in value.strip("-_.,'’"))
    return symbols >= 1 and re.search(r"[!@#$%^&*+=~]", value) is not None and len(value) >= 6


def _entropy(value: str) -> float:
    """Shannon entropy in bits a character."""
    counts = (value.count(char) for char in set(value))
    return -sum(number / len(value) * math.log2(number / len(value)) for number in counts)


def _joined(hits: list[tuple[int, int, int, str]]) -> list[Secret]:
    """Overlapping hits as one span under the earliest rule's name, so that no edge of a secret stays."""
    joined: list[tuple[int, int, int, str]] = []
    for start, end, order, name in sorted(hits):
        if joined and start < joined[-1][1]:
            before = joined[-1]
            best = min((before[2], before[3]), (order, name))
            joined[-1] = (before[0], max(before[1], end), *best)
        else:
            joined.append((start, end, order, name))
    return [Secret(name, start, end) for start, end, _, name in joined]


def _outside(secret: Secret, markers: list[tuple[int, int]]) -> Iterator[Secret]:
    """The parts of a secret that are not masked already."""
    start = secret.start
    nearest = max(0, bisect.bisect_right(markers, (start, start)) - 1)
    for index in range(nearest, len(markers)):
        first, last = markers[index]
        if first >= secret.end:
            break
        if last <= start:
            continue
        if first > start:
            yield Secret(secret.kind, start, first)
        start = max(start, last)
    if start < secret.end:
        yield Secret(secret.kind, start, secret.end)


@functools.lru_cache(maxsize=1)
def _rules() -> tuple[_SecretRule, ...]:
    """The rules in order of precedence."""
    raw = json.loads(Path(__file__).with_name("secret_rules.json").read_text(encoding="utf-8"))
    return tuple(
        _SecretRule(
            entry["name"],
            tuple(entry["keywords"]),
            entry["regex"],
            entry.get("group", 0),
            entry.get("entropy", 0.0),
            entry.get("value", "token"),
        )
        for entry in raw
    )


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled when its keyword first turns up: clean text pays for no rule."""
    return re.compile(pattern)


# ---- facts ----


def mask_fact(entity: str, key: str, value: str) -> tuple[str, int]:
    """The value with credentials masked, and how many there were; the key, or the entity, says what it is.

    `blue-Falcon-9` alone is no credential, `password: blue-Falcon-9` is.
    """
    for name in dict.fromkeys((key, f"{entity} {key}".strip(), entity)):
        shown, count = _masked_after(name, value)
        if count:
            return shown, count
    slot = slot_of(key)
    passwords, tokens = _compiled(_PASSWORD_KEY), _compiled(_TOKEN_KEY)
    kind = "password" if passwords.search(slot) else "token" if tokens.search(slot) else ""
    if kind and len(value.split()) == 1 and (found := mask(f'{kind}: "{value.strip()}"')[1]):
        return "[redacted:credential]", found
    return value, 0


def _masked_after(name: str, value: str) -> tuple[str, int]:
    """The value as it is masked behind a name."""
    before = f"{name}: " if name else ""
    shown, count = mask(before + value)
    return (shown[len(before) :], count) if count and shown.startswith(before) else mask(value)
