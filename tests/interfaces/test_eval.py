"""`ncm eval` and `ncm bench cost`: a person's own questions, what was lost since, and a price before it is paid."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
WORDS = ("--set", "embeddings.provider=none")


@pytest.fixture
def told(ncm: Run, home: Path) -> Run:
    def run(*arguments: str) -> Any:
        return ncm(*WORDS, *arguments)

    run("init")
    (home / "workspace" / "MEMORY.md").write_text(
        "# Memory\n\n- The boat is called Albatros and lies in Kiel\n"
    )
    run("graph", "add", "Keystone", "port", "3000")
    return run


def asked(folder: Path, text: str) -> str:
    path = folder / "questions.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


GOOD = """
[[question]]
ask = "Where does the boat lie?"
must = "Kiel"
must_not = ["Hamburg"]

[[question]]
ask = "What is the port of Keystone?"
must = ["3000"]
in = ["graph", "turn"]

[[question]]
ask = "Write me a poem about autumn"
nothing = true
"""


def test_questions_pass_in_a_table_and_in_json(told: Run, tmp_path: Path):
    path = asked(tmp_path, GOOD)
    ran = told("eval", path)
    assert ran.code == 0, ran.out
    assert ran.out.split()[:3] == ["passed", "tokens,", "mean"] and "all" in ran.out and "3/3" in ran.out
    result = told("eval", path, "--json").json
    assert result["passed"] is True and result["questions"] == 3 and result["failed"] == []
    port = next(one for one in result["answers"] if one["face"] == "graph" and "port" in one["ask"])
    assert port["passed"] and port["tokens"] > 0


def test_what_is_missing_or_must_not_appear_fails_with_exit_1(told: Run, tmp_path: Path):
    path = asked(
        tmp_path, '[[question]]\nask = "Where is the boat?"\nmust = ["Bremen"]\nmust_not = ["Albatros"]\n'
    )
    ran = told("eval", path)
    assert ran.code == 1
    assert "without 'Bremen'" in ran.out and "with 'Albatros'" in ran.out


def test_beside_an_accepted_result_only_what_was_lost_counts(told: Run, tmp_path: Path, home: Path):
    path = asked(tmp_path, GOOD + '[[question]]\nask = "Who is the captain?"\nmust = ["Nemo"]\n')
    assert told("eval", path).code == 1
    assert told("eval", path, "--save").code == 0  # what fails today is known
    assert told("eval", path).code == 0
    (home / "workspace" / "MEMORY.md").write_text("# Memory\n\n- The boat was sold\n")
    lost = told("eval", path)
    assert lost.code == 1 and "lost: Where does the boat lie?" in lost.out
    assert {one["face"] for one in told("eval", path, "--json").json["regressions"]} >= {"search"}


def test_asking_changes_nothing(told: Run, tmp_path: Path, home: Path):
    told("entries", "store", "The boat lies in Kiel", "--type", "fact")
    path = asked(tmp_path, GOOD)
    told("eval", path)  # reads what was not read yet

    def state() -> list[Any]:
        out = (
            told("graph", "export").out,
            told("entries", "list", "--json").out,
            told("injections", "--json").json["calls"],
        )
        return [*out, told("graph", "top", "--json").out, told("sessions", "list", "--json").out]

    before = state()
    told("eval", path)
    assert state() == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "0 questions"),
        ('[[question]]\nmust = ["x"]', "ask"),
        ('[[question]]\nask = "x"', "expects nothing"),
        ('[[question]]\nask = "x"\nmust = ["y"]\nin = ["dreams"]', "no face 'dreams'"),
        ("ask = ", "cannot be read"),
    ],
)
def test_a_file_that_is_no_list_of_questions_is_refused(told: Run, tmp_path: Path, text: str, said: str):
    ran = told("eval", asked(tmp_path, text))
    assert ran.code == 2 and said in ran.err
    assert told("eval", str(tmp_path / "nothing.toml")).code == 2
    assert told("eval").code == 2


def test_json_lines_with_other_names_of_the_fields_are_read(told: Run, tmp_path: Path):
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({"query": "Where does the boat lie?", "answer": ["Kiel"]}) + "\n")
    assert told("eval", str(path)).code == 0


def test_a_shared_scope_answers_from_what_it_may_see(told: Run, tmp_path: Path):
    path = asked(
        tmp_path,
        '[[question]]\nask = "Where does the boat lie?"\nmust_not = ["Kiel"]\nin = ["search", "turn"]\n',
    )
    assert told("eval", path).code == 1
    assert told("--shared", "eval", path).code == 0


def test_the_sixty_questions_of_the_documents_run_from_the_package(ncm: Run):
    result = ncm("eval", "--example", "--fast", "--json").json
    assert result["questions"] == 60
    found = sum(one["passed"] for one in result["answers"] if one["face"] == "search")
    assert found >= 50 and len(result["failed"]) <= 3


def test_the_cost_of_embedding_is_estimated_before_it_is_spent(told: Run, ncm: Run):
    estimate = told("bench", "cost", "--json").json
    assert estimate["texts"] >= 2 and estimate["tokens"] > 10 and estimate["waiting"] == estimate["texts"]
    prices = {model["name"]: model for model in estimate["models"]}
    large = prices["text-embedding-3-large"]
    assert large["all"] == pytest.approx(0.13 * estimate["tokens"] / 1e6) and large["waiting"] == large["all"]
    azure = ncm(
        "--set", "embeddings.provider=azure-openai", "bench", "cost"
    ).out  # no key is needed to ask for the price
    assert "text-embedding-3-large" in azure and "<- configured" in azure
