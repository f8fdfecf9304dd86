"""Decides when a request is sent again, and after how long: one place for both clients and for streams."""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from .calls import Call, ignore_body
from .errors import RETRYABLE_STATUSES, ApiError, ConnectionFailedError, error_of, problem_in

T = TypeVar("T")

SUCCESS: Final = range(200, 300)
NO_CONTENT: Final = 204
NOT_FOUND: Final = 404
STILL_RUNNING: Final = "idempotency_in_progress"
"""The code that says that the first request with the same idempotency key still runs; a later try gets its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrying:
    """How often and how long a client retries."""

    attempts: int = 5
    """The most times that a request is sent; 1 = no retry."""
    first_pause: float = 0.5
    """Seconds to wait after the first failure, doubled with each further one, and shortened at random by up to half."""
    longest_pause: float = 30.0
    """The longest pause in seconds. If the service asks for a longer one, its error is raised at once."""

    def pause(self, failures: int, asked: float | None = None) -> float:
        """The seconds to wait after ``failures`` failures: at least the ``asked`` seconds of the service."""
        backed_off: float = min(self.first_pause * 2 ** (failures - 1), self.longest_pause)
        return max(backed_off * random.uniform(0.5, 1.0), asked or 0.0)

    def gives_up(self, error: ApiError | ConnectionFailedError, failures: int) -> bool:
        """Whether the request is not sent again, after this error and ``failures`` failures."""
        if failures >= self.attempts:
            return True
        if isinstance(error, ConnectionFailedError):
            return False
        is_temporary = error.is_of_proxy or (error.status in RETRYABLE_STATUSES and error.retryable)
        is_passing = is_temporary or error.code == STILL_RUNNING
        return not is_passing or (error.retry_after or 0.0) > self.longest_pause


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of the service."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def error(self) -> ApiError | None:
        """The error in the answer; ``None`` if the request succeeded."""
        if self.status in SUCCESS:
            return None
        return error_of(self.status, problem_in(self.body), retry_after=retry_after_seconds(self.headers))


@dataclass(frozen=True, slots=True)
class Send:
    """Tells a client to send the call, and to report its ``Outcome``: a reply, or that the service was not reached."""

    call: Call[Any]


@dataclass(frozen=True, slots=True)
class Sleep:
    """Tells a client to wait that many seconds."""

    seconds: float


Command = Send | Sleep
Outcome = Reply | ConnectionFailedError | None
Steps = Generator[Command, Outcome, T]
"""What a client has to do until it has an answer, one command after the other; it sends each outcome back."""


def exchange(call: Call[T], retrying: Retrying) -> Steps[T]:
    """Send a request, and repeat it after failures that may pass. Returns the value in the answer.

    Raises:
        ApiError: The service refused the request, at the last try too if repeating could help.
        ConnectionFailedError: The service could not be reached.
    """
    failures, may_be_done = 0, False
    while True:
        outcome = yield Send(call)
        error = outcome.error if isinstance(outcome, Reply) else outcome
        if isinstance(outcome, Reply) and (error is None or (may_be_done and outcome.status == NOT_FOUND)):
            return call.read(outcome.body if error is None else b"")
        assert error is not None  # noqa: S101 - a send is answered by one or the other
        failures += 1
        if retrying.gives_up(error, failures):
            raise error
        # If the answer to a deletion was lost, the deletion may have been done; then the object no longer exists.
        is_deletion = call.method == "DELETE" and call.read is ignore_body
        is_lost = isinstance(error, ConnectionFailedError) or error.is_of_proxy
        may_be_done = may_be_done or (is_deletion and is_lost)
        yield Sleep(retrying.pause(failures, getattr(error, "retry_after", None)))


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """The seconds that ``Retry-After`` asks for."""
    try:
        return max(float(headers.get("retry-after", "")), 0.0)
    except ValueError:
        return None
