"""Blanks that look like a space: typographers, web pages and models put them where a line must not break."""

from __future__ import annotations

from typing import Final

from app.core.text.patterns import compiled

_BLANKS: Final = compiled("[\u00a0\u2000-\u200a\u202f\u205f]")


def with_plain_blanks(text: str) -> str:
    """The text with plain spaces, in which patterns of words are looked for. Its length is kept."""
    return text if text.isascii() else _BLANKS.sub(" ", text)
