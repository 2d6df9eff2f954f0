"""Commands on conversations: what was said, raw transcripts and their archives."""

from __future__ import annotations

import click

from nanoclaw_memory.interfaces.cli.common import Caller, group, pass_caller
from nanoclaw_memory.text import plural


@group("sessions")
def sessions() -> None:
    """What was said: raw transcripts and archived conversations."""


@sessions.command("list")
@click.option(
    "-n", "limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Most sessions."
)
@pass_caller
def list_(caller: Caller, limit: int) -> None:
    """List the sessions of which exchanges are kept, newest first.

    \b
    ncm sessions list
    """
    with caller.memory() as memory:
        found = memory.conversations.sessions(limit)
    lines = [
        f"{one.last[:16]}  {plural(one.exchanges, 'exchange'):>13}  {one.session_id or '-':<20} {', '.join(one.topics)}"
        for one in found
    ]
    caller.show({"sessions": found}, "\n".join(lines) or "Nothing was said yet.")


@sessions.command("show")
@click.argument("session_id", metavar="SESSION")
@pass_caller
def show(caller: Caller, session_id: str) -> None:
    """Print what was said in a session, oldest first.

    \b
    ncm sessions show s1
    """
    with caller.memory() as memory:
        found = memory.conversations.session(session_id)
    lines = [
        f"{one.timestamp[:16]}\nUser: {one.user_message}\nAgent: {one.agent_response}\n" for one in found
    ]
    caller.show({"exchanges": found}, "\n".join(lines))


@sessions.command("search")
@click.argument("query")
@click.option(
    "-k", "limit", type=click.IntRange(1, 100), default=10, show_default=True, help="Most hits, up to 100."
)
@pass_caller
def search(caller: Caller, query: str, limit: int) -> None:
    """Find where something was said: in exchanges, and in archived conversations.

    \b
    ncm sessions search "deprecation notice"
    """
    with caller.memory() as memory:
        found = memory.conversations.search(query, limit)
    lines = [
        f"{hit.timestamp[:16]}  {f'{hit.path}:{hit.line}' if hit.path else hit.session_id or '-'}\n{hit.text}\n"
        for hit in found
    ]
    caller.show({"hits": found}, "\n".join(lines) or "Nobody said that.")


@sessions.command("transcripts")
@pass_caller
def transcripts(caller: Caller) -> None:
    """List the raw transcripts under the group's session directory, newest first.

    \b
    ncm sessions transcripts
    ncm sessions transcripts --group family
    """
    with caller.memory() as memory:
        found = memory.conversations.transcripts()
    lines = [f"{one.modified_at}  {one.session_id:<38} {one.bytes:>12,}  {one.path}" for one in found]
    caller.show({"transcripts": found}, "\n".join(lines) or "No transcripts yet.")


@sessions.command("archives")
@pass_caller
def archives(caller: Caller) -> None:
    """List the conversations archived as Markdown, oldest first.

    \b
    ncm sessions archives
    """
    with caller.memory() as memory:
        found = memory.conversations.archives()
    lines = [f"{one.date}  {plural(one.turns, 'turn'):>10}  {one.path}  {one.title}" for one in found]
    caller.show({"archives": found}, "\n".join(lines) or "No archives yet.")


@sessions.command("archive")
@click.argument("transcript")
@pass_caller
def archive(caller: Caller, transcript: str) -> None:
    """Write what is new in a transcript to conversations/, readable and searchable.

    TRANSCRIPT is a file (Claude Code, Codex, or messages as JSON), or the id of a session that
    `ncm sessions transcripts` lists. Credentials are masked, tool noise is left out.

    \b
    ncm sessions archive ~/.claude/projects/-home-me-app/5c1f09d2.jsonl
    """
    with caller.memory() as memory:
        written = memory.conversations.archive(transcript)
    if written is None:
        caller.show({"path": "", "turns": 0}, "Nothing new to archive.")
    else:
        caller.show(written, f"{written.path} ({plural(written.turns, 'turn')})")
