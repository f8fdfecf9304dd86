"""The copies of files at providers: made when a turn needs one, renewed when they expire, deleted with the file.

A copy belongs to a content, for all conversations of a tenant. When the last file with a content is removed, the
database marks its copies for deletion. This module makes, finds and deletes copies at providers.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar
from uuid import UUID
from weakref import WeakValueDictionary

import structlog

from app.core.model.errors import (
    DependencyUnavailableError,
    InvalidInputError,
    ModelNotAllowedError,
    ModelUnavailableError,
    NotFoundError,
)
from app.core.model.files import FILE_FAILED, FILE_LOST, FileCopy, ProviderFile
from app.storage.repositories.copies import CopyRepository
from app.storage.unit_of_work import UnitOfWork
from app.usecases.shared.copy_deletion import AT_ONCE, CopyDeletion
from app.usecases.shared.retries import through_short_outage
from app.usecases.shared.shell import Shell

Known = TypeVar("Known")

LASTING: Final = timedelta(minutes=10)
"""A copy that expires sooner than this is made again, since the turn that uses it may take as long."""
EXPIRED: Final = 500
"""How many copies that their providers deleted by themselves are forgotten in one sweep."""
REMEMBERED: Final = 4_096
"""How many usable copies, and how many refused contents, one process remembers."""
REFUSED_SECONDS: Final = 60.0
"""How long a file that could not be copied is not offered to the provider again. Requests have no copy meanwhile."""
FAILED_SECONDS: Final = 3_600.0
"""How long a content that the provider could not process is not offered again."""
_GONE: Final = "gone"
"""The reason if a file was removed meanwhile. Attached again, or by another tenant, the same content is there."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A content that a request needs to name by the provider's copy."""

    sha256: str
    media_type: str
    bytes: int


@dataclass(slots=True)
class _Refused:
    reason: str
    until: float


@dataclass(frozen=True, slots=True)
class Destination:
    """Where copies are made: for which tenant, and for which model at which provider."""

    tenant_id: UUID
    model: str
    account: str
    """Where the model's provider keeps files (``ModelProfile.file_account``)."""


@dataclass(slots=True)
class _Memory:
    """What this process remembers of copies: little, and only to save time."""

    usable: OrderedDict[tuple[str, str], None] = field(default_factory=OrderedDict)
    refused: OrderedDict[tuple[str, str], _Refused] = field(default_factory=OrderedDict)

    def reason(self, account: str, sha256: str, now: float) -> str | None:
        refused = self.refused.get((account, sha256))
        return refused.reason if refused is not None and refused.until > now else None


def _remember(kept: OrderedDict[tuple[str, str], Known], key: tuple[str, str], known: Known) -> None:
    kept[key] = known
    while len(kept) > REMEMBERED:
        kept.popitem(last=False)


class FileCopyService(CopyDeletion[ProviderFile]):
    """Makes, finds and deletes the copies of files at providers."""

    kind = "file_copy"
    gone = frozenset({FILE_LOST})

    def __init__(self, shell: Shell) -> None:
        super().__init__(shell)
        self._memory = _Memory()
        self._copying: WeakValueDictionary[tuple[UUID, str, str], asyncio.Lock] = WeakValueDictionary()
        self._being_made: dict[tuple[UUID, str, str], asyncio.Task[ProviderFile]] = {}

    async def addresses(
        self, destination: Destination, wanted: Sequence[Wanted]
    ) -> tuple[dict[str, str], dict[str, str]]:
        """The addresses of the provider's copies of these files. Missing copies are made.

        Returns:
            The address of each usable copy by hash; and by hash, for each file without one, the reason word.
        """
        by_hash = {one.sha256: one for one in wanted}
        done = await asyncio.gather(*(self._address(destination, one) for one in by_hash.values()))
        answers = dict(zip(by_hash, done, strict=True))
        addresses = {sha256: uri for sha256, (uri, _) in answers.items() if uri}
        return addresses, {sha256: why for sha256, (uri, why) in answers.items() if not uri}

    async def forget_lost(self, destination: Destination, sha256s: Sequence[str]) -> bool:
        """Forget these copies, one of which the provider lost, so that all are made again.

        Returns whether any existed.
        """
        async with self._shell.uow(destination.tenant_id) as uow:
            copies = await uow.file_copies.in_use(destination.account, sha256s, lasting=timedelta())
            gone = await uow.file_copies.mark_for_deletion(destination.account, [copy.name for copy in copies.values()])
            await uow.commit()
        for copy in copies.values():
            self._memory.usable.pop((destination.account, copy.name), None)
        return gone > 0

    async def work(self) -> bool:
        """Delete some of the copies that are due, and return whether more may be due."""
        async with self._shell.uow(None) as uow:
            expired = await uow.file_copies.forget_expired(limit=EXPIRED)
            due = await uow.file_copies.due(limit=AT_ONCE)
            await uow.commit()
        await self._delete_all(due)
        return len(due) == AT_ONCE or expired == EXPIRED

    async def _address(self, destination: Destination, wanted: Wanted) -> tuple[str, str]:
        """The address and an empty reason, or no address and the reason."""
        key = (destination.tenant_id, destination.account, wanted.sha256)
        lock = self._copying.setdefault(key, asyncio.Lock())
        async with lock:  # one upload of a content at a time: the other callers use its copy
            reason = self._memory.reason(destination.account, wanted.sha256, self._shell.clock.monotonic())
            if reason is not None:
                return "", reason
            try:
                return await self._usable_address(destination, wanted), ""
            except ModelUnavailableError as error:
                if error.reason != _GONE:
                    self._note_refused(destination, wanted, error.reason)
                return "", error.reason
            except (InvalidInputError, ModelNotAllowedError):
                return "", "model_not_built"

    def _note_refused(self, destination: Destination, wanted: Wanted, reason: str) -> None:
        seconds = FAILED_SECONDS if reason == FILE_FAILED else REFUSED_SECONDS
        until = self._shell.clock.monotonic() + seconds
        _log.warning("file.not_copied", reason=reason, model=destination.model, bytes=wanted.bytes)
        _remember(self._memory.refused, (destination.account, wanted.sha256), _Refused(reason, until))

    async def _usable_address(self, destination: Destination, wanted: Wanted) -> str:
        copy = await self._existing_copy(destination, wanted)
        if copy is not None:
            try:
                return await self._usable_address_of(destination, copy)
            except ModelUnavailableError as error:
                if error.reason != FILE_LOST:
                    raise
        return await self._usable_address_of(destination, await self._make_copy(destination, wanted))

    async def _existing_copy(self, destination: Destination, wanted: Wanted) -> ProviderFile | None:
        making = self._being_made.get((destination.tenant_id, destination.account, wanted.sha256))
        if making is not None:  # for a turn that was stopped; it may be recorded just after a look at the records
            return await asyncio.shield(making)
        async with self._shell.uow(destination.tenant_id) as uow:
            found: Mapping[str, ProviderFile] = await uow.file_copies.in_use(
                destination.account, [wanted.sha256], lasting=LASTING
            )
        return found.get(wanted.sha256)

    async def _make_copy(self, destination: Destination, wanted: Wanted) -> ProviderFile:
        """Make a copy. If the turn that needs it is stopped, it is made all the same: no copy is left unrecorded."""
        key = (destination.tenant_id, destination.account, wanted.sha256)
        making = self._being_made.get(key)
        if making is None:
            making = self._being_made[key] = asyncio.create_task(self._made_copy(destination, wanted))
            making.add_done_callback(partial(self._forget_making, key))
        return await asyncio.shield(making)

    def _forget_making(self, key: tuple[UUID, str, str], made: asyncio.Task[ProviderFile]) -> None:
        del self._being_made[key]
        if not made.cancelled():
            made.exception()  # retrieved, even if nobody waits any more

    async def _made_copy(self, destination: Destination, wanted: Wanted) -> ProviderFile:
        async with self._shell.uow(destination.tenant_id) as uow:
            contents = await uow.contents.read([wanted.sha256])
        if wanted.sha256 not in contents:  # the file was removed meanwhile
            raise ModelUnavailableError(_GONE, retryable=False)
        kept: FileCopy = await self._shell.models.store.upload_file(
            destination.model, contents[wanted.sha256], wanted.media_type
        )
        copy = ProviderFile(
            tenant_id=destination.tenant_id,
            account=destination.account,
            name=kept.name,
            sha256=wanted.sha256,
            uri=kept.uri,
            model=destination.model,
            made_at=self._shell.clock.now(),
            expires_at=kept.expires_at,
        )
        try:
            return await through_short_outage(partial(self._noted, copy), self._shell.clock)
        except (DependencyUnavailableError, NotFoundError):  # nobody would ever have it deleted
            with suppress(ModelUnavailableError, InvalidInputError):
                await self._shell.models.store.delete_file(copy.model, copy.name)
            raise

    async def _noted(self, copy: ProviderFile) -> ProviderFile:
        """Record a copy, and return the copy to use from now on."""
        async with self._shell.uow(copy.tenant_id) as uow:
            used = await uow.file_copies.note(copy, lasting=LASTING)
            await uow.commit()
        return used

    async def _usable_address_of(self, destination: Destination, copy: ProviderFile) -> str:
        """A copy's address, once the provider has made it usable.

        A copy that can never be used is marked for deletion.
        """
        if (destination.account, copy.name) in self._memory.usable:
            return copy.uri
        try:
            await self._shell.models.store.await_file(destination.model, copy.name)
        except ModelUnavailableError as error:
            if error.reason in {FILE_LOST, FILE_FAILED}:
                async with self._shell.uow(destination.tenant_id) as uow:
                    await uow.file_copies.mark_for_deletion(destination.account, [copy.name])
                    await uow.commit()
            raise
        _remember(self._memory.usable, (destination.account, copy.name), None)
        return copy.uri

    def _copies(self, uow: UnitOfWork) -> CopyRepository[ProviderFile]:
        return uow.file_copies

    async def _delete_at_provider(self, copy: ProviderFile) -> None:
        self._memory.usable.pop((copy.account, copy.name), None)
        store = self._shell.models.store
        if store.file_account(copy.model) != copy.account:
            raise ModelUnavailableError("another_account", retryable=False)
        await store.delete_file(copy.model, copy.name)
