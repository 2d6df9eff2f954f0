"""Commands on conversations: raw transcripts and their archives."""

from __future__ import annotations

import click

from nanoclaw_memory.faces.cli.face import Caller, group, pass_caller
from nanoclaw_memory.text import plural


@group("sessions")
def sessions() -> None:
    """What was said: raw transcripts and archived conversations."""


@sessions.command("transcripts")
@pass_caller
def transcripts(caller: Caller) -> None:
    """List the raw transcripts under the group's session directory, newest first.

    \b
    ncm sessions transcripts
    ncm sessions transcripts --group family
    """
    with caller.memory() as memory:
        found = memory.transcripts()
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
        found = memory.archives()
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
        written = memory.archive(transcript)
    if written is None:
        caller.show({"path": "", "turns": 0}, "Nothing new to archive.")
    else:
        caller.show(written, f"{written.path} ({plural(written.turns, 'turn')})")
