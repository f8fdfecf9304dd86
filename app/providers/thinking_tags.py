"""Finds the tags around thoughts in a reply that comes in pieces."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

OPENING: Final = "<think>"
CLOSING: Final = "</think>"


@dataclass(slots=True)
class TagPieces:
    """Cuts the pieces of a reply so that each tag around its thoughts is a piece of its own.

    Servers put a tag and the words beside it into one piece, as LiteLLM does, or cut it in two. A reply has thoughts
    if it begins with the opening tag; later, the tag counts only if it comes as a piece of its own, since a reply may
    speak of it.
    """

    _state: Literal["beginning", "thinking", "speaking"] = "beginning"
    _held: list[str] = field(default_factory=list)
    """What may become a tag, or is blank and may come before one."""

    def of(self, piece: str) -> list[str]:
        """The pieces that can be passed on once this one has come."""
        text = self.rest() + piece
        if self._state == "beginning":
            return self._begun(text)
        if self._state == "thinking":
            return self._thought(text)
        self._state = "thinking" if text == OPENING else "speaking"
        return [text] if text else []

    def rest(self) -> str:
        """What is held back."""
        held = "".join(self._held)
        self._held.clear()
        return held

    def _begun(self, text: str) -> list[str]:
        said = text.lstrip()
        if OPENING.startswith(said):
            if said == OPENING:
                self._state = "thinking"
                return [OPENING]
            self._held.append(text)
            return []
        if said.startswith(OPENING):
            self._state = "thinking"
            return [OPENING, *self._thought(said.removeprefix(OPENING))]
        self._state = "speaking"
        return [text]

    def _thought(self, text: str) -> list[str]:
        thought, tag, said = text.partition(CLOSING)
        if tag:
            self._state = "speaking"
            return [piece for piece in (thought, tag, said) if piece]
        longest = range(min(len(text), len(CLOSING) - 1), 0, -1)
        size = next((size for size in longest if CLOSING.startswith(text[-size:])), 0)
        if size:
            self._held.append(text[-size:])
            text = text[:-size]
        return [text] if text else []
