"""Compacts a given array with the plan, summarizer and checks of a stored conversation; nothing is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from app.core.context.drafts import outline_of
from app.core.context.media import parts_within_bytes
from app.core.model.conversation import Conversation, Message, Sums, Usage
from app.core.model.errors import (
    NotFoundError,
    PreviousResponseNotFoundError,
    SummarizerFailedError,
    full_reason,
)
from app.core.model.files import MEDIA_BYTES
from app.core.model.model_io import ModelProfile
from app.core.model.records import Compaction, FoldRequest
from app.core.model.redaction import redact_messages
from app.core.model.schemas import schema_named
from app.core.model.state import StateVersion
from app.core.planning.compaction import NothingToFold
from app.core.planning.cuts import Tail
from app.core.state.apply import AppliedCandidate, apply_candidate, version_of
from app.core.state.rendering import render_text
from app.core.text.speakers import name_in
from app.off_loop import off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.admin.limiting import LimitService
from app.usecases.chat.replaying import messages_before_reply
from app.usecases.chat.spending import note_call
from app.usecases.compaction.attempts import AttemptInputs, Calls, run_attempts
from app.usecases.compaction.chunk import Chunk, chunk_tokens, plan, summarizer_of, system_excerpt_of
from app.usecases.compaction.spend_guard import SpendGuard
from app.usecases.history.drafts import MessageDraft
from app.usecases.openai.sealed_inputs import CompactedInput
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.shell import Shell

MAX_MESSAGES: Final = 2_000
"""The most messages of a stored conversation that are compacted for a client; its state describes the older ones."""
TOO_LITTLE: Final = frozenset({"not_smaller"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayCompacted:
    """The result of compacting an array."""

    compacted: CompactedInput
    usage: Usage
    """The usage of all model calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Progress:
    """An array that is being compacted."""

    conversation: Conversation
    messages: tuple[Message, ...]
    version: StateVersion | None = None
    usage: Usage = field(default_factory=Usage)

    @property
    def rest(self) -> tuple[Message, ...]:
        """The messages that are not folded yet."""
        return self.messages[self.conversation.boundary_seq :]


class ArrayCompaction:
    """Compacts arrays of messages."""

    def __init__(self, shell: Shell, spending: SpendGuard, limits: LimitService) -> None:
        self._shell = shell
        self._spending = spending
        self._limits = limits

    async def of_response(self, tenant_id: UUID, turn_id: UUID) -> list[MessageDraft]:
        """The messages of a stored response's conversation up to it; older ones as the state describes them.

        Raises:
            PreviousResponseNotFoundError: There is no such response.
        """
        async with self._shell.uow(tenant_id) as uow:
            try:
                turn = await uow.turns.get(turn_id)
            except NotFoundError:
                raise PreviousResponseNotFoundError(f"there is no response 'resp_{turn_id.hex}'") from None
            if turn.reply_id is None:
                raise PreviousResponseNotFoundError("the response has no output")
            reply = await uow.messages.get(turn.conversation_id, turn.reply_id)
            if reply.status == "erased":
                raise PreviousResponseNotFoundError("the response was deleted: nothing goes on from it")
            # The results of the service's own calls come after a reply that also has calls for the client.
            own_tools = self._shell.resolver.own_tools
            last = max(message.seq for message in [reply, *await messages_before_reply(uow, turn, own_tools)])
            conversation = await uow.conversations.get(turn.conversation_id)
            return await _as_drafts(uow, conversation, last, last_reply=reply)

    async def of_conversation(self, tenant_id: UUID, conversation_id: UUID) -> list[MessageDraft]:
        """The messages of a conversation; older ones as the state describes them. Raises ``NotFoundError``."""
        async with self._shell.uow(tenant_id) as uow:
            conversation = await uow.conversations.get(conversation_id)
            return await _as_drafts(uow, conversation, conversation.last_seq)

    async def compact(
        self, tenant_id: UUID, drafts: Sequence[MessageDraft], instructions: str | None, *, patience: float
    ) -> ArrayCompacted:
        """Fold all that is worth folding; the rest stays word for word.

        ``instructions`` is the system prompt of the drafts; ``patience`` is the number of seconds for the whole work.

        Raises:
            SummarizerFailedError: No attempt at some part was accepted.
            RateLimitedError: The hour's model calls are used up, or the caller has spent as much on chats as it may.
        """
        progress = await off_loop(self._first_progress, tenant_id, drafts, instructions or "")
        deadline = self._shell.clock.monotonic() + patience
        while True:
            further = await self._fold_next(tenant_id, progress, deadline)
            if further is None:
                break
            progress = further
        version = progress.version
        summary = render_text(schema_named(version.state_schema), version.state) if version else ""
        rest = tuple(_as_draft(message) for message in progress.rest)
        return ArrayCompacted(compacted=CompactedInput(summary=summary, messages=rest), usage=progress.usage)

    def _first_progress(self, tenant_id: UUID, drafts: Sequence[MessageDraft], instructions: str) -> _Progress:
        shell, now = self._shell, self._shell.clock.now()
        conversation = Conversation(
            id=shell.new_id(), tenant_id=tenant_id, system_prompt=instructions, created_at=now, updated_at=now
        )
        messages: list[Message] = []
        for seq, draft in enumerate(drafts, 1):
            weight = draft.computed_weight()
            message = Message(
                id=shell.new_id(),
                conversation_id=conversation.id,
                seq=seq,
                role=draft.role,
                content=draft.content,
                parts=draft.parts,
                token_count=weight.tokens,
                byte_length=weight.bytes,
                metadata=draft.metadata,
                created_at=now,
            )
            messages.append(message)
        total = _sums(messages)
        conversation = replace(conversation, last_seq=len(messages), total=total)
        return _Progress(conversation=conversation, messages=tuple(messages))

    async def _fold_next(self, tenant_id: UUID, progress: _Progress, deadline: float) -> _Progress | None:
        """The array after one more chunk; ``None`` if there is nothing (more) to fold."""
        resolved = self._shell.resolver(progress.conversation)
        summarizer = summarizer_of(self._shell, resolved)
        chunk = await off_loop(_next_chunk, progress, resolved, summarizer.profile, self._row(progress))
        if chunk is None:
            return None
        async with self._shell.uow(tenant_id) as uow:
            await self._spending.check(uow, resolved, metered=summarizer.profile.metered)
            if summarizer.profile.metered:
                await self._limits.check_chat(uow)
        applying = chunk.apply_context()
        inputs = AttemptInputs(
            summarizer=summarizer,
            request=chunk.request,
            apply=lambda report: apply_candidate(report, applying),
            seqs=tuple(message.seq for message in chunk.span),
            withholds_blocked=True,
        )
        calls = Calls(clock=self._shell.clock, most=resolved.policy.calls_per_chunk, deadline=deadline)
        try:
            result = await run_attempts(inputs, calls)
        finally:  # no stored compaction records these calls, so they count as chat calls of the caller
            for attempt in calls.attempts:
                if attempt.metered:
                    await note_call(self._shell.uow, attempt.usage)
        if result.applied is None:
            if all(attempt.reason in TOO_LITTLE for attempt in result.attempts):
                return None
            raise SummarizerFailedError(
                f"no usable summary ({full_reason(result.reason)})", extra={"reason": result.reason}
            )
        return self._next_progress(progress, chunk, result.applied, result.usage)

    def _next_progress(self, progress: _Progress, chunk: Chunk, applied: AppliedCandidate, usage: Usage) -> _Progress:
        boundary = progress.messages[chunk.plan.to_seq - 1]
        covered = _sums(progress.messages[: chunk.plan.to_seq])
        version = version_of(
            applied,
            chunk.apply_context(),
            boundary=boundary.id,
            covered=covered,
            compaction_id=chunk.row.id,
            layout=applied.layout,
            now=self._shell.clock.now(),
        )
        conversation = replace(progress.conversation, **version.as_served)
        return replace(progress, conversation=conversation, version=version, usage=progress.usage.plus(usage))

    def _row(self, progress: _Progress) -> Compaction:
        """A compaction row for a chunk; it is never stored."""
        shell, conversation = self._shell, progress.conversation
        return Compaction(
            id=shell.new_id(),
            tenant_id=conversation.tenant_id,
            conversation_id=conversation.id,
            trigger="manual",
            ran_in="request",
            status="running",
            request=FoldRequest(fold="all"),
            requested_at=shell.clock.now(),
        )


async def _as_drafts(
    uow: UnitOfWork, conversation: Conversation, through_seq: int, *, last_reply: Message | None = None
) -> list[MessageDraft]:
    """A conversation up to a position: the state in place of covered messages, the held ones, the rest unchanged.

    ``last_reply`` belongs to it even if another reply has superseded it since.
    """
    covered = conversation.boundary_seq if conversation.boundary_seq <= through_seq else 0
    first = max(covered, through_seq - MAX_MESSAGES) + 1
    held = await uow.messages.held(conversation.id, through_seq=first - 1)
    messages = await uow.messages.between(conversation.id, first, through_seq)
    if last_reply is not None and last_reply.status == "superseded":
        messages = sorted([*messages, last_reply], key=lambda message: message.seq)
    summary_drafts: list[MessageDraft] = []
    if covered and conversation.state_schema and conversation.compressed_state:
        schema = schema_named(conversation.state_schema)
        summary_drafts = CompactedInput(
            summary=render_text(schema, conversation.compressed_state, conversation.locale)
        ).drafts()
    there = [message for message in [*held, *messages] if message.status != "erased"]
    kept = zip(there, parts_within_bytes(there, MEDIA_BYTES, conversation.locale), strict=True)
    shown = await uow.contents.with_data([replace(message, parts=parts) for message, parts in kept])
    return [*summary_drafts, *(_as_draft(message) for message in shown)]


def _next_chunk(progress: _Progress, resolved: Resolved, profile: ModelProfile, row: Compaction) -> Chunk | None:
    """The next chunk of an array."""
    tail = Tail(outline=tuple(outline_of(message) for message in progress.rest), complete=True)
    most = chunk_tokens(profile)
    planned = plan(resolved, tail, row.request, most)
    if isinstance(planned, NothingToFold):
        return None
    span = progress.messages[planned.from_seq - 1 : planned.to_seq]
    return Chunk(
        row=row,
        resolved=resolved,
        plan=planned,
        span=redact_messages(span),
        system=system_excerpt_of(resolved),
        version=progress.version,
        anchors=(),
        most_tokens=most,
    )


def _sums(messages: Sequence[Message]) -> Sums:
    return Sums(
        messages=len(messages),
        tokens=sum(message.token_count for message in messages),
        bytes=sum(message.byte_length for message in messages),
    )


def _as_draft(message: Message) -> MessageDraft:
    name = name_in(message.metadata)
    metadata = {"name": name} if name else {}
    return MessageDraft(role=message.role, content=message.content, parts=message.parts, metadata=metadata)
