"""Deletes copies that a provider keeps of the service's data. A failure is tried again for days, then given up."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any, ClassVar, Final, Generic

import structlog

from app.core.model.errors import InvalidInputError, ModelNotAllowedError, ModelUnavailableError
from app.storage.repositories.copies import Copy, CopyRepository
from app.storage.unit_of_work import UnitOfWork
from app.usecases.shared.caller import audit_service
from app.usecases.shared.pauses import pause_after
from app.usecases.shared.shell import Service

AT_ONCE: Final = 20
"""How many copies one sweep deletes."""
SECONDS: Final = 10.0
"""How long a provider may take to delete one copy; the sweeper's other work waits for it."""
TIMED_OUT: Final = "timeout"
TRIES: Final = 12
FIRST_PAUSE: Final = timedelta(minutes=1)
"""The pause after the first failure; it doubles with each further one, up to a day. All tries take some four days."""
MAX_PAUSE: Final = timedelta(days=1)

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class CopyDeletion(Service, ABC, Generic[Copy]):
    """Deletes due copies of one kind."""

    kind: ClassVar[str]
    gone: ClassVar[Collection[str]]
    """The reasons with which a provider says that it no longer keeps a copy."""

    @abstractmethod
    def _copies(self, uow: UnitOfWork) -> CopyRepository[Copy]:
        """The repository of these copies."""

    @abstractmethod
    async def _delete_at_provider(self, copy: Copy) -> None:
        """Have the provider delete a copy. Raises ``ModelUnavailableError``."""

    def _details(self, copy: Copy) -> dict[str, Any]:  # noqa: ARG002 - kinds differ
        """What the audit log says of a copy that is given up, in addition to tries and reason."""
        return {}

    async def _delete_all(self, due: Sequence[Copy]) -> None:
        """Delete these copies. If a provider does not answer in time, the rest is left to the next sweep."""
        for copy in due:
            if await self._delete(copy) == TIMED_OUT:
                return

    async def _delete(self, found: Copy) -> str | None:
        """Delete a copy. Returns why the provider did not, if it did not."""
        pause = pause_after(found.tries + 1, FIRST_PAUSE, MAX_PAUSE)
        async with self._shell.uow(found.tenant_id) as uow:
            copy = await self._copies(uow).take(*found.key, pause=pause)
            await uow.commit()
        if copy is None:  # another process works on it
            return None
        reason = await self._failure_of_deleting(copy)
        if reason is None:
            await self._forget_copy(copy)
        elif copy.tries >= TRIES:
            _log.error(f"{self.kind}.given_up", reason=reason, model=copy.model, name=copy.key[-1])
            await self._forget_copy(copy, given_up=reason)
        else:
            _log.warning(f"{self.kind}.not_deleted", reason=reason, model=copy.model, tries=copy.tries)
        return reason

    async def _failure_of_deleting(self, copy: Copy) -> str | None:
        try:
            async with asyncio.timeout(SECONDS):
                await self._delete_at_provider(copy)
        except TimeoutError:
            return TIMED_OUT
        except ModelUnavailableError as error:
            return None if error.reason in self.gone else error.reason
        except (InvalidInputError, ModelNotAllowedError):  # its key is missing, or its name is no longer allowed
            return "model_not_built"
        return None

    async def _forget_copy(self, copy: Copy, given_up: str | None = None) -> None:
        async with self._shell.uow(copy.tenant_id) as uow:
            await self._copies(uow).forget(*copy.key)
            if given_up is not None:
                data = {**self._details(copy), "tries": copy.tries, "reason": given_up}
                await audit_service(uow, self._shell, copy.tenant_id, f"{self.kind}.given_up", copy.key[-1], **data)
            await uow.commit()
