"""Shortens a text from its end, to a number of characters or tokens. ``elision`` keeps both ends instead."""

from __future__ import annotations

from typing import Final

from app.core.text.token_counts import estimate_text

_MAX_SENTENCE_LENGTH: Final = 360  # the most characters of a sentence
_STEP: Final = 0.85


def clip(text: str, longest: int = _MAX_SENTENCE_LENGTH) -> str:
    """The text, cut at a word and with an ellipsis if it is longer than ``longest`` characters."""
    if len(text) <= longest:
        return text
    head = text[: longest - 1]
    space = head.rfind(" ")
    return (head[:space] if space > longest // 2 else head).rstrip(" ,;:") + "…"


def fitted(text: str, most: int, *, shortest: int = 1) -> str:
    """A text cut at a word until it has at most that many tokens, or is as short as ``shortest`` characters.

    Args:
        text: Any text.
        most: The most tokens, by the script estimate.
        shortest: The text is not cut below so many characters, whatever its tokens.
    """
    shown, longest = text, len(text)
    while longest > shortest and (weight := estimate_text(shown)) > most:
        longest = max(shortest, int(longest * min(_STEP, most / weight)))
        shown = clip(text, longest)
    return shown
