"""A team's pages: the workspace of a home on PostgreSQL mirrors a table, before and after whatever may see it."""

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
    from nanoclaw_memory.upkeep.mirror import Conflicting, Mirror

C = TypeVar("C", bound=type)
LOOK_SECONDS = 1.0
AWAY_SECONDS = 5.0  # a database that could not be asked is left in peace for so long
COMMON = "shared"  # the folder of pages that all groups read; they are in a table of their own
_APART = ("close", "for_session", "fenced", "status")
_DELETING = ("forget", "restore_checkpoint")  # may take all pages of a folder away


def with_pages(cls: C) -> C:
    """Have every public method of a class see the team's pages, and the team what it wrote."""
    known = {name: method for base in reversed(cls.__mro__) for name, method in vars(base).items()}
    for name, method in known.items():
        if not name.startswith("_") and name not in _APART and type(method).__name__ == "function":
            setattr(cls, name, _synchronised(method))
    return cls


def _synchronised(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        group = getattr(self, "_group", None) or self.group
        with shown(group, deletes=method.__name__ in _DELETING):
            return method(self, *args, **kwargs)

    return call


@contextmanager
def shown(group: Group, writes: bool = True, deletes: bool = False) -> Iterator[None]:
    """Synchronise around a call; within another one it is done already."""
    resources = group.resources
    if resources.showing_pages or not has_team(group):
        yield
        return
    resources.showing_pages = True
    # A call looks at the files once, after it if it may write; a server that is asked, once a second.
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
    """Whether the pages of this home belong to a team."""
    try:
        return bool(group.resources.store.url)
    except SettingsError:  # whoever uses the settings reports it
        return False


def team_tables(group: Group) -> list[Database]:
    """The tables of a team's pages: of this group and, for the main one, of all."""
    if not has_team(group):
        return []
    common = [group.resources.common_pages()] if group.scope.group == MAIN_GROUP else []
    return [group.resources.database("pages"), *common]


def synchronise(group: Group, author: str, looking: bool = True) -> Mirrored:
    """Bring the workspace and the table to the same state; files alone serve while the database is away.

    Without `looking` only what is new in the table counts.
    """
    resources = group.resources
    if not group.workspace.is_dir():
        return Mirrored()
    if time.monotonic() < resources.pages_away_until:
        return Mirrored(problems=("the database is away: pages may be old",))
    done: list[Mirrored] = []
    try:
        for one in mirrors(group, author):
            done.append(one.sync(looking=looking))
        if looking:
            resources.pages_seen = time.monotonic()
    except NanoClawError as error:
        group.telemetry.record("pages", error=error.message)
        if not done:  # else it is the pages of all groups, which an agent's role may only read
            resources.pages_away_until = time.monotonic() + AWAY_SECONDS
        done.append(Mirrored(problems=(error.message,)))
    return together(done)


def together(found: Sequence[Mirrored]) -> Mirrored:
    """What several mirrors did."""
    names = ("pulled", "pushed", "merged", "deleted", "kept", "conflicts", "problems")
    summed: dict[str, Any] = {
        name: sum((getattr(one, name) for one in found), start=() if name in names[5:] else 0)
        for name in names
    }
    return Mirrored(**summed)


def mirrors(group: Group, author: str, folder: Path | None = None) -> list[Mirror]:
    """The mirrors of the group's own pages and of what all groups read: of the workspace, or of another folder."""
    from nanoclaw_memory.store.pages import PageTable
    from nanoclaw_memory.upkeep.mirror import Mirror
    from nanoclaw_memory.workspace.files import make_folder

    resources = group.resources
    name = "workspace" if folder is None else fingerprint(str(folder))[:16]
    common = group.home.shared if folder is None else folder / COMMON
    make_folder(common)

    def made(where: Path, mark: str, left_out: tuple[str, ...] = (), only: tuple[str, ...] = ()) -> Mirror:
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
        return [made(folder or group.workspace, "", (COMMON,)), made(common, "-common")]
    beside = made(group.home.group_root(group.scope.group), "-group", only=(GROUP_PAGE,))
    return [made(group.workspace, "", (COMMON, GROUP_PAGE)), beside, made(common, "-common")]


def _propose(group: Group, prefix: str, conflict: Conflicting) -> None:
    """Let a person decide between two texts of the same lines; the page has the one that came first."""
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
    """Keep a directory and the team's pages the same until `wait` returns True; once without it."""
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
            done = together([one.sync(quiet) for one in mirrors(group, group.scope.author, folder)])
            if done.changed:
                synchronise(group, group.scope.author)
            began = True
        except StoreError as error:  # a server that was there comes back
            if not began or not quiet:
                raise
            done = Mirrored(problems=(error.message,))
        yield done
        if wait is None or wait(1.0):
            return
