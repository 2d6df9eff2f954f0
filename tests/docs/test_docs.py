"""The documentation tells the truth: generated pages are current, examples run, the tree is complete."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "nanoclaw_memory"
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
EXAMPLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)


def generator():
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name", ["docs/commands.md", "docs/settings.md", "docs/code-map.md", "docs/README.md"]
)
def test_a_generated_page_is_what_the_code_says(name):
    written = (ROOT / name).read_text(encoding="utf-8")
    assert written == generator().PAGES[name](), "run: make docs"


def test_every_command_has_an_example_in_its_help():
    module = generator()
    import click

    root = click.Context(module.cli, info_name="ncm")
    silent = [
        path
        for path, command in module.walk(module.cli, root)
        if not isinstance(command, click.Group)
        and f"{path} " not in (command.help or "") + " "
        and f"{path}\n" not in (command.help or "") + "\n"
    ]
    assert silent == []


def test_every_setting_has_a_sentence():
    from nanoclaw_memory.settings import leaves

    assert [leaf.path for leaf in leaves() if not leaf.description] == []


def test_every_command_is_named_in_a_written_page():
    module = generator()
    import click

    root = click.Context(module.cli, info_name="ncm")
    written = "\n".join(page.read_text(encoding="utf-8") for page in PAGES if page.name != "commands.md")
    names = [path for path, command in module.walk(module.cli, root) if path.count(" ") == 1]
    assert [name for name in names if not re.search(rf"\b{re.escape(name)}\b", written)] == []


def test_every_page_has_its_place_in_the_reading_order():
    listed = [name for names in generator().READING_ORDER.values() for name in names]
    assert sorted(listed) == sorted(
        path.stem for path in (ROOT / "docs").glob("*.md") if path.stem != "README"
    )


def test_the_readme_shows_how_to_install_and_connect_before_anything_else():
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").split("\n")[:20]
    assert any(line.startswith("ncm install claude-code") for line in first_screen)
    assert any("uv tool install nanoclaw-memory" in line for line in first_screen)


def test_every_figure_of_the_readme_is_in_the_measurements():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    claims = text.partition("## What it is good at")[2].partition("## For contributors")[0]
    figures = set(re.findall(r"(?<![\w.])\.?\d[\d,.]*\d\b", re.sub(r"`[^`]*`", "", claims)))
    assert len(figures) > 8
    measured = (ROOT / "docs" / "measurements.md").read_text(encoding="utf-8")
    assert [
        figure for figure in sorted(figures) if not re.search(rf"(?<![\d.]){re.escape(figure)}\b", measured)
    ] == []


def test_the_readme_fits_on_a_screen():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 80


def test_the_python_of_the_readme_runs(tmp_path: Path):
    (program,) = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S | re.M
    )
    environment = {**os.environ, "HOME": str(tmp_path), "NANOCLAW_HOME": str(tmp_path / ".nanoclaw")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "The launch moved to Tuesday" in done.stdout


def test_every_module_opens_with_a_sentence_for_the_tree():
    assert [path.name for path in SOURCE.rglob("*.py") if not generator().phrase(path)] == []


def test_links_between_pages_lead_somewhere():
    broken = [
        f"{page.name}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run_in_order(page: Path, tmp_path: Path):
    examples = EXAMPLE.findall(page.read_text(encoding="utf-8"))
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "NANOCLAW_HOME": str(tmp_path / ".nanoclaw"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    for example in examples:
        for command, expected in steps(example):
            done = subprocess.run(
                command,
                shell=True,
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
            position = 0
            for line in expected:
                found = done.stdout.find(line, position)
                assert found >= 0, f"$ {command}\nexpected: {line}\ngot:\n{done.stdout}{done.stderr}"
                position = found + len(line)


def steps(example: str) -> list[tuple[str, list[str]]]:
    """The commands of an example, each with the output lines shown below it; `…` stands for any text."""
    found: list[tuple[str, list[str]]] = []
    for line in example.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> ") and found:
            found[-1] = (found[-1][0] + "\n" + line[2:], [])
        elif line.strip() and found and line.strip() != "…":
            found[-1][1].extend(part.strip() for part in line.split("…") if part.strip())
    return found


# Questions that the pages raise, and the words by which the code map answers each of them in one line.
WHERE = {
    "Where is a boot context cut that is longer than a client accepts?": ("hooks", "client", "cut"),
    "Where are answers of the graph kept for the next hooks?": ("facts", "cache", "hooks"),
    "Where is it decided whether a passage helps with a message?": ("how probable", "passage helps"),
    "Where are missed days of cooling made up?": ("cool", "missed days"),
    "Where is it counted how many entries a session stores?": ("entries", "limits per session"),
    "Where is a typo in a name understood?": ("names", "typos"),
    "Where is it decided which log lines deserve MEMORY.md?": ("log lines", "memory.md", "select"),
    "Where is the bearer token checked?": ("bearer token",),
    "Where are the exports of ChatGPT and Codex parsed?": ("parse", "exports", "chatgpt", "codex"),
    "Where is a forgotten text kept out on its way in?": ("forgotten texts are refused",),
    "Where are credentials found and masked?": ("find credentials", "mask"),
}


@pytest.mark.parametrize("question", WHERE)
def test_the_code_map_answers_in_one_line(question: str):
    page = (ROOT / "docs" / "code-map.md").read_text(encoding="utf-8")
    modules = [line for line in page.splitlines() if re.match(r" +\w+\.py ", line)]
    assert len(modules) > 100
    found = [line for line in modules if all(word in line.lower() for word in WHERE[question])]
    assert len(found) == 1, found
