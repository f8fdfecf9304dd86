"""Idempotency: a repeated request has one effect. What a key did is recorded in the transaction that did it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from app.core.model.errors import FieldError, IdempotencyKeyReusedError
from app.core.model.records import IdempotencyRecord
from app.storage.unit_of_work import UnitOfWork


@dataclass(frozen=True, slots=True, kw_only=True)
class Idem:
    """A client's key, and the hash of the method, path and body of its request."""

    key: str
    fingerprint: str
    lifetime: timedelta | None = None
    """How long the key holds; ``None`` = until all old keys are deleted."""
    is_first_try: bool = False
    """Whether the request is a first try; then what the same key did before is forgotten."""


async def claim_key(uow: UnitOfWork, idem: Idem | None, now: datetime) -> Mapping[str, Any] | None:
    """Claim the key, or return what it did before. A concurrent request with the same key is waited for.

    Raises:
        IdempotencyKeyReusedError: The key came with another request before.
    """
    if idem is None:
        return None
    record = IdempotencyRecord(key=idem.key, fingerprint=idem.fingerprint, ref={}, status=0, created_at=now)
    existing = await uow.idempotency.claim(record)
    if existing is not None and _is_expired(idem, existing, now):
        await uow.idempotency.delete(idem.key)
        existing = await uow.idempotency.claim(record)
    if existing is None:
        return None
    if existing.fingerprint != idem.fingerprint:
        message = "this Idempotency-Key was used for another request: use a new key for a new request"
        raise IdempotencyKeyReusedError(message, errors=[FieldError(field="Idempotency-Key", message=message)])
    return existing.ref


def _is_expired(idem: Idem, existing: IdempotencyRecord, now: datetime) -> bool:
    return idem.is_first_try or (idem.lifetime is not None and existing.created_at < now - idem.lifetime)


async def record(uow: UnitOfWork, idem: Idem | None, ref: Mapping[str, Any], status: int = 201) -> None:
    """Record what the key did, inside the transaction that does it."""
    if idem is not None:
        await uow.idempotency.update(idem.key, ref=ref, status=status)
