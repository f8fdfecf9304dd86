"""Translates a provider's errors: a reason, a status, and whether another try can help; never the provider's text."""

from __future__ import annotations

from typing import Final

from pydantic_ai import exceptions as provider

from app.core.model.errors import ModelUnavailableError
from app.core.model.files import FILE_LOST

RESPONSE_LOST: Final = "previous_response_not_found"
CACHE_LOST: Final = "cache_lost"
TIMEOUT: Final = "timeout"
LONGEST_WAIT: Final = 86_400.0
"""The most seconds that a provider may ask to wait. It may name a date, and our clock may be behind; and the largest
numbers are no time span.
"""

_REASONS: Final[tuple[tuple[type[BaseException], str, bool], ...]] = (
    (provider.ModelRequestTimeout, TIMEOUT, True),
    (provider.ModelTimeoutError, TIMEOUT, True),
    (TimeoutError, TIMEOUT, True),
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
"""(error, reason word, retryable). The first match counts, so a subclass comes before its base class."""

_STATUSES: Final[dict[int, tuple[str, bool]]] = {
    401: ("unauthorized", False),
    402: ("quota_exceeded", False),
    403: ("unauthorized", False),
    404: ("model_not_found", False),
    408: (TIMEOUT, True),
    429: ("rate_limited", True),
}

_TOO_LONG_WORDS: Final = (
    "context_length_exceeded",
    "exceed_context_size",
    "context size",
    "context window",
    "contextwindowexceeded",
    "context length",
    "context limit",
    "maximum model length",
    "maximum prompt length",
    "prompt is too long",
    "input is too long",
    "input token count",
    "too many tokens",
)
"""How providers say that the input exceeds the model's window, if the status alone does not show it."""
_OVER_RATE_WORDS: Final = ("request too large for",)
"""How Groq and OpenAI say that one request alone has more tokens than they take in a minute, so that waiting is no
help, but a smaller request is.
"""
_TOO_LARGE_WORDS: Final = ("physical batch size",)
"""How llama.cpp says, with status 500, that a text is longer than it embeds at once: by default 512 tokens."""
_RESPONSE_LOST_WORDS: Final = ("previous_response_not_found", "previous response with id")
"""How a provider says that it no longer keeps the response from which a request goes on."""
_CACHE_LOST_WORDS: Final = ("cachedcontent", "cached content", "cached_content")
"""How Gemini speaks of a cache that it no longer keeps, or not for this key or this model."""
_FILE_LOST_WORDS: Final = ("access the file", "not in an active state", "file not found")
"""How a provider says that a request names a file that it no longer keeps, or does not have yet."""
_BLOCK_WORDS: Final = ("content_filter", "content_policy_violation")
"""How providers say that they block a prompt, if they answer with an error instead of a finish reason."""
_SCHEMA_WORDS: Final = ("response_format", "json_schema")
"""How servers with OpenAI's chat completions name what they do not take, if they know no JSON schemas."""
_REFUSAL_STATUSES: Final = frozenset({400, 413, 422})
_RATE_STATUSES: Final = frozenset({413, 429})
_SERVER_STATUSES: Final = frozenset({500})
_MISSING_STATUSES: Final = frozenset({400, 403, 404})
_SEARCHED_CHARACTERS: Final = 4_000  # characters of an error's body; the words are at its beginning

_FIRST_SERVER_ERROR: Final = 500
_FIRST_CLIENT_ERROR: Final = 400


def unavailable(error: Exception) -> ModelUnavailableError:
    """Translate an error without the provider's text, which may quote the conversation or a key.

    Raise the result ``from None``: otherwise a traceback would show the original.
    """
    status = error.status_code if isinstance(error, provider.ModelHTTPError) else None
    is_too_large = _refusal_mentions(error, _TOO_LARGE_WORDS, _REFUSAL_STATUSES | _SERVER_STATUSES)
    is_over_rate = _refusal_mentions(error, _OVER_RATE_WORDS, _RATE_STATUSES)
    if is_too_large or is_over_rate or _refusal_mentions(error, _TOO_LONG_WORDS):
        return ModelUnavailableError("context_too_long", retryable=False, status=status)
    if _refusal_mentions(error, _RESPONSE_LOST_WORDS):
        return ModelUnavailableError(RESPONSE_LOST, retryable=False, status=status)
    if _refusal_mentions(error, _CACHE_LOST_WORDS, _MISSING_STATUSES):
        return ModelUnavailableError(CACHE_LOST, retryable=False, status=status)
    if _refusal_mentions(error, _FILE_LOST_WORDS, _MISSING_STATUSES):
        return ModelUnavailableError(FILE_LOST, retryable=False, status=status)
    word, retryable = next(
        ((word, retryable) for kind, word, retryable in _REASONS if isinstance(error, kind)),
        _reason_and_retryable(status),
    )
    wait = error.retry_after if isinstance(error, provider.ModelAPIError) else None
    wait = None if wait is None else min(wait, LONGEST_WAIT)
    return ModelUnavailableError(word, retryable=retryable, status=status, retry_after=wait)


def is_block(error: Exception) -> bool:
    """Whether the provider blocked the prompt for its content."""
    return isinstance(error, provider.ContentFilterError) or _refusal_mentions(error, _BLOCK_WORDS)


def is_schema_refused(error: Exception) -> bool:
    """Whether the server refused the request for the JSON schema of its answer."""
    return _refusal_mentions(error, _SCHEMA_WORDS)


def is_field_refused(error: Exception, name: str) -> bool:
    """Whether the server refused the request for a field that it does not know."""
    return _refusal_mentions(error, (name,)) and unavailable(error).reason == "bad_request"


def _refusal_mentions(error: Exception, words: tuple[str, ...], statuses: frozenset[int] = _REFUSAL_STATUSES) -> bool:
    if not isinstance(error, provider.ModelHTTPError) or error.status_code not in statuses:
        return False
    body = str(error.body)[:_SEARCHED_CHARACTERS].lower()
    return any(word in body for word in words)


def _reason_and_retryable(status: int | None) -> tuple[str, bool]:
    # Without a status the answer could not be read; the next answer may be complete.
    if status is None or status < _FIRST_CLIENT_ERROR:
        return "unreadable", True
    return _STATUSES.get(status, ("server_error", True) if status >= _FIRST_SERVER_ERROR else ("bad_request", False))
