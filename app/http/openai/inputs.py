"""Reads from a request of OpenAI's API whose conversation it is about, its messages, and which attempt it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import Depends, Request
from starlette.datastructures import Headers

from app.bootstrap import Container
from app.core.model.errors import InvalidInputError, NotFoundError
from app.core.text.parts import Part
from app.http.dependencies import IdempotencyKey
from app.http.openai.ids import is_reasoning, item_of, uuid_of
from app.http.openai.items import CompactionItem, ReasoningItem, ReferenceItem, draft_of, joined
from app.usecases.history.drafts import MessageDraft
from app.usecases.openai.keys import Attempt
from app.usecases.openai.naming import Name
from app.usecases.shared.idempotency import Idem

CONVERSATION_HEADERS: Final = ("x-conversation-id", "x-openwebui-chat-id", "x-sm-conversation-id")
"""By which a request names its conversation: ours, Open WebUI's, supermemory's router's."""
USER_HEADERS: Final = ("x-openwebui-user-id", "x-sm-user-id")
RETRIES: Final = "x-stainless-retry-count"
"""By which OpenAI's own SDKs count their tries."""
MOST_RETRIES: Final = 100
LONGEST_NAME: Final = 255


def name_of(headers: Headers, *, body: object, metadata: Mapping[str, Any] | None, user: str | None) -> Name | None:
    """What a request calls its conversation; ``None`` where it names none.

    ``body`` is its field ``conversation`` (an id, or an object with one), ``metadata`` and ``user`` its fields of those
    names.

    Raises:
        InvalidInputError: The name cannot be one.
    """
    told = body.get("id") if isinstance(body, Mapping) else body
    told = told or next((headers[name] for name in CONVERSATION_HEADERS if headers.get(name)), None)
    told = told or (metadata or {}).get("conversation_id")
    if told is None:
        return None
    if not isinstance(told, str) or not told.strip() or len(told) > LONGEST_NAME or not told.isprintable():
        message = f"a conversation is named by at most {LONGEST_NAME} printable characters"
        raise InvalidInputError.of("conversation", message)
    text = told.strip()
    forwarded = next((headers[name] for name in USER_HEADERS if headers.get(name)), None)
    return Name(
        text=text,
        conversation_id=uuid_of(text, "conv") or _uuid(text),
        is_ours=text.startswith("conv_"),
        user=(forwarded or user or "")[:LONGEST_NAME] or None,
    )


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def conversation_of(name: str) -> UUID:
    """The conversation with that id. Raises ``NotFoundError`` for what is no id of one."""
    found = uuid_of(name, "conv")
    if found is None:
        raise NotFoundError("No such conversation.")
    return found


def attempt_of(headers: Headers, body: bytes, own: Idem | None = None) -> Attempt:
    """Which attempt at which request it is; ``own``: under the key that the client gave itself."""
    counted = headers.get(RETRIES, "")
    tries = int(counted) if counted.isascii() and counted.isdigit() and len(counted) < len(str(MOST_RETRIES)) else None
    return Attempt(body=body, tries=tries, own=own)


async def get_attempt(request: Request, own: IdempotencyKey) -> Attempt:
    """The attempt that a request is."""
    return attempt_of(request.headers, await request.body(), own)


Attempts = Annotated[Attempt, Depends(get_attempt)]


async def drafts_of(services: Container, tenant_id: UUID, items: Iterable[Any]) -> list[MessageDraft]:
    """The messages that items stand for: references are looked up, compacted input is opened.

    Raises:
        NotFoundError: A reference names no item of this tenant.
        InvalidInputError: Compacted input is not of this tenant.
    """
    drafts: list[MessageDraft] = []
    for item in items:
        match item:
            case ReasoningItem():
                continue
            case ReferenceItem(id=id_) if is_reasoning(id_):
                continue
            case ReferenceItem(id=id_):
                drafts.append(await _referred(services, tenant_id, id_))
            case CompactionItem(encrypted_content=token):
                compacted = await services.openai.sealed.open(tenant_id, token)
                del drafts[len(drafts) - compacted.stands_after(drafts) :]
                drafts += compacted.drafts()
            case _:
                drafts.append(draft_of(item))
    return [*joined(drafts)]


async def _referred(services: Container, tenant_id: UUID, id_: str) -> MessageDraft:
    """What a referred item says."""
    place = item_of(id_)
    if place is None:
        raise NotFoundError(f"There is no item {id_[:100]!r}.")
    message = await services.openai.responses.referred(tenant_id, place.message_id)
    parts: tuple[Part, ...] = tuple(
        part for part in message.parts if part.get("type") not in {"tool_call", "tool_result"}
    )
    if place.part is None:
        return MessageDraft(role=message.role, content=message.content, parts=parts, model=message.model)
    if place.part >= len(message.parts):
        raise NotFoundError(f"There is no item {id_[:100]!r}.")
    return MessageDraft(role=message.role, content="", parts=(message.parts[place.part],))
