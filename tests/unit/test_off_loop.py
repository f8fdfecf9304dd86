"""The helper for work off the event loop: where work runs, what a tenant may run at once, and what runs too long."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from uuid import UUID

import pytest

from app.core.model.errors import DependencyUnavailableError, TooLargeError
from app.infrastructure.processes import ProcessPool
from app.off_loop import MAX_BYTES_ON_LOOP, SLICE, SLICE_SECONDS, WorkShares, act_for, in_slices, off_loop

ONE, OTHER = UUID(int=1), UUID(int=2)


def slept(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def ended(_: int) -> None:
    os._exit(1)


def refused(given: str) -> str:
    raise TooLargeError(given)


async def test_small_work_is_done_at_once_and_large_work_in_a_thread() -> None:
    assert await off_loop(threading.get_ident, size=MAX_BYTES_ON_LOOP) == threading.get_ident()
    assert await off_loop(threading.get_ident, size=MAX_BYTES_ON_LOOP + 1) != threading.get_ident()
    assert await off_loop(threading.get_ident) != threading.get_ident()


async def test_slices_let_others_run_between_them() -> None:
    turns: list[int] = []

    async def count() -> None:
        while True:
            turns.append(len(turns))
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    assert await in_slices(str, range(3 * SLICE)) == [str(number) for number in range(3 * SLICE)]
    assert len(turns) == 2
    turns.clear()
    await in_slices(_busy, [SLICE_SECONDS / 2] * 6)
    counting.cancel()
    assert len(turns) >= 2, "what takes long is put in shorter slices"


def _busy(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def test_a_tenant_that_has_its_share_leaves_the_rest_to_others() -> None:
    shares, order, other_is_done = WorkShares(1), list[str](), threading.Event()

    async def work(name: str, tenant_id: UUID, waits: Callable[[], object]) -> None:
        act_for(shares, tenant_id)
        await off_loop(waits)
        order.append(name)
        if tenant_id == OTHER:
            other_is_done.set()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(work("first of one", ONE, lambda: other_is_done.wait(30)))
        tasks.create_task(work("second of one", ONE, int))
        tasks.create_task(work("of another", OTHER, int))
    assert order == ["of another", "first of one", "second of one"]


@pytest.mark.asyncio(loop_scope="function")  # the library ends a loop's processes with the task that started the first
@pytest.mark.usefixtures("no_warming")
class TestProcesses:
    async def test_what_runs_too_long_is_ended_and_its_process_replaced(self) -> None:
        pool = ProcessPool(1, seconds=10)
        first = await pool.run(ONE, slept, 0)
        assert await pool.run(ONE, slept, 0.2) == first != os.getpid()  # the control: within its time it is not ended
        pool._seconds = 0.3
        with pytest.raises(TooLargeError, match="was ended, nothing is stored"):
            await pool.run(ONE, slept, 60)
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)
        pool._seconds = 10
        assert await pool.run(ONE, slept, 0) not in {first, os.getpid()}
        await pool.close()

    async def test_a_process_that_ends_is_told_and_replaced(self) -> None:
        pool = ProcessPool(1, seconds=10)
        with pytest.raises(DependencyUnavailableError, match="try again"):
            await pool.run(ONE, ended, 0)
        assert await pool.run(ONE, slept, 0) != os.getpid()
        await pool.close()

    async def test_errors_of_the_work_come_back(self) -> None:
        pool = ProcessPool(1, seconds=10)
        with pytest.raises(TooLargeError, match="split it"):
            await pool.run(ONE, refused, "split it")
        await pool.close()


@pytest.fixture
def no_warming(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a replaced process not import modules that none of these tests needs."""

    async def nothing(_: ProcessPool) -> None:
        return

    monkeypatch.setattr(ProcessPool, "_start_process", nothing)
