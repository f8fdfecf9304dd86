"""The page of the HTTP contract states what the code has: paths, codes, fields. The page of failures has every case."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args

from app.core.model.errors import REMEDIES, ModelFailedError
from app.core.model.json_sizes import METADATA_BYTES, SCRATCHPAD_BYTES
from app.core.model.repairs import RepairReason
from app.core.text.localization.catalogue import CATALOGUES
from app.core.validation.gate import judge
from app.http.errors import STATUS, status_of
from app.http.fields import MAX_POLICY_BYTES
from app.http.openapi import CHECKED_IN
from app.http.strict_json import MAX_VALUES
from app.providers.failures import _REASONS, _STATUSES
from app.usecases.history.drafts import MESSAGE_BYTES
from tests.rows import each
from tests.unit.warning_codes import warning_codes

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")
DOCUMENT: Final[dict[str, Any]] = json.loads(CHECKED_IN.read_text(encoding="utf-8"))
OPERATION: Final = re.compile(r"`(GET|POST|PUT|PATCH|DELETE) (/[^`?]*)`")
CODE: Final = re.compile(r"`([a-z_]+)`")
RESOURCE: Final = re.compile(r"^\*\*(\w+)\*\* `\{(.+?)\}`(?:$|,)", re.MULTILINE)

Operations = set[tuple[str, str]]


def section(page: str, title: str) -> str:
    """The text under a heading."""
    return page.split(f"\n## {title}\n")[1].split("\n## ", maxsplit=1)[0]


def told(part: str) -> Operations:
    """The operations in the first column of a table."""
    cells = (line.split(" | ")[0] for line in part.splitlines() if line.startswith("| `"))
    return {(method, nameless(path)) for cell in cells for method, path in OPERATION.findall(cell)}


def nameless(path: str) -> str:
    """The path without the names of its parameters, for which the page writes `id` if that is clear."""
    return re.sub(r"\{\w+\}", "{}", path)


def built() -> Operations:
    return {(method.upper(), nameless(path)) for path, item in DOCUMENT["paths"].items() for method in item}


def codes_on(page: str) -> dict[str, int]:
    rows = re.findall(r"^\| (\d{3}) \| (.+) \|$", section(page, "Errors"), re.MULTILINE)
    return {code: int(status) for status, codes in rows for code in CODE.findall(codes)}


@cache
def codes_in_code() -> dict[str, int]:
    """The codes by their statuses; codes that only a ``raise`` names have the status of a failed model."""
    failed = status_of(ModelFailedError("x"))
    return {**dict.fromkeys(_written(), failed), **STATUS}


def nodes_of_files_with(pattern: str) -> Iterator[ast.AST]:
    """Every node of the files of the service in which the pattern occurs; to parse all of them takes seconds."""
    for file in sorted((ROOT / "app").rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        if re.search(pattern, source):
            yield from ast.walk(ast.parse(source))


def _written() -> Iterator[str]:
    """Every ``code = "…"`` of a class and every ``code="…"`` of a call."""
    for node in nodes_of_files_with(r"\bcode\b[^=\n]*=[\s(]*[\"']"):
        if isinstance(node, ast.keyword) and node.arg == "code":
            yield from _text(node.value)
        if isinstance(node, ast.Assign) and any(isinstance(at, ast.Name) and at.id == "code" for at in node.targets):
            yield from _text(node.value)


def _text(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def test_every_endpoint_is_on_the_page_and_none_besides() -> None:
    on_page = told(section(PAGE, "Endpoints"))
    assert not built() - on_page, "docs/contract.md has no row for these endpoints"
    assert not on_page - built(), "docs/contract.md has rows for endpoints that are not there"


PAGED: Final = {"limit", "after", "order"}
"""Parameters of every list, which the page names once."""
INLINE: Final = re.compile(r"`[^`]+`")
WORD: Final = re.compile(r"\w+")


def rows_of(page: str) -> dict[str, str]:
    """For each path without `/v1` the rows of the endpoints about it, one after the other."""
    rows: dict[str, str] = {}
    for line in section(page, "Endpoints").splitlines():
        for path in {nameless(path) for _, path in OPERATION.findall(line.split(" | ")[0]) if line.startswith("| `")}:
            rows[path] = f"{rows.get(path, '')}\n{line}"
    return rows


def unnamed_on(page: str) -> set[tuple[str, str]]:
    """Fields of bodies, and parameters of queries, that the row of their endpoint does not name."""
    rows = rows_of(page)
    asked = ((path, name) for path, item in DOCUMENT["paths"].items() if "/v1/" not in path for name in _asked(item))
    return {(path, name) for path, name in asked if name not in WORD.findall(rows[nameless(path)])}


def _asked(item: dict[str, Any]) -> Iterator[str]:
    for operation in item.values():
        yield from {at["name"] for at in operation.get("parameters", []) if at["in"] == "query"} - PAGED
        for content in operation.get("requestBody", {}).get("content", {}).values():
            name = content["schema"].get("$ref", "").rpartition("/")[2]
            yield from DOCUMENT["components"]["schemas"].get(name, {}).get("properties", {})


def test_every_field_and_parameter_of_a_request_is_in_the_row_of_its_endpoint() -> None:
    assert unnamed_on(PAGE) == set()


def test_control_a_row_that_forgets_a_field_is_seen() -> None:
    without = PAGE.replace("messageId?, utc_offset?, ", "messageId?, ").replace("`?status=failed`", "")
    assert unnamed_on(without) == {("/conversations/{conversation_id}/ui", "utc_offset"), ("/compactions", "status")}


def test_every_warning_is_on_the_page_and_none_besides() -> None:
    rows = [line.split(" | ")[0] for line in section(PAGE, "Warnings").splitlines() if line.startswith("| `")]
    told = [code for row in rows for code in re.findall(r"`([a-z_]+)(?::<\w+>)?`", row)]
    assert sorted(told) == sorted(warning_codes())


def own_schemas() -> Iterator[dict[str, Any]]:
    """Every schema, and every part of one, of all endpoints without `/v1`."""
    schemas, seen = DOCUMENT["components"]["schemas"], set[str]()
    todo = [item for path, item in DOCUMENT["paths"].items() if "/v1/" not in path]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            yield part
            name = str(part.get("$ref", "")).rpartition("/")[2]
            if name in schemas and name not in seen:
                seen.add(name)
                todo.append(schemas[name])
        todo += part.values() if isinstance(part, dict) else part if isinstance(part, list) else []


@cache
def named_on_pages() -> frozenset[str]:
    """The words in code and in blocks of all pages."""
    pages = "\n\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md"))
    block = re.compile(r"```.*?```", re.DOTALL)
    code = [
        *block.findall(pages),
        *(one for part in block.sub("", pages).split("\n\n") for one in INLINE.findall(part)),
    ]
    words = {word for one in code for word in re.findall(r"[\w.-]+", one)}
    return frozenset(words | {part for word in words for part in word.split(".")})


def test_every_fixed_word_of_the_contract_is_on_a_page() -> None:
    found = (word for part in own_schemas() for word in (*part.get("enum", ()), part.get("const")))
    words = {word for word in found if isinstance(word, str)}
    assert len(words) > 150
    assert {"degraded", "restarting", "does_not_pay"} <= words
    assert words - named_on_pages() == set()


def test_every_field_of_the_contract_is_on_a_page() -> None:
    fields = {name for part in own_schemas() for name in part.get("properties", {})}
    assert len(fields) > 250
    assert fields - named_on_pages() == set()


def extras() -> Iterator[str]:
    """The fields that only some errors have."""
    for node in nodes_of_files_with(r"\bextra\b"):
        match node:
            case ast.keyword(arg="extra", value=ast.Dict(keys=keys)):
                yield from (text for key in keys if key for text in _text(key))
            case ast.Assign(targets=[ast.Name(id="extra")], value=ast.Dict(keys=keys)):
                yield from (text for key in keys if key for text in _text(key))
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="extra"), attr="setdefault"), args=[key, _]):
                yield from _text(key)


def test_every_field_that_only_some_errors_have_is_on_the_page() -> None:
    rows = section(PAGE, "Errors").split("| `code` | further fields |")[1]
    told = {name for line in rows.splitlines() if line.startswith("| ") for name in CODE.findall(line.split(" | ")[-1])}
    named = set(extras())
    assert {"message_id", "reset_seconds", "minimum"} <= named
    assert named - told == set()


def test_the_sizes_on_the_page_are_those_of_the_document() -> None:
    schemas, sizes = DOCUMENT["components"]["schemas"], PAGE.split("**Sizes.**")[1].split("\n\n")[0]
    fields = {
        "ConversationCreate": ("system_prompt", "title", "user_id"),
        "MessageAppend": ("parts",),
        "ChatRequest": ("instructions", "passages", "tool_results", "tools"),
        "PassageInput": ("text",),
        "ContextRequest": ("query",),
        "CompactRequest": ("focus",),
        "MessageBatch": ("messages",),
    }
    of_the_document = {
        int(most)
        for name, found in fields.items()
        for field in found
        for most in re.findall(r'"max(?:Length|Items)": (\d+)', json.dumps(schemas[name]["properties"][field]))
    }
    told = {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", sizes)}
    assert told - of_the_document == {
        METADATA_BYTES,
        SCRATCHPAD_BYTES,
        MESSAGE_BYTES,
        MAX_POLICY_BYTES,
        MAX_VALUES,
        422,
        413,
    }
    assert of_the_document - told == set()


def test_what_is_planned_is_not_there_yet() -> None:
    planned = told(section(PAGE, "Planned"))
    assert len(planned) > 2
    assert planned & built() == set(), "it is there: move its row up"


def test_every_code_is_on_the_page_with_its_status() -> None:
    differ = dict(codes_on(PAGE).items() ^ codes_in_code().items())
    assert not differ, f"docs/contract.md and STATUS in app/http/errors.py (a code that it lacks: 502) differ: {differ}"


def test_every_reason_that_lasts_is_on_the_page_and_none_besides() -> None:
    told = section(PAGE, "Errors").split("where `reason` is ")[1].split(", and")[0]
    assert set(CODE.findall(told)) == REMEDIES.keys()


def test_planned_codes_are_in_no_code_yet() -> None:
    row = next(line for line in section(PAGE, "Planned").splitlines() if line.startswith("| Errors |"))
    assert codes_in_code().keys() & set(CODE.findall(row)) == set(), "it is there: move it up"


@each(("name", "fields"), RESOURCE.findall(PAGE))
def test_a_resource_has_the_fields_that_the_page_names(name: str, fields: str) -> None:
    assert set(fields.split(", ")) == DOCUMENT["components"]["schemas"][name]["properties"].keys()


def test_the_resources_are_there() -> None:
    named = {name for name, _ in RESOURCE.findall(PAGE)}
    assert {"Conversation", "Message", "Gauge", "Compaction", "AssembledContext", "Event"} <= named


def test_control_a_page_that_forgets_or_invents_is_seen() -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith("| `GET /presets`"))
    without = PAGE.replace(row, "| `GET /presents` | each with its policy |")
    assert told(section(without, "Endpoints")) ^ built() == {("GET", "/presets"), ("GET", "/presents")}
    fewer = PAGE.replace("`not_folded`, ", "").replace("| 500 | `internal_error` |", "| 501 | `internal_error` |")
    assert set(codes_in_code().items()) - set(codes_on(fewer).items()) == {("not_folded", 422), ("internal_error", 500)}


def test_every_reason_for_a_refused_summary_is_on_the_page_of_thresholds_and_in_words() -> None:
    page = (ROOT / "docs" / "thresholds.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \|", section(page, "When a summary fails"), re.MULTILINE)
    told = {code for row in rows for code in CODE.findall(row)}
    of_the_gate = {code for code in CODE.findall(judge.__doc__ or "") if not code.startswith("saves")}
    assert "unfounded" in of_the_gate
    assert of_the_gate - told == set()
    for catalogue in CATALOGUES.values():
        assert {f"reason.{code}" for code in told} - catalogue.messages.keys() == set(), catalogue.language


def test_every_reason_of_a_compaction_has_words_and_a_row_on_the_page_of_thresholds() -> None:
    """Besides these have words: the reason of useless vectors, and one that rows of earlier versions may have."""
    page = section((ROOT / "docs" / "thresholds.md").read_text(encoding="utf-8"), "When a summary fails")
    told = {code for line in page.splitlines() if line.startswith("| `") for code in CODE.findall(line.split(" | ")[0])}
    of_providers = {word for _, word, _ in _REASONS} | {word for word, _ in _STATUSES.values()} | REMEDIES.keys()
    assert of_providers - told == set()
    for catalogue in CATALOGUES.values():
        words = {key.removeprefix("reason.") for key in catalogue.messages if key.startswith("reason.")}
        assert words ^ told == {"bad_vectors", "probes"}, catalogue.language


def test_every_reason_of_a_repair_has_words_and_a_row_on_the_page_of_trust() -> None:
    page = section((ROOT / "docs" / "trust.md").read_text(encoding="utf-8"), "The reasons of repairs")
    told = re.findall(r"^\| `([a-z_]+)` \| ", page, re.MULTILINE)
    assert sorted(told) == sorted(get_args(RepairReason))
    for catalogue in CATALOGUES.values():
        assert {f"repair.{code}" for code in told} == {key for key in catalogue.messages if key.startswith("repair.")}
