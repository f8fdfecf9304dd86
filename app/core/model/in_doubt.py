"""How an entry in doubt is told from the others, in what is served and in what a summarizer is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.core.model.state import StateEntry
from app.core.text.language import likeliest
from app.core.text.languages.loading import languages
from app.core.text.localization.catalogue import FALLBACK

_IN_DOUBT: Final = {language.code: language.in_doubt for language in languages() if language.in_doubt}


_MARKS: Final = tuple(f" {mark}" for mark in _IN_DOUBT.values())


def marked(entries: Sequence[StateEntry]) -> list[str]:
    """Entries' texts as they are served: one in doubt says so, in its language, or in that of all where it is short."""
    texts = [entry.text for entry in entries]
    if not any(entry.in_doubt for entry in entries):
        return texts
    home = likeliest("\n".join(texts)) or FALLBACK
    return [
        f"{text} {_IN_DOUBT.get(likeliest(text) or home, _IN_DOUBT[FALLBACK])}" if entry.in_doubt else text
        for entry, text in zip(entries, texts, strict=True)
    ]


def unmarked(text: str) -> tuple[str, bool]:
    """A served text as it was before it was marked, and whether it is in doubt."""
    mark = next((one for one in _MARKS if text.endswith(one)), "")
    return text.removesuffix(mark), bool(mark)
