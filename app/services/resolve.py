"""From a stored row to what the core works on: policy, budgets, schema, system prompt, sizes."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import lru_cache
from itertools import accumulate
from typing import Any, TypedDict

from app.domain.assembling.assembly import system_text
from app.domain.assembling.awareness import awareness_block
from app.domain.assembling.layout import messages_tokens
from app.domain.conversation import Conversation, Quiet
from app.domain.model_io import ContextMessage
from app.domain.policies.policy import Budgets, CompactionPolicy, budgets_of
from app.domain.policies.presets import resolve
from app.domain.schemas import schema_named
from app.domain.states.state import StateSchema
from app.domain.weighing.gauge import Breakdown, Gauge, breakdown_of, gauge_of
from app.domain.weighing.tokens import Estimator
from app.ports import Models


class Sizes(TypedDict):
    """The numbers that a trigger is evaluated with."""

    tokens: int
    messages: int
    last_seq: int
    quiet: Quiet
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A conversation with everything that follows from its row."""

    conversation: Conversation
    policy: CompactionPolicy
    budgets: Budgets
    schema: StateSchema
    """The schema that the next compaction writes."""
    system: str
    system_tokens: int
    breakdown: Breakdown
    """Where the context's tokens are, as we estimate them."""

    @property
    def tokens(self) -> int:
        """Numerator of utilization: the estimate, by what the provider reported of requests so far."""
        return self.at_evaluation(self.breakdown.total)

    @property
    def messages(self) -> int:
        """Messages after the boundary, commands and erased ones left out."""
        return self.conversation.total.messages - self.conversation.covered.messages

    def at_evaluation(self, estimated: int) -> int:
        """Estimated tokens as they count against thresholds."""
        return math.ceil(estimated * self.conversation.token_factor)

    @property
    def in_estimates(self) -> Budgets:
        """The budgets for planning, which reckons in estimates: the target is reached when evaluation says so."""
        return replace(self.budgets, target=math.floor(self.budgets.target / self.conversation.token_factor))

    def sizes(self, now: datetime) -> Sizes:
        """What ``evaluate`` looks at, at this moment."""
        last_seq, quiet = self.conversation.last_seq, self.conversation.quiet
        return {"tokens": self.tokens, "messages": self.messages, "last_seq": last_seq, "quiet": quiet, "now": now}

    @property
    def gauge(self) -> Gauge:
        """What clients see of the size."""
        layout = self.conversation.layout
        behind = layout.anchors_behind_marker if layout else 0
        shown = scaled(self.breakdown, self.tokens)
        return gauge_of(self.policy, self.budgets, shown, anchors_behind_marker=behind)


class Resolver:
    """Resolves rows; O(1) in the history's length."""

    def __init__(self, models: Models) -> None:
        self._models = models

    def __call__(self, conversation: Conversation, *, model: str | None = None) -> Resolved:
        """Resolve for the configured chat model, or for the named one."""
        policy = self.policy(conversation.preset, conversation.policy)
        budgets = self.budgets(policy, model)
        schema = schema_named(policy.state_schema)
        shown = schema_named(conversation.state_schema) if conversation.state_schema else schema
        system = system_text(conversation.system_prompt, awareness_block(shown, conversation.locale))
        system_tokens = _system_tokens(system, policy.estimator)
        return Resolved(
            conversation=conversation,
            policy=policy,
            budgets=budgets,
            schema=schema,
            system=system,
            system_tokens=system_tokens,
            breakdown=breakdown_of(conversation, policy.estimator, system=system_tokens),
        )

    def policy(self, preset: str, overrides: Mapping[str, Any]) -> CompactionPolicy:
        """The resolved policy. Raises ``PolicyInvalidError`` or ``UnknownPresetError``."""
        return resolve(preset, overrides)

    def budgets(self, policy: CompactionPolicy, model: str | None = None) -> Budgets:
        """The policy's shares in tokens for a chat model."""
        return budgets_of(policy, self._models.chat(model).profile.input_limit)


def scaled(breakdown: Breakdown, total: int) -> Breakdown:
    """The breakdown in proportion, so that its parts add up to ``total``: each rounded where the running sum is."""
    parts = asdict(breakdown)
    if breakdown.total in (0, total):
        return breakdown
    ends = [share * total // breakdown.total for share in accumulate(parts.values())]
    return Breakdown(**dict(zip(parts, map(operator.sub, ends, [0, *ends]), strict=True)))


@lru_cache(maxsize=256)
def _system_tokens(system: str, estimator: Estimator) -> int:
    """A system prompt is weighed at every turn and hardly ever changes."""
    return messages_tokens((ContextMessage(role="system", content=system),), estimator)
