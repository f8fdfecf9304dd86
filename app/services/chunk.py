"""One chunk of a compaction: read from the database, planned by the core, ready to be asked about."""

from __future__ import annotations

from dataclasses import dataclass

from app.domain.apply import Applying, served
from app.domain.compaction import CompactionPlan, NothingToFold, Tail, plan_compaction
from app.domain.conversation import Message
from app.domain.model_io import ModelProfile, SummaryRequest
from app.domain.records import Compaction, FoldRequest
from app.domain.state import StateEntry, StateVersion
from app.ports import Summarizer, UnitOfWork
from app.services.lease import Lease, check_held
from app.services.resolve import Resolved
from app.services.shell import Shell

OUTLINE_LIMIT = 4_000  # messages of the tail that one plan looks at: bounds a turn's work after a large import
OUTPUT_PER_STATE = 4  # output tokens asked for per token of state: JSON, provenance and reasoning
MINIMUM_OUTPUT = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """What one model call is about."""

    row: Compaction
    resolved: Resolved
    plan: CompactionPlan
    span: tuple[Message, ...]
    version: StateVersion | None
    """The present state; ``None`` while there is none."""

    @property
    def previous(self) -> tuple[StateEntry, ...]:
        """The entries that are served now."""
        return served(self.version.entries) if self.version else ()

    def applying(self) -> Applying:
        """What an accepted candidate is applied to."""
        resolved = self.resolved
        return Applying(
            schema=resolved.schema,
            policy=resolved.policy,
            budgets=resolved.budgets,
            plan=self.plan,
            span=self.span,
            previous=self.previous,
            next_entry=self.version.next_entry if self.version else 1,
            version=resolved.conversation.state_version + 1,
            tokens_before=resolved.breakdown.total,
            block_before=resolved.breakdown.state + resolved.breakdown.anchors,
            target=resolved.in_estimates.target,
        )

    def request(self, profile: ModelProfile) -> SummaryRequest:
        """What the summarizer is asked."""
        state_tokens = self.resolved.budgets.state_tokens
        room = max(OUTPUT_PER_STATE * state_tokens, MINIMUM_OUTPUT)
        return SummaryRequest(
            schema=self.resolved.schema,
            messages=self.span,
            previous=self.previous,
            focus=self.row.request.focus,
            instructions=self.resolved.policy.instructions,
            target_tokens=state_tokens,
            chunk_tokens=chunk_tokens(profile),
            max_output_tokens=min(room, profile.output_limit),
            locale=self.resolved.conversation.locale,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    """A row whose plan found nothing (more) to fold."""

    resolved: Resolved
    found: NothingToFold


async def read_chunk(shell: Shell, lease: Lease) -> Chunk | Nothing:
    """Read and plan the next chunk from the present boundary, in one short transaction.

    Raises:
        LeaseLostError: The row is no longer this process's.
    """
    async with shell.uow(lease.tenant_id) as uow:
        resolved = shell.resolver(await uow.conversations.get(lease.conversation_id))
        conversation = resolved.conversation
        row = check_held(await uow.compactions.get(lease.compaction_id), lease)
        tail = await read_tail(uow, resolved)
        planned = plan(resolved, tail, row.request, chunk_tokens(summarizer_of(shell, resolved).profile))
        if isinstance(planned, NothingToFold):
            return Nothing(resolved=resolved, found=planned)
        span = await uow.messages.between(conversation.id, planned.from_seq, planned.to_seq)
        number = conversation.state_version
        version = await uow.states.get(conversation.id, number) if number else None
    return Chunk(row=row, resolved=resolved, plan=planned, span=tuple(span), version=version)


async def read_tail(uow: UnitOfWork, resolved: Resolved) -> Tail:
    """The messages after the boundary, without their text, bounded."""
    conversation = resolved.conversation
    outline = await uow.messages.outline(conversation.id, after_seq=conversation.boundary_seq, limit=OUTLINE_LIMIT)
    return Tail(outline=tuple(outline), complete=not outline or outline[-1].seq >= conversation.last_seq)


def plan(resolved: Resolved, tail: Tail, request: FoldRequest, most_tokens: int) -> CompactionPlan | NothingToFold:
    """The plan of the next chunk, of at most ``most_tokens``."""
    return plan_compaction(
        tail,
        breakdown=resolved.breakdown,
        budgets=resolved.in_estimates,
        estimator=resolved.policy.estimator,
        request=request,
        chunk_tokens=most_tokens,
    )


def summarizer_of(shell: Shell, resolved: Resolved) -> Summarizer:
    """The summarizer that the policy names."""
    if resolved.policy.summarizer == "chat_model":
        return shell.models.summarizer(shell.models.chat().profile.name)
    return shell.models.summarizer()


def chunk_tokens(profile: ModelProfile) -> int:
    """The most that a summarizer digests in one call: half its window, or what it says of itself."""
    return min(profile.input_limit // 2, profile.chunk_tokens or profile.input_limit)
