"""Messages to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from app.core.model.conversation import MessageStatus, Role
from app.core.text.parts import Part
from app.core.text.token_counts import Weight, weigh


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDraft:
    """A message to be: what a client gives of it."""

    id: UUID | None = None
    """Where it was decided before; else it gets one."""
    role: Role
    content: str
    parts: tuple[Part, ...] = ()
    event_type: str = "casual"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime | None = None
    model: str | None = None
    usage: Mapping[str, Any] | None = None
    status: MessageStatus = "complete"
    is_command: bool = False
    is_pinned: bool = False
    """Held word for word from the beginning: the copy of a message that is pinned."""
    weight: Weight | None = None
    """Where it was weighed before."""

    def weighed(self) -> Weight:
        """What it weighs."""
        return self.weight or weigh(self.role, self.content, self.parts)
