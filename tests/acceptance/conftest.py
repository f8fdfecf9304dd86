"""Services that run for all acceptance tests, others of a test's own, and conversations that clean up after themselves.

The shared services live as long as this package, so that their workers never take jobs of other tests' queues.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from app.embedded import Endpoints
from tests.acceptance.chaos import own_database
from tests.acceptance.service import Service, running_service
from tests.acceptance.talk import Talk
from tests.gemini_server import Gemini, gemini_process
from tests.servers import redis_database

StartService = Callable[..., Service]
StartTalk = Callable[..., Talk]

_OFFLINE_REDIS, _GEMINI_REDIS = 14, 15
_OWN_REDIS = itertools.cycle(range(1, 14))
_NUMBERS = itertools.count(1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    for process in (process for service in Service.running for process in service.processes):
        process.shown_from = len(process.log)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the services wrote during a test that failed."""
    report = yield
    if report.failed:
        for service in Service.running:
            for process in service.processes:
                if written := process.log_of_test:
                    report.sections.append((f"{process.name} of {service.url}", written))
    return report


def _flushed(url: str) -> str:
    with contextlib.closing(redis.from_url(url)) as connection:
        connection.flushdb()
    return url


def own_redis(servers: Endpoints) -> str:
    """A logical database that no running service uses, emptied."""
    return _flushed(redis_database(servers.redis_url, next(_OWN_REDIS)))


@pytest.fixture(scope="package")
def offline(servers: Endpoints, database_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service without a key: the offline model."""
    folder, redis_url = tmp_path_factory.mktemp("offline"), _flushed(redis_database(servers.redis_url, _OFFLINE_REDIS))
    with (
        own_database(servers, database_template) as database_url,
        running_service(folder, database_url=database_url, redis_url=redis_url) as service,
    ):
        yield service


@pytest.fixture(scope="package")
def gemini_server() -> Iterator[Gemini]:
    """The scripted Gemini of the shared service; tests ask for ``gemini``."""
    with gemini_process() as server:
        yield server


@pytest.fixture(scope="package")
def gemini_service(
    servers: Endpoints, database_template: str, gemini_server: Gemini, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """The service with Gemini for both models; it gives a request eight seconds."""
    folder, redis_url = tmp_path_factory.mktemp("gemini"), _flushed(redis_database(servers.redis_url, _GEMINI_REDIS))
    with (
        own_database(servers, database_template) as database_url,
        running_service(
            folder,
            database_url=database_url,
            redis_url=redis_url,
            settings={"THROUGHLINE_REQUEST_TIMEOUT_SECONDS": "8", **gemini_settings(gemini_server)},
        ) as service,
    ):
        yield service


def gemini_settings(server: Gemini) -> dict[str, str]:
    """The environment that points a service at the scripted server."""
    return {"GOOGLE_API_KEY": "test", "GOOGLE_GEMINI_BASE_URL": server.url}


@pytest.fixture
def start_service(servers: Endpoints, database_template: str, tmp_path: Path) -> Iterator[StartService]:
    """A maker of services of the test's own: ``start_service(worker=True, **environment)``."""
    with contextlib.ExitStack() as stack:

        def start(*, worker: bool = True, redis_url: str | None = None, **settings: str) -> Service:
            folder = tmp_path / f"service-{next(_NUMBERS)}"
            folder.mkdir()
            return stack.enter_context(
                running_service(
                    folder,
                    database_url=stack.enter_context(own_database(servers, database_template)),
                    redis_url=redis_url or own_redis(servers),
                    worker=worker,
                    settings=settings,
                )
            )

        yield start


@pytest.fixture(autouse=True)
def start_talk() -> Iterator[StartTalk]:
    """A maker of conversations: ``start_talk(service, policy=…)``.

    They are deleted, so that none is due in a later test and takes what that test has scripted. For every test, so
    that it ends last, when scripts are honest again and nothing is held.
    """
    talks: list[Talk] = []

    def start(service: Service, *, key: str | None = None, **fields: Any) -> Talk:
        talks.append(Talk.begin(service, key=key, **fields))
        return talks[-1]

    yield start
    for talk in talks:
        talk.close()


@pytest.fixture
def gemini(gemini_server: Gemini) -> Iterator[Gemini]:
    """The scripted server, honest and with nothing recorded."""
    gemini_server.reset()
    yield gemini_server
    gemini_server.reset()
