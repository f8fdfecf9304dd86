"""Answering a probe from a context: by the statements that its words lead to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from app.core.anchors.topics import stems_of
from app.core.continuity.probes import Probe
from app.core.continuity.statements import Context
from app.core.text.values import Value

Answer = Literal["right", "wrong", "none"]
"""``wrong``: the context says something else of the same subject, which no message says of it."""

_COVERED: Final = 0.5
"""Of the weight of a probe's words: a statement with that much says the same, or is about the same."""
_LEADING_CUES: Final = 2
_LEADING_TO_NAMES: Final = 3  # words beside a name are fewer and looser than beside a value


def answer(probe: Probe, context: Context, said: Context) -> Answer:
    """What a context answers.

    Args:
        probe: The question.
        context: What is asked.
        said: What was served before, with the messages themselves: what it says is no contradiction.
    """
    shared = context.shared(probe.cues)
    if probe.value is not None:
        return _with_value(probe, probe.value, context, said, shared)
    if probe.name:
        return _with_name(probe, context, said, shared)
    return "right" if any(_is_covered(probe, weight) for weight, _ in shared.values()) else "none"


def _with_value(
    probe: Probe, value: Value, context: Context, said: Context, shared: Mapping[int, tuple[float, int]]
) -> Answer:
    statements = context.pool.statements
    holders = [number for number in context.holding(value) if shared.get(number, (0, 0))[1] >= probe.fewest_cues]
    rivals = list(_rivals(probe, value, context, shared))
    if holders:
        last = max(statements[number].seq or 0 for number in holders)
        return "none" if any((statements[number].seq or 0) > last for number, _ in rivals) else "right"
    known = said.shared(probe.cues)
    return "wrong" if any(not _is_said(other, said, known) for _, other in rivals) else "none"


def _rivals(
    probe: Probe, value: Value, context: Context, shared: Mapping[int, tuple[float, int]]
) -> Iterator[tuple[int, Value]]:
    """(statement, value): values of the same sort where the words lead, in statements without the answer."""
    holding = set(context.holding(value))
    for number, (weight, count) in shared.items():
        if number not in holding and count >= _LEADING_CUES and _is_covered(probe, weight):
            for other in context.pool.statements[number].values:
                if (other.kind, other.base) == (value.kind, value.base):
                    yield number, other


def _is_said(value: Value, said: Context, known: Mapping[int, tuple[float, int]]) -> bool:
    """Whether the messages say this value of the same subject."""
    return any(known.get(number, (0, 0))[1] >= _LEADING_CUES for number in said.holding(value))


def _with_name(probe: Probe, context: Context, said: Context, shared: Mapping[int, tuple[float, int]]) -> Answer:
    wanted = stems_of(probe.name)
    statements = context.pool.statements
    about = [number for number, (_, count) in shared.items() if count >= probe.fewest_cues]
    if any(wanted <= statements[number].stems for number in about):
        return "right"
    known = [statements[number] for number, (_, count) in said.shared(probe.cues).items() if count >= _LEADING_CUES]
    for number, (weight, count) in shared.items():
        if count >= _LEADING_TO_NAMES and _is_covered(probe, weight):
            for name in statements[number].names:
                if not any(stems_of(name) <= one.stems | stems_of(one.speaker) for one in known):
                    return "wrong"
    return "none"


def _is_covered(probe: Probe, weight: float) -> bool:
    return weight >= _COVERED * sum(probe.cues.values())
