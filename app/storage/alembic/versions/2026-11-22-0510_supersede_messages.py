"""A reply that was made again stays stored: messages may be superseded; rows are checked by the next revision."""

from __future__ import annotations

from alembic import op

revision = "202611220510"
down_revision = "202611220500"

STATUS = "status IN ('complete', 'erased', 'interrupted', 'superseded')"


def upgrade() -> None:
    op.drop_constraint(op.f("ck_messages_status"), "messages")
    op.create_check_constraint(op.f("ck_messages_status"), "messages", STATUS, postgresql_not_valid=True)
