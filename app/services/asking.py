"""Asking the chat model: a context, an answer; and a smaller context when the provider's window is smaller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from app.domain.assembling.assembly import AssembledContext, recalled_seqs
from app.domain.errors import BudgetTooSmallError, ModelFailedError
from app.domain.model_io import ChatRequest
from app.domain.records import Turn
from app.ports import Models
from app.services.context import ContextService
from app.services.recalling import Asked
from app.services.reply import Answer, answer

HALVINGS = 3  # an eighth of what was sent: a window further off than that is a wrong model, not a wrong number
TOO_LONG = "context_too_long"

log = structlog.get_logger(__name__)


class Asker:
    """Asks the chat model of a turn."""

    def __init__(self, models: Models, context: ContextService) -> None:
        self._models = models
        self._context = context

    async def ask(
        self, turn: Turn, model: str | None, asked: Asked, *, stop: asyncio.Event, on_text: Callable[[str], None]
    ) -> Answer:
        """The answer to the context as it stands; the newest half of it, and so on, when the provider takes no more.

        Raises:
            ModelFailedError: The provider failed, refused, said nothing, or takes not even the smallest.
            ContextOverWindowError: Under ``keep_full`` the whole exceeds the window.
        """
        context = await self._context.assemble(turn.tenant_id, turn.conversation_id, model=model, asked=asked)
        halvings = 0
        while True:
            try:
                said = await self._said(context, model, stop=stop, on_text=on_text)
            except ModelFailedError as error:
                if error.extra.get("reason") != TOO_LONG or halvings == HALVINGS:
                    raise
                context = await self._halved(turn, model, asked, context, error)
                halvings += 1
            else:
                return said.with_warnings(("context_halved",) if halvings else ())

    async def _said(
        self, context: AssembledContext, model: str | None, *, stop: asyncio.Event, on_text: Callable[[str], None]
    ) -> Answer:
        for warning in context.warnings:
            log.warning("context.warning", warning=warning, truncated=context.truncated)
        said = await answer(
            self._models.chat(model), ChatRequest(messages=context.messages), stop=stop, on_text=on_text
        )
        return said.of_context(
            context.warnings,
            estimated=context.gauge.breakdown.total,
            recalled=recalled_seqs(context.recalled),
        )

    async def _halved(
        self, turn: Turn, model: str | None, asked: Asked, context: AssembledContext, error: ModelFailedError
    ) -> AssembledContext:
        """Half of what was sent after the system prompt. Raises ``error`` when the last message alone is more."""
        sent = context.gauge.breakdown
        room = (sent.total - sent.system) // 2
        log.warning("context.halved", tokens=sent.total, room=room)
        try:
            return await self._context.assemble(turn.tenant_id, turn.conversation_id, room, model=model, asked=asked)
        except BudgetTooSmallError:
            raise error from None
