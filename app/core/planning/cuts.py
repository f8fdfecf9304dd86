"""The places at which a tail may be cut, as small rules that each forbid some places.

A *cut* at index ``i`` folds ``outline[0..i]``. The rules: a tool call and its result stay on one side; there is no cut
after a call that still waits for its result; the unanswered user message stays until a step of its answer has all its
results; messages that the request keeps stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from app.core.model.conversation import Outline
from app.core.model.policies.protection import call_groups
from app.core.model.records import FoldRequest
from app.core.text.token_counts import Estimator, tokens_of

MESSAGES_READ_AFTER_RANGE = 64
"""How many messages after a range are read to see whether it is finished: they may have results of its last calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The messages after the boundary that the planner was given, oldest first."""

    outline: tuple[Outline, ...]
    complete: bool = True
    """Whether the outline reaches to the newest message."""


def legal_cuts(tail: Tail, *, estimator: Estimator, request: FoldRequest) -> list[int]:
    """Every index after which the outline may be cut, in order."""
    last = _last_foldable(tail, estimator=estimator, request=request)
    split = _indexes_inside_pairs(tail)
    return [index for index in range(last + 1) if not split[index]]


def is_complete_range(outline: Sequence[Outline], to_seq: int, *, complete: bool, estimator: Estimator) -> bool:
    """Whether a range of messages can be summarized by itself.

    Nothing in it may wait for an answer or a result, and it has to contain each call together with its result.

    Args:
        outline: Messages from the beginning of the range on, perhaps with later ones.
        to_seq: The end of the range.
        complete: Whether the conversation ends with ``outline``.
        estimator: How tokens are counted.
    """
    inside = [item for item in outline if item.seq <= to_seq]
    if not inside or inside[-1].seq != to_seq:
        return False
    calls = frozenset[str]().union(*(item.calls for item in inside))
    results = frozenset[str]().union(*(item.results for item in inside))
    tail = Tail(outline=tuple(outline), complete=complete)
    cuts = legal_cuts(tail, estimator=estimator, request=FoldRequest(fold="all"))
    return results <= calls and len(inside) - 1 in cuts


def turn_starts(outline: Sequence[Outline]) -> list[int]:
    """The indexes at which a turn begins: every user message that is not a command."""
    return [index for index, item in enumerate(outline) if item.role == "user" and not item.is_command]


def held_indexes(outline: Sequence[Outline]) -> frozenset[int]:
    """The indexes of held messages and of the other halves of their tool pairs, which are served together."""
    if not any(item.is_protected for item in outline):
        return frozenset()
    pairs = call_groups([(item.calls, item.results) for item in outline])
    return frozenset(chain.from_iterable(pair for pair in pairs if any(outline[index].is_protected for index in pair)))


def weight_of(item: Outline, estimator: Estimator) -> int:
    """The tokens of a message in a context; 0 for a command or an erased message, which are never sent."""
    return 0 if item.is_command else tokens_of(item.token_count, item.byte_length, estimator)


def _indexes_inside_pairs(tail: Tail) -> list[bool]:
    """For each index, whether a cut there would separate a call from its result, or follow a call that still waits.

    No call waits any more once its turn is over: then a stub is its result.
    """
    outline = tail.outline
    answered = _last_results(outline)
    starts = turn_starts(outline)
    non_commands = [index for index, item in enumerate(outline) if not item.is_command]
    is_over = tail.complete and bool(non_commands) and not _last_turn_is_open(outline, non_commands)
    open_from = len(outline) if is_over else starts[-1] if starts else 0
    depth = [0] * (len(outline) + 1)
    for index, item in enumerate(outline):
        for call in item.calls:
            end = answered.get((index, call), len(outline) if index >= open_from else index)
            depth[index] += 1
            depth[max(end, index)] -= 1
    return [level > 0 for level in accumulate(depth)][: len(outline)]


def _last_foldable(tail: Tail, *, estimator: Estimator, request: FoldRequest) -> int:
    """The largest index that the request's numbers to keep allow to fold; −1 if nothing may be folded."""
    outline = tail.outline
    limits = [len(outline) - 1]
    non_commands = [index for index, item in enumerate(outline) if not item.is_command]
    if tail.complete and (question := _unanswered_question(outline, non_commands)) is not None:
        limits.append(question - 1)
    if request.keep_messages:
        limits.append(_index_before_last(non_commands, request.keep_messages))
    if request.keep_turns:
        starts = turn_starts(outline)
        kept = request.keep_turns + (1 if _last_turn_is_open(outline, non_commands) else 0)
        limits.append(_index_before_last(starts, kept))
    if request.keep_tokens:
        limits.append(_index_before_last_tokens(outline, estimator, request.keep_tokens))
    if request.up_to_seq is not None:
        limits.append(max((i for i, item in enumerate(outline) if item.seq <= request.up_to_seq), default=-1))
    return min(limits)


def _unanswered_question(outline: Sequence[Outline], non_commands: Sequence[int]) -> int | None:
    starts = turn_starts(outline)
    if not starts or not _last_turn_is_open(outline, non_commands):
        return None
    answered, first = _last_results(outline), starts[-1]
    steps = ((index, item.calls) for index, item in enumerate(outline[first:], first) if item.calls)
    return None if any(all((index, call) in answered for call in calls) for index, calls in steps) else first


def _index_before_last(indexes: Sequence[int], count: int) -> int:
    return indexes[-count] - 1 if len(indexes) >= count else -1


def _index_before_last_tokens(outline: Sequence[Outline], estimator: Estimator, tokens: int) -> int:
    kept = 0
    for index in range(len(outline) - 1, -1, -1):
        kept += weight_of(outline[index], estimator)
        if kept >= tokens:
            return index - 1
    return -1


def _last_turn_is_open(outline: Sequence[Outline], non_commands: Sequence[int]) -> bool:
    if not non_commands:
        return False
    index = non_commands[-1]
    last, answered = outline[index], _last_results(outline)
    return last.role != "assistant" or any((index, call) not in answered for call in last.calls)


def _last_results(outline: Sequence[Outline]) -> dict[tuple[int, str], int]:
    """The index of each call's last result, by the index of the call and its id; calls without a result are left out.

    Clients may use an id again, some in every turn, so a result belongs to the last call with its id before it.
    """
    callers: dict[str, int] = {}
    found: dict[tuple[int, str], int] = {}
    for index, item in enumerate(outline):
        callers.update(dict.fromkeys(item.calls, index))
        found.update(((callers[call], call), index) for call in item.results if call in callers)
    return found
