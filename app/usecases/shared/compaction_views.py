"""Compactions as clients see them: the row, and the state that it wrote, rendered as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.model.records import Compaction
from app.core.model.repairs import Repair
from app.core.model.schemas import schema_named
from app.core.state.rendering import render_text
from app.storage.unit_of_work import UnitOfWork


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionView:
    """A compaction as clients see it."""

    compaction: Compaction
    repairs: tuple[Repair, ...] = ()
    """The repairs that were made to the model's summary."""
    summary: str | None = None
    """The state that it wrote, rendered; it is never stored as text."""
    joined: bool = False
    planned: bool = False
    """Whether it is a dry run: nothing is stored, and ``compaction`` only carries the plan's numbers."""


async def views_of(uow: UnitOfWork, rows: Sequence[Compaction], *, joined: bool = False) -> list[CompactionView]:
    """The views of these rows. One query each reads all their states, their repairs, and their languages."""
    applied = [row for row in rows if row.status == "applied"]
    versions = await uow.states.by_compaction([row.id for row in applied]) if applied else {}
    repairs = await uow.states.repairs_of([row.id for row in applied]) if applied else {}
    locales = await uow.conversations.locales({row.conversation_id for row in applied}) if versions else {}
    summaries = {
        row.id: render_text(schema_named(version.state_schema), version.state, locales.get(row.conversation_id, "en"))
        for row in applied
        if (version := versions.get(row.id))
    }
    return [
        CompactionView(compaction=row, repairs=repairs.get(row.id, ()), summary=summaries.get(row.id), joined=joined)
        for row in rows
    ]
