"""Every setting that .env offers reaches the containers; docker-compose.yml is read as Compose reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from app.settings import Settings

ROOT: Final = Path(__file__).resolve().parents[2]
SERVICES: Final = ("api", "worker", "migrate")
EXAMPLE: Final = re.compile(r"^(?:# )?([A-Z][A-Z_]+)=", re.MULTILINE)
REFERENCE: Final = re.compile(r"\$\{(?P<name>\w+)(?::-(?P<default>[^}]*)|:\?[^}]*)?\}")
NOT_SETTINGS: Final = {"POSTGRES_PASSWORD"}
FIXED: Final = {"DATABASE_URL", "REDIS_URL", "HOST", "PORT", "THROUGHLINE_AUTH_REQUIRED"}
"""Settings that .env cannot change: Compose has its own servers and network, and always asks for keys."""

Compose = dict[str, Any]


@pytest.fixture
def compose() -> Compose:
    loaded: Compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return loaded


def offered() -> set[str]:
    """The settings that .env.example names, also those behind a comment sign."""
    return set(EXAMPLE.findall((ROOT / ".env.example").read_text())) - NOT_SETTINGS


def environment(service: Mapping[str, Any], dotenv: Mapping[str, str]) -> dict[str, str]:
    """The variables of a container: those of its ``env_file``, then its own, with ``${…}`` from the same file."""
    files = [item["path"] for item in service.get("env_file", ())]
    assert set(files) <= {".env"}

    def value_of(found: re.Match[str]) -> str:
        return dotenv.get(found["name"]) or found["default"] or ""

    own = {name: REFERENCE.sub(value_of, str(value)) for name, value in service["environment"].items()}
    return {**(dotenv if files else {}), **own}


def lost(compose: Compose, name: str) -> set[str]:
    """Settings in .env whose values do not reach a service unchanged."""
    dotenv = {setting: f"value of {setting}" for setting in offered()} | {"POSTGRES_PASSWORD": "secret"}
    there = environment(compose["services"][name], dotenv)
    return {setting for setting in offered() - FIXED if there.get(setting) != dotenv[setting]}


@pytest.mark.parametrize("name", SERVICES)
def test_every_setting_of_the_example_reaches_the_container(compose: Compose, name: str) -> None:
    assert len(offered() - FIXED) > 20
    assert lost(compose, name) == set()


@pytest.mark.parametrize("name", SERVICES)
def test_control_without_the_file_settings_are_lost(compose: Compose, name: str) -> None:
    without = deepcopy(compose)
    del without["services"][name]["env_file"]
    assert "THROUGHLINE_TENANT_CALLS_PER_HOUR" in lost(without, name)


def test_what_is_fixed_is_fixed_for_a_reason_and_set(compose: Compose) -> None:
    api = compose["services"]["api"]["environment"]
    assert api.keys() >= FIXED
    assert {"HOST": "0.0.0.0", "PORT": "8000"}.items() <= api.items()  # noqa: S104 - within the container's network


def test_a_container_without_a_dotenv_file_starts_from_the_shell_alone(compose: Compose) -> None:
    assert all(compose["services"][name]["env_file"] == [{"path": ".env", "required": False}] for name in SERVICES)


def test_a_spend_limit_in_dotenv_holds_in_the_containers(compose: Compose, monkeypatch: pytest.MonkeyPatch) -> None:
    dotenv = {"POSTGRES_PASSWORD": "s", "THROUGHLINE_TENANT_CALLS_PER_HOUR": "7", "THROUGHLINE_MODELS": "offline,a:b"}
    for name in ("api", "worker"):
        for variable, value in environment(compose["services"][name], dotenv).items():
            monkeypatch.setenv(variable, value)
        settings = Settings(_env_file=None)
        assert (settings.tenant_calls_per_hour, settings.models) == (7, ("offline", "a:b"))
        assert settings.auth_required is True


def test_who_may_sign_in_to_the_page_is_known_to_its_server(compose: Compose) -> None:
    page = (ROOT / "docs" / "web.md").read_text()
    named = set(re.findall(r"`(WEB_[A-Z_]+)`", page)) - {"WEB_PUBLISHED_ON_LOOPBACK", "WEB_PORT"}
    dotenv = {name: f"value of {name}" for name in named}
    there = environment(compose["services"]["web"], dotenv)

    assert {"WEB_USERS", "WEB_SECRET", "WEB_IDENTITY_HEADER", "WEB_PROXY_SECRET"} <= named
    assert {name: there.get(name) for name in named} == dotenv
    assert "${WEB_PORT:-" in str(compose["services"]["web"]["ports"])
    assert not any(environment(compose["services"]["web"], {})[name] for name in named), "unset, nobody signs in"


def test_only_the_api_and_the_worker_reach_the_servers(compose: Compose) -> None:
    """Redis asks for no password, and the page's server is the one that strangers may reach."""
    services = compose["services"]
    networks = {name: set(one["networks"]) for name, one in services.items()}
    near = {name for name in services if networks[name] & (networks["postgres"] | networks["redis"])}
    assert near == {"postgres", "redis", "migrate", "key", "api", "worker"}
    assert networks["web"] & networks["api"]
    assert {name for name, one in services.items() if "ports" in one} == {"api", "web"}


def test_a_page_that_asks_for_a_login_is_healthy(compose: Compose) -> None:
    (*_, check) = compose["services"]["web"]["healthcheck"]["test"]
    assert "401" in check
    assert "problem(401" in (ROOT / "web" / "src" / "server" / "passing.ts").read_text(), "what it answers without one"
