"""One answer of the chat model: streams it, stops when asked to, and says how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

from app.domain.conversation import Usage
from app.domain.errors import ModelFailedError, ModelUnavailableError
from app.domain.model_io import ChatRequest, FinishReason, StepEvent, StepFinish, TextDelta
from app.ports import ChatModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model said."""

    text: str
    model: str
    usage: Usage
    metered: bool = True
    """Whether the model is a provider's: its count of tokens is its own."""
    interrupted: bool = False
    warnings: tuple[str, ...] = ()
    estimated: int | None = None
    """Our estimate of the request's tokens, system prompt included."""
    recalled: tuple[int, ...] = ()
    """Positions of the messages that were recalled for it."""

    def with_warnings(self, warnings: tuple[str, ...]) -> Answer:
        """The same answer with what was to be warned of before it."""
        return replace(self, warnings=(*warnings, *self.warnings))

    def of_context(self, warnings: tuple[str, ...], *, estimated: int, recalled: tuple[int, ...] = ()) -> Answer:
        """The same answer with what its context warned of, weighs, and brought back."""
        return replace(self.with_warnings(warnings), estimated=estimated, recalled=recalled)


async def answer(
    model: ChatModel, request: ChatRequest, *, stop: asyncio.Event, on_text: Callable[[str], None]
) -> Answer:
    """Run one step of the model to its end, or until ``stop`` is set: what came until then is kept.

    Raises:
        ModelFailedError: The provider failed, refused, or said nothing.
    """
    pieces: list[str] = []
    finish: StepFinish | None = None
    steps = model.step(request)
    try:
        async for event in _until(steps, stop):
            if isinstance(event, TextDelta):
                pieces.append(event.text)
                on_text(event.text)
            else:
                finish = event
    except ModelUnavailableError as error:
        raise ModelFailedError(
            f"the model {model.profile.name} did not answer ({error.reason}); the message is stored:"
            " send the turn again without content",
            extra={"reason": error.reason},
            code="model_unavailable",
        ) from error
    text, metered = "".join(pieces), model.profile.metered
    if finish is None:
        return Answer(text=text, model=model.profile.name, usage=Usage(), metered=metered, interrupted=True)
    _refuse_no_answer(finish.reason, text)
    warnings = ("reply_cut_off",) if finish.reason == "length" else ()
    return Answer(text=text, model=finish.model, usage=finish.usage, metered=metered, warnings=warnings)


def _refuse_no_answer(reason: FinishReason, text: str) -> None:
    if reason == "blocked":
        raise ModelFailedError("the model's provider blocked the answer", extra={"reason": reason}, code="blocked")
    if not text.strip():
        raise ModelFailedError("the model gave an empty answer", extra={"reason": "empty"}, code="empty_reply")


async def _until(steps: AsyncIterator[StepEvent], stop: asyncio.Event) -> AsyncIterator[StepEvent]:
    """The steps, until they end or ``stop`` is set; the provider's stream is closed either way."""
    stopped = asyncio.create_task(stop.wait())
    try:
        while True:
            following = asyncio.ensure_future(anext(steps, None))
            await asyncio.wait({following, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
                return
            event = following.result()
            if event is None:
                return
            yield event
    finally:
        stopped.cancel()
        close = getattr(steps, "aclose", None)
        if close is not None:
            await close()
