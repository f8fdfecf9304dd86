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
from app.usecases.caching.prefixes import FORGOTTEN, LOST, CacheLookup, PrefixCaches
from app.usecases.caching.prefixes import REFUSALS as CACHE_REFUSALS
from app.usecases.chat.live_contexts import REBUILT, REFUSALS, LiveContextLookup, LiveContexts, Resumed
from app.usecases.chat.reply import Answer, ModelCallbacks, NoAnswerError, interrupted_answer
from app.usecases.chat.spending import answer_with_cost_noted
from app.usecases.context.context import ContextService
from app.usecases.context.media import REFUSED, messages_with_data, with_fewer_media
from app.usecases.context.recalling import RecallRequest
from app.usecases.files.serving import has_files_with_data, with_files_in_words
from app.usecases.ports import Models
from app.usecases.shared.stopping import unless_stopped

HALVINGS = 3  # an eighth of what was sent; if the window is still smaller, the model is wrong, not its number
CONTEXT_TOO_LONG = "context_too_long"

CallModel = Callable[[ChatRequest], Awaitable[Answer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCallbacks(ModelCallbacks):
    """The callbacks through which the followers of a turn hear of it."""

    on_recalled: Callable[[Sequence[int]], None]
    """Hears, before the model is asked, the positions of all messages that were recalled for the turn so far."""
    on_events: Callable[[Sequence[Event]], None]
    """Hears committed events of the conversation."""


log = structlog.get_logger(__name__)


@dataclass(slots=True, kw_only=True)
class ModelCaller:
    """Asks the chat model of one turn, step by step. It remembers during the turn how much the provider accepts."""

    models: Models
    uow: UnitOfWorkFactory
    context: ContextService
    live: LiveContexts
    caches: PrefixCaches
    turn: Turn
    model: str | None
    recall_request: RecallRequest
    options: TurnOptions
    reasoning: Reasoning
    followers: TurnCallbacks
    _reduced_budget: int | None = field(default=None, init=False)
    """The budget without system prompt and files, once the provider refused more; ``None`` = the policy's."""
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
    _has_begun: bool = field(default=False, init=False)
    """Whether the reply of the step has begun."""

    async def ask(self, *, with_own_tools: bool, stop: asyncio.Event) -> Answer:
        """The answer to the context. If the provider refuses it as too long, its newest half is sent, and so on.

        A stateful model continues its live context, and is sent only the messages that came since. If it cannot, it is
        sent everything, like any other model, with a warning if there was a live context.

        The client's tools are always offered, the service's own only with ``with_own_tools``.

        Raises:
            ModelFailedError: The provider failed, refused, said nothing, or refuses even the smallest context.
            ContextOverWindowError: Under ``keep_full`` the whole exceeds the set window, or the provider's real one; or
                the last message, with the calls and results that belong to it, exceeds the budget.
        """
        lookup: LiveContextLookup | None = None
        self._has_begun = False

        def marking_begun(hear: Callable[[str], None]) -> Callable[[str], None]:
            def note(piece: str) -> None:
                self._has_begun = True
                hear(piece)

            return note

        callbacks = ModelCallbacks(
            on_text=marking_begun(self.followers.on_text), on_reasoning=marking_begun(self.followers.on_reasoning)
        )

        async def call_model(request: ChatRequest) -> Answer:
            model = self.models.chat(self.model)
            sent = lookup.sent if lookup else None
            try:
                answer = await answer_with_cost_noted(self.uow, model, request, stop=stop, callbacks=callbacks)
            except NoAnswerError as error:
                await self.live.note_copy(self.turn, error.answer, sent)
                raise
            await self.live.note_copy(self.turn, answer, sent)
            return answer

        lookup = await self.live.lookup(self.turn, self.model, self.recall_request.passages, self.options)
        if lookup is None:
            return await self._ask_with_whole_context(call_model, with_own_tools=with_own_tools, stop=stop)
        answer = (
            await self._resumed(lookup.resumed, call_model, with_own_tools=with_own_tools) if lookup.resumed else None
        )
        if answer is not None:
            return replace(answer, sent=lookup.sent)
        return await self._answer_to_whole_context(lookup, call_model, with_own_tools=with_own_tools, stop=stop)

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

    async def _resumed(self, resumed: Resumed, call_model: CallModel, *, with_own_tools: bool) -> Answer | None:
        """The answer to the messages that came since.

        ``None`` if the provider refuses to continue; the live context is given up.
        """
        try:
            answer = await call_model(
                self._request(resumed.context, with_own_tools=with_own_tools, continues=resumed.continuation)
            )
        except ModelFailedError as error:
            reason = str(error.extra.get("reason"))
            if reason not in REFUSALS:
                raise
            await self.live.forget(self.turn, resumed.live, reason)
            return None
        # The provider's count includes the context that it holds, so nothing can be learned from it.
        return answer.with_context(resumed.context.warnings, estimated=0)

    async def _answer_to_whole_context(
        self, lookup: LiveContextLookup, call_model: CallModel, *, with_own_tools: bool, stop: asyncio.Event
    ) -> Answer:
        warnings = (REBUILT,) if lookup.sent.live else ()
        if lookup.resumed is not None:  # it was given up meanwhile
            lookup = await self.live.lookup(self.turn, self.model) or lookup
        answer = await self._ask_with_whole_context(call_model, with_own_tools=with_own_tools, stop=stop)
        return replace(answer.with_warnings(warnings), sent=lookup.sent)

    async def _ask_with_whole_context(
        self, call_model: CallModel, *, with_own_tools: bool, stop: asyncio.Event
    ) -> Answer:
        while True:
            # A provider may take a minute for the copy of a large file.
            assembled = await unless_stopped(stop, self._assembled())
            if assembled is None:
                return interrupted_answer(self.models.chat(self.model).profile)
            context = with_fewer_media(assembled, self._media)
            if self._are_files_refused:
                context = with_files_in_words(context)
            try:
                answer = await self._ask_with(context, call_model, with_own_tools=with_own_tools)
            except ModelFailedError as error:
                if await self._are_copies_renewed(context, error) or self._can_retry_with_fewer_media(context, error):
                    continue
                if error.extra.get("reason") != CONTEXT_TOO_LONG or self._halvings == HALVINGS:
                    raise
                if context.keeps_all:
                    raise _provider_window_error(context) from error
                self._halve_budget(context, error)
            else:
                return answer.with_warnings(("context_halved",) if self._halvings else ())

    async def _are_copies_renewed(self, context: AssembledContext, error: ModelFailedError) -> bool:
        if error.extra.get("reason") != FILE_LOST or self._has_renewed:
            return False
        self._has_renewed = True
        log.warning("files.renewed", model=self.model)
        return await self.context.forget_lost_copies(self.turn.tenant_id, context, self.model)

    def _can_retry_with_fewer_media(self, context: AssembledContext, error: ModelFailedError) -> bool:
        """Whether to try again with fewer media, since the request may be refused because of them.

        First only the newest message keeps its media, then none; at last files are described in words too. Otherwise a
        picture that no provider can read would make each turn fail until a compaction folds it, or for ever if its
        message is held, and a file until it is removed.
        """
        if self._has_begun or error.extra.get("reason") != "bad_request":
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

        Raises the provider's refusal if the last message alone is more than the provider accepts, and
        ``ContextOverWindowError`` if it is more than the budget.
        """
        turn = self.turn
        try:
            return await self.context.assemble(
                turn.tenant_id,
                turn.conversation_id,
                self._reduced_budget,
                model=self.model,
                recall_request=self.recall_request,
                options=self.options,
            )
        except BudgetTooSmallError as error:
            if self._refusal is None:
                raise _last_step_too_large_error(error) from error
            raise self._refusal from None

    async def _ask_with(self, context: AssembledContext, call_model: CallModel, *, with_own_tools: bool) -> Answer:
        for warning in context.warnings:
            log.warning("context.warning", warning=warning, truncated=context.truncated)
        request = self._request(context, with_own_tools=with_own_tools)
        recalled = recalled_seqs(context.recalled)
        self._tell_recalled(recalled)
        answer = await self._with_cache(context, request, call_model)
        is_complete = context.sends_all_files and REFUSED not in context.warnings
        return answer.with_context(
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
        self.followers.on_recalled(sorted(self._recalled))

    async def _with_cache(self, context: AssembledContext, request: ChatRequest, call_model: CallModel) -> Answer:
        """The answer to a request that names the provider's cache, if there is one.

        If that is refused, it is sent without it.
        """
        cache_lookup = await self.caches.lookup(self.turn, self.model, context.caching, request)
        if cache_lookup is None:
            return await call_model(request)
        try:
            answer = await call_model(replace(request, cache=cache_lookup.name))
        except ModelFailedError as error:
            reason = str(error.extra.get("reason"))
            if cache_lookup.name is None or self._has_begun or reason not in CACHE_REFUSALS:
                raise
            answer = await self._answer_without_cache(cache_lookup, request, call_model, reason)
        await self.caches.note(self.turn, cache_lookup, answer)
        return answer

    async def _answer_without_cache(
        self, cache_lookup: CacheLookup, request: ChatRequest, call_model: CallModel, reason: str
    ) -> Answer:
        # Any failure but LOST is blamed on the cache only once the request works without it.
        if reason == LOST:
            await self.caches.note_lost(self.turn, cache_lookup, reason)
            return (await call_model(request)).with_warnings((FORGOTTEN,))
        answer = await call_model(request)
        await self.caches.note_lost(self.turn, cache_lookup, reason)
        return answer.with_warnings((FORGOTTEN,))

    def _halve_budget(self, context: AssembledContext, error: ModelFailedError) -> None:
        sent = context.gauge.breakdown
        self._reduced_budget = (sent.total - sent.system - sent.files) // 2
        self._refusal, self._halvings = error, self._halvings + 1
        log.warning("context.halved", tokens=sent.total, room=self._reduced_budget)


def _last_step_too_large_error(error: BudgetTooSmallError) -> ContextOverWindowError:
    tokens = error.extra["minimum"]
    return ContextOverWindowError(
        f"the last message, with the calls and results that belong to it, has {tokens} tokens, and the budget has no"
        " room for it; the message is stored: send a new message instead, raise policy.context_window, or set"
        " policy.oversized to elide",
        extra={"tokens": tokens},
    )


def _provider_window_error(context: AssembledContext) -> ContextOverWindowError:
    tokens = context.gauge.tokens
    return ContextOverWindowError(
        f"the model's provider says that the context of {tokens} tokens is too long, and the policy leaves nothing out;"
        " the message is stored: compact the conversation, set policy.context_window to what the model takes, or choose"
        " on_failure: truncate",
        extra={"tokens": tokens, "breakdown": asdict(context.gauge.breakdown), "reason": CONTEXT_TOO_LONG},
    )
