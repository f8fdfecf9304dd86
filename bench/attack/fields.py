"""Lists every text field of every route from the OpenAPI document: each can take a hostile string."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import quote

from tests.servers import ROOT

Json = dict[str, Any]
Where = Literal["body", "query", "path", "header"]

DEEPEST: Final = 8
FIXED_FORMATS: Final = frozenset({"uuid"})
HEADERS: Final = ("X-Request-Id", "If-Match", "X-Conversation-Id", "X-User-Id", "Content-Type", "Accept", "Origin")
"""Headers that the service reads; not all of them are in the document."""
BASES: Final[Mapping[str, Json]] = {
    "POST /conversations/{conversation_id}/messages": {"role": "user", "content": "Hello."},
    "POST /conversations/{conversation_id}/messages/batch": {"messages": [{"role": "user", "content": "Hello."}]},
    "POST /conversations/{conversation_id}/chat": {"content": "Hello."},
    "POST /conversations/{conversation_id}/ui": {
        "message": {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Hello."}]}
    },
    "POST /conversations/{conversation_id}/segments": {"segment_id": "s1", "level": "brief"},
    "POST /tokens/count": {},
    "POST /v1/responses": {"input": "Hello.", "store": False},
    "POST /v1/responses/input_tokens": {"input": "Hello."},
    "POST /v1/responses/compact": {"input": "Hello.", "model": "throughline"},
    "POST /v1/chat/completions": {"model": "throughline", "messages": [{"role": "user", "content": "Hello."}]},
}
"""What a body needs besides the field where its schema does not say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A place where a text can be put."""

    method: str
    path: str
    where: Where
    name: str
    """A dotted path in a body, or a parameter's name; ``…<key>`` stands for the key of an open object."""
    template: Json | None = None
    """The body with ``MARK`` in the place of the text."""

    @property
    def operation(self) -> str:
        """The operation's name as Schemathesis writes it."""
        return f"{self.method} {self.path}"

    def __str__(self) -> str:
        return f"{self.operation} {self.where} {self.name}"


MARK: Final = "(the text under attack)"


def with_text(template: Any, text: str) -> Any:
    """The template with a text in the place of the mark."""
    if isinstance(template, str):
        return text if template == MARK else template
    if isinstance(template, list):
        return [with_text(item, text) for item in template]
    if isinstance(template, dict):
        return {with_text(key, text): with_text(value, text) for key, value in template.items()}
    return template


def in_path(text: str) -> str:
    """A text as one segment of a path, without what no address can hold."""
    return quote(text.encode("utf-8", "replace")[:2_000], safe="") or "%20"


def document() -> Json:
    """The OpenAPI document that is checked in."""
    found: Json = json.loads((ROOT / "openapi.json").read_text(encoding="utf-8"))
    return found


def fields() -> list[Field]:
    """All fields, in the order of the document."""
    read = document()
    found: list[Field] = []
    for path, methods in read["paths"].items():
        for method, operation in methods.items():
            found += _of_operation(read, method.upper(), path, operation)
    return found


def _of_operation(read: Json, method: str, path: str, operation: Json) -> Iterator[Field]:
    for parameter in operation.get("parameters", ()):
        yield Field(method=method, path=path, where=parameter["in"], name=parameter["name"])
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body is None:
        return
    base = BASES.get(f"{method} {path}")
    for name, template in _texts(read, body, 0):
        yield Field(method=method, path=path, where="body", name=name, template=_on(base, template))


def _on(base: Any, template: Any) -> Any:
    """The base with the template's mark in it; fields that only the template has are kept."""
    if isinstance(base, dict) and isinstance(template, dict):
        both = {key: _on(base[key], value) if key in base else value for key, value in template.items()}
        return {**base, **both}
    if isinstance(base, list) and isinstance(template, list) and base and template:
        return [_on(base[0], template[0]), *template[1:]]
    return template if base is None or MARK in repr(template) else base


def _resolved(read: Json, schema: Json) -> Json:
    while "$ref" in schema:
        schema = read["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _texts(read: Json, schema: Json, depth: int) -> Iterator[tuple[str, Any]]:
    """Each place for a text below a schema, with the smallest value that has it."""
    schema = _resolved(read, schema)
    if depth > DEEPEST:
        return
    for branch in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _texts(read, branch, depth + 1)
    kind = schema.get("type")
    if kind == "string" and not {"enum", "const"} & schema.keys() and schema.get("format") not in FIXED_FORMATS:
        yield "", MARK
    if kind == "array" and "items" in schema:
        yield from ((_joined("0", name), [value]) for name, value in _texts(read, schema["items"], depth + 1))
    if kind == "object" or "properties" in schema:
        yield from _in_object(read, schema, depth)


def _in_object(read: Json, schema: Json, depth: int) -> Iterator[tuple[str, Any]]:
    smallest = _smallest(read, schema, depth)
    for name, inner in schema.get("properties", {}).items():
        for below, value in _texts(read, inner, depth + 1):
            yield _joined(name, below), {**copy.deepcopy(smallest), name: value}
    if schema.get("additionalProperties", not schema.get("properties")) not in (False, None):
        yield "<key>", {**smallest, MARK: "x"}
        yield "<value>", {**smallest, "x": MARK}


def _joined(name: str, below: str) -> str:
    return f"{name}.{below}" if below else name


def _smallest(read: Json, schema: Json, depth: int) -> Any:  # noqa: PLR0911 - one return for each kind
    """The smallest value that a schema accepts."""
    schema = _resolved(read, schema)
    if "const" in schema:
        return schema["const"]
    for known in ("default", "enum", "examples"):
        if schema.get(known) is not None:
            return schema[known] if known == "default" else schema[known][0]
    branches = (*schema.get("anyOf", ()), *schema.get("oneOf", ()))
    if branches and depth <= DEEPEST:
        return _smallest(read, branches[0], depth + 1)
    match schema.get("type"):
        case "string":
            return "00000000-0000-7000-8000-000000000000" if schema.get("format") == "uuid" else "Hello"
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case "array":
            return [_smallest(read, schema["items"], depth + 1) for _ in range(schema.get("minItems", 0))]
        case "null":
            return None
    needed = schema.get("required", ()) if depth <= DEEPEST else ()
    return {name: _smallest(read, schema["properties"][name], depth + 1) for name in needed}
