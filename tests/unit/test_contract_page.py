"""The page of the HTTP contract states what the code has: paths, codes, fields. The page of failures has every case."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from app.core.model.errors import REMEDIES, ModelFailedError
from app.core.text.localization.catalogue import CATALOGUES
from app.core.validation.gate import judge
from app.http.errors import STATUS, status_of
from app.http.openapi import CHECKED_IN

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


def _written() -> Iterator[str]:
    """Every ``code = "…"`` of a class and every ``code="…"`` of a call."""
    for file in sorted((ROOT / "app").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "code":
                yield from _text(node.value)
            if isinstance(node, ast.Assign) and any(
                isinstance(at, ast.Name) and at.id == "code" for at in node.targets
            ):
                yield from _text(node.value)


def _text(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def test_every_endpoint_is_on_the_page_and_none_besides() -> None:
    assert told(section(PAGE, "Endpoints")) == built()


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


@pytest.mark.parametrize(("name", "fields"), RESOURCE.findall(PAGE))
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
    rows = re.findall(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*)(?: …)? \|", section(page, "When a summary fails"), re.MULTILINE)
    told = {code for row in rows for code in CODE.findall(row)}
    of_the_gate = {code for code in CODE.findall(judge.__doc__ or "") if not code.startswith("saves")}
    assert "unfounded" in of_the_gate
    assert of_the_gate - told == set()
    for catalogue in CATALOGUES.values():
        assert {f"reason.{code}" for code in told} - catalogue.messages.keys() == set(), catalogue.language
