"""The one place that adds the tenant: to every select, update, delete and insert that a session executes.

Law: ``session.info["tenant_id"]`` is a tenant's id, or ``None`` for the explicit system scope (sweeper, key
look-ups, the worker's first read). A session without the entry, a statement that the ORM does not see (raw text,
tables instead of mapped classes), and objects handed to the session instead of statements are refused.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import BindParameter, bindparam, event
from sqlalchemy.orm import ORMExecuteState, Session, UOWTransaction, with_loader_criteria
from sqlalchemy.orm.interfaces import CriteriaOption
from sqlalchemy.sql.visitors import InternalTraversal

from app.storage.tables import TenantScoped

TENANT = "tenant_id"


class UnscopedStatementError(RuntimeError):
    """A defect of ours: a statement that the tenant cannot be added to."""


class ScopedSession(Session):
    """A session whose every statement passes through :func:`scope`."""


class TenantCriteria(CriteriaOption):
    """The tenant's condition on each table, wherever in a statement the table stands: aliases and subqueries too.

    One option for all tables, since an option's cache key is made anew for every statement that is executed: this
    one's is its class and its parameter, so statements that differ only in the tenant share what was compiled.
    """

    __slots__ = ("conditions", "tenant")
    _traverse_internals = [("tenant", InternalTraversal.dp_clauseelement)]  # noqa: RUF012 -- so the base class has it

    def __init__(self, tenant_id: UUID) -> None:
        self.tenant: BindParameter[UUID] = bindparam("tenant_of_session", tenant_id)
        self.conditions = tuple(
            with_loader_criteria(table, table.__table__.c.tenant_id == self.tenant, include_aliases=True)  # type: ignore[attr-defined]
            for table in TenantScoped.__subclasses__()
        )

    def process_compile_state(self, compile_state: Any) -> None:
        """Add the conditions to a select that is compiled."""
        self.get_global_criteria(compile_state.global_attributes)

    def get_global_criteria(self, attributes: dict[Any, Any]) -> None:
        """Add the conditions to an update or a delete that is compiled."""
        for condition in self.conditions:
            condition.get_global_criteria(attributes)


@lru_cache(maxsize=1_024)
def criteria(tenant_id: UUID) -> TenantCriteria:
    """The tenant's condition."""
    return TenantCriteria(tenant_id)


@event.listens_for(ScopedSession, "do_orm_execute")
def scope(state: ORMExecuteState) -> None:
    """Put the session's tenant into the statement."""
    if TENANT not in state.session.info:
        raise UnscopedStatementError("a session needs a tenant, or None for the system scope")
    if not state.is_orm_statement:
        raise UnscopedStatementError("only statements on mapped classes can be scoped to a tenant")
    # Rows are read into values at once: what an earlier statement loaded must never stand in for the present row.
    state.update_execution_options(populate_existing=True, synchronize_session=False)
    tenant_id: UUID | None = state.session.info[TENANT]
    if tenant_id is None:
        return
    if state.is_insert:
        state.statement = state.statement.values(tenant_id=tenant_id)  # type: ignore[attr-defined]
    else:
        state.statement = state.statement.options(criteria(tenant_id))


@event.listens_for(ScopedSession, "before_flush")
def refuse_objects(session: Session, context: UOWTransaction, instances: object) -> None:  # noqa: ARG001
    """A flush writes past :func:`scope`."""
    if session.new or session.dirty or session.deleted:
        raise UnscopedStatementError("write by statements, not by objects")
