"""The OpenAPI document, generated from the operations."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import msgspec.inspect

from nanoclaw_memory import __version__

if TYPE_CHECKING:
    from nanoclaw_memory.interfaces.http.operation import Operation

_ERRORS = {
    "400": "wrong input",
    "401": "no token, or a wrong one",
    "403": "not for this scope, or a foreign page",
    "404": "not there",
    "413": "too large",
    "421": "a foreign Host",
    "500": "our failure",
    "503": "busy: ask again",
}
_SCOPE = {
    "group": "whose memory",
    "session": "which session asks",
    "shared": "hide what is private",
    "project": "what the person works on",
}


def document(operations: Sequence[Operation], prefix: str) -> dict[str, Any]:
    """Return every operation with its arguments and results."""
    types = [type for operation in operations for type in (operation.arguments, _result_type(operation))]
    found, schemas = msgspec.json.schema_components(
        types, schema_hook=_schema, ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, dict[str, Any]] = {}
    for operation, result in zip(operations, found[1::2], strict=True):
        own = paths.setdefault(prefix + operation.path, {})
        own[operation.method.lower()] = _described(operation, schemas.pop(operation.name), result)
    return {
        "openapi": "3.1.0",
        "info": {"title": "NanoClaw Memory", "version": __version__},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {"Error": _error_schema(), **schemas},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _result_type(operation: Operation) -> Any:
    """Return the type of the result; any object if it is reshaped, or is a union without a schema."""
    found = operation.hints["return"]
    try:
        msgspec.inspect.type_info(found)
    except TypeError:
        return dict[str, Any]
    return dict[str, Any] if operation.shape else found


def _schema(kind: type) -> dict[str, Any]:
    return {"type": "string"}  # a path


def _described(operation: Operation, arguments: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    fields, required = arguments["properties"], arguments.get("required", [])
    in_query = operation.method in ("GET", "DELETE")
    parameters = [
        {
            "name": name,
            "in": "path" if name in operation.in_path else "query",
            "required": name in required,
            "schema": schema,
        }
        for name, schema in fields.items()
        if in_query or name in operation.in_path
    ]
    summary, _, more = (inspect.getdoc(operation.call) or "").partition("\n\n")
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": summary,
        "parameters": [*parameters, *_scope_parameters()],
        "responses": _responses(operation, result),
    }
    if more:
        described["description"] = more
    if not in_query:
        described["requestBody"] = _body(operation, fields, required)
    return described


def _body(operation: Operation, fields: dict[str, Any], required: Sequence[str]) -> dict[str, Any]:
    rest = {name: schema for name, schema in fields.items() if name not in operation.in_path}
    schema: dict[str, Any] = {"type": "object", "properties": rest, "additionalProperties": False}
    needed = [name for name in required if name in rest]
    if needed:
        schema["required"] = needed
    return {"required": bool(needed), "content": {"application/json": {"schema": schema}}}


def _scope_parameters() -> list[dict[str, Any]]:
    return [
        {"name": f"X-NanoClaw-{name.title()}", "in": "header", "required": False, "description": text}
        | {"schema": {"type": "boolean" if name == "shared" else "string"}}
        for name, text in _SCOPE.items()
    ]


def _responses(operation: Operation, result: dict[str, Any]) -> dict[str, Any]:
    if operation.key:
        result = {"type": "object", "properties": {operation.key: result}}
    if operation.paged:
        properties = {
            "items": result,
            "total": {"type": "integer"},
            "next_offset": {"type": ["integer", "null"]},
        }
        result = {"type": "object", "properties": properties}
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    done = {"description": "done", "content": {"application/json": {"schema": result}}}
    return {"200": done} | {code: {"description": text, "content": error} for code, text in _ERRORS.items()}


def _error_schema() -> dict[str, Any]:
    texts = {name: {"type": "string"} for name in ("type", "message", "hint")}
    error = {"type": "object", "properties": texts, "required": list(texts)}
    return {
        "type": "object",
        "properties": {"ok": {"const": False}, "error": error},
        "required": ["ok", "error"],
    }
