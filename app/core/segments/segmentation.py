"""Cuts covered messages into segments: by topic, by turns, by messages, or by silence. Pure, in linear time.

Topics are found by lexical cohesion, in any script; a segment that is too long for one level of detail is always cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from app.core.model.conversation import Message
from app.core.model.word_overlap import message_text
from app.core.segments.cohesion import cheapest_borders
from app.core.text.words import GENERIC_STEMS, stems

if TYPE_CHECKING:
    from app.core.model.policies.policy import SegmentBy

TURNS: Final = 10
MESSAGES: Final = 20
MINUTES: Final = 180
"""The default sizes of segments."""

MIN_MESSAGES: Final = 4
"""The fewest messages of a topic, unless there are no more."""
USUAL: Final = 24
"""The usual messages of a topic: with each further one a border becomes cheaper."""
MAX_MESSAGES: Final = 40
"""The most messages of a topic: a longer segment cannot be told in one passage."""
MAX_TOKENS: Final = 3_000
"""The most tokens of a topic, since a level of detail is made from a segment at once."""

_SAMPLE: Final = 6_000  # the most characters of a message that are read for its words
_TURN: Final = 1.0  # the gain in nats of a border at the start of a turn
_PAUSE: Final = 200.0  # the gain in nats of a border after a long silence: more than words ever give
_MISSING: Final = 70.0  # the cost in nats of each missing message: only a silence leaves two or three messages alone
_BEYOND: Final = 0.5  # the cost in nats of each message beyond the usual number
_OFTEN: Final = 0.25  # a share of all places: silences as frequent as that mean nothing


def split_into_segments(messages: Sequence[Message], segment_by: SegmentBy) -> list[tuple[Message, ...]]:
    """The segments, in order, with every message in exactly one; a tool call and its results are never separated."""
    if not messages:
        return []
    allowed_starts = _allowed_starts(messages)
    if segment_by.by == "topic":
        starts = _starts_by_topic(messages, allowed_starts)
    elif segment_by.by == "time":
        starts = [place for place in _silences(messages, segment_by.size or MINUTES) if place in allowed_starts]
    else:
        starts = _starts_by_count(messages, segment_by, allowed_starts)
    bounds = [0, *starts, len(messages)]
    return [tuple(messages[start:end]) for start, end in pairwise(bounds)]


def _starts_by_count(messages: Sequence[Message], segment_by: SegmentBy, allowed_starts: frozenset[int]) -> list[int]:
    """The places where segments begin: every ``how.size`` turns or messages, or after a call and its result there."""
    size = segment_by.size or (TURNS if segment_by.by == "turns" else MESSAGES)
    starts: list[int] = []
    counted = 0
    for place, message in enumerate(messages):
        counts = segment_by.by == "messages" or message.role == "user"
        if counts and counted >= size and place in allowed_starts:
            starts.append(place)
            counted = 0
        counted += counts
    return starts


def _silences(messages: Sequence[Message], minutes: float) -> list[int]:
    pause = timedelta(minutes=minutes)
    return [
        place
        for place in range(1, len(messages))
        if messages[place].created_at - messages[place - 1].created_at > pause
    ]


def _starts_by_topic(messages: Sequence[Message], allowed_starts: frozenset[int]) -> list[int]:
    """The places where segments begin: at a new topic or after a long silence, and only where a turn begins."""
    weights = list(accumulate((message.token_count for message in messages), initial=0))

    def may_run(start: int, end: int) -> bool:
        return end - start <= MAX_MESSAGES and weights[end] - weights[start] <= MAX_TOKENS

    return cheapest_borders(
        [_content_stems(message) for message in messages],
        places=[0, *sorted(allowed_starts), len(messages)],
        gains=_gains_of_cuts(messages),
        penalty=lambda length: _MISSING * max(MIN_MESSAGES - length, 0) + _BEYOND * max(length - USUAL, 0),
        reach=may_run,
    )


def _gains_of_cuts(messages: Sequence[Message]) -> list[float]:
    gains = [0.0] * len(messages)
    for place in range(1, len(messages)):
        if messages[place].role == "user" and messages[place - 1].role != "user":
            gains[place] += _TURN
    silences = _silences(messages, MINUTES)
    if len(silences) <= max(1, _OFTEN * len(messages)):
        for place in silences:
            gains[place] += _PAUSE
    return gains


def _content_stems(message: Message) -> list[str]:
    # The words are sorted, since sums of fractions depend on the order.
    return sorted(frozenset(stems(message_text(message)[:_SAMPLE])) - GENERIC_STEMS)


def _allowed_starts(messages: Sequence[Message]) -> frozenset[int]:
    """The places where a segment may begin: not between a call and its last result."""
    calls: dict[str, int] = {}
    inside_pairs: list[tuple[int, int]] = []
    for place, message in enumerate(messages):
        for part in message.parts:
            if part.get("type") == "tool_call":
                calls[str(part.get("id"))] = place  # an id that is used again means the latest call
            elif part.get("type") == "tool_result":
                call = calls.get(str(part.get("tool_call_id")))
                if call is not None and call < place:
                    inside_pairs.append((call + 1, place + 1))
    change = [0] * (len(messages) + 1)
    for first, last in inside_pairs:
        change[first] += 1
        change[last] -= 1
    open_pairs = 0
    allowed: set[int] = set()
    for place in range(len(messages)):
        open_pairs += change[place]
        if place and not open_pairs:
            allowed.add(place)
    return frozenset(allowed)
