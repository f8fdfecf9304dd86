"""``throughline erase-user`` and ``throughline tenants delete``: delete all data of an end user, or of a tenant."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Final
from uuid import UUID

import typer

from app.cli.complaints import errors_as_one_line
from app.cli.databases import services, settings_with_database
from app.cli.terminal_language import text_of
from app.core.model.records import Erasure
from app.settings import Settings
from app.usecases.admin.keys import DEFAULT_TENANT
from app.usecases.history.removing import RemovalService

PAUSE_SECONDS: Final = 0.5
"""Seconds between two checks while the service works or a provider has to answer."""
PATIENCE_SECONDS: Final = 60.0
"""Seconds without progress after which the rest is left to the service."""

Begin = Callable[[RemovalService, UUID], Awaitable[Erasure]]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]

tenants = typer.Typer(help="Operate on tenants.", no_args_is_help=True)


@tenants.callback()
def _group() -> None:
    """Keep the command's own name although the group has only one command."""


@tenants.command()
def delete(name: Annotated[str, typer.Argument(help="The tenant's name.")], *, yes: Yes = False) -> None:
    """Delete a tenant: its keys end at once, then all of its conversations go, then the rest."""
    _confirm("erasing.tenant", name, yes=yes)
    _erase(name, lambda service, tenant_id: service.erase_tenant(tenant_id))


def erase_user(
    user: Annotated[str, typer.Argument(help="The user_id of the conversations.")],
    tenant: Annotated[str, typer.Option(help="Whose end user.")] = DEFAULT_TENANT,
    *,
    yes: Yes = False,
) -> None:
    """Delete every conversation of an end user, and the user's own keys."""
    _confirm("erasing.user", user, yes=yes)
    found = _erase(tenant, lambda service, tenant_id: service.erase_user(tenant_id, user))
    if not found:
        typer.echo(text_of("erasing.nothing", name=repr(user), tenant=repr(tenant)), err=True)


def _confirm(sentence: str, name: str, *, yes: bool) -> None:
    if not yes:
        typer.confirm(text_of(sentence, name=repr(name)), abort=True)


def _erase(tenant: str, begin: Begin) -> int:
    with errors_as_one_line(), settings_with_database(wants=True) as settings:
        erasure, is_unfinished = asyncio.run(_erasure_and_rest(settings, tenant, begin))
    sentence = "erasing.left" if is_unfinished else "erasing.done"
    typer.echo(text_of(sentence, count=str(erasure.conversations)))
    return erasure.conversations


async def _erasure_and_rest(settings: Settings, tenant: str, begin: Begin) -> tuple[Erasure, bool]:
    """Begin an erasure and continue it to its end. Returns it, and whether something is left that takes longer."""
    async with services(settings) as container:
        service, waited = container.removal, 0.0
        erasure = await begin(service, await service.tenant_named(tenant))
        while waited < PATIENCE_SECONDS:
            is_more = await service.work()
            now = await service.status(erasure.id)
            if now is None:
                return erasure, False
            if is_more or now.conversations > erasure.conversations:
                waited = 0.0
            else:
                await asyncio.sleep(PAUSE_SECONDS)
                waited += PAUSE_SECONDS
            erasure = now
    return erasure, True
