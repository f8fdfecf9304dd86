"""The errors of the client as exceptions: one class per kind of problem, with all that the service said about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final


class ThroughlineError(Exception):
    """Base class of all errors that this client raises itself."""


class ConnectionFailedError(ThroughlineError):
    """The service could not be reached, or did not answer in time, at any attempt."""


class ApiError(ThroughlineError):
    """The service refused a request, or failed. The attributes are the members of its problem (RFC 9457)."""

    def __init__(self, status: int, problem: Mapping[str, Any], *, retry_after: float | None = None) -> None:
        self.status = status
        self.problem = dict(problem)
        """Every member, including those that only some codes have (``message_id``, ``minimum`` …)."""
        self.code = str(problem.get("code") or f"http_{status}")
        """The stable code, by which programs can distinguish errors."""
        self.detail = str(problem.get("detail") or "")
        self.is_of_proxy = status in PROXY_STATUSES and "code" not in problem
        """Whether a proxy answered that it could not reach the service, or that the service was late."""
        self.retryable = bool(problem.get("retryable", status in RETRYABLE_STATUSES or self.is_of_proxy))
        self.request_id = problem.get("request_id")
        errors = problem.get("errors")  # of another API perhaps, in any form
        listed = errors if isinstance(errors, list) else ()
        self.errors: list[Mapping[str, str]] = [one for one in listed if isinstance(one, Mapping)]
        """For invalid input, ``field`` and ``message`` of each error."""
        problem_retry_after = problem.get("retry_after")
        self.retry_after = (
            float(problem_retry_after)
            if retry_after is None and isinstance(problem_retry_after, int | float)
            else retry_after
        )
        """After how many seconds to try again, if the service said so."""
        unmentioned = (one for one in self.errors if str(one.get("message")) not in self.detail)
        fields = "; ".join(f"{one.get('field')}: {one.get('message')}" for one in unmentioned)
        super().__init__(": ".join(part for part in (f"{status} {self.code}", self.detail, fields) if part))


class BadRequestError(ApiError):
    """400: the request cannot be read."""


class UnauthenticatedError(ApiError):
    """401: there is no valid key."""


class ForbiddenError(ApiError):
    """403: the key lacks the scope."""


class NotFoundError(ApiError):
    """404: the object is unknown, or belongs to another tenant."""


class ConflictError(ApiError):
    """409: the request conflicts with something that is going on; ``code`` says with what."""


class PreconditionFailedError(ApiError):
    """412: the state has another version than the one that was named."""


class TooLargeError(ApiError):
    """413: the request is larger than the service accepts."""


class InvalidInputError(ApiError):
    """422: the input is invalid; ``errors`` names the fields."""


class RateLimitedError(ApiError):
    """429: too many requests for now."""


class ModelFailedError(ApiError):
    """502: the model failed; in a turn ``problem["message_id"]`` is the stored message."""


class UnavailableError(ApiError):
    """503: something that the service depends on is away."""


class ServerError(ApiError):
    """Any other 5xx."""


RETRYABLE_STATUSES: Final = frozenset({429, 503})
PROXY_STATUSES: Final = frozenset({502, 504})
"""The statuses by which proxies say that a service is away, as while it is restarted, or late."""
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
_MIN_SERVER_STATUS: Final = 500


def error_of(status: int, problem: Mapping[str, Any], *, retry_after: float | None = None) -> ApiError:
    """The exception for a problem."""
    found = _CLASSES.get(status, ServerError if status >= _MIN_SERVER_STATUS else ApiError)
    return found(status, problem, retry_after=retry_after)


def problem_in(body: bytes) -> Mapping[str, Any]:
    """The problem in a body. Another body (a proxy's page, another API's error) becomes the detail."""
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    is_problem = isinstance(found, Mapping) and not found.keys().isdisjoint({"code", "detail"})
    return found if is_problem else {"detail": body[:300].decode(errors="replace")}
