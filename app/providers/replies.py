"""A provider's answer in the service's terms: text, finish reason, usage."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from pydantic_ai.messages import (
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_core import to_json

from app.core.context.formats.words import arguments_of
from app.core.context.tools import ANSWER_TOOL_NAME
from app.core.model.conversation import Usage
from app.core.model.model_io import FinishReason, ToolCall
from app.core.text.escaping import clean
from app.core.text.json_data import data_in
from app.core.text.patterns import compiled
from app.providers.http_answers import AnswerTooLargeError
from app.providers.messages import CALL_ID, EXTRA_CONTENT, PROVIDER, SIGNATURE
from app.providers.prices import cost_of

_FINISHES: Final[dict[str, FinishReason]] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "blocked",
    "tool_call": "tool_call",
}
_MAX_TOKENS: Final = 100_000_000
"""The most tokens that a call can count: more than any window, and small enough for sums in the database."""
_ID: Final = compiled(r"[\x21-\x7e]{1,1000}")
"""A provider's name of something that it keeps: longer ones fit into no index of the database."""
CALLS_BYTES: Final = 4_000_000
"""The most bytes of the arguments of one answer's calls, as of a message that a client gives."""
MAX_PARTS: Final = 500
"""The most texts, thoughts and calls of one streamed answer: the library's time grows with the square of their number.
"""
_DETAILS_BYTES: Final = 128_000
"""The most bytes of what is sent back with one call."""
_DEEPEST: Final = 64  # the most levels of a value, as in requests
_TOO_DEEP: Final = "nested too deep"
_RAW_REASON: Final = "finish_reason"
"""The key under which the library keeps the provider's own word for the finish reason."""


@dataclass(slots=True)
class PieceCleaner:
    """Cleans a text that comes in pieces; a character or a line break that is split between two pieces stays one."""

    _held: str = ""

    def cleaned(self, piece: str) -> str:
        """The cleaned text that can be sent once this piece has come."""
        text = self._held + piece
        is_half = text[-1:] == "\r" or "\ud800" <= text[-1:] <= "\udbff"
        self._held = text[-1:] if is_half else ""
        return clean(text[:-1] if is_half else text)

    def rest(self) -> str:
        """The text that is still held back at the end."""
        return clean(self._held)


def refuse_many_parts(event: ModelResponseStreamEvent) -> None:
    """Raise ``AnswerTooLargeError`` if a streamed answer has more than ``MAX_PARTS``."""
    if isinstance(event, PartStartEvent) and event.index >= MAX_PARTS:
        raise AnswerTooLargeError


def delta_of(event: ModelResponseStreamEvent) -> str:
    """The piece of the reply in a stream event; empty for thoughts (``Thoughts``), calls and ends."""
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""


def text_of(response: ModelResponse) -> str:
    """The whole reply, without thoughts; empty when there is none."""
    return "".join(part.content or "" for part in response.parts if isinstance(part, TextPart))


def calls_of(response: ModelResponse, *, keeps_ids: bool = False) -> list[ToolCall]:
    """The tool calls, in order; arguments that are not a JSON object are put under ``input``.

    ``keeps_ids``: the provider's own id is put into the details, since the provider keeps the call under it.
    """
    return [
        ToolCall(
            id=part.tool_call_id,
            name=clean(part.tool_name),
            arguments=_arguments(part.args),
            details=_details_to_send_back(part, response)
            | ({CALL_ID: part.tool_call_id} if keeps_ids and is_id(part.tool_call_id) else {}),
        )
        for part in _calls_in(response)
    ]


def is_id(value: object) -> TypeGuard[str]:
    """Whether a provider's id or name of something can be stored and sent back."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def calls_bytes(calls: Iterable[ToolCall]) -> int:
    """The bytes of the arguments of calls, as JSON."""
    return sum(len(to_json(call.arguments)) for call in calls)


def answer_of(response: ModelResponse) -> str:
    """The answer of a model that gives it as the arguments of a call, as JSON; its text if it made no call."""
    answers = [part for part in response.parts if isinstance(part, ToolCallPart) and part.tool_name == ANSWER_TOOL_NAME]
    if not answers:
        return text_of(response)
    args = answers[0].args
    return args if isinstance(args, str) else to_json(args or {}).decode()


def calls_tool(response: ModelResponse) -> bool:
    """Whether the model called a tool, rather than giving its answer by a call."""
    return bool(_calls_in(response))


def finish_of(response: ModelResponse) -> FinishReason:
    """Why the model stopped.

    Gemini says ``STOP`` after a call too; no reason at all means that the answer broke off.
    """
    finish = _FINISHES.get(response.finish_reason or "", "other")
    if finish in {"stop", "tool_call"}:
        return "tool_call" if calls_tool(response) else "stop"
    return finish


def finish_of_stream(model: Model, response: ModelResponse) -> FinishReason:
    """``finish_of`` for a streamed reply: text or half a call without a reason for its end is ``other``.

    If an OpenAI-compatible server gives no reason, the library says ``stop``, but the connection may have ended in the
    middle of a word. Whole calls stay calls, since some servers never give a reason. Of other providers, it says
    nothing if they gave none, and it does not keep xAI's own word.
    """
    finish = finish_of(response)
    if not isinstance(model, OpenAIChatModel) or _RAW_REASON in (response.provider_details or {}):
        return finish
    is_half = finish == "tool_call" and not all(map(_is_whole_call, response.parts))
    return "other" if finish == "stop" or is_half else finish


def usage_of(model: Model, response: ModelResponse) -> Usage:
    """Tokens as reported (reasoning counts as output), and the price if the bundled table has the model.

    Impossible numbers are ignored, as if the server had reported none.
    """
    usage = response.usage
    if not all(map(is_count, (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens))):
        return Usage()
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=min(usage.cache_read_tokens, usage.input_tokens),
        cost_usd=cost_of(model, response),
    )


def _calls_in(response: ModelResponse) -> list[ToolCallPart]:
    """The tool calls, without one by which the model gives its answer."""
    return [part for part in response.parts if isinstance(part, ToolCallPart) and part.tool_name != ANSWER_TOOL_NAME]


def is_count(tokens: object) -> bool:
    """Whether this can be the tokens of one call."""
    return isinstance(tokens, int) and 0 <= tokens <= _MAX_TOKENS


def _is_whole_call(part: object) -> bool:
    if not isinstance(part, ToolCallPart) or not isinstance(part.args, str) or not part.args.strip():
        return True
    try:
        data_in(part.args)
    except ValueError:
        return False
    return True


def _details_to_send_back(part: ToolCallPart, response: ModelResponse) -> dict[str, object]:
    # A provider needs its signature of a call back.
    told = part.provider_details or {}
    given = {key: _cleaned_json(told[key]) for key in (SIGNATURE, EXTRA_CONTENT) if told.get(key)}
    kept = {key: value for key, value in given.items() if len(to_json(value)) <= _DETAILS_BYTES}
    return {PROVIDER: part.provider_name or response.provider_name, **kept} if kept else {}


def _arguments(given: Any) -> dict[str, Any]:
    # Cleaned after parsing, since escapes can spell characters that cannot be stored.
    if isinstance(given, str):
        with contextlib.suppress(ValueError):
            given = data_in(given) if given.strip() else {}
    return arguments_of(_cleaned_json(given))


def _cleaned_json(value: Any, depth: int = 0) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if not isinstance(value, dict | list):
        return value
    if depth == _DEEPEST:
        return _TOO_DEEP
    if isinstance(value, dict):
        return {clean(str(key)): _cleaned_json(item, depth + 1) for key, item in value.items()}
    return [_cleaned_json(item, depth + 1) for item in value]
