"""Paths: only memory is reached, by every scope only its own."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.errors import InvalidValue, NanoClawError, PathRefused
from nanoclaw_memory.types import Scope
from nanoclaw_memory.workspace.paths import (
    Home,
    check_group,
    check_slug,
    day_in_path,
    locate,
    memory_files,
    relative_to_memory,
    visible,
)

SHARED_FILES = ("SOUL.md", "memory/project-*.md", "shared/*")


@pytest.fixture
def house(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    for name in (
        "workspace/MEMORY.md",
        "workspace/SOUL.md",
        "workspace/memory/tools-x.md",
        "workspace/memory/checkpoints/a/workspace/MEMORY.md",
        "workspace/.git/readme.md",
        "shared/CLAUDE.md",
        "groups/family/workspace/MEMORY.md",
        "secret.md",
    ):
        (home.root / name).parent.mkdir(parents=True, exist_ok=True)
        (home.root / name).write_text(name)
    return home


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "~/x.md",
        "memory/../../secret.md",
        "..\\..\\secret.md",
        "shared/../secret.md",
        "",
        ".",
        "a\x00.md",
        "nul\x00/../x.md",
        "x" * 300 + ".md",
        "memory/" + "a/" * 600 + "x.md",
        "é" * 200 + ".md",
        "half\ud83d.md",
        "data/facts.db",
        "nanoclaw.json",
        "memory/x.txt",
        "data/notes.md",
        "groups/family/workspace/MEMORY.md",
    ],
)
def test_what_is_not_memory_is_refused(house: Home, name: str):
    with pytest.raises(PathRefused):
        locate(house, Scope(), name, SHARED_FILES)


@given(st.text(max_size=60))
def test_whatever_the_name_it_is_refused_or_stays_inside(name: str):
    home = Home(Path("/nowhere/home"))
    try:
        _, real = locate(home, Scope(), name, SHARED_FILES)
    except NanoClawError:
        return
    assert real.is_relative_to(home.workspace("main")) or real.is_relative_to(home.shared)
    assert ".." not in real.parts


@pytest.mark.parametrize(
    ("name", "relative"),
    [
        ("MEMORY.md", "MEMORY.md"),
        ("tools-x.md", "memory/tools-x.md"),
        ("memory/tools-x.md", "memory/tools-x.md"),
        ("./memory/tools-x.md", "memory/tools-x.md"),
        ("memory\\tools-x.md", "memory/tools-x.md"),
        ("shared/CLAUDE.md", "shared/CLAUDE.md"),
        ("not-yet.md", "not-yet.md"),
    ],
)
def test_a_memory_file_is_found_by_its_path_or_its_name_below_memory(house: Home, name: str, relative: str):
    assert locate(house, Scope(), name, SHARED_FILES)[0] == relative


def test_links_that_leave_the_workspace_are_refused(house: Home):
    workspace = house.workspace("main")
    (workspace / "out.md").symlink_to(house.root / "secret.md")
    (workspace / "memory" / "folder").symlink_to(house.root)
    (workspace / "loop.md").symlink_to("loop.md")
    (house.shared / "private.md").symlink_to(workspace / "MEMORY.md")
    for name in ("out.md", "memory/folder/secret.md", "loop.md", "shared/private.md"):
        with pytest.raises(PathRefused):
            locate(house, Scope(), name, SHARED_FILES)


def test_a_link_inside_the_workspace_is_followed(house: Home):
    (house.workspace("main") / "alias.md").symlink_to("MEMORY.md")
    assert locate(house, Scope(), "alias.md", SHARED_FILES)[1].read_text() == "workspace/MEMORY.md"


def test_a_shared_scope_reaches_only_what_is_named_as_shared(house: Home):
    scope = Scope(private=False)
    assert locate(house, scope, "SOUL.md", SHARED_FILES)[0] == "SOUL.md"
    with pytest.raises(PathRefused, match="private"):
        locate(house, scope, "MEMORY.md", SHARED_FILES)
    assert not visible(scope, "memory/checkpoints/a/workspace/MEMORY.md", SHARED_FILES)
    assert [name for name, _ in memory_files(house, scope, SHARED_FILES)] == ["SOUL.md", "shared/CLAUDE.md"]


PARTS = st.sampled_from(
    ["memory", "shared", "notes", "a.md", "project-x.md", "SOUL.md", "2026-02-23.md", "b"]
)
GLOBS = st.sampled_from(
    ["*", "**", "*.md", "m*", "project-*.md", "memory", "shared", "notes", "SOUL.md", "?.md"]
)


@given(
    files=st.lists(st.lists(PARTS, min_size=1, max_size=4), max_size=12),
    globs=st.lists(st.lists(GLOBS, min_size=1, max_size=4).map("/".join), max_size=4),
)
def test_a_shared_scope_lists_exactly_what_it_may_see(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[str]], globs: list[str]
):
    home = Home(tmp_path_factory.mktemp("home"))
    for parts in files:
        path = home.workspace("main").joinpath(*parts[:-1], parts[-1].removesuffix(".md") + ".md")
        if not any(parent.is_file() for parent in path.parents):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x") if not path.exists() else None
    everything = [name for name, _ in memory_files(home, Scope(), globs)]
    chat = Scope(private=False)
    seen = [name for name, _ in memory_files(home, chat, globs)]
    assert seen == [name for name in everything if visible(chat, name, globs)]


def test_a_shared_scope_enters_no_folder_that_is_private(house: Home, monkeypatch: pytest.MonkeyPatch):
    """How much there is would show in the time that it takes."""
    (house.workspace("main") / "memory/notes").mkdir()
    entered: list[str] = []
    scan = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: (entered.append(str(path)), scan(path))[1])
    list(memory_files(house, Scope(private=False), SHARED_FILES))
    folders = [Path(path).relative_to(house.root).as_posix() for path in entered]
    assert folders == ["workspace", "workspace/memory", "shared"]


def test_a_shared_scope_lists_a_folder_again_only_when_its_names_changed(
    house: Home, monkeypatch: pytest.MonkeyPatch
):
    """How many private names are in it would show in the time that it takes."""
    listed: list[str] = []
    scan = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: (listed.append(str(path)), scan(path))[1])
    folder = house.workspace("main") / "memory"

    def seen() -> list[str]:
        listed.clear()
        return [name for name, _ in memory_files(house, Scope(private=False), SHARED_FILES)]

    for place in (house.workspace("main"), folder, house.shared):
        os.utime(place, (1, 1))
    first = seen()
    assert listed and seen() == first and listed == []
    (folder / "project-new.md").write_text("x")
    assert "memory/project-new.md" in seen() and listed == [str(folder)]
    (folder / "project-newer.md").write_text("x")  # within the same moment, perhaps
    assert "memory/project-newer.md" in seen()


def test_memory_files_leave_out_checkpoints_hidden_folders_and_links_that_leave(house: Home):
    (house.workspace("main") / "out.md").symlink_to(house.root / "secret.md")
    names = [name for name, _ in memory_files(house, Scope(), SHARED_FILES)]
    assert names == ["MEMORY.md", "SOUL.md", "memory/tools-x.md", "shared/CLAUDE.md"]


def test_a_group_sees_only_its_own_directory(house: Home):
    names = [path for _, path in memory_files(house, Scope("family"), SHARED_FILES)]
    assert names == [house.root / "groups/family/workspace/MEMORY.md", house.shared / "CLAUDE.md"]


@pytest.mark.parametrize(
    "name",
    ["../x", "", "--home", "-x", "Main", "MAIN", "a/b", "a b", ".", "..", "x" * 65, "naïve", "a\n", "a\x00"],
)
def test_group_names_that_could_leave_are_refused(name: str):
    with pytest.raises(PathRefused):
        check_group(name)


@pytest.mark.parametrize("slug", ["", "../x", "A", "a..b", "-a", "a/b", "x" * 65, "a\n"])
def test_slugs_that_could_leave_are_refused(slug: str):
    with pytest.raises(InvalidValue):
        check_slug(slug)


def test_groups_are_listed_main_first(house: Home):
    (house.root / "groups" / "bad name").mkdir()
    assert house.groups() == ["main", "family"]


def test_the_day_of_a_log_is_in_its_name():
    assert day_in_path("memory/2026-02-23.md") == date(2026, 2, 23)
    assert day_in_path("memory/archive/2026-02-23.md") == date(2026, 2, 23)
    for other in ("memory/2026-02-30.md", "2026-02-23.md", "memory/2026-02-23.md.bak", "MEMORY.md"):
        assert day_in_path(other) is None


def test_paths_are_brought_into_one_form():
    assert relative_to_memory("./memory//x.md") == "memory/x.md"
