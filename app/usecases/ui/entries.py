"""Puts stored messages together as a frontend shows them; nothing here reads or writes.

Everything that a model did for one answer (its calls, their results, its words) is one entry. A superseded reply is
left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from app.core.model.conversation import Message
from app.core.model.records import Compaction, Turn
from app.usecases.shared.exchange import is_inside_answer

ANSWER_ROLES = frozenset({"assistant", "tool"})

Group = tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One message of a frontend."""

    id: UUID
    """The id, as the stream of the turn that began the entry gave it."""
    messages: Group
    recalled: tuple[int, ...] = ()
    """Positions of the messages that were recalled for the entry."""
    warnings: tuple[str, ...] = ()
    compactions: tuple[Compaction, ...] = ()
    """The compactions during the entry, or after it and before the next one."""

    @property
    def is_answer(self) -> bool:
        """Whether the entry is an answer of a model."""
        return self.messages[0].role in ANSWER_ROLES


def groups_of(messages: Iterable[Message]) -> list[Group]:
    """Groups of messages in order: those of one answer together, without superseded replies."""
    groups: list[list[Message]] = []
    for message in messages:
        if message.status == "superseded":
            continue
        if groups and continues_answer(groups[-1][-1], message):
            groups[-1].append(message)
        else:
            groups.append([message])
    return [tuple(group) for group in groups]


def continues_answer(before: Message, message: Message) -> bool:
    """Whether a message belongs to the same answer as the message before it."""
    return message.role in ANSWER_ROLES and is_inside_answer(before)


def group_around(groups: Sequence[Group], seq: int) -> tuple[int, int]:
    """The first and last position of the group that contains ``seq`` and the next one; twice ``seq`` if none does."""
    for group in groups:
        if group[0].seq <= seq < group[-1].seq:
            return group[0].seq, group[-1].seq
    return seq, seq


def entries_of(groups: Sequence[Group], turns: Sequence[Turn], compactions: Iterable[Compaction]) -> list[Entry]:
    """The entries of groups.

    ``turns`` are all turns that answered in the groups, ``compactions`` all compactions between them, both in the order
    in which they began.
    """
    begun, entries = list[UUID](), list[Entry]()
    asked: Message | None = None
    for group in groups:
        live, failed = turns_of(group, asked, turns)
        named = next(iter(live), None) or next(reversed(failed), None)
        entries.append(
            Entry(
                id=(named.planned_reply_id or named.reply_id if named else None) or _id_without_turn(group),
                messages=group,
                recalled=tuple(sorted({seq for turn in live for seq in turn.recalled})),
                warnings=tuple(dict.fromkeys(warning for turn in live for warning in turn.warnings)),
            )
        )
        begun.append(min([group[0].id, *(turn.id for turn in live[:1])]))
        asked = group[-1]
    return _with_compactions(entries, begun, compactions)


def turns_of(group: Group, asked: Message | None, turns: Iterable[Turn]) -> tuple[list[Turn], list[Turn]]:
    """The turns whose replies are in a group, and the turns that failed there.

    ``asked`` is the message before the group.
    """
    if group[0].role not in ANSWER_ROLES:
        return [], []
    ids = {message.id for message in group}
    answered = ids | ({asked.id} if asked else set())
    live = [turn for turn in turns if turn.reply_id in ids]
    failed = [turn for turn in turns if turn.status == "failed" and turn.message_id in answered]
    return live, failed


def _id_without_turn(group: Group) -> UUID:
    return next((message.id for message in reversed(group) if message.role == "assistant"), group[0].id)


def _with_compactions(
    entries: Sequence[Entry], begun: Sequence[UUID], compactions: Iterable[Compaction]
) -> list[Entry]:
    placed: Mapping[int, list[Compaction]] = {number: [] for number in range(len(entries))}
    for row in compactions:
        # Ids are ordered by time.
        number = max((place for place, id_ in enumerate(begun) if id_ < row.id), default=None)
        if number is not None:
            placed[number].append(row)
    return [replace(entry, compactions=tuple(placed[number])) for number, entry in enumerate(entries)]
