"""Counts tokens and finds anchors of new messages before their transaction, while nobody waits for the row."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import accumulate
from typing import Any, Final, Protocol, Self, TypeVar
from uuid import UUID

from app.core.context.turn_options import TurnOptions
from app.core.model.anchors import Anchor
from app.core.model.conversation import Conversation, Message
from app.core.model.errors import DependencyUnavailableError, TooLargeError
from app.core.text.token_counts import Weight
from app.off_loop import AN_ITEM, ON_LOOP, in_slices, off_loop
from app.usecases.history.anchoring import MOST_ACTIVE, Read, message_statements, says_something, settled
from app.usecases.history.drafts import MessageDraft, named_among, refuse_long
from app.usecases.history.due_anchors import waits_for_anchors
from app.usecases.ports import NewId
from app.usecases.shared.idempotency import Idem, done_before
from app.usecases.shared.retries import Results, run_with_retries
from app.usecases.shared.shell import Shell

Result = TypeVar("Result")
MOST_READ: Final = 3
"""So often is read what messages say before their transaction, where others write meanwhile; then within it."""
_SMALL: Final = 8
"""Bytes of a number, of a comma, of brackets."""
IN_TRANSACTION: Final = 500
"""Characters of what is said: two milliseconds, about what the transaction costs that reading before it takes."""


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
        return (
            places
            and _base_of_anchors(conversation) == self.base
            and not any(message.content.strip() for message in rest)
        )


@dataclass(frozen=True, slots=True)
class Prepared:
    """Drafts with ids and weights, and their anchors; ``None`` where that is little and done on the way."""

    drafts: tuple[MessageDraft, ...] = ()
    reckoned: Reckoned | None = None

    def read_for(self, conversation: Conversation, messages: Sequence[Message]) -> Read | None:
        """What these messages of a *locked* conversation say, where that was found.

        Raises:
            OutdatedError: It was, and others have written since.
        """
        if self.reckoned is None:
            return None
        if not self.reckoned.holds(conversation, messages):
            raise OutdatedError
        return self.reckoned.read

    def unread(self) -> Self:
        """These messages as not read yet: the transaction reads them."""
        return replace(self, reckoned=None)


NOTHING_PREPARED: Final = Prepared()


class OutdatedError(Exception):
    """Others wrote to the conversation since messages for it were read; do not catch it within the transaction."""


class Readable(Protocol):
    """What is found before a transaction, and may be found within it too."""

    def unread(self) -> Self:
        """The value as not read yet: the transaction reads it."""
        ...


Ready = TypeVar("Ready", bound=Readable)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Texts:
    """What a process is given."""

    groups: tuple[tuple[int, tuple[MessageDraft, ...]], ...]
    """Each with the position of its first message; what one says counts for those after it."""
    conversation_id: UUID
    before: tuple[Anchor, ...]
    new_id: NewId
    now: datetime
    finds_anchors: bool


def _base_of_anchors(conversation: Conversation) -> tuple[int, int, int]:
    return conversation.last_seq, *_rest_of(conversation)


def _rest_of(conversation: Conversation) -> tuple[int, int]:
    return conversation.state_version, conversation.content_epoch


def size_of(drafts: Sequence[MessageDraft]) -> int:
    """Bytes, about, with what each message and part counts for; of much no more is looked at than tells that it is."""
    size = 0
    for draft in drafts:
        size += AN_ITEM + len(draft.content)
        for part in draft.parts:
            if size > ON_LOOP:
                return size
            size += AN_ITEM + sum(json_size(value) for key, value in part.items() if key != "data")
    return size


def options_size(options: TurnOptions) -> int:
    """Bytes, about, of what has to be counted of them; of much no more is looked at than tells that it is."""
    tools = sum(AN_ITEM + len(tool.description) + json_size(tool.parameters) for tool in options.offered)
    output = options.settings.output
    return len(options.instructions) + tools + (json_size(output.schema) if output else 0)


def json_size(value: Any) -> int:
    """Bytes, about, that a value takes as JSON; of a large one no more is looked at than tells that it is large."""
    size, waiting = 0, [value]
    while waiting and size <= ON_LOOP:
        one = waiting.pop()
        if isinstance(one, Mapping):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, (list, tuple)):
            waiting += one
        size += len(one) if isinstance(one, str) else _SMALL
    return size


async def prepared(
    shell: Shell,
    tenant_id: UUID,
    conversation_id: UUID,
    drafts: Sequence[MessageDraft],
    *,
    idem: Idem | None = None,
) -> Prepared:
    """Weigh messages and find their anchors: in a thread, large ones in a process, a few words not at all.

    Where the request ``idem`` was made before, nothing is computed.

    Raises:
        NotFoundError: There is no such conversation.
        TooLargeError: A message has too much text, or reading it took too long and was ended.
    """
    (ready,) = await prepared_groups(shell, tenant_id, conversation_id, [drafts], idem=idem)
    return ready


async def prepared_groups(
    shell: Shell,
    tenant_id: UUID,
    conversation_id: UUID,
    groups: Sequence[Sequence[MessageDraft]],
    *,
    after: int = 0,
    idem: Idem | None = None,
) -> list[Prepared]:
    """As ``prepared``, of messages that are appended one group after the other; ``after`` counts for the last group."""
    drafts = [draft for group in groups for draft in group]
    size = size_of(drafts)
    if size <= ON_LOOP and sum(len(draft.content) for draft in drafts) <= IN_TRANSACTION:
        return [Prepared(tuple(group)) for group in groups]
    async with shell.uow(tenant_id) as uow:
        if await done_before(uow, idem, shell.clock.now()) is not None:
            return [Prepared(tuple(group)) for group in groups]
        conversation = await uow.conversations.get(conversation_id)
        before = [] if waits_for_anchors(conversation) else await uow.anchors.active(conversation_id, limit=MOST_ACTIVE)
    named = [(draft, named_among(index, len(drafts))) for index, draft in enumerate(drafts)]
    await in_slices(lambda one: refuse_long(*one), named)
    return await _prepared_groups(shell, conversation, before, groups, after=after, size=size)


async def _prepared_groups(
    shell: Shell,
    conversation: Conversation,
    before: Sequence[Anchor],
    groups: Sequence[Sequence[MessageDraft]],
    *,
    after: int,
    size: int,
) -> list[Prepared]:
    named = [tuple(draft if draft.id else replace(draft, id=shell.new_id()) for draft in group) for group in groups]
    lasts = [*accumulate(map(len, groups), initial=conversation.last_seq)][:-1]
    firsts = [*(last + 1 for last in lasts[:-1]), lasts[-1] + 1 + after]
    texts = _Texts(
        groups=tuple(
            (first, tuple(map(_without_media_data, group))) for first, group in zip(firsts, named, strict=True)
        ),
        conversation_id=conversation.id,
        before=tuple(before),
        new_id=shell.new_id,
        now=shell.clock.now(),
        finds_anchors=not waits_for_anchors(conversation),
    )
    work = off_loop(reckon, texts) if size <= ON_LOOP else shell.processes.run(conversation.tenant_id, reckon, texts)
    ready = zip(named, firsts, lasts, await work, strict=True)
    base = _rest_of(conversation)
    return [_prepared(group, weights, read, first, (last, *base)) for group, first, last, (weights, read) in ready]


def _prepared(
    drafts: Sequence[MessageDraft], weights: Sequence[Weight], read: Read | None, first: int, base: tuple[int, int, int]
) -> Prepared:
    weighed = tuple(replace(draft, weight=weight) for draft, weight in zip(drafts, weights, strict=True))
    if read is None or not drafts:
        return Prepared(weighed)
    return Prepared(weighed, Reckoned(read, first, tuple(one.id for one in drafts), base))


async def prepared_with_retries(
    prepare: Callable[[], Awaitable[Ready]], transaction: Callable[[Ready, Results], Awaitable[Result]]
) -> Result:
    """Prepare, then run a transaction as ``run_with_retries`` does; once more where others wrote meanwhile.

    ``prepare`` reads messages in a short transaction of its own; ``transaction`` appends them.
    """
    for _ in range(MOST_READ):
        ready = await prepare()
        try:
            return await run_with_retries(partial(transaction, ready))
        except OutdatedError:
            continue
    return await run_with_retries(partial(transaction, ready.unread()))


async def weighed(draft: MessageDraft) -> MessageDraft:
    """One that says nothing that anchors are read of, with its weight."""
    return replace(draft, weight=await off_loop(draft.weighed, size=size_of([draft])))


async def prepared_anyhow(
    shell: Shell, tenant_id: UUID, conversation_id: UUID, drafts: Sequence[MessageDraft]
) -> Prepared:
    """As ``prepared``, of messages that must not be refused any more: what cannot be read now is read when appended."""
    try:
        return await prepared(shell, tenant_id, conversation_id, drafts)
    except (TooLargeError, DependencyUnavailableError):
        return Prepared(tuple(drafts))


def reckon(texts: _Texts) -> list[tuple[list[Weight], Read | None]]:
    """In a thread or a process, for each group: the weights of messages, and what they say about anchors, if wanted."""
    before, found = texts.before, list[tuple[list[Weight], Read | None]]()
    for first_seq, drafts in texts.groups:
        weights = [draft.weighed() for draft in drafts]
        if not texts.finds_anchors:
            found.append((weights, None))
            continue
        messages = [
            _message(texts, draft, seq) for seq, draft in enumerate(drafts, start=first_seq) if says_something(draft)
        ]
        read = settled(message_statements(messages, new_id=texts.new_id, now=texts.now), before)
        found.append((weights, read))
        before = _active_after(before, read)
    return found


def _active_after(before: Sequence[Anchor], read: Read) -> tuple[Anchor, ...]:
    changed = {change.anchor_id for change in read.changed}
    still = [anchor for anchor in before if anchor.id not in changed]
    return (*still, *(anchor for anchor in read.made if anchor.status == "active"))[-MOST_ACTIVE:]


def warm() -> None:
    """Build the tables that the first message would have to wait for."""
    draft = MessageDraft(role="user", content="We decided to pay 12 euros before Friday. Who keeps the receipt?")
    id_ = UUID(int=0)
    now = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
    texts = _Texts(
        groups=((1, (draft,)),), conversation_id=id_, before=(), new_id=lambda: id_, now=now, finds_anchors=True
    )
    reckon(texts)


def _without_media_data(draft: MessageDraft) -> MessageDraft:
    # Nothing that is computed looks at it, and it need not be sent to a process.
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
