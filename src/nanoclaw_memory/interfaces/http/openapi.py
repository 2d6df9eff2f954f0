"""The OpenAPI document, made of the route table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError

from nanoclaw_memory import __version__

if TYPE_CHECKING:
    from nanoclaw_memory.interfaces.http.operations import Endpoint

_REFERENCE = "#/components/schemas/{model}"
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


def document(endpoints: Iterable[Endpoint], prefix: str) -> dict[str, Any]:
    """Every endpoint with its arguments and results."""
    paths: dict[str, dict[str, Any]] = {}
    schemas: dict[str, Any] = {"Error": _error_schema()}
    for endpoint in endpoints:
        paths.setdefault(prefix + endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "NanoClaw Memory", "version": __version__},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    schema = endpoint.arguments.model_json_schema(ref_template=_REFERENCE)
    schemas |= schema.pop("$defs", {})
    fields, required = schema.get("properties", {}), schema.get("required", [])
    parameters = [_parameter(name, fields[name], "path", True) for name in endpoint.in_path]
    rest = {name: field for name, field in fields.items() if name not in endpoint.in_path}
    operation: dict[str, Any] = {
        "operationId": endpoint.work.__name__,
        "summary": endpoint.about,
        "responses": _responses(endpoint, schemas),
    }
    if endpoint.method in ("GET", "DELETE"):
        parameters += [_parameter(name, field, "query", name in required) for name, field in rest.items()]
    else:
        body = {"type": "object", "properties": rest, "additionalProperties": False}
        needed = [name for name in required if name in rest]
        if needed:
            body["required"] = needed
        operation["requestBody"] = {
            "required": bool(needed),
            "content": {"application/json": {"schema": body}},
        }
    operation["parameters"] = parameters + _scope_parameters(set(fields))
    return operation


def _parameter(name: str, schema: dict[str, Any], place: str, required: bool) -> dict[str, Any]:
    return {"name": name, "in": place, "required": required, "schema": schema}


def _scope_parameters(taken: set[str]) -> list[dict[str, Any]]:
    about = {"group": "whose memory", "session": "which session asks", "shared": "hide what is private"}
    return [
        {"name": f"X-NanoClaw-{name.title()}", "in": "header", "required": False, "description": text}
        | {"schema": {"type": "boolean" if name == "shared" else "string"}}
        for name, text in about.items()
    ]


def _responses(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    result = _result_schema(endpoint, schemas)
    if endpoint.listed:
        properties = {
            "items": result,
            "total": {"type": "integer"},
            "next_offset": {"type": ["integer", "null"]},
        }
        result = {"type": "object", "properties": properties}
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    answers: dict[str, Any] = {
        "200": {"description": "done", "content": {"application/json": {"schema": result}}}
    }
    return answers | {code: {"description": text, "content": error} for code, text in _ERRORS.items()}


def _result_schema(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    hint = get_type_hints(endpoint.work)["return"]
    try:
        schema: dict[str, Any] = TypeAdapter(hint).json_schema(mode="serialization", ref_template=_REFERENCE)
    except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema, PydanticUserError):
        return {"type": "object"}
    schemas |= schema.pop("$defs", {})
    return schema


def _error_schema() -> dict[str, Any]:
    texts = {name: {"type": "string"} for name in ("type", "message", "hint")}
    error = {"type": "object", "properties": texts, "required": list(texts)}
    return {
        "type": "object",
        "properties": {"ok": {"const": False}, "error": error},
        "required": ["ok", "error"],
    }
