"""Reads from a request to OpenAI's API which conversation it continues, its messages, and which attempt it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import Depends, Request
from starlette.datastructures import Headers

from app.bootstrap import Container
from app.core.context.reconciling import QUESTION
from app.core.model.conversation import Message
from app.core.model.errors import InvalidInputError, NotFoundError, TooLargeError
from app.core.text.parts import Part
from app.core.text.speakers import name_in
from app.http.dependencies import IdempotencyKey
from app.http.idempotency import fingerprint
from app.http.openai.ids import is_reasoning, item_of, uuid_of
from app.http.openai.items import (
    CallItem,
    CompactionItem,
    MessageItem,
    ReasoningItem,
    ReferenceItem,
    ResultItem,
    draft_of,
    joined_steps,
    without_empty,
)
from app.off_loop import BYTES_PER_ITEM, off_loop
from app.usecases.history.drafts import MessageDraft, bytes_of
from app.usecases.openai.conversation_names import ConversationName
from app.usecases.openai.retry_keys import RequestAttempt
from app.usecases.shared.idempotency import Idem

OPEN_WEBUI_CHAT_HEADER: Final = "x-openwebui-chat-id"
CONVERSATION_HEADERS: Final = ("x-conversation-id", OPEN_WEBUI_CHAT_HEADER, "x-sm-conversation-id")
"""Headers that name a request's conversation: this service's own, Open WebUI's, and that of supermemory's router."""
USER_HEADERS: Final = ("x-openwebui-user-id", "x-sm-user-id")
TASK_HEADER: Final = "x-openwebui-task"
"""The header in which Open WebUI says that a prompt is its own: for a title, for tags, for what to search for."""
QUESTION_HEADER: Final = "x-openwebui-user-message-id"
"""The header in which Open WebUI says which message of its user it wants answered, also if it asks for that again."""
UNKEPT_CHAT: Final = ":"
"""What Open WebUI has after the kind of an id if it keeps no chat: ``temporary:…``, ``local:…``, ``channel:…``."""
RETRY_COUNT_HEADER: Final = "x-stainless-retry-count"
"""The header in which OpenAI's own SDKs count their tries."""
MAX_RETRIES: Final = 100
MAX_NAME_LENGTH: Final = 255


def name_of(
    headers: Headers, *, conversation_field: object, metadata: Mapping[str, Any] | None, user: str | None
) -> ConversationName | None:
    """The name by which a request refers to its conversation; ``None`` if it names none.

    ``conversation_field`` is the value of its field ``conversation``, an id or an object with one; ``metadata`` and
    ``user`` are its fields of those names.

    Raises:
        InvalidInputError: The name, or that of the end user, is not valid.
    """
    conversation = conversation_field.get("id") if isinstance(conversation_field, Mapping) else conversation_field
    conversation = conversation or next((headers[name] for name in CONVERSATION_HEADERS if headers.get(name)), None)
    conversation = conversation or (metadata or {}).get("conversation_id")
    if conversation is None:
        return None
    if (
        not isinstance(conversation, str)
        or not conversation.strip()
        or len(conversation) > MAX_NAME_LENGTH
        or not conversation.isprintable()
    ):
        message = f"a conversation is named by at most {MAX_NAME_LENGTH} printable characters"
        raise InvalidInputError.of("conversation", message)
    text = conversation.strip()
    user = next((headers[name] for name in USER_HEADERS if headers.get(name)), user)
    if user and len(user) > MAX_NAME_LENGTH:  # cut off, it might be another one's
        raise InvalidInputError.of("user", f"an end user is named by at most {MAX_NAME_LENGTH} characters")
    return ConversationName(
        text=text,
        conversation_id=uuid_of(text, "conv") or _uuid(text),
        is_ours=text.startswith("conv_"),
        user=user or None,
    )


def reason_not_to_store(headers: Headers) -> str | None:
    """Why a frontend wants its request answered without a trace; ``None`` if it does not say so.

    A prompt of the frontend's own may come before the first words of the user. Under the chat's name it would begin the
    conversation, and the chat would be another history for ever.
    """
    if headers.get(TASK_HEADER, "").strip():
        return "task"
    return "temporary" if UNKEPT_CHAT in headers.get(OPEN_WEBUI_CHAT_HEADER, "") else None


def with_question(drafts: Sequence[MessageDraft], headers: Headers) -> tuple[MessageDraft, ...]:
    """The messages of a request, the last with the id of the user's message that it asks about, if the client says it.

    Anything but a UUID is ignored: a frontend that does not know the placeholder sends its name.
    """
    question = _uuid(headers.get(QUESTION_HEADER, ""))
    if question is None or not drafts or drafts[-1].role != "user":
        return tuple(drafts)
    return (*drafts[:-1], replace(drafts[-1], metadata={**drafts[-1].metadata, QUESTION: str(question)}))


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def conversation_of(name: str) -> UUID:
    """The conversation with that id. Raises ``NotFoundError`` if it is not a valid id."""
    found = uuid_of(name, "conv")
    if found is None:
        raise NotFoundError("No such conversation.")
    return found


def attempt_of(headers: Headers, body: bytes, own: Idem | None = None) -> RequestAttempt:
    """Which attempt at which request this is; ``own`` is the key that the client gave itself."""
    counted = headers.get(RETRY_COUNT_HEADER, "")
    tries = int(counted) if counted.isascii() and counted.isdigit() and len(counted) < len(str(MAX_RETRIES)) else None
    return RequestAttempt(body=body, tries=tries, own=own)


async def get_attempt(request: Request, own: IdempotencyKey) -> RequestAttempt:
    """Which attempt a request is.

    With a key of the client's own, the same body for another conversation, or from another user, is another request.
    """
    named = "\n".join(request.headers.get(name, "") for name in (*CONVERSATION_HEADERS, *USER_HEADERS))
    if own is not None and named.strip():
        own = replace(own, fingerprint=fingerprint(own.fingerprint, named, b""))
    return attempt_of(request.headers, await request.body(), own)


Attempts = Annotated[RequestAttempt, Depends(get_attempt)]


async def drafts_of(services: Container, tenant_id: UUID, items: Sequence[Any]) -> list[MessageDraft]:
    """The messages that items stand for: references are looked up, compacted input is opened.

    Replies and system messages without a word are left out.

    Raises:
        NotFoundError: A reference names no item of this tenant.
        TooLargeError: The referenced items are larger than a request may be.
        InvalidInputError: Compacted input belongs to another tenant.
    """
    given_drafts = await off_loop(_drafts_by_number, items, size=_size_of(items))
    references = _References(services, tenant_id, services.settings.max_body_bytes)
    drafts: list[MessageDraft] = []
    for number, item in enumerate(items):
        match item:
            case ReasoningItem():
                continue
            case ReferenceItem(id=id_) if is_reasoning(id_):
                continue
            case ReferenceItem(id=id_):
                drafts.append(await references.draft(id_))
            case CompactionItem(encrypted_content=token):
                compacted = await services.openai.sealed.open(tenant_id, token)
                del drafts[len(drafts) - compacted.repeated_at_end(drafts) :]
                drafts += compacted.drafts()
            case _:
                drafts.append(given_drafts[number])
    drafts = without_empty(drafts)
    return await off_loop(
        lambda: [*joined_steps(drafts)], size=BYTES_PER_ITEM * sum(1 + len(draft.parts) for draft in drafts)
    )


def _size_of(items: Sequence[Any]) -> float:
    is_plain = all(isinstance(item, MessageItem) and isinstance(item.content, str) for item in items)
    return BYTES_PER_ITEM * len(items) if is_plain else math.inf


def _drafts_by_number(items: Sequence[Any]) -> dict[int, MessageDraft]:
    # Arguments are read as JSON, and data of media is decoded: together at most as much as a body may have.
    return {
        number: draft_of(item)
        for number, item in enumerate(items)
        if isinstance(item, MessageItem | CallItem | ResultItem)
    }


@dataclass(slots=True)
class _References:
    """What the references of one request name: each reference is short, but may name megabytes."""

    services: Container
    tenant_id: UUID
    most_bytes: int
    _read: dict[UUID, Message] = field(default_factory=dict)
    _bytes: int = 0

    async def draft(self, id_: str) -> MessageDraft:
        """The content of a referenced item."""
        place = item_of(id_)
        message = await self._message(place.message_id) if place else None
        draft = _item_draft(message, place.part) if place and message else None
        if draft is None:
            raise NotFoundError(f"There is no item {id_[:100]!r}.")
        self._bytes += await off_loop(bytes_of, draft)
        if self._bytes > self.most_bytes:
            raise TooLargeError(
                f"the items that this request refers to have more than {self.most_bytes} bytes: refer to fewer",
                extra={"limit": self.most_bytes},
            )
        return draft

    async def _message(self, message_id: UUID) -> Message | None:
        if message_id not in self._read:
            try:
                self._read[message_id] = await self.services.openai.responses.referred(self.tenant_id, message_id)
            except NotFoundError:
                return None
        return self._read[message_id]


def _item_draft(message: Message, part: int | None) -> MessageDraft | None:
    if part is None:
        parts: tuple[Part, ...] = tuple(
            one for one in message.parts if one.get("type") not in {"tool_call", "tool_result"}
        )
        who = {"name": message.metadata["name"]} if name_in(message.metadata) else {}
        return MessageDraft(role=message.role, content=message.content, parts=parts, model=message.model, metadata=who)
    if part >= len(message.parts):
        return None
    return MessageDraft(role=message.role, content="", parts=(message.parts[part],))
