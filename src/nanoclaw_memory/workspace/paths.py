"""Paths of a home and its groups, and the one function that decides what a scope may see."""

from __future__ import annotations

import fnmatch
import functools
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path, PurePosixPath

import msgspec

from nanoclaw_memory.errors import InvalidValue, PathRefused, Refused
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.types import MAIN_GROUP, Scope

# Not an option of a command, nor a second `main` on a case-insensitive disk.
_GROUP = regex(r"(?:main|(?!(?i:main)\Z)[a-zA-Z0-9_][a-zA-Z0-9_-]{0,63})\Z")
_SLUG = regex(r"[a-z0-9][a-z0-9._-]{0,63}\Z")
_DAILY = regex(r"memory/(?:archive/|shared/)?(\d{4}-\d{2}-\d{2})\.md\Z")
_PROJECT = regex(r"(?:memory/(?:project|active-context)|shared/project)-([a-z0-9][a-z0-9._-]{0,63})\.md\Z")
_MARKS = ("workspace", "nanoclaw.json", "data", "groups", "store", "shared")
_SETTLED_NS = 2_000_000_000  # a folder that changed later may change again within one tick of its clock
_FOLDERS = ("memory", "conversations", "shared")
# In the workspace while a restore is decided and not finished; every command checks, so it costs one stat.
PENDING_RESTORE = "memory/checkpoints/.restore"
# in the data folder: a copy of the fingerprints in forgotten.db, from which it can be repaired
FORGOTTEN_MARK = "forgotten"
ARCHIVE = "memory/archive"  # expired log lines, and what left MEMORY.md
WORKING_MEMORY = (
    "memory/active-context"  # how its pages begin; a session's end copies lines from elsewhere into them
)
SHARED_LOGS = "memory/shared"  # daily logs that shared scopes write; private ones and upkeep write none there
SHARED_TALKS = "conversations/shared"  # archives of shared chats
SHARED_FOLDERS = (SHARED_LOGS, SHARED_TALKS)
GROUP_PAGE = "CLAUDE.md"  # beside the workspace, where the group's agent works
MAX_NAME = 255
MAX_PATH = 1024


class Home(msgspec.Struct, frozen=True):
    """The directory of a memory; a group is a directory with `workspace/` and `data/`."""

    root: Path

    def group_root(self, group: str) -> Path:
        """Return the directory of a group; the main group's is the home itself."""
        check_group(group)
        return self.root if group == MAIN_GROUP else self.root / "groups" / group

    def workspace(self, group: str) -> Path:
        return self._own(group, "workspace")

    def data(self, group: str) -> Path:
        return self._own(group, "data")

    def _own(self, group: str, name: str) -> Path:
        """Return a directory of a group. Its agent may write there, so a link in its place would lead to others."""
        root = self.group_root(group)
        folder = root / name
        if group != MAIN_GROUP and (root.is_symlink() or folder.is_symlink()):
            raise PathRefused(f"{name} of {group} is a link", "replace it by a directory of its own")
        return folder

    def group_page(self, group: str) -> Path:
        """Return the group's CLAUDE.md if it is a plain file: its agent could put a link to others there."""
        return self.group_root(group) / GROUP_PAGE

    def has_group_page(self, group: str) -> bool:
        page = self.group_page(group)
        linked = page.is_symlink() or (group != MAIN_GROUP and self.group_root(group).is_symlink())
        return page.is_file() and not linked

    def exists(self) -> bool:
        """Return whether there is a memory; an empty or foreign directory is none."""
        return any((self.root / name).exists() for name in _MARKS)

    @property
    def shared(self) -> Path:
        return self.root / "shared"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def models(self) -> Path:
        return self.root / "models"

    @property
    def settings_file(self) -> Path:
        return self.root / "nanoclaw.json"

    def groups(self) -> list[str]:
        """Return all groups that have a directory, the main one first."""
        folder = self.root / "groups"
        names = [entry.name for entry in folder.iterdir() if entry.is_dir()] if folder.is_dir() else []
        # Directories of a version 1 are no groups: its main group, and what all groups read.
        old = {MAIN_GROUP} | ({"global"} - {name for name in names if (folder / name / "workspace").is_dir()})
        return [MAIN_GROUP, *sorted(name for name in names if _GROUP.match(name) and name not in old)]


def home_at(home: Path | str | None) -> Path:
    """Return the named home, else `NANOCLAW_HOME`, else `~/.nanoclaw`; absolute, since agents work elsewhere."""
    named = home or os.environ.get("NANOCLAW_HOME") or Path.home() / ".nanoclaw"
    return Path(named).expanduser().absolute()


def check_group(name: str) -> str:
    """Return a valid group name, or raise an error that describes valid names."""
    if not _GROUP.match(name):
        hint = (
            "use 1 to 64 letters, digits, underscores and, but for the first, hyphens; `main` is the main one"
        )
        raise PathRefused(f"group name {name[:80]!r} is refused", hint)
    return name


def check_slug(slug: str) -> str:
    """Return a valid slug of a project or runbook, or raise an error that describes valid slugs."""
    if not _SLUG.match(slug) or ".." in slug:
        raise InvalidValue(
            f"slug {slug[:80]!r} is refused", "use lower-case letters, digits, hyphens: payment-api"
        )
    return slug


def log_path(day: date, private: bool = True) -> str:
    """Return the daily log's path in the workspace; shared scopes have their own log."""
    return f"{'memory' if private else SHARED_LOGS}/{day.isoformat()}.md"


def archive_path(day: date) -> str:
    """Return the archive for a day's expired log lines: a file per month, a heading per day."""
    return f"{ARCHIVE}/{day:%Y-%m}.md"


def day_in_path(relative: str) -> date | None:
    """Return the day of a daily log's path; None for every other file."""
    match = _DAILY.match(relative)
    try:
        return date.fromisoformat(match.group(1)) if match else None
    except ValueError:
        return None


def project_in_path(relative: str) -> str:
    """Return the slug of a project's page (its memory or its focus); empty for every other file."""
    match = _PROJECT.match(relative)
    return match[1] if match else ""


def of_shared_chats(relative: str) -> bool:
    """Return whether a file contains what was written or said in shared scopes."""
    return relative.startswith(f"{SHARED_TALKS}/") or bool(
        relative.startswith(f"{SHARED_LOGS}/") and day_in_path(relative)
    )


def visible(scope: Scope, relative: str, shared_files: Iterable[str]) -> bool:
    """Return whether a scope may see a file: everything in private, otherwise shared names and shared logs.

    Boot, search, get, recall, resources and hooks all call this. `relative` is the path in the workspace, or
    `shared/…` for what all groups may read.
    """
    if scope.private or of_shared_chats(relative):
        return True
    if relative == GROUP_PAGE and scope.group != MAIN_GROUP:  # written for everybody in the group's chat
        return True
    return any(_matches(relative, pattern) for pattern in shared_files)


def _matches(relative: str, pattern: str) -> bool:
    """Return whether a path matches a pattern: `*` stays within a folder, `/**` at the end means everything below."""
    parts, wanted = relative.split("/"), pattern.removesuffix("/**").split("/")
    fits = len(parts) > len(wanted) if pattern.endswith("/**") else len(parts) == len(wanted)
    return fits and all(map(fnmatch.fnmatchcase, parts, wanted))


def relative_to_memory(name: str) -> str:
    """Return the workspace path for a path as a caller writes it."""
    if "\x00" in name:
        raise PathRefused("the path holds a NUL character", "give a plain file name such as MEMORY.md")
    if any("\ud800" <= character <= "\udfff" for character in name):
        raise PathRefused("the path is not valid UTF-8", "give a plain file name such as MEMORY.md")
    if len(name) > MAX_PATH or any(len(part.encode()) > MAX_NAME for part in name.split("/")):
        raise PathRefused(
            f"the path is too long ({len(name):,} characters)", "give a file name of this workspace"
        )
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or name.startswith("~"):
        raise PathRefused(
            f"{name!r} is outside the memory",
            "give a path in the workspace, such as MEMORY.md or memory/2026-02-23.md",
        )
    if not path.parts:
        raise PathRefused("the path is empty", "give a file name such as MEMORY.md")
    return str(path)


def locate(home: Home, scope: Scope, name: str, shared_files: Iterable[str]) -> tuple[str, Path]:
    """Return the workspace path and the real path of a memory file, existing or not; refuse what is not memory.

    `x.md` may mean `memory/x.md` or `conversations/x.md`.
    """
    relative = relative_to_memory(name)
    workspace = home.workspace(scope.group)
    parts = PurePosixPath(relative).parts
    patterns = tuple(shared_files)

    def is_there(path: str) -> bool:  # invisible files are not looked for: no answer may reveal them
        return visible(scope, path, patterns) and (workspace / path).exists()

    if parts[0] not in _FOLDERS and not (len(parts) == 1 and is_there(relative)):
        below = (f"memory/{relative}", f"conversations/{relative}")
        relative = next(filter(is_there, below), relative)
    parts = PurePosixPath(relative).parts
    if (parts[0] not in _FOLDERS and len(parts) > 1) or not relative.endswith(".md"):
        raise PathRefused(
            f"{name!r} is not a memory file",
            "memory files are *.md in the workspace, memory/, conversations/ and shared/",
        )
    if not visible(scope, relative, patterns):
        raise _private(relative)
    if relative == GROUP_PAGE and not (workspace / relative).exists() and home.has_group_page(scope.group):
        return relative, home.group_page(scope.group)
    base = home.shared if parts[0] == "shared" else workspace
    real = home.shared.joinpath(*parts[1:]) if parts[0] == "shared" else workspace / relative
    resolved = within(real, base)
    if not scope.private and resolved != base.resolve() / real.relative_to(base):
        raise _private(relative)
    return relative, real


def _private(relative: str) -> PathRefused:
    return PathRefused(
        f"{relative} is private",
        "a shared scope (--shared) sees the files that privacy.sharedFiles names",
    )


def within(path: Path, base: Path) -> Path:
    """Return the resolved path; refuse a link that leads out of `base`."""
    try:
        resolved = path.resolve()
    except (RuntimeError, OSError):
        raise PathRefused(f"{path.name} is a link that leads to itself", "remove the link") from None
    if not resolved.is_relative_to(base.resolve()):
        raise PathRefused(f"{path.name} is a link that leaves the workspace", "replace it by the file itself")
    return resolved


def require_owner(scope: Scope, what: str) -> None:
    """Refuse anybody but the owner in private."""
    if not scope.private:
        raise PathRefused(f"a shared scope may not {what}", "ask in a private one: without --shared")
    if scope.origin != "owner":
        raise Refused(f"only a person may {what}", "run it at the command line")


def is_of_others(home: Home, scope: Scope, path: Path) -> bool:
    """Return whether a path leads to a file of this home that belongs to others; elsewhere the operating system
    decides.

    The main group in private may read the whole home, another group its own files, a shared scope only what its agent
    writes.
    """
    if scope.group == MAIN_GROUP and scope.private:
        return False
    own = [agent_home(home, scope.group)]
    own += [home.group_root(scope.group), home.shared] if scope.private else []
    real = path.resolve()
    mine = any(real.is_relative_to(folder.resolve()) for folder in own)
    return real.is_relative_to(home.root.resolve()) and not mine


def refuse_other_groups(home: Home, scope: Scope, path: Path) -> None:
    """Refuse a file of this home that belongs to others, existing or not, and a folder with such files."""
    below = path.rglob("*") if path.is_dir() and not is_of_others(home, scope, path) else ()
    if any(is_of_others(home, scope, one) for one in (path, *below)):
        raise PathRefused(f"{path.name} belongs to another group", "give a file of this group")


def memory_files(home: Home, scope: Scope, shared_files: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield every Markdown file this scope may see, with its workspace path; links to the outside are left out."""
    patterns = tuple(shared_files)
    workspace = home.workspace(scope.group)
    places = None if scope.private else (*patterns, GROUP_PAGE, *(f"{one}/**" for one in SHARED_FOLDERS))
    for base, prefix in ((workspace, ""), (home.shared, "shared/")):
        for relative, path in _markdown_below(base, prefix, places):
            # A shared link may lead to a page that is not shared.
            if visible(scope, relative, patterns) and (scope.private or not path.is_symlink()):
                yield relative, path
    beside = home.has_group_page(scope.group) and not (workspace / GROUP_PAGE).exists()
    if beside and visible(scope, GROUP_PAGE, patterns):
        yield GROUP_PAGE, home.group_page(scope.group)


def _markdown_below(base: Path, prefix: str, places: tuple[str, ...] | None) -> Iterator[tuple[str, Path]]:
    """Yield the Markdown files below a folder; `places` restricts the search.

    Otherwise a shared scope could infer the number of private files from the time it takes.
    """
    if not base.is_dir():
        return
    root = base.resolve()
    for folder, inside, names in _walked(str(base), prefix, places):
        for name in names:
            path = Path(folder, name)
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                continue
            yield inside + name, path


def _walked(
    folder: str, inside: str, places: tuple[str, ...] | None
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield a folder and those below it, each with its path in the memory and its Markdown files."""
    try:
        changed_at = os.stat(folder).st_mtime_ns  # noqa: PTH116
        # The visible names of a folder are cached until they change, unless they may still change unnoticed.
        kept = places is not None and time.time_ns() - changed_at > _SETTLED_NS
        list_names = _names_in if kept else _names_in.__wrapped__
        folders, names = list_names(folder, inside, places, changed_at)
    except OSError:
        return
    yield folder, inside, names
    for name in folders:
        yield from _walked(f"{folder}/{name}", f"{inside}{name}/", places)


@functools.lru_cache(maxsize=512)
def _names_in(
    folder: str, inside: str, places: tuple[str, ...] | None, changed_at: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the folders that may lead to a place, and the Markdown files that may be one, both sorted."""
    with os.scandir(folder) as found:
        entries = [entry for entry in found if entry.name[0] != "."]
    files = [entry.name for entry in entries if entry.name.endswith(".md") and not entry.is_dir()]
    folders = (
        entry.name
        for entry in entries
        # Checkpoints are copies of memory, not memory.
        if entry.name != "checkpoints"
        and _leads_to(inside + entry.name, places)
        and entry.is_dir(follow_symlinks=False)
    )
    return tuple(sorted(folders)), tuple(sorted(files if places is None else _named(inside, files, places)))


def _leads_to(folder: str, places: Sequence[str] | None) -> bool:
    """Return whether one of the places may be in a folder or below it."""
    parts = folder.split("/")
    return places is None or any(
        (len(wanted) > len(parts) or wanted[-1] == "**") and all(map(fnmatch.fnmatchcase, parts, wanted))
        for wanted in (place.split("/") for place in places)
    )


def _named(folder: str, names: Sequence[str], places: Sequence[str]) -> set[str]:
    """Return the names in a folder (which ends with a slash) that may be among the places."""
    found: set[str] = set()
    for place in places:
        where, last = f"/{place}".rsplit("/", 1)
        if place.endswith("/**") and _matches(f"{folder}x", place):
            return set(names)
        if _matches(f"/{folder}"[:-1], where):
            found.update(fnmatch.filter(names, last))
    return found


def agent_home(home: Home, group: str) -> Path:
    """Return the HOME of a group's agent; its `.claude` contains settings and raw transcripts."""
    return home.root / "data" / "sessions" / check_group(group)


def files_below(folder: Path, suffix: str) -> list[Path]:
    """Return the files under a directory, sorted, without those behind links."""
    if not folder.is_dir() or folder.is_symlink():
        return []
    found = [
        Path(where, name)
        for where, _, names in os.walk(folder)
        for name in names
        if name.endswith(suffix) and not Path(where, name).is_symlink()
    ]
    return sorted(found)
