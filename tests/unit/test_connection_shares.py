"""How many connections a tenant may hold: few while another one is active, more when it is alone."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from app.storage import connection_shares
from app.storage.connection_shares import ACTIVE_SECONDS, ConnectionShares

ONE, OTHER = UUID(int=1), UUID(int=2)


async def test_a_tenant_holds_few_places_while_another_is_active_and_more_when_it_is_alone() -> None:
    now = 0.0
    shares = ConnectionShares(4, 2, monotonic=lambda: now)
    noisy = [asyncio.create_task(shares.take(ONE)) for _ in range(8)]
    await asyncio.sleep(0)
    assert sum(task.done() for task in noisy) == 4
    await shares.take(OTHER)
    for _ in range(2):
        shares.release(ONE)
        await asyncio.sleep(0)
    assert sum(task.done() for task in noisy) == 4, "it gets no place beyond few back"
    shares.release(ONE)
    await asyncio.sleep(0)
    assert sum(task.done() for task in noisy) == 5
    shares.release(OTHER)
    now += ACTIVE_SECONDS / 2
    shares.release(ONE)
    await asyncio.sleep(0)
    assert sum(task.done() for task in noisy) == 6, "the other one may come back at any moment"
    now += ACTIVE_SECONDS
    shares.release(ONE)
    await asyncio.gather(*noisy)
    for _ in range(3):
        shares.release(ONE)
    assert not shares._tenants


async def test_who_waits_is_let_in_once_the_tenant_is_alone_though_nobody_gives_a_place_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that hold places may themselves wait, for a conversation that another process has locked."""
    monkeypatch.setattr(connection_shares, "ACTIVE_SECONDS", 0.01)
    shares = ConnectionShares(3, 1)
    await shares.take(OTHER)
    await shares.take(ONE)
    waiting = [asyncio.create_task(shares.take(ONE)) for _ in range(2)]
    await asyncio.sleep(0.03)
    assert not any(task.done() for task in waiting)
    shares.release(OTHER)
    await asyncio.wait_for(asyncio.gather(*waiting), 5)
    for _ in range(3):
        shares.release(ONE)
    assert not shares._tenants


async def test_a_caller_that_is_cancelled_keeps_no_place() -> None:
    shares = ConnectionShares(1)
    await shares.take(ONE)
    waiting = [asyncio.create_task(shares.take(ONE)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    shares.release(ONE)
    waiting[1].cancel()  # it has just been given the place
    await asyncio.gather(*waiting[:2], return_exceptions=True)
    await waiting[2]
    shares.release(ONE)
    assert not shares._tenants
