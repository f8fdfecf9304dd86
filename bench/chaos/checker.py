"""Checks what must hold after a campaign, from what clients were told and what the database has: pure functions.

Each property is a function that yields what breaks it, in words; ``PROPERTIES`` names the functions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from app.core.text.message_escaping import as_data
from bench.chaos.log import Answer, Log, Read, SentMessage, Shown, Span
from bench.chaos.rows import Conversation, Message

STUCK_SECONDS: Final = 60.0
"""So many seconds after the last fault that touched it, nothing may wait any more."""
IN_FLIGHT: Final = frozenset({"queued", "running"})
_NOT_SERVED: Final = frozenset({"erased", "superseded"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """Everything that is known of one campaign."""

    log: Log
    conversations: Sequence[Conversation]

    @property
    def by_id(self) -> Mapping[str, Conversation]:
        """Conversations by their ids."""
        return {one.id: one for one in self.conversations}


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A property that does not hold, with the evidence."""

    property: str
    evidence: str


def check(campaign: Campaign) -> list[Violation]:
    """Everything that breaks a property."""
    return [
        Violation(property=name, evidence=evidence)
        for name, property_ in PROPERTIES.items()
        for evidence in property_(campaign)
    ]


def nothing_lost(campaign: Campaign) -> Iterator[str]:
    """Each acknowledged message, reply, compaction and restore is stored as it was acknowledged."""
    for sent, conversation in _sent_messages(campaign):
        found = _stored(sent, conversation, campaign)
        for answer in sent.answers[:1] if sent.answered_at is not None else ():
            message = conversation.by_id.get(answer.message_id) if answer.message_id else found
            if message is None:
                yield f"{sent.client}: {sent.content!r} was acknowledged and is not there"
            elif message.status != "erased" and message.content != sent.content:
                yield f"{sent.client}: {sent.content!r} is stored as {message.content!r}"
            elif answer.seq is not None and message.seq != answer.seq:
                yield f"{sent.client}: {sent.content!r} was acknowledged as seq {answer.seq}, and is {message.seq}"
            yield from _reply_lost(sent, conversation)
    yield from _commands_lost(campaign)


def _reply_lost(sent: SentMessage, conversation: Conversation) -> Iterator[str]:
    answer = sent.answers[0]
    if answer.reply_id is None:
        return
    reply = conversation.by_id.get(answer.reply_id)
    if reply is None:
        yield f"{sent.client}: the reply {answer.reply_id} was acknowledged and is not there"
        return
    for text in (answer.reply, answer.pieces):
        if text is not None and reply.status != "erased" and text != reply.content:
            yield f"{sent.client} ({sent.door}): the reply was told as {text!r} and is stored as {reply.content!r}"


def _commands_lost(campaign: Campaign) -> Iterator[str]:
    for one in campaign.log.compacted:
        rows = {row.id: row for row in campaign.by_id[one.conversation].compactions}
        row = rows.get(one.compaction_id or "")
        if one.compaction_id is not None and (row is None or row.status != one.status):
            yield f"compaction {one.compaction_id} was acknowledged as {one.status} and is {row}"
    for restored in campaign.log.restored:
        versions = {state.version for state in campaign.by_id[restored.conversation].states}
        if restored.made is not None and restored.made not in versions:
            yield f"version {restored.made} was acknowledged by a restore and is not there"


def nothing_doubled(campaign: Campaign) -> Iterator[str]:
    """No message is stored twice, and none has two valid replies."""
    for conversation in campaign.conversations:
        contents = Counter(one.content for one in conversation.messages if one.role == "user" and one.content)
        yield from (f"{content!r} is stored {count} times" for content, count in contents.items() if count > 1)
        standing = {one.id for one in conversation.messages if one.status != "superseded"}
        replies: dict[str, set[str]] = defaultdict(set)
        for turn in conversation.turns:
            if turn.reply_id in standing:
                replies[turn.message_id].add(turn.reply_id or "")
        yield from (f"message {id_} has {len(made)} replies" for id_, made in replies.items() if len(made) > 1)


def nothing_reordered(campaign: Campaign) -> Iterator[str]:
    """A message that was sent after another was acknowledged comes after it."""
    by_conversation: dict[str, list[tuple[int, SentMessage]]] = defaultdict(list)
    for sent, conversation in _sent_messages(campaign):
        message = _stored(sent, conversation, campaign)
        if sent.answered_at is not None and message is not None:
            by_conversation[conversation.id].append((message.seq, sent))
    for placed in by_conversation.values():
        earliest: SentMessage | None = None
        for _, sent in sorted(placed, key=lambda pair: pair[0], reverse=True):
            if earliest is not None and (earliest.answered_at or 0) < sent.asked_at:
                yield f"{earliest.content!r} was acknowledged before {sent.content!r} was sent, and stands behind it"
            if earliest is None or (sent.answered_at or 0) < (earliest.answered_at or 0):
                earliest = sent


def seq_gapless(campaign: Campaign) -> Iterator[str]:
    """``seq`` runs from 1 to the conversation's last one."""
    for conversation in campaign.conversations:
        seqs = [one.seq for one in conversation.messages]
        if seqs != list(range(1, conversation.last_seq + 1)):
            yield f"{conversation.id}: {len(seqs)} messages up to seq {conversation.last_seq}: {_first_gap(seqs)}"


def one_effect_a_key(campaign: Campaign) -> Iterator[str]:
    """A request that is sent again under its key gets the same answer, and makes only one message."""
    for sent, conversation in _sent_messages(campaign):
        for other in sent.answers[1:]:
            if not _agree(sent.answers[0], other):
                difference = f"{sent.answers[0]}, and then by {other}"
                yield f"{sent.client} ({sent.door}): {sent.content!r} was answered by {difference}"
        found = [one for one in conversation.messages if one.role == "user" and one.content == sent.content]
        if len(found) > 1:
            yield f"{sent.client} ({sent.door}): {sent.tries} tries under one key made {len(found)} messages"


def _agree(first: Answer, other: Answer) -> bool:
    names = ("message_id", "seq", "reply_id", "reply")
    pairs = [(getattr(first, name), getattr(other, name)) for name in names]
    return all(one == two for one, two in pairs if one is not None and two is not None)


def ranges_right(campaign: Campaign) -> Iterator[str]:
    """A state covers the range that it claims, and the conversation's boundary is that of its newest state."""
    for conversation in campaign.conversations:
        boundaries = {0: 0} | {state.version: state.boundary_seq for state in conversation.states}
        for state in conversation.states:
            at = conversation.by_seq.get(state.boundary_seq)
            if state.boundary_seq > 0 and (at is None or at.id != state.boundary_message_id):
                yield f"{conversation.id}: version {state.version} ends at seq {state.boundary_seq}, which is another"
        for row in conversation.compactions:
            if row.status != "applied" or row.after is None or row.trigger == "erasure":
                continue
            if row.to_seq != boundaries.get(row.after):
                yield f"compaction {row.id} says it covers up to {row.to_seq}, its state {boundaries.get(row.after)}"
            if row.from_seq != boundaries.get(row.before, -1) + 1:
                yield f"compaction {row.id} begins at {row.from_seq}, behind a state up to {boundaries.get(row.before)}"
        yield from _sums_wrong(conversation)


def _sums_wrong(conversation: Conversation) -> Iterator[str]:
    newest = max(conversation.states, key=lambda state: state.version, default=None)
    if conversation.boundary_seq != (newest.boundary_seq if newest else 0):
        yield f"{conversation.id}: its boundary is {conversation.boundary_seq}, not that of its newest state"
    at, last = conversation.by_seq.get(conversation.boundary_seq), conversation.by_seq.get(conversation.last_seq)
    covered, total = (
        (conversation.covered_messages, conversation.covered_tokens),
        (
            conversation.total_messages,
            conversation.total_tokens,
        ),
    )
    if covered != _sums(at):
        yield f"{conversation.id}: {covered} messages and tokens are said to be covered, {_sums(at)} are"
    if total != _sums(last):
        yield f"{conversation.id}: {total} messages and tokens are said to be there, {_sums(last)} are"


def _sums(message: Message | None) -> tuple[int, int]:
    return (message.message_sum, message.token_sum) if message else (0, 0)


def fences_right(campaign: Campaign) -> Iterator[str]:
    """Versions follow one another, and each compaction that took effect made exactly one, without others in between."""
    for conversation in campaign.conversations:
        versions = [state.version for state in conversation.states]
        if versions != list(range(1, conversation.state_version + 1)):
            yield f"{conversation.id}: versions up to {conversation.state_version}: {_first_gap(versions)}"
        rows = {row.id: row for row in conversation.compactions}
        made: dict[str, list[int]] = defaultdict(list)
        for state in conversation.states:
            if state.made_by == "compaction" and state.compaction_id is not None:
                made[state.compaction_id].append(state.version)
        for id_, its in made.items():
            row = rows.get(id_)
            if row is None or row.status != "applied":
                yield f"versions {its} were made by compaction {id_}, which is {row.status if row else 'not there'}"
            elif its != list(range(row.before + 1, (row.after or 0) + 1)):
                yield f"compaction {id_} went from {row.before} to {row.after} and made {its}"
        for row in rows.values():
            if row.status == "applied" and row.id not in made and row.trigger != "erasure":
                yield f"compaction {row.id} is applied and made no version"


def events_once(campaign: Campaign) -> Iterator[str]:
    """Events are numbered without a gap; each message, reply and applied compaction has one event, in order."""
    for conversation in campaign.conversations:
        numbers = [event.number for event in conversation.events]
        if numbers != list(range(1, conversation.last_event + 1)):
            yield f"{conversation.id}: events up to {conversation.last_event}: {_first_gap(numbers)}"
        created = [event.data["seq"] for event in conversation.events if event.type == "message.created"]
        if created != [one.seq for one in conversation.messages if one.seq in set(created)]:
            yield f"{conversation.id}: messages are told in the order {created}"
        replies = {turn.reply_id for turn in conversation.turns}
        untold = [one.seq for one in conversation.messages if one.role == "user" and one.seq not in set(created) | {0}]
        if untold:
            yield f"{conversation.id}: messages {untold} were never told"
        ended = Counter(
            event.data["message_id"]
            for event in conversation.events
            if event.type in {"reply.completed", "reply.interrupted"}
        )
        expected = Counter(id_ for id_ in replies if id_ is not None)
        if ended != expected:
            yield f"{conversation.id}: replies {sorted((expected - ended) | (ended - expected))} are not told once"
        applied = Counter(
            event.data["compaction_id"] for event in conversation.events if event.type == "compaction.applied"
        )
        done = Counter(row.id for row in conversation.compactions if row.status == "applied")
        if applied != done:
            yield f"{conversation.id}: compactions {sorted((done - applied) | (applied - done))} are not told once"


def followers_complete(campaign: Campaign) -> Iterator[str]:
    """Each follower got every event once, and in order."""
    for followed in campaign.log.followed:
        rows = [(event.number, event.type) for event in campaign.by_id[followed.conversation].events]
        events = list(followed.events)
        if events != rows:
            at = next((place for place, (one, two) in enumerate(zip(events, rows, strict=False)) if one != two), None)
            place = min(len(events), len(rows)) if at is None else at
            yield (
                f"{followed.follower} was told {len(events)} events of {len(rows)}; the first that differs is"
                f" {events[place : place + 1]} for {rows[place : place + 1]}"
            )


def reads_whole(campaign: Campaign) -> Iterator[str]:
    """Each read shows what was acknowledged before it, without a gap, and nothing that had been erased."""
    erased = {one.message_id: one for one in campaign.log.erased if one.answered_at is not None}
    last_by: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for sent, conversation in _sent_messages(campaign):
        message = _stored(sent, conversation, campaign)
        if sent.answered_at is not None and message is not None:
            last_by[conversation.id].append((sent.answered_at, message.seq))
    for read in campaign.log.reads:
        seqs = [one.seq for one in read.shown]
        known = max((seq for at, seq in last_by[read.conversation] if at < read.asked_at), default=0)
        if not read.is_context and known > max(seqs, default=0):
            yield f"a read at {read.asked_at:.1f} s ends at seq {max(seqs, default=0)}; {known} was acknowledged"
        if not read.is_context and any(two != one + 1 for one, two in pairwise(seqs)):
            yield f"a read at {read.asked_at:.1f} s has a gap: {_first_gap(seqs)}"
        for shown in read.shown:
            gone = erased.get(shown.id or "")
            if gone is not None and (gone.answered_at or 0) < read.asked_at and gone.content in shown.content:
                yield f"a read at {read.asked_at:.1f} s shows {gone.content!r}, which had been erased"


def tails_verbatim(campaign: Campaign) -> Iterator[str]:
    """Messages in a context are verbatim (decision 0023); those that no state covers are all in it."""
    for read in campaign.log.reads:
        if read.is_context:
            yield from _tail_wrong(read, campaign.by_id[read.conversation])


def _tail_wrong(read: Read, conversation: Conversation) -> Iterator[str]:
    for shown in read.shown:
        message = conversation.by_seq.get(shown.seq)
        if message is None:
            yield f"a context at {read.asked_at:.1f} s has seq {shown.seq}, which is not there"
        elif not _verbatim(shown, message):
            yield f"a context at {read.asked_at:.1f} s serves seq {shown.seq} as {shown.content!r}"
    if read.truncated or not read.shown:
        return
    served = {one.seq for one in read.shown}
    wanted = {
        one.seq
        for one in conversation.messages
        if one.seq < max(served) and not one.is_command and one.status not in _NOT_SERVED
    }
    reached = (
        conversation.boundary_seq if read.is_last else max((one.boundary_seq for one in conversation.states), default=0)
    )
    missing = sorted(seq for seq in wanted - served if seq > reached)
    if missing:
        yield f"a context at {read.asked_at:.1f} s lacks {missing}; states reach up to {reached}"


def _verbatim(shown: Shown, message: Message) -> bool:
    if message.status in _NOT_SERVED or shown.has_parts:
        return True
    return shown.content == message.content or shown.content == as_data(message.content)


def erased_stays_erased(campaign: Campaign) -> Iterator[str]:
    """Each erased message is a tombstone, and its words are in no message."""
    for one in campaign.log.erased:
        message = campaign.by_id[one.conversation].by_id.get(one.message_id)
        if one.answered_at is not None and (message is None or message.status != "erased" or message.content):
            yield f"{one.message_id} was erased and is {message}"


def nothing_stuck(campaign: Campaign) -> Iterator[str]:
    """Sixty seconds after the last fault that touched it, no client, compaction or turn waits any more."""
    log = campaign.log
    for sent in log.said:
        if sent.refused is None:
            yield from _stuck(f"{sent.client} ({sent.door})", sent.asked_at, sent.answered_at, log)
    for what, asked in (("an erasure", log.erased), ("a restore", log.restored), ("a compaction", log.compacted)):
        for one in asked:
            yield from _stuck(what, one.asked_at, one.answered_at, log)
    for conversation in campaign.conversations:
        for row in conversation.compactions:
            if row.status in IN_FLIGHT:
                yield f"compaction {row.id} is still {row.status}"
        for turn in conversation.turns:
            if turn.status == "running":
                yield f"turn {turn.id} is still running"


def _stuck(what: str, asked_at: float, answered_at: float | None, log: Log) -> Iterator[str]:
    end = log.ended_at if answered_at is None else answered_at
    waited = end - max([asked_at, *(_touched(span, asked_at, end) for span in log.spans)])
    if waited > STUCK_SECONDS or answered_at is None:
        how = "was not answered" if answered_at is None else "was answered"
        yield f"{what}: asked at {asked_at:.1f} s, {how} {waited:.1f} s after the last fault"


def _touched(span: Span, asked_at: float, end: float) -> float:
    """When a fault stopped holding up work of that time; 0 if it never did."""
    return min(span.ended_at, end) if span.began_at < end and span.ended_at > asked_at else 0.0


def nothing_odd(campaign: Campaign) -> Iterator[str]:
    """No client got an answer that no client should get."""
    yield from campaign.log.defects


PROPERTIES: Final[Mapping[str, Callable[[Campaign], Iterator[str]]]] = {
    "nothing acknowledged is lost": nothing_lost,
    "nothing is doubled": nothing_doubled,
    "nothing is reordered": nothing_reordered,
    "seq has no gap": seq_gapless,
    "one effect a key": one_effect_a_key,
    "every state's range is right": ranges_right,
    "every state's fence is right": fences_right,
    "every event once": events_once,
    "every follower is told everything once, in order": followers_complete,
    "reads show what was acknowledged": reads_whole,
    "tails are verbatim": tails_verbatim,
    "what is erased stays erased": erased_stays_erased,
    "nothing is stuck": nothing_stuck,
    "no client is told what it should not be": nothing_odd,
}


def _sent_messages(campaign: Campaign) -> Iterator[tuple[SentMessage, Conversation]]:
    found = campaign.by_id
    for sent in campaign.log.said:
        yield sent, found[sent.conversation]


def _stored(sent: SentMessage, conversation: Conversation, campaign: Campaign) -> Message | None:
    """The stored message of a client's words, even if it was erased later."""
    for answer in sent.answers:
        if answer.message_id is not None:
            return conversation.by_id.get(answer.message_id)
    gone = {one.content: one.message_id for one in campaign.log.erased}
    if sent.content in gone:
        return conversation.by_id.get(gone[sent.content])
    return next((one for one in conversation.messages if one.content == sent.content), None)


def _first_gap(numbers: Sequence[int]) -> str:
    """The first place where a sequence of numbers does not increase by one."""
    for one, two in pairwise([0, *numbers]):
        if two != one + 1:
            return f"{two} follows {one}"
    return f"it ends at {numbers[-1] if numbers else 0}"
