"""Errors in the form of OpenAI's API: ``{"error": {message, type, param, code}}`` with a matching HTTP status."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from itertools import takewhile
from typing import Any, Final
from uuid import UUID

from pydantic import BaseModel, Field

from app.core.model.errors import SEND_AGAIN, DomainError, ModelFailedError
from app.core.model.redaction import redact
from app.core.text.patterns import compiled
from app.http.openai.ids import conversation_id

PREFIX: Final = "/v1"
"""Everything at and below this path uses the forms of OpenAI's API."""

_AZURE: Final = "/openai/"
"""Where clients of Azure look for that API. Nothing is there, but they read what they are told in its form."""

_STATUSES: Final[Mapping[str, int]] = {
    "model_not_allowed": 404,
    "message_too_large": 400,
    "context_over_window": 400,
    "blocked": 400,
    "host_not_allowed": 421,
}
"""Codes for which OpenAI's API uses another status than this service. Invalid requests are 400 there."""
_REFUSALS: Final = frozenset({"bad_request", "context_too_long"})
"""Reasons for which a model's provider refuses what the client sent: 400, which no SDK sends again."""
_AGAIN: Final = "send the same request again"
_TOO_LONG: Final = "context_length_exceeded"
_CODES: Final[Mapping[str, str]] = {
    "unauthenticated": "invalid_api_key",
    "model_not_allowed": "model_not_found",
    "message_too_large": _TOO_LONG,
    "context_over_window": _TOO_LONG,
    "rate_limited": "rate_limit_exceeded",
}
"""Codes for which that API has a name of its own."""
_TOO_LONG_MESSAGE: Final = "Input tokens exceed the configured limit; reduce the length of the messages"
"""Clients that do not read the code recognise a request that is too long by these words: LiteLLM and LangChain by those
before the semicolon, coding agents such as Pi by those after it.
"""
_STEP: Final = compiled(r"[A-Za-z_][A-Za-z0-9_]{0,63}|[0-9]{1,6}", re.ASCII)
_SHOWN_CHARACTERS: Final = 100
"""How many characters of an id an error repeats."""
_FORM_STEPS: Final = frozenset({"text", "list"})
"""Steps of a field's path that only name the form of a field with two forms; they are left out."""
_INPUT_FIELDS: Final = frozenset({"content", "tool_results"})
"""The names by which the other routes call parts of the input."""
_CHAT: Final = f"{PREFIX}/chat/completions"
_CHAT_FIELDS: Final[Mapping[str, str]] = {"input": "messages"}
_RESPONSE_FIELDS: Final[Mapping[str, str]] = {
    "reasoning_effort": "reasoning.effort",
    "response_format": "text.format",
    "max_tokens": "max_output_tokens",
}
"""The names in a response request of fields that both routes check under one name."""
_ERROR_TYPES: Final[Mapping[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
}


class OpenAIErrorBody(BaseModel):
    """What went wrong."""

    message: str
    type: str = Field(examples=["invalid_request_error"])
    param: str | None = Field(description="The field that is out of contract, if it is one.")
    code: str | None = Field(description="Stable; clients branch on it.")


class OpenAIError(BaseModel):
    """An error of the routes below ``/v1``."""

    error: OpenAIErrorBody


def is_openai_path(path: str) -> bool:
    """Whether a path belongs to OpenAI's API."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def has_openai_errors(path: str) -> bool:
    """Whether errors at a path have the form of OpenAI's API."""
    return is_openai_path(path) or path.startswith(_AZURE)


def openai_status(error: DomainError, status: int) -> int:
    """The status in that API of an error that has this ``status`` on the other routes."""
    found = _STATUSES.get(error.stable_code)
    is_invalid = status == HTTPStatus.UNPROCESSABLE_ENTITY or _refusal_of_provider(error) is not None
    return found or (HTTPStatus.BAD_REQUEST if is_invalid else status)


def _refusal_of_provider(error: DomainError) -> str | None:
    reason = error.extra.get("reason")
    return reason if isinstance(error, ModelFailedError) and reason in _REFUSALS else None


def _param(field: str, path: str) -> str:
    names = _CHAT_FIELDS if path == _CHAT else _RESPONSE_FIELDS
    if field.partition(".")[0] in _INPUT_FIELDS:
        return names.get("input", "input")
    first, *further = field.removeprefix("settings.").split(".")
    steps = [*takewhile(_STEP.fullmatch, [*names.get(first, first).split("."), *further])]
    named_steps = [step for number, step in enumerate(steps) if not _names_form(steps, number)]
    return redact(".".join(named_steps)) or redact(field)


def _names_form(steps: Sequence[str], number: int) -> bool:
    if number == 0 or steps[number] not in _FORM_STEPS:
        return False
    before, is_last = steps[number - 1], number == len(steps) - 1
    # In the text of a text part, ``text`` is a field, although it can also name a form.
    return not before.endswith("text") and not (before.isdigit() and is_last)


def _not_found_message(asked: Mapping[str, Any]) -> str:
    names = [f"{name.removesuffix('_id')} {str(value)[:_SHOWN_CHARACTERS]!r}" for name, value in asked.items()]
    # Innermost first: either that is missing, or the thing it belongs to.
    return f"There is no {' with '.join(reversed(names))}.{_form_of_ids(asked)}"


def _form_of_ids(asked: Mapping[str, Any]) -> str:
    """What the id of a conversation is here, if it was given as the contract has it."""
    try:
        return f" Here its id is {conversation_id(UUID(str(asked.get('conversation_id'))))!r}."
    except ValueError:
        return ""


def _text_after(text: str, start: str) -> str:
    return text.removeprefix(start) if text.startswith(start) else ""


def openai_error(
    error: DomainError, status: int, asked: Mapping[str, Any] | None = None, path: str = ""
) -> dict[str, Any]:
    """The inner object of an error; secrets from the request are not repeated.

    ``status`` is the translated one; ``asked`` are the ids in the path, which a 404 repeats. Fields have the names that
    requests to ``path`` use.
    """
    kind = _ERROR_TYPES.get(
        status, "server_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error"
    )
    first = error.errors[0] if error.errors else None
    param = _param(first.field, path) if first and first.field else None
    detail = f"{param}: {text}" if first and (text := _text_after(error.detail, f"{first.field}: ")) else error.detail
    message = redact(_not_found_message(asked or {}) if error.stable_code == "not_found" and asked else detail)
    message = message.replace(SEND_AGAIN, _AGAIN)
    is_too_long = _refusal_of_provider(error) == "context_too_long"
    code = _TOO_LONG if is_too_long else _CODES.get(error.stable_code, error.stable_code)
    by_tokens = code == _TOO_LONG and "seconds" not in error.extra  # otherwise it took too long to read
    return {
        "message": f"{_TOO_LONG_MESSAGE}: {message}" if by_tokens else message,
        "type": kind,
        "param": param,
        "code": code,
    }
