"""What every test shares: an empty home, a clock that stands still, the facade and the command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope

# Time belongs in bench/: a busy machine must not fail a test.
hypothesis.settings.register_profile(
    "patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("patient")

# Where the run itself was started in the background Ctrl-C is ignored, by its children too.
signal.signal(signal.SIGINT, signal.default_int_handler)

NOON = datetime(2026, 2, 23, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _no_real_home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test may see or touch the person's own memory, settings or keys."""
    nowhere = tmp_path_factory.mktemp("nowhere")
    for name in ("NANOCLAW_GROUP", "NANOCLAW_SESSION", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NANOCLAW_HOME", str(nowhere / "home"))
    monkeypatch.setenv("HOME", str(nowhere))
    monkeypatch.setenv("CI", "1")  # no session starts a server that outlives its test
    monkeypatch.chdir(nowhere)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """On a PostgreSQL server, what is about files of the embedded store is skipped, with the reason that it gives."""
    import os

    for item in items if os.environ.get("NANOCLAW_TEST_STORE") == "postgres" else ():
        if files := item.get_closest_marker("files"):
            (why,) = files.args
            item.add_marker(pytest.mark.skip(reason=f"files: {why}"))


@pytest.fixture(autouse=True, scope="module")
def _store() -> Iterator[str]:
    """With NANOCLAW_TEST_STORE=postgres every test has its databases on a PostgreSQL server."""
    import os

    if os.environ.get("NANOCLAW_TEST_STORE") != "postgres":
        yield ""
        return
    from postgres import fresh_database

    with fresh_database() as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv("NANOCLAW_STORE_URL", url)
        _be_patient(patch)
        yield url


def _be_patient(patch: pytest.MonkeyPatch) -> None:
    """Give a turn time: schemas are made by the first question of every test, and the machine may be busy."""
    from nanoclaw_memory.settings.load import leaves

    for leaf in leaves():
        if leaf.path.startswith("plugins.") and leaf.path.endswith(".timeoutMs"):
            patch.setenv(leaf.variable, str(leaf.default * 20))


@pytest.fixture(autouse=True)
def _empty_store(_store: str, request: pytest.FixtureRequest) -> Iterator[None]:
    """What one test stored is gone for the next, unless its module has a home for all of them."""
    yield
    if _store and not hasattr(request.module, "ONE_HOME"):
        from postgres import drop_schemas

        drop_schemas(_store)


@pytest.fixture(scope="session")
def models_dir() -> Path:
    """The local models, fetched once a machine; skipped aloud only where the registry cannot be reached."""
    import os

    from nanoclaw_memory.errors import ProviderError
    from nanoclaw_memory.providers.models import MODELS, install

    folder = Path(os.environ.get("NANOCLAW_TEST_MODELS") or Path(__file__).parents[1] / ".venv" / "models")
    for model in MODELS:
        try:
            install(model, folder)
        except ProviderError as error:
            pytest.skip(f"the real models are NOT tested: {error.message}")
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOON)


@pytest.fixture
def open_memory(home: Path, clock: FixedClock) -> Iterator[Callable[..., Memory]]:
    """Open the memory as any scope; all are closed at the end."""
    opened: list[Memory] = []

    def open_(
        group: str = "main",
        session: str = "s1",
        private: bool = True,
        project: str = "",
        origin: str = "owner",
        **settings: str,
    ) -> Memory:
        scope = Scope(group, session, private, project=project, origin=origin)
        overrides = {key.replace("__", "."): value for key, value in settings.items()}
        opened.append(Memory.open(home, scope, clock=clock, overrides=overrides))
        return opened[-1]

    yield open_
    for memory in opened:
        memory.close()


@pytest.fixture
def memory(open_memory: Callable[..., Memory]) -> Memory:
    """The main group's memory in a private session of a fresh home."""
    memory = open_memory()
    memory.init()
    return memory


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def ncm(home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run a command in this process as the command line would."""
    from nanoclaw_memory.interfaces.cli import main

    def run(*arguments: str, stdin: str | None = None) -> Ran:
        import io

        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capfd.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main(["--home", str(home), *arguments])
        out, err = capfd.readouterr()
        return Ran(int(stopped.value.code or 0), out, err)

    return run


@pytest.fixture
def ncm_process(home: Path) -> Callable[..., Ran]:
    """Run a command in a process of its own."""

    def run(*arguments: str, stdin: str = "", **environment: str) -> Ran:
        import os

        done = subprocess.run(
            [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, **environment},
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def by_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the judge: what the rules alone do."""
    from nanoclaw_memory.providers import judge

    monkeypatch.setattr(judge, "shared_judge", lambda: (None, "left out by the test"))


class ScriptedJudge:
    """Answers as told: for each head the texts that it says yes to, and how far they reach."""

    def __init__(self) -> None:
        self.yes: dict[str, list[str]] = {}
        self.reaches: dict[str, str] = {}
        self.foreign: list[str] = []

    def probability(self, head: str, text: str, other: str = "") -> float:
        return 0.95 if any(part in f"{text}\n{other}" for part in self.yes.get(head, ())) else 0.05

    def reach(self, message: str, before: str) -> dict[str, float]:
        likely = next((reach for part, reach in self.reaches.items() if part in message), "topic")
        return {name: 0.94 if name == likely else 0.03 for name in ("general", "topic", "once")}

    def line_types(self, line: str, section: str) -> dict[str, float]:
        fact = self.probability("fact", line)
        return {"fact": fact, "preference": 0.0, "instruction": min(1 - fact, 0.5), "correction": 0.0}

    def own_lines(self, lines: Sequence[str]) -> list[float]:
        return [0.05 if line in self.foreign else 0.95 for line in lines]


@pytest.fixture
def scripted_judge(monkeypatch: pytest.MonkeyPatch) -> ScriptedJudge:
    """A judge that the test tells what to say."""
    from nanoclaw_memory.providers import judge

    made = ScriptedJudge()
    monkeypatch.setattr(judge, "shared_judge", lambda: (made, ""))
    return made
