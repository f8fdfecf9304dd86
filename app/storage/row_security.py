"""Row-level security: Postgres itself shows and takes only rows of the tenant that the transaction names.

It is a second barrier after the condition that ``tenancy.py`` adds to every statement. Postgres applies it neither to
the owner of the tables nor to a superuser, so processes of the service act as a role that owns nothing.
docs/decisions/0029 gives the reasons.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

SETTING: Final = "throughline.tenant"
"""The setting that holds the tenant's id until the end of the transaction; without it no row is visible."""
SYSTEM: Final = "system"
"""The value of the setting for all tenants: sweeper, key look-ups, the worker's first read."""
POLICY: Final = "tenant_isolation"
DEFAULT_ROLE: Final = "throughline_app"

_VALUE: Final = f"current_setting('{SETTING}', true)"
# Sub-selects are evaluated once per statement, not once per row. The planner takes a CASE to be true for half of the
# rows. It would take an equality for a second condition, independent of the tenant's own, and expect far too few rows.
_VISIBLE: Final = f"""
    CASE WHEN tenant_id = (SELECT nullif(nullif({_VALUE}, ''), '{SYSTEM}')::uuid) THEN true
    ELSE (SELECT {_VALUE}) = '{SYSTEM}' END
"""
_MEMBER: Final = """
    CASE WHEN current_setting('server_version_num')::int >= 160000
    THEN pg_has_role(r.oid, 'SET') ELSE pg_has_role(r.oid, 'MEMBER') END
"""
ROLE_STATUS: Final = f"""
    SELECT coalesce(
        {_MEMBER} AND has_table_privilege(r.oid, t.oid, 'SELECT') AND current_schema() <> current_user, false
    ) AS may_act,
    coalesce(t.relrowsecurity AND NOT r.rolsuper AND NOT r.rolbypassrls, false) AS is_protected,
    coalesce(row_security_active(t.oid), false) AS is_protected_already
    FROM (SELECT to_regclass('conversations')::oid AS oid) named
    LEFT JOIN pg_class t ON t.oid = named.oid LEFT JOIN pg_roles r ON r.rolname = $1
"""  # noqa: S608 - our own constant
"""Whether the user that signed in may act as a role, whether row-level security then applies, and whether it applies
without the role.

If the schema is found by the name of the user, the role would not find it.
"""
VISIBLE_ROWS: Final = " ".join(_VISIBLE.split())
"""The condition of every policy, and of a view that is used in place of a table."""


def protection_sql(table: str) -> str:
    """The statement that protects a table with a ``tenant_id``, for a migration. It may be run again.

    It takes the table's lock for an instant. In an autocommit block each table is a transaction of its own.
    """
    return f"""DO $$ BEGIN
        SET LOCAL lock_timeout = '900ms';
        ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
        DROP POLICY IF EXISTS {POLICY} ON {table};
        CREATE POLICY {POLICY} ON {table} USING ({VISIBLE_ROWS});
    END $$"""


def role_sql(role: str) -> str:
    """The statement that makes the role, if that is allowed, and lets it use every table of the schema.

    The user that runs it becomes a member, and so can act as the role. If there is no such role and none may be made,
    it changes nothing and gives a warning.
    """
    return f"""DO $$ BEGIN
        IF to_regclass('alembic_version') IS NULL THEN RETURN; END IF;
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN
            BEGIN
                CREATE ROLE {role} NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
            EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
            END;
        END IF;
        IF NOT (SELECT {_MEMBER} FROM pg_roles r WHERE rolname = '{role}') THEN
            BEGIN
                GRANT {role} TO CURRENT_USER;
            EXCEPTION WHEN unique_violation OR insufficient_privilege THEN NULL;
            END;
        END IF;
        EXECUTE 'GRANT USAGE ON SCHEMA ' || quote_ident(current_schema()) || ' TO {role}';
        EXECUTE 'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ' || quote_ident(current_schema())
            || ' TO {role}';
        REVOKE INSERT, UPDATE, DELETE ON alembic_version FROM {role};
    EXCEPTION WHEN insufficient_privilege THEN
        RAISE WARNING USING MESSAGE = 'row-level security stays off: ' || SQLERRM;
    END $$"""  # noqa: S608 - of names that were checked


def acting_sql(role: str | None, tenant_id: UUID | str) -> str:
    """The text sent together with ``BEGIN`` that says which role acts, and for which tenant."""
    acting = f" SET LOCAL ROLE {role};" if role else ""
    return f"{acting} SET LOCAL {SETTING} = '{tenant_id}';"
