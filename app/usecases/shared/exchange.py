"""The last exchange of a conversation, and what is open in it: a message without a reply, or calls without results."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from app.core.model.conversation import Message
from app.core.text.parts import Part
from app.storage.repositories.sizes import READ_BYTES
from app.storage.unit_of_work import UnitOfWork

REACH: Final = 200
"""The most messages that are read, the newest that fit into ``READ_BYTES``; one step of an answer makes fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """The last message of a user, and the messages after it."""

    question: Message | None = None
    since: tuple[Message, ...] = ()
    """The newest messages after it, commands left out."""
    is_over: bool = False
    """Whether only its reply was erased, but the state covers the question: no context shows it any more."""

    @property
    def awaits_reply(self) -> bool:
        """Whether the user's message still waits for a reply, which a further turn can give.

        It does as long as only tool calls, their results, messages of the system and erased replies follow. An erased
        message does not, nor one that the state covers, whose reply was erased.
        """
        if self.question is None:  # the history was imported without one
            asks = bool(self.since) and self.since[-1].role == "tool"
        else:
            asks = self.question.status != "erased" and not self.is_over
        return asks and all(
            message.role == "system" or message.status == "erased" or is_inside_answer(message)
            for message in self.since
        )

    def contains(self, message: Message) -> bool:
        """Whether the exchange contains that message."""
        return any(one.id == message.id for one in (self.question, *self.since) if one is not None)

    @property
    def answered(self) -> frozenset[str]:
        """The ids of results, except of calls that were made later and still wait."""
        results = (str(part["tool_call_id"]) for message in self.since for part in _parts_of(message, "tool_result"))
        return frozenset(results) - self.unanswered.keys()

    @property
    def unanswered(self) -> Mapping[str, Part]:
        """The calls without results, by id and in order."""
        return {id_: part for id_, (part, _) in self._waiting.items()}

    def left_to_client(self, own_tools: Collection[str]) -> list[str]:
        """The ids of calls for whose results the turn waits: not those of ``own_tools``, nor of erased messages."""
        return [
            id_
            for id_, (part, message) in self._waiting.items()
            if part.get("name") not in own_tools and message.status != "erased"
        ]

    def makers_of(self, calls: Collection[str]) -> set[UUID]:
        """The ids of the messages that make these calls, which have no results."""
        waiting = self._waiting
        return {waiting[id_][1].id for id_ in calls}

    @property
    def _waiting(self) -> dict[str, tuple[Part, Message]]:
        """The calls without results, each with the message that makes it.

        Clients may use an id again, so a result belongs to the last call with its id before it.
        """
        waiting: dict[str, tuple[Part, Message]] = {}
        for message in self.since:
            waiting |= {str(part["id"]): (part, message) for part in _parts_of(message, "tool_call")}
            for part in _parts_of(message, "tool_result"):
                waiting.pop(str(part["tool_call_id"]), None)
        return waiting


def _parts_of(message: Message, kind: str) -> list[Part]:
    return [part for part in message.parts if part.get("type") == kind]


async def exchange_of(uow: UnitOfWork, conversation_id: UUID) -> Exchange:
    """The exchange at the end of a conversation; a bounded number of messages is read."""
    last = await uow.messages.last(conversation_id)
    if last is None or last.role == "user":
        return Exchange(question=last)
    question = await uow.messages.last(conversation_id, role="user")
    first = max(last.seq - REACH, question.seq + 1 if question else 1)
    since = await uow.messages.between(conversation_id, first, last.seq, max_bytes=READ_BYTES)
    is_over = False
    if question is not None and any(one.status == "erased" and not is_inside_answer(one) for one in since):
        is_over = question.seq <= (await uow.conversations.get(conversation_id)).boundary_seq
    return Exchange(question=question, since=tuple(since), is_over=is_over)


def is_inside_answer(message: Message) -> bool:
    """Whether a message is a step before a reply: it calls a tool, or is a tool's result."""
    calls = any(part.get("type") == "tool_call" for part in message.parts)
    return message.role == "tool" or (message.role == "assistant" and calls)
