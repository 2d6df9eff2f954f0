"""A fact's value is masked together with its key: `blue-Falcon-9` says nothing, `password: blue-Falcon-9` does."""

from __future__ import annotations

import re

from nanoclaw_memory.intake.secrets import mask
from nanoclaw_memory.store.names import slot_of

_PASSWORDS = re.compile(
    r"\b(?:password|passwd|passwort|passphrase|passcode|pwd|kennwort|pin|puk|cvc|cvv)(?: (?:code|number|nummer))?$"
)
_TOKENS = re.compile(
    r"\b(?:token|secret|api ?key|access key|secret key|private key|client secret|credentials?)$"
)


def mask_fact(entity: str, key: str, value: str) -> tuple[str, int]:
    """The value with credentials masked, and how many there were; the key, or the entity, says what it is."""
    for name in (key, f"{entity} {key}", entity):
        shown, count = _masked_as(name, value)
        if count:
            return shown, count
    slot = slot_of(key)
    kind = "password" if _PASSWORDS.search(slot) else "token" if _TOKENS.search(slot) else ""
    # A single word under such a key is the thing itself; several words say where it is kept.
    if kind and len(value.split()) == 1 and (found := mask(f'{kind}: "{value.strip()}"')[1]):
        return "[redacted:credential]", found
    return value, 0


def _masked_as(name: str, value: str) -> tuple[str, int]:
    """The value as it is masked behind a name."""
    before = f"{name}: "
    shown, count = mask(before + value)
    return (shown[len(before) :], count) if count and shown.startswith(before) else mask(value)
