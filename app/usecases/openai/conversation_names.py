"""Finds the conversation that a request continues: by an id of ours, or by the name that a frontend has for it."""

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
class Name:
    """What a request calls its conversation."""

    text: str
    conversation_id: UUID | None = None
    """Where the text is an id of ours, or may be one."""
    is_ours: bool = False
    """Whether it can be nothing else: a conversation that does not exist is an error then."""
    user: str | None = None
    """The end user, where the frontend says who it is: another user's conversation is never found by its name."""


def derived_id(tenant_id: UUID, name: Name) -> UUID:
    """The id of the conversation that a frontend's own name stands for: always the same, and of this tenant alone."""
    user = current_user() or name.user or ""
    told = b"\0".join((b"conversation", tenant_id.bytes, user.encode(), name.text.encode()))
    number = int.from_bytes(hashlib.sha256(told).digest()[:16])
    number = number & ~(_VERSION_BITS | _VARIANT_BITS)
    return UUID(int=number | _VERSION | _VARIANT)


async def found_by(uow: UnitOfWork, tenant_id: UUID, name: Name) -> Conversation | None:
    """The conversation of that name; ``None`` where it is a frontend's, and there is none yet.

    Raises:
        NotFoundError: It is an id of ours, and there is no such conversation, or it is another end user's.
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
