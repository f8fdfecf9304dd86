"""Decides, when a message is appended, whether it is held, that is, served verbatim even after it is covered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from app.core.model.conversation import Message, ProtectedReason, Role
from app.core.model.policies.goals import states_goal
from app.core.model.policies.policy import CompactionPolicy
from app.core.text.budget import Budget
from app.core.text.token_counts import Estimator, tokens_of

BY_EVENT_TYPE: Final[Mapping[str, ProtectedReason]] = {
    "initial_objective": "initial_objective",
    "constraint": "explicit_constraint",
    "auth_checkpoint": "authentication",
    "goal": "goal_statement",
}
"""The reason for which a message of an event type is held, if the policy protects that type."""
DEMANDS: Final = ("initial_objective", "constraint", "goal")
"""The event types of messages in which a user sets a constraint or a goal."""


def protected_reason(
    policy: CompactionPolicy, *, role: Role, turn: int, event_type: str = "casual", content: str = ""
) -> ProtectedReason:
    """The reason for which the policy's rules hold a message; ``compressible`` if they do not.

    Args:
        policy: ``protect`` and ``held_roles`` decide.
        role: The message's role.
        turn: Its 0-based position.
        event_type: The event type that its client gave it.
        content: Its text; only a user's message can state a goal.
    """
    if role in policy.held_roles:
        return "system"
    if turn == 0 and "turn_0" in policy.protect:
        return "initial_objective"
    if event_type in policy.protect and event_type in BY_EVENT_TYPE:
        return BY_EVENT_TYPE[event_type]
    if role == "user" and "goal_statements" in policy.protect and states_goal(content):
        return "goal_statement"
    return "compressible"


def reasons_within_budget(
    policy: CompactionPolicy, messages: Sequence[Message], *, pin_tokens: int, used: int = 0
) -> dict[int, ProtectedReason]:
    """The reason for which each of these messages is held, by ``seq``. Pins get room first, then the rules, in order.

    Args:
        policy: The policy with the rules.
        messages: The messages to be decided.
        pin_tokens: Tokens for pinned and protected messages together (``Budgets.pin_tokens``).
        used: Tokens of pinned and protected messages that are not decided here.

    Returns:
        A message for which there is no room left is ``over_allotment`` and not held. A tool call and its results are
        held together or not at all. Messages held by their role take no room. Commands, erased messages and replies
        that were replaced by others are ``compressible``.
    """
    reasons: dict[int, ProtectedReason] = {}
    remaining = Budget(pin_tokens - used)
    units = units_of([message for message in messages if message.is_part_of_talk and message.status != "superseded"])
    for unit in sorted(units, key=lambda unit: (not any(one.is_pinned for one in unit), unit[0].seq)):
        wanted = _wanted_reasons(policy, unit)
        size = sum(size_of(one, policy.estimator) for one in unit if uses_pin_budget(wanted[one.seq]))
        if remaining.takes(size):
            reasons |= wanted
        else:
            reasons |= {one.seq: _reason_over_budget(policy, one, wanted[one.seq]) for one in unit}
    return {message.seq: reasons.get(message.seq, "compressible") for message in messages}


def units_of(messages: Sequence[Message]) -> list[list[Message]]:
    """Messages that can only be held together: a tool call with its results; any other message alone.

    A result belongs to the last earlier call with its id, since ids may be used again.
    """
    return [[messages[number] for number in unit] for unit in call_groups([call_ids(message) for message in messages])]


def call_partners(places: Mapping[int, tuple[Collection[str], Collection[str]]], of: frozenset[int]) -> set[int]:
    """The messages that can only be held together with one of these, by the rule of ``units_of``.

    Args:
        places: The calls that each message makes, and those that it answers, by ``seq``.
        of: The ``seq``s of some of them.
    """
    seqs = sorted(places)
    units = ({seqs[number] for number in unit} for unit in call_groups([places[seq] for seq in seqs]))
    return {seq for unit in units if not unit.isdisjoint(of) for seq in unit} - of


def call_groups(calls: Sequence[tuple[Collection[str], Collection[str]]]) -> list[list[int]]:
    """The indexes of messages in groups that belong together, each group in order, those with the first messages first.

    ``calls`` are the calls that each message makes, and those that it answers.
    """
    above = list(range(len(calls)))  # for each message an earlier one of its unit, or itself if it is the first

    def first(number: int) -> int:
        while above[number] != number:
            above[number] = number = above[above[number]]
        return number

    caller: dict[str, int] = {}
    for number, (made, answered) in enumerate(calls):
        for call in answered:
            if call in caller:
                one, other = sorted((first(number), first(caller[call])))
                above[other] = one
        caller.update(dict.fromkeys(made, number))
    units: dict[int, list[int]] = {}
    for number in range(len(calls)):
        units.setdefault(first(number), []).append(number)
    return list(units.values())


def call_ids(message: Message) -> tuple[list[str], list[str]]:
    """The ids of the tool calls that a message makes, and the ids of those that it answers."""
    made = [str(part.get("id")) for part in message.parts if part.get("type") == "tool_call"]
    answered = [str(part.get("tool_call_id")) for part in message.parts if part.get("type") == "tool_result"]
    return made, answered


def uses_pin_budget(reason: ProtectedReason) -> bool:
    """Whether a message held for this reason counts against ``pin_share``."""
    return reason not in {"compressible", "over_allotment", "system"}


def size_of(message: Message, estimator: Estimator) -> int:
    """The tokens of a message, by the policy's estimator."""
    return tokens_of(message.token_count, message.byte_length, estimator)


def _wanted_reasons(policy: CompactionPolicy, unit: Sequence[Message]) -> dict[int, ProtectedReason]:
    own = {one.seq: _reason_by_itself(policy, one) for one in unit}
    # A message that is not held by itself is held with the other half of its unit.
    shared: ProtectedReason = next((reason for reason in own.values() if uses_pin_budget(reason)), "compressible")
    return {seq: shared if reason == "compressible" else reason for seq, reason in own.items()}


def _reason_by_itself(policy: CompactionPolicy, message: Message) -> ProtectedReason:
    if message.is_pinned:
        return "pinned"
    return protected_reason(
        policy,
        role=message.role,
        turn=message.turn,
        event_type=message.event_type,
        content=message.content,
    )


def _reason_over_budget(policy: CompactionPolicy, message: Message, wanted: ProtectedReason) -> ProtectedReason:
    if message.role in policy.held_roles:
        return "system"
    return (
        "over_allotment"
        if uses_pin_budget(wanted) and uses_pin_budget(_reason_by_itself(policy, message))
        else "compressible"
    )
