"""An OpenAI-compatible embedding server over our local model, on loopback, for systems without a model of their own.

    python bench/embedding_server.py [--models DIR] [--port N]

Prints its address when it is ready. e5 wants to know whether a text is a question or a passage, which the protocol
does not say. A text that begins with one of its prefixes keeps it; others are passages, or questions from `PUT /query`
to `PUT /passage`. With all of them as questions half of the answers in `bench/peers` were lost.
"""

from __future__ import annotations

import argparse
import base64
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from nanoclaw_memory.providers.local import LocalEmbedder
from nanoclaw_memory.providers.models import embedder

MODELS = Path("~/.nanoclaw/models").expanduser()


class Handler(BaseHTTPRequestHandler):
    """`POST …/embeddings` with `input` as a text or a list of texts; `PUT /ROLE`."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    embedder: LocalEmbedder
    role = "passage"

    def do_PUT(self) -> None:
        Handler.role = self.path.strip("/")
        self.answer({"role": Handler.role})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
        vectors = [self.vector(text) for text in texts]
        if request.get("encoding_format") == "base64":
            rows: list[Any] = [base64.b64encode(vector.tobytes()).decode() for vector in vectors]
        else:
            rows = [vector.tolist() for vector in vectors]
        self.answer(
            {
                "object": "list",
                "model": request.get("model", ""),
                "data": [
                    {"object": "embedding", "index": place, "embedding": row}
                    for place, row in enumerate(rows)
                ],
                "usage": {"prompt_tokens": 0, "total_tokens": 0},
            }
        )

    def vector(self, text: str) -> Any:
        prefix = next((one for one in ("passage", "query") if text.startswith(f"{one}: ")), "")
        bare = text.removeprefix(f"{prefix}: ")
        passage = (prefix or self.role) == "passage"
        found = self.embedder.embed_documents([bare])[0] if passage else self.embedder.embed_query(bare)
        return np.asarray(found, dtype=np.float32)

    def answer(self, body: dict[str, Any]) -> None:
        raw = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    Handler.embedder = LocalEmbedder(*embedder(options.models))
    Handler.embedder.embed_query("warm up")
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
