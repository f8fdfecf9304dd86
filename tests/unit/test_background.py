"""Work that goes on during its process's life is begun again after every end, later each time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from app.infrastructure.metrics import ProcessMeter
from app.usecases.shared.background import MAX_PAUSE_SECONDS, STEADY_SECONDS, Background
from tests.fakes import FakeClock, settle


class Work:
    """Ends at once with each of the given errors, then goes on."""

    def __init__(self, clock: FakeClock, *errors: BaseException | None) -> None:
        self._clock = clock
        self._errors = list(errors)
        self.began: list[float] = []

    async def __call__(self) -> None:
        self.began.append(self._clock.monotonic())
        if not self._errors:
            await asyncio.Event().wait()
        error = self._errors.pop(0)
        if error is not None:
            raise error


@asynccontextmanager
async def kept(work: Callable[[], Awaitable[None]], clock: FakeClock, meter: ProcessMeter) -> AsyncIterator[Background]:
    background = Background(clock, meter)
    task = asyncio.create_task(background.run_forever("sweeper", work))
    await settle()
    yield background
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()


@pytest.mark.parametrize("error", [RuntimeError("of ours"), asyncio.CancelledError(), None])
async def test_an_end_of_any_kind_is_followed_by_a_new_beginning(error: BaseException | None) -> None:
    clock, meter = FakeClock(), ProcessMeter()
    work = Work(clock, error, error, error)
    async with kept(work, clock, meter) as background:
        assert not background.is_well
        await clock.advance(100)
        assert work.began == [0, 1, 3, 7]
        assert background.is_well
    assert 'throughline_background_deaths_total{task="sweeper"} 3.0' in meter.render()


async def test_the_pause_is_bounded_and_short_again_after_a_while() -> None:
    clock = FakeClock()
    runs = 0

    async def work() -> None:
        nonlocal runs
        runs += 1
        if runs == 12:
            await clock.sleep(STEADY_SECONDS)
        elif runs > 12:
            await asyncio.Event().wait()
        raise RuntimeError

    async with kept(work, clock, ProcessMeter()) as background:
        await clock.advance(1 + 2 + 4 + 8 + 16 + 32 + 5 * MAX_PAUSE_SECONDS)
        assert runs == 12
        assert not background.is_well
        await clock.advance(STEADY_SECONDS)
        assert not background.is_well
        await clock.advance(1)
        assert runs == 13


async def test_what_runs_from_the_beginning_is_well_and_ends_with_the_process() -> None:
    clock = FakeClock()
    async with kept(Work(clock), clock, ProcessMeter()) as background:
        assert background.is_well
