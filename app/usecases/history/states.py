"""The versions of a conversation's state: read, compare and restore them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final
from uuid import UUID

from app.core.model.conversation import Conversation, Layout, QuietPeriod, Sums
from app.core.model.errors import NotFoundError
from app.core.model.records import ERASURE_TRIGGER, FoldRequest, Page
from app.core.model.schemas import schema_named
from app.core.model.state import StateVersion
from app.core.model.state_difference import StateDifference, difference
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.claiming import claim_queued, new_compaction, refresh_sizes
from app.usecases.compaction.ending import end_row
from app.usecases.history.conversations import ConversationService, ConversationView, check_version
from app.usecases.shared.caller import audit
from app.usecases.shared.idempotency import Idem, claim_key, record
from app.usecases.shared.layouts import lay_out
from app.usecases.shared.retries import Compute, Results, run_with_retries
from app.usecases.shared.shell import Shell
from app.usecases.verification.pending import note_version

BEFORE_ANY: Final = 0
"""The number for the time before the first compaction: nothing is covered, every original is in the tail."""


class StateService:
    """Serves state versions. A version number never decreases: a restore writes a new version."""

    def __init__(self, shell: Shell, conversations: ConversationService) -> None:
        self._shell = shell
        self._conversations = conversations

    async def page(self, tenant_id: UUID, conversation_id: UUID, page: Page) -> tuple[list[StateVersion], str | None]:
        """A page of versions, with the provenance of every entry."""
        async with self._shell.uow(tenant_id) as uow:
            await uow.use_snapshot()  # otherwise a version may be shown as judged before the result is visible
            await uow.conversations.get(conversation_id)
            return await uow.states.page(conversation_id, page)

    async def difference(self, tenant_id: UUID, conversation_id: UUID, a: int, b: int) -> StateDifference:
        """What changed from version ``a`` to version ``b``."""
        async with self._shell.uow(tenant_id) as uow:
            await uow.conversations.get(conversation_id)
            return difference(await uow.states.get(conversation_id, a), await uow.states.get(conversation_id, b))

    async def restore(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        state_version: int,
        *,
        if_match: int | None = None,
        idem: Idem | None = None,
    ) -> ConversationView:
        """Write a new version with the content and boundary of an older one. A compaction in flight is superseded.

        Version 0 stands for the time before the first compaction: the new version is empty and covers nothing, so that
        the next compaction makes the state from the originals alone.
        """
        now = self._shell.clock.now()
        once = partial(self._restored, tenant_id, conversation_id, state_version, if_match, idem, now)
        return await run_with_retries(once)

    async def _restored(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        state_version: int,
        if_match: int | None,
        idem: Idem | None,
        now: datetime,
        results: Results,
    ) -> ConversationView:
        async with self._shell.uow(tenant_id) as uow:
            before = await claim_key(uow, idem, now)
            if before is not None:
                return self._conversations.view(await uow.conversations.get(conversation_id))
            present = await uow.conversations.lock(conversation_id)
            check_version(present, if_match)
            version = await self._version(uow, present, state_version)
            restored = await self._write(uow, present, version, results)
            stored = await refresh_sizes(uow, self._shell.resolver(restored))
            await self._queue_if_blank(uow, stored)
            data = {"state_version": stored.state_version, "restored_from": state_version}
            await uow.events.add(conversation_id, "conversation.restored", data, now)
            await audit(uow, self._shell, tenant_id, "state.restored", conversation_id, **data)
            await record(uow, idem, {"conversation_id": str(conversation_id)}, status=200)
            await uow.commit()
        return self._conversations.view(stored)

    async def _queue_if_blank(self, uow: UnitOfWork, stored: Conversation) -> None:
        """Queue a compaction that writes the text again if the restored state is blank because of an erasure."""
        if not stored.boundary_seq or any((stored.compressed_state or {}).values()):
            return
        running = await uow.compactions.in_flight(stored.id)
        if running is not None:  # it would end too late and leave the state blank
            await end_row(self._shell, uow, running, status="superseded", reason="stale")
        row = new_compaction(
            self._shell.resolver(stored), self._shell, trigger=ERASURE_TRIGGER, request=FoldRequest(), ran_in="worker"
        )
        await claim_queued(uow, row, self._shell.clock.now())

    async def _version(self, uow: UnitOfWork, present: Conversation, number: int) -> StateVersion:
        """A stored version, or the empty one before the first compaction."""
        if number != BEFORE_ANY:
            return await uow.states.get(present.id, number)
        if not present.state_version:
            raise NotFoundError("There is no state yet: nothing to go back from.")
        schema = self._shell.resolver(present).schema
        return StateVersion(
            version=BEFORE_ANY,
            state_schema=schema.name,
            state=schema.model().model_dump(mode="json"),
            entries=(),
            next_entry=1,
            boundary_seq=0,
            boundary_message_id=None,
            covered=Sums(),
            layout=None,
            compaction_id=None,
            created_at=present.created_at,
        )

    async def _laid_out(
        self, uow: UnitOfWork, present: Conversation, version: StateVersion, compute: Compute
    ) -> Layout | None:
        """The layout of the version; ``None`` if it covers nothing."""
        if not version.boundary_seq:
            return None
        return await lay_out(
            uow,
            self._shell.resolver(present),
            schema=schema_named(version.state_schema),
            state=version.state,
            boundary_seq=version.boundary_seq,
            given_layout=version.layout,
            compute=compute,
        )

    async def _write(
        self, uow: UnitOfWork, present: Conversation, version: StateVersion, compute: Compute
    ) -> Conversation:
        """Write the next version with the old one's content. The messages after its boundary are in the tail again.

        It has the old version's segments; later segments keep their rows, and can be expanded. Anchors keep their
        statuses, which belong to the conversation.
        """
        newest = await uow.states.get(present.id, present.state_version)
        await uow.segments.make_current(present.id, version.version)
        written = replace(
            version,
            parent_version=version.version or None,
            segment_ids=(),
            repairs=(),
            version=present.state_version + 1,
            covered=await uow.messages.sums_at(present.id, version.boundary_seq),
            layout=await self._laid_out(uow, present, version, compute),
            compaction_id=None,
            made_by="restore",
            next_entry=max(newest.next_entry, version.next_entry),  # entry ids are never reused
            created_at=self._shell.clock.now(),
        )
        await uow.states.add(present.id, written)
        await note_version(uow, self._shell, present.id, written)
        return await uow.conversations.update(
            present.id,
            **written.as_served,
            layout_version=present.layout_version + 1,
            quiet=QuietPeriod(),
            content_epoch=present.content_epoch + 1,  # work on the state that is left behind becomes stale
            live=None,  # a provider cannot go back to an earlier state
        )
