"""``/compact [focus]`` typed into a chat: the manual compaction, answered with its summary."""

from __future__ import annotations

import math
from typing import Final

from app.core.model.conversation import Message, Usage
from app.core.model.errors import RateLimitedError
from app.core.model.records import Turn
from app.core.text.localization.catalogue import catalogue_of
from app.usecases.chat.reply import Answer
from app.usecases.compaction.inline import InlineOutcome
from app.usecases.compaction.manual import CompactInput, ManualCompaction

COMMAND: Final = "/compact"
FOCUS_MAX = 1_000  # characters, as in POST …/compact
_MINUTE = 60  # seconds
PATIENCE = 110.0  # seconds: below the default timeout of a request


def compact_command(content: str) -> CompactInput | None:
    """The compaction that a typed command asks for; ``None`` when it is no command."""
    typed = content.lstrip()
    if not typed.startswith(COMMAND):
        return None
    given = typed[len(COMMAND) :]
    if given and not given[0].isspace():
        return None
    return CompactInput(focus=given.strip()[:FOCUS_MAX] or None)


class CommandRunner:
    """Runs a typed command as the turn that it is."""

    def __init__(self, manual: ManualCompaction) -> None:
        self._manual = manual

    async def run(self, turn: Turn, message: Message, locale: str) -> tuple[InlineOutcome, Answer]:
        """Compact, and answer with the summary, in the conversation's language. Raises what ``POST …/compact`` raises.

        But for the spend limit: the command is stored by now, so it is answered in words.
        """
        say = catalogue_of(locale)
        asked = compact_command(message.content) or CompactInput()
        try:
            view = await self._manual.compact(turn.tenant_id, turn.conversation_id, asked, timeout=PATIENCE)
        except RateLimitedError as error:
            wait = math.ceil((error.retry_after or 0) / _MINUTE)
            return InlineOutcome(), Answer(text=say.text("command.limited", count=wait), model="", usage=Usage())
        row = view.compaction
        text = view.summary or say.text("command.unchanged", reason=say.word("reason", row.reason or row.status))
        return InlineOutcome(row=row), Answer(text=text, model=row.model or "", usage=Usage())
