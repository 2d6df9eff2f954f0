"""Policies (order 3): inject the gating policies that a message's plan triggers, before the agent acts."""

from __future__ import annotations

from nanoclaw_memory.rendering import item_line
from nanoclaw_memory.turn import blocks
from nanoclaw_memory.turn.context import PluginContext
from nanoclaw_memory.turn.plugin import Answer, Draft, Moment, Plugin, Silence
from nanoclaw_memory.types import Policy, PolicyHit
from nanoclaw_memory.workspace.paths import visible

FENCE = "(the owner's rules for risky actions: keep to the gate before you act)"
FILE = "memory/gating-policies.md"
MAX_LINE = 400
MOST = 3


class PolicyGate(Plugin):
    """Remind the agent of gating policies before a risky action."""

    name = "policies"

    def __init__(self, context: PluginContext) -> None:
        self.context = context
        self.own = context.settings.plugins.entries.policies
        self.order = self.own.order
        self.asked_at = -1.0  # first, so that no other plugin's use of the turn's time can cost a policy
        self.timeout_ms = self.own.timeout_ms

    def before_turn(self, message: str, moment: Moment) -> Answer:
        if message.rstrip().endswith("?"):
            return Silence("the message asks, and plans nothing")
        known = self._known()
        if not known:
            return Silence("there are no policies")
        # Most homes have no policy, and every hook is a new process.
        from nanoclaw_memory.retrieval.policy_matching import triggered, triggered_by_words

        moment.so_far.append(_answer(triggered_by_words(known, message)))
        return _answer(triggered(known, message, self.context.embedder, self.context.judge, asked=False))

    def _known(self) -> list[Policy]:
        context = self.context
        path = context.home.workspace(context.scope.group) / FILE
        if not visible(context.scope, FILE, context.settings.privacy.shared_files):
            return []
        try:
            if b"GP" not in path.read_bytes().upper():
                return []
        except OSError:
            return []
        from nanoclaw_memory.workspace.policies import read

        return read(path)


def _answer(hits: list[PolicyHit]) -> Draft | Silence:
    found = hits[:MOST]
    if not found:
        return Silence("no policy is met")
    return Draft(
        blocks.POLICIES,
        tuple(
            f"• {item_line(f'{hit.policy.id} {hit.policy.title}: {hit.policy.gate}', MAX_LINE)}"
            for hit in found
        ),
        fence=FENCE,
        hits=len(found),
        reasons=tuple(f"{hit.by} {hit.score:g} {' '.join(hit.matched)}".rstrip() for hit in found),
    )
