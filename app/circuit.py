"""A circuit breaker: after failures a dependency is not called for a while, so that its absence costs no time."""

from __future__ import annotations

import time
from collections.abc import Callable


class Circuit:
    """A circuit breaker: open after some failures in a row; after a pause one trial call decides whether it closes.

    It is only the state machine: it awaits nothing, and its caller reports how each call went.

    Args:
        pause: seconds between the opening (or a failed trial) and the next trial.
        monotonic: seconds that never go back.
        failures: how many in a row open it.
        trial: seconds after which a trial without a report is given up, and another one is let through;
            ``None`` = ``pause``.
    """

    def __init__(
        self,
        pause: float,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        failures: int = 1,
        trial: float | None = None,
    ) -> None:
        self._pause = pause
        self._monotonic = monotonic
        self._most = failures
        self._trial = pause if trial is None else trial
        self._failures = 0
        self._retry_at: float | None = None

    @property
    def is_closed(self) -> bool:
        """Whether everybody may call."""
        return self._retry_at is None

    @property
    def seconds_left(self) -> float:
        """For how long nobody may call, at most a pause: a trial that is made now may end sooner."""
        left = 0.0 if self._retry_at is None else self._retry_at - self._monotonic()
        return min(max(left, 0.0), self._pause)

    def allows(self) -> bool:
        """Whether to try now. While the circuit is not closed, the caller that gets true makes the only trial."""
        if self._retry_at is None:
            return True
        now = self._monotonic()
        if now < self._retry_at:
            return False
        self._retry_at = now + self._trial
        return True

    def succeeded(self) -> None:
        """Note a success: everybody may call again."""
        self._failures = 0
        self._retry_at = None

    def failed(self) -> None:
        """Note a failure. Once the circuit is open, nobody may call before the pause is over."""
        self._failures += 1
        if self._failures >= self._most:
            self._retry_at = self._monotonic() + self._pause

    def abandoned(self) -> None:
        """Note that the trial was given up without a result: the next caller makes the trial."""
        if self._retry_at is not None:
            self._retry_at = self._monotonic()
