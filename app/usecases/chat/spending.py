"""Notes the cost of chat model calls for the key that asked, so that its spending in an hour can be limited."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress

from app.core.model.conversation import Usage
from app.core.model.errors import DependencyUnavailableError, NotFoundError
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.reply import Answer
from app.usecases.shared.caller import asker


async def noted(uow: UnitOfWorkFactory, answering: Awaitable[Answer], *, metered: bool) -> Answer:
    """The answer, once its call is on record; one that failed is a call without tokens.

    A reply that was paid for is not lost to a note that cannot be made.
    """
    used = Usage()
    try:
        said = await answering
        used = said.usage
        return said
    finally:
        if metered:
            await _note_spending(uow, used)


async def _note_spending(uow: UnitOfWorkFactory, used: Usage) -> None:
    principal = asker()
    if principal is None or principal.key_id is None:
        return
    with suppress(DependencyUnavailableError, NotFoundError):
        async with uow(principal.tenant_id) as unit:
            await unit.spending.add_chat(principal.tenant_id, principal.key_id, used)
            await unit.commit()
