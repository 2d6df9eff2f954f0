"""A small model server on loopback: speaks enough of the Anthropic and OpenAI protocols for the real clients."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANSWER = "Noted."


class ModelServer:
    """Keeps every request it got; answers each with the same short text."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
                server.requests.append((self.path, body))
                if "/messages" in self.path and "count_tokens" in self.path:
                    self.reply("application/json", json.dumps({"input_tokens": 10}))
                elif "/messages" in self.path:
                    streamed = bool(body.get("stream"))
                    self.reply("text/event-stream", anthropic_stream()) if streamed else self.reply(
                        "application/json", json.dumps(anthropic_message())
                    )
                elif "/responses" in self.path:
                    self.reply("text/event-stream", openai_stream())
                elif "streamGenerateContent" in self.path:
                    self.reply("text/event-stream", f"data: {json.dumps(gemini_answer())}\r\n\r\n")
                elif "generateContent" in self.path:
                    self.reply("application/json", json.dumps(gemini_answer()))
                else:
                    self.reply("application/json", "{}")

            def do_GET(self) -> None:
                self.reply("application/json", json.dumps({"object": "list", "data": [], "models": []}))

            def reply(self, kind: str, text: str) -> None:
                raw = text.encode()
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: Any) -> None:
                return

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"

    def seen(self) -> str:
        """Everything any request said, as one text."""
        return json.dumps([body for _, body in self.requests], ensure_ascii=False)


@contextmanager
def model_server() -> Iterator[ModelServer]:
    server = ModelServer()
    thread = threading.Thread(target=server.http.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        server.http.server_close()


def events(*items: dict[str, Any]) -> str:
    return "".join(f"event: {item['type']}\ndata: {json.dumps(item)}\n\n" for item in items)


def anthropic_message() -> dict[str, Any]:
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test",
        "content": [{"type": "text", "text": ANSWER}], "stop_reason": "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 2},
    }  # fmt: skip


def gemini_answer() -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": ANSWER}]}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": {}}


def anthropic_stream() -> str:
    start = {**anthropic_message(), "content": [], "stop_reason": None}
    return events(
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ANSWER}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 2},
        },
        {"type": "message_stop"},
    )


def openai_stream() -> str:
    item = {
        "type": "message", "id": "m1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": ANSWER, "annotations": []}],
    }  # fmt: skip
    usage = {
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 12,
    }  # fmt: skip
    return events(
        {"type": "response.created", "response": {"id": "r1"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {
            "type": "response.output_text.delta",
            "item_id": "m1",
            "output_index": 0,
            "content_index": 0,
            "delta": ANSWER,
        },
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "r1", "output": [item], "usage": usage}},
    )
