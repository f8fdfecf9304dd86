"""One chunk of a compaction: read from the database and planned by the core, before any model is asked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any
from uuid import UUID

import structlog

from app.core.anchors.rendering import seqs_in
from app.core.anchors.selection import serve
from app.core.continuity.statements import MAX_CHARACTERS
from app.core.model.anchors import Anchor, FoundAnchor
from app.core.model.conversation import Conversation, Message, Outline
from app.core.model.errors import FieldError, InvalidInputError, ModelNotAllowedError, PolicyInvalidError
from app.core.model.model_io import ModelProfile, SummaryRequest
from app.core.model.policies.policy import MODEL_FIELDS
from app.core.model.provenance import language_of
from app.core.model.records import Compaction, FoldRequest, Page
from app.core.model.redaction import redact, redact_messages
from app.core.model.schemas import schema_named
from app.core.model.segments import CutSegment, Level
from app.core.model.state import StateEntry, StateSchema, StateVersion
from app.core.planning.compaction import CompactionPlan, NothingToFold, plan_compaction
from app.core.planning.cuts import Tail
from app.core.planning.withholding import with_placeholders
from app.core.state.apply import QUOTES_DIVISOR, ApplyContext, served
from app.core.state.schema_change import (
    entries_from_anchors,
    entries_from_released,
    entries_in_schema,
    next_entry_number,
    requested_state_tokens,
    without_anchor_entries,
)
from app.core.summarizer.offline.narrative_states import is_narrative_only
from app.core.summarizer.segment_prompts import digest_output_tokens
from app.core.summarizer.system_context import system_context
from app.core.text.budget import first_fitting
from app.off_loop import BYTES_PER_ITEM, off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.attempts import BLOCKED, CONTEXT_TOO_LONG
from app.usecases.compaction.segmenting import cut_span
from app.usecases.ports import Models, Summarizer
from app.usecases.shared.layouts import MAX_ANCHORS, MAX_OUTDATED_ANCHORS, held_messages
from app.usecases.shared.lease import Lease, check_held
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.shell import Shell

OUTLINE_LIMIT = 4_000  # messages of the tail that one plan looks at: bounds a turn's work after a large import
DESCRIBED = frozenset[Level]({"L2", "L3"})
"""The levels of segments that a summarizer writes together with the state."""
OUTPUT_PER_STATE = 4  # output tokens asked for per token of state: JSON, provenance and reasoning
MINIMUM_OUTPUT = 4_096
SYSTEM_CONTEXT = 600  # tokens of a system prompt that a summarizer is shown: terms and steps, not the whole
MIN_CHUNK_TOKENS = 200  # tokens: a chunk that is too long for a model at this size will never fit
UNLIMITED_TOKENS = 10**12  # tokens: everything there is to fold is one chunk
HALVING_REASONS = frozenset({BLOCKED, CONTEXT_TOO_LONG})
"""Failure reasons after which the next job begins with a smaller chunk."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SystemExcerpt:
    """A conversation's system prompt without secrets, as a summarizer may see it."""

    prompt: str
    excerpt: str
    """Terms and steps of the system prompt, if the policy lets the summarizer see them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The messages that one step folds, with everything that the model calls about them need."""

    row: Compaction
    resolved: Resolved
    plan: CompactionPlan
    span: tuple[Message, ...]
    """The messages without their secrets, as the summarizer and every check of its answer see them."""
    system: SystemExcerpt
    version: StateVersion | None
    """The present state; ``None`` if there is none."""
    anchors: tuple[Anchor, ...]
    """Active anchors up to the end of the chunk, except those of held messages."""
    most_tokens: int
    """The most tokens for which this chunk was planned."""
    outdated: tuple[Anchor, ...] = ()
    """The newest superseded anchors."""
    demands: frozenset[int] = frozenset()
    """The ``seq`` of each message after the present state in which a user set a constraint or a goal."""
    released: tuple[Message, ...] = ()
    """The messages that were held beside the present state and no longer are, without their secrets."""
    later: tuple[Message, ...] = ()
    """The newest messages after the chunk, unchanged and with their secrets. Only the probes look at them."""
    segments: tuple[CutSegment, ...] = ()
    """The segments of the chunk: each ``seq`` in its range belongs to exactly one."""

    @property
    def previous(self) -> tuple[StateEntry, ...]:
        """The entries that are served now, in the fields of the schema that will be written next."""
        if self.version is None:
            return ()
        source, language = schema_named(self.version.state_schema), language_of(self.span)
        # What stood beside the state has a field by its kind, if the next schema has more than one text.
        schema = source if is_narrative_only(self.resolved.schema) else self.resolved.schema
        entries = self._with_released(served(self.version.entries), schema, self.version, language)
        if not self.changes_schema:
            return entries
        anchor_entries = entries_from_anchors(
            self._anchors_only_shown_now(),
            schema=schema,
            served=entries,
            version=self.version.version,
            next_entry=next_entry_number(entries, self.version.next_entry),
            language=language,
        )
        entries = (*entries, *anchor_entries)
        moved = entries_in_schema(
            entries, self.resolved.schema, source=source, next_entry=next_entry_number(entries, self.version.next_entry)
        )
        return without_anchor_entries(moved, self._anchors_shown_next(), language)

    def _with_released(
        self, entries: tuple[StateEntry, ...], schema: StateSchema, version: StateVersion, language: str | None
    ) -> tuple[StateEntry, ...]:
        if not self.released or is_narrative_only(schema):
            return entries
        quotations = entries_from_released(
            self.released,
            schema=schema,
            served=entries,
            version=version.version,
            next_entry=next_entry_number(entries, version.next_entry),
            language=language,
            max_tokens=self.resolved.budgets.state_cap // QUOTES_DIVISOR,
        )
        return (*entries, *quotations)

    def _anchors_only_shown_now(self) -> list[Anchor]:
        layout = self.resolved.conversation.layout
        if self.resolved.budgets.anchor_tokens != 0 or layout is None:
            return []
        shown = frozenset(seqs_in(layout.anchors))
        return [anchor for anchor in self.anchors if anchor.seq in shown]

    def _anchors_shown_next(self) -> tuple[FoundAnchor, ...]:
        token_limit, estimator = self.resolved.budgets.anchor_tokens, self.resolved.policy.estimator
        return serve(
            self.anchors, through_seq=self.plan.to_seq, held_seqs=(), token_limit=token_limit, estimator=estimator
        ).shown

    @property
    def changes_schema(self) -> bool:
        """Whether the present state has another schema than the one that will be written next."""
        return self.version is not None and self.version.state_schema != self.resolved.schema.name

    @property
    def half(self) -> int | None:
        """The most tokens of a chunk of half this size; ``None`` if half would be too small."""
        weight = min(self.most_tokens, sum(message.token_count for message in self.span))
        return weight // 2 if weight // 2 >= MIN_CHUNK_TOKENS else None

    def is_stale(self, present: Conversation) -> bool:
        """Whether another compaction, a restore or an erasure took effect meanwhile.

        New messages and pins do not count.
        """
        return _version_numbers(self.resolved.conversation) != _version_numbers(present)

    def apply_context(self) -> ApplyContext:
        """The context in which an accepted candidate is applied."""
        resolved = self.resolved
        return ApplyContext(
            schema=resolved.schema,
            policy=resolved.policy,
            budgets=resolved.budgets,
            plan=self.plan,
            span=self.span,
            previous=self.previous,
            next_entry=next_entry_number(self.previous, self.version.next_entry if self.version else 1),
            version=resolved.conversation.state_version + 1,
            tokens_before=resolved.breakdown.total,
            block_before=resolved.breakdown.block,
            target=resolved.target_tokens,
            is_carried_over=self.changes_schema,
            added_tokens=resolved.coming_tool_tokens_after(self.plan.folded_tokens),
            lasting_tokens=resolved.lasting_tokens,
            anchors=self.anchors,
            outdated=self.outdated,
            demands=self.demands,
        )

    def request(self, profile: ModelProfile, withheld: Collection[int] = ()) -> SummaryRequest:
        """The request to a summarizer.

        Of the messages with the ``seq``s in ``withheld`` it contains neither text nor anchors.
        """
        focus = self.row.request.focus
        state_tokens = requested_state_tokens(self.resolved.budgets, self.previous, carried=self.changes_schema)
        described = self.segments if DESCRIBED.intersection(self.resolved.policy.levels) else ()
        output_tokens = max(OUTPUT_PER_STATE * state_tokens, MINIMUM_OUTPUT) + digest_output_tokens(described)
        return SummaryRequest(
            schema=self.resolved.schema,
            messages=with_placeholders(self.span, withheld) if withheld else self.span,
            previous=self.previous,
            anchors=tuple(anchor for anchor in self.anchors if anchor.seq not in withheld),
            anchor_room=self.resolved.budgets.anchor_tokens,
            system_prompt=self.system.prompt,
            system_context=self.system.excerpt,
            focus=None if focus is None else redact(focus),
            instructions=self.resolved.policy.instructions,
            target_tokens=state_tokens,
            chunk_tokens=min(chunk_tokens(profile), self.most_tokens),
            max_output_tokens=min(output_tokens, profile.output_limit),
            locale=self.resolved.conversation.locale,
            segments=described,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoChunk:
    """The plan found nothing (more) to fold, so there is no chunk."""

    resolved: Resolved
    found: NothingToFold


async def read_chunk(shell: Shell, lease: Lease, *, most_tokens: int | None = None) -> Chunk | NoChunk:
    """Read and plan the next chunk from the present boundary, in one short transaction.

    The chunk weighs at most ``most_tokens``; ``None`` = what the summarizer digests.

    Raises:
        LeaseLostError: The row is no longer this process's.
    """
    async with shell.uow(lease.tenant_id) as uow:
        resolved = shell.resolver(await uow.conversations.get(lease.conversation_id))
        conversation = resolved.conversation
        row = check_held(await uow.compactions.get(lease.compaction_id), lease)
        tail = await read_tail(uow, resolved)
        digestible = _tokens_to_fold(resolved, chunk_tokens(summarizer_of(shell, resolved).profile))
        most = min(digestible, most_tokens or digestible)
        planned = plan(resolved, tail, await before_running_turn(uow, conversation.id, row.request), most)
        if isinstance(planned, NothingToFold):
            return NoChunk(resolved=resolved, found=planned)
        span = await uow.messages.between(conversation.id, planned.from_seq, planned.to_seq)
        anchors = await _unheld_anchors(uow, conversation.id, through_seq=planned.to_seq)
        outdated, _ = await uow.anchors.page(
            conversation.id, Page(limit=MAX_OUTDATED_ANCHORS, order="desc"), status="superseded", as_said=True
        )
        later = await _messages_for_probes(uow, conversation.id, tail.outline, planned.to_seq)
        number = conversation.state_version
        version = await uow.states.get(conversation.id, number) if number else None
        demands = await seqs_of_demands(uow, conversation.id, version) if version else frozenset[int]()
        released = await _released_messages(uow, conversation.id, version) if version else []
    shown = await _redacted(span)
    return Chunk(
        row=row,
        resolved=resolved,
        plan=planned,
        span=shown,
        system=await off_loop(system_excerpt_of, resolved, size=len(conversation.system_prompt)),
        later=later,
        segments=await off_loop(
            lambda: cut_span(shown, resolved.policy.segment_by, from_seq=planned.from_seq, to_seq=planned.to_seq)
        ),
        version=version,
        anchors=anchors,
        outdated=tuple(outdated),
        demands=demands,
        released=await _redacted(released),
        most_tokens=most,
    )


async def seqs_of_demands(uow: UnitOfWork, conversation_id: UUID, version: StateVersion) -> frozenset[int]:
    """The sources of a version's served entries in which a user set a constraint or a goal."""
    sources = {seq for entry in served(version.entries) for seq in entry.from_seqs}
    return frozenset(await uow.messages.goals_and_constraints(conversation_id, sorted(sources)))


async def _released_messages(uow: UnitOfWork, conversation_id: UUID, version: StateVersion) -> list[Message]:
    # The layout of a version stays as it was written; only that of the conversation follows pins and policy.
    if version.layout is None or not version.layout.held:
        return []
    held = {message.seq for message in await held_messages(uow, conversation_id, through_seq=version.boundary_seq)}
    found = await uow.messages.at_seqs(conversation_id, sorted(set(version.layout.held) - held))
    return [message for message in found if message.is_spoken]


async def _messages_for_probes(
    uow: UnitOfWork, conversation_id: UUID, outline: Sequence[Outline], after_seq: int
) -> tuple[Message, ...]:
    staying = [one for one in reversed(outline) if one.seq > after_seq]
    newest = first_fitting(staying, MAX_CHARACTERS, attrgetter("byte_length"))
    if not newest:
        return ()
    return tuple(await uow.messages.between(conversation_id, newest[-1].seq, newest[0].seq))


def _tokens_to_fold(resolved: Resolved, digestible: int) -> int:
    conversation = resolved.conversation
    if conversation.quiet.reason not in HALVING_REASONS:
        return digestible
    # Half after one failure, then a quarter, so that two blocked messages end up in different chunks.
    return max(min(digestible, resolved.breakdown.tail >> conversation.failure_count), MIN_CHUNK_TOKENS)


async def _unheld_anchors(uow: UnitOfWork, conversation_id: UUID, *, through_seq: int) -> tuple[Anchor, ...]:
    # A held message is served whole, so its anchors are left out.
    held = {message.seq for message in await held_messages(uow, conversation_id, through_seq=through_seq)}
    active = await uow.anchors.active(conversation_id, through_seq=through_seq, limit=MAX_ANCHORS, as_said=True)
    return tuple(anchor for anchor in active if anchor.seq not in held)


def system_excerpt_of(resolved: Resolved) -> SystemExcerpt:
    """The system prompt of a conversation that is to be summarized; a large one takes a while."""
    prompt = redact(resolved.conversation.system_prompt)
    wants_excerpt = resolved.policy.inject_system_context
    return SystemExcerpt(prompt, system_context(prompt, max_tokens=SYSTEM_CONTEXT) if wants_excerpt else "")


async def _redacted(span: Sequence[Message]) -> tuple[Message, ...]:
    return await off_loop(redact_messages, span, size=sum(BYTES_PER_ITEM + one.byte_length for one in span))


async def read_tail(uow: UnitOfWork, resolved: Resolved) -> Tail:
    """The messages after the boundary, without their text, bounded."""
    conversation = resolved.conversation
    outline = await uow.messages.outline(conversation.id, after_seq=conversation.boundary_seq, limit=OUTLINE_LIMIT)
    return Tail(outline=tuple(outline), complete=not outline or outline[-1].seq >= conversation.last_seq)


async def before_running_turn(uow: UnitOfWork, conversation_id: UUID, request: FoldRequest) -> FoldRequest:
    """The request, limited if a turn runs: the message that the turn answers, and later ones, are not folded."""
    turn = await uow.turns.running(conversation_id)
    if turn is None:
        return request
    last = (await uow.messages.get(conversation_id, turn.message_id)).seq - 1
    return replace(request, up_to_seq=last if request.up_to_seq is None else min(request.up_to_seq, last))


def plan(resolved: Resolved, tail: Tail, request: FoldRequest, most_tokens: int) -> CompactionPlan | NothingToFold:
    """The plan of the next chunk, of at most ``most_tokens``."""
    return plan_compaction(
        tail,
        breakdown=resolved.breakdown,
        budgets=resolved.planning_budgets,
        estimator=resolved.policy.estimator,
        request=request,
        chunk_tokens=most_tokens,
    )


def summarizer_of(shell: Shell, resolved: Resolved) -> Summarizer:
    """The summarizer that the policy names."""
    if resolved.policy.summarizer == "chat_model":
        return shell.models.summarizer(shell.models.chat().profile.name)
    return shell.models.summarizer()


def wants_detail_by_model(shell: Shell, resolved: Resolved) -> bool:
    """Whether a model is to write the L1 of a segment.

    Only a metered model writes better than code, which already did.
    """
    try:
        return "L1" in resolved.policy.levels and summarizer_of(shell, resolved).profile.metered
    except InvalidInputError:
        # Without its key no model can write one.
        return False


async def fallback_of(shell: Shell, resolved: Resolved) -> Summarizer | None:
    """The model that is asked when the summarizer's retry failed; ``None`` if none is set or it is the same model.

    If the operator no longer allows the policy's model, the configured one is used. If the model can no longer be built
    (its key is gone), the compaction goes on without a fallback.
    """
    name = resolved.policy.fallback_model
    if name is None:
        return None
    try:
        fallback = await _summarizer_if_allowed(shell.models, name)
    except InvalidInputError:
        log.warning("compaction.fallback_unavailable", model=name)
        return None
    return None if fallback.profile.name == summarizer_of(shell, resolved).profile.name else fallback


async def _summarizer_if_allowed(models: Models, name: str) -> Summarizer:
    if not models.allows(name):
        log.warning("compaction.fallback_not_allowed", model=name)
        return models.summarizer()
    await models.prepare(name)
    return models.summarizer(name)


async def check_models(models: Models, overrides: Mapping[str, Any]) -> None:
    """Refuse overrides of a policy that name a model which is not allowed or cannot be built.

    Call it outside of a transaction: building a model may take seconds.

    Raises:
        ModelNotAllowedError: Naming the field, and the models that are allowed.
        PolicyInvalidError: Naming the field, and what the model needs.
    """
    for field in MODEL_FIELDS:
        name = overrides.get(field)
        if not isinstance(name, str):
            continue  # unset, or already refused with the rest of the policy
        try:
            await models.prepare(name)
        except InvalidInputError as error:
            wrong = FieldError(field=f"policy.{field}", message=error.detail)
            refusal = ModelNotAllowedError if isinstance(error, ModelNotAllowedError) else PolicyInvalidError
            raise refusal(error.detail, errors=[wrong], extra=error.extra) from error


def chunk_tokens(profile: ModelProfile) -> int:
    """The most tokens that a summarizer reads in one call: half its window, or what its profile says."""
    return min(profile.input_limit // 2, profile.chunk_tokens or profile.input_limit)


def _version_numbers(conversation: Conversation) -> tuple[int, int, int]:
    return conversation.state_version, conversation.boundary_seq, conversation.content_epoch
