"""Plans a compaction: which messages are folded, and where the first chunk ends. A pure value.

Folding saves fewer tokens than the folded messages have:

* Held messages stay in the context word for word even when they are covered, so they save nothing.
* Active anchors of folded messages move into the state block, as far as there is room, so they save nothing either.
* The digests of the folded messages need room. If there is too little, they get less: no plan fails because of them.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from app.core.model.gauge import Breakdown
from app.core.model.policies.budgets import Budgets
from app.core.model.records import FoldRequest
from app.core.planning.cuts import Tail, held_indexes, legal_cuts, turn_starts, weight_of
from app.core.text.token_counts import Estimator

MINIMUM_SPAN = 200  # tokens; a shorter span is not worth a model call
MINIMUM_SAVING = 0.10  # share of the folded span; the gate refuses a state that saves less
SHORT_CHUNK_STATES = 2
"""States of planned size: a stretch with fewer tokens than that may not become smaller by a state of its own."""
DIGEST_PART = 4  # digests have about a quarter of the folded tokens; used for predictions, not for plans
TURN_START_REACH = 0.05  # share of the budget that may be folded in addition so that the tail begins with a turn


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """The next chunk to fold, and where the whole compaction, which may take several chunks, will end."""

    from_seq: int
    to_seq: int
    messages: int
    """How many messages the chunk has, without commands."""
    folded_tokens: int
    """Tokens of the chunk that leave the context: all but its held messages. What its anchors add is not subtracted."""
    goal_seq: int
    """The last message of the last chunk."""
    predicted_tokens: int
    """The expected size of the context after the last chunk, with state and digests of at most their planned size."""
    irreducible: bool
    """Whether the context stays above the target even when all that may be folded is folded."""
    lasting: bool = False
    """Whether held messages are why it stays above the target, so that folding later messages will not help."""

    @property
    def is_last(self) -> bool:
        """Whether no chunk follows this one."""
        return self.to_seq == self.goal_seq


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToFold:
    """Why there is no plan."""

    reason: Literal["nothing_to_compact", "irreducible_floor"]
    predicted_tokens: int
    lasting: bool = False
    """Whether held messages alone exceed the target, so that folding later messages will not help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Projection:
    """Sizes of the context in tokens, and running sums over the tail: each has one number for each message."""

    sizes: tuple[int, ...]
    """The tokens that the summarizer reads if everything up to this message is folded."""
    folded: tuple[int, ...]
    """The tokens that leave the tail if everything up to this message is folded."""
    saved: tuple[int, ...]
    """``folded``, minus the tokens that the anchors of these messages add to the block."""
    needed: int
    """The tokens that have to be saved to reach the target, if the state has the larger of its present and its planned
    size, and digests fill their room."""
    digests: int
    """The room for digests, included in ``needed``."""
    present_digests: int
    least: int
    """The size of the context with nothing folded, no digests, and the state at its planned size."""
    target: int
    before: int
    """The size of the context with nothing folded. A fold always makes it smaller: if needed, code adds less."""
    floor: int
    """The tokens that no folding removes: system prompt, held messages, anchors, and the state at its planned size."""

    def predicted(self, index: int, fold: str) -> int:
        """The expected size once everything up to this message is folded, with digests of the usual size.

        If that exceeds the target, digests are left out first, then the state is pruned, as far as needed.
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
        breakdown: The sizes of the parts of the present context.
        budgets: The policy's shares in tokens.
        estimator: How tokens are counted.
        request: Whether to fold to the target or everything, and what to keep.
        chunk_tokens: The most that the summarizer can read at once.
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
    short_chunk_tokens = SHORT_CHUNK_STATES * budgets.state_tokens
    end = _chunk_end(
        cuts, projection, goal=goal, chunk_tokens=chunk_tokens, short_chunk_tokens=short_chunk_tokens, starts=starts
    )
    if request.fold == "to_target" and projection.saved[end] >= projection.needed:
        goal = end  # the target is reached within this chunk: the rest up to the next turn gets no chunk of its own
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
    anchor_budget = math.inf if budgets.anchor_tokens is None else max(budgets.anchor_tokens - breakdown.anchors, 0)
    rest = breakdown.total - breakdown.state - breakdown.digests
    state = max(breakdown.state, budgets.state_tokens)
    digests = budgets.digest_room(beside=state + breakdown.anchors + breakdown.held)
    return _Projection(
        sizes=tuple(accumulate(weights)),
        folded=folded,
        saved=tuple(gone - int(min(anchors, anchor_budget)) for gone, anchors in zip(folded, moved, strict=True)),
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
    """The cut at which the whole compaction should end; ``None`` if no cut is worth a model call."""
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
    short_chunk_tokens: int,
    starts: Container[int],
) -> int:
    """The end of the first chunk. Chunks have about the same size, none larger than the summarizer can read.

    * A turn or a tool exchange that is larger than a chunk is still one chunk; the summarizer gets it shortened.
    * No chunk, the last one included, is too short for a model call.
    * A short stretch before a turn that is too large is put into the same chunk. Alone it would hardly be longer than
      its state, which would then be refused, and nothing after it would ever be folded.
    """
    sizes, folded = projection.sizes, projection.folded
    if sizes[goal] <= chunk_tokens:
        return goal
    share = math.ceil(sizes[goal] / math.ceil(sizes[goal] / chunk_tokens))
    ends = [index for index in cuts if index < goal and folded[goal] - folded[index] >= MINIMUM_SPAN]
    within = [index for index in ends if sizes[index] <= chunk_tokens]
    beyond = ends[len(within)] if len(within) < len(ends) else goal
    if not within or (folded[within[-1]] < short_chunk_tokens and sizes[beyond] - sizes[within[-1]] > chunk_tokens):
        return beyond
    enough = [index for index in within if sizes[index] >= share]
    preferred = [index for index in enough if index + 1 in starts]
    return (preferred or enough or within[-1:])[0]
