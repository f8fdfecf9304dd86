"""Erases a message, and everything that was made from it, in one transaction.

A digest made by code stands in the place of the state's narrative until the worker has written the narrative again.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial, reduce
from typing import Any, Final
from uuid import UUID
from weakref import WeakValueDictionary

from app.core.model.conversation import Conversation, Message, Sums
from app.core.model.records import ERASURE_TRIGGER, Compaction, FoldRequest
from app.core.model.redaction import redact, redact_messages
from app.core.model.schemas import schema_named
from app.core.model.state import StateEntry, StateVersion
from app.core.state.erasing import (
    ErasedTexts,
    RemainingMessages,
    call_id_of,
    full_text,
    quotes_erased,
    summary_without_erased,
    suspicious_entries,
    tombstone,
    with_erased_calls,
)
from app.core.state.erasing import entries_without_erased as entries_without
from app.core.state.layout import layout_of
from app.core.state.pruning import state_of
from app.core.summarizer.offline.extractive import digest
from app.core.text import memo
from app.core.text.contents import references
from app.core.text.token_counts import estimate_text, weigh
from app.off_loop import BYTES_PER_ITEM, off_loop
from app.storage.repositories.sizes import READ_BYTES
from app.storage.repositories.states import KnownVersions
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.claiming import claim_queued, new_compaction, refresh_sizes
from app.usecases.compaction.commands import compact_command
from app.usecases.compaction.ending import end_row
from app.usecases.history.erasing_segments import affected_segments, rewrite_without_erased
from app.usecases.history.holding import renew_layout
from app.usecases.shared.caller import audit
from app.usecases.shared.layouts import lay_out
from app.usecases.shared.retries import Compute, Results, run_with_retries
from app.usecases.shared.shell import STREAMS, Shell

SOURCE_MESSAGES: Final = 4_000  # messages before the boundary that are read at once as other sources of entries
DIGEST_MESSAGES: Final = 60
"""From how many of the newest covered messages the digest that replaces a narrative is made."""
WORD_SEARCH_DISCOUNT: Final = 40  # bytes searched for words that cost as much as one byte searched for patterns
MIN_DIGEST_TOKENS: Final = 90  # the least tokens of a digest that replaces a narrative: two or three sentences
NO_REMAINING_MESSAGES: Final = RemainingMessages({}, ErasedTexts((), ()))
"""If no text made from messages may hold what was erased."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Removed:
    """What was removed from the history: the message, and texts of the other halves of its tool pairs."""

    tombstones: tuple[Message, ...]
    """The message, and the other halves of its tool pairs that have no text left."""
    seqs: frozenset[int]
    """Positions of the messages that have no text left."""
    changed: frozenset[int]
    """``seqs``, and the positions of the stubs that still have text."""
    erased: ErasedTexts
    size_reductions: tuple[tuple[int, Sums], ...]
    """Positions of messages that have become smaller, and by how much."""


@dataclass(slots=True)
class _TryCache:
    """What one try has read, kept for the next try."""

    versions: KnownVersions = field(default_factory=KnownVersions)
    messages: tuple[object, list[Message]] = (None, [])
    """The messages that may be other sources of entries, and a key that shows whether they are unchanged."""


@dataclass(frozen=True, slots=True)
class _Erasure:
    """One try of an erasure."""

    uow: UnitOfWork
    conversation: Conversation
    message: Message
    now: datetime
    compute: Compute
    known: _TryCache


class ErasureService:
    """Erases messages: the one exception to "originals never change".

    Nothing derived from an erased message remains.
    """

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._erasing: WeakValueDictionary[UUID, asyncio.Lock] = WeakValueDictionary()

    async def erase(self, tenant_id: UUID, conversation_id: UUID, message_id: UUID) -> None:
        """Erase a message. A repeated erasure does nothing.

        Raises:
            NotFoundError: There is no such message.
        """
        shell = self._shell
        # Each erasure changes what the others have computed of the same conversation. Run at once, they would mostly
        # compute in vain.
        lock = self._erasing.setdefault(conversation_id, asyncio.Lock())
        async with lock, shell.work_records.record_work(tenant_id, conversation_id, "erasure"):
            once = partial(self._erase_once, tenant_id, conversation_id, message_id, shell.clock.now(), _TryCache())
            done = await run_with_retries(once)
        if done is not None:
            streamed_turns, stops_turn = done
            await off_loop(memo.forget)
            await shell.streams.forget(streamed_turns)
            if stops_turn:
                await shell.bus.hint(conversation_id, "interrupt")

    async def _erase_once(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        message_id: UUID,
        now: datetime,
        known: _TryCache,
        results: Results,
    ) -> tuple[Sequence[UUID], bool] | None:
        """The transaction; ``None`` if the message was already erased.

        It returns the newest turns, whose kept reply streams are to be deleted, and whether it asked a turn to stop.
        """
        async with self._shell.uow(tenant_id) as uow:
            uow.waits_for_delivery = False  # those streams go at once, however slow the bus is
            conversation = await uow.conversations.lock(conversation_id)
            message = await uow.messages.get(conversation_id, message_id)
            if message.status == "erased":
                return None
            await self._erase(_Erasure(uow, conversation, message, now, results, known))
            stops_turn = await _stop_reply_to_erased(uow, conversation_id)
            turns = await uow.turns.newest_ids(conversation_id, limit=STREAMS)
            data = {"conversation_id": str(conversation_id)}
            await audit(uow, self._shell, tenant_id, "message.erased", message_id, **data)
            await uow.commit()
            uow.forget_values()
        return turns, stops_turn

    async def _erase(self, erasure: _Erasure) -> None:
        """The erasure, without its commit."""
        uow, conversation, message, compute = erasure.uow, erasure.conversation, erasure.message, erasure.compute
        removed = await _erase_from_history(uow, message, compute)
        _, reactivated = await uow.anchors.delete_of(conversation.id, sorted(removed.seqs))
        first_seq, resolved = min(removed.changed), self._shell.resolver(conversation)
        focused = await uow.compactions.focused(conversation.id)
        made_since = await _first_seq_of_made(erasure, removed, focused)
        total = await _sums_without_erased(uow, removed, conversation, conversation.total, conversation.last_seq)
        covered = await _sums_without_erased(
            uow, removed, conversation, conversation.covered, conversation.boundary_seq
        )
        await uow.conversations.update(conversation.id, total=total, covered=covered)
        versions = await uow.states.since_boundary(conversation.id, made_since, erasure.known.versions)
        answers = await uow.messages.command_answers(conversation.id, after_seq=first_seq, max_bytes=READ_BYTES)
        affected = await affected_segments(
            uow, resolved, removed.changed, removed.erased, made_since=made_since, compute=compute
        )
        others = [*answers, *affected.doubtful, *focused]
        remaining = await _remaining_texts(erasure, versions, others, removed.erased)
        await rewrite_without_erased(
            uow,
            self._shell,
            resolved,
            affected,
            erased=removed.erased,
            remaining=remaining,
            now=erasure.now,
            compute=compute,
        )
        without_removed = replace(erasure, conversation=replace(conversation, total=total))
        current = await self._erase_from_states(without_removed, versions, removed, remaining)
        # This writes thousands of rows, so it comes after everything is computed: a try that is repeated would write in
        # vain.
        await uow.messages.renew_sums(conversation.id, from_seq=first_seq)
        await _erase_from_command_answers(uow, answers, removed.erased, remaining)
        await _erase_from_focuses(uow, focused, removed.erased, remaining, _typed_focus(message))
        await uow.turns.forget_requests_of(conversation.id, [stone.id for stone in removed.tombstones])
        await uow.copies.mark_for_deletion(conversation.id)
        await uow.caches.leave_with_files(references(message.parts))
        # A stateful model's provider still holds what was erased, so no turn continues from there.
        changes: dict[str, Any] = {"total": total, "content_epoch": conversation.content_epoch + 1, "live": None}
        changed = await uow.conversations.update(
            conversation.id, **changes, **_conversation_fields_of(conversation, current)
        )
        after = self._shell.resolver(changed)
        if reactivated and current is None:  # the state is unchanged, but anchors are shown beside it again
            after = await renew_layout(uow, self._shell, after, compute=compute)
        changed = await refresh_sizes(uow, after)
        erased = [("message.erased", {"message_id": str(stone.id), "seq": stone.seq}) for stone in removed.tombstones]
        await uow.events.add_many(conversation.id, erased, erasure.now)
        await self._requeue(uow, changed, has_narrative=current is not None and _schema_has_narrative(current))

    async def _erase_from_states(
        self, erasure: _Erasure, versions: Sequence[StateVersion], removed: _Removed, remaining: RemainingMessages
    ) -> StateVersion | None:
        """Rewrite every version that covered the message, and return the current one, if it is among them.

        The newest version comes first, since only it needs a computation. If the computation ends this try, nothing was
        written in vain.
        """
        uow, conversation, current = erasure.uow, erasure.conversation, None
        entries_of = [version.entries for version in versions]
        remaining_entries = await erasure.compute(
            _remaining_entries, entries_of, removed.erased, remaining, size=math.inf if entries_of else 0
        )
        for version, kept in reversed(list(zip(versions, remaining_entries, strict=True))):
            is_current = version.version == conversation.state_version
            entries = await self._with_digest(erasure, version, kept) if is_current else kept
            repairs = tuple(repair.blanked() for repair in version.repairs)
            covered = await _sums_without_erased(uow, removed, conversation, version.covered, version.boundary_seq)
            changed = replace(version, entries=entries, repairs=repairs, covered=covered)
            written = await self._rewrite_version(erasure, changed, is_served=is_current)
            current = written if is_current else current
        return current

    async def _rewrite_version(self, erasure: _Erasure, version: StateVersion, *, is_served: bool) -> StateVersion:
        """Store the version. Only the served one gets a layout; others get theirs when they are restored."""
        uow, schema = erasure.uow, schema_named(version.state_schema)
        state = state_of(schema, version.entries)
        layout = None
        if is_served:
            resolved, boundary = self._shell.resolver(erasure.conversation), version.boundary_seq
            layout = await lay_out(
                uow, resolved, schema=schema, state=state, boundary_seq=boundary, compute=erasure.compute
            )
        written = replace(version, state=state, layout=layout)
        await uow.states.rewrite(erasure.conversation.id, written)
        return written

    async def _with_digest(
        self, erasure: _Erasure, version: StateVersion, entries: Sequence[StateEntry]
    ) -> tuple[StateEntry, ...]:
        """The entries, with a digest of the remaining messages in place of the narrative.

        The digest stays until a compaction writes the narrative again.
        """
        narrative = next((entry for entry in version.entries if entry.role == "narrative" and not entry.pruned), None)
        if narrative is None:
            return tuple(entries)
        conversation = erasure.conversation
        originals = await erasure.uow.messages.between(
            conversation.id, version.boundary_seq - DIGEST_MESSAGES, version.boundary_seq
        )
        max_tokens = min(
            max(estimate_text(narrative.text), MIN_DIGEST_TOKENS),
            self._max_narrative_tokens(conversation, version, entries),
        )
        size = sum(BYTES_PER_ITEM + message.byte_length for message in originals)
        text = await erasure.compute(_digest, originals, max_tokens, conversation.locale, size=size)
        if not text:
            return tuple(entries)
        return (*entries, replace(narrative, text=text, superseded=(), from_seqs=(), in_doubt=False))

    def _max_narrative_tokens(
        self, conversation: Conversation, version: StateVersion, entries: Sequence[StateEntry]
    ) -> int:
        resolved, schema = self._shell.resolver(conversation), schema_named(version.state_schema)
        policy = resolved.policy
        block = layout_of(schema, state_of(schema, entries), served_as=policy.served_as, estimator=policy.estimator)
        return max(resolved.budgets.state_cap - block.tokens, 0)

    async def _requeue(self, uow: UnitOfWork, conversation: Conversation, *, has_narrative: bool) -> None:
        """End the compaction in flight, whose content is stale, and queue one that writes the narrative again."""
        shell = self._shell
        running = await uow.compactions.in_flight(conversation.id)
        if running is not None:
            await end_row(shell, uow, running, status="superseded", reason="stale")
        if not has_narrative and (running is None or running.trigger != ERASURE_TRIGGER):
            return
        resolved = shell.resolver(conversation)
        row = new_compaction(resolved, shell, trigger=ERASURE_TRIGGER, request=FoldRequest(), ran_in="worker")
        await claim_queued(uow, row, shell.clock.now())


async def _erase_from_history(uow: UnitOfWork, message: Message, compute: Compute) -> _Removed:
    """Leave a tombstone, and stubs of the other halves of its tool pairs and of the results that quote it."""
    calls = {call for part in message.parts if (call := call_id_of(part))}
    found = await uow.messages.other_halves(message.conversation_id, calls, of=[message])
    quoting = await _all_quoting(uow, message)
    calls.update(call for one in quoting for part in one.parts if "quotes" in part and (call := call_id_of(part)))
    others = {one.id: one for one in [*found, *quoting] if one.id != message.id and one.status != "erased"}
    halves = list(others.values())
    stubs = [with_erased_calls(half, calls) for half in halves]
    stone = tombstone(message)
    await uow.messages.erase(message.conversation_id, [stone, *stubs])
    pairs = [(message, stone), *zip(halves, stubs, strict=True)]
    size_reductions = tuple((before.seq, _counted_sums(before).minus(_counted_sums(after))) for before, after in pairs)
    seqs = frozenset({message.seq, *(stub.seq for stub in stubs if not stub.content)})
    erased_texts = [
        full_text(message),
        *(_text_lost_to_stub(half, stub) for half, stub in zip(halves, stubs, strict=True)),
    ]
    changed = seqs.union(half.seq for half in halves)
    tombstones = (message, *(stub for stub in stubs if stub.status == "erased"))
    erased = await compute(ErasedTexts, erased_texts, seqs, size=sum(map(len, erased_texts)))
    return _Removed(tombstones=tombstones, seqs=seqs, changed=changed, erased=erased, size_reductions=size_reductions)


def _counted_sums(message: Message) -> Sums:
    if message.is_command or message.status in {"erased", "superseded"}:
        return Sums()
    return Sums(messages=1, tokens=message.token_count, bytes=message.byte_length)


async def _sums_without_erased(
    uow: UnitOfWork, removed: _Removed, conversation: Conversation, sums: Sums, through_seq: int
) -> Sums:
    lost = reduce(Sums.plus, (lost for seq, lost in removed.size_reductions if seq <= through_seq), Sums())
    held = await uow.messages.held_at(conversation.id, through_seq)
    return replace(sums.minus(lost), held_tokens=held.held_tokens, held_bytes=held.held_bytes)


async def _stop_reply_to_erased(uow: UnitOfWork, conversation_id: UUID) -> bool:
    """Ask the running turn to stop if the message that it answers is erased."""
    turn = await uow.turns.running(conversation_id)
    if turn is None or (await uow.messages.get(conversation_id, turn.message_id)).status != "erased":
        return False
    return await uow.turns.request_interrupt(conversation_id, turn.id) is not None


async def _all_quoting(uow: UnitOfWork, message: Message) -> list[Message]:
    found: dict[UUID, Message] = {}
    waiting = [message]
    while waiting:
        quoted = waiting.pop()
        more = await uow.messages.quoting(quoted.conversation_id, quoted.seq)
        waiting.extend(one for one in more if one.id not in found)
        found.update((one.id, one) for one in more)
    return list(found.values())


def _text_lost_to_stub(half: Message, stub: Message) -> str:
    parts = [before for before, after in zip(half.parts, stub.parts, strict=True) if before != after]
    content = "" if stub.content else half.content
    lost = replace(half, content=content, parts=tuple(parts))
    if stub.status != "erased":  # it keeps its speaker and kind
        lost = replace(lost, metadata={}, event_type="casual")
    return full_text(lost)


async def _first_seq_of_made(erasure: _Erasure, removed: _Removed, focused: Sequence[Compaction]) -> int:
    """The position since which states and segments may have been made from what was erased.

    A summarizer reads a focus too. So a focus that was typed in the erased message, or quotes it, reaches messages
    before it.
    """
    first, typed = min(removed.changed), _typed_focus(erasure.message)
    earlier = [(row.from_seq, row.request.focus or "") for row in focused if row.from_seq and row.from_seq < first]
    quoting = [focus for _, focus in earlier if focus != typed and removed.erased.pieces_in(focus)]
    remaining = await _remaining_texts(erasure, (), quoting, removed.erased)
    reached = (
        seq
        for seq, focus in earlier
        if focus == typed or (focus in quoting and quotes_erased(focus, removed.erased, remaining))
    )
    return min([first, *reached])


async def _remaining_texts(
    erasure: _Erasure, versions: Sequence[StateVersion], others: Sequence[object], erased: ErasedTexts
) -> RemainingMessages:
    conversation = erasure.conversation
    entries = list(_distinct_entries(version.entries for version in versions).values())
    doubtful = await erasure.compute(suspicious_entries, entries, erased, size=_search_size(entries))
    if not doubtful and not others:
        return NO_REMAINING_MESSAGES
    last_seq = max((version.boundary_seq for version in versions), default=conversation.last_seq)
    messages = await _messages_of_sources(
        erasure, last_seq, frozenset(seq for entry in doubtful for seq in entry.from_seqs)
    )
    size = sum(BYTES_PER_ITEM + message.byte_length for message in messages) // WORD_SEARCH_DISCOUNT
    return await erasure.compute(_texts_of_messages, messages, erased, size=size)


async def _messages_of_sources(erasure: _Erasure, last_seq: int, seqs: frozenset[int]) -> list[Message]:
    conversation, repository = erasure.conversation, erasure.uow.messages
    # These are thousands of messages, so all tries share them until the content epoch, and with it the text, changes.
    same = (conversation.content_epoch, last_seq, seqs)
    if erasure.known.messages[0] != same:
        near = await repository.between(conversation.id, last_seq - SOURCE_MESSAGES + 1, last_seq, max_bytes=READ_BYTES)
        first = near[0].seq if near else last_seq + 1
        far = [await repository.at_seq(conversation.id, seq) for seq in sorted(seqs) if 0 < seq < first]
        erasure.known.messages = (same, [*far, *near])
    return erasure.known.messages[1]


def _search_size(entries: Sequence[StateEntry]) -> int:
    texts = (text for entry in entries for text in (entry.text, *entry.superseded))
    return sum(BYTES_PER_ITEM + len(text) for text in texts) // WORD_SEARCH_DISCOUNT


def _texts_of_messages(messages: Sequence[Message], erased: ErasedTexts) -> RemainingMessages:
    return RemainingMessages({message.seq: full_text(message) for message in messages}, erased)


def _remaining_entries(
    versions: Sequence[Sequence[StateEntry]], erased: ErasedTexts, remaining: RemainingMessages
) -> list[tuple[StateEntry, ...]]:
    remaining_of = {
        id_: entries_without([entry], erased, remaining) for id_, entry in _distinct_entries(versions).items()
    }
    return [tuple(kept for entry in entries for kept in remaining_of[id(entry)]) for entries in versions]


def _distinct_entries(versions: Iterable[Sequence[StateEntry]]) -> dict[int, StateEntry]:
    # Most entries are the same object in many versions.
    return {id(entry): entry for entries in versions for entry in entries}


def _digest(messages: Sequence[Message], tokens: int, locale: str) -> str:
    readable = redact_messages(message for message in messages if message.status != "erased" and message.content)
    return " ".join(digest(readable, tokens, locale).split("\n")) if readable and tokens else ""


async def _erase_from_command_answers(
    uow: UnitOfWork, answers: Sequence[Message], erased: ErasedTexts, remaining: RemainingMessages
) -> None:
    """Remove erased texts from these answers to commands, and from all later ones."""
    while answers:
        conversation_id, size = answers[0].conversation_id, sum(BYTES_PER_ITEM + one.byte_length for one in answers)
        changed = await off_loop(_answers_without_erased, answers, erased, remaining, size=size)
        await uow.messages.erase(conversation_id, changed)
        answers = await uow.messages.command_answers(conversation_id, after_seq=answers[-1].seq, max_bytes=READ_BYTES)


def _answers_without_erased(
    answers: Sequence[Message], erased: ErasedTexts, remaining: RemainingMessages
) -> list[Message]:
    changed: list[Message] = []
    for answer in answers:
        content = summary_without_erased(answer.content, erased, remaining)
        if content != answer.content:
            weight = weigh(answer.role, content, answer.parts)
            changed.append(replace(answer, content=content, token_count=weight.tokens, byte_length=weight.bytes))
    return changed


async def _erase_from_focuses(
    uow: UnitOfWork, focused: Sequence[Compaction], erased: ErasedTexts, remaining: RemainingMessages, typed: str | None
) -> None:
    for row in focused:
        focus = row.request.focus or ""
        if focus == typed or quotes_erased(focus, erased, remaining):
            await uow.compactions.update_locked(row.id, request=replace(row.request, focus=None))


def _typed_focus(message: Message) -> str | None:
    asked = compact_command(message.content) if message.is_command else None
    # Without secrets, as the compaction stores it.
    return None if asked is None or asked.focus is None else redact(asked.focus)


def _schema_has_narrative(version: StateVersion) -> bool:
    return any(not field.is_list for field in schema_named(version.state_schema).fields)


def _conversation_fields_of(conversation: Conversation, current: StateVersion | None) -> Mapping[str, Any]:
    if current is None:
        return {}
    return {
        "compressed_state": current.state,
        "covered": current.covered,
        "layout": current.layout,
        "layout_version": conversation.layout_version + 1,
    }
