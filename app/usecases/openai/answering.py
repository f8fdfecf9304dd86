"""Answers a stateless request: the model gets only the request's content, and nothing is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from app.core.context.newest_messages import newest_within
from app.core.context.tools import tools_tokens
from app.core.context.turn_options import NO_OPTIONS, TurnOptions, refuse_unsupported_options
from app.core.model.errors import DomainError, InvalidInputError, ModelFailedError, TooLargeError, full_reason
from app.core.model.model_io import ChatRequest, ContextMessage, FinishReason, ModelProfile, ToolCall
from app.core.reading.labels import name_for_model
from app.core.text.token_counts import weigh
from app.off_loop import off_loop
from app.usecases.admin.limiting import LimitService
from app.usecases.chat.reply import Answer, ModelCallbacks, finish_from_warnings
from app.usecases.chat.spending import answer_with_cost_noted
from app.usecases.history.drafts import MessageDraft
from app.usecases.history.preparing import options_size, size_of
from app.usecases.shared.caller import current_principal
from app.usecases.shared.shell import Shell

CONTEXT_TOO_LONG: Final = "context_too_long"
_FAILURE_TEXTS: Final[Mapping[str, str]] = {
    "blocked": "the model's provider blocked the answer: say it in other words",
    "empty": "the model gave an empty answer: send the request again",
    "length": "the model had used up its output limit before it said a word: send the request again with more room",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The content of a stateless request."""

    messages: tuple[MessageDraft, ...]
    options: TurnOptions = NO_OPTIONS
    """The system prompt, tools and settings of this request."""
    model: str | None = None
    """The chat model; ``None`` = the configured one."""
    truncates: bool = False
    """Whether the oldest messages may be left out if not all fit."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the reply."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolsCalled:
    """The model has called tools of this service. Text after this is a new part of the answer."""


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call of a client's tool, whose result the client sends with its next request."""

    call: ToolCall
    part: int
    """The number of the call among the parts of the reply."""


@dataclass(frozen=True, slots=True)
class ServiceEvent:
    """An event of the conversation during the answer, such as a compaction."""

    kind: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of an answer."""

    text: str
    finish: FinishReason = "stop"
    interrupted: bool = False
    usage: Mapping[str, Any] | None = None
    at: datetime | None = None
    """When the reply was stored."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The end without an answer, because the turn or the model failed."""

    error: DomainError


AnswerEvent = TextDelta | ReasoningDelta | ToolsCalled | OpenCall | ServiceEvent | Ended | Failed


class StatelessAnswers:
    """Asks a model to answer a given array of messages."""

    def __init__(self, shell: Shell, limits: LimitService) -> None:
        self._shell = shell
        self._limits = limits

    async def prepare(self, prompt: Prompt) -> ChatRequest:
        """The request for the model. Every error that refuses the client's request is raised here.

        The answer counts as a running turn until the client's request has ended.

        Raises:
            RateLimitedError: The caller has as many running turns as it may, or has spent as much as it may.
            ModelNotAllowedError: The operator does not allow the model.
            InvalidInputError: The model cannot take the settings or tools; there is nothing to answer.
            TooLargeError: The input exceeds the model's window, and nothing may be left out.
        """
        await self._shell.models.prepare(prompt.model)
        profile = self._shell.models.chat(prompt.model).profile
        if prompt.options != NO_OPTIONS:
            await off_loop(lambda: refuse_unsupported_options(prompt.options, profile, reserved_names=frozenset()))
        _refuse_unanswerable(prompt.messages)
        size = size_of(prompt.messages) + options_size(prompt.options)
        messages = await off_loop(_fitting, prompt, profile, size=size)
        await self._admit(metered=profile.metered)
        return ChatRequest(
            messages=messages,
            tools=prompt.options.offered,
            must_call=prompt.options.must_call,
            settings=prompt.options.settings,
            reasoning=prompt.options.settings.reasoning or "shown",
            is_kept=False,
        )

    async def _admit(self, *, metered: bool) -> None:
        principal = current_principal()
        if principal is not None and metered:
            async with self._shell.uow(principal.tenant_id) as uow:
                await self._limits.check_chat(uow)
        await self._limits.hold("running_turns")

    async def count(self, prompt: Prompt) -> int:
        """The estimated tokens of a request's content."""
        return await off_loop(lambda: sum(_message_tokens(prompt.messages)) + _tokens_beside_messages(prompt.options))

    async def answer(self, request: ChatRequest, model: str | None) -> AsyncGenerator[AnswerEvent, None]:
        """Yield the answer's events as they come; the last one is ``Ended`` or ``Failed``.

        When the caller closes the generator, the model's call is cancelled.
        """
        pieces: asyncio.Queue[TextDelta | ReasoningDelta | None] = asyncio.Queue()
        stop = asyncio.Event()
        chosen = self._shell.models.chat(model)
        callbacks = ModelCallbacks(
            on_text=lambda text: pieces.put_nowait(TextDelta(text)),
            on_reasoning=lambda text: pieces.put_nowait(ReasoningDelta(text)),
        )
        answer_task = asyncio.create_task(
            answer_with_cost_noted(self._shell.uow, chosen, request, stop=stop, callbacks=callbacks)
        )
        answer_task.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            for event in self._last_events(answer_task):
                yield event
        finally:
            answer_task.cancel()
            await asyncio.gather(answer_task, return_exceptions=True)

    def _last_events(self, answer_task: asyncio.Task[Answer]) -> list[AnswerEvent]:
        try:
            answer = answer_task.result()
        except ModelFailedError as error:
            return [Failed(_failure_of_unstored_request(error))]
        calls = tuple(replace(call, id=f"call_{self._shell.new_id().hex}") for call in answer.calls)
        finish: FinishReason = "tool_call" if calls else finish_from_warnings(answer.warnings)
        ended = Ended(
            text=answer.text,
            finish=finish,
            interrupted=answer.interrupted,
            usage=answer.usage.as_dict(),
        )
        return [*(OpenCall(call, part) for part, call in enumerate(calls)), ended]


def _refuse_unanswerable(messages: Sequence[MessageDraft]) -> None:
    """Refuse an empty input, and tool results without their calls."""
    if not any(message.content.strip() or message.parts for message in messages):
        raise InvalidInputError.of("input", "there is nothing to answer")
    made: set[object] = set()
    for message in messages:
        for part in message.parts:
            if part.get("type") == "tool_call":
                made.add(part.get("id"))
            elif part.get("type") == "tool_result" and part.get("tool_call_id") not in made:
                id_ = str(part.get("tool_call_id"))[:64]
                raise InvalidInputError.of("input", f"no tool call found for the output with call id {id_!r}")


def _fitting(prompt: Prompt, profile: ModelProfile) -> tuple[ContextMessage, ...]:
    """The system prompt and the messages, within the model's window."""
    messages = tuple(
        ContextMessage(role=draft.role, content=draft.content, parts=draft.parts, name=name_for_model(draft.metadata))
        for draft in prompt.messages
    )
    words = prompt.options.instructions
    system = (ContextMessage(role="system", content=words),) if words else ()
    sizes, other_tokens = _message_tokens(prompt.messages), _tokens_beside_messages(prompt.options)
    tokens_left = profile.input_limit - other_tokens
    if sum(sizes) <= tokens_left:
        return (*system, *messages)
    kept = newest_within(messages, sizes, tokens_left) if prompt.truncates else ()
    if not kept:
        raise _too_large(sum(sizes) + other_tokens, profile.input_limit)
    return (*system, *kept)


def _message_tokens(messages: Sequence[MessageDraft]) -> list[int]:
    return [draft.computed_weight().tokens for draft in messages]


def _tokens_beside_messages(options: TurnOptions) -> int:
    words = weigh("system", options.instructions, ()).tokens if options.instructions else 0
    return words + tools_tokens(options.offered, "script") + options.schema_tokens("script")


def _too_large(size: int, limit: int) -> TooLargeError:
    return TooLargeError(
        f"the request has {size} tokens, and the model takes {limit}: send fewer messages, allow truncation, or name a"
        " conversation, which is compacted as it grows",
        extra={"limit": limit, "size": size},
    )


def _failure_of_unstored_request(error: ModelFailedError) -> DomainError:
    reason = error.extra.get("reason")
    if reason == CONTEXT_TOO_LONG:
        return TooLargeError("the request is more than the model takes: send fewer messages, or name a conversation")
    return ModelFailedError(
        _FAILURE_TEXTS.get(str(reason)) or f"the model did not answer ({full_reason(reason)})",
        code=error.stable_code,
        retry_after=error.retry_after,
        extra={"reason": reason},
    )
