"""Conditions of statements that several repositories share."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, exists, func, literal_column, select
from sqlmodel import col

from app.storage.tables import ConversationRow


def not_deleted(table: Any) -> Any:
    """Whether the conversation of a row is not deleted: its rows are removed only later.

    For queries that do not read the conversation itself. The tenant is compared too, since in the system scope no
    statement gets that condition by itself.
    """
    row = ConversationRow
    return exists().where(
        col(row.tenant_id) == table.tenant_id, col(row.id) == table.conversation_id, col(row.deleted_at).is_(None)
    )


def places(table: Any) -> Select[Any]:
    """A select of the physical places (``ctid``) of rows, for the caller to limit.

    With it a bounded number of rows is picked and deleted without a join.
    """
    return select(_ctid(table)).select_from(table)


def at_places(table: Any, picked: Select[Any]) -> ColumnElement[bool]:
    """Whether a row stands at one of the picked places."""
    return _ctid(table) == func.any(func.array(picked.correlate(None).scalar_subquery()))


def _ctid(table: Any) -> ColumnElement[Any]:
    return literal_column(f"{table.__tablename__}.ctid")
