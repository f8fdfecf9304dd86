"""When a conversation is compacted: the first trigger of its policy that is due, or none.

``first_due_trigger`` is where the decision to compact is taken. It is pure: the caller brings the numbers.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from app.core.model.conversation import Quiet
from app.core.model.policies.policy import Budgets, CompactionPolicy, Moment, Trigger

FLOOR_MESSAGES = 100  # messages that a floor above the target is not tried again for


def first_due_trigger(
    policy: CompactionPolicy,
    budgets: Budgets,
    *,
    moments: Collection[Moment],
    tokens: int,
    messages: int,
    last_seq: int,
    quiet: Quiet,
    now: datetime,
) -> Trigger | None:
    """The first trigger in the policy's order that is due at one of these moments, or ``None``.

    Args:
        policy: The resolved policy.
        budgets: Its shares in tokens.
        moments: What it is now: ``before_call`` before the chat model is asked, or those of the functions below.
        tokens: Numerator of utilization, the new message included.
        messages: Messages after the boundary, the new one included.
        last_seq: The newest message.
        quiet: When nothing triggers.
        now: The present moment.
    """
    if not quiet_over(quiet, tokens=tokens, last_seq=last_seq, now=now):
        return None
    asked = (trigger for trigger in policy.triggers if trigger.on in moments)
    return next((item for item in asked if item.at.reached(budgets, tokens=tokens, messages=messages)), None)


def moments_of_append(policy: CompactionPolicy, *, turn_is_over: bool) -> frozenset[Moment]:
    """What a client's own append is: stored, perhaps the end of a turn.

    Nobody calls a model then, so that an inline trigger counts too where the policy has no stored one.
    """
    ended: frozenset[Moment] = frozenset({"completed"}) if turn_is_over else frozenset()
    return _moments_of_stored_message(policy) | ended


def moments_of_reply(*, interrupted: bool) -> frozenset[Moment]:
    """What the end of a chat turn is: a stored reply, complete or interrupted."""
    return frozenset({"stored", "interrupted" if interrupted else "completed"})


def moments_at_rest(policy: CompactionPolicy, end: Moment) -> frozenset[Moment]:
    """What the sweeper, or a change of the policy, may claim for: a stored message, and how the newest turn ended."""
    return _moments_of_stored_message(policy) | {end}


def quiet_over(quiet: Quiet, *, tokens: int, last_seq: int, now: datetime) -> bool:
    """Whether a quiet period is over: by a new message, by weight, and by time."""
    return last_seq > quiet.until_seq and tokens >= quiet.until_tokens and (quiet.until is None or now >= quiet.until)


def trigger_tokens(policy: CompactionPolicy, budgets: Budgets) -> int | None:
    """The smallest context that is due by itself, for the sweeper's index; ``None`` = never."""
    firsts = (trigger.at.first_tokens(budgets) for trigger in _triggers_at_rest(policy))
    return min((first for first in firsts if first is not None), default=None)


def trigger_messages(policy: CompactionPolicy) -> int | None:
    """The smallest number of messages after the boundary that is due by itself; ``None`` = never."""
    firsts = (trigger.at.first_messages for trigger in _triggers_at_rest(policy))
    return min((first for first in firsts if first is not None), default=None)


def quiet_after(
    policy: CompactionPolicy, budgets: Budgets, *, seen_seq: int, predicted_tokens: int, lasting_floor: bool = False
) -> Quiet:
    """The quiet period that a compaction begins which was applied, or found nothing (more) to do.

    Args:
        policy: The resolved policy.
        budgets: Its shares in tokens.
        seen_seq: The newest message that the plan had seen.
        predicted_tokens: What the context weighs now, as evaluation will see it.
        lasting_floor: What is held alone is above the target: given up for many messages, since more of them change
            nothing about it. A change of policy or pins, or a restore, ends that.
    """
    return Quiet(
        until_seq=seen_seq + (FLOOR_MESSAGES if lasting_floor else 0),
        until_tokens=predicted_tokens + budgets.share(policy.minimum_progress),
        reason="irreducible_floor" if lasting_floor else "applied",
    )


def _moments_of_stored_message(policy: CompactionPolicy) -> frozenset[Moment]:
    has_stored = any(trigger.on == "stored" for trigger in policy.triggers)
    return frozenset({"stored"} if has_stored else {"stored", "before_call"})


def _triggers_at_rest(policy: CompactionPolicy) -> list[Trigger]:
    moments = _moments_of_stored_message(policy) | {"completed", "interrupted"}
    return [trigger for trigger in policy.triggers if trigger.on in moments]
