"""Stores new anchors: found when a message is stored or later (``due_anchors``), or proposed by a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from app.core.anchors.detect import detect
from app.core.anchors.pool import places_with_stems
from app.core.anchors.statements import Statement, statements_of
from app.core.anchors.transitions import MAX_POSITIONS_BACK, SUPERSEDING_TYPES, subject_stems, transitions
from app.core.model.anchors import Anchor, FoundAnchor, Transition
from app.core.model.conversation import Conversation, Message
from app.off_loop import BYTES_PER_ITEM, off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.history.drafts import COUNTED_STATUSES, MessageDraft
from app.usecases.ports import NewId
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.retries import Compute
from app.usecases.shared.shell import Shell

MAX_ACTIVE_ANCHORS: Final = 1_000
"""The most active anchors, the newest first, that an append can change: bounds its work for any length of history."""
_AN_ANCHOR: Final = 50
"""The size, in bytes of work, of an active anchor: one not yet read in this process takes half a millisecond at most.
"""

_FOUND: Final = tuple(field.name for field in fields(FoundAnchor))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorEffects:
    """The effects of messages on anchors."""

    new: tuple[Anchor, ...]
    """The new anchors, each with the status after the later ones of these messages."""
    changed: tuple[Transition, ...]
    """The changes of anchors that were active before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorUpdate:
    """The effects of messages that are about to be stored, and the active anchors that were considered."""

    effects: AnchorEffects
    before: Sequence[Anchor] = ()


NO_ANCHOR_EFFECTS: Final = AnchorEffects(new=(), changed=())
NO_ANCHOR_UPDATE: Final = AnchorUpdate(effects=NO_ANCHOR_EFFECTS)


def is_searched_for_anchors(message: Message | MessageDraft) -> bool:
    """Whether a message is searched for anchors. A command, an erased message and a superseded reply are not."""
    return not message.is_command and message.status in COUNTED_STATUSES and bool(message.content.strip())


async def anchor_update(
    uow: UnitOfWork,
    shell: Shell,
    conversation: Conversation,
    messages: Sequence[Message],
    *,
    effects: AnchorEffects | None = None,
) -> AnchorUpdate:
    """The effects of messages on anchors. Nothing is written yet, so that all writes of an append are sent together.

    ``conversation`` is the row before these messages; ``effects`` are the effects, if they were found before.
    """
    spoken = [message for message in messages if is_searched_for_anchors(message)]
    if not spoken:
        return NO_ANCHOR_UPDATE
    if effects is None:
        return await _update_from_texts(uow, shell, conversation, spoken)
    return await update_if_active(uow, conversation, effects)


async def update_if_active(uow: UnitOfWork, conversation: Conversation, effects: AnchorEffects) -> AnchorUpdate:
    """What was read before the transaction, without changes of anchors that are no longer active."""
    if not effects.changed:
        return AnchorUpdate(effects=effects)
    before = await uow.anchors.still_active(conversation.id, [change.anchor_id for change in effects.changed])
    still = {anchor.id for anchor in before}
    changed = tuple(change for change in effects.changed if change.anchor_id in still)
    return AnchorUpdate(effects=replace(effects, changed=changed), before=before)


async def store_anchors(uow: UnitOfWork, conversation: Conversation, update: AnchorUpdate) -> bool:
    """Store the anchors of messages that were just stored, and the changes of the active ones.

    Returns:
        Whether an anchor changed that the stored layout serves or counts.
    """
    effects = update.effects
    # Rows with the same columns are sent in one round trip; those that have a successor come last.
    await uow.anchors.add(sorted(effects.new, key=lambda anchor: anchor.superseded_by is not None))
    await uow.anchors.change(conversation.id, effects.changed)
    return _touches_layout(conversation, update.before, effects.changed)


async def _update_from_texts(
    uow: UnitOfWork, shell: Shell, conversation: Conversation, spoken: Sequence[Message]
) -> AnchorUpdate:
    now, size = shell.clock.now(), sum(BYTES_PER_ITEM + len(message.content) for message in spoken)
    parsed = await off_loop(lambda: message_statements(spoken, new_id=shell.new_id, now=now), size=size)
    before = await _within_reach(uow, conversation, parsed) if parsed.may_change_others else []
    return AnchorUpdate(
        effects=await off_loop(effects_of, parsed, before, size=size + _AN_ANCHOR * len(before)), before=before
    )


async def _within_reach(uow: UnitOfWork, conversation: Conversation, parsed: MessageStatements) -> list[Anchor]:
    """The active anchors that messages could change: those just before them, and those that share a word with them.

    Reading a thousand anchors that cannot change would take longer than everything else in an append.
    """
    if conversation.last_seq == 0:
        return []
    from_seq = min(message.seq for message in parsed.messages) - MAX_POSITIONS_BACK
    words = subject_stems(parsed.found) if from_seq > 1 else frozenset[str]()
    if not words:
        return await uow.anchors.active_since(conversation.id, from_seq, limit=MAX_ACTIVE_ANCHORS)
    active_texts = await uow.anchors.active_texts(conversation.id, limit=MAX_ACTIVE_ANCHORS)
    texts = [content for _, _, content in active_texts]
    places = set(await off_loop(places_with_stems, texts, words, size=BYTES_PER_ITEM * len(texts)))
    wanted = [id_ for place, (id_, seq, _) in enumerate(active_texts) if place in places or seq >= from_seq]
    return await uow.anchors.still_active(conversation.id, wanted)


def proposed_anchors(shell: Shell, found: Sequence[FoundAnchor], span: Sequence[Message]) -> tuple[Anchor, ...]:
    """The anchors that a model proposed: verbatim passages of the span."""
    sources, now = {message.seq: message for message in span}, shell.clock.now()
    inside = [replace(one, proposed_by="model") for one in found if one.seq in sources]
    return tuple(_anchor(one, sources[one.seq], shell.new_id(), now) for one in inside)


async def add_proposed(
    uow: UnitOfWork,
    resolved: Resolved,
    proposed: Sequence[Anchor],
    span: Sequence[Message],
    *,
    compute: Compute = off_loop,
) -> None:
    """Store the anchors that a model proposed. Later messages may already have changed them.

    ``proposed`` are new anchors of ``span``, the folded messages.
    """
    if not proposed:
        return
    conversation = resolved.conversation
    known = await uow.anchors.active(conversation.id, limit=MAX_ACTIVE_ANCHORS)
    tail = await uow.messages.newest(conversation.id, after_seq=span[-1].seq, max_tokens=resolved.budgets.budget)
    changes = await compute(_transitions_from_first_proposed, proposed, known, [*span, *tail])
    made, changed = _with_final_status(proposed, changes)
    mine = {anchor.id for anchor in proposed}
    await uow.anchors.add(made)
    await uow.anchors.change(conversation.id, [one for one in changed if one.superseded_by in mine])


def _transitions_from_first_proposed(
    proposed: Sequence[Anchor], known: Sequence[Anchor], messages: Sequence[Message]
) -> list[Transition]:
    first = min(anchor.seq for anchor in proposed)
    before = [anchor for anchor in known if anchor.seq < first]
    since = [anchor for anchor in known if anchor.seq >= first]
    return transitions(before, [*proposed, *since], [message for message in messages if message.seq >= first])


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageStatements:
    """The statements of some messages, each message read by itself."""

    messages: Sequence[Message]
    statements_by_seq: Mapping[int, Sequence[Statement]]
    """The statements of each message, by ``seq``."""
    found: Sequence[Anchor]

    @property
    def may_change_others(self) -> bool:
        """Whether anything in these messages could change an anchor. A question, or text that is not speech, cannot."""
        answers = any(
            not statement.is_question for statements in self.statements_by_seq.values() for statement in statements
        )
        return answers or any(anchor.type in SUPERSEDING_TYPES for anchor in self.found)


def message_statements(messages: Sequence[Message], *, new_id: NewId, now: datetime) -> MessageStatements:
    """Split messages into statements, and find their anchors."""
    statements_by_seq = {message.seq: statements_of(message) for message in messages}
    found = [
        _anchor(one, message, new_id(), now)
        for message in messages
        for one in detect(message, statements=statements_by_seq[message.seq])
    ]
    return MessageStatements(messages=messages, statements_by_seq=statements_by_seq, found=found)


def effects_of(parsed: MessageStatements, before: Sequence[Anchor]) -> AnchorEffects:
    """What messages and their anchors change in the active anchors and in each other."""
    made, changed = _with_final_status(
        parsed.found, transitions(before, parsed.found, parsed.messages, statements=parsed.statements_by_seq)
    )
    return AnchorEffects(new=made, changed=changed)


def _anchor(found: FoundAnchor, source: Message, id_: UUID, now: datetime) -> Anchor:
    given = {name: getattr(found, name) for name in _FOUND}
    return Anchor(**given, id=id_, conversation_id=source.conversation_id, message_id=source.id, created_at=now)


def _with_final_status(
    new: Sequence[Anchor], changes: Sequence[Transition]
) -> tuple[tuple[Anchor, ...], tuple[Transition, ...]]:
    last: Mapping[object, Transition] = {change.anchor_id: change for change in changes}
    made = tuple(
        replace(anchor, status=last[anchor.id].status, superseded_by=last[anchor.id].superseded_by)
        if anchor.id in last
        else anchor
        for anchor in new
    )
    mine = {anchor.id for anchor in new}
    return made, tuple(change for change in last.values() if change.anchor_id not in mine)


def _touches_layout(conversation: Conversation, before: Sequence[Anchor], changed: Sequence[Transition]) -> bool:
    layout = conversation.layout
    if layout is None:
        return False
    places = {anchor.id: anchor.seq for anchor in before}
    served = (places[change.anchor_id] for change in changed)
    return any(seq <= conversation.boundary_seq and seq not in layout.held for seq in served)
