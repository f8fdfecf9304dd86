"""A conversation as a file: everything as JSON, or what was said as Markdown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from time import thread_time
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from fastapi import Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from app.core.model.export import markdown_head, markdown_message
from app.http import schemas
from app.http.dependencies import Services, Tenant
from app.http.present import (
    present_conversation,
    present_exported_file,
    present_state_version,
)
from app.http.routing import keyed_router
from app.off_loop import SLICE_SECONDS, off_loop
from app.usecases.history.conversations import ConversationView
from app.usecases.history.export import ExportService

Format = Literal["json", "markdown"]
FORMAT_NAME: Final = "throughline.conversation"
FORMAT_VERSION: Final = 1
PIECE_CHARACTERS: Final = 64_000
"""About how many characters are sent at once."""
FORMATS: Final = "`json`: everything, with states and anchors; `markdown`: what was said."

router = keyed_router("/conversations/{conversation_id}/export", "conversations")


@router.get(
    "",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "The file, as it is read.",
            "content": {
                "application/json": {"schema": {"type": "object"}},
                "text/markdown": {"schema": {"type": "string"}},
            },
        }
    },
)
async def export_conversation(
    conversation_id: UUID,
    services: Services,
    tenant: Tenant,
    as_: Annotated[Format, Query(alias="format", description=FORMATS)] = "json",
) -> StreamingResponse:
    """The full history as a file; Markdown never shows compactions."""
    view = await services.export.conversation(tenant, conversation_id)
    await services.limits.hold("open_streams")  # its client may read slowly
    if as_ == "markdown":
        return _file_response(_markdown(services.export, tenant, view), view, "md", "text/markdown; charset=utf-8")
    return _file_response(_json(services.export, tenant, view), view, "json", "application/json")


def _file_response(body: AsyncIterator[str], view: ConversationView, suffix: str, media_type: str) -> StreamingResponse:
    name = f"conversation-{view.conversation.id}.{suffix}"
    return StreamingResponse(
        _gathered(body), media_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )


async def _gathered(lines: AsyncIterator[str]) -> AsyncIterator[str]:
    """The text in larger pieces, since each piece passes through the whole server.

    Even a client that reads them at once does not block the loop for others.
    """
    waiting: list[str] = []
    size, began = 0, thread_time()
    async for line in lines:
        waiting.append(line)
        size += len(line)
        if size > PIECE_CHARACTERS or thread_time() - began > SLICE_SECONDS:
            yield "".join(waiting)
            await asyncio.sleep(0)
            waiting, size, began = [], 0, thread_time()
    if waiting:
        yield "".join(waiting)


async def _markdown(export: ExportService, tenant: UUID, view: ConversationView) -> AsyncIterator[str]:
    row = view.conversation
    yield markdown_head(row)
    async for message in export.messages(tenant, row.id, through_seq=row.last_seq, with_data=False):
        if text := markdown_message(message, row.locale):
            yield text


async def _json_text(present: Callable[[Any], BaseModel], item: Any, *, is_large: bool) -> str:
    def render() -> str:
        return present(item).model_dump_json()

    return await off_loop(render) if is_large else render()


async def _json(export: ExportService, tenant: UUID, view: ConversationView) -> AsyncIterator[str]:
    """One JSON object, whose lists are written as they are read."""
    row = view.conversation
    about = await off_loop(lambda: present_conversation(view).model_dump(mode="json"))
    head = {"format": FORMAT_NAME, "version": FORMAT_VERSION, "conversation": about}
    yield json.dumps(head, ensure_ascii=False)[:-1]
    messages = export.messages(tenant, row.id, through_seq=row.last_seq)
    states = export.states(tenant, row.id, through_version=row.state_version)
    anchors = export.anchors(tenant, row.id, through_seq=row.last_seq)
    lists: tuple[tuple[str, AsyncIterator[Any], Callable[[Any], BaseModel]], ...] = (
        ("messages", messages, schemas.Message.model_validate),
        ("states", states, present_state_version),
        ("anchors", anchors, schemas.Anchor.model_validate),
        ("files", export.files(tenant, row.id), present_exported_file),
    )
    for name, rows, present in lists:
        yield f', "{name}": ['
        between = "\n"
        async for item in rows:
            yield between + await _json_text(present, item, is_large=name == "files")
            between = ",\n"
        yield "]"
    yield "}\n"
