"""Which gating policies a planned action meets: by words, and by meaning where embedder and judge are at hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.lessons.matching import calls_for_nothing
from nanoclaw_memory.text import content_words
from nanoclaw_memory.types import Policy, PolicyHit
from nanoclaw_memory.workspace.policies import check

if TYPE_CHECKING:
    from nanoclaw_memory.providers.embedder import Chain, Vectors
    from nanoclaw_memory.providers.judge import Judge

# Chosen by bench/policies.py. The embedder says which policy is meant, the judge whether the action is risky at all:
# alone, each is right about half of the time in its own question and hardly ever in the other's.
NEAREST = 3  # policies that the judge reads beside the action
NAMED = 2  # of these that a risky action is reported to meet
RISKY = -3.2  # mean log odds from which an action that somebody asks about is risky
RISKY_TALK = -2.6  # the same of any message: hardly one is, and of ordinary ones 1 to 2 % may fire
# In a home of few policies these compete: else the nearest of one is always that one, and its odds alone decide.
COMPETING = (
    "Sending a message to somebody outside",
    "Deleting files or data",
    "Spending money or signing a contract",
    "Changing a system that others use",
    "Publishing a text or a picture",
    "Passing on personal details",
    "Moving or cancelling an appointment",
    "Restarting or stopping a service",
)
FEWEST_WORDS = 3
MAX_CHARS = 2_000
_KEPT = 1_000
_vectors: dict[tuple[str, str], Vectors] = {}


def met(
    policies: Sequence[Policy],
    action: str,
    embedder: Chain | None,
    judge: Judge | None,
    asked: bool = True,
) -> list[PolicyHit]:
    """The policies that an action meets, the surest first; unless it is `asked` about, most actions are harmless."""
    by_words = met_by_words(policies, action)
    named = {hit.policy.id for hit in by_words}
    by_meaning = met_by_meaning(policies, action, embedder, judge, asked)
    return by_words + [hit for hit in by_meaning if hit.policy.id not in named]


def met_by_words(policies: Sequence[Policy], action: str) -> list[PolicyHit]:
    """The policies whose words an action says: whatever a model thinks of it, these it meets."""
    return check(policies, action[:MAX_CHARS])


def met_by_meaning(
    policies: Sequence[Policy], action: str, embedder: Chain | None, judge: Judge | None, asked: bool = True
) -> list[PolicyHit]:
    """The nearest policies of an action that the judge finds risky; none without the models."""
    action = action[:MAX_CHARS]
    if embedder is None or judge is None or not policies or len(content_words(action)) < FEWEST_WORDS:
        return []
    if not asked and calls_for_nothing(judge.probability("needs", action)):  # "sounds good, let's do it"
        return []
    try:
        near = _nearest(policies, action, embedder)
    except ProviderError:  # words answer without it
        return []
    risk = sum(_log_odds(judge, action, policy) for policy in near) / len(near)
    if risk < (RISKY if asked else RISKY_TALK):
        return []
    sure = round(1 / (1 + math.exp(-risk)), 2)
    return [PolicyHit(one, sure, (), "meaning") for one in near[:NAMED] if one.id]


def _nearest(policies: Sequence[Policy], action: str, embedder: Chain) -> list[Policy]:
    """The nearest policies, and general actions without an id where there are few policies."""
    general = [Policy("", "", trigger, "") for trigger in COMPETING[: max(len(COMPETING) - len(policies), 0)]]
    policies = [*general, *policies]
    asked = embedder.embed_query(action, embedder.identities[:1]).vectors[0]
    key = embedder.identity.key
    triggers = {one.trigger for one in policies}
    vectors = {text: found for text in triggers if (found := _vectors.get((key, text))) is not None}
    missing = list(triggers - vectors.keys())
    if missing:
        if len(_vectors) > _KEPT:
            _vectors.clear()
        vectors |= dict(zip(missing, embedder.embed_documents(missing).vectors, strict=True))
        _vectors.update({(key, text): vectors[text] for text in missing})
    return sorted(policies, key=lambda one: -float(vectors[one.trigger] @ asked))[:NEAREST]


def _log_odds(judge: Judge, action: str, policy: Policy) -> float:
    probability = judge.probability("meets", action, f"{policy.trigger} {policy.gate}".rstrip())
    return math.log(max(probability, 1e-6) / max(1 - probability, 1e-6))
