"""How entries in doubt are marked, in the state that is served and for the summarizer.

A state that is one text has no entries to mark. Sentences of the earlier text that the new one leaves out are put into
its last paragraph instead, which begins by saying so.
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
"""What separates a state in one text from its last paragraph of earlier sentences."""
_FRAMES: Final = tuple(f"{PARAGRAPH}{words}: " for words in _EARLIER.values())


def with_doubt_marks(entries: Sequence[StateEntry]) -> list[str]:
    """The texts of entries as they are served. An entry in doubt says so in its own language.

    If an entry is too short to know its language, it is marked in that of all entries together.
    """
    texts = [entry.text for entry in entries]
    if not any(entry.in_doubt for entry in entries):
        return texts
    home = likeliest("\n".join(texts)) or FALLBACK
    return [
        _marked_as_doubtful(entry, likeliest(entry.text) or home) if entry.in_doubt else entry.text for entry in entries
    ]


def without_doubt_mark(text: str) -> tuple[str, bool]:
    """A served text as it was before it was marked, and whether it is in doubt."""
    mark = next((one for one in _MARKS if text.endswith(one)), "")
    return text.removesuffix(mark), bool(mark)


def own_and_earlier_text(text: str) -> tuple[str, str]:
    """A state in one text, split into its own sentences and the last paragraph of earlier ones, without its mark."""
    served = f"{PARAGRAPH}{text}"
    found = ((served.find(frame), frame) for frame in _FRAMES if frame in served)
    place, frame = min(found, default=(len(served), ""))
    return served[len(PARAGRAPH) : place], served[place + len(frame) :]


def _marked_as_doubtful(entry: StateEntry, language: str) -> str:
    if entry.role == "narrative":
        return f"{_EARLIER.get(language, _EARLIER[FALLBACK])}: {entry.text}"
    return f"{entry.text} {_IN_DOUBT.get(language, _IN_DOUBT[FALLBACK])}"
