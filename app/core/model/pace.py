"""The pace of a conversation: how fast it grows, how long its compactions take, how much comes from the cache."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final

MAX_TURNS: Final = 8
"""The newest turns that a pace is measured over."""
MIN_TURNS: Final = 3
"""A conversation with fewer turns has no pace yet."""
MAX_COMPACTIONS: Final = 5
"""The newest applied compactions whose time counts."""
MAX_MESSAGES: Final = 400
"""The most messages that are looked at to measure a pace; a turn with many tool calls has dozens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSample:
    """The numbers of a stored message from which the pace is computed."""

    role: str
    tokens: int
    """The tokens of the message in a context, by the policy's estimator; 0 for a command or an erased message."""
    at: datetime
    is_command: bool = False
    input_tokens: int = 0
    """The input tokens that the provider counted in the requests for a reply."""
    cached_tokens: int = 0
    """How many of the input tokens came from the provider's cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How a conversation went in its newest turns."""

    turns: int
    """The number of turns that it was measured over."""
    turn_tokens: int
    """The tokens that a turn added on average: question, tool calls and reply."""
    largest_turn: int
    """The tokens that the largest turn added."""
    turn_seconds: float | None
    """The lower quartile of the seconds from one turn to the next; ``None``: the messages were imported all at once."""
    compaction_seconds: float | None
    """Seconds from claim to end of the longest of the newest compactions; ``None`` while there is none."""
    cached_share: float
    """The share of cached tokens among those that the provider counted in requests; 0 where it reports nothing."""


def pace_of(samples: Sequence[MessageSample], compactions: Sequence[float], *, factor: float = 1.0) -> Pace | None:
    """The pace of a conversation, at the end of a turn.

    Args:
        samples: Its newest messages, oldest first.
        compactions: How many seconds its newest applied compactions took.
        factor: The factor by which estimated tokens are multiplied before they are compared with thresholds.

    Returns:
        ``None`` with fewer than ``MIN_TURNS`` complete turns.
    """
    turns = _samples_by_turn(samples)[-MAX_TURNS:]
    if len(turns) < MIN_TURNS:
        return None
    sizes = [math.ceil(factor * sum(step.tokens for step in turn)) for turn in turns]
    starts = [turn[0].at for turn in turns]
    apart = sorted(seconds for before, after in pairwise(starts) if (seconds := (after - before).total_seconds()) > 0)
    asked = sum(step.input_tokens for turn in turns for step in turn)
    cached = sum(step.cached_tokens for turn in turns for step in turn)
    return Pace(
        turns=len(turns),
        turn_tokens=math.ceil(sum(sizes) / len(sizes)),
        largest_turn=max(sizes),
        turn_seconds=round(apart[len(apart) // 4], 3) if apart else None,
        compaction_seconds=round(max(compactions), 3) if compactions else None,
        cached_share=round(min(cached / asked, 1.0), 4) if asked else 0.0,
    )


def _samples_by_turn(samples: Sequence[MessageSample]) -> list[list[MessageSample]]:
    """The steps of each turn: from a user's message, or several in a row, up to the next one.

    Steps before the first user's message belong to no turn.
    """
    turns: list[list[MessageSample]] = []
    before = None
    for step in samples:
        if step.is_command:
            continue
        if step.role == "user" and before != "user":
            turns.append([step])
        elif turns:
            turns[-1].append(step)
        before = step.role
    return turns
