"""The page at ``/docs``: every endpoint of the OpenAPI document, on one page that loads nothing else.

It has no script and needs no internet, so no foreign code runs next to an open API.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any, Final

Json = Mapping[str, Any]

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin: 2.5rem 0 .5rem; border-bottom: 1px solid var(--line); }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .35rem 0; }
summary { cursor: pointer; padding: .35rem .6rem; }
details > :not(summary) { margin: .6rem; }
code, pre, .method { font-family: ui-monospace, monospace; font-size: .9em; }
pre { background: var(--soft); padding: .6rem; overflow-x: auto; border-radius: .3rem; }
.method { display: inline-block; width: 4.5rem; font-weight: 700; }
.told { opacity: .75; }
table { border-collapse: collapse; width: calc(100% - 1.2rem); }
td, th { border-top: 1px solid var(--line); padding: .25rem .5rem; text-align: left; vertical-align: top; }
nav a { margin-right: .8rem; }
""".strip()
POLICY: Final = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; style-src 'sha256-"
    + base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    + "'"
)
"""The content security policy of the page: its own style, and nothing else."""
_DEEPEST_EXAMPLE: Final = 12
"""How deep an example follows a schema; models may contain themselves."""
_LIMITS: Final[Mapping[str, str]] = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "default": "default {}",
}
_EXAMPLES: Final[Mapping[str, Any]] = {"string": "…", "integer": 1, "number": 1, "boolean": True, "array": []}

_HELLO: Final = {"role": "user", "content": "Hello."}
_EXAMPLE_BODIES: Final[Mapping[str, Any]] = {
    "create_conversation": {"title": "A talk"},
    "append_message": _HELLO,
    "append_messages": {"messages": [_HELLO]},
    "make_level": {"from_seq": 1, "to_seq": 20, "level": "brief"},
    "chat": {"content": "Hello."},
    "answer_ui_message": {"message": {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Hello."}]}},
    "count_tokens": {"text": "Hello."},
    "create_chat_completion": {"model": "throughline", "messages": [_HELLO]},
    "create_response": {"model": "throughline", "input": "Hello."},
    "count_response_input": {"model": "throughline", "input": "Hello."},
    "compact_response": {"model": "throughline", "input": [_HELLO]},
}
"""Example bodies by the operation's id, for operations whose required fields are too few or are alternatives."""

_EXAMPLE_PARAMETERS: Final = {"name": "file.pdf"}
"""Values of parameters that are needed, where no word will do."""


def page(document: Json) -> bytes:
    """The whole page; making it takes some tens of milliseconds of CPU."""
    groups: dict[str, list[str]] = defaultdict(list)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            groups[next(iter(operation.get("tags", [])), "further")].append(
                _operation(document, method.upper(), path, operation)
            )
    models = document["components"]["schemas"]
    title = escape(f"{document['info']['title']} {document['info']['version']}")
    links = " ".join(f'<a href="#group-{escape(name)}">{escape(name)}</a>' for name in [*groups, "models"])
    sections = "".join(_section(name, operations) for name, operations in groups.items())
    models_markup = "".join(_model(name, schema) for name, schema in models.items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}: every endpoint</title><style>{_STYLE}</style></head><body>"
        f"<h1>{title}</h1><p>{_description_markup(document['info'].get('description', ''))}</p>"
        '<p>Every endpoint, with what it takes and answers. The same for programs: <a href="/openapi.json">'
        "<code>openapi.json</code></a>, which any tool for OpenAPI reads. The examples are for a shell in which "
        "<code>api</code> is this address, and <code>key</code> your key (none is needed in open mode).</p>"
        f"<nav>{links}</nav>{sections}{_section('models', [models_markup])}</body></html>"
    ).encode()


def _section(name: str, blocks: Iterable[str]) -> str:
    return f'<section><h2 id="group-{escape(name)}">{escape(name)}</h2>{"".join(blocks)}</section>'


def _operation(document: Json, method: str, path: str, operation: Json) -> str:
    parameters = operation.get("parameters", [])
    bodies = operation.get("requestBody", {}).get("content", {})
    blocks = [f"<p>{_description_markup(operation.get('description', ''))}</p>"]
    if parameters:
        blocks.append(_table(("parameter", "where", "type", ""), map(_parameter_row, parameters)))
    blocks += [
        f"<p>Body, <code>{escape(kind)}</code>: {_type(body.get('schema', {}))}</p>" for kind, body in bodies.items()
    ]
    blocks.append(f"<pre>{escape(_curl(document, method, path, operation))}</pre>")
    blocks.append(_table(("answer", "", "body"), _answer_rows(operation["responses"])))
    name = escape(operation["operationId"])
    summary = (
        f'<span class="method">{method}</span><code>{escape(path)}</code> '
        f'<span class="told">{escape(operation.get("summary", ""))}</span>'
    )
    return f'<details id="{name}"><summary>{summary}</summary>{"".join(blocks)}</details>'


def _parameter_row(one: Json) -> tuple[str, ...]:
    schema = one.get("schema", {})
    description = one.get("description") or schema.get("description", "")
    return (
        _name(one["name"], required=one.get("required", False)),
        escape(one["in"]),
        _type(schema),
        _description_and_limits(schema, description),
    )


def _answer_rows(responses: Json) -> Iterator[tuple[str, ...]]:
    for status, response in responses.items():
        bodies = [
            f"<code>{escape(kind)}</code> {_type(body.get('schema', {}))}"
            for kind, body in response.get("content", {}).items()
        ]
        named = "any error" if status == "default" else status
        yield escape(named), _description_markup(response.get("description", "")), "<br>".join(bodies)


def _model(name: str, schema: Json) -> str:
    required = schema.get("required", [])
    rows = [
        (_name(field, required=field in required), _type(one), _description_and_limits(one, one.get("description", "")))
        for field, one in schema.get("properties", {}).items()
    ]
    intro = f"<p>{_description_markup(schema.get('description', ''))}</p>"
    inside = _table(("field", "type", ""), rows) if rows else f"<p>{_type(schema)}</p>"
    return f'<details id="model-{escape(name)}"><summary><code>{escape(name)}</code></summary>{intro}{inside}</details>'


def _name(name: str, *, required: bool) -> str:
    return f"<code>{escape(name)}</code>{' <b>needed</b>' if required else ''}"


def _description_and_limits(schema: Json, description: str) -> str:
    limits = [words.format(json.dumps(schema[key])) for key, words in _LIMITS.items() if key in schema]
    return ". ".join(filter(None, [_description_markup(description).removesuffix("."), escape(", ".join(limits))]))


def _type(schema: Any) -> str:
    """A type in words; models are links to their descriptions."""
    if not isinstance(schema, Mapping) or not schema:
        return "any"
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#model-{name}">{name}</a>'
    if choices := _choices(schema):
        return " | ".join(map(_type, choices))
    if values := _values(schema):
        return " | ".join(f"<code>{escape(json.dumps(one, ensure_ascii=False))}</code>" for one in values)
    return _plain_type(schema)


def _choices(schema: Json) -> list[Any]:
    return next((schema[key] for key in ("anyOf", "oneOf", "allOf") if key in schema), [])


def _values(schema: Json) -> list[Any]:
    return [schema["const"]] if "const" in schema else schema.get("enum", [])


def _plain_type(schema: Json) -> str:
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items'))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"object of {_type(schema['additionalProperties'])}"
    return escape(f"{kind} ({schema['format']})" if "format" in schema else str(kind))


def _curl(document: Json, method: str, path: str, operation: Json) -> str:
    """The request as a shell command, with the required fields and parameters."""
    needed = [one["name"] for one in operation.get("parameters", []) if one["in"] == "query" and one.get("required")]
    query = "&".join(f"{name}={_EXAMPLE_PARAMETERS.get(name, 'hello')}" for name in needed)
    lines = [f'curl {"" if method == "GET" else f"-X {method} "}"$api{path}{"?" if query else ""}{query}"']
    if operation.get("security"):
        lines.append('-H "Authorization: Bearer $key"')
    bodies = operation.get("requestBody", {}).get("content", {})
    if "application/json" in bodies:
        least = _shortest_example(document, bodies["application/json"].get("schema", {}), _DEEPEST_EXAMPLE)
        body = _EXAMPLE_BODIES.get(operation["operationId"], least)
        lines.append(f"--json '{json.dumps(body, ensure_ascii=False)}'")
    elif bodies:
        lines.append("-H 'Content-Type: application/pdf' --data-binary @file.pdf")
    elif method == "POST":
        lines.append("--json '{}'")
    return " \\\n  ".join(lines)


def _shortest_example(document: Json, schema: Any, depth: int) -> Any:
    if not isinstance(schema, Mapping) or not depth:
        return {}
    if "$ref" in schema:
        return _shortest_example(
            document, document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], depth - 1
        )
    if choices := _choices(schema):
        return _shortest_example(document, choices[0], depth - 1)
    if values := _values(schema):
        return values[0]
    return _plain_example(document, schema, depth - 1)


def _plain_example(document: Json, schema: Json, depth: int) -> Any:
    if schema.get("type") == "array" and schema.get("minItems"):
        return [_shortest_example(document, schema.get("items"), depth)]
    if "properties" not in schema:
        return _EXAMPLES.get(schema.get("type", ""), {})
    needed = schema.get("required", [])
    return {
        name: _shortest_example(document, one, depth) for name, one in schema["properties"].items() if name in needed
    }


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    first = "".join(f"<th>{escape(name)}</th>" for name in head)
    # Cells already contain markup.
    further = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{first}</tr>{further}</table>"


def _description_markup(text: str) -> str:
    pieces = escape(text.replace("``", "`")).split("`")
    markup = "".join(f"<code>{piece}</code>" if number % 2 else piece for number, piece in enumerate(pieces))
    return markup.replace("\n\n", "<br><br>")
