"""Responses: make, read, stop and delete them; list, count and compact their input."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import repeat
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from fastapi import Body, Query, Request, Response

from app.bootstrap import Container
from app.core.model.conversation import Usage
from app.core.model.errors import NotFoundError, PreviousResponseNotFoundError
from app.http.dependencies import Services, Shutdown, Tenant
from app.http.openai.answers import events_after, response_events, stored_answer, whole_response
from app.http.openai.beginning import begin_response, prompt_of, response_of
from app.http.openai.ids import compaction_item_id, message_id, uuid_of
from app.http.openai.inputs import Attempts, conversation_of, drafts_of
from app.http.openai.items import content_of, items_of, message_item
from app.http.openai.models import chosen_model
from app.http.openai.present import present_response
from app.http.openai.resources import deletion_object, list_object, response_usage, unix_seconds
from app.http.openai.response_requests import CompactedInputRequest, NoBody, Requested, ResponseRequest
from app.http.openai.routing import openai_router
from app.http.openai.sending import send_new_stream, send_stream, send_whole
from app.http.openai.waiting import patience
from app.http.refusals import BodyTooLargeError, RequestTimeoutError
from app.off_loop import off_loop
from app.usecases.compaction.commands import focus_in
from app.usecases.compaction.manual import CompactInput
from app.usecases.history.drafts import MessageDraft, bytes_of
from app.usecases.openai.answering import Prompt
from app.usecases.openai.sealed_inputs import CompactedInput

Order = Annotated[Literal["asc", "desc"], Query()]
Limit = Annotated[int, Query(ge=1, le=100)]
After = Annotated[str | None, Query(max_length=100, description="The id of the last item of the page before.")]

MEDIA_SHARE: Final = 3
"""What part of a request's bytes the media of compacted input may have. Clients send them twice: as messages, and in
Base64 once more within the item.
"""

router = openai_router()


@router.post(
    "/responses",
    responses={200: {"description": "With `stream: true` as events.", "content": {"text/event-stream": {}}}},
    response_model=dict[str, Any],
)
async def create_response(
    request: Request,
    services: Services,
    tenant: Tenant,
    stopping: Shutdown,
    attempt: Attempts,
    body: Annotated[ResponseRequest, Body()],
) -> Response:
    """Answer input.

    A response is a turn of a conversation: the one that `conversation` or a header names, the one that
    `previous_response_id` belongs to (or a copy of it up to there, if it has gone on since), otherwise a new one. With
    `store: false` nothing is stored. The response header `X-Throughline` says what was done.
    """
    answering = await begin_response(services, tenant, body, headers=request.headers, attempt=attempt)
    if not body.stream:
        return await send_whole(request, answering, whole_response(answering))
    events = response_events(answering)
    if body.wants_own_events:  # they come before the first words
        return send_stream(services, answering, events, stopping, named=True)
    return await send_new_stream(request, services, answering, events, stopping, named=True)


@router.post("/responses/input_tokens")
async def count_response_input(
    services: Services, tenant: Tenant, _attempt: Attempts, body: Annotated[Requested, Body()]
) -> dict[str, Any]:
    """The estimated number of tokens of a response's input."""
    whole = await off_loop(lambda: ResponseRequest.model_validate(body.model_dump(by_alias=True, exclude_unset=True)))
    tokens = await services.openai.stateless.count(await prompt_of(services, tenant, whole))
    conversation_id = await _context_conversation(services, tenant, body)
    if conversation_id is not None:
        tokens += (await services.conversations.usage(tenant, conversation_id)).tokens
    return {"object": "response.input_tokens", "input_tokens": tokens}


@router.post("/responses/compact")
async def compact_response(
    services: Services, tenant: Tenant, _attempt: Attempts, body: Annotated[CompactedInputRequest, Body()]
) -> dict[str, Any]:
    """Compact input: the result has the last messages of users, word for word, and one item that stands for all input.

    Only this key's tenant can use that item, alone or after those messages. With `conversation` (an extension) the
    stored conversation itself is compacted.
    """
    chosen_model(services, body.model)
    seconds_left = patience(services)
    try:
        async with asyncio.timeout(seconds_left):
            compacted, usage = await _compacted(services, tenant, body, seconds_left)
    except TimeoutError:
        raise RequestTimeoutError(f"no summary within {seconds_left:g} seconds; nothing was changed") from None
    compacted, token = await _sealed(services, tenant, compacted)
    item = {
        "id": compaction_item_id(services.openai.new_id()),
        "type": "compaction",
        "encrypted_content": token,
        "created_by": "throughline",
    }
    return {
        "id": f"resp_{services.openai.new_id().hex}",
        "object": "response.compaction",
        "created_at": unix_seconds(services.parts.clock.now()),
        "output": [*map(_message_item, compacted.user_messages, repeat(services.openai.new_id)), item],
        "usage": response_usage(usage.as_dict()),
    }


@router.get(
    "/responses/{response_id}",
    responses={200: {"description": "With `stream=true` as events.", "content": {"text/event-stream": {}}}},
    response_model=dict[str, Any],
)
async def retrieve_response(
    response_id: str,
    services: Services,
    tenant: Tenant,
    stopping: Shutdown,
    stream: Annotated[bool, Query()] = False,  # noqa: FBT002 - a parameter of the query
    starting_after: Annotated[int | None, Query(ge=0, description="The last event that is not sent again.")] = None,
) -> dict[str, Any] | Response:
    """A stored response. As a stream, a response that is still being made is sent too, from its beginning."""
    found = await services.openai.responses.get(tenant, _turn_id(response_id))
    if not stream:
        return present_response(found)
    echo = found.turn.request or {}
    begun = await services.openai.stored.of_turn(tenant, found.turn.id)
    answering = stored_answer(services, begun, str(echo.get("model", "")), echo)
    answering.on_disconnect = None  # a client that only follows does not end the turn
    events = events_after(response_events(answering), starting_after)
    return send_stream(services, answering, events, stopping, named=True)


@router.delete("/responses/{response_id}")
async def delete_response(response_id: str, services: Services, tenant: Tenant) -> dict[str, Any]:
    """Erase a response's output and input, with everything derived from them."""
    await services.openai.responses.delete(tenant, _turn_id(response_id))
    return deletion_object(response_id, "response")


@router.post("/responses/{response_id}/cancel")
async def cancel_response(
    response_id: str,
    services: Services,
    tenant: Tenant,
    _attempt: Attempts,
    _body: Annotated[NoBody, Body()] = NoBody(),  # noqa: B008 - a frozen value
) -> dict[str, Any]:
    """Stop a response that is being made; what was said so far is kept."""
    return present_response(await services.openai.responses.cancel(tenant, _turn_id(response_id)))


@router.get("/responses/{response_id}/input_items")
async def list_response_input(
    response_id: str,
    services: Services,
    tenant: Tenant,
    limit: Limit = 20,
    after: After = None,
    order: Order = "desc",
) -> dict[str, Any]:
    """The input that a response answered."""
    page = await services.openai.responses.input_page(
        tenant, _turn_id(response_id), items_of, limit=limit, after=after, order=order
    )
    return list_object(page.items, has_more=page.has_more)


def _message_item(draft: MessageDraft, new_id: Callable[[], UUID]) -> dict[str, Any]:
    return message_item(message_id(new_id()), draft.role, content_of(draft.role, draft.content, draft.parts))


async def _compacted(
    services: Container, tenant: UUID, body: CompactedInputRequest, seconds_left: float
) -> tuple[CompactedInput, Usage]:
    compaction = services.openai.compaction
    if body.conversation_name is not None:
        conversation_id = conversation_of(body.conversation_name)
        asked = CompactInput(focus=focus_in(body.instructions or ""))
        view = await services.manual.compact(tenant, conversation_id, asked, timeout=seconds_left)
        drafts = await compaction.of_conversation(tenant, conversation_id)
        return CompactedInput(messages=tuple(drafts)), view.compaction.usage
    before = []
    if body.previous_response_id is not None:
        before = await compaction.of_response(tenant, response_of(body.previous_response_id))
    drafts = [*before, *await drafts_of(services, tenant, body.items)]
    done = await compaction.compact(tenant, drafts, body.instructions, patience=seconds_left)
    if done.usage.input_tokens:
        return done.compacted, done.usage
    read = await services.openai.stateless.count(Prompt(messages=tuple(drafts)))
    return done.compacted, replace(done.usage, input_tokens=read)  # no model counted the input: estimated


async def _sealed(services: Container, tenant: UUID, compacted: CompactedInput) -> tuple[CompactedInput, str]:
    """Compacted input that a client can send again, and its token. Raises ``BodyTooLargeError`` if none could."""
    most = services.settings.max_body_bytes
    compacted = await off_loop(compacted.with_media_within, most // MEDIA_SHARE)
    token = await services.openai.sealed.seal(tenant, compacted)
    if len(token) + await off_loop(lambda: sum(map(bytes_of, compacted.user_messages))) > most:
        raise BodyTooLargeError(
            f"the last messages stay as they are, and no request of {most} bytes could bring them again: send less with"
            " the last message",
            extra={"limit": most},
        )
    return compacted, token


async def _context_conversation(services: Container, tenant: UUID, body: Requested) -> UUID | None:
    if body.conversation_name is not None:
        return conversation_of(body.conversation_name)
    if body.previous_response_id is None:
        return None
    try:
        found = await services.openai.responses.get(tenant, response_of(body.previous_response_id))
    except NotFoundError:
        raise PreviousResponseNotFoundError(f"there is no response {body.previous_response_id!r}") from None
    return found.turn.conversation_id


def _turn_id(response_id: str) -> UUID:
    found = uuid_of(response_id, "resp")
    if found is None:
        raise NotFoundError("No such response.")
    return found
