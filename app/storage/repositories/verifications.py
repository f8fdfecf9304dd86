"""The SQL of verifications that wait, run or have ended. Times are those of the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from pydantic import TypeAdapter
from sqlalchemy import and_, case, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col

from app.core.model.records import Attempt, Page, Verification, VerificationView
from app.core.model.state import MadeBy, VerificationCounts
from app.storage.repositories.base import Repository
from app.storage.repositories.cursor import BY_ID, cut_page, select_page
from app.storage.repositories.database_time import is_over, lease_end, now, times_from_now
from app.storage.repositories.mapping import columns, record_from_row
from app.storage.tables import RUNNING, VERIFICATION_OPEN, StateVersionRow, VerificationRow

_ATTEMPTS = TypeAdapter(tuple[Attempt, ...])
_COUNTS = TypeAdapter(VerificationCounts | None)
_row = VerificationRow
BY_VERIFICATION: Final[MadeBy] = "verification"
"""Who made the version of the state that a verification leads to."""
# Literal SQL, not parameters: only then can the planner be sure that the partial indexes apply.
_OPEN = text(VERIFICATION_OPEN)
IS_RUNNING = and_(text(RUNNING), ~is_over(col(_row.after)))
"""The condition that a process is working on a verification."""


class VerificationRepository(Repository):
    """Rows of ``verifications``; at most one per conversation waits or runs."""

    async def open(self, verification: Verification) -> None:
        """Insert a verification, unless one waits or runs, which will look at the newest version anyway."""
        statement = insert(_row).values(**_columns(columns(verification)))
        await self._session.execute(
            statement.on_conflict_do_nothing(
                index_elements=["tenant_id", "conversation_id"], index_where=text(VERIFICATION_OPEN)
            )
        )

    async def open_of(self, conversation_id: UUID) -> Verification | None:
        """The verification that waits or runs."""
        row = await self._session.first(select(_row).where(col(_row.conversation_id) == conversation_id, _OPEN))
        return None if row is None else as_verification(row)

    async def page(self, conversation_id: UUID, page: Page) -> tuple[list[VerificationView], str | None]:
        """A page of verifications, by default the newest first, and what came of each."""
        of_this = select(_row).where(col(_row.conversation_id) == conversation_id)
        found = await self._session.all(select_page(of_this, page, (col(_row.id),), BY_ID))
        rows, cursor = cut_page([as_verification(row) for row in found], page.limit, lambda row: (row.id,))
        done = [row for row in rows if row.status == "done"]
        claims, changes = await self._results(conversation_id, done) if done else ({}, [])

        def view_of(row: Verification) -> VerificationView:
            if row.status != "done":
                return VerificationView(verification=row)
            changed = any(_led_to(row, *made) for made in changes)
            return VerificationView(verification=row, claims=claims.get(row.version), changed=changed)

        return [view_of(row) for row in rows], cursor

    async def _results(
        self, conversation_id: UUID, done: Sequence[Verification]
    ) -> tuple[dict[int, int], list[tuple[int, datetime]]]:
        """How many claims of each version were judged; number and time of each version that a verification wrote."""
        number, made_by = col(StateVersionRow.version), col(StateVersionRow.made_by)
        judged = number.in_([row.version for row in done])
        # Versions that came after these verifications had ended are not theirs: an old page reads no later history.
        latest = max((row.finished_at for row in done if row.finished_at), default=None)
        later = and_(
            made_by == BY_VERIFICATION,
            number > min(row.version for row in done),
            col(StateVersionRow.created_at) <= latest,
        )
        rows = await self._session.rows(
            select(number, made_by, col(StateVersionRow.created_at), col(StateVersionRow.verification)).where(
                col(StateVersionRow.conversation_id) == conversation_id, or_(judged, later)
            )
        )
        counts = {row.version: _COUNTS.validate_python(row.verification) for row in rows}
        claims = {version: found.claims for version, found in counts.items() if found is not None}
        return claims, [(row.version, row.created_at) for row in rows if row.made_by == BY_VERIFICATION]

    async def make_due(self, conversation_id: UUID | None, reason: str) -> None:
        """Make verifications that wait for that reason due at once: those of one conversation, or all."""
        statement = update(_row).where(_OPEN, col(_row.status) == "queued", col(_row.reason) == reason)
        if conversation_id is not None:
            statement = statement.where(col(_row.conversation_id) == conversation_id)
        await self._session.execute(statement.values(after=None, reason=None))

    async def update(self, verification_id: UUID, **changes: Any) -> None:
        """Set fields. A time that is given as a ``timedelta`` counts from now on, by the database's clock."""
        values = times_from_now(_columns(changes))
        await self._session.execute(update(_row).where(col(_row.id) == verification_id).values(**values))

    async def renew_claim(self, verification_id: UUID, tries: int, *, seconds: float) -> bool:
        """Prolong the claim of that try while it runs, even one that is over; false if another try has begun."""
        until = case((text(RUNNING), lease_end(seconds)), else_=col(_row.after))
        mine = update(_row).where(col(_row.id) == verification_id, col(_row.tries) == tries)
        return await self._session.first(mine.values(after=until).returning(col(_row.id))) is not None

    async def due(self, *, limit: int, conversation_id: UUID | None = None) -> list[tuple[UUID, UUID]]:
        """Tenant and id of conversations whose verification is due, or whose verifying process died.

        It looks at all tenants, by index.
        """
        after = col(_row.after)
        statement = select(col(_row.tenant_id), col(_row.conversation_id)).where(_OPEN, is_over(after))
        if conversation_id is not None:
            statement = statement.where(col(_row.conversation_id) == conversation_id)
        lines = await self._session.rows(statement.order_by(after.nulls_first(), col(_row.id)).limit(limit))
        return [(line.tenant_id, line.conversation_id) for line in lines]

    async def running(self, *, within: timedelta) -> tuple[int, int]:
        """How many verifications run in the scope of the unit of work, and how many of them began ``within`` a time."""
        of_late = func.count().filter(col(_row.asked_at) > now() - within)
        ((all_, late),) = await self._session.rows(select(func.count(), of_late).select_from(_row).where(IS_RUNNING))
        return all_, late


def _led_to(row: Verification, version: int, made_at: datetime) -> bool:
    """Whether a version that a verification wrote is of this one: they never run side by side."""
    return row.finished_at is not None and row.version < version and made_at <= row.finished_at


def as_verification(row: VerificationRow) -> Verification:
    """The record of a row."""
    return record_from_row(Verification, row, attempts=_ATTEMPTS.validate_python(row.attempts))


def _columns(changes: dict[str, Any]) -> dict[str, Any]:
    if "attempts" not in changes:
        return changes
    return changes | {"attempts": _ATTEMPTS.dump_python(changes["attempts"], mode="json")}
