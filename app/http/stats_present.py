"""Turns statistics into the form that clients see: figures, with labels in a language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from app.core.model.caches import CacheMeasure, CacheVerdict
from app.core.model.figure_labels import figure_labels, trigger_label
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.segments import NAME_BY_LEVEL
from app.core.model.statistics import ExpansionTally, LevelMeasure, Measurements, share
from app.core.text.localization.catalogue import Catalogue
from app.http import stats_schemas as shown
from app.http.present import ratio_of
from app.usecases.admin.stats import CacheView, ConversationMeasures, LastCompaction, ServiceMeasures

Labelled = TypeVar("Labelled", bound=shown.Stats)


def present_conversation_stats(value: ConversationMeasures, catalogue: Catalogue) -> shown.ConversationStats:
    """The statistics of one conversation, as they are shown."""
    resolved = value.resolved
    gauge = resolved.gauge
    return _with_labels(
        shown.ConversationStats(
            **_figures(value.measured, value.caches, catalogue, resolved.policy),
            conversation_id=resolved.conversation.id,
            context=shown.ContextStats.from_value(
                gauge,
                status_label=catalogue.word("gauge", gauge.status),
                history_tokens=value.history_tokens,
                saved_now=value.history_tokens - gauge.tokens,
                saved_share=share(value.history_tokens - gauge.tokens, value.history_tokens),
                cost_per_query=value.cost_per_query,
            ),
            levels=_levels(value.levels, catalogue),
            last=_last_compaction(value.last, catalogue, resolved.policy) if value.last else None,
        ),
        catalogue,
    )


def present_service_stats(value: ServiceMeasures, catalogue: Catalogue) -> shown.ServiceStats:
    """The statistics of a tenant, as they are shown."""
    gauges = [resolved.gauge for resolved in value.active]
    return _with_labels(
        shown.ServiceStats(
            **_figures(value.measured, value.caches, catalogue, None),
            since=value.since,
            active=shown.ActiveStats(
                conversations=len(gauges),
                mean_utilization=share(sum(gauge.utilization for gauge in gauges), len(gauges)),
                by_status=_labelled_counts(catalogue, "gauge", Counter(gauge.status for gauge in gauges)),
                levels=_levels(value.levels, catalogue),
            ),
        ),
        catalogue,
    )


def _with_labels(stats: Labelled, catalogue: Catalogue) -> Labelled:
    return stats.model_copy(
        update={"labels": figure_labels(catalogue, stats.model_dump(exclude={"labels", "summary"}))}
    )


def _figures(
    value: Measurements, caches: CacheView, catalogue: Catalogue, policy: CompactionPolicy | None
) -> dict[str, Any]:
    return {
        "locale": catalogue.language,
        "turns": value.turns.count,
        "compactions": _compactions(value, catalogue, policy),
        "tokens": shown.TokenStats(
            before=value.tokens_before,
            after=value.tokens_after,
            saved=value.tokens_saved,
            saved_per_turn=share(value.tokens_saved, value.turns.count, digits=1),
            ratio=ratio_of(value.tokens_before, value.tokens_after),
        ),
        "model_calls": _calls(value, catalogue),
        "caches": _caches(value.caches, caches, catalogue),
        "expansions": _expansions(value, catalogue),
        "latency": shown.LatencyStats(compaction=value.in_turns, expansion=value.expanding, turn=value.turns),
        "summary": _summary_sentences(value, catalogue),
    }


def _compactions(value: Measurements, catalogue: Catalogue, policy: CompactionPolicy | None) -> shown.CompactionStats:
    triggers = value.compactions_by("trigger")
    return shown.CompactionStats.from_value(
        value,
        by_trigger=[
            shown.Counted(name=name, label=trigger_label(catalogue, name, policy), count=count)
            for name, count in triggers.items()
        ],
        by_status=_labelled_counts(catalogue, "status", value.compactions_by("status")),
        by_place=_labelled_counts(catalogue, "place", value.compactions_by("ran_in")),
        by_reason=_labelled_counts(catalogue, "reason", value.compactions_by("reason")),
        messages_covered=value.messages,
        repairs=[
            shown.RepairStats.from_value(one, label=catalogue.word("repair", one.reason))
            for one in sorted(value.repairs, key=lambda one: (-one.count, one.reason, one.prompt_version or ""))
        ],
    )


def _calls(value: Measurements, catalogue: Catalogue) -> shown.CallStats:
    return shown.CallStats.from_value(
        value.usage,
        total=sum(tally.count for tally in value.calls),
        by_purpose=_labelled_counts(catalogue, "purpose", value.calls_by("purpose")),
        by_outcome=_labelled_counts(catalogue, "outcome", value.calls_by("outcome")),
        by_reason=_labelled_counts(catalogue, "reason", value.calls_by("reason")),
        by_prompt_version=value.by_prompt_version,
        per_compaction=value.cost_of_one,
    )


def _caches(value: CacheMeasure, view: CacheView, catalogue: Catalogue) -> shown.CacheStats:
    return shown.CacheStats.from_value(
        value,
        availability=view.availability,
        availability_label=catalogue.word("caching", view.availability),
        mode=view.mode,
        **{name: value.count(name) for name in ("made", "renewed", "used", "ended", "lost", "failed")},
        saved_beyond_implicit_usd=value.beyond_usd,
        storage_priced_on=view.terms.priced_on if view.terms else None,
        prefix=_prefix(view, catalogue),
        living=view.living,
    )


def _prefix(view: CacheView, catalogue: Catalogue) -> shown.PrefixStats | None:
    if view.terms is None or view.tokens is None:
        return None
    known, minimum = view.prefix, view.terms.minimum
    verdict: CacheVerdict = "hit_rate_unknown" if view.availability == "available" else "off"
    if known is not None and view.availability == "available":
        verdict, minimum = known.verdict, max(minimum, known.minimum or 0)
    elif verdict != "off" and view.tokens < minimum:
        verdict = "too_small"
    return shown.PrefixStats(
        tokens=known.tokens if known else view.tokens,
        minimum_tokens=minimum,
        uses_per_hour=round(known.rate, 2) if known else None,
        implicit_hit_rate=round(known.hit_rate or 0, 4) if known and known.demand.known_hit_rate is not None else None,
        verdict=verdict,
        verdict_label=catalogue.word("cache_verdict", verdict),
    )


def _expansions(value: Measurements, catalogue: Catalogue) -> shown.ExpansionStats:
    def total(name: str) -> int:
        return sum(getattr(tally, name) for tally in value.expansions)

    return shown.ExpansionStats(
        total=total("count"),
        by_way=[_way_stats(tally, catalogue) for tally in value.expansions],
        passages=total("passages"),
        tokens=total("tokens"),
        judged=total("judged"),
        used=total("used"),
        used_share=value.used_share,
    )


def _way_stats(value: ExpansionTally, catalogue: Catalogue) -> shown.WayStats:
    return shown.WayStats.from_value(value, name=value.way, label=catalogue.word("way", value.way))


def _levels(values: Iterable[LevelMeasure], catalogue: Catalogue) -> list[shown.LevelStats]:
    return [
        shown.LevelStats.from_value(value, name=NAME_BY_LEVEL[value.level], label=catalogue.word("level", value.level))
        for value in values
    ]


def _last_compaction(value: LastCompaction, catalogue: Catalogue, policy: CompactionPolicy) -> shown.LastCompaction:
    row, usage = value.row, value.row.usage
    return shown.LastCompaction.from_value(
        row,
        compaction_id=row.id,
        trigger_label=trigger_label(catalogue, row.trigger, policy),
        attempts=len(row.attempts),
        ratio=ratio_of(row.tokens_before, row.tokens_after),
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=usage.cost_usd,
        levels=_levels(value.levels, catalogue),
    )


def _labelled_counts(catalogue: Catalogue, section: str, counts: Mapping[str, int]) -> list[shown.Counted]:
    return [
        shown.Counted(name=name, label=catalogue.word(section, name), count=count) for name, count in counts.items()
    ]


def _summary_sentences(value: Measurements, catalogue: Catalogue) -> Sequence[str]:
    counts = {
        "compactions": value.applied,
        "saved": value.tokens_saved,
        "messages": value.messages,
        "expansions": sum(tally.passages for tally in value.expansions),
    }
    return [catalogue.text(f"summary.{name}", count=count) for name, count in counts.items() if count > 0]
