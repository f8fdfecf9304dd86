"""The one place that adds the tenant to every select, update, delete and insert that a session executes.

``session.info["tenant_id"]`` is the id of a tenant, or ``None`` for the explicit system scope (sweeper, key look-ups,
the worker's first read). Sessions without that entry are refused, as are statements that the ORM does not see (raw
text, tables in place of mapped classes), and objects that are given to the session in place of statements.
"""

from __future__ import annotations

from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from sqlalchemy import BindParameter, Text, Uuid, bindparam, event, select
from sqlalchemy.orm import ORMExecuteState, Session, UOWTransaction, with_loader_criteria
from sqlalchemy.orm.interfaces import CriteriaOption
from sqlalchemy.sql.visitors import InternalTraversal

from app.storage.tables import ConversationRow, TenantScoped

TENANT = "tenant_id"
END_USER = "end_user"
end_user: ContextVar[str | None] = ContextVar("end_user", default=None)
"""The only end user whose conversations the present request may see; ``None`` = all of the tenant.

It holds for every session that is opened in the request, or in a task that the request starts.
"""


TENANT_VALUE: Final = "tenant_of_session"
USER_VALUE: Final = "user_of_session"
"""The names under which a statement takes the ids of the tenant and of the end user as parameters."""
_PLACEHOLDER_TENANT: Final = UUID(int=0)
_kept_compiled: Final[set[Any]] = set()


class UnscopedStatementError(RuntimeError):
    """A defect in the code: a statement to which the tenant cannot be added."""


class ScopedSession(Session):
    """A session whose every statement passes through :func:`scope`."""


class TenantCriteria(CriteriaOption):
    """The tenant's condition on each table, wherever the table is used in a statement, also in aliases and subqueries.

    It is one option for all tables, since an option's cache key is computed for every statement that is executed. The
    key of this one is its class and its parameter, so statements that differ only in the tenant share what was
    compiled.
    """

    __slots__ = ("conditions", "tenant")
    _traverse_internals = [("tenant", InternalTraversal.dp_clauseelement)]  # noqa: RUF012 -- so the base class has it

    def __init__(self, tenant_id: UUID) -> None:
        self.tenant: BindParameter[UUID] = bindparam(TENANT_VALUE, tenant_id)
        self.conditions = tuple(
            with_loader_criteria(table, table.__table__.c.tenant_id == self.tenant, include_aliases=True)  # type: ignore[attr-defined]
            for table in TenantScoped.__subclasses__()
        )

    def process_compile_state(self, compile_state: Any) -> None:
        """Add the conditions to a select that is being compiled."""
        self.get_global_criteria(compile_state.global_attributes)

    def get_global_criteria(self, attributes: dict[Any, Any]) -> None:
        """Add the conditions to an update or a delete that is being compiled."""
        for condition in self.conditions:
            condition.get_global_criteria(attributes)


class UserCriteria(TenantCriteria):
    """The condition of a tenant and of one end user: only the user's conversations, and what belongs to them."""

    __slots__ = ("user",)
    _traverse_internals = [  # noqa: RUF012 -- so the base class has it
        ("tenant", InternalTraversal.dp_clauseelement),
        ("user", InternalTraversal.dp_clauseelement),
    ]

    def __init__(self, tenant_id: UUID, user: str) -> None:
        super().__init__(tenant_id)
        self.user: BindParameter[str] = bindparam(USER_VALUE, user)
        conversations = ConversationRow.__table__  # type: ignore[attr-defined]
        is_own = conversations.c.user_id == self.user
        ids = select(conversations.c.id).where(conversations.c.tenant_id == self.tenant, is_own).scalar_subquery()
        tables = [table for table in TenantScoped.__subclasses__() if "conversation_id" in table.model_fields]
        self.conditions = (
            *self.conditions,
            with_loader_criteria(ConversationRow, is_own, include_aliases=True),
            *(
                with_loader_criteria(table, table.__table__.c.conversation_id.in_(ids), include_aliases=True)  # type: ignore[attr-defined]
                for table in tables
            ),
        )


@lru_cache(maxsize=1_024)
def criteria(tenant_id: UUID) -> TenantCriteria:
    """The tenant's condition."""
    return TenantCriteria(tenant_id)


@lru_cache(maxsize=256)
def user_criteria(tenant_id: UUID, user: str) -> UserCriteria:
    """The condition of one of the tenant's end users."""
    return UserCriteria(tenant_id, user)


@event.listens_for(ScopedSession, "do_orm_execute")
def scope(state: ORMExecuteState) -> None:
    """Restrict a statement to the session's tenant, and to its end user where it has one; an insert gets their ids."""
    if TENANT not in state.session.info:
        raise UnscopedStatementError("a session needs a tenant, or None for the system scope")
    if not state.is_orm_statement:
        raise UnscopedStatementError("only statements on mapped classes can be scoped to a tenant")
    # Rows are turned into values at once, so an object that an earlier statement loaded must never replace the present
    # row.
    state.update_execution_options(populate_existing=True, synchronize_session=False)
    tenant_id: UUID | None = state.session.info[TENANT]
    if tenant_id is None:
        return
    user: str | None = state.session.info.get(END_USER)
    if state.is_insert:
        user_value = {"user_id": user} if user is not None and _inserts_conversation(state) else {}
        state.statement = state.statement.values(tenant_id=tenant_id, **user_value)  # type: ignore[attr-defined]
    else:
        option = criteria(tenant_id) if user is None else user_criteria(tenant_id, user)
        state.statement = state.statement.options(option)


def keep_compiled(*statements: Any) -> None:
    """Register statements whose SQL text is made once and kept. They have parameters in place of values."""
    _kept_compiled.update(statements)


def is_kept_compiled(statement: Any) -> bool:
    """Whether the SQL text of a statement is kept."""
    return statement in _kept_compiled


def kind_of(tenant_id: UUID | None, user: str | None) -> type:
    """The kind of scope that a kept statement is compiled for: system, tenant, or one end user of a tenant."""
    if tenant_id is None:
        return type(None)
    return type(criteria(tenant_id) if user is None else user_criteria(tenant_id, user))


def scoped_for(statement: Any, kind: type) -> Any:
    """A kept statement, restricted to a scope of that kind. The ids are parameters, given when it is executed."""
    of_user = issubclass(kind, UserCriteria)
    if not statement.is_insert:
        return statement.options(kind(_PLACEHOLDER_TENANT, "") if of_user else kind(_PLACEHOLDER_TENANT))
    values = {"tenant_id": bindparam(TENANT_VALUE, type_=Uuid)}
    if of_user and statement.entity_description["entity"] is ConversationRow:
        values["user_id"] = bindparam(USER_VALUE, type_=Text)
    return statement.values(values)


def _inserts_conversation(state: ORMExecuteState) -> bool:
    mapper = state.bind_mapper
    return mapper is not None and mapper.class_ is ConversationRow


@event.listens_for(ScopedSession, "before_flush")
def refuse_objects(session: Session, context: UOWTransaction, instances: object) -> None:  # noqa: ARG001
    """Refuse to flush objects: a flush would write without :func:`scope`."""
    if session.new or session.dirty or session.deleted:
        raise UnscopedStatementError("write by statements, not by objects")
