"""Finds elements in a text in linear time, even if many are never closed; one pattern for whole elements could not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Element:
    """One element."""

    opening: re.Match[str]
    inside: str
    end: int
    """The place after its closing tag."""


def elements_in(text: str, opening: re.Pattern[str], closing: Callable[[re.Match[str]], str]) -> Iterator[Element]:
    """Every element, from an opening to the next closing text after it; elements inside others are not found.

    Args:
        text: Any text.
        opening: The pattern of an opening; it must not run over another opening.
        closing: The closing text for an opening, one of a few texts.
    """
    place = 0
    never: set[str] = set()
    while found := opening.search(text, place):
        closes = closing(found)
        end = -1 if closes in never else text.find(closes, found.end())
        if end < 0:
            never.add(closes)
            place = found.end()
        else:
            place = end + len(closes)
            yield Element(found, text[found.end() : end], place)


def outside(text: str, elements: Iterable[Element], inside: Callable[[Element], str] = lambda _: "") -> str:
    """The text with each element replaced by what ``inside`` returns; by default the elements are removed."""
    parts: list[str] = []
    place = 0
    for element in elements:
        parts += [text[place : element.opening.start()], inside(element)]
        place = element.end
    return "".join([*parts, text[place:]])
