"""What a client sends in a chat request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from app.core.context.turn_options import TurnOptions
from app.core.model.model_io import NO_SETTINGS, CallSettings, ToolSpec
from app.core.retrieval.rendering import Passage
from app.core.text.parts import Part
from app.usecases.context.recalling import RecallRequest
from app.usecases.history.drafts import MessageDraft


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultInput:
    """The result of one call of a client's tool."""

    tool_call_id: str
    content: Any
    """Text, or any JSON."""
    media: tuple[Part, ...] = ()
    """Media that the tool returned beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatInput:
    """What a client sends in a chat request.

    Without ``content``, ``parts`` and ``results`` the request continues the turn that still waits for its answer.
    ``results`` answer the tool calls that the last turn ended with; a user message may come with them.
    """

    content: str | None = None
    parts: tuple[Part, ...] = ()
    """Texts and media of the user's message."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Metadata of the user's message."""
    utc_offset: int | None = None
    """The offset of the user's clock from UTC in minutes; it decides the date of the message and of the reply."""
    results: tuple[ToolResultInput, ...] = ()
    """Results of tool calls that wait for the client."""
    instructions: str | None = None
    """A system prompt for this turn only, placed after the conversation's own."""
    tools: tuple[ToolSpec, ...] = ()
    """Tools of the client, for this turn only. A turn that calls one of them ends with the call open."""
    settings: CallSettings = NO_SETTINGS
    """How the model is called in this turn."""
    event_type: str = "casual"
    model: str | None = None
    expected_last_message_id: UUID | None = None
    recall: bool | None = None
    """Whether this turn recalls earlier messages; ``None`` = as the policy says."""
    passages: tuple[Passage, ...] = ()
    """Passages that the client supplies; they are served before the message, next to recalled ones."""
    regenerates: bool = False
    """Whether the last reply is generated again; the new one takes its place."""
    history: tuple[MessageDraft, ...] = ()
    """Earlier messages that are not stored yet. They are appended together with the new one, or not at all."""
    request: Mapping[str, Any] | None = None
    """The request as a client of another API sent it; the response repeats parts of it."""

    @property
    def recall_request(self) -> RecallRequest:
        """What the turn asks recall to find."""
        return RecallRequest(in_turn=True, recall=self.recall, passages=self.passages)

    @property
    def options(self) -> TurnOptions:
        """Instructions, tools and settings that the client brings."""
        return TurnOptions(instructions=self.instructions or "", tools=self.tools, settings=self.settings)

    @property
    def has_message(self) -> bool:
        """Whether the request brings a user message."""
        return self.content is not None or bool(self.parts)
