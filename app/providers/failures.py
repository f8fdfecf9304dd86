"""Translates a provider's errors: a reason, a status, and whether another try can help; never the provider's text."""

from __future__ import annotations

from typing import Final

from pydantic_ai import exceptions as provider

from app.core.model.errors import ModelUnavailableError
from app.core.model.files import FILE_LOST
from app.providers.http_answers import AnswerTooLargeError

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
    424: ("server_error", True),
    429: ("rate_limited", True),
    499: ("server_error", True),
}
"""Google answers 499 if it cancels a request itself, as under load, and Bedrock 424 if its model failed."""

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
    "`inputs` tokens + ",
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
_USED_UP_WORDS: Final = (
    "blocked_api_access",
    "credits are depleted",
    "doesn't have any credits",
    "key limit exceeded",
    "monthly spending limit",
    "specified api usage limits",
    "spending cap",
)
"""How Google, Anthropic, OpenRouter, xAI, Groq and Fireworks say that the account's money or its own limit is used up,
with the status of another error.
"""
_WRONG_KEY_WORDS: Final = ("incorrect api key provided",)
"""How xAI says that it does not know the key, as if the request were wrong."""
_RETIRED_WORDS: Final = ("invalid_model", "is not a valid model id", "model_decommissioned")
"""How Mistral, OpenRouter and Groq say that there is no such model, or no longer, as if the request were wrong."""
_MODEL_FAILED_WORDS: Final = ("json_validate_failed", "tool_use_failed")
"""How Groq says, as if the request were wrong, that the model wrote no valid JSON or call. The next answer may be
valid.
"""
_BLOCK_WORDS: Final = (
    "content_filter",
    "content_policy_violation",
    "content exists risk",
    "content filtering policy",
    "data_inspection_failed",
)
"""How providers say that they block a prompt, if they answer with an error instead of a finish reason."""
_FLAGGED_WORDS: Final = ("flagged_input", "violates usage guidelines")
"""How OpenRouter and xAI say so, as if the key had no right to ask."""
_BLOCK_CODES: Final = frozenset(
    {"bio_policy", "image_content_policy_violation", "invalid_prompt", "misalignment_policy_violation"}
)
"""How OpenAI's responses say so, also if they fail for it later. A response that fails has no status."""
_IMAGE_CODE: Final = "image"
"""What the code has with which one of OpenAI's responses fails for an image of the request."""
_SCHEMA_WORDS: Final = (
    "compiled grammar",
    "json_schema",
    "maximum allowed nesting depth",
    "output_config",
    "outputconfig",
    "response_format",
    "response_schema",
    "responsejsonschema",
    "schema is too complex",
    "too many states",
)
"""How servers name what they do not take, if they know no JSON schemas, or if one is too complex for them: servers with
OpenAI's chat completions, Google, Anthropic and Bedrock.
"""
_REASONING_WORDS: Final = ("thinking", "reasoning")
"""How providers speak of the depth of reasoning. Which depths a model takes changes with each new model."""
_REFUSAL_STATUSES: Final = frozenset({400, 413, 422})
_RATE_STATUSES: Final = frozenset({413, 429})
_USED_UP_STATUSES: Final = frozenset({400, 403, 412, 429})
_FORBIDDEN_STATUSES: Final = frozenset({403})
_SERVER_STATUSES: Final = frozenset({500})
_MISSING_STATUSES: Final = frozenset({400, 403, 404})
_SEARCHED_CHARACTERS: Final = 4_000  # characters of an error's body; the words are at its beginning

_TOLD_IN_WORDS: Final[tuple[tuple[str, bool, tuple[str, ...], frozenset[int]], ...]] = (
    ("context_too_long", False, _TOO_LARGE_WORDS, _REFUSAL_STATUSES | _SERVER_STATUSES),
    ("context_too_long", False, _OVER_RATE_WORDS, _RATE_STATUSES),
    ("context_too_long", False, _TOO_LONG_WORDS, _REFUSAL_STATUSES),
    (RESPONSE_LOST, False, _RESPONSE_LOST_WORDS, _REFUSAL_STATUSES),
    (CACHE_LOST, False, _CACHE_LOST_WORDS, _MISSING_STATUSES),
    (FILE_LOST, False, _FILE_LOST_WORDS, _MISSING_STATUSES),
    ("quota_exceeded", False, _USED_UP_WORDS, _USED_UP_STATUSES),
    ("unauthorized", False, _WRONG_KEY_WORDS, _REFUSAL_STATUSES),
    ("model_not_found", False, _RETIRED_WORDS, _REFUSAL_STATUSES),
    ("unreadable", True, _MODEL_FAILED_WORDS, _REFUSAL_STATUSES),
)
"""(reason word, retryable, words, statuses). The first match counts."""

_FIRST_SERVER_ERROR: Final = 500
_FIRST_CLIENT_ERROR: Final = 400


def unavailable(error: Exception) -> ModelUnavailableError:
    """Translate an error without the provider's text, which may quote the conversation or a key.

    Raise the result ``from None``: otherwise a traceback would show the original.
    """
    status = error.status_code if isinstance(error, provider.ModelHTTPError) else None
    told = _told_reason_and_retryable(error) or next(
        ((word, retryable) for kind, word, retryable in _REASONS if isinstance(error, kind)), None
    )
    word, retryable = told or _reason_and_retryable(status)
    wait = error.retry_after if isinstance(error, provider.ModelAPIError) else None
    wait = None if wait is None else min(wait, LONGEST_WAIT)
    return ModelUnavailableError(word, retryable=retryable, status=status, retry_after=wait)


def is_block(error: Exception) -> bool:
    """Whether the provider blocked the prompt for its content."""
    is_told = isinstance(error, provider.ContentFilterError) or _code_of(error) in _BLOCK_CODES
    is_flagged = _refusal_mentions(error, _FLAGGED_WORDS, _FORBIDDEN_STATUSES)
    return is_told or is_flagged or _refusal_mentions(error, _BLOCK_WORDS)


def is_schema_refused(error: Exception) -> bool:
    """Whether the server refused the request for the JSON schema of its answer."""
    return _refusal_mentions(error, _SCHEMA_WORDS)


def is_reasoning_refused(error: Exception) -> bool:
    """Whether the server refused the request for how deeply the model should reason.

    A blocked prompt is not, though OpenAI's words for that name a guide to reasoning.
    """
    return not is_block(error) and any(is_field_refused(error, word) for word in _REASONING_WORDS)


def is_field_refused(error: Exception, name: str) -> bool:
    """Whether the server refused the request for a field that it does not know."""
    return _refusal_mentions(error, (name,)) and unavailable(error).reason == "bad_request"


def _told_reason_and_retryable(error: Exception) -> tuple[str, bool] | None:
    """The reason of an error whose cause, code or words tell more than its kind, and whether another try can help."""
    if _is_caused_by(error, AnswerTooLargeError):
        return "unreadable", False
    if _IMAGE_CODE in (_code_of(error) or "") and not isinstance(error, provider.ModelHTTPError):
        return "bad_request", False
    found = (told[:2] for told in _TOLD_IN_WORDS if _refusal_mentions(error, told[2], told[3]))
    return next(found, None)


def _code_of(error: Exception) -> str | None:
    return error.provider_error_code if isinstance(error, provider.ModelAPIError) else None


def _is_caused_by(error: BaseException | None, kind: type[BaseException]) -> bool:
    while error is not None and not isinstance(error, kind):
        error = error.__cause__
    return error is not None


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
