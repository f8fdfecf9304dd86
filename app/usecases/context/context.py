"""Assembles the context for a model: reads a bounded part of the history, from which the core makes the context."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final
from uuid import UUID

import structlog

from app.core.context.assembly import (
    AssembledContext,
    ContextInputs,
    assemble,
    available_anchor_tokens,
    available_tokens,
    exceeds_budget,
)
from app.core.context.drafts import has_content
from app.core.context.fitting import DIGEST_SHARE
from app.core.context.larger_budget import ranges_to_read, with_detail_options
from app.core.context.oversized_messages import LARGE_MESSAGE_DIVISOR
from app.core.context.turn_options import NO_OPTIONS, TurnOptions
from app.core.model.anchors import FoundAnchor
from app.core.model.conversation import Conversation, Message
from app.core.model.errors import BudgetTooSmallError, ContextOverWindowError, DependencyUnavailableError
from app.core.model.redaction import redact_messages
from app.core.model.schemas import schema_named
from app.core.model.segments import Expansion
from app.core.retrieval.corpus import Corpus
from app.core.segments.message_analysis import Messages
from app.core.summarizer.offline.extractive import digest as extractive_digest
from app.core.text.budget import first_fitting
from app.core.text.memo import FIGURE_GROWTH, memoized
from app.core.text.token_counts import estimate_text, tokens_of
from app.off_loop import BYTES_PER_ITEM, off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.context.media import with_media
from app.usecases.context.recalling import (
    NO_RECALL_REQUEST,
    RecallRequest,
    RecallSources,
    corpus_of_sources,
    expansion_of,
    read_recall_sources,
    recall_question,
    with_recall_sources,
    with_wanted_sections,
)
from app.usecases.context.similarity import By, SimilarityService
from app.usecases.files.serving import FileServing
from app.usecases.history.drafts import MessageDraft
from app.usecases.history.due_anchors import AnchorsDueError, Outcome, find_due_anchors
from app.usecases.history.preparing import size_of
from app.usecases.shared.layouts import MAX_ANCHORS, detail_of, digestible, held_messages
from app.usecases.shared.optional_writes import optional_write
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.shell import Shell

LOADED_BUDGETS = 2  # one budget that may be served, and one before it that a digest describes
DIGEST_SOURCE_TIMES = 40
"""A digest is made of the newest messages that are left out: at most so many times its own size."""
DIGEST_SOURCE_TOKENS = 64_000  # of these messages at most, which take about two seconds of CPU while a turn waits
DIGEST_DIVISOR = 4  # a digest has at most DIGEST_SOURCE_TOKENS divided by this
RECALL_FAILED = "recall_failed"
ANCHORS_DUE = "anchors_due"
_MAX_SECONDS_FOR_ANCHORS: Final = 2.0
"""The longest that a context waits for anchors after an import. The worker finds the rest."""
_DRAFTED_MESSAGE_SIZE: Final = 6
"""The size, in bytes of work, of a message that is looked at for a draft: about three microseconds."""
_SERVED_MESSAGE_SIZE: Final = 10
"""The size, in bytes of work, of a message that is served unchanged: about five microseconds."""
_SEARCHED_BYTES: Final = 250
"""In such a message, this many bytes count as one: a search for the service's own marks takes 13 ms per megabyte."""

_RecallSourcesOrError = RecallSources | Exception | None
"""What was read for a question, or the error that prevented it; ``None`` if there is no question."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedContext:
    """A context, and how long it took to make."""

    context: AssembledContext
    recall_ms: int
    """Milliseconds from the beginning of the recall until the context was complete, its files included."""
    begins_answer: bool
    """Whether the last message is the user's; false once the model has called tools for the answer."""

    def expansion(self, id_: UUID, conversation_id: UUID, now: datetime) -> Expansion:
        """The record of the recall in this context."""
        return expansion_of(self.context, id_=id_, conversation_id=conversation_id, now=now, duration_ms=self.recall_ms)


class ContextService:
    """Assembles contexts and measures them; never compacts."""

    def __init__(self, shell: Shell, files: FileServing, similarity: SimilarityService | None = None) -> None:
        self._shell = shell
        self._files = files
        self._similarity = similarity

    async def assemble(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        budget: int | None = None,
        *,
        model: str | None = None,
        recall_request: RecallRequest = NO_RECALL_REQUEST,
        options: TurnOptions = NO_OPTIONS,
    ) -> AssembledContext:
        """The context within the policy's budget, or within ``budget`` tokens after the system prompt and the files.

        ``options`` are those of the client of a turn. ``recall_request`` says what to recall. A recall in a turn that
        found something is recorded. If it fails, the context has a warning (``recall_failed``) instead.
        """
        timed_context = await self.assemble_unrecorded(
            tenant_id, conversation_id, budget, model=model, recall_request=recall_request, options=options
        )
        if (
            recall_request.record_id
            and budget is None
            and timed_context.begins_answer
            and timed_context.context.recalled
        ):
            await self._record_if_possible(tenant_id, conversation_id, timed_context, recall_request.record_id)
        return timed_context.context

    async def assemble_unrecorded(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        budget: int | None = None,
        *,
        model: str | None = None,
        recall_request: RecallRequest = NO_RECALL_REQUEST,
        options: TurnOptions = NO_OPTIONS,
    ) -> TimedContext:
        """The context, and how long the recall took; nothing is recorded."""
        async with self._shell.work_records.record_work(tenant_id, conversation_id, "context"):
            once = partial(
                self._assemble_once,
                tenant_id,
                conversation_id,
                budget,
                model=model,
                recall_request=recall_request,
                options=options,
            )
            try:
                return await once()
            except AnchorsDueError:
                found: Outcome | None = None
                with optional_write("anchors.not_found_now", conversation_id=str(conversation_id)):
                    found = await find_due_anchors(
                        self._shell, tenant_id, conversation_id, seconds=_MAX_SECONDS_FOR_ANCHORS
                    )
                timed_context = await once(anchors_found=True)
            if found == "all":
                return timed_context
            if found is not None:
                self._shell.outbox.send_later("anchors", conversation_id)
            context = replace(timed_context.context, warnings=(*timed_context.context.warnings, ANCHORS_DUE))
            return replace(timed_context, context=context)

    async def _assemble_once(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        budget: int | None,
        *,
        model: str | None,
        recall_request: RecallRequest,
        options: TurnOptions,
        anchors_found: bool = False,
    ) -> TimedContext:
        async with self._shell.uow(tenant_id) as uow:
            conversation = await uow.conversations.get(conversation_id)
            if anchors_found:  # except for messages that came since
                conversation = replace(conversation, anchors_due_from=None)
            resolved = self._shell.resolver(conversation, model=model).with_options(options)
            detail_tokens = self._detail_tokens(resolved, budget, recall_request)
            loaded, fits, anchor_tokens = await load(
                uow,
                resolved,
                budget,
                all_anchors=recall_request.makes_room(budget),
                detail_tokens=detail_tokens,
                may_recall=recall_request.in_turn,
            )
            material = with_wanted_sections(loaded, recall_request.wanted)
            material = _with_question_held(material) if recall_request.in_turn else material
            begins = bool(material.tail) and material.tail[-1].role == "user"
            started = self._shell.clock.monotonic()
            recall_sources = await _recall_sources_or_error(uow, material, budget, recall_request)
            async with _corpus_in_thread(recall_sources, conversation_id) as corpus:
                if anchor_tokens != 0 and recall_request.wanted.anchors:
                    anchors, unread = await _anchors(uow, loaded, anchor_tokens)
                    material = replace(material, anchors=tuple(anchors), anchors_unread=unread)
        try:
            context = await self._assemble_with_recall(tenant_id, material, budget, recall_sources, corpus, fits=fits)
        except (BudgetTooSmallError, ContextOverWindowError):
            raise
        except Exception as error:
            if not recall_request.in_turn:
                raise
            log.warning("recall.failed", error=type(error).__name__)
            context = await self._assemble_without_recall(tenant_id, material, budget)
            context = replace(context, warnings=(*context.warnings, RECALL_FAILED))
        if budget is not None:
            context = _with_status_of_conversation(resolved, context)
        if resolved.warnings:
            context = replace(context, warnings=(*resolved.warnings, *context.warnings))
        context, left = await self._files.with_files(tenant_id, context, model=model, in_turn=recall_request.in_turn)
        if resolved.caching is not None and all(file.form != "words" for file in context.files):
            tokens = conversation.counted(conversation.file_tokens)
            caching = resolved.caching.with_files(context.files, context.locale, tokens=tokens)
            context = replace(context, caching=caching)
        context = await with_media(self._shell, tenant_id, context, characters_left=left)
        took = round((self._shell.clock.monotonic() - started) * 1_000)
        return TimedContext(context=context, recall_ms=took, begins_answer=begins)

    async def forget_lost_copies(self, tenant_id: UUID, context: AssembledContext, model: str | None) -> bool:
        """Handle that a provider lost its copies of this context's files.

        Returns whether the caller should assemble the context again.
        """
        return await self._files.forget_lost_copies(tenant_id, context, model)

    def _detail_tokens(self, resolved: Resolved, budget: int | None, recall_request: RecallRequest) -> int | None:
        if budget is not None:
            return budget
        if not recall_request.in_turn or resolved.policy.anchor_share is not None:
            # This applies only if anchors may use all the room: other policies save tokens. The layout that is served
            # to the conversation's own model stays unchanged.
            return None
        own = self._shell.resolver(resolved.conversation).budgets.budget
        return max(resolved.budgets.budget - own, 0) or None

    async def _record_if_possible(
        self, tenant_id: UUID, conversation_id: UUID, timed_context: TimedContext, record_id: UUID
    ) -> None:
        expansion = timed_context.expansion(record_id, conversation_id, self._shell.clock.now())
        try:
            async with self._shell.uow(tenant_id) as uow:
                await uow.expansions.add([expansion])
                await uow.commit()
        except DependencyUnavailableError:
            log.warning("recall.not_recorded")

    async def _assemble_with_recall(
        self,
        tenant_id: UUID,
        material: ContextInputs,
        budget: int | None,
        recall_sources: _RecallSourcesOrError,
        corpus: asyncio.Task[Corpus] | None,
        *,
        fits: bool,
    ) -> AssembledContext:
        if isinstance(recall_sources, Exception):
            raise recall_sources
        if recall_sources is None or corpus is None:
            return await self._assemble_without_recall(tenant_id, material, budget, fits=fits)
        by: By | None = None
        if self._similarity is not None:
            recall_sources, by = await self._similarity.compared(tenant_id, material.conversation.id, recall_sources)
        with_sources = with_recall_sources(material, recall_sources, await corpus)
        originals = await self._with_originals_of_segments(tenant_id, with_sources, budget)
        context = await off_loop(_assembled, originals, budget)
        return context if by is None else replace(context, recalled_by=by)

    async def _with_originals_of_segments(
        self, tenant_id: UUID, material: ContextInputs, budget: int | None
    ) -> ContextInputs:
        if not material.detail.segments:
            return material
        material = await off_loop(with_detail_options, material)
        places = await off_loop(ranges_to_read, material, available_tokens(material, budget))
        if not places:
            return material
        async with self._shell.uow(tenant_id) as uow:
            return material.with_originals(await uow.messages.in_ranges(material.conversation.id, places))

    async def _assemble_without_recall(
        self, tenant_id: UUID, material: ContextInputs, budget: int | None, *, fits: bool = False
    ) -> AssembledContext:
        if material.detail.segments:
            material = await self._with_originals_of_segments(tenant_id, material, budget)
            return await off_loop(_assembled, material, budget)
        return await off_loop(_assembled, material, budget, size=_approximate_bytes(material, fits=fits))

    async def count_tokens(self, text: str | None, drafts: Sequence[MessageDraft] | None) -> int:
        """How many tokens a text, or messages, would have."""
        weights = await off_loop(
            lambda: [draft.computed_weight().tokens for draft in drafts or ()], size=size_of(drafts or ())
        )
        return sum(weights) + (await off_loop(estimate_text, text, size=len(text)) if text else 0)


async def _recall_sources_or_error(
    uow: UnitOfWork, material: ContextInputs, budget: int | None, recall_request: RecallRequest
) -> _RecallSourcesOrError:
    try:
        find = partial(recall_question, material, recall_request, budget=budget)
        question = await off_loop(find, size=_size_of_draft(material))
        return (
            await read_recall_sources(uow, material, recall_request, question, budget=budget)
            if question or recall_request.passages
            else None
        )
    # The caller raises the error, and only outside of a turn: a turn goes on without recall.
    except Exception as error:  # noqa: BLE001 - raised where a turn goes on without it
        await uow.roll_back()  # after a failed statement the transaction would refuse all others
        return error


@contextlib.asynccontextmanager
async def _corpus_in_thread(
    recall_sources: _RecallSourcesOrError, conversation_id: UUID
) -> AsyncIterator[asyncio.Task[Corpus] | None]:
    """Build the search corpus of the recall's sources in a thread, while the block queries the database."""
    if not isinstance(recall_sources, RecallSources):
        yield None
        return
    corpus = asyncio.create_task(off_loop(corpus_of_sources, recall_sources, conversation_id))
    try:
        yield corpus
    except BaseException:
        corpus.cancel()
        raise


def _approximate_bytes(material: ContextInputs, *, fits: bool) -> int:
    messages = (*material.tail, *material.held)
    # If all messages are served, only the text of messages with parts is read.
    if fits:
        texts = sum(
            one.byte_length if one.parts else _SERVED_MESSAGE_SIZE + one.byte_length // _SEARCHED_BYTES
            for one in messages
        )
    else:
        texts = sum(BYTES_PER_ITEM + one.byte_length for one in messages)
    return texts + BYTES_PER_ITEM * (len(material.segments) + len(material.anchors))


def _with_status_of_conversation(resolved: Resolved, context: AssembledContext) -> AssembledContext:
    # A requested budget changes what is served, but not when a compaction is due.
    own = resolved.gauge
    gauge = replace(context.gauge, status=own.status, tokens_until_compaction=own.tokens_until_compaction)
    return replace(context, gauge=gauge)


def _size_of_draft(material: ContextInputs) -> int:
    layout = material.conversation.layout
    block = len(layout.text) + len(layout.anchors) + len(layout.digests) if layout else 0
    return block + _DRAFTED_MESSAGE_SIZE * (len(material.held) + len(material.tail))


def _with_question_held(material: ContextInputs) -> ContextInputs:
    tail = list(material.tail)
    at = next((index for index in range(len(tail) - 1, -1, -1) if tail[index].role == "user"), None)
    if at is None or at == len(tail) - 1 or tail[at].is_protected:
        return material
    # Results of tools are left out before the question that they help to answer.
    tail[at] = replace(tail[at], protected_reason="pinned")
    return replace(material, tail=tuple(tail))


async def load(
    uow: UnitOfWork,
    resolved: Resolved,
    budget: int | None = None,
    *,
    all_anchors: bool = False,
    detail_tokens: int | None = None,
    may_recall: bool = True,
) -> tuple[ContextInputs, bool, int | None]:
    """Read the inputs of a context, except for its anchors: one query for the tail, bounded by the budget.

    Segments are read, and anchors are needed, only if messages have to be left out, or in the cases below.

    Args:
        uow: The unit of work.
        resolved: The conversation with its policy.
        budget: The most tokens, if not the policy's.
        all_anchors: Read segments and have anchors read even if nothing has to be left out.
        detail_tokens: The tokens for details of segments; without them none are read.
        may_recall: Whether a recall may follow. If not, details need only the positions of anchors.

    Returns:
        The inputs; whether it is certain that nothing has to be left out; and the tokens for anchors, as
        ``available_anchor_tokens`` gives it (0 if no anchors are needed).
    """
    conversation, budgets = resolved.conversation, resolved.budgets
    tail = await uow.messages.newest(
        conversation.id,
        after_seq=conversation.boundary_seq,
        max_tokens=_tokens_to_read(resolved, budget),
        estimator=resolved.policy.estimator,
        each_at_most=_counted_message_limit(resolved),
    )
    tail = await _with_last_spoken(uow, conversation, tail)
    before = tail[0].seq - 1 if tail else conversation.last_seq
    held = await held_messages(uow, conversation.id, through_seq=before) if before else []
    material = ContextInputs(
        conversation=conversation,
        schema=schema_named(conversation.state_schema) if conversation.state_schema else resolved.schema,
        policy=resolved.policy,
        budgets=budgets,
        thresholds=resolved.thresholds,
        system=resolved.system,
        held=tuple(held),
        tail=tuple(tail),
        unloaded_tokens=_unloaded_tokens(resolved, tail, held),
        tools=resolved.tools,
        schema_tokens=resolved.schema_tokens,
        files=tuple(await uow.files.of_conversation(conversation.id)) if conversation.file_bytes else (),
    )
    is_cut = await off_loop(partial(exceeds_budget, material, budget=budget), size=_size_of_draft(material))
    if detail_tokens and not is_cut and resolved.policy.levels and conversation.boundary_seq:
        detail = await detail_of(uow, resolved)
        material = replace(
            material, detail=replace(detail, max_added_tokens=None if budget is not None else detail_tokens)
        )
    fits = not is_cut and (budget is not None or resolved.policy.on_failure != "keep_full")
    if not (all_anchors or is_cut or material.detail.segments):
        return material, fits, 0
    if conversation.anchors_due_from is not None:
        raise AnchorsDueError
    if not (all_anchors or is_cut or may_recall):
        seqs = await uow.anchors.active_seqs(conversation.id, limit=MAX_ANCHORS)
        return replace(material, detail=replace(material.detail, anchor_seqs=tuple(seqs))), fits, 0
    served = conversation.layout.digest_tokens if conversation.layout else 0
    source = await digestible(uow, resolved, through_seq=conversation.boundary_seq, max_tokens=served)
    material = replace(material, segments=tuple(source.segments), segments_total=source.total)
    work = partial(available_anchor_tokens, material, budget)
    return material, fits, await off_loop(work, size=_size_of_draft(material))


async def _with_last_spoken(uow: UnitOfWork, conversation: Conversation, tail: list[Message]) -> list[Message]:
    """The tail; if all that was read of it are results of tools and what was erased, it begins with the message before.

    No model accepts a result without its call, however large that is.
    """
    if not tail or any(message.role != "tool" and has_content(message) for message in tail):
        return tail
    spoken = await uow.messages.last(conversation.id, stands_alone=True)
    if spoken is None or not conversation.boundary_seq < spoken.seq < tail[0].seq:
        return tail
    return await uow.messages.between(conversation.id, spoken.seq, tail[-1].seq)


async def _anchors(
    uow: UnitOfWork, material: ContextInputs, max_tokens: int | None
) -> tuple[Sequence[FoundAnchor], int]:
    """The anchors that could be shown, and how many others there are."""
    conversation = material.conversation
    if max_tokens is None:
        return await uow.anchors.servable(conversation.id, limit=MAX_ANCHORS), 0
    return await uow.anchors.showable(
        conversation.id,
        covered_seq=conversation.boundary_seq,
        held=[message.seq for message in material.held],
        max_tokens=max_tokens,
        limit=MAX_ANCHORS,
    )


def _tokens_to_read(resolved: Resolved, asked_budget: int | None) -> int:
    # Everything that fits by the policy's own count has to be read: an unread message would be missing without notice.
    budgets = resolved.budgets
    most = max(LOADED_BUDGETS * budgets.budget, resolved.conversation.estimated_within(budgets.window))
    if asked_budget is None:
        return most
    return min(
        most,
        LOADED_BUDGETS * asked_budget
        + min(int(DIGEST_SOURCE_TIMES * DIGEST_SHARE * asked_budget), DIGEST_SOURCE_TOKENS),
    )


def _counted_message_limit(resolved: Resolved) -> int | None:
    policy = resolved.policy
    elides = policy.on_failure == "keep_full" and policy.oversized == "elide"
    return resolved.budgets.window // LARGE_MESSAGE_DIVISOR if elides else None


def _unloaded_tokens(resolved: Resolved, tail: Sequence[Message], held: Sequence[Message]) -> int:
    conversation, estimator = resolved.conversation, resolved.policy.estimator
    total, covered = conversation.total, conversation.covered
    loaded = [*tail, *(message for message in held if message.seq > conversation.boundary_seq)]
    uncovered_tokens = tokens_of(total.tokens - covered.tokens, total.bytes - covered.bytes, estimator)
    spoken = (message for message in loaded if message.status != "erased")
    return max(uncovered_tokens - sum(tokens_of(one.token_count, one.byte_length, estimator) for one in spoken), 0)


def _assembled(material: ContextInputs, budget: int | None) -> AssembledContext:
    conversation = material.conversation

    def digest(messages: Sequence[Message], max_tokens: int) -> str:
        newest = _newest_within(messages, min(DIGEST_SOURCE_TIMES * max_tokens, DIGEST_SOURCE_TOKENS))
        most = min(max_tokens, DIGEST_SOURCE_TOKENS // DIGEST_DIVISOR)
        key = (
            newest[0].id,
            newest[-1].id,
            "".join(f"{message.is_protected:d}" for message in newest),
            conversation.content_epoch,
        )  # the same until some of them are erased, pinned or unpinned
        return _digest_without_secrets(Messages(key, newest), most, conversation.locale)

    return assemble(material, digest=digest, budget=budget)


def _newest_within(messages: Sequence[Message], tokens: int) -> tuple[Message, ...]:
    newest = first_fitting(reversed(messages), tokens, lambda message: message.token_count)
    return tuple(newest[::-1] or messages[-1:])


@memoized(FIGURE_GROWTH)
def _digest_without_secrets(span: Messages, max_tokens: int, locale: str) -> str:
    return extractive_digest(redact_messages(span.messages), max_tokens, locale)
