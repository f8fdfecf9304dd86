"""The schemas of statistics: figures, with their names in the reader's language."""

from __future__ import annotations

from uuid import UUID

from pydantic import Field

from app.core.model.caches import Availability, CacheMode, CacheVerdict
from app.core.model.gauge import GaugeStatus
from app.core.model.segments import ExpansionWay, Level, LevelName
from app.http.schemas import EntryCounts, Moment, Output


class Counted(Output):
    """The number of one kind."""

    name: str = Field(description="A stable word.")
    label: str = Field(description="The same in the reader's language.")
    count: int


class FidelityStats(Output):
    """The share of the exact values in folded messages that were verbatim in what was served right afterwards."""

    last: float | None
    mean: float | None
    probes: int


class ContinuityStats(Output):
    """What could still be answered after compactions, over the probes of all compactions with a score."""

    last: float | None = Field(description="Recall of the newest one.")
    recall: float | None
    contradiction: float | None
    tone: float | None = Field(description="The mean.")
    scored: int = Field(description="Compactions.")


class RepairStats(Output):
    """Changes of summaries with the same reason, in answers to the same version of the prompt."""

    reason: str
    label: str
    prompt_version: str | None
    count: int


class CompactionStats(Output):
    """Figures of compactions, from their rows."""

    total: int
    applied: int = Field(description="Cycles.")
    in_flight: int
    by_trigger: list[Counted]
    by_status: list[Counted]
    by_place: list[Counted] = Field(description="By `ran_in`.")
    by_reason: list[Counted]
    messages_covered: int
    entries: EntryCounts
    repairs: list[RepairStats]
    fidelity: FidelityStats
    continuity: ContinuityStats


class TokenStats(Output):
    """Sums over compactions that took effect; `saved` is `before` − `after`, with the same tail."""

    before: int
    after: int
    saved: int
    saved_per_turn: float | None
    ratio: float | None


class CostOfOne(Output):
    """Calls for summaries divided by compactions that took effect; calls without a result are paid for too."""

    input_tokens: float | None = Field(description="Cached ones included.")
    cached_tokens: float | None
    output_tokens: float | None
    cost_usd: float | None = Field(description="Null where no price is known.")


class PromptStats(Output):
    """Calls for summaries with the same version of the prompt, and their results."""

    prompt_version: str | None = Field(
        description="Null for the offline summarizer, which is given no prompt, and for calls made before versions "
        "were recorded."
    )
    attempts: int
    accepted: int
    refused: int = Field(description="By the checks; calls that failed are neither accepted nor refused.")
    asked_again: int = Field(description="Answers of which something was asked about once more.")
    input_tokens: int = Field(description="Cached ones included.")
    output_tokens: int
    compactions: int = Field(description="Those that took effect, by the prompt of their last call.")
    repairs: int = Field(description="Changes of what they wrote, doubts apart.")
    doubts: int = Field(description="Given up without a proof, stated nowhere, or denied.")
    fidelity: float | None = Field(description="Mean share of folded exact values that stood in what was served.")


class CallStats(Output):
    """Model calls of all kinds except chat; the cost takes the price of cached tokens into account."""

    total: int
    by_purpose: list[Counted]
    by_outcome: list[Counted]
    by_reason: list[Counted] = Field(description="Refusals of the gate and failures of the provider.")
    by_prompt_version: list[PromptStats] = Field(description="Calls for summaries.")
    input_tokens: int = Field(description="Cached ones included.")
    cached_tokens: int
    output_tokens: int
    cost_usd: float | None = Field(description="Null where no price is known.")
    per_compaction: CostOfOne


class WayStats(Output):
    """Expansions of one kind."""

    name: ExpansionWay
    label: str
    count: int
    passages: int
    tokens: int
    judged: int = Field(description="Of which it is known whether a reply drew on them.")
    used: int


class ExpansionStats(Output):
    """Figures of expansions."""

    total: int
    by_way: list[WayStats]
    passages: int
    tokens: int
    judged: int
    used: int
    used_share: float | None = Field(description="`used` ÷ `judged`.")


class LatencyFigures(Output):
    """How long something took."""

    count: int
    total_ms: int
    mean_ms: float | None
    p50_ms: float | None
    p95_ms: float | None


class LatencyStats(Output):
    """How long turns waited, and for what."""

    compaction: LatencyFigures = Field(description="Compactions inside turns.")
    expansion: LatencyFigures
    turn: LatencyFigures = Field(description="Whole turns.")


class LevelStats(Output):
    """Segments at one level of detail."""

    level: Level
    name: LevelName
    label: str
    segments: int
    tokens: int
    original_tokens: int
    ratio: float | None


class CostPerQuery(Output):
    """The cost of reading the context once with the configured chat model and no cache; null without a known price."""

    served_usd: float | None = Field(description="Of the context as it is served.")
    history_usd: float | None = Field(description="Of the whole history, without compaction.")
    saved_usd: float | None = Field(description="`history_usd` − `served_usd`.")


class ContextStats(Output):
    """The context as it is now."""

    utilization: float
    tokens: int
    budget: int
    status: GaugeStatus
    status_label: str
    history_tokens: int = Field(description="What the next request would weigh without compaction.")
    saved_now: int = Field(description="`history_tokens` − `tokens`.")
    saved_share: float | None = Field(
        description="`saved_now` ÷ `history_tokens`: by the price of a token, what a query costs less."
    )
    cost_per_query: CostPerQuery


class LastCompaction(Output):
    """The newest compaction that took effect."""

    compaction_id: UUID
    trigger: str
    trigger_label: str
    ran_in: str
    model: str | None
    attempts: int
    messages_covered: int
    tokens_before: int | None
    tokens_after: int | None
    ratio: float | None
    duration_ms: int | None
    input_tokens: int = Field(description="Of all its calls, cached ones included.")
    cached_tokens: int
    output_tokens: int
    cost_usd: float | None
    fidelity: float | None
    levels: list[LevelStats] = Field(description="Of the segments that it made.")
    finished_at: Moment | None


class LivingCache(Output):
    """A cache that a provider keeps now."""

    model: str
    tokens: int
    uses: int = Field(description="Requests that named it.")
    made_at: Moment | None
    expires_at: Moment | None


class PrefixStats(Output):
    """The beginning of the conversation's requests: system prompt, awareness block and tools."""

    tokens: int = Field(description="As the provider counts them, once it has cached them.")
    minimum_tokens: int = Field(description="The fewest that the provider caches.")
    uses_per_hour: float | None = Field(description="Of all conversations that begin so; the newest count most.")
    implicit_hit_rate: float | None = Field(
        description="The share of them that the provider had cached by itself; null until it was measured."
    )
    verdict: CacheVerdict = Field(description="Why there is a cache or none.")
    verdict_label: str


class CacheStats(Output):
    """Caches that providers were asked to keep; their cost and savings in US dollars."""

    availability: Availability = Field(description="`available`, or who keeps it from being so.")
    availability_label: str
    mode: CacheMode | None = Field(description="`policy.cache`, of a conversation.")
    made: int
    renewed: int
    used: int = Field(description="Requests that named one.")
    ended: int = Field(description="Deleted before their time.")
    lost: int = Field(description="Refused by the provider when they were named or renewed.")
    failed: int = Field(description="That could not be made or renewed.")
    tokens_read: int = Field(description="From these caches.")
    spent_usd: float | None = Field(
        description="Processing at the full price and storage, of the caches that were made for the conversation, or "
        "for any; null without a known price."
    )
    saved_usd: float | None = Field(description="Against the full price of `tokens_read`.")
    saved_beyond_implicit_usd: float | None = Field(
        description="Of it, what the provider's own caching would not have saved, at the measured rate of hits."
    )
    net_usd: float | None = Field(description="`saved_beyond_implicit_usd` − `spent_usd`.")
    storage_priced_on: str | None = Field(description="The day on which the prices of storage were read.")
    prefix: PrefixStats | None = Field(description="Of a conversation whose chat model can be cached.")
    living: list[LivingCache] = Field(description="At most 20, the one used last first.")


class ActiveStats(Output):
    """Figures of the conversations with the newest messages, at most 100."""

    conversations: int
    mean_utilization: float | None
    by_status: list[Counted]
    levels: list[LevelStats] = Field(description="Of their current segments.")


class Stats(Output):
    """Statistics at one moment."""

    locale: str = Field(description="The language of the labels.")
    turns: int = Field(description="Turns that are over.")
    compactions: CompactionStats
    tokens: TokenStats
    model_calls: CallStats
    caches: CacheStats
    expansions: ExpansionStats
    latency: LatencyStats
    summary: list[str] = Field(description="Sentences that can be shown as they are.")
    labels: dict[str, str] = Field(
        default_factory=dict, description="What each figure is called, by its path: `tokens.saved`."
    )


class ConversationStats(Stats):
    """The statistics of a conversation."""

    conversation_id: UUID
    context: ContextStats
    levels: list[LevelStats] = Field(description="Of the current segments.")
    last: LastCompaction | None


class ServiceStats(Stats):
    """The statistics of all conversations of the tenant; deleted ones are no longer counted."""

    since: Moment | None
    active: ActiveStats
