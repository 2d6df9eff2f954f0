"""Which gate does a planned action meet: by words alone, and by meaning with the embedder and the judge.

Repeat: .venv/bin/python bench/policies.py --models DIR [--data ../shared/data] [--misses]

*Found*: the right policy is among those that are named. *False*: something is named for an action that meets none.
*Wrong*: policies named for a risky action that it does not meet. The data's `lives` are ordinary messages to an
assistant: how many would get a reminder in a turn.
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
from nanoclaw_memory.retrieval.gates import met
from nanoclaw_memory.types import Policy, PolicyHit

Check = Callable[[list[Policy], str], list[PolicyHit]]
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


def reminded(check: Check, told: dict[str, Any], folder: Path) -> float:
    """The share of ordinary messages that would be reminded of a policy in a turn."""
    policies = [Policy(one["id"], "", one["trigger"], one["gate"]) for one in told["policies"]]
    texts = [
        prompt["text"]
        for path in sorted(folder.glob("needs/life_*.json"))
        for prompt in json.loads(path.read_text(encoding="utf-8"))["prompts"]
    ]
    plans = [text for text in texts if not text.rstrip().endswith("?")]
    return sum(bool(check(policies, text)) for text in plans) / max(len(texts), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--misses", action="store_true")
    options = parser.parse_args()
    path = options.data / "policies" / "dev.json"
    told = json.loads((path if path.exists() else options.data / "policies.json").read_text(encoding="utf-8"))
    chain, judge = Chain((LocalEmbedder(options.models / "e5-small-v2"),)), Judge()
    by_words: Check = lambda policies, action: met(policies, action, None, None)  # noqa: E731
    by_meaning: Check = lambda policies, action: met(policies, action, chain, judge)  # noqa: E731
    by_meaning([Policy("x", "", "sending mail", "ask")], "warm up the models with something")
    rows = [
        [*row(name, check, told, options.misses), reminded(check, told, options.data)]
        for name, check in (("words", by_words), ("words and meaning", by_meaning))
    ]
    table(["by", "found", "false", "wrong a risky action", "CPU ms", "by kind", "lives reminded"], rows)


if __name__ == "__main__":
    main()
