"""A pattern that was kept compiled is the pattern that Python compiles."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from nanoclaw_memory import patterns

SOURCES = [
    (r"(?P<day>\d{4})-(?:0[1-9])|(?P<word>[a-zäöü]+)", re.IGNORECASE),
    (r"(?<=[.!?])\s+|\n+", 0),
    (r"^\s* (?P<key>\w+) \s* = \s* (.*?) $  # a pair", re.VERBOSE | re.MULTILINE),
    (r"(?i:mixed)Case(?-i:Here)", 0),
]
TEXT = "2026-01\nKey = Value\nMIXEDCaseHere. ÄPFEL! x = y"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch):
    """Patterns are kept in a file of the test's own; each call of the result is as if by a new process."""
    monkeypatch.setattr(patterns, "_place", lambda: str(tmp_path / "kept"))
    monkeypatch.setattr(patterns, "_new", {})
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    patterns._kept.cache_clear()
    yield patterns._kept.cache_clear
    patterns._kept.cache_clear()


@pytest.mark.parametrize(("source", "flags"), SOURCES)
def test_a_kept_pattern_is_the_same(kept, monkeypatch, source, flags):
    assert patterns.regex(source, flags).search(TEXT)
    patterns.keep()
    kept()
    monkeypatch.setattr(patterns, "_translated", None)  # nothing is compiled a second time
    again, plain = patterns.regex(source, flags), re.compile(source, flags)
    assert [one.groupdict() for one in again.finditer(TEXT)] == [
        one.groupdict() for one in plain.finditer(TEXT)
    ]
    assert (again.pattern, again.flags, again.groupindex) == (plain.pattern, plain.flags, plain.groupindex)


@pytest.mark.parametrize("length", [0, 10, 20, 60])
def test_a_file_that_is_cut_off_is_as_good_as_none(kept, tmp_path: Path, length):
    patterns.regex(r"a+").search("a")
    patterns.keep()
    kept()
    (tmp_path / "kept").write_bytes((tmp_path / "kept").read_bytes()[:length])
    assert patterns._kept() == {}
    assert patterns.regex(r"a+").findall("aab") == ["aa"]


def test_what_another_python_kept_is_not_used(kept, monkeypatch):
    patterns.regex(r"b+").search("b")
    with monkeypatch.context() as other:
        other.setattr(sys, "version", "another")
        patterns.keep()
    kept()
    assert patterns._kept() == {}


def test_a_later_process_uses_what_an_earlier_one_kept():
    """Every pattern that a command needed is found in the file by the next."""
    code = "from nanoclaw_memory import patterns, text; text.one_line('a\\tb'); print(len(patterns._new))"
    environment = {"PATH": "/usr/bin", "PYTHONPATH": str(Path(patterns.__file__).parent.parent)}
    found = [
        subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        for _ in range(2)
    ]
    assert found[1].stdout == "0\n"
