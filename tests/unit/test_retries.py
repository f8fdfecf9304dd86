"""A transaction ends if a result is missing, and is begun again with it; only equal values have the same result."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from app.off_loop import MAX_BYTES_ON_LOOP
from app.usecases.history.preparing import MAX_PREPARATIONS, OutdatedError, json_size, prepare_and_run
from app.usecases.shared import retries
from app.usecases.shared.retries import MAX_TRIES, Results, run_with_retries


class Transaction:
    """Reads a list, has it summed, and notes whether it was open meanwhile."""

    def __init__(self, *reads: list[int], size: float = MAX_BYTES_ON_LOOP + 1) -> None:
        self._reads: Iterator[list[int]] = iter(reads)
        self._size = size
        self.is_open = False
        self.tries = 0
        self.summed: list[bool] = []
        """For each sum, whether the transaction was open."""

    def sum(self, numbers: list[int]) -> list[int]:
        self.summed.append(self.is_open)
        return [sum(numbers)]

    async def __call__(self, results: Results) -> tuple[list[int], list[int]]:
        self.tries += 1
        self.is_open = True
        try:
            numbers = next(self._reads)
            return await results(self.sum, numbers, size=self._size), await results(self.sum, numbers, size=self._size)
        finally:
            self.is_open = False


async def test_it_is_computed_between_two_tries_and_is_the_same_object() -> None:
    transaction = Transaction([1, 2], [1, 2])
    one, other = await run_with_retries(transaction)

    assert one == [3]
    assert one is other
    assert (transaction.tries, transaction.summed) == (2, [False])


async def test_what_changed_meanwhile_is_computed_again() -> None:
    transaction = Transaction([1, 2], [1, 5], [1, 5])

    assert (await run_with_retries(transaction))[0] == [6]
    assert transaction.summed == [False, False]


async def test_what_is_small_is_computed_within_once() -> None:
    transaction = Transaction([1, 2], size=MAX_BYTES_ON_LOOP)

    assert (await run_with_retries(transaction))[0] == [3]
    assert (transaction.tries, transaction.summed) == (1, [True])


async def test_what_changes_at_every_try_is_computed_within_in_the_end() -> None:
    transaction = Transaction(*([number] for number in range(MAX_TRIES)))

    assert (await run_with_retries(transaction))[0] == [MAX_TRIES - 1]
    assert transaction.summed == [False] * (MAX_TRIES - 1) + [True]


@pytest.mark.parametrize("tries", [1, MAX_TRIES])
async def test_an_error_of_the_work_is_the_transaction_s(monkeypatch: pytest.MonkeyPatch, tries: int) -> None:
    monkeypatch.setattr(retries, "MAX_TRIES", tries)

    async def failing(results: Results) -> int:
        return await results(int, "no number")

    with pytest.raises(ValueError, match="no number"):
        await run_with_retries(failing)


class Read:
    """A value that was read before a transaction, or must be read in it."""

    def __init__(self, number: int | None) -> None:
        self.number = number

    def uncomputed(self) -> Read:
        return Read(None)


@pytest.mark.parametrize("changes", range(MAX_PREPARATIONS + 1))
async def test_what_others_made_outdated_is_prepared_again_and_read_within_in_the_end(changes: int) -> None:
    prepared, used = list[int](), list[int | None]()

    async def prepare() -> Read:
        prepared.append(len(prepared))
        return Read(prepared[-1])

    async def transaction(ready: Read, _: Results) -> int | None:
        used.append(ready.number)
        if ready.number is not None and ready.number < changes:
            raise OutdatedError
        return ready.number

    within = changes == MAX_PREPARATIONS
    assert await prepare_and_run(prepare, transaction) == (None if within else changes)
    assert prepared == list(range(min(changes + 1, MAX_PREPARATIONS)))
    assert used == [*prepared, *([None] if within else [])]


@pytest.mark.parametrize(
    ("value", "size"),
    [("a" * 50, 50), ({"a": ["b" * 20, 1]}, 21), (None, 1), ([[]] * 3, 3), ("a" * 10**6, 10**6), ({"k": {}}, 1)],
)
def test_a_value_is_measured_by_what_its_texts_take(value: object, size: int) -> None:
    assert size <= json_size(value) <= size + 50


def test_a_large_value_is_not_looked_at_any_further_than_tells_that_it_is_large() -> None:
    assert MAX_BYTES_ON_LOOP < json_size([{"k": "v"}] * 10**6) < 2 * MAX_BYTES_ON_LOOP


async def test_what_a_try_had_read_is_let_go_without_a_look_for_garbage() -> None:
    class Read:
        """Stands for something large."""

    kept: list[weakref.ref[Read]] = []
    left: list[int] = []

    async def transaction(results: Results) -> int:
        left.append(sum(one() is not None for one in kept))
        read = Read()
        kept.append(weakref.ref(read))
        return await results(abs, -len(kept[:1]), size=MAX_BYTES_ON_LOOP + 1)

    gc.collect()
    gc.disable()
    try:
        assert await run_with_retries(transaction) == 1
    finally:
        gc.enable()
    assert left == [0, 0]
