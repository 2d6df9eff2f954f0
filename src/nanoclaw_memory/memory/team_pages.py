"""A team's pages: keep the workspace and a table in PostgreSQL the same, before and after every call that uses
pages.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nanoclaw_memory.errors import NanoClawError, Refused, SettingsError, StoreError
from nanoclaw_memory.text import fingerprint
from nanoclaw_memory.types import MAIN_GROUP, Mirrored
from nanoclaw_memory.workspace.paths import GROUP_PAGE

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group
    from nanoclaw_memory.store.database import Database
    from nanoclaw_memory.upkeep.mirror import Mirror, PageConflict

C = TypeVar("C", bound=type)
LOOK_SECONDS = 1.0
AWAY_SECONDS = 5.0  # how long a database is not asked again after it failed
COMMON = "shared"  # the folder of pages that all groups read; they have their own table
_APART = ("close", "for_session", "fenced", "status")
_DELETING = ("forget", "restore_checkpoint")  # methods that may delete every page of a folder


def with_pages(cls: C) -> C:
    """Synchronise the team's pages around every public method of a class."""
    known = {name: method for base in reversed(cls.__mro__) for name, method in vars(base).items()}
    for name, method in known.items():
        if not name.startswith("_") and name not in _APART and type(method).__name__ == "function":
            setattr(cls, name, _synchronised(method))
    return cls


def _synchronised(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        group = getattr(self, "_group", None) or self.group
        with synchronised(group, deletes=method.__name__ in _DELETING):
            return method(self, *args, **kwargs)

    return call


@contextmanager
def synchronised(group: Group, writes: bool = True, deletes: bool = False) -> Iterator[None]:
    """Synchronise around a call, unless an outer call does already."""
    resources = group.resources
    if resources.showing_pages or not has_team(group):
        yield
        return
    resources.showing_pages = True
    # Files are compared once per call, afterwards if it may write; a server compares once a second.
    asked, age = resources.freshness.asking, time.monotonic() - resources.pages_seen
    looking = age > LOOK_SECONDS if asked else deletes or not writes
    try:
        resources.freshness.look("team pages", lambda: synchronise(group, "owner", looking))
        resources.deleting_pages = deletes
        yield
    finally:
        resources.showing_pages = False
        if writes and not resources.freshness.asking:  # a question writes no page
            synchronise(group, group.scope.author)
        resources.deleting_pages = False


def has_team(group: Group) -> bool:
    """Return whether the pages of this home belong to a team."""
    try:
        return bool(group.resources.store.url)
    except SettingsError:  # reported by whoever uses the settings
        return False


def team_tables(group: Group) -> list[Database]:
    """Return the tables of a team's pages: of this group and, for the main one, of all groups."""
    if not has_team(group):
        return []
    common = [group.resources.common_pages()] if group.scope.group == MAIN_GROUP else []
    return [group.resources.database("pages"), *common]


def synchronise(group: Group, author: str, looking: bool = True) -> Mirrored:
    """Synchronise the workspace and the table; while the database is away only the files are used.

    Without `looking` only changes in the table are applied.
    """
    resources = group.resources
    if not group.workspace.is_dir():
        return Mirrored()
    if time.monotonic() < resources.pages_away_until:
        return Mirrored(problems=("the database is away: pages may be old",))
    done: list[Mirrored] = []
    try:
        for mirror in mirrors(group, author):
            done.append(mirror.sync(looking=looking))
        if looking:
            resources.pages_seen = time.monotonic()
    except NanoClawError as error:
        group.telemetry.record("pages", error=error.message)
        if not done:  # otherwise these are the pages of all groups, which an agent's role may only read
            resources.pages_away_until = time.monotonic() + AWAY_SECONDS
        done.append(Mirrored(problems=(error.message,)))
    return combined(done)


def combined(found: Sequence[Mirrored]) -> Mirrored:
    """Combine the results of several mirrors."""
    names = ("pulled", "pushed", "merged", "deleted", "kept", "conflicts", "problems")
    summed: dict[str, Any] = {
        name: sum((getattr(result, name) for result in found), start=() if name in names[5:] else 0)
        for name in names
    }
    return Mirrored(**summed)


def mirrors(group: Group, author: str, folder: Path | None = None) -> list[Mirror]:
    """Return the mirrors of the group's own pages and of those that all groups read, for the workspace or another
    folder.
    """
    from nanoclaw_memory.store.pages import PageTable
    from nanoclaw_memory.upkeep.mirror import Mirror
    from nanoclaw_memory.workspace.files import make_folder

    resources = group.resources
    name = "workspace" if folder is None else fingerprint(str(folder))[:16]
    common = group.home.shared if folder is None else folder / COMMON
    make_folder(common)

    def mirror_of(
        where: Path, mark: str, left_out: tuple[str, ...] = (), only: tuple[str, ...] = ()
    ) -> Mirror:
        of_all = mark == "-common"
        return Mirror(
            folder=where,
            table=PageTable(resources.common_pages() if of_all else resources.database("pages")),
            state_file=group.data / "mirrors" / f"{name}{mark}.json",
            now=group.moment,
            author=author,
            left_out=left_out,
            only=only,
            deletes=resources.deleting_pages,
            forgets=group.intake.forgets,
            propose=functools.partial(_propose, group, f"{COMMON}/" if of_all else ""),
        )

    if folder is not None or group.scope.group == MAIN_GROUP:
        return [mirror_of(folder or group.workspace, "", (COMMON,)), mirror_of(common, "-common")]
    beside = mirror_of(group.home.group_root(group.scope.group), "-group", only=(GROUP_PAGE,))
    return [mirror_of(group.workspace, "", (COMMON, GROUP_PAGE)), beside, mirror_of(common, "-common")]


def _propose(group: Group, prefix: str, conflict: PageConflict) -> None:
    """Propose both texts of a conflict to a person; the page keeps the one that came first."""
    import difflib

    path = prefix + conflict.path
    diff = difflib.unified_diff(
        conflict.theirs.split("\n"), conflict.mine.split("\n"), path, path, lineterm="", n=1
    )
    group.proposals.propose(
        "conflict",
        {"table": "pages", "file": path, "older": conflict.theirs, "newer": conflict.mine},
        why="two edited the same lines without knowing of each other",
        key=f"pages\n{path}\n{conflict.theirs}\n{conflict.mine}",
        moment=group.moment(),
        source=path,
        diff="\n".join(diff),
        effect="puts the lines with + into the page in place of those with -; rejected, the page stays",
    )


def mirror(group: Group, folder: Path, wait: Callable[[float], bool] | None = None) -> Iterator[Mirrored]:
    """Keep a directory and the team's pages synchronised until `wait` returns True, or once without it."""
    group.require_owner("mirror pages")
    group.require_workspace()
    if not group.resources.store.url:
        raise Refused(
            "the pages of this home are files already",
            f"work on {group.workspace}, or set store.url: docs/team.md",
        )
    folder = folder.expanduser().resolve()
    home = group.home.root.resolve()
    if folder.is_relative_to(home) or home.is_relative_to(folder):
        raise Refused(f"{folder} and the home {home} are one inside the other", "give a folder of its own")
    folder.mkdir(parents=True, exist_ok=True)
    quiet, began = wait is not None, False
    while True:
        try:
            done = combined([one.sync(quiet) for one in mirrors(group, group.scope.author, folder)])
            if done.changed:
                synchronise(group, group.scope.author)
            began = True
        except StoreError as error:  # a server that was away has returned
            if not began or not quiet:
                raise
            done = Mirrored(problems=(error.message,))
        yield done
        if wait is None or wait(1.0):
            return
