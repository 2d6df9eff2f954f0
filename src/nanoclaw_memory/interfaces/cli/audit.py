"""Commands that look at memory as a whole: audit and its log, share."""

from __future__ import annotations

import click

from nanoclaw_memory.interfaces.cli.common import Caller, group, pass_caller
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import Recommendation


@group("audit", invoke_without_command=True)
@click.option("--scope", default="all", help="all, memory_md, domains or system_prompt.")
@click.option("--fix", is_flag=True, help="Carry out what has a low risk, after a checkpoint.")
@click.pass_context
def audit(context: click.Context, scope: str, fix: bool) -> None:
    """Show what memory costs in tokens, what says the same twice, and what would help.

    \b
    ncm audit
    ncm audit --fix
    ncm audit verify
    """
    if context.invoked_subcommand is not None:
        return
    caller = context.find_root().ensure_object(Caller)
    with caller.memory() as memory:
        result = memory.audit(scope, fix=fix)
    analysis = result.analysis
    lines = [f"{analysis.total_tokens:,} tokens"]
    lines += [f"{one.tokens:>8,}  {one.percentage:>5.1f} %  {one.source}" for one in analysis.breakdown]
    for pair in analysis.duplicates:
        lines += [f"alike {pair.similarity:.0%}: {' and '.join(pair.sources)}", f"  {pair.content_a}"]
    lines += [_advice(advice) for advice in result.recommendations]
    if result.checkpoint:
        lines.append(f"checkpoint {result.checkpoint} holds the state before")
    caller.show(result, "\n".join(lines))


def _advice(advice: Recommendation) -> str:
    state = "done" if advice.applied else f"{advice.risk} risk"
    tokens = advice.estimated_savings_tokens
    return f"- {advice.description} ({state}{f', saves about {tokens:,} tokens' if tokens else ''})"


@audit.command("verify")
@pass_caller
def verify(caller: Caller) -> None:
    """Prove that no line of the audit log was changed or removed; exit 1 when one was.

    \b
    ncm audit verify
    """
    with caller.memory() as memory:
        verdict = memory.entries.verify()
    text = f"{verdict.records:,} records, unbroken" if verdict.ok else "\n".join(verdict.problems)
    caller.show({"verified": verdict.ok, "records": verdict.records, "problems": verdict.problems}, text)
    if not verdict.ok:
        raise click.exceptions.Exit(1)


@audit.command("trace")
@click.argument("entry_id", metavar="ID")
@pass_caller
def trace(caller: Caller, entry_id: str) -> None:
    """Show an entry's whole life: who stored, merged, replaced, approved or deleted it, and when.

    \b
    ncm audit trace mem-…
    """
    with caller.memory() as memory:
        life = memory.entries.trace(entry_id)
    lines = [
        f"{record['at']}  {record['event']:<10} {record['id']}  by {record['origin']}, "
        f"session {record['session'] or 'none'}"
        for record in life.records
    ]
    if life.entry is not None:
        lines.append(f"now {life.entry.status}: {one_line(life.entry.content)}")
    caller.show(life, "\n".join(lines) or f"The audit log does not know {entry_id}.")


@group("share")
def share() -> None:
    """Publish entries, and let other groups read them.

    \b
    ncm share publish mem-…
    ncm share grant research
    ncm share recall "staging port" --group research
    """


@share.command("publish")
@click.argument("entry_id", metavar="ID")
@pass_caller
def publish(caller: Caller, entry_id: str) -> None:
    """Publish a current entry to the groups that hold a grant.

    \b
    ncm share publish mem-…
    """
    with caller.memory() as memory:
        entry = memory.entries.publish(entry_id)
    caller.show({"id": entry.id, "published": True}, f"published {entry.id}")


@share.command("unpublish")
@click.argument("entry_id", metavar="ID")
@pass_caller
def unpublish(caller: Caller, entry_id: str) -> None:
    """Take a published entry back.

    \b
    ncm share unpublish mem-…
    """
    with caller.memory() as memory:
        memory.entries.unpublish(entry_id)
    caller.show({"id": entry_id, "published": False}, f"took back {entry_id}")


@share.command("grant")
@click.argument("reader", metavar="GROUP")
@pass_caller
def grant(caller: Caller, reader: str) -> None:
    """Let a group read what this one publishes.

    \b
    ncm share grant research
    """
    with caller.memory() as memory:
        memory.entries.grant(reader)
    caller.show({"publisher": caller.group, "reader": reader, "granted": True}, f"{reader} may read")


@share.command("revoke")
@click.argument("reader", metavar="GROUP")
@pass_caller
def revoke(caller: Caller, reader: str) -> None:
    """Take a group's grant back.

    \b
    ncm share revoke research
    """
    with caller.memory() as memory:
        memory.entries.revoke(reader)
    result = {"publisher": caller.group, "reader": reader, "granted": False}
    caller.show(result, f"{reader} may no longer read")


@share.command("list")
@pass_caller
def list_(caller: Caller) -> None:
    """List what this group publishes and to whom, and what it may read of others.

    \b
    ncm share list
    """
    with caller.memory() as memory:
        shares = memory.entries.shares()
    lines = [
        f"{one.publisher}: {len(one.entries)} published, read by {', '.join(one.readers) or 'nobody'}"
        for one in shares
    ]
    caller.show({"shares": shares}, "\n".join(lines) or "Nothing is published.")


@share.command("recall")
@click.argument("query")
@click.option("--budget", type=int, help="Most tokens; default 3,000.")
@click.option("--type", "-t", "kinds", multiple=True, help="Only these types.")
@pass_caller
def recall(caller: Caller, query: str, budget: int | None, kinds: tuple[str, ...]) -> None:
    """Recall from what other groups have published and granted to this one.

    \b
    ncm share recall "staging port" --group research
    """
    with caller.memory() as memory:
        result = memory.entries.shared_recall(query, types=kinds or None, token_budget=budget)
    caller.show(result, result.text or "Nothing was recalled.")
