"""Decides which messages are held, and updates sums and layout in the same transaction.

A held message stays in the context word for word. It is pinned or protected, or it is the call of a held result, or the
result of a held call (its *tool partner*).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from app.core.model.conversation import Conversation, Message, ProtectedReason, Sums
from app.core.model.errors import PinBudgetExceededError
from app.core.model.policies.goals import states_goal
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.policies.protection import (
    BY_EVENT_TYPE,
    call_ids,
    reasons_within_budget,
    size_of,
    units_of,
    uses_pin_budget,
)
from app.core.model.schemas import schema_named
from app.off_loop import BYTES_PER_ITEM, off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.shared.layouts import lay_out
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.retries import Compute
from app.usecases.shared.shell import Shell

OVER_ALLOTMENT: Final = "over_allotment"
GOALS: Final = "goal_statements"
FARTHEST: Final = 10
"""The longest chain of calls and results from a message to one that is held together with it; usually two."""
MAX_PARTNERS: Final = 500
"""The most earlier messages that are held as tool partners of new ones; the newest are taken."""
READ_AT_ONCE: Final = 5_000
"""Messages that are read at once: some megabytes of text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goals:
    """The messages in which users state goals, as far as the conversation was read for them."""

    seqs: tuple[int, ...] = ()
    through_seq: int = 0


NO_GOALS: Final = Goals()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectionDecision:
    """New messages with their protection, and the stored tool partners that are protected with them."""

    messages: list[Message]
    """The new messages, each with the reason why it is protected, if any."""
    left_out: list[Message]
    """New messages that the policy would protect, but has no room for."""
    tool_partners: list[Message]
    """Stored calls and results that have to be held with their partner, with the reason. They are not written yet."""


async def decide_protection(uow: UnitOfWork, resolved: Resolved, messages: Sequence[Message]) -> ProtectionDecision:
    """Decide which new messages are held and why, and which stored tool partners have to be held with them."""
    stored = await _stored_halves(uow, messages)
    reasons = await protection_reasons(resolved, [*stored, *messages])
    wanted = any(uses_pin_budget(reason) or reason == OVER_ALLOTMENT for reason in reasons.values())
    if wanted and resolved.conversation.last_seq:
        reasons = await protection_reasons(
            resolved, [*stored, *messages], used=await other_held_tokens(uow, resolved, stored)
        )
    made = [replace(message, protected_reason=reasons[message.seq]) for message in messages]
    return ProtectionDecision(
        messages=made,
        left_out=[message for message in made if message.protected_reason == OVER_ALLOTMENT],
        tool_partners=[
            replace(half, protected_reason=reasons[half.seq])
            for half in stored
            if not half.is_protected and uses_pin_budget(reasons[half.seq])
        ],
    )


async def hold_tool_partners(
    uow: UnitOfWork, shell: Shell, resolved: Resolved, partners: Sequence[Message]
) -> Resolved:
    """Store that these messages are held from now on, and update the sums."""
    if not partners:
        return resolved
    total = await uow.messages.set_protection(
        resolved.conversation.id, {half.seq: half.protected_reason for half in partners}
    )
    return shell.resolver(await store_sums(uow, resolved.conversation, total))


async def other_held_tokens(uow: UnitOfWork, resolved: Resolved, messages: Sequence[Message]) -> int:
    """The tokens of all pinned and protected messages but these."""
    estimator = resolved.policy.estimator
    used = await uow.messages.protected_tokens(resolved.conversation.id, estimator)
    own = sum(size_of(message, estimator) for message in messages if uses_pin_budget(message.protected_reason))
    return max(used - own, 0)


async def unit_of(uow: UnitOfWork, message: Message) -> list[Message]:
    """A message with those that can only be held together with it (a tool call and its results), by ``seq``."""
    own = {call for calls in call_ids(message) for call in calls}
    return _in_order([message, *await _rest_of_units(uow, [message], own)])


async def _stored_halves(uow: UnitOfWork, messages: Sequence[Message]) -> list[Message]:
    # A tool's result is held where its call is.
    return await _rest_of_units(uow, messages, {call for message in messages for call in call_ids(message)[1]})


async def _rest_of_units(uow: UnitOfWork, messages: Sequence[Message], calls: set[str]) -> list[Message]:
    """The stored messages that belong to these by their tool calls, directly or through others, by ``seq``."""
    own = {message.seq for message in messages}
    known = {message.seq: message for message in messages}
    others, asked = list[Message](), set[str]()
    for _ in range(FARTHEST):
        new = calls - asked
        if not new or len(known) > len(messages) + MAX_PARTNERS:
            break
        asked |= new
        halves = await uow.messages.other_halves(
            messages[0].conversation_id, new, of=list(known.values()), most=MAX_PARTNERS
        )
        known |= {one.seq: one for one in halves if one.seq not in own and not one.is_command}
        units = [unit for unit in units_of(_in_order(known.values())) if any(one.seq in own for one in unit)]
        others = _in_order([one for unit in units for one in unit if one.seq not in own])
        calls = {call for one in others for ids in call_ids(one) for call in ids}
    return others


def _in_order(messages: Iterable[Message]) -> list[Message]:
    return sorted(messages, key=lambda message: message.seq)


async def protection_reasons(
    resolved: Resolved, messages: Sequence[Message], *, used: int = 0, compute: Compute = off_loop
) -> dict[int, ProtectedReason]:
    """Why each of these messages is protected, by a conversation's policy (``reasons_within_budget``).

    ``compute`` runs the work, which takes long for many messages.
    """
    size = sum(BYTES_PER_ITEM + one.byte_length for one in messages)
    return await compute(_reasons, resolved.policy, messages, resolved.budgets.pin_tokens, used, size=size)


def _reasons(
    policy: CompactionPolicy, messages: Sequence[Message], pin_tokens: int, used: int
) -> dict[int, ProtectedReason]:
    # A function of its own, since ``Results`` would take a ``partial`` for another function at each try.
    return reasons_within_budget(policy, messages, pin_tokens=pin_tokens, used=used)


async def goals_stated(uow: UnitOfWork, resolved: Resolved, known: Goals = NO_GOALS) -> Goals:
    """The messages in which users state goals. Reads only what came after ``known``.

    Reading a long history takes time: call it before the conversation is locked, and once more afterwards.
    """
    conversation, seqs, after = resolved.conversation, [*known.seqs], known.through_seq
    while after < conversation.last_seq:
        texts = await uow.messages.texts_by_role(conversation.id, role="user", after_seq=after, limit=READ_AT_ONCE)
        seqs += await off_loop(_seqs_stating_goals, texts, size=sum(BYTES_PER_ITEM + len(text) for _, text in texts))
        after = texts[-1][0] if len(texts) == READ_AT_ONCE else conversation.last_seq
    return Goals(seqs=tuple(seqs), through_seq=after)


def _seqs_stating_goals(texts: Sequence[tuple[int, str]]) -> list[int]:
    return [seq for seq, content in texts if states_goal(content)]


def asks_for_goals(before: Resolved, after: Resolved) -> bool:
    """Whether a new policy protects goals and the one before did not: then stored messages were never read for them."""
    return GOALS in after.policy.protect and GOALS not in before.policy.protect


async def decide_protection_again(
    uow: UnitOfWork, shell: Shell, resolved: Resolved, goals: Goals = NO_GOALS, *, compute: Compute = off_loop
) -> Resolved:
    """Decide protection again after the policy changed, pins first, in a *locked* conversation.

    Looked at are messages that are held now, and those that the new rules may hold. All others stay compressible,
    however many there are. ``goals`` are the messages that state goals, if the policy before did not ask for them.

    Raises:
        PinBudgetExceededError: The policy has no room for all messages that it holds, and refuses in that case.
    """
    policy = resolved.policy
    candidates = await uow.messages.protectable(
        resolved.conversation.id,
        roles=policy.held_roles,
        event_types=[name for name in BY_EVENT_TYPE if name in policy.protect],
        seqs=goals.seqs,
    )
    calls = {call for message in candidates for ids in call_ids(message) for call in ids}
    messages = _in_order([*candidates, *(await _rest_of_units(uow, candidates, calls) if calls else [])])
    reasons = await protection_reasons(resolved, messages, compute=compute)
    changed = {one.seq: reason for one in messages if (reason := reasons[one.seq]) != one.protected_reason}
    without_room = [message for message in messages if reasons[message.seq] == OVER_ALLOTMENT]
    if without_room and policy.over_allotment == "refuse":
        raise _pins_over_budget_error(resolved, messages, reasons, without_room[0])
    total = await uow.messages.set_protection(resolved.conversation.id, dict(changed))
    summed = shell.resolver(await store_sums(uow, resolved.conversation, total))
    await add_over_allotment_events(uow, shell, summed, [one for one in without_room if one.seq in changed])
    return summed


async def store_sums(uow: UnitOfWork, conversation: Conversation, total: Sums) -> Conversation:
    """Store the sums after they were recomputed."""
    covered = await uow.messages.sums_at(conversation.id, conversation.boundary_seq)
    await uow.conversations.update(conversation.id, total=total, covered=covered)
    return replace(conversation, total=total, covered=covered)


async def renew_layout(uow: UnitOfWork, shell: Shell, resolved: Resolved, *, compute: Compute = off_loop) -> Resolved:
    """The present state, rendered again because pins, anchors or the policy changed. ``compute`` runs the rendering."""
    conversation = resolved.conversation
    if conversation.compressed_state is None or conversation.state_schema is None:
        return resolved
    layout = await lay_out(
        uow,
        resolved,
        schema=schema_named(conversation.state_schema),
        state=conversation.compressed_state,
        boundary_seq=conversation.boundary_seq,
        compute=compute,
    )
    number = conversation.layout_version + 1
    await uow.conversations.update(conversation.id, layout=layout, layout_version=number)
    return shell.resolver(replace(conversation, layout=layout, layout_version=number))


async def over_allotment_error(
    uow: UnitOfWork, resolved: Resolved, decided: ProtectionDecision
) -> PinBudgetExceededError:
    """The error for a new message that the policy would hold for ever but has no room for."""
    estimator, first = resolved.policy.estimator, decided.left_out[0]
    stored = await uow.messages.protected_tokens(resolved.conversation.id, estimator)
    used = stored + sum(size_of(one, estimator) for one in decided.messages if uses_pin_budget(one.protected_reason))
    return _pin_budget_error(
        resolved, first, used, "Nothing was stored. Say it shorter, unpin something, raise pin_share, or set"
    )


def _pins_over_budget_error(
    resolved: Resolved, messages: Sequence[Message], reasons: dict[int, ProtectedReason], first: Message
) -> PinBudgetExceededError:
    used = sum(size_of(one, resolved.policy.estimator) for one in messages if uses_pin_budget(reasons[one.seq]))
    return _pin_budget_error(resolved, first, used, "Nothing was changed. Raise pin_share, or set")


def _pin_budget_error(resolved: Resolved, first: Message, used: int, advice: str) -> PinBudgetExceededError:
    size, limit = size_of(first, resolved.policy.estimator), resolved.budgets.pin_tokens
    return PinBudgetExceededError(
        f"message {first.seq} is one that stays word for word for ever (an objective, constraint, sign-in or goal) and"
        f" has {size} tokens; {used} are held beside it: together more than the {limit} that policy.pin_share allows."
        f" {advice} policy.over_allotment to fold",
        extra={"protected_tokens": used, "size": size, "limit": limit, "seq": first.seq},
    )


async def add_over_allotment_events(
    uow: UnitOfWork, shell: Shell, resolved: Resolved, left_out: Sequence[Message]
) -> None:
    """Add an event for each message that the policy would protect, but whose share is full."""
    if not left_out:
        return
    policy, limit = resolved.policy, resolved.budgets.pin_tokens
    used = await uow.messages.protected_tokens(resolved.conversation.id, policy.estimator)
    event_data: list[tuple[str, dict[str, Any]]] = [
        (
            "context.threshold",
            threshold_event_data(resolved)
            | {"reason": OVER_ALLOTMENT, "message_id": str(one.id), "seq": one.seq}
            | {"size": size_of(one, policy.estimator), "protected_tokens": used, "limit": limit},
        )
        for one in left_out
    ]
    await uow.events.add_many(resolved.conversation.id, event_data, shell.clock.now())


def threshold_event_data(resolved: Resolved) -> dict[str, Any]:
    """The numbers of every ``context.threshold`` event."""
    gauge = resolved.gauge
    return {
        "status": gauge.status,
        "tokens": gauge.tokens,
        "budget": gauge.budget,
        "utilization": gauge.utilization,
    }
