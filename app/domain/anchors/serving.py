"""Which anchors are served: every active one whose message is not, as far as their room goes; the same words once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from app.domain.anchors.rendering import FRAME_TOKENS, line_tokens
from app.domain.anchors.values import Anchor, FoundAnchor
from app.domain.weighing.tokens import Estimator


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What of a conversation's anchors stands in the block."""

    shown: tuple[FoundAnchor, ...] = ()
    """In order of position."""
    behind_marker: int = 0
    """How many more there are with other words, for which there was no room."""


NOTHING_SERVED: Final = Served()

LEAST_ROOM: Final = 1
"""Tokens: what is asked for where nothing is left of an allotment: anchors that a user set, and the marker."""


def serve(
    active: Sequence[FoundAnchor],
    *,
    through_seq: int,
    held: Collection[int],
    room: int | None,
    estimator: Estimator = "script",
) -> Served:
    """Choose among the active anchors.

    Args:
        active: The conversation's active ones.
        through_seq: The last message that is not in the served tail.
        held: Messages up to there that are served verbatim all the same.
        room: Tokens for the whole element; the least important and oldest of rule or model origin that exceed it
            stand behind the marker, those that a user set never do. ``None``: all are shown; ``0``: the
            policy serves none, so that not even the marker stands there.
        estimator: How lines are weighed.
    """
    if room == 0:
        return NOTHING_SERVED
    eligible = [anchor for anchor in active if _is_active(anchor) and anchor.seq <= through_seq]
    eligible = _distinct(sorted((anchor for anchor in eligible if anchor.seq not in held), key=_position))
    if room is None:
        return Served(shown=tuple(eligible))
    hidden = _hidden(eligible, room=room, estimator=estimator)
    shown = tuple(anchor for index, anchor in enumerate(eligible) if index not in hidden)
    return Served(shown=shown, behind_marker=len(hidden))


def _distinct(anchors: Sequence[FoundAnchor]) -> list[FoundAnchor]:
    """Of several that say the same in the same words the newest one that a user set, else the newest."""
    last: dict[tuple[str, str], int] = {}
    for index, anchor in enumerate(anchors):
        said = (anchor.type, anchor.content)
        if said not in last or anchor.proposed_by == "user" or anchors[last[said]].proposed_by != "user":
            last[said] = index
    return [anchors[index] for index in sorted(last.values())]


def _hidden(anchors: Sequence[FoundAnchor], *, room: int, estimator: Estimator) -> set[int]:
    """Indexes of those that go, the least important and then the oldest first, until the rest fits."""
    sizes = [_size(anchor, estimator) for anchor in anchors]
    excess = sum(sizes) + (FRAME_TOKENS if anchors else 0) - room
    movable = [index for index, anchor in enumerate(anchors) if anchor.proposed_by != "user"]
    hidden: set[int] = set()
    for index in sorted(movable, key=lambda index: anchors[index].importance):  # of equals the order stays
        if excess <= 0:
            break
        hidden.add(index)
        excess -= sizes[index]
    return hidden


def _size(anchor: FoundAnchor, estimator: Estimator) -> int:
    """``token_count`` is the script estimate of the very line."""
    if estimator == "script":
        return anchor.token_count
    return line_tokens(anchor.type, anchor.seq, anchor.content, estimator)


def _is_active(anchor: FoundAnchor) -> bool:
    return not isinstance(anchor, Anchor) or anchor.status == "active"


def _position(anchor: FoundAnchor) -> tuple[int, int, str, str, str, float]:
    """In order of position; what follows decides between doubles."""
    return anchor.seq, anchor.offset, anchor.type, anchor.content, anchor.proposed_by, anchor.importance
