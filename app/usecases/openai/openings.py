"""Retries of a request that names no conversation and therefore begins one.

Equal openings of two users are two conversations. So a retry is recognised only if its SDK counts its tries and no
other first try with the same body came within the time. Otherwise it is unknown whose retry it is, and each try begins
a conversation of its own.

Clients that do not count their tries are only told that an answer failed, not where its message is stored. So the same
body within the time is taken for its retry: that conversation holds nothing but these words, and nobody knows of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from app.core.model.errors import NotFoundError
from app.core.model.records import IdempotencyRecord, Turn
from app.storage.unit_of_work import UnitOfWork
from app.usecases.chat.turn import ref_of
from app.usecases.openai.retry_keys import RequestAttempt
from app.usecases.shared.caller import current_user
from app.usecases.shared.idempotency import Idem
from app.usecases.shared.shell import Service

LIFE: Final = timedelta(minutes=2)
"""How long a retry is recognised: shorter than if the request named what it continues."""
SHARED: Final = {"shared": True}
NOTHING: Final[Mapping[str, Any]] = {}
PATIENCE: Final = 5.0
"""Seconds that a retry waits for the first try to begin its turn."""


def opening_of(attempt: RequestAttempt) -> Idem | None:
    """The key of an opening; ``None`` if its client does not count its tries."""
    if attempt.tries is None:
        return None
    key = attempt.key("opening", fixes_place=False)
    return Idem(key=key.key, fingerprint=key.fingerprint, lifetime=LIFE)


def _untold_of(attempt: RequestAttempt) -> Idem | None:
    """The key of a failed opening whose client does not count its tries."""
    if attempt.tries is not None or attempt.own is not None:
        return None
    key = attempt.key(f"untold\n{current_user() or ''}", fixes_place=True)
    return Idem(key=key.key, fingerprint=key.fingerprint, lifetime=LIFE)


class Openings(Service):
    """Remembers for a short time which turn a first try began."""

    async def claim(self, tenant_id: UUID, opening: Idem, *, is_retry: bool) -> bool:
        """Record that a turn begins for this opening. Returns whether its retries can be told from those of others."""
        record = self._record(opening)
        async with self._shell.uow(tenant_id) as uow:
            existing = await uow.idempotency.claim(record)
            is_over = existing is not None and existing.created_at < record.created_at - LIFE
            if existing is not None and (is_over or (is_retry and not existing.ref)):
                await uow.idempotency.delete(opening.key)
                existing = await uow.idempotency.claim(record)
            if existing is not None:
                await uow.idempotency.update(opening.key, ref=SHARED, status=0)
            await uow.commit()
        return existing is None

    async def note(self, uow: UnitOfWork, opening: Idem, turn: Turn) -> None:
        """Record which turn it was, in the transaction that begins it, unless another first try came meanwhile.

        If the process dies after this transaction, a retry still finds the turn.
        """
        existing = await uow.idempotency.claim(self._record(opening))  # locked: nobody claims it meanwhile
        if existing is None or existing.ref == {}:
            await uow.idempotency.update(opening.key, ref=ref_of(turn), status=201)

    async def drop(self, tenant_id: UUID, opening: Idem) -> None:
        """Record that no turn began."""
        async with self._shell.uow(tenant_id) as uow:
            if await _reference_on_record(uow, opening) == {}:
                await uow.idempotency.delete(opening.key)
                await uow.commit()

    async def note_untold(self, tenant_id: UUID, attempt: RequestAttempt, turn_id: UUID) -> None:
        """Record that the turn of an opening failed, and that its client was told nothing else of it."""
        untold = _untold_of(attempt)
        if untold is None:
            return
        with suppress(NotFoundError):
            async with self._shell.uow(tenant_id) as uow:
                ref = ref_of(await uow.turns.get(turn_id))
                await uow.idempotency.delete(untold.key)
                await uow.idempotency.claim(self._record(untold, ref))
                await uow.commit()

    async def take_untold(self, tenant_id: UUID, attempt: RequestAttempt) -> Idem | None:
        """A key of the failed turn that only one request ever gets; ``None`` if there is none."""
        untold = _untold_of(attempt)
        if untold is None:
            return None
        async with self._shell.uow(tenant_id) as uow:
            if await uow.idempotency.get(untold.key) is None:
                return None
            found = await uow.idempotency.claim(self._record(untold))  # locked
            await uow.idempotency.delete(untold.key)
            own = replace(untold, key=self._shell.new_id().hex)
            is_over = found is None or found.created_at < self._shell.clock.now() - LIFE
            if found is not None and not is_over:
                await uow.idempotency.claim(self._record(own, found.ref))
            await uow.commit()
        return None if is_over else own

    def _record(self, opening: Idem, ref: Mapping[str, Any] = NOTHING) -> IdempotencyRecord:
        now = self._shell.clock.now()
        return IdempotencyRecord(key=opening.key, fingerprint=opening.fingerprint, ref=ref, status=0, created_at=now)

    async def wait_for_turn(self, tenant_id: UUID, opening: Idem) -> None:
        """Wait until the first try's turn has begun, if there is one."""
        clock = self._shell.clock
        deadline = clock.monotonic() + PATIENCE
        while clock.monotonic() < deadline:
            async with self._shell.uow(tenant_id) as uow:
                if await _reference_on_record(uow, opening) != {}:
                    return
            await asyncio.sleep(self._shell.timings.poll_seconds)


async def _reference_on_record(uow: UnitOfWork, opening: Idem) -> Mapping[str, Any] | None:
    found = await uow.idempotency.get(opening.key)
    # The reference is empty while no turn has begun.
    return None if found is None else found.ref
