"""Rows by their physical place (``ctid``): a bounded number of them is picked and removed without a join."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, func, literal_column, select


def places(table: Any) -> Select[Any]:
    """A select of the places of rows, for the caller to limit."""
    return select(_ctid(table)).select_from(table)


def at_places(table: Any, picked: Select[Any]) -> ColumnElement[bool]:
    """Whether a row stands at one of the picked places."""
    return _ctid(table) == func.any(func.array(picked.correlate(None).scalar_subquery()))


def _ctid(table: Any) -> ColumnElement[Any]:
    return literal_column(f"{table.__tablename__}.ctid")
