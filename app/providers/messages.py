"""A context in pydantic-ai's form: neighbours with one role joined, calls and results paired, media if possible."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UploadedFile,
    UserContent,
    UserPromptPart,
)

from app.core.context.files import FILE_COPY
from app.core.context.formats.calls import STUB_RESULT, PartPosition, answers_of_calls, places_of_calls
from app.core.context.formats.words import UniqueIds, part_as_text, served_arguments, tool_name, with_names_in_text
from app.core.model.model_io import ContextMessage
from app.core.retrieval.rendering import split_elements
from app.core.text.contents import inline_base64
from app.core.text.localization.catalogue import FALLBACK, Catalogue, catalogue_of
from app.core.text.parts import Part, as_text, in_order, own_content, own_parts

TakesMedia = Callable[[str], bool]
"""Returns whether the model reads inline data of that media type."""

SIGNATURE: Final = "thought_signature"
"""The key in a call's details for the provider's signature, in Base64. It is only sent back to that ``PROVIDER``."""
EXTRA_CONTENT: Final = "extra_content"
"""The key for what a server with OpenAI's chat completions sent beside a call; Gemini's signature is in it."""
PROVIDER: Final = "provider"
FILE_COPY_PROVIDER: Final = "google"
"""The provider for which requests name its copies of files, under pydantic-ai's name for it."""
CALL_ID: Final = "call_id"
"""The key in a call's details under which the provider's own id of the call is kept, for stateful models."""

_OPEN: Final = -1
"""The number of the message that makes the calls which the provider already has: it comes before all others."""


def to_provider(
    messages: Sequence[ContextMessage],
    takes_media: TakesMedia,
    open_calls: Sequence[Part] = (),
    locale: str = FALLBACK,
) -> list[ModelMessage]:
    """A context as messages of pydantic-ai.

    A call is followed by its result wherever the result was appended. If a client used one id for several calls, a
    result belongs to the last of them before it, and each further call gets an id of its own, since some providers
    refuse an id that comes twice. Nothing here fetches anything: media given by address are named in words, since the
    service never opens addresses that messages name.

    Args:
        messages: The context, or the part that the provider does not keep yet.
        takes_media: Which media types the model reads inline.
        open_calls: Calls before these messages that the provider already has; their results come first.
        locale: The language of the conversation, in which media are described by words.
    """
    catalogue, messages = catalogue_of(locale), with_names_in_text(messages)
    calls = _Calls(messages, open_calls)
    thread: list[ModelMessage] = []
    for number, part in enumerate(open_calls):
        _append_request_part(thread, _result_under_provider_id(part, calls.call_and_result((_OPEN, number), part)[1]))
    for index, message in enumerate(messages):
        if message.role == "system":
            _append_request_part(thread, SystemPromptPart(message.content))
        elif message.role == "user":
            for prompt in _prompts(message, takes_media, catalogue):
                _append_request_part(thread, prompt)
        elif message.role == "assistant":
            _append_answer(thread, message, calls.of_message(index), catalogue)
        else:
            for extra in _content_without_call(message, calls.ids, takes_media, catalogue):
                _append_request_part(thread, UserPromptPart(extra if isinstance(extra, str) else [extra]))
    return thread


class _Calls:
    """The calls of a context, each with its result."""

    def __init__(self, messages: Sequence[ContextMessage], open_calls: Sequence[Part]) -> None:
        self._messages = messages
        places = places_of_calls(messages)
        for number, part in reversed(list(enumerate(open_calls))):
            places.setdefault(str(part.get("id")), []).insert(0, (_OPEN, number))
        self.ids: Collection[str] = places.keys()
        self._answers = {answer.call: answer for answer in answers_of_calls(messages, places)}
        self._taken = UniqueIds()

    def of_message(self, index: int) -> list[tuple[ToolCallPart, ToolReturnPart]]:
        """The calls that a message makes, each with its result. Ask for each message once, in order."""
        parts = enumerate(self._messages[index].parts)
        return [
            self.call_and_result((index, number), part) for number, part in parts if part.get("type") == "tool_call"
        ]

    def call_and_result(self, place: PartPosition, part: Part) -> tuple[ToolCallPart, ToolReturnPart]:
        """A call under an id that no call before it has, and its result; a stub if there is none."""
        call = _call(part)
        call = replace(call, tool_call_id=self._taken.unique_as_given(call.tool_call_id))
        name, content = call.tool_name, STUB_RESULT
        if place in self._answers:
            answer = self._answers[place]
            name, content = tool_name(answer.result.get("name") or part.get("name")), answer.content
            # The library takes an empty list and null for no content; to a model they mean that nothing was found.
            content = as_text(content) if content is None or content == [] else content
        return call, ToolReturnPart(tool_name=name, content=content, tool_call_id=call.tool_call_id)


def _append_request_part(thread: list[ModelMessage], part: ModelRequestPart) -> None:
    # The last message's own list grows: a copy for each part would take quadratic time.
    if thread and isinstance(thread[-1], ModelRequest) and isinstance(parts := thread[-1].parts, list):
        parts.append(part)
    else:
        thread.append(ModelRequest(parts=[part]))


def _append_answer(
    thread: list[ModelMessage],
    message: ContextMessage,
    calls_and_results: Sequence[tuple[ToolCallPart, ToolReturnPart]],
    catalogue: Catalogue,
) -> None:
    texts: list[ModelResponsePart] = [TextPart(text) for text in _words_of(message, catalogue)]
    calls = [call for call, _ in calls_and_results]
    if not texts and not calls:
        return
    if thread and isinstance(thread[-1], ModelResponse) and isinstance(parts := thread[-1].parts, list):
        parts += [*texts, *calls]
    else:
        thread.append(ModelResponse(parts=[*texts, *calls]))
    for _, result in calls_and_results:
        _append_request_part(thread, result)


def _result_under_provider_id(part: Part, result: ToolReturnPart) -> ToolReturnPart:
    details = part.get("details")
    kept = details.get(CALL_ID) if isinstance(details, Mapping) else None
    return replace(result, tool_call_id=kept) if isinstance(kept, str) and kept else result


def _prompts(message: ContextMessage, takes_media: TakesMedia, catalogue: Catalogue) -> Iterator[UserPromptPart]:
    own_text = split_elements(message.content)[1]  # recalled text was not said by the message's speaker
    given = in_order(message.content, own_text, message.parts)
    pieces = [_piece(part, takes_media, catalogue) for part in given]
    if pieces:
        yield UserPromptPart(pieces[0] if len(pieces) == 1 and isinstance(pieces[0], str) else pieces)


def _words_of(message: ContextMessage, catalogue: Catalogue) -> Iterator[str]:
    if message.content.strip():
        yield message.content
    for part in own_parts(message.content, message.parts):
        if part.get("type") != "tool_call":
            yield part_as_text(part, catalogue)


def _piece(part: Part, takes_media: TakesMedia, catalogue: Catalogue) -> UserContent:
    media_type = str(part.get("media_type", "")).lower()
    if part.get("type") == FILE_COPY:
        return UploadedFile(file_id=str(part["uri"]), provider_name=FILE_COPY_PROVIDER, media_type=media_type)
    data = inline_base64(part) if part.get("type") == "media" and takes_media(media_type) else None
    if data is None:
        return part_as_text(part, catalogue)
    return BinaryContent(data=base64.b64decode(data), media_type=media_type)


def _call(part: Part) -> ToolCallPart:
    provider, kept = _provider_and_kept(part.get("details"))
    return ToolCallPart(
        tool_name=tool_name(part.get("name")),
        args=served_arguments(part.get("arguments")),
        tool_call_id=str(part.get("id")),
        provider_name=provider,
        provider_details=kept,
    )


def _provider_and_kept(details: Any) -> tuple[str | None, dict[str, Any] | None]:
    # A client may have stored anything here.
    provider = details.get(PROVIDER) if isinstance(details, Mapping) else None
    if not (isinstance(provider, str) and provider):
        return None, None
    kept = {key: details[key] for key, is_valid in _KEPT_DETAILS.items() if key in details and is_valid(details[key])}
    return (provider, kept) if kept else (None, None)


def _is_signature(value: Any) -> bool:
    if not (isinstance(value, str) and value):
        return False
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


_KEPT_DETAILS: Final[Mapping[str, Callable[[Any], bool]]] = {
    SIGNATURE: _is_signature,
    EXTRA_CONTENT: lambda value: isinstance(value, Mapping) and bool(value),
}
"""The details of a call that its provider needs back, and what they can be."""


def _content_without_call(
    message: ContextMessage, calls: Collection[str], takes_media: TakesMedia, catalogue: Catalogue
) -> Iterator[UserContent]:
    # Results without a call, which a provider would refuse as results, and media that a tool returned.
    def is_answer(part: Part) -> bool:
        return part.get("type") == "tool_result" and str(part.get("tool_call_id")) in calls

    is_answered = any(map(is_answer, message.parts))
    other_text = "" if is_answered else own_content(message.role, message.content, message.parts)
    if other_text.strip():
        yield other_text
    for part in own_parts(other_text, message.parts):
        if not is_answer(part):
            yield _piece(part, takes_media, catalogue)
