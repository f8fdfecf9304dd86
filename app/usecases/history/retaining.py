"""Deletes what is kept only for a time, in bounded batches.

Always: answers by `Idempotency-Key`, spending, and unused prefixes of requests. If a period is set: events, turns,
measurements and audit entries.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

import structlog

from app.core.model.retention import Retention
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory

ROWS: Final = 5_000
"""How many rows one transaction deletes."""
BATCHES: Final = 20
"""How many transactions of one kind follow each other; the next sweep goes on."""
IDLE_PREFIX: Final = timedelta(days=7)
"""A prefix of requests that was not used for this long is deleted."""
IDEMPOTENCY_AGE: Final = timedelta(hours=24)
"""How long a repeated request gets the first answer again."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


Forgetting = Callable[[UnitOfWork], Awaitable[int]]


class RetentionService:
    """Deletes rows that are older than their kind is kept."""

    def __init__(self, uow: UnitOfWorkFactory, retention: Retention) -> None:
        self._uow = uow
        self._kinds = dict(_forgetting_by_kind(retention))

    async def work(self) -> bool:
        """Delete what is due of each kind, at most ``ROWS`` times ``BATCHES`` rows. Returns whether more is left.

        If one kind fails, the others go on; it is tried again with the next step.
        """
        counts: dict[str, int] = {}
        for name, forget in self._kinds.items():
            try:
                counts[name] = await self._forget_in_batches(forget)
            except Exception as error:  # noqa: BLE001 - the next hour tries again
                _log.warning("retention.failed", kind=name, error=type(error).__name__)
        if any(counts.values()):
            _log.info("retention.forgotten", **{name: count for name, count in counts.items() if count})
        return any(count >= ROWS * BATCHES for count in counts.values())

    async def _forget_in_batches(self, forget: Forgetting) -> int:
        total = 0
        for _ in range(BATCHES):
            async with self._uow(None) as uow:
                count = await forget(uow)
                await uow.commit()
            total += count
            if count < ROWS:
                break
        return total


def _forgetting_by_kind(retention: Retention) -> list[tuple[str, Forgetting]]:
    found: list[tuple[str, Forgetting]] = [
        ("idempotency_keys", lambda uow: uow.idempotency.forget_older_than(IDEMPOTENCY_AGE, limit=ROWS)),
        ("chat_spending", lambda uow: uow.spending.forget_old(limit=ROWS)),
        ("provider_caches", lambda uow: uow.caches.forget_idle(IDLE_PREFIX, limit=ROWS)),
    ]
    events, turns, measures, audited = retention.events, retention.turns, retention.measures, retention.audit
    if events is not None:
        found.append(("events", lambda uow: uow.events.forget_older_than(events, limit=ROWS)))
    if turns is not None:
        found.append(("turns", lambda uow: uow.removal.forget_turns(turns, limit=ROWS)))
    if measures is not None:
        found.append(("measures", lambda uow: uow.removal.forget_measures(measures, limit=ROWS)))
    if audited is not None:
        found.append(("audit", lambda uow: uow.audit.forget_older_than(audited, limit=ROWS)))
    return found
