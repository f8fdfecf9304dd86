"""Transactions that compute nothing large: what they need is computed between two tries, while nobody waits for them.

A transaction that holds a conversation's row makes all other writers of the conversation wait. Where it comes to a
result that is not there yet, it ends, undone; the result is computed from the values that it had read; then it begins
again. It reads everything once more, and takes what was computed only for the very same values.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from operator import eq
from typing import Any, Final, Protocol, TypeVar, TypeVarTuple

from app.off_loop import ON_LOOP, off_loop

Result = TypeVar("Result")
Given = TypeVarTuple("Given")

MOST_TRIES: Final = 12
"""After so many, at which values had changed or something further was missing, all is computed within it."""


class Compute(Protocol):
    """How a transaction has something computed: ``off_loop``, or ``Results``."""

    async def __call__(self, work: Callable[[*Given], Result], *given: *Given, size: float = math.inf) -> Result:
        """What a function makes of these; ``size`` as for ``off_loop``."""
        ...


class MissingResultError(Exception):
    """What a transaction needs is not computed yet."""

    def __init__(self, work: Callable[..., Any], given: tuple[Any, ...]) -> None:
        super().__init__(getattr(work, "__name__", "work"))
        self.work: Final = work
        self.given: Final = given


class Results:
    """What was computed for a transaction, by function and arguments; these are compared as values."""

    def __init__(self) -> None:
        self._known: Final[list[tuple[Callable[..., Any], tuple[Any, ...], Any]]] = []
        self._tries = 1

    async def __call__(self, work: Callable[[*Given], Result], *given: *Given, size: float = math.inf) -> Result:
        """The result, the very same object at each try; what is small is computed here.

        Args:
            work: A pure function.
            given: Its arguments: values that are equal when they were read twice, or results.
            size: As for ``off_loop``.

        Raises:
            MissingResultError: It is not known; do not catch it within the transaction.
        """
        for known, before, result in self._known:
            if known == work and await off_loop(eq, before, given, size=size):
                return result  # type: ignore[no-any-return]  # of this very function
        if size > ON_LOOP and self._tries < MOST_TRIES:
            raise MissingResultError(work, given)
        found = await off_loop(work, *given, size=size)
        self._known.append((work, given, found))
        return found

    async def add(self, work: Callable[..., Any], given: tuple[Any, ...]) -> None:
        """Compute what was missing, in a thread, for the next try."""
        self._known.append((work, given, await off_loop(work, *given)))
        self._tries += 1


async def run_with_retries(transaction: Callable[[Results], Awaitable[Result]]) -> Result:
    """Run a transaction, again and again, until all that it needs is computed.

    Args:
        transaction: Opens a unit of work of its own and commits it; has everything large computed by what it is given.
            Ids and times that go into an argument are made before it, so that they are the same at each try.
    """
    results = Results()
    while True:
        try:
            return await transaction(results)
        except MissingResultError as missing:
            # Not the error itself: with its traceback it would hold all that the transaction read until the next look
            # for garbage, and there is much of it.
            work, given = missing.work, missing.given
        await results.add(work, given)
