"""A small model server on loopback: speaks enough of the Anthropic and OpenAI protocols for the real clients."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

ANSWER = "Noted."


class ModelServer:
    """Keeps every request it got; answers each with the same short text, after one tool call if it is to make one."""

    def __init__(self, call: tuple[str, dict[str, Any]] | None = None) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.call = call
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
                server.requests.append((self.path, body))
                call = server.next_call(body)
                if "/messages" in self.path and "count_tokens" in self.path:
                    self.reply("application/json", json.dumps({"input_tokens": 10}))
                elif "/messages" in self.path:
                    streamed = bool(body.get("stream"))
                    self.reply("text/event-stream", anthropic_stream(call)) if streamed else self.reply(
                        "application/json", json.dumps(anthropic_message())
                    )
                elif "/responses" in self.path:
                    self.reply("text/event-stream", openai_stream(call))
                elif "streamGenerateContent" in self.path:
                    self.reply("text/event-stream", f"data: {json.dumps(gemini_answer(call))}\r\n\r\n")
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

    def next_call(self, body: dict[str, Any]) -> Call | None:
        """The tool call that this request is answered with: the first one that offers the tool."""
        offered = [offer for offer in offers(body) if self.call and offer[1].endswith(self.call[0])]
        if not offered or self.call is None:
            return None
        (namespace, name), arguments = offered[0], self.call[1]
        self.call = None
        return Call(namespace, name, arguments)

    def seen(self) -> str:
        """Everything any request said, as one text."""
        return json.dumps([body for _, body in self.requests], ensure_ascii=False)


class Call(NamedTuple):
    """A call of a tool, by the name that the client gave it."""

    namespace: str
    name: str
    arguments: dict[str, Any]


def offers(body: dict[str, Any]) -> list[tuple[str, str]]:
    """The tools that a request offers, each with its namespace."""
    found = []
    for tool in body.get("tools") or ():
        inner = tool.get("functionDeclarations") or (
            tool.get("tools") if tool.get("type") == "namespace" else None
        )
        own = tool.get("name", "") if inner else ""
        found += [(own, str(one.get("name"))) for one in (inner or [tool])]
    return found


@contextmanager
def model_server(call: tuple[str, dict[str, Any]] | None = None) -> Iterator[ModelServer]:
    """A running server; with `call`, a tool and its arguments, it calls that tool once when it is offered."""
    server = ModelServer(call)
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


def gemini_answer(call: Call | None = None) -> dict[str, Any]:
    part = {"functionCall": {"name": call.name, "args": call.arguments}} if call else {"text": ANSWER}
    content = {"role": "model", "parts": [part]}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": {}}


def anthropic_stream(call: Call | None = None) -> str:
    start = {**anthropic_message(), "content": [], "stop_reason": None}
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta: dict[str, Any] = {"type": "text_delta", "text": ANSWER}
    if call:
        block = {"type": "tool_use", "id": "toolu_1", "name": call.name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}
    stopped = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    return events(
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stopped, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    )


def openai_stream(call: Call | None = None) -> str:
    item: dict[str, Any] = {
        "type": "message", "id": "m1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": ANSWER, "annotations": []}],
    }  # fmt: skip
    if call:
        item = {
            "type": "function_call", "id": "f1", "call_id": "c1", "name": call.name, "status": "completed",
            "arguments": json.dumps(call.arguments), **({"namespace": call.namespace} if call.namespace else {}),
        }  # fmt: skip
    usage = {
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 12,
    }  # fmt: skip
    return events(
        {"type": "response.created", "response": {"id": "r1"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "r1", "output": [item], "usage": usage}},
    )
