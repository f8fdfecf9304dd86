"""Messages: one or many are appended without a reply, and read back whole."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from uuid import UUID

from app.core.model.conversation import Message
from app.core.model.records import Page
from app.usecases.compaction.due_triggers import claim_after_append
from app.usecases.history.appending import append, check_expected_last, refuse_too_large
from app.usecases.history.drafts import MessageDraft
from app.usecases.history.preparing import Prepared, prepare_and_run, prepared
from app.usecases.shared.idempotency import Idem, claim_key
from app.usecases.shared.retries import Results
from app.usecases.shared.shell import Service


class MessageService(Service):
    """The history of messages, which is append-only."""

    async def append(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        drafts: Sequence[MessageDraft],
        *,
        expected_last_message_id: UUID | None = None,
        idem: Idem | None = None,
    ) -> list[Message]:
        """Append one or many messages, all or nothing. A compaction that becomes due is claimed with them."""
        shell = self._shell
        async with shell.work_records.record_work(tenant_id, conversation_id, "append"):
            prepare = partial(prepared, shell, tenant_id, conversation_id, drafts, idem=idem)
            once = partial(self._append, tenant_id, conversation_id, expected_last_message_id, idem)
            return await prepare_and_run(prepare, once)

    async def _append(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        expected: UUID | None,
        idem: Idem | None,
        ready: Prepared,
        results: Results,
    ) -> list[Message]:
        shell = self._shell
        async with shell.uow(tenant_id) as uow:
            uow.waits_for_delivery = False
            before = await claim_key(uow, idem, shell.clock.now())
            if before is not None:
                await uow.conversations.get(conversation_id)  # raises if it was deleted meanwhile
                stored = await uow.messages.all_between(conversation_id, before["from_seq"], before["to_seq"])
                return await uow.messages.with_reasoning(await uow.contents.with_data(stored))
            conversation = await uow.conversations.lock(conversation_id)
            check_expected_last(conversation, expected)
            found = shell.resolver(conversation)
            refuse_too_large(found, ready.drafts)
            messages, resolved = await append(
                uow, shell, conversation, ready.drafts, before=found, idem=idem, prepared=ready, compute=results
            )
            await claim_after_append(uow, shell, resolved, messages[-1])
            await uow.commit()
        return messages

    async def page(self, tenant_id: UUID, conversation_id: UUID, page: Page) -> tuple[list[Message], str | None]:
        """The full history, never affected by compaction."""
        async with self._shell.uow(tenant_id) as uow:
            await uow.conversations.get(conversation_id)
            messages, cursor = await uow.messages.page(conversation_id, page)
            return await uow.messages.with_reasoning(await uow.contents.with_data(messages)), cursor
