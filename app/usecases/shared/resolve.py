"""Works out what follows from a conversation's row: its policy, budgets, schema, system prompt, tools and sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypedDict
from uuid import UUID

from app.core.context.assembly import system_text
from app.core.context.awareness import awareness_block
from app.core.context.tools import (
    MIN_HIDDEN_TOKENS,
    OWN_TOOL_NAMES,
    offered_tools,
    tools_after_compaction,
    tools_tokens,
)
from app.core.context.turn_options import NO_OPTIONS, TurnOptions
from app.core.model.caches import CachedPrefix, Caching
from app.core.model.conversation import Conversation, QuietPeriod
from app.core.model.gauge import AdaptiveThresholds, Breakdown, Gauge, breakdown_of, explained_thresholds, gauge_of
from app.core.model.model_io import ContextMessage, ToolSpec
from app.core.model.policies.adaptive import AdaptedThresholds, adapt, adapted_policy
from app.core.model.policies.budgets import Budgets, budgets_of
from app.core.model.policies.operator import NO_OPERATOR_NUMBERS, OperatorNumbers
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.policies.policy_errors import field_error
from app.core.model.policies.resolving import DEFAULT_PRESET, preset_named, resolve
from app.core.model.schemas import schema_named
from app.core.model.state import StateSchema
from app.core.state.layout import messages_tokens
from app.core.text.localization.catalogue import catalogue_of
from app.core.text.memo import FIGURE_GROWTH, memoized
from app.core.text.token_counts import Estimator, tokens_of
from app.off_loop import MAX_BYTES_ON_LOOP, off_loop
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory
from app.usecases.ports import Models


class Sizes(TypedDict):
    """The values that decide whether a trigger is due."""

    tokens: int
    messages: int
    last_seq: int
    quiet: QuietPeriod
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
    awareness: str = ""
    """The part of ``system`` that the service adds."""
    system_tokens: int
    """Estimated tokens of ``system`` and of the tools that are offered now."""
    breakdown: Breakdown
    """Estimated tokens of each part of the context."""
    tools: tuple[ToolSpec, ...] = ()
    """The tools that the chat model is offered now."""
    coming_tool_tokens: int = 0
    """Tokens of the tools that are not offered yet, but will be once enough messages are compacted."""
    warnings: tuple[str, ...] = ()
    """The parts of the stored policy that no longer hold, because the settings or their models changed."""
    schema_tokens: int = 0
    """Tokens of the schema of a structured output, which ``system_tokens`` contain."""
    adapted: AdaptedThresholds | None = None
    """The adaptive thresholds, if the policy asks for them; ``policy`` and ``budgets`` already contain them."""
    unadapted: tuple[CompactionPolicy, Budgets] | None = None
    """With adaptive thresholds, the policy and the budgets without them."""
    has_options: bool = False
    """Whether it contains instructions or tools that a client brings for one turn."""

    @property
    def prefix(self) -> CachedPrefix:
        """What every request of the conversation begins with, if the client brings nothing for the turn."""
        return CachedPrefix(system=self.conversation.system_prompt, awareness=self.awareness, tools=self.tools)

    @property
    def caching(self) -> Caching | None:
        """How a provider may cache the prefix; ``None`` if it has a part from the client, which must not be stored."""
        if self.has_options:
            return None
        return Caching(
            prefix=self.prefix,
            tokens=self.conversation.counted(self.system_tokens),
            mode=self.policy.cache,
            ttl=timedelta(seconds=self.policy.cache_ttl),
        )

    @property
    def tokens(self) -> int:
        """The size of the context: the estimate, corrected by what the provider reported of earlier requests."""
        return self.conversation.counted(self.breakdown.total)

    @property
    def as_set(self) -> tuple[CompactionPolicy, Budgets]:
        """The policy as set by preset, operator and client, and its budgets, without adaptive thresholds."""
        return self.unadapted or (self.policy, self.budgets)

    def has_same_rules(self, planned: Resolved) -> bool:
        """Whether the policy has not changed since ``planned``, and no more messages are held than then."""
        held, then = self.conversation.total.held_tokens, planned.conversation.total.held_tokens
        return self.as_set == planned.as_set and held >= then

    @property
    def messages(self) -> int:
        """Messages after the boundary, without commands and erased messages."""
        return self.conversation.total.messages - self.conversation.covered.messages

    @property
    def fixed_tokens(self) -> int:
        """Tokens of what comes before all messages: the system prompt with the tools, and the files."""
        return self.system_tokens + self.conversation.file_tokens

    @property
    def lasting_tokens(self) -> int:
        """Tokens that no compaction removes, apart from the state block: ``fixed_tokens`` and held messages."""
        total = self.conversation.total
        return self.fixed_tokens + tokens_of(total.held_tokens, total.held_bytes, self.policy.estimator)

    def with_warning(self, warning: str) -> Resolved:
        """This conversation with one more warning."""
        return replace(self, warnings=(*self.warnings, warning))

    def with_options(self, options: TurnOptions) -> Resolved:
        """This conversation with the instructions and tools that a client brings for one turn, their tokens counted.

        Only for the requests of that turn, and to see whether a compaction is due before them: none of this may be
        stored.
        """
        if options == NO_OPTIONS:
            return self
        estimator = self.policy.estimator
        system = f"{self.system}\n\n{options.instructions}" if options.instructions else self.system
        schema = options.schema_tokens(estimator)
        added = schema + tools_tokens(options.offered, estimator)
        added += _system_tokens(system, estimator) - _system_tokens(self.system, estimator)
        return replace(
            self,
            system=system,
            system_tokens=self.system_tokens + added,
            breakdown=replace(self.breakdown, system=self.breakdown.system + added),
            tools=(*self.tools, *options.offered),
            schema_tokens=schema,
            has_options=bool(options.instructions or options.offered),
        )

    def coming_tool_tokens_after(self, folded_tokens: int) -> int:
        """Tokens of the tools that will be offered in addition, once this many more tokens are folded."""
        return self.coming_tool_tokens if hidden_tokens(self.conversation) + folded_tokens >= MIN_HIDDEN_TOKENS else 0

    @property
    def planning_budgets(self) -> Budgets:
        """The budgets with the target in estimated tokens, since planning compares it with estimates.

        Room is left for the tools that are offered after a compaction.
        """
        return replace(self.budgets, target=max(self.target_tokens - self.coming_tool_tokens, 0))

    @property
    def target_tokens(self) -> int:
        """The target for a whole context in estimated tokens, with the tools that are offered after a compaction."""
        return self.conversation.estimated_within(self.budgets.target)

    @property
    def floor_tokens(self) -> int:
        """Tokens before the state block after a compaction."""
        return self.fixed_tokens + self.coming_tool_tokens

    def sizes(self, now: datetime) -> Sizes:
        """The sizes that ``first_due_trigger`` compares, at this moment."""
        last_seq, quiet = self.conversation.last_seq, self.conversation.quiet
        return {"tokens": self.tokens, "messages": self.messages, "last_seq": last_seq, "quiet": quiet, "now": now}

    @property
    def gauge(self) -> Gauge:
        """The gauge that clients are shown."""
        layout = self.conversation.layout
        behind = layout.anchors_behind_marker if layout else 0
        shown = self.breakdown.scaled(self.tokens)
        return gauge_of(self.policy, self.budgets, shown, anchors_behind_marker=behind, adaptive=self.thresholds)

    @property
    def thresholds(self) -> AdaptiveThresholds | None:
        """The adaptive thresholds, and why they are as they are; ``None`` if the policy's own thresholds hold."""
        return explained_thresholds(self.adapted, catalogue_of(self.conversation.locale)) if self.adapted else None

    def with_adaptive_thresholds(self) -> Resolved:
        """This conversation with adaptive thresholds, computed from its pace, if its policy asks for them."""
        floor = self.floor_tokens + self.breakdown.held + self.breakdown.anchors + self.budgets.state_tokens
        adapted = adapt(self.policy, self.budgets, self.conversation.pace, floor=self.conversation.counted(floor))
        if adapted is None:
            return self
        policy, budgets = adapted_policy(self.policy, self.budgets, adapted)
        return replace(self, policy=policy, budgets=budgets, adapted=adapted, unadapted=(self.policy, self.budgets))


class Resolver:
    """Makes ``Resolved`` from a conversation, in a time that does not grow with the history."""

    def __init__(
        self,
        models: Models,
        operator_tools: Sequence[ToolSpec] = (),
        defaults: OperatorNumbers = NO_OPERATOR_NUMBERS,
        default_preset: str = DEFAULT_PRESET,
    ) -> None:
        """``defaults`` are the numbers that the operator set for all policies."""
        self._models = models
        self._operator_tools = tuple(operator_tools)
        self._defaults = defaults
        self.default_preset = default_preset
        """The preset of conversations that do not name one."""

    @property
    def own_tools(self) -> frozenset[str]:
        """The names of all tools that the service runs itself, including those not offered now."""
        return OWN_TOOL_NAMES | {tool.name for tool in self._operator_tools}

    def __call__(self, conversation: Conversation, *, model: str | None = None) -> Resolved:
        """Resolve a conversation for the configured chat model, or for the named one."""
        policy = self.policy(conversation.preset, conversation.policy, conversation.preset_version)
        budgets = self.budgets(policy, model)
        schema = schema_named(policy.state_schema)
        shown = schema_named(conversation.state_schema) if conversation.state_schema else schema
        awareness = awareness_block(shown, conversation.locale, policy.levels, anchor_share=policy.anchor_share)
        system = system_text(conversation.system_prompt, awareness)
        bare = breakdown_of(conversation, policy.estimator, system=_system_tokens(system, policy.estimator))
        tools, coming = self._tools(conversation, policy, model, overflows=bare.total > budgets.budget)
        breakdown = replace(bare, system=bare.system + tools_tokens(tools, policy.estimator))
        resolved = Resolved(
            conversation=conversation,
            policy=policy,
            budgets=budgets,
            schema=schema,
            system=system,
            awareness=awareness,
            system_tokens=breakdown.system,
            breakdown=breakdown,
            tools=tools,
            coming_tool_tokens=coming,
        )
        version, preset = conversation.preset_version, preset_named(conversation.preset)
        if version not in preset.policies:
            resolved = resolved.with_warning(f"preset_version_unknown:{version}")
        if policy.context_window and policy.context_window > budgets.limit:
            resolved = resolved.with_warning(f"context_window_clamped:{budgets.limit}")
        for name in dict.fromkeys(policy.models.values()):
            if not self._models.allows(name):
                resolved = resolved.with_warning(f"model_not_allowed:{name}")
        return resolved.with_adaptive_thresholds()

    async def weigh_large_prompt(self, conversation: Conversation) -> None:
        """Count the tokens of a large system prompt off the event loop, so that resolving takes no time."""
        if len(conversation.system_prompt) > MAX_BYTES_ON_LOOP:
            await off_loop(self, conversation)

    def refuse_beyond_model(self, window: int) -> None:
        """Refuse a ``context_window`` above the chat model's limit, if that limit is known and not only assumed.

        Raises:
            PolicyInvalidError: It is above the limit; the message has both numbers.
        """
        profile = self._models.chat().profile
        if not profile.limit_known or window <= profile.input_limit:
            return
        raise field_error(
            "context_window",
            f"{window} tokens are more than the {profile.input_limit} that the chat model {profile.name} takes: set at"
            " most that, or leave it out for the model's own limit",
        )

    def _tools(
        self, conversation: Conversation, policy: CompactionPolicy, model: str | None, *, overflows: bool
    ) -> tuple[tuple[ToolSpec, ...], int]:
        """The tools that are offered now, and the tokens of those that will be offered in addition."""
        if not self._models.chat(model).profile.calls_tools:
            return (), 0
        # A context that overflows is compacted before the model is asked, unless no trigger does so or the compaction
        # failed.
        stays_over = not policy.triggers or conversation.failure_count > 0
        cut_off = overflows and stays_over and policy.on_failure == "truncate"
        now = offered_tools(
            policy,
            hidden_tokens=hidden_tokens(conversation),
            overflows=cut_off,
            operator_tools=self._operator_tools,
            locale=conversation.locale,
        )
        most = tools_after_compaction(policy, self._operator_tools, conversation.locale)
        return now, tools_tokens(most, policy.estimator) - tools_tokens(now, policy.estimator)

    def policy(self, preset: str, overrides: Mapping[str, Any], version: int | None) -> CompactionPolicy:
        """The resolved policy of a version of the preset, of the present one if it is unknown or ``None``.

        Raises ``PolicyInvalidError`` or ``UnknownPresetError``.
        """
        return resolve(preset, self._defaults.completed_overrides(preset, overrides, version), version)

    def budgets(self, policy: CompactionPolicy, model: str | None = None) -> Budgets:
        """The policy's shares in tokens for a chat model.

        If ``context_window`` is larger than the model's limit, that holds.
        """
        profile = self._models.chat(model).profile
        limit = profile.input_limit
        if profile.limit_known and policy.context_window and policy.context_window > limit:
            policy = policy.model_copy(update={"context_window": limit})
        if policy.state_share is None:
            return budgets_of(policy, limit)
        summarizer = self._models.chat() if policy.summarizer == "chat_model" else self._models.summarizer()
        return budgets_of(policy, limit, output_limit=summarizer.profile.output_limit)


def weighing(begin: UnitOfWorkFactory, resolver: Resolver) -> UnitOfWorkFactory:
    """Units of work that call ``weigh_large_prompt`` for each conversation that they read."""

    def begin_weighing(tenant_id: UUID | None) -> UnitOfWork:
        uow = begin(tenant_id)
        uow.conversations.on_read = resolver.weigh_large_prompt
        return uow

    return begin_weighing


def hidden_tokens(conversation: Conversation) -> int:
    """The tokens that a conversation's state covers, without those of messages that are served verbatim."""
    return conversation.covered.tokens - conversation.covered.held_tokens


@memoized(FIGURE_GROWTH)
def _system_tokens(system: str, estimator: Estimator) -> int:
    # It is weighed at every turn and hardly ever changes.
    return messages_tokens((ContextMessage(role="system", content=system),), estimator)
