"""Which project a working directory names: its repository's, else its own, and sometimes none."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from nanoclaw_memory.project import is_inside, project_of, slug_of


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is neither the home nor a temporary one, though pytest made it there."""
    monkeypatch.setattr("nanoclaw_memory.project._TEMPORARY", ())
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def repository(folder: Path) -> Path:
    (folder / ".git").mkdir(parents=True)
    return folder


def test_a_directory_belongs_to_the_repository_around_it(work: Path):
    root = repository(work / "Keystone")
    deep = root / "src" / "api"
    deep.mkdir(parents=True)
    assert project_of(str(root)) == project_of(str(deep)) == "keystone"


def test_a_directory_without_a_repository_has_its_own_name(work: Path):
    assert project_of(str(work / "tax 2026")) == "tax-2026"  # it need not exist


def test_a_worktree_belongs_to_its_main_repository(work: Path):
    root = work / "keystone"
    root.mkdir()
    run = ["git", "-C", str(root), "-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run([*run, "init", "-q"], check=True)
    subprocess.run([*run, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    subprocess.run([*run, "worktree", "add", "-q", str(work / "hotfix")], check=True)
    assert (work / "hotfix" / ".git").is_file()
    assert project_of(str(work / "hotfix")) == "keystone"


def test_a_submodule_is_a_project_of_its_own(work: Path):
    outer = repository(work / "outer")
    inner = outer / "vendor" / "inner"
    inner.mkdir(parents=True)
    (inner / ".git").write_text("gitdir: ../../.git/modules/inner\n")
    assert project_of(str(inner)) == "inner"


def test_home_root_and_temporary_directories_name_no_project(work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(work))
    monkeypatch.setenv("TMPDIR", str(work / "scratch"))
    (work / ".git").mkdir()  # dotfiles under version control make no project of everything below
    assert project_of(str(work)) == project_of("/") == project_of(str(work / "scratch" / "a" / "b")) == ""
    assert project_of(str(work / ".config")) == ""
    assert project_of(str(work / "notes")) == "notes"
    assert project_of(str(repository(work / "scratch" / "trial"))) == "trial"


@pytest.mark.parametrize(
    "directory", ["", "keystone", "../up", "C:\\work\\keystone", "/a\0b", "/\udcff\ud800", "/x" * 5_000]
)
def test_what_is_no_directory_names_no_project(directory: str):
    assert project_of(directory) == ""
    assert not is_inside(directory, ["/work"])


def test_a_pipe_called_git_is_not_waited_for(work: Path):
    (work / "odd").mkdir()
    os.mkfifo(work / "odd" / ".git")
    assert project_of(str(work / "odd")) == "odd"


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("My_App.v2", "my_app.v2"),
        ("a..b", "a-b"),
        ("-x-", "x"),
        ("x\ny", "x-y"),
        ("k" * 99, "k" * 64),
        ("r.git", "r"),
    ],
)
def test_a_name_becomes_a_slug(name: str, slug: str):
    assert slug_of(name) == slug


def test_names_in_other_scripts_stay_apart():
    assert slug_of("日本") != slug_of("中国")


def test_a_place_covers_what_is_below_it_and_its_worktrees(work: Path):
    root = repository(work / "keystone")
    assert is_inside(str(root / "src"), [str(root)])
    assert not is_inside(str(work / "keystone-2"), [str(root)])
