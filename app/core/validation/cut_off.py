"""Whether a text stops in the middle: past doubt, by its last sign alone."""

from __future__ import annotations

from typing import Final

_GOING_ON: Final = frozenset(",:(-–—[{«„「（，、：")


def is_cut_off(text: str) -> bool:
    """Whether a text ends with a sign after which something must follow.

    A semicolon is none: a line of code may end with it.
    """
    return text.rstrip()[-1:] in _GOING_ON
