"""What can go wrong, as exceptions: one class per kind of problem, with everything that the service said of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final


class ThroughlineError(Exception):
    """Base of everything this client raises by itself."""


class ConnectionFailedError(ThroughlineError):
    """The service could not be reached, or did not answer in time, however often it was tried."""


class ApiError(ThroughlineError):
    """The service refused, or failed; the members of its problem (RFC 9457)."""

    def __init__(self, status: int, problem: Mapping[str, Any], *, retry_after: float | None = None) -> None:
        self.status = status
        self.problem = dict(problem)
        """Every member, also those that only some codes have (``message_id``, ``minimum`` …)."""
        self.code = str(problem.get("code") or f"http_{status}")
        """Stable: what to branch on."""
        self.detail = str(problem.get("detail") or "")
        self.retryable = bool(problem.get("retryable", status in RETRIED))
        self.request_id = problem.get("request_id")
        self.errors: list[Mapping[str, str]] = list(problem.get("errors") or ())
        """For input: ``field`` and ``message`` of each."""
        told = problem.get("retry_after")
        self.retry_after = float(told) if retry_after is None and isinstance(told, int | float) else retry_after
        """Seconds after which to try again, if the service said so."""
        untold = (one for one in self.errors if str(one.get("message")) not in self.detail)
        fields = "; ".join(f"{one.get('field')}: {one.get('message')}" for one in untold)
        super().__init__(": ".join(part for part in (f"{status} {self.code}", self.detail, fields) if part))


class BadRequestError(ApiError):
    """400: unreadable."""


class UnauthenticatedError(ApiError):
    """401: no valid key."""


class ForbiddenError(ApiError):
    """403: the key lacks the scope."""


class NotFoundError(ApiError):
    """404: unknown, or another tenant's."""


class ConflictError(ApiError):
    """409: it collides with something that goes on; ``code`` says with what."""


class PreconditionFailedError(ApiError):
    """412: another state version than the one that was named."""


class TooLargeError(ApiError):
    """413: more than is taken."""


class InvalidInputError(ApiError):
    """422: out of contract; ``errors`` names the fields."""


class RateLimitedError(ApiError):
    """429: too much for now."""


class ModelFailedError(ApiError):
    """502: the model failed; in a turn ``problem["message_id"]`` is the stored message."""


class UnavailableError(ApiError):
    """503: something the service stands on is away."""


class ServerError(ApiError):
    """Any other 5xx."""


RETRIED: Final = frozenset({429, 503})
_CLASSES: Final[Mapping[int, type[ApiError]]] = {
    400: BadRequestError,
    401: UnauthenticatedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    412: PreconditionFailedError,
    413: TooLargeError,
    422: InvalidInputError,
    429: RateLimitedError,
    502: ModelFailedError,
    503: UnavailableError,
}
_SERVER: Final = 500


def error_of(status: int, problem: Mapping[str, Any], *, retry_after: float | None = None) -> ApiError:
    """The exception for a problem."""
    found = _CLASSES.get(status, ServerError if status >= _SERVER else ApiError)
    return found(status, problem, retry_after=retry_after)


def problem_in(body: bytes) -> Mapping[str, Any]:
    """The problem in a body; something else that stands there (a proxy's page, another API's error) is its detail."""
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    is_problem = isinstance(found, Mapping) and not found.keys().isdisjoint({"code", "detail"})
    return found if is_problem else {"detail": body[:300].decode(errors="replace")}
