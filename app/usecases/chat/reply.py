"""One step of the chat model: streams it, stops when asked to, and says how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Final
from uuid import UUID

from app.core.model.conversation import Message, Usage
from app.core.model.errors import SEND_AGAIN, ModelFailedError, ModelUnavailableError, full_reason
from app.core.model.live_context import SentConversation
from app.core.model.model_io import (
    ChatRequest,
    FinishReason,
    ModelProfile,
    StepEvent,
    StepFinish,
    TextDelta,
    ToolCall,
)
from app.core.text.parts import Part
from app.core.text.token_counts import byte_length
from app.usecases.compaction.attempts import NOT_ASKED
from app.usecases.history.drafts import MESSAGE_BYTES
from app.usecases.ports import ChatModel

REPLY_CUT_OFF: Final = "reply_cut_off"
"""The warning on a reply that was cut off because the room for it was used up."""
REPLY_END_UNCONFIRMED: Final = "reply_end_untold"
"""The warning on a reply whose end the model's server never confirmed."""
REASONING_CUT_OFF: Final = "reasoning_cut_off"
"""The warning on a step that showed more reasoning than is kept."""
REASONING_BYTES: Final = 128_000
"""The most bytes of reasoning kept of one step, some 30,000 tokens. The rest is neither sent nor stored."""
_AGAIN: Final = f"the message is stored: {SEND_AGAIN}"
_BLOCKED: Final = (
    f"the model's provider blocked the answer; {_AGAIN}, or erase the message and say it in other words: as long as it"
    " stays, it is sent with each turn"
)
_EMPTY: Final = f"the model gave an empty answer; {_AGAIN}"
_OUTPUT_USED_UP: Final = (
    f"the model had used up its output limit before it said a word; {_AGAIN}, with more room (max_tokens)"
)
_END_WARNINGS: Final[Mapping[FinishReason, tuple[str, ...]]] = {
    "length": (REPLY_CUT_OFF,),
    "other": (REPLY_END_UNCONFIRMED,),
}
_COMPLETE_REASONS: Final[frozenset[FinishReason]] = frozenset({"stop", "tool_call"})
"""The finish reasons of a step whose tool calls are complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallbacks:
    """The callbacks that hear what a model says while it says it."""

    on_text: Callable[[str], None]
    on_reasoning: Callable[[str], None]
    """Hears the model's reasoning, as far as it is kept."""


@dataclass(slots=True)
class _BoundedText:
    """The text or the reasoning of one step, as far as it is kept: its size is bounded."""

    _bytes_left: int
    """The bytes that may still be kept."""
    _pieces: list[str] = field(default_factory=list)
    is_cut: bool = False

    def take(self, piece: str) -> str:
        """The part of a piece that is kept."""
        if self.is_cut:
            return ""
        size = byte_length(piece)
        if size > self._bytes_left:
            self.is_cut = True
            piece = piece.encode(errors="surrogatepass")[: self._bytes_left].decode(errors="ignore")
        self._bytes_left -= size
        if piece:
            self._pieces.append(piece)
        return piece

    @property
    def text(self) -> str:
        """All text that was kept."""
        return "".join(self._pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model said in one step or one turn."""

    text: str
    model: str
    usage: Usage
    reasoning: str = ""
    """The reasoning that the last step showed; it is not part of the text."""
    metered: bool = True
    """Whether the model is a provider's, so that its count of tokens differs from the service's own."""
    finish: FinishReason = "stop"
    """Why the last step ended."""
    interrupted: bool = False
    warnings: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    """The tool calls whose results the model needs before it continues."""
    token_counts: tuple[tuple[int, int], ...] = ()
    """For each request, its tokens as estimated and as the provider counted them, system prompt and tools included."""
    recalled: tuple[int, ...] = ()
    """Positions of the messages that were recalled for the answer."""
    found: tuple[tuple[UUID, str], ...] = ()
    """For each look-up of the turn, the id of its record and what it found."""
    response_id: str | None = None
    """The response from which a stateful model can continue, if its answer was complete."""
    kept_id: str | None = None
    """The id of the response that the provider keeps until asked to delete it, even if the answer failed."""
    sent: SentConversation | None = None
    """What the request was made of."""
    open_calls: tuple[ToolCall, ...] = ()
    """The calls at the end of the turn whose results the client has to send."""
    named_cache: bool = False
    """Whether the request named a cache of the provider."""
    reply_id: UUID | None = None
    """The id of the reply, if the id that was planned for it is already that of another message."""
    stored: Message | None = None
    """The message that makes the open calls, if it is already stored because the service ran other calls of that step.
    """

    def with_warnings(self, warnings: tuple[str, ...]) -> Answer:
        """This answer, with earlier warnings placed before its own, and each only once."""
        return replace(self, warnings=tuple(dict.fromkeys((*warnings, *self.warnings))))

    def with_context(self, warnings: tuple[str, ...], *, estimated: int, recalled: tuple[int, ...] = ()) -> Answer:
        """This answer, with the warnings, the weight and the recalled messages of its context."""
        reported = self.usage.input_tokens
        weighed = ((estimated, reported),) if estimated and reported else ()
        return replace(self.with_warnings(warnings), token_counts=weighed, recalled=recalled)

    def after(self, before: Answer) -> Answer:
        """This answer as the end of a turn: usage, warnings, weights and findings of the steps before it are added."""
        return replace(
            self,
            usage=before.usage.plus(self.usage),
            warnings=tuple(dict.fromkeys((*before.warnings, *self.warnings))),
            token_counts=(*before.token_counts, *self.token_counts),
            recalled=tuple(sorted({*before.recalled, *self.recalled})),
            found=(*before.found, *self.found),
        )

    def with_found(self, found: tuple[tuple[UUID, str], ...]) -> Answer:
        """This answer, with what its look-ups found."""
        return replace(self, found=(*self.found, *found))

    def stopped(self, reply_id: UUID | None = None) -> Answer:
        """This step as the end of a turn that was interrupted after it; its text is already stored with its calls."""
        return replace(
            self,
            text="",
            reasoning="",
            calls=(),
            finish="other",
            interrupted=True,
            response_id=None,
            reply_id=reply_id,
        )

    def with_open_calls(self, calls: tuple[ToolCall, ...], stored: Message | None) -> Answer:
        """This step as the end of a turn that waits for its client to run the calls."""
        return replace(self, open_calls=calls, finish="tool_call", stored=stored)


class NoAnswerError(ModelFailedError):
    """The model ended its step without saying anything that counts as an answer.

    Args:
        detail: The error message.
        answer: The answer without text: its usage, and what the provider keeps.
    """

    def __init__(self, detail: str, answer: Answer, *, extra: Mapping[str, Any], code: str) -> None:
        super().__init__(detail, extra=extra, code=code)
        self.answer = answer


def parts_of(calls: Sequence[ToolCall]) -> tuple[Part, ...]:
    """Tool calls as message parts, the form in which they are stored."""
    return tuple(_call_part(call) for call in calls)


def _call_part(call: ToolCall) -> Part:
    details = {"details": dict(call.details)} if call.details else {}
    return {"type": "tool_call", "id": call.id, "name": call.name, "arguments": dict(call.arguments), **details}


def client_calls_of(reply: Message, own_tools: Collection[str]) -> tuple[ToolCall, ...]:
    """The calls that a stored reply leaves to its client: those of tools that the service does not run itself.

    An erased reply leaves none: of its calls only the ids are known.
    """
    if reply.status == "erased":
        return ()
    parts = (part for part in reply.parts if part.get("type") == "tool_call" and part["name"] not in own_tools)
    return tuple(ToolCall(id=part["id"], name=part["name"], arguments=part["arguments"]) for part in parts)


def finish_of(reply: Message, warnings: Collection[str], open_calls: Sequence[ToolCall]) -> FinishReason:
    """Why the last step of a turn ended, as far as the stored reply shows."""
    if open_calls:
        return "tool_call"
    if reply.status == "interrupted":
        return "other"
    return finish_from_warnings(warnings)


def finish_from_warnings(warnings: Collection[str]) -> FinishReason:
    """Why a step without tool calls ended, as its warnings show."""
    if REPLY_CUT_OFF in warnings:
        return "length"
    return "other" if REPLY_END_UNCONFIRMED in warnings else "stop"


async def run_step(model: ChatModel, request: ChatRequest, *, stop: asyncio.Event, callbacks: ModelCallbacks) -> Answer:
    """Run one step of the model to its end, or until ``stop`` is set: what was said until then is kept.

    Reasoning alone is not an answer. Calls count only if tools were offered and the step was not cut off: half a call
    is not a call. A reply is cut off at the most that a message may hold.

    Raises:
        ModelFailedError: The provider failed or refused.
        NoAnswerError: It said nothing.
    """
    text_so_far, reasoning = _BoundedText(MESSAGE_BYTES), _BoundedText(REASONING_BYTES)
    calls: list[ToolCall] = []
    finish: StepFinish | None = None
    steps = model.step(request)
    try:
        async with aclosing(_steps_until(steps, stop)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    callbacks.on_text(text_so_far.take(event.text))
                elif isinstance(event, ToolCall):
                    calls.append(event)
                elif isinstance(event, StepFinish):
                    finish = event
                elif request.reasoning != "off" and (kept := reasoning.take(event.text)):
                    callbacks.on_reasoning(kept)
                if text_so_far.is_cut:
                    finish = StepFinish(reason="length", usage=Usage(), model=model.profile.name)
                    break
    except ModelUnavailableError as error:
        raise ModelFailedError(
            f"the model {model.profile.name} did not answer ({full_reason(error.reason)}); {_AGAIN}",
            retry_after=error.retry_after if error.retryable or error.reason == NOT_ASKED else None,
            extra={"reason": error.reason},
            code="model_unavailable",
        ) from error
    text, metered = text_so_far.text, model.profile.metered
    cut_off = (REASONING_CUT_OFF,) if reasoning.is_cut else ()
    if finish is None:
        return interrupted_answer(model.profile, text, reasoning=reasoning.text, warnings=cut_off)
    complete_calls = tuple(calls) if request.tools and finish.reason in _COMPLETE_REASONS else ()
    # If an answer is cut off, or nobody runs its calls, the provider holds something else than the history, so no turn
    # may continue from it.
    is_whole = finish.reason in _COMPLETE_REASONS and len(complete_calls) == len(calls)
    answer = Answer(
        text=text,
        model=finish.model,
        usage=finish.usage,
        reasoning=reasoning.text,
        metered=metered,
        finish="stop" if finish.reason == "tool_call" and not complete_calls else finish.reason,
        warnings=(*_END_WARNINGS.get(finish.reason, ()), *cut_off),
        calls=complete_calls,
        response_id=finish.response_id if is_whole else None,
        kept_id=finish.response_id,
        named_cache=finish.named_cache,
    )
    if not complete_calls:
        refuse_no_answer(finish.reason, answer)
    return answer


def interrupted_answer(
    profile: ModelProfile, text: str = "", *, reasoning: str = "", warnings: tuple[str, ...] = ()
) -> Answer:
    """The answer of a model that was stopped, as far as it came; empty if the model was not asked."""
    return Answer(
        text=text,
        model=profile.name,
        usage=Usage(),
        reasoning=reasoning,
        metered=profile.metered,
        finish="other",
        interrupted=True,
        warnings=warnings,
    )


def refuse_no_answer(reason: FinishReason, answer: Answer) -> None:
    """Refuse a step that the provider blocked or that has no text. Raises ``NoAnswerError``."""
    if reason == "blocked":
        raise NoAnswerError(_BLOCKED, answer, extra={"reason": reason}, code="blocked")
    if not answer.text.strip():
        detail, why = (_OUTPUT_USED_UP, "length") if reason == "length" else (_EMPTY, "empty")
        raise NoAnswerError(detail, answer, extra={"reason": why}, code="empty_reply")


async def _steps_until(steps: AsyncIterator[StepEvent], stop: asyncio.Event) -> AsyncGenerator[StepEvent, None]:
    """Yield the steps until they end or ``stop`` is set; then, or when cancelled, the provider's stream is closed.

    If ``stop`` is already set at the beginning, the provider is not asked at all.
    """
    if stop.is_set():
        return
    stopped, following = asyncio.create_task(stop.wait()), None
    try:
        while True:
            following = asyncio.ensure_future(anext(steps, None))
            await asyncio.wait({following, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                return
            event = following.result()
            if event is None:
                return
            yield event
    finally:
        stopped.cancel()
        if following is not None and not following.done():  # a stream that is being read cannot be closed
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        close = getattr(steps, "aclose", None)
        if close is not None:
            await close()
