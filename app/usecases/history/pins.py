"""Pins and unpins messages: a pinned message is served verbatim for as long as it is pinned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

from app.core.model.conversation import Message, QuietPeriod, Sums
from app.core.model.errors import NotPinnableError, PinBudgetExceededError
from app.core.model.policies.protection import size_of
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.claiming import refresh_sizes
from app.usecases.compaction.due_triggers import claim_at_rest
from app.usecases.history.holding import other_held_tokens, protection_reasons, renew_layout, store_sums, unit_of
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.retries import Results, run_with_retries
from app.usecases.shared.shell import Service


class PinService(Service):
    """Pins and unpins; the layout of the context changes in the same transaction."""

    async def pin(self, tenant_id: UUID, conversation_id: UUID, message_id: UUID) -> Message:
        """Pin a message, so that it is served verbatim from now on.

        Raises:
            NotFoundError: No such message.
            NotPinnableError: A command, or an erased message.
            PinBudgetExceededError: It would exceed the policy's ``pin_share``.
        """
        return await self._set(tenant_id, conversation_id, message_id, is_pinned=True)

    async def unpin(self, tenant_id: UUID, conversation_id: UUID, message_id: UUID) -> Message:
        """Unpin a message: only the policy's rules protect it from now on. Raises ``NotFoundError``."""
        return await self._set(tenant_id, conversation_id, message_id, is_pinned=False)

    async def _set(self, tenant_id: UUID, conversation_id: UUID, message_id: UUID, *, is_pinned: bool) -> Message:
        once = partial(self._set_once, tenant_id, conversation_id, message_id, is_pinned=is_pinned)
        return await run_with_retries(once)

    async def _set_once(
        self, tenant_id: UUID, conversation_id: UUID, message_id: UUID, results: Results, *, is_pinned: bool
    ) -> Message:
        shell = self._shell
        async with shell.uow(tenant_id) as uow:
            resolved = shell.resolver(await uow.conversations.lock(conversation_id))
            message = await uow.messages.get(conversation_id, message_id)
            if is_pinned:
                _refuse_unpinnable(message)
            if message.is_pinned == is_pinned and (not is_pinned or message.protected_reason == "pinned"):
                return await _with_data_and_reasoning(uow, message)
            stored, total = await self._store(uow, resolved, replace(message, is_pinned=is_pinned))
            await self._store_sizes_and_claim(uow, resolved, total, results)
            shown = await _with_data_and_reasoning(uow, stored)
            await uow.commit()
        return shown

    async def _store(self, uow: UnitOfWork, resolved: Resolved, wanted: Message) -> tuple[Message, Sums]:
        """Store the pin and the protection of messages that belong together; returns the conversation's new sums."""
        unit = [wanted if other.id == wanted.id else other for other in await unit_of(uow, wanted)]
        used = await other_held_tokens(uow, resolved, unit)
        reasons = await protection_reasons(resolved, unit, used=used)
        if wanted.is_pinned and reasons[wanted.seq] != "pinned":
            raise _pin_budget_error(resolved, unit, used)
        conversation_id = wanted.conversation_id
        stored = await uow.messages.pin(
            conversation_id, wanted.id, is_pinned=wanted.is_pinned, reason=reasons[wanted.seq]
        )
        others = {other.seq: reasons[other.seq] for other in unit if other.seq != wanted.seq}
        return stored, await uow.messages.set_protection(conversation_id, dict(others))

    async def _store_sizes_and_claim(self, uow: UnitOfWork, resolved: Resolved, total: Sums, results: Results) -> None:
        shell, conversation = self._shell, resolved.conversation
        summed = shell.resolver(
            await store_sums(uow, replace(conversation, quiet=QuietPeriod(), failure_count=0), total)
        )
        laid_out = await renew_layout(uow, shell, summed, compute=results)
        stored = await refresh_sizes(uow, laid_out, quiet=QuietPeriod(), failure_count=0)
        await claim_at_rest(uow, shell, shell.resolver(stored))


def _pin_budget_error(resolved: Resolved, unit: Sequence[Message], used: int) -> PinBudgetExceededError:
    size = sum(size_of(one, resolved.policy.estimator) for one in unit)
    limit = resolved.budgets.pin_tokens
    whole = "the message" if len(unit) == 1 else "the tool call with its results"
    return PinBudgetExceededError(
        f"{whole} has {size} tokens and {used} are pinned or protected already: together more than the {limit} that"
        " policy.pin_share allows; unpin something, or raise pin_share",
        extra={"protected_tokens": used, "size": size, "limit": limit},
    )


async def _with_data_and_reasoning(uow: UnitOfWork, message: Message) -> Message:
    (shown,) = await uow.messages.with_reasoning([await uow.contents.one_with_data(message)])
    return shown


def _refuse_unpinnable(message: Message) -> None:
    if message.is_command:
        raise NotPinnableError("a command is no part of any context: there is nothing to pin")
    if message.status == "erased":
        raise NotPinnableError("the message was erased: there is nothing to pin")
    if message.status == "superseded":
        raise NotPinnableError("this reply was regenerated and is in no context: pin its successor")
