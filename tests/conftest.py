"""Real servers for tests that ask for them; a test that asks for none starts none.

``servers`` is PostgreSQL and Valkey from the wheels, over a temporary folder, without waiting for the disk.
``TEST_DATABASE_URL`` and ``TEST_REDIS_URL`` name servers that are there already;
``THROUGHLINE_TESTCONTAINERS=1`` takes containers where a Docker engine answers.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import os
import signal
import ssl
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import pytest
import redis
import structlog

from app.devserver import EmbeddedServers, Endpoints
from app.storage.migrations import run_migrations
from tests import profiles
from tests.engines import share_compiled_statements
from tests.servers import SharedDatabase, execute_sql, redis_database, unused_port, with_database

pytest_plugins = ["tests.skips"]

_TEMPLATE = "throughline_template"
# Database 0 stays free for programs that open the server's address without a number.
_REDIS_DATABASES = itertools.cycle(range(1, 16))
_NUMBERS = itertools.count(1)
_STARTED_AT = time.monotonic()
_VARIANTS: Counter[str] = Counter()  # the variants collected so far, by the name of the test without its parameters
_TIERS = {"acceptance": 0, "integration": 1, "unit": 2}  # longest files first, so that short ones end a run

# Collecting thousands of tests makes millions of objects that stay: by default a third of the time goes into looking
# for garbage among them.
gc.set_threshold(50_000, 20, 50)

# A developer's own settings must not decide what the tests see.
_FOREIGN = ("LC_", "DATABASE_URL", "REDIS_URL", "HOST", "PORT", "GOOGLE_", "GEMINI_", "OPENAI_", "THROUGHLINE_", "PG")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--transport",
        choices=("asgi", "process"),
        default="asgi",
        help="how acceptance tests reach the service: in this process, or over HTTP in processes of its own",
    )
    parser.addoption(
        "--limit", type=float, metavar="SECONDS", help="leave out the tests that would begin after so many seconds"
    )


def configure_logs() -> None:
    """Log plain lines: the default renders a traceback with all frames' variables, which is slower than many tests."""
    structlog.reset_defaults()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
        ]
    )


@pytest.fixture
def plain_logs() -> Iterator[None]:
    """Reset the log level, since another test of this process may have set one above that of warnings."""
    before = structlog.get_config()
    configure_logs()
    yield
    structlog.configure(**before)


def pytest_configure(config: pytest.Config) -> None:
    # Some shells start background jobs with SIGINT ignored, and so would every process that a test starts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in tuple(os.environ):
        if name.startswith(_FOREIGN) and name != "THROUGHLINE_TESTCONTAINERS":
            del os.environ[name]
    os.environ["LANG"] = "C.UTF-8"
    # Each HTTP client loads the machine's certificates, which takes longer than most requests; no test needs them.
    setattr(ssl, "create_default_context", functools.cache(ssl.create_default_context))  # noqa: B010 - for mypy
    configure_logs()
    share_compiled_statements()
    profiles.load()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark all but the first n variants of a parametrized test with ``daily(n)`` as long."""
    daily = item.get_closest_marker("daily")
    if daily is None:
        return
    test = item.nodeid.partition("[")[0]
    _VARIANTS[test] += 1
    if _VARIANTS[test] > daily.args[0]:
        item.add_marker(pytest.mark.long)


def _tier(item: pytest.Item) -> str:
    return item.nodeid.removeprefix("tests/").partition("/")[0]


def _needs_processes(item: pytest.Item) -> bool:
    """Whether a test is one of the acceptance tests, or a long one on real servers."""
    tier = _tier(item)
    return tier == "acceptance" or (tier == "integration" and item.get_closest_marker("long") is not None)


def _begins_late(item: pytest.Item) -> bool:
    """With a limit to their time, tests that kill processes begin first."""
    return item.config.getoption("limit") is not None and item.get_closest_marker("processes") is None


def docker_answers() -> bool:
    """Whether a Docker engine answers. It is asked only if told to; a command without an engine proves nothing."""
    if os.environ.get("THROUGHLINE_TESTCONTAINERS") != "1":
        return False
    import docker  # noqa: PLC0415 - slow, and seldom wanted

    try:
        return bool(docker.from_env(timeout=2).ping())
    except Exception as error:  # noqa: BLE001 - whatever it is, there is no engine
        warnings.warn(f"THROUGHLINE_TESTCONTAINERS=1, but no Docker engine answers: {error}", stacklevel=2)
        return False


def pytest_collection_finish() -> None:
    # Thousands of collected tests stay until the end: no collection of garbage needs to look through them again.
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    limit: float | None = item.config.getoption("limit")
    if limit is not None and time.monotonic() - _STARTED_AT > limit:
        pytest.skip(f"left out: the {limit:.0f} seconds of this run were over")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("transport") == "process":
        chosen = [item for item in items if _needs_processes(item)]
        kept = set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = chosen
    items.sort(key=lambda item: (_begins_late(item), _TIERS.get(_tier(item), 0)))  # stable: otherwise as collected
    marked = [item for item in items if item.get_closest_marker("docker")]
    if marked and not docker_answers():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="needs a Docker engine and THROUGHLINE_TESTCONTAINERS=1"))


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoints]:
    """PostgreSQL and Redis or Valkey for the whole session."""
    database_url, redis_url = os.environ.get("TEST_DATABASE_URL"), os.environ.get("TEST_REDIS_URL")
    with contextlib.ExitStack() as stack:
        if not (database_url and redis_url):
            started = (
                stack.enter_context(_containers())
                if docker_answers()
                else stack.enter_context(EmbeddedServers(tmp_path_factory.mktemp("servers"), durable=False))
            )
            database_url, redis_url = database_url or started.database_url, redis_url or started.redis_url
        yield Endpoints(database_url=database_url, redis_url=redis_url)


@contextlib.contextmanager
def _containers() -> Iterator[Endpoints]:
    from testcontainers.community.postgres import PostgresContainer  # noqa: PLC0415 - warns without an engine
    from testcontainers.community.redis import RedisContainer  # noqa: PLC0415 - the same

    with PostgresContainer("postgres:18", driver="asyncpg") as postgres, RedisContainer("valkey/valkey:9") as valkey:
        address = f"{valkey.get_container_host_ip()}:{valkey.get_exposed_port(6379)}"
        yield Endpoints(database_url=postgres.get_connection_url(), redis_url=f"redis://{address}/0")


@pytest.fixture(scope="session")
def database_template(servers: Endpoints) -> Iterator[str]:
    """The name of a database that was built by the real migrations."""
    name = f"{_TEMPLATE}_{os.getpid()}"
    execute_sql(servers.database_url, f"CREATE DATABASE {name}")
    run_migrations(with_database(servers.database_url, name))
    yield name
    execute_sql(servers.database_url, f"DROP DATABASE {name} WITH (FORCE)")


@contextlib.contextmanager
def _migrated_database(servers: Endpoints, template: str) -> Iterator[str]:
    name = f"test_{os.getpid()}_{next(_NUMBERS)}"
    execute_sql(servers.database_url, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield with_database(servers.database_url, name)
    execute_sql(servers.database_url, f"DROP DATABASE {name} WITH (FORCE)")


@contextlib.contextmanager
def _shared_database(servers: Endpoints, template: str) -> Iterator[SharedDatabase]:
    with _migrated_database(servers, template) as url, contextlib.closing(SharedDatabase(url)) as database:
        yield database


class SpareDatabase:
    """A migrated database without rows, which one module after the other takes: making and dropping one takes longer
    than most tests."""

    def __init__(self, make: Callable[[], contextlib.AbstractContextManager[SharedDatabase]]) -> None:
        self._make = make
        self._stack = contextlib.ExitStack()
        self._spare: SharedDatabase | None = None

    @contextlib.contextmanager
    def taken(self) -> Iterator[SharedDatabase]:
        """The spare database, or a new one if the last could not be emptied."""
        database = self._spare or self._stack.enter_context(self._make())
        self._spare = None
        yield database
        with contextlib.suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
            database.empty()
            self._spare = database

    def close(self) -> None:
        """Drop all databases that were made."""
        self._stack.close()


@pytest.fixture(scope="session")
def spare_database(servers: Endpoints, database_template: str) -> Iterator[SpareDatabase]:
    """The spare database from which the modules take theirs."""
    with contextlib.closing(SpareDatabase(lambda: _shared_database(servers, database_template))) as spare:
        yield spare


@pytest.fixture(scope="module")
def module_database(spare_database: SpareDatabase) -> Iterator[SharedDatabase]:
    """A migrated database that the tests of a module share."""
    with spare_database.taken() as database:
        yield database


@pytest.fixture(scope="module")
def module_database_url(module_database: SharedDatabase) -> str:
    """The module's database with the rows that the tests before have left in it."""
    return module_database.url


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A migrated database without rows: the module's, emptied afterwards, or one of the test's own.

    ``@pytest.mark.own_database`` asks for the latter: for tests that change tables or statistics, or break connections.
    """
    if request.node.get_closest_marker("own_database"):
        servers, template = request.getfixturevalue("servers"), request.getfixturevalue("database_template")
        with _migrated_database(servers, template) as url:
            yield url
    else:
        database: SharedDatabase = request.getfixturevalue("module_database")
        yield database.url
        database.empty()


@pytest.fixture
def empty_database_url(servers: Endpoints) -> Iterator[str]:
    """A database without tables, for the tests of the migrations themselves."""
    name = f"empty_{os.getpid()}_{next(_NUMBERS)}"
    execute_sql(servers.database_url, f"CREATE DATABASE {name}")
    yield with_database(servers.database_url, name)
    execute_sql(servers.database_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def redis_url(servers: Endpoints) -> str:
    """A flushed logical database; channels of pub/sub are shared by all of them."""
    url = redis_database(servers.redis_url, next(_REDIS_DATABASES))
    with contextlib.closing(redis.from_url(url)) as connection:
        connection.flushdb()
    return url


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder for the sockets of killed processes: the names of pytest's own folders are too long for a socket."""
    with tempfile.TemporaryDirectory(prefix="tl-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def free_port() -> Callable[[], int]:
    """A maker of TCP ports that were free a moment ago."""
    return unused_port
