"""The data of a context's media: loaded last, and only as much as is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from app.core.context.assembly import AssembledContext
from app.core.context.media import has_media_data, parts_with_newest_media, parts_within_bytes
from app.core.model.model_io import ContextMessage
from app.core.text.contents import references, with_contents
from app.off_loop import off_loop
from app.usecases.shared.shell import Shell

LEFT_OUT: Final = "media_left_out"
"""The warning: older media are replaced by words, since all media together would be too large."""
REFUSED: Final = "media_refused"
"""The warning: media are replaced by words, since the model's provider refused the request with them."""
_A_PART: Final = 1
"""The size, in bytes of work, of a part that is searched for media: half a microsecond."""


async def with_media(
    shell: Shell, tenant_id: UUID, context: AssembledContext, *, characters_left: int | None = None
) -> AssembledContext:
    """The context with as many of the newest media as its provider takes; older ones are replaced by words.

    ``characters_left`` is the number of Base64 characters that are left, if that is less than the setting allows.
    """
    messages = context.messages
    size = _A_PART * sum(len(message.parts) for message in messages)
    if not await off_loop(messages_with_data, messages, size=size):
        return context
    kept = parts_within_bytes(
        messages, shell.media_bytes if characters_left is None else characters_left, context.locale
    )
    if kept != [message.parts for message in messages]:
        context = replace(context, warnings=(*context.warnings, LEFT_OUT))
    wanted = references(part for parts in kept for part in parts)
    async with shell.uow(tenant_id) as uow:
        contents = await uow.contents.read(wanted) if wanted else {}

    def fill() -> tuple[ContextMessage, ...]:
        pairs = zip(messages, kept, strict=True)
        return tuple(replace(message, parts=with_contents(parts, contents)) for message, parts in pairs)

    return replace(context, messages=await off_loop(fill))


def messages_with_data(messages: Sequence[ContextMessage]) -> int:
    """How many messages contain data of media."""
    return sum(map(has_media_data, messages))


def with_fewer_media(context: AssembledContext, most: int | None) -> AssembledContext:
    """The context with the media of only its ``most`` newest messages that have any; ``None`` = unchanged."""
    if most is None or messages_with_data(context.messages) <= most:
        return context
    kept = parts_with_newest_media(context.messages, most, context.locale)
    messages = tuple(replace(message, parts=parts) for message, parts in zip(context.messages, kept, strict=True))
    return replace(context, messages=messages, warnings=(*context.warnings, REFUSED))
