"""Values that are written into a statement's text equal what the driver would have sent separately, or are refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final
from uuid import UUID

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import ARRAY, BigInteger, Boolean, DateTime, Integer, Interval, Text, Uuid, bindparam, select
from sqlalchemy.dialects.postgresql import JSON, JSONB
from sqlalchemy.ext.asyncio import AsyncEngine

from app.storage.compiled import CompiledStatement, can_be_literals
from tests.profiles import examples

QUOTES: Final = (
    "'",
    "''",
    "\\",
    "\\'",
    "$1",
    "$2::UUID",
    ";",
    "--",
    "/*",
    "*/",
    "{",
    "}",
    "%s",
    "\n",
    "\r",
    "\t",
    "\x00",
)

texts = st.text() | st.lists(st.sampled_from(QUOTES) | st.text(max_size=3)).map("".join)
any_texts = texts | st.text(st.characters(), max_size=9)  # with halves of pairs
zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(timezones=zones | st.just(UTC))
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_texts, inner, max_size=4),
)
VALUES: Final[dict[str, tuple[Any, st.SearchStrategy[Any]]]] = {
    "text": (Text(), any_texts),
    "id": (Uuid(), st.uuids()),
    "number": (BigInteger(), st.integers() | st.integers(-(2**63), 2**63 - 1)),
    "small number": (Integer(), st.integers() | st.integers(-(2**31), 2**31 - 1)),
    "truth": (Boolean(), st.booleans()),
    "moment": (DateTime(timezone=True), moments),
    "time": (Interval(), st.timedeltas() | st.timedeltas(timedelta(days=-3), timedelta(days=3))),
    "document": (JSONB(), documents),
    "document as written": (JSON(), documents),
    "ids": (ARRAY(Uuid), st.lists(st.uuids())),
    "texts": (ARRAY(Text), st.lists(st.none() | st.just("null") | texts)),
}
EXTREMES: Final[tuple[tuple[str, Any], ...]] = (
    # Values next to the driver's words for infinity: it reads those back without a zone, whoever wrote them.
    ("moment", datetime.max.replace(tzinfo=UTC) - timedelta(microseconds=1)),
    ("moment", datetime.min.replace(tzinfo=UTC) + timedelta(microseconds=1)),
    ("moment", datetime(999, 12, 31, 23, 59, 59, 999999, tzinfo=timezone(timedelta(hours=5, minutes=53, seconds=28)))),
    ("time", timedelta.max),
    ("time", timedelta.min),
    ("time", timedelta(microseconds=1)),
    ("number", 2**63),
    ("number", -(2**63)),
    ("id", UUID(int=2**128 - 1)),
    ("document", {"a": float("nan")}),
    ("document", [1e308, -0.0, 10**400]),
    ("document", "\x00"),
    ("document", "\ud800"),
    ("document as written", {"b": "\x00", "a": "' \\"}),
    ("text", "\x00"),
    ("texts", ["null"]),
    ("ids", []),
)


@pytest.fixture(scope="module")
async def driver(module_engine: AsyncEngine) -> AsyncIterator[Any]:
    async with module_engine.connect() as connection:
        await connection.exec_driver_sql("SELECT 1")
        await connection.rollback()
        yield (await connection.get_raw_connection()).driver_connection


@pytest.mark.daily(3)
@pytest.mark.parametrize("kind", VALUES)
@examples(4)
@given(st.data())
async def test_a_value_in_a_text_is_the_value_beside_it(
    kind: str, driver: Any, module_engine: AsyncEngine, data: st.DataObject
) -> None:
    type_, values = VALUES[kind]
    await check(driver, one_value(type_, module_engine), data.draw(st.none() | values))


@pytest.mark.parametrize(("kind", "value"), EXTREMES)
async def test_a_value_at_the_end_of_what_there_is_too(
    kind: str, value: object, driver: Any, module_engine: AsyncEngine
) -> None:
    await check(driver, one_value(VALUES[kind][0], module_engine), value)


async def check(driver: Any, compiled: CompiledStatement, value: object) -> None:
    values = compiled.arguments({"value": value})
    try:
        text = compiled.text_with_values(values)
    except ValueError:
        assert not (can_be_literals(values) and is_writable(values[0])), "what can be written is written"
        return
    assert await answered(driver, text) == await answered(driver, compiled.text, *values), text


def is_writable(value: object) -> bool:
    """Whether a value can be sent: neither way can send a text with half a surrogate pair."""
    return not (isinstance(value, str) and any("\ud800" <= sign <= "\udfff" for sign in value))


async def answered(driver: Any, text: str, *values: Any) -> object:
    try:
        return [tuple(row) for row in await driver.fetch(text, *values)]
    except (asyncpg.PostgresError, asyncpg.InterfaceError):
        return "refused"


def one_value(type_: Any, engine: AsyncEngine) -> CompiledStatement:
    statement = select(bindparam("value", type_=type_).label("value"))
    return CompiledStatement(statement, statement, engine.dialect)
