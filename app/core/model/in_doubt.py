"""How an entry in doubt is marked in what is served and in what a summarizer is shown.

Of a state that is one text this is what stood in the text before, and the new one does not tell: a paragraph of its own
behind the text, which says at its beginning what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.core.model.state import StateEntry
from app.core.text.language import likeliest
from app.core.text.languages.loading import languages
from app.core.text.localization.catalogue import FALLBACK

_IN_DOUBT: Final = {language.code: language.in_doubt for language in languages() if language.in_doubt}


_MARKS: Final = tuple(f" {mark}" for mark in _IN_DOUBT.values())
_EARLIER: Final = {language.code: language.earlier for language in languages() if language.earlier}
PARAGRAPH: Final = "\n\n"
"""Between a text that is the whole state and what is told behind it."""
_FRAMES: Final = tuple(f"{PARAGRAPH}{words}: " for words in _EARLIER.values())


def marked(entries: Sequence[StateEntry]) -> list[str]:
    """Entries' texts as they are served: one in doubt says so, in its language, or in that of all where it is short."""
    texts = [entry.text for entry in entries]
    if not any(entry.in_doubt for entry in entries):
        return texts
    home = likeliest("\n".join(texts)) or FALLBACK
    return [
        _marked_as_doubtful(entry, likeliest(entry.text) or home) if entry.in_doubt else entry.text for entry in entries
    ]


def unmarked(text: str) -> tuple[str, bool]:
    """A served text as it was before it was marked, and whether it is in doubt."""
    mark = next((one for one in _MARKS if text.endswith(one)), "")
    return text.removesuffix(mark), bool(mark)


def told_and_earlier(text: str) -> tuple[str, str]:
    """A served text that is the whole state: what it tells, and behind it what was told earlier, without its mark."""
    served = f"{PARAGRAPH}{text}"
    found = ((served.find(frame), frame) for frame in _FRAMES if frame in served)
    place, frame = min(found, default=(len(served), ""))
    return served[len(PARAGRAPH) : place], served[place + len(frame) :]


def _marked_as_doubtful(entry: StateEntry, language: str) -> str:
    if entry.role == "narrative":
        return f"{_EARLIER.get(language, _EARLIER[FALLBACK])}: {entry.text}"
    return f"{entry.text} {_IN_DOUBT.get(language, _IN_DOUBT[FALLBACK])}"
