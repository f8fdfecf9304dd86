"""The loop of providers' clients: results, errors, ends and streams behave as with only one loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from contextvars import ContextVar

import pytest
import pytest_asyncio

from app.infrastructure.ids import new_id
from app.off_loop import WorkShares, act_for, off_loop
from app.providers import loop
from app.providers.loop import ProviderLoop
from bench.loop_probe import LoopProbe

BUSY = 0.06
PATIENCE = 30.0
_named: ContextVar[str] = ContextVar("named", default="nobody")


@pytest_asyncio.fixture
async def there() -> AsyncIterator[ProviderLoop]:
    made = ProviderLoop()
    yield made
    await made.close()


class RefusedError(Exception):
    """An error of a client."""


async def test_work_is_done_in_another_thread_with_the_context_of_who_asks(there: ProviderLoop) -> None:
    _named.set("Ada")

    async def work() -> tuple[int, str]:
        await asyncio.sleep(0)
        return threading.get_ident(), _named.get()

    thread, name = await there.run(work)
    assert thread != threading.get_ident()
    assert name == "Ada"
    assert (await there.run(work))[0] == thread


async def test_an_error_is_raised_here(there: ProviderLoop) -> None:
    async def work() -> None:
        raise RefusedError

    with pytest.raises(RefusedError):
        await there.run(work)


async def test_work_that_a_client_cancels_by_itself_took_too_long(there: ProviderLoop) -> None:
    """xAI's client does that at the deadline of a call: its job would have ended as if it had been stopped."""

    async def work() -> None:
        raise asyncio.CancelledError

    with pytest.raises(TimeoutError):
        await there.run(work)


async def test_who_is_cancelled_waits_until_it_has_ended_there(there: ProviderLoop) -> None:
    begun, ended = threading.Event(), threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            ended.set()

    asked = asyncio.create_task(there.run(work))
    await asyncio.to_thread(begun.wait)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert ended.is_set()


async def test_nobody_waits_for_ever_for_what_does_not_end(
    there: ProviderLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "CANCEL_SECONDS", 0.05)
    begun, free = threading.Event(), threading.Event()

    async def work() -> None:
        begun.set()
        free.wait()  # like a client that never returns

    asked = asyncio.create_task(there.run(work))
    await asyncio.to_thread(begun.wait)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asked, PATIENCE)
    free.set()


async def test_one_that_is_cancelled_at_once_ends_too(there: ProviderLoop) -> None:
    asked = asyncio.create_task(there.run(lambda: asyncio.sleep(60)))
    await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asked, PATIENCE)


async def test_a_stream_comes_in_order_and_its_error_last(there: ProviderLoop) -> None:
    async def events() -> AsyncGenerator[int, None]:
        for number in range(50):
            yield number
        raise RefusedError

    came: list[int] = []

    async def listen() -> None:
        async for event in there.stream(events):
            came.append(event)  # noqa: PERF401 - what came before the error counts

    with pytest.raises(RefusedError):
        await listen()
    assert came == list(range(50))


async def test_a_stream_that_is_left_is_closed_there_first(there: ProviderLoop) -> None:
    closed = threading.Event()

    async def events() -> AsyncGenerator[int, None]:
        try:
            yield 1
            await asyncio.sleep(60)
        finally:
            closed.set()

    async with aclosing(there.stream(events)) as stream:
        async for _ in stream:
            break
    assert closed.is_set()


async def test_what_is_computed_there_keeps_nobody_here(there: ProviderLoop) -> None:
    def busy() -> None:
        until = time.thread_time() + BUSY
        while time.thread_time() < until:
            pass

    async def work() -> None:
        busy()

    probe = LoopProbe()
    with probe.watching():
        await there.run(work)
        there_longest, _ = probe.taken()
        asyncio.get_running_loop().call_soon(busy)
        await asyncio.sleep(0)
        here_longest, _ = probe.taken()
    assert there_longest.seconds < BUSY / 2
    assert here_longest.seconds >= BUSY


async def test_shares_of_tenants_stay_here(there: ProviderLoop) -> None:
    shares, tenant = WorkShares(most=1), new_id()
    act_for(shares, tenant)

    async def work() -> int:
        return sum(await asyncio.gather(*(off_loop(lambda: 1) for _ in range(3))))

    async with shares.hold(tenant):
        assert await asyncio.wait_for(there.run(work), PATIENCE) == 3


async def test_what_runs_at_its_end_is_cancelled(there: ProviderLoop) -> None:
    begun = threading.Event()

    async def work() -> None:
        begun.set()
        await asyncio.sleep(60)

    asked = asyncio.create_task(there.run(work))
    await asyncio.to_thread(begun.wait)
    await asyncio.wait_for(there.close(), PATIENCE)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asked, PATIENCE)


async def test_after_its_end_it_begins_anew(there: ProviderLoop) -> None:
    async def thread() -> threading.Thread:
        return threading.current_thread()

    first = await there.run(thread)
    closed: list[threading.Thread] = []

    async def before() -> None:
        closed.append(threading.current_thread())

    await there.close(before)
    assert closed == [first]
    assert not first.is_alive()
    assert await there.run(thread) is not first
    await ProviderLoop().close(before)
    assert closed == [first, threading.current_thread()]
