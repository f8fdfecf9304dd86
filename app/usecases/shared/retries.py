"""Transactions that are run again if something large has to be computed, instead of holding a lock while computing.

A transaction that holds a conversation's row makes all other writers of the conversation wait. So if it needs a result
that is not computed yet, it is rolled back. The result is computed from the values that it had read, and the
transaction begins again. It reads everything once more, and uses a result only if it was computed from the very same
values.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from operator import eq
from typing import Any, Final, Protocol, TypeVar, TypeVarTuple

from app.core.model.errors import DependencyUnavailableError
from app.off_loop import MAX_BYTES_ON_LOOP, off_loop
from app.usecases.ports import Clock

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

MAX_TRIES: Final = 12
"""After this many tries that met changed values or another missing result, the transaction computes everything itself.
"""


OUTAGE_TRIES: Final = 4
OUTAGE_PAUSE: Final = 0.5
"""Seconds until the second try; doubled with each further one."""
MAX_OUTAGE_PAUSE: Final = 2.0
"""The longest pause, in seconds, until a given time: shorter than a lease, which is kept if the outage ends in time."""


class Compute(Protocol):
    """How a transaction runs a computation: ``off_loop``, or ``Results``."""

    async def __call__(
        self, work: Callable[[*Arguments], Result], *arguments: *Arguments, size: float = math.inf
    ) -> Result:
        """The function's result for these arguments; ``size`` as for ``off_loop``."""
        ...


class MissingResultError(Exception):
    """Ends a transaction that needs a result which is not computed yet."""

    def __init__(self, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        super().__init__(getattr(work, "__name__", "work"))
        self.work: Final = work
        self.arguments: Final = arguments


class Results:
    """The results of a transaction's earlier tries, by function and arguments; arguments are compared as values."""

    def __init__(self) -> None:
        self._known: Final[list[tuple[Callable[..., Any], tuple[Any, ...], Any]]] = []
        self._tries = 1

    async def __call__(
        self, work: Callable[[*Arguments], Result], *arguments: *Arguments, size: float = math.inf
    ) -> Result:
        """The function's result: a known result (the same object at each try), or a small one that is computed at once.

        Args:
            work: A pure function.
            arguments: Its arguments: values that are equal whenever they are read, or earlier results.
            size: As for ``off_loop``.

        Raises:
            MissingResultError: The result is large and not known. The transaction must let this error pass.
        """
        for known, before, result in self._known:
            if known == work and await off_loop(eq, before, arguments, size=size):
                return result  # type: ignore[no-any-return]  # of this very function
        if size > MAX_BYTES_ON_LOOP and self._tries < MAX_TRIES:
            raise MissingResultError(work, arguments)
        result_now = await off_loop(work, *arguments, size=size)
        self._known.append((work, arguments, result_now))
        return result_now

    async def add(self, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        """Compute the missing result, in a thread, for the next try."""
        self._known.append((work, arguments, await off_loop(work, *arguments)))
        self._tries += 1


async def run_with_retries(transaction: Callable[[Results], Awaitable[Result]]) -> Result:
    """Run a transaction until it has all its results; each missing one is computed between two tries.

    Args:
        transaction: Opens a unit of work of its own and commits it. Everything large it has computed by the
            ``Results`` that it is given. Ids and times that go into an argument are made before it, so that they are
            the same at each try.
    """
    results = Results()
    while True:
        try:
            return await transaction(results)
        except MissingResultError as missing:
            # Not the error itself: its traceback would keep everything that the transaction read in memory until the
            # next garbage collection.
            work, arguments = missing.work, missing.arguments
        await results.add(work, arguments)


async def through_short_outage(save: Callable[[], Awaitable[Result]], clock: Clock) -> Result:
    """Save what was paid for, again and again for some seconds while the database is away.

    Raises ``DependencyUnavailableError`` if it stays away.
    """
    for number in range(OUTAGE_TRIES - 1):
        try:
            return await save()
        except DependencyUnavailableError:
            await clock.sleep(OUTAGE_PAUSE * 2**number)
    return await save()


async def through_outage(save: Callable[[], Awaitable[Result]], clock: Clock, *, until: float) -> Result:
    """Save what was paid for, again and again until that time by the monotonic clock, while the database is away.

    It is for whoever knows how long to wait; ``through_short_outage`` counts tries instead. Raises
    ``DependencyUnavailableError`` if the database stays away.
    """
    pause = OUTAGE_PAUSE
    while True:
        try:
            return await save()
        except DependencyUnavailableError:
            if clock.monotonic() + pause > until:
                raise
        await clock.sleep(pause)
        pause = min(2 * pause, MAX_OUTAGE_PAUSE)
