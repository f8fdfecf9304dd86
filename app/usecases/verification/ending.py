"""How a verification's row ends: its status, and its one event."""

from __future__ import annotations

from typing import Final

from app.core.model.records import Verification, VerificationStatus
from app.storage.unit_of_work import UnitOfWork
from app.usecases.shared.shell import Shell

FINISHED: Final = "verification.finished"


async def end(
    uow: UnitOfWork,
    shell: Shell,
    row: Verification,
    *,
    status: VerificationStatus,
    reason: str | None = None,
    claims: int | None = None,
    changed: bool = False,
) -> None:
    """Write the end on the row and record its event; the caller has locked the conversation, and delivers the event."""
    now = shell.clock.now()
    await uow.verifications.update(
        row.id,
        status=status,
        reason=reason,
        version=row.version,
        after=None,
        attempts=row.attempts,
        finished_at=now,
    )
    data = {
        "verification_id": str(row.id),
        "state_version": row.version,
        "status": status,
        "reason": reason,
        "claims": claims,
        "changed": changed,
    }
    await uow.events.add(row.conversation_id, FINISHED, data, now)
