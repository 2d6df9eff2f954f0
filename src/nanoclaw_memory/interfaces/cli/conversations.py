"""Commands on conversations: the blocks for a message, exchanges, sessions, transcripts and their archives."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

import click

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.interfaces.cli.common import (
    Output,
    answer_as_served,
    clock_of,
    command,
    group,
    limit_option,
    listing,
)
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.rendering import visible_line
from nanoclaw_memory.text import plural
from nanoclaw_memory.types import Explanation, Injection, PluginNote, SessionHit, ToolCall

AHEAD = timedelta(minutes=10)  # by which another machine's clock may be fast


@command("turn")
@click.argument("message")
@click.option("--explain", is_flag=True, help="Say why each line was chosen; a dry run that records nothing.")
def turn(memory: Memory, message: str, explain: bool) -> Output:
    """Print the blocks that an agent would get before answering MESSAGE; - reads it from standard input.

    What was left out, and why, goes to standard error. A session is not given a line twice: with --session this
    counts as given. --explain only looks: why each line was chosen, what nearly was, tokens and time.

    \b
    ncm turn "How did last week's deployment go?"
    ncm turn "When is Partner's birthday?" --session s7 --json
    ncm turn "When is Partner's birthday?" --explain
    """
    text = (sys.stdin.read() if sys.stdin else "") if message == "-" else message
    answer_as_served(memory)
    result = memory.before_turn(text, explain)
    size = f"{sum(block.tokens for block in result.blocks)} tokens in {result.took_ms:.1f} ms"
    if explain:
        lines = [line for explanation in result.explained for line in _explained(explanation)]
        return Output(result, [*lines, size], notes=_reasons(result.notes))
    notes = [*_reasons((*result.skipped, *result.notes)), size]
    return Output(result, result.text, notes=notes, fenced=True)


def _reasons(notes: Iterable[PluginNote]) -> list[str]:
    """Return each reason once, after all plugins that have it."""
    plugins: dict[str, list[str]] = {}
    for note in notes:
        plugins.setdefault(note.reason, []).append(note.plugin)
    return [_note(PluginNote(", ".join(names), reason)) for reason, names in plugins.items()]


def _explained(explanation: Explanation) -> Iterator[str]:
    """Yield what a plugin would inject, with reasons, and what it nearly injected."""
    outcome = f"silent: {explanation.silent}" if explanation.silent else plural(explanation.tokens, "token")
    yield f"{explanation.plugin}  {outcome} ({explanation.ms:.1f} ms)"
    for line in explanation.lines:
        yield f"  {line.text}" + (f"\n      because {line.reason}" if line.reason else "")
    for nearly in explanation.nearly:
        yield f"  not: {nearly}"


@command("injections")
@click.option("--since", metavar="DATE", default="", help="Only from this day (or month) on.")
@limit_option(
    "-n", "--limit", most=1000, default=20, help="Most injections, and most sessions, that are listed."
)
def injections(memory: Memory, since: str, limit: int) -> Output:
    """Show what was put before model calls, newest first: when, by which plugin, why, and for how many tokens.

    With --session only of that session. The sums count every injection, listed or not, and name the sessions that cost
    most; `boot` is the boot context
    at a session's start.

    \b
    ncm injections
    ncm injections --since 2026-02-01 --json
    ncm injections --session s7 --limit 5
    """
    found, shown = memory.conversations.injections(memory.scope.session_id, since, limit), clock_of(memory)
    lines = [line for injection in found.injections for line in _injection(injection, shown)]
    dearest = sorted(found.sessions, key=lambda one: one.tokens, reverse=True)[:limit]
    sums = [
        f"{one.tokens:>9,} tokens in {plural(one.calls, 'call'):>9}  {kind} {one.name or '-'}"
        for kind, all_of in (("plugin", found.plugins), ("session", dearest))
        for one in all_of
    ]
    if (more := len(found.sessions) - len(dearest)) > 0:
        sums.append(f"… and {plural(more, 'more session')}; all of them with --json")
    total = f"{found.tokens:>9,} tokens in {plural(found.calls, 'call'):>9}  in all, silent calls included"
    return Output(found, [*lines, *sums, total] if found.calls else [], "Nothing was injected yet.")


def _injection(injection: Injection, shown: Callable[[str], str]) -> Iterator[str]:
    who = f"{injection.session_id or '-':<20} {injection.event:<5} {injection.plugin:<15}"
    yield f"{shown(injection.at)}  {who} {plural(injection.tokens, 'token'):>12}"
    for line in injection.lines:
        yield f"    {line.text}" + (f"  ({line.reason})" if line.reason else "")


@group("exchange")
def exchange() -> None:
    """Record exchanges."""


@exchange.command("add", new=True)
@click.option("--user", "-u", required=True, metavar="TEXT", help="What the person said.")
@click.option("--agent", "-a", default="", metavar="TEXT", help="What the agent answered.")
@click.option(
    "--tool", "tools", multiple=True, metavar="NAME[:TARGET]", help="A tool that was called; repeat it."
)
@click.option("--at", metavar="MOMENT", help="When it was said (ISO 8601); now without it.")
def add(memory: Memory, user: str, agent: str, tools: tuple[str, ...], at: str | None) -> Output:
    """Archive an exchange, so that later sessions remember it; credentials are masked.

    \b
    ncm exchange add --user "Let's keep REST alive" --agent "Agreed: six months" --session s1
    ncm exchange add -u "Read it again" -a "Done" --tool read:app.py --tool read:app.py
    """
    from datetime import datetime

    try:
        moment = datetime.fromisoformat(at).astimezone() if at else None
    except ValueError:
        raise InvalidValue(f"{at!r} is no moment", "write it as 2026-02-23T14:30") from None
    calls = [ToolCall(name, target) for name, _, target in (text.partition(":") for text in tools)]
    result = memory.after_turn(user, agent, calls, moment)
    known = "" if result.new else " (known already)"
    masked = f", {result.redacted} credentials masked" if result.redacted else ""
    archived = f"exchange {result.id}{known}, entropy {result.entropy:.1f}{masked}"
    notes = list(map(_note, result.notes))
    if moment and moment > memory.clock.now() + AHEAD:
        notes.append(
            f"careful: {at} lies in the future, but what is recorded was said already; is the date right?"
        )
    return Output(result, archived if result.id else "not archived", notes=notes)


def _note(note: PluginNote) -> str:
    return f"{note.plugin}: {note.reason}"


@group("sessions")
def sessions() -> None:
    """List, search and archive conversations."""


@sessions.command("list")
@limit_option("-n", most=1000, default=20, help="Most sessions.")
def list_sessions(memory: Memory, limit: int) -> Output:
    """List the sessions of which exchanges are kept, newest first.

    \b
    ncm sessions list
    """
    found, shown = memory.conversations.sessions(limit), clock_of(memory)
    lines = [
        f"{shown(session.last)}  {plural(session.exchanges, 'exchange'):>13}  {session.session_id or '-':<20} "
        f"{visible_line(session.title)}" + (" (shared chat)" if session.shared else "")
        for session in found
    ]
    return Output({"sessions": found}, lines, "Nothing was said yet.")


@sessions.command("show")
@click.argument("session_id", metavar="SESSION")
def show(memory: Memory, session_id: str) -> Output:
    """Print what was said in a session, oldest first.

    \b
    ncm sessions show s1
    """
    found, shown = memory.conversations.session(session_id), clock_of(memory)
    lines = [
        line
        for exchange in found
        for line in (
            shown(exchange.timestamp) + ("" if exchange.private else " (shared chat)"),
            f"User: {exchange.user_message}",
            f"Agent: {exchange.agent_response}\n",
        )
    ]
    return Output({"exchanges": found}, lines)


@sessions.command("search")
@click.argument("query")
@limit_option("-k", most=100, default=10, help="Most hits, up to 100.")
def search(memory: Memory, query: str, limit: int) -> Output:
    """Find where something was said: in exchanges, and in archived conversations.

    \b
    ncm sessions search "deprecation notice"
    """
    found, shown = memory.conversations.search(query, limit), clock_of(memory)
    return listing("hits", found, lambda hit: _hit_lines(hit, shown), "Nobody said that.")


def _hit_lines(hit: SessionHit, shown: Callable[[str], str]) -> str:
    place = f"{hit.path}:{hit.line}" if hit.path else hit.session_id or "-"
    place += " (shared chat)" if hit.shared else ""
    return f"{shown(hit.timestamp)}  {place}\n{hit.text}\n"


@sessions.command("transcripts")
def transcripts(memory: Memory) -> Output:
    """List the raw transcripts under the group's session directory, newest first.

    \b
    ncm sessions transcripts
    ncm sessions transcripts --group family
    """
    found = memory.conversations.transcripts()
    lines = [
        f"{transcript.modified_at}  {transcript.session_id:<38} {transcript.bytes:>12,}  {transcript.path}"
        for transcript in found
    ]
    return Output({"transcripts": found}, lines, "No transcripts yet.")


@sessions.command("archives")
def archives(memory: Memory) -> Output:
    """List the conversations archived as Markdown, oldest first.

    \b
    ncm sessions archives
    """
    found = memory.conversations.archives()
    lines = [
        f"{archive.date}  {plural(archive.turns, 'turn'):>10}  {archive.path}  {archive.title}"
        for archive in found
    ]
    return Output({"archives": found}, lines, "No archives yet.")


@sessions.command("archive")
@click.argument("transcript")
def archive(memory: Memory, transcript: str) -> Output:
    """Write what is new in a transcript to conversations/, readable and searchable.

    TRANSCRIPT is a file (Claude Code, Codex, or messages as JSON), or the id of a session that
    `ncm sessions transcripts` lists. Credentials are masked, tool noise is left out.

    \b
    ncm sessions archive ~/.claude/projects/-home-me-app/5c1f09d2.jsonl
    """
    written = memory.conversations.archive(transcript)
    if written is None:
        return Output({"path": "", "turns": 0}, "Nothing new to archive.")
    return Output(written, f"{written.path} ({plural(written.turns, 'turn')})")
