"""Models of OpenRouter: asked as the library asks them, and read like those of any server with chat completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openai.types.chat import ChatCompletion, ChatCompletionMessage
from pydantic_ai.messages import ThinkingPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.openrouter import OpenRouterModel

from app.providers.chat_completions import CompletionsModel

if TYPE_CHECKING:
    from pydantic_ai.models.openai._chat_completions import LenientChatCompletion


class OpenRouterCompletions(CompletionsModel, OpenRouterModel):
    """A model of OpenRouter, which passes on the answers of many providers.

    The library refuses a whole answer for one detail of its reasoning or its sources that it does not know.
    """

    def _validate_completion(self, response: ChatCompletion) -> LenientChatCompletion:  # type: ignore[override]
        return super()._validate_completion(_unwrapped(response))

    def _process_thinking(self, message: ChatCompletionMessage) -> list[ThinkingPart] | None:
        return OpenAIChatModel._process_thinking(self, message)  # noqa: SLF001 - past the one that needs its own types

    def _process_provider_details(self, response: ChatCompletion) -> dict[str, Any] | None:
        return OpenAIChatModel._process_provider_details(self, response)  # noqa: SLF001 - likewise


def _unwrapped(response: ChatCompletion) -> ChatCompletion:
    # Now and then the whole answer is in the field for the provider's name.
    inner = getattr(response, "provider", None)
    return ChatCompletion.construct(None, **inner) if isinstance(inner, dict) and not response.choices else response
