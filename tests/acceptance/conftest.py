"""Services that run for all acceptance tests, others of a test's own, and conversations that clean up after themselves.

The shared services live as long as this package, so that their workers never take jobs of other tests' queues.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar

import pytest
import redis

from app.devserver import Endpoints
from tests.acceptance.chaos import own_database
from tests.acceptance.local import local_service
from tests.acceptance.service import Service, running_service
from tests.acceptance.talk import Talk
from tests.gemini_server import Gemini, running_gemini
from tests.servers import redis_database

StartService = Callable[..., Service]
StartTalk = Callable[..., Talk]
RunService = Callable[..., AbstractContextManager[Service]]

_SHARED_REDIS = range(9, 16)
_OWN_REDIS = itertools.cycle(range(1, 9))
_NUMBERS = itertools.count(1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    for process in (process for service in Service.running for process in service.processes):
        process.begin_test()
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


def uses_processes(node: pytest.Item | pytest.Collector) -> bool:
    """Whether a test runs over processes: all tests do with ``--transport process``, others if they are marked."""
    return node.config.getoption("transport") == "process" or node.get_closest_marker("processes") is not None


def _flushed(url: str) -> str:
    with contextlib.closing(redis.from_url(url)) as connection:
        connection.flushdb()
    return url


def own_redis(servers: Endpoints) -> str:
    """Empty a logical database that no running service uses, and return its address."""
    return _flushed(redis_database(servers.redis_url, next(_OWN_REDIS)))


class SharedServices:
    """The services that many tests use, each started when the first test asks for it."""

    _awake: ClassVar[list[Service]] = []

    def __init__(self, servers: Endpoints, template: str, folders: pytest.TempPathFactory) -> None:
        self._servers = servers
        self._template = template
        self._folders = folders
        self._redis_numbers = list(_SHARED_REDIS)
        self._started: dict[tuple[object, ...], tuple[Service, contextlib.ExitStack]] = {}

    def get(self, name: str, *, processes: bool, **settings: str) -> Service:
        """The named service, in processes of its own or not. It takes the place of the one asked for longest ago."""
        key = (name, processes, *settings.items())
        if key in self._started:
            service, stack = self._started.pop(key)
        else:
            service, stack = self._start(name, processes=processes, settings=settings)
        self._started[key] = service, stack
        service.wake()
        self._awake.append(service)
        return service

    def _start(
        self, name: str, *, processes: bool, settings: Mapping[str, str]
    ) -> tuple[Service, contextlib.ExitStack]:
        if not self._redis_numbers:
            oldest = next(key for key, (service, _) in self._started.items() if service not in self._awake)
            self._started.pop(oldest)[1].close()
        number = self._redis_numbers.pop(0)
        run, stack = running_service if processes else local_service, contextlib.ExitStack()
        stack.callback(self._redis_numbers.append, number)
        redis_url = _flushed(redis_database(self._servers.redis_url, number))
        database_url = stack.enter_context(own_database(self._servers, self._template))
        service = stack.enter_context(
            run(self._folders.mktemp(name), database_url=database_url, redis_url=redis_url, settings=settings)
        )
        return service, stack

    @classmethod
    def rest(cls) -> None:
        """Between tests; each service that is asked for wakes."""
        while cls._awake:
            cls._awake.pop().rest()

    def stop(self) -> None:
        while self._started:
            self._started.popitem()[1][1].close()


@pytest.fixture(scope="package")
def shared_services(
    servers: Endpoints, database_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedServices]:
    """The services that live as long as this package."""
    shared = SharedServices(servers, database_template, tmp_path_factory)
    yield shared
    shared.stop()


@pytest.fixture
def offline(shared_services: SharedServices, request: pytest.FixtureRequest) -> Service:
    """The service without a key: the offline model."""
    return shared_services.get("offline", processes=uses_processes(request.node))


@pytest.fixture(scope="package")
def gemini_server() -> Iterator[Gemini]:
    """The scripted Gemini of the shared service; tests ask for ``gemini``."""
    with running_gemini() as server:
        yield server


@pytest.fixture
def gemini_service(shared_services: SharedServices, gemini_server: Gemini, request: pytest.FixtureRequest) -> Service:
    """The service with Gemini for both models; it gives a request twenty seconds."""
    settings = {"THROUGHLINE_REQUEST_TIMEOUT_SECONDS": "20", **gemini_settings(gemini_server)}
    return shared_services.get("gemini", processes=uses_processes(request.node), **settings)


def gemini_settings(server: Gemini) -> dict[str, str]:
    """The environment that points a service at the scripted server."""
    return {"GOOGLE_API_KEY": "test", "GOOGLE_GEMINI_BASE_URL": server.url}


@pytest.fixture
def run_service(request: pytest.FixtureRequest) -> RunService:
    """``running_service``, or ``local_service`` if the test needs no process."""
    return running_service if uses_processes(request.node) else local_service


@pytest.fixture
def start_service(
    servers: Endpoints, database_template: str, tmp_path: Path, run_service: RunService
) -> Iterator[StartService]:
    """A maker of services of the test's own: ``start_service(worker=True, **environment)``."""
    with contextlib.ExitStack() as stack:

        def start(*, worker: bool = True, redis_url: str | None = None, **settings: str) -> Service:
            folder = tmp_path / f"service-{next(_NUMBERS)}"
            folder.mkdir()
            return stack.enter_context(
                run_service(
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
    SharedServices.rest()


@pytest.fixture
def gemini(gemini_server: Gemini) -> Iterator[Gemini]:
    """The scripted server, honest and with nothing recorded."""
    gemini_server.reset()
    yield gemini_server
    gemini_server.reset()
