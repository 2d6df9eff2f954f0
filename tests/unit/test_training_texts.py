"""The training texts are what their README says, and the wheel carries what was made of them."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRAINING = ROOT / "training"
README = (TRAINING / "README.md").read_text(encoding="utf-8")
# Of each file of texts: how many there are, of how many folders, and their fields.
TABLE = {
    name: (int(texts.replace(",", "")), int(folders), fields)
    for name, texts, folders, fields in re.findall(
        r"^\| `(\w+\.jsonl)` \| ([\d,]+) \| (\d+) \| (`\w+`.*) \|$", README, re.MULTILINE
    )
}


def rows(path: Path) -> list[dict[str, object]]:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("name", sorted({path.name for path in TRAINING.glob("texts/*/*.jsonl")}))
def test_the_readme_counts_the_texts_and_names_their_fields(name):
    by_folder = [rows(path) for path in TRAINING.glob(f"texts/*/{name}")]
    texts, folders, fields = TABLE[name]
    assert (texts, folders) == (sum(map(len, by_folder)), len(by_folder))
    named = re.findall(r"`(\w+)`", fields)[: 1 if name == "foreign.jsonl" else None]
    assert [line for one in by_folder for line in one if set(named) - line.keys()] == []


def test_every_file_of_training_is_in_the_readme():
    texts = {path.name for path in (TRAINING / "texts").iterdir() if not path.name.startswith("author_")}
    assert texts == {"constraints", "earlier_authors", "plain", "readings.jsonl", "rules.jsonl", "work.txt"}
    files = {path.name for path in TRAINING.iterdir() if not path.name.startswith(("_", "."))}
    assert {name for name in files - {"README.md"} if name not in README} == set()


def test_no_text_is_both_trained_on_and_measured_by():
    trained = {
        str(line.get(key)).casefold()
        for path in TRAINING.glob("texts/*/*.jsonl")
        for line in rows(path)
        for key in ("user", "text", "a", "action")
        if line.get(key)
    }
    data = ROOT / "bench" / "data"
    fresh = data / "fresh"
    measured = [line["user"] for path in data.glob("*/**/corrections*") for line in rows(path)]
    measured += [line["text"] for path in data.glob("*/**/attacks*") for line in rows(path)]
    measured += [line["a"] for path in data.glob("*/**/duplicates*") for line in rows(path)]
    for name in ("life_3.json", "talk.json", "policies.json"):
        told = json.loads((fresh / name).read_text(encoding="utf-8"))
        measured += [one["text"] for one in told.get("prompts", told.get("actions"))]
    both = {text for text in measured if text.casefold() in trained}
    assert {text for text in both if len(text.split()) > 3} == set()  # "thanks" is everybody's


def test_the_wheel_carries_the_judge_with_its_card_the_scorer_and_the_page(tmp_path):
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("the wheel is NOT tested: hatchling is not installed, run: make install")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    source = ROOT / "src" / "nanoclaw_memory" / "providers"
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        files = [*source.glob("judge_model/*"), *source.glob("*.bin")]
        assert {"model.onnx", "vocab.txt", "judge.json", "scorer.bin"} <= {path.name for path in files}
        for path in files:
            inside = path.relative_to(ROOT / "src").as_posix()
            assert wheel.read(inside) == path.read_bytes()
        assert not [name for name in wheel.namelist() if "training" in name or "bench" in name]
        # The page's templates, scripts and the licences of those that are others'; nothing that only tests need.
        names = set(wheel.namelist())
        web = Path("src/nanoclaw_memory/interfaces/web")
        files = [
            path
            for path in (ROOT / web).rglob("*")
            if path.suffix in (".html", ".js", ".css", ".json", ".txt")
        ]
        assert len(files) > 30
        assert {path.relative_to(ROOT / "src").as_posix() for path in files} <= names
        assert not any("axe" in name for name in names)
