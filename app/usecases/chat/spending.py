"""Notes the cost of chat model calls for the key that asked, so that its spending in an hour can be limited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field

from app.core.context.tools import tools_tokens
from app.core.model.conversation import Usage
from app.core.model.errors import DependencyUnavailableError, ModelUnavailableError, NotFoundError
from app.core.model.model_io import (
    ChatRequest,
    ContextMessage,
    ModelProfile,
    ReasoningDelta,
    StepEvent,
    StepFinish,
    TextDelta,
    ToolCall,
)
from app.core.state.layout import messages_tokens
from app.off_loop import off_loop
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.reply import Answer, ModelCallbacks, parts_of, run_step
from app.usecases.compaction.attempts import NOT_ASKED
from app.usecases.ports import ChatModel
from app.usecases.shared.caller import current_principal


async def answer_with_cost_noted(
    uow: UnitOfWorkFactory, model: ChatModel, request: ChatRequest, *, stop: asyncio.Event, callbacks: ModelCallbacks
) -> Answer:
    """One step of the model, run by ``run_step``, with its errors. The call is recorded however it ends.

    If it cannot be recorded, the reply is returned all the same: it was paid for.
    """
    if not model.profile.metered:
        return await run_step(model, request, stop=stop, callbacks=callbacks)
    call = _Call(model)
    try:
        return await run_step(call, request, stop=stop, callbacks=callbacks)
    finally:
        if call.is_asked and call.failure != NOT_ASKED:
            await note_call(uow, await call.used(request))


@dataclass(slots=True)
class _Call:
    """One call of a chat model: what it said and called, and the usage that it reported."""

    inner: ChatModel
    is_asked: bool = False
    failure: str | None = None
    _reported: Usage = field(default_factory=Usage)
    _is_refused: bool = False
    """Whether the provider failed, or blocked the request or the reply."""
    _said: list[str] = field(default_factory=list)
    """Text and thoughts."""
    _calls: list[ToolCall] = field(default_factory=list)

    @property
    def profile(self) -> ModelProfile:
        """Limits of the model."""
        return self.inner.profile

    async def step(self, request: ChatRequest) -> AsyncIterator[StepEvent]:
        """Stream one reply."""
        self.is_asked = True
        steps = self.inner.step(request)
        try:
            async for event in steps:
                if isinstance(event, StepFinish):
                    self._reported, self._is_refused = event.usage, event.reason == "blocked"
                elif isinstance(event, TextDelta | ReasoningDelta):
                    self._said.append(event.text)
                elif isinstance(event, ToolCall):
                    self._calls.append(event)
                yield event
        except Exception as error:
            self._is_refused = True
            self.failure = error.reason if isinstance(error, ModelUnavailableError) else type(error).__name__
            raise
        finally:
            close = getattr(steps, "aclose", None)
            if close is not None:
                await close()

    async def used(self, request: ChatRequest) -> Usage:
        """The usage that the provider reported; without a report, an estimate.

        A call that failed or was blocked before any output used nothing. A call that its caller abandoned counts as
        used.
        """
        is_reported = self._reported.input_tokens or self._reported.output_tokens
        if is_reported or (self._is_refused and not self._said and not self._calls):
            return self._reported
        return await off_loop(self._estimated, request)

    def _estimated(self, request: ChatRequest) -> Usage:
        read = messages_tokens(request.messages, "script") + tools_tokens(request.tools, "script")
        read += sum(file.tokens for file in request.files)
        output = ContextMessage(role="assistant", content="".join(self._said), parts=parts_of(self._calls))
        written = messages_tokens([output], "script")
        return Usage(input_tokens=read, output_tokens=written, cost_usd=self.profile.cost(read, written))


async def note_call(uow: UnitOfWorkFactory, used: Usage) -> None:
    """Put one call on record for the key of the present request, if there is one."""
    principal = current_principal()
    if principal is None or principal.key_id is None:
        return
    with suppress(DependencyUnavailableError, NotFoundError):
        async with uow(principal.tenant_id) as unit:
            await unit.spending.add_chat(principal.tenant_id, principal.key_id, used)
            await unit.commit()
