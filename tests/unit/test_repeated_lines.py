"""A line that a library logs again and again is logged once, then now and then with a count."""

from __future__ import annotations

import logging

import pytest

from app.logs import RepeatedLineFilter
from tests.fakes import FakeClock
from worker import celery_app

LOST = "Cannot connect to %s: %s.\n"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def told(filter_: RepeatedLineFilter, wording: str, *gaps: object, error: Exception | None = None) -> str | None:
    """The line in its written form, with its traceback."""
    failure = (type(error), error, None) if error else None
    record = logging.LogRecord("library", logging.ERROR, "", 0, wording, gaps, failure)
    return logging.Formatter().format(record) if filter_.filter(record) else None


async def test_a_line_is_told_once_then_once_in_a_while_with_how_often(clock: FakeClock) -> None:
    filter_ = RepeatedLineFilter(30.0, clock.monotonic)
    assert told(filter_, LOST, "redis", "READONLY") == "Cannot connect to redis: READONLY.\n"
    for _ in range(290):
        await clock.advance(0.1)
        assert told(filter_, LOST, "redis", "READONLY") is None
    await clock.advance(1.0)
    assert told(filter_, LOST, "redis", "OOM") == "Cannot connect to redis: OOM. (left out since it was last told: 290)"
    await clock.advance(30.0)
    assert told(filter_, LOST, "redis", "OOM") == "Cannot connect to redis: OOM.\n", "nothing was left out"


async def test_another_line_is_told_at_once_and_a_traceback_with_the_first_alone(clock: FakeClock) -> None:
    filter_ = RepeatedLineFilter(30.0, clock.monotonic)
    told(filter_, LOST, "redis", "READONLY")
    first = told(filter_, "Frequent restarts", error=RuntimeError("5 in 1s"))
    assert first is not None
    assert "RuntimeError: 5 in 1s" in first
    assert told(filter_, "Frequent restarts", error=RuntimeError("5 in 1s")) is None
    await clock.advance(31.0)
    again = told(filter_, "Frequent restarts", error=RuntimeError("5 in 1s"))
    assert again == "Frequent restarts (left out since it was last told: 1)"


def test_the_worker_leaves_out_what_celery_repeats() -> None:
    filters = logging.getLogger("celery.worker.consumer.consumer").filters
    assert celery_app.app
    assert any(isinstance(one, RepeatedLineFilter) for one in filters)
