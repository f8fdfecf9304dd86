"""What happens in a turn after its message is stored: compact if due, assemble, answer, store the reply."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import structlog

from app.domain.conversation import Message
from app.domain.records import Turn
from app.services.commands import CommandRunner
from app.services.context import ContextService
from app.services.inline import InlineClaim, InlineCompaction
from app.services.resolve import Resolved
from app.services.shell import Shell

SAVE_TRIES = 4  # a reply that was paid for is not lost to a short hiccup of the database
SAVE_PAUSE = 0.5  # seconds, doubled with each try
EVENT_PAGE = 100

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A turn whose first transaction is committed."""

    turn: Turn
    message: Message
    resolved: Resolved
    model: str | None = None
    claim: InlineClaim | None = None
    job: UUID | None = None
    """A compaction to hand to the worker after the commit."""
    events_after: int = 0
    """The number of the last event of the first transaction."""
    created_event: int | None = None


class TurnRunner:
    """Runs turns to their end; whatever goes wrong, the user's message stays stored and the turn row ends."""

    def __init__(
        self, shell: Shell, *, inline: InlineCompaction, commands: CommandRunner, context: ContextService
    ) -> None:
        self._shell = shell
        self._inline = inline
        self._commands = commands
        self._context = context
