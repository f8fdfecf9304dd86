"""The references that nearly every table has. Tables and migrations name neither: the names follow from ``NAMING``.

Released migrations are written with them. So none is changed: a table that needs another reference gets a new one.
"""

from __future__ import annotations

from sqlalchemy import ForeignKeyConstraint


def in_conversation() -> ForeignKeyConstraint:
    """The reference of a row to its conversation, with which it is deleted."""
    return ForeignKeyConstraint(
        ["tenant_id", "conversation_id"], ["conversations.tenant_id", "conversations.id"], ondelete="CASCADE"
    )


def of_tenant() -> ForeignKeyConstraint:
    """The reference of a row to its tenant, with which it is deleted."""
    return ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], ondelete="CASCADE")
