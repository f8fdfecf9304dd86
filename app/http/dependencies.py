"""What routes depend on: the container, the tenant, paging, preconditions, idempotency."""

from __future__ import annotations

from typing import Annotated, Final, Literal
from uuid import UUID

from fastapi import Depends, Header, Query, Request

from app.bootstrap import Container
from app.core.model.records import Page
from app.core.text.patterns import compiled
from app.http.idempotency import fingerprint, kept_key
from app.http.refusals import UnreadableError
from app.http.shutdown import Stopping
from app.usecases.shared.idempotency import Idem

Order = Literal["asc", "desc"]
Limit = Annotated[int, Query(ge=1, le=100)]
After = Annotated[str | None, Query(max_length=300, description="`next_cursor` of the page before.")]
ETAG: Final = compiled(r'(?:W/)?"(\d{1,18})"')  # weak: a proxy that compresses answers makes it so


def container_of(request: Request) -> Container:
    """The container of the application.

    Frequent routes take the request and call this and ``tenant_of``: a dependency costs the framework much more than a
    call.
    """
    container: Container = request.app.state.container
    return container


async def get_container(request: Request) -> Container:
    """The container, as a dependency."""
    return container_of(request)


async def get_stopping(request: Request) -> Stopping:
    """Tells whether the process is about to end."""
    stopping: Stopping = request.app.state.stopping
    return stopping


def tenant_of(request: Request) -> UUID:
    """The tenant of the key."""
    tenant: UUID = request.state.principal.tenant_id
    return tenant


async def get_tenant(request: Request) -> UUID:
    """The tenant of the key, as a dependency."""
    return tenant_of(request)


IdempotencyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x20-\x7e]+$",
        description="The same key and body give the first response again.",
    ),
]


async def get_idem(request: Request, key: IdempotencyHeader = None) -> Idem | None:
    """The idempotency key, with the hash of its request."""
    if key is None:
        return None
    return Idem(key=kept_key(key), fingerprint=fingerprint(request.method, request.url.path, await request.body()))


async def get_if_match(value: Annotated[str | None, Header(alias="If-Match")] = None) -> int | None:
    """The state version that the client read; ``None`` if any version is accepted.

    Raises:
        UnreadableError: The value is not an entity tag of this service.
    """
    if value is None or value.strip() == "*":
        return None
    found = ETAG.fullmatch(value.strip())
    if found is None:
        raise UnreadableError('If-Match must be the ETag of a conversation: a state version in quotes, as in "3".')
    return int(found[1])


async def _page_newest_first(limit: Limit = 20, after: After = None, order: Order = "desc") -> Page:
    return Page(limit=limit, after=after, order=order)


async def _page_from_start(limit: Limit = 20, after: After = None, order: Order = "asc") -> Page:
    return Page(limit=limit, after=after, order=order)


Services = Annotated[Container, Depends(get_container)]
Shutdown = Annotated[Stopping, Depends(get_stopping)]
Tenant = Annotated[UUID, Depends(get_tenant)]
IdempotencyKey = Annotated[Idem | None, Depends(get_idem)]
IfMatch = Annotated[int | None, Depends(get_if_match)]
Paging = Annotated[Page, Depends(_page_newest_first)]
PagingFromStart = Annotated[Page, Depends(_page_from_start)]
