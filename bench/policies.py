"""Which gate does a planned action meet: by words alone, and by meaning with the embedder and the judge.

Repeat: .venv/bin/python bench/policies.py --models DIR [--data ../shared/data] [--misses] [--every N]

*Found*: the right policy is among those that are named. *False*: something is named for an action that meets none.
*Wrong*: policies named for a risky action that it does not meet. *Ordinary*: the share of ordinary messages by several
people (training/lives, bench/data/fresh) that get a reminder in a turn, where these are the home's policies; *alone*:
the same where each is the home's only one (every N-th message). "asked" is `policy check`, "turn" a turn.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import table
from nanoclaw_memory.providers.embedder import Chain
from nanoclaw_memory.providers.judge import Judge
from nanoclaw_memory.providers.local import LocalEmbedder
from nanoclaw_memory.providers.models import embedder
from nanoclaw_memory.retrieval.policy_matching import triggered
from nanoclaw_memory.types import Policy, PolicyHit

Check = Callable[[list[Policy], str], list[PolicyHit]]
HERE = Path(__file__).parent
MORE = HERE / "data" / "more"
RISKY = ("paraphrase", "indirect", "in_plan", "command", "german")


def row(name: str, check: Check, told: dict[str, Any], misses: bool) -> list[object]:
    policies = [Policy(one["id"], "", one["trigger"], one["gate"]) for one in told["policies"]]
    right, asked = Counter[str](), Counter[str]()
    wrong = 0
    start = time.process_time()
    for action in told["actions"]:
        named = {hit.policy.id for hit in check(policies, action["text"])}
        meant = set(action["triggers"])
        asked[action["kind"]] += 1
        right[action["kind"]] += bool(named & meant) if meant else bool(named)
        wrong += len(named - meant - set(action.get("also_fine") or ())) if meant else 0
        if misses and (not named & meant if meant else named):
            print(f"{name}: {action['kind']} {sorted(meant)} -> {sorted(named)}: {action['text'][:90]}")
    took = (time.process_time() - start) * 1000 / len(told["actions"])
    risky, harmless = [[kind for kind in asked if (kind in RISKY) == is_risky] for is_risky in (True, False)]
    shares = [
        sum(right[kind] for kind in kinds) / sum(asked[kind] for kind in kinds) for kinds in (risky, harmless)
    ]
    kinds = ", ".join(f"{kind} {right[kind]}/{asked[kind]}" for kind in (*risky, *harmless))
    return [name, shares[0], shares[1], wrong / sum(asked[kind] for kind in risky), took, kinds]


def ordinary() -> list[str]:
    """What people who know nothing of policies write to an agent."""
    paths = [*sorted((HERE.parent / "training" / "lives").glob("*.json")), HERE / "data/fresh/life_3.json"]
    return [prompt["text"] for path in paths for prompt in json.loads(path.read_bytes())["prompts"]]


def reminded(check: Check, homes: list[list[Policy]], texts: list[str]) -> float:
    """The share of messages that would be reminded of a policy in a turn; a question plans nothing."""
    plans = [text for text in texts if not text.rstrip().endswith("?")]
    fired = sum(bool(check(policies, text)) for policies in homes for text in plans)
    return fired / (len(homes) * len(texts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--every", type=int, default=20)
    options = parser.parse_args()
    chain, judge = Chain((LocalEmbedder(*embedder(options.models)),)), Judge()
    ways: dict[str, Check] = {
        "words": lambda policies, action: triggered(policies, action, None, None),
        "asked": lambda policies, action: triggered(policies, action, chain, judge),
        "turn": lambda policies, action: triggered(policies, action, chain, judge, asked=False),
    }
    ways["asked"]([Policy("x", "", "sending mail", "ask")], "warm up the models with something")
    texts, rows = ordinary(), []
    dev = options.data / "policies" / "dev.json"
    for path in (
        dev,
        *sorted((HERE / "data").glob("*/policies.json")),
        *sorted(MORE.glob("*/policies.json")),
    ):
        told = json.loads(path.read_bytes()) if path.exists() else {"policies": []}
        policies = [Policy(one["id"], "", one["trigger"], one["gate"]) for one in told["policies"]]
        alone = [[one] for one in policies]
        for name, check in ways.items() if policies else ():
            fired = [reminded(check, [policies], texts), reminded(check, alone, texts[:: options.every])]
            rows.append([*row(f"{name}, {path.parent.name}", check, told, options.misses), *fired])
    table(["by", "found", "false", "wrong a risky action", "CPU ms", "by kind", "ordinary", "alone"], rows)


if __name__ == "__main__":
    main()
