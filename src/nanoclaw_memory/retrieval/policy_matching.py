"""Match a planned action with the gating policies: by words, and by meaning if embedder and judge are available."""

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

# Chosen by bench/policies.py. The embedder finds the policy that is meant, the judge decides whether the action is
# risky at all: alone, each is right about half of the time on its own question and hardly ever on the other's.
NEAREST = 3  # policies that the judge reads beside the action
NAMED = 2  # maximal number of these that an action triggers
RISKY = -3.0  # minimal log odds of a risk for an action that somebody asks about
RISKY_TALK = -2.2  # the same for any message: hardly any is risky, and 1 to 2 % of ordinary ones may trigger
PLACE = 0.6  # log odds that a policy loses for each one that is nearer
# General actions compete with the policies of a small set: otherwise its nearest one is always the same, and the odds
# alone decide.
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
        near = _nearest(policies, action, embedder)
    except ProviderError:  # words answer without it
        return []
    odds = [_log_odds(judge, action, policy) for policy in near]
    risk = (max(odds) + sum(odds) / len(odds)) / 2  # one that surely applies, or several that may
    if risk < (RISKY if asked else RISKY_TALK):
        return []
    sure = round(1 / (1 + math.exp(-risk)), 2)
    places = sorted(range(len(near)), key=lambda place: PLACE * place - odds[place])
    return [PolicyHit(near[place], sure, (), "meaning") for place in places[:NAMED] if near[place].id]


def _nearest(policies: Sequence[Policy], action: str, embedder: Chain) -> list[Policy]:
    """Return the nearest policies, and general actions without an id if there are few policies."""
    general = [Policy("", "", trigger, "") for trigger in COMPETING[: max(len(COMPETING) - len(policies), 0)]]
    policies = [*general, *policies]
    asked = embedder.embed_query(action, embedder.identities[:1]).vectors[0]
    key = embedder.identity.key
    triggers = {policy.trigger for policy in policies}
    vectors = {text: found for text in triggers if (found := _vectors.get((key, text))) is not None}
    missing = list(triggers - vectors.keys())
    if missing:
        if len(_vectors) > _KEPT:
            _vectors.clear()
        vectors |= dict(zip(missing, embedder.embed_documents(missing).vectors, strict=True))
        _vectors.update({(key, text): vectors[text] for text in missing})
    return sorted(policies, key=lambda policy: -float(vectors[policy.trigger] @ asked))[:NEAREST]


def _log_odds(judge: Judge, action: str, policy: Policy) -> float:
    probability = judge.probability("meets", action, f"{policy.trigger} {policy.gate}".rstrip())
    return math.log(max(probability, 1e-6) / max(1 - probability, 1e-6))
