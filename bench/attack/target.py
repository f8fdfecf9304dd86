"""The service that is attacked: API and worker as separate processes, keys of every scope, scripted models."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from app.bootstrap import build_container
from app.core.model.records import Scope
from app.core.model.usage_limits import Limits
from app.settings import Settings
from app.storage.migrations import run_migrations
from app.usecases.admin.keys import ALL_SCOPES
from tests.acceptance.chaos import OwnServers
from tests.acceptance.service import Service, running_service
from tests.gemini_server import Gemini, gemini_process
from tests.openai_server import OpenAI, running_openai

OPENAI_MODEL: Final = "openai-responses:gpt-5"
TENANT: Final = "attacked"
USER: Final = "eva"
"""The end user whose key is ``user``."""
Keys = Mapping[str, tuple[str, frozenset[Scope], str | None]]
"""The tenant, scopes and end user of each key, by the key's name."""
READ: Final[frozenset[Scope]] = frozenset({"read"})
WRITE: Final[frozenset[Scope]] = frozenset({"read", "write"})
KEYS: Final[Keys] = {
    "admin": (TENANT, ALL_SCOPES, None),
    "writer": (TENANT, WRITE, None),
    "reader": (TENANT, READ, None),
    "user": (TENANT, WRITE, USER),
}
UNLIMITED: Final = json.dumps(dict.fromkeys(Limits.model_fields))
"""No limits: a request that a limit refuses would show nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A running service that requires keys."""

    service: Service
    keys: Mapping[str, str]
    """The secrets of the keys, by name."""
    gemini: Gemini
    openai: OpenAI

    @property
    def url(self) -> str:
        """The address of the API."""
        return self.service.url

    def client(self, name: str | None) -> httpx.Client:
        """A client with the key of that name, or without one."""
        return self.service.client(self.keys[name] if name else None)

    def headers(self, name: str | None) -> dict[str, str]:
        """The headers of a request with that key."""
        return {"Authorization": f"Bearer {self.keys[name]}"} if name else {}


def settings_for(gemini: Gemini, openai: OpenAI) -> dict[str, str]:
    """The environment of the service: keys are required, nothing is limited, the models are scripted."""
    return {
        "THROUGHLINE_AUTH_REQUIRED": "1",
        "THROUGHLINE_FAILED_KEYS_PER_MINUTE": "0",
        "THROUGHLINE_TENANT_LIMITS": UNLIMITED,
        "THROUGHLINE_KEY_LIMITS": UNLIMITED,
        "THROUGHLINE_TENANT_CALLS_PER_HOUR": "1000000",
        "THROUGHLINE_MODELS": f"{OPENAI_MODEL},offline",
        "THROUGHLINE_REQUEST_TIMEOUT_SECONDS": "20",
        "GOOGLE_API_KEY": "test",
        "GOOGLE_GEMINI_BASE_URL": gemini.url,
        "OPENAI_API_KEY": "test",
        "OPENAI_BASE_URL": openai.url,
    }


def make_keys(database_url: str, redis_url: str, wanted: Keys) -> dict[str, str]:
    """Make keys; return their secrets by name. It runs in a thread, since the caller may be in an event loop."""
    settings = Settings(_env_file=None, database_url=database_url, redis_url=redis_url)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(_make_keys(settings, wanted))).result(120)


async def _make_keys(settings: Settings, wanted: Keys) -> dict[str, str]:
    container = await build_container(settings)
    made: dict[str, str] = {}
    try:
        for name, (tenant, scopes, user) in wanted.items():
            _, made[name] = await container.keys.create(tenant, name, scopes, user_id=user)
    finally:
        await container.close()
    return made


@contextlib.contextmanager
def running_target(folder: Path, wanted: Keys = KEYS, **settings: Any) -> Iterator[Target]:
    """Run a service with servers of its own; everything is removed afterwards."""
    with OwnServers(folder / "servers") as servers, gemini_process() as gemini, running_openai() as openai:
        endpoints = servers.endpoints
        run_migrations(endpoints.database_url)
        keys = make_keys(endpoints.database_url, endpoints.redis_url, wanted)
        chosen = {**settings_for(gemini, openai), **settings}
        home = folder / "service"
        home.mkdir()
        with running_service(
            home, database_url=endpoints.database_url, redis_url=endpoints.redis_url, settings=chosen
        ) as service:
            yield Target(service=service, keys=keys, gemini=gemini, openai=openai)
