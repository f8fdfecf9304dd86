"""When a conversation is compacted: the first trigger of its policy that is due, or none.

``first_due_trigger`` decides whether to compact. It is pure: the caller provides the numbers.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from app.core.model.conversation import MAX_WAIT, Message, QuietPeriod
from app.core.model.policies.budgets import Budgets
from app.core.model.policies.policy import CompactionPolicy, Moment, Trigger

FLOOR_MESSAGES = 100  # messages before a compaction is tried again if held messages alone exceed the target


def first_due_trigger(
    policy: CompactionPolicy,
    budgets: Budgets,
    *,
    moments: Collection[Moment],
    tokens: int,
    messages: int,
    last_seq: int,
    quiet: QuietPeriod,
    now: datetime,
) -> Trigger | None:
    """The first trigger in the policy's order that is due at one of these moments, or ``None``.

    Args:
        policy: The resolved policy.
        budgets: Its shares in tokens.
        moments: What happens now: ``before_call`` before the chat model is asked, ``between_calls`` before it gets a
            tool's result, ``stored`` for a message inside a turn, or the result of a function below.
        tokens: The size of the context, including the new message.
        messages: How many messages follow the boundary, including the new one.
        last_seq: The newest message.
        quiet: The quiet period, in which nothing is due.
        now: The present moment.
    """
    if not quiet_over(quiet, budgets, tokens=tokens, last_seq=last_seq, now=now):
        return None
    candidates = (trigger for trigger in policy.triggers if trigger.on in moments)
    return next((item for item in candidates if item.at.reached(budgets, tokens=tokens, messages=messages)), None)


def ends_turn(last: Message) -> bool:
    """Whether a turn ends with this message: it does with an assistant's message that makes no call."""
    return last.role == "assistant" and not any(part.get("type") == "tool_call" for part in last.parts)


def moments_of_append(policy: CompactionPolicy, *, turn_is_over: bool) -> frozenset[Moment]:
    """The moments of a message that a client appends: it is stored, and may end a turn.

    No model call follows, so if the policy has no trigger on ``stored``, its inline triggers count too.
    """
    ended: frozenset[Moment] = frozenset({"completed"}) if turn_is_over else frozenset()
    return _moments_of_stored_message(policy) | ended


def moments_of_reply(*, interrupted: bool) -> frozenset[Moment]:
    """The moments at the end of a chat turn: a reply is stored, and the turn is complete or interrupted."""
    return frozenset({"stored", "interrupted" if interrupted else "completed"})


def moments_at_rest(policy: CompactionPolicy, end: Moment) -> frozenset[Moment]:
    """The moments for the sweeper and after a change of the policy: ``stored``, and how the last turn ended."""
    return _moments_of_stored_message(policy) | {end}


def quiet_over(quiet: QuietPeriod, budgets: Budgets, *, tokens: int, last_seq: int, now: datetime) -> bool:
    """Whether a quiet period is over: a new message has come, the context has grown, and the time has passed.

    A context above the budget has grown enough, since it would be cut: the period may come from a larger budget, of a
    process with other settings or of another model. A period that would last longer than ``MAX_WAIT`` is over too: it
    was written by a process with a wrong clock.
    """
    has_grown = tokens >= quiet.until_tokens or tokens > budgets.budget
    is_time = quiet.until is None or not now < quiet.until <= now + MAX_WAIT
    return last_seq > quiet.until_seq and has_grown and is_time


def trigger_tokens(policy: CompactionPolicy, budgets: Budgets) -> int | None:
    """The tokens from which on a compaction is due without a new message, for the sweeper's index; ``None`` = never."""
    firsts = (trigger.at.first_tokens(budgets) for trigger in _triggers_at_rest(policy))
    return min((first for first in firsts if first is not None), default=None)


def trigger_messages(policy: CompactionPolicy) -> int | None:
    """The messages after the boundary from which on one is due without a new message; ``None`` = never."""
    firsts = (trigger.at.first_messages for trigger in _triggers_at_rest(policy))
    return min((first for first in firsts if first is not None), default=None)


def quiet_after(
    policy: CompactionPolicy, budgets: Budgets, *, seen_seq: int, predicted_tokens: int, lasting_floor: bool = False
) -> QuietPeriod:
    """The quiet period after a compaction that was applied, or that found nothing more to fold.

    Args:
        policy: The resolved policy.
        budgets: Its shares in tokens.
        seen_seq: The newest message when the compaction was planned.
        predicted_tokens: The size of the context now, as triggers measure it.
        lasting_floor: Whether held messages alone exceed the target. More messages do not change that, so the period
            lasts for many messages, unless the policy or a pin changes, or an earlier version is restored.
    """
    return QuietPeriod(
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
