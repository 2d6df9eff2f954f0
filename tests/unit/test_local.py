"""The real local models: meaning, order, company, and the refusal of other files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from nanoclaw_memory.errors import ProviderError, SettingsError
from nanoclaw_memory.providers.embedder import embedder_for
from nanoclaw_memory.providers.local import LocalEmbedder
from nanoclaw_memory.providers.models import EMBEDDERS, ENGLISH, MULTILINGUAL
from nanoclaw_memory.settings.sections import EmbeddingsSettings

NOTES = [
    "Alice was born on March 15",
    "The database migration was postponed to May",
    "Bob prefers tea over coffee",
]


FIRST = {  # numbers of the first note's vector
    ENGLISH.name: [-0.0941, 0.0281, 0.0332, 0.0046],
    MULTILINGUAL.name: [0.0137, 0.0202, -0.0344, -0.0691],
}


@pytest.fixture(scope="session", params=EMBEDDERS, ids=lambda model: model.name)
def embedder(models_dir, request) -> LocalEmbedder:
    return LocalEmbedder(request.param, models_dir / request.param.name)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When is Alice's birthday?", 0),
        ("what did we decide about moving the data", 1),
        ("favourite drink", 2),
    ],
)
def test_a_question_is_nearest_to_the_note_that_answers_it(embedder, question, answer):
    similarity = embedder.embed_documents(NOTES) @ embedder.embed_query(question)
    assert int(similarity.argmax()) == answer


def test_vectors_have_the_known_shape_type_and_length(embedder):
    vectors = embedder.embed_documents(NOTES)
    assert (vectors.shape, vectors.dtype) == ((3, 384), np.float32)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert embedder.embed_query("x").shape == (384,)
    assert embedder.embed_documents([]).shape == (0, 384)


def test_the_first_numbers_of_a_known_text_stay_as_they_are(embedder):
    vector = embedder.embed_documents(["Alice was born on March 15"])[0]
    assert np.allclose(vector[:4], FIRST[embedder.model.model.name], atol=2e-3)


def test_order_and_company_do_not_change_a_texts_vector(embedder):
    texts = [*NOTES, "a", "a long one: " + "word " * 600, "", "naïve 東京"]
    together = embedder.embed_documents(texts)
    reversed_ = embedder.embed_documents(texts[::-1])[::-1]
    alone = np.stack([embedder.embed_documents([text])[0] for text in texts])
    assert np.array_equal(together, reversed_)
    assert np.array_equal(together, alone)


def test_questions_and_passages_are_prefixed_differently(embedder):
    assert embedder.embed_query("tea") @ embedder.embed_documents(["tea"])[0] < 0.9999


@pytest.mark.parametrize("model", EMBEDDERS, ids=lambda model: model.name)
def test_a_tampered_model_is_refused(models_dir, tmp_path, model):
    folder = tmp_path / "e5"
    shutil.copytree(models_dir / model.name, folder)
    with (folder / model.files[0].name).open("r+b") as weights:
        weights.seek(1000)
        weights.write(b"\x00\x01\x02")
    with pytest.raises(ProviderError, match="hash differs"):
        LocalEmbedder(model, folder).embed_query("x")


def test_a_missing_model_names_the_command_that_installs_it(tmp_path):
    chain = embedder_for(EmbeddingsSettings(), tmp_path / "models", tmp_path)
    assert chain is not None
    with pytest.raises(ProviderError, match="not installed") as failure:
        chain.embed_query("x")
    assert "models install" in failure.value.hint


def test_a_model_path_overrides_where_the_model_is_looked_for(models_dir, tmp_path):
    settings = EmbeddingsSettings(model_path=str(models_dir / "e5-small-v2"))
    chain = embedder_for(settings, tmp_path, tmp_path)
    assert chain is not None
    assert chain.embed_query("x").vector.shape == (384,)


def test_another_cut_is_another_identity(models_dir):
    whole, cut = LocalEmbedder(ENGLISH, models_dir), LocalEmbedder(ENGLISH, models_dir, max_tokens=256)
    assert whole.identity != cut.identity
    assert whole.identity.key == "local/e5-small-v2-int8-d74a213c@384"
    assert (
        LocalEmbedder(MULTILINGUAL, models_dir).identity.key
        == "local/multilingual-e5-small-int4-1571fc98@384"
    )


def test_the_multilingual_model_finds_in_one_language_what_was_said_in_another(models_dir):
    embedder = LocalEmbedder(MULTILINGUAL, models_dir / MULTILINGUAL.name)
    notes = [
        "Meine Cousine heiratet am 12. Juni",
        "Der Drucker braucht neuen Toner",
        "le chat dort au soleil",
    ]
    for question, answer in (("when is the wedding", 0), ("imprimante", 1), ("Wo liegt die Katze?", 2)):
        similarity = embedder.embed_documents(notes) @ embedder.embed_query(question)
        assert int(similarity.argmax()) == answer


def test_the_local_model_is_the_one_named_or_else_the_one_installed(models_dir, tmp_path):
    def used(**settings: str) -> str:
        chain = embedder_for(EmbeddingsSettings(**settings), tmp_path / "models", tmp_path)
        assert chain is not None
        return chain.members[0].identity.model.partition("-int")[0]

    assert used() == MULTILINGUAL.name  # the default, which `models install` would fetch
    shutil.copytree(models_dir / ENGLISH.name, tmp_path / "models" / ENGLISH.name)
    assert used() == ENGLISH.name
    shutil.copytree(models_dir / MULTILINGUAL.name, tmp_path / "models" / MULTILINGUAL.name)
    assert used() == MULTILINGUAL.name
    assert used(model=ENGLISH.name) == ENGLISH.name
    assert used(model_path=str(models_dir / ENGLISH.name)) == ENGLISH.name
    with pytest.raises(SettingsError, match="no local embedder 'bge'") as failure:
        used(model="bge")
    assert MULTILINGUAL.name in failure.value.hint


@pytest.mark.parametrize("installed", [True, False])
def test_the_runtime_reports_nothing_and_leaves_nothing_in_the_users_home(installed, models_dir, tmp_path):
    code = (
        "import sys; from pathlib import Path; from nanoclaw_memory.providers.local import LocalEmbedder\n"
        "from nanoclaw_memory.errors import NanoClawError\n"
        "from nanoclaw_memory.providers.models import embedder\n"
        "try: print(len(LocalEmbedder(*embedder(Path(sys.argv[1]))).embed_query('x')))\n"
        "except NanoClawError: print('none')"
    )
    folder = str(models_dir if installed else tmp_path / "nothing")
    # CI=… would silence the runtime by itself, and the test would prove nothing.
    told = {
        "CI",
        "GITHUB_ACTIONS",
        "TF_BUILD",
        "ORT_DISABLE_TELEMETRY",
        "ORT_RUNNING_UNIT_TESTS",
        "XDG_CACHE_HOME",
    }
    environment = {name: value for name, value in os.environ.items() if name not in told}
    done = subprocess.run(
        [sys.executable, "-c", code, folder],
        env={**environment, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.strip() == ("384" if installed else "none"), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_texts_that_differ_in_case_and_blanks_have_nearly_one_vector(embedder):
    one, other = embedder.embed_documents(["Chose  SQLite for\nthe Index", "chose sqlite for the index"])
    if embedder.model.model is ENGLISH:
        assert np.array_equal(one, other)
    assert one @ other > 0.95  # so that one of them can be embedded for both


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads have no priority of their own")
def test_work_that_nobody_waits_for_leaves_the_cores_to_others(embedder, monkeypatch):
    priorities = []

    def note(text):
        priorities.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        return np.ones(384, dtype=np.float32)

    monkeypatch.setattr(embedder, "_pooled", note)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    embedder.embed_documents(NOTES * 5)
    embedder.embed_documents(NOTES * 5, deadline=time.monotonic() + 5)
    embedder.embed_documents(NOTES)
    assert priorities == [15] * 15 + [own] * 18
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == own
