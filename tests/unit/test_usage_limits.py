"""Counting within a window, what is closed to other hosts, and addresses that fail."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.errors import InvalidInputError, RateLimitedError
from app.core.model.usage_limits import KEY_LIMITS, TENANT_LIMITS, Limits, MinuteSpending, SlidingCount, hourly_usages
from app.settings import Settings
from app.usecases.admin import invalid_keys
from app.usecases.admin.invalid_keys import FailedKeys
from app.usecases.admin.keys import parse_limits
from tests.fakes import FakeClock
from tests.unit.api_fakes import world

LIMIT = 4


@given(st.lists(st.floats(0, 40), min_size=1, max_size=60))
def test_no_minute_has_more_than_the_limit_and_the_wait_is_enough(gaps: list[float]) -> None:
    now, count, taken = 1_000.0, SlidingCount(), list[float]()
    for gap in gaps:
        now += gap
        standing = count.at(now).limit_usage(now, LIMIT, "key")
        if standing.wait:
            assert standing.remaining == 0
            later = now + standing.wait
            assert count.at(later).limit_usage(later, LIMIT, "key").wait == 0, "after the wait there is room"
            continue
        count, taken = count.plus(now), [*taken, now]
    for first in taken:
        assert sum(first <= one < first + 60 for one in taken) <= LIMIT
    assert count.at(now + 66).used == 0


def test_a_clock_that_is_set_back_holds_nobody_up() -> None:
    count = SlidingCount()
    for _ in range(LIMIT):
        count = count.plus(10_000.0)
    assert count.limit_usage(10_000.0, LIMIT, "key").wait
    assert count.limit_usage(10_000.0 - 3_600, LIMIT, "key").wait == 0


def test_control_a_fixed_window_lets_twice_as_many_through() -> None:
    taken, windows = [], dict[int, int]()
    for now in (59.0, 59.1, 59.2, 59.3, 60.0, 60.1, 60.2, 60.3):
        if windows.get(int(now // 60), 0) < LIMIT:
            windows[int(now // 60)] = windows.get(int(now // 60), 0) + 1
            taken.append(now)
    assert sum(59 <= one < 119 for one in taken) == 2 * LIMIT


def test_an_hour_is_free_when_its_oldest_minutes_are_over() -> None:
    clock = FakeClock()
    minute = clock.now()
    spent = [
        MinuteSpending(minute=minute, calls=1, tokens=70, usd=0.5),
        MinuteSpending(minute=minute, calls=1, tokens=50),
    ]
    limits = Limits(chat_tokens_per_hour=100, chat_calls_per_hour=9, chat_usd_per_hour=0.5)
    found = {one.name: one for one in hourly_usages("chat", spent, limits, "tenant", minute)}
    assert found["chat_tokens_per_hour"].wait == found["chat_tokens_per_hour"].resets_in == 3_660
    assert found["chat_calls_per_hour"].wait == 0
    assert found["chat_usd_per_hour"].wait == 3_660
    assert hourly_usages("verification", spent, limits, "tenant", minute) == []
    assert hourly_usages("chat", [], Limits(chat_usd_per_hour=0), "key", minute)[0].wait == 3_600


@pytest.mark.parametrize(("hours", "wait"), [(-48, 3_660), (0, 1_800), (3, 1)])
def test_a_limit_holds_on_a_clock_that_differs_from_the_database_s_and_nobody_waits_for_days(
    hours: int, wait: int
) -> None:
    clock = FakeClock()
    spent = [MinuteSpending(minute=clock.now() - timedelta(minutes=31), calls=9)]
    now = clock.now() + timedelta(hours=hours)
    [usage] = hourly_usages("chat", spent, Limits(chat_calls_per_hour=9), "tenant", now)
    assert (usage.wait, usage.resets_in, usage.remaining) == (wait, wait, 0)


def test_limits_of_the_settings_and_of_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THROUGHLINE_TENANT_LIMITS", '{"running_turns": 7, "chat_usd_per_hour": null}')
    settings = Settings(_env_file=None)
    assert settings.tenant_limits == TENANT_LIMITS.model_copy(update={"running_turns": 7, "chat_usd_per_hour": None})
    assert settings.key_limits == KEY_LIMITS
    assert KEY_LIMITS.overridden({"running_turns": 1, "gone": 5}).running_turns == 1
    assert parse_limits(["running_turns=2", "chat_usd_per_hour=0.5", "open_streams=none"]) == {
        "running_turns": 2,
        "chat_usd_per_hour": 0.5,
        "open_streams": None,
    }
    for word in (
        "runing_turns=2",
        "running_turns=-1",
        "running_turns",
        "compaction_usd_per_hour=1",
        "chat_usd_per_hour=nan",
    ):
        with pytest.raises(InvalidInputError, match="is no limit"):
            parse_limits([word])


def test_clients_of_ipv4_are_counted_one_by_one_however_a_proxy_writes_them() -> None:
    failed = FailedKeys(1, lambda: 0.0)
    failed.failed("::ffff:192.0.2.1")
    failed.check("::ffff:192.0.2.2", b"new")
    for same in ("::ffff:192.0.2.1", "192.0.2.1"):
        with pytest.raises(RateLimitedError):
            failed.check(same, b"new")


def test_failures_are_bounded_in_memory_and_by_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invalid_keys, "MAX_ADDRESSES", 3)
    failed = FailedKeys(2, lambda: 100.0)
    for host in range(50):
        failed.failed(f"2001:db8::{host:x}")
    with pytest.raises(RateLimitedError):
        failed.check("2001:db8::ffff", b"new")
    failed.check("2001:db8:1::1", b"new")  # control: another network
    for host in range(9):
        failed.failed(f"10.0.0.{host}")
    assert len(failed._failed) == 3
    failed.check("2001:db8::1", b"new")
    failed.check(None, b"new")


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("settings", "open_"),
    [
        ({"host": "127.0.0.1"}, True),
        ({"host": "0.0.0.0"}, False),  # noqa: S104
        ({"host": "0.0.0.0", "metrics_open": True, "docs_open": True}, True),  # noqa: S104
        ({"host": "127.0.0.1", "metrics_open": False, "docs_open": False}, False),
    ],
)
async def test_pages_without_a_key_are_closed_beyond_loopback(settings: dict[str, Any], open_: bool) -> None:  # noqa: FBT001
    async with world(**settings).client(key=None) as client:
        found = {
            path: (await client.get(path)).status_code for path in ("/metrics", "/docs", "/openapi.json", "/healthz")
        }
    status = 200 if open_ else 404
    assert found == {"/metrics": status, "/docs": status, "/openapi.json": status, "/healthz": 200}
