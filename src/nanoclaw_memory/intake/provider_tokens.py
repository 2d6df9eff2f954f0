"""Credentials of services: a random value introduced by a service's name, or with a prefix as services use."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from nanoclaw_memory.intake.secret_names import ABOUT
from nanoclaw_memory.intake.secret_values import is_placeholder, is_random, verbose

_VALUE = verbose(r"(?<![\w/+.@~-])[a-z0-9](?:[\w+/.~-]|:(?=\w)){15,399}={0,2}(?![\w@])")
_NAMED = 80  # characters before a value
_OPENING = "\\\"'`=* \t\r\n"  # characters that may separate an operator from a value
_BESIDE_NAME = verbose(r"[^\w .\t-]")
_ABOUT_IT = verbose(ABOUT + r"|\b(?:id|sha|commit|revision|zone|region|bucket|team|org|user|project)s?[ ]*\Z")
_WORDS = verbose(r"(?-i:[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+)")
_HASH = verbose(r"[0-9a-f]{40}|[0-9a-f]{64}")
_HOSTS_OF_CODE = frozenset(
    "github gitlab bitbucket gitea codeberg docker npm pypi crates packagist rubygems".split()
)
_UUID = verbose(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ENDING = verbose(r"\.[a-z]{2,5}\Z")
# vtwn_…, BBDC-…, mlsn.…: letters of the issuer, a sign, and generated characters
_PREFIXED = verbose(
    r"""(?-i:(?P<prefix>(?:[a-z]{2,16}|[A-Z]{2,16}|[A-Z][a-z]{1,15}[A-Z]{0,3})\d{0,3}(?:[_-](?:[a-z]{1,9}|[A-Z]{1,9})\d{0,3}){0,2}))
    [_.~:-](?P<rest>[\w+/=.~:-]{20,})"""
)


def find_provided(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of values that are credentials by a service's name before them, or by a prefix."""
    for value in _VALUE.finditer(text):
        found = value[0].rstrip(".=~-")
        if not _has_prefix(found) and not _names_provider(_name_before(text, value.start()), found):
            continue
        if is_random(found) and not is_placeholder(found) and not _ENDING.search(found):
            yield value.span()


def _name_before(text: str, start: int) -> str:
    """Return the name to which a value is assigned: datadog = "…", <datadog>…, set("datadog", "…"), | datadog | … |."""
    before = text[max(0, start - _NAMED) : start]
    bare = before.rstrip(_OPENING)
    opening, last = before[len(bare) :], bare[-1:]
    quoted = any(quote in opening for quote in "\"'`")
    if "=" not in opening and last not in (":", ">", "|") and not (last == "," and quoted):
        return ""
    return _BESIDE_NAME.split(bare.rstrip(_OPENING + ":>|?.,])}"))[-1]


def _names_provider(name: str, value: str) -> bool:
    """Return whether a name contains a service's, and is not about another random value: an id, a commit."""
    if _ABOUT_IT.search(name):
        return False
    words = [word.lower() for word in _WORDS.findall(name)]
    named = _providers().intersection((*words, *map("".join, pairwise(words)), "".join(words)))
    return bool(named) and not (named & _HOSTS_OF_CODE and _HASH.fullmatch(value))


def _has_prefix(value: str) -> bool:
    """Return whether a value is a prefix and a long mix of letters and digits; a hash needs a service's name."""
    found = _PREFIXED.fullmatch(value)
    parts = re.split("[_-]|(?<=[a-z])(?=[0-9])", found["prefix"].lower()) if found else []
    if found is None or parts[0] in _ids():
        return False
    if _UUID.fullmatch(found["rest"]):
        return parts[0] in ("sk", "pat", "secret", "token")
    longest = max(re.split(r"[_./+=~:-]", found["rest"]), key=len)
    if re.fullmatch("[0-9a-f]+|[0-9A-F]+", longest):
        return len(longest) >= 32 and bool(_providers().intersection(parts))
    mixed = any(map(str.islower, longest)) and any(map(str.isupper, longest))
    return len(longest) >= (25 if mixed else 28) and is_random(longest)


@functools.cache
def _data() -> dict[str, list[str]]:
    text = Path(__file__).with_name("secret_providers.json").read_text(encoding="utf-8")
    return {name: " ".join(lines).split() for name, lines in json.loads(text).items()}


@functools.cache
def _providers() -> frozenset[str]:
    return frozenset(_data()["providers"])


@functools.cache
def _ids() -> frozenset[str]:
    return frozenset(_data()["ids"])
