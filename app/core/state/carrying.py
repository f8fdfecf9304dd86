"""Exact values of a replaced entry, carried over to what took its place.

A model that writes "the parcel arrived" in place of "waiting for parcel JD0146" means the same parcel. A value is
carried when no text of the new state has it, and its successor has none of its kind: a new address takes the place of
an old one. Amounts, dates and versions are never carried: there another value, or none, is the news.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from app.core.text.identifiers import find_identifiers
from app.core.text.patterns import compiled

_CARRIED: Final = frozenset({"uuid", "url", "email", "path", "code"})
_MOST: Final = 6  # values that one entry is given
_SUFFIX: Final = compiled(r" \(([^()]{1,2000})\)\Z")


def carried(successors: Sequence[tuple[str, Sequence[str]]]) -> Mapping[int, str]:
    """The texts that change: (text, the texts it replaces) by place, to the text with the values it would lose."""
    present = "\n".join(text for text, _ in successors).casefold()
    changed: dict[int, str] = {}
    for place, (text, replaced) in enumerate(successors):
        found = [one for old in replaced for one in find_identifiers(old) if one.kind in _CARRIED] if replaced else []
        if not found:
            continue
        kinds = {one.kind for one in find_identifiers(text)}
        lost = [one.text for one in found if one.kind not in kinds and one.text.casefold() not in present]
        if lost:
            changed[place] = f"{text} ({', '.join(list(dict.fromkeys(lost))[:_MOST])})"
    return changed


def uncarried(text: str, superseded: Sequence[str]) -> str:
    """The text as the model wrote it."""
    suffix = _SUFFIX.search(text) if superseded else None
    if suffix is None:
        return text
    older = "\n".join(superseded)
    return text[: suffix.start()] if all(value in older for value in suffix[1].split(", ")) else text
