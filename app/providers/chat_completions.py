"""Models of servers with OpenAI's chat completions, also where their answers differ from OpenAI's in small things."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from httpx2 import Response
from openai import AsyncStream, omit
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatCompletionMessageParam,
    ChatCompletionStreamOptionsParam,
)
from openai.types.chat.chat_completion_chunk import Choice, ChoiceDeltaToolCall
from openai.types.completion_usage import CompletionUsage
from pydantic import BaseModel, ValidationError
from pydantic_ai.exceptions import ModelHTTPError, UnexpectedModelBehavior
from pydantic_ai.messages import FinishReason, ModelMessage, ModelResponse, ModelResponseStreamEvent
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings, OpenAIStreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from app.core.text.json_data import data_in
from app.providers.call_signatures import CallSignatures, give_signatures_back
from app.providers.failures import is_field_refused
from app.providers.thinking_tags import TagPieces

if TYPE_CHECKING:
    from pydantic_ai.models.openai._chat_completions import LenientChatCompletion

_COUNTS: Final = ("prompt_tokens", "completion_tokens")
_REASONING_FIELDS: Final = ("reasoning", "reasoning_content")
_MISSED: Final = "reasoning_content"
"""What DeepSeek and Moonshot want back with a reply while their models reason, if there were calls. Thoughts are not
kept, so it is empty.
"""
_ENDS_OF_SEQUENCE: Final = frozenset({"eos", "eos_token"})
"""What Together and servers of Hugging Face call an answer that the model ended itself."""
_OUTPUT_LIMIT: Final = "max_completion_tokens"
"""OpenAI's newer name of ``max_tokens``. Mistral and others know only the older one."""
_RESPONSE_FORMAT: Final = "response_format"
"""The form of the answer. It is not necessary if words ask for the form, too."""
_STREAM_OPTIONS: Final = "stream_options"
"""The wish for a report of the usage. It is not necessary."""
_STATUSES: Final = range(400, 600)
_MOST_USD: Final = 100_000
"""The most that a call can cost: more than any does, and small enough for sums in the database."""
_ERROR: Final = "error"
"""How OpenRouter calls the end of an answer that its provider broke off."""

_Reason = Literal["stop", "length", "tool_calls", "content_filter", "function_call"]


@dataclass(slots=True)
class _LastCall:
    """The last call under an index of a server."""

    id: str
    name: str
    arguments: list[str] = field(default_factory=list)
    """The pieces of its arguments so far."""

    def is_continued_by(self, id_: str, name: str) -> bool:
        """Whether a further piece with a name is of this call: some servers repeat the name in each piece.

        Of pieces with other ids, or none at all, those are of this call that come while its arguments are not whole.
        """
        if id_ == self.id and id_:
            return True
        if not id_ and self.id:
            return True
        return name == self.name and bool(self.arguments) and not self._is_whole()

    def _is_whole(self) -> bool:
        if not self.arguments[-1].rstrip().endswith("}"):
            return False
        try:
            data_in("".join(self.arguments))
        except ValueError:
            return False
        return True


@dataclass
class _CompletionsStream(OpenAIStreamedResponse):
    """A stream whose words are kept, even if its server counts or numbers in a way of its own.

    * A further report of usage takes the place of the one before, since some servers report the usage so far in each
      chunk, or the whole usage twice. The library adds up all reports.
    * A report that cannot be read counts as none. The library refuses its chunk, and with it the reply.
    * Calls under one index with different ids are different calls. The library joins their names and arguments.
    * A name that comes again with a further piece of its call counts once. The library joins all pieces of a name.
    * The time is ignored: nobody needs it, and the library refuses a chunk whose time is no date.
    * The tags around thoughts count wherever they are in a chunk. The library knows them only if each comes alone.
    * The price that a server reports counts.
    """

    _calls: dict[int, _LastCall] = field(default_factory=dict, init=False)
    """The last call under each index of the server."""
    _indexes: dict[int, int] = field(default_factory=dict, init=False)
    """The index of that call for the library, if it is not that of the server."""

    def _add_usage(self, usage: RequestUsage, *, reported: bool, cumulative: bool = False) -> None:
        if reported or cumulative:
            super()._add_usage(usage, reported=reported, cumulative=True)

    def _map_usage(self, response: ChatCompletionChunk) -> RequestUsage:
        return _with_reported_cost(super()._map_usage(response), response.usage)

    async def _validate_response(self) -> AsyncIterator[ChatCompletionChunk]:
        pieces, signatures = TagPieces(), CallSignatures()
        async for chunk in super()._validate_response():
            chunk.usage, chunk.created = _readable_usage(chunk.usage), 0
            delta = chunk.choices[0].delta if chunk.choices else None
            if delta is not None:
                signatures.put_on_call(delta)
            if delta is not None and isinstance(delta.content, str):
                *before, delta.content = pieces.of(delta.content) or [""]
                for piece in before:
                    yield _chunk_of(piece)
            yield chunk
        if held := pieces.rest():
            yield _chunk_of(held)

    def _map_finish_reason(self, key: _Reason) -> FinishReason | None:
        return super()._map_finish_reason(key) or _end_of_sequence(key)

    def _map_tool_call_delta(self, choice: Choice) -> Iterable[ModelResponseStreamEvent]:
        for delta in choice.delta.tool_calls or []:
            self._give_own_index(delta)
        return super()._map_tool_call_delta(choice)

    def _give_own_index(self, delta: ChoiceDeltaToolCall) -> None:
        index, id_ = delta.index, delta.id or ""
        known = self._calls.get(index)
        name = delta.function.name if delta.function else None
        if delta.function and name:
            if known is None or not known.is_continued_by(id_, name):
                if known is not None:
                    self._indexes[index] = min(self._indexes.values(), default=0) - 1
                known = self._calls[index] = _LastCall(id_, name)
            elif name == known.name:
                delta.function.name = None
        arguments = delta.function.arguments if delta.function else None
        if known is not None and isinstance(arguments, str) and arguments:
            known.arguments.append(arguments)
        delta.index = self._indexes.get(index, index)


class CompletionsModel(OpenAIChatModel):
    """A model of a server with OpenAI's chat completions.

    A server may refuse a field that others know, or miss one. Then it is asked without it, or with it, now and from now
    on.
    """

    @cached_property
    def _refused_fields(self) -> set[str]:
        return set()

    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return _CompletionsStream

    async def _completions_create(  # type: ignore[override]
        self,
        messages: list[ModelMessage],
        stream: bool,  # noqa: FBT001 - the library's own
        model_settings: OpenAIChatModelSettings,
        model_request_parameters: ModelRequestParameters,
    ) -> ChatCompletion | AsyncStream[ChatCompletionChunk] | ModelResponse:
        sent = {_STREAM_OPTIONS, _MISSED} if stream else {_MISSED}
        if "max_tokens" in model_settings:
            sent.add(_OUTPUT_LIMIT)
        if model_request_parameters.output_mode == "prompted":
            sent.add(_RESPONSE_FORMAT)
        refused = frozenset(self._refused_fields)
        create: Any = super()._completions_create  # of which each overload takes one value of ``stream``
        while True:
            settings, parameters = self._with_known_limit(model_settings), model_request_parameters
            if parameters.output_mode == "prompted" and _RESPONSE_FORMAT in self._refused_fields:
                parameters = replace(parameters, output_mode="text")  # by now the schema is in the messages
            try:
                answer: ChatCompletion | AsyncStream[ChatCompletionChunk] | ModelResponse = await create(
                    messages, stream, settings, parameters
                )
            except ModelHTTPError as error:
                unknown = {name for name in sent - self._refused_fields if is_field_refused(error, name)}
                if not unknown:
                    self._refused_fields.intersection_update(refused)  # it was not for these
                    raise
                self._refused_fields.update(unknown)
            else:
                return answer

    def _with_known_limit(self, settings: OpenAIChatModelSettings) -> OpenAIChatModelSettings:
        if _OUTPUT_LIMIT not in self._refused_fields or "max_tokens" not in settings:
            return settings
        limited = settings.copy()
        extra = cast("Mapping[str, object]", limited.get("extra_body") or {})
        limited["extra_body"] = {**extra, "max_tokens": limited.pop("max_tokens")}
        return limited

    def _get_stream_options(self, model_settings: OpenAIChatModelSettings) -> ChatCompletionStreamOptionsParam:
        if _STREAM_OPTIONS in self._refused_fields:
            return cast("ChatCompletionStreamOptionsParam", omit)
        return super()._get_stream_options(model_settings)

    async def _process_streamed_response(
        self,
        response: AsyncStream[ChatCompletionChunk],
        model_request_parameters: ModelRequestParameters,
        model_settings: OpenAIChatModelSettings | None = None,
    ) -> OpenAIStreamedResponse:
        # Some servers give the whole answer at once, whatever they are asked for. Others send a stream under this type.
        is_json = response.response.headers.get("content-type", "").startswith("application/json")
        kept = _kept_bytes(response.response) if is_json else []
        try:
            return await super()._process_streamed_response(response, model_request_parameters, model_settings)
        except UnexpectedModelBehavior:
            if not kept:
                raise
        whole = data_in(b"".join(kept).decode(errors="replace"))
        self._refuse_error(whole)
        chunk = cast("AsyncStream[ChatCompletionChunk]", _OneChunk(_as_chunk(whole)))
        return await super()._process_streamed_response(chunk, model_request_parameters, model_settings)

    async def _map_messages(
        self,
        messages: Sequence[ModelMessage],
        model_request_parameters: ModelRequestParameters,
        *,
        model_settings: ModelSettings | None = None,
    ) -> list[ChatCompletionMessageParam]:
        mapped = await super()._map_messages(messages, model_request_parameters, model_settings=model_settings)
        give_signatures_back(mapped)
        if _MISSED in self._refused_fields:
            for message in mapped:
                if message["role"] == "assistant":
                    cast("dict[str, Any]", message).setdefault(_MISSED, "")
        return mapped

    def _map_usage(self, response: ChatCompletion) -> RequestUsage:
        return _with_reported_cost(OpenAIChatModel._map_usage(self, response), response.usage)  # noqa: SLF001 - its own

    def _validate_completion(self, response: ChatCompletion) -> LenientChatCompletion:
        response.usage, response.created = _readable_usage(response.usage), 0
        self._refuse_error(response.model_dump(warnings=False))
        validate = partial(OpenAIChatModel._validate_completion, self)  # noqa: SLF001 - a hook for classes like this
        try:
            return validate(response)
        except ValidationError:
            # The library refuses the whole answer for what is not needed to understand it.
            return validate(_needed(response, self.model_name))

    def _refuse_error(self, answer: object) -> None:
        """Raise the error that a gateway reports in place of an answer, though with the status of one."""
        error = _error_in(answer)
        code = error.get("code") if isinstance(error, dict) else None
        status = int(code) if isinstance(code, str) and code.isdecimal() else code
        if status in _STATUSES:
            raise ModelHTTPError(cast("int", status), self.model_name, error)

    def _map_finish_reason(self, key: str) -> FinishReason | None:
        known = OpenAIChatModel._map_finish_reason(self, cast("_Reason", key))  # noqa: SLF001 - likewise
        return known or _end_of_sequence(key)


@dataclass(frozen=True, slots=True)
class _OneChunk:
    """A stream of one chunk, as far as the library needs one."""

    chunk: ChatCompletionChunk

    async def __aiter__(self) -> AsyncIterator[ChatCompletionChunk]:
        yield self.chunk

    async def close(self) -> None:
        """Nothing is open."""


def _kept_bytes(response: Response) -> list[bytes]:
    """The bytes of a response, as far as they have been read."""
    kept: list[bytes] = []
    read = response.aiter_bytes

    async def keeping() -> AsyncIterator[bytes]:
        async for piece in read():
            kept.append(piece)
            yield piece

    response.aiter_bytes = keeping  # type: ignore[method-assign, assignment]
    return kept


def _end_of_sequence(key: str) -> FinishReason | None:
    return "stop" if key in _ENDS_OF_SEQUENCE else None


def _chunk_of(content: str) -> ChatCompletionChunk:
    choice = Choice.model_validate({"index": 0, "delta": {"content": content}})
    return ChatCompletionChunk(id="", choices=[choice], created=0, model="", object="chat.completion.chunk")


def _as_chunk(whole: Any) -> ChatCompletionChunk:
    """A whole answer as the only chunk of a stream. Raises ``ValueError`` if it has none of an answer's parts."""
    choice = _first_choice(whole)
    calls = [{"index": index, **call} for index, call in enumerate(_calls_in(choice["message"]))]
    delta = {**choice["message"], "tool_calls": calls}
    chunk = {**whole, "object": "chat.completion.chunk", "choices": [{**choice, "index": 0, "delta": delta}]}
    return ChatCompletionChunk.construct(None, **chunk)


def _needed(response: ChatCompletion, model: str) -> ChatCompletion:
    """An answer without what is not needed to understand it. It is the same if it cannot be understood."""
    try:
        choice = _first_choice(response.model_dump(warnings=False))
    except ValueError:
        return response
    message = choice["message"]
    shown = {name: message[name] for name in _REASONING_FIELDS if isinstance(message.get(name), str)}
    said = {"role": "assistant", "content": message.get("content"), "tool_calls": _calls_in(message) or None}
    refusal = message.get("refusal")
    said["refusal"] = refusal if isinstance(refusal, str) else None
    reason = choice.get("finish_reason")
    kept = {
        "index": 0,
        "message": said | shown,
        "finish_reason": reason if reason and isinstance(reason, str) else "stop",
    }
    return ChatCompletion.construct(
        None, id="", object="chat.completion", created=0, model=model, choices=[kept], usage=response.usage
    )


def _error_in(answer: object) -> object:
    """The error that is in place of an answer, or with the choice that it ended."""
    if not isinstance(answer, dict) or not answer.get("choices"):
        return answer.get("error") if isinstance(answer, dict) else None
    choice = answer["choices"][0]
    is_ended = isinstance(choice, dict) and choice.get("finish_reason") == _ERROR
    return (choice.get("error") or answer.get("error")) if is_ended else None


def _first_choice(answer: Any) -> dict[str, Any]:
    """The first choice of an answer, which has a message. Raises ``ValueError``."""
    choices = answer.get("choices") if isinstance(answer, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not (isinstance(choice, dict) and isinstance(choice.get("message"), dict)):
        raise ValueError("no choice with a message")  # noqa: TRY004 - like any other answer that cannot be read
    return choice


def _calls_in(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The calls of a message, each with an id and with its arguments as text."""
    calls = message.get("tool_calls")
    found = []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            arguments = function.get("arguments") or ""
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            made = {"name": function["name"], "arguments": text}
            found.append({**call, "id": str(call.get("id") or ""), "type": "function", "function": made})
    return found


def _readable_usage(reported: object) -> CompletionUsage | None:
    """The usage as far as it can be read; the SDK has not checked it. ``None`` if the counts cannot be."""
    given = reported.model_dump(warnings=False) if isinstance(reported, BaseModel) else reported
    if not isinstance(given, dict):
        return None
    for kept in (given, {name: given.get(name) for name in _COUNTS}):
        with suppress(ValidationError):
            return CompletionUsage.model_validate({"total_tokens": 0, **kept})
    return None


def _with_reported_cost(usage: RequestUsage, reported: CompletionUsage | None) -> RequestUsage:
    """The usage with the price in USD that a server reports, as OpenRouter does: no table knows what it charges."""
    told: Mapping[str, Any] = (reported.model_extra if reported else None) or {}
    cost = _price(told.get("cost"))
    if cost is not None:
        # With a key of the customer's own for a provider, OpenRouter charges its fee, and that provider the rest.
        details = told.get("cost_details") if told.get("is_byok") else None
        billed_elsewhere = details.get("upstream_inference_cost") if isinstance(details, Mapping) else None
        usage.cost = cost + (_price(billed_elsewhere) or 0)
    return usage


def _price(told: object) -> Decimal | None:
    if not isinstance(told, int | float) or isinstance(told, bool) or not 0 <= told <= _MOST_USD:
        return None
    return Decimal(str(told))
