"""Learn which rule or policy a message is about, and which actions are risky at all: `providers/affinity.npz`.

    python training/affinity.py [--models DIR] [--out FILE]

Two linear maps of the embedder's vectors, one for messages and planned actions, one for rules and policies: in them a
message is nearest to the rule that applies to it (`texts/*/applies.jsonl`) and an action to the policy that it meets
(`texts/*/policies.jsonl`), among all rules and policies of all authors. They begin as the vectors themselves and are
drawn back to them, so that what nobody wrote of stays as the embedder has it. A logistic regression over an action's
vector says how probably it is risky: the other actions of a policy are look-alikes of those that meet it.
It takes a minute and a half on two cores. `bench/policies.py` and `bench/corrections.py` say what both bring.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import TEXTS, rows
from torch.nn.functional import cross_entropy, normalize

from nanoclaw_memory.providers import affinity
from nanoclaw_memory.providers.embedder import Chain
from nanoclaw_memory.providers.local import LocalEmbedder
from nanoclaw_memory.providers.models import embedder

MODELS = Path(__file__).parent.parent / ".venv" / "models"
STEPS, RATE, TEMPERATURE = 400, 2e-3, 0.08
DRAWN_BACK = 0.03  # how much the maps stay what they were
AT_ONCE = 256  # actions of a step
RULES_AT_ONCE = 200
SHRUNK = 10.0  # of the regression, over vectors ten times as long
ROUNDS = 40


class Vectors:
    """The vectors of texts as questions and as documents, each computed once."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain

    def asked(self, texts: list[str]) -> torch.Tensor:
        """Embed messages and actions."""
        only = self._chain.identities[:1]
        return torch.tensor(
            np.stack([self._chain.embed_query(text, only).vectors[0] for text in texts]), dtype=torch.float32
        )

    def told(self, texts: list[str]) -> torch.Tensor:
        """Embed rules and policies."""
        return torch.tensor(self._chain.embed_documents(texts).vectors, dtype=torch.float32)


def learn_maps(
    policies: list[dict[str, Any]], rules: list[dict[str, Any]], vectors: Vectors
) -> list[torch.Tensor]:
    """The means of both sides, and their maps."""
    triggers = sorted({(row["trigger"], f"{row['trigger']} {row['gate']}".rstrip()) for row in policies})
    place = {whole: number for number, (_, whole) in enumerate(triggers)}
    met = [row for row in policies if row["meets"]]
    actions = vectors.asked([row["action"] for row in met])
    meant = torch.tensor([place[f"{row['trigger']} {row['gate']}".rstrip()] for row in met])
    forms = [vectors.told([pair[form] for pair in triggers]) for form in (0, 1)]
    prompts = sorted({row["prompt"] for row in rules if row["applies"]})
    of_rule: dict[str, list[int]] = {}
    for row in rules:
        if row["applies"]:
            of_rule.setdefault(row["rule"], []).append(prompts.index(row["prompt"]))
    said, known = vectors.asked(prompts), list(of_rule)
    told = vectors.told(known)
    asked_mean = torch.cat([actions, said]).mean(0)
    told_mean = torch.cat([*forms, told]).mean(0)
    unchanged = torch.eye(actions.shape[1])
    maps = [torch.nn.Parameter(unchanged.clone()) for _ in range(2)]

    def turned(found: torch.Tensor, side: int) -> torch.Tensor:
        return normalize((found - (asked_mean, told_mean)[side]) @ maps[side], dim=1)

    optimizer = torch.optim.Adam(maps, lr=RATE)
    for step in range(STEPS):
        chosen = torch.randint(0, len(actions), (AT_ONCE,))
        scores = turned(actions[chosen], 0) @ turned(forms[step % 2], 1).T / TEMPERATURE
        loss = cross_entropy(scores, meant[chosen])
        some = torch.randperm(len(known))[:RULES_AT_ONCE].tolist()
        ones = [of_rule[known[number]] for number in some]
        one_each = [own[int(torch.randint(0, len(own), ()))] for own in ones]
        scores = turned(told[some], 1) @ turned(said[one_each], 0).T / TEMPERATURE
        loss = (
            loss
            + (cross_entropy(scores, right := torch.arange(len(some))) + cross_entropy(scores.T, right)) / 2
        )
        loss = loss + DRAWN_BACK * sum((one - unchanged).pow(2).sum() for one in maps)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [asked_mean, told_mean, *(one.detach() for one in maps)]


def learn_risk(actions: Any, meets: Any, mean: Any) -> Any:
    """The weights of a regularised logistic regression, the last one for itself."""
    rows_ = np.c_[(actions - mean) * 10, np.ones(len(actions))]
    weights = np.zeros(rows_.shape[1])
    shrunk = np.r_[np.full(rows_.shape[1] - 1, SHRUNK), 1e-6]
    for _ in range(ROUNDS):
        expected = 1 / (1 + np.exp(-rows_ @ weights))
        curved = (rows_.T * (expected * (1 - expected))) @ rows_ + np.diag(shrunk)
        weights -= np.linalg.solve(curved, rows_.T @ (expected - meets) + shrunk * weights)
    return np.r_[weights[:-1] * 10, weights[-1]]


def coded(values: Any) -> tuple[Any, Any]:
    """A map in 8 bits, with its scale."""
    scale = np.float32(np.abs(values).max() / 127)
    return np.rint(values / scale).astype(np.int8), scale


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--out", type=Path, default=affinity.FILE)
    options = parser.parse_args()
    torch.manual_seed(0)
    chain = Chain((LocalEmbedder(*embedder(options.models)),))
    vectors = Vectors(chain)
    policies, rules = ([row for _, row in rows(TEXTS, name)] for name in ("policies", "applies"))
    asked_mean, told_mean, asked_map, told_map = learn_maps(policies, rules, vectors)
    actions = vectors.asked([row["action"] for row in policies]).numpy()
    risk = learn_risk(actions, np.array([row["meets"] for row in policies], dtype=float), asked_mean.numpy())
    asked_codes, asked_scale = coded(asked_map.numpy())
    told_codes, told_scale = coded(told_map.numpy())
    np.savez_compressed(
        options.out,
        identity=np.array(chain.identity.key),
        asked_mean=asked_mean.numpy(),
        told_mean=told_mean.numpy(),
        asked_map=asked_codes,
        told_map=told_codes,
        scales=np.array([asked_scale, told_scale]),
        risk=risk.astype(np.float32),
    )
    print(f"{options.out.stat().st_size:,} bytes for {chain.identity.key}")


if __name__ == "__main__":
    main()
