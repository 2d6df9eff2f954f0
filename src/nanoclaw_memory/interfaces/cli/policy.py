"""Commands on gating policies: add, list, check."""

from __future__ import annotations

import click

from nanoclaw_memory.interfaces.cli.common import Caller, group, pass_caller
from nanoclaw_memory.types import Policy


@group("policy")
def policy() -> None:
    """Rules learned from failures: what must happen before a risky action."""


@policy.command("add")
@click.argument("title")
@click.option("--trigger", required=True, help="What brings the policy into play.")
@click.option("--gate", required=True, help="What must happen first.")
@click.option("--reason", default="", help="What went wrong without it.")
@click.option("--source", default="", help="Where that is written down, such as a daily log.")
@pass_caller
def add(caller: Caller, title: str, trigger: str, gate: str, reason: str, source: str) -> None:
    """Add a policy to memory/gating-policies.md; a number once given is never given again.

    \b
    ncm policy add "Never restart the gateway unasked" --trigger "Any request to restart services" \\
      --gate "Wait for an explicit yes" --reason "A silent restart lost a session"
    """
    with caller.memory(new=True) as memory:
        added = memory.workspace.add_policy(title, trigger, gate, reason, source)
    caller.show(added, f"{added.id} at memory/gating-policies.md:{added.line}")


@policy.command("list")
@pass_caller
def list_(caller: Caller) -> None:
    """List the policies.

    \b
    ncm policy list
    """
    with caller.memory() as memory:
        found = memory.workspace.policies()
    caller.show({"policies": found}, "\n\n".join(_shown(one) for one in found) or "No policies yet.")


@policy.command("check")
@click.argument("action")
@pass_caller
def check(caller: Caller, action: str) -> None:
    """Tell which policies a planned action triggers, and by which words.

    \b
    ncm policy check "restart the gateway to load the new config"
    """
    with caller.memory() as memory:
        hits = memory.workspace.check_policies(action)
    shown = [f"{_shown(hit.policy)}\n  matched: {', '.join(hit.matched)} ({hit.score:g})" for hit in hits]
    result = [
        {"id": hit.policy.id, "title": hit.policy.title, "gate": hit.policy.gate, "reason": hit.policy.reason,
         "source": hit.policy.source, "matched": hit.matched, "score": hit.score}
        for hit in hits
    ]  # fmt: skip
    caller.show({"policies": result}, "\n\n".join(shown) or "No policy is triggered.")


def _shown(policy: Policy) -> str:
    fields = (
        ("trigger", policy.trigger),
        ("gate", policy.gate),
        ("reason", policy.reason),
        ("source", policy.source),
    )
    return "\n".join(
        [f"{policy.id}  {policy.title}", *(f"  {name}: {text}" for name, text in fields if text)]
    )
