"""Another model, another chunk size, a dead deployment, a killed indexer: the index answers all the while."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from dying_index import opened
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response
from word_hash import WordHashEmbedder

from nanoclaw_memory.errors import ProviderError
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.providers.embedder import Chain, Embedder, Identity
from nanoclaw_memory.store import vector_rows, vectors

KILLER = Path(__file__).with_name("dying_index.py")
OLD = WordHashEmbedder(model="old")


@dataclass
class Limited:
    """An embedder whose server dies after so many texts."""

    inner: WordHashEmbedder
    left: int = 0
    asked: list[str] = field(default_factory=list)

    @property
    def identity(self) -> Identity:
        return self.inner.identity

    @property
    def weights(self) -> tuple[float, float]:
        return self.inner.weights

    def embed_documents(self, texts: Sequence[str], deadline: float | None = None):
        if len(texts) > self.left:
            raise ProviderError("the server is down")
        self.left -= len(texts)
        return self.inner.embed_documents(texts)

    def embed_query(self, text: str, deadline: float | None = None):
        self.asked.append(text)
        return self.inner.embed_query(text)


def notes(folder: Path, count: int = 150) -> None:
    for number in range(count):
        lines = "\n".join(f"Line {line} of note {number} about subject {number * line}." for line in range(6))
        path = folder / "memory" / f"n{number:03}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Note {number}\n\n{lines}\n", encoding="utf-8")


@pytest.fixture
def indexed(memory: Memory) -> Memory:
    """A memory too large to be embedded on the way to an answer, indexed by the old model."""
    memory.group.resources.embedder = Chain((OLD,))
    notes(memory.home.workspace("main"))
    memory.index()
    return memory


def by_meaning(memory: Memory) -> tuple[set[str], str]:
    """The paths that vectors found, and what was said."""
    found = memory.search("note 77 about subject 154", 10, explain=True)
    return {hit.path for hit in found.hits if hit.parts["cosine"] > 0}, " ".join(found.degraded)


# ---- another model ----


def test_the_old_model_answers_until_the_new_one_is_complete_and_then_goes(indexed: Memory):
    new = Limited(WordHashEmbedder(32, "new"), left=64)
    indexed.group.resources.embedder = Chain((new,), former=lambda one: OLD if one == OLD.identity else None)
    before, said = by_meaning(indexed)
    assert "memory/n077.md" in before
    assert "fake/new@32" in said and "fake/old@64 answers" in said
    first = indexed.index()
    assert first.embedded == 64
    passages = indexed.group.retrieval.index.passages
    assert passages.covered("fake/new@32") > 0  # what was embedded before the outage is not looked at again
    assert any("in place of fake/old@64" in line for line in first.announced)
    assert by_meaning(indexed)[0] == before
    assert new.asked == []
    new.left = 10_000
    second = indexed.index()
    assert (second.embedded, second.pending) == (first.pending, 0)
    assert "memory/n077.md" in by_meaning(indexed)[0]
    assert by_meaning(indexed)[1] == ""
    assert new.asked
    assert list(passages.identities()) == ["fake/new@32"]


def test_when_the_old_model_cannot_be_asked_any_more_words_answer_and_it_is_said(indexed: Memory):
    new = Limited(WordHashEmbedder(32, "new"), left=64)
    indexed.group.resources.embedder = Chain((new,))
    indexed.index()
    found, said = by_meaning(indexed)
    assert found == set()  # half of the new vectors would hide the other half
    assert "words alone answer" in said and "nanoclaw-memory index" in said
    assert indexed.search("note 77 about subject 154").hits


@pytest.mark.parametrize(
    ("settings", "identity", "built"),
    [
        ({"dimensions": "256"}, "azure-openai/text-embedding-3-large@3072", True),
        ({"deployment": "text-embedding-3-small"}, "azure-openai/text-embedding-3-small@1536", True),
        ({}, "azure-openai/gone@3072", False),
        ({}, "openai/text-embedding-3-large@3072", False),
        ({"provider": "local"}, "azure-openai/text-embedding-3-large@3072", False),
        ({"provider": "openai", "model": "nomic-embed-text"}, "openai/other@768", False),
        ({"provider": "openai", "model": "text-embedding-3-small"}, "openai/text-embedding-3-small@99", True),
    ],
)
def test_a_question_goes_to_a_former_model_only_where_the_settings_still_lead(
    open_memory: Callable[..., Memory], settings: dict[str, str], identity: str, built: bool
):
    every = {"provider": "azure-openai", "endpoint": "http://127.0.0.1:9", "apiKey": "k", **settings}
    chain = open_memory(
        **{f"embeddings__{key}": value for key, value in every.items()}
    ).group.resources.embedder
    former = chain.former(Identity.of(identity))
    assert (former is not None) == built
    assert former is None or former.identity.key == identity


def test_the_local_model_still_answers_after_a_change_to_a_server(
    open_memory: Callable[..., Memory], models_dir: Path
):
    local = open_memory(embeddings__modelPath=str(models_dir / "e5-small-v2")).group.resources.embedder
    server = open_memory(
        embeddings__provider="openai",
        embeddings__endpoint="http://127.0.0.1:9",
        embeddings__model="nomic-embed-text",
        embeddings__modelPath=str(models_dir / "e5-small-v2"),
    ).group.resources.embedder
    answer = server.embed_query("tea", [local.identity])
    assert answer.identity == local.identity
    assert answer.vector.shape == (384,)


# ---- another chunk size ----


def test_another_chunk_size_leaves_the_old_chunks_until_the_new_ones_have_vectors(
    indexed: Memory, open_memory: Callable[..., Memory]
):
    before, chunks = by_meaning(indexed)[0], indexed.index().chunks
    other = open_memory(memory__chunkSize="40", memory__chunkOverlap="10")
    embedder = Limited(OLD, left=128)
    other.group.resources.embedder = Chain((embedder,))
    assert "cut anew" in by_meaning(other)[1]
    interrupted = other.index()
    assert interrupted.chunks == chunks
    assert 0 < interrupted.embedded <= 128
    assert any("cut anew" in line for line in interrupted.announced)
    assert by_meaning(other)[0] == before
    embedder.left = 10_000
    done = other.index()
    assert done.chunks > chunks
    assert done.pending == 0
    assert 10_000 - embedder.left == done.embedded
    assert by_meaning(other)[1] == ""


# ---- the fallback ----


class Azure:
    """A resource with deployments that can be taken down."""

    def __init__(self, server: HTTPServer) -> None:
        self.down: set[str] = set()
        self.makers: dict[str, Embedder] = {
            "text-embedding-3-large": WordHashEmbedder(32, "large"),
            "text-embedding-3-small": WordHashEmbedder(16, "small"),
        }
        for deployment in self.makers:
            server.expect_request(f"/openai/deployments/{deployment}/embeddings").respond_with_handler(
                lambda request, name=deployment: self.answer(request, name)
            )

    def answer(self, request: Request, deployment: str) -> Response:
        import json

        if deployment in self.down:
            return Response("no such deployment", status=404)
        rows = self.makers[deployment].embed_documents(request.get_json()["input"]).tolist()
        data = [{"index": number, "embedding": row} for number, row in enumerate(rows)]
        return Response(json.dumps({"data": data}), content_type="application/json")


@pytest.fixture
def cloud(httpserver: HTTPServer, open_memory: Callable[..., Memory]) -> tuple[Memory, Azure]:
    memory = open_memory(
        embeddings__provider="azure-openai",
        embeddings__endpoint=httpserver.url_for(""),
        embeddings__apiKey="azure-key",
        embeddings__dimensions="32",
        embeddings__fallbackDimensions="16",
        embeddings__timeoutMs="20000",
    )
    memory.init()
    notes(memory.home.workspace("main"))
    return memory, Azure(httpserver)


def test_when_the_large_deployment_dies_the_small_one_answers_with_vectors_of_its_own(
    cloud: tuple[Memory, Azure],
):
    memory, azure = cloud
    assert memory.index().degraded == ()
    assert by_meaning(memory)[1] == ""
    azure.down.add("text-embedding-3-large")
    found, said = by_meaning(memory)
    assert "memory/n077.md" in found
    assert "text-embedding-3-small@16 answers" in said
    azure.down.add("text-embedding-3-small")
    found, said = by_meaning(memory)
    assert found == set()
    assert "vectors:" in said
    assert memory.search("note 77 about subject 154").hits


def test_an_index_made_while_the_large_deployment_is_down_is_searched_with_the_small_one(
    cloud: tuple[Memory, Azure],
):
    memory, azure = cloud
    azure.down.add("text-embedding-3-large")
    assert memory.index().degraded
    assert "memory/n077.md" in by_meaning(memory)[0]


def test_vectors_of_texts_that_are_gone_are_dropped_even_when_the_fallback_does_not_exist(
    cloud: tuple[Memory, Azure],
):
    memory, azure = cloud
    azure.down.add("text-embedding-3-small")
    memory.index()
    (memory.home.workspace("main") / "memory" / "n005.md").write_text("# Changed\n", encoding="utf-8")
    assert any("text-embedding-3-small" in line for line in memory.index().degraded)
    orphans = "SELECT count(*) FROM vectors WHERE fingerprint NOT IN (SELECT fingerprint FROM passages)"
    assert memory.group.database("index").query(orphans) == [(0,)]


def test_an_outage_while_model_and_chunk_size_change_wastes_nothing(
    indexed: Memory, open_memory: Callable[..., Memory]
):
    new = Limited(WordHashEmbedder(32, "new"), left=200)
    other = open_memory(memory__chunkSize="40", memory__chunkOverlap="10")
    other.group.resources.embedder = Chain((new,), former=lambda one: OLD)
    before = by_meaning(other)[0]
    first = other.index()
    assert by_meaning(other)[0] == before
    new.left = 10_000
    second = other.index()
    made = other.group.database("index").query("SELECT count(*) FROM vectors")[0][0]
    assert first.embedded + second.embedded == made  # each text of the new chunks once, no old one
    assert by_meaning(other)[1] == ""


# ---- vectors in a file alone ----


@pytest.fixture
def packed(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> tuple[Memory, Limited]:
    """A memory whose vectors are in the file alone, as those of a large one are; and its model."""
    for module in (vectors, vector_rows):
        monkeypatch.setattr(module, "EXACT_ROWS", 20)
    monkeypatch.setattr(vectors, "UNPACKED", 20)
    model = Limited(OLD, left=10_000)
    memory.group.resources.embedder = Chain((model,))
    notes(memory.home.workspace("main"))
    memory.index()
    assert memory.group.database("index").query("SELECT count(*) FROM vectors") == [(0,)]
    return memory, model


@pytest.mark.files("it looks at the file of vectors")
def test_a_file_of_vectors_that_was_lost_is_made_anew(packed: tuple[Memory, Limited]):
    memory, _ = packed
    found = by_meaning(memory)
    assert found[0]
    file = memory.home.root / "data" / "index.db-vectors"
    file.rename(file.with_name("aside"))  # this process has it mapped
    file.write_bytes(b"damaged")
    assert memory.search("note 77 about subject 154").hits  # by words
    again = memory.index()
    assert any("lost or damaged" in line for line in again.degraded) and again.embedded >= 150
    assert by_meaning(memory) == found
    assert memory.index().embedded == 0


@pytest.mark.files("it looks at the file of vectors")
def test_an_edit_embeds_only_what_it_changed_where_vectors_are_in_the_file(packed: tuple[Memory, Limited]):
    memory, model = packed
    page, left = memory.home.workspace("main") / "memory" / "n077.md", model.left
    page.write_text(page.read_text().replace("# Note 77", "# Note 77\n\nA new line at the top."))
    memory.index()
    assert left - model.left <= 1
    (memory.home.workspace("main") / "memory" / "copy.md").write_text(page.read_text())
    memory.index(rebuild=True)
    assert left - model.left <= 2
    assert by_meaning(memory)[0]


@pytest.mark.files("it looks at the file of vectors")
def test_forgetting_leaves_the_vectors_of_all_else(packed: tuple[Memory, Limited]):
    memory, model = packed
    file, left = memory.home.root / "data" / "index.db-vectors", model.left
    size = file.stat().st_size
    memory.forget(text="Line 3 of note 77 about subject 231.", agreed=lambda change: True)
    memory.index()
    assert file.stat().st_size < size and left - model.left <= 2
    assert by_meaning(memory)[0]


# ---- kill -9 ----


def indexer(home: Path, model: str, chunk_size: str, kills: int) -> subprocess.Popen[str]:
    seed = int.from_bytes(os.urandom(4))
    print(f"seed {seed}")
    return subprocess.Popen(
        [sys.executable, str(KILLER), str(home), model, chunk_size, str(kills), str(seed)],
        stdout=subprocess.PIPE,
        text=True,
    )


def deaths(indexer: subprocess.Popen[str]) -> int:
    said, _ = indexer.communicate(timeout=240)
    assert indexer.returncode == 0
    return int(said)


def content(memory: Memory) -> dict[str, object]:
    """Everything an index holds, without ids."""
    database = memory.group.database("index")
    tables = {
        "chunks": "SELECT f.name, c.position, c.start_line, c.end_line, c.text, c.fingerprint, f.chunking"
        " FROM passages c JOIN documents f ON f.id = c.document_id ORDER BY 1, 2",
        "vectors": "SELECT i.key, v.fingerprint, v.codes FROM vectors v"
        " JOIN identities i ON i.id = v.identity_id ORDER BY 1, 2",
        "words": "SELECT word FROM long_words ORDER BY 1",
        "ghosts": "SELECT rowid FROM passages_fts WHERE passages_fts MATCH 'line OR note OR keystone'"
        " AND rowid NOT IN (SELECT id FROM passages)",
        "answering": "SELECT value FROM meta WHERE key = 'answering'",
    }
    found: dict[str, object] = {name: database.query(sql) for name, sql in tables.items()}
    hits = memory.search("line 3 of note 21", 20).hits
    return found | {"hits": [(hit.path, hit.start_line, hit.score) for hit in hits]}


@pytest.fixture
def homes(tmp_path: Path) -> tuple[Path, Path]:
    """Two homes with the same files."""
    calm, disturbed = tmp_path / "calm", tmp_path / "disturbed"
    for home in (calm, disturbed):
        with opened(home, "one", "400") as memory:
            memory.init()
            notes(memory.home.workspace("main"), 60)
    return calm, disturbed


@pytest.mark.files("two homes of one group, compared row by row")
def test_an_indexer_killed_at_random_ends_with_what_an_undisturbed_one_has(homes: tuple[Path, Path]):
    calm, disturbed = homes
    for model, chunk_size in (("one", "400"), ("two", "40")):  # from nothing, then all made anew
        with opened(calm, model, chunk_size) as memory:
            memory.index()
            expected = content(memory)
        assert deaths(indexer(disturbed, model, chunk_size, 8)) >= 3
        with opened(disturbed, model, chunk_size) as memory:
            assert content(memory) == expected
            assert expected["ghosts"] == []
            assert [problem for one in memory.admin.check_databases() for problem in one.problems] == []


@pytest.mark.files("two homes of one group, compared row by row")
def test_two_indexers_at_once_end_with_what_one_has(homes: tuple[Path, Path]):
    calm, disturbed = homes
    with opened(calm, "one", "400") as memory:
        memory.index()
        expected = content(memory)
    for one in [indexer(disturbed, "one", "400", 0) for _ in range(2)]:
        deaths(one)
    with opened(disturbed, "one", "400") as memory:
        assert content(memory) == expected
        chunks, newest = memory.group.database("index").query("SELECT count(*), max(id) FROM passages")[0]
        assert newest == chunks  # nobody took a file that the other had taken
        assert [problem for one in memory.admin.check_databases() for problem in one.problems] == []
