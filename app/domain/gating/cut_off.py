"""Whether a text stops in the middle: past doubt, by its last sign alone."""

from __future__ import annotations

from typing import Final

_OPENING: Final = "([{（"
_CLOSING: Final = ")]}）"
_GOING_ON: Final = frozenset(",;:(-–—[{«„「（，、：；")
_TAIL: Final = 4_000  # characters in which a bracket may have been opened


def is_cut_off(text: str) -> bool:
    """Whether a text ends with a sign after which something must follow, or within a bracket that nothing closes."""
    end = text.rstrip()[-_TAIL:]
    if not end:
        return False
    if end[-1] in _GOING_ON:
        return True
    depth = 0
    for sign in end:
        depth = max(depth + (sign in _OPENING) - (sign in _CLOSING), 0)
    return depth > 0
