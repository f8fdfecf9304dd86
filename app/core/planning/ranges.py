"""Which ranges of a conversation are finished, so that each can be summarized on its own."""

from __future__ import annotations

from collections.abc import Sequence

from app.core.model.conversation import Outline
from app.core.model.records import FoldRequest
from app.core.planning.cuts import Tail, legal_cuts
from app.core.text.token_counts import Estimator

FOLLOWING = 64
"""Messages after a range that are read to see whether it is finished: results of its last calls may be there."""


def is_finished(outline: Sequence[Outline], to_seq: int, *, complete: bool, estimator: Estimator) -> bool:
    """Whether the range from the first of these messages to ``to_seq`` is over.

    Nothing in it waits for an answer or a result, and no call stands in it without its result, or a result without its
    call.

    ``outline`` begins with the range and may go on after it; ``complete``: the conversation ends with it.
    """
    inside = [item for item in outline if item.seq <= to_seq]
    if not inside or inside[-1].seq != to_seq:
        return False
    calls = frozenset[str]().union(*(item.calls for item in inside))
    results = frozenset[str]().union(*(item.results for item in inside))
    tail = Tail(outline=tuple(outline), complete=complete)
    cuts = legal_cuts(tail, estimator=estimator, request=FoldRequest(fold="all"))
    return results <= calls and len(inside) - 1 in cuts
