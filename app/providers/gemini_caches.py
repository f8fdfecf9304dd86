"""Gemini's CachedContent: makes caches, prolongs and deletes them, and writes requests that name one."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, cast

import httpx2
from google.genai import errors, types
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelRequest, SystemPromptPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.google import GoogleModelSettings
from pydantic_ai.providers import Provider
from pydantic_ai.settings import ModelSettings

from app.core.context.files import FILE_COPY
from app.core.model.caches import CachedPrefix, MadeCache
from app.core.model.errors import CacheTooSmallError, ModelUnavailableError
from app.core.model.model_io import ContextMessage, ToolSpec
from app.core.text.parts import Part
from app.core.text.patterns import compiled
from app.off_loop import off_loop
from app.providers.call_settings import definition_of
from app.providers.failures import CACHE_LOST, unavailable
from app.providers.replies import is_id

NAME_PREFIX: Final = "cachedContents/"
"""How the provider's names of caches begin."""
DISPLAY_NAME: Final = "throughline"
_MINIMUM_IN_ERROR: Final = compiled(r"min_total_token_count\s{0,4}=\s{0,4}(\d{1,9})")
_TOO_SMALL_WORDS: Final = ("too small", "min_total_token_count", "minimum token count", "minimum number of tokens")
_BAD_REQUEST: Final = 400
_SEARCHED_CHARACTERS: Final = 4_000  # characters of an error's message


def request_with_cache(
    thread: Sequence[ModelMessage],
    parameters: ModelRequestParameters,
    settings: ModelSettings,
    *,
    name: str,
    system: str,
) -> tuple[list[ModelMessage], ModelRequestParameters, ModelSettings] | None:
    """A prepared request that names a cache, without what the cache holds.

    ``None`` if its system instruction is more than ``system``, or if it asks for more than a reply. Such a request has
    to be sent whole, since one that names a cache may have no instruction of its own.
    """
    system_texts = [part.content for message in thread for part in _system_parts(message)]
    if system_texts != [system] or parameters.output_mode != "text" or "tool_choice" in settings:
        return None
    rest = [without for message in thread if (without := _without_system(message)).parts]
    named = {**settings, **GoogleModelSettings(google_cached_content=name)}
    return rest, replace(parameters, function_tools=[]), cast("ModelSettings", named)


async def make(
    model: Model,
    prefix: CachedPrefix,
    attached: ContextMessage | None,
    ttl: timedelta,
    timeout: float,  # noqa: ASYNC109 - the client's own
) -> MadeCache:
    """Have the provider cache a prefix; ``attached`` is the message with its files.

    Raises:
        CacheTooSmallError: The prefix is smaller than the provider caches.
        ModelUnavailableError: The provider could not make the cache.
    """
    config = types.CreateCachedContentConfig(
        display_name=DISPLAY_NAME,
        system_instruction=types.Content(role="user", parts=[types.Part(text=prefix.instruction)]),
        ttl=_seconds(ttl),
        http_options=_options(timeout),
        contents=await off_loop(_attached_contents, attached) if attached else None,
        **_tools(model, prefix.tools),
    )
    try:
        made = await _caches(model).create(model=model.model_name, config=config)
    except Exception as error:  # noqa: BLE001 - whatever its client throws, callers must see our word
        raise _unavailable(error) from None
    if made.name is None or not is_id(made.name) or made.expire_time is None:
        raise ModelUnavailableError("unreadable")
    counted = made.usage_metadata.total_token_count if made.usage_metadata else None
    return MadeCache(name=made.name, tokens=counted, expires_at=made.expire_time)


async def renew(model: Model, name: str, ttl: timedelta, timeout: float) -> datetime:  # noqa: ASYNC109 - as above
    """Have a cache kept for ``ttl`` from now on, and return when it ends. Raises ``ModelUnavailableError``."""
    config = types.UpdateCachedContentConfig(ttl=_seconds(ttl), http_options=_options(timeout))
    try:
        kept = await _caches(model).update(name=name, config=config)
    except Exception as error:  # noqa: BLE001 - as above
        raise _unavailable(error) from None
    if kept.expire_time is None:
        raise ModelUnavailableError("unreadable")
    ends: datetime = kept.expire_time
    return ends


async def delete(provider: Provider[Any], name: str, timeout: float) -> None:  # noqa: ASYNC109 - as above
    """Have a cache deleted. If it is already gone, that is no error. Raises ``ModelUnavailableError``."""
    try:
        await provider.client.aio.caches.delete(name=name, config={"http_options": _options(timeout)})
    except Exception as error:  # noqa: BLE001 - as above
        failure = _unavailable(error)
        if failure.reason not in {CACHE_LOST, "model_not_found"}:
            raise failure from None


def _caches(model: Model) -> Any:
    return cast("Any", model).client.aio.caches


def _tools(model: Model, tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """The tools as a request without a cache declares them."""
    if not tools:
        return {}
    asked = ModelRequestParameters(function_tools=[definition_of(tool) for tool in tools])
    _, prepared = model.prepare_request(None, asked)
    declared = [
        types.FunctionDeclaration(
            name=tool.name, description=tool.description or "", parameters_json_schema=tool.parameters_json_schema
        )
        for tool in prepared.function_tools
    ]
    chosen = types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.AUTO)
    return {
        "tools": [types.Tool(function_declarations=declared)],
        "tool_config": types.ToolConfig(function_calling_config=chosen),
    }


def _attached_contents(attached: ContextMessage) -> list[types.Content]:
    return [types.Content(role="user", parts=[_content_part(part) for part in attached.parts])]


def _content_part(part: Part) -> types.Part:
    if part["type"] == "text":
        return types.Part(text=part["text"])
    if part["type"] == FILE_COPY:
        return types.Part(file_data=types.FileData(file_uri=part["uri"], mime_type=part["media_type"]))
    return types.Part(inline_data=types.Blob(data=base64.b64decode(part["data"]), mime_type=part["media_type"]))


def _system_parts(message: ModelMessage) -> list[SystemPromptPart]:
    parts = message.parts if isinstance(message, ModelRequest) else ()
    return [part for part in parts if isinstance(part, SystemPromptPart)]


def _without_system(message: ModelMessage) -> ModelMessage:
    if not isinstance(message, ModelRequest):
        return message
    return replace(message, parts=[part for part in message.parts if not isinstance(part, SystemPromptPart)])


def _seconds(ttl: timedelta) -> str:
    return f"{round(ttl.total_seconds())}s"


def _options(timeout: float) -> types.HttpOptions:
    return types.HttpOptions(timeout=round(timeout * 1_000), retry_options=types.HttpRetryOptions(attempts=1))


def _unavailable(error: Exception) -> ModelUnavailableError:
    """Translate errors of Google's client: pydantic-ai does so only in its own calls."""
    if isinstance(error, errors.APIError):
        message = str(error.message or error.details)[:_SEARCHED_CHARACTERS]
        if error.code == _BAD_REQUEST and any(word in message.lower() for word in _TOO_SMALL_WORDS):
            least = _MINIMUM_IN_ERROR.search(message)
            return CacheTooSmallError(int(least[1]) if least else None, status=error.code)
        return unavailable(ModelHTTPError(error.code, "", error.details))
    if isinstance(error, httpx2.TimeoutException):
        return ModelUnavailableError("timeout", retryable=True)
    if isinstance(error, httpx2.TransportError):
        return ModelUnavailableError("connection", retryable=True)
    return unavailable(error)
