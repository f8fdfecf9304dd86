"""The page at ``/docs``: every endpoint and model, complete without the internet, and without any running script."""

from __future__ import annotations

import json
import re
import shlex
from html.parser import HTMLParser
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest

from app.http import reference
from app.http.openapi import CHECKED_IN
from app.http.reference import POLICY, page
from tests.unit.api_fakes import World, world

DOCUMENT: Final[dict[str, Any]] = json.loads(CHECKED_IN.read_text(encoding="utf-8"))
OPERATIONS: Final = [
    (method, path, operation)
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
]


class Page(HTMLParser):
    """The links, loaded files, scripts and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.ids |= {str(given["id"])} if given.get("id") else set()
        self.links |= {str(given["href"])} if tag == "a" else set()
        self.loaded |= {
            str(value) for name, value in attrs if name in {"src", "action"} or (name, tag) == ("href", "link")
        }

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def shown() -> Page:
    return Page(page(DOCUMENT).decode())


@pytest.fixture
def api() -> World:
    return world()


def test_every_endpoint_and_every_model_is_told(shown: Page) -> None:
    assert shown.ids >= {operation["operationId"] for _, _, operation in OPERATIONS}
    assert shown.ids >= {f"model-{name}" for name in DOCUMENT["components"]["schemas"]}
    for method, path, _ in OPERATIONS:
        assert f"{method.upper()}{path}" in shown.text
    assert "no such endpoint" not in shown.text


def test_it_needs_nothing_from_elsewhere_and_runs_nothing(shown: Page) -> None:
    assert shown.loaded == set()
    assert "script" not in shown.tags
    assert {link for link in shown.links if not link.startswith("#")} == {"/openapi.json"}
    assert {link[1:] for link in shown.links if link.startswith("#")} <= shown.ids, "every link leads somewhere"


def test_every_element_that_is_opened_is_closed() -> None:
    told = page(DOCUMENT).decode()
    for tag in ("details", "summary", "table", "tr", "td", "code", "section", "pre"):
        assert len(re.findall(rf"<{tag}[ >]", told)) == told.count(f"</{tag}>"), tag


def test_what_is_told_is_no_markup_of_the_page() -> None:
    evil = "<script>alert(1)</script> \"'& `<b>`"
    operation = {"operationId": "x", "description": evil, "summary": evil, "responses": {"200": {"description": evil}}}
    made = {"info": {"title": evil, "version": evil}, "paths": {f"/{evil}": {"get": operation}}}
    found = Page(page({**made, "components": {"schemas": {evil: {"description": evil}}}}).decode())

    assert "script" not in found.tags
    assert "b" not in found.tags
    assert "<script>alert(1)</script>" in found.text


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS, ids=lambda value: str(value)[:40])
async def test_each_example_is_a_request_in_the_form_that_the_service_takes(
    api: World, method: str, path: str, operation: dict[str, Any]
) -> None:
    words = shlex.split(reference._curl(DOCUMENT, method.upper(), path, operation))
    assert words[0] == "curl"
    address = next(word for word in words if word.startswith("$api"))
    needed = {one["name"] for one in operation.get("parameters", []) if one["in"] == "query" and one.get("required")}
    assert (urlsplit(address).path, set(parse_qs(urlsplit(address).query))) == (f"$api{path}", needed)
    assert ("Authorization: Bearer $key" in words) == bool(operation.get("security"))
    if "--json" not in words:
        return
    body = words[words.index("--json") + 1]
    filled = re.sub("{[^}]*}", str(uuid4()), path)
    headers = {"content-type": "application/json"}
    async with api.client() as client:
        response = await client.request(method, filled, content=body, headers=headers)
    assert response.status_code not in {400, 422}, response.text


def test_a_parameter_that_is_needed_stands_in_its_example() -> None:
    (search,) = (operation for _, path, operation in OPERATIONS if path.endswith("/search"))
    told = reference._curl(DOCUMENT, "GET", "/conversations/{conversation_id}/search", search)
    assert '"$api/conversations/{conversation_id}/search?q=hello"' in told


def test_every_body_of_the_page_s_own_is_of_an_operation() -> None:
    assert reference._EXAMPLE_BODIES.keys() <= {operation["operationId"] for _, _, operation in OPERATIONS}


async def test_control_a_body_without_what_is_needed_is_refused(api: World) -> None:
    async with api.client() as client:
        response = await client.post("/tokens/count", json={})
    assert response.status_code == 422


async def test_the_service_shows_it_with_a_policy_that_lets_nothing_else_in(api: World) -> None:
    async with api.client(key=None) as client:
        response = await client.get("/docs")
        document_link = await client.get("/openapi.json")
    assert response.status_code == document_link.status_code == 200
    assert response.headers["content-type"].startswith("text/html")
    assert response.headers["content-security-policy"] == POLICY
    assert "default-src 'none'" in POLICY
    assert response.content == page(document_link.json())
