"""Files of a conversation: attach, list, read, remove. A file is sent and returned as its bare bytes."""

from __future__ import annotations

from typing import Annotated, Any, Final
from urllib.parse import quote
from uuid import UUID

from fastapi import Query, Request, Response

from app.core.text.file_types import TAKEN, media_type_of
from app.http import schemas
from app.http.dependencies import IdempotencyHeader, PagingFromStart, Services, Tenant
from app.http.fields import FileName
from app.http.idempotency import fingerprint, kept_key
from app.http.present import present_list
from app.http.refusals import UnsupportedMediaTypeError, invalid_field
from app.http.routing import keyed_router
from app.off_loop import off_loop
from app.usecases.files.attaching import NewFile
from app.usecases.shared.idempotency import Idem

MAX_TOKENS: Final = 10_000_000
PLAIN_TEXT: Final = "text/plain"
"""The one accepted type that a page may send to another site without a preflight request."""
BODY: Final[dict[str, Any]] = {
    "required": True,
    "description": f"The bytes of the file, under its own `Content-Type`: {TAKEN}.",
    "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
}
HEADERS: Final = {
    # Whatever type the file claims to have, no browser shows it as a page of this site.
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "private, no-store",
}

router = keyed_router("/conversations/{conversation_id}/files", "files")

Name = Annotated[FileName, Query(description="Of the file, as models and people see it.")]
Tokens = Annotated[
    int | None,
    Query(
        ge=1, le=MAX_TOKENS, description="What it weighs, where you know it; sound and film need it, a text has none."
    ),
]


@router.post("", status_code=201, openapi_extra={"requestBody": BODY})
async def attach_file(
    conversation_id: UUID,
    request: Request,
    response: Response,
    services: Services,
    tenant: Tenant,
    name: Name,
    tokens: Tokens = None,
    key: IdempotencyHeader = None,
) -> schemas.File:
    """Attach a file.

    Every context contains it whole, before all messages; 409 `no_room_for_file` if that is impossible.
    """
    sent_as = request.headers.get("content-type", "")
    media_type = media_type_of(sent_as)
    if not media_type:
        raise UnsupportedMediaTypeError(f"Send the file under a Content-Type that can be attached: {TAKEN}.")
    if media_type == PLAIN_TEXT and key is None:
        message = "is needed with text/plain: choose any value, and send it again where you repeat the request"
        raise invalid_field("Idempotency-Key", message)
    body = await request.body()
    target = f"{request.url.path}?{request.url.query} {media_type}"
    idem = None
    if key is not None:
        mark = await off_loop(fingerprint, "POST", target, body)  # hashing megabytes takes long
        idem = Idem(key=kept_key(key), fingerprint=mark)
    given = NewFile(name=name, media_type=media_type, data=body, tokens=tokens)
    file = await services.files.add(tenant, conversation_id, given, idem=idem)
    response.headers["Location"] = f"/conversations/{conversation_id}/files/{file.id}"
    return schemas.File.model_validate(file)


@router.get("")
async def list_files(
    conversation_id: UUID, services: Services, tenant: Tenant, page: PagingFromStart
) -> schemas.Listing[schemas.File]:
    """The files of a conversation in the order in which they were attached, which is their order in contexts."""
    return await present_list(await services.files.page(tenant, conversation_id, page), schemas.File.model_validate)


@router.get("/{file_id}")
async def get_file(conversation_id: UUID, file_id: UUID, services: Services, tenant: Tenant) -> schemas.File:
    """One file, without its bytes."""
    return schemas.File.model_validate(await services.files.get(tenant, conversation_id, file_id))


@router.get(
    "/{file_id}/content",
    response_class=Response,
    responses={
        200: {"description": "Its bytes.", "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
    },
)
async def get_file_content(conversation_id: UUID, file_id: UUID, services: Services, tenant: Tenant) -> Response:
    """The bytes of a file, as a download."""
    file, data = await services.files.content(tenant, conversation_id, file_id)
    await services.limits.hold("open_streams")  # its client may read slowly
    disposition = f"attachment; filename*=UTF-8''{quote(file.name, safe='')}"
    headers = {**HEADERS, "Content-Disposition": disposition}
    return Response(data, media_type=_with_charset(file.media_type), headers=headers)


@router.delete("/{file_id}", status_code=204)
async def remove_file(conversation_id: UUID, file_id: UUID, services: Services, tenant: Tenant) -> None:
    """Remove a file. No context contains it any more, and a copy at a provider is deleted."""
    await services.files.remove(tenant, conversation_id, file_id)


def _with_charset(media_type: str) -> str:
    # The framework adds the charset only to some types of text.
    return f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type
