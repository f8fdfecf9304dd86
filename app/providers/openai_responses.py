"""OpenAI's Responses API: the provider keeps each response, and a later request may continue from it by its id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from openai import APIConnectionError, APIStatusError, APITimeoutError
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import InstructionPart
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings
from pydantic_ai.providers import Provider
from pydantic_ai.settings import ModelSettings

from app.core.model.errors import ModelUnavailableError
from app.core.model.model_io import ContextMessage, Continuation
from app.providers.failures import unavailable

KIND: Final = "openai-responses"
"""The prefix in a model's name. The provider is that of ``openai``."""


def make_model(name: str, provider: Provider[Any]) -> Model:
    """The model of that name, without its provider's prefix."""
    return OpenAIResponsesModel(name, provider=provider)


def kept_settings(settings: ModelSettings, continues: Continuation | None) -> ModelSettings:
    """Settings for a step of a chat: the response is kept, and continues an earlier one if there is one."""
    own = OpenAIResponsesModelSettings(openai_store=True)
    if continues is not None:
        own["openai_previous_response_id"] = continues.response_id
    return cast("ModelSettings", {**settings, **own})


def not_kept(settings: ModelSettings) -> ModelSettings:
    """Settings for a call from which nothing continues: the provider need not keep the response."""
    return cast("ModelSettings", {**settings, **OpenAIResponsesModelSettings(openai_store=False)})


async def delete(provider: Provider[Any], response_id: str, timeout: float) -> None:  # noqa: ASYNC109 - the client's own
    """Have a response deleted that the provider keeps. Raises ``ModelUnavailableError``."""
    try:
        await provider.client.with_options(timeout=timeout, max_retries=0).responses.delete(response_id)
    except Exception as error:  # noqa: BLE001 - whatever its client throws, callers must see our word
        raise _unavailable(error) from None


def _unavailable(error: Exception) -> ModelUnavailableError:
    # pydantic-ai translates the client's errors only in its own calls.
    if isinstance(error, APITimeoutError):
        return ModelUnavailableError("timeout", retryable=True)
    if isinstance(error, APIConnectionError):
        return ModelUnavailableError("connection", retryable=True)
    if isinstance(error, APIStatusError):
        return unavailable(ModelHTTPError(error.status_code, "", error.body))
    return unavailable(error)


def instructions_of(messages: Sequence[ContextMessage]) -> tuple[list[InstructionPart], Sequence[ContextMessage]]:
    """The system prompt, and the other messages. It is sent with each request, since responses do not keep it."""
    if not messages or messages[0].role != "system" or messages[0].seq is not None:
        return [], messages
    return [InstructionPart(content=messages[0].content)], messages[1:]
