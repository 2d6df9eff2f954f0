"""The boot context: the files of a session's start in order, within the caps, with privacy applied."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from pathlib import Path

import msgspec
from msgspec.structs import replace

from nanoclaw_memory import tokens
from nanoclaw_memory.errors import FileProblem, NanoClawError
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.rendering import cut, fenced, inert_line, inert_lines, is_own_page, unfenced
from nanoclaw_memory.settings import Settings
from nanoclaw_memory.text import words
from nanoclaw_memory.types import Agent, Boot, BootFile, Scope
from nanoclaw_memory.workspace import log
from nanoclaw_memory.workspace.files import read_text
from nanoclaw_memory.workspace.paths import (
    GROUP_PAGE,
    SHARED_LOGS,
    Home,
    check_slug,
    day_in_path,
    locate,
    log_path,
    project_in_path,
    visible,
)
from nanoclaw_memory.workspace.roster import agent_of
from nanoclaw_memory.workspace.starter import as_read, without_starter

SIZE_TARGETS = {  # bytes; doctor and audit warn above them
    "SOUL.md": 2_000,
    "USER.md": 3_000,
    "IDENTITY.md": 500,
    "memory/active-context.md": 2_000,
    "HEARTBEAT.md": 1_000,
    "MEMORY.md": 8_000,
}
MEMORY_MAX_LINES = 200
ACTIVE_CONTEXT = "memory/active-context.md"
BRIEF = "MEMORY.md (brief)"
# Instructions for working, read at every start if somebody wrote any.
INSTRUCTIONS = ("AGENTS.md", GROUP_PAGE, f"shared/{GROUP_PAGE}")
CHECKLISTS = ("TOOLS.md", "HEARTBEAT.md", "BOOT.md")
_AGENTS_LINE = "- [by agent] "  # in a project's page: then the whole page is treated as data
_BRIEF_LINE = regex(r"^- \[\w+\] (?P<content>.*?)(?: \([^()]*\))?$")


class _Piece(msgspec.Struct, frozen=True):
    text: str
    file: BootFile

    @property
    def is_own(self) -> bool:
        """Return whether the owner wrote it by hand."""
        return self.file.path != BRIEF and is_own_page(self.file.path) and _AGENTS_LINE not in self.text


def boot(
    home: Home,
    scope: Scope,
    settings: Settings,
    today: date,
    project: str,
    *,
    brief: Callable[[], str],
    mask: Callable[[str], str],
    most: int,
) -> Boot:
    """Return what an agent gets at session start: the main sequence, or a project agent's with `project`.

    A text longer than `most` characters has the brief first and is cut at its end.
    """
    mode = memory_mode(settings) if not project else "project"
    if project:
        paths = project_sequence(home, scope, project, today)
    else:
        wanted = main_sequence(today, scope)
        paths = [path for path in wanted if not _is_optional(path) or _exists(home, scope, path)]
    agent = agent_of(home, scope.group)
    if agent is not None:
        paths = _paths_of(agent, paths, home, scope)
    left = settings.memory.max_bootstrap_chars_total
    pieces: list[_Piece] = [_agent_piece(agent)] if agent is not None else []
    for relative in paths:
        if not visible(scope, relative, settings.privacy.shared_files):
            continue
        limit = min(settings.memory.max_bootstrap_chars_per_file, left)
        if relative == "MEMORY.md" and mode in ("brief", "both"):
            page = _load(
                home, scope, settings, relative, min(limit, SIZE_TARGETS["MEMORY.md"]), MEMORY_MAX_LINES
            )
            text = without_repeats(unfenced(brief()), page.text)
            added = [_brief_piece(text, mode)] if text.strip() else []
            if mode == "both" or not added:  # the person's own words are kept even if the entries say little
                added.insert(0, page)
        else:
            piece = _load(home, scope, settings, relative, limit)
            added = [piece] if piece.text or not _is_optional(relative) else []
        pieces += added
        left = max(left - sum(piece.file.chars for piece in added), 0)
    return _boot_of([replace(piece, text=mask(piece.text)) for piece in pieces], mode, most)


def problems(home: Home, scope: Scope, settings: Settings, today: date) -> list[str]:
    """Return what keeps a page from being read as it is at session start, for the person who can repair it."""
    found = []
    for relative in main_sequence(today, scope):
        if not visible(scope, relative, settings.privacy.shared_files):
            continue
        try:
            _read(locate(home, scope, relative, settings.privacy.shared_files)[1], replacing=False)
        except FileNotFoundError:
            continue
        except NanoClawError as error:
            found.append(error.message)
    return found


def _boot_of(pieces: list[_Piece], mode: str, most: int) -> Boot:
    text = _joined(pieces)
    if most and len(text) > most:
        text = cut(_joined(sorted(pieces, key=lambda piece: piece.file.path != BRIEF)), most)
    short = next((piece.text for piece in pieces if piece.file.path == BRIEF), "")
    return Boot(tuple(piece.file for piece in pieces), text, tokens.estimate(text), mode, short)


def _joined(pieces: Iterable[_Piece]) -> str:
    """Join the pieces to one text; everything but the owner's own pages is fenced."""
    parts = []
    shown = (piece for piece in pieces if piece.text)
    for own, group in itertools.groupby(shown, lambda piece: piece.is_own):
        run = list(group)
        text = "\n\n".join(piece.text for piece in run)
        parts.append(text if own or all(piece.file.missing for piece in run) else fenced([text]))
    return "\n\n".join(parts) + "\n" if parts else ""


def main_sequence(today: date, scope: Scope) -> list[str]:
    """Return the files in order: identity, instructions, user, focus, memory of this group and of all, checks, log."""
    logs = [log_path(today - timedelta(days=back), scope.private) for back in (1, 0)]
    own = [active_context(scope.project), *_memory_of(scope.project)] if scope.project else []
    first = ["SOUL.md", *INSTRUCTIONS, "USER.md", "IDENTITY.md", ACTIVE_CONTEXT]
    return [*first, *own, "MEMORY.md", *CHECKLISTS, *logs]


def _paths_of(agent: Agent, paths: list[str], home: Home, scope: Scope) -> list[str]:
    """Return what an agent of the roster reads: its own choice of files, and its projects' memory before the rest."""
    kept = [path for path in paths if not agent.loads or path in agent.loads or project_in_path(path)]
    more = [path for path in agent.loads if path not in kept]
    own = [path for slug in agent.projects for path in _memory_of(slug) if _exists(home, scope, path)]
    at = kept.index("MEMORY.md") if "MEMORY.md" in kept else len(kept)
    return list(dict.fromkeys([*kept[:at], *more, *own, *kept[at:]]))


def _agent_piece(agent: Agent) -> _Piece:
    """Return the description of an agent of the roster."""
    role = f", {agent.role}" if agent.role else ""
    projects = f"; projects: {', '.join(agent.projects)}" if agent.projects else ""
    text = inert_line(f"You are {agent.name}{role}{projects}.")
    return _Piece(text, BootFile("agents.json", len(text), tokens.estimate(text)))


def active_context(project: str) -> str:
    """Return the path of the active-context page: each project has its own."""
    return f"memory/active-context-{project}.md" if project else ACTIVE_CONTEXT


def project_sequence(home: Home, scope: Scope, slug: str, today: date) -> list[str]:
    """Return the files for a project agent: the project's knowledge, then identity, then today's log."""
    pages = _memory_of(check_slug(slug))
    present = [path for path in pages if _exists(home, scope, path)]
    how = [path for path in INSTRUCTIONS if _exists(home, scope, path)]
    return [*(present or pages[:1]), "SOUL.md", *how, "IDENTITY.md", log_path(today)]


def _memory_of(project: str) -> list[str]:
    return [f"memory/project-{project}.md", f"shared/project-{project}.md"]


def _is_optional(relative: str) -> bool:
    """Return whether most sessions lack this file, so that its absence is not reported."""
    named = relative in INSTRUCTIONS or relative in CHECKLISTS or bool(project_in_path(relative))
    return named or relative.startswith(f"{SHARED_LOGS}/")


def _exists(home: Home, scope: Scope, relative: str) -> bool:
    if relative == GROUP_PAGE and home.has_group_page(scope.group):
        return True
    shared = relative.startswith("shared/")
    return ((home.root if shared else home.workspace(scope.group)) / relative).exists()


def memory_mode(settings: Settings) -> str:
    """Return how MEMORY.md is loaded: 'full', 'brief' (the entries' brief instead), 'both' (it and the brief beneath
    it).
    """
    return "both" if settings.memory.boot == "auto" else settings.memory.boot


def without_repeats(brief: str, page: str) -> str:
    """Return the brief without entries that the page contains word for word, and without sections left empty."""
    known = " ".join(words(page))
    sections: list[list[str]] = [[]]
    for line in brief.split("\n"):
        if line.startswith("### "):
            sections.append([])
        entry = _BRIEF_LINE.match(line)
        if entry is None or " ".join(words(entry["content"])) not in known:
            sections[-1].append(line)
    head, *rest = sections
    kept = [section for section in rest if any(_BRIEF_LINE.match(line) for line in section)]
    return "\n".join(line for section in (head, *kept) for line in section) if kept else ""


def _load(
    home: Home, scope: Scope, settings: Settings, relative: str, limit: int, most_lines: int = 0
) -> _Piece:
    try:
        _, path = locate(home, scope, relative, settings.privacy.shared_files)
        text = _read(path)
        if relative in INSTRUCTIONS or relative in CHECKLISTS:
            text = without_starter(text)
        if scope.private and day_in_path(relative):
            text = log.of_insiders(text)
        if scope.project and day_in_path(relative):
            text = log.of_project(text, scope.project)
    except FileNotFoundError:
        # Most days have no log: its absence is not reported.
        return _marker(relative, "" if day_in_path(relative) else f"[missing: {relative}]")
    except NanoClawError as error:
        return _marker(relative, inert_line(f"[not loaded: {relative}: {error.message}]"))
    if most_lines:
        limit = min(limit, sum(map(len, text.splitlines(keepends=True)[:most_lines])))
    body = as_read(text[:limit]).rstrip()
    note = _cut_note(relative, text, limit) if len(text) > limit else ""
    shown = f"## {relative}\n\n{inert_lines(body)}" + (f"\n\n{note}" if note else "") if body or note else ""
    return _Piece(shown, BootFile(relative, len(body), tokens.estimate(body), truncated=bool(note)))


def _read(path: Path, replacing: bool = True) -> str:
    text = read_text(path, replacing=replacing).replace("\r\n", "\n")
    if "\x00" in text:
        raise FileProblem(f"{path.name} is a binary file", "only text belongs in memory")
    return text


def _cut_note(relative: str, text: str, limit: int) -> str:
    line = text.count("\n", 0, limit) + 1
    return (
        f"[truncated: {limit:,} of {len(text):,} characters; memory_get {relative} continues at line {line}]"
    )


def _marker(relative: str, text: str) -> _Piece:
    return _Piece(text, BootFile(relative, 0, 0, missing=True))


def _brief_piece(text: str, mode: str) -> _Piece:
    if mode == "brief":
        text += "\n[MEMORY.md is not loaded: memory_search finds its lines, memory_get reads them]"
    return _Piece(text.rstrip(), BootFile(BRIEF, len(text), tokens.estimate(text)))
