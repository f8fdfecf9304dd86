"""The errors of requests that are refused before any service is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.core.model.errors import DomainError, FieldError, InvalidInputError

_PUNCTUATION: Final = ".,:;()'\""


class UnreadableError(DomainError):
    """The request cannot be read at all: not JSON, not UTF-8, nested too deeply, or a malformed header (400)."""

    code = "unreadable"
    title = "Unreadable request"


class UnsupportedMediaTypeError(DomainError):
    """The body is not declared as plain JSON (415)."""

    code = "unsupported_media_type"


class BodyTooLargeError(DomainError):
    """The body exceeds the server's limit (413), which ``extra["limit"]`` gives in bytes."""

    code = "body_too_large"


class HostNotAllowedError(DomainError):
    """A request that needs no key was sent to an unknown host (421)."""

    code = "host_not_allowed"


class RequestTimeoutError(DomainError):
    """The whole request took too long (503); the work that it started may still be finished."""

    code = "request_timeout"
    title = "The request took too long"
    retryable = True


class MethodNotAllowedError(DomainError):
    """The path exists, but not with this method (405)."""

    code = "method_not_allowed"


def invalid_input(errors: Sequence[FieldError], count: int | None = None) -> InvalidInputError:
    """One error for all fields. Its detail is that of the first field, so that a log line or a toast says enough.

    ``errors`` has at least one; ``count`` is the total number if not all are listed.
    """
    first = errors[0]
    detail = first.message if _names_field(first.message, first.field) else f"{first.field}: {first.message}"
    others = (count or len(errors)) - 1
    more = f" ({others} more)" if others else ""
    return InvalidInputError(f"{detail}{more}", errors=errors)


def _names_field(message: str, field: str) -> bool:
    # "a" is a parameter and a word, so a name of one letter counts only at the beginning.
    words = [word.strip(_PUNCTUATION) for word in message.split()]
    return field in (words if len(field) > 1 else words[:1])


def invalid_field(field: str, message: str) -> InvalidInputError:
    """The error of one field."""
    return invalid_input([FieldError(field=field, message=message)])


def unexpected_error() -> DomainError:
    """The error that clients get for an unexpected exception."""
    return DomainError("Something went wrong on our side; the request id finds it in the logs.")
