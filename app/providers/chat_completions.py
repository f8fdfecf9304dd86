"""Models of servers with OpenAI's chat completions, also where their answers differ from OpenAI's in small things."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import Choice, ChoiceDeltaToolCall
from openai.types.completion_usage import CompletionUsage
from pydantic import BaseModel, ValidationError
from pydantic_ai.messages import ModelResponseStreamEvent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIStreamedResponse
from pydantic_ai.usage import RequestUsage

if TYPE_CHECKING:
    from pydantic_ai.models.openai._chat_completions import LenientChatCompletion

_COUNTS: Final = ("prompt_tokens", "completion_tokens")


@dataclass
class _CompletionsStream(OpenAIStreamedResponse):
    """A stream whose words are kept, even if its server counts or numbers in a way of its own.

    * A further report of usage takes the place of the one before, since some servers report the usage so far in each
      chunk, or the whole usage twice. The library adds up all reports.
    * A report that cannot be read counts as none. The library refuses its chunk, and with it the reply.
    * Calls under one index with different ids are different calls. The library joins their names and arguments.
    """

    _ids: dict[int, str] = field(default_factory=dict, init=False)
    """The id of the last call under each index of the server."""
    _indexes: dict[int, int] = field(default_factory=dict, init=False)
    """The index of that call for the library, if it is not that of the server."""

    def _add_usage(self, usage: RequestUsage, *, reported: bool, cumulative: bool = False) -> None:
        if reported or cumulative:
            super()._add_usage(usage, reported=reported, cumulative=True)

    async def _validate_response(self) -> AsyncIterator[ChatCompletionChunk]:
        async for chunk in super()._validate_response():
            chunk.usage = _readable_usage(chunk.usage)
            yield chunk

    def _map_tool_call_delta(self, choice: Choice) -> Iterable[ModelResponseStreamEvent]:
        for delta in choice.delta.tool_calls or []:
            self._give_own_index(delta)
        return super()._map_tool_call_delta(choice)

    def _give_own_index(self, delta: ChoiceDeltaToolCall) -> None:
        # Only the first piece of a call has a name; some servers send a new id with each further piece, some none.
        index, id_ = delta.index, delta.id or ""
        if delta.function and delta.function.name:
            known = self._ids.get(index)
            is_another = known is not None and (id_ != known if id_ else not known)
            if is_another:
                self._indexes[index] = min(self._indexes.values(), default=0) - 1
            if known is None or is_another:
                self._ids[index] = id_
        delta.index = self._indexes.get(index, index)


class CompletionsModel(OpenAIChatModel):
    """A model of a server with OpenAI's chat completions."""

    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return _CompletionsStream

    def _validate_completion(self, response: ChatCompletion) -> LenientChatCompletion:
        # Neither is needed for the answer, and the library refuses the whole of it.
        response.usage = _readable_usage(response.usage)
        if not isinstance(response.created, int):
            response.created = 0
        return super()._validate_completion(response)


def _readable_usage(reported: object) -> CompletionUsage | None:
    """The usage as far as it can be read; the SDK has not checked it. ``None`` if the counts cannot be."""
    given = reported.model_dump(warnings=False) if isinstance(reported, BaseModel) else reported
    if not isinstance(given, dict):
        return None
    for kept in (given, {name: given.get(name) for name in _COUNTS}):
        with suppress(ValidationError):
            return CompletionUsage.model_validate({"total_tokens": 0, **kept})
    return None
