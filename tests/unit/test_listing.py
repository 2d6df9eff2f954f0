"""Watched pages are listed again only when something changed, and never lag behind the disk."""

import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanoclaw_memory.workspace.folder_watch import FolderWatch
from nanoclaw_memory.workspace.listing import PageListing, WatchedPages, memory_pages
from nanoclaw_memory.workspace.paths import Home

NAMES = ("a.md", "b.md", "memory/a.md", "memory/deep/er/c.md", "notes/d.md")
FOLDERS = ("memory", "memory/deep", "notes")
STEPS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(NAMES), st.text("xy", min_size=1, max_size=5)),
    st.tuples(st.just("delete"), st.sampled_from((*NAMES, *FOLDERS)), st.just("")),
    st.tuples(st.just("move"), st.sampled_from((*NAMES, *FOLDERS)), st.sampled_from((*NAMES, *FOLDERS))),
)


def _change(root: Path, kind: str, name: str, other: str) -> None:
    path, target = root / name, root / other
    if kind == "write" and not path.is_dir() and not path.parent.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as handle:  # in place: the folder's own time stays
            handle.write(other)
    elif kind == "delete" and path.is_dir():
        shutil.rmtree(path)
    elif kind == "delete":
        path.unlink(missing_ok=True)
    elif path.exists() and not target.exists() and target.parent.is_dir() and not target.is_relative_to(path):
        path.rename(target)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "workspace").mkdir()
    return Home(tmp_path)


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(STEPS, max_size=12))
def test_the_watched_listing_is_what_is_on_disk_after_every_change(tmp_path_factory, steps):
    home = Home(tmp_path_factory.mktemp("home"))
    (home.root / "workspace").mkdir()
    watched = WatchedPages(home, "main")
    for kind, name, other in steps:
        with suppress(FileExistsError, NotADirectoryError):  # a file moved to where a folder was
            _change(home.root / "workspace", kind, name, other)
        assert watched.pages() == memory_pages(home, "main")


def test_a_folder_that_comes_later_is_seen(tmp_path: Path):
    watched = WatchedPages(Home(tmp_path), "main")
    assert watched.pages() == []
    (tmp_path / "shared").mkdir()
    assert watched.pages() == []
    (tmp_path / "shared" / "project-x.md").write_text("# X")
    assert [seen.relative for seen in watched.pages()] == ["shared/project-x.md"]


def test_nothing_is_listed_while_nothing_changes(home: Home, monkeypatch):
    (home.root / "workspace" / "a.md").write_text("x")
    listing = PageListing(home, "main")
    listing.watch()
    first = listing.pages()
    monkeypatch.setattr("nanoclaw_memory.workspace.listing.memory_pages", None)
    assert listing.pages() is first


def test_what_is_no_page_lists_nothing_again(home: Home, monkeypatch):
    listing = PageListing(home, "main")
    listing.watch()
    first = listing.pages()
    (home.root / "writes").write_text("every write to a database is counted here")
    (home.root / "workspace" / "picture.png").write_bytes(b"x")
    monkeypatch.setattr("nanoclaw_memory.workspace.listing.memory_pages", None)
    assert listing.pages() is first


def test_where_changes_are_not_reported_every_look_lists(home: Home, monkeypatch):
    monkeypatch.setattr(FolderWatch, "_reports", lambda self, path: False)
    listing = PageListing(home, "main")
    listing.watch()
    assert listing.pages() == []
    (home.root / "workspace" / "a.md").write_text("x")
    assert [seen.relative for seen in listing.pages()] == ["a.md"]
