"""Find credentials in text, with their spans, and mask them."""

from __future__ import annotations

import bisect
import functools
import itertools
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from nanoclaw_memory.intake.assignments import find_named
from nanoclaw_memory.intake.positional import decoded, find_placed
from nanoclaw_memory.intake.provider_tokens import find_provided
from nanoclaw_memory.intake.secret_names import (
    is_opened,
    is_ordinary_number,
    is_public,
    is_setting,
    names_machine,
    of_play,
    opens_something,
)
from nanoclaw_memory.intake.secret_scorer import find_scored
from nanoclaw_memory.intake.secret_values import (
    CHOSEN,
    MARKER,
    STRONG,
    entropy,
    has_port,
    is_dependency,
    is_host,
    is_identifier,
    is_name,
    is_passphrase,
    is_placeholder,
    is_random,
    is_reference,
    quality,
)
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.store.names import slot_of

# Masking a neighbour can expose the border of the next secret; this many passes settle every real text.
_LOOKS = 8

# No vendor's token is shorter: text without such a run does not need these rules.
_SHORTEST_TOKEN = 16
_SHORTEST_ENCODED = 32

# Keys whose value is the credential if it is a single word; several words say where it is kept.
_PASSWORD_KEY = regex(
    r"\b(?:password|passwd|passwort|passphrase|passcode|pwd|kennwort|pin|puk|cvc|cvv)"
    r"(?: (?:code|number|nummer))?$"
)
_TOKEN_KEY = regex(
    r"\b(?:token|secret|api ?key|access key|secret key|private key|client secret|credentials?)$"
)


_BOUNDARY = regex(r"[.;!?](?:\s|\Z)|\n\s*\n")
_BEFORE_REFERENCE = tuple("$%{<\\")
# Numbers of payment cards. IBANs stay: they stand on every invoice, open nothing, and people ask for them.
# 4-4-4-4, 4-6-5 (American Express), 4-6-4 (Diners), 4-4-4-4-3, or no groups at all; the same sign between all.
_CARD = regex(
    r"(?<![\w.,+/#&?-])(?:\d{4}(?P<sign>[ \u00a0.-])\d{4}(?P=sign)\d{4}(?P=sign)\d{4}(?P<more>(?P=sign)\d{1,3})?|"
    r"3\d{3}(?P<amex>[ \u00a0.-])\d{6}(?P=amex)\d{4,5}|\d{14,19})(?![\w/=&]|[ \u00a0.,-]\d(?!\d?/\d))"
)
# Visa, Mastercard (two ranges), American Express, Diners, Discover, JCB, UnionPay
_CARD_ISSUER = regex(
    r"4(?:\d{12}|\d{15}|\d{18})\Z|(?:5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12})\Z|"
    r"3[47]\d{13}\Z|3(?:0[0-5]|[689]\d)\d{11}\Z|6(?:011|5\d\d|4[4-9]\d)\d{12}\Z|35(?:2[89]|[3-8]\d)\d{12}\Z|"
    r"62\d{14,17}\Z"
)
# Other numbers with a check digit of the same kind.
_OTHER_NUMBER = regex(
    r"\b(?:imei|isbn|ean|gtin|order|bestell\w*|tracking|sendung\w*|parcel|paket\w*|serial|serien\w*|invoice|"
    r"rechnung\w*|ticket|timestamp|id|uuid|build|commit|iban|iccid|sim)\b[^\n\d]{0,20}\Z",
    re.I,
)
_CARD_NAMED = regex(
    r"card|karte|visa|amex|american express|maestro|kredit|(?<![^\W_])(?:cc|pan)(?![^\W_])", re.I
)
_IBAN_BEFORE = regex(r"(?<![^\W_])[A-Z]{2}\d\d(?:[ \u00a0.-]?[A-Z\d]{4}){0,6}[ \u00a0.-]?\Z", re.I)
_BEFORE_CARD = 40
_IN_NUMBER = "0123456789 ()/.-+"
_LEAST = {"chosen": CHOSEN, "strong": STRONG}


class Secret(msgspec.Struct, frozen=True):
    """A credential: its kind and its span."""

    kind: str
    start: int
    end: int


class _SecretRule(msgspec.Struct, frozen=True):
    """One rule; `value` names the evidence that it requires.

    token: form and entropy. block: form alone. placed: position, unless it is a reference. chosen, strong: position,
    and digits or signs. told: the same, or a word or words that name nothing in a program. random: a part of it is
    random.
    """

    name: str
    keywords: tuple[str, ...]
    pattern: re.Pattern[str]
    group: int
    entropy: float
    value: str


def find(text: str, learnt: bool = True) -> list[Secret]:
    """Return the credentials in `text`, in order, never overlapping; with `learnt` also those of the trained scorer."""
    found: list[Secret] = []
    shown, origins = text, [(0, 0)]
    for _ in range(_LOOKS):
        fresh = _scan(shown) or (_scored(shown) if learnt else [])
        if not fresh:
            break
        found = sorted(found + [_moved(secret, origins) for secret in fresh], key=lambda secret: secret.start)
        shown, origins = _masked(text, found)
    return found


def mask(text: str, learnt: bool = True) -> tuple[str, int]:
    """Replace every credential in `text` by `[redacted:<kind>]`; return the text and their number."""
    found = find(text, learnt)
    return (_masked(text, found)[0], len(found)) if found else (text, 0)


def _masked(text: str, found: list[Secret]) -> tuple[str, list[tuple[int, int]]]:
    """Return the masked text, and pairs (position in it, position in `text`) of the beginnings of unmasked
    stretches.
    """
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
    """Scan the text once; return what the rules find outside the markers, overlaps joined."""
    lowered = text.replace("İ", "i").lower()  # the one letter whose lower case is longer
    words = set(lowered.split())
    longest = max(map(len, words), default=0)
    hits: list[tuple[int, int, int, str]] = []
    for order, rule in enumerate(_rules()):
        if rule.value == "token" and longest < _SHORTEST_TOKEN:
            continue
        if not rule.keywords or any(map(lowered.__contains__, rule.keywords)):
            hits += [(start, end, order, rule.name) for start, end in _spans(rule, text)]
    named = itertools.chain(find_named(text, lowered), find_placed(text, lowered, words))
    if longest >= _SHORTEST_TOKEN:
        hits += [(start, end, len(_rules()), "vendor-token") for start, end in find_provided(text)]
    if longest >= _SHORTEST_ENCODED:
        named = itertools.chain(named, _encoded(text))
    hits += [
        (start, end, len(_rules()), "credential") for start, end in named if not of_play(text, start, end)
    ]
    hits += [(start, end, len(_rules()), "card-number") for start, end in _card_numbers(text)]
    if not hits:
        return []
    markers = [marker.span() for marker in MARKER.finditer(text)]
    return [piece for secret in _joined(hits) for piece in _unmasked_parts(secret, markers)]


def _scored(text: str) -> list[Secret]:
    """Return what the trained scorer finds beyond the rules, without words for credentials and other names."""
    return [
        Secret("credential", start, end)
        for start, end in find_scored(text)
        if not is_placeholder(text[start:end])
        and not is_reference(text[start:end])
        and not is_dependency(text[start:end])
        and (not is_name(text[start:end]) or opens_something(text))
        and (not is_identifier(text[start:end]) or opens_something(_clause_around(text, start, end)))
        and not _is_machine(text, start, end)
        and not _is_ordinary(text, start, end)
        and text[max(0, start - 1) : start] not in _BEFORE_REFERENCE
        and not is_public(text[max(0, start - 60) : start])
        and not of_play(text, start, end)
    ]


def _clause_around(text: str, start: int, end: int) -> str:
    """Return the clause around a value, without it, and the line before."""
    before = _BOUNDARY.split(text[max(0, start - 200) : start])[-1]
    return f"{' '.join(before.splitlines()[-2:])} {_BOUNDARY.split(text[end : end + 100], 1)[0]}"


def _is_machine(text: str, start: int, end: int) -> bool:
    """Return whether a value is the name of a machine by its port, or by what stands before it."""
    value, before = text[start:end], text[max(0, start - 80) : start]
    return is_host(value) and (
        has_port(value) or is_opened(before) or is_setting(before) or names_machine(value, before)
    )


def _is_ordinary(text: str, start: int, end: int) -> bool:
    """Return whether a value is a telephone number or another number whose name opens nothing, or a part of one."""
    while start and text[start - 1] in _IN_NUMBER:
        start -= 1
    while end < len(text) and text[end] in _IN_NUMBER:
        end += 1
    value = text[start:end]
    start, value = start + len(value) - len(value.lstrip(" .-/)")), value.strip(" .-/)")
    return is_ordinary_number(value, _clause_around(text, start, start + len(value)))


def _encoded(text: str) -> Iterator[tuple[int, int]]:
    """Yield base64 text that contains a credential."""
    for start, end, plain in decoded(text):
        if any(find_named(plain, plain.lower())):
            yield start, end


def _spans(rule: _SecretRule, text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans that a rule finds."""
    for match in rule.pattern.finditer(text):
        start, end = match.span(rule.group)
        value = MARKER.sub("", text[start:end])
        if value and (rule.value == "block" or _is_real(value, rule)):
            yield start, end


def _is_real(value: str, rule: _SecretRule) -> bool:
    """Return whether a matched value is a credential rather than a placeholder or a word."""
    if is_placeholder(value) or (rule.entropy and entropy(value) < rule.entropy):
        return False
    if rule.value == "random":
        return any(map(is_random, re.split("[/@]", value)))
    if rule.value in _LEAST:
        return not is_reference(value) and quality(value, False, False) >= _LEAST[rule.value]
    if rule.value == "told" and quality(value, False, False) < CHOSEN and not is_passphrase(value, 1):
        return False
    return rule.value == "token" or not is_reference(value)


def _joined(hits: list[tuple[int, int, int, str]]) -> list[Secret]:
    """Join overlapping hits under the earliest rule's name, so that no edge of a secret remains."""
    joined: list[tuple[int, int, int, str]] = []
    for start, end, order, name in sorted(hits):
        if joined and start < joined[-1][1]:
            before = joined[-1]
            best = min((before[2], before[3]), (order, name))
            joined[-1] = (before[0], max(before[1], end), *best)
        else:
            joined.append((start, end, order, name))
    return [Secret(name, start, end) for start, end, _, name in joined]


def _unmasked_parts(secret: Secret, markers: list[tuple[int, int]]) -> Iterator[Secret]:
    """Yield the parts of a secret that are not masked already."""
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
    """Return the rules in order of precedence."""
    raw = json.loads(Path(__file__).with_name("secret_rules.json").read_text(encoding="utf-8"))
    return tuple(
        _SecretRule(
            entry["name"],
            tuple(entry["keywords"]),
            regex(entry["regex"]),
            entry.get("group", 0),
            entry.get("entropy", 0.0),
            entry.get("value", "token"),
        )
        for entry in raw
    )


def _card_numbers(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the numbers of payment cards."""
    for found in _CARD.finditer(text):
        ends = dict.fromkeys(
            (found.end(), found.start("more") if found["more"] else found.end())
        )  # without its CVC
        end = next((one for one in ends if _is_card(text[found.start() : one])), 0)
        if end and not _numbers_something_else(text[max(0, found.start() - _BEFORE_CARD) : found.start()]):
            yield found.start(), end


def _is_card(number: str) -> bool:
    digits = re.sub(r"\D", "", number)
    return _CARD_ISSUER.match(digits) is not None and _is_checked(digits) and len(set(digits)) > 1


def _numbers_something_else(before: str) -> bool:
    """Return whether the words before a number name something else that has one, and no card after it."""
    other = _OTHER_NUMBER.search(before)
    if before.endswith("=") or other:
        return _CARD_NAMED.search(before, other.start() if other else 0) is None
    return _IBAN_BEFORE.search(before) is not None


def _is_checked(digits: str) -> bool:
    """Return whether the last digit is the check digit of the others (Luhn)."""
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return sum(value - 9 * (value > 9) for value in doubled) % 10 == 0


# ---- facts ----


def mask_fact(entity: str, key: str, value: str) -> tuple[str, int]:
    """Mask the credentials in a fact's value; its key or entity decides. Return it and their number.

    `blue-Falcon-9` alone is no credential, `password: blue-Falcon-9` is.
    """
    learnt = " " in value.strip()  # the scorer knows too little about a lone id or model: its key decides
    for name in dict.fromkeys((key, "", f"{entity} {key}".strip(), entity)):
        before = f"{name}: " if name else ""
        shown, count = mask(before + value, learnt)
        if count and shown.startswith(before):
            return shown[len(before) :], count
    slot = slot_of(key)
    kind = "password" if _PASSWORD_KEY.search(slot) else "token" if _TOKEN_KEY.search(slot) else ""
    if kind and len(value.split()) == 1 and (found := mask(f'{kind}: "{value.strip()}"')[1]):
        return "[redacted:credential]", found
    return value, 0
