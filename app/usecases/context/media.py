"""The data of a context's media: loaded last, and only what is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from app.core.context.assembly import AssembledContext
from app.core.context.media import within_bytes
from app.core.model.model_io import ContextMessage
from app.core.text.contents import data_bytes, put_together, references
from app.off_loop import off_loop
from app.usecases.shared.shell import Shell

LEFT_OUT: Final = "media_left_out"
_A_PART: Final = 1
"""Bytes that a part counts for which is looked at for media: half a microsecond."""
"""The warning: media of older messages are sent in words, since all together would be too large."""


async def with_media(
    shell: Shell, tenant_id: UUID, context: AssembledContext, *, room: int | None = None
) -> AssembledContext:
    """The context with the newest media that its provider takes together, older ones in words.

    ``room``: characters of Base64, where the setting's are not all left.
    """
    messages = context.messages
    size = _A_PART * sum(len(message.parts) for message in messages)
    if not await off_loop(_has_media, messages, size=size):
        return context
    kept = within_bytes(messages, shell.media_bytes if room is None else room, context.locale)
    if kept != [message.parts for message in messages]:
        context = replace(context, warnings=(*context.warnings, LEFT_OUT))
    wanted = references(part for parts in kept for part in parts)
    async with shell.uow(tenant_id) as uow:
        contents = await uow.contents.read(wanted) if wanted else {}

    def fill() -> tuple[ContextMessage, ...]:
        pairs = zip(messages, kept, strict=True)
        return tuple(replace(message, parts=put_together(parts, contents)) for message, parts in pairs)

    return replace(context, messages=await off_loop(fill))


def _has_media(messages: Sequence[ContextMessage]) -> bool:
    return any(data_bytes(part) for message in messages for part in message.parts)
