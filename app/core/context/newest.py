"""The newest messages of a given array that fit: system messages stay, and no result stands without its call."""

from __future__ import annotations

from collections.abc import Sequence

from app.core.model.model_io import ContextMessage
from app.core.text.budget import first_fitting


def newest_within(messages: Sequence[ContextMessage], sizes: Sequence[int], room: int) -> tuple[ContextMessage, ...]:
    """What is left when the oldest messages are left out until the rest fits.

    Args:
        messages: In order.
        sizes: Of each, in tokens.
        room: Tokens for all.

    Returns:
        Nothing where not even the last message fits beside the system messages, or where it is a result whose call
        does not.
    """
    kept = {number for number, message in enumerate(messages) if message.role == "system"}
    others = (number for number in reversed(range(len(messages))) if number not in kept)
    newest = first_fitting(others, room - sum(sizes[number] for number in kept), sizes.__getitem__)
    first = newest[-1] if newest else len(messages)
    while first < len(messages) and messages[first].role in {"tool", "system"}:
        first += 1
    if not any(number >= first and number not in kept for number in range(len(messages))):
        return ()
    return tuple(message for number, message in enumerate(messages) if number in kept or number >= first)
