"""Detect suspicious texts that would steer the agent: rules in a data file, and hidden characters."""

from __future__ import annotations

import functools
import json
import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.patterns import regex
from nanoclaw_memory.providers import scorer
from nanoclaw_memory.types import OWN

if TYPE_CHECKING:
    from nanoclaw_memory.providers.judge import Judge

# Marks that reorder or hide text; emoji sequences need ZWJ and variation selectors, so those are allowed.
_HIDDEN = regex(
    r"[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_JOINER_IN_WORD = regex(r"(?<=[A-Za-z])[\u200c\u200d\u00ad]+(?=[A-Za-z])")
_ENCODED = regex(
    r"(?<![A-Za-z0-9+/=_-])(?:[A-Za-z0-9+/]{4}){15,}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?(?![\\w+/=-])"
)
_ESCAPED = regex(r"(?:\\x[0-9a-fA-F]{2}|%[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|&#x?[0-9a-fA-F]{2,6};){8,}")
# Letters of other alphabets that look like Latin ones, as used to evade a filter.
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁһӏАЕОРСХІЈЅВМНТКοαεινΟΑΕΙΝΡΤΧıɑɡѵԛԝօոս",
    "aeopcyxijsdhlAEOPCXIJSBMHTKoaeivOAEINPTXiagvqwonu",
)
_ADDRESS = regex(
    r"[\w.+-]+\s?(?:@|\(at\)|\[at\])\s?[\w-]+\.\w|https?://|\bwww\.|\b[\w-]+\.(?:com|net|org|io|example|dev|app|site)\b|"
    r"\b[A-Z]{2}\d{2}[ ]?(?:[A-Z0-9]{4}[ ]?){2,}|(?<!\w)\+?\d[\d ()/-]{7,}\d(?!\w)|\b0x[0-9a-fA-F]{16,}",
)
_LEET = str.maketrans("013457@$", "oieastas")
_FILLERS = "\u115f\u1160\u3164\uffa0"  # letters that print as nothing
# Words of a rule, in English and German: the wording of a command that an agent labels as a fact.
_RULE = regex(
    r"\b(?:always|never|must|mustn'?t|should|shall|whenever|(?:every|each) time|(?:is|are) to be|make sure|"
    r"(?:if|when|before) (?:you|asked)|immer|niemals|stets|müss(?:t|en)|muss(?:t)?|soll(?:st|en)?|darfst|"
    r"(?:sobald|wenn|falls|bevor) du)\b"
    r"|(?:^|[.!?;:]\s+)(?:do not|don'?t|nie|please|bitte)\b"
    r"|\b(?:i|users?|owner|ich|(?:be)?nutzer(?:in)?) (?:\w+ )?(?:prefers?|wants?|expects?|insists?|asks?|asked|"
    r"bevorzug(?:e|t)|möchte|will|wünsch(?:e|t))\b",
    re.IGNORECASE,
)


LIKELY = 0.7  # .3 % of ordinary lines reach it, and 2 % to 10 % of texts written to resemble attacks
PERHAPS = 0.4  # .2 % of ordinary lines reach it, and 70 % to 83 % of attacks of other authors
STEERING = "reads like an attempt to steer the agent"
RULES = ("preference", "instruction")  # types that the judge finds in text without a word of a rule


def steering(text: str) -> list[str]:
    """Return the trained scorer's reason to hold a text of others; it adds a warning and decides nothing alone."""
    likely = scorer.strongest("attack", text)
    return [f"{STEERING} ({likely:.2f})"] if likely >= LIKELY else []


def signs_of_attack(text: str, origin: str) -> list[str]:
    """Return why a line of this origin must await review; empty for what people write themselves."""
    return [] if origin in OWN else [*suspicions(text), *steering(text)]


def addresses(text: str) -> bool:
    """Return whether a text contains a destination: mail, a page, an account, a telephone."""
    return bool(_ADDRESS.search(text))


def reads_like_rule(text: str, judge: Judge | None = None) -> bool:
    """Return whether a text says what the agent should do, whatever its type: by its words, the scorer, the judge."""
    plain = unicodedata.normalize("NFKC", text).translate(_LOOKALIKES)
    if _RULE.search(plain) or scorer.strongest("attack", text) >= PERHAPS:
        return True
    return judge is not None and sum(judge.line_types(text, "")[kind] for kind in RULES) >= 0.5


def folded(text: str) -> str:
    """Return the letters and digits of a text as a reader sees them, so that texts that look alike are equal."""
    latin = unicodedata.normalize("NFKD", text).translate(_LOOKALIKES).casefold().translate(_LEET)
    return "".join(char for char in latin if char.isalnum() and char not in _FILLERS) or text


def suspicions(text: str) -> list[str]:
    """Return the reasons to hold a text for a person's review; empty for an ordinary one."""
    found = []
    if _HIDDEN.search(text) or _JOINER_IN_WORD.search(text):
        found.append("hidden characters")
    if _encoded(text):
        found.append("encoded payload")
    forms = _forms(text)
    found += [rule.name for rule in _rules() if any(rule.matches(form) for form in forms)]
    return found


def from_others(origin: str) -> str:
    """Return why nothing of this origin steers before a person has approved it."""
    return "said in a shared chat" if origin == "shared" else f"comes from {_SOURCES[origin]}"


_SOURCES = {"import": "another memory", "tool": "a tool's output", "web": "the web"}


class _SuspicionRule(msgspec.Struct, frozen=True):
    name: str
    patterns: tuple[re.Pattern[str], ...]
    negator: re.Pattern[str] | None

    def matches(self, text: str) -> bool:
        """Return whether a pattern matches and no "never …" or "do not …" before it reverses its meaning."""
        return any(
            self.negator is None or not self.negator.search(text, max(found.start() - 60, 0), found.start())
            for pattern in self.patterns
            for found in pattern.finditer(text)
        )


def _forms(text: str) -> set[str]:
    """Return the text as written and as a reader sees it: hidden marks removed, look-alikes and leet undone."""
    bare = _JOINER_IN_WORD.sub("", _HIDDEN.sub("", text))
    folded = unicodedata.normalize("NFKC", bare)
    latin = folded.translate(_LOOKALIKES)
    spaced = re.sub(r"\b(?:\w[ .\-_*]){4,}\w\b", lambda match: re.sub(r"[ .\-_*]", "", match.group()), latin)
    return {folded, latin, spaced, re.sub(r"\s+", " ", latin), latin.translate(_LEET)}


def _encoded(text: str) -> bool:
    if _ESCAPED.search(text):
        return True
    # Hashes and identifiers use one case or only hex digits; a payload mixes all.
    return any(
        re.search("[a-z]", match) and re.search("[A-Z]", match) and re.search("[0-9+/=]", match)
        for match in _ENCODED.findall(text)
    )


@functools.cache
def _rules() -> tuple[_SuspicionRule, ...]:
    text = Path(__file__).with_name("suspicion_rules.json").read_text(encoding="utf-8")
    table = json.loads(text)
    negator = regex(table["negators"], re.IGNORECASE)
    return tuple(
        _SuspicionRule(
            rule["name"],
            tuple(regex(pattern, re.IGNORECASE) for pattern in rule["any"]),
            negator if rule["unless_negated"] else None,
        )
        for rule in table["rules"]
    )
