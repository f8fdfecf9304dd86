"""How full a conversation's context is: the numbers of utilization, and the gauge that clients see."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import accumulate
from typing import Final, Literal

from app.core.model.conversation import Conversation
from app.core.model.figure_labels import percent
from app.core.model.policies.adaptive import AdaptedThresholds
from app.core.model.policies.budgets import Budgets
from app.core.model.policies.policy import TURN_ENDS, CompactionPolicy
from app.core.text.localization.catalogue import Catalogue
from app.core.text.token_counts import Estimator, tokens_of

GaugeStatus = Literal["ok", "warning", "critical", "background", "sync", "over"]

WARNING_SHARE: Final = Fraction(3, 4)
"""The share of the window from which people are warned, if turns end in a nearly full window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """The tokens of each part of a context; utilization is their sum, divided by the budget."""

    system: int = 0
    files: int = 0
    state: int = 0
    anchors: int = 0
    digests: int = 0
    held: int = 0
    tail: int = 0
    recalled: int = 0
    pending: int = 0

    @property
    def block(self) -> int:
        """The state block with its anchors and digests."""
        return self.state + self.anchors + self.digests

    @property
    def total(self) -> int:
        """The numerator of utilization."""
        return sum(self._part_tokens)

    def scaled(self, total: int) -> Breakdown:
        """This breakdown in proportion, so that the parts add up to ``total``."""
        return Breakdown(**dict(zip(_PARTS, in_proportion(self._part_tokens, total), strict=True)))

    @property
    def _part_tokens(self) -> tuple[int, ...]:
        return _parts_of(self)


_PARTS: Final = tuple(part.name for part in fields(Breakdown))
_parts_of: Final = operator.attrgetter(*_PARTS)


def in_proportion(parts: Iterable[int], total: int) -> list[int]:
    """The parts in proportion as whole numbers that add up to ``total``: their running sums are scaled and rounded.

    The sums are rounded up. So the last parts together never get more than they would if they were scaled by
    themselves, and a budget that holds them still holds.
    """
    ends = list(accumulate(parts))
    if not ends or ends[-1] in {0, total}:
        return list(map(operator.sub, ends, [0, *ends]))
    shares = [-(-end * total // ends[-1]) for end in ends]
    return list(map(operator.sub, shares, [0, *shares]))


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveThresholds(AdaptedThresholds):
    """The thresholds in force, and why in a sentence."""

    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """What clients see of a context's size."""

    tokens: int
    budget: int
    window: int
    utilization: float
    status: GaugeStatus
    background_at: int | None
    sync_at: int | None
    tokens_until_compaction: int | None
    breakdown: Breakdown
    anchors_behind_marker: int = 0
    """Active anchors for which the block has no room."""
    target: int = 0
    """The tokens that a compaction folds down to."""
    adaptive: AdaptiveThresholds | None = None
    """The adapted thresholds in force; ``None`` where the policy's own are."""


def breakdown_of(conversation: Conversation, estimator: Estimator, *, system: int) -> Breakdown:
    """The breakdown, computed from the row's sums alone: O(1) for a history of any length."""
    total, covered, layout = conversation.total, conversation.covered, conversation.layout
    return Breakdown(
        system=system,
        files=conversation.file_tokens,
        state=layout.state_tokens if layout else 0,
        anchors=layout.anchor_tokens if layout else 0,
        digests=layout.digest_tokens if layout else 0,
        held=tokens_of(covered.held_tokens, covered.held_bytes, estimator) + (layout.held_day_tokens if layout else 0),
        tail=tokens_of(total.tokens - covered.tokens, total.bytes - covered.bytes, estimator),
    )


def gauge_of(
    policy: CompactionPolicy,
    budgets: Budgets,
    breakdown: Breakdown,
    *,
    anchors_behind_marker: int = 0,
    adaptive: AdaptiveThresholds | None = None,
) -> Gauge:
    """The gauge of a breakdown under a policy whose thresholds are those in force."""
    tokens = breakdown.total
    counted = tokens - breakdown.recalled  # messages recalled for one question start no compaction
    background = _lowest_trigger_tokens(policy, budgets, "background")
    sync = _lowest_trigger_tokens(policy, budgets, "inline")
    thresholds = [value for value in (background, sync) if value is not None]
    return Gauge(
        tokens=tokens,
        budget=budgets.budget,
        window=budgets.window,
        utilization=round(tokens / budgets.budget, 4) if budgets.budget else 1.0,
        status=_status(policy, budgets, counted, background=background, sync=sync),
        background_at=background,
        sync_at=sync,
        tokens_until_compaction=max(min(thresholds) - counted, 0) if thresholds else None,
        breakdown=breakdown,
        anchors_behind_marker=anchors_behind_marker,
        target=budgets.target,
        adaptive=adaptive,
    )


def explained_thresholds(adapted: AdaptedThresholds, catalogue: Catalogue) -> AdaptiveThresholds:
    """Adapted thresholds with a sentence that says why they are where they are."""
    shares = {
        name: percent(getattr(adapted, name)) for name in ("background", "target", "own_background", "own_target")
    }
    pace = adapted.pace
    if pace is None:
        sentence = catalogue.text("adaptive.measuring", **shares)
    else:
        seconds = pace.compaction_seconds
        took = (
            catalogue.text("adaptive.untimed")
            if seconds is None
            else catalogue.text("adaptive.timed", seconds=round(seconds, 1))
        )
        cached = round(100 * pace.cached_share)
        sentence = catalogue.text("adaptive.adapted", tokens=pace.turn_tokens, took=took, cached=cached, **shares)
    return AdaptiveThresholds(
        **{item.name: getattr(adapted, item.name) for item in fields(AdaptedThresholds)}, explanation=sentence
    )


def _lowest_trigger_tokens(policy: CompactionPolicy, budgets: Budgets, run: str) -> int | None:
    firsts = (item.at.first_tokens(budgets) for item in policy.triggers if item.run == run)
    return min((first for first in firsts if first is not None), default=None)


def _status(
    policy: CompactionPolicy, budgets: Budgets, tokens: int, *, background: int | None, sync: int | None
) -> GaugeStatus:
    if tokens > budgets.budget:
        return "over"
    if any(trigger.on in TURN_ENDS for trigger in policy.triggers):
        return _status_of_turns(tokens, math.ceil(WARNING_SHARE * budgets.window), background, sync)
    if sync is not None and tokens >= sync:
        return "sync"
    return "background" if background is not None and tokens >= background else "ok"


def _status_of_turns(tokens: int, warning: int, *triggers: int | None) -> GaugeStatus:
    if any(first is not None and tokens >= first for first in triggers):
        return "critical"
    return "warning" if tokens >= warning else "ok"
