"""The policy of a conversation, one frozen and validated value: its triggers and shares.

``policies.budgets`` makes tokens of the shares. ``core.planning.triggers`` decides which trigger is due.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Final, Literal, Self, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from app.core.model.caches import MAX_TTL_SECONDS, MIN_TTL_SECONDS, CacheMode
from app.core.model.fieldwise import from_same_fields
from app.core.model.model_io import OFFLINE, Reasoning
from app.core.model.policies.budgets import Budgets, exact_share
from app.core.model.records import Fold, FoldRequest
from app.core.model.segments import LEVELS, Level
from app.core.text.token_counts import Estimator

Moment = Literal["stored", "before_call", "completed", "interrupted", "between_calls"]
TURN_ENDS: Final[frozenset[Moment]] = frozenset({"completed", "interrupted"})
TriggerName = Literal["background", "sync", "max_tokens", "max_messages", "completion", "interrupted", "mid_turn"]
Run = Literal["background", "inline"]
Protect = Literal["turn_0", "initial_objective", "constraint", "auth_checkpoint", "goal", "goal_statements"]

_IN_TURN: frozenset[Moment] = frozenset({"before_call", "between_calls"})

Share = Annotated[float, Field(gt=0, le=1)]
MAX_KEPT = 1_000  # keeps are read from one bounded outline of the tail
MODEL_FIELDS = ("fallback_model", "verifier_model")
"""The fields of a policy that name a model; only models that the operator allows may stand there."""


def _allowed_types(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Annotated:
        yield from _allowed_types(get_args(annotation)[0])
    elif get_origin(annotation) in {Union, UnionType}:
        for choice in get_args(annotation):
            yield from _allowed_types(choice)
    else:
        yield annotation


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_other_types_for_numbers(cls, value: Any, info: ValidationInfo) -> Any:
        # Whoever wrote ``true`` for 1, or ``"0.7"`` for 0.7, meant another field.
        if isinstance(value, bool | str):
            kinds = set(_allowed_types(cls.model_fields[info.field_name or ""].annotation))
            if kinds & {int, float} and not kinds & {bool, str}:
                raise ValueError("must be a number")
        return value


class Threshold(_Frozen):
    """The size at which a trigger fires: a share of the budget or the window, or a number of tokens or messages.

    Shares fire when they are reached, ``tokens`` and ``messages`` when they are exceeded. With both ``tokens`` and
    ``share`` the smaller of the two counts, so that a number made for a large model also holds for a small one.
    Messages are those after the boundary, without commands and erased ones.
    """

    share: Share | None = None
    window: Share | None = None
    tokens: Annotated[int, Field(gt=0)] | None = None
    messages: Annotated[int, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [name for name in ("share", "window", "tokens", "messages") if getattr(self, name) is not None]
        if len(given) != 1 and given != ["share", "tokens"]:
            raise ValueError(
                'give exactly one of {"share": 0–1}, {"window": 0–1}, {"tokens": n}, {"messages": n},'
                " or share and tokens"
            )
        return self

    def first_tokens(self, budgets: Budgets) -> int | None:
        """The smallest numerator of utilization at which this fires; ``None`` where it counts messages."""
        if self.messages is not None:
            return None
        if self.tokens is not None:
            most = self.tokens if self.share is None else budgets.share(self.share)
            return min(self.tokens, most) + 1
        base = budgets.budget if self.share is not None else budgets.window
        return math.ceil(exact_share(self.share or self.window or 0) * base)

    @property
    def first_messages(self) -> int | None:
        """The smallest number of messages at which this fires; ``None`` where it weighs tokens."""
        return None if self.messages is None else self.messages + 1

    def reached(self, budgets: Budgets, *, tokens: int, messages: int) -> bool:
        """Whether the trigger fires at a context of this size."""
        first = self.first_tokens(budgets)
        return tokens >= first if first is not None else messages >= (self.first_messages or 0)


class Keep(_Frozen):
    """What stays verbatim at the end of the conversation: each number is a minimum."""

    turns: Annotated[int, Field(ge=0, le=MAX_KEPT)] = 0
    messages: Annotated[int, Field(ge=0, le=MAX_KEPT)] = 0
    tokens: Annotated[int, Field(ge=0)] = 0


class Trigger(_Frozen):
    """One reason to compact: ``name`` is the word recorded on the compaction."""

    name: TriggerName
    on: Moment
    at: Threshold
    run: Run
    keep_turns: Annotated[int, Field(ge=0, le=MAX_KEPT)] = 0
    keep_messages: Annotated[int, Field(ge=0, le=MAX_KEPT)] = 0
    keep_tokens: Annotated[int, Field(ge=0)] = 0
    fold: Fold = "to_target"

    @model_validator(mode="before")
    @classmethod
    def _fold_all_for_message_count(cls, values: Any) -> Any:
        # The target is in tokens: a trigger that counts messages cannot fold to it.
        if isinstance(values, dict) and "fold" not in values and _counts_messages(values.get("at")):
            return {**values, "fold": "all"}
        return values

    @model_validator(mode="after")
    def _somebody_waits_for_inline(self) -> Self:
        expected: Run = "inline" if self.on in _IN_TURN else "background"
        if self.run != expected:
            raise ValueError(f'a trigger on "{self.on}" runs "{expected}", not "{self.run}"')
        if self.at.messages is not None and self.fold != "all":
            raise ValueError('a trigger with at.messages needs fold "all", since its target is in tokens')
        return self

    def request(self) -> FoldRequest:
        """The request of a compaction that this trigger starts."""
        return from_same_fields(FoldRequest, self)


class SegmentBy(_Frozen):
    """How covered messages are cut into segments."""

    by: Literal["topic", "turns", "messages", "time"] = "topic"
    size: Annotated[int, Field(ge=1, le=1_000)] | None = None
    """Turns or messages in a segment, or minutes of silence that end one; ``None`` = 10, 20, 180. Topics ignore it."""


class AdaptiveBounds(_Frozen):
    """Shares of the budget between which adaptive thresholds stay; ``None`` = follows from the policy's own numbers."""

    background_min: Share | None = None
    background_max: Share | None = None
    target_min: Share | None = None
    target_max: Share | None = None


class CompactionPolicy(_Frozen):
    """Everything that decides about a conversation's context. A preset is one such value."""

    state_schema: Literal["session", "handoff", "summary", "research"] = "session"
    triggers: tuple[Trigger, ...] = ()
    target: Share = 0.60
    """Share of the budget that ``to_target`` folds down to."""
    adaptive: Literal["off", "on"] = "off"
    """Whether the background trigger and the target follow the conversation's pace."""
    adaptive_bounds: AdaptiveBounds = AdaptiveBounds()
    """How far the adaptive thresholds may move."""
    manual_keep: Keep = Keep(turns=1)
    context_window: Annotated[int, Field(ge=1_000, le=100_000_000)] | None = None
    """The limit in tokens; ``None`` = the model's input limit."""
    window_share: Share = 0.85
    output_reserve: Annotated[int, Field(ge=0)] | None = None
    """Tokens kept free for the reply; ``None`` = min(4 096, 0.10 × limit)."""
    estimator: Estimator = "script"
    state_tokens: Annotated[int, Field(ge=50, le=100_000)] = 800
    """How large a state should be; at most 0.12 × budget."""
    state_cap: Annotated[int, Field(ge=50, le=200_000)] | None = None
    """The most tokens of a state; at most, and if ``None``, twice its planned size."""
    state_share: Annotated[float, Field(gt=0, le=0.5)] | None = None
    """The size of a state as a share of the window, used in place of ``state_tokens``; at most half of what the
    summarizer can write."""
    served_as: Literal["pair", "assistant"] = "pair"
    held_roles: tuple[Literal["system"], ...] = ("system",)
    protect: tuple[Protect, ...] = ("turn_0",)
    """Which messages are held verbatim for ever: turn 0's message, event types, goal statements found by rule."""
    anchor_share: Annotated[float, Field(ge=0, le=1)] | None = 0.15
    """Share of the budget for anchors; ``None`` = all the room there is; if they do not fit, the compaction fails."""
    pin_share: Annotated[float, Field(ge=0, le=1)] = 0.10
    """Share of the budget for messages that are pinned or protected (held system messages apart)."""
    over_allotment: Literal["fold", "refuse"] = "fold"
    """What becomes of a new protected message that no longer fits into ``pin_share``: it is folded like any other, or
    refused with the numbers."""
    levels: tuple[Level, ...] = LEVELS
    """Which levels of detail are made and served; empty = neither digests nor markers are served."""
    segment_by: SegmentBy = SegmentBy()
    """How covered messages are cut into segments."""
    digest_share: Annotated[float, Field(ge=0, le=1)] = 0.10
    """Share of the budget for digests of segments, as far as block and held messages stay below half the budget."""
    recall: Literal["off", "auto"] = "off"
    """Whether a turn brings back earlier messages that its question needs."""
    recall_share: Annotated[float, Field(ge=0, le=1)] = 0.15
    """Share of the budget for what a turn recalls."""
    oversized: Literal["refuse", "elide"] = "refuse"
    """What becomes of a message that can never fit: it is refused, or stored whole and served without its middle."""
    fallback_model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """The model that is asked once when the summarizer's retry was refused too."""
    on_failure: Literal["truncate", "keep_full"] = "truncate"
    on_disconnect: Literal["finish", "interrupt"] = "finish"
    reasoning: Reasoning = "shown"
    """What is done with a chat model's thoughts: dropped, passed on and stored, or also asked for."""
    summarizer: Literal["compaction_model", "chat_model"] = "compaction_model"
    verify: Literal["auto", "off"] = "auto"
    """Whether a model judges, after a compaction, what a model wrote."""
    verifier_model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """The model that judges; ``None`` = the operator's verifier, otherwise the summarizer."""
    continuity_floor: Annotated[float, Field(ge=0, le=1)] | None = None
    """A background compaction with a lower continuity score is made once more, with the losses named; ``None`` = no
    compaction is."""
    inject_system_context: bool = False
    """Whether the summarizer is shown the terms, synonyms and workflow hints of the system prompt."""
    instructions: Annotated[str, Field(max_length=4_000)] = ""
    """Further words for the summarizer."""
    notifications: Literal["events", "summary", "before_and_after"] = "events"
    """What events about compactions say in words: nothing, what was done, or also that one begins."""
    minimum_progress: Annotated[float, Field(ge=0, le=1)] = 0.05
    """The rise, as a share of the budget, that ends a quiet period."""
    sync_deadline: Annotated[float, Field(gt=0, le=300)] = 20.0
    """Seconds that a turn spends on waiting and compacting together."""
    calls_per_chunk: Annotated[int, Field(ge=1, le=20)] = 6
    """The most model calls per chunk outside a turn: retries, halving and bisection together."""
    calls_per_hour: Annotated[int, Field(ge=1, le=100_000)] = 40
    """The most metered model calls of this conversation's compactions within an hour."""
    cache: CacheMode = "auto"
    """Whether the common beginning of all requests is kept in a provider's cache: never, where it pays, or always."""
    cache_ttl: Annotated[int, Field(ge=MIN_TTL_SECONDS, le=MAX_TTL_SECONDS)] = 3_600
    """For how many seconds such a cache is kept; one that is used near its end is kept for as long again."""

    @property
    def models(self) -> Mapping[str, str]:
        """The names of models in it, by field."""
        return {name: value for name in MODEL_FIELDS if (value := getattr(self, name)) is not None}

    @field_validator("verifier_model")
    @classmethod
    def _verifier_judges(cls, name: str | None) -> str | None:
        if name == OFFLINE:
            raise ValueError('the offline model judges nothing: name a language model, or set verify to "off"')
        return name

    @field_validator("levels", mode="after")
    @classmethod
    def _each_level_once(cls, levels: tuple[Level, ...]) -> tuple[Level, ...]:
        return tuple(level for level in LEVELS if level in levels)

    @field_validator("triggers")
    @classmethod
    def _names_once(cls, triggers: tuple[Trigger, ...]) -> tuple[Trigger, ...]:
        if len({trigger.name for trigger in triggers}) != len(triggers):
            raise ValueError("two triggers have the same name")
        return triggers


def _counts_messages(at: Any) -> bool:
    counted = at.get("messages") if isinstance(at, dict) else getattr(at, "messages", None)
    return counted is not None
