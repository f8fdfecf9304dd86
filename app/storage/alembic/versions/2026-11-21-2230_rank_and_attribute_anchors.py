"""Who said an anchor, whether it was pasted, and what a language model says of it."""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op

revision = "202611212230"
down_revision = "202611212000"

STATUS = "status IN ('active', 'resolved', 'superseded', 'withdrawn')"
RULES = (
    ("speaker", "speaker IN ('assistant', 'user')"),
    ("claimed_status", "claimed_status IN ('resolved', 'superseded', 'withdrawn')"),
)


def upgrade() -> None:
    # With a default that stays in the catalogue, no row is written again for it.
    op.add_column("anchors", sa.Column("speaker", sa.String(), nullable=False, server_default="user"))
    op.add_column("anchors", sa.Column("pasted", sa.Boolean(), nullable=False, server_default=sa.false()))
    # What was stored before counts as confirmed.
    op.add_column("anchors", sa.Column("passed_over", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("anchors", sa.Column("claimed_status", sa.String(), nullable=True))
    op.add_column("anchors", sa.Column("claimed_seq", sa.BigInteger(), nullable=True))
    for name in ("speaker", "pasted", "passed_over"):
        op.alter_column("anchors", name, server_default=None)
    # Since a line of the block says whose words it quotes, it weighs up to three tokens more.
    op.execute(
        "UPDATE anchors SET token_count = anchors.token_count + 3,"
        " speaker = CASE messages.role WHEN 'assistant' THEN 'assistant' ELSE 'user' END"
        " FROM messages WHERE messages.tenant_id = anchors.tenant_id AND messages.id = anchors.message_id"
    )
    for name, rule in RULES:
        op.create_check_constraint(op.f(f"ck_anchors_{name}"), "anchors", rule)
    op.drop_constraint(op.f("ck_anchors_status"), "anchors")
    op.create_check_constraint(op.f("ck_anchors_status"), "anchors", STATUS)
