"""The conversation that the demo plays, read from two data files; the first alone is also a published example."""

from __future__ import annotations

from datetime import datetime
from importlib.resources import files
from typing import Final, Literal

from pydantic import BaseModel

BEGINNING: Final = "lantern-nights.json"
"""Sixty messages, as ``POST …/messages/batch`` takes them."""
CONTINUATION: Final = "lantern-nights-continued.json"
"""The other messages, and what the demo has to know about all of them."""


class Line(BaseModel):
    """One message."""

    role: Literal["user", "assistant"]
    content: str
    created_at: datetime
    """When it is said in the story."""
    manner: Literal["imported", "asked", "jump"] = "imported"
    """How its lines come in: imported, asked while the demo runs, or asked with so much text that 85 % are exceeded."""


class Scene(BaseModel):
    """One sitting."""

    title: str
    at: datetime
    """When its first message is said."""


class Act(BaseModel):
    """What the demo says before it shows something."""

    title: str
    words: str


class Story(BaseModel):
    """A conversation, and what is said about it."""

    title: str
    system_prompt: str
    context_window: int
    """Tokens; small, so that what takes a working day elsewhere happens within a minute."""
    acts: list[Act]
    offline_note: str
    """Said after replies of the offline model."""
    scenes: list[Scene]
    messages: list[Line]
    questions: list[str]
    """Asked in the end, about the beginning."""

    @property
    def length(self) -> int:
        """How many messages there are with the replies that are made while the demo runs, before the questions."""
        return len(self.messages) + sum(line.manner != "imported" for line in self.messages)

    def lines_of(self, scene: Scene) -> list[Line]:
        """The messages from the beginning of a scene to the beginning of the next."""
        end = min((other.at for other in self.scenes if other.at > scene.at), default=None)
        return [line for line in self.messages if line.created_at >= scene.at and (not end or line.created_at < end)]


class _Beginning(BaseModel):
    messages: list[Line]


def load_story() -> Story:
    """Read the two files as one conversation, in the order of time."""
    beginning, continuation = (files(__package__).joinpath(name).read_bytes() for name in (BEGINNING, CONTINUATION))
    story = Story.model_validate_json(continuation)
    messages = [*_Beginning.model_validate_json(beginning).messages, *story.messages]
    return story.model_copy(update={"messages": sorted(messages, key=lambda line: line.created_at)})
