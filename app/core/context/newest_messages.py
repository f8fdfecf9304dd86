"""Takes the newest messages that fit into a number of tokens; system messages stay, calls keep their results."""

from __future__ import annotations

from collections.abc import Sequence

from app.core.model.model_io import ContextMessage
from app.core.text.budget import first_fitting


def newest_within(
    messages: Sequence[ContextMessage], sizes: Sequence[int], max_tokens: int
) -> tuple[ContextMessage, ...]:
    """Leave out the oldest messages, except system messages, until the rest fits.

    ``sizes`` are the tokens of each message, in the same order.

    Returns:
        The messages that are left, in order. It is empty if the last message, or the call that it answers, does not fit
        together with the system messages.
    """
    kept = {number for number, message in enumerate(messages) if message.role == "system"}
    others = (number for number in reversed(range(len(messages))) if number not in kept)
    newest = first_fitting(others, max_tokens - sum(sizes[number] for number in kept), sizes.__getitem__)
    first = newest[-1] if newest else len(messages)
    while first < len(messages) and messages[first].role in {"tool", "system"}:
        first += 1
    if not any(number >= first and number not in kept for number in range(len(messages))):
        return ()
    return tuple(message for number, message in enumerate(messages) if number in kept or number >= first)
