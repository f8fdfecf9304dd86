"""Appends messages to a conversation: the one place where messages are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from itertools import accumulate
from typing import Any, Final
from uuid import UUID

from app.core.model.conversation import Conversation, Message, Sums
from app.core.model.errors import (
    ConversationMovedOnError,
    FieldError,
    ForkInProgressError,
    InvalidInputError,
    TooLargeError,
)
from app.core.model.fieldwise import from_same_fields
from app.core.model.gauge import GaugeStatus
from app.core.planning.triggers import ends_turn
from app.core.text.token_counts import tokens_of
from app.off_loop import off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.claiming import sizes_of
from app.usecases.compaction.pacing import measured_pace
from app.usecases.history.anchoring import NO_ANCHOR_UPDATE, anchor_update, store_anchors
from app.usecases.history.drafts import COUNTED_STATUSES, MessageDraft, message_name, refuse_long
from app.usecases.history.due_anchors import ask_worker, defers_anchors, due_after, find_due_anchors_within
from app.usecases.history.holding import (
    add_over_allotment_events,
    decide_protection,
    hold_tool_partners,
    over_allotment_error,
    renew_layout,
    threshold_event_data,
)
from app.usecases.history.preparing import NOTHING_PREPARED, Prepared
from app.usecases.history.preparing import size_of as size_of_drafts
from app.usecases.ports import NewId
from app.usecases.shared.idempotency import Idem, record
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.retries import Compute
from app.usecases.shared.shell import Shell

FORK_RETRY_AFTER: Final = 2.0
NO_MESSAGE: Final = UUID(int=0)
"""Stands for the last message of a conversation that has none yet."""
RANKS: Mapping[GaugeStatus, int] = {"ok": 0, "warning": 1, "background": 1, "critical": 2, "sync": 2, "over": 3}


async def append(
    uow: UnitOfWork,
    shell: Shell,
    conversation: Conversation,
    drafts: Sequence[MessageDraft],
    *,
    before: Resolved | None = None,
    idem: Idem | None = None,
    is_copy: bool = False,
    prepared: Prepared = NOTHING_PREPARED,
    compute: Compute = off_loop,
) -> tuple[list[Message], Resolved]:
    """Append messages to a *locked* conversation: with ``seq``, weights, running sums, anchors and events.

    Args:
        uow: The transaction.
        shell: The ports.
        conversation: The locked conversation.
        drafts: The messages.
        before: The resolved conversation, if the caller has it.
        idem: The idempotency of a request that only appends; the messages that it made are recorded with it.
        is_copy: The messages are copies of accepted ones, so no policy refuses them.
        prepared: What was computed of the newest of these messages before the transaction.
        compute: Runs the layout, which has to be computed again where an anchor in it changed.

    Returns:
        The messages, and the resolved conversation with them.

    Raises:
        ForkInProgressError: Messages that belong before these are still being copied.
        InvalidInputError: A tool result answers a call that was never made.
        OutdatedError: What was computed before no longer holds.
        PinBudgetExceededError: The policy holds one of the messages but has no room for it, and refuses in that case.
    """
    now = shell.clock.now()
    if not is_copy:
        refuse_while_copied(shell, conversation)
    await _refuse_unknown_calls(uow, conversation, drafts)
    before = before or shell.resolver(conversation)
    written = await _messages_of_drafts(before, drafts, new_id=shell.new_id, now=now)
    effects = prepared.effects_for(conversation, written)
    decided = await decide_protection(uow, before, written)
    if decided.left_out and before.policy.over_allotment == "refuse" and not is_copy:
        raise await over_allotment_error(uow, before, decided)
    messages, halves = decided.messages, decided.tool_partners
    conversation = (await hold_tool_partners(uow, shell, before, halves)).conversation
    sums = list(accumulate((_sums(message) for message in messages), Sums.plus, initial=conversation.total))[1:]
    defers = defers_anchors(conversation)
    moves_layout = any(half.seq <= conversation.boundary_seq for half in halves)
    if not defers and conversation.anchors_due_from is not None:
        conversation, moves_layout = await find_due_anchors_within(uow, shell, conversation, compute=compute), True
    update = NO_ANCHOR_UPDATE if defers else await anchor_update(uow, shell, conversation, messages, effects=effects)
    await uow.messages.append(messages, sums)
    moves_layout |= await store_anchors(uow, conversation, update)
    grown: dict[str, Any] = {
        "anchors_due_from": due_after(conversation, messages) if defers else None,
        "last_seq": messages[-1].seq,
        "last_message_id": messages[-1].id,
        "last_message_at": now,
        "total": sums[-1],
    }
    after = shell.resolver(replace(conversation, **grown))
    if after.policy.adaptive == "on" and not is_copy and ends_turn(messages[-1]):
        grown["pace"] = await measured_pace(uow, after)
        after = shell.resolver(replace(conversation, **grown))
    if moves_layout:
        after = await renew_layout(uow, shell, after, compute=compute)
    created = [
        ("message.created", {"message_id": str(message.id), "seq": message.seq, "role": message.role})
        for message in messages
    ]
    # Everything that is written is sent together with the change of the row.
    grown["last_event"] = (await uow.events.add_next(conversation, created, now))[-1].number
    await record(uow, idem, {"from_seq": messages[0].seq, "to_seq": messages[-1].seq})
    stored = await uow.conversations.update_locked(after.conversation, **grown, **sizes_of(after))
    ask_worker(shell, conversation, stored)
    await _record_threshold(uow, before, after, now)
    await add_over_allotment_events(uow, shell, after, decided.left_out)
    return messages, replace(after, conversation=stored)


def refuse_while_copied(shell: Shell, conversation: Conversation) -> None:
    """Refuse while a fork is copied: a new message would take the ``seq`` of a message that is still to be copied.

    Raises ``ForkInProgressError``.
    """
    if not conversation.is_being_copied:
        return
    shell.outbox.send_later("fork", conversation.id)  # the process that copied it may have died
    raise ForkInProgressError(
        f"the {conversation.forked_through} messages that this conversation begins with are being copied:"
        " send it again in a moment",
        retry_after=FORK_RETRY_AFTER,
    )


def check_expected_last(conversation: Conversation, expected: UUID | None) -> None:
    """Refuse when the conversation moved on since the client looked."""
    if expected is not None and expected != (conversation.last_message_id or NO_MESSAGE):
        raise ConversationMovedOnError(
            f"the last message is {conversation.last_message_id}, not {expected}: read what came since, send again",
            extra={"last_message_id": str(conversation.last_message_id) if conversation.last_message_id else None},
        )


def refuse_too_large(resolved: Resolved, drafts: Sequence[MessageDraft], *, together: bool = False) -> None:
    """Refuse a message that can never fit, before anything is stored, unless the policy serves it elided.

    ``together``: the messages are served either all together or not at all.

    Raises:
        TooLargeError: The message and what is always served together exceed the window, or its texts are too long.
    """
    names = [message_name(index, 1 if together else len(drafts)) for index in range(len(drafts))]
    for draft, name in zip(drafts, names, strict=True):
        refuse_long(draft, name)
    if resolved.policy.oversized == "elide":
        return
    window = _window_in_estimated_tokens(resolved)
    floor = _lasting_tokens(resolved)
    sizes = [_tokens(resolved, draft) for draft in drafts]
    for name, size in [("the message", sum(sizes))] if together else zip(names, sizes, strict=True):
        if floor + size > window:
            limit = max(window - floor, 0)
            served_parts = "state" if resolved.policy.anchor_share is None else "state, anchors"
            raise TooLargeError(
                f"{name} has {size} tokens, at most {limit} fit beside system prompt, {served_parts} and held"
                f" messages in a window of {resolved.budgets.window}: shorten or split it, raise policy.context_window,"
                " or set policy.oversized to elide",
                extra={"limit": limit, "size": size},
            )


def refuse_without_room(resolved: Resolved, drafts: Sequence[MessageDraft]) -> None:
    """Refuse the messages that begin a turn if nothing can make room for them, before anything is stored.

    Raises:
        TooLargeError: Automatic compaction is off, nothing may be cut or elided, and the whole context exceeds the
            window.
    """
    policy, window, size = resolved.policy, resolved.budgets.window, sum(_tokens(resolved, draft) for draft in drafts)
    if policy.oversized == "elide":
        return
    present = resolved.breakdown.total
    if policy.triggers or policy.on_failure != "keep_full" or resolved.conversation.counted(present + size) <= window:
        return
    limit = max(_window_in_estimated_tokens(resolved) - present, 0)
    raise TooLargeError(
        f"the message has {size} tokens, at most {limit} fit beside a context of {present} in a window of"
        f" {window}, and the policy neither compacts by itself nor cuts: compact first, or choose"
        " on_failure: truncate or oversized: elide",
        extra={"limit": limit, "size": size, "breakdown": asdict(resolved.breakdown)},
    )


def _lasting_tokens(resolved: Resolved) -> int:
    return resolved.lasting_tokens + resolved.budgets.state_cap + _lasting_anchor_tokens(resolved)


def _lasting_anchor_tokens(resolved: Resolved) -> int:
    # Anchors without an allotment do not count: they are left out if the whole does not fit. Nor do those above it,
    # which were laid out for a larger budget, by a process with other settings or for another model.
    served, allotted = resolved.breakdown.anchors, resolved.budgets.anchor_tokens
    if allotted is None:
        return 0
    return min(served, allotted) if allotted else served


def _window_in_estimated_tokens(resolved: Resolved) -> int:
    return resolved.conversation.estimated_within(resolved.budgets.window)


def _tokens(resolved: Resolved, draft: MessageDraft) -> int:
    if draft.status not in COUNTED_STATUSES:
        return 0  # it is never served
    weight = draft.computed_weight()
    return tokens_of(weight.tokens, weight.bytes, resolved.policy.estimator)


async def _record_threshold(uow: UnitOfWork, before: Resolved, after: Resolved, now: datetime) -> None:
    was, gauge = before.gauge, after.gauge
    if RANKS[gauge.status] > RANKS[was.status]:
        await uow.events.add(after.conversation.id, "context.threshold", threshold_event_data(after), now)


async def _refuse_unknown_calls(uow: UnitOfWork, conversation: Conversation, drafts: Sequence[MessageDraft]) -> None:
    """Refuse a tool result whose call is neither in the history nor earlier in the same batch."""
    made: set[str] = set()
    asked: dict[str, int] = {}
    for index, draft in enumerate(drafts):
        for part in draft.parts:
            if part.get("type") == "tool_call":
                made.add(str(part["id"]))
            elif part.get("type") == "tool_result" and part["tool_call_id"] not in made:
                asked.setdefault(str(part["tool_call_id"]), index)
    if not asked:
        return
    known = await uow.messages.known_calls(conversation.id, list(asked))
    unknown = {call: index for call, index in asked.items() if call not in known}
    if unknown:
        errors = [
            FieldError(field=f"messages.{index}.parts", message=f"no tool call with id {call!r} in this conversation")
            for call, index in unknown.items()
        ]
        raise InvalidInputError("a tool result answers a call that is not in this conversation", errors=errors)


async def _messages_of_drafts(
    resolved: Resolved, drafts: Sequence[MessageDraft], *, new_id: NewId, now: datetime
) -> list[Message]:
    def write() -> list[Message]:
        first = resolved.conversation.last_seq + 1
        return [
            _message(resolved, draft, seq=seq, new_id=new_id, now=now) for seq, draft in enumerate(drafts, start=first)
        ]

    weighed = all(draft.weight for draft in drafts)
    return await off_loop(write, size=len(drafts) if weighed else size_of_drafts(drafts))


def _message(resolved: Resolved, draft: MessageDraft, *, seq: int, new_id: NewId, now: datetime) -> Message:
    weight = draft.computed_weight()
    return from_same_fields(
        Message,
        draft,
        id=draft.id or new_id(),
        conversation_id=resolved.conversation.id,
        seq=seq,
        token_count=weight.tokens,
        byte_length=weight.bytes,
        created_at=draft.creation_time(now),
    )


def _sums(message: Message) -> Sums:
    """What a message adds to the running sums. Commands, erased messages and superseded replies add nothing."""
    if message.is_command or message.status not in COUNTED_STATUSES:
        return Sums()
    held = message.is_protected
    return Sums(
        messages=1,
        tokens=message.token_count,
        bytes=message.byte_length,
        held_tokens=message.token_count if held else 0,
        held_bytes=message.byte_length if held else 0,
    )
