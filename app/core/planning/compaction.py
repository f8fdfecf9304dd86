"""What will be folded, as a pure value: the planner.

Held messages may be covered, and are served verbatim all the same, so they weigh nothing as savings. Active anchors of
folded messages move into the state block, as far as there is room for them, so that much is not saved either. Room is
kept for the digests of what is folded; where that cannot be had, they have less, and no plan fails for their sake.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from app.core.model.gauge import Breakdown
from app.core.model.policies.allotments import digest_room
from app.core.model.policies.policy import Budgets
from app.core.model.records import FoldRequest
from app.core.planning.cuts import Tail, held_indexes, legal_cuts, turn_starts, weight_of
from app.core.text.token_counts import Estimator

MINIMUM_SPAN = 200  # tokens; a shorter span is not worth a model call
MINIMUM_SAVING = 0.10  # of the folded span: the gate would refuse less
SCRAP_STATES = 2  # states of planned size: a stretch that weighs less is perhaps not made smaller by a state of its own
DIGEST_PART = 4  # of what is folded, its digests weigh about one part in so many; for predicting, not for planning
TURN_START_REACH = 0.05  # of the budget: how much more is folded so that the tail begins with a turn


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """One chunk to fold, out of a whole that may take several."""

    from_seq: int
    to_seq: int
    messages: int
    """Messages in the chunk, commands left out."""
    folded_tokens: int
    """What of the chunk leaves the context: its held messages do not. What its anchors add to the block is apart."""
    goal_seq: int
    """Where the last chunk will end."""
    predicted_tokens: int
    """The context's size after the last chunk: state and digests at their planned size, or less where that takes it."""
    irreducible: bool
    """Even folding all that may be folded, and the state at its planned size, leaves the context above the target."""
    lasting: bool = False
    """Irreducible by what is held: folding what comes next changes nothing about that."""

    @property
    def is_last(self) -> bool:
        """No chunk follows this one."""
        return self.to_seq == self.goal_seq


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToFold:
    """Why there is no plan."""

    reason: Literal["nothing_to_compact", "irreducible_floor"]
    predicted_tokens: int
    lasting: bool = False
    """A floor of what is held: folding what comes next changes nothing about that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Projection:
    """Sizes of the context, and running sums over the tail."""

    sizes: tuple[int, ...]
    """What the summarizer reads, through each index."""
    folded: tuple[int, ...]
    """What leaves the tail, through each index."""
    saved: tuple[int, ...]
    """The same, less what its anchors add to the block."""
    needed: int
    """What has to be saved to reach the target with the state at the larger of its present and its planned size, and
    the digests' room beside it."""
    digests: int
    """The room that digests may have, included in ``needed``."""
    present_digests: int
    least: int
    """The context with nothing folded, the digests dropped and the state at its planned size."""
    target: int
    before: int
    """The context with nothing folded: what is applied is smaller, if need be with less of what code adds."""
    floor: int
    """What no folding ever removes: the system prompt, what is held, anchors, and the state at its planned size."""

    def predicted(self, index: int, fold: str) -> int:
        """The size once all through this index is folded, with digests as large as they are likely to be.

        Above the target digests go and then the state is pruned, as far as it takes.
        """
        digests = min(self.digests, self.present_digests + self.folded[index] // DIGEST_PART)
        whole = self.target + self.needed - self.digests + digests - self.saved[index]
        if fold == "all":
            return min(whole, self.before - 1)
        if whole <= self.target:
            return whole
        return max(self.least - self.saved[index], self.target)


def plan_compaction(
    tail: Tail,
    *,
    breakdown: Breakdown,
    budgets: Budgets,
    estimator: Estimator,
    request: FoldRequest,
    chunk_tokens: int,
) -> CompactionPlan | NothingToFold:
    """Decide what to fold, and the first chunk of it.

    Args:
        tail: The messages after the boundary.
        breakdown: Where the context's tokens are now.
        budgets: The policy's shares in tokens.
        estimator: How messages are weighed.
        request: To the target or all, and what to keep.
        chunk_tokens: The most that the summarizer digests at once.
    """
    projection = _projection_of(tail, breakdown=breakdown, budgets=budgets, estimator=estimator)
    cuts = [
        index
        for index in legal_cuts(tail, estimator=estimator, request=request)
        if projection.folded[index] >= MINIMUM_SPAN
    ]
    goal = _goal_cut(tail, cuts, projection, request=request, budgets=budgets)
    if goal is None:
        stuck = request.fold == "to_target" and min(breakdown.total, projection.least) > budgets.target
        return NothingToFold(
            reason="irreducible_floor" if stuck else "nothing_to_compact",
            predicted_tokens=breakdown.total,
            lasting=stuck and projection.floor > budgets.target,
        )
    starts = set(turn_starts(tail.outline))
    scrap = SCRAP_STATES * budgets.state_tokens
    end = _chunk_end(cuts, projection, goal=goal, chunk_tokens=chunk_tokens, scrap=scrap, starts=starts)
    if request.fold == "to_target" and projection.saved[end] >= projection.needed:
        goal = end  # the target is reached within this chunk: the way to the next turn's start is no chunk of its own
    predicted = projection.predicted(goal, request.fold)
    irreducible = request.fold == "to_target" and tail.complete and predicted > budgets.target
    return CompactionPlan(
        from_seq=tail.outline[0].seq,
        to_seq=tail.outline[end].seq,
        messages=sum(not item.is_command for item in tail.outline[: end + 1]),
        folded_tokens=projection.folded[end],
        goal_seq=tail.outline[goal].seq,
        predicted_tokens=predicted,
        irreducible=irreducible,
        lasting=irreducible and projection.floor > budgets.target,
    )


def _projection_of(tail: Tail, *, breakdown: Breakdown, budgets: Budgets, estimator: Estimator) -> _Projection:
    held = held_indexes(tail.outline)
    weights = [weight_of(item, estimator) for item in tail.outline]
    leaving = [0 if index in held else weight for index, weight in enumerate(weights)]
    folded = tuple(accumulate(leaving))
    moved = accumulate(0 if index in held else item.anchor_tokens for index, item in enumerate(tail.outline))
    room = math.inf if budgets.anchor_tokens is None else max(budgets.anchor_tokens - breakdown.anchors, 0)
    rest = breakdown.total - breakdown.state - breakdown.digests
    state = max(breakdown.state, budgets.state_tokens)
    digests = digest_room(budgets, beside=state + breakdown.anchors + breakdown.held)
    return _Projection(
        sizes=tuple(accumulate(weights)),
        folded=folded,
        saved=tuple(gone - int(min(anchors, room)) for gone, anchors in zip(folded, moved, strict=True)),
        needed=rest + state + digests - budgets.target,
        digests=digests,
        present_digests=breakdown.digests,
        least=rest + budgets.state_tokens,
        target=budgets.target,
        before=breakdown.total,
        floor=breakdown.system
        + breakdown.held
        + sum(weights[index] for index in held)
        + breakdown.anchors
        + budgets.state_tokens,
    )


def _goal_cut(
    tail: Tail, cuts: Sequence[int], projection: _Projection, *, request: FoldRequest, budgets: Budgets
) -> int | None:
    """The cut that the whole compaction works towards; ``None`` when none is worth a model call."""
    if not cuts or request.fold == "all":
        return cuts[-1] if cuts else None
    if projection.needed <= 0:
        return None
    saved = projection.saved
    first = next((index for index in cuts if saved[index] >= projection.needed), None)
    if first is None:
        return cuts[-1] if saved[cuts[-1]] >= MINIMUM_SAVING * projection.folded[cuts[-1]] else None
    reach = saved[first] + budgets.share(TURN_START_REACH)
    starts = set(turn_starts(tail.outline))
    at_turn = (index for index in cuts if index >= first and index + 1 in starts)
    return next((index for index in at_turn if projection.needed <= saved[index] <= reach), first)


def _chunk_end(
    cuts: Sequence[int],
    projection: _Projection,
    *,
    goal: int,
    chunk_tokens: int,
    scrap: int,
    starts: Container[int],
) -> int:
    """Where the first chunk ends: chunks of about equal size, none larger than the summarizer digests.

    A turn (or a tool exchange) larger than a chunk is still one chunk: the summarizer gets it elided. No chunk, the
    last one included, is too short for a model call. A scrap before something that is elided anyhow goes with it:
    by itself it is hardly longer than its state, which would be refused, and nothing behind it would ever be folded.
    """
    sizes, folded = projection.sizes, projection.folded
    if sizes[goal] <= chunk_tokens:
        return goal
    share = math.ceil(sizes[goal] / math.ceil(sizes[goal] / chunk_tokens))
    ends = [index for index in cuts if index < goal and folded[goal] - folded[index] >= MINIMUM_SPAN]
    within = [index for index in ends if sizes[index] <= chunk_tokens]
    beyond = ends[len(within)] if len(within) < len(ends) else goal
    if not within or (folded[within[-1]] < scrap and sizes[beyond] - sizes[within[-1]] > chunk_tokens):
        return beyond
    enough = [index for index in within if sizes[index] >= share]
    preferred = [index for index in enough if index + 1 in starts]
    return (preferred or enough or within[-1:])[0]
