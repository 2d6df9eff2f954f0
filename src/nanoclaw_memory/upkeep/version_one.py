"""Import the files of a NanoClaw version 1: CLAUDE.md and conversations of its groups, transcripts, its database."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.errors import FileProblem, InvalidValue
from nanoclaw_memory.private import make_folder
from nanoclaw_memory.types import MAIN_GROUP, BroughtIn
from nanoclaw_memory.upkeep.importing import NOTHING
from nanoclaw_memory.workspace.files import read_text, replace_text
from nanoclaw_memory.workspace.paths import GROUP_PAGE, Home, agent_home, check_group
from nanoclaw_memory.workspace.starter import initialise, without_starter

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

GLOBAL = "global"  # the group whose CLAUDE.md all groups read


class OldFile(msgspec.Struct, frozen=True):
    """A file of the old tree, and its place in this home; `group` is its owner."""

    source: Path
    target: Path
    group: str

    @property
    def is_page(self) -> bool:
        return self.source.name == GROUP_PAGE

    def is_new(self) -> bool:
        """Return whether the home lacks the file's content."""
        if not self.target.exists():
            return True
        return self.is_page and _text(self.source).strip() not in _text(self.target)


def old_files(home: Home, tree: Path) -> list[OldFile]:
    """Return what an old tree has that this home lacks; the home itself may be that tree."""
    return [one for one in _listed(home, tree) if one.source != one.target and one.is_new()]


def _listed(home: Home, tree: Path) -> Iterator[OldFile]:
    folder = tree / "groups"
    for old in sorted(folder.iterdir()) if folder.is_dir() else ():
        if not old.is_dir() or old.is_symlink() or old.name.startswith("."):
            continue
        group = MAIN_GROUP if old.name in (GLOBAL, MAIN_GROUP) else old.name
        page = old / GROUP_PAGE
        if page.is_file() and without_starter(_text(page)).strip():
            yield OldFile(
                page, home.shared / GROUP_PAGE if old.name == GLOBAL else home.group_page(group), group
            )
        talks = home.workspace(group) / "conversations"
        for talk in sorted((old / "conversations").glob("*.md")):
            yield OldFile(talk, talks / talk.name, group)


def import_tree(group: Group, tree: Path, dry_run: bool) -> BroughtIn:
    """Copy what is new; the home's content stays, and the old tree is not changed."""
    if not (tree / "groups").is_dir():
        raise InvalidValue(f"there is no {tree / 'groups'}", "give the folder of a NanoClaw that has groups/")
    found = old_files(group.home, tree)
    here = tree.resolve() == group.home.root.resolve()
    kept = [] if dry_run or here else list(_copy_state(group.home, tree))
    problems = []
    for one in found:
        try:
            check_group(one.group)
            if not dry_run:
                _copy(group, one)
        except (FileProblem, InvalidValue) as error:
            problems.append(f"{one.source}: {error.message}")
    pages = sum(one.is_page for one in found)
    return replace(
        NOTHING,
        conversations=len(found) - pages,
        unplaced=(*problems, *kept),
        dry_run=dry_run,
        pages=pages,
    )


def _copy(group: Group, one: OldFile) -> None:
    """Write a file, masked like everything that is imported; a page is appended to an existing one."""
    if not group.home.workspace(one.group).is_dir():
        initialise(group.home, one.group, group.today)
    text = group.host.intake(one.group).talk(read_text(one.source), "import").text
    before = _text(one.target) if one.is_page else ""
    make_folder(one.target.parent)
    replace_text(one.target, f"{before.rstrip()}\n\n{text}" if without_starter(before).strip() else text)


def _copy_state(home: Home, tree: Path) -> Iterator[str]:
    """Copy the raw transcripts of agents and the operational database; report what is skipped."""
    sessions = tree / "data" / "sessions"
    for old in sorted(sessions.iterdir()) if sessions.is_dir() else ():
        own = agent_home(home, old.name) / ".claude"
        if (old / ".claude").is_dir() and not own.exists():
            shutil.copytree(old / ".claude", own, symlinks=True)
    old_store, store = tree / "store" / "messages.db", home.root / "store" / "messages.db"
    if old_store.is_file() and store.exists():
        yield f"{old_store}: this home has a store/messages.db already"
    elif old_store.is_file():
        make_folder(store.parent)
        for end in ("-wal", ""):  # a database without its log would lack the last messages
            if Path(f"{old_store}{end}").is_file():
                shutil.copyfile(f"{old_store}{end}", f"{store}{end}")
                Path(f"{store}{end}").chmod(0o600)


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except (FileProblem, FileNotFoundError):
        return ""
