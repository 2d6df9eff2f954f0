"""What CONTRIBUTING promises about the shape of the code, counted by `bench/size.py`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def size() -> ModuleType:
    spec = importlib.util.spec_from_file_location("size", ROOT / "bench" / "size.py")
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    sys.modules["size"] = made  # its dataclasses look themselves up
    spec.loader.exec_module(made)
    return made


def test_no_two_classes_have_one_name_and_small_modules_are_in_their_only_importer(size: ModuleType) -> None:
    found = size.measured(ROOT / "src")
    assert found.classes_of_one_name() == {}
    small = [str(one.path) for one in found.of_one_importer() if one.lines < size.SMALL]
    assert small == []


def test_functions_fit_on_a_screen(size: ModuleType) -> None:
    lengths = size.measured(ROOT / "src").functions
    limits = size.LIMITS
    assert lengths[len(lengths) // 2] <= limits["median"]
    assert lengths[int(len(lengths) * 0.9)] <= limits["p90"]
    assert lengths[-1] <= limits["longest"]
