"""Finds the conversation that a request continues: by the service's id, or by the frontend's own name for it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from uuid import UUID

from app.core.model.conversation import Conversation
from app.core.model.errors import NotFoundError
from app.storage.unit_of_work import UnitOfWork
from app.usecases.shared.caller import current_user

_VERSION_BITS, _VERSION = 0xF000 << 64, 0x8000 << 64
_VARIANT_BITS, _VARIANT = 0xC000 << 48, 0x8000 << 48


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationName:
    """The name by which a request refers to its conversation."""

    text: str
    conversation_id: UUID | None = None
    """The id, if the text is an id of the service or may be one."""
    is_ours: bool = False
    """Whether it can only be an id of the service; then an unknown conversation is an error."""
    user: str | None = None
    """The end user, if the frontend names one. A conversation of another user is never found by its name."""


def derived_id(tenant_id: UUID, name: ConversationName) -> UUID:
    """The id of the conversation for a frontend's own name: always the same, and only for this tenant."""
    user = current_user() or name.user or ""
    hashed = b"\0".join((b"conversation", tenant_id.bytes, user.encode(), name.text.encode()))
    number = int.from_bytes(hashlib.sha256(hashed).digest()[:16])
    number = number & ~(_VERSION_BITS | _VARIANT_BITS)
    return UUID(int=number | _VERSION | _VARIANT)


async def conversation_named(uow: UnitOfWork, tenant_id: UUID, name: ConversationName) -> Conversation | None:
    """The conversation with that name; ``None`` if the name is a frontend's and no conversation exists yet.

    Raises:
        NotFoundError: The name is an id of the service, and there is no such conversation, or it belongs to another end
            user.
    """
    if name.conversation_id is not None:
        found = await _conversation_or_none(uow, name.conversation_id)
        if found is not None and (name.user is None or found.user_id in {None, name.user}):
            return found
        if name.is_ours or found is not None:
            raise NotFoundError(f"There is no conversation {name.text!r}.")
    return await _conversation_or_none(uow, derived_id(tenant_id, name))


async def _conversation_or_none(uow: UnitOfWork, conversation_id: UUID) -> Conversation | None:
    try:
        return await uow.conversations.get(conversation_id)
    except NotFoundError:
        return None
