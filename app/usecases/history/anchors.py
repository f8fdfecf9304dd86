"""Anchors as clients see them: listed, and their status set by hand."""

from __future__ import annotations

from functools import partial
from typing import Final
from uuid import UUID

import structlog

from app.core.model.anchors import Anchor, AnchorStatus, AnchorType, Transition
from app.core.model.claims import Claim
from app.core.model.conversation import Conversation, QuietPeriod
from app.core.model.errors import DependencyUnavailableError, NotFoundError
from app.core.model.records import Page
from app.core.state.apply import ANCHORS_OVER_BUDGET
from app.core.validation.verdict_application import VerifiedState
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.claiming import refresh_sizes
from app.usecases.history.due_anchors import find_due_anchors
from app.usecases.history.holding import renew_layout
from app.usecases.shared.retries import Results, run_with_retries
from app.usecases.shared.shell import Service

_JOB_SECONDS: Final = 5.0
"""The most seconds of one job of the worker, so that more urgent work need not wait longer."""

log = structlog.get_logger(__name__)


class AnchorService(Service):
    """Anchors of a conversation; a status belongs to the conversation, not to a version of its state."""

    async def page(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        page: Page,
        *,
        type_: AnchorType | None = None,
        status: AnchorStatus | None = None,
    ) -> tuple[list[Anchor], str | None]:
        """A page of anchors by position, those of a type and a status if given. Raises ``NotFoundError``."""
        await find_due_anchors(self._shell, tenant_id, conversation_id)
        async with self._shell.uow(tenant_id) as uow:
            await uow.conversations.get(conversation_id)
            return await uow.anchors.page(conversation_id, page, type_=type_, status=status)

    async def work(self, conversation_id: UUID) -> None:
        """Find due anchors of a conversation for some seconds, in the worker.

        If more are due, the worker is asked again.

        If two jobs do so at once, one of them stops.
        """
        try:
            async with self._shell.uow(None) as uow:
                conversation = await uow.conversations.get(conversation_id)
            tenant_id, seconds = conversation.tenant_id, _JOB_SECONDS
            outcome = await find_due_anchors(self._shell, tenant_id, conversation_id, seconds=seconds, gives_way=True)
            if outcome == "some":
                self._shell.outbox.send_later("anchors", conversation_id)
        except NotFoundError:
            log.info("anchors.conversation_gone", conversation_id=str(conversation_id))
        except DependencyUnavailableError as error:  # the anchors are found when they are needed
            log.warning("anchors.not_now", conversation_id=str(conversation_id), reason=error.stable_code)

    async def set_status(self, tenant_id: UUID, conversation_id: UUID, anchor_id: UUID, status: AnchorStatus) -> Anchor:
        """Set a status. What is served changes in the same transaction. Raises ``NotFoundError``.

        No model changes an anchor that was set to ``active``.
        """
        await find_due_anchors(self._shell, tenant_id, conversation_id)
        return await run_with_retries(partial(self._set_status, tenant_id, conversation_id, anchor_id, status))

    async def _set_status(
        self, tenant_id: UUID, conversation_id: UUID, anchor_id: UUID, status: AnchorStatus, results: Results
    ) -> Anchor:
        shell = self._shell
        async with shell.uow(tenant_id) as uow:
            conversation = await uow.conversations.lock(conversation_id)
            anchor = await uow.anchors.get(conversation_id, anchor_id)
            if (anchor.status, anchor.claimed_status) == (status, None) and (
                status != "active" or anchor.proposed_by == "user"
            ):
                return anchor
            await uow.anchors.set_by_user(conversation_id, anchor_id, status)
            if conversation.quiet.reason == ANCHORS_OVER_BUDGET:  # there may be room now
                conversation = await uow.conversations.update(conversation_id, quiet=QuietPeriod())
            if is_served(conversation, anchor):
                laid_out = await renew_layout(uow, shell, shell.resolver(conversation), compute=results)
                await refresh_sizes(uow, laid_out)
            changed = await uow.anchors.get(conversation_id, anchor_id)
            await uow.commit()
        return changed


def is_served(conversation: Conversation, anchor: Anchor) -> bool:
    """Whether the state block shows an anchor while it is active, in full or counted by a marker.

    It does not while the anchor's message is sent word for word.
    """
    layout = conversation.layout
    return layout is not None and anchor.seq <= conversation.boundary_seq and anchor.seq not in layout.held


async def settle_claims(uow: UnitOfWork, conversation: Conversation, verified: VerifiedState) -> bool:
    """Give anchors the status that a model claimed for them if the verifier agreed; drop refused claims.

    An anchor that a user has set meanwhile stays unchanged, and so does an anchor with another claim by now.

    Returns:
        Whether one of these anchors is served (``is_served``).
    """
    refused = {claim.target: claim for claim in verified.unsupported_anchor_claims}
    present = await uow.anchors.still_active(conversation.id, list(refused))
    await uow.anchors.unclaim(conversation.id, [one.id for one in present if _makes_claim(one, refused[str(one.id)])])
    moved = False
    for claim in verified.supported_anchor_claims:
        try:
            anchor = await uow.anchors.get(conversation.id, UUID(claim.target))
        except NotFoundError:  # its message was erased
            continue
        becomes = anchor.claimed_status
        if (
            anchor.status != "active"
            or becomes is None
            or becomes != claim.claimed_status
            or anchor.proposed_by == "user"
        ):
            continue
        by = await _successor(uow, conversation.id, anchor) if becomes == "superseded" else None
        change = Transition(anchor_id=anchor.id, status=becomes, superseded_by=by)
        await uow.anchors.change(conversation.id, [change])
        moved = moved or is_served(conversation, anchor)
    return moved


def _makes_claim(anchor: Anchor, claim: Claim) -> bool:
    """Whether the claim about an anchor is still the one that was judged."""
    seqs = (anchor.seq,) if anchor.claimed_seq is None else (anchor.seq, anchor.claimed_seq)
    return (anchor.claimed_status, seqs) == (claim.claimed_status, claim.seqs)


async def _successor(uow: UnitOfWork, conversation_id: UUID, anchor: Anchor) -> UUID | None:
    if anchor.claimed_seq is None or anchor.claimed_seq == anchor.seq:
        return None
    active = await uow.anchors.active(conversation_id, through_seq=anchor.claimed_seq)
    # There is more than one anchor in the message behind the claim, so it is unclear which one is meant.
    there = [one.id for one in active if one.seq == anchor.claimed_seq]
    return there[0] if len(there) == 1 else None
