"""The embedder protocol: identities, the chain, and the refusal of bad vectors."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from word_hash import WordHashEmbedder

from nanoclaw_memory.errors import ProviderError, SettingsError
from nanoclaw_memory.providers.embedder import Chain, Identity, QuestionVectors, checked, embedder_for
from nanoclaw_memory.settings.sections import EmbeddingsSettings

WHO = Identity("test", "model", 3)


@dataclass
class Broken:
    """An embedder that is down, and counts how often it was asked."""

    identity: Identity = WHO
    weights: tuple[float, float] = (0.7, 0.3)
    deadlines: list[float | None] = field(default_factory=list)

    def embed_documents(self, texts: Sequence[str], deadline: float | None = None):
        raise ProviderError("large: down")

    def embed_query(self, text: str, deadline: float | None = None):
        self.deadlines.append(deadline)
        raise ProviderError("large: down", "try later")


def test_an_identity_has_one_stable_key():
    assert (
        Identity("azure-openai", "text-embedding-3-large", 3072).key
        == "azure-openai/text-embedding-3-large@3072"
    )


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[1, 0, 0]], "returned 1 vectors for 2 texts"),
        ([[1, 0, 0], [1, 0, 0], [1, 0, 0]], "returned 3 vectors for 2 texts"),
        ([[1, 0], [1, 0]], "returned 2 dimensions, 3 are configured"),
        ([[1, 0, 0], [1, 0]], "not lists of numbers of one length"),
        ([[1, 0, 0], ["a", "b", "c"]], "not lists of numbers"),
        ([[1, 0, 0], [None, 0, 0]], "NaN or infinity"),
        ([[1, 0, 0], [float("nan"), 0, 0]], "NaN or infinity"),
        ([[1, 0, 0], [float("inf"), 0, 0]], "NaN or infinity"),
        ([[1, 0, 0], [0, 0, 0]], "a vector of zeros"),
        ([1.0, 2.0], "returned 0 dimensions"),
        ([[[1], [0], [0]]] * 2, "returned 0 dimensions"),
    ],
)
def test_bad_vectors_are_refused_with_what_is_wrong(rows, said):
    with pytest.raises(ProviderError, match=said):
        checked(rows, 2, WHO)


def test_wrong_dimensions_name_the_command_that_sets_them():
    with pytest.raises(ProviderError) as failure:
        checked([[1.0] * 768], 1, WHO)
    assert "config set embeddings.dimensions 768" in failure.value.hint


@given(
    st.lists(st.lists(st.floats(-(2.0**60), 2.0**60, width=32), min_size=3, max_size=3), max_size=8).filter(
        lambda rows: all(max(map(abs, row)) > 1e-30 for row in rows)
    )
)
def test_good_vectors_come_out_with_length_one(rows):
    vectors = checked(rows, len(rows), WHO)
    assert vectors.shape == (len(rows), 3)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_the_chain_says_who_answered():
    small = WordHashEmbedder(model="small")
    answer = Chain((Broken(), small)).embed_query("tea")
    assert answer.identity == small.identity
    assert np.array_equal(answer.vector, small.embed_query("tea"))


def test_a_query_is_never_embedded_by_an_identity_the_index_lacks():
    large, small = Broken(), WordHashEmbedder(model="small")
    chain = Chain((large, small))
    with pytest.raises(ProviderError, match="large: down"):
        chain.embed_query("tea", among={large.identity})
    assert chain.embed_query("tea", among={small.identity}).identity == small.identity
    assert len(large.deadlines) == 1  # not asked at all when the index has no vectors of it
    with pytest.raises(ProviderError, match="holds no vectors of test/model@3"):
        chain.embed_query("tea", among=set())


def test_documents_are_embedded_by_the_identity_asked_for_and_nobody_steps_in():
    large, small = Broken(), WordHashEmbedder(model="small")
    chain = Chain((large, small))
    with pytest.raises(ProviderError, match="large: down"):
        chain.embed_documents(["tea"])
    assert chain.embed_documents(["tea"], small.identity).identity == small.identity
    with pytest.raises(ProviderError, match="no configured embedder"):
        chain.embed_documents(["tea"], Identity("gone", "model", 3))


def test_the_weights_belong_to_the_identity_that_answered():
    chain = Chain((Broken(), WordHashEmbedder()))
    assert chain.weights == (0.7, 0.3)
    assert [chain.weights_of(identity) for identity in chain.identities] == [(0.7, 0.3), (0.5, 0.5)]


def test_a_silent_first_member_leaves_the_second_its_share_of_the_time():
    first, second = Broken(), Broken()
    with pytest.raises(ProviderError, match="large: down; large: down") as failure:
        Chain((first, second), timeout=1000).embed_query("tea")
    assert failure.value.hint == "try later"
    assert first.deadlines[0] is not None and second.deadlines[0] is not None
    assert second.deadlines[0] - first.deadlines[0] > 400


def test_a_callers_deadline_is_kept_when_it_is_nearer():
    member = Broken()
    with pytest.raises(ProviderError):
        Chain((member,)).embed_query("tea", deadline=1.0)
    assert member.deadlines == [1.0]


def test_none_means_no_embedder(tmp_path):
    assert embedder_for(EmbeddingsSettings(provider="none"), tmp_path, tmp_path) is None


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"provider": "openai", "endpoint": "file:///etc/passwd", "model": "m"}, "not an http or https"),
        (
            {"provider": "openai", "endpoint": "https://me:pw@a.test", "model": "m"},
            "must not hold a user name",
        ),
        (
            {"provider": "openai", "endpoint": "https://a.test", "model": "m", "api_key": "“k”"},
            "characters that no key has",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused_before_any_call(settings, said, tmp_path):
    with pytest.raises(SettingsError, match=said) as failure:
        embedder_for(EmbeddingsSettings(**settings), tmp_path, tmp_path)
    assert failure.value.hint


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"provider": "azure-openai", "endpoint": "https://a.test", "api_key": ""}, "apiKey is not set"),
        ({"provider": "azure-openai", "endpoint": "", "api_key": "k"}, "not an http or https address"),
        ({"provider": "openai", "endpoint": "https://a.test", "model": ""}, "model is not set"),
    ],
)
def test_a_service_with_a_missing_value_answers_as_one_that_is_down(settings, said, tmp_path):
    chain = embedder_for(EmbeddingsSettings(**settings), tmp_path, tmp_path)
    assert chain is not None
    for ask in (lambda: chain.embed_query("x"), lambda: chain.embed_documents(["x"])):
        with pytest.raises(ProviderError, match=said) as failure:
            ask()
        assert failure.value.hint


def test_making_an_embedder_loads_nothing_heavy(tmp_path):
    import subprocess
    import sys

    code = (
        "import sys; from pathlib import Path\n"
        "from nanoclaw_memory.providers.embedder import embedder_for\n"
        "from nanoclaw_memory.settings.sections import EmbeddingsSettings as S\n"
        "for s in (S(), S(provider='openai', endpoint='http://localhost', model='m'),"
        " S(provider='azure-openai', endpoint='http://localhost', api_key='k')):\n"
        "    embedder_for(s, Path('.'), Path('.'))\n"
        "print(sorted({'numpy', 'onnxruntime', 'httpx2', 'stamina'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_fake_embedder_puts_texts_with_shared_words_near_each_other():
    fake = WordHashEmbedder()
    near, far = fake.embed_documents(["the blue house", "quarterly invoices"]) @ fake.embed_query(
        "a blue house"
    )
    assert near > far


class Slow(WordHashEmbedder):
    """Waits for a sign before it embeds, and counts how often it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.free, self.begun, self.asked = Event(), Event(), 0

    def embed_query(self, text: str, deadline: float | None = None):
        self.asked += 1
        self.begun.set()
        assert self.free.wait(60)
        return super().embed_query(text, deadline)


def test_one_embedding_serves_all_who_wait_for_the_same_question():
    slow = Slow()
    chain = Chain((slow,), timeout=60)
    with ThreadPoolExecutor(8) as threads:
        found = [threads.submit(chain.embed_query, "tea") for _ in range(8)]
        assert slow.begun.wait(60)
        slow.free.set()
        vectors = [one.result(60).vector for one in found]
    assert slow.asked == 1
    assert all(np.array_equal(one, vectors[0]) for one in vectors)


def test_an_answer_of_a_fallback_is_not_kept():
    large, small = Broken(), WordHashEmbedder(model="small")
    chain = Chain((large, small))
    for _ in range(3):
        assert chain.embed_query("tea").identity == small.identity
    assert len(large.deadlines) == 3


@pytest.mark.parametrize("most", [0, 200, 100_000])
def test_vectors_of_questions_stay_within_their_bound(most):
    asked = QuestionVectors(most)
    chain = Chain((WordHashEmbedder(),), asked=asked)
    for number in range(200):
        again = chain.embed_query(f"question {number % 50}").vector
        assert np.array_equal(again, WordHashEmbedder().embed_query(f"question {number % 50}"))
        assert asked.nbytes <= most
