"""What an append reckons of its texts, before its transaction: weights and anchors, while nobody waits for the row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from app.core.model.anchors import Anchor
from app.core.model.conversation import Conversation, Message
from app.core.model.errors import DependencyUnavailableError, TooLargeError
from app.core.text.token_counts import Weight
from app.off_loop import AN_ITEM, ON_LOOP, off_loop
from app.usecases.history.anchoring import MOST_ACTIVE, Read, heard, settled
from app.usecases.history.drafts import MessageDraft, refuse_long
from app.usecases.ports import NewId
from app.usecases.shared.idempotency import Idem, done_before
from app.usecases.shared.shell import Shell

IN_TRANSACTION: Final = 250
"""Characters of what is said: a few milliseconds, about what the transaction costs that reading before it takes."""


@dataclass(frozen=True, slots=True)
class Reckoned:
    """What the anchors of messages came to, and what that rests on."""

    read: Read
    first_seq: int
    ids: tuple[UUID | None, ...]
    base: tuple[int, int, int]

    def holds(self, conversation: Conversation, messages: Sequence[Message]) -> bool:
        """Whether it still does: in the locked conversation, these messages being the newest of those."""
        spoken = messages[-len(self.ids) :]
        places = tuple(message.id for message in spoken) == self.ids and spoken[0].seq == self.first_seq
        rest = messages[: -len(self.ids)]
        return places and base_of(conversation) == self.base and not any(message.content.strip() for message in rest)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Drafts with ids and weights, and their anchors; ``None`` where that is little and done on the way."""

    drafts: tuple[MessageDraft, ...]
    reckoned: Reckoned | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Texts:
    """What a process is given."""

    drafts: tuple[MessageDraft, ...]
    conversation_id: UUID
    first_seq: int
    before: tuple[Anchor, ...]
    new_id: NewId
    now: datetime


def base_of(conversation: Conversation) -> tuple[int, int, int]:
    """What anchors of new messages rest on: other messages, compactions and erasures change it."""
    return conversation.last_seq, conversation.state_version, conversation.content_epoch


def size_of(drafts: Sequence[MessageDraft]) -> int:
    """Bytes, about: with what each message and each part counts for."""
    return sum(AN_ITEM + len(draft.content) + sum(map(_part_size, draft.parts)) for draft in drafts)


def _part_size(part: Mapping[str, Any]) -> int:
    text = part.get("text") or part.get("content")
    return AN_ITEM + (len(text) if isinstance(text, str) else len(str(part.get("args", ""))))


async def prepared(
    shell: Shell,
    tenant_id: UUID,
    conversation_id: UUID,
    drafts: Sequence[MessageDraft],
    *,
    after: int = 0,
    idem: Idem | None = None,
) -> Prepared:
    """Weigh messages and find their anchors: in a thread, large ones in a process, a few words not at all.

    Args:
        shell: For the processes.
        tenant_id: Whose work it is.
        conversation_id: Where they are going to be appended.
        drafts: In order.
        after: Messages that are going to be appended before these.
        idem: Of the request: where it was made before, nothing is reckoned.

    Raises:
        NotFoundError: There is no such conversation.
        TooLargeError: A message has too much text, or reading it took too long and was ended.
    """
    size = size_of(drafts)
    if size <= ON_LOOP and sum(len(draft.content) for draft in drafts) <= IN_TRANSACTION:
        return Prepared(tuple(drafts))
    named = tuple(draft if draft.id else replace(draft, id=shell.new_id()) for draft in drafts)
    async with shell.uow(tenant_id) as uow:
        if await done_before(uow, idem, shell.clock.now()) is not None:
            return Prepared(tuple(drafts))
        conversation = await uow.conversations.get(conversation_id)
        before = await uow.anchors.active(conversation_id, limit=MOST_ACTIVE) if conversation.last_seq else []
    for draft in named:
        refuse_long(draft)
    first = conversation.last_seq + 1 + after
    texts = _Texts(
        drafts=tuple(map(_without_data, named)),
        conversation_id=conversation_id,
        first_seq=first,
        before=tuple(before),
        new_id=shell.new_id,
        now=shell.clock.now(),
    )
    is_short = size <= ON_LOOP
    weights, read = await (off_loop(reckon, texts) if is_short else shell.processes.run(tenant_id, reckon, texts))
    weighed = tuple(replace(draft, weight=weight) for draft, weight in zip(named, weights, strict=True))
    ids = tuple(draft.id for draft in weighed)
    return Prepared(weighed, Reckoned(read, first, ids, base_of(conversation)))


async def weighed(draft: MessageDraft) -> MessageDraft:
    """One that says nothing that anchors are read of, with its weight."""
    return replace(draft, weight=await off_loop(draft.weighed, size=size_of([draft])))


async def prepared_anyhow(
    shell: Shell, tenant_id: UUID, conversation_id: UUID, drafts: Sequence[MessageDraft], *, after: int = 0
) -> Prepared:
    """The same of what must not be refused any more: what cannot be reckoned now is reckoned when it is appended."""
    try:
        return await prepared(shell, tenant_id, conversation_id, drafts, after=after)
    except (TooLargeError, DependencyUnavailableError):
        return Prepared(tuple(drafts))


def reckon(texts: _Texts) -> tuple[list[Weight], Read]:
    """In a thread or a process: the weights of messages, and what they say about anchors."""
    weights = [draft.weighed() for draft in texts.drafts]
    messages = [
        _message(texts, draft, seq)
        for seq, draft in enumerate(texts.drafts, start=texts.first_seq)
        if not draft.is_command and draft.content.strip()
    ]
    return weights, settled(heard(messages, new_id=texts.new_id, now=texts.now), texts.before)


def warm() -> None:
    """Build the tables that the first message would have to wait for."""
    draft = MessageDraft(role="user", content="We decided to pay 12 euros before Friday. Who keeps the receipt?")
    id_ = UUID(int=0)
    now = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
    reckon(_Texts(drafts=(draft,), conversation_id=id_, first_seq=1, before=(), new_id=lambda: id_, now=now))


def _without_data(draft: MessageDraft) -> MessageDraft:
    """Nothing that is reckoned looks at the data of media, and none of it need be sent to a process."""
    if not any(map(_has_data, draft.parts)):
        return draft
    return replace(draft, parts=tuple({**part, "data": ""} if _has_data(part) else part for part in draft.parts))


def _has_data(part: Mapping[str, Any]) -> bool:
    return part.get("type") == "media" and isinstance(part.get("data"), str)


def _message(texts: _Texts, draft: MessageDraft, seq: int) -> Message:
    return Message(
        id=draft.id or texts.new_id(),
        conversation_id=texts.conversation_id,
        seq=seq,
        role=draft.role,
        content=draft.content,
        event_type=draft.event_type,
        status=draft.status,
        created_at=draft.created_at or texts.now,
    )
