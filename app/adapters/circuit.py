"""A circuit breaker: a dependency that is away costs its callers nothing."""

from __future__ import annotations

import time
from collections.abc import Callable


class Circuit:
    """After a failure one call per pause may try; all others are refused at once.

    Args:
        pause: seconds between a failure and the next trial.
        monotonic: seconds that never go back.
    """

    def __init__(self, pause: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._pause = pause
        self._monotonic = monotonic
        self._retry_at: float | None = None

    def allows(self) -> bool:
        """Whether to try now. The caller who is told yes while the circuit is open is the pause's only trial."""
        if self._retry_at is None:
            return True
        now = self._monotonic()
        if now < self._retry_at:
            return False
        self._retry_at = now + self._pause
        return True

    def succeeded(self) -> None:
        """Everybody may call again."""
        self._retry_at = None

    def failed(self) -> None:
        """Nobody calls before the pause is over."""
        self._retry_at = self._monotonic() + self._pause
