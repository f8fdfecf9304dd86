"""Fixtures of the tests that work on the database: an engine, units of work, a tenant."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final, cast
from uuid import UUID, uuid4

import pytest
from sqlalchemy import AsyncAdaptedQueuePool
from sqlalchemy.ext.asyncio import AsyncEngine

from app.storage.database import make_engine
from app.storage.unit_of_work import UnitOfWorkFactory, unit_of_work_factory
from tests.gemini_server import Gemini, running_gemini
from tests.integration.rows import make_tenant
from tests.openai_server import OpenAI, running_openai
from tests.servers import as_owner

_COMPILED: Final[dict[Any, Any]] = {}
_PATIENCE: Final = 5.0  # seconds


@pytest.fixture(scope="module")
def gemini_server() -> Iterator[Gemini]:
    """The scripted server, for the tests of a module."""
    with running_gemini() as server:
        yield server


@pytest.fixture
def gemini(gemini_server: Gemini) -> Gemini:
    """The scripted server in its first state, without the scripts of the test before."""
    gemini_server.reset()
    return gemini_server


@pytest.fixture(scope="module")
def openai_server() -> Iterator[OpenAI]:
    """The scripted server, for the tests of a module."""
    with running_openai() as server:
        yield server


@pytest.fixture
def openai(openai_server: OpenAI) -> OpenAI:
    """The scripted server in its first state, without the scripts of the test before."""
    openai_server.reset()
    return openai_server


@pytest.fixture(scope="module")
async def module_engine(module_database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine over the module's database: connections outlive a test, and compiled statements a module."""
    made = as_owner(make_engine(module_database_url, pool_size=20, max_overflow=40))
    yield made.execution_options(compiled_cache=_COMPILED)
    await made.dispose()


@pytest.fixture
async def own_engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine of the test's own, for a database of its own."""
    made = as_owner(make_engine(database_url, pool_size=20, max_overflow=40))
    yield made
    await made.dispose()


@pytest.fixture
def engine(request: pytest.FixtureRequest, database_url: str) -> AsyncEngine:
    """An engine over a migrated database without rows, with as many connections as a race needs.

    Units of work are under row-level security, as everywhere; a test that reads past them reads as the owner.
    """
    name = "own_engine" if request.node.get_closest_marker("own_database") else "module_engine"
    made: AsyncEngine = request.getfixturevalue(name)
    return made


@pytest.fixture
async def begin(engine: AsyncEngine) -> AsyncIterator[UnitOfWorkFactory]:
    """A maker of units of work. Transactions that a test leaves open in the background are waited for."""
    yield unit_of_work_factory(engine)
    with contextlib.suppress(TimeoutError):  # then the database cannot be emptied, and its error names who holds it up
        async with asyncio.timeout(_PATIENCE):
            while cast("AsyncAdaptedQueuePool", engine.pool).checkedout():  # noqa: ASYNC110 - a pool tells nobody
                await asyncio.sleep(0.01)


@pytest.fixture
async def tenant(begin: UnitOfWorkFactory) -> UUID:
    """A tenant that exists."""
    return await make_tenant(begin, f"tenant {uuid4()}")
