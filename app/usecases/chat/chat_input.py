"""What a client says in a chat request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from app.core.context.turn_options import TurnOptions
from app.core.model.model_io import NO_SETTINGS, CallSettings, ToolSpec
from app.core.retrieval.serving import Passage
from app.core.text.parts import Part
from app.usecases.context.recalling import Asked
from app.usecases.history.drafts import MessageDraft


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultInput:
    """The result of a tool of the client."""

    tool_call_id: str
    content: Any
    """Text, or any JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatInput:
    """What a client says; without ``content``, ``parts`` and ``results`` the turn that waits is answered.

    ``results`` go on from the calls that the last turn ended with; a user message may come with them.
    """

    content: str | None = None
    parts: tuple[Part, ...] = ()
    """Of the user's message: texts and media."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Of the user's message."""
    utc_offset: int | None = None
    """In minutes, of the user's clock: the day of message and reply is the day there."""
    results: tuple[ToolResultInput, ...] = ()
    """Of calls that wait for the client."""
    instructions: str | None = None
    """A system prompt of this turn alone, after the conversation's own."""
    tools: tuple[ToolSpec, ...] = ()
    """The client's, of this turn alone: a turn that calls one of them ends with the call open."""
    settings: CallSettings = NO_SETTINGS
    """How the model is called in this turn."""
    event_type: str = "casual"
    model: str | None = None
    expected_last_message_id: UUID | None = None
    recall: bool | None = None
    """Overrides the policy for this turn."""
    passages: tuple[Passage, ...] = ()
    """Served before the message, beside what is recalled."""
    regenerates: bool = False
    """Whether the last reply is made again: it gives way, and the message before it is answered."""
    history: tuple[MessageDraft, ...] = ()
    """Messages that came before it and are not stored yet: they are appended with it, or not at all."""
    request: Mapping[str, Any] | None = None
    """What the request of another API's client said, to be repeated with the response."""

    @property
    def asked(self) -> Asked:
        """What to recall."""
        return Asked(in_turn=True, recall=self.recall, passages=self.passages)

    @property
    def options(self) -> TurnOptions:
        """The client's own part of the turn."""
        return TurnOptions(instructions=self.instructions or "", tools=self.tools, settings=self.settings)

    @property
    def has_message(self) -> bool:
        """Whether it comes with a user's message."""
        return self.content is not None or bool(self.parts)
