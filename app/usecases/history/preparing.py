"""Counts tokens and finds anchors of new messages before their transaction, so that it locks the row only briefly."""

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
from app.off_loop import BYTES_PER_ITEM, MAX_BYTES_ON_LOOP, in_slices, off_loop
from app.usecases.history.anchoring import (
    MAX_ACTIVE_ANCHORS,
    AnchorEffects,
    effects_of,
    is_searched_for_anchors,
    message_statements,
)
from app.usecases.history.drafts import MessageDraft, message_name, refuse_long
from app.usecases.history.due_anchors import defers_anchors
from app.usecases.ports import NewId
from app.usecases.shared.idempotency import Idem, claim_key
from app.usecases.shared.retries import Results, run_with_retries
from app.usecases.shared.shell import Shell

Result = TypeVar("Result")
MAX_PREPARATIONS: Final = 3
"""How often messages are read before their transaction if others keep writing; after that they are read within it."""
_SCALAR_BYTES: Final = 8
"""The bytes counted for a value that is neither text nor a container, and for the brackets of a container."""
CHARS_IN_TRANSACTION: Final = 500
"""At most this many characters are read within the transaction: it takes two milliseconds, as long as another one."""


@dataclass(frozen=True, slots=True)
class PreparedEffects:
    """The effects of messages on anchors, and the state of the conversation for which they were computed."""

    effects: AnchorEffects
    first_seq: int
    ids: tuple[UUID | None, ...]
    base: tuple[int, int, int]
    """The conversation's last ``seq``, state version and content epoch, as they have to be at the transaction."""

    def is_current(self, conversation: Conversation, messages: Sequence[Message]) -> bool:
        """Whether the effects still hold in the locked conversation.

        The prepared messages have to be the last of ``messages``, and those before them must have no text.
        """
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
    """Drafts with ids and weights, and their effects on anchors."""

    drafts: tuple[MessageDraft, ...] = ()
    prepared_effects: PreparedEffects | None = None
    """``None`` if the transaction has to read the texts, for instance since they are short."""

    def effects_for(self, conversation: Conversation, messages: Sequence[Message]) -> AnchorEffects | None:
        """The prepared effects of these messages of a *locked* conversation, if there are any.

        Raises:
            OutdatedError: There are, but others have written to the conversation since.
        """
        if self.prepared_effects is None:
            return None
        if not self.prepared_effects.is_current(conversation, messages):
            raise OutdatedError
        return self.prepared_effects.effects

    def uncomputed(self) -> Self:
        """These messages without their effects on anchors: the transaction reads the messages."""
        return replace(self, prepared_effects=None)


NOTHING_PREPARED: Final = Prepared()


class OutdatedError(Exception):
    """Others wrote to the conversation after its new messages were read. Do not catch this within the transaction."""


class Precomputed(Protocol):
    """A value that is computed before a transaction, and can also be computed within it."""

    def uncomputed(self) -> Self:
        """This value without what was computed: the transaction computes it."""
        ...


Ready = TypeVar("Ready", bound=Precomputed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Texts:
    """The input of ``weights_and_effects``, which another thread or process gets."""

    groups: tuple[tuple[int, tuple[MessageDraft, ...]], ...]
    """Groups of messages, each with the position of its first message. A group's effects count for the groups after it.
    """
    conversation_id: UUID
    active: tuple[Anchor, ...]
    new_id: NewId
    now: datetime
    finds_anchors: bool


def _base_of_anchors(conversation: Conversation) -> tuple[int, int, int]:
    return conversation.last_seq, *_state_and_epoch(conversation)


def _state_and_epoch(conversation: Conversation) -> tuple[int, int]:
    return conversation.state_version, conversation.content_epoch


def size_of(drafts: Sequence[MessageDraft]) -> int:
    """The approximate size in bytes of work. Counting stops once it is clear that the messages are large."""
    size = 0
    for draft in drafts:
        size += BYTES_PER_ITEM + len(draft.content)
        for part in draft.parts:
            if size > MAX_BYTES_ON_LOOP:
                return size
            size += BYTES_PER_ITEM + sum(json_size(value) for key, value in part.items() if key != "data")
    return size


def options_size(options: TurnOptions) -> int:
    """The approximate size in bytes of the texts to be counted.

    Counting stops once it is clear that a value is large.
    """
    tools = sum(BYTES_PER_ITEM + len(tool.description) + json_size(tool.parameters) for tool in options.offered)
    output = options.settings.output
    return len(options.instructions) + tools + (json_size(output.schema) if output else 0)


def json_size(value: Any) -> int:
    """The approximate size in bytes of a value as JSON. Counting stops once it is clear that the value is large."""
    size, waiting = 0, [value]
    while waiting and size <= MAX_BYTES_ON_LOOP:
        one = waiting.pop()
        if isinstance(one, Mapping):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, (list, tuple)):
            waiting += one
        size += len(one) if isinstance(one, str) else _SCALAR_BYTES
    return size


async def prepared(
    shell: Shell,
    tenant_id: UUID,
    conversation_id: UUID,
    drafts: Sequence[MessageDraft],
    *,
    idem: Idem | None = None,
) -> Prepared:
    """Count the tokens of messages and find their anchors: in a thread, or in a process if they are large.

    A few words are left to the transaction. If the request ``idem`` was made before, nothing is computed.

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
    gap_before_last: int = 0,
    idem: Idem | None = None,
) -> list[Prepared]:
    """As ``prepared``, for messages that are appended group by group.

    ``gap_before_last`` is the number of other messages that are appended before the last group.
    """
    drafts = [draft for group in groups for draft in group]
    size = size_of(drafts)
    if size <= MAX_BYTES_ON_LOOP and sum(len(draft.content) for draft in drafts) <= CHARS_IN_TRANSACTION:
        return [Prepared(tuple(group)) for group in groups]
    async with shell.uow(tenant_id) as uow:
        if await claim_key(uow, idem, shell.clock.now()) is not None:
            return [Prepared(tuple(group)) for group in groups]
        conversation = await uow.conversations.get(conversation_id)
        active = (
            [] if defers_anchors(conversation) else await uow.anchors.active(conversation_id, limit=MAX_ACTIVE_ANCHORS)
        )
    named = [(draft, message_name(index, len(drafts))) for index, draft in enumerate(drafts)]
    await in_slices(lambda one: refuse_long(*one), named)
    return await _prepared_groups(shell, conversation, active, groups, gap_before_last=gap_before_last, size=size)


async def _prepared_groups(
    shell: Shell,
    conversation: Conversation,
    active: Sequence[Anchor],
    groups: Sequence[Sequence[MessageDraft]],
    *,
    gap_before_last: int,
    size: int,
) -> list[Prepared]:
    named = [tuple(draft if draft.id else replace(draft, id=shell.new_id()) for draft in group) for group in groups]
    lasts = [*accumulate(map(len, groups), initial=conversation.last_seq)][:-1]
    firsts = [*(last + 1 for last in lasts[:-1]), lasts[-1] + 1 + gap_before_last]
    texts = _Texts(
        groups=tuple(
            (first, tuple(map(_without_media_data, group))) for first, group in zip(firsts, named, strict=True)
        ),
        conversation_id=conversation.id,
        active=tuple(active),
        new_id=shell.new_id,
        now=shell.clock.now(),
        finds_anchors=not defers_anchors(conversation),
    )
    work = (
        off_loop(weights_and_effects, texts)
        if size <= MAX_BYTES_ON_LOOP
        else shell.processes.run(conversation.tenant_id, weights_and_effects, texts)
    )
    ready = zip(named, firsts, lasts, await work, strict=True)
    base = _state_and_epoch(conversation)
    return [
        _prepared(group, weights, effects, first, (last, *base)) for group, first, last, (weights, effects) in ready
    ]


def _prepared(
    drafts: Sequence[MessageDraft],
    weights: Sequence[Weight],
    effects: AnchorEffects | None,
    first: int,
    base: tuple[int, int, int],
) -> Prepared:
    weighed = tuple(replace(draft, weight=weight) for draft, weight in zip(drafts, weights, strict=True))
    if effects is None or not drafts:
        return Prepared(weighed)
    return Prepared(weighed, PreparedEffects(effects, first, tuple(one.id for one in drafts), base))


async def prepare_and_run(
    prepare: Callable[[], Awaitable[Ready]], transaction: Callable[[Ready, Results], Awaitable[Result]]
) -> Result:
    """Prepare, then run a transaction as ``run_with_retries`` does. If others wrote meanwhile, begin again.

    ``prepare`` reads messages in a short transaction of its own; ``transaction`` appends them.
    """
    for _ in range(MAX_PREPARATIONS):
        ready = await prepare()
        try:
            return await run_with_retries(partial(transaction, ready))
        except OutdatedError:
            continue
    return await run_with_retries(partial(transaction, ready.uncomputed()))


async def weighed(draft: MessageDraft) -> MessageDraft:
    """A draft with its weight, for a message that is not searched for anchors."""
    return replace(draft, weight=await off_loop(draft.computed_weight, size=size_of([draft])))


async def prepared_if_possible(
    shell: Shell, tenant_id: UUID, conversation_id: UUID, drafts: Sequence[MessageDraft]
) -> Prepared:
    """As ``prepared``, for messages that must not be refused: if reading fails, the transaction reads them."""
    try:
        return await prepared(shell, tenant_id, conversation_id, drafts)
    except (TooLargeError, DependencyUnavailableError):
        return Prepared(tuple(drafts))


def weights_and_effects(texts: _Texts) -> list[tuple[list[Weight], AnchorEffects | None]]:
    """The weights of each group's messages and, if wanted, their effects on anchors. Runs in a thread or a process."""
    active, found = texts.active, list[tuple[list[Weight], AnchorEffects | None]]()
    for first_seq, drafts in texts.groups:
        weights = [draft.computed_weight() for draft in drafts]
        if not texts.finds_anchors:
            found.append((weights, None))
            continue
        messages = [
            _message(texts, draft, seq)
            for seq, draft in enumerate(drafts, start=first_seq)
            if is_searched_for_anchors(draft)
        ]
        effects = effects_of(message_statements(messages, new_id=texts.new_id, now=texts.now), active)
        found.append((weights, effects))
        active = _active_after(active, effects)
    return found


def _active_after(active: Sequence[Anchor], effects: AnchorEffects) -> tuple[Anchor, ...]:
    changed = {change.anchor_id for change in effects.changed}
    still = [anchor for anchor in active if anchor.id not in changed]
    return (*still, *(anchor for anchor in effects.new if anchor.status == "active"))[-MAX_ACTIVE_ANCHORS:]


def warm() -> None:
    """Build the tables for reading messages, so that the first message need not wait for them."""
    draft = MessageDraft(role="user", content="We decided to pay 12 euros before Friday. Who keeps the receipt?")
    id_ = UUID(int=0)
    now = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
    texts = _Texts(
        groups=((1, (draft,)),), conversation_id=id_, active=(), new_id=lambda: id_, now=now, finds_anchors=True
    )
    weights_and_effects(texts)


def _without_media_data(draft: MessageDraft) -> MessageDraft:
    # No computation needs the data, so it is not sent to a process.
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
