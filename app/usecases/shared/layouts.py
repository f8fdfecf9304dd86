"""Lays out a state version for serving. All layouts in the service are made here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Any, Final
from uuid import UUID

from app.core.anchors.rendering import FRAME_TOKENS
from app.core.anchors.selection import serve
from app.core.context.drafts import Detail
from app.core.model.anchors import FoundAnchor
from app.core.model.conversation import Layout, Message
from app.core.model.policies.budgets import Budgets
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.policies.protection import call_ids
from app.core.model.segments import ServableSegment
from app.core.model.state import StateSchema
from app.core.segments.digests import MARKER_ELEMENT_TOKENS
from app.core.state.digest_selection import DigestSource
from app.core.state.layout import layout_of, with_digests
from app.core.state.outdated_digests import without_outdated
from app.core.text.token_counts import tokens_of
from app.off_loop import BYTES_PER_ITEM, off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.retries import Compute

MAX_ANCHORS: Final = 4_000
"""The most active anchors, the newest, that one layout uses: bounds the work for any length of history."""
MAX_SEGMENTS: Final = 200
"""The most segments, the newest, that one layout uses; weighing their digests takes about a millisecond each."""
MAX_DETAILED_SEGMENTS: Final = 400
"""The most segments, the newest, that are read in detail for a larger budget."""
MAX_OUTDATED_ANCHORS: Final = 200
"""The most superseded anchors, the newest, that digests must not repeat."""
MIN_DIGEST_TOKENS: Final = 10
"""About the tokens of the shortest line in the digests: no more segments are read than could have a line."""

DigestRoom = Callable[[Layout], int | None]
"""Returns, for a layout without digests, the tokens that digests may take; ``None`` = their allotment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestSegments:
    """The newest segments of a conversation as they are stored."""

    segments: Sequence[ServableSegment] = ()
    total: int = 0
    """The number of all segments, these included."""
    outdated: Sequence[str] = ()
    """Texts that later corrections took back."""


NO_SEGMENTS: Final = NewestSegments()


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutSources:
    """Everything that a layout depends on apart from the state. Equal sources lead to equal layouts."""

    policy: CompactionPolicy
    budgets: Budgets
    locale: str
    boundary_seq: int
    """The last message that the state covers."""
    anchor_room: int | None
    """The tokens that anchors may take; ``None`` = all anchors are served."""
    digest_room: int | None
    """The tokens that digests may take; ``None`` = their allotment."""
    held: Sequence[Message]
    """Held messages up to the boundary."""
    since: date | None
    """The day on which the messages after the boundary begin."""
    active_anchors: Sequence[FoundAnchor]
    """Active anchors up to the boundary."""
    newest_segments: NewestSegments

    @property
    def size(self) -> int:
        """The size of the work in bytes, for ``off_loop``."""
        newest = self.newest_segments
        return BYTES_PER_ITEM * (
            len(self.active_anchors) + len(self.held) + len(newest.segments) + len(newest.outdated)
        )


async def lay_out(
    uow: UnitOfWork,
    resolved: Resolved,
    *,
    schema: StateSchema,
    state: Mapping[str, Any],
    boundary_seq: int,
    given_layout: Layout | None = None,
    compute: Compute = off_loop,
) -> Layout:
    """The layout of a state that covers the messages up to ``boundary_seq``.

    Call it in the transaction that writes the version, after anchors and segments were added and changed there.

    Args:
        uow: The transaction.
        resolved: The conversation, with the policy that decides what is served.
        schema: The schema of the state.
        state: In the shape of the schema's model.
        boundary_seq: The last message that the state covers.
        given_layout: The layout that the state had, if it is not the conversation's present one.
        compute: Runs the computation.
    """
    before = given_layout or resolved.conversation.layout
    digest_room = before.digest_room if before else None
    sources = await layout_sources(
        uow, resolved, schema=schema, boundary_seq=boundary_seq, given_layout=given_layout, digest_room=digest_room
    )
    size = sources.size + sum(map(len, state.values()))
    return await compute(layout_from_sources, sources, schema, state, size=size)


async def layout_sources(
    uow: UnitOfWork,
    resolved: Resolved,
    *,
    schema: StateSchema,
    boundary_seq: int,
    digest_room: int | None,
    anchor_room: int | None = None,
    given_layout: Layout | None = None,
) -> LayoutSources:
    """Read the sources of a layout, in the transaction that writes it.

    Args:
        uow: The transaction.
        resolved: The conversation, with the policy that decides what is served.
        schema: The schema of the state.
        boundary_seq: The last message that the state covers.
        digest_room: The most tokens that digests may take; ``None`` = their allotment.
        anchor_room: The tokens that anchors may take if their allotment is too much; ``None`` = their allotment.
        given_layout: The layout that the state had, if it is not the conversation's present one.
    """
    id_, policy = resolved.conversation.id, resolved.policy
    most = _tokens_for_digests(resolved.budgets, other_tokens=0)
    return LayoutSources(
        policy=policy,
        budgets=resolved.budgets,
        locale=resolved.conversation.locale,
        boundary_seq=boundary_seq,
        anchor_room=_anchor_room(resolved, schema, given_layout) if anchor_room is None else anchor_room,
        digest_room=digest_room,
        held=await held_messages(uow, id_, through_seq=boundary_seq),
        since=await _first_day_uncovered(uow, id_, boundary_seq),
        active_anchors=await uow.anchors.servable(id_, through_seq=boundary_seq, limit=MAX_ANCHORS),
        newest_segments=await _newest_segments(
            uow, resolved, max_tokens=most if digest_room is None else min(most, digest_room)
        ),
    )


def layout_from_sources(
    sources: LayoutSources,
    schema: StateSchema,
    state: Mapping[str, Any],
    room_for_digests: DigestRoom | None = None,
) -> Layout:
    """The layout of a state.

    Args:
        sources: Everything else that the layout depends on.
        schema: The schema of the state.
        state: In the shape of the schema's model.
        room_for_digests: The tokens that digests may take, if that depends on the layout without them.
    """
    policy, held = sources.policy, sources.held
    anchors = serve(
        sources.active_anchors,
        through_seq=sources.boundary_seq,
        held_seqs=frozenset(message.seq for message in held),
        token_limit=sources.anchor_room,
        estimator=policy.estimator,
    )
    layout = layout_of(
        schema,
        state,
        served_as=policy.served_as,
        estimator=policy.estimator,
        held=held,
        since=sources.since,
        anchors=anchors,
        locale=sources.locale,
        markers=bool(policy.levels),
    )
    digest_room = room_for_digests(layout) if room_for_digests else sources.digest_room
    other_tokens = layout.tokens + sum(tokens_of(one.token_count, one.byte_length, policy.estimator) for one in held)
    allotted = _tokens_for_digests(sources.budgets, other_tokens=other_tokens)
    max_tokens = allotted if digest_room is None else min(allotted, digest_room)
    source = _digestible_within(
        policy, sources.locale, sources.newest_segments, through_seq=sources.boundary_seq, max_tokens=max_tokens
    )
    state_texts = (text for value in state.values() for text in ([value] if isinstance(value, str) else value))
    source = replace(source, block_texts=[*state_texts, *(anchor.content for anchor in anchors.shown)])
    return with_digests(
        layout, source, max_tokens=max_tokens, later_digest_budget=digest_room, served_as=policy.served_as
    )


def _tokens_for_digests(budgets: Budgets, *, other_tokens: int) -> int:
    # If anchors and pins leave no room, there is still the marker that leads to all segments.
    return max(budgets.digest_room(beside=other_tokens), min(budgets.digest_tokens, MARKER_ELEMENT_TOKENS))


def _anchor_room(resolved: Resolved, schema: StateSchema, given_layout: Layout | None) -> int | None:
    allotted, earlier = resolved.budgets.anchor_tokens, given_layout or resolved.conversation.layout
    if allotted != 0 or earlier is None or schema.name == resolved.schema.name:
        return allotted
    if earlier.anchors and not earlier.anchors_behind_marker:
        return None
    # The tokens of each line are rounded up, so all lines together need more than the whole element was counted with.
    return earlier.anchor_tokens + earlier.anchors.count("\n") + FRAME_TOKENS if earlier.anchors else 0


async def digestible(uow: UnitOfWork, resolved: Resolved, *, through_seq: int, max_tokens: int) -> DigestSource:
    """The newest segments up to that ``seq``: as many as could have a line within ``max_tokens``.

    If the layout shows some of them, only these: no others are served until the next layout.
    """
    layout = resolved.conversation.layout
    newest = await _newest_segments(
        uow, resolved, max_tokens=max_tokens, shown=[one.id for one in layout.segments] if layout else ()
    )
    work = partial(_digestible_within, through_seq=through_seq, max_tokens=max_tokens)
    return await off_loop(
        work, resolved.policy, resolved.conversation.locale, newest, size=BYTES_PER_ITEM * len(newest.segments)
    )


async def _newest_segments(
    uow: UnitOfWork, resolved: Resolved, *, max_tokens: int, shown: Sequence[str] = ()
) -> NewestSegments:
    id_, limit = resolved.conversation.id, _segment_limit(max_tokens)
    if max_tokens <= 0 or not resolved.policy.levels:
        return NO_SEGMENTS
    read = uow.segments.among_newest(id_, shown, limit=limit) if shown else uow.segments.newest(id_, limit=limit)
    segments = await read
    if not (segments or shown):
        return NO_SEGMENTS
    return NewestSegments(
        segments=segments, total=await uow.segments.count(id_), outdated=await _superseded_texts(uow, resolved)
    )


def _segment_limit(max_tokens: int) -> int:
    return min(max_tokens // MIN_DIGEST_TOKENS + 1, MAX_SEGMENTS)


def _digestible_within(
    policy: CompactionPolicy, locale: str, stored: NewestSegments, *, through_seq: int, max_tokens: int
) -> DigestSource:
    source = DigestSource(levels=policy.levels, estimator=policy.estimator, locale=locale)
    if max_tokens <= 0:
        return source
    newest = stored.segments[-_segment_limit(max_tokens) :]
    covered = [segment for segment in newest if segment.to_seq <= through_seq]
    if newest and not covered:
        return source
    total = stored.total - (len(newest) - len(covered))
    return replace(source, segments=without_outdated(covered, stored.outdated), total=total)


async def detail_of(uow: UnitOfWork, resolved: Resolved) -> Detail:
    """The newest covered segments with all levels.

    They are the same for every budget, so that a larger one only adds.
    """
    id_ = resolved.conversation.id
    found = await uow.segments.newest(id_, limit=MAX_DETAILED_SEGMENTS, whole=True)
    if not found:
        return Detail()
    return Detail(segments=tuple(await _without_outdated(uow, resolved, found)), total=await uow.segments.count(id_))


async def _without_outdated(
    uow: UnitOfWork, resolved: Resolved, segments: Sequence[ServableSegment]
) -> list[ServableSegment]:
    outdated = await _superseded_texts(uow, resolved)
    return await off_loop(without_outdated, segments, outdated, size=BYTES_PER_ITEM * len(segments))


async def _superseded_texts(uow: UnitOfWork, resolved: Resolved) -> list[str]:
    return await uow.anchors.superseded_texts(resolved.conversation.id, limit=MAX_OUTDATED_ANCHORS)


async def _first_day_uncovered(uow: UnitOfWork, conversation_id: UUID, boundary_seq: int) -> date | None:
    found = await uow.messages.at_seqs(conversation_id, [boundary_seq, boundary_seq + 1])
    return found[-1].created_at.date() if found else None


async def held_messages(uow: UnitOfWork, conversation_id: UUID, *, through_seq: int) -> list[Message]:
    """Held messages up to that ``seq``, in order. If one half of a tool pair is held, so is the other."""
    held = await uow.messages.held(conversation_id, through_seq=through_seq)
    calls = {call for message in held for ids in call_ids(message) for call in ids}
    halves = await uow.messages.other_halves(conversation_id, calls, of=held)
    known = {message.seq for message in held}
    others = [one for one in halves if one.seq <= through_seq and one.seq not in known and one.is_part_of_talk]
    return sorted([*held, *others], key=lambda message: message.seq)
