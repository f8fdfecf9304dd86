"""Begins a response, both over HTTP and over a socket."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from uuid import UUID

from starlette.datastructures import Headers

from app.bootstrap import Container
from app.core.context.turn_options import TurnOptions
from app.core.model.errors import InvalidInputError, PreviousResponseNotFoundError
from app.http.notifications import Notifier
from app.http.openai.answers import DIVERGED, Answering, stateless_answer, stored_answer
from app.http.openai.ids import uuid_of
from app.http.openai.inputs import conversation_of, drafts_of, name_of, reason_not_to_store, with_question
from app.http.openai.models import DEFAULT, chosen_model
from app.http.openai.response_requests import ResponseRequest
from app.http.openai.waiting import patience
from app.usecases.history.drafts import MessageDraft
from app.usecases.openai.answer_events import BegunAnswer
from app.usecases.openai.answering import Prompt
from app.usecases.openai.conversation_names import ConversationName
from app.usecases.openai.retry_keys import RequestAttempt
from app.usecases.openai.stored_answers import Request


async def begin_response(
    services: Container,
    tenant_id: UUID,
    body: ResponseRequest,
    *,
    headers: Headers,
    attempt: RequestAttempt,
    before: tuple[MessageDraft, ...] = (),
) -> Answering:
    """Begin a response. Every refusal is raised here.

    ``headers`` are those of the request or of the socket; ``before`` is what a connection remembers of responses that
    are not stored.
    """
    body.refuse_unsupported()
    model = body.model or DEFAULT
    echo = body.echo(model)
    unstored = reason_not_to_store(headers) if body.stores else "not-stored"
    if unstored is not None:
        before = before or await previous_messages(services, tenant_id, body)
        prompt = await prompt_of(services, tenant_id, body, before)
        return await stateless_answer(services, prompt, model, echo, reason=unstored)
    prompt = await prompt_of(services, tenant_id, body, before)
    request = Request(
        prompt=replace(prompt, messages=with_question(prompt.messages, headers)),
        attempt=attempt,
        patience=patience(services),
        preset=chosen_model(services, body.model).preset,
        user=body.user,
        echo=echo,
    )
    name = None if body.conversation_name or body.previous_response_id else _named_conversation(headers, body)
    begun = await _begin(services, tenant_id, body, request, name)
    if begun is None:
        return await stateless_answer(services, prompt, model, echo, reason=DIVERGED)
    answering = stored_answer(services, begun, model, echo)
    if body.wants_own_events:
        wished = headers.get("accept-language")
        answering.notifier = Notifier(services, tenant_id, begun.conversation.id, wished)
    if name is None and body.conversation_name is None and body.previous_response_id is None:
        openings = services.openai.stored.openings
        answering.on_untold_failure = partial(openings.note_untold, tenant_id, attempt, begun.turn_id)
    return answering


async def prompt_of(
    services: Container, tenant_id: UUID, body: ResponseRequest, before: tuple[MessageDraft, ...] = ()
) -> Prompt:
    """The content that the model has to answer."""
    settings, tools = body.settings_and_tools()
    return Prompt(
        messages=(*before, *await drafts_of(services, tenant_id, body.items)),
        options=TurnOptions(instructions=body.instructions or "", tools=tools, settings=settings),
        model=chosen_model(services, body.model).model,
        truncates=body.truncation == "auto",
    )


async def _begin(
    services: Container, tenant_id: UUID, body: ResponseRequest, request: Request, name: ConversationName | None
) -> BegunAnswer | None:
    answers = services.openai.stored
    if body.conversation_name is not None:
        return await answers.in_conversation(tenant_id, conversation_of(body.conversation_name), request)
    if body.previous_response_id is not None:
        return await answers.after_response(tenant_id, response_of(body.previous_response_id), request)
    if name is not None:
        return await answers.under_name(tenant_id, name, request, only_new=False)
    return await answers.in_new_conversation(tenant_id, request)


def response_of(id_: str) -> UUID:
    """The turn of the response that a request continues. Raises ``PreviousResponseNotFoundError`` for an invalid id."""
    found = uuid_of(id_, "resp")
    if found is None:
        raise PreviousResponseNotFoundError(f"there is no response {id_[:100]!r}")
    return found


def _named_conversation(headers: Headers, body: ResponseRequest) -> ConversationName | None:
    return name_of(headers, conversation_field=None, metadata=body.metadata, user=body.user)


async def previous_messages(services: Container, tenant_id: UUID, body: ResponseRequest) -> tuple[MessageDraft, ...]:
    """The stored messages that a response with ``store: false`` continues. Raises what refuses it."""
    if body.conversation_name is not None:
        message = "a conversation keeps what is said in it: leave store out, or the conversation"
        raise InvalidInputError.of("store", message)
    if body.previous_response_id is None:
        return ()
    # A response that is not stored only reads the one that it continues.
    turn_id = response_of(body.previous_response_id)
    return tuple(await services.openai.compaction.of_response(tenant_id, turn_id))
