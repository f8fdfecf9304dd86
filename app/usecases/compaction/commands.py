"""``/compact [focus]`` typed into a chat: the manual compaction, answered with its summary."""

from __future__ import annotations

import asyncio
import math
from typing import Any, Final

from app.core.model.conversation import Message, Usage
from app.core.model.errors import DomainError, RateLimitedError
from app.core.model.records import Turn
from app.core.model.redaction import redact
from app.core.text.localization.catalogue import catalogue_of
from app.usecases.chat.reply import Answer
from app.usecases.compaction.inline import InlineOutcome, SendNewEvents, send_nothing
from app.usecases.compaction.manual import CompactInput, ManualCompaction
from app.usecases.shared.stopping import unless_stopped

COMMAND: Final = "/compact"
MAX_FOCUS_LENGTH = 1_000  # characters, as in POST …/compact
_MAX_SCANNED: Final = 4_000
"""The most characters of a text that are searched for secrets before it is cut."""
_MINUTE = 60  # seconds
PATIENCE = 110.0  # seconds: less than the default timeout of a request


def compact_command(content: str) -> CompactInput | None:
    """The compaction that a typed command asks for; ``None`` when it is no command."""
    typed = content.lstrip()
    if not typed.startswith(COMMAND):
        return None
    given = typed[len(COMMAND) :]
    if given and not given[0].isspace():
        return None
    return CompactInput(focus=focus_in(given))


def focus_in(text: str) -> str | None:
    """The beginning of a text as a focus, redacted: half of a secret would not be known to be one."""
    return redact(text.strip()[:_MAX_SCANNED])[:MAX_FOCUS_LENGTH] or None


class TypedCommands:
    """Recognises typed commands and their answers among messages to which a client only gave the same type.

    It is for code that sees messages in the form of the API, in conversation order; stored messages carry a mark
    instead.
    """

    def __init__(self) -> None:
        self._unanswered = 0

    def has(self, role: Any, event_type: Any, content: Any, status: Any) -> bool:
        """Whether the next message is a command or its answer; an erased command is recognised by its type alone."""
        if event_type != "command":
            return False
        if role == "assistant" and self._unanswered:
            self._unanswered -= 1
            return True
        is_command = role == "user" and (status == "erased" or compact_command(str(content)) is not None)
        self._unanswered += is_command
        return is_command


class CommandRunner:
    """Runs a typed command as a turn."""

    def __init__(self, manual: ManualCompaction) -> None:
        self._manual = manual

    async def run(
        self,
        turn: Turn,
        message: Message,
        locale: str,
        *,
        stop: asyncio.Event,
        send_new_events: SendNewEvents = send_nothing,
    ) -> tuple[InlineOutcome, Answer]:
        """Compact, and answer with the summary, in the conversation's language. Raises what ``POST …/compact`` raises.

        The spend limit is the exception: the command is already stored, so it is answered in words. Once ``stop`` is
        set the answer stays empty, and the worker does the rest. ``send_new_events`` is called once the compaction has
        begun, and at its end.
        """
        catalogue = catalogue_of(locale)
        asked = compact_command(message.content) or CompactInput()
        try:
            compacting = self._manual.compact(
                turn.tenant_id, turn.conversation_id, asked, timeout=PATIENCE, on_claimed=send_new_events
            )
            try:
                view = await unless_stopped(stop, compacting)
            except DomainError:
                await send_new_events()
                raise
            await send_new_events()
        except RateLimitedError as error:
            wait = math.ceil((error.retry_after or 0) / _MINUTE)
            return InlineOutcome(), Answer(text=catalogue.text("command.limited", count=wait), model="", usage=Usage())
        if view is None:
            return InlineOutcome(), Answer(text="", model="", usage=Usage(), finish="other", interrupted=True)
        row = view.compaction
        text = view.summary or catalogue.text(
            "command.unchanged", reason=catalogue.word("reason", row.reason or row.status)
        )
        return InlineOutcome(row=row), Answer(text=text, model=row.model or "", usage=Usage())
