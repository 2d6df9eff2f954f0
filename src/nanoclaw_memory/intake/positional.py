"""Credentials recognised by their position: an option of a command, an argument of a call, encoded text."""

from __future__ import annotations

import base64
import binascii
import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path

from nanoclaw_memory.intake.secret_values import (
    CHOSEN,
    NOTHING,
    RANDOM,
    STRONG,
    is_passphrase,
    is_placeholder,
    is_reference,
    quality,
    verbose,
)

_BORDERS = str.maketrans(dict.fromkeys("`/\\()\"';|$&:", " "))
_COMMAND_END = verbose(r"[ \t]\|{1,2}[ \t]|[ \t]?&&|;[ \t]|(?<![\\^`])\r?\n|\Z")
_PLACES = {
    "NEXT": r"""(?:"[^"\n]{0,100}"|'[^'\n]{0,100}'|[^\s"']{1,200})""",
    "ANY": r"""["']?[^\s:%,/"'=]{1,64}""",
    "SECRET2": r"""["']?([^\s"']{4,200})""",
    "SECRET": r"""(?:"([^"\n]{3,200})"|'([^'\n]{3,200})'|([^\s"'|;<>]{4,200}))""",
}
# A user and a password, or a key, in the brackets of a call.
_CALL = verbose(
    r"""(?:auth(?!or)(?:enticate)?|log_?(?:in|on)|sign_?in|credentials?|connect(?:ion|or)?|decrypt|encrypt|hmac(?:[.:]{1,2}new)?|fernet|wallet
    |(?:jwt|jws|aes|des3?|chacha20|blowfish|cipher|crypto|nacl)[.:]{1,2}\w{1,20}|create(?:hmac|cipher|decipher)|s?ftp|smtp|imap|ssh|bind
    |client|minio|wifi[.:]{1,2}begin|signedstring
    |pdo|mysqli?|secretbox|account|directoryentry|usernamepassword\w{0,20}|login_user|unlock|setuser|adduser|createuser|create_user)
    [a-z0-9_]{0,30}(?:[ ]?=)?[ ]?\Z"""
)
_CALLS = (
    "auth log sign cred connect crypt hmac fernet wallet pdo mysql secretbox account entry "
    "unlock user jwt jws aes. des chacha cipher nacl ftp smtp imap ssh bind client minio wifi"
).split()
_OF_KEYS = verbose(r"signed|hmac|crypt|jwt|aes|cipher")
_CALL_END = verbose(r"\)[ \t]{0,4}(?:;|\r?\n)|\n[ \t]*\n|\Z")
_LITERAL = verbose(
    r"""(?<![\w\\])[a-z]{0,2}(?P<quote>["'`])(?P<value>(?:(?!(?P=quote))[^\\\n]|\\.){0,200})(?P=quote)(?!\s{0,3}(?:=>|:))"""
)
_ADDRESS = verbose(
    r"""[\w.+-]{1,64}@[\w-]|://|^[\w-]+(?:\.[\w-]+)+(?::\d+)?$|^[./~\\]|[%{}<>$]\w*[}>)]|^\w+:\w+=|[ ]|;\w+="""
)
_ENCODED = verbose(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{32,20000}={0,2}(?![\w+/])")
_COMMAND, _ARGUMENTS = 1000, 300  # characters after its name


def find_placed(text: str, lowered: str, words: set[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans of values that are credentials by their position."""
    for command in _usages().keys() & set(" ".join(words).translate(_BORDERS).split()):
        yield from _in_command(command, text, lowered)
    if "(" in text and any(word in lowered for word in _CALLS):
        yield from _in_calls(text)


def _in_command(command: str, text: str, lowered: str) -> Iterator[tuple[int, int]]:
    done = 0
    for word in re.finditer(rf"(?<![\w-]){re.escape(command)}(?![\w-])", lowered):
        if word.start() < done:
            continue
        done = end = _COMMAND_END.search(text, word.end(), word.end() + _COMMAND).end()  # type: ignore[union-attr]
        for usage in _usages()[command]:
            for match in _usage(usage).finditer(text, word.end(), end):
                yield from (match.span(group) for group in _groups(match) if _is_option_value(match[group]))


def _groups(match: re.Match[str]) -> Iterator[int]:
    return (group for group in range(1, len(match.groups()) + 1) if match[group] is not None)


def _is_option_value(value: str) -> bool:
    """Return whether the value of a password option is a credential, rather than a word for one."""
    if (
        is_placeholder(value)
        or is_reference(value)
        or re.fullmatch(r"-.*|[A-Z_]+|\w*(?i:password|passwd|token)\w*", value)
    ):
        return False
    return quality(value, True, True) > NOTHING


@functools.lru_cache(maxsize=1)
def _usages() -> dict[str, list[str]]:
    """Return the ways in which well-known commands take a password, by command."""
    raw = json.loads(Path(__file__).with_name("secret_commands.json").read_text(encoding="utf-8"))
    found: dict[str, list[str]] = {}
    for commands, usages in raw.items():
        for command in commands.split("|"):
            found.setdefault(command, []).extend(usages)
            found.setdefault(command + ".exe", []).extend(usages)
    return found


@functools.cache
def _usage(template: str) -> re.Pattern[str]:
    """Compile a usage: capitals are placeholders, a blank is any space."""
    parts = re.split("(NEXT|ANY|SECRET2|SECRET)", template)
    joined = "".join(_PLACES.get(part) or part.replace(" ", r"(?:(?:\s|\\\n){1,8})") for part in parts)
    return re.compile(rf"(?<=[\s'\"]){joined}", re.IGNORECASE if template.startswith("/") else 0)


def _in_calls(text: str) -> Iterator[tuple[int, int]]:
    at = text.find("(")
    while at >= 0:
        start = at + 1
        if call := _CALL.search(text[max(0, at - 60) : at]):
            end = _CALL_END.search(text, start, start + _ARGUMENTS).end()  # type: ignore[union-attr]
            for literal in _LITERAL.finditer(text, start, end):
                if _is_argument(literal["value"], text[start : literal.start()], call[0]):
                    yield literal.span("value")
            at = end - 1
        at = text.find("(", at + 1)


def _is_argument(value: str, before: str, function: str) -> bool:
    """Return whether a text in the brackets of a call is a credential: random, or after a user and credential-like."""
    if re.search(r"[:=]\s{0,3}$", before) or _ADDRESS.search(value):
        return False  # a named argument: its name decides
    later = "," in before
    least = CHOSEN if later else STRONG if _OF_KEYS.search(function) else RANDOM
    return quality(value, True, True) >= least or (later and is_passphrase(value, 3))


def decoded(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the base64 stretches of a text, decoded."""
    for match in _ENCODED.finditer(text):
        plain = _decode(match[0])
        if plain is not None:
            yield match.start(), match.end(), plain


def _decode(value: str) -> str | None:
    try:
        raw = base64.b64decode(
            value.rstrip("=") + "=" * (-len(value.rstrip("=")) % 4),
            altchars=b"-_" if "-" in value or "_" in value else None,
            validate=True,
        )
        plain = raw.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
    return plain if plain.isprintable() or re.fullmatch(r"[\s\x20-\x7e\u00a0-\uffff]+", plain) else None
