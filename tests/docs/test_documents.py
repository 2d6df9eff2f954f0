"""The table of the design documents is in step with the tests that it names."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "documents.md"
ROWS = {"000": 132, "001": 29, "002": 28, "003": 58, "004": 50}  # how many statements each document makes
DONE, OPEN = (
    [line.strip("|").split(" | ") for line in part.splitlines() if re.match(r"\| \d{3}\.\d+ \|", line)]
    for part in (PAGE.read_text(encoding="utf-8") + "\n## Not yet\n").split("\n## Not yet\n")[:2]
)


def collected(path: Path) -> set[str]:
    """The tests of a file as pytest names them; a class that is assigned is a state machine's."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            names |= {f"{node.name}::{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)}
        elif isinstance(node, ast.Assign):
            names |= {
                name.id for name in node.targets if isinstance(name, ast.Name) and name.id.startswith("Test")
            }
    return {name for name in names if name.rpartition("::")[2].startswith(("test_", "Test"))}


def named(row: list[str]) -> list[str]:
    return re.findall(r"`([^`]+)`", row[2])


def test_every_row_of_every_document_is_listed_once():
    wanted = [f"{document}.{number}" for document, rows in ROWS.items() for number in range(1, rows + 1)]
    assert Counter(row[0].strip() for row in [*DONE, *OPEN]) == Counter(wanted)


def test_every_row_has_a_test_or_a_reason():
    assert [row[0] for row in DONE if len(row) != 4 or not (named(row) or row[3].strip())] == []
    assert [row[0] for row in OPEN if len(row) != 3 or not row[2].strip()] == []
    assert [row[0] for row in DONE if re.search(r"\bpartly\b", " ".join(row))] == []


def test_every_test_that_is_named_exists():
    known: dict[str, set[str]] = {}
    missing = []
    for row in DONE:
        for name in named(row):
            path, _, test = name.partition("::")
            place = ROOT / path if path.startswith("bench/") else ROOT / "tests" / path
            if place.is_file() and test:
                known.setdefault(path, collected(place))
            if (
                not place.is_file()
                or (test and test not in known[path])
                or not (test or path.startswith("bench/"))
            ):
                missing.append(f"{row[0].strip()}: {name}")
    assert missing == []
