"""Answers a probe from a context, by the statements that share words with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from app.core.anchors.topics import stems_of
from app.core.continuity.probes import Probe
from app.core.continuity.statements import Context
from app.core.text.values import Value

Answer = Literal["right", "wrong", "none"]
"""``wrong``: the context says something else about the same subject than any message does."""

SharedWords = Mapping[int, tuple[float, int]]
"""For each statement: the weight and the number of the words that it shares with a probe."""

_MIN_COVERED_SHARE: Final = 0.5
"""A statement with this share of the weight of a probe's words says the same, or is about the same."""
_MIN_SHARED_WORDS: Final = 2
_MIN_SHARED_WORDS_FOR_NAME: Final = 3
"""Shared words needed for a name: words near a name are fewer and vaguer than words near a value."""


def answer(probe: Probe, context: Context, earlier_context: Context) -> Answer:
    """The answer of a context to a probe.

    Args:
        probe: The question.
        context: The context that is asked.
        earlier_context: What was served before, and the messages themselves: values in these are no contradiction.
    """
    shared = context.shared_words(probe.cues)
    if probe.value is not None:
        return _answer_of_value_probe(probe, probe.value, context, earlier_context, shared)
    if probe.name:
        return _answer_of_name_probe(probe, context, earlier_context, shared)
    return "right" if any(_is_covered(probe, weight) for weight, _ in shared.values()) else "none"


def is_current(probe: Probe, earlier_context: Context) -> bool:
    """Whether the answer of a probe made from these messages still holds: no later message says something else."""
    if probe.value is None:
        return answer(probe, earlier_context, earlier_context) == "right"
    later = _shared_after(probe.seq, earlier_context, earlier_context.shared_words(probe.cues))
    return not any(True for _ in _rival_values(probe, probe.value, earlier_context, later))


def _shared_after(seq: int, context: Context, shared: SharedWords) -> SharedWords:
    statements = context.pool.statements
    return {number: found for number, found in shared.items() if (statements[number].seq or 0) > seq}


def _answer_of_value_probe(
    probe: Probe, value: Value, context: Context, earlier_context: Context, shared: SharedWords
) -> Answer:
    statements = context.pool.statements
    if probe.names_one_thing:
        holders = context.holding_text(value.text)
    else:
        about = [number for number, (_, count) in shared.items() if count >= probe.fewest_cues]
        holders = context.pool.holding(value, about)
    if holders:
        last = max(statements[number].seq or 0 for number in holders)
        later = _shared_after(last, context, shared)
        return "none" if any(True for _ in _rival_values(probe, value, context, later)) else "right"
    rivals = _rival_values(probe, value, context, shared)
    known = earlier_context.shared_words(probe.cues)
    return "wrong" if any(not _is_known_of_subject(other, earlier_context, known) for other in rivals) else "none"


def _rival_values(probe: Probe, value: Value, context: Context, shared: SharedWords) -> Iterator[Value]:
    for number, (weight, count) in shared.items():
        statement = context.pool.statements[number]
        if count >= _MIN_SHARED_WORDS and _is_covered(probe, weight):
            others = [one for one in statement.values if (one.kind, one.base) == (value.kind, value.base)]
            yield from [] if others and statement.holds(value) else others


def _is_known_of_subject(value: Value, earlier_context: Context, shared: SharedWords) -> bool:
    about = [number for number, (_, count) in shared.items() if count >= _MIN_SHARED_WORDS]
    return bool(earlier_context.pool.holding(value, about))


def _answer_of_name_probe(probe: Probe, context: Context, earlier_context: Context, shared: SharedWords) -> Answer:
    wanted = stems_of(probe.name)
    statements = context.pool.statements
    about = [number for number, (_, count) in shared.items() if count >= probe.fewest_cues]
    if any(wanted <= statements[number].stems for number in about):
        return "right"
    known = [
        statements[number]
        for number, (_, count) in earlier_context.shared_words(probe.cues).items()
        if count >= _MIN_SHARED_WORDS
    ]
    for number, (weight, count) in shared.items():
        if count >= _MIN_SHARED_WORDS_FOR_NAME and _is_covered(probe, weight):
            for name in statements[number].names:
                if not any(stems_of(name) <= one.stems | stems_of(one.speaker) for one in known):
                    return "wrong"
    return "none"


def _is_covered(probe: Probe, weight: float) -> bool:
    return weight >= _MIN_COVERED_SHARE * sum(probe.cues.values())
