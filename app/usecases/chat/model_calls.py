"""Asks the chat model: sends a context, and a smaller one if the provider's window is smaller than was assumed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field, replace

import structlog

from app.core.context.assembly import AssembledContext, recalled_seqs
from app.core.context.turn_options import TurnOptions
from app.core.model.errors import BudgetTooSmallError, ContextOverWindowError, ModelFailedError
from app.core.model.files import FILE_LOST
from app.core.model.model_io import ChatRequest, Continuation, Reasoning
from app.core.model.records import Event, Turn
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.caching.prefixes import FORGOTTEN, LOST, Looked, PrefixCaches
from app.usecases.caching.prefixes import REFUSALS as CACHE_REFUSALS
from app.usecases.chat.live_contexts import REBUILT, REFUSALS, LiveContexts, Look, Resumed
from app.usecases.chat.reply import Answer, Hearing, NoAnswerError
from app.usecases.chat.spending import answer_with_cost_noted
from app.usecases.context.context import ContextService
from app.usecases.context.media import REFUSED, messages_with_data, with_fewer_media
from app.usecases.context.recalling import Asked
from app.usecases.files.serving import has_files_with_data, with_files_in_words
from app.usecases.ports import Models

HALVINGS = 3  # an eighth of what was sent; if the window is still smaller, the model is wrong, not its number
TOO_LONG = "context_too_long"

Say = Callable[[ChatRequest], Awaitable[Answer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling(Hearing):
    """The callbacks through which the followers of a turn hear of it."""

    on_recalled: Callable[[Sequence[int]], None]
    """Hears, before the model is asked, the positions of all messages that were recalled for the turn so far."""
    on_events: Callable[[Sequence[Event]], None]
    """Hears committed events of the conversation."""


log = structlog.get_logger(__name__)


@dataclass(slots=True, kw_only=True)
class Asker:
    """Asks the chat model of one turn, step by step. It remembers during the turn how much the provider accepts."""

    models: Models
    uow: UnitOfWorkFactory
    context: ContextService
    live: LiveContexts
    caches: PrefixCaches
    turn: Turn
    model: str | None
    asked: Asked
    options: TurnOptions
    reasoning: Reasoning
    tell: Telling
    _room: int | None = field(default=None, init=False)
    """The room after system prompt and files, once the provider refused more; ``None`` = the policy's budget."""
    _halvings: int = field(default=0, init=False)
    _refusal: ModelFailedError | None = field(default=None, init=False)
    _recalled: frozenset[int] = field(default=frozenset(), init=False)
    """Positions of the recalled messages that followers were told of."""
    _has_renewed: bool = field(default=False, init=False)
    """Whether the copies of files were already made again."""
    _media: int | None = field(default=None, init=False)
    """How many of the newest messages are sent with their media, once the provider refused more; ``None`` = all."""
    _are_files_refused: bool = field(default=False, init=False)
    """Whether files are described in words, once the provider refused the request with them."""
    _told: bool = field(default=False, init=False)
    """Whether the reply of the step has begun."""

    async def ask(self, *, with_own_tools: bool, stop: asyncio.Event) -> Answer:
        """The answer to the context. If the provider refuses it as too long, its newest half is sent, and so on.

        A stateful model continues its live context, and is sent only the messages that came since. If it cannot, it is
        sent everything, like any other model, with a warning if there was a live context.

        The client's tools are always offered, the service's own only with ``with_own_tools``.

        Raises:
            ModelFailedError: The provider failed, refused, said nothing, or refuses even the smallest context.
            ContextOverWindowError: Under ``keep_full`` the whole exceeds the set window, or the provider's real one.
        """
        look: Look | None = None
        self._told = False

        def noting(hear: Callable[[str], None]) -> Callable[[str], None]:
            def note(piece: str) -> None:
                self._told = True
                hear(piece)

            return note

        hearing = Hearing(on_text=noting(self.tell.on_text), on_reasoning=noting(self.tell.on_reasoning))

        async def say(request: ChatRequest) -> Answer:
            model = self.models.chat(self.model)
            sent = look.sent if look else None
            try:
                said = await answer_with_cost_noted(self.uow, model, request, stop=stop, hearing=hearing)
            except NoAnswerError as error:
                await self.live.note_copy(self.turn, error.said, sent)
                raise
            await self.live.note_copy(self.turn, said, sent)
            return said

        look = await self.live.look(self.turn, self.model, self.asked.passages, self.options)
        if look is None:
            return await self._ask_whole(say, with_own_tools=with_own_tools)
        said = await self._resumed(look.resumed, say, with_own_tools=with_own_tools) if look.resumed else None
        if said is not None:
            return replace(said, sent=look.sent)
        return await self._answer_to_whole_context(look, say, with_own_tools=with_own_tools)

    def _request(
        self, context: AssembledContext, *, with_own_tools: bool, continues: Continuation | None = None
    ) -> ChatRequest:
        return ChatRequest(
            messages=context.messages,
            files=context.files,
            tools=context.tools if with_own_tools else self.options.offered,
            must_call=self.options.must_call,
            settings=self.options.settings,
            continues=continues,
            reasoning=self.reasoning,
            locale=context.locale,
        )

    async def _resumed(self, resumed: Resumed, say: Say, *, with_own_tools: bool) -> Answer | None:
        """The answer to the messages that came since.

        ``None`` if the provider refuses to continue; the live context is given up.
        """
        try:
            said = await say(
                self._request(resumed.context, with_own_tools=with_own_tools, continues=resumed.continuation)
            )
        except ModelFailedError as error:
            reason = str(error.extra.get("reason"))
            if reason not in REFUSALS:
                raise
            await self.live.let_go(self.turn, resumed.live, reason)
            return None
        # The provider's count includes the context that it holds, so nothing can be learned from it.
        return said.of_context(resumed.context.warnings, estimated=0)

    async def _answer_to_whole_context(self, look: Look, say: Say, *, with_own_tools: bool) -> Answer:
        warnings = (REBUILT,) if look.sent.live else ()
        if look.resumed is not None:  # it was given up meanwhile
            look = await self.live.look(self.turn, self.model) or look
        said = await self._ask_whole(say, with_own_tools=with_own_tools)
        return replace(said.with_warnings(warnings), sent=look.sent)

    async def _ask_whole(self, say: Say, *, with_own_tools: bool) -> Answer:
        while True:
            context = with_fewer_media(await self._assembled(), self._media)
            if self._are_files_refused:
                context = with_files_in_words(context)
            try:
                said = await self._ask_with(context, say, with_own_tools=with_own_tools)
            except ModelFailedError as error:
                if await self._are_copies_renewed(context, error) or self._lets_media_go(context, error):
                    continue
                if error.extra.get("reason") != TOO_LONG or self._halvings == HALVINGS:
                    raise
                if context.keeps_all:
                    raise _provider_window_error(context) from error
                self._halve_room(context, error)
            else:
                return said.with_warnings(("context_halved",) if self._halvings else ())

    async def _are_copies_renewed(self, context: AssembledContext, error: ModelFailedError) -> bool:
        if error.extra.get("reason") != FILE_LOST or self._has_renewed:
            return False
        self._has_renewed = True
        log.warning("files.renewed", model=self.model)
        return await self.context.renew_files(self.turn.tenant_id, context, self.model)

    def _lets_media_go(self, context: AssembledContext, error: ModelFailedError) -> bool:
        """Whether to try again with fewer media, since the request may be refused because of them.

        First only the newest message keeps its media, then none; at last files are described in words too. Otherwise a
        picture that no provider can read would make each turn fail until a compaction folds it, or for ever if its
        message is held, and a file until it is removed.
        """
        if self._told or error.extra.get("reason") != "bad_request":
            return False
        if carrying := messages_with_data(context.messages):
            self._media = min(carrying - 1, 1)
            log.warning("media.refused", model=self.model, messages=carrying)
            return True
        self._are_files_refused = has_files_with_data(context)
        if self._are_files_refused:
            log.warning("files.refused", model=self.model)
        return self._are_files_refused

    async def _assembled(self) -> AssembledContext:
        """The context, assembled anew for each step.

        Raises the provider's refusal if the last message alone is more than the provider accepts.
        """
        turn = self.turn
        try:
            return await self.context.assemble(
                turn.tenant_id,
                turn.conversation_id,
                self._room,
                model=self.model,
                asked=self.asked,
                options=self.options,
            )
        except BudgetTooSmallError:
            if self._refusal is None:
                raise
            raise self._refusal from None

    async def _ask_with(self, context: AssembledContext, say: Say, *, with_own_tools: bool) -> Answer:
        for warning in context.warnings:
            log.warning("context.warning", warning=warning, truncated=context.truncated)
        request = self._request(context, with_own_tools=with_own_tools)
        recalled = recalled_seqs(context.recalled)
        self._tell_recalled(recalled)
        said = await self._with_cache(context, request, say)
        is_complete = context.is_complete and REFUSED not in context.warnings
        return said.of_context(
            context.warnings,
            # The context's weight includes its tools, files and media. If some of them are not sent, nothing can be
            # learned.
            estimated=context.estimated if request.tools == context.tools and is_complete else 0,
            recalled=recalled,
        )

    def _tell_recalled(self, seqs: Sequence[int]) -> None:
        if self._recalled.issuperset(seqs):
            return
        self._recalled |= frozenset(seqs)
        self.tell.on_recalled(sorted(self._recalled))

    async def _with_cache(self, context: AssembledContext, request: ChatRequest, say: Say) -> Answer:
        """The answer to a request that names the provider's cache, if there is one.

        If that is refused, it is sent without it.
        """
        looked = await self.caches.look(self.turn, self.model, context.caching, request)
        if looked is None:
            return await say(request)
        try:
            said = await say(replace(request, cache=looked.name))
        except ModelFailedError as error:
            reason = str(error.extra.get("reason"))
            if looked.name is None or self._told or reason not in CACHE_REFUSALS:
                raise
            said = await self._answer_without_cache(looked, request, say, reason)
        await self.caches.note(self.turn, looked, said)
        return said

    async def _answer_without_cache(self, looked: Looked, request: ChatRequest, say: Say, reason: str) -> Answer:
        # Any failure but LOST is blamed on the cache only once the request works without it.
        if reason == LOST:
            await self.caches.lost(self.turn, looked, reason)
            return (await say(request)).with_warnings((FORGOTTEN,))
        said = await say(request)
        await self.caches.lost(self.turn, looked, reason)
        return said.with_warnings((FORGOTTEN,))

    def _halve_room(self, context: AssembledContext, error: ModelFailedError) -> None:
        sent = context.gauge.breakdown
        self._room = (sent.total - sent.system - sent.files) // 2
        self._refusal, self._halvings = error, self._halvings + 1
        log.warning("context.halved", tokens=sent.total, room=self._room)


def _provider_window_error(context: AssembledContext) -> ContextOverWindowError:
    tokens = context.gauge.tokens
    return ContextOverWindowError(
        f"the model's provider says that the context of {tokens} tokens is too long, and the policy leaves nothing out;"
        " the message is stored: compact the conversation, set policy.context_window to what the model takes, or choose"
        " on_failure: truncate",
        extra={"tokens": tokens, "breakdown": asdict(context.gauge.breakdown), "reason": TOO_LONG},
    )
