"""The project of a working directory: its repository's name, else its own; fast, because every hook looks it up."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import fingerprint

MAX_DIRECTORY = 4_096
MAX_SLUG = 64
EVERYWHERE_OFF = "/"  # in the list of places that are off: all directories, and sessions that name none
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm", "/private/tmp", "/var/folders")  # noqa: S108 (only compared)
_OTHER = regex(r"[^a-z0-9._-]+|\.{2,}")


def slug_of(name: str) -> str:
    """Return a directory's name as a slug; a name without Latin letters gets a short fingerprint."""
    plain = _OTHER.sub("-", name.lower().removesuffix(".git"))[:MAX_SLUG].strip("-._")
    return plain or f"project-{fingerprint(name)[:8]}"


def project_of(directory: str) -> str:
    """Return the slug of the project; empty for the home directory, `/`, temporary directories and invalid paths."""
    place = place_of(directory)
    return slug_of(Path(place).name) if place else ""


def place_of(directory: str) -> str:
    """Return the root of the repository around a directory, else the directory; empty where there is no project.

    A worktree's root is that of its main repository. The directory need not exist: a container's may not, here.
    """
    try:
        start = _resolved(directory)
    except ValueError:  # a NUL, or bytes that no file name has
        return ""
    if start is None:
        return ""
    temporary = _temporary()
    nowhere = {Path("/"), Path(os.path.realpath(Path.home())), *temporary}
    for folder in (start, *start.parents):
        if folder in nowhere:
            break
        if (main := _repository(folder)) is not None:
            return str(main)
    named = not start.name.startswith(".") and not any(start.is_relative_to(other) for other in temporary)
    return str(start) if named and start not in nowhere else ""


def is_inside(directory: str, places: Iterable[str]) -> bool:
    """Return whether a directory, or the repository around it, is one of these places or below it."""
    listed = [Path(place).expanduser() for place in places]
    if Path(EVERYWHERE_OFF) in listed:
        return True
    try:
        own = [Path(place) for place in (place_of(directory), str(_resolved(directory) or "")) if place]
    except ValueError:
        return False
    return any(one.is_relative_to(place) for one in own for place in listed)


def _resolved(directory: str) -> Path | None:
    if not directory.startswith("/") or len(directory) > MAX_DIRECTORY:
        return None
    return Path(os.path.realpath(directory))


def _repository(folder: Path) -> Path | None:
    """Return the main repository of a folder with a `.git`, or None."""
    mark = folder / ".git"
    if not mark.is_file():
        return folder if mark.is_dir() else None
    try:
        with mark.open(encoding="utf-8", errors="replace") as handle:
            named, _, target = handle.read(MAX_DIRECTORY).partition("gitdir:")
    except OSError:
        return folder
    kept = Path(os.path.realpath(folder / target.strip())) if not named and "\0" not in target else folder
    if kept.parent.name != "worktrees" or not kept.is_dir():
        return folder  # a submodule is a repository of its own
    main = kept.parent.parent
    return main.parent if main.name == ".git" else main


def _temporary() -> list[Path]:
    named = [os.environ.get(name, "") for name in ("TMPDIR", "TEMP", "TMP")]
    return [Path(os.path.realpath(name)) for name in (*_TEMPORARY, *named) if name.startswith("/")]
