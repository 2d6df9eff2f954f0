"""Match a planned action with the gating policies: by words, and by meaning if embedder and judge are available."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.lessons.matching import calls_for_nothing
from nanoclaw_memory.providers.affinity import affinity_of
from nanoclaw_memory.text import content_words
from nanoclaw_memory.types import Policy, PolicyHit
from nanoclaw_memory.workspace.policies import check

if TYPE_CHECKING:
    from nanoclaw_memory.providers.embedder import Chain, Vectors
    from nanoclaw_memory.providers.judge import Judge

# A learnt map finds the policy that is meant; its log odds of a risk and the judge's that a policy is met, together
# fitted on three of the five sets of bench/policies.py, say whether the action is risky at all.
NEAREST = 3  # policies that the judge reads beside the action
ALIKE = 0.12  # the second of these is named beside the first if it is hardly farther
MEETS, USUAL = 0.3, 1.1  # weight of the judge's odds beside the map's, and what both are added to
RISKY = 0.3  # minimal sum for an action that somebody asks about
RISKY_TALK = 1.2  # the same for any message: hardly any is risky, and 1 to 2 % of ordinary ones may trigger
# For embedders without a map the judge decides alone.
RISKY_TO_JUDGE, RISKY_TALK_TO_JUDGE = -3.0, -2.2
# General actions compete with the policies of a small set: otherwise its nearest one is always the same, and any
# risk triggers it.
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


def triggered(
    policies: Sequence[Policy],
    action: str,
    embedder: Chain | None,
    judge: Judge | None,
    asked: bool = True,
) -> list[PolicyHit]:
    """Return the policies that an action triggers, the surest first; unless `asked`, most actions are harmless."""
    by_words = triggered_by_words(policies, action)
    named = {hit.policy.id for hit in by_words}
    by_meaning = triggered_by_meaning(policies, action, embedder, judge, asked)
    return by_words + [hit for hit in by_meaning if hit.policy.id not in named]


def triggered_by_words(policies: Sequence[Policy], action: str) -> list[PolicyHit]:
    """Return the policies whose words an action contains: they are triggered whatever a model says."""
    return check(policies, action[:MAX_CHARS])


def triggered_by_meaning(
    policies: Sequence[Policy], action: str, embedder: Chain | None, judge: Judge | None, asked: bool = True
) -> list[PolicyHit]:
    """Return the nearest policies of an action that the judge calls risky; none without the models."""
    action = action[:MAX_CHARS]
    if embedder is None or judge is None or not policies or len(content_words(action)) < FEWEST_WORDS:
        return []
    if not asked and calls_for_nothing(judge.probability("needs", action)):  # "sounds good, let's do it"
        return []
    try:
        near, risk = _nearest(policies, action, embedder)
    except ProviderError:  # words answer without it
        return []
    odds = [_log_odds(judge, action, policy) for policy, _ in near]
    mean = sum(odds) / len(odds)
    if risk is None:
        sure, least = (max(odds) + mean) / 2, RISKY_TO_JUDGE if asked else RISKY_TALK_TO_JUDGE
    else:
        sure, least = risk + MEETS * mean + USUAL, RISKY if asked else RISKY_TALK
    if sure < least:
        return []
    probability = round(1 / (1 + math.exp(-sure)), 2)
    best = near[0][1]
    return [
        PolicyHit(policy, probability, (), "meaning")
        for policy, likeness in near[:2]
        if best - likeness < ALIKE and policy.id
    ]


def _nearest(
    policies: Sequence[Policy], action: str, embedder: Chain
) -> tuple[list[tuple[Policy, float]], float | None]:
    """Return the nearest policies with their likeness, and the log odds of a risk if they are known."""
    import numpy as np

    general = [Policy("", "", trigger, "") for trigger in COMPETING[: max(len(COMPETING) - len(policies), 0)]]
    policies = [*policies, *general]
    asked = embedder.embed_query(action, embedder.identities[:1]).vectors[0]
    key = embedder.identity.key
    texts = {form for policy in policies for form in _forms(policy)}
    vectors = {text: found for text in texts if (found := _vectors.get((key, text))) is not None}
    missing = list(texts - vectors.keys())
    if missing:
        if len(_vectors) > _KEPT:
            _vectors.clear()
        vectors |= dict(zip(missing, embedder.embed_documents(missing).vectors, strict=True))
        _vectors.update({(key, text): vectors[text] for text in missing})
    maps = affinity_of(key)
    likeness = np.zeros(len(policies), dtype=np.float32)
    for form in (0, 1):
        told = np.stack([vectors[_forms(policy)[form]] for policy in policies])
        likeness += (maps.likeness(asked, told) if maps else told @ asked) / 2
    order = sorted(range(len(policies)), key=lambda place: -float(likeness[place]))[:NEAREST]
    return [(policies[place], float(likeness[place])) for place in order], maps.risk(asked) if maps else None


def _forms(policy: Policy) -> tuple[str, str]:
    """Return what a policy is about, alone and with what it asks for."""
    return policy.trigger, f"{policy.trigger} {policy.gate}".rstrip()


def _log_odds(judge: Judge, action: str, policy: Policy) -> float:
    probability = judge.probability("meets", action, _forms(policy)[1])
    return math.log(max(probability, 1e-6) / max(1 - probability, 1e-6))
