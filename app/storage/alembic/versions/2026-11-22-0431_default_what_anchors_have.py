"""Defaults for columns of anchors that the version before does not write, so that both may run at once."""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op

revision = "202611220431"
down_revision = "202611220430"

DEFAULTS = (("speaker", "'user'"), ("pasted", "false"), ("passed_over", "false"))


def upgrade() -> None:
    for column, default in DEFAULTS:
        op.alter_column("anchors", column, server_default=sa.text(default))
