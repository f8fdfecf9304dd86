"""What some clients send again before the results of calls, although a request goes on from a response.

The question whose turn waits for the results, and the words and results of its steps, are stored already: the AI SDK
repeats the question where a conversation is named, Semantic Kernel also the words before the calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from app.core.context.reconciling import Line, Reconciliation, lines_of
from app.core.text.speakers import name_in
from app.off_loop import off_loop
from app.usecases.history.drafts import MessageDraft
from app.usecases.shared.exchange import exchange_of
from app.usecases.shared.shell import Shell


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
