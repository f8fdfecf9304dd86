"""The offline model: the core's extractive compressor and responder behind the same ports as any provider.

It follows no instructions and uses no randomness, so a client's instructions and settings only change where its answer
ends. It refuses to give a structured answer. It calls a tool of the client only if it must, so that clients can be
tried without a provider.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from app.core.context.files import with_files
from app.core.model.conversation import Usage
from app.core.model.errors import ModelUnavailableError
from app.core.model.model_io import (
    CallSettings,
    ChatRequest,
    ContextMessage,
    DetailRequest,
    FinishReason,
    ModelProfile,
    Proposal,
    StepEvent,
    StepFinish,
    SummaryRequest,
    TextDelta,
    ToolCall,
)
from app.core.retrieval.offline_responder import respond
from app.core.summarizer.offline.extractive import compress, digest
from app.core.text.budget import first_fitting
from app.core.text.patterns import compiled
from app.core.text.token_counts import estimate_text, weigh
from app.off_loop import off_loop
from app.providers.profiles import offline_profile
from app.usecases.ports import SummarizerRequest

_WORDS = compiled(r"\S++\s*+")
_WORDS_PER_DELTA: Final = 4
_DEFAULT_VALUES: Final[Mapping[str, Any]] = {
    "integer": 0,
    "number": 0,
    "boolean": False,
    "array": [],
    "object": {},
    "null": None,
}
"""The plainest value of each type in JSON Schema; text if a type is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineChat:
    """Answers with the best passages of the context; deterministic, and costs nothing."""

    profile: ModelProfile = field(default_factory=offline_profile)

    async def step(self, request: ChatRequest) -> AsyncIterator[StepEvent]:
        """Yield the reply in pieces of a few words, as a provider would; or a call, if one is required."""
        messages = with_files(request.messages, request.files, request.locale)
        input_tokens = await off_loop(_weight, messages)
        if request.must_call:
            call = required_call(request)
            yield call
            usage = _usage(input_tokens, str(dict(call.arguments)))
            yield StepFinish(reason="tool_call", usage=usage, model=self.profile.name)
            return
        # In a thread, since the ranking needs the processor and the loop serves all requests.
        reply = await off_loop(respond, messages, request.locale)
        reply, reason = cut_reply(reply, request.settings)
        for piece in reply_pieces(reply):
            yield TextDelta(text=piece)
            await asyncio.sleep(0)
        yield StepFinish(reason=reason, usage=_usage(input_tokens, reply), model=self.profile.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineSummarizer:
    """Proposes a state of the most telling sentences; deterministic, and costs nothing."""

    profile: ModelProfile = field(default_factory=offline_profile)

    async def ask(self, request: SummarizerRequest) -> Proposal:
        """A state in the JSON format of a provider's model, or an L1 made of the segment's sentences, in order.

        It is never asked for verdicts, since quotations need none; for verdicts it raises ``ModelUnavailableError``.
        """
        match request:
            case SummaryRequest():
                text = await off_loop(compress, request)
            case DetailRequest():
                text = await off_loop(digest, request.messages, request.target_tokens, request.locale)
            case _:
                raise ModelUnavailableError("cannot_answer", retryable=False)
        input_tokens = sum(message.token_count for message in request.messages)
        if isinstance(request, SummaryRequest):
            input_tokens += sum(estimate_text(entry.text) for entry in request.previous)
        return Proposal(text=text, finish="stop", model=self.profile.name, usage=_usage(input_tokens, text))


def cut_reply(reply: str, settings: CallSettings) -> tuple[str, FinishReason]:
    """The reply up to the end that its client requested, and why it ends."""
    reply = reply[: min((at for at in map(reply.find, settings.stop) if at >= 0), default=len(reply))]
    token_limit = settings.max_output_tokens
    if token_limit is None or estimate_text(reply) <= token_limit:
        return reply, "stop"
    words: list[str] = _WORDS.findall(reply)
    return "".join(first_fitting(words, token_limit, estimate_text) or words[:1]), "length"


def required_call(request: ChatRequest) -> ToolCall:
    """A call of the first tool that has to be called; each required argument has the plainest value of its type."""
    tool = next(tool for tool in request.tools if tool.name in request.must_call)
    properties, required = tool.parameters.get("properties"), tool.parameters.get("required")
    schemas = properties if isinstance(properties, Mapping) else {}
    names = required if isinstance(required, list | tuple) else ()
    arguments = {name: _default_value(schemas.get(name)) for name in names if isinstance(name, str)}
    return ToolCall(id="offline", name=tool.name, arguments=arguments)


def _default_value(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return ""
    options = schema.get("enum")
    if isinstance(options, list | tuple) and options:
        return options[0]
    type_ = schema.get("type")
    return _DEFAULT_VALUES.get(type_, "") if isinstance(type_, str) else ""


def reply_pieces(reply: str) -> list[str]:
    """Split a reply between words. Joined, the pieces are exactly the reply."""
    words = _WORDS.findall(reply)
    if not words:
        return [reply] if reply else []
    words[0] = reply[: len(reply) - len(reply.lstrip())] + words[0]
    return ["".join(words[start : start + _WORDS_PER_DELTA]) for start in range(0, len(words), _WORDS_PER_DELTA)]


def _weight(messages: Sequence[ContextMessage]) -> int:
    return sum(weigh(message.role, message.content, message.parts).tokens for message in messages)


def _usage(input_tokens: int, output: str) -> Usage:
    return Usage(input_tokens=input_tokens, output_tokens=estimate_text(output), cost_usd=0.0)
