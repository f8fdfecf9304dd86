"""What will be folded, as a pure value: the planner and its legal cut points.

A *cut* at index ``i`` folds ``outline[0..i]``. Laws: a tool call and its result stay on one side; nothing is cut after
a call that still waits for its result; the unanswered user message stays; what the request keeps, stays. Held messages
may be covered, and are served verbatim all the same, so they weigh nothing as savings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from app.domain.conversation import Outline
from app.domain.gauge import Breakdown
from app.domain.policy import Budgets
from app.domain.records import FoldRequest
from app.domain.tokens import Estimator, tokens_of

MINIMUM_SPAN = 200  # tokens; a shorter span is not worth a model call
TURN_START_REACH = 0.05  # of the budget: how much more is folded so that the tail begins with a turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The messages after the boundary, as far as the planner was given them, oldest first."""

    outline: tuple[Outline, ...]
    complete: bool = True
    """False when newer messages follow that the outline does not show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """One chunk to fold, out of a whole that may take several."""

    from_seq: int
    to_seq: int
    messages: int
    """Messages in the chunk, commands left out."""
    folded_tokens: int
    """What of the chunk leaves the context: its held messages do not."""
    goal_seq: int
    """Where the last chunk will end."""
    predicted_tokens: int
    """The context's size after the last chunk, with the state at its planned size."""
    irreducible: bool
    """Even folding all that may be folded leaves the context above the target."""

    @property
    def is_last(self) -> bool:
        """No chunk follows this one."""
        return self.to_seq == self.goal_seq


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToFold:
    """Why there is no plan."""

    reason: Literal["nothing_to_compact", "irreducible_floor"]
    predicted_tokens: int


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
    weights = [_weight(item, estimator) for item in tail.outline]
    savings = list(
        accumulate(0 if item.is_protected else weight for item, weight in zip(tail.outline, weights, strict=True))
    )
    cuts = legal_cuts(tail, estimator=estimator, request=request)
    unfolded = breakdown.total - breakdown.state + max(breakdown.state, budgets.state_tokens)
    goal = _goal(tail, cuts, savings, request=request, needed=unfolded - budgets.target, budgets=budgets)
    folded = savings[goal] if goal is not None else 0
    if goal is None or folded < MINIMUM_SPAN:
        stuck = request.fold == "to_target" and breakdown.total > budgets.target
        return NothingToFold(
            reason="irreducible_floor" if stuck else "nothing_to_compact", predicted_tokens=breakdown.total
        )
    end = _chunk_end(cuts, weights, goal=goal, chunk_tokens=chunk_tokens, outline=tail.outline)
    return CompactionPlan(
        from_seq=tail.outline[0].seq,
        to_seq=tail.outline[end].seq,
        messages=sum(not item.is_command for item in tail.outline[: end + 1]),
        folded_tokens=savings[end],
        goal_seq=tail.outline[goal].seq,
        predicted_tokens=unfolded - folded,
        irreducible=request.fold == "to_target" and tail.complete and unfolded - folded > budgets.target,
    )


def legal_cuts(tail: Tail, *, estimator: Estimator, request: FoldRequest) -> list[int]:
    """Every index after which the outline may be cut, in order."""
    outline = tail.outline
    last = _last_foldable(tail, estimator=estimator, request=request)
    split = _indexes_inside_pairs(outline)
    return [index for index in range(last + 1) if not split[index]]


def turn_starts(outline: Sequence[Outline]) -> list[int]:
    """Indexes at which a turn begins: every user message that is no command."""
    return [index for index, item in enumerate(outline) if item.role == "user" and not item.is_command]


def _weight(item: Outline, estimator: Estimator) -> int:
    return 0 if item.is_command else tokens_of(item.token_count, item.byte_length, estimator)


def _indexes_inside_pairs(outline: Sequence[Outline]) -> list[bool]:
    """True where a cut would part a call from its result, or stand after a call that still waits."""
    answered = {call: index for index, item in enumerate(outline) for call in item.results}
    starts = turn_starts(outline)
    open_from = starts[-1] if starts else 0
    depth = [0] * (len(outline) + 1)
    for index, item in enumerate(outline):
        for call in item.calls:
            end = answered.get(call, len(outline) if index >= open_from else index)
            depth[index] += 1
            depth[max(end, index)] -= 1
    return [level > 0 for level in accumulate(depth)][: len(outline)]


def _last_foldable(tail: Tail, *, estimator: Estimator, request: FoldRequest) -> int:
    """The largest index that every keep allows; −1 when nothing may be folded."""
    outline = tail.outline
    limits = [len(outline) - 1]
    spoken = [index for index, item in enumerate(outline) if not item.is_command]
    if tail.complete and spoken and outline[spoken[-1]].role == "user":
        limits.append(spoken[-1] - 1)
    if request.keep_messages:
        limits.append(_before(spoken, request.keep_messages))
    if request.keep_turns:
        starts = turn_starts(outline)
        kept = request.keep_turns + (1 if _last_turn_is_open(outline, spoken) else 0)
        limits.append(_before(starts, kept))
    if request.keep_tokens:
        limits.append(_before_tokens(outline, estimator, request.keep_tokens))
    if request.up_to_seq is not None:
        limits.append(max((i for i, item in enumerate(outline) if item.seq <= request.up_to_seq), default=-1))
    return min(limits)


def _before(indexes: Sequence[int], count: int) -> int:
    """The index before the ``count``-th last of these; −1 when there are not as many."""
    return indexes[-count] - 1 if len(indexes) >= count else -1


def _before_tokens(outline: Sequence[Outline], estimator: Estimator, tokens: int) -> int:
    kept = 0
    for index in range(len(outline) - 1, -1, -1):
        kept += _weight(outline[index], estimator)
        if kept >= tokens:
            return index - 1
    return -1


def _last_turn_is_open(outline: Sequence[Outline], spoken: Sequence[int]) -> bool:
    """A turn is over when its last message is an assistant's without open calls."""
    if not spoken:
        return False
    last = outline[spoken[-1]]
    answered = {call for item in outline for call in item.results}
    return last.role != "assistant" or bool(last.calls - answered)


def _goal(
    tail: Tail,
    cuts: Sequence[int],
    savings: Sequence[int],
    *,
    request: FoldRequest,
    needed: int,
    budgets: Budgets,
) -> int | None:
    """The cut that the whole compaction works towards."""
    if not cuts:
        return None
    if request.fold == "all" or savings[cuts[-1]] < needed:
        return cuts[-1]
    if needed <= 0:
        return None
    first = next(index for index in cuts if savings[index] >= needed)
    reach = savings[first] + budgets.share(TURN_START_REACH)
    starts = set(turn_starts(tail.outline))
    at_turn = (index for index in cuts if index >= first and savings[index] <= reach and index + 1 in starts)
    return next(at_turn, first)


def _chunk_end(
    cuts: Sequence[int], weights: Sequence[int], *, goal: int, chunk_tokens: int, outline: Sequence[Outline]
) -> int:
    """Where the first chunk ends: chunks of about equal size, none larger than the summarizer digests.

    A turn (or a tool exchange) larger than a chunk is still one chunk: the summarizer gets it elided.
    """
    sizes = list(accumulate(weights[: goal + 1]))
    if sizes[-1] <= chunk_tokens:
        return goal
    share = math.ceil(sizes[-1] / math.ceil(sizes[-1] / chunk_tokens))
    within = [index for index in cuts if index <= goal and sizes[index] <= chunk_tokens]
    if not within:
        return next(index for index in cuts if index <= goal)
    enough = [index for index in within if sizes[index] >= share]
    starts = set(turn_starts(outline))
    preferred = [index for index in enough if index + 1 in starts]
    return (preferred or enough or within[-1:])[0]
