"""When a conversation is compacted and what may be folded: one frozen, validated value, and its arithmetic.

``evaluate`` is where the decision to compact is taken. It is pure: the caller brings the numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from app.domain.conversation import Quiet
from app.domain.errors import FieldError
from app.domain.records import Fold, FoldRequest
from app.domain.tokens import Estimator

Moment = Literal["stored", "before_call", "completed", "interrupted"]
TriggerName = Literal["background", "sync", "max_tokens", "max_messages", "completion", "interrupted"]
Protect = Literal["turn_0", "initial_objective", "constraint", "auth_checkpoint", "goal", "goal_statements"]

Share = Annotated[float, Field(gt=0, le=1)]
KEEP_MAX = 1_000  # keeps are read from one bounded outline of the tail (services.compaction)
RESERVE_MAX = 4_096  # a chat reply rarely needs more; see engine.md, section 3
RESERVE_SHARE = Fraction(1, 10)
STATE_SHARE = Fraction(12, 100)  # so that a small window is not filled by its own state
CAP_FACTOR = 2


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Threshold(_Frozen):
    """Where a trigger fires: exactly one of a share of the budget, a share of the window, or tokens.

    Shares fire at greater or equal, ``tokens`` at greater.
    """

    share: Share | None = None
    window: Share | None = None
    tokens: Annotated[int, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if sum(value is not None for value in (self.share, self.window, self.tokens)) != 1:
            raise ValueError('give exactly one of {"share": 0–1}, {"window": 0–1}, {"tokens": n}')
        return self

    def first_tokens(self, budgets: Budgets) -> int:
        """The smallest numerator of utilization at which this fires."""
        if self.tokens is not None:
            return self.tokens + 1
        base = budgets.budget if self.share is not None else budgets.window
        return math.ceil(_exact(self.share or self.window or 0) * base)


class Keep(_Frozen):
    """What stays verbatim at the end of the conversation: each number is a minimum."""

    turns: Annotated[int, Field(ge=0, le=KEEP_MAX)] = 0
    messages: Annotated[int, Field(ge=0, le=KEEP_MAX)] = 0
    tokens: Annotated[int, Field(ge=0)] = 0


class Trigger(_Frozen):
    """One reason to compact: ``name`` is the word recorded on the compaction."""

    name: TriggerName
    on: Moment
    at: Threshold
    run: Literal["background", "inline"]
    keep_turns: Annotated[int, Field(ge=0, le=KEEP_MAX)] = 0
    keep_messages: Annotated[int, Field(ge=0, le=KEEP_MAX)] = 0
    keep_tokens: Annotated[int, Field(ge=0)] = 0
    fold: Fold = "to_target"

    @model_validator(mode="after")
    def _somebody_waits_for_inline(self) -> Self:
        expected = "background" if self.on == "stored" else "inline"
        if self.run != expected:
            raise ValueError(f'a trigger on "{self.on}" runs "{expected}", not "{self.run}"')
        return self

    def request(self) -> FoldRequest:
        """What a compaction by this trigger is asked to fold."""
        return FoldRequest(
            fold=self.fold,
            keep_turns=self.keep_turns,
            keep_messages=self.keep_messages,
            keep_tokens=self.keep_tokens,
        )


class CompactionPolicy(_Frozen):
    """Everything that decides about a conversation's context. A preset is one such value."""

    state_schema: Literal["session"] = "session"
    triggers: tuple[Trigger, ...] = ()
    target: Share = 0.60
    """Share of the budget that ``to_target`` folds down to."""
    manual_keep: Keep = Keep(turns=1)
    context_window: Annotated[int, Field(ge=1_000, le=100_000_000)] | None = None
    """The limit in tokens; ``None`` = the model's input limit."""
    window_share: Share = 0.85
    output_reserve: Annotated[int, Field(ge=0)] | None = None
    """Tokens kept free for the reply; ``None`` = min(4 096, 0.10 × limit)."""
    estimator: Estimator = "script"
    state_tokens: Annotated[int, Field(ge=50, le=100_000)] = 800
    """How large a state should be; at most 0.12 × budget, hard cap twice that."""
    served_as: Literal["pair", "assistant"] = "pair"
    held_roles: tuple[Literal["system"], ...] = ("system",)
    protect: tuple[Protect, ...] = ("turn_0",)
    """Turn 0's message, event types, and goal statements found by rule: held verbatim for ever."""
    anchor_share: Annotated[float, Field(ge=0, le=1)] | None = 0.15
    """Share of the budget for anchors; ``None`` = all the room there is, and what does not fit rejects."""
    pin_share: Annotated[float, Field(ge=0, le=1)] = 0.10
    """Share of the budget for messages that are pinned or protected (held system messages apart)."""
    oversized: Literal["refuse", "elide"] = "refuse"
    """A message that can never fit: refused, or stored whole and served without its middle."""
    fallback_model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Asked once when the summarizer's retry was refused too."""
    on_failure: Literal["truncate", "keep_full"] = "truncate"
    on_disconnect: Literal["finish", "interrupt"] = "finish"
    summarizer: Literal["compaction_model", "chat_model"] = "compaction_model"
    instructions: Annotated[str, Field(max_length=4_000)] = ""
    """Further words for the summarizer."""
    minimum_progress: Annotated[float, Field(ge=0, le=1)] = 0.05
    """The rise, as a share of the budget, that ends a quiet period."""
    sync_deadline: Annotated[float, Field(gt=0, le=300)] = 20.0
    """Seconds that a turn spends on waiting and compacting together."""
    calls_per_chunk: Annotated[int, Field(ge=1, le=20)] = 6
    """Model calls per chunk outside a turn: the ladder, halving and bisection together."""
    calls_per_hour: Annotated[int, Field(ge=1, le=100_000)] = 40
    """Metered model calls of this conversation's compactions within an hour."""

    @field_validator("triggers")
    @classmethod
    def _names_once(cls, triggers: tuple[Trigger, ...]) -> tuple[Trigger, ...]:
        if len({trigger.name for trigger in triggers}) != len(triggers):
            raise ValueError("each name may stand once")
        return triggers


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """The policy's shares in tokens, each rounded down. 4 000 gives 3 600, 3 060, target 1 836."""

    limit: int
    window: int
    budget: int
    target: int
    state_tokens: int
    state_cap: int
    anchor_tokens: int | None
    """The room for anchors; ``None`` = all there is."""
    pin_tokens: int

    def share(self, share: float) -> int:
        """A share of the budget in tokens, rounded down."""
        return math.floor(_exact(share) * self.budget)


def budgets_of(policy: CompactionPolicy, model_limit: int) -> Budgets:
    """Resolve a policy's shares for a model with this input limit (tokens)."""
    limit = policy.context_window or model_limit
    default_reserve = min(RESERVE_MAX, math.floor(RESERVE_SHARE * limit))
    reserve = default_reserve if policy.output_reserve is None else policy.output_reserve
    window = max(limit - reserve, 0)
    budget = math.floor(_exact(policy.window_share) * window)
    state_tokens = min(policy.state_tokens, math.floor(STATE_SHARE * budget))
    return Budgets(
        limit=limit,
        window=window,
        budget=budget,
        target=math.floor(_exact(policy.target) * budget),
        state_tokens=state_tokens,
        state_cap=CAP_FACTOR * state_tokens,
        anchor_tokens=None if policy.anchor_share is None else math.floor(_exact(policy.anchor_share) * budget),
        pin_tokens=math.floor(_exact(policy.pin_share) * budget),
    )


def contradictions(policy: CompactionPolicy, budgets: Budgets, system_tokens: int) -> list[FieldError]:
    """Why this policy can never be met, with the arithmetic: empty when it can.

    A compaction must end below every trigger that folds to the target, and what is always served below the target.
    """
    target = f"the target of {budgets.target} ({policy.target:g} × budget {budgets.budget})"
    above = [
        FieldError(
            field="policy.target",
            message=f"{target} must be below the trigger {trigger.name}, which fires from {first} tokens on",
        )
        for trigger in policy.triggers
        if trigger.fold == "to_target" and (first := trigger.at.first_tokens(budgets)) <= budgets.target
    ]
    floor = system_tokens + budgets.state_cap
    if floor <= budgets.target:
        return above
    message = (
        f"system prompt with awareness block {system_tokens} + state cap {budgets.state_cap} = {floor} tokens exceeds"
        f" {target}, from a limit of {budgets.limit}: raise context_window, shorten the system prompt, or lower"
        " state_tokens"
    )
    return [*above, FieldError(field="policy.context_window", message=message)]


def evaluate(
    policy: CompactionPolicy,
    budgets: Budgets,
    *,
    moment: Moment,
    tokens: int,
    last_seq: int,
    quiet: Quiet,
    now: datetime,
) -> Trigger | None:
    """The first trigger of the policy that is due at this moment, or ``None``.

    Args:
        policy: The resolved policy.
        budgets: Its shares in tokens.
        moment: ``stored`` after an append, ``before_call`` before the chat model is asked.
        tokens: Numerator of utilization, the new message included.
        last_seq: The newest message.
        quiet: When nothing triggers.
        now: The present moment.
    """
    if not quiet_over(quiet, tokens=tokens, last_seq=last_seq, now=now):
        return None
    due = (item for item in policy.triggers if item.on == moment and tokens >= item.at.first_tokens(budgets))
    return next(due, None)


def evaluate_append(
    policy: CompactionPolicy, budgets: Budgets, *, tokens: int, last_seq: int, quiet: Quiet, now: datetime
) -> Trigger | None:
    """What a client's own append claims: a stored trigger, or an inline one where the policy has no stored one."""
    has_stored = any(trigger.on == "stored" for trigger in policy.triggers)
    moment: Moment = "stored" if has_stored else "before_call"
    return evaluate(policy, budgets, moment=moment, tokens=tokens, last_seq=last_seq, quiet=quiet, now=now)


def quiet_over(quiet: Quiet, *, tokens: int, last_seq: int, now: datetime) -> bool:
    """Whether a quiet period is over: by a new message, by weight, and by time."""
    return last_seq > quiet.until_seq and tokens >= quiet.until_tokens and (quiet.until is None or now >= quiet.until)


def trigger_tokens(policy: CompactionPolicy, budgets: Budgets) -> int | None:
    """The smallest context that is due by itself, for the sweeper's index; ``None`` = never."""
    stored = [trigger for trigger in policy.triggers if trigger.on == "stored"]
    firsts = [trigger.at.first_tokens(budgets) for trigger in stored or policy.triggers]
    return min(firsts, default=None)


def quiet_after(policy: CompactionPolicy, budgets: Budgets, *, seen_seq: int, predicted_tokens: int) -> Quiet:
    """The quiet period that an applied compaction begins."""
    return Quiet(
        until_seq=seen_seq,
        until_tokens=predicted_tokens + budgets.share(policy.minimum_progress),
        reason="applied",
    )


def _exact(share: float) -> Fraction:
    """0.7 as seven tenths: binary fractions would round 2 142 down to 2 141."""
    return Fraction(str(share))
