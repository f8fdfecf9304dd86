"""What stateful models' providers keep of conversations: noted as it is made, deleted there when it is to go."""

from __future__ import annotations

from datetime import timedelta
from typing import Final
from uuid import UUID

import structlog

from app.core.model.errors import InvalidInputError, ModelNotAllowedError, ModelUnavailableError
from app.core.model.records import ProviderCopy
from app.usecases.shared.caller import audit_own
from app.usecases.shared.pauses import pause_after
from app.usecases.shared.shell import Shell

AT_ONCE: Final = 20
"""Responses that are deleted in one sweep."""
TRIES: Final = 12
FIRST_PAUSE: Final = timedelta(minutes=1)
"""After the first try; twice as long after each further one, a day at most: some four days in all."""
LONGEST_PAUSE: Final = timedelta(days=1)
GONE: Final = frozenset({"model_not_found", "previous_response_not_found"})
"""How a provider says that it keeps no such response any more."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ProviderCopyService:
    """Has providers delete what they keep of what was erased; what is not reached is tried again, and given up."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def work(self) -> bool:
        """Ask for some of what is due to be deleted; whether more may be due."""
        async with self._shell.uow(None) as uow:
            due = await uow.copies.due(limit=AT_ONCE)
        for copy in due:
            await self._delete(copy)
        return len(due) == AT_ONCE

    async def _delete(self, found: ProviderCopy) -> None:
        pause = pause_after(found.tries + 1, FIRST_PAUSE, LONGEST_PAUSE)
        async with self._shell.uow(found.tenant_id) as uow:
            copy = await uow.copies.take(found.response_id, pause=pause)
            await uow.commit()
        if copy is None:  # another process is at it
            return
        reason = await self._failure_of_deleting(copy)
        if reason is None:
            await self._forget_copy(copy)
        elif copy.tries >= TRIES:
            _log.error("copy.given_up", reason=reason, model=copy.model, response_id=copy.response_id)
            await self._forget_copy(copy, given_up=reason)
        else:
            _log.warning("copy.not_deleted", reason=reason, model=copy.model, tries=copy.tries)

    async def _failure_of_deleting(self, copy: ProviderCopy) -> str | None:
        try:
            await self._shell.models.forget(copy.model, copy.response_id)
        except ModelUnavailableError as error:
            return None if error.reason in GONE else error.reason
        except (InvalidInputError, ModelNotAllowedError):  # its key is gone, or its name is not allowed any more
            return "model_not_built"
        return None

    async def _forget_copy(self, copy: ProviderCopy, given_up: str | None = None) -> None:
        tenant_id: UUID = copy.tenant_id
        async with self._shell.uow(tenant_id) as uow:
            await uow.copies.forget(copy.response_id)
            if given_up is not None:
                said = {"conversation_id": str(copy.conversation_id), "tries": copy.tries, "reason": given_up}
                shell, id_ = self._shell, copy.response_id
                await audit_own(uow, shell, tenant_id, "provider_copy.given_up", id_, **said)
            await uow.commit()
