"""The checked-in document is the one that the code makes."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from typing import Any

import pytest

from app.http.openapi import CHECKED_IN, document
from tests.rows import each

ROOT = CHECKED_IN.parent
DOCUMENT: dict[str, Any] = json.loads(CHECKED_IN.read_text(encoding="utf-8"))
"""The checked-in document. One test compares it with what the code makes, which takes seconds."""
OPERATIONS = [(method, path) for path, item in DOCUMENT["paths"].items() for method in item]
OPEN = {"/presets", "/healthz", "/readyz", "/metrics"}


@cache
def made() -> str:
    """What the code makes."""
    return document()


def test_the_checked_in_document_is_current() -> None:
    assert CHECKED_IN.read_text(encoding="utf-8") == made(), "run: python -m app.http.openapi"


def test_it_is_made_the_same_way_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    first = made()
    monkeypatch.setenv("THROUGHLINE_CORS_ORIGINS", "http://elsewhere.test")
    assert document() == first


def test_the_version_is_the_project_s() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert DOCUMENT["info"]["version"] == project["version"]


@each(("method", "path"), OPERATIONS)
def test_every_operation_names_its_problem_and_its_key(method: str, path: str) -> None:
    operation = DOCUMENT["paths"][path][method]
    kind = "application/json" if path.startswith("/v1/") else "application/problem+json"
    assert operation["responses"]["default"]["content"].keys() == {kind}
    assert "422" not in operation["responses"]
    assert ("security" in operation) is (path not in OPEN)
    assert operation["description"]


@each("path", [path for method, path in OPERATIONS if method == "post"])
def test_every_post_takes_an_idempotency_key(path: str) -> None:
    names = [item["name"] for item in DOCUMENT["paths"][path]["post"]["parameters"]]
    assert "Idempotency-Key" in names


def test_every_reference_leads_somewhere() -> None:
    text = json.dumps(DOCUMENT)
    names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names <= DOCUMENT["components"]["schemas"].keys()
    assert names.isdisjoint({"HTTPValidationError", "ValidationError"})


def test_request_bodies_are_closed() -> None:
    closed = (
        "ConversationCreate",
        "ConversationPatch",
        "MessageAppend",
        "MessageBatch",
        "ChatRequest",
        "CompactRequest",
        "AnchorPatch",
    )
    assert all(DOCUMENT["components"]["schemas"][name]["additionalProperties"] is False for name in closed)
