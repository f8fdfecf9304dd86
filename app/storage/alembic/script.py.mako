"""${message}."""

from __future__ import annotations

import sqlalchemy as sa
${imports if imports else ""}

from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}
