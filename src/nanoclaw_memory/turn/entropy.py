"""Entropy: a score of how unstable a conversation is, as a sum of named parts."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from nanoclaw_memory.clock import moment_of
from nanoclaw_memory.intake.authorship import own_words
from nanoclaw_memory.lessons import corrections
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.store.turns import Measure
from nanoclaw_memory.text import content_words

WEIGHTS = {
    "correction": 0.40,
    "new concepts": 0.30,
    "emotion": 0.30,
    "paradox": 0.20,
    "self-talk": 0.20,
    "plan as done": 0.30,
    "long answer": 0.20,
}
EACH_CONCEPT = 0.15
OF_THE_ANSWER = ("self-talk", "plan as done", "long answer")
SUSTAINED_LEVEL = 0.8
SUSTAINED_FOR = timedelta(minutes=45)
# What a person newly asks for is no unrest, however often they do: "use RabbitMQ", "the port is 3307, not 3306".
ORDINARY_CHANGES = frozenset(("dont", "should", "future", "always", "use", "prefer", "value"))
OF_ORDINARY_WORK = ("new concepts", "before")  # the person's new subjects are no drift of the agent's
CARRIED = 0.5  # share of an exchange's entropy that carries over to the next
LEAST_CARRIED = 0.1
BRIEF = 80
LONG = 1_500

_EMOTION = regex(
    r"\b(?:angry|furious|frustrat\w+|annoy\w+|upset|hate|terrible|horrible|ridiculous|unbelievable|wtf|damn|fed up|"
    r"sick of|scared|desperate|panic\w*|crying|devastated|heartbroken|wütend|sauer|genervt|nervt|frustrier\w+|"
    r"furchtbar|schrecklich|verzweifelt|hasse|verdammt|unfassbar)\b|!{2,}",
    re.IGNORECASE,
)
_PARADOX = regex(
    r"\b(?:contradict\w*|paradox\w*|makes? no sense|doesn'?t make sense|but (?:earlier |before |just now )?you "
    r"(?:just )?(?:said|told|wrote)|both true and|can'?t both|which is it|widersprich\w*|widerspruch|"
    r"ergibt keinen sinn|aber (?:vorhin |eben )?hast du)\b",
    re.IGNORECASE,
)
_SELF = regex(
    r"\b(?:as an ai|as a language model|i feel (?:that i|like i|alive|sad|happy)|my (?:own )?(?:consciousness|feelings|"
    r"purpose|existence|training)|i am (?:conscious|sentient|alive)|als ki\b|als sprachmodell|mein bewusstsein)\b",
    re.IGNORECASE,
)
_CONCEPT = regex(
    r"\b(?:[A-ZÄÖÜ][\w-]*[A-Z0-9][\w-]*|[A-ZÄÖÜ][a-zäöüß]+(?:[ -][A-ZÄÖÜ][a-zäöüß]+)+)\b|"
    r"(?<=[a-z,;] )[A-ZÄÖÜ][a-zäöüß]{2,}\b"
)
_PLAN = regex(
    r"\b(?:(?:i|we)(?:'m| am|'re| are)? (?:plan(?:ning)? to|going to|thinking (?:of|about)|hoping to|about to|want to|"
    r"will|'ll|might|would like to)|let'?s|should (?:i|we)|(?:ich|wir) (?:will|wollen|werde|werden|möchte|möchten|"
    r"plane|planen))\b(?P<what>[^.!?\n]{3,160})",
    re.IGNORECASE,
)
_DONE = regex(
    r"\b(?:since|now that|after|great that|glad|because|as)\b,? (?:you|we)(?:'ve| have|'d)?(?: already)? "
    r"(?!want|need|plan|intend|don|can|might|must|won|didn|haven|aren|just|mention)\w+(?:d|t|n|de|ne)\b"
    r"(?P<one>[^.!?\n]{0,160})|\b(?:you|we)(?:'ve| have) already (?P<two>[^.!?\n]{3,160})|"
    r"\b(?:nachdem|da|weil) (?:du|wir)\b(?P<three>[^.!?\n]{3,160}\b(?:hast|haben|bist|sind))\b",
    re.IGNORECASE,
)


def measure(
    user: str, agent: str = "", known: Collection[str] | None = None, least: float = 0.0
) -> dict[str, float]:
    """Return the parts of an exchange's entropy that are not zero.

    `known` are the concepts of the session so far; None when it has only begun and everything is new. What the user
    quotes or pastes is ignored. Corrections, the slowest part, are only looked for if they could raise the sum to
    `least`.
    """
    parts: dict[str, float] = {}
    brief = len(user) <= BRIEF
    user = own_words(user)
    fresh = concepts(user) - set(known) if known is not None else set()
    if fresh:
        parts["new concepts"] = min(EACH_CONCEPT * len(fresh), WEIGHTS["new concepts"])
    for name, pattern, text in (
        ("emotion", _EMOTION, user),
        ("paradox", _PARADOX, user),
        ("self-talk", _SELF, agent),
    ):
        if pattern.search(text):
            parts[name] = WEIGHTS[name]
    if plan_as_done(user, agent):
        parts["plan as done"] = WEIGHTS["plan as done"]
    if agent and brief and len(agent) >= LONG:
        parts["long answer"] = WEIGHTS["long answer"]
    correction = {"correction": WEIGHTS["correction"]}
    if total(parts | correction) >= least and contradicts(user):
        return correction | parts
    return parts


def contradicts(user: str) -> bool:
    """Return whether a person says that an answer was wrong or that they had to say it again."""
    found = [one for one in corrections.find(user) if one.kind not in ORDINARY_CHANGES]
    return bool(found) and not corrections.asks_of(user)


def unrest(measures: Sequence[Measure]) -> list[float]:
    """Return after each exchange what was wrong in it and what is left of the unrest before it."""
    levels: list[float] = []
    for measure in measures:
        wrong = total({name: part for name, part in measure.parts.items() if name not in OF_ORDINARY_WORK})
        left = CARRIED * levels[-1] if levels else 0.0
        levels.append(round(wrong + left, 2) if measure.parts or not measure.entropy else measure.entropy)
    return levels


def carried(measures: Sequence[Measure]) -> dict[str, float]:
    """Return half of the previous entropy, until it is too little to count."""
    left = round(CARRIED * measures[-1].entropy, 2) if measures else 0.0
    return {"before": left} if left >= LEAST_CARRIED else {}


def total(parts: Mapping[str, float]) -> float:
    """Return the sum of the parts; it may exceed 1."""
    return round(sum(parts.values()), 2)


def label(entropy: float) -> str:
    """Return stable, active, elevated or critical."""
    if entropy < 0.4:
        return "stable"
    return "active" if entropy < 0.8 else "elevated" if entropy < 1.0 else "critical"


def trend(measures: Sequence[Measure], now: float) -> str:
    """Return rising, falling or steady: the last three measures against the three before."""
    values = [measure.entropy for measure in measures] + [now]
    if len(values) < 4:
        return "steady"
    late, early = values[-3:], values[-6:-3]
    change = sum(late) / len(late) - sum(early) / len(early)
    return "rising" if change >= 0.15 else "falling" if change <= -0.15 else "steady"


def sustained(measures: Sequence[Measure], now: datetime) -> timedelta | None:
    """Return how long entropy has been high without a break; None if not long enough to report."""
    since: datetime | None = None
    for measure, level in zip(reversed(measures), reversed(unrest(measures)), strict=True):
        if level < SUSTAINED_LEVEL:
            break
        since = moment_of(measure.at)
    span = now - since if since else timedelta(0)
    return span if span >= SUSTAINED_FOR else None


def concepts(text: str) -> set[str]:
    """Return names and technical terms, case-folded."""
    return {found.casefold() for found in _CONCEPT.findall(text[:8_000])}


def plan_as_done(user: str, agent: str) -> str:
    """Return the words with which an answer treats a plan of the user as done; empty if it does not."""
    planned = {word for plan in _PLAN.finditer(user) for word in content_words(plan["what"])}
    if not planned or not agent:
        return ""
    for done in _DONE.finditer(agent):
        said = done["one"] or done["two"] or done["three"] or ""
        if planned & set(content_words(f"{done.group()} {said}")):
            return done.group().strip()
    return ""
