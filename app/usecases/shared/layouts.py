"""Laying out a state version for serving: the only way a layout is made in a service."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final
from uuid import UUID

from app.core.anchors.serving import Served, serve
from app.core.context.drafts import Detail
from app.core.model.conversation import Layout, Message
from app.core.model.policies.allotments import digest_room
from app.core.model.records import Page
from app.core.model.segments import LEVELS, Segment
from app.core.model.state import StateSchema
from app.core.segments.digests import WAY_BACK
from app.core.state.digesting import Digestible
from app.core.state.layout import layout_of, with_digests
from app.core.state.outdated_digests import without_outdated
from app.core.text.token_counts import tokens_of
from app.off_loop import AN_ITEM, off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.shared.resolve import Resolved

MOST_ANCHORS: Final = 4_000
"""Active anchors, the newest, that one layout looks at: bounds the work whatever the history."""
MOST_SEGMENTS: Final = 200
"""Segments, the newest, likewise; weighing their digests takes about a millisecond each."""
MOST_DETAILED: Final = 400
"""Segments, the newest, that a larger budget serves more of."""
"""Segments: more than this are looked at off the event loop."""
MOST_OUTDATED: Final = 200
"""Superseded anchors, the newest, that digests must not repeat."""
LEAST_DIGEST: Final = 10
"""Tokens of about the shortest line in the digests: no more segments are read than could have one."""

DigestRoom = Callable[[Layout], int | None]
"""From a layout without digests to the tokens that these may take; ``None``: their allotment."""


async def lay_out(
    uow: UnitOfWork,
    resolved: Resolved,
    *,
    schema: StateSchema,
    state: Mapping[str, Any],
    boundary_seq: int,
    anchor_room: int | None = None,
    room_for_digests: DigestRoom | None = None,
    standing: Layout | None = None,
) -> Layout:
    """The layout of a state that covers the messages up to ``boundary_seq``.

    Call it in the transaction that writes the version, after anchors and segments were added and changed there.

    Args:
        uow: The transaction.
        resolved: The conversation, with the policy that decides what is served.
        schema: Of the state.
        state: In the shape of the schema's model.
        boundary_seq: The last message that the state covers.
        anchor_room: Tokens that anchors may take where their allotment is too much; ``None``: their allotment.
        room_for_digests: What digests may take; without it, what the conversation's present layout keeps to.
        standing: The layout that the state had, where it is not the conversation's present one.
    """
    conversation, policy = resolved.conversation, resolved.policy
    held = await held_messages(uow, conversation.id, through_seq=boundary_seq)
    active = await uow.anchors.servable(conversation.id, through_seq=boundary_seq, limit=MOST_ANCHORS)
    seqs = [message.seq for message in held]

    def served() -> tuple[Served, Layout]:
        anchors = serve(
            active,
            through_seq=boundary_seq,
            held=frozenset(seqs),
            room=_anchor_room(resolved, schema, standing) if anchor_room is None else anchor_room,
            estimator=policy.estimator,
        )
        layout = layout_of(
            schema,
            state,
            served_as=policy.served_as,
            estimator=policy.estimator,
            held=held,
            anchors=anchors,
            locale=conversation.locale,
            markers=bool(policy.levels),
        )
        return anchors, layout

    size = AN_ITEM * (len(active) + len(held) + sum(map(len, state.values())))
    anchors, layout = await off_loop(served, size=size)
    kept = room_for_digests(layout) if room_for_digests else _kept_room(conversation.layout)
    beside = layout.tokens + sum(tokens_of(one.token_count, one.byte_length, policy.estimator) for one in held)
    # Where anchors and pins leave no room for digests, the marker that leads to them all is served nevertheless.
    allotted = max(digest_room(resolved.budgets, beside=beside), min(resolved.budgets.digest_tokens, WAY_BACK))
    room = allotted if kept is None else min(allotted, kept)
    source = await digestible(uow, resolved, through_seq=boundary_seq, room=room)
    told = (text for value in state.values() for text in ([value] if isinstance(value, str) else value))
    source = replace(source, said=[*told, *(anchor.content for anchor in anchors.shown)])
    work = partial(with_digests, layout, source, room=room, kept=kept, served_as=policy.served_as)
    return await off_loop(work, size=size + AN_ITEM * len(source.segments))


def _anchor_room(resolved: Resolved, schema: StateSchema, standing: Layout | None) -> int | None:
    """Their allotment; where a change of preset left none, what they had, until a compaction takes them over."""
    allotted, had = resolved.budgets.anchor_tokens, standing or resolved.conversation.layout
    if allotted == 0 and had is not None and schema.name != resolved.schema.name:
        return had.anchor_tokens
    return allotted


async def digestible(uow: UnitOfWork, resolved: Resolved, *, through_seq: int, room: int) -> Digestible:
    """The newest segments up to that ``seq``: as many as could have a line in so many tokens."""
    policy, locale = resolved.policy, resolved.conversation.locale
    source = Digestible(levels=policy.levels, estimator=policy.estimator, locale=locale)
    if room <= 0 or not source.levels:
        return source
    newest = await uow.segments.newest(resolved.conversation.id, limit=min(room // LEAST_DIGEST + 1, MOST_SEGMENTS))
    covered = [segment for segment in newest if segment.to_seq <= through_seq]
    if not covered:
        return source
    total = await uow.segments.count(resolved.conversation.id) - (len(newest) - len(covered))
    return replace(source, segments=await _present(uow, resolved, covered), total=total)


async def detail_of(uow: UnitOfWork, resolved: Resolved) -> Detail:
    """The newest covered segments with all their levels; as many whatever the budget, so that more adds to less."""
    id_ = resolved.conversation.id
    found = await uow.segments.newest(id_, limit=MOST_DETAILED, levels=LEVELS)
    if not found:
        return Detail()
    return Detail(segments=tuple(await _present(uow, resolved, found)), total=await uow.segments.count(id_))


async def _present(uow: UnitOfWork, resolved: Resolved, segments: Sequence[Segment]) -> list[Segment]:
    """The segments without what corrections took back."""
    page = Page(limit=MOST_OUTDATED, order="desc")
    outdated, _ = await uow.anchors.page(resolved.conversation.id, page, status="superseded")
    work = partial(without_outdated, segments, [one.content for one in outdated])
    return await off_loop(work, size=AN_ITEM * len(segments))


def _kept_room(layout: Layout | None) -> int | None:
    return layout.digest_room if layout else None


async def held_messages(uow: UnitOfWork, conversation_id: UUID, *, through_seq: int) -> list[Message]:
    """Held messages up to that ``seq``, in order; a held half of a tool pair holds the other half."""
    held = await uow.messages.held(conversation_id, through_seq=through_seq)
    calls = call_ids(held)
    if not calls:
        return held
    halves = await uow.messages.halves(conversation_id, sorted(calls))
    known = {message.seq for message in held}
    others = [one for one in halves if one.seq <= through_seq and one.seq not in known and _is_there(one)]
    return sorted([*held, *others], key=lambda message: message.seq)


def _is_there(message: Message) -> bool:
    return not message.is_command and message.status != "erased"


def call_ids(messages: Sequence[Message]) -> set[str]:
    """Ids of the tool calls that these messages make or answer."""
    keys = {"tool_call": "id", "tool_result": "tool_call_id"}
    return {
        str(part[key])
        for message in messages
        for part in message.parts
        if (key := keys.get(str(part.get("type")))) and part.get(key) is not None
    }
