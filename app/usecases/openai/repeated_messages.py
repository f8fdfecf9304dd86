"""Which messages of a request are stored already: of a whole history, or before the results of calls.

Some clients send messages again before the results, although a request goes on from a response. The question whose turn
waits for the results, and the words and results of its steps, are stored already: the AI SDK repeats the question where
a conversation is named, Semantic Kernel also the words before the calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from app.core.context.reconciling import Line, Reconciliation, lines_of
from app.core.model.conversation import Conversation
from app.core.text.speakers import name_in
from app.off_loop import off_loop
from app.storage.repositories.sizes import READ_BYTES
from app.storage.unit_of_work import UnitOfWork
from app.usecases.history.drafts import MessageDraft
from app.usecases.shared.exchange import exchange_of
from app.usecases.shared.shell import Shell

PAGE: Final = 500
"""How many stored messages are compared at once."""


def lines_of_drafts(messages: Sequence[MessageDraft]) -> list[Line]:
    """The texts, calls and results of messages that are not stored."""
    return [
        line
        for number, draft in enumerate(messages)
        for line in lines_of(draft.role, draft.content, draft.parts, number, name_in(draft.metadata))
    ]


async def without_repeated(
    shell: Shell, tenant_id: UUID, conversation_id: UUID, messages: tuple[MessageDraft, ...]
) -> tuple[MessageDraft, ...]:
    """The messages from the first one that is new, if the others only repeat the exchange that waits for results.

    If its question was erased, nothing shows whether a question is repeated: then all messages are new.
    """
    if messages[:1] and messages[0].role != "tool" and messages[-1].role == "tool":
        async with shell.uow(tenant_id) as uow:
            exchange = await exchange_of(uow, conversation_id)
        question = exchange.question
        if question is not None and question.status != "erased" and exchange.unanswered:
            reconciling = Reconciliation(await off_loop(lines_of_drafts, messages))
            await off_loop(reconciling.read, (question, *exchange.since))
            return messages[reconciling.new_from or 0 :]
    return messages


async def compare_stored_history(uow: UnitOfWork, conversation: Conversation, reconciling: Reconciliation) -> None:
    """Read the stored history until the given one differs."""
    agrees, seq = True, 0
    while agrees and seq < conversation.last_seq:
        texts = await uow.messages.all_texts(conversation.id, after_seq=seq, limit=PAGE, max_bytes=READ_BYTES)
        if not texts:
            return
        agrees = await off_loop(reconciling.read, texts)
        seq = texts[-1].seq
