"""Without keys only known hosts are answered, and a foreign page cannot send any POST without being allowed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from app.http.hosts import is_known
from app.http.openapi import CHECKED_IN
from app.settings import Settings
from tests.rows import each
from tests.unit.api_fakes import PATH_IDS, World, world

PATH = "/conversations"
OPEN: dict[str, Any] = {"embedded": True, "allowed_hosts": ("devbox.example", "192.0.2.7", "2001:db8::7")}
KNOWN = (
    "localhost",
    "localhost:8000",
    "LocalHost.",
    "app.localhost:3000",
    "127.0.0.1",
    "127.8.9.10:1",
    "[::1]",
    "[::1]:8000",
    "devbox.example",
    "DEVBOX.example:8000",
    "192.0.2.7:80",
    "[2001:db8::7]",
)
FOREIGN = (
    "",
    "evil.example",
    "evil.example:8000",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evil.example@localhost",
    "localhost@evil.example",
    "localhost, evil.example",
    "localhost/evil.example",
    "evil-localhost",
    "0.0.0.0",  # noqa: S104 - refused is what is tested
    "192.168.1.5",
    "169.254.169.254",
    "[::]",
    "[::1",
    "::1",
    "2130706433",
    "x.devbox.example",
    "localhost:",
    "localhost:http",
)
FILES = "/conversations/{conversation_id}/files"
UPLOAD = FILES.format(**PATH_IDS)
PATHS = json.loads(CHECKED_IN.read_text("utf-8"))["paths"]
POSTS = [path for path, item in PATHS.items() if "post" in item and path != FILES]


def open_world() -> World:
    made = world(**OPEN)
    made.keys.is_open = True
    return made


@each("host", KNOWN)
async def test_known_hosts_are_answered_without_a_key(host: str) -> None:
    async with open_world().client(key=None) as client:
        response = await client.get(PATH, headers={"Host": host})
    assert response.status_code == 200


@each("host", FOREIGN)
@pytest.mark.case("66-host")
async def test_foreign_hosts_are_not(host: str) -> None:
    api = open_world()
    async with api.client(key=None) as client:
        for answer in (
            await client.get(PATH, headers={"Host": host}),
            await client.post(PATH, json={}, headers={"Host": host}),
        ):
            assert (answer.status_code, answer.json()["code"]) == (421, "host_not_allowed")
            assert answer.headers["content-type"] == "application/problem+json"
            assert "THROUGHLINE_ALLOWED_HOSTS" in answer.json()["detail"]
            assert answer.headers["x-request-id"]
    assert api.calls.made == []


@pytest.mark.long
@pytest.mark.parametrize("host", FOREIGN)
async def test_control_where_keys_are_asked_for_the_host_is_of_no_matter(host: str) -> None:
    async with world(embedded=True, auth_required=True).client() as client:
        response = await client.get(PATH, headers={"Host": host})
    assert response.status_code == 200


async def test_a_frontend_on_the_same_machine_goes_on_working() -> None:
    origin = {"Origin": "http://localhost:3000", "Host": "localhost:8000"}
    asked = {**origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    async with open_world().client(key=None) as client:
        preflight = await client.options(PATH, headers=asked)
        created = await client.post(PATH, json={}, headers=origin)
    assert (preflight.status_code, created.status_code) == (200, 201)
    for answer in (preflight, created):
        assert answer.headers["access-control-allow-origin"] == "http://localhost:3000"


async def test_a_refusal_can_be_read_by_the_frontend() -> None:
    async with open_world().client(key=None) as client:
        response = await client.get(PATH, headers={"Origin": "http://localhost:3000", "Host": "evil.example"})
    assert response.status_code == 421
    assert response.headers["access-control-allow-origin"] == "http://localhost:3000"


async def test_two_hosts_are_none() -> None:
    async with open_world().client(key=None) as client:
        response = await client.get(PATH, headers=[("Host", "localhost"), ("Host", "localhost")])
    assert response.status_code == 421


def test_a_long_header_is_not_repeated_in_full() -> None:
    assert not is_known("a" * 100_000, ())
    assert not is_known("localhost:" + "0" * 100_000, ())


@pytest.mark.parametrize("name", ["http://devbox", "devbox:8000", "*", "*.example", "", "a b", "devbox/"])
def test_a_setting_that_is_no_host_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="is no host"):
        Settings(_env_file=None, allowed_hosts=(name,))


def test_the_setting_takes_a_list_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THROUGHLINE_ALLOWED_HOSTS", "DevBox.local, [2001:DB8::0:7]")
    assert Settings(_env_file=None).allowed_hosts == ("devbox.local", "2001:db8::7")


@pytest.mark.daily(3)
@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
@pytest.mark.parametrize("path", POSTS)
@pytest.mark.case("66-post")
async def test_a_post_that_any_page_could_send_is_refused(path: str, kind: str | None) -> None:
    api = open_world()
    async with api.client(key=None) as client:
        headers = {"Host": "localhost"} | ({} if kind is None else {"Content-Type": kind})
        response = await client.post(path.format(**PATH_IDS), headers=headers)
    told = response.json()
    told = told.get("error", told)
    assert (response.status_code, told["code"]) == (415, "unsupported_media_type")
    assert "`Content-Type: application/json`" in told.get("detail", told.get("message"))
    assert api.calls.made == []


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
@pytest.mark.case("66-post")
async def test_a_file_that_any_page_could_send_is_refused(kind: str | None) -> None:
    """A file may be plain text; it is accepted only with a header that a browser first asks the service about."""
    api = open_world()
    async with api.client(key=None) as client:
        headers = {"Host": "localhost"} | ({} if kind is None else {"Content-Type": kind})
        response = await client.post(UPLOAD, params={"name": "plan.txt"}, content=b"We", headers=headers)
    told = response.json()
    refused = (422, "invalid_input") if kind == "text/plain" else (415, "unsupported_media_type")
    assert (response.status_code, told["code"]) == refused
    assert [error["field"] for error in told.get("errors") or ()] == ["Idempotency-Key"] * (kind == "text/plain")
    assert api.calls.made == []


async def test_control_a_file_with_that_header_is_taken() -> None:
    api = open_world()
    headers = {"Host": "localhost", "Content-Type": "text/plain", "Idempotency-Key": "one"}
    async with api.client(key=None) as client:
        response = await client.post(UPLOAD, params={"name": "plan.txt"}, content=b"We", headers=headers)
    assert response.status_code not in {415, 422}


@pytest.mark.long
@pytest.mark.parametrize("path", POSTS)
async def test_control_with_the_content_type_an_empty_body_is_read(path: str) -> None:
    api = open_world()
    api.calls.answers["chat.start"] = None
    async with api.client(key=None) as client:
        headers = {"Host": "localhost", "Content-Type": "application/json"}
        response = await client.post(path.format(**PATH_IDS), headers=headers)
    assert response.status_code != 415
