"""A Python library behind lines of JSON, run in the library's own environment: worker.py NAME FOLDER ENDPOINT."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any


class Mem0:
    """Every statement is a message, stored as it is; its day and document are metadata."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        from mem0 import Memory

        embedder = {"model": "e5-small-v2", "openai_base_url": endpoint, "api_key": "none"}
        store = {"path": str(folder / "qdrant"), "embedding_model_dims": 384, "on_disk": True}
        self.memory = Memory.from_config(
            {
                "embedder": {"provider": "openai", "config": embedder},
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(folder / "history.db"),
            }
        )

    def index(self, documents: list[dict[str, Any]]) -> None:
        for document in documents:
            messages = [{"role": "user", "content": text} for text in document["statements"]]
            metadata = {"day": document["day"], "title": document["title"]}
            self.memory.add(messages, user_id="owner", infer=False, metadata=metadata)

    def ask(self, question: str, count: int) -> list[str]:
        found = self.memory.search(question, filters={"user_id": "owner"}, top_k=count)["results"]
        return [f"{one['metadata']['day']} {one['metadata']['title']}: {one['memory']}" for one in found]


class MemSearch:
    """The folder of Markdown files as it is."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        from memsearch import MemSearch as Store

        self.loop = asyncio.new_event_loop()
        self.store = Store(
            [folder / "documents"],
            embedding_model="e5-small-v2",
            embedding_base_url=endpoint,
            embedding_api_key="none",
            milvus_uri=str(folder / "milvus.db"),
        )

    def index(self, documents: list[dict[str, Any]]) -> None:
        self.loop.run_until_complete(self.store.index())

    def ask(self, question: str, count: int) -> list[str]:
        found = self.loop.run_until_complete(self.store.search(question, top_k=count))
        return [f"{Path(one['source']).name} {one['heading']}\n{one['content']}" for one in found]


def main() -> None:
    name, folder, endpoint = sys.argv[1:]
    libraries: dict[str, type[Mem0] | type[MemSearch]] = {"mem0": Mem0, "memsearch": MemSearch}
    library = libraries[name](Path(folder), endpoint)
    for line in sys.stdin:
        request = json.loads(line)
        if "documents" in request:
            library.index(request["documents"])
            print("{}", flush=True)
        else:
            print(json.dumps({"texts": library.ask(request["question"], request["count"])}), flush=True)


if __name__ == "__main__":
    main()
