"""A chat turn: store the message, keep the context inside its budget, answer, store the reply."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import UUID

import structlog

from app.services.inline import InlineCompaction
from app.services.shell import Shell
from app.services.turn import TurnRunner

RETRY_AFTER = 2.0  # seconds that a second turn is asked to wait

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatInput:
    """What a client says; without ``content`` the last unanswered user message is answered."""

    content: str | None = None
    event_type: str = "casual"
    model: str | None = None
    expected_last_message_id: UUID | None = None


class ChatService:
    """Starts turns; each runs in a task of its own, whatever becomes of its client."""

    def __init__(self, shell: Shell, inline: InlineCompaction, runner: TurnRunner) -> None:
        self._shell = shell
        self._inline = inline
        self._runner = runner
        self._tasks: set[asyncio.Task[None]] = set()
