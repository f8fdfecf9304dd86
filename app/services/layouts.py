"""Laying out a state version for serving: the only way a layout is made in a service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from app.domain.anchors.serving import serve
from app.domain.assembling.layout import layout_of
from app.domain.conversation import Layout, Message
from app.domain.states.state import StateSchema
from app.ports import UnitOfWork
from app.services.resolve import Resolved

MOST_ANCHORS: Final = 4_000
"""Active anchors, the newest, that one layout looks at: bounds the work whatever the history."""


async def lay_out(
    uow: UnitOfWork,
    resolved: Resolved,
    *,
    schema: StateSchema,
    state: Mapping[str, Any],
    boundary_seq: int,
    anchor_room: int | None = None,
) -> Layout:
    """The layout of a state that covers the messages up to ``boundary_seq``.

    Call it in the transaction that writes the version, after anchors were added and changed there. ``anchor_room``
    is the tokens that anchors may take where their allotment is too much (``None``: their allotment).
    """
    conversation, policy = resolved.conversation, resolved.policy
    held = await held_messages(uow, conversation.id, through_seq=boundary_seq)
    active = await uow.anchors.active(conversation.id, through_seq=boundary_seq, limit=MOST_ANCHORS)
    seqs = [message.seq for message in held]
    return layout_of(
        schema,
        state,
        served_as=policy.served_as,
        estimator=policy.estimator,
        held=seqs,
        anchors=serve(
            active,
            through_seq=boundary_seq,
            held=frozenset(seqs),
            room=resolved.budgets.anchor_tokens if anchor_room is None else anchor_room,
            estimator=policy.estimator,
        ),
    )


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
