"""Measures whether segments are cut where topics change, on joined stretches of different talks with known seams.

Run with ``python -m bench.segments``. Names of the speakers and all times are removed, so that only the words show the
seams. Pk (Beeferman et al., 1999) and WindowDiff (Pevzner and Hearst, 2002) are the share of windows in which a cutting
and the truth disagree; smaller is better.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Final
from uuid import UUID

from app.core.model.conversation import Message, Role
from app.core.model.policies.policy import SegmentBy
from app.core.segments.segmentation import split_into_segments
from app.core.text.token_counts import weigh
from bench.recall_talks import Talk, talks
from bench.report import print_table, take_no_options, write_json
from bench.survival import DATA

MIXTURES: Final = 40
STRETCHES: Final = 12
MIN_MESSAGES: Final = 6
MAX_MESSAGES: Final = 30
"""The most messages of a stretch."""

_SEED: Final = 20261120
_NEAR: Final = 1  # messages by which a cut may miss a seam and still find it
_LABEL: Final = re.compile(r"^[^\W\d_][\w.'’-]{0,23}: ")
_NIL: Final = UUID(int=0)
_THEN: Final = datetime(2026, 1, 1, tzinfo=UTC)

Cutter = Callable[[Sequence[Message], int], frozenset[int]]
"""Gives the places where segments begin, for messages and the number of seams."""


def mixture(given: Sequence[Talk], draw: random.Random) -> tuple[list[Message], frozenset[int]]:
    """Stretches of talks in a row (neighbours are of different talks), and the places of their seams."""
    messages: list[Message] = []
    seams: set[int] = set()
    last = -1
    for _ in range(STRETCHES):
        which = draw.choice([index for index in range(len(given)) if index != last])
        last, size = which, draw.randint(MIN_MESSAGES, MAX_MESSAGES)
        start = draw.randrange(max(1, len(given[which].messages) - size))
        if messages:
            seams.add(len(messages))
        for one in given[which].messages[start : start + size]:
            messages.append(_message(len(messages) + 1, one["role"], _LABEL.sub("", one["content"])))
    return messages, frozenset(seams)


def by_topic(messages: Sequence[Message], seams: int) -> frozenset[int]:
    """The service's own cutting, which ignores the number of seams."""
    del seams
    starts = {segment[0].seq - 1 for segment in split_into_segments(messages, SegmentBy())}
    return frozenset(starts - {0})


def evenly(messages: Sequence[Message], seams: int) -> frozenset[int]:
    """As many places as there are seams, at equal distances."""
    return frozenset(round(len(messages) * (number + 1) / (seams + 1)) for number in range(seams))


def at_random(messages: Sequence[Message], seams: int) -> frozenset[int]:
    """As many places as there are seams, at random."""
    return frozenset(random.Random(len(messages)).sample(range(1, len(messages)), seams))


def nowhere(messages: Sequence[Message], seams: int) -> frozenset[int]:
    """No places: never cut."""
    del messages, seams
    return frozenset()


CUTTERS: Final[dict[str, Cutter]] = {"by topic": by_topic, "evenly": evenly, "at random": at_random, "nowhere": nowhere}


def pk(truth: frozenset[int], found: frozenset[int], length: int) -> float:
    """The share of windows, half a true segment long, whose ends are in the same segment in one cutting only."""
    return _disagree(truth, found, length, exactly=False)


def window_diff(truth: frozenset[int], found: frozenset[int], length: int) -> float:
    """The share of such windows in which the number of borders differs."""
    return _disagree(truth, found, length, exactly=True)


def _disagree(truth: frozenset[int], found: frozenset[int], length: int, *, exactly: bool) -> float:
    width = max(2, round(length / (len(truth) + 1) / 2))
    wrong = 0
    for start in range(length - width):
        inside = range(start + 1, start + width + 1)
        real, ours = sum(place in truth for place in inside), sum(place in found for place in inside)
        wrong += real != ours if exactly else bool(real) != bool(ours)
    return wrong / max(1, length - width)


def found_share(truth: frozenset[int], found: frozenset[int]) -> float:
    """The share of the seams that have a cut at or next to them."""
    near = {place + step for place in found for step in range(-_NEAR, _NEAR + 1)}
    return len(truth & near) / len(truth) if truth else 1.0


def table(given: Sequence[Talk], mixtures: int = MIXTURES) -> list[tuple[str, float, float, float, float]]:
    """For each way of cutting: Pk, WindowDiff, share of the seams found, cuts per seam."""
    draw = random.Random(_SEED)
    mixed = [mixture(given, draw) for _ in range(mixtures)]
    rows = []
    for name, cutter in CUTTERS.items():
        results = [(seams, cutter(messages, len(seams)), len(messages)) for messages, seams in mixed]
        rows.append(
            (
                name,
                fmean(pk(*one) for one in results),
                fmean(window_diff(*one) for one in results),
                fmean(found_share(seams, found) for seams, found, _ in results),
                fmean(len(found) / len(seams) for seams, found, _ in results),
            )
        )
    return rows


def _message(seq: int, role: str, content: str) -> Message:
    kind: Role = "assistant" if role == "assistant" else "user"
    weight = weigh(kind, content)
    return Message(
        id=_NIL,
        conversation_id=_NIL,
        seq=seq,
        role=kind,
        content=content,
        token_count=weight.tokens,
        byte_length=weight.bytes,
        created_at=_THEN,
    )


def main(path: Path = DATA) -> None:
    """Print the table; missing data is not an error."""
    given = talks(path)
    if not given:
        print(f"No conversations to cut: the data is not at {path}.")
        return
    rows = table(given)
    headers = ("cut", "Pk", "WindowDiff", "seams found (±1), %", "cuts per seam")
    shown = [
        (name, f"{wrong:.3f}", f"{differing:.3f}", f"{100 * found:.1f}", f"{cuts:.2f}")
        for name, wrong, differing, found, cuts in rows
    ]
    print_table(headers, shown)
    write_json("segments", [dict(zip(headers, row, strict=True)) for row in rows])


if __name__ == "__main__":
    take_no_options(__doc__)
    main()
