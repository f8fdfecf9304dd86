"""Defaults for columns of state versions that the version before does not write, so that both may run at once."""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op

revision = "202611220430"
down_revision = "202611212230"

DEFAULTS = (("repairs", "'[]'::jsonb"), ("verified", "'exact'"), ("made_by", "'compaction'"))


def upgrade() -> None:
    for column, default in DEFAULTS:
        op.alter_column("state_versions", column, server_default=sa.text(default))
