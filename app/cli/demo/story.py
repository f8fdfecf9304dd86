"""The conversation that the demo plays, read from two data files; the first one is also published as an example."""

from __future__ import annotations

from datetime import datetime
from importlib.resources import files
from typing import Final, Literal

from pydantic import BaseModel

BEGINNING: Final = "lantern-nights.json"
"""The file with sixty messages, in the form of ``POST …/messages/batch``."""
CONTINUATION: Final = "lantern-nights-continued.json"
"""The file with the other messages, and the demo's information about all of them."""


class Line(BaseModel):
    """One message."""

    role: Literal["user", "assistant"]
    content: str
    created_at: datetime
    """The time of the message in the story."""
    manner: Literal["imported", "asked", "jump"] = "imported"
    """How its lines are sent: imported, asked while the demo runs, or asked with so much text that 85 % are exceeded.
    """


class Scene(BaseModel):
    """A part of the story that happens at one sitting."""

    title: str
    at: datetime
    """The time of its first message."""


class Act(BaseModel):
    """What the demo says before it shows something."""

    title: str
    words: str


class Story(BaseModel):
    """A conversation, and the texts about it."""

    title: str
    system_prompt: str
    context_window: int
    """The window in tokens. It is small, so that what takes a working day elsewhere happens within a minute."""
    acts: list[Act]
    offline_note: str
    """A note that follows replies of the offline model."""
    scenes: list[Scene]
    messages: list[Line]
    questions: list[str]
    """Questions at the end about the beginning."""

    @property
    def length(self) -> int:
        """The number of messages before the questions, including the replies that are made while the demo runs."""
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
