"""The page's files, and the session that a key becomes: who gets in, and from where."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

import httpx
import pytest

from app.devserver import Endpoints
from app.http.browser.own_page import COOKIE
from app.usecases.admin import sessions
from tests.acceptance.chaos import own_database
from tests.acceptance.conftest import own_redis
from tests.acceptance.local import local_service
from tests.acceptance.service import Service
from tests.acceptance.test_keys import keys

OWN: Final = {"Origin": "http://127.0.0.1:8000"}
OTHERS: Final[tuple[dict[str, str], ...]] = (
    {"Origin": "http://127.0.0.1:9000"},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {},
    {**OWN, "Sec-Fetch-Site": "same-site"},
    {**OWN, "Sec-Fetch-Site": "cross-site"},
)


@pytest.fixture(scope="module")
def entered(
    servers: Endpoints, database_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Service, str]]:
    """A service that asks for keys, and a key."""
    with own_database(servers, database_template) as url:
        secret = keys(url, "create", "browser", "--scope", "read", "--scope", "write").stdout.strip()
        settings = {"THROUGHLINE_AUTH_REQUIRED": "true"}
        folder, redis_url = tmp_path_factory.mktemp("page"), own_redis(servers)
        with local_service(folder, database_url=url, redis_url=redis_url, worker=False, settings=settings) as service:
            yield service, secret


@pytest.fixture
def service(entered: tuple[Service, str]) -> Service:
    entered[0].wake()
    return entered[0]


@pytest.fixture
def secret(entered: tuple[Service, str]) -> str:
    return entered[1]


@pytest.fixture
def browser(service: Service) -> Iterator[httpx.Client]:
    with service.client() as client:
        yield client


def log_in(browser: httpx.Client, secret: str) -> httpx.Response:
    return browser.post("/ui/session", json={"key": secret}, headers=OWN)


def test_a_key_becomes_a_cookie_that_scripts_cannot_read(browser: httpx.Client, secret: str) -> None:
    assert browser.get("/conversations").status_code == 401
    entered = log_in(browser, secret)
    assert entered.status_code == 204
    cookie = entered.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    assert {"HttpOnly", "SameSite=strict", "Max-Age=43200", "Path=/"} <= set(cookie.split("; "))
    assert secret not in cookie
    assert browser.get("/conversations").status_code == 200
    made = browser.post("/conversations", json={"title": "mine"}, headers=OWN)
    assert made.status_code == 201
    assert browser.get("/compactions").status_code == 403, "operations want the key itself"

    left = browser.delete("/ui/session", headers=OWN)
    assert (left.status_code, browser.get("/conversations").status_code) == (204, 401)


@pytest.mark.parametrize("headers", OTHERS)
def test_another_sites_request_brings_the_cookie_in_vain(
    browser: httpx.Client, secret: str, headers: dict[str, str]
) -> None:
    log_in(browser, secret)
    assert browser.post("/conversations", json={}, headers=OWN).status_code == 201, "control: the page's own"
    assert browser.post("/conversations", json={}, headers=headers).status_code == 401
    assert browser.post("/ui/session", json={"key": secret}, headers=headers).status_code == 403
    assert browser.delete("/ui/session", headers=headers).status_code == 403
    if headers:
        assert browser.get("/conversations", headers=headers).status_code == 401


def test_only_a_key_that_is_known_gets_in(browser: httpx.Client, secret: str) -> None:
    assert log_in(browser, "tl_wrong").status_code == 401
    assert browser.post("/ui/session", json={"key": ""}, headers=OWN).status_code == 422
    assert "set-cookie" not in log_in(browser, secret[:-1]).headers


def test_a_session_ends_with_its_key(browser: httpx.Client, service: Service) -> None:
    made = keys(service.database_url, "create", "short-lived")
    log_in(browser, made.stdout.strip())
    assert browser.get("/conversations").status_code == 200
    keys(service.database_url, "revoke", made.stderr.split()[1])
    assert browser.get("/conversations").status_code == 401


def test_a_session_ends_after_its_time(browser: httpx.Client, secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "LIFE", timedelta(seconds=-1))
    token = log_in(browser, secret).headers["set-cookie"].split(";")[0]
    ended = browser.get("/conversations", headers={"Cookie": token})
    assert (ended.status_code, ended.json()["code"]) == (401, "unauthenticated")


@pytest.mark.parametrize("change", [lambda token: token[:-2] + "xx", lambda token: token[1:], lambda _: "nonsense"])
def test_a_changed_cookie_is_none(browser: httpx.Client, secret: str, change: object) -> None:
    token = log_in(browser, secret).headers["set-cookie"].split(";")[0].partition("=")[2].strip('"')
    assert callable(change)
    browser.cookies.clear()
    assert browser.get("/conversations", headers={"Cookie": f"{COOKIE}={token}"}).status_code == 200, "control"
    assert browser.get("/conversations", headers={"Cookie": f"{COOKIE}={change(token)}"}).status_code == 401


def test_a_header_comes_before_the_cookie(browser: httpx.Client, secret: str) -> None:
    log_in(browser, secret)
    assert browser.get("/conversations", headers={"Authorization": "Bearer tl_wrong"}).status_code == 401


def test_the_page_itself_asks_for_nothing_and_is_closed_to_others(browser: httpx.Client) -> None:
    assert browser.get("/ui?c=1").headers["location"] == "/ui/?c=1"
    page = browser.get("/ui/", headers={"Accept-Encoding": "gzip"})
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "'unsafe-inline'" not in policy.split("script-src")[1]
    assert (page.headers["x-content-type-options"], page.headers["referrer-policy"]) == ("nosniff", "no-referrer")
    assert page.headers["cache-control"] == "no-cache"
    assert page.headers["content-encoding"] == "gzip"
    assert browser.get("/ui/", headers={"If-None-Match": page.headers["etag"]}).status_code == 304
    script = page.text.split('<script src="')[1].split('"')[0]
    assert "immutable" in browser.get(script).headers["cache-control"]
    assert browser.get("/ui/nothing.js").status_code == 404
    assert browser.get("/ui/..%2f..%2fpyproject.toml").status_code == 404
