"""Chat completions: stateless, or in a conversation that the request names, with its history or only what is new."""

from __future__ import annotations

import math
from typing import Annotated, Any
from uuid import UUID

from fastapi import Body, Request, Response
from starlette.datastructures import Headers

from app.bootstrap import Container
from app.core.context.turn_options import TurnOptions
from app.http.dependencies import Services, Shutdown, Tenant
from app.http.openai.answers import DIVERGED, Answering, chat_chunks, stateless_answer, stored_answer, whole_chat
from app.http.openai.chat_requests import ChatCompletionRequest
from app.http.openai.inputs import Attempts, name_of, reason_not_to_store, with_question
from app.http.openai.models import Chosen, chosen_model
from app.http.openai.routing import openai_router
from app.http.openai.sending import send_new_stream, send_whole
from app.http.openai.waiting import patience
from app.off_loop import BYTES_PER_ITEM, off_loop
from app.usecases.openai.answering import Prompt
from app.usecases.openai.retry_keys import RequestAttempt
from app.usecases.openai.stored_answers import Request as StoredRequest

router = openai_router()


@router.post(
    "/chat/completions",
    responses={200: {"description": "With `stream: true` as events.", "content": {"text/event-stream": {}}}},
    response_model=dict[str, Any],
)
async def create_chat_completion(
    request: Request,
    services: Services,
    tenant: Tenant,
    stopping: Shutdown,
    attempt: Attempts,
    body: Annotated[ChatCompletionRequest, Body()],
) -> Response:
    """Answer messages.

    Without the name of a conversation (header `X-Conversation-Id`, or one that chat frontends forward; field
    `conversation` or `metadata.conversation_id`) nothing is read and nothing is stored. The response header
    `X-Throughline` says what was done.
    """
    answering = await _answering(request, services, tenant, attempt, body)
    if not body.stream:
        return await send_whole(request, answering, whole_chat(answering))
    with_usage = bool(body.stream_options and body.stream_options.include_usage)
    chunks = chat_chunks(answering, with_usage=with_usage)
    return await send_new_stream(request, services, answering, chunks, stopping, named=False)


async def _answering(
    request: Request, services: Container, tenant: UUID, attempt: RequestAttempt, body: ChatCompletionRequest
) -> Answering:
    body.refuse_unsupported()
    chosen = chosen_model(services, body.model)
    prompt = await off_loop(_prompt, body, chosen, request.headers, size=_size_of(body))
    unstored = reason_not_to_store(request.headers)
    name = name_of(request.headers, conversation_field=body.conversation, metadata=body.metadata, user=body.user)
    if unstored is not None or name is None:
        return await stateless_answer(services, prompt, body.model, {}, reason=unstored or "unnamed")
    asked = StoredRequest(
        prompt=prompt,
        attempt=attempt,
        patience=patience(services),
        preset=chosen.preset,
        user=name.user,
        echo={"model": body.model},
    )
    begun = await services.openai.stored.under_name(tenant, name, asked, only_new=body.conversation is not None)
    if begun is None:
        return await stateless_answer(services, prompt, body.model, {}, reason=DIVERGED)
    return stored_answer(services, begun, body.model, {})


def _size_of(body: ChatCompletionRequest) -> float:
    is_plain = all(isinstance(message.content, str) and not message.tool_calls for message in body.messages)
    return BYTES_PER_ITEM * len(body.messages) if is_plain else math.inf


def _prompt(body: ChatCompletionRequest, chosen: Chosen, headers: Headers) -> Prompt:
    settings, tools = body.settings_and_tools()
    return Prompt(
        messages=with_question(body.drafts, headers),
        options=TurnOptions(instructions=body.instructions or "", tools=tools, settings=settings),
        model=chosen.model,
        truncates=body.truncation == "auto",
    )
