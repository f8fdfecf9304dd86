"""The conversation as data: scenes of lines, read from the words of ``story.py``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from app.cli.demo import story
from app.core.text.patterns import compiled

Role = Literal["user", "assistant"]
Manner = Literal["imported", "asked", "jump"]

CONTEXT_WINDOW: Final = 4_400
"""Tokens; small, so that everything that takes a working day elsewhere happens within a minute here."""
SYSTEM_PROMPT: Final = "You help Ines Varga to plan an open-air film festival. Answer briefly, in plain sentences."

_MARKS: Final[dict[str, tuple[Role, Manner]]] = {
    "U": ("user", "imported"),
    "A": ("assistant", "imported"),
    "?": ("user", "asked"),
    "!": ("user", "jump"),
}
_LINE: Final = compiled(r"([UA?!]): (.*)")
_PAUSE_BETWEEN_MESSAGES: Final = timedelta(minutes=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One message: imported as it stands, or asked, which the configured model answers."""

    role: Role
    content: str
    manner: Manner
    at: datetime
    """When it is said in the story, in UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One sitting."""

    title: str
    at: datetime
    lines: tuple[Line, ...]


def read_scene(at: str, title: str, text: str) -> Scene:
    """Read one scene of the story.

    Raises:
        ValueError: The text does not begin with a mark, or the time is none.
    """
    begin = datetime.strptime(at, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
    found: list[tuple[str, list[str]]] = []
    for line in text.strip("\n").splitlines():
        match = _LINE.fullmatch(line)
        if match:
            found.append((match[1], [match[2]]))
        elif found:
            found[-1][1].append(line.strip())
        else:
            raise ValueError(f"the scene {title!r} does not begin with a mark: {line!r}")
    lines = tuple(
        _line(mark, " ".join(parts), begin + place * _PAUSE_BETWEEN_MESSAGES)
        for place, (mark, parts) in enumerate(found)
    )
    return Scene(title=title, at=begin, lines=lines)


def _line(mark: str, words: str, at: datetime) -> Line:
    role, manner = _MARKS[mark]
    content = f"{words}\n\n{story.AGREEMENT}" if manner == "jump" else words
    return Line(role=role, content=content, manner=manner, at=at)


SCENES: Final = tuple(read_scene(*scene) for scene in story.SCENES)
LINES: Final = tuple(line for scene in SCENES for line in scene.lines)
