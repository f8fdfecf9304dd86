"""A provider's errors as ours: a stable word, a status, whether another try can help, and never any text."""

from __future__ import annotations

from typing import Final

from pydantic_ai import exceptions as provider

from app.domain.errors import ModelUnavailableError

_WORDS: Final[tuple[tuple[type[BaseException], str, bool], ...]] = (
    (provider.ModelRequestTimeout, "timeout", True),
    (provider.ModelTimeoutError, "timeout", True),
    (TimeoutError, "timeout", True),
    (provider.ModelConnectionError, "connection", True),
    (OSError, "connection", True),
    (provider.ModelRateLimitError, "rate_limited", True),
    (provider.ModelQuotaExceededError, "quota_exceeded", False),
    (provider.ModelUnavailableError, "server_error", True),
    (provider.ModelServerError, "server_error", True),
    (provider.ModelAuthenticationError, "unauthorized", False),
    (provider.ModelNotFoundError, "model_not_found", False),
    (provider.ModelContextWindowExceededError, "context_too_long", False),
    (provider.ModelRequestRejectedError, "bad_request", False),
    (provider.UserError, "bad_request", False),
)
"""(error, reason word, retryable); the first that fits counts, so a subclass stands before its base."""

_STATUSES: Final[dict[int, tuple[str, bool]]] = {
    401: ("unauthorized", False),
    403: ("unauthorized", False),
    404: ("model_not_found", False),
    408: ("timeout", True),
    429: ("rate_limited", True),
}

_FIRST_SERVER_ERROR: Final = 500
_FIRST_CLIENT_ERROR: Final = 400


def unavailable(error: Exception) -> ModelUnavailableError:
    """Translate; what the provider wrote stays behind, since it may quote the conversation or a key.

    Raise the result ``from None``, or a traceback would show the original after all.
    """
    status = error.status_code if isinstance(error, provider.ModelHTTPError) else None
    word, retryable = next(
        ((word, retryable) for kind, word, retryable in _WORDS if isinstance(error, kind)),
        _by_status(status),
    )
    return ModelUnavailableError(word, retryable=retryable, status=status)


def _by_status(status: int | None) -> tuple[str, bool]:
    """An answer nobody can read (no status) may be whole the next time."""
    if status is None or status < _FIRST_CLIENT_ERROR:
        return "unreadable", True
    return _STATUSES.get(status, ("server_error", True) if status >= _FIRST_SERVER_ERROR else ("bad_request", False))
