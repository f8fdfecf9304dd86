"""``throughline keys``: makes, lists, changes and revokes API keys, in the database that the settings name."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, TypeVar
from uuid import UUID

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.complaints import errors_as_one_line
from app.cli.databases import services, settings_with_database
from app.cli.screen import one_line
from app.cli.terminal_language import text_of
from app.core.model.records import ApiKey, Scope
from app.devserver.configured import read_settings
from app.settings import Settings
from app.usecases.admin.keys import ALL_SCOPES, DEFAULT_TENANT, KeyService, parse_limits

T = TypeVar("T")

COLUMNS = ("id", "tenant", "name", "key", "scopes", "limits", "made", "used", "expires", "revoked")
TABLE_WIDTH = 200  # columns: an id that is cut short cannot be copied


class ScopeName(StrEnum):
    """The scopes, as choices of the command line."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


Limit = Annotated[
    list[str] | None,
    typer.Option(help="A limit of its own, as NAME=NUMBER or NAME=none: docs/limits.md. Repeat for several."),
]
Days = Annotated[float | None, typer.Option(min=0.0001, max=36_500, help="Days from now after which it ends.")]

keys = typer.Typer(help="Create, list, change and revoke API keys.", no_args_is_help=True)


@keys.command()
def create(
    name: Annotated[str, typer.Argument(help="What the key is for.")] = "default",
    tenant: Annotated[str, typer.Option(help="Whose key; made when there is no such tenant.")] = DEFAULT_TENANT,
    scope: Annotated[
        list[ScopeName] | None,
        typer.Option(help="Repeat for several; all when left out, with --user all but admin."),
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="An end user: the key sees and makes only conversations with this user_id.")
    ] = None,
    limit: Limit = None,
    expires_in_days: Days = None,
) -> None:
    """Create a key and print it: it is shown only now."""
    every = ALL_SCOPES - ({"admin"} if user is not None else set())
    scopes: frozenset[Scope] = frozenset(item.value for item in scope) if scope else every
    key, secret = _with_keys(
        lambda service: service.create(
            tenant,
            name,
            scopes,
            user_id=user,
            limits=parse_limits(limit or ()),
            expires_at=_days_from_now(expires_in_days),
        )
    )
    typer.echo(secret)
    # A key that was made in a wrong folder is valid nowhere else.
    settings = read_settings()
    place = "DATABASE_URL" if settings.database_url else str(settings.data_dir.absolute())
    told = {"id": str(key.id), "tenant": repr(tenant), "scopes": ", ".join(sorted(key.scopes)), "database": place}
    typer.echo(text_of("keys.created", **told), err=True)


@keys.command(name="list")
def list_keys() -> None:
    """List the keys, without their secrets."""
    found, tenants = _with_keys(_keys_and_tenants, wants_database=True)
    table = Table(*(text_of(f"keys.{one}") for one in COLUMNS), box=None)
    table.columns[0].no_wrap = True
    for key in found:
        own = [] if key.user_id is None else [f"user:{key.user_id}"]
        scopes = " ".join([*sorted(key.scopes), *own])
        times = map(_to_the_minute, (key.created_at, key.last_used_at, key.expires_at, key.revoked_at))
        cells = (str(key.id), tenants.get(key.tenant_id, ""), key.name, f"{key.prefix}…", scopes, _limits(key), *times)
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    Console(width=TABLE_WIDTH).print(table)


@keys.command()
def change(
    key_id: Annotated[UUID, typer.Argument(help="The key's id, from `throughline keys list`.")],
    limit: Limit = None,
    expires_in_days: Days = None,
) -> None:
    """Set limits of a key, or when it ends; what is not named stays as it is."""
    key = _with_keys(
        lambda service: service.change(
            key_id, limits=parse_limits(limit) if limit else None, expires_at=_days_from_now(expires_in_days)
        ),
        wants_database=True,
    )
    typer.echo(text_of("keys.changed", limits=_limits(key) or "–", expires=_to_the_minute(key.expires_at) or "–"))


@keys.command()
def revoke(key_id: Annotated[UUID, typer.Argument(help="The key's id, from `throughline keys list`.")]) -> None:
    """Make a key stop working at once."""
    _with_keys(lambda service: service.revoke(key_id), wants_database=True)
    typer.echo(text_of("keys.revoked_now"))


def _limits(key: ApiKey) -> str:
    return ", ".join(f"{name}={'none' if value is None else value}" for name, value in sorted(key.limits.items()))


def _days_from_now(days: float | None) -> datetime | None:
    return None if days is None else datetime.now(UTC) + timedelta(days=days)


async def _keys_and_tenants(service: KeyService) -> tuple[list[ApiKey], dict[UUID, str]]:
    return await service.all(), await service.tenants()


def _to_the_minute(moment: datetime | None) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%MZ}" if moment else ""


def _with_keys(work: Callable[[KeyService], Awaitable[T]], *, wants_database: bool = False) -> T:
    with errors_as_one_line(), settings_with_database(wants=wants_database) as settings:
        return asyncio.run(_run(settings, work))


async def _run(settings: Settings, work: Callable[[KeyService], Awaitable[T]]) -> T:
    async with services(settings) as container:
        return await work(container.keys)
